/* Rings: a record comes out whole and once, or is counted as lost. */
#include <errno.h>
#include <pthread.h>
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

static void expect_empty(const percid_event *event, void *count)
{
    CHECK(event->length == 0);
    /* One consumer at a time, and this is one. */
    CHECK(percid_ring_poll(ring, expect_empty, count) == -EBUSY);
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
    lengths_and_misuse();
    puts("ok");
    return 0;
}
