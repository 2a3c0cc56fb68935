/*
 * Counting what a threaded program does: percid_counter.
 *
 *     cc -O2 -pthread counters.c $(pkg-config --cflags --libs percid) -o counters && ./counters
 *
 * Four workers handle requests of random sizes; a fifth thread reports once in a while, as a
 * monitoring thread would, by taking what was counted since its last look.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <percid.h>

enum { WORKERS = 4, REQUESTS = 1000000 };

/* Counters are ordinary variables. These are static, so they need not be created or destroyed. */
static percid_counter requests = PERCID_COUNTER_INIT;
static percid_counter bytes = PERCID_COUNTER_INIT;
/* A gauge is a counter that also goes down. */
static percid_counter in_flight = PERCID_COUNTER_INIT;

static atomic_bool done;

static void *work(void *seed)
{
    uint32_t random = *(const uint32_t *)seed;
    for (int i = 0; i < REQUESTS; i++) {
        random = random * 1664525u + 1013904223u;
        percid_counter_add(&in_flight, 1);
        percid_counter_add(&requests, 1);
        percid_counter_add(&bytes, random >> 20);
        percid_counter_add(&in_flight, -1);
    }
    return NULL;
}

/* Takes are exact: an increment appears in one report or in a later one, and in none twice. */
static void *report(void *reported)
{
    const struct timespec pause = {0, 5 * 1000 * 1000};
    while (!atomic_load(&done)) {
        const int64_t new_requests = percid_counter_take(&requests);
        *(int64_t *)reported += new_requests;
        printf("%8" PRId64 " requests, %2" PRId64 " in flight\n", new_requests,
               percid_counter_sum(&in_flight));
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(void)
{
    /* Optional, and cheapest before threads are started. */
    const enum percid_source source = percid_init();
    char reason[128];
    percid_reason(reason, sizeof reason);
    printf("IDs come from: %s; %s\n", percid_source_name(source), reason);

    pthread_t workers[WORKERS], reporter;
    uint32_t seeds[WORKERS];
    int64_t reported = 0;
    if (pthread_create(&reporter, NULL, report, &reported) != 0) {
        return EXIT_FAILURE;
    }
    for (int i = 0; i < WORKERS; i++) {
        seeds[i] = (uint32_t)i;
        if (pthread_create(&workers[i], NULL, work, &seeds[i]) != 0) {
            return EXIT_FAILURE;
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    atomic_store(&done, 1);
    pthread_join(reporter, NULL);

    /* The threads have ended, so these sums are exact. */
    reported += percid_counter_sum(&requests);
    printf("%" PRId64 " requests, %" PRId64 " bytes, %" PRId64 " in flight\n", reported,
           percid_counter_sum(&bytes), percid_counter_sum(&in_flight));

    /* Who counted: one copy for each ID, as many as threads ran at the same time. */
    int64_t copies[1024];
    const size_t ids = percid_counter_per_id(&bytes, copies, 1024);
    for (size_t id = 0; id < ids && id < 1024; id++) {
        printf("  ID %zu: %" PRId64 " bytes\n", id, copies[id]);
    }
    return reported == (int64_t)WORKERS * REQUESTS ? EXIT_SUCCESS : EXIT_FAILURE;
}
