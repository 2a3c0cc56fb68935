/*
 * What each module does that uses percid, whichever copy it got: rounds of work by any number of
 * threads, and in the end the question whether everything is there.
 */
#ifndef COPY_USER_H
#define COPY_USER_H

#include <pthread.h>
#include <stdio.h>

#include <percid.h>

/* The linking of old: additions through one table, sums by the name of a function. */
#ifdef COPIES_ARE_MIXED
int64_t sum_by_name(const percid_counter *counter) __asm__("percid_counter_sum");
#else
#define sum_by_name percid_counter_sum
#endif

static percid_counter user_counter = PERCID_COUNTER_INIT;
static percid_histogram user_histogram = PERCID_HISTOGRAM_INIT;
static percid_stack *user_stack;
static percid_pool *user_pool;
static percid_local *user_local;
static percid_ring *user_ring;
static int user_made;
static uint64_t user_records;

/* Before threads use it. Returns 0 or an error. */
static int user_make(void)
{
    user_made = percid_stack_create(&user_stack, 16, PERCID_UNBOUNDED) | percid_pool_create(&user_pool, 48, 8, 16) |
                percid_local_create(&user_local, sizeof(uint64_t), 8, NULL, NULL, NULL) |
                percid_ring_create(&user_ring, 4096, PERCID_OVERFLOW_OVERWRITE_OLDEST);
    return user_made;
}

static void user_count_in(void *value, void *unused)
{
    (void)unused;
    ++*(uint64_t *)value;
}

/* One round. Returns how many items it lost or found too often: 0. */
static int user_work(void)
{
    static char item;
    void *object = percid_pool_get(user_pool);
    int wrong = object == NULL;
    percid_counter_add(&user_counter, 1);
    percid_histogram_record(&user_histogram, 1000);
    wrong |= percid_stack_push(user_stack, &item) != 0;
    wrong |= percid_local_with(user_local, user_count_in, NULL) != 0;
    wrong |= percid_pool_put(user_pool, object) != 0;
    (void)percid_ring_append(user_ring, &item, 1);
    percid_counter_add(&user_counter, 2);
    return wrong;
}

static void user_add_up(void *value, void *sum)
{
    *(uint64_t *)sum += *(uint64_t *)value;
}

static void user_nothing(void *item, void *unused)
{
    (void)item;
    (void)unused;
}

static void user_record(const percid_event *event, void *unused)
{
    (void)event;
    (void)unused;
    user_records++;
}

/* Says what is wrong after so many rounds, and returns how much: 0. */
static int user_check(const char *name, uint64_t rounds)
{
    percid_snapshot *snapshot = NULL;
    uint64_t values = 0, recorded, items, sum = (uint64_t)sum_by_name(&user_counter);
    int wrong = percid_histogram_take(&user_histogram, &snapshot);
    recorded = percid_snapshot_count(snapshot);
    percid_snapshot_free(snapshot);
    items = (uint64_t)percid_stack_drain(user_stack, user_nothing, NULL);
    wrong |= percid_local_for_each(user_local, user_add_up, &values);
    wrong |= percid_ring_poll(user_ring, user_record, NULL) < 0;
    user_records += percid_ring_lost(user_ring);
    wrong |= sum != 3 * rounds || recorded != rounds || items != rounds || values != rounds || user_records != rounds;
    if (wrong) {
        printf("%s: of %llu rounds: counted %llu/3, recorded %llu, pushed %llu, locals %llu, appended %llu\n", name,
               (unsigned long long)rounds, (unsigned long long)sum, (unsigned long long)recorded,
               (unsigned long long)items, (unsigned long long)values, (unsigned long long)user_records);
    }
    return wrong;
}

/* Which copy it is. */
static const void *user_copy(void)
{
    return percid_interface_address()->fast_path;
}

#endif
