/* The loops of librseq, with the kernel's concurrency IDs and its memory pools: what its own tests do, in the
 * form of loops.c. Compiled if PERCID_LIBRSEQ names its sources. */
#include <rseq/mempool.h>
#include <rseq/rseq.h>
#include <stddef.h>
#include <stdint.h>

#define ALIGN_LOOP() __asm__ volatile(".p2align 6")

struct item {
    struct item *next;
};

/* One value for each ID. */
struct value {
    intptr_t count;
    intptr_t lock;
    intptr_t head;
    intptr_t used;
    char bytes[64];
};

static struct value __rseq_percpu *values;

/* Returns 0 if librseq can be used here. */
int percid_bench_librseq_start(void);

int percid_bench_librseq_start(void)
{
    struct rseq_mempool_attr *attributes;
    struct rseq_mempool *pool;

    if (rseq_register_current_thread() != 0 || !rseq_mm_cid_available()) {
        return -1;
    }
    attributes = rseq_mempool_attr_create();
    if (attributes == NULL || rseq_mempool_attr_set_percpu(attributes, RSEQ_MEMPOOL_STRIDE, rseq_get_max_nr_cpus()) != 0) {
        return -1;
    }
    pool = rseq_mempool_create("percid-bench", sizeof(struct value), attributes);
    rseq_mempool_attr_destroy(attributes);
    if (pool == NULL) {
        return -1;
    }
    values = (struct value __rseq_percpu *)rseq_mempool_percpu_zmalloc(pool);
    return values == NULL ? -1 : 0;
}

#define OPERATION(name, ...)                                                                                   \
    void percid_bench_librseq_##name(void *object, uint64_t times);                                            \
    __attribute__((noinline)) void percid_bench_librseq_##name(void *object, uint64_t times)                   \
    {                                                                                                          \
        struct value __rseq_percpu *const it = values;                                                         \
        (void)object;                                                                                          \
        ALIGN_LOOP();                                                                                          \
        do {                                                                                                   \
            __VA_ARGS__                                                                                        \
        } while (--times != 0);                                                                                \
    }

#define MODE RSEQ_MO_RELAXED, RSEQ_PERCPU_MM_CID

OPERATION(add, {
    for (;;) {
        const int id = (int)rseq_current_mm_cid();
        if (rseq_likely(rseq_load_add_store__ptr(MODE, &rseq_percpu_ptr(it, id)->count, 1, id) == 0)) {
            break;
        }
    }
})

OPERATION(lock, {
    struct value *mine;
    for (;;) {
        const int id = (int)rseq_current_mm_cid();
        mine = rseq_percpu_ptr(it, id);
        if (rseq_likely(rseq_load_cbne_store__ptr(MODE, &mine->lock, 0, 1, id) == 0)) {
            break;
        }
    }
    rseq_smp_acquire__after_ctrl_dep();
    mine->count++;
    rseq_smp_store_release(&mine->lock, 0);
})

static struct item the_item;

OPERATION(list, {
    intptr_t taken;
    for (;;) {
        const int id = (int)rseq_current_mm_cid();
        intptr_t *const head = &rseq_percpu_ptr(it, id)->head;
        const intptr_t expected = (intptr_t)RSEQ_READ_ONCE(*head);
        the_item.next = (struct item *)expected;
        if (rseq_likely(rseq_load_cbne_store__ptr(MODE, head, expected, (intptr_t)&the_item, id) == 0)) {
            break;
        }
    }
    for (;;) {
        const int id = (int)rseq_current_mm_cid();
        intptr_t *const head = &rseq_percpu_ptr(it, id)->head;
        if (rseq_likely(rseq_load_cbeq_store_add_load_store__ptr(MODE, head, (intptr_t)NULL,
                                                                 offsetof(struct item, next), &taken, id) >= 0)) {
            break;
        }
    }
    (void)taken;
})

OPERATION(copy, {
    const uint64_t record[2] = {times, 1};
    for (;;) {
        const int id = (int)rseq_current_mm_cid();
        struct value *const mine = rseq_percpu_ptr(it, id);
        const intptr_t used = RSEQ_READ_ONCE(mine->used);
        const intptr_t begin = used == 64 ? 0 : used;
        if (rseq_likely(rseq_load_cbne_memcpy_store__ptr(RSEQ_MO_RELEASE, RSEQ_PERCPU_MM_CID, &mine->used, used,
                                                         &mine->bytes[begin], (void *)record, sizeof record,
                                                         begin + (intptr_t)sizeof record, id) == 0)) {
            break;
        }
    }
})
