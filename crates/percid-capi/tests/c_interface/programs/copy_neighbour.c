/* A library that programs are linked with and that uses percid, but is not linked with it: an
 * executable with a copy inside exports what this refers to. */
#include <percid.h>

static percid_counter counter = PERCID_COUNTER_INIT;

int64_t neighbour_count(void);

int64_t neighbour_count(void)
{
    percid_counter_add(&counter, 1);
    return percid_counter_sum(&counter);
}
