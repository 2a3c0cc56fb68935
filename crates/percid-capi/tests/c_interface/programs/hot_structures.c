/* Every section of stacks, pools, locals and rings, inline, in a program that checks what they did. */
#include <percid.h>

#include "check.h"

enum { TIMES = 200 };

static percid_stack stack = PERCID_STACK_INIT(64);
static percid_pool pool = PERCID_POOL_INIT(64, 16, 64);
static percid_local local = PERCID_LOCAL_INIT(sizeof(long), 8, NULL, NULL, NULL);
static percid_ring ring = PERCID_RING_INIT(65536, PERCID_OVERFLOW_DROP_NEWEST);
static long popped;

static void count(void *item, void *argument)
{
    (void)argument;
    CHECK(item == &popped);
    popped++;
}

static void sum(void *value, void *total)
{
    *(long *)total += *(const long *)value;
}

static void look(const percid_event *event, void *next)
{
    CHECK(event->length == sizeof(long) && *(const long *)event->bytes == *(long *)next);
    ++*(long *)next;
}

__attribute__((noinline)) static void push(void)
{
    CHECK(percid_stack_push(&stack, &popped) == 0);
}

__attribute__((noinline)) static void pop(void)
{
    void *const item = percid_stack_pop(&stack);
    if (item != NULL) {
        count(item, NULL);
    }
}

__attribute__((noinline)) static void *get(void)
{
    return percid_pool_get(&pool);
}

__attribute__((noinline)) static void put(void *object)
{
    CHECK(percid_pool_put(&pool, object) == 0);
}

__attribute__((noinline)) static void acquire(void)
{
    void *value;
    CHECK(percid_local_acquire(&local, &value) == 0);
    ++*(long *)value;
    percid_local_release(value);
}

__attribute__((noinline)) static void append(long number)
{
    CHECK(percid_ring_append(&ring, &number, sizeof number) == 0);
}

int main(void)
{
    long total = 0, next = 0;
    for (long i = 0; i < TIMES; i++) {
        void *objects[2];
        push();
        pop();
        objects[0] = get();
        objects[1] = get();
        CHECK(objects[0] != NULL && objects[1] != NULL && objects[0] != objects[1]);
        put(objects[0]);
        put(objects[1]);
        acquire();
        append(i);
    }
    CHECK(percid_stack_drain(&stack, count, NULL) >= 0 && popped == TIMES);
    CHECK(percid_local_for_each(&local, sum, &total) == 0 && total == TIMES);
    CHECK(percid_ring_poll(&ring, look, &next) == TIMES && next == TIMES);
    return 0;
}
