/* Where no memory can be had: everything answers, nothing ends the program. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <percid.h>

#include "check.h"

static void must_not_be_called(void *value, void *argument)
{
    (void)value;
    (void)argument;
    CHECK(0 && "there is no value");
}

int main(void)
{
    const struct rlimit none = {1 << 20, 1 << 20};
    percid_counter counter = PERCID_COUNTER_INIT, sourced = PERCID_COUNTER_INIT;
    percid_histogram histogram = PERCID_HISTOGRAM_INIT;
    percid_stack *stack;
    percid_pool *pool;
    percid_local *local;
    percid_ring *ring;
    percid_mask *unmade;
    char item;
    /* The handles' own memory is there; what the objects need is not. */
    CHECK(percid_stack_create(&stack, 64, PERCID_UNBOUNDED) == 0);
    CHECK(percid_pool_create(&pool, 100, 8, 64) == 0);
    CHECK(percid_local_create(&local, 8, 8, NULL, NULL, NULL) == 0);
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    /* Less than is in use: no mapping grows from here on. */
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);

    CHECK(percid_mask_create(&unmade) == -ENOMEM && unmade == NULL);
    CHECK(percid_counter_with_source(&sourced, PERCID_SOURCE_ATOMIC) == -ENOMEM && sourced.word == 0);
    for (int i = 0; i < 1000; i++) {
        percid_counter_add(&counter, i);
        percid_histogram_record(&histogram, (uint64_t)i);
        errno = 77;
        CHECK(percid_stack_push(stack, &item) == -ENOSPC);
        CHECK(percid_stack_pop(stack) == NULL);
        CHECK(percid_pool_get(pool) == NULL);
        CHECK(percid_local_with(local, must_not_be_called, NULL) == -ENOMEM);
        CHECK(percid_ring_append(ring, &item, 1) == -ENOSPC);
        CHECK(errno == 77);
    }
    /* A counter is complete in its own word. */
    CHECK(percid_counter_sum(&counter) == 499500);
    CHECK(percid_histogram_unrecorded(&histogram) == 1000);
    CHECK(percid_ring_lost(ring) == 1000);
    CHECK(percid_stack_drain(stack, must_not_be_called, NULL) == 0);
    CHECK(percid_local_for_each(local, must_not_be_called, NULL) == 0);
    puts("ok");
    return 0;
}
