/* The loops in C, and in C++: this file is compiled by both, and once more with every function called
 * (PERCID_NO_INLINE); WAY is in the functions' names. The same form as those in loops.rs. */
#define _POSIX_C_SOURCE 200809L /* pthread_rwlock_t */
#include <percid.h>
#include <pthread.h>
#include <stdlib.h>

/* Lets the loop that follows begin on a cache line. */
#define ALIGN_LOOP() __asm__ volatile(".p2align 6")

#define JOINED(a, b) a##b
#define NAME(way, operation) JOINED(percid_bench_##way##_, operation)
#define EXPANDED(way, operation) NAME(way, operation)

/* Does something at least once with an object, and with one of static storage, which it sees. */
#define LOOP(operation, type, initial, ...)                                                                    \
    static type static_##operation = initial;                                                                  \
    REPEAT(operation, type, (type *)object, __VA_ARGS__)                                                       \
    REPEAT(static_##operation, type, &static_##operation, __VA_ARGS__)

#define REPEAT(operation, type, place, ...)                                                                    \
    void EXPANDED(WAY, operation)(void *object, uint64_t times);                                               \
    __attribute__((noinline)) void EXPANDED(WAY, operation)(void *object, uint64_t times)                      \
    {                                                                                                          \
        type *const it = place;                                                                                \
        (void)object;                                                                                          \
        (void)it;                                                                                              \
        ALIGN_LOOP();                                                                                          \
        do {                                                                                                   \
            __VA_ARGS__                                                                                        \
        } while (--times != 0);                                                                                \
    }

#if defined(__cplusplus)
extern "C" {
#endif

LOOP(counter_add, percid_counter, PERCID_COUNTER_INIT, { percid_counter_add(it, 1); })
LOOP(histogram_record, percid_histogram, PERCID_HISTOGRAM_INIT, { percid_histogram_record(it, times); })
LOOP(mask_mark, percid_mask, PERCID_MASK_INIT, { (void)percid_mask_mark(it, 3); })

LOOP(local_acquire_release, percid_local, PERCID_LOCAL_INIT(8, 8, NULL, NULL, NULL), {
    void *value;
    if (percid_local_acquire(it, &value) == 0) {
        ++*(uint64_t *)value;
        percid_local_release(value);
    }
})

LOOP(stack_push_pop, percid_stack, PERCID_STACK_INIT(64), {
    if (percid_stack_push(it, it) == 0) {
        void *const popped = percid_stack_pop(it);
        (void)popped;
    }
})

LOOP(pool_get_put, percid_pool, PERCID_POOL_INIT(64, 16, 64), {
    void *const got = percid_pool_get(it);
    if (got != NULL) {
        *(volatile uint64_t *)got = times;
        (void)percid_pool_put(it, got);
    }
})

LOOP(ring_append, percid_ring, PERCID_RING_INIT(65536, PERCID_OVERFLOW_OVERWRITE_OLDEST), {
    const uint64_t record[2] = {times, 1};
    (void)percid_ring_append(it, record, sizeof record);
})

/* The same fields as in librseq's loops. */
struct value {
    int64_t count;
    int64_t lock;
    struct item *head;
    int64_t used;
    char bytes[64];
};

struct item {
    struct item *next;
};

#define VALUES PERCID_MEMORY_INIT(sizeof(struct value), 8, NULL, NULL)

LOOP(word_add, percid_memory, VALUES, { (void)percid_memory_add(it, PERCID_FIELD(struct value, count), 1, NULL); })

LOOP(word_lock, percid_memory, VALUES, {
    percid_outcome done;
    if (percid_memory_store_if(it, PERCID_FIELD(struct value, lock), 0, 1, &done) == 1) {
        struct value *const mine = (struct value *)done.value;
        mine->count++;
        __atomic_store_n(&mine->lock, 0, __ATOMIC_RELEASE);
    }
})

LOOP(list_push_pop, percid_memory, VALUES, {
    static struct item the_item;
    void *taken;
    (void)percid_memory_push(it, PERCID_FIELD(struct value, head), &the_item, PERCID_FIELD(struct item, next), NULL);
    (void)percid_memory_pop(it, PERCID_FIELD(struct value, head), PERCID_FIELD(struct item, next), &taken);
})

LOOP(copy_and_publish, percid_memory, VALUES, {
    const uint64_t record[2] = {times, 1};
    const struct value *const mine = (const struct value *)percid_memory_current(it);
    const int64_t used = mine == NULL ? 0 : __atomic_load_n(&mine->used, __ATOMIC_ACQUIRE);
    const int64_t begin = used == 64 ? 0 : used;
    (void)percid_memory_copy_then_store_if(it, PERCID_FIELD(struct value, used), (uint64_t)used,
                                           (uint64_t)begin + sizeof record,
                                           offsetof(struct value, bytes) + (size_t)begin, record, sizeof record, NULL);
})

#if defined(REFERENCES)

void *mi_malloc(size_t size);
void mi_free(void *memory);

REPEAT(atomic_add, uint64_t, (uint64_t *)object, { __atomic_fetch_add(it, 1, __ATOMIC_RELAXED); })

/* A server that looks up what it counts by what it was asked. */
REPEAT(family_add, percid_family, (percid_family *)object, {
    static const char *const values[] = {"GET", "200"};
    percid_counter *counter;
    if (percid_family_counter(it, values, 2, &counter) == 0) {
        percid_counter_add(counter, 1);
    }
})

REPEAT(malloc_free, void, NULL, {
    void *const got = malloc(64);
    *(volatile uint64_t *)got = times;
    free(got);
})

REPEAT(mimalloc, void, NULL, {
    void *const got = mi_malloc(64);
    *(volatile uint64_t *)got = times;
    mi_free(got);
})

REPEAT(rwlock_read, percid_rwlock, (percid_rwlock *)object, {
    if (percid_rwlock_read_lock(it) == 0) {
        percid_rwlock_read_unlock(it);
    }
})

static pthread_rwlock_t the_lock = PTHREAD_RWLOCK_INITIALIZER;

REPEAT(pthread_rwlock_read, pthread_rwlock_t, &the_lock, {
    if (pthread_rwlock_rdlock(it) == 0) {
        pthread_rwlock_unlock(it);
    }
})

REPEAT(domain_read, percid_domain, (percid_domain *)object,
       { percid_domain_read_unlock(it, percid_domain_read_lock(it)); })

REPEAT(domain_synchronize, percid_domain, (percid_domain *)object, { (void)!percid_domain_synchronize(it); })

REPEAT(budget_charge, percid_budget, (percid_budget *)object, {
    if (percid_budget_try_charge(it, 1) == 0) {
        percid_budget_release(it, 1);
    }
})

void percid_bench_touch(percid_region *region, size_t bytes, uint64_t times);

__attribute__((noinline)) void percid_bench_touch(percid_region *region, size_t bytes, uint64_t times)
{
    size_t offset = 0;
    ALIGN_LOOP();
    do {
        percid_region_touch(region, offset);
        offset = (offset + 5 * 4096 + 64) & (bytes - 1);
    } while (--times != 0);
}

#endif

#if defined(__cplusplus)
}
#endif
