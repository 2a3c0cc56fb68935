/* Hands its objects to a plugin with another copy of percid, and finds them as they were. */
#include <dlfcn.h>
#include <string.h>

#include <percid.h>

#include "check.h"

static percid_counter counter = PERCID_COUNTER_INIT;
static percid_histogram histogram = PERCID_HISTOGRAM_INIT;
static percid_stack constant = PERCID_STACK_INIT(4);

int main(int count, char **arguments)
{
    int (*plugin_try)(percid_counter *, percid_histogram *, percid_stack *, percid_stack *, percid_balancer *);
    percid_balancer *balancer;
    percid_snapshot *snapshot;
    percid_stack *made;
    void *library, *symbol;
    char item;
    CHECK(count == 2);
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(library != NULL);
    symbol = dlsym(library, "plugin_try");
    memcpy(&plugin_try, &symbol, sizeof symbol);
    CHECK(percid_stack_create(&made, 4, PERCID_UNBOUNDED) == 0);
    CHECK(percid_balancer_create(&balancer, NULL) == 0);
    percid_counter_add(&counter, 7);
    percid_histogram_record(&histogram, 9);
    CHECK(percid_stack_push(made, &item) == 0 && percid_stack_push(&constant, &item) == 0);
    CHECK(plugin_try(&counter, &histogram, made, &constant, balancer) == 0);
    CHECK(percid_counter_sum(&counter) == 7);
    CHECK(percid_histogram_take(&histogram, &snapshot) == 0 && percid_snapshot_count(snapshot) == 1);
    CHECK(percid_stack_pop(made) == &item && percid_stack_pop(&constant) == &item);
    CHECK(percid_stack_destroy(made, NULL, NULL) == 0 && percid_balancer_destroy(balancer) == 0);
    percid_snapshot_free(snapshot);
    puts("ok");
    return 0;
}
