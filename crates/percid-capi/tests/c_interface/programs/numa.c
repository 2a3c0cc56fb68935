/* Balancers and regions, whatever nodes the machine has: figures, refusals, misuse, fork. */
#define _DEFAULT_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

enum { PAGES = 64, THREADS = 4, PASSES = 20, DEEP = 256 << 10 };

static percid_balancer *balancer;
static percid_region *region;
static size_t page;
static char *memory;

static char *map(size_t bytes)
{
    char *const start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    return start;
}

static void settings(void)
{
    percid_balancer_settings settings;
    percid_balancer *other;
    memset(&settings, 0x55, sizeof settings);
    CHECK(percid_balancer_settings_init(NULL, sizeof settings) == -EINVAL);
    CHECK(percid_balancer_settings_init(&settings, sizeof settings - 1) == -EINVAL);
    CHECK(percid_balancer_settings_init(&settings, sizeof settings) == 0);
    CHECK(settings.size == sizeof settings && settings.scan_delay_ns == UINT64_C(1000000000));
    CHECK(settings.scan_size == UINT64_C(256) << 20 && settings.max_rate == UINT64_C(2560) << 20);
    CHECK(settings.period_min_ns == UINT64_C(1000000000) && settings.period_max_ns == UINT64_C(60000000000));
    CHECK(settings.batch == UINT64_C(8) << 20 && settings.bandwidth == UINT64_C(2560) << 20);
    CHECK(settings.batch_time_ns == 10000000);
    CHECK(settings.backoff == 1 && settings.width == 64 && settings.tiers == 0);
    CHECK(settings.cold_after_ns == UINT64_C(120000000000) && settings.hot_threshold_ns == UINT64_C(1000000000));
    CHECK(settings.tiers_rate == UINT64_C(128) << 20);
    CHECK(settings.order == PERCID_SCAN_ORDER_ADDRESS && settings.scan_starved == 1);

    CHECK(percid_balancer_settings_set_rules(&settings, PERCID_SCAN_RULES_SELECTIVE) == 0);
    CHECK(settings.scan_starved == 0 && settings.complete_partial == 1);
    CHECK(percid_balancer_settings_set_rules(&settings, 0) == -EINVAL);
    CHECK(percid_balancer_settings_set_rules(NULL, PERCID_SCAN_RULES_FIXED) == -EINVAL);
    settings.width = 128;
    CHECK(percid_balancer_create(&other, &settings) == 0 && percid_balancer_destroy(other) == 0);
    settings.width = 63;
    CHECK(percid_balancer_create(&other, &settings) == -EINVAL && other == NULL);
    settings.width = 64;
    settings.tiers = 1;
    CHECK(percid_balancer_create(&other, &settings) == 0 && percid_balancer_destroy(other) == 0);
    settings.tiers_rate = 0;
    CHECK(percid_balancer_create(&other, &settings) == -EINVAL && other == NULL);
    settings.tiers = 0;
    CHECK(percid_balancer_create(&other, &settings) == 0 && percid_balancer_destroy(other) == 0);
    settings.period_min_ns = settings.period_max_ns + 1;
    CHECK(percid_balancer_create(&other, &settings) == -ERANGE && other == NULL);
    CHECK(percid_balancer_create(NULL, &settings) == -EINVAL && percid_balancer_create(NULL, NULL) == -EINVAL);
}

/* A structure of a version to come. */
static void larger_settings(void)
{
    struct {
        percid_balancer_settings known;
        uint64_t later;
    } larger;
    percid_balancer *other;
    larger.later = 1;
    CHECK(percid_balancer_settings_init(&larger.known, sizeof larger) == 0 && larger.later == 0);
    CHECK(percid_balancer_create(&other, &larger.known) == 0 && percid_balancer_destroy(other) == 0);
    larger.later = 1;
    CHECK(percid_balancer_create(&other, &larger.known) == -E2BIG && other == NULL);
}

static int refused(void *start, size_t bytes)
{
    percid_region *none = region;
    const int result = percid_region_register(&none, balancer, start, bytes);
    const char *const text = percid_region_error(result);
    CHECK(none == NULL && text != NULL);
    printf("%s: %s\n", strerror(-result), text);
    return result;
}

/* Makes the stack reach down so far. */
__attribute__((noinline)) static char reach_down(void)
{
    volatile char deep[DEEP];
    for (size_t i = 0; i < DEEP; i++) {
        deep[i] = 0;
    }
    return deep[DEEP / 2];
}

static void own_stack(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)(page - 1);
    const size_t pages = DEEP / 2 / page;
    percid_region *none = region;
    CHECK(reach_down() == 0);
    /* From half as deep to this very page: the library's own frames are there. */
    const void *const start = (const void *)(here - pages * page);
    CHECK(percid_region_register_trapped(&none, balancer, start, (pages + 1) * page) == -EDEADLK && none == NULL);
}

static void refusals(void)
{
    char *const other = map(8 * page);
    CHECK(munmap(other + 4 * page, page) == 0);
    CHECK(mprotect(other + 7 * page, page, PROT_READ) == 0);
    CHECK(refused(memory, 0) == -EINVAL && refused(memory + 1, page) == -EINVAL);
    CHECK(refused(memory, page + 1) == -EINVAL);
    CHECK(refused(memory, PAGES * page) == -EEXIST && refused(memory + page, page) == -EEXIST);
    CHECK(refused(other + 3 * page, 2 * page) == -ENXIO && refused(NULL, page) == -ENXIO);
    CHECK(refused((void *)(UINTPTR_MAX - page + 1), 2 * page) == -ENXIO);
    CHECK(refused(other + 6 * page, 2 * page) == -EXDEV);
    CHECK(percid_region_error(0) == NULL && percid_region_error(1) == NULL && percid_region_error(-EPIPE) == NULL);
    CHECK(munmap(other, 8 * page) == 0);
}

static void *use(void *unused)
{
    for (int round = 0; round < 1000; round++) {
        for (size_t at = 0; at < PAGES * page; at += page / 2) {
            percid_region_touch(region, at);
            __atomic_fetch_add(&memory[at], 1, __ATOMIC_RELAXED);
        }
    }
    return unused;
}

static void threads(void)
{
    pthread_t users[THREADS];
    CHECK(percid_balancer_start(balancer) == 0 && percid_balancer_start(balancer) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&users[i], NULL, use, NULL) == 0);
    }
    for (int i = 0; i < PASSES; i++) {
        percid_batch batch;
        errno = 77;
        CHECK(percid_balancer_pass(balancer, NULL) == 0);
        CHECK(percid_balancer_move_batch(balancer, &batch) == 0 && (batch.more == 0 || batch.more == 1));
        CHECK(errno == 77);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(users[i], NULL) == 0);
    }
    CHECK(percid_balancer_stop(balancer) == 0 && percid_balancer_stop(balancer) == 0);
}

static void report(void)
{
    percid_report *report;
    percid_balancer_totals totals;
    percid_region_figures figures;
    percid_on_node nodes[1024];
    CHECK(percid_report_create(&report, balancer) == 0);
    CHECK(percid_report_totals(report, &totals, sizeof totals) == 0);
    CHECK(totals.threads >= 1 && totals.age_ns > 0 && totals.period_ns > 0);
    CHECK(percid_report_regions(report) == 1);
    CHECK(percid_report_region(report, 0, &figures, sizeof figures) == 0);
    CHECK(figures.start == memory && figures.bytes == PAGES * page && figures.gone == 0);
    CHECK(figures.access == PERCID_ACCESS_REPORTED);
    /* Every page was written. */
    const size_t count = percid_report_pages(report, 0, nodes, 1024);
    uint64_t pages = 0;
    CHECK(count >= 1 && percid_report_pages(report, 0, NULL, 0) == count);
    for (size_t i = 0; i < count; i++) {
        pages += nodes[i].count;
    }
    CHECK(pages == PAGES && figures.absent == 0);

    const size_t there = percid_report_nodes(report, NULL, 0);
    CHECK(percid_balancer_has_nodes(balancer) == (there > 1));
    if (there == 1) {
        CHECK(figures.scanned == 0 && figures.moved == 0 && totals.passes == 0);
        CHECK(percid_report_use(report, 0, NULL, 0) == 0);
    }
    /* Nobody asked for memory tiers. */
    CHECK(percid_report_slow_nodes(report, NULL, 0) == 0 && figures.promoted == 0 && figures.demoted == 0);
    for (int reason = 1; percid_skip_reason_name(reason) != NULL; reason++) {
        CHECK(there > 1 || percid_report_skipped(report, 0, reason) == 0);
    }

    /* A program of another version. */
    char first[16] = {0};
    CHECK(percid_report_totals(report, (percid_balancer_totals *)(void *)nodes, sizeof nodes) == 0);
    CHECK(nodes[0].count == totals.passes && nodes[1023].count == 0);
    percid_balancer_totals shorter;
    memset(&shorter, 0x55, sizeof shorter);
    CHECK(percid_report_totals(report, &shorter, sizeof first) == 0);
    CHECK(shorter.passes == totals.passes && shorter.period_ns == UINT64_C(0x5555555555555555));

    CHECK(percid_report_region(report, 1, &figures, sizeof figures) == -ERANGE);
    CHECK(percid_report_region(report, 0, NULL, 0) == -EINVAL);
    CHECK(percid_report_totals(report, NULL, sizeof totals) == -EINVAL);
    CHECK(percid_report_pages(report, 1, nodes, 1024) == 0);
    CHECK(percid_report_failures(report, 1, NULL, 0) == 0);
    CHECK(percid_report_skipped(report, 1, 1) == 0 && percid_report_skipped(report, 0, 99) == 0);
    percid_report_free(report);
}

static void excluded_parts(void)
{
    const size_t bytes = percid_region_bytes(region);
    CHECK(percid_region_exclude_begin(region, 0, bytes) == 0);
    CHECK(percid_region_exclude_begin(region, page, page) == 0);
    CHECK(percid_region_exclude_begin(region, page, page) == 0);
    CHECK(percid_region_exclude_begin(region, bytes, 0) == 0);
    CHECK(percid_region_exclude_begin(region, bytes, 1) == -ERANGE);
    CHECK(percid_region_exclude_begin(region, SIZE_MAX, 2) == -ERANGE);
    CHECK(percid_region_exclude_end(region, page, page) == 0 && percid_region_exclude_end(region, page, page) == 0);
    CHECK(percid_region_exclude_end(region, page, page) == -ENOENT);
    CHECK(percid_region_exclude_end(region, bytes, 1) == -ERANGE);
    CHECK(percid_region_exclude_end(region, bytes, 0) == 0);
    /* The first is left to the end of the region. */
}

static void child(void)
{
    percid_balancer_event event;
    percid_region *another = region;
    percid_region_touch(region, 0);
    memory[0]++;
    CHECK(percid_region_register(&another, balancer, memory, page) == -EPERM && another == NULL);
    CHECK(percid_balancer_take_events(balancer, &event, 1) == 0);
    CHECK(percid_balancer_start(balancer) == 0 && percid_balancer_pass(balancer, NULL) == 0);
    CHECK(percid_region_exclude_begin(region, 0, 1) == 0 && percid_region_exclude_end(region, 0, 1) == 0);
    CHECK(percid_region_unregister(region) == 0 && percid_balancer_destroy(balancer) == 0);
    _exit(0);
}

static void children(void)
{
    int status = 1;
    percid_balancer_event event;
    /* Where there are nodes this leaves some that are the parent's. */
    CHECK(percid_balancer_take_events(balancer, &event, 1) == percid_balancer_has_nodes(balancer));
    CHECK(fflush(stdout) == 0);
    const pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        child();
    }
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(percid_balancer_take_events(balancer, &event, 1) == percid_balancer_has_nodes(balancer));
}

static int published(void)
{
    char name[64], target[64];
    int found = 0;
    for (int file = 0; file < 256; file++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        const ssize_t length = readlink(name, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        found += strcmp(target, "/memfd:percid-numa (deleted)") == 0;
    }
    return found;
}

static void publication(void)
{
    percid_balancer *other;
    CHECK(percid_balancer_create(&other, NULL) == 0);
    const int before = published();
    CHECK(percid_balancer_publish(other) == 0 && percid_balancer_publish(other) == 0);
    CHECK(published() == before + 1);
    CHECK(percid_balancer_destroy(other) == 0 && published() == before);
    CHECK(percid_balancer_publish(other) == -EBADF && percid_balancer_publish(NULL) == -EINVAL);
}

static void memory_of_percid(void)
{
    static percid_counter counter;
    percid_range ranges[64];
    percid_id_regions *ids = NULL;
    percid_pool_regions *objects = NULL;
    percid_pool *pool;
    CHECK(percid_counter_with_source(&counter, PERCID_SOURCE_ATOMIC) == 0);
    percid_counter_add(&counter, 1);
    CHECK(percid_id_regions_register(&ids, balancer, PERCID_SOURCE_ATOMIC) == 0);
    const size_t count = percid_id_regions_of_id(ids, 0, ranges, 64);
    CHECK(count <= 64 && percid_id_regions_of_id(ids, UINT32_MAX, ranges, 64) == 0);
    for (size_t i = 0; i < count; i++) {
        CHECK(ranges[i].start != NULL && ranges[i].bytes % page == 0);
    }
    percid_id_regions_touch(ids);
    percid_id_regions *twice = ids;
    const int again = percid_id_regions_register(&twice, balancer, PERCID_SOURCE_ATOMIC);
    CHECK(count == 0 || (again == -EEXIST && twice == NULL));

    CHECK(percid_pool_create(&pool, 4 * page, page, 16) == 0);
    char *const object = percid_pool_get(pool);
    CHECK(object != NULL);
    CHECK(percid_pool_regions_register(&objects, balancer, pool) == 0);
    const size_t slabs = percid_pool_regions_ranges(objects, ranges, 64);
    CHECK(slabs >= 1 && (uintptr_t)object - (uintptr_t)ranges[0].start < ranges[0].bytes);
    percid_pool_regions_touch(objects, object);
    percid_pool_regions_touch(objects, object + 4 * page - 1);
    percid_pool_regions_touch(objects, NULL);
    percid_pool_regions_touch(objects, (const void *)UINTPTR_MAX);
    CHECK(percid_pool_put(pool, object) == 0 && percid_pool_destroy(pool) == 0);
    percid_pool_regions_touch(objects, object);

    CHECK(percid_pool_regions_unregister(objects) == 0 && percid_pool_regions_unregister(objects) == -EBADF);
    CHECK(percid_id_regions_unregister(ids) == 0 && percid_id_regions_unregister(ids) == -EBADF);
    percid_id_regions_touch(ids);
    percid_pool_regions_touch(objects, object);
    percid_id_regions_touch(NULL);
    percid_pool_regions_touch(NULL, object);
    CHECK(percid_id_regions_of_id(ids, 0, ranges, 64) == 0 && percid_pool_regions_ranges(objects, NULL, 0) == 0);
    CHECK(percid_id_regions_of_id(NULL, 0, NULL, 0) == 0 && percid_pool_regions_ranges(NULL, NULL, 0) == 0);
    CHECK(percid_id_regions_register(&ids, balancer, 0) == -EINVAL && ids == NULL);
    CHECK(percid_id_regions_register(&ids, NULL, PERCID_SOURCE_ATOMIC) == -EINVAL);
    CHECK(percid_id_regions_register(NULL, balancer, PERCID_SOURCE_ATOMIC) == -EINVAL);
    CHECK(percid_pool_regions_register(&objects, balancer, pool) == -EBADF && objects == NULL);
    CHECK(percid_pool_regions_register(&objects, balancer, NULL) == -EINVAL);
    CHECK(percid_pool_regions_register(&objects, balancer, (const percid_pool *)balancer) == -EINVAL);
    CHECK(percid_id_regions_unregister(NULL) == -EINVAL && percid_pool_regions_unregister(NULL) == -EINVAL);
    percid_counter_destroy(&counter);
}

static void shares(void)
{
    percid_report *told;
    percid_on_node nodes[64];
    double share = -1, all = 0;
    CHECK(percid_report_create(&told, balancer) == 0);
    const size_t count = percid_report_pages(told, 0, nodes, 64);
    for (size_t i = 0; i < count && i < 64; i++) {
        const double there = percid_report_share_on(told, 0, nodes[i].node);
        CHECK(there > 0 && there <= 1);
        all += there;
    }
    CHECK(count > 0 && all > 0.99 && all < 1.01);
    const int result = percid_report_local_share(told, 0, &share);
    CHECK(result == 0 ? share >= 0 && share <= 1 : result == -ENODATA);
    CHECK(percid_report_scan_share(told) >= 0 && percid_report_scan_share(told) < 1);
    CHECK(percid_report_local_share(told, 0, NULL) == -EINVAL);
    CHECK(percid_report_local_share(told, SIZE_MAX, &share) == -EINVAL);
    CHECK(percid_report_local_share(NULL, 0, &share) == -EINVAL);
    CHECK(!(percid_report_share_on(told, SIZE_MAX, 0) > 0) && !(percid_report_share_on(NULL, 0, 0) > 0));
    CHECK(!(percid_report_scan_share(NULL) > 0));
    percid_report_free(told);
}

static void misuse(void)
{
    percid_report *report;
    percid_balancer_event event;
    CHECK(percid_region_register(NULL, balancer, memory, page) == -EINVAL);
    CHECK(percid_region_register(&region, NULL, memory, page) == -EINVAL && region == NULL);
    percid_region_touch(NULL, 0);
    CHECK(percid_region_start(NULL) == NULL && percid_region_bytes(NULL) == 0);
    CHECK(percid_region_access(NULL) == -EINVAL && percid_region_unregister(NULL) == -EINVAL);
    CHECK(percid_region_exclude_begin(NULL, 0, 1) == -EINVAL && percid_region_exclude_end(NULL, 0, 1) == -EINVAL);
    CHECK(percid_balancer_has_nodes(NULL) == -EINVAL && percid_balancer_start(NULL) == -EINVAL);
    CHECK(percid_balancer_stop(NULL) == -EINVAL && percid_balancer_pass(NULL, NULL) == -EINVAL);
    CHECK(percid_balancer_move_batch(NULL, NULL) == -EINVAL && percid_balancer_destroy(NULL) == -EINVAL);
    CHECK(percid_balancer_take_events(NULL, &event, 1) == -EINVAL);
    CHECK(percid_balancer_take_events(balancer, NULL, 1) == -EINVAL);
    CHECK(percid_report_create(NULL, balancer) == -EINVAL);
    CHECK(percid_report_create(&report, NULL) == -EINVAL && report == NULL);
    CHECK(percid_report_regions(NULL) == 0 && percid_report_nodes(NULL, NULL, 0) == 0);
    CHECK(percid_report_slow_nodes(NULL, NULL, 0) == 0);
    CHECK(percid_report_pages(NULL, 0, NULL, 0) == 0 && percid_report_skipped(NULL, 0, 1) == 0);
    CHECK(percid_report_totals(NULL, NULL, 0) == -EINVAL);
    CHECK(percid_report_region(NULL, 0, NULL, 0) == -EINVAL);
    percid_report_free(NULL);
    CHECK(percid_skip_reason_name(0) == NULL && percid_skip_reason_name(8) == NULL);
    CHECK(strcmp(percid_skip_reason_name(PERCID_SKIP_REASON_PID_INACTIVE), "pid_inactive") == 0);
}

/* Handles stay recognisable. */
static void after_the_end(percid_region *gone)
{
    percid_report *report;
    percid_balancer_event event;
    percid_region_touch(gone, 0);
    CHECK(percid_region_unregister(gone) == -EBADF && percid_region_access(gone) == -EBADF);
    CHECK(percid_region_bytes(gone) == 0 && percid_region_exclude_end(gone, 0, 1) == -EBADF);
    CHECK(percid_balancer_destroy(balancer) == -EBADF && percid_balancer_pass(balancer, NULL) == -EBADF);
    CHECK(percid_balancer_start(balancer) == -EBADF && percid_balancer_take_events(balancer, &event, 1) == -EBADF);
    CHECK(percid_report_create(&report, balancer) == -EBADF && report == NULL);
    CHECK(percid_region_register(&region, balancer, memory, page) == -EBADF && region == NULL);
}

#ifdef PRETENDED_NODES
/* Of the library as it is built for this alone. */
void percid_testing_pretend_nodes(uint32_t count);
#endif

int main(void)
{
#ifdef PRETENDED_NODES
    percid_testing_pretend_nodes(PRETENDED_NODES);
#endif
    page = (size_t)sysconf(_SC_PAGESIZE);
    memory = map(PAGES * page);
    settings();
    larger_settings();
    CHECK(percid_balancer_create(&balancer, NULL) == 0);
    CHECK(percid_region_register(&region, balancer, memory, PAGES * page) == 0);
    CHECK(percid_region_start(region) == memory && percid_region_bytes(region) == PAGES * page);
    CHECK(percid_region_access(region) == PERCID_ACCESS_REPORTED);
    refusals();
    own_stack();
    threads();
    report();
    excluded_parts();
    children();
    publication();
    memory_of_percid();
    shares();
    percid_region_touch_all(region);
    percid_region_touch_all(NULL);

    percid_region *const first = region;
    misuse();
    CHECK(percid_region_unregister(first) == 0);
    /* A region may outlive its balancer, and be registered again with another. */
    CHECK(percid_region_register_trapped(&region, balancer, memory, PAGES * page) == 0);
    percid_region *const orphan = region;
    CHECK(percid_region_access(orphan) == PERCID_ACCESS_TRAPPED);
    CHECK(percid_balancer_destroy(balancer) == 0);
    percid_region_touch(orphan, 0);
    CHECK(percid_region_start(orphan) == memory && percid_region_unregister(orphan) == 0);
    after_the_end(first);
    puts("ok");
    return 0;
}
