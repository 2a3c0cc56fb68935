/* A shared library that counts, for a program that loads it late. */
#include <percid.h>

static percid_counter counter = PERCID_COUNTER_INIT;

void plugin_add(void);
int64_t plugin_sum(void);

void plugin_add(void)
{
    percid_counter_add(&counter, 1);
}

int64_t plugin_sum(void)
{
    return percid_counter_sum(&counter);
}
