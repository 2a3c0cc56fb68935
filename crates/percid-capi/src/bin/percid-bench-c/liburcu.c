/* The loops of liburcu: a reader enters and leaves, inline, as its own fastest form is; and a grace period. Compiled
 * if PERCID_LIBURCU is set. */
#define _LGPL_SOURCE
#define URCU_INLINE_SMALL_FUNCTIONS
#include <stdint.h>
#include <urcu/urcu-bp.h>
#include <urcu/urcu-memb.h>

#define ALIGN_LOOP() __asm__ volatile(".p2align 6")

#define OPERATION(name, ...)                                                                                   \
    void percid_bench_liburcu_##name(void *object, uint64_t times);                                            \
    __attribute__((noinline)) void percid_bench_liburcu_##name(void *object, uint64_t times)                   \
    {                                                                                                          \
        (void)object;                                                                                          \
        ALIGN_LOOP();                                                                                          \
        do {                                                                                                   \
            __VA_ARGS__                                                                                        \
        } while (--times != 0);                                                                                \
    }

/* Registers the thread, which the flavour bp does by itself. */
void percid_bench_liburcu_start(void);

void percid_bench_liburcu_start(void)
{
    urcu_memb_register_thread();
}

OPERATION(memb_read, {
    urcu_memb_read_lock();
    urcu_memb_read_unlock();
})
OPERATION(bp_read, {
    urcu_bp_read_lock();
    urcu_bp_read_unlock();
})
OPERATION(memb_synchronize, { urcu_memb_synchronize_rcu(); })
OPERATION(bp_synchronize, { urcu_bp_synchronize_rcu(); })
