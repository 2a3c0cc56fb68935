/* How often an increment leaves the inline path: linked with --wrap=percid_interface_1. */
#include <percid.h>

#include "check.h"

extern const struct percid_interface __real_percid_interface_1;
extern struct percid_interface __wrap_percid_interface_1;
struct percid_interface __wrap_percid_interface_1;

static long slow_calls;

static void counted(percid_counter *counter, int64_t n)
{
    slow_calls++;
    __real_percid_interface_1.counter_add_slow(counter, n);
}

/* Before main(), which may take the table for constant. */
__attribute__((constructor)) static void wrap(void)
{
    __wrap_percid_interface_1 = __real_percid_interface_1;
    __wrap_percid_interface_1.counter_add_slow = counted;
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
