/*
 * A trace of what threads do, and how long it takes: percid_ring and percid_histogram.
 *
 *     cc -O2 -pthread trace.c $(pkg-config --cflags --libs percid) -o trace && ./trace
 *
 * Every CPU writes its events into a ring of its own, without waiting, also in signal handlers; one
 * thread collects them. Durations go into a histogram, which costs as much as a counter.
 */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <percid.h>

enum { WORKERS = 4, REQUESTS = 50000 };

/* Rings take bytes of any length. Order is kept for each ID only, so events carry their time. */
struct event {
    uint64_t begin, end;
    uint32_t worker, request;
};

static percid_ring *events;
static percid_histogram durations = PERCID_HISTOGRAM_INIT;
static atomic_bool done;

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *name)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        struct event event = {nanoseconds(), 0, *(const uint32_t *)name, i};
        /* ... the request ... */
        event.end = nanoseconds();
        percid_histogram_record(&durations, event.end - event.begin);
        /* An event for which there is no room is lost, and counted. */
        percid_ring_append(events, &event, sizeof event);
    }
    return NULL;
}

struct collected {
    uint64_t events;
    struct event longest;
};

static void look(const percid_event *record, void *argument)
{
    struct collected *const collected = argument;
    struct event event;
    memcpy(&event, record->bytes, sizeof event);
    collected->events++;
    if (event.end - event.begin > collected->longest.end - collected->longest.begin) {
        collected->longest = event;
    }
}

static void *collect(void *collected)
{
    const struct timespec pause = {0, 1000 * 1000};
    while (!atomic_load(&done)) {
        percid_ring_poll(events, look, collected);
        nanosleep(&pause, NULL);
    }
    percid_ring_poll(events, look, collected);
    return NULL;
}

static int report(const struct collected *collected)
{
    const uint64_t lost = percid_ring_lost(events);
    const struct event *const longest = &collected->longest;
    printf("%" PRIu64 " events, %" PRIu64 " lost; the longest took %" PRIu64 " ns (worker %" PRIu32 ")\n",
           collected->events, lost, longest->end - longest->begin, longest->worker);

    percid_snapshot *snapshot;
    if (percid_histogram_snapshot(&durations, &snapshot) != 0) {
        return 0;
    }
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t value;
        if (percid_snapshot_quantile(snapshot, shares[i], &value) == 0) {
            printf("%5.1f %% took %8" PRIu64 " ns or less\n", 100 * shares[i], value);
        }
    }
    const uint64_t recorded = percid_snapshot_count(snapshot);
    percid_snapshot_free(snapshot);
    return recorded == WORKERS * REQUESTS && collected->events + lost == WORKERS * REQUESTS;
}

int main(void)
{
    if (percid_ring_create(&events, 4 << 20, PERCID_OVERFLOW_DROP_NEWEST) != 0) {
        return EXIT_FAILURE;
    }
    pthread_t workers[WORKERS], collector;
    uint32_t names[WORKERS];
    struct collected collected;
    memset(&collected, 0, sizeof collected);
    if (pthread_create(&collector, NULL, collect, &collected) != 0) {
        return EXIT_FAILURE;
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        names[i] = i;
        if (pthread_create(&workers[i], NULL, work, &names[i]) != 0) {
            return EXIT_FAILURE;
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    atomic_store(&done, 1);
    pthread_join(collector, NULL);
    const int right = report(&collected);
    percid_ring_destroy(events);
    percid_histogram_destroy(&durations);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
