// Another allocator for programs: blocks of one mapping that are never freed. It says at the end how many there were.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE ((size_t)1 << 34)

static char *memory;
static size_t taken, blocks, freed;

static void *take(size_t align, size_t size) {
    if (!__atomic_load_n(&memory, __ATOMIC_ACQUIRE)) {
        char *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        char *none = NULL;
        if (!__atomic_compare_exchange_n(&memory, &none, mapped, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            munmap(mapped, SIZE);
    }
    if (size > SIZE / 2 || align > SIZE / 2) { errno = ENOMEM; return NULL; }
    size_t room = size + align + 32;
    uintptr_t from = (uintptr_t)memory + __atomic_fetch_add(&taken, (room + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    if (from + room > (uintptr_t)memory + SIZE) { errno = ENOMEM; return NULL; }
    align = align < 16 ? 16 : align;
    uintptr_t block = (from + 16 + align - 1) & ~(align - 1);
    ((size_t *)block)[-1] = size;
    __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED);
    return (void *)block;
}

static size_t size_of(void *block) { return block ? ((size_t *)block)[-1] : 0; }

// None calls another one by the name that programs use: that would lead to percid-malloc.
void *memalign(size_t align, size_t size) { return take(align, size); }
void *malloc(size_t size) { return take(16, size); }
void *calloc(size_t count, size_t size) { return take(16, count * size); }
size_t malloc_usable_size(void *block) { return size_of(block); }
void free(void *block) { if (block) __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED); }

void *realloc(void *block, size_t size) {
    void *moved = take(16, size);
    size_t before = size_of(block);
    return moved ? memcpy(moved, block, before < size ? before : size) : NULL;
}

// Programs close standard error at their end.
static int to;
__attribute__((constructor)) static void begin(void) { to = dup(2); }

__attribute__((destructor)) static void tell(void) {
    static char text[99];
    int length = snprintf(text, sizeof text, "blocks %zu, freed %zu\n", blocks, freed);
    if (write(to, text, (size_t)length) < 0) return;
}
