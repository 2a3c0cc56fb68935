/* Pools: no object is lent to two, and misuse is refused. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 20000, SIZE = 100 };

static percid_pool *pool;

static void *use(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int *const objects[2] = {(int *)percid_pool_get(pool), (int *)percid_pool_get(pool)};
        for (int k = 0; k < 2; k++) {
            CHECK(objects[k] != NULL);
            CHECK(__atomic_fetch_add(objects[k], 1, __ATOMIC_RELAXED) == 0);
        }
        for (int k = 0; k < 2; k++) {
            __atomic_store_n(objects[k], 0, __ATOMIC_RELAXED);
            CHECK(percid_pool_put(pool, objects[k]) == 0);
        }
    }
    return NULL;
}

static void threads(void)
{
    pthread_t workers[THREADS];
    CHECK(percid_pool_create(&pool, SIZE, 8, 16) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&workers[i], NULL, use, NULL) == 0);
    }
    for (int i = 0; i < 20; i++) {
        CHECK(percid_pool_drain(pool) >= 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    CHECK(percid_pool_destroy(pool) == 0);
}

static void contents(void)
{
    static const size_t aligns[] = {1, 8, 64, 4096};
    for (size_t a = 0; a < sizeof aligns / sizeof *aligns; a++) {
        unsigned char *objects[100];
        CHECK(percid_pool_create(&pool, SIZE, aligns[a], 64) == 0);
        for (int i = 0; i < 100; i++) {
            static const unsigned char zeros[SIZE];
            objects[i] = (unsigned char *)percid_pool_get(pool);
            CHECK(objects[i] != NULL && (uintptr_t)objects[i] % aligns[a] == 0);
            CHECK(memcmp(objects[i], zeros, SIZE) == 0);
            memset(objects[i], i + 1, SIZE);
        }
        for (int i = 0; i < 100; i++) {
            for (int byte = 0; byte < SIZE; byte++) {
                CHECK(objects[i][byte] == i + 1);
            }
            CHECK(percid_pool_put(pool, objects[i]) == 0);
        }
        CHECK(percid_pool_drain(pool) == 100);
        CHECK(percid_pool_destroy(pool) == 0);
    }
}

static percid_pool of_static_storage = PERCID_POOL_INIT_BOUNDED(1000, 8, 1, 0);

/* What a bounded pool has no room for goes back to the kernel, and its slabs are used again. */
static void bounds(percid_pool *bounded)
{
    enum { OBJECTS = 400 };
    static unsigned char *objects[OBJECTS];
    int gone = 0;
    int64_t idle;
    size_t slabs = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < OBJECTS; i++) {
            objects[i] = (unsigned char *)percid_pool_get(bounded);
            CHECK(objects[i] != NULL);
            memset(objects[i], 0xff, 1000);
        }
        for (int i = 0; i < OBJECTS; i++) {
            CHECK(percid_pool_put(bounded, objects[i]) == 0);
        }
        slabs = round == 0 ? percid_pool_slabs(bounded, NULL, 0) : slabs;
    }
    /* Slabs stay mapped, and read as zero once they are given back. */
    for (int i = 0; i < OBJECTS; i++) {
        gone += objects[i][0] == 0;
    }
    idle = percid_pool_drain(bounded);
    CHECK(gone > OBJECTS / 2 && idle >= OBJECTS - gone);
    /* One more is being cut, and whoever is moved to another CPU leaves an idle object there, which
     * keeps its slab. */
    CHECK(percid_pool_slabs(bounded, NULL, 0) <= slabs + 1 + percid_source_id_count(percid_init()));
    errno = 77;
    CHECK(percid_pool_put(bounded, objects[0]) == -ESTALE && errno == 77);
}

static void bounded(void)
{
    CHECK(percid_pool_create_bounded(NULL, 1000, 8, 1, 0) == -EINVAL);
    CHECK(percid_pool_create_bounded(&pool, 1000, 8, 0, 0) == -EINVAL && pool == NULL);
    CHECK(percid_pool_create_bounded(&pool, 1000, 8, 1, 0) == 0);
    bounds(pool);
    CHECK(percid_pool_destroy(pool) == 0);
    bounds(&of_static_storage);
    /* Without a bound nothing goes back but by a drain. */
    CHECK(percid_pool_create_bounded(&pool, 1000, 8, 1, PERCID_UNBOUNDED) == 0);
    {
        unsigned char *objects[100];
        for (int i = 0; i < 100; i++) {
            objects[i] = (unsigned char *)percid_pool_get(pool);
            memset(objects[i], 0xff, 1000);
        }
        for (int i = 0; i < 100; i++) {
            CHECK(percid_pool_put(pool, objects[i]) == 0);
        }
        for (int i = 0; i < 100; i++) {
            CHECK(objects[i][0] == 0xff);
        }
        CHECK(percid_pool_drain(pool) == 100);
    }
    CHECK(percid_pool_destroy(pool) == 0);
}

static void misuse(void)
{
    percid_pool *other, *gone;
    void *object, *kept;
    CHECK(percid_pool_create(NULL, 8, 8, 8) == -EINVAL);
    CHECK(percid_pool_create(&pool, 8, 3, 8) == -EINVAL && pool == NULL);
    CHECK(percid_pool_create(&pool, 8, 0, 8) == -EINVAL);
    CHECK(percid_pool_create(&pool, 8, 8192, 8) == -EINVAL);
    CHECK(percid_pool_create(&pool, 8, 8, 0) == -EINVAL);
    CHECK(percid_pool_create(&pool, 8, 8, 2097152) == -EINVAL);
    CHECK(percid_pool_create(&pool, SIZE_MAX, 8, 8) == -EINVAL);
    CHECK(percid_pool_create(&pool, SIZE_MAX / 2, 8, 8) == -EINVAL);

    CHECK(percid_pool_create(&pool, SIZE, 8, 8) == 0);
    CHECK(percid_pool_create(&other, SIZE, 8, 8) == 0);
    object = percid_pool_get(pool);
    kept = percid_pool_get(pool);
    CHECK(object != NULL && kept != NULL && object != kept);
    CHECK(percid_pool_put(other, object) == -EXDEV);
    CHECK(percid_pool_put(pool, NULL) == -EINVAL);
    CHECK(percid_pool_put(NULL, object) == -EINVAL);
    CHECK(percid_pool_put(pool, object) == 0);
    CHECK(percid_pool_put(pool, object) == -EALREADY);
    CHECK(percid_pool_put(other, object) == -EXDEV);
    /* It is there once. */
    CHECK(percid_pool_get(pool) == object);
    CHECK(percid_pool_get(pool) != object);
    CHECK(percid_pool_put(pool, object) == 0);

    gone = pool;
    CHECK(percid_pool_destroy(pool) == 0);
    CHECK(percid_pool_destroy(gone) == -EBADF);
    CHECK(percid_pool_get(gone) == NULL);
    CHECK(percid_pool_put(gone, kept) == -EBADF);
    CHECK(percid_pool_drain(gone) == -EBADF);
    CHECK(percid_pool_put(other, kept) == -ESTALE);
    CHECK(percid_pool_put(other, object) == -ESTALE);
    /* Also when a new pool has the memory of the old one's handle. */
    CHECK(percid_pool_create(&pool, SIZE, 8, 8) == 0);
    CHECK(pool != gone);
    CHECK(percid_pool_put(gone, kept) == -EBADF);
    CHECK(percid_pool_put(pool, kept) == -ESTALE);
    CHECK(percid_pool_get(NULL) == NULL);
    CHECK(percid_pool_drain(NULL) == -EINVAL);
    CHECK(percid_pool_destroy(NULL) == -EINVAL);
    CHECK(percid_pool_destroy(pool) == 0 && percid_pool_destroy(other) == 0);
}

int main(void)
{
    threads();
    contents();
    bounded();
    misuse();
    puts("ok");
    return 0;
}
