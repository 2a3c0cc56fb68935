/*
 * What the inline critical sections compute, without a kernel: this file stands for the library,
 * and gives them an rseq area, a table and memory of its own. Runs on any machine, emulated ones
 * too.
 */
#include <string.h>
#include <sys/mman.h>

#include <percid.h>

#include "check.h"

enum { STRIDE = 1 << 24, SLOTS = 6, CELL = 64, BUCKETS = 3776 };

struct area {
    uint32_t cpu_id_start;
    int32_t cpu_id;
    uint64_t rseq_cs;
    uint32_t flags, node_id, mm_cid, padding;
};

struct fast_path {
    intptr_t area;
    uint32_t *table;
    uint32_t kernel_limit;
};

struct descriptor {
    uint32_t version, flags;
    uint64_t start, length, abort;
};

static struct fast_path fast_path __attribute__((aligned(64)));

static __thread struct area area __attribute__((aligned(32)));
static uint32_t entries[2 + 8];
static char *slots;
static int64_t slow;

static void counter_add_slow(percid_counter *counter, int64_t n)
{
    (void)counter;
    slow += n;
}

static void histogram_record_slow(percid_histogram *histogram, uint64_t value, uint64_t times)
{
    (void)histogram;
    (void)value;
    slow += (int64_t)times;
}

const struct percid_interface percid_interface_1 = {
    .fast_path = &fast_path,
    .counter_add_slow = counter_add_slow,
    .histogram_record_slow = histogram_record_slow,
};

static char *thread_pointer(void)
{
    char *pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#elif defined(__riscv)
    __asm__("mv %0, tp" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

static int64_t *word(int slot)
{
    return (int64_t *)(slots + (size_t)slot * STRIDE + CELL);
}

/* Adds, and checks that slot `expected` (0: the slow path, nothing else) got it. */
static void add(int mark, int64_t n, int expected)
{
    percid_counter counter = {(uint64_t)(uintptr_t)word(0) + (uint64_t)mark};
    int64_t before[SLOTS], slow_before = slow;
    for (int slot = 0; slot < SLOTS; slot++) {
        before[slot] = *word(slot);
    }
    percid_counter_add(&counter, n);
    for (int slot = 1; slot < SLOTS; slot++) {
        CHECK(*word(slot) - before[slot] == (slot == expected ? n : 0));
    }
    CHECK(*word(0) == 0);
    CHECK(slow - slow_before == (expected == 0 ? n : 0));
}

/* Records, and checks that the bucket's word of this ID got it: the one of that number. */
static void record(int mark, uint64_t value, int id, unsigned bucket)
{
    percid_histogram histogram = {(uint64_t)(uintptr_t)word(0) + (uint64_t)mark};
    int64_t *const found = word(id + 1) + bucket;
    const int64_t before = *found, slow_before = slow;
    CHECK(bucket < BUCKETS);
    percid_histogram_record(&histogram, value);
    percid_histogram_record_many(&histogram, value, 5);
    CHECK(*found - before == 6 && slow == slow_before);
}

static void records(void)
{
    const struct {
        uint64_t value;
        unsigned bucket;
    } known[] = {{0, 0},     {1, 1},     {127, 127}, {128, 128}, {129, 128}, {130, 129},
                 {255, 191}, {256, 192}, {259, 192}, {260, 193}, {UINT64_MAX, BUCKETS - 1}};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        area.mm_cid = 2;
        record(2, known[i].value, 2, known[i].bucket);
        area.cpu_id = 1;
        fast_path.table[1] = 4;
        record(1, known[i].value, 3, known[i].bucket);
    }
    /* Not used yet. */
    slow = 0;
    percid_histogram unused = PERCID_HISTOGRAM_INIT;
    percid_histogram_record(&unused, UINT64_MAX);
    CHECK(slow == 1);
}

/* The descriptor that the section declared last. */
static void check_descriptor(void)
{
    const struct descriptor *declared = (const struct descriptor *)(uintptr_t)area.rseq_cs;
    uint32_t signature;
    CHECK(area.rseq_cs != 0 && area.rseq_cs % 32 == 0);
    CHECK(declared->version == 0 && declared->flags == 0);
    CHECK(declared->length > 8 && declared->length < 64);
    CHECK(declared->abort - declared->start >= declared->length);
    memcpy(&signature, (const char *)(uintptr_t)declared->abort - 4, 4);
#if defined(__x86_64__)
    CHECK(signature == 0x53053053);
#elif defined(__riscv)
    CHECK(signature == 0xf1401073);
#else
    CHECK(signature == 0xd428bc00);
#endif
}

int main(void)
{
    const int64_t amounts[] = {1, -1, 0, 77, 4095, 4096, INT64_C(1) << 31, INT64_C(1) << 40, -(INT64_C(1) << 62)};
    uint32_t *const table = entries + 2;
    void *memory = mmap(NULL, (size_t)SLOTS * STRIDE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    slots = (char *)memory;
    fast_path.area = (char *)&area - thread_pointer();
    fast_path.table = table;
    fast_path.kernel_limit = 4;

    for (unsigned i = 0; i < sizeof amounts / sizeof *amounts; i++) {
        const int64_t n = amounts[i];
        add(0, n, 0);
        add(4, n, 0);
        for (uint32_t id = 0; id < 4; id++) {
            area.mm_cid = id;
            area.rseq_cs = 0;
            add(2, n, (int)id + 1);
            check_descriptor();
        }
        area.mm_cid = 4;
        add(2, n, 0);
        area.mm_cid = UINT32_MAX;
        add(2, n, 0);
        for (int cpu = 0; cpu < 8; cpu++) {
            const uint32_t entry = (uint32_t)((cpu * 3) % 5);
            table[cpu] = entry;
            area.cpu_id = cpu;
            area.rseq_cs = 0;
            add(1, n, (int)entry);
            check_descriptor();
        }
        /* Not registered, registration failed: the entries in front of the table. */
        area.cpu_id = -1;
        add(1, n, 0);
        area.cpu_id = -2;
        add(1, n, 0);
    }
    records();
    puts("ok");
    return 0;
}
