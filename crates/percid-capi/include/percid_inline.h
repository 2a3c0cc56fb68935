/*
 * percid_inline.h: what programs have inline. Part of percid.h, which includes it.
 *
 *     void percid_counter_add(percid_counter *counter, int64_t n);
 *         Adds n, which may be negative, to this CPU's copy of the counter.
 *
 *     void percid_histogram_record(percid_histogram *histogram, uint64_t value);
 *     void percid_histogram_record_many(percid_histogram *histogram, uint64_t value, uint64_t times);
 *         Counts a value, or counts it `times` times in one step.
 *
 * On any thread, in any signal handler; the pointers must not be NULL. An increment takes 16 to 20
 * instructions on x86-64, two of them stores, none locked, no call; a record some 10 more. With
 * PERCID_SOURCE_ATOMIC it is a call and one locked instruction.
 *
 * Inline with gcc 5 or clang 9 and later on x86-64 (LP64) and 64-bit Arm (little-endian); the call
 * of a function otherwise, or if PERCID_NO_INLINE is defined. Objects compiled either way work
 * together. Code that is compiled with -masm=intel has to define it.
 */
#ifndef PERCID_INLINE_H
#define PERCID_INLINE_H

#ifndef PERCID_H
#error "include percid.h, not this file"
#endif

#if defined(__cplusplus)
#define PERCID_CAST(type, value) static_cast<type>(value)
#else
#define PERCID_CAST(type, value) ((type)(value))
#endif

#if PERCID_ADDS_INLINE

/*
 * The critical sections, in the same words as the library's own (crates/percid/src/critical, which
 * proves them).
 *
 * A section declares itself by storing its descriptor's address in the rseq area, reads the index
 * of the memory that this CPU owns, and commits with one store, its last instruction. If the thread
 * is preempted, moved, interrupted by a signal or fenced before that, the kernel resumes it at the
 * abort pad, behind the signature; nothing has happened then, and the slow path tries again.
 *
 * What they read is the fast path's words: at 0 the distance from the thread pointer to the rseq
 * area, at 8 the table from CPU to ID, at 16 the number of kernel IDs that are admitted. Their
 * address is in the library's table (percid_interface.h), at 16. One statement gets it from there,
 * which is not volatile, so compilers take it out of loops.
 *
 * The "?" of the sections' flags puts descriptor and abort pad into the group of the function that
 * surrounds them: when the linker keeps one copy of a C++ inline function, it drops the descriptors
 * of the others too.
 */

#if defined(__x86_64__)

#define PERCID_FAST_PATH_ADDRESS "movq percid_interface_1@GOTPCREL(%%rip), %0\n\tmovq 16(%0), %0"

/* The index, ID + 1, in rcx; the rseq area, relative to the thread pointer, is in rax. */
#define PERCID_KERNEL_INDEX                                                                                    \
    "movl %%fs:24(%%rax), %%ecx\n\t"                                                                           \
    "cmpl 16(%[fast_path]), %%ecx\n\t"                                                                         \
    "jae %l[percid_slow]\n\t"                                                                                  \
    "incl %%ecx\n\t"
#define PERCID_TABLE_INDEX                                                                                     \
    "movslq %%fs:4(%%rax), %%rcx\n\t"                                                                          \
    "movq 8(%[fast_path]), %%rax\n\t"                                                                          \
    "movl (%%rax, %%rcx, 4), %%ecx\n\t"                                                                        \
    "testl %%ecx, %%ecx\n\t"                                                                                   \
    "jz %l[percid_slow]\n\t"

/* Adds n to the word at (address - MARK) + (index << 24); leaves for percid_slow if that was
 * aborted. */
#define PERCID_ADD_SECTION(INDEX, MARK, base, address, n)                                                      \
    __asm__ goto(".pushsection __rseq_cs, \"aw?\", @progbits\n\t"                                              \
                 ".balign 32\n"                                                                                \
                 "9:\n\t"                                                                                      \
                 ".long 0, 0\n\t"             /* version, flags */                                             \
                 ".quad 2f, 3f - 2f, 4f\n\t"  /* start, length, abort */                                       \
                 ".popsection\n\t"                                                                             \
                 "movq (%[fast_path]), %%rax\n\t"                                                              \
                 "leaq 9b(%%rip), %%rcx\n\t"                                                                   \
                 "movq %%rcx, %%fs:8(%%rax)\n"                                                                 \
                 "2:\n\t"                                                                                      \
                 INDEX                                                                                         \
                 "shlq $24, %%rcx\n\t"                                                                         \
                 "addq %[cell], %%rcx\n\t"                                                                     \
                 "movq %[addend], %%rax\n\t"                                                                   \
                 "addq -" MARK "(%%rcx), %%rax\n\t"                                                            \
                 "movq %%rax, -" MARK "(%%rcx)\n"                                                              \
                 "3:\n\t"                                                                                      \
                 ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t"                                       \
                 ".byte 0x0f, 0xb9, 0x3d\n\t" /* with the signature: ud1 signature(%rip), %edi */              \
                 ".long 0x53053053\n"                                                                          \
                 "4:\n\t"                                                                                      \
                 "jmp %l[percid_slow]\n\t"                                                                     \
                 ".popsection"                                                                                 \
                 : /* no outputs, which older compilers do not allow here */                                   \
                 : [fast_path] "r"(base), [cell] "r"(address), [addend] "er"(n)                                \
                 : "rax", "rcx", "cc", "memory"                                                                \
                 : percid_slow)

#elif defined(__aarch64__)

#define PERCID_FAST_PATH_ADDRESS                                                                               \
    "adrp %0, :got:percid_interface_1\n\tldr %0, [%0, :got_lo12:percid_interface_1]\n\tldr %0, [%0, #16]"

/* The index, ID + 1, in x10; the address of the rseq area is in x9. */
#define PERCID_KERNEL_INDEX                                                                                    \
    "ldr w10, [x9, #24]\n\t"                                                                                   \
    "ldr w11, [%[fast_path], #16]\n\t"                                                                         \
    "cmp w10, w11\n\t"                                                                                         \
    "b.hs %l[percid_slow]\n\t"                                                                                 \
    "add w10, w10, #1\n\t"
#define PERCID_TABLE_INDEX                                                                                     \
    "ldrsw x10, [x9, #4]\n\t"                                                                                  \
    "ldr x11, [%[fast_path], #8]\n\t"                                                                          \
    "ldr w10, [x11, x10, lsl #2]\n\t"                                                                          \
    "cbz w10, %l[percid_slow]\n\t"

/* Adds n to the word at (address - MARK) + (index << 24); leaves for percid_slow if that was
 * aborted. A branch from the abort pad that is too far for one instruction goes through a veneer,
 * which destroys x16 and x17. */
#define PERCID_ADD_SECTION(INDEX, MARK, base, address, n)                                                      \
    __asm__ goto(".pushsection __rseq_cs, \"aw?\", @progbits\n\t"                                              \
                 ".balign 32\n"                                                                                \
                 "9:\n\t"                                                                                      \
                 ".word 0, 0\n\t"             /* version, flags */                                             \
                 ".xword 2f, 3f - 2f, 4f\n\t" /* start, length, abort */                                       \
                 ".popsection\n\t"                                                                             \
                 "ldr x10, [%[fast_path]]\n\t"                                                                 \
                 "mrs x9, tpidr_el0\n\t"                                                                       \
                 "add x9, x9, x10\n\t"                                                                         \
                 "adrp x10, 9b\n\t"                                                                            \
                 "add x10, x10, :lo12:9b\n\t"                                                                  \
                 "str x10, [x9, #8]\n"                                                                         \
                 "2:\n\t"                                                                                      \
                 INDEX                                                                                         \
                 "add x10, %[cell], x10, lsl #24\n\t"                                                          \
                 "ldur x11, [x10, #-" MARK "]\n\t"                                                             \
                 "add x11, x11, %[addend]\n\t"                                                                 \
                 "stur x11, [x10, #-" MARK "]\n"                                                               \
                 "3:\n\t"                                                                                      \
                 ".pushsection .text.rseq_abort, \"ax?\", @progbits\n\t"                                       \
                 ".inst 0xd428bc00\n"         /* the signature: brk #0x45e0 */                                 \
                 "4:\n\t"                                                                                      \
                 "b %l[percid_slow]\n\t"                                                                       \
                 ".popsection"                                                                                 \
                 : /* no outputs, which older compilers do not allow here */                                   \
                 : [fast_path] "r"(base), [cell] "r"(address), [addend] "Ir"(n)                                \
                 : "x9", "x10", "x11", "x16", "x17", "cc", "memory"                                            \
                 : percid_slow)

#endif

PERCID_INLINE __attribute__((always_inline)) const void *percid_fast_path_address(void) PERCID_NOEXCEPT
{
    const void *address;
    __asm__(PERCID_FAST_PATH_ADDRESS : "=r"(address));
    return address;
}

/*
 * Adds n to the word at address, whose lowest bits are the mark of the source of the object it
 * belongs to: 2 the kernel's IDs, 1 the table's. Returns whether it did. For the functions below.
 */
PERCID_INLINE __attribute__((always_inline)) int percid_add_fast(uint64_t address, int64_t n) PERCID_NOEXCEPT
{
    /* Here, not where it is needed: what is done in any case leaves loops. */
    const void *const fast_path = percid_fast_path_address();
    if (__builtin_expect(address & 2, 2)) {
        PERCID_ADD_SECTION(PERCID_KERNEL_INDEX, "2", fast_path, address, n);
        return 1;
    }
    if (__builtin_expect(address & 1, 1)) {
        PERCID_ADD_SECTION(PERCID_TABLE_INDEX, "1", fast_path, address, n);
        return 1;
    }
percid_slow:
    return 0;
}

/* The address of an object's memory, with the mark. Acquiring: a thread that sees a mark sees what
 * the sections of that source read. */
#define PERCID_WORD(object) __atomic_load_n(&(object)->word, __ATOMIC_ACQUIRE)

PERCID_INLINE __attribute__((always_inline)) void percid_counter_add(percid_counter *counter, int64_t n) PERCID_NOEXCEPT
{
    if (__builtin_expect(!percid_add_fast(PERCID_WORD(counter), n), 0)) {
        percid_counter_add_slow(counter, n);
    }
}

PERCID_INLINE __attribute__((always_inline)) void
percid_histogram_record_many(percid_histogram *histogram, uint64_t value, uint64_t times) PERCID_NOEXCEPT
{
    /* The value shifted right until it has seven bits; below it lie as many groups of 64 buckets as
     * it was shifted. */
    const unsigned shift = (PERCID_CAST(unsigned, __builtin_clzll(value | 64)) ^ 63) - 6;
    const uint64_t bucket = (PERCID_CAST(uint64_t, shift) << 6) + (value >> shift);
    const uint64_t address = PERCID_WORD(histogram) + 8 * bucket;
    if (__builtin_expect(!percid_add_fast(address, PERCID_CAST(int64_t, times)), 0)) {
        percid_histogram_record_slow(histogram, value, times);
    }
}

#undef PERCID_WORD
#undef PERCID_ADD_SECTION
#undef PERCID_KERNEL_INDEX
#undef PERCID_TABLE_INDEX
#undef PERCID_FAST_PATH_ADDRESS

#else

PERCID_INLINE void percid_counter_add(percid_counter *counter, int64_t n) PERCID_NOEXCEPT
{
    percid_counter_add_slow(counter, n);
}

PERCID_INLINE void percid_histogram_record_many(percid_histogram *histogram, uint64_t value, uint64_t times) PERCID_NOEXCEPT
{
    percid_histogram_record_slow(histogram, value, times);
}

#endif

PERCID_INLINE void percid_histogram_record(percid_histogram *histogram, uint64_t value) PERCID_NOEXCEPT
{
    percid_histogram_record_many(histogram, value, 1);
}

#undef PERCID_ADDS_INLINE
#undef PERCID_CAST

#endif
