/* Memory that must never be armed, where the machine is believed to have two nodes: threads' stacks
 * and what is local to them, what the handler of faults uses, and percid's own. If it were taken,
 * the passes would arm it and the program die. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

/* Of the library as it is built for this test alone. */
void percid_testing_pretend_nodes(uint32_t count);

enum { ARRAY = 1 << 20, STACK = 1 << 20, PASSES = 20 };

static percid_balancer *balancer;
static size_t page;

static _Thread_local char local[64];

static uintptr_t page_of(const void *place)
{
    return (uintptr_t)place & ~(uintptr_t)(page - 1);
}

static void arm(void)
{
    for (int i = 0; i < PASSES; i++) {
        CHECK(percid_balancer_pass(balancer, NULL) == 0);
    }
}

static int trap(uintptr_t start, size_t bytes)
{
    percid_region *region = NULL;
    const int result = percid_region_register_trapped(&region, balancer, (const void *)start, bytes);
    CHECK((result == 0) == (region != NULL));
    if (result == 0) {
        arm();
        CHECK(percid_region_unregister(region) == 0);
    }
    return result;
}

static int watch(uintptr_t start, size_t bytes)
{
    percid_region *region = NULL;
    const int result = percid_region_register_written(&region, balancer, (const void *)start, bytes);
    if (result == 0) {
        arm();
        CHECK(percid_region_unregister(region) == 0);
    }
    return result;
}

/* Both ways. Reporting is no danger. */
static void must_refuse(const void *place, size_t bytes)
{
    const uintptr_t start = page_of(place);
    const size_t whole = page_of((const char *)place + bytes + page - 1) - start;
    percid_region *region;
    CHECK(trap(start, whole) == -EDEADLK);
    CHECK(watch(start, whole) == -EDEADLK);
    CHECK(percid_region_register(&region, balancer, (const void *)start, whole) == 0);
    arm();
    CHECK(percid_region_unregister(region) == 0);
}

static char *map(size_t bytes)
{
    char *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, 1, bytes);
    return memory;
}

/* Not written to near its ends, and no frame of the library is in it. */
static void array_of_main(void)
{
    char array[ARRAY];
    memset(array, 1, sizeof array);
    const uintptr_t start = page_of(array + page - 1);
    must_refuse((const void *)start, page_of(array + sizeof array) - start);
    must_refuse((const void *)(start + page), page);
    must_refuse(local, 1);
    CHECK(array[ARRAY / 2] == 1);
}

/* What a thread says of itself. */
struct thread {
    char *stack;
    size_t bytes;
    char *local;
    int busy;
    int ready, end;
};

static void *live(void *argument)
{
    struct thread *const self = argument;
    pthread_attr_t attributes;
    void *stack;
    CHECK(pthread_getattr_np(pthread_self(), &attributes) == 0);
    CHECK(pthread_attr_getstack(&attributes, &stack, &self->bytes) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
    self->stack = stack;
    self->local = local;
    __atomic_store_n(&self->ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&self->end, __ATOMIC_ACQUIRE)) {
        if (!self->busy) {
            usleep(1000);
        }
    }
    return NULL;
}

static void start(struct thread *self, pthread_t *thread, const pthread_attr_t *attributes)
{
    CHECK(pthread_create(thread, attributes, live, self) == 0);
    while (!__atomic_load_n(&self->ready, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
}

static void end(struct thread *self, pthread_t thread)
{
    __atomic_store_n(&self->end, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void stack_of_another_thread(int busy)
{
    struct thread self = {.busy = busy};
    pthread_t thread;
    start(&self, &thread, NULL);
    char *const lowest = (char *)page_of(self.stack + page - 1);
    const size_t half = page_of(lowest + self.bytes / 2) - (uintptr_t)lowest;
    /* Half of it; its lowest page, the one in use, its variables, what the C library has there. */
    must_refuse(lowest, half);
    must_refuse(lowest, page);
    must_refuse(self.stack + self.bytes - 1, 1);
    must_refuse(self.local, 1);
    end(&self, thread);
}

/* In memory whose rest is the program's. */
static void stack_that_the_program_gives(void)
{
    char *const memory = map(3 * STACK);
    struct thread self = {.busy = 0};
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(mprotect(memory + STACK - page, page, PROT_NONE) == 0);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, memory + STACK, STACK) == 0);
    start(&self, &thread, &attributes);
    must_refuse(memory + STACK, STACK);
    must_refuse(memory + STACK, page);
    must_refuse(memory + 2 * STACK - page, page);
    /* Side by side with it. */
    CHECK(trap((uintptr_t)memory, STACK - page) == 0 && trap((uintptr_t)memory + 2 * STACK, STACK) == 0);
    end(&self, thread);
    CHECK(trap((uintptr_t)memory + STACK, STACK) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0 && munmap(memory, 3 * STACK) == 0);
}

static void *of_a_thread_itself(void *unused)
{
    struct thread self = {.end = 1};
    live(&self);
    must_refuse((const void *)page_of(self.stack + page - 1), STACK / 2);
    must_refuse(local, 1);
    return unused;
}

static void alternate_stack(void)
{
    const size_t bytes = 16 * page;
    char *const memory = map(bytes);
    const stack_t own = {.ss_sp = memory, .ss_size = bytes / 2};
    stack_t before;
    CHECK(sigaltstack(&own, &before) == 0);
    must_refuse(memory, page);
    must_refuse(memory + bytes / 2 - page, 2 * page);
    CHECK(trap((uintptr_t)memory + bytes / 2, bytes / 2) == 0);
    CHECK(sigaltstack(&before, NULL) == 0);
    CHECK(trap((uintptr_t)memory, bytes) == 0 && munmap(memory, bytes) == 0);
}

static void memory_of_percid(void)
{
    percid_pool *pool;
    CHECK(percid_pool_create(&pool, 2 * page, page, 16) == 0);
    char *const object = percid_pool_get(pool);
    CHECK(object != NULL);
    memset(object, 1, 2 * page);
    must_refuse(object, page);
    CHECK(percid_pool_put(pool, object) == 0 && percid_pool_destroy(pool) == 0);
}

/* The program's constants are those of the library that it contains. */
static void constants(void)
{
    static const char constant[1 << 14] = {1};
    const uintptr_t start = page_of(constant + page - 1);
    CHECK(trap(start, page) == -EDEADLK && watch(start, page) == -ENODEV);
    /* The C library's, where that is a library. */
    CHECK(trap(page_of((const void *)stdout), page) == -EDEADLK);
}

int main(void)
{
    percid_balancer_settings settings;
    percid_testing_pretend_nodes(PRETENDED_NODES);
    page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK(percid_balancer_settings_init(&settings, sizeof settings) == 0);
    settings.scan_delay_ns = 0;
    CHECK(percid_balancer_create(&balancer, &settings) == 0 && percid_balancer_has_nodes(balancer) == 1);
    array_of_main();
    stack_of_another_thread(0);
    stack_of_another_thread(1);
    stack_that_the_program_gives();
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, of_a_thread_itself, NULL) == 0 && pthread_join(thread, NULL) == 0);
    alternate_stack();
    memory_of_percid();
    constants();
    CHECK(percid_balancer_destroy(balancer) == 0);
    puts("ok");
    return 0;
}
