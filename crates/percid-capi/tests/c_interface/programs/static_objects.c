/* Objects of static storage: good before main() and after exit() began, and told apart from others. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { ROUNDS = 20000 };

static percid_stack stack = PERCID_STACK_INIT(8);
static percid_stack bounded = PERCID_STACK_INIT_BOUNDED(2, 10);
static percid_pool pool = PERCID_POOL_INIT(48, 16, 8);
static percid_local local = PERCID_LOCAL_INIT(sizeof(long), sizeof(long), NULL, NULL, NULL);
static percid_ring ring = PERCID_RING_INIT(4096, PERCID_OVERFLOW_DROP_NEWEST);
static percid_mask mask = PERCID_MASK_INIT;
static int items[ROUNDS];

static void add_one(void *value, void *argument)
{
    (void)argument;
    ++*(long *)value;
}

static void sum(void *value, void *total)
{
    *(long *)total += *(const long *)value;
}

static void take(void *item, void *argument)
{
    (void)argument;
    /* Several threads push one item. */
    __atomic_fetch_add((int *)item, 1, __ATOMIC_RELAXED);
}

static void nothing(uint32_t id, void *argument)
{
    (void)id;
    (void)argument;
}

static void count(const percid_event *event, void *records)
{
    CHECK(event->length == 5 && memcmp(event->bytes, "hello", 5) == 0);
    ++*(long *)records;
}

/* Uses every object once. */
static void use(int *item)
{
    void *value, *popped, *object;
    CHECK(percid_stack_push(&stack, item) == 0);
    if ((popped = percid_stack_pop(&stack)) != NULL) {
        take(popped, NULL);
    }
    object = percid_pool_get(&pool);
    CHECK(object != NULL && (uintptr_t)object % 16 == 0);
    memset(object, 1, 48);
    CHECK(percid_pool_put(&pool, object) == 0);
    CHECK(percid_local_with(&local, add_one, NULL) == 0);
    CHECK(percid_local_acquire(&local, &value) == 0 && value != NULL);
    ++*(long *)value;
    percid_local_release(value);
    CHECK(percid_mask_mark(&mask, 7) == 0);
}

__attribute__((constructor)) static void before_main(void)
{
    use(&items[0]);
}

__attribute__((destructor)) static void after_exit(void)
{
    use(&items[0]);
    CHECK(percid_ring_append(&ring, "hello", 5) == 0);
    /* Leak checkers do not look where values are. */
    CHECK(percid_local_drain(&local, NULL, NULL) >= 1);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 1; i < ROUNDS / 4; i++) {
        use(&items[i]);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t workers[4];
    long total = 0, records = 0;
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_create(&workers[i], NULL, work, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    CHECK(percid_stack_drain(&stack, take, NULL) >= 0);
    for (int i = 1; i < ROUNDS / 4; i++) {
        CHECK(items[i] == 4);
    }
    CHECK(percid_local_for_each(&local, sum, &total) == 0);
    CHECK(total == 2 * (1 + 4 * (ROUNDS / 4 - 1)));
    CHECK(percid_mask_is_marked(&mask, 7) == 1 && percid_mask_is_marked(&mask, 8) == 0);
    CHECK(percid_mask_mark(&mask, 8) == 0 && percid_mask_mark(&mask, 40) == 0);
    CHECK(percid_mask_is_marked(&mask, 40) == 1);
    CHECK(percid_mask_drain(&mask, nothing, NULL) == 3);
    for (int i = 0; i < 20; i++) {
        CHECK(percid_ring_append(&ring, "hello", 5) == 0);
    }
    CHECK(percid_ring_poll(&ring, count, &records) == 20 && records == 20);
    CHECK(percid_ring_max_record_len(&ring) == 1008);
    CHECK(percid_pool_drain(&pool) >= 1);
    CHECK(percid_local_drain(&local, NULL, NULL) >= 1);
}

static void bounds(void)
{
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        refused += percid_stack_push(&bounded, &items[i]) == -ENOSPC;
    }
    CHECK(refused > 200);
    CHECK(percid_stack_drain(&bounded, take, NULL) == 300 - refused);
}

/* What creation would refuse is refused at first use, and later. */
static void wrong_arguments(void)
{
    static percid_stack empty, huge = PERCID_STACK_INIT(2097152);
    static percid_pool none, odd = PERCID_POOL_INIT(8, 3, 8), vast = PERCID_POOL_INIT(SIZE_MAX / 2, 8, 8);
    static percid_pool without = PERCID_POOL_INIT(8, 8, 0);
    static percid_local unaligned = PERCID_LOCAL_INIT(8, 12, NULL, NULL, NULL);
    static percid_ring uneven = PERCID_RING_INIT(1000, PERCID_OVERFLOW_DROP_NEWEST);
    static percid_ring aimless = PERCID_RING_INIT(1024, 7);
    long value;
    void *taken = &value;
    for (int again = 0; again < 2; again++) {
        CHECK(percid_stack_push(&empty, &value) == -EINVAL && percid_stack_pop(&empty) == NULL);
        CHECK(percid_stack_push(&huge, &value) == -EINVAL);
        CHECK(percid_pool_get(&none) == NULL && percid_pool_get(&odd) == NULL);
        CHECK(percid_pool_get(&vast) == NULL && percid_pool_get(&without) == NULL);
        CHECK(percid_pool_drain(&odd) == -EINVAL);
        CHECK(percid_local_with(&unaligned, add_one, NULL) == -EINVAL);
        CHECK(percid_local_acquire(&unaligned, &taken) == -EINVAL && taken == NULL);
        CHECK(percid_ring_append(&uneven, "hello", 5) == -EINVAL);
        CHECK(percid_ring_append(&aimless, "hello", 5) == -EINVAL);
    }
}

static void never_destroyed(void)
{
    CHECK(percid_stack_destroy(&stack, take, NULL) == -EINVAL);
    CHECK(percid_pool_destroy(&pool) == -EINVAL);
    CHECK(percid_local_destroy(&local) == -EINVAL);
    CHECK(percid_ring_destroy(&ring) == -EINVAL);
    CHECK(percid_mask_destroy(&mask) == -EINVAL);
}

/* Handles of one type are nothing to the functions of another. */
static void other_types(void)
{
    percid_stack *made_stack;
    percid_pool *made_pool;
    percid_mask *made_mask;
    int item = 0;
    void *object, *taken;
    CHECK(percid_stack_create(&made_stack, 8, 0) == 0);
    CHECK(percid_pool_create(&made_pool, 8, 8, 8) == 0);
    CHECK(percid_mask_create(&made_mask) == 0);
    /* Active on this CPU: what mistook them for others would do something. */
    for (int i = 0; i < 3; i++) {
        object = percid_pool_get(made_pool);
        CHECK(object != NULL && percid_pool_put(made_pool, object) == 0);
        CHECK(percid_stack_push(made_stack, &item) == 0 && percid_stack_pop(made_stack) == &item);
    }
    object = percid_pool_get(made_pool);
    for (int gone = 0; gone < 2; gone++) {
        CHECK(percid_stack_push((percid_stack *)(void *)made_pool, &item) == -EINVAL);
        CHECK(percid_stack_pop((percid_stack *)(void *)made_pool) == NULL);
        CHECK(percid_ring_append((percid_ring *)(void *)made_pool, "hello", 5) == -EINVAL);
        CHECK(percid_mask_mark((percid_mask *)(void *)made_stack, 1) == -EINVAL);
        CHECK(percid_pool_put((percid_pool *)(void *)made_stack, object) == -EINVAL);
        CHECK(percid_pool_get((percid_pool *)(void *)made_mask) == NULL);
        CHECK(percid_local_with((percid_local *)(void *)made_mask, add_one, NULL) == -EINVAL);
        CHECK(percid_local_acquire((percid_local *)(void *)made_mask, &taken) == -EINVAL);
        CHECK(percid_stack_destroy((percid_stack *)(void *)made_pool, NULL, NULL) == -EINVAL);
        if (!gone) {
            CHECK(percid_pool_put(made_pool, object) == 0);
            CHECK(percid_stack_destroy(made_stack, NULL, NULL) == 0);
            CHECK(percid_pool_destroy(made_pool) == 0);
            CHECK(percid_mask_destroy(made_mask) == 0);
        }
    }
    CHECK(percid_mask_mark(made_mask, 1) == -EBADF);
}

/* Called and inlined forms alike. */
static void null(void)
{
    int item = 0;
    void *taken = &item;
    CHECK(percid_stack_push(NULL, &item) == -EINVAL && percid_stack_push(&stack, NULL) == -EINVAL);
    CHECK(percid_stack_pop(NULL) == NULL);
    CHECK(percid_pool_get(NULL) == NULL && percid_pool_put(NULL, &item) == -EINVAL);
    CHECK(percid_pool_put(&pool, NULL) == -EINVAL);
    CHECK(percid_local_acquire(NULL, &taken) == -EINVAL && taken == NULL);
    CHECK(percid_local_acquire(&local, NULL) == -EINVAL);
    CHECK(percid_local_with(NULL, add_one, NULL) == -EINVAL);
    CHECK(percid_local_with(&local, NULL, NULL) == -EINVAL);
    percid_local_release(NULL);
    CHECK(percid_ring_append(NULL, "hello", 5) == -EINVAL);
    CHECK(percid_ring_append(&ring, NULL, 5) == -EINVAL && percid_ring_append(&ring, NULL, 0) == 0);
    CHECK(percid_mask_mark(NULL, 1) == -EINVAL);
    CHECK(percid_mask_mark(&mask, 8192) == -ERANGE);
}

int main(void)
{
    CHECK(items[0] <= 1);
    threads();
    bounds();
    wrong_arguments();
    never_destroyed();
    other_types();
    null();
    puts("ok");
    return 0;
}
