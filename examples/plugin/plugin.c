/*
 * A plugin with counters of its own. See host.c.
 */
#include <percid.h>

#include "plugin.h"

static percid_counter bytes = PERCID_COUNTER_INIT;

void plugin_handle_request(uint32_t request)
{
    percid_counter_add(&bytes, request % 1000);
}

int64_t plugin_handled_bytes(void)
{
    return percid_counter_sum(&bytes);
}
