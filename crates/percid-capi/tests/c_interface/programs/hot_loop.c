/* The loops that the tests disassemble, and a program around them. */
#include <percid.h>

#include "check.h"

percid_counter hot_counter = PERCID_COUNTER_INIT;
percid_histogram hot_histogram = PERCID_HISTOGRAM_INIT;

__attribute__((noinline)) void hot_adds(uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        percid_counter_add(&hot_counter, 1);
    }
}

__attribute__((noinline)) void hot_records(uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        percid_histogram_record(&hot_histogram, i);
    }
}

/* Says nothing if it is given arguments. */
int main(int count, char **arguments)
{
    percid_snapshot *snapshot;
    (void)arguments;
    hot_adds(1000000);
    hot_records(1000000);
    CHECK(percid_counter_sum(&hot_counter) == 1000000);
    CHECK(percid_histogram_take(&hot_histogram, &snapshot) == 0);
    CHECK(percid_snapshot_count(snapshot) == 1000000);
    percid_snapshot_free(snapshot);
    if (count == 1) {
        puts("ok");
    }
    return 0;
}
