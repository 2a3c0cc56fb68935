/* Is given objects of another copy of percid: every function that is called refuses them. */
#include <errno.h>

#include <percid.h>

#include "check.h"

static percid_mask *mask;

int plugin_try(percid_counter *counter, percid_histogram *histogram, percid_stack *made, percid_stack *constant,
               percid_balancer *balancer);

static void nothing(void *item, void *unused)
{
    (void)item;
    (void)unused;
}

int plugin_try(percid_counter *counter, percid_histogram *histogram, percid_stack *made, percid_stack *constant,
               percid_balancer *balancer)
{
    percid_counter own = PERCID_COUNTER_INIT;
    percid_snapshot *snapshot = NULL;
    char item;
    CHECK(percid_counter_sum(counter) == 0);
    CHECK(percid_counter_take(counter) == 0);
    CHECK(percid_counter_per_id(counter, NULL, 0) == 0);
    percid_counter_add_slow(counter, 1000);
    percid_counter_destroy(counter);
    CHECK(percid_histogram_snapshot(histogram, &snapshot) == -EXDEV && snapshot == NULL);
    CHECK(percid_histogram_take(histogram, &snapshot) == -EXDEV && snapshot == NULL);
    percid_histogram_record_slow(histogram, 1, 1000);
    percid_histogram_destroy(histogram);
    CHECK(percid_stack_drain(made, nothing, NULL) == -EXDEV);
    CHECK(percid_stack_destroy(made, nothing, NULL) == -EXDEV);
    CHECK(percid_stack_drain(constant, nothing, NULL) == -EXDEV);
    CHECK(percid_interface_address()->stack_push(made, &item) == -EXDEV);
    CHECK(percid_interface_address()->stack_push(constant, &item) == -EXDEV);
    CHECK(percid_balancer_has_nodes(balancer) == -EXDEV);
    CHECK(percid_balancer_destroy(balancer) == -EXDEV);
    /* Its own are what they were. */
    percid_counter_add(&own, 5);
    CHECK(percid_counter_sum(&own) == 5);
    percid_counter_destroy(&own);
    CHECK(percid_mask_create(&mask) == 0 && percid_mask_mark(mask, 3) == 0 && percid_mask_destroy(mask) == 0);
    return 0;
}
