/* Histograms: the inline record against the function, quantiles, threads, and takes. Valid C99 and
 * C++17. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, RECORDS = 100000 };

static percid_histogram of_process = PERCID_HISTOGRAM_INIT;

static percid_snapshot *snapshot(percid_histogram *histogram)
{
    percid_snapshot *taken = NULL;
    CHECK(percid_histogram_snapshot(histogram, &taken) == 0 && taken != NULL);
    return taken;
}

/* A value is in the bucket that has its bounds, whoever records it. */
static void check_bucket(uint64_t value)
{
    percid_histogram histogram = PERCID_HISTOGRAM_INIT;
    percid_snapshot *taken;
    percid_bucket buckets[2];
    percid_histogram_record(&histogram, value);
    percid_histogram_record_many(&histogram, value, 2);
    percid_histogram_record_slow(&histogram, value, 4);
    taken = snapshot(&histogram);
    CHECK(percid_snapshot_buckets(taken, buckets, 2) == 1);
    CHECK(buckets[0].low <= value && value <= buckets[0].high && buckets[0].count == 7);
    percid_snapshot_free(taken);
    percid_histogram_destroy(&histogram);
}

static void buckets(void)
{
    unsigned power;
    int near;
    for (power = 0; power < 64; power++) {
        for (near = -2; near <= 2; near++) {
            check_bucket((UINT64_C(1) << power) + (uint64_t)(int64_t)near);
        }
    }
    check_bucket(UINT64_MAX);
}

static void figures(void)
{
    percid_histogram histogram = PERCID_HISTOGRAM_INIT;
    percid_snapshot *taken, *both;
    uint64_t value;
    double mean;
    for (value = 1; value <= 10000; value++) {
        percid_histogram_record(&histogram, value);
    }
    taken = snapshot(&histogram);
    CHECK(percid_snapshot_count(taken) == 10000);
    CHECK(percid_snapshot_quantile(taken, 0.5, &value) == 0 && llabs((long long)value - 5000) <= 5000 / 128);
    CHECK(percid_snapshot_quantile(taken, 0.99, &value) == 0 && llabs((long long)value - 9900) <= 9900 / 128);
    CHECK(percid_snapshot_min(taken, &value) == 0 && value == 1);
    CHECK(percid_snapshot_max(taken, &value) == 0 && llabs((long long)value - 10000) <= 10000 / 128);
    CHECK(percid_snapshot_mean(taken, &mean) == 0 && fabs(mean - 5000.5) <= 5000.5 / 128);

    CHECK(percid_snapshot_create(&both) == 0);
    CHECK(percid_snapshot_quantile(both, 0.5, &value) == -ENODATA);
    CHECK(percid_snapshot_mean(both, &mean) == -ENODATA);
    CHECK(percid_snapshot_merge(both, taken) == 0 && percid_snapshot_count(both) == 10000);
    CHECK(percid_snapshot_merge(both, both) == 0 && percid_snapshot_count(both) == 20000);
    CHECK(percid_snapshot_buckets(both, NULL, 0) == percid_snapshot_buckets(taken, NULL, 9));

    CHECK(percid_snapshot_quantile(taken, NAN, &value) == -EINVAL);
    CHECK(percid_snapshot_quantile(NULL, 0.5, &value) == -EINVAL);
    CHECK(percid_snapshot_quantile(taken, 0.5, NULL) == -EINVAL);
    CHECK(percid_snapshot_merge(NULL, taken) == -EINVAL && percid_snapshot_merge(taken, NULL) == -EINVAL);
    CHECK(percid_snapshot_count(NULL) == 0 && percid_snapshot_buckets(NULL, NULL, 0) == 0);
    percid_snapshot_free(NULL);
    percid_snapshot_free(taken);
    percid_snapshot_free(both);
    percid_histogram_destroy(&histogram);
}

static void misuse(void)
{
    percid_histogram histogram = PERCID_HISTOGRAM_INIT;
    percid_snapshot *taken = NULL;
    CHECK(percid_histogram_with_source(NULL, PERCID_SOURCE_ATOMIC) == -EINVAL);
    CHECK(percid_histogram_with_source(&histogram, 9) == -EINVAL && histogram.word == 0);
    CHECK(percid_histogram_snapshot(NULL, &taken) == -EINVAL && taken == NULL);
    CHECK(percid_histogram_snapshot(&histogram, NULL) == -EINVAL);
    CHECK(percid_histogram_take(&histogram, NULL) == -EINVAL);
    CHECK(percid_snapshot_create(NULL) == -EINVAL);
    CHECK(percid_histogram_unrecorded(NULL) == 0 && percid_histogram_unrecorded(&histogram) == 0);
    percid_histogram_record_slow(NULL, 1, 1);
    percid_histogram_destroy(NULL);
    percid_histogram_destroy(&histogram);
}

static void *record(void *unused)
{
    uint64_t i;
    (void)unused;
    for (i = 0; i < RECORDS; i++) {
        percid_histogram_record(&of_process, i * i);
    }
    return NULL;
}

/* Every record is in exactly one of the snapshots that were taken, or still there. */
static void threads(void)
{
    pthread_t workers[THREADS];
    percid_snapshot *all;
    uint64_t largest;
    int i;
    CHECK(percid_snapshot_create(&all) == 0);
    for (i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&workers[i], NULL, record, NULL) == 0);
    }
    for (i = 0; i <= THREADS; i++) {
        percid_snapshot *taken;
        CHECK(percid_histogram_take(&of_process, &taken) == 0);
        CHECK(percid_snapshot_merge(all, taken) == 0);
        percid_snapshot_free(taken);
        if (i < THREADS) {
            CHECK(pthread_join(workers[i], NULL) == 0);
        }
    }
    CHECK(percid_snapshot_count(all) == (uint64_t)THREADS * RECORDS);
    CHECK(percid_snapshot_max(all, &largest) == 0);
    CHECK(largest > (uint64_t)RECORDS * RECORDS / 100 * 99 && largest < (uint64_t)RECORDS * RECORDS / 100 * 101);
    percid_snapshot_free(all);
    percid_histogram_destroy(&of_process);
}

int main(void)
{
    buckets();
    figures();
    misuse();
    threads();
    puts("ok");
    return 0;
}
