/* How often an increment leaves the inline path: linked with --wrap=percid_counter_add_slow. */
#include <percid.h>

#include "check.h"

void __real_percid_counter_add_slow(percid_counter *counter, int64_t n);
void __wrap_percid_counter_add_slow(percid_counter *counter, int64_t n);

static long slow_calls;

void __wrap_percid_counter_add_slow(percid_counter *counter, int64_t n)
{
    slow_calls++;
    __real_percid_counter_add_slow(counter, n);
}

int main(void)
{
    percid_counter counter = PERCID_COUNTER_INIT;
    for (int i = 0; i < 10000000; i++) {
        percid_counter_add(&counter, 1);
    }
    CHECK(percid_counter_sum(&counter) == 10000000);
    printf("slow_calls=%ld source=%s\n", slow_calls, percid_source_name(percid_init()));
    return 0;
}
