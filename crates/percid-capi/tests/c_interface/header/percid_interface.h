/*
 * percid_interface.h: how the functions of percid.h get to the library. Part of percid.h, which includes it.
 *
 * The library shows one symbol to C: a constant table of its functions. The functions of percid.h are
 * inline and call through it, and the sections of percid_inline.h find the words that they read in it.
 * Where a process has several copies of percid, the dynamic linker binds that one symbol, so a module
 * gets everything from one copy, whichever that is.
 *
 * This file is generated, from percid.h and the order of the table in the library's source.
 */
#ifndef PERCID_INTERFACE_H
#define PERCID_INTERFACE_H

#ifndef PERCID_H
#error "include percid.h, not this file"
#endif

/* Of 4096 bytes in every version. Later versions use more of them; what they do not use is zero. */
struct percid_interface {
    uint32_t size;   /* The bytes in use. */
    uint32_t number; /* 1, as in the symbol's name. */
    const char *version_text;
    const void *fast_path;
    int (*missing)(const char *name);
@MEMBERS@
    void (*later[@LATER@])(void);
};

/*
 * A compiler may choose a copy relocation for the table, which would do no harm, but make it a part
 * of the program's own binary interface. Where compilers go through the global offset table anyway
 * they see a constant, which they read once for many functions.
 */
#if defined(__PIC__) && (!defined(__PIE__) || defined(__clang__))
#define PERCID_TABLE_IS_SEEN 1
#else
#define PERCID_TABLE_IS_SEEN 0
#endif

#if defined(__cplusplus)
extern "C" {
#endif
extern const struct percid_interface percid_interface_1;
#if defined(__cplusplus)
}
#endif

/*
 * Whether addresses are taken by hand, and critical sections are inline: with gcc 5 or clang 9 and
 * later on x86-64 (LP64), 64-bit Arm and 64-bit RISC-V (little-endian), unless PERCID_NO_INLINE is
 * defined.
 */
#if defined(PERCID_NO_INLINE) || !defined(__linux__) || !defined(__LP64__) || defined(__INTEL_COMPILER)
#define PERCID_ADDS_INLINE 0
#elif defined(__clang__) ? __clang_major__ < 9 : !defined(__GNUC__) || __GNUC__ < 5
#define PERCID_ADDS_INLINE 0
#elif defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__))
#define PERCID_ADDS_INLINE 1
#elif defined(__riscv) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PERCID_ADDS_INLINE 1
#else
#define PERCID_ADDS_INLINE 0
#endif

/*
 * Other compilers get the address from the global offset table by hand. The statement is not
 * volatile, so they take it out of loops.
 */
PERCID_INLINE __attribute__((always_inline)) const struct percid_interface *
percid_interface_address(void) PERCID_NOEXCEPT
{
#if PERCID_ADDS_INLINE && !PERCID_TABLE_IS_SEEN && defined(__x86_64__)
    const struct percid_interface *address;
    __asm__("movq percid_interface_1@GOTPCREL(%%rip), %0" : "=r"(address));
    return address;
#elif PERCID_ADDS_INLINE && !PERCID_TABLE_IS_SEEN && defined(__aarch64__)
    const struct percid_interface *address;
    __asm__("adrp %0, :got:percid_interface_1\n\tldr %0, [%0, :got_lo12:percid_interface_1]"
            : "=r"(address));
    return address;
#elif PERCID_ADDS_INLINE && !PERCID_TABLE_IS_SEEN && defined(__riscv)
    const struct percid_interface *address;
    __asm__("1:\n\tauipc %0, %%got_pcrel_hi(percid_interface_1)\n\tld %0, %%pcrel_lo(1b)(%0)"
            : "=r"(address));
    return address;
#else
    return &percid_interface_1;
#endif
}

@FUNCTIONS@
#endif
