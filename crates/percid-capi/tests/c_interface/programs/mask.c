/* Masks: what was published before a mark is found by a drain. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { MARKERS = 4, ROUNDS = 200000 };

static percid_mask *mask;
static uint64_t published[MARKERS];
static int marking = MARKERS;

static void *publish_and_mark(void *name)
{
    const uint32_t id = *(const uint32_t *)name;
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&published[id], 1, __ATOMIC_RELAXED);
        CHECK(percid_mask_mark(mask, id) == 0);
    }
    __atomic_fetch_sub(&marking, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void flush(uint32_t id, void *found)
{
    CHECK(id < MARKERS);
    *(uint64_t *)found += __atomic_exchange_n(&published[id], 0, __ATOMIC_RELAXED);
}

static void threads(void)
{
    pthread_t markers[MARKERS];
    uint32_t names[MARKERS];
    uint64_t found = 0;
    for (uint32_t i = 0; i < MARKERS; i++) {
        names[i] = i;
        CHECK(pthread_create(&markers[i], NULL, publish_and_mark, &names[i]) == 0);
    }
    while (__atomic_load_n(&marking, __ATOMIC_ACQUIRE) > 0) {
        CHECK(percid_mask_drain(mask, flush, &found) >= 0);
    }
    for (int i = 0; i < MARKERS; i++) {
        CHECK(pthread_join(markers[i], NULL) == 0);
    }
    CHECK(percid_mask_drain(mask, flush, &found) >= 0);
    CHECK(found == (uint64_t)MARKERS * ROUNDS);
}

static void visit(uint32_t id, void *seen)
{
    ((char *)seen)[id]++;
}

static void members(void)
{
    static const uint32_t ids[] = {0, 1, 63, 64, 511, 512, 4000, 8191};
    const size_t count = sizeof ids / sizeof *ids;
    static char seen[8192];
    for (size_t i = 0; i < count; i++) {
        CHECK(percid_mask_is_marked(mask, ids[i]) == 0);
        CHECK(percid_mask_mark(mask, ids[i]) == 0 && percid_mask_mark(mask, ids[i]) == 0);
        CHECK(percid_mask_is_marked(mask, ids[i]) == 1);
    }
    CHECK(percid_mask_drain(mask, visit, seen) == (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        CHECK(seen[ids[i]] == 1 && percid_mask_is_marked(mask, ids[i]) == 0);
    }
    CHECK(percid_mask_drain(mask, visit, seen) == 0);
}

static void misuse(void)
{
    CHECK(percid_mask_create(NULL) == -EINVAL);
    CHECK(percid_mask_mark(mask, 8192) == -ERANGE && percid_mask_mark(mask, UINT32_MAX) == -ERANGE);
    CHECK(percid_mask_is_marked(mask, 8192) == -ERANGE);
    CHECK(percid_mask_mark(NULL, 0) == -EINVAL && percid_mask_is_marked(NULL, 0) == -EINVAL);
    CHECK(percid_mask_drain(mask, NULL, NULL) == -EINVAL);
    CHECK(percid_mask_drain(NULL, visit, NULL) == -EINVAL);
    CHECK(percid_mask_destroy(NULL) == -EINVAL);
    CHECK(percid_mask_destroy(mask) == 0 && percid_mask_destroy(mask) == -EBADF);
    CHECK(percid_mask_mark(mask, 0) == -EBADF && percid_mask_is_marked(mask, 0) == -EBADF);
    CHECK(percid_mask_drain(mask, visit, NULL) == -EBADF);
}

int main(void)
{
    CHECK(percid_mask_create(&mask) == 0);
    threads();
    members();
    misuse();
    puts("ok");
    return 0;
}
