/* Counters under many threads, with every source that this machine has. Valid C99 and C++17. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, ADDITIONS = 50000, COUNTERS = 3 };

static percid_counter of_process = PERCID_COUNTER_INIT;
static percid_counter counters[COUNTERS];

static void *add(void *unused)
{
    int i;
    (void)unused;
    for (i = 0; i < ADDITIONS; i++) {
        percid_counter_add(&of_process, 1);
        percid_counter_add(&counters[0], 2);
        percid_counter_add(&counters[1], -i);
        percid_counter_add(&counters[2], INT64_C(1) << 40);
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    int i;
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, add, NULL) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static int64_t sum_by_id(const percid_counter *counter)
{
    const size_t ids = percid_counter_per_id(counter, NULL, 0);
    int64_t *values = (int64_t *)calloc(ids + 1, sizeof *values);
    int64_t sum = percid_counter_shared(counter);
    size_t i;
    CHECK(values != NULL);
    CHECK(percid_counter_per_id(counter, values, ids) >= ids);
    CHECK(values[ids] == 0);
    for (i = 0; i < ids; i++) {
        sum += values[i];
    }
    free(values);
    return sum;
}

static void count_with_each_source(void)
{
    const int64_t n = (int64_t)THREADS * ADDITIONS;
    int available = 0, source, i;
    for (source = PERCID_SOURCE_KERNEL; source <= PERCID_SOURCE_ATOMIC; source++) {
        int result = 0;
        for (i = 0; i < COUNTERS && result == 0; i++) {
            result = percid_counter_with_source(&counters[i], source);
        }
        if (result != 0) {
            CHECK(result < 0 && source != PERCID_SOURCE_ATOMIC);
            continue;
        }
        available++;
        run_threads();
        CHECK(percid_counter_sum(&of_process) == available * n);
        CHECK(percid_counter_sum(&counters[0]) == 2 * n);
        CHECK(sum_by_id(&counters[0]) == 2 * n);
        CHECK(percid_counter_sum(&counters[1]) == -(n / 2) * (ADDITIONS - 1));
        CHECK(percid_counter_take(&counters[2]) == n << 40);
        CHECK(percid_counter_sum(&counters[2]) == 0);
        for (i = 0; i < COUNTERS; i++) {
            percid_counter_destroy(&counters[i]);
            CHECK(percid_counter_sum(&counters[i]) == 0);
        }
    }
    CHECK(available > 0);
}

static int done;

static void *take(void *taken)
{
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        *(int64_t *)taken += percid_counter_take(&of_process);
    }
    return NULL;
}

/* Increments and takes at the same time: nothing is lost or counted twice. */
static void take_while_adding(void)
{
    pthread_t taker;
    int64_t taken = percid_counter_take(&of_process);
    taken = 0;
    CHECK(pthread_create(&taker, NULL, take, &taken) == 0);
    run_threads();
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(taker, NULL) == 0);
    CHECK(taken + percid_counter_sum(&of_process) == (int64_t)THREADS * ADDITIONS);
}

/* Memory that was given back is zero for the next counter. */
static void reuse(void)
{
    int i;
    for (i = 0; i < 1000; i++) {
        percid_counter counter = PERCID_COUNTER_INIT;
        CHECK(percid_counter_sum(&counter) == 0);
        percid_counter_add(&counter, i);
        CHECK(percid_counter_sum(&counter) == i);
        percid_counter_destroy(&counter);
    }
}

static void misuse(void)
{
    percid_counter counter = PERCID_COUNTER_INIT;
    CHECK(percid_counter_with_source(NULL, PERCID_SOURCE_ATOMIC) == -EINVAL);
    CHECK(percid_counter_with_source(&counter, 0) == -EINVAL);
    CHECK(percid_counter_with_source(&counter, 4) == -EINVAL);
    CHECK(counter.word == 0);
    CHECK(percid_counter_sum(NULL) == 0);
    CHECK(percid_counter_take(NULL) == 0);
    CHECK(percid_counter_shared(NULL) == 0);
    CHECK(percid_counter_per_id(NULL, NULL, 0) == 0);
    percid_counter_add(&counter, 1);
    /* A capacity without memory is none. */
    CHECK(percid_counter_per_id(&counter, NULL, 8) == percid_counter_per_id(&counter, NULL, 0));
    percid_counter_destroy(&counter);
    percid_counter_destroy(&counter);
    percid_counter_destroy(NULL);
    percid_counter_add_slow(NULL, 1);
}

static void process(void)
{
    const enum percid_source source = percid_init();
    char line[128];
    CHECK(percid_init() == source);
    CHECK(percid_source_name((int)source) != NULL && percid_source_name(7) == NULL);
    CHECK(percid_reason(line, sizeof line) == strlen(line));
    CHECK(percid_reason(NULL, 0) == strlen(line));
    CHECK(percid_current_id() >= 0);
    CHECK(strcmp(percid_version(), EXPECTED_VERSION) == 0);
    percid_compact_ids();
    errno = 77;
    percid_counter_add(&of_process, 1);
    percid_current_id();
    CHECK(errno == 77);
    percid_counter_take(&of_process);
    printf("%s: %s\n", percid_source_name((int)source), line);
}

int main(void)
{
    process();
    misuse();
    count_with_each_source();
    take_while_adding();
    reuse();
    for (int i = 0; i < COUNTERS; i++) {
        percid_counter_destroy(&counters[i]);
    }
    percid_counter_destroy(&of_process);
    puts("ok");
    return 0;
}
