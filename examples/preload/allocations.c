/*
 * Counts the allocations of any program: percid_counter and percid_histogram below malloc().
 *
 *     cc -O2 -fPIC -shared allocations.c $(pkg-config --cflags --libs percid) -o liballocations.so
 *     LD_PRELOAD=./liballocations.so ls
 *
 * This library takes the place of malloc() and its kin, counts what they are asked for and hands it
 * on. When the program ends, it prints what was allocated and freed by size class.
 *
 * Counting below malloc() is possible because percid_counter_add() and percid_histogram_record() are
 * async-signal-safe: they never allocate, wait or take a lock, so they cannot come back here. What
 * else has to be minded:
 *
 * - The dynamic linker and the C library allocate before this library is initialised. Until then plain
 *   variables count.
 * - dlsym(), which finds the next malloc(), may allocate itself. Until it has answered, a small array
 *   is the heap.
 * - A child of fork() begins with its parent's counts. It forgets them, so that it reports its own.
 * - A program may close standard error before it ends. A duplicate is kept.
 *
 * There is no report of a process that ends by _exit(), by a signal, or by executing another program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <percid.h>

/* Class k has the blocks of 2^(k-1)+1 to 2^k usable bytes; the last one also all larger ones. */
enum { CLASSES = 41 };

static percid_counter allocated[CLASSES], allocated_bytes[CLASSES];
static percid_counter freed[CLASSES], freed_bytes[CLASSES];
/* Of what was asked for, which is less than what is usable. */
static percid_histogram requested;

/* Before percid may be used. */
static atomic_bool ready;
static atomic_llong early_allocated[CLASSES], early_allocated_bytes[CLASSES];
static atomic_llong early_freed[CLASSES], early_freed_bytes[CLASSES];

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);

static int report_to = -1;

/* The heap until dlsym() has answered: handed out once, never given back. */
static alignas(max_align_t) char early_heap[1 << 14];
static atomic_size_t early_used;

static bool is_early(const void *block)
{
    return (uintptr_t)block - (uintptr_t)early_heap < sizeof early_heap;
}

static void *early_block(size_t size)
{
    if (size > sizeof early_heap) {
        return NULL;
    }
    /* The size is in front of the block. */
    const size_t step = (size + 2 * alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    const size_t start = atomic_fetch_add(&early_used, step + alignof(max_align_t));
    if (start + step + alignof(max_align_t) > sizeof early_heap) {
        errno = ENOMEM;
        return NULL;
    }
    char *const block = early_heap + start + alignof(max_align_t);
    memcpy(block - sizeof size, &size, sizeof size);
    return block;
}

static size_t usable(void *block)
{
    size_t size;
    if (!is_early(block)) {
        return malloc_usable_size(block);
    }
    memcpy(&size, (char *)block - sizeof size, sizeof size);
    return size;
}

/* Finds the functions behind this library's. False while it is at it. */
static bool found_next(void)
{
    static atomic_bool begun;
    static atomic_bool done;
    if (atomic_load_explicit(&done, memory_order_acquire)) {
        return true;
    }
    /* The first call comes before there are threads; what comes meanwhile is of this thread. */
    if (atomic_exchange(&begun, true)) {
        return false;
    }
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    atomic_store_explicit(&done, true, memory_order_release);
    return true;
}

static unsigned class_of(size_t size)
{
    const unsigned bits = size < 2 ? 0 : 64 - (unsigned)__builtin_clzll(size - 1);
    return bits < CLASSES ? bits : CLASSES - 1;
}

static void count(percid_counter *counter, atomic_llong *early, int64_t n)
{
    if (atomic_load_explicit(&ready, memory_order_acquire)) {
        percid_counter_add(counter, n);
    } else {
        atomic_fetch_add_explicit(early, n, memory_order_relaxed);
    }
}

static void *count_allocation(void *block, size_t size)
{
    if (block != NULL) {
        const size_t bytes = usable(block);
        const unsigned class = class_of(bytes);
        count(&allocated[class], &early_allocated[class], 1);
        count(&allocated_bytes[class], &early_allocated_bytes[class], (int64_t)bytes);
        if (atomic_load_explicit(&ready, memory_order_acquire)) {
            percid_histogram_record(&requested, size);
        }
    }
    return block;
}

static void count_free(size_t bytes)
{
    const unsigned class = class_of(bytes);
    count(&freed[class], &early_freed[class], 1);
    count(&freed_bytes[class], &early_freed_bytes[class], (int64_t)bytes);
}

void *malloc(size_t size)
{
    return count_allocation(found_next() ? next_malloc(size) : early_block(size), size);
}

void *calloc(size_t number, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    /* The early heap has never been used. */
    return count_allocation(found_next() ? next_calloc(number, size) : early_block(bytes), bytes);
}

void *realloc(void *block, size_t size)
{
    if (block == NULL) {
        return malloc(size);
    }
    const size_t before = usable(block);
    void *moved;
    if (is_early(block) || !found_next()) {
        moved = found_next() ? next_malloc(size) : early_block(size);
        if (moved != NULL) {
            memcpy(moved, block, before < size ? before : size);
        }
    } else {
        moved = next_realloc(block, size);
    }
    /* With size 0 the block is freed. */
    if (moved != NULL || size == 0) {
        count_free(before);
    }
    return count_allocation(moved, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return count_allocation(found_next() ? next_aligned_alloc(alignment, size) : NULL, size);
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    const int error = found_next() ? next_posix_memalign(block, alignment, size) : ENOMEM;
    if (error == 0) {
        count_allocation(*block, size);
    }
    return error;
}

void free(void *block)
{
    if (block == NULL) {
        return;
    }
    count_free(usable(block));
    if (!is_early(block) && found_next()) {
        next_free(block);
    }
}

static void forget(void)
{
    for (unsigned class = 0; class < CLASSES; class++) {
        percid_counter_take(&allocated[class]);
        percid_counter_take(&allocated_bytes[class]);
        percid_counter_take(&freed[class]);
        percid_counter_take(&freed_bytes[class]);
    }
    percid_histogram_destroy(&requested);
}

/* libpercid and the C library are initialised before what needs them. */
__attribute__((constructor)) static void begin(void)
{
    report_to = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    percid_init();
    /* Before the first thread, and so before the first fork. */
    pthread_atfork(NULL, NULL, forget);
    for (unsigned class = 0; class < CLASSES; class++) {
        percid_counter_add(&allocated[class], atomic_exchange(&early_allocated[class], 0));
        percid_counter_add(&allocated_bytes[class], atomic_exchange(&early_allocated_bytes[class], 0));
        percid_counter_add(&freed[class], atomic_exchange(&early_freed[class], 0));
        percid_counter_add(&freed_bytes[class], atomic_exchange(&early_freed_bytes[class], 0));
    }
    atomic_store_explicit(&ready, true, memory_order_release);
}

static void print_line(const char *name, const int64_t value[4])
{
    dprintf(report_to, "%12s %12" PRId64 " %15" PRId64 " %12" PRId64 " %12" PRId64 " %15" PRId64 "\n", name,
            value[0], value[1], value[2], value[0] - value[2], value[1] - value[3]);
}

__attribute__((destructor)) static void report(void)
{
    int64_t total[4] = {0};
    dprintf(report_to, "allocations of process %ld\n%12s %12s %15s %12s %12s %15s\n", (long)getpid(), "up to",
            "allocated", "bytes", "freed", "left", "bytes left");
    for (unsigned class = 0; class < CLASSES; class++) {
        const percid_counter *const counters[] = {&allocated[class], &allocated_bytes[class], &freed[class],
                                                  &freed_bytes[class]};
        int64_t value[4];
        for (unsigned i = 0; i < 4; i++) {
            total[i] += value[i] = percid_counter_sum(counters[i]);
        }
        if (value[0] != 0 || value[2] != 0) {
            char name[32];
            snprintf(name, sizeof name, "%" PRIu64, UINT64_C(1) << class);
            print_line(name, value);
        }
    }
    print_line("all", total);
    percid_snapshot *snapshot;
    uint64_t median, most;
    if (percid_histogram_snapshot(&requested, &snapshot) == 0) {
        if (percid_snapshot_quantile(snapshot, 0.5, &median) == 0 &&
            percid_snapshot_quantile(snapshot, 0.99, &most) == 0) {
            dprintf(report_to, "half of the requests were for up to %" PRIu64 " bytes, 99 %% for up to %" PRIu64 "\n",
                    median, most);
        }
        percid_snapshot_free(snapshot);
    }
}
