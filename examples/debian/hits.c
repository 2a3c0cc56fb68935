/* Counts in several threads, as any program that is packaged for Debian with percid. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <percid.h>

enum { THREADS = 4, HITS = 100000 };

static percid_counter hits = PERCID_COUNTER_INIT;

static void *count(void *unused)
{
    for (int i = 0; i < HITS; i++) {
        percid_counter_add(&hits, 1);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, count, NULL) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%" PRId64 " hits\n", percid_counter_sum(&hits));
    return percid_counter_sum(&hits) == (int64_t)started * HITS ? 0 : 1;
}
