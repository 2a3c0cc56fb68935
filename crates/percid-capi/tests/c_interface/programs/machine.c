/* Sources, the table's activity, an ID's memory and the machine, as a program sees them. */
#include <errno.h>
#include <string.h>

#include <percid.h>

#include "check.h"

/* What a program of a later version of the interface has: more members at the end. */
struct later_machine {
    percid_machine known;
    uint64_t unknown[4];
};

static percid_counter counter = PERCID_COUNTER_INIT;

static void sources(void)
{
    char line[256];
    for (int source = PERCID_SOURCE_KERNEL; source <= PERCID_SOURCE_ATOMIC; source++) {
        percid_counter made = PERCID_COUNTER_INIT;
        const int why = percid_source_unavailable(source);
        const int result = percid_source_prepare(source);
        const size_t length = percid_source_reason(source, line, sizeof line);
        CHECK(percid_source_by_name(percid_source_name(source)) == source);
        CHECK(length == strlen(line) && percid_source_reason(source, NULL, 0) == length);
        printf("%s: %d %d %s\n", percid_source_name(source), why, result, line);
        CHECK((why == PERCID_SOURCE_ERROR_NONE) == (result == 0) && why >= 0);
        CHECK((length == 0) == (result == 0) && result <= 0);
        CHECK(percid_counter_with_source(&made, source) == result);
        if (result == 0) {
            const int id = percid_source_current_id(source);
            percid_counter_add(&made, 1);
            CHECK(id >= 0 || id == -EAGAIN);
            CHECK((uint32_t)id < percid_source_id_count(source));
        }
        percid_counter_destroy(&made);
    }
    CHECK(percid_source_prepare(PERCID_SOURCE_ATOMIC) == 0);
    CHECK(percid_source_prepare(0) == -EINVAL && percid_source_prepare(4) == -EINVAL);
    CHECK(percid_source_unavailable(4) == -EINVAL && percid_source_current_id(4) == -EINVAL);
    CHECK(percid_source_id_count(4) == 0);
    CHECK(percid_source_reason(4, line, sizeof line) == 0 && line[0] == 0);
    CHECK(percid_source_by_name(NULL) == -EINVAL && percid_source_by_name("mutex") == -EINVAL);
}

static void choice(void)
{
    const enum percid_source source = percid_init();
    const enum percid_selection_reason why = percid_selection_reason_read();
    if (getenv("PERCID_SOURCE") != NULL && strcmp(percid_source_name((int)source), getenv("PERCID_SOURCE")) == 0) {
        CHECK(why == PERCID_SELECTION_REASON_REQUESTED);
    } else {
        CHECK(why == (source == PERCID_SOURCE_TABLE ? PERCID_SELECTION_REASON_TABLE_AVAILABLE : PERCID_SELECTION_REASON_TABLE_UNAVAILABLE));
    }
    CHECK((why == PERCID_SELECTION_REASON_TABLE_UNAVAILABLE) <= (percid_source_prepare(PERCID_SOURCE_TABLE) != 0));
}

static void activity(void)
{
    percid_table_stats before, after;
    int result;
    percid_counter_add(&counter, 1);
    result = percid_table_stats_read(&before, sizeof before);
    CHECK(percid_table_stats_read(NULL, sizeof before) == -EINVAL);
    CHECK(percid_table_stats_read(&before, 0) == -EINVAL);
    if (percid_init() != PERCID_SOURCE_TABLE) {
        /* sources() may have used it. */
        CHECK(result == 0 || result == -EAGAIN);
        return;
    }
    CHECK(result == 0 && before.assigned >= 1 && before.ids_held >= 1);
    CHECK(before.stolen <= before.assigned && before.id_bound >= 1);
    percid_compact_ids();
    CHECK(percid_table_stats_read(&after, sizeof after) == 0);
    CHECK(after.assigned >= before.assigned && after.eviction_fences >= before.eviction_fences);
}

static void kernel_numbers(void)
{
    percid_kernel_numbers now;
    int cpu = 77;
    const int result = percid_kernel_numbers_read(&now, sizeof now);
    CHECK(percid_kernel_numbers_read(NULL, sizeof now) == -EINVAL);
    CHECK(percid_kernel_numbers_read(&now, 0) == -EINVAL);
    if (result == -EAGAIN) {
        return;
    }
    CHECK(result == 0 && now.cpu >= 0 && now.cpu < 8192);
    CHECK(now.node >= -1 && now.mm_cid >= -1 && (now.node == -1) == (now.mm_cid == -1));
    CHECK(percid_kernel_numbers_read((percid_kernel_numbers *)&cpu, sizeof cpu) == 0 && cpu >= 0);
}

static void fences(void)
{
    const int asymmetric = percid_fence_is_asymmetric();
    CHECK(asymmetric == 0 || asymmetric == 1);
    /* The second one knows the answer. */
    percid_fence_light();
    percid_fence_light();
    errno = 77;
    CHECK(percid_fence_all() == 0 && percid_fence_cpu(0) == 0 && errno == 77);
    CHECK(percid_fence_is_asymmetric() == asymmetric);
}

static void memory(void)
{
    percid_range ranges[16];
    size_t count, bytes = 0;
    percid_counter_add(&counter, 1);
    count = percid_id_memory(0, NULL, 0);
    CHECK(count >= 1 && percid_id_memory(0, ranges, 16) >= count);
    for (size_t i = 0; i < count && i < 16; i++) {
        CHECK(ranges[i].start != NULL && (uintptr_t)ranges[i].start % 4096 == 0);
        bytes += ranges[i].bytes;
    }
    CHECK(bytes >= 4096);
    /* Another ID's is elsewhere. */
    CHECK(percid_id_memory(1, ranges + 8, 1) >= 1);
    CHECK(ranges[8].start != ranges[0].start && ranges[8].bytes == ranges[0].bytes);
}

static void machine(void)
{
    percid_machine now;
    struct later_machine later;
    uint32_t part;
    memset(&later, 0x77, sizeof later);
    CHECK(percid_machine_read(&now, sizeof now) == 0);
    CHECK(percid_machine_read((percid_machine *)&later, sizeof later) == 0);
    CHECK(strcmp(later.known.kernel_release, now.kernel_release) == 0);
    CHECK(later.unknown[0] == 0 && later.unknown[3] == 0);
    CHECK(percid_machine_read((percid_machine *)&part, sizeof part) == 0);
    CHECK(memcmp(&part, now.kernel_release, sizeof part) == 0);
    CHECK(percid_machine_read(NULL, sizeof now) == -EINVAL && percid_machine_read(&now, 0) == -EINVAL);
    printf("Linux %s on %s, %s; %u of %u CPUs; rseq %d, mode %d, generation %d\n", now.kernel_release, now.arch,
           now.cpu_model, now.allowed_cpus, now.possible_cpus, now.registration, now.rseq_mode, now.generation);
    CHECK(strlen(now.kernel_release) >= 3 && strlen(now.arch) >= 3);
    CHECK(now.registration >= PERCID_REGISTRATION_LIBC && now.registration < PERCID_REGISTRATION_OTHER);
    CHECK((now.registration_error != 0) == (now.registration == PERCID_REGISTRATION_REFUSED));
    CHECK((now.rseq_registered_size >= 32) == (now.rseq_mode != PERCID_RSEQ_MODE_NONE));
    CHECK((now.rseq_fields & PERCID_RSEQ_FIELD_CPU_ID) != 0 || now.rseq_registered_size == 0);
    CHECK(now.membarrier_rseq == (int)(now.membarrier_commands >> 7 & 1));
    CHECK(now.allowed_cpus >= 1 && now.possible_cpus >= now.allowed_cpus);
    CHECK(now.last_possible_cpu + 1 >= now.possible_cpus);
    if (percid_source_prepare(PERCID_SOURCE_KERNEL) == 0) {
        CHECK((now.rseq_fields & PERCID_RSEQ_FIELD_MM_CID) != 0);
    }
}

static void cpus(void)
{
    percid_machine now;
    percid_cpu found[64];
    /* A program of an earlier version, which knew the number alone, and one of a later. */
    struct {
        percid_cpu known;
        int unknown;
    } later[64];
    uint32_t numbers[64];
    uint32_t allowed = 0;
    const size_t count = percid_machine_cpus(NULL, sizeof *found, 0);
    memset(later, 0x77, sizeof later);
    CHECK(percid_machine_read(&now, sizeof now) == 0);
    CHECK(count == now.possible_cpus);
    CHECK(percid_machine_cpus(found, sizeof *found, 64) == count);
    CHECK(percid_machine_cpus((percid_cpu *)numbers, sizeof *numbers, 64) == count);
    CHECK(percid_machine_cpus((percid_cpu *)later, sizeof *later, 64) == count);
    for (size_t i = 0; i < count && i < 64; i++) {
        CHECK(i == 0 || found[i - 1].number < found[i].number);
        CHECK(numbers[i] == found[i].number);
        CHECK(later[i].known.number == found[i].number && later[i].unknown == 0);
        CHECK(found[i].core <= (int32_t)found[i].number && found[i].core >= -1 && found[i].node >= -1);
        allowed += (uint32_t)found[i].allowed;
    }
    CHECK(count > 64 || allowed == now.allowed_cpus);
}

static void probe(void)
{
    percid_probe_report seen;
    const int result = percid_machine_probe(20, &seen, sizeof seen);
    CHECK(percid_machine_probe(20, NULL, sizeof seen) == -EINVAL && percid_machine_probe(20, &seen, 0) == -EINVAL);
    if (result == 0) {
        const uint64_t ignored = seen.fences.ignored + seen.fences_of_one_cpu.ignored + seen.preemptions.ignored;
        CHECK((seen.verdict == PERCID_VERDICT_BAD) == (ignored > 0));
        CHECK(seen.verdict != PERCID_VERDICT_GOOD || seen.fences.aborted > 0);
    }
    printf("probe: %d, verdict %d\n", result, result == 0 ? seen.verdict : -1);
}

/* The constant that the header states is what snapshots keep to. */
static void relative_error(void)
{
    percid_histogram histogram = PERCID_HISTOGRAM_INIT;
    percid_snapshot *snapshot;
    const uint64_t value = UINT64_C(123456789123);
    uint64_t median;
    double off;
    percid_histogram_record(&histogram, value);
    CHECK(percid_histogram_snapshot(&histogram, &snapshot) == 0);
    CHECK(percid_snapshot_quantile(snapshot, 0.5, &median) == 0);
    off = ((double)median - (double)value) / (double)value;
    CHECK(off <= PERCID_HISTOGRAM_RELATIVE_ERROR && off >= -PERCID_HISTOGRAM_RELATIVE_ERROR);
    percid_snapshot_free(snapshot);
    percid_histogram_destroy(&histogram);
}

int main(void)
{
    choice();
    errno = 77;
    sources();
    activity();
    kernel_numbers();
    fences();
    memory();
    machine();
    cpus();
    CHECK(errno == 77);
    probe();
    relative_error();
    percid_counter_destroy(&counter);
    puts("ok");
    return 0;
}
