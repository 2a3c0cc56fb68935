/* Stacks, pools, locals and rings under many threads, with every source that this machine has,
 * whatever the process has chosen. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 20000, CAPACITY = 20 };

static percid_stack *stack;
static percid_pool *pool;
static percid_local *local;
static percid_ring *ring;
static int64_t refused;

static void add(void *value, void *n)
{
    *(int64_t *)value += *(const int64_t *)n;
}

static void *work(void *unused)
{
    (void)unused;
    for (int64_t i = 1; i <= ROUNDS; i++) {
        int64_t *const object = (int64_t *)percid_pool_get(pool);
        CHECK(object != NULL);
        *object = 1;
        if (percid_stack_push(stack, object) != 0) {
            __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
            CHECK(percid_pool_put(pool, object) == 0);
        } else if (i % 3 != 0) {
            void *const other = percid_stack_pop(stack);
            if (other != NULL) {
                CHECK(percid_pool_put(pool, other) == 0);
                __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
            }
        }
        CHECK(percid_local_with(local, add, &i) == 0);
        percid_ring_append(ring, &i, sizeof i);
    }
    return NULL;
}

static void put_back(void *object, void *count)
{
    *(int64_t *)count += *(const int64_t *)object;
    CHECK(percid_pool_put(pool, object) == 0);
}

static void sum(void *value, void *total)
{
    *(int64_t *)total += *(const int64_t *)value;
}

static void look(const percid_event *event, void *unused)
{
    (void)unused;
    CHECK(event->length == 8);
}

static void use(void)
{
    pthread_t threads[THREADS];
    int64_t count = 0, total = 0;
    refused = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(percid_stack_drain(stack, put_back, &count) == count);
    CHECK(count + refused == (int64_t)THREADS * ROUNDS);
    CHECK(percid_local_for_each(local, sum, &total) == 0);
    CHECK(total == (int64_t)THREADS * ROUNDS * (ROUNDS + 1) / 2);
    count = percid_ring_poll(ring, look, NULL);
    CHECK(count > 0 && (uint64_t)count + percid_ring_lost(ring) == (uint64_t)THREADS * ROUNDS);
}

static void slabs(void)
{
    percid_range found[4];
    int64_t *const object = (int64_t *)percid_pool_get(pool);
    const size_t count = percid_pool_slabs(pool, NULL, 0);
    size_t around = 0;
    CHECK(percid_pool_size(pool) == 40 && percid_pool_align(pool) == 64);
    CHECK(count >= 1 && percid_pool_slabs(pool, found, 4) == count);
    for (size_t i = 0; i < count && i < 4; i++) {
        const uintptr_t from = (uintptr_t)object - (uintptr_t)found[i].start;
        CHECK((uintptr_t)found[i].start % 4096 == 0 && found[i].bytes % 4096 == 0);
        around += from < found[i].bytes;
    }
    CHECK(around == 1 || count > 4);
    CHECK(percid_pool_put(pool, object) == 0);
}

/* Whoever cannot have a source gets the same answer for every structure, and no object. */
static void refuse(int source, int result)
{
    CHECK(percid_stack_create_with_source(&stack, source, CAPACITY) == result && stack == NULL);
    CHECK(percid_pool_create_with_source(&pool, source, 40, 64, CAPACITY) == result && pool == NULL);
    CHECK(percid_local_create_with_source(&local, source, 8, 8, NULL, NULL, NULL) == result && local == NULL);
    CHECK(percid_ring_create_with_source(&ring, source, 4096, PERCID_OVERFLOW_DROP_NEWEST) == result && ring == NULL);
}

static void misuse(void)
{
    const int source = PERCID_SOURCE_ATOMIC;
    refuse(0, -EINVAL);
    refuse(4, -EINVAL);
    CHECK(percid_stack_create_with_source(NULL, source, CAPACITY) == -EINVAL);
    CHECK(percid_stack_create_with_source(&stack, source, 0) == -EINVAL && stack == NULL);
    CHECK(percid_stack_create_with_source(&stack, source, 2097152) == -EINVAL && stack == NULL);
    CHECK(percid_pool_create_with_source(NULL, source, 40, 64, CAPACITY) == -EINVAL);
    CHECK(percid_pool_create_with_source(&pool, source, 40, 48, CAPACITY) == -EINVAL && pool == NULL);
    CHECK(percid_pool_create_with_source(&pool, source, 40, 64, 0) == -EINVAL && pool == NULL);
    CHECK(percid_local_create_with_source(NULL, source, 8, 8, NULL, NULL, NULL) == -EINVAL);
    CHECK(percid_local_create_with_source(&local, source, 8, 3, NULL, NULL, NULL) == -EINVAL && local == NULL);
    CHECK(percid_ring_create_with_source(NULL, source, 4096, PERCID_OVERFLOW_DROP_NEWEST) == -EINVAL);
    CHECK(percid_ring_create_with_source(&ring, source, 4096, 0) == -EINVAL && ring == NULL);
    CHECK(percid_ring_create_with_source(&ring, source, PERCID_RING_MIN_BYTES / 2, PERCID_OVERFLOW_DROP_NEWEST) ==
          -EINVAL);
    CHECK(percid_ring_create_with_source(&ring, source, PERCID_RING_MAX_BYTES * 2, PERCID_OVERFLOW_DROP_NEWEST) ==
          -EINVAL);
    CHECK(percid_stack_capacity(NULL) == 0 && percid_pool_size(NULL) == 0 && percid_pool_align(NULL) == 0);
    CHECK(percid_pool_slabs(NULL, NULL, 0) == 0);
}

/* Creates one object of one structure for a source, and uses it. */
static void use_one(int structure, int source)
{
    int64_t item = 1;
    switch (structure) {
    case 0:
        CHECK(percid_stack_create_with_source(&stack, source, CAPACITY) == 0);
        CHECK(percid_stack_push(stack, &item) == 0);
        break;
    case 1:
        CHECK(percid_pool_create_with_source(&pool, source, 40, 64, CAPACITY) == 0);
        CHECK(percid_pool_put(pool, percid_pool_get(pool)) == 0);
        break;
    case 2:
        CHECK(percid_local_create_with_source(&local, source, 8, 8, NULL, NULL, NULL) == 0);
        CHECK(percid_local_with(local, add, &item) == 0);
        CHECK(percid_local_destroy(local) == 0);
        break;
    default:
        CHECK(percid_ring_create_with_source(&ring, source, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
        CHECK(percid_ring_append(ring, &item, sizeof item) == 0);
    }
}

/* An object uses IDs of its source: in a child, where nothing has used one before. */
static void uses_its_source(int structure, int source)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(percid_source_id_count(source) == 0);
        use_one(structure, source);
        CHECK(percid_source_id_count(source) > 0);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    int used = 0;
    misuse();
    for (int source = PERCID_SOURCE_KERNEL; source <= PERCID_SOURCE_ATOMIC; source++) {
        for (int structure = 0; structure < 4 && percid_source_prepare(source) == 0; structure++) {
            uses_its_source(structure, source);
        }
    }
    for (int source = PERCID_SOURCE_KERNEL; source <= PERCID_SOURCE_ATOMIC; source++) {
        const int result = percid_source_prepare(source);
        if (result != 0) {
            refuse(source, result);
            continue;
        }
        CHECK(percid_stack_create_with_source(&stack, source, CAPACITY) == 0);
        CHECK(percid_pool_create_with_source(&pool, source, 40, 64, CAPACITY) == 0);
        CHECK(percid_local_create_with_source(&local, source, 8, 8, NULL, NULL, NULL) == 0);
        CHECK(percid_ring_create_with_source(&ring, source, PERCID_RING_MIN_BYTES, PERCID_OVERFLOW_OVERWRITE_OLDEST) ==
              0);
        CHECK(percid_stack_capacity(stack) == CAPACITY);
        use();
        slabs();
        CHECK(percid_stack_destroy(stack, NULL, NULL) == 0 && percid_stack_capacity(stack) == 0);
        CHECK(percid_pool_destroy(pool) == 0 && percid_pool_size(pool) == 0);
        CHECK(percid_pool_align(pool) == 0 && percid_pool_slabs(pool, NULL, 0) == 0);
        CHECK(percid_local_destroy(local) == 0 && percid_ring_destroy(ring) == 0);
        used++;
    }
    CHECK(used > 0);
    puts("ok");
    return 0;
}
