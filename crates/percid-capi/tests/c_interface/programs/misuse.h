/* Right and wrong things to call the functions with: see misuse.rs. */
#ifndef MISUSE_H
#define MISUSE_H

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

/* The types of which there are handles; for each a good one, one of an object that is gone, and a
   place for another. */
#define HANDLES(each)                                                                              \
    each(snapshot) each(stack) each(pool) each(local) each(ring) each(consumer) each(mask)         \
    each(memory) each(rwlock) each(domain) each(budget) each(balancer) each(region) each(id_regions) each(pool_regions) each(report) each(registry)    \
    each(family)
#define DECLARE(type) static struct percid_##type *good_##type, *gone_##type, *made_##type;
HANDLES(DECLARE)

/* Objects that begin with a word; nobody has initialised the last one. */
static percid_counter good_counter = PERCID_COUNTER_INIT;
static percid_histogram good_histogram = PERCID_HISTOGRAM_INIT;
static char zeros[4096] __attribute__((aligned(4096)));

/* Series, and what belongs to families. */
static percid_float_counter *good_float_counter;
static percid_gauge *good_gauge;
static percid_buckets *good_buckets;
static const char *const label_values[1] = {"value"}, *const no_values[1];
static const char *const label_names[1] = {"label"};
static percid_family_settings good_family_settings;

/* Memory for what is stored or read, and for regions. */
static char buffer[1 << 16] __attribute__((aligned(4096)));
static char pages[1 << 16] __attribute__((aligned(4096)));
static struct percid_balancer_settings settings, garbage;

static int make_nothing(void *value, void *context)
{
    (void)value;
    (void)context;
    return -12345;
}

static void drop_value(void *value, void *context)
{
    (void)value;
    (void)context;
}

static void visit_value(void *value, void *argument)
{
    (void)value;
    (void)argument;
}

static void deferred(void *argument)
{
    (void)argument;
}

static void visit_event(const struct percid_event *event, void *argument)
{
    (void)event;
    (void)argument;
}

static void visit_id(uint32_t id, void *argument)
{
    (void)id;
    (void)argument;
}

static int write_part(const char *text, size_t length, void *argument)
{
    (void)text;
    (void)length;
    (void)argument;
    return 0;
}

#define END(type, verb)                                                                            \
    static void end_##type(struct percid_##type *it)                                               \
    {                                                                                              \
        (void)percid_##type##_##verb(it);                                                          \
    }
END(snapshot, free)
END(pool, destroy)
END(local, destroy)
END(ring, destroy)
END(consumer, close)
END(mask, destroy)
END(rwlock, destroy)
END(domain, destroy)
END(budget, destroy)
END(balancer, destroy)
END(region, unregister)
END(id_regions, unregister)
END(pool_regions, unregister)
END(report, free)
END(registry, destroy)

/* It goes with its registry. */
static void end_family(struct percid_family *it)
{
    (void)it;
}

static void end_memory(struct percid_memory *it)
{
    (void)percid_memory_destroy(it, NULL, NULL);
}

static void end_stack(struct percid_stack *it)
{
    (void)percid_stack_destroy(it, NULL, NULL);
}

/* Makes the good handle of a type if it is none any more. Answers with an error where there is no
   memory: then it stays what it is. */
#define RENEW(type, is_good, ...)                                                                  \
    do {                                                                                           \
        struct percid_##type *it = NULL;                                                           \
        if (!(is_good) && __VA_ARGS__ == 0) {                                                      \
            good_##type = it;                                                                      \
        }                                                                                          \
    } while (0)

/* A registry with a family of each kind: one is good, and the others' series. */
static int make_registry(struct percid_registry **made)
{
    static const char *const names[] = {"", "counters", "floats", "gauges", "buckets"};
    percid_family_settings settings;
    percid_family *families[5];
    int answer = percid_registry_create(made);
    memset(&settings, 0, sizeof settings);
    settings.labels = label_names;
    settings.label_count = 1;
    for (int kind = PERCID_METRIC_COUNTER; kind <= PERCID_METRIC_BUCKETS && answer == 0; kind++) {
        settings.kind = kind;
        settings.name = names[kind];
        answer = percid_family_create(&families[kind], *made, &settings, sizeof settings);
    }
    if (answer == 0) {
        (void)percid_family_float_counter(families[PERCID_METRIC_FLOAT_COUNTER], label_values, 1, &good_float_counter);
        (void)percid_family_gauge(families[PERCID_METRIC_GAUGE], label_values, 1, &good_gauge);
        (void)percid_family_buckets(families[PERCID_METRIC_BUCKETS], label_values, 1, &good_buckets);
        good_family = families[PERCID_METRIC_COUNTER];
    } else if (*made != NULL) {
        /* Without memory to end it, it stays. */
        (void)percid_registry_destroy(*made);
    }
    return answer;
}

static void renew(void)
{
    struct percid_ring *const ring = good_ring;
    char *const page = pages + 4096;
    uint64_t least;
    RENEW(snapshot, percid_snapshot_min(good_snapshot, &least) == -ENODATA,
          percid_snapshot_create(&it));
    RENEW(stack, percid_stack_capacity(good_stack) != 0, percid_stack_create(&it, 8, 8));
    RENEW(pool, percid_pool_size(good_pool) != 0, percid_pool_create(&it, 64, 8, 8));
    RENEW(local, percid_local_for_each(good_local, visit_value, NULL) == 0,
          percid_local_create(&it, 8, 8, NULL, NULL, NULL));
    RENEW(ring, percid_ring_max_record_len(good_ring) != 0,
          percid_ring_create(&it, 4096, PERCID_OVERFLOW_DROP_NEWEST));
    if (good_ring != ring) {
        end_consumer(good_consumer);
    }
    RENEW(consumer, percid_consumer_next(good_consumer, (struct percid_event *)(void *)buffer) >= 0,
          percid_consumer_open(&it, good_ring));
    RENEW(mask, percid_mask_mark(good_mask, 0) == 0, percid_mask_create(&it));
    RENEW(memory, percid_memory_for_each(good_memory, visit_value, NULL) == 0,
          percid_memory_create(&it, 16, 8, NULL, NULL));
    RENEW(rwlock, percid_rwlock_write_unlock(good_rwlock) == -EPERM, percid_rwlock_create(&it));
    RENEW(domain, percid_domain_flush(good_domain) >= 0, percid_domain_create(&it));
    RENEW(budget, percid_budget_limit(good_budget) != 0, percid_budget_create(&it, 1000));
    RENEW(balancer, percid_balancer_has_nodes(good_balancer) >= 0,
          percid_balancer_create(&it, NULL));
    RENEW(region, percid_region_bytes(good_region) != 0,
          percid_region_register(&it, good_balancer, page, 2 * 4096));
    RENEW(id_regions, good_id_regions != NULL,
          percid_id_regions_register(&it, good_balancer, PERCID_SOURCE_TABLE));
    RENEW(pool_regions, good_pool_regions != NULL,
          percid_pool_regions_register(&it, good_balancer, good_pool));
    RENEW(report, good_report != NULL, percid_report_create(&it, good_balancer));
    if (percid_family_series(good_family) == -EBADF) {
        good_float_counter = NULL;
        good_gauge = NULL;
        good_buckets = NULL;
    }
    RENEW(registry, percid_registry_render(good_registry, PERCID_FORMAT_TEXT, NULL, 0) >= 0, make_registry(&it));
}

/* What has just been used up. */
#define USED_UP(type)                                                                              \
    do {                                                                                           \
        good_##type = NULL;                                                                        \
        renew();                                                                                   \
    } while (0)

/* What was made is not needed. */
#define FORGET(type)                                                                               \
    do {                                                                                           \
        if (made_##type != NULL) {                                                                 \
            end_##type(made_##type);                                                               \
            made_##type = NULL;                                                                    \
        }                                                                                          \
    } while (0)

/* An error is an errno; that of a caught panic is none that any function has of its own. */
static int64_t answered;

static void answers(int64_t answer, const char *call)
{
    answered = answer;
    if (answer == -EFAULT) {
        fprintf(stderr, "a panic: %s\n", call);
        exit(1);
    }
}
#define ANSWERS(call) answers((int64_t)(call), #call)

#define GO(type)                                                                                   \
    gone_##type = good_##type;                                                                     \
    end_##type(good_##type);                                                                       \
    good_##type = NULL;

#ifdef PRETENDED_NODES
void percid_testing_pretend_nodes(uint32_t count);
#endif

static void prepare(void)
{
#ifdef PRETENDED_NODES
    percid_testing_pretend_nodes(PRETENDED_NODES);
#endif
    renew();
    /* A consumer goes before its ring. */
    GO(consumer) GO(report) GO(pool_regions) GO(id_regions) GO(region)
    gone_family = good_family;
    GO(registry)
    GO(snapshot) GO(stack) GO(pool) GO(local) GO(ring) GO(mask) GO(memory) GO(rwlock) GO(domain) GO(budget) GO(balancer)
    renew();
    good_family_settings.kind = PERCID_METRIC_COUNTER;
    good_family_settings.name = "requests";
    good_family_settings.labels = label_names;
    good_family_settings.label_count = 1;
    memset(&garbage, 0xa5, sizeof garbage);
    garbage.size = sizeof garbage;
    CHECK(percid_balancer_settings_init(&settings, sizeof settings) == 0);
}

/* What compilers put on the stack for hundreds of inline calls in one function is mapped before. */
__attribute__((noinline)) static void grow_stack(void)
{
    volatile char stack[1 << 20];
    for (size_t i = 0; i < sizeof stack; i += 4096) {
        stack[i] = 0;
    }
}

/* Nothing can be mapped, and nothing is left of what was. */
static void exhaust_memory(void)
{
    static const struct rlimit none = {1 << 20, 1 << 20};
    static char line[4096];
    setvbuf(stdout, line, _IOFBF, sizeof line);
    grow_stack();
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (size_t size = 1 << 20; size >= 16; size /= 2) {
        while (malloc(size) != NULL) {
        }
    }
}

static void run_these(void (*const *functions)(void), size_t count, const char *memory)
{
    prepare();
    if (strcmp(memory, "no-memory") == 0) {
        exhaust_memory();
    }
    for (size_t i = 0; i < count; i++) {
        functions[i]();
    }
    puts("ok");
    fflush(stdout);
    _exit(0);
}

/* With memory or without, all functions in this process, or each in a child, to which percid is new. */
static void run(void (*const *functions)(void), size_t count, int words, char **word)
{
    if (words == 2) {
        run_these(functions, count, word[1]);
    }
    for (size_t i = 0; i < count; i++) {
        int status;
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            run_these(functions + i, 1, word[1]);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

#endif
