/* The loops in C: the same form as those in loops.rs and touches.rs. */
#include <percid.h>

void percid_bench_inline(percid_counter *counter, uint64_t times);
void percid_bench_call(percid_counter *counter, uint64_t times);
void percid_bench_touch(percid_region *region, size_t bytes, uint64_t times);

/* Lets the loop that follows begin on a cache line. */
#define ALIGN_LOOP() __asm__ volatile(".p2align 6")

__attribute__((noinline)) void percid_bench_inline(percid_counter *counter, uint64_t times)
{
    ALIGN_LOOP();
    do {
        percid_counter_add(counter, 1);
    } while (--times != 0);
}

__attribute__((noinline)) void percid_bench_call(percid_counter *counter, uint64_t times)
{
    ALIGN_LOOP();
    do {
        percid_counter_add_slow(counter, 1);
    } while (--times != 0);
}

__attribute__((noinline)) void percid_bench_touch(percid_region *region, size_t bytes, uint64_t times)
{
    size_t offset = 0;
    ALIGN_LOOP();
    do {
        percid_region_touch(region, offset);
        offset = (offset + 5 * 4096 + 64) & (bytes - 1);
    } while (--times != 0);
}
