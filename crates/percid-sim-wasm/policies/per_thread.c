/* Thread numbers as IDs, as a WebAssembly module: the lowest number that no living thread has. It
 * gives the same results as the built-in policy `per-thread`.
 *
 *     clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -Wl,-z,stack-size=4096 \
 *         -o per_thread.wasm per_thread.c
 */

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("percid"), import_name(name)))

IMPORT("count") void count(int what, int number);

enum { SLOW_PATHS = 3, PAGE = 65536, MAX_IDS = 65536 };

/* The IDs that living threads have. */
static unsigned taken[MAX_IDS / 32];

/* The first byte that the linker has not used: there each thread has one more than its ID, or 0. */
extern unsigned char __heap_base;

static unsigned *note(int thread)
{
    unsigned *notes = (unsigned *)(((unsigned long)&__heap_base + 3) & ~3ul);
    unsigned long end = (unsigned long)(notes + thread + 1);
    unsigned long pages = (end + PAGE - 1) / PAGE, size = __builtin_wasm_memory_size(0);
    if (pages > size && __builtin_wasm_memory_grow(0, pages - size) == ~0ul)
        __builtin_trap();
    return notes + thread;
}

/* A new program begins with a new instance: there is no percid_exec. */

EXPORT("percid_exit") void thread_ends(int thread, int cpu)
{
    unsigned *id = note(thread);
    (void)cpu;
    if (*id) {
        taken[(*id - 1) / 32] &= ~(1u << (*id - 1) % 32);
        *id = 0;
    }
}

EXPORT("percid_id") int id_of(int cpu, int thread)
{
    unsigned *id = note(thread), word = 0;
    (void)cpu;
    if (*id)
        return *id - 1;
    count(SLOW_PATHS, 1);
    while (taken[word] == ~0u)
        if (++word == MAX_IDS / 32)
            return -1;
    *id = word * 32 + __builtin_ctz(~taken[word]) + 1;
    taken[word] |= 1u << (*id - 1) % 32;
    return *id - 1;
}
