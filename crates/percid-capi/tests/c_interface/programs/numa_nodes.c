/* Balancers where the machine is believed to have two nodes: what is armed, seen, tried and told.
 * */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

/* Of the library as it is built for this test alone. */
void percid_testing_pretend_nodes(uint32_t count);

enum { PAGES = 256, MOST_PASSES = 1000, SKIPPED = 77 };

/* A grain of trapped memory. */
static const size_t GRAIN = 64 << 10;

static percid_balancer *balancer;
static size_t page;

/* From a multiple of a grain on, so that none is cut. */
static char *map(size_t bytes)
{
    char *const all = mmap(NULL, bytes + GRAIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    const size_t lead = -(uintptr_t)all % GRAIN;
    CHECK(lead == 0 || munmap(all, lead) == 0);
    CHECK(munmap(all + lead + bytes, GRAIN - lead) == 0);
    memset(all + lead, 1, bytes);
    return all + lead;
}

/* CPU c is on node c modulo the number of nodes. */
static int stay_on(unsigned cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static percid_region_figures figures(percid_report **report)
{
    percid_region_figures figures;
    CHECK(percid_report_create(report, balancer) == 0);
    CHECK(percid_report_regions(*report) == 1);
    CHECK(percid_report_region(*report, 0, &figures, sizeof figures) == 0);
    return figures;
}

/* Makes passes until so many pages are armed anew, and answers whether that came about. */
static int arm(uint64_t pages)
{
    percid_pass passed;
    uint64_t armed = 0;
    for (int i = 0; i < MOST_PASSES && armed < pages; i++) {
        CHECK(percid_balancer_pass(balancer, &passed) == 0);
        armed += passed.armed;
    }
    return armed == pages;
}

static void events(const char *memory)
{
    percid_balancer_event event;
    uint64_t armed = 0, passes = 0, kinds = 0;
    /* One by one: what a call leaves is there for the next. */
    while (percid_balancer_take_events(balancer, &event, 1) == 1) {
        CHECK(event.kind >= PERCID_BALANCER_EVENT_KIND_PASS);
        CHECK(event.kind <= PERCID_BALANCER_EVENT_KIND_HANDLER_REPLACED);
        CHECK(event.kind == PERCID_BALANCER_EVENT_KIND_PASS || event.region == (uintptr_t)memory);
        CHECK((event.reason != 0) == (event.kind == PERCID_BALANCER_EVENT_KIND_SKIPPED));
        CHECK(event.reason == 0 || percid_skip_reason_name(event.reason) != NULL);
        kinds |= UINT64_C(1) << event.kind;
        if (event.kind == PERCID_BALANCER_EVENT_KIND_PASS) {
            CHECK(event.thread == (uint32_t)getpid());
            passes++;
        }
        if (event.kind == PERCID_BALANCER_EVENT_KIND_ARMED) {
            CHECK(event.start >= event.region && event.end > event.start);
            armed += event.pages;
        }
    }
    CHECK(passes > 0 && armed >= PAGES && (kinds >> PERCID_BALANCER_EVENT_KIND_MOVED & 1) == 1);
    CHECK(percid_balancer_take_events(balancer, &event, 1) == 0);
}

static void reported(void)
{
    char *const memory = map(PAGES * page);
    percid_region *region;
    percid_report *report;
    CHECK(percid_region_register(&region, balancer, memory, PAGES * page) == 0);
    CHECK(arm(PAGES));
    CHECK(stay_on(1));
    for (size_t i = 0; i < PAGES; i++) {
        /* An armed page counts once. */
        errno = 77;
        percid_region_touch(region, i * page);
        percid_region_touch(region, i * page + 1);
        CHECK(errno == 77);
    }
    percid_region_touch(region, PAGES * page);
    percid_region_touch(region, SIZE_MAX);
    percid_region_figures now = figures(&report);
    CHECK(now.scanned == PAGES && now.local_uses + now.remote_uses == PAGES);
    CHECK(now.remote_uses == PAGES && now.private_uses == PAGES && now.shared_uses == 0);
    percid_on_node node = {9, 9, 9};
    CHECK(percid_report_use(report, 0, &node, 1) == 1 && node.node == 1 && node.count == PAGES);
    percid_balancer_totals totals;
    CHECK(percid_report_totals(report, &totals, sizeof totals) == 0 && totals.passes > 0);
    percid_report_free(report);

    /* All are to move to a node that is not there: the kernel says so. */
    percid_batch batch = {0, 0, 1};
    uint64_t failed = 0;
    CHECK(now.pending == PAGES);
    while (batch.more) {
        CHECK(percid_balancer_move_batch(balancer, &batch) == 0 && batch.moved == 0);
        failed += batch.failed;
    }
    now = figures(&report);
    percid_region_failure failure;
    CHECK(failed == PAGES && now.moved == 0 && now.pending == 0);
    CHECK(percid_report_failures(report, 0, &failure, 1) == 1);
    CHECK(failure.error > 0 && failure.pages == PAGES);
    printf("%d pages not moved: %s\n", PAGES, strerror(failure.error));
    percid_report_free(report);
    events(memory);
    CHECK(percid_region_unregister(region) == 0 && munmap(memory, PAGES * page) == 0);
}

/* What a system call says about a page of the region. */
static int is_accessible(const char *memory)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    const ssize_t written = write(ends[1], memory, 1);
    const int error = errno;
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(written == 1 || error == EFAULT);
    return written == 1;
}

static void trapped(void)
{
    const size_t bytes = PAGES * page;
    char *const memory = map(bytes);
    percid_region *region;
    percid_report *report;
    CHECK(percid_region_register_trapped(&region, balancer, memory, bytes) == 0);
    CHECK(percid_region_exclude_begin(region, GRAIN, 1) == 0);
    CHECK(arm((bytes - GRAIN) / page));
    /* Excluded, armed. */
    CHECK(is_accessible(memory + GRAIN) && !is_accessible(memory + 2 * GRAIN));
    CHECK(percid_region_exclude_begin(region, 2 * GRAIN, 2) == 0 && is_accessible(memory + 2 * GRAIN));
    CHECK(percid_region_exclude_end(region, GRAIN, 1) == 0 && percid_region_exclude_end(region, 2 * GRAIN, 2) == 0);
    for (size_t at = 0; at < bytes; at += page) {
        memory[at]++;
    }
    /* Those that were excluded were not armed when they were used. */
    const percid_region_figures now = figures(&report);
    CHECK(now.access == PERCID_ACCESS_TRAPPED && now.local_uses + now.remote_uses == bytes / GRAIN - 2);
    percid_report_free(report);
    CHECK(arm(bytes / page) && !is_accessible(memory + GRAIN) && !is_accessible(memory));
    /* With something excluded. */
    CHECK(percid_region_exclude_begin(region, 0, bytes) == 0);
    CHECK(percid_region_unregister(region) == 0 && is_accessible(memory + GRAIN));
    CHECK(munmap(memory, bytes) == 0);
}

static void gone(void)
{
    char *const memory = map(PAGES * page);
    percid_region *region;
    percid_report *report;
    percid_balancer_event event = {0};
    CHECK(percid_region_register(&region, balancer, memory, PAGES * page) == 0);
    /* A hole in which no allocator puts anything. */
    CHECK(munmap(memory + page, page) == 0);
    while (percid_balancer_take_events(balancer, &event, 1) == 1) {
    }
    CHECK(percid_balancer_pass(balancer, NULL) == 0);
    do {
        CHECK(percid_balancer_take_events(balancer, &event, 1) == 1);
    } while (event.kind != PERCID_BALANCER_EVENT_KIND_GONE);
    CHECK(event.region == (uintptr_t)memory && figures(&report).gone == 1);
    percid_report_free(report);
    CHECK(percid_region_unregister(region) == 0);
    CHECK(munmap(memory, page) == 0 && munmap(memory + 2 * page, (PAGES - 2) * page) == 0);
}

/* All of a region at once. */
static void touched_whole(void)
{
    char *const memory = map(PAGES * page);
    percid_region *region;
    percid_report *report;
    CHECK(percid_region_register(&region, balancer, memory, PAGES * page) == 0);
    CHECK(arm(PAGES));
    errno = 77;
    percid_region_touch_all(region);
    CHECK(errno == 77);
    const percid_region_figures now = figures(&report);
    CHECK(now.local_uses + now.remote_uses == PAGES);
    percid_report_free(report);
    CHECK(percid_region_unregister(region) == 0 && munmap(memory, PAGES * page) == 0);
}

/* Ends a child. Checkers of leaks do not look: what it has inherited is its parent's. */
static void end(int status)
{
    (void)fflush(stdout);
    syscall(SYS_exit_group, status);
}

/* In a child, which is the first process of a PID namespace of its own: how that ends. */
static int in_next_namespace(int (*body)(void))
{
    int status = -1;
    if (unshare(CLONE_NEWPID) != 0) {
        return SKIPPED;
    }
    const pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        end(getpid() == 1 ? body() : SKIPPED);
    }
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The child of a process with the same number is a child nevertheless. */
static int namesake(void)
{
    percid_balancer_event event;
    return percid_balancer_take_events(balancer, &event, 1) == 0 && percid_balancer_publish(balancer) == -EPERM ? 0 : 1;
}

static int first_of_a_namespace(void)
{
    percid_balancer_settings settings;
    percid_balancer_event event;
    percid_region *region;
    char *const memory = map(PAGES * page);
    CHECK(percid_balancer_settings_init(&settings, sizeof settings) == 0);
    settings.scan_delay_ns = 0;
    CHECK(percid_balancer_create(&balancer, &settings) == 0);
    CHECK(percid_region_register(&region, balancer, memory, PAGES * page) == 0 && arm(PAGES));
    /* Leaves some. */
    CHECK(percid_balancer_take_events(balancer, &event, 1) == 1);
    const int result = in_next_namespace(namesake);
    return percid_balancer_take_events(balancer, &event, 1) == 1 ? result : 2;
}

static void namespaces(void)
{
    int status = -1;
    CHECK(fflush(stdout) == 0);
    const pid_t process = fork();
    CHECK(process >= 0);
    if (process == 0) {
        (void)unshare(CLONE_NEWUSER);
        end(in_next_namespace(first_of_a_namespace));
    }
    CHECK(waitpid(process, &status, 0) == process && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIPPED);
    if (WEXITSTATUS(status) == SKIPPED) {
        puts("skipped: no PID namespaces for this user");
    }
}

int main(void)
{
    percid_balancer_settings settings;
    percid_testing_pretend_nodes(PRETENDED_NODES);
    page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK(percid_balancer_settings_init(&settings, sizeof settings) == 0);
    settings.scan_delay_ns = 0;
    CHECK(percid_balancer_create(&balancer, &settings) == 0 && percid_balancer_has_nodes(balancer) == 1);
    if (!stay_on(1)) {
        puts("skipped: there is no second CPU\nok");
        return 0;
    }
    reported();
    trapped();
    touched_whole();
    gone();
    namespaces();
    CHECK(percid_balancer_start(balancer) == 0 && percid_balancer_destroy(balancer) == 0);
    puts("ok");
    return 0;
}
