/*
 * percid_inline.h: what programs have inline. Part of percid.h, which includes it, and says of each
 * function what it does.
 *
 * With gcc 5 or clang 9 and later on x86-64 (LP64), 64-bit Arm and 64-bit RISC-V (little-endian) the
 * common case of these functions is a critical section in the caller's code, without a call or a
 * locked instruction (PERCID_SOURCE_ATOMIC takes both); everything else is a call. PERCID_NO_INLINE
 * makes all of them calls. Objects compiled either way work together. Code that is compiled with
 * -masm=intel has to define it.
 */
#ifndef PERCID_INLINE_H
#define PERCID_INLINE_H

#ifndef PERCID_H
#error "include percid.h, not this file"
#endif

#if defined(__cplusplus)
#define PERCID_CAST(type, value) static_cast<type>(value)
#define PERCID_POINTER(type, value) reinterpret_cast<type>(value)
#else
#define PERCID_CAST(type, value) ((type)(value))
#define PERCID_POINTER(type, value) ((type)(value))
#endif

#define PERCID_FAST PERCID_INLINE __attribute__((always_inline))
#define PERCID_LIKELY(condition) __builtin_expect(!!(condition), 1)

/*
 * What hands memory from thread to thread is inline unless a race detector looks on: to that a
 * section is nothing, and the library tells it.
 */
#if defined(__SANITIZE_THREAD__)
#define PERCID_HANDS_OVER_INLINE 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERCID_HANDS_OVER_INLINE 0
#endif
#endif
#ifndef PERCID_HANDS_OVER_INLINE
#define PERCID_HANDS_OVER_INLINE PERCID_ADDS_INLINE
#endif

/* So far the operations on the words of memory are inline on one architecture. */
#if defined(__x86_64__)
#define PERCID_WORDS_INLINE PERCID_HANDS_OVER_INLINE
#else
#define PERCID_WORDS_INLINE 0
#endif

#if PERCID_ADDS_INLINE

#include "percid_sections.h"

/*
 * The critical sections, in the library's own words (percid_sections.h).
 *
 * A section declares itself by storing its descriptor's address in the rseq area, reads the index
 * of the memory that this CPU owns, and commits with one store, its last instruction. If the thread
 * is preempted, moved, interrupted by a signal or fenced before that, the kernel resumes it at the
 * abort pad, behind the signature; nothing has happened then, and the slow path tries again.
 *
 * What they read is the fast path's words: at 0 the distance from the thread pointer to the rseq
 * area, at 8 the table from CPU to ID, at 16 the number of kernel IDs that are admitted. Their
 * address is in the library's table (percid_interface.h), at 16. Where the compiler does not see that
 * as a constant, one statement gets it from there, which is not volatile, so that it leaves loops.
 *
 * A section works on the word of an object: the address of its memory, whose lowest bits are the
 * mark of its source, 2 the kernel's IDs, 1 the table's. No other word leads into one.
 *
 * Those without a result leave for percid_slow when they have done nothing. Those with one are zero
 * then, because older compilers do not allow such a statement to leave and to have outputs.
 */

/*
 * Threads keep a pointer to the last critical section that they ran, so a module that has some must
 * not be unloaded. A shared library sees to that when it is loaded: it asks for itself once more, by
 * dladdr() and dlopen() if there are such functions, as something that stays. Programs stay anyway.
 */
#if defined(__PIC__) && !defined(__PIE__)
#if defined(__cplusplus)
extern "C" {
#endif
struct percid_module {
    const char *file;
    void *start;
    const char *symbol;
    void *address;
};
extern int percid_module_of(const void *address, struct percid_module *module) __asm__("dladdr")
    __attribute__((weak));
extern void *percid_module_open(const char *file, int flags) __asm__("dlopen") __attribute__((weak));

__attribute__((constructor, weak, visibility("hidden"))) void percid_module_stays(void);
__attribute__((constructor, weak, visibility("hidden"))) void percid_module_stays(void)
{
    static int asked;
    struct percid_module module;
    if (asked || !percid_module_of || !percid_module_open) {
        return;
    }
    asked = 1;
    if (percid_module_of(&asked, &module) && module.file) {
        /* RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE: it is loaded already, and counted once more. */
        percid_module_open(module.file, 0x1005);
    }
}
#if defined(__cplusplus)
}
#endif
#endif

#if defined(__x86_64__)

#define PERCID_FAST_PATH_ADDRESS "movq percid_interface_1@GOTPCREL(%%rip), %0\n\tmovq 16(%0), %0"
#define PERCID_THREAD_POINTER "movq %%fs:0, %0"

/* How a section wants a word with a mark, and a number that it reads. */
#define PERCID_OBJECT(word, mark) (word)
#define PERCID_NUMBER(place) (place)
/* A number may be part of an instruction. */
#define PERCID_ADDEND "er"

#elif defined(__aarch64__)

#define PERCID_FAST_PATH_ADDRESS                                                                               \
    "adrp %0, :got:percid_interface_1\n\tldr %0, [%0, :got_lo12:percid_interface_1]\n\tldr %0, [%0, #16]"
#define PERCID_THREAD_POINTER "mrs %0, tpidr_el0"

#define PERCID_OBJECT(word, mark) ((word) - (mark))
#define PERCID_NUMBER(place) (*(place))
#define PERCID_ADDEND "Ir"

#elif defined(__riscv)

#define PERCID_FAST_PATH_ADDRESS                                                                               \
    "1:\n\tauipc %0, %%got_pcrel_hi(percid_interface_1)\n\tld %0, %%pcrel_lo(1b)(%0)\n\tld %0, 16(%0)"
#define PERCID_THREAD_POINTER "mv %0, tp"

#define PERCID_OBJECT(word, mark) ((word) - (mark))
#define PERCID_NUMBER(place) (*(place))
#define PERCID_ADDEND "r"

#endif

/* Functions begin with this, before any condition: what is done in any case leaves loops. */
PERCID_FAST const void *percid_fast_path_address(void) PERCID_NOEXCEPT
{
#if PERCID_TABLE_IS_SEEN
    return percid_interface_1.fast_path;
#else
    const void *address;
    __asm__(PERCID_FAST_PATH_ADDRESS : "=r"(address));
    return address;
#endif
}

/* Adds n to this CPU's copy of the word at this address. Returns whether it did. */
PERCID_FAST int percid_add_fast(const void *fast_path, uint64_t address, int64_t n) PERCID_NOEXCEPT
{
#define PERCID_ADD(section, mark)                                                                              \
    __asm__ goto(section                                                                                       \
                 : /* no outputs, which older compilers do not allow here */                                   \
                 : [fast_path] "r"(fast_path), [object] "r"(PERCID_OBJECT(address, mark)),                     \
                   [n] PERCID_ADDEND(n)                                                                        \
                 : PERCID_ADD_CLOBBERS                                                                         \
                 : percid_slow)
    if (__builtin_expect(address & 2, 2)) {
        PERCID_ADD(PERCID_ADD_KERNEL, 2);
        return 1;
    }
    if (__builtin_expect(address & 1, 1)) {
        PERCID_ADD(PERCID_ADD_TABLE, 1);
        return 1;
    }
percid_slow:
    return 0;
#undef PERCID_ADD
}

/* The word of an object. Acquiring: a thread that sees a mark sees what the sections of that source
 * read. */
#define PERCID_WORD(object) __atomic_load_n(&(object)->word, __ATOMIC_ACQUIRE)

#endif

#if PERCID_HANDS_OVER_INLINE

/*
 * The object of a handle, for the functions of one type; NULL if that is for the library to say.
 *
 * An object that the compiler sees is no handle, so nothing is to be asked. Else the address of an
 * object of static storage has the highest bit clear, as has NULL. A handle that the library has
 * made has it set, and is the object's address in its lower 48 bits. As long as the object is there
 * the handle stands in front of it, for each type at another place.
 */
PERCID_FAST const void *percid_object(const void *handle, int place) PERCID_NOEXCEPT
{
    const uint64_t bits = PERCID_POINTER(uintptr_t, handle);
    if (PERCID_LIKELY(PERCID_CAST(int64_t, bits) > 0)) {
        return handle;
    }
    if (PERCID_LIKELY(handle != NULL)) {
        const uint64_t *const object = PERCID_POINTER(const uint64_t *, bits << 16 >> 16);
        if (PERCID_LIKELY(__atomic_load_n(object - place, __ATOMIC_ACQUIRE) == bits)) {
            return object;
        }
    }
    return NULL;
}

#define PERCID_SEEN(object) (__builtin_object_size(object, 0) != ~PERCID_CAST(size_t, 0))
#define PERCID_OBJECT_OF(type, handle, place)                                                                  \
    PERCID_CAST(const type *, PERCID_SEEN(handle) ? (handle) : percid_object(handle, place))

/* Pushes an item on this CPU's part of a stack. Returns whether it did. */
PERCID_FAST int percid_push_fast(const void *fast_path, uint64_t word, const uint64_t *capacity,
                                 void *item) PERCID_NOEXCEPT
{
#define PERCID_PUSH(section, mark)                                                                             \
    __asm__ goto(section                                                                                       \
                 :                                                                                             \
                 : [fast_path] "r"(fast_path), [object] "r"(PERCID_OBJECT(word, mark)),                        \
                   [capacity] "r"(PERCID_NUMBER(capacity)), [item] "r"(item)                                   \
                 : PERCID_PUSH_CLOBBERS                                                                        \
                 : percid_slow)
    if (__builtin_expect(word & 2, 2)) {
        PERCID_PUSH(PERCID_PUSH_KERNEL, 2);
        return 1;
    }
    if (__builtin_expect(word & 1, 1)) {
        PERCID_PUSH(PERCID_PUSH_TABLE, 1);
        return 1;
    }
percid_slow:
    return 0;
#undef PERCID_PUSH
}

/* Pops an item from this CPU's part of a stack. Returns whether it did. */
PERCID_FAST int percid_pop_fast(const void *fast_path, uint64_t word, void **item) PERCID_NOEXCEPT
{
    uint64_t index, top;
#define PERCID_POP(section, mark)                                                                              \
    __asm__ __volatile__(section                                                                               \
                         : [item] "=&r"(*item), [index] "=&r"(index), [work] "=&r"(top)                         \
                         : [fast_path] "r"(fast_path), [object] "r"(PERCID_OBJECT(word, mark))                 \
                         : PERCID_POP_CLOBBERS)
    if (__builtin_expect(word & 2, 2)) {
        PERCID_POP(PERCID_POP_KERNEL, 2);
    } else if (__builtin_expect(word & 1, 1)) {
        PERCID_POP(PERCID_POP_TABLE, 1);
    } else {
        return 0;
    }
    (void)index;
    return top != 0;
#undef PERCID_POP
}

/* The lock of this CPU's value of a local, taken; NULL if it was not. Behind it comes the word that
 * closes it, then the value's address. */
PERCID_FAST int64_t *percid_lock_fast(const void *fast_path, uint64_t word) PERCID_NOEXCEPT
{
    const uint64_t ready = 1;
    uint64_t index, work, token;
    /* Volatile, since functions that change stacks may return on another thread. */
    __asm__ __volatile__(PERCID_THREAD_POINTER : "=r"(token));
#define PERCID_ACQUIRE(section, mark)                                                                          \
    __asm__ __volatile__(section                                                                               \
                         : [index] "=&r"(index), [work] "=&r"(work)                                            \
                         : [fast_path] "r"(fast_path), [object] "r"(PERCID_OBJECT(word, mark)),                \
                           [expected] PERCID_ADDEND(ready), [token] "r"(token)                                 \
                         : PERCID_ACQUIRE_CLOBBERS)
    if (__builtin_expect(word & 2, 2)) {
        PERCID_ACQUIRE(PERCID_ACQUIRE_KERNEL, 2);
    } else if (__builtin_expect(word & 1, 1)) {
        PERCID_ACQUIRE(PERCID_ACQUIRE_TABLE, 1);
    } else {
        return NULL;
    }
    (void)work;
    return PERCID_POINTER(int64_t *, index & ~UINT64_C(7));
#undef PERCID_ACQUIRE
}

/* A record to be appended, as the section reads it. */
struct percid_record {
    const char *bytes;
    const char *end;   /* of the whole words */
    uint64_t rest;     /* the bytes behind those, as a word; anything if there are none */
    uint64_t length;   /* in bytes */
    uint64_t size;     /* what it takes: with its header, in whole words */
    uint64_t needed;   /* what must be free: that and the next header */
    uint64_t capacity; /* of the ring */
    uint64_t mask;     /* one less */
};

/* The bytes behind the whole words of a record. Without a copy of variable length, a call. */
PERCID_FAST uint64_t percid_rest(const char *bytes, uint64_t length) PERCID_NOEXCEPT
{
    if (length >= 8) {
        uint64_t last;
        __builtin_memcpy(&last, bytes + length - 8, 8);
        return last >> ((64 - 8 * (length % 8)) % 64);
    }
    if (length >= 4) {
        uint32_t first, last;
        __builtin_memcpy(&first, bytes, 4);
        __builtin_memcpy(&last, bytes + length - 4, 4);
        return first | PERCID_CAST(uint64_t, last) << (8 * (length - 4));
    }
    if (length > 0) {
        const unsigned char *const all = PERCID_POINTER(const unsigned char *, bytes);
        return all[0] | PERCID_CAST(uint64_t, all[length / 2]) << (8 * (length / 2)) |
               PERCID_CAST(uint64_t, all[length - 1]) << (8 * (length - 1));
    }
    return 0;
}

PERCID_FAST struct percid_record percid_request(const char *bytes, uint64_t length,
                                                uint64_t capacity) PERCID_NOEXCEPT
{
    const uint64_t size = (length + 15) & ~UINT64_C(7);
    const struct percid_record request = {
        bytes,    bytes + (length & ~UINT64_C(7)), percid_rest(bytes, length), length, size,
        size + 8, capacity,                        capacity - 1,
    };
    return request;
}

/* Appends a record to this CPU's part of a ring. Returns whether it did. */
PERCID_FAST int percid_append_fast(const void *fast_path, uint64_t word,
                                   const struct percid_record *record) PERCID_NOEXCEPT
{
#define PERCID_APPEND(section, mark)                                                                           \
    __asm__ goto(section                                                                                       \
                 :                                                                                             \
                 : [fast_path] "r"(fast_path), [object] "r"(PERCID_OBJECT(word, mark)), [request] "r"(record)  \
                 : PERCID_APPEND_CLOBBERS                                                                      \
                 : percid_slow)
    if (__builtin_expect(word & 2, 2)) {
        PERCID_APPEND(PERCID_APPEND_KERNEL, 2);
        return 1;
    }
    if (__builtin_expect(word & 1, 1)) {
        PERCID_APPEND(PERCID_APPEND_TABLE, 1);
        return 1;
    }
percid_slow:
    return 0;
#undef PERCID_APPEND
}

#endif

#if PERCID_WORDS_INLINE

/* What a section on the words of a value has found. */
struct percid_found {
    uint64_t shard; /* its address and the mark of the source; 0 if nothing was done */
    uint64_t seen;  /* the word before */
    uint64_t other; /* another word that it has read */
};

/* A copy of bytes, as the section reads it. */
struct percid_copy {
    const char *from_end; /* the end of the bytes */
    int64_t start;        /* their start, as a negative distance from the end */
    int64_t words_end;    /* the end of the whole words, in the same way */
    uint64_t to_end;      /* the end of the destination, from the start of the shard */
    uint64_t expected;
    uint64_t desired;
};

/* Runs the section of the source that a word is marked with. */
#define PERCID_BY_MARK(word, statement, section)                                                               \
    if (__builtin_expect((word) & 2, 2)) {                                                                     \
        statement(section##_KERNEL, 2);                                                                        \
    } else if (__builtin_expect((word) & 1, 1)) {                                                              \
        statement(section##_TABLE, 1);                                                                         \
    } else {                                                                                                   \
        index = 0;                                                                                             \
    }

/* The operands of all sections on words, and their end. */
#define PERCID_WORD_OUTPUTS [index] "=&r"(index), [work] "=&r"(work)
#define PERCID_WORD_INPUTS(mark)                                                                               \
    [fast_path] "r"(fast_path), [object] "r"(PERCID_OBJECT(word, mark)), [at] "r"(at)
#define PERCID_FOUND(found)                                                                                    \
    (void)work;                                                                                                \
    (found).shard = index

PERCID_FAST struct percid_found percid_add_word_fast(const void *fast_path, uint64_t word, uint64_t at,
                                                     int64_t n) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
/* What was seen is the sum: it is in a register in any case. */
#define PERCID_ADD_WORD(section, mark)                                                                         \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [sum] "=&r"(found.seen)                                        \
                         : PERCID_WORD_INPUTS(mark), [n] PERCID_ADDEND(n)                                      \
                         : PERCID_ADD_WORD_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_ADD_WORD, PERCID_ADD_WORD)
    PERCID_FOUND(found);
    return found;
#undef PERCID_ADD_WORD
}

PERCID_FAST struct percid_found percid_swap_fast(const void *fast_path, uint64_t word, uint64_t at,
                                                 uint64_t desired) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
#define PERCID_SWAP(section, mark)                                                                             \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen)                                       \
                         : PERCID_WORD_INPUTS(mark), [desired] "r"(desired)                                    \
                         : PERCID_SWAP_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_SWAP, PERCID_SWAP)
    PERCID_FOUND(found);
    return found;
#undef PERCID_SWAP
}

PERCID_FAST struct percid_found percid_store_if_fast(const void *fast_path, uint64_t word, uint64_t at,
                                                     uint64_t expected,
                                                     uint64_t desired) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
#define PERCID_STORE_IF(section, mark)                                                                         \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen)                                       \
                         : PERCID_WORD_INPUTS(mark), [expected] "r"(expected), [desired] "r"(desired)          \
                         : PERCID_STORE_IF_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_STORE_IF, PERCID_STORE_IF)
    PERCID_FOUND(found);
    return found;
#undef PERCID_STORE_IF
}

PERCID_FAST struct percid_found percid_store_both_if_fast(const void *fast_path, uint64_t word,
                                                          uint64_t at, uint64_t expected,
                                                          uint64_t desired, uint64_t first,
                                                          uint64_t first_value) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
#define PERCID_STORE_BOTH_IF(section, mark)                                                                    \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen)                                       \
                         : PERCID_WORD_INPUTS(mark), [expected] "r"(expected), [desired] "r"(desired),         \
                           [first] "r"(first), [value] "r"(first_value)                                        \
                         : PERCID_STORE_BOTH_IF_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_STORE_BOTH_IF, PERCID_STORE_BOTH_IF)
    PERCID_FOUND(found);
    return found;
#undef PERCID_STORE_BOTH_IF
}

PERCID_FAST struct percid_found percid_store_if_both_fast(const void *fast_path, uint64_t word,
                                                          uint64_t at, uint64_t expected,
                                                          uint64_t desired, uint64_t second,
                                                          uint64_t expected_second) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
#define PERCID_STORE_IF_BOTH(section, mark)                                                                    \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen), [other] "=&r"(found.other)           \
                         : PERCID_WORD_INPUTS(mark), [expected] "r"(expected), [desired] "r"(desired),         \
                           [second] "r"(second), [value] "r"(expected_second)                                  \
                         : PERCID_STORE_IF_BOTH_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_STORE_IF_BOTH, PERCID_STORE_IF_BOTH)
    PERCID_FOUND(found);
    return found;
#undef PERCID_STORE_IF_BOTH
}

PERCID_FAST struct percid_found percid_copy_then_store_if_fast(const void *fast_path, uint64_t word,
                                                               uint64_t at,
                                                               const struct percid_copy *copy) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work, end, to, position, value;
#define PERCID_COPY_THEN_STORE_IF(section, mark)                                                               \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen), [end] "=&r"(end), [to] "=&r"(to),    \
                           [position] "=&r"(position), [value] "=&r"(value)                                    \
                         : PERCID_WORD_INPUTS(mark), [request] "r"(copy)                                       \
                         : PERCID_COPY_THEN_STORE_IF_CLOBBERS);                                                \
    (void)end, (void)to, (void)position, (void)value
    PERCID_BY_MARK(word, PERCID_COPY_THEN_STORE_IF, PERCID_COPY_THEN_STORE_IF)
    PERCID_FOUND(found);
    return found;
#undef PERCID_COPY_THEN_STORE_IF
}

PERCID_FAST struct percid_found percid_push_link_fast(const void *fast_path, uint64_t word, uint64_t at,
                                                      void *item,
                                                      uint64_t next) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
#define PERCID_PUSH_LINK(section, mark)                                                                        \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen)                                       \
                         : PERCID_WORD_INPUTS(mark), [item] "r"(item),                                         \
                           [link] "r"(PERCID_CAST(char *, item) + next)                                        \
                         : PERCID_PUSH_LINK_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_PUSH_LINK, PERCID_PUSH_LINK)
    PERCID_FOUND(found);
    return found;
#undef PERCID_PUSH_LINK
}

PERCID_FAST struct percid_found percid_pop_link_fast(const void *fast_path, uint64_t word, uint64_t at,
                                                     uint64_t next) PERCID_NOEXCEPT
{
    struct percid_found found = {0, 0, 0};
    uint64_t index, work;
#define PERCID_POP_LINK(section, mark)                                                                         \
    __asm__ __volatile__(section                                                                               \
                         : PERCID_WORD_OUTPUTS, [seen] "=&r"(found.seen), [other] "=&r"(found.other)           \
                         : PERCID_WORD_INPUTS(mark), [next] "r"(next)                                          \
                         : PERCID_POP_LINK_CLOBBERS)
    PERCID_BY_MARK(word, PERCID_POP_LINK, PERCID_POP_LINK)
    PERCID_FOUND(found);
    return found;
#undef PERCID_POP_LINK
}

#undef PERCID_BY_MARK
#undef PERCID_WORD_OUTPUTS
#undef PERCID_WORD_INPUTS
#undef PERCID_FOUND

/* Where the value of such objects is in its shard. */
#define PERCID_VALUE 8

/* Whether operations on so many bytes at an offset may be inline: they lie inside a value, and that
 * lies where it is expected. Where the offset is a constant, that is one comparison. */
PERCID_FAST int percid_lies_inside(const percid_memory *object, size_t at, size_t bytes) PERCID_NOEXCEPT
{
    return at < (UINT64_C(1) << 32) && bytes < (UINT64_C(1) << 32) && at + bytes <= object->inline_size;
}

PERCID_FAST int percid_is_word(const percid_memory *object, size_t at) PERCID_NOEXCEPT
{
    return at % 8 == 0 && percid_lies_inside(object, at, 8);
}

PERCID_FAST void *percid_value_of(uint64_t shard) PERCID_NOEXCEPT
{
    return PERCID_POINTER(void *, (shard & ~UINT64_C(7)) + PERCID_VALUE);
}

/* Stores what was found, unless the pointer is NULL, and returns whether the word was stored. */
PERCID_FAST int percid_tell(const struct percid_found *found, int stored, uint64_t other,
                            percid_outcome *outcome) PERCID_NOEXCEPT
{
    if (outcome != NULL) {
        outcome->value = stored ? percid_value_of(found->shard) : NULL;
        outcome->seen = found->seen;
        outcome->other = other;
    }
    return stored;
}

#endif

PERCID_FAST void percid_counter_add(percid_counter *counter, int64_t n) PERCID_NOEXCEPT
{
#if PERCID_ADDS_INLINE
    /* Where the compiler sees the table it loads the address best where it is needed. */
    const void *const first = PERCID_TABLE_IS_SEEN ? NULL : percid_fast_path_address();
    if (PERCID_LIKELY(counter != NULL) &&
        PERCID_LIKELY(percid_add_fast(PERCID_TABLE_IS_SEEN ? percid_fast_path_address() : first,
                                      PERCID_WORD(counter), n))) {
        return;
    }
#endif
    percid_counter_add_slow(counter, n);
}

PERCID_FAST void percid_histogram_record_many(percid_histogram *histogram, uint64_t value,
                                              uint64_t times) PERCID_NOEXCEPT
{
#if PERCID_ADDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    /* The value shifted right until it has seven bits; below it lie as many groups of 64 buckets as
     * it was shifted. */
    const unsigned shift = (PERCID_CAST(unsigned, __builtin_clzll(value | 64)) ^ 63) - 6;
    const uint64_t bucket = (PERCID_CAST(uint64_t, shift) << 6) + (value >> shift);
    if (PERCID_LIKELY(histogram != NULL) &&
        PERCID_LIKELY(percid_add_fast(fast_path, PERCID_WORD(histogram) + 8 * bucket,
                                      PERCID_CAST(int64_t, times)))) {
        return;
    }
#endif
    percid_histogram_record_slow(histogram, value, times);
}

PERCID_FAST void percid_histogram_record(percid_histogram *histogram, uint64_t value) PERCID_NOEXCEPT
{
    percid_histogram_record_many(histogram, value, 1);
}

PERCID_FAST int percid_stack_push(percid_stack *stack, void *item) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_stack *const object = PERCID_OBJECT_OF(percid_stack, stack, 1);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(item != NULL) &&
        PERCID_LIKELY(percid_push_fast(fast_path, PERCID_WORD(object), &object->capacity, item))) {
        return 0;
    }
#endif
    return percid_interface_address()->stack_push(stack, item);
}

PERCID_FAST void *percid_stack_pop(percid_stack *stack) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_stack *const object = PERCID_OBJECT_OF(percid_stack, stack, 1);
    if (PERCID_LIKELY(object != NULL)) {
        void *item;
        if (PERCID_LIKELY(percid_pop_fast(fast_path, PERCID_WORD(object), &item))) {
            return item;
        }
    }
#endif
    return percid_interface_address()->stack_pop(stack);
}

/* What stands 16 bytes in front of a pool's object: the pool's number, and one of these. */
#define PERCID_LENT (UINT64_C(1) << 32)
#define PERCID_IDLE (UINT64_C(2) << 32)

PERCID_FAST void *percid_pool_get(percid_pool *pool) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_pool *const found = PERCID_OBJECT_OF(percid_pool, pool, 2);
    if (PERCID_LIKELY(found != NULL)) {
        void *object;
        if (PERCID_LIKELY(percid_pop_fast(fast_path, PERCID_WORD(found), &object))) {
            PERCID_CAST(uint64_t *, object)[-2] = PERCID_LENT | __atomic_load_n(&found->number, __ATOMIC_RELAXED);
            return object;
        }
    }
#endif
    return percid_interface_address()->pool_get(pool);
}

PERCID_FAST int percid_pool_put(percid_pool *pool, void *object) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_pool *const found = PERCID_OBJECT_OF(percid_pool, pool, 2);
    if (PERCID_LIKELY(found != NULL) && PERCID_LIKELY(object != NULL)) {
        uint64_t *const mark = PERCID_CAST(uint64_t *, object) - 2;
        const uint64_t number = __atomic_load_n(&found->number, __ATOMIC_RELAXED);
        if (PERCID_LIKELY(*mark == (PERCID_LENT | number))) {
            /* Before another thread can have it. */
            *mark = PERCID_IDLE | number;
            if (PERCID_LIKELY(percid_push_fast(fast_path, PERCID_WORD(found), &found->capacity, object))) {
                return 0;
            }
            /* The library does all of it. */
            *mark = PERCID_LENT | number;
        }
    }
#endif
    return percid_interface_address()->pool_put(pool, object);
}

#undef PERCID_LENT
#undef PERCID_IDLE

PERCID_FAST int percid_local_acquire(percid_local *local, void **value)
{
    /* Not the caller's place, which is a register as long as no other function knows it. */
    void *made;
    int result;
#if PERCID_HANDS_OVER_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_local *const object = PERCID_OBJECT_OF(percid_local, local, 3);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(value != NULL)) {
        int64_t *const lock = percid_lock_fast(fast_path, PERCID_WORD(object));
        if (PERCID_LIKELY(lock != NULL)) {
            void *const taken = PERCID_POINTER(void **, lock)[2];
            if (PERCID_LIKELY(taken != NULL)) {
                *value = taken;
                return 0;
            }
            /* It could not be made before. */
            __atomic_store_n(lock, 1, __ATOMIC_RELEASE);
        }
    }
#endif
    result = percid_interface_address()->local_acquire(local, value != NULL ? &made : NULL);
    if (value != NULL) {
        *value = made;
    }
    return result;
}

PERCID_FAST void percid_local_release(void *value) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    if (PERCID_LIKELY(value != NULL)) {
        /* In front of a value stands the address of its lock, made odd where valgrind looks on: to that
         * a store is nothing, and the library tells it. */
        const uint64_t lock = PERCID_CAST(const uint64_t *, value)[-1];
        if (PERCID_LIKELY(!(lock & 1))) {
            __atomic_store_n(PERCID_POINTER(int64_t *, lock), 1, __ATOMIC_RELEASE);
            return;
        }
    }
#endif
    percid_interface_address()->local_release(value);
}

PERCID_FAST int percid_ring_append(percid_ring *ring, const void *record, size_t length) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_ring *const object = PERCID_OBJECT_OF(percid_ring, ring, 4);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(record != NULL)) {
        const uint64_t capacity = object->capacity;
        if (PERCID_LIKELY(length <= capacity / 4 - 16) && PERCID_LIKELY(length < 65536)) {
            const struct percid_record request =
                percid_request(PERCID_CAST(const char *, record), length, capacity);
            if (PERCID_LIKELY(percid_append_fast(fast_path, PERCID_WORD(object), &request))) {
                return 0;
            }
        }
    }
#endif
    return percid_interface_address()->ring_append(ring, record, length);
}

PERCID_FAST int percid_mask_mark(percid_mask *mask, uint32_t id) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    const percid_mask *const object = PERCID_OBJECT_OF(percid_mask, mask, 5);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(id < 512)) {
        /* What it announces is stored before the bit is looked at: by the compiler here, and by the
         * processor when a drain fences it. */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (PERCID_LIKELY(__atomic_load_n(&object->marked[id / 64], __ATOMIC_RELAXED) >> (id % 64) & 1)) {
            return 0;
        }
    }
#endif
    return percid_interface_address()->mask_mark(mask, id);
}

PERCID_FAST void percid_fence_light(void) PERCID_NOEXCEPT
{
#if PERCID_HANDS_OVER_INLINE
    /* The answer never changes, so that each file may keep it. */
    static int asymmetric;
    if (!PERCID_LIKELY(__atomic_load_n(&asymmetric, __ATOMIC_RELAXED))) {
        if (!percid_interface_address()->fence_is_asymmetric()) {
            percid_interface_address()->fence_light();
            return;
        }
        __atomic_store_n(&asymmetric, 1, __ATOMIC_RELAXED);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
    percid_interface_address()->fence_light();
#endif
}

PERCID_FAST int percid_memory_add(percid_memory *memory, size_t field, int64_t n,
                                  void **value) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, field))) {
        const struct percid_found found =
            percid_add_word_fast(fast_path, PERCID_WORD(object), PERCID_VALUE + field, n);
        if (PERCID_LIKELY(found.shard != 0)) {
            if (value != NULL) {
                *value = percid_value_of(found.shard);
            }
            return 0;
        }
    }
#endif
    return percid_interface_address()->memory_add(memory, field, n, value);
}

PERCID_FAST int percid_memory_fetch_add(percid_memory *memory, size_t field, int64_t n,
                                        percid_outcome *outcome) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, field))) {
        struct percid_found found =
            percid_add_word_fast(fast_path, PERCID_WORD(object), PERCID_VALUE + field, n);
        if (PERCID_LIKELY(found.shard != 0)) {
            found.seen -= PERCID_CAST(uint64_t, n);
            percid_tell(&found, 1, 0, outcome);
            return 0;
        }
    }
#endif
    return percid_interface_address()->memory_fetch_add(memory, field, n, outcome);
}

PERCID_FAST int percid_memory_swap(percid_memory *memory, size_t field, uint64_t desired,
                                   percid_outcome *outcome) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, field))) {
        const struct percid_found found =
            percid_swap_fast(fast_path, PERCID_WORD(object), PERCID_VALUE + field, desired);
        if (PERCID_LIKELY(found.shard != 0)) {
            percid_tell(&found, 1, 0, outcome);
            return 0;
        }
    }
#endif
    return percid_interface_address()->memory_swap(memory, field, desired, outcome);
}

PERCID_FAST int percid_memory_store_if(percid_memory *memory, size_t field, uint64_t expected, uint64_t desired,
                                       percid_outcome *outcome) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, field))) {
        const struct percid_found found = percid_store_if_fast(
            fast_path, PERCID_WORD(object), PERCID_VALUE + field, expected, desired);
        if (PERCID_LIKELY(found.shard != 0)) {
            return percid_tell(&found, found.seen == expected, 0, outcome);
        }
    }
#endif
    return percid_interface_address()->memory_store_if(memory, field, expected, desired, outcome);
}

PERCID_FAST int percid_memory_store_both_if(percid_memory *memory, size_t field, uint64_t expected,
                                            uint64_t desired, size_t first, uint64_t first_value,
                                            percid_outcome *outcome) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, field)) &&
        PERCID_LIKELY(percid_is_word(object, first))) {
        const struct percid_found found = percid_store_both_if_fast(
            fast_path, PERCID_WORD(object), PERCID_VALUE + field, expected, desired, PERCID_VALUE + first,
            first_value);
        if (PERCID_LIKELY(found.shard != 0)) {
            return percid_tell(&found, found.seen == expected, 0, outcome);
        }
    }
#endif
    return percid_interface_address()->memory_store_both_if(memory, field, expected, desired, first,
                                                            first_value, outcome);
}

PERCID_FAST int percid_memory_store_if_both(percid_memory *memory, size_t field, uint64_t expected,
                                            uint64_t desired, size_t second, uint64_t expected_second,
                                            percid_outcome *outcome) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, field)) &&
        PERCID_LIKELY(percid_is_word(object, second))) {
        const struct percid_found found = percid_store_if_both_fast(
            fast_path, PERCID_WORD(object), PERCID_VALUE + field, expected, desired, PERCID_VALUE + second,
            expected_second);
        if (PERCID_LIKELY(found.shard != 0)) {
            const int first = found.seen == expected, both = first && found.other == expected_second;
            return percid_tell(&found, both, first && !both ? found.other : 0, outcome);
        }
    }
#endif
    return percid_interface_address()->memory_store_if_both(memory, field, expected, desired, second,
                                                            expected_second, outcome);
}

PERCID_FAST int percid_memory_copy_then_store_if(percid_memory *memory, size_t field, uint64_t expected,
                                                 uint64_t desired, size_t to, const void *bytes, size_t length,
                                                 percid_outcome *outcome) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(bytes != NULL) &&
        PERCID_LIKELY(percid_is_word(object, field)) && PERCID_LIKELY(percid_lies_inside(object, to, length))) {
        const struct percid_copy copy = {
            PERCID_CAST(const char *, bytes) + length,
            -PERCID_CAST(int64_t, length),
            -PERCID_CAST(int64_t, length % 8),
            PERCID_VALUE + to + length,
            expected,
            desired,
        };
        const struct percid_found found =
            percid_copy_then_store_if_fast(fast_path, PERCID_WORD(object), PERCID_VALUE + field, &copy);
        if (PERCID_LIKELY(found.shard != 0)) {
            return percid_tell(&found, found.seen == expected, 0, outcome);
        }
    }
#endif
    return percid_interface_address()->memory_copy_then_store_if(memory, field, expected, desired, to, bytes,
                                                                 length, outcome);
}

PERCID_FAST int percid_memory_push(percid_memory *memory, size_t head, void *item, size_t next,
                                   void **value) PERCID_NOEXCEPT
{
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, head)) &&
        PERCID_LIKELY(item != NULL) && PERCID_LIKELY((PERCID_POINTER(uintptr_t, item) | next) % 8 == 0)) {
        const struct percid_found found =
            percid_push_link_fast(fast_path, PERCID_WORD(object), PERCID_VALUE + head, item, next);
        if (PERCID_LIKELY(found.shard != 0)) {
            if (value != NULL) {
                *value = percid_value_of(found.shard);
            }
            return 0;
        }
    }
#endif
    return percid_interface_address()->memory_push(memory, head, item, next, value);
}

PERCID_FAST int percid_memory_pop(percid_memory *memory, size_t head, size_t next, void **item) PERCID_NOEXCEPT
{
    /* Not the caller's place, as in percid_local_acquire(). */
    void *popped;
    int result;
#if PERCID_WORDS_INLINE
    const void *const fast_path = percid_fast_path_address();
    const percid_memory *const object = PERCID_OBJECT_OF(percid_memory, memory, 13);
    if (PERCID_LIKELY(object != NULL) && PERCID_LIKELY(percid_is_word(object, head)) &&
        PERCID_LIKELY(next % 8 == 0) && PERCID_LIKELY(item != NULL)) {
        const struct percid_found found =
            percid_pop_link_fast(fast_path, PERCID_WORD(object), PERCID_VALUE + head, next);
        if (PERCID_LIKELY(found.shard != 0)) {
            *item = PERCID_POINTER(void *, found.seen);
            return found.seen != 0;
        }
    }
#endif
    result = percid_interface_address()->memory_pop(memory, head, next, item != NULL ? &popped : NULL);
    if (item != NULL) {
        *item = popped;
    }
    return result;
}

#undef PERCID_WORD
#undef PERCID_VALUE
#undef PERCID_OBJECT
#undef PERCID_OBJECT_OF
#undef PERCID_SEEN
#undef PERCID_NUMBER
#undef PERCID_ADDEND
#undef PERCID_THREAD_POINTER
#undef PERCID_FAST_PATH_ADDRESS
#undef PERCID_FAST
#undef PERCID_LIKELY
#undef PERCID_POINTER
#undef PERCID_CAST
#undef PERCID_WORDS_INLINE
#undef PERCID_HANDS_OVER_INLINE
#undef PERCID_ADDS_INLINE
#undef PERCID_TABLE_IS_SEEN

#endif
