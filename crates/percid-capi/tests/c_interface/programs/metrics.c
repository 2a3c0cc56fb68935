/* Families and pages: what threads count by labels is on the page, to one, whatever the labels say. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 6000, USERS = 3000, LIMIT = 500 };

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const method_and_status[] = {"method", "status"};
static const char *const instance[] = {"instance", "a\"b\\\n"};
static const double limits[] = {0.1, 1.0};

static percid_family *family(percid_registry *registry, int kind, const char *name, size_t labels)
{
    percid_family_settings settings;
    percid_family *made;
    memset(&settings, 0, sizeof settings);
    settings.kind = kind;
    settings.name = name;
    settings.labels = method_and_status;
    settings.label_count = labels;
    if (kind == PERCID_METRIC_BUCKETS) {
        settings.limits = limits;
        settings.limit_count = COUNT(limits);
    }
    CHECK(percid_family_create(&made, registry, &settings, sizeof settings) == 0);
    return made;
}

/* The page, in memory to be freed. */
static char *render(const percid_registry *registry, int format)
{
    size_t size = 1;
    char *page = (char *)malloc(size);
    int64_t length;
    while ((length = percid_registry_render(registry, format, page, size)) >= (int64_t)size) {
        size = (size_t)length + 100;
        page = (char *)realloc(page, size);
        CHECK(page != NULL);
    }
    CHECK(length >= 0 && strlen(page) == (size_t)length);
    return page;
}

static percid_counter *counter(const percid_family *of, const char *first, const char *second)
{
    const char *values[2];
    percid_counter *found;
    values[0] = first;
    values[1] = second;
    CHECK(percid_family_counter(of, values, 2, &found) == 0 && found != NULL);
    return found;
}

static void pages(void)
{
    static const char expected[] = "# TYPE busy_total counter\n"
                                   "busy_total 0.5\n"
                                   "# TYPE seconds histogram\n"
                                   "seconds_bucket{method=\"GET\",le=\"0.1\"} 1\n"
                                   "seconds_bucket{method=\"GET\",le=\"1\"} 2\n"
                                   "seconds_bucket{method=\"GET\",le=\"+Inf\"} 4\n"
                                   "seconds_sum{method=\"GET\"} 20.6\n"
                                   "seconds_count{method=\"GET\"} 4\n"
                                   "# HELP served_bytes_total All \"bytes\".\\nHere.\n"
                                   "# TYPE served_bytes_total counter\n"
                                   "served_bytes_total{instance=\"a\\\"b\\\\\\n\",method=\"GET\"} 7\n"
                                   "served_bytes_total{instance=\"a\\\"b\\\\\\n\",method=\"}\\n\\\\\\\"\"} 1\n"
                                   "# TYPE temperature gauge\n"
                                   "temperature -1.5\n";
    static const char *const get[] = {"GET"}, *const hostile[] = {"}\n\\\""};
    percid_registry *registry;
    percid_family_settings settings;
    percid_family *served;
    percid_counter *bytes, *again, *other;
    percid_float_counter *busy;
    percid_gauge *temperature;
    percid_buckets *seconds;
    uint64_t counts[3];
    double sum;
    char *page;
    CHECK(percid_registry_create(&registry) == 0);
    memset(&settings, 0, sizeof settings);
    settings.kind = PERCID_METRIC_COUNTER;
    settings.name = "served";
    settings.unit = "bytes";
    settings.help = "All \"bytes\".\nHere.";
    settings.labels = method_and_status;
    settings.label_count = 1;
    settings.constants = instance;
    settings.constant_count = 2;
    CHECK(percid_family_create(&served, registry, &settings, sizeof settings) == 0);
    CHECK(percid_family_counter(served, get, 1, &bytes) == 0);
    CHECK(percid_family_counter(served, get, 1, &again) == 0 && again == bytes);
    CHECK(percid_family_counter(served, hostile, 1, &other) == 0 && other != bytes);
    percid_counter_add(bytes, 7);
    percid_counter_add(other, 1);
    CHECK(percid_counter_sum(bytes) == 7 && percid_family_series(served) == 2);

    CHECK(percid_family_float_counter(family(registry, PERCID_METRIC_FLOAT_COUNTER, "busy", 0), NULL, 0, &busy) == 0);
    percid_float_counter_add(busy, 0.5);
    percid_float_counter_add(busy, -1.0);
    percid_float_counter_add(busy, (double)NAN);
    CHECK(percid_float_counter_sum(busy) == 0.5);
    CHECK(percid_family_gauge(family(registry, PERCID_METRIC_GAUGE, "temperature", 0), NULL, 0, &temperature) == 0);
    percid_gauge_set(temperature, 3.0);
    percid_gauge_max(temperature, 2.0);
    percid_gauge_add(temperature, -4.5);
    CHECK(percid_gauge_value(temperature) == -1.5);
    CHECK(percid_family_buckets(family(registry, PERCID_METRIC_BUCKETS, "seconds", 1), get, 1, &seconds) == 0);
    percid_buckets_record(seconds, 0.1);
    percid_buckets_record(seconds, 0.5);
    percid_buckets_record_many(seconds, 10.0, 2);
    CHECK(percid_buckets_read(seconds, counts, 3, &sum) == 3);
    CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 2 && sum == 20.6);
    CHECK(percid_buckets_read(seconds, counts, 0, NULL) == 3);
    CHECK(percid_buckets_take(seconds, counts, 2, &sum) == 3 && counts[0] == 1 && sum == 20.6);
    CHECK(percid_buckets_take(seconds, NULL, 3, &sum) == 3 && percid_buckets_take(NULL, counts, 3, &sum) == 0);
    CHECK(percid_buckets_take(seconds, counts, 3, &sum) == 3 && counts[2] == 2 && sum == 20.6);
    CHECK(percid_buckets_read(seconds, counts, 3, &sum) == 3 && counts[2] == 0 && sum == 0.0);
    counts[0] = counts[1] = 1;
    counts[2] = 2;
    CHECK(percid_buckets_record_all(seconds, counts, 3, 20.6) == 0);
    CHECK(percid_buckets_record_all(seconds, NULL, 3, 1.0) == -EINVAL);
    CHECK(percid_buckets_record_all(seconds, counts, 2049, 1.0) == -EINVAL);
    CHECK(percid_buckets_record_all(NULL, counts, 3, 1.0) == -EINVAL);
    CHECK(percid_buckets_read(seconds, counts, 3, &sum) == 3);
    CHECK(counts[0] == 1 && counts[1] == 1 && counts[2] == 2 && sum == 20.6);

    page = render(registry, PERCID_FORMAT_TEXT);
    CHECK(strcmp(page, expected) == 0);
    free(page);
    page = render(registry, PERCID_FORMAT_OPEN_METRICS);
    CHECK(strstr(page, "# UNIT served_bytes bytes\n") != NULL);
    CHECK(strcmp(page + strlen(page) - 6, "# EOF\n") == 0);
    free(page);
    CHECK(percid_registry_destroy(registry) == 0);
    CHECK(percid_registry_destroy(registry) == -EBADF);
    CHECK(percid_family_counter(served, get, 1, &bytes) == -EBADF && bytes == NULL);
    CHECK(percid_registry_render(registry, PERCID_FORMAT_TEXT, NULL, 0) == -EBADF);
}

/* Whatever the room, what is there is whole lines, and nothing is written behind it. */
static void out_of_space(void)
{
    percid_registry *registry;
    char memory[512], *page;
    size_t whole;
    CHECK(percid_registry_create(&registry) == 0);
    percid_counter_add(counter(family(registry, PERCID_METRIC_COUNTER, "a", 2), "x", "y"), 12345678);
    percid_counter_add(counter(family(registry, PERCID_METRIC_COUNTER, "b", 2), "x", "y"), 87654321);
    page = render(registry, PERCID_FORMAT_OPEN_METRICS);
    whole = strlen(page);
    CHECK(whole > 100 && whole + 10 < sizeof memory);
    CHECK(percid_registry_render(registry, PERCID_FORMAT_OPEN_METRICS, NULL, 0) == (int64_t)whole);
    for (size_t size = 0; size < whole + 10; size++) {
        size_t written;
        memset(memory, 0x55, sizeof memory);
        CHECK(percid_registry_render(registry, PERCID_FORMAT_OPEN_METRICS, memory, size) == (int64_t)whole);
        CHECK((unsigned char)memory[size] == 0x55);
        if (size == 0) {
            continue;
        }
        written = strlen(memory);
        CHECK(written < size && strncmp(memory, page, written) == 0);
        CHECK(written == 0 || memory[written - 1] == '\n');
        CHECK((strstr(memory, "# EOF\n") != NULL) == (size > whole));
    }
    free(page);
    CHECK(percid_registry_destroy(registry) == 0);
}

struct parts {
    char *text;
    size_t length;
    int left;
};

static int take(const char *text, size_t length, void *argument)
{
    struct parts *const parts = (struct parts *)argument;
    if (parts->left-- == 0) {
        return -EPIPE;
    }
    CHECK(length > 0 && text[length - 1] == '\n');
    parts->text = (char *)realloc(parts->text, parts->length + length + 1);
    memcpy(parts->text + parts->length, text, length);
    parts->length += length;
    parts->text[parts->length] = 0;
    return 0;
}

static void in_parts(void)
{
    struct parts parts = {NULL, 0, 1000};
    percid_registry *registry;
    percid_family *many;
    char *page;
    CHECK(percid_registry_create(&registry) == 0);
    many = family(registry, PERCID_METRIC_COUNTER, "a", 2);
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        percid_counter_add(counter(many, name, ""), i);
    }
    page = render(registry, PERCID_FORMAT_TEXT);
    CHECK(percid_registry_write(registry, PERCID_FORMAT_TEXT, take, &parts) == 0);
    CHECK(parts.left < 998 && strcmp(parts.text, page) == 0);
    parts.left = 1;
    CHECK(percid_registry_write(registry, PERCID_FORMAT_TEXT, take, &parts) == -EPIPE);
    free(parts.text);
    free(page);
    CHECK(percid_registry_write(registry, 0, take, &parts) == -EINVAL);
    CHECK(percid_registry_write(registry, PERCID_FORMAT_TEXT, NULL, NULL) == -EINVAL);
    CHECK(percid_registry_destroy(registry) == 0);
}

/* The error, and whether what is said of it begins so. */
static int refusal_with(percid_registry *registry, percid_family_settings *settings, const char *said)
{
    percid_family *made = (percid_family *)(void *)registry;
    char why[200] = "before";
    settings->why = why;
    settings->why_size = sizeof why;
    const int answer = percid_family_create(&made, registry, settings, sizeof *settings);
    CHECK((answer == 0) == (made != NULL) && (answer == 0) == (why[0] == '\0'));
    CHECK(strncmp(why, said, strlen(said)) == 0);
    settings->why_size = 5;
    CHECK(percid_family_create(&made, registry, settings, sizeof *settings) == answer && strlen(why) == 4);
    settings->why = NULL;
    CHECK(percid_family_create(&made, registry, settings, sizeof *settings) == answer);
    settings->why_size = 0;
    return answer;
}

static int refusal(percid_registry *registry, percid_family_settings *settings)
{
    return refusal_with(registry, settings, "");
}

static void refusals(void)
{
    static const char *const labels[][2] = {{"a b", "c"}, {"c", "c"}, {"__a", "c"}, {NULL, "c"}};
    static const char *const names[] = {"", "5", "a-b", "a\n", "taken", "taken_total", "\xff"};
    static const int answers[] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EEXIST, -EEXIST, -EILSEQ};
    static const char *const bad[] = {"a", "\xff"}, *const nothing[] = {"a", NULL};
    static const double falling[] = {1.0, 0.5};
    percid_registry *registry;
    percid_family_settings settings;
    percid_family *taken;
    percid_counter *found;
    percid_gauge *gauge;
    char larger[sizeof settings + 8];
    CHECK(percid_registry_create(&registry) == 0);
    taken = family(registry, PERCID_METRIC_COUNTER, "taken", 2);
    memset(&settings, 0, sizeof settings);
    settings.kind = PERCID_METRIC_COUNTER;
    CHECK(refusal_with(registry, &settings, "name is NULL") == -EINVAL);
    for (size_t i = 0; i < COUNT(names); i++) {
        settings.name = names[i];
        CHECK(refusal(registry, &settings) == answers[i]);
    }
    settings.name = "good";
    settings.label_count = 2;
    CHECK(refusal_with(registry, &settings, "labels is not a list of 2 texts: ") == -EINVAL);
    settings.labels = bad;
    CHECK(refusal_with(registry, &settings, "labels[1] is not UTF-8") == -EILSEQ);
    for (size_t i = 0; i < COUNT(labels); i++) {
        settings.labels = labels[i];
        CHECK(refusal(registry, &settings) == -EINVAL);
    }
    settings.label_count = 0;
    settings.constants = instance;
    settings.constant_count = 1;
    CHECK(refusal_with(registry, &settings, "constant_count is 1: twice") == -EINVAL);
    settings.constant_count = 0;
    settings.kind = PERCID_METRIC_BUCKETS;
    settings.limits = falling;
    settings.limit_count = 2;
    CHECK(refusal_with(registry, &settings, "limits[1] is 0.5: ") == -EINVAL);
    settings.limit_count = 3000;
    CHECK(refusal_with(registry, &settings, "limits is not NULL and limit_count 3000: 2047 at most") == -EINVAL);
    settings.kind = 9;
    CHECK(refusal_with(registry, &settings, "kind is 9: one of enum percid_metric") == -EINVAL);
    /* What a later version says is refused, unless it says nothing. */
    settings.kind = PERCID_METRIC_COUNTER;
    settings.limit_count = 0;
    settings.limits = NULL;
    memset(larger, 0, sizeof larger);
    memcpy(larger, &settings, sizeof settings);
    larger[sizeof settings] = 1;
    CHECK(percid_family_create(&taken, registry, (percid_family_settings *)(void *)larger, sizeof larger) == -E2BIG);
    larger[sizeof settings] = 0;
    CHECK(percid_family_create(&taken, registry, (percid_family_settings *)(void *)larger, sizeof larger) == 0);

    taken = family(registry, PERCID_METRIC_COUNTER, "labelled", 2);
    CHECK(percid_family_counter(taken, bad, 2, &found) == -EILSEQ && found == NULL);
    CHECK(percid_family_counter(taken, nothing, 2, &found) == -EINVAL && found == NULL);
    CHECK(percid_family_counter(taken, bad, 1, &found) == -EINVAL);
    CHECK(percid_family_counter(taken, bad, 3, &found) == -EINVAL);
    CHECK(percid_family_counter(taken, NULL, 2, &found) == -EINVAL);
    CHECK(percid_family_counter(taken, instance, 2, NULL) == -EINVAL);
    CHECK(percid_family_gauge(taken, instance, 2, &gauge) == -EINVAL && gauge == NULL);
    CHECK(percid_family_series(taken) == 0);
    CHECK(percid_registry_destroy(registry) == 0);
}

/* What the threads use. */
static percid_registry *busy_registry;
static percid_family *busy_family;
static int running;

static void *count(void *name)
{
    const int thread = *(const int *)name;
    for (int i = 0; i < ROUNDS; i++) {
        char user[32];
        snprintf(user, sizeof user, "%d\"\\\n", (i * 7 + thread) % USERS);
        percid_counter_add(counter(busy_family, user, "x"), 1);
    }
    return NULL;
}

/* The sum of all samples on a page. */
static int64_t total(const char *page)
{
    int64_t sum = 0;
    while (*page != 0) {
        const char *const end = strchr(page, '\n');
        if (*page != '#') {
            const char *number = end;
            while (number[-1] != ' ') {
                number--;
            }
            sum += strtoll(number, NULL, 10);
        }
        page = end + 1;
    }
    return sum;
}

static void *read_pages(void *unused)
{
    int64_t last = 0;
    (void)unused;
    do {
        char *const page = render(busy_registry, PERCID_FORMAT_TEXT);
        const int64_t now = total(page);
        CHECK(now >= last && now <= (int64_t)THREADS * ROUNDS);
        last = now;
        free(page);
    } while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0);
    return NULL;
}

static void threads(size_t most)
{
    percid_family_settings settings;
    pthread_t counting[THREADS], reading;
    int names[THREADS];
    char *page;
    CHECK(percid_registry_create(&busy_registry) == 0);
    memset(&settings, 0, sizeof settings);
    settings.kind = PERCID_METRIC_COUNTER;
    settings.name = "hits";
    settings.labels = method_and_status;
    settings.label_count = 2;
    settings.most = most;
    settings.overflow = "rest";
    CHECK(percid_family_create(&busy_family, busy_registry, &settings, sizeof settings) == 0);
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    CHECK(pthread_create(&reading, NULL, read_pages, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        names[i] = i;
        CHECK(pthread_create(&counting[i], NULL, count, &names[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(counting[i], NULL) == 0);
    }
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    CHECK(pthread_join(reading, NULL) == 0);
    page = render(busy_registry, PERCID_FORMAT_TEXT);
    CHECK(total(page) == (int64_t)THREADS * ROUNDS);
    if (most < USERS) {
        CHECK(percid_family_series(busy_family) == (int64_t)most + 1);
        CHECK(percid_family_refused(busy_family) > 0);
        CHECK(percid_counter_sum(counter(busy_family, "rest", "rest"))
              == (int64_t)percid_family_refused(busy_family));
    } else {
        CHECK(percid_family_series(busy_family) == USERS && percid_family_refused(busy_family) == 0);
    }
    free(page);
    CHECK(percid_registry_destroy(busy_registry) == 0);
}

static void formats(void)
{
    CHECK(strcmp(percid_format_content_type(PERCID_FORMAT_TEXT), "text/plain; version=0.0.4; charset=utf-8") == 0);
    CHECK(strstr(percid_format_content_type(PERCID_FORMAT_OPEN_METRICS), "openmetrics-text; version=1.0.0") != NULL);
    CHECK(percid_format_content_type(0) == NULL);
    CHECK(percid_format_accepted(NULL) == PERCID_FORMAT_TEXT);
    CHECK(percid_format_accepted("text/plain;q=0.5, application/openmetrics-text") == PERCID_FORMAT_OPEN_METRICS);
}

int main(void)
{
    pages();
    out_of_space();
    in_parts();
    refusals();
    threads(LIMIT);
    threads(PERCID_UNBOUNDED);
    formats();
    puts("ok");
    return 0;
}
