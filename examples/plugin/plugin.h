/*
 * What the host and its plugins agree on. It says nothing of percid: each may use it, or not.
 */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <stdint.h>

/* Does the work of one request. Called by any thread of the host. */
typedef void plugin_handle(uint32_t request);

/* How many bytes the plugin has handled. */
typedef int64_t plugin_bytes(void);

/* Under these names a plugin has them. */
plugin_handle plugin_handle_request;
plugin_bytes plugin_handled_bytes;

#endif
