/* Rings: a record comes out whole and once, or is counted as lost. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, RECORDS = 50000 };

struct record {
    uint32_t writer, length;
    uint64_t number[5];
};

static percid_ring *ring;
static int writing;

struct reader {
    int64_t delivered;
    uint64_t next[THREADS];
};

static void check(const percid_event *event, void *argument)
{
    struct reader *const reader = (struct reader *)argument;
    struct record record;
    CHECK(event->length <= sizeof record && (uintptr_t)event->bytes % 8 == 0);
    memcpy(&record, event->bytes, event->length);
    CHECK(record.writer < THREADS && event->length == 8 + 8 * (size_t)record.length);
    CHECK(record.length == 1 + record.number[0] % 5);
    for (uint32_t i = 1; i < record.length; i++) {
        CHECK(record.number[i] == record.number[0]);
    }
    CHECK(event->id >= -1);
    reader->delivered++;
}

static void *write_records(void *writer)
{
    struct record record;
    record.writer = *(const uint32_t *)writer;
    for (uint64_t number = 0; number < RECORDS; number++) {
        int result;
        record.length = 1 + (uint32_t)(number % 5);
        for (int i = 0; i < 5; i++) {
            record.number[i] = number;
        }
        result = percid_ring_append(ring, &record, 8 + 8 * (size_t)record.length);
        CHECK(result == 0 || result == -ENOSPC);
    }
    __atomic_fetch_sub(&writing, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void threads(int overflow)
{
    pthread_t workers[THREADS];
    uint32_t names[THREADS];
    struct reader reader;
    int64_t polled = 0;
    memset(&reader, 0, sizeof reader);
    CHECK(percid_ring_create(&ring, 4096, overflow) == 0);
    writing = THREADS;
    for (uint32_t i = 0; i < THREADS; i++) {
        names[i] = i;
        CHECK(pthread_create(&workers[i], NULL, write_records, &names[i]) == 0);
    }
    while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE) > 0) {
        polled += percid_ring_poll(ring, check, &reader);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    polled += percid_ring_poll(ring, check, &reader);
    CHECK(polled == reader.delivered && polled > 0);
    CHECK((uint64_t)polled + percid_ring_lost(ring) == (uint64_t)THREADS * RECORDS);
    CHECK(percid_ring_destroy(ring) == 0);
}

static void *append_for_ever(void *unused)
{
    (void)unused;
    while (__atomic_load_n(&writing, __ATOMIC_ACQUIRE) > 0) {
        percid_ring_append(ring, "record", 6);
    }
    return NULL;
}

/* A held consumer sees what a poll sees, and holds the place. */
static void consumer(int overflow)
{
    percid_consumer *held, *other;
    percid_event event;
    struct reader reader;
    pthread_t workers[THREADS];
    uint32_t names[THREADS];
    int64_t fetched = 0;
    int rounds = 0, result;
    memset(&reader, 0, sizeof reader);
    CHECK(percid_ring_create(&ring, 4096, overflow) == 0);
    CHECK(percid_consumer_open(&held, ring) == 0);
    CHECK(percid_consumer_next(held, &event) == 0);
    CHECK(percid_consumer_open(&other, ring) == -EBUSY && other == NULL);
    CHECK(percid_ring_poll(ring, check, &reader) == -EBUSY);
    writing = THREADS;
    for (uint32_t i = 0; i < THREADS; i++) {
        names[i] = i;
        CHECK(pthread_create(&workers[i], NULL, write_records, &names[i]) == 0);
    }
    do {
        rounds = __atomic_load_n(&writing, __ATOMIC_ACQUIRE) > 0 ? 0 : rounds + 1;
        while ((result = percid_consumer_next(held, &event)) == 1) {
            check(&event, &reader);
            fetched++;
        }
        CHECK(result == 0);
    } while (rounds == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    while (percid_consumer_next(held, &event) == 1) {
        check(&event, &reader);
        fetched++;
    }
    CHECK(fetched > 0 && (uint64_t)fetched + percid_ring_lost(ring) == (uint64_t)THREADS * RECORDS);
    CHECK(percid_consumer_close(held) == 0 && percid_consumer_close(held) == -EBADF);
    CHECK(percid_consumer_next(held, &event) == -EBADF);
    CHECK(percid_ring_poll(ring, check, &reader) == 0);
    CHECK(percid_ring_destroy(ring) == 0);
}

/* Another consumer goes on where the one before stopped, in the middle of a round; and the room of
 * what was fetched is free again. On one CPU, so that there is one ring. */
static void *follow_each_other(void *unused)
{
    percid_consumer *held;
    percid_event event;
    uint64_t appended = 0, fetched = 0, first;
    cpu_set_t cpu;
    (void)unused;
    CPU_ZERO(&cpu);
    CPU_SET((size_t)sched_getcpu(), &cpu);
    CHECK(sched_setaffinity(0, sizeof cpu, &cpu) == 0);
    CHECK(percid_ring_create_with_source(&ring, PERCID_SOURCE_ATOMIC, 128, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    for (int i = 0; i < 100; i++) {
        const uint64_t before = appended;
        while (percid_ring_append(ring, &appended, sizeof appended) == 0) {
            appended++;
        }
        CHECK(appended > before);
        CHECK(percid_consumer_open(&held, ring) == 0);
        CHECK(percid_consumer_next(held, &event) == 1 && event.length == sizeof first);
        memcpy(&first, event.bytes, sizeof first);
        CHECK(first == fetched++);
        CHECK(percid_consumer_close(held) == 0);
    }
    CHECK(percid_ring_destroy(ring) == 0);
    return NULL;
}

static void consumers_follow_each_other(void)
{
    pthread_t follower;
    CHECK(pthread_create(&follower, NULL, follow_each_other, NULL) == 0);
    CHECK(pthread_join(follower, NULL) == 0);
}

/* A round ends while others append all the time. */
static void rounds_end(void)
{
    percid_consumer *held;
    percid_event event;
    pthread_t writer;
    CHECK(percid_ring_create(&ring, 65536, PERCID_OVERFLOW_OVERWRITE_OLDEST) == 0);
    CHECK(percid_consumer_open(&held, ring) == 0);
    writing = 1;
    CHECK(pthread_create(&writer, NULL, append_for_ever, NULL) == 0);
    for (int round = 0; round < 50; round++) {
        while (percid_consumer_next(held, &event) == 1) {
            CHECK(event.length == 6 && memcmp(event.bytes, "record", 6) == 0);
        }
    }
    __atomic_store_n(&writing, 0, __ATOMIC_RELEASE);
    CHECK(pthread_join(writer, NULL) == 0);
    CHECK(percid_consumer_close(held) == 0);
    CHECK(percid_ring_destroy(ring) == 0);
}

static void open_in_a_poll(const percid_event *event, void *opened)
{
    percid_consumer *held;
    (void)event;
    CHECK(percid_consumer_open(&held, ring) == -EDEADLK && held == NULL);
    *(int *)opened = 1;
}

static void misuse_of_consumers(void)
{
    static percid_ring unused = PERCID_RING_INIT(4096, PERCID_OVERFLOW_DROP_NEWEST);
    percid_consumer *held, *late;
    percid_ring *gone;
    percid_event event;
    int opened = 0;
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    gone = ring;
    CHECK(percid_consumer_open(NULL, ring) == -EINVAL);
    CHECK(percid_consumer_open(&held, NULL) == -EINVAL && held == NULL);
    CHECK(percid_consumer_next(NULL, &event) == -EINVAL && percid_consumer_close(NULL) == -EINVAL);
    CHECK(percid_consumer_close((percid_consumer *)ring) == -EINVAL);
    CHECK(percid_ring_append(ring, "record", 6) == 0);
    CHECK(percid_ring_poll(ring, open_in_a_poll, &opened) == 1 && opened == 1);
    CHECK(percid_ring_append(ring, "record", 6) == 0 && percid_ring_append(ring, "another", 7) == 0);
    CHECK(percid_consumer_open(&held, ring) == 0);
    CHECK(percid_consumer_next(held, NULL) == -EINVAL);
    CHECK(percid_consumer_next(held, &event) == 1 && event.length == 6);
    /* The ring goes first: nothing is given back to whatever has its place. */
    CHECK(percid_ring_destroy(ring) == 0);
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    CHECK(percid_ring_append(ring, "record", 6) == 0);
    CHECK(percid_consumer_open(&late, ring) == 0);
    CHECK(percid_consumer_next(held, &event) == -EBADF);
    CHECK(percid_consumer_close(held) == 0 && percid_consumer_close(held) == -EBADF);
    CHECK(percid_consumer_open(&held, ring) == -EBUSY);
    CHECK(percid_consumer_next(late, &event) == 1 && event.length == 6);
    CHECK(percid_consumer_close(late) == 0);
    CHECK(percid_consumer_open(&held, gone) == -EBADF && held == NULL);
    CHECK(percid_ring_destroy(ring) == 0);
    /* Of static storage. */
    CHECK(percid_ring_append(&unused, "record", 6) == 0);
    CHECK(percid_consumer_open(&held, &unused) == 0);
    CHECK(percid_consumer_next(held, &event) == 1 && percid_consumer_next(held, &event) == 0);
    CHECK(percid_consumer_close(held) == 0);
}

static void expect_empty(const percid_event *event, void *count)
{
    CHECK(event->length == 0);
    /* One consumer at a time, and this is one. */
    CHECK(percid_ring_poll(ring, expect_empty, count) == -EDEADLK);
    ++*(int *)count;
}

static void lengths_and_misuse(void)
{
    static const char bytes[1 << 17];
    size_t longest;
    int count = 0;
    CHECK(percid_ring_create(NULL, 4096, PERCID_OVERFLOW_DROP_NEWEST) == -EINVAL);
    CHECK(percid_ring_create(&ring, 4096, 0) == -EINVAL && ring == NULL);
    CHECK(percid_ring_create(&ring, 4096, 3) == -EINVAL);
    CHECK(percid_ring_create(&ring, 64, PERCID_OVERFLOW_DROP_NEWEST) == -EINVAL);
    CHECK(percid_ring_create(&ring, 1000, PERCID_OVERFLOW_DROP_NEWEST) == -EINVAL);
    CHECK(percid_ring_create(&ring, (size_t)16 << 20, PERCID_OVERFLOW_DROP_NEWEST) == -EINVAL);
    CHECK(percid_ring_create(&ring, 1024, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    longest = percid_ring_max_record_len(ring);
    CHECK(longest == 1024 / 4 - 16);
    CHECK(percid_ring_append(ring, bytes, longest + 1) == -EMSGSIZE);
    CHECK(percid_ring_append(ring, bytes, sizeof bytes) == -EMSGSIZE);
    CHECK(percid_ring_append(ring, bytes, SIZE_MAX) == -EMSGSIZE);
    CHECK(percid_ring_append(ring, NULL, 1) == -EINVAL);
    CHECK(percid_ring_append(ring, NULL, 0) == 0);
    CHECK(percid_ring_poll(ring, expect_empty, &count) == 1 && count == 1);
    CHECK(percid_ring_append(ring, bytes, longest) == 0);
    CHECK(percid_ring_poll(ring, NULL, NULL) == -EINVAL);
    CHECK(percid_ring_append(NULL, bytes, 1) == -EINVAL);
    CHECK(percid_ring_poll(NULL, expect_empty, &count) == -EINVAL);
    CHECK(percid_ring_max_record_len(NULL) == 0 && percid_ring_lost(NULL) == 0);
    CHECK(percid_ring_destroy(NULL) == -EINVAL);
    CHECK(percid_ring_destroy(ring) == 0);
    CHECK(percid_ring_destroy(ring) == -EBADF);
    CHECK(percid_ring_append(ring, bytes, 1) == -EBADF);
    CHECK(percid_ring_poll(ring, expect_empty, &count) == -EBADF);
    CHECK(percid_ring_max_record_len(ring) == 0 && percid_ring_lost(ring) == 0);
}

int main(void)
{
    threads(PERCID_OVERFLOW_DROP_NEWEST);
    threads(PERCID_OVERFLOW_OVERWRITE_OLDEST);
    consumer(PERCID_OVERFLOW_DROP_NEWEST);
    consumer(PERCID_OVERFLOW_OVERWRITE_OLDEST);
    consumers_follow_each_other();
    rounds_end();
    misuse_of_consumers();
    lengths_and_misuse();
    puts("ok");
    return 0;
}
