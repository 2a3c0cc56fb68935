/* Stacks: every item comes out once, whoever takes it. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, ITEMS = 20000 };

static percid_stack *stack;
static int taken[THREADS * ITEMS];

static void take(void *item, void *count)
{
    CHECK(__atomic_fetch_add((int *)item, 1, __ATOMIC_RELAXED) == 0);
    if (count != NULL) {
        ++*(int64_t *)count;
    }
}

static void *push_and_pop(void *items)
{
    for (int i = 0; i < ITEMS; i++) {
        void *item;
        CHECK(percid_stack_push(stack, (int *)items + i) == 0);
        if (i % 3 != 0 && (item = percid_stack_pop(stack)) != NULL) {
            take(item, NULL);
        }
    }
    return NULL;
}

static void threads(void)
{
    pthread_t workers[THREADS];
    int64_t drained = 0, visited = 0;
    CHECK(percid_stack_create(&stack, 32, PERCID_UNBOUNDED) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&workers[i], NULL, push_and_pop, taken + i * ITEMS) == 0);
    }
    for (int i = 0; i < 50; i++) {
        drained += percid_stack_drain(stack, take, &visited);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    CHECK(drained == visited);
    /* Destroying hands out what is left. */
    CHECK(percid_stack_destroy(stack, take, &visited) == 0);
    CHECK(visited > 0);
    for (int i = 0; i < THREADS * ITEMS; i++) {
        CHECK(taken[i] == 1);
    }
}

static void order_and_bounds(void)
{
    int items[300];
    int64_t left = 0;
    int refused = 0;
    CHECK(percid_stack_create(&stack, 4, 10) == 0);
    CHECK(percid_stack_pop(stack) == NULL);
    for (int i = 0; i < 300; i++) {
        const int result = percid_stack_push(stack, &items[i]);
        CHECK(result == 0 || result == -ENOSPC);
        refused += result != 0;
        items[i] = result != 0;
    }
    CHECK(refused > 200);
    CHECK(percid_stack_drain(stack, take, &left) == 300 - refused && left == 300 - refused);
    for (int i = 0; i < 300; i++) {
        CHECK(items[i] == 1);
    }
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
}

static void misuse(void)
{
    int item = 0;
    CHECK(percid_stack_create(NULL, 4, 0) == -EINVAL);
    CHECK(percid_stack_create(&stack, 0, 0) == -EINVAL && stack == NULL);
    CHECK(percid_stack_create(&stack, 2097152, 0) == -EINVAL && stack == NULL);
    CHECK(percid_stack_create(&stack, 2097151, 0) == 0);
    CHECK(percid_stack_push(stack, NULL) == -EINVAL);
    CHECK(percid_stack_push(NULL, &item) == -EINVAL);
    CHECK(percid_stack_pop(NULL) == NULL);
    CHECK(percid_stack_drain(NULL, take, NULL) == -EINVAL);
    CHECK(percid_stack_drain(stack, NULL, NULL) == -EINVAL);
    CHECK(percid_stack_destroy(NULL, NULL, NULL) == -EINVAL);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
    CHECK(percid_stack_destroy(stack, take, NULL) == -EBADF);
    CHECK(percid_stack_push(stack, &item) == -EBADF);
    CHECK(percid_stack_pop(stack) == NULL);
    CHECK(percid_stack_drain(stack, take, NULL) == -EBADF);
}

int main(void)
{
    threads();
    order_and_bounds();
    misuse();
    puts("ok");
    return 0;
}
