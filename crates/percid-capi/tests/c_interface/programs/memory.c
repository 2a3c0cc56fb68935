/* Memory of each ID: every operation is done as a whole on one value, with every source. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 20000, SLOTS = 8, TEXT = 40 };

struct item {
    int taken;
    /* Written before it is pushed, and read by whoever takes it. */
    int number;
    struct item *next;
};

struct value {
    uint64_t sum;
    uint64_t used;
    uint64_t slots[SLOTS];
    uint64_t version;
    char texts[2][TEXT];
    struct item *list;
    uint64_t closed;
};

#define FIELD(name) PERCID_FIELD(struct value, name)
#define SLOT(number) (FIELD(slots[0]) + 8 * (size_t)(number))
#define AT_TEXT offsetof(struct value, texts)
#define NEXT PERCID_FIELD(struct item, next)

static percid_memory *memory;
static struct item items[THREADS * ROUNDS];
static int64_t published;

static void add_one(void)
{
#ifdef CONTROL
    /* Two steps: what another thread adds in between is lost. */
    struct value *const value = (struct value *)percid_memory_current(memory);
    const uint64_t sum = value == NULL ? 0 : __atomic_load_n(&value->sum, __ATOMIC_RELAXED);
    sched_yield();
    if (value != NULL) {
        __atomic_store_n(&value->sum, sum + 1, __ATOMIC_RELAXED);
        return;
    }
#endif
    CHECK(percid_memory_add(memory, FIELD(sum), 1, NULL) == 0);
}

static void take(struct item *item)
{
    CHECK(item->number == (int)(item - items));
    CHECK(__atomic_fetch_add(&item->taken, 1, __ATOMIC_RELAXED) == 0);
}

static void take_list(struct item *item)
{
    while (item != NULL) {
        struct item *const next = item->next;
        take(item);
        item = next;
    }
}

/* A slot is published by the number of slots in use, one of two texts by its version: an operation
 * that is interrupted may leave a part of the other one. */
static void publish(void)
{
    const struct value *const value = (const struct value *)percid_memory_current(memory);
    char text[TEXT];
    uint64_t used, version;
    if (value == NULL) {
        return;
    }
    used = __atomic_load_n(&value->used, __ATOMIC_RELAXED);
    version = __atomic_load_n(&value->version, __ATOMIC_RELAXED);
    if (used < SLOTS) {
        const int done = percid_memory_store_both_if(memory, FIELD(used), used, used + 1, SLOT(used), used + 7, NULL);
        CHECK(done >= 0);
        __atomic_fetch_add(&published, done, __ATOMIC_RELAXED);
    }
    memset(text, (char)(version + 1), TEXT);
    CHECK(percid_memory_copy_then_store_if(memory, FIELD(version), version, version + 1,
                                           AT_TEXT + (size_t)(version + 1) % 2 * TEXT, text, TEXT, NULL) >= 0);
}

static void *work(void *first)
{
    for (int i = 0; i < ROUNDS; i++) {
        void *item;
        percid_outcome outcome;
        struct item *const own = (struct item *)first + i;
        add_one();
        own->number = (int)(own - items);
        CHECK(percid_memory_push(memory, FIELD(list), own, NEXT, NULL) == 0);
        if (i % 2 == 0 && percid_memory_pop(memory, FIELD(list), NEXT, &item) == 1) {
            take((struct item *)item);
        }
        if (i % 1000 == 0) {
            CHECK(percid_memory_swap(memory, FIELD(list), 0, &outcome) == 0 && outcome.value != NULL);
            take_list((struct item *)(uintptr_t)outcome.seen);
        }
        publish();
    }
    return NULL;
}

/* Whoever holds a value finds it whole. */
static void look(void *found, void *sum)
{
    struct value *const value = (struct value *)found;
    CHECK(value->used <= SLOTS);
    for (uint64_t i = 0; i < value->used; i++) {
        CHECK(value->slots[i] == i + 7);
    }
    for (int i = 0; i < TEXT; i++) {
        CHECK(value->texts[value->version % 2][i] == (char)value->version);
    }
    take_list(value->list);
    *(int64_t *)sum += (int64_t)value->sum;
    __atomic_fetch_sub(&published, (int64_t)value->used, __ATOMIC_RELAXED);
    /* Others may read them at any time. */
    __atomic_store_n(&value->list, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&value->sum, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&value->used, 0, __ATOMIC_RELEASE);
}

static void threads(void)
{
    pthread_t workers[THREADS];
    int64_t sum = 0;
    memset(items, 0, sizeof items);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&workers[i], NULL, work, items + i * ROUNDS) == 0);
    }
    for (int i = 0; i < 50; i++) {
        CHECK(percid_memory_for_each(memory, look, &sum) == 0);
        sched_yield();
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    CHECK(percid_memory_for_each(memory, look, &sum) == 0);
    CHECK(sum == (int64_t)THREADS * ROUNDS && published == 0);
    for (int i = 0; i < THREADS * ROUNDS; i++) {
        CHECK(items[i].taken == 1);
    }
}

/* A thread may move between two operations, so each begins with a value whose words are known. */
static void set(void *found, void *unused)
{
    struct value *const value = (struct value *)found;
    (void)unused;
    value->used = 3;
    value->closed = 1;
    memset(value->slots, 0, sizeof value->slots);
}

static void each_operation(void)
{
    percid_outcome outcome;
    const struct value *value;
    void *done = NULL;
    CHECK(percid_memory_add(memory, FIELD(sum), -5, &done) == 0 && done != NULL);
    CHECK(percid_memory_for_each(memory, set, NULL) == 0);

    CHECK(percid_memory_store_if(memory, FIELD(closed), 0, 9, &outcome) == 0);
    CHECK(outcome.value == NULL && outcome.seen == 1);
    CHECK(percid_memory_store_if_both(memory, FIELD(used), 4, 9, FIELD(closed), 1, &outcome) == 0);
    CHECK(outcome.seen == 3 && outcome.other == 0);
    CHECK(percid_memory_store_if_both(memory, FIELD(used), 3, 9, FIELD(closed), 0, &outcome) == 0);
    CHECK(outcome.seen == 3 && outcome.other == 1 && outcome.value == NULL);
    CHECK(percid_memory_store_both_if(memory, FIELD(used), 2, 9, SLOT(1), 8, &outcome) == 0 && outcome.seen == 3);

    CHECK(percid_memory_store_if_both(memory, FIELD(used), 3, 4, FIELD(closed), 1, &outcome) == 1);
    value = (const struct value *)outcome.value;
    CHECK(value->used == 4 && value->closed == 1 && value->slots[1] == 0 && outcome.seen == 3);
    CHECK(percid_memory_for_each(memory, set, NULL) == 0);
    CHECK(percid_memory_store_both_if(memory, FIELD(used), 3, 4, SLOT(1), 8, &outcome) == 1);
    value = (const struct value *)outcome.value;
    CHECK(value->used == 4 && value->slots[1] == 8);
    CHECK(percid_memory_for_each(memory, set, NULL) == 0);
    CHECK(percid_memory_copy_then_store_if(memory, FIELD(used), 3, 4, AT_TEXT + 1, "hello", 5, &outcome) == 1);
    value = (const struct value *)outcome.value;
    CHECK(value->used == 4 && memcmp(value->texts[0] + 1, "hello", 5) == 0);
    CHECK(percid_memory_for_each(memory, set, NULL) == 0);
    CHECK(percid_memory_copy_then_store_if(memory, FIELD(used), 3, 4, sizeof *value, NULL, 0, &outcome) == 1);
    CHECK(percid_memory_swap(memory, FIELD(closed), 77, &outcome) == 0 && outcome.seen == 1);
    CHECK(((const struct value *)outcome.value)->closed == 77);
    CHECK(percid_memory_for_each(memory, set, NULL) == 0);
    CHECK(percid_memory_fetch_add(memory, FIELD(used), -5, &outcome) == 0 && outcome.seen == 3);
    value = (const struct value *)outcome.value;
    CHECK((int64_t)value->used == -2);
    CHECK(percid_memory_fetch_add(memory, FIELD(used), 5, NULL) == 0);
}

static void visited_value_is_not_used(void *found, void *unused)
{
    void *done;
    (void)unused;
    CHECK(percid_memory_add(memory, FIELD(sum), 1, &done) == 0 && done != found);
    CHECK(percid_memory_for_each(memory, set, NULL) == -EDEADLK);
    CHECK(percid_memory_destroy(memory, NULL, NULL) == -EDEADLK || percid_memory_destroy(memory, NULL, NULL) == -EINVAL);
    if (percid_memory_id_of(memory, found) == -ENOENT) {
        CHECK(percid_memory_settle(memory) == -EBUSY);
    }
}

static void value_of_an_id(void *found, void *id)
{
    CHECK(percid_memory_id_of(memory, found) == *(const int *)id);
    visited_value_is_not_used(found, NULL);
    CHECK(percid_memory_with_id(memory, *(const uint32_t *)id, set, NULL) == -EDEADLK);
    *(int *)id = -1;
}

static void one_value(void)
{
    int seen = 0;
    CHECK(percid_memory_with_id(memory, UINT32_MAX, set, NULL) == -ENOENT);
    CHECK(percid_memory_with_id(memory, 0, NULL, NULL) == -EINVAL);
    for (void *value = NULL; (value = percid_memory_next(memory, value)) != NULL;) {
        int id = percid_memory_id_of(memory, value);
        if (id >= 0) {
            CHECK(percid_memory_with_id(memory, (uint32_t)id, value_of_an_id, &id) == 0 && id == -1);
            seen++;
        }
    }
    CHECK(seen > 0 || percid_current_id() < 0);
}

static void values(size_t align)
{
    one_value();
    int count = 0, without = 0;
    CHECK(percid_memory_for_each(memory, visited_value_is_not_used, NULL) == 0);
    CHECK(percid_memory_settle(memory) == 0);
    for (void *value = NULL; (value = percid_memory_next(memory, value)) != NULL; count++) {
        const int id = percid_memory_id_of(memory, value);
        if (id < 0) {
            CHECK(id == -ENOENT);
            without++;
        } else {
            CHECK(percid_memory_get(memory, (uint32_t)id) == value);
        }
        CHECK((uintptr_t)value % align == 0);
    }
    CHECK(count >= 2 && without >= 1);
}

static void fill(void *found, void *byte)
{
    struct value *const value = (struct value *)found;
    CHECK(value->sum == 0 && value->list == NULL);
    value->closed = *(const uint64_t *)byte;
}

static void count(void *found, void *number)
{
    CHECK(((const struct value *)found)->closed == 5);
    ++*(int *)number;
}

static void made_and_dropped(int source)
{
    static uint64_t five = 5;
    int dropped = 0, made = 0;
    percid_outcome outcome;
    CHECK(percid_memory_create_with_source(&memory, source, sizeof(struct value), 16, fill, &five) == 0);
    CHECK(percid_memory_current(memory) == NULL && percid_memory_next(memory, NULL) == NULL);
    CHECK(percid_memory_store_if(memory, FIELD(closed), 5, 5, &outcome) == 1);
    CHECK((uintptr_t)outcome.value % 16 == 0);
    for (void *value = NULL; (value = percid_memory_next(memory, value)) != NULL;) {
        made++;
    }
    CHECK(percid_memory_destroy(memory, count, &dropped) == 0 && dropped == made && made >= 1);
}

static void misuse(void)
{
    percid_outcome outcome;
    void *place;
    const size_t size = sizeof(struct value);
    CHECK(percid_memory_create(NULL, 8, 8, NULL, NULL) == -EINVAL);
    CHECK(percid_memory_create(&memory, 0, 8, NULL, NULL) == -EINVAL && memory == NULL);
    CHECK(percid_memory_create(&memory, 8, 128, NULL, NULL) == -EINVAL);
    CHECK(percid_memory_create(&memory, 1 << 24, 8, NULL, NULL) == -EINVAL);
    CHECK(percid_memory_create_with_source(&memory, 99, 8, 8, NULL, NULL) == -EINVAL);
    CHECK(percid_memory_create(&memory, size, 8, NULL, NULL) == 0);
    CHECK(percid_memory_add(NULL, 0, 1, &place) == -EINVAL && place == NULL);
    CHECK(percid_memory_add(memory, 4, 1, NULL) == -EINVAL);
    CHECK(percid_memory_add(memory, size, 1, NULL) == -EINVAL);
    CHECK(percid_memory_add(memory, SIZE_MAX - 7, 1, NULL) == -EINVAL);
    CHECK(percid_memory_store_both_if(memory, 0, 0, 1, size, 1, &outcome) == -EINVAL && outcome.value == NULL);
    CHECK(percid_memory_copy_then_store_if(memory, 0, 0, 1, size - 4, "hello", 5, NULL) == -EINVAL);
    CHECK(percid_memory_copy_then_store_if(memory, 0, 0, 1, 8, NULL, 5, NULL) == -EINVAL);
    CHECK(percid_memory_push(memory, FIELD(list), NULL, NEXT, NULL) == -EINVAL);
    CHECK(percid_memory_push(memory, FIELD(list), items, 4, NULL) == -EINVAL);
    CHECK(percid_memory_pop(memory, FIELD(list), NEXT, NULL) == -EINVAL);
    CHECK(percid_memory_pop(memory, FIELD(list), NEXT, &place) == 0 && place == NULL);
    CHECK(percid_memory_for_each(memory, NULL, NULL) == -EINVAL);
    CHECK(percid_memory_id_of(memory, NULL) == -EINVAL);
    CHECK(percid_memory_id_of(memory, &place) == -ENOENT && percid_memory_next(memory, &place) == NULL);
    CHECK(percid_memory_destroy(memory, NULL, NULL) == 0);
    CHECK(percid_memory_destroy(memory, NULL, NULL) == -EBADF);
    CHECK(percid_memory_add(memory, 0, 1, NULL) == -EBADF);
    CHECK(percid_memory_settle(memory) == -EBADF && percid_memory_settle(NULL) == -EINVAL);
    CHECK(percid_memory_pop(memory, FIELD(list), NEXT, &place) == -EBADF && place == NULL);
    CHECK(percid_memory_current(memory) == NULL);
}

static void use(size_t align)
{
    threads();
    each_operation();
    values(align);
}

int main(void)
{
    static percid_memory placed = PERCID_MEMORY_INIT(sizeof(struct value), 8, NULL, NULL);
    static percid_memory aligned = PERCID_MEMORY_INIT(sizeof(struct value), 64, NULL, NULL);
    static percid_memory wrong = PERCID_MEMORY_INIT(sizeof(struct value), 3, NULL, NULL);
    CHECK(percid_memory_add(&wrong, 0, 1, NULL) == -EINVAL);
    /* Inline, and by calls. */
    memory = &placed;
    use(8);
    memory = &aligned;
    use(64);
    CHECK(percid_memory_destroy(memory, NULL, NULL) == -EINVAL);
    for (int source = PERCID_SOURCE_KERNEL; source <= PERCID_SOURCE_ATOMIC; source++) {
        if (percid_source_unavailable(source) == PERCID_SOURCE_ERROR_NONE) {
            const size_t align = source == PERCID_SOURCE_TABLE ? 8 : 32;
            CHECK(percid_memory_create_with_source(&memory, source, sizeof(struct value), align, NULL, NULL) == 0);
            use(align);
            CHECK(percid_memory_destroy(memory, NULL, NULL) == 0);
            made_and_dropped(source);
        }
    }
    misuse();
    puts("ok");
    return 0;
}
