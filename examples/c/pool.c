/*
 * A pool of buffers, and what it says about bugs: percid_pool.
 *
 *     cc -O2 -pthread pool.c $(pkg-config --cflags --libs percid) -o pool && ./pool
 *
 * Workers take buffers, fill them and put them back, as a server does with every request. The
 * buffer that a worker gets is the one that was last put on its CPU, still in the cache; there is
 * no lock and no locked instruction.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

enum { WORKERS = 4, REQUESTS = 200000 };

struct buffer {
    size_t used;
    char text[1000];
};

static percid_pool *buffers;
static percid_counter bytes = PERCID_COUNTER_INIT;

static void handle_request(int number)
{
    struct buffer *const buffer = percid_pool_get(buffers);
    if (buffer == NULL) {
        abort(); /* no memory */
    }
    /* A buffer is zeroed when it is new, and as it was put when it is used again. */
    buffer->used = (size_t)snprintf(buffer->text, sizeof buffer->text, "request %d", number);
    percid_counter_add(&bytes, (int64_t)buffer->used);
    percid_pool_put(buffers, buffer);
}

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < REQUESTS; i++) {
        handle_request(i);
    }
    return NULL;
}

/* What a put answers when the program has a bug. Nothing has happened then. */
static int explain(const char *bug, int result, int expected)
{
    printf("%-44s %s\n", bug, result == 0 ? "accepted" : strerror(-result));
    return result == expected;
}

static int bugs_are_found(void)
{
    percid_pool *other;
    if (percid_pool_create(&other, sizeof(struct buffer), 8, 64) != 0) {
        return 0;
    }
    struct buffer *const buffer = percid_pool_get(buffers);
    int right = explain("put into another pool:", percid_pool_put(other, buffer), -EXDEV);
    right &= explain("put:", percid_pool_put(buffers, buffer), 0);
    right &= explain("put twice:", percid_pool_put(buffers, buffer), -EALREADY);
    percid_pool_destroy(buffers);
    right &= explain("put after its pool was destroyed:", percid_pool_put(other, buffer), -ESTALE);
    right &= explain("put into a pool that was destroyed:", percid_pool_put(buffers, buffer), -EBADF);
    percid_pool_destroy(other);
    return right;
}

int main(void)
{
    /* Up to 64 idle buffers for every CPU; what is beyond that is shared by all. */
    const int result = percid_pool_create(&buffers, sizeof(struct buffer), _Alignof(struct buffer), 64);
    if (result != 0) {
        fprintf(stderr, "no pool: %s\n", strerror(-result));
        return EXIT_FAILURE;
    }
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        if (pthread_create(&workers[i], NULL, work, NULL) != 0) {
            return EXIT_FAILURE;
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    printf("%d requests, %" PRId64 " bytes, in %" PRId64 " buffers\n", WORKERS * REQUESTS,
           percid_counter_sum(&bytes), percid_pool_drain(buffers));
    return bugs_are_found() ? EXIT_SUCCESS : EXIT_FAILURE;
}
