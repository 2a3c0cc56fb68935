/* Counters and histograms that were copied, against the rules, and destroyed as often: their memory
 * goes back once, and those that are made later share none. With the argument "lawful" nothing but
 * what is allowed looks similar: moving, destroying twice, and a fork. Valid C99. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

enum { MANY = 100, THREADS = 4, ROUNDS = 50 };

/* Made after the others were destroyed: more than those were. */
static percid_counter later[2 * MANY];

/* No two of them share a cell, and none had a value. */
static void later_counters_are_apart(void)
{
    int64_t i;
    for (i = 0; i < 2 * MANY; i++) {
        CHECK(percid_counter_sum(&later[i]) == 0);
        percid_counter_add(&later[i], i + 1);
    }
    for (i = 0; i < 2 * MANY; i++) {
        CHECK(percid_counter_sum(&later[i]) == i + 1);
    }
    for (i = 0; i < 2 * MANY; i++) {
        percid_counter_destroy(&later[i]);
    }
}

static percid_counter originals[MANY];
static percid_counter copies[THREADS][MANY];

static void make_originals(void)
{
    int i;
    for (i = 0; i < MANY; i++) {
        percid_counter_add(&originals[i], 7);
    }
}

static void counters_one_after_the_other(void)
{
    int i;
    make_originals();
    memcpy(copies[0], originals, sizeof originals);
    memcpy(copies[1], originals, sizeof originals);
    for (i = 0; i < MANY; i++) {
        percid_counter_destroy(&originals[i]);
        percid_counter_destroy(&copies[0][i]);
        /* The copy is a new counter, as any that is destroyed. */
        CHECK(percid_counter_sum(&copies[0][i]) == 0 && copies[0][i].word == 0);
    }
    /* Again, from the middle of the list of free cells. */
    for (i = 0; i < MANY; i++) {
        percid_counter_destroy(&copies[1][i]);
    }
    later_counters_are_apart();
}

static pthread_barrier_t together;

static void *destroy_copies(void *mine)
{
    percid_counter *counters = (percid_counter *)mine;
    int i;
    pthread_barrier_wait(&together);
    for (i = 0; i < MANY; i++) {
        percid_counter_destroy(&counters[i]);
    }
    return NULL;
}

static void counters_at_the_same_time(void)
{
    pthread_t threads[THREADS];
    int round, i;
    for (round = 0; round < ROUNDS; round++) {
        make_originals();
        CHECK(pthread_barrier_init(&together, NULL, THREADS) == 0);
        for (i = 0; i < THREADS; i++) {
            memcpy(copies[i], originals, sizeof originals);
            CHECK(pthread_create(&threads[i], NULL, destroy_copies, copies[i]) == 0);
        }
        for (i = 0; i < THREADS; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
        CHECK(pthread_barrier_destroy(&together) == 0);
        memset(originals, 0, sizeof originals);
        later_counters_are_apart();
    }
}

static uint64_t count(const percid_histogram *histogram)
{
    percid_snapshot *snapshot;
    uint64_t count;
    CHECK(percid_histogram_snapshot(histogram, &snapshot) == 0);
    count = percid_snapshot_count(snapshot);
    percid_snapshot_free(snapshot);
    return count;
}

static void histograms(void)
{
    percid_histogram original = PERCID_HISTOGRAM_INIT, copy, two[2];
    memset(two, 0, sizeof two);
    percid_histogram_record(&original, 1000);
    memcpy(&copy, &original, sizeof copy);
    percid_histogram_destroy(&original);
    percid_histogram_destroy(&copy);
    percid_histogram_record_many(&two[0], 1000, 3);
    percid_histogram_record_many(&two[1], 1000, 4);
    CHECK(count(&two[0]) == 3 && count(&two[1]) == 4);
    percid_histogram_destroy(&two[0]);
    percid_histogram_destroy(&two[1]);
}

/* Moves, and lets others have what was given back. */
static void move(void)
{
    percid_counter counter = PERCID_COUNTER_INIT, elsewhere;
    percid_histogram histogram = PERCID_HISTOGRAM_INIT, there;
    percid_counter_add(&counter, 3);
    percid_histogram_record(&histogram, 3);
    memcpy(&elsewhere, &counter, sizeof elsewhere);
    memcpy(&there, &histogram, sizeof there);
    CHECK(percid_counter_sum(&elsewhere) == 3 && count(&there) == 1);
    percid_counter_destroy(&elsewhere);
    percid_histogram_destroy(&there);
    later_counters_are_apart();
    /* New ones, without memory. */
    percid_counter_destroy(&elsewhere);
    percid_histogram_destroy(&there);
}

/* Of a child's and its parent's neither is a copy. */
static void fork_and_destroy(void)
{
    percid_counter counter = PERCID_COUNTER_INIT;
    pid_t child;
    int status;
    percid_counter_add(&counter, 3);
    child = fork();
    CHECK(child >= 0);
    percid_counter_destroy(&counter);
    later_counters_are_apart();
    if (child == 0) {
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "lawful") == 0) {
        int i;
        for (i = 0; i < ROUNDS; i++) {
            move();
            fork_and_destroy();
        }
    } else {
        counters_one_after_the_other();
        counters_at_the_same_time();
        histograms();
    }
    puts("ok");
    return 0;
}
