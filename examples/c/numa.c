/*
 * Memory that follows its threads: percid_balancer.
 *
 *     cc -O2 -pthread numa.c $(pkg-config --cflags --libs percid) -o numa && ./numa
 *
 * The main thread fills a table for each worker, as programs do that read their data before they
 * start: so all of it lies on the node (NUMA) that the main thread happened to run on. The workers,
 * wherever they run, then use it for some seconds. The balancer sees who uses which pages and moves
 * them, page by page, while the workers go on. On a machine with one node there is nothing to move,
 * and it does nothing.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <percid.h>

enum { WORKERS = 4, TABLE = 16 << 20, MOST_NODES = 64 };

struct worker {
    pthread_t thread;
    uint64_t *table;
    percid_region *region;
    uint64_t sum;
};

static atomic_bool done;
static size_t page;

static void *work(void *argument)
{
    struct worker *const worker = argument;
    const size_t words = page / sizeof *worker->table;
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        for (size_t at = 0; at < TABLE; at += page) {
            /* Once for every page is enough. It costs a call, unless the balancer wants to know who
             * uses this page. */
            percid_region_touch(worker->region, at);
            const uint64_t *const part = worker->table + at / sizeof *worker->table;
            for (size_t i = 0; i < words; i++) {
                worker->sum += part[i];
            }
        }
    }
    return NULL;
}

/* Says where the tables are. Returns whether all of their pages are somewhere. */
static int tell(const char *when, percid_balancer *balancer)
{
    percid_report *report;
    int right = 1;
    if (percid_report_create(&report, balancer) != 0) {
        return 0;
    }
    printf("%s\n", when);
    for (size_t i = 0; i < percid_report_regions(report); i++) {
        percid_region_figures figures;
        percid_on_node nodes[MOST_NODES];
        percid_report_region(report, i, &figures, sizeof figures);
        const size_t count = percid_report_pages(report, i, nodes, MOST_NODES);
        uint64_t pages = figures.absent;
        printf("  table %zu:", i);
        for (size_t node = 0; node < count && node < MOST_NODES; node++) {
            printf(" %" PRIu64 " pages on node %" PRIu32 ",", nodes[node].count, nodes[node].node);
            pages += nodes[node].count;
        }
        printf(" %" PRIu64 " uses seen, %" PRIu64 " of them from afar, %" PRIu64 " pages moved\n",
               figures.local_uses + figures.remote_uses, figures.remote_uses, figures.moved);
        right &= pages == TABLE / page;
    }
    percid_report_free(report);
    return right;
}

/* A table that the calling thread fills, and that the balancer looks after. */
static int prepare(struct worker *worker, percid_balancer *balancer)
{
    /* Regions are whole pages. */
    void *const memory = aligned_alloc(page, TABLE);
    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        return 0;
    }
    memset(memory, 1, TABLE);
    worker->table = memory;
    const int result = percid_region_register(&worker->region, balancer, memory, TABLE);
    if (result != 0) {
        fprintf(stderr, "cannot be balanced: %s\n", percid_region_error(result));
    }
    return result == 0;
}

int main(void)
{
    static struct worker workers[WORKERS];
    percid_balancer *balancer;
    page = (size_t)sysconf(_SC_PAGESIZE);
    /* Without settings it has the kernel's: a region is left alone for a second, for instance. */
    if (percid_balancer_create(&balancer, NULL) != 0) {
        return EXIT_FAILURE;
    }
    for (int i = 0; i < WORKERS; i++) {
        if (!prepare(&workers[i], balancer)) {
            return EXIT_FAILURE;
        }
    }
    int right = tell("when they were filled:", balancer);
    for (int i = 0; i < WORKERS; i++) {
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            return EXIT_FAILURE;
        }
    }
    /* From here on a thread of the balancer's does the rest. */
    right &= percid_balancer_start(balancer) == 0;
    const int has_nodes = percid_balancer_has_nodes(balancer);
    const struct timespec some_time = {has_nodes ? 10 : 0, 200 * 1000 * 1000};
    nanosleep(&some_time, NULL);
    atomic_store(&done, 1);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    right &= tell("when they were used:", balancer);
    if (!has_nodes) {
        puts("this machine has one node: nothing was moved");
    }
    for (int i = 0; i < WORKERS; i++) {
        percid_region_unregister(workers[i].region);
        free(workers[i].table);
    }
    percid_balancer_destroy(balancer);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
