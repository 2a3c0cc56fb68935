/*
 * A library that owns the thread's only registration for rseq, as allocators do: it registers each thread when that
 * first allocates, keeps state of its own in cpu_id_start, and counts its calls by critical sections.
 *
 * OWNER_NAMED      the area has the name by which libraries share it
 * OWNER_SIGNATURE  the signature it is registered with, if not everybody's
 *
 * With the environment variable OWNER_SPARING only every other thread is registered. If a count was lost, the program ends with exit status 99.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/rseq.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "written for x86-64"
#endif

#ifndef OWNER_SIGNATURE
#define OWNER_SIGNATURE 0x53053053
#endif

#define AREA __thread struct rseq __rseq_abi __attribute__((tls_model("initial-exec")))
#ifdef OWNER_NAMED
AREA = {.cpu_id = RSEQ_CPU_ID_UNINITIALIZED};
#else
static AREA = {.cpu_id = RSEQ_CPU_ID_UNINITIALIZED};
#endif

enum { CPUS = 8192 };
static struct { long count; char padding[56]; } counts[CPUS];
static atomic_long total;
static atomic_uint threads;
static __thread int visited __attribute__((tls_model("initial-exec")));
/* Set when the program's own code begins: before that the C library is not ready. */
static atomic_int open_for_business;
static int sparing;

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

/* Another area is registered. By its name everybody finds this one, so allocators rely on it and abort. */
static void refused(void)
{
#ifdef OWNER_NAMED
    abort();
#endif
}

/* Adds one to this CPU's count; 0 if the section was aborted. */
static int count_here(void)
{
    long done = 0;
    void *area = &__rseq_abi;

    __asm__ volatile(
        ".pushsection __owner_rseq_cs, \"aw\"\n"
        ".balign 32\n"
        "9: .long 0, 0\n"
        ".quad 2f, 3f - 2f, 4f\n"
        ".popsection\n"
        "lea 9b(%%rip), %%rax\n"
        "mov %%rax, 8(%[area])\n"
        "2:\n"
        "mov 4(%[area]), %%eax\n"
        "shl $6, %%rax\n"
        "add %[counts], %%rax\n"
        "mov (%%rax), %%rcx\n"
        "inc %%rcx\n"
        "mov %%rcx, (%%rax)\n"
        "3:\n"
        "mov $1, %[done]\n"
        ".pushsection .text.owner_abort, \"ax\"\n"
        ".byte 0x0f, 0xb9, 0x3d\n"
        ".long %c[signature]\n"
        "4: jmp 5f\n"
        ".popsection\n"
        "5:\n"
        : [done] "+r"(done)
        : [area] "r"(area), [counts] "r"(counts), [signature] "i"(OWNER_SIGNATURE)
        : "rax", "rcx", "memory", "cc");
    return (int)done;
}

static void visit(void)
{
    visited = 1;
    if (atomic_fetch_add(&threads, 1) % 2 == 0 && sparing)
        return;
    if ((int)__rseq_abi.cpu_id >= 0) /* another user of the area was here first */
        return;
    int before = errno;
    if (syscall(SYS_rseq, &__rseq_abi, sizeof __rseq_abi, 0, OWNER_SIGNATURE) != 0)
        refused();
    errno = before;
}

static void count(void)
{
    if (!atomic_load(&open_for_business))
        return;
    if (!visited)
        visit();
    if ((int)__rseq_abi.cpu_id < 0)
        return;
    /* A mark that the kernel removes when it writes the field. */
    *(volatile uint32_t *)&__rseq_abi.cpu_id_start |= 0x80000000u;
    while (!count_here())
        ;
    atomic_fetch_add(&total, 1);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void free(void *memory)
{
    count();
    __libc_free(memory);
}

__attribute__((constructor(101))) static void begin(void)
{
    sparing = getenv("OWNER_SPARING") != NULL;
    atomic_store(&open_for_business, 1);
    free(malloc(1));
}

__attribute__((destructor(101))) static void end(void)
{
    long sum = 0;

    atomic_store(&open_for_business, 0);
    for (int cpu = 0; cpu < CPUS; cpu++)
        sum += counts[cpu].count;
    if (getenv("OWNER_TELLS") != NULL)
        fprintf(stderr, "owner: threads=%u counted=%ld lost=%ld\n", threads, total, total - sum);
    if (sum != total)
        _exit(99);
}
