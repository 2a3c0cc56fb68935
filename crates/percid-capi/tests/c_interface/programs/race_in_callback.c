/* One real race for each structure, which a race detector must find although it is told of what the
 * structure hands over. Its argument names the structure. */
#include <pthread.h>
#include <string.h>

#include <percid.h>

#include "check.h"

enum { COUNT = 100, ID = 5 };

struct box {
    long value;
};

static struct box box;
static percid_stack *stack;
static percid_pool *pool;
static percid_local *local;
static percid_ring *ring;
static percid_mask *mask;
static int turn;

/* What comes first comes first, but nothing says so: no lock, no release and no acquire. */
static void wait_for(int what)
{
    while (__atomic_load_n(&turn, __ATOMIC_RELAXED) < what) {
    }
}

static int pass_on(void)
{
    return __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
}

/* Two callbacks at the same time have two values, but one box. */
static void write_both(void *value, void *argument)
{
    (void)argument;
    /* One after the other: of two accesses at the very same moment a detector may miss both. */
    wait_for(pass_on() == 0 ? 2 : 3);
    ((struct box *)value)->value++;
    box.value++;
    pass_on();
}

static void *with_local(void *unused)
{
    CHECK(percid_local_with(local, write_both, NULL) == 0);
    return unused;
}

/* These write to what they have handed over. */
static void *push(void *unused)
{
    CHECK(percid_stack_push(stack, &box) == 0);
    pass_on();
    wait_for(2);
    box.value++;
    return unused;
}

static void write_item(void *item, void *argument)
{
    (void)argument;
    ((struct box *)item)->value++;
}

static void *drain_stack(void *unused)
{
    wait_for(1);
    CHECK(percid_stack_drain(stack, write_item, NULL) == 1);
    pass_on();
    return unused;
}

static void *put(void *unused)
{
    struct box *boxes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        boxes[i] = (struct box *)percid_pool_get(pool);
        CHECK(boxes[i] != NULL);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(percid_pool_put(pool, boxes[i]) == 0);
    }
    pass_on();
    wait_for(2);
    for (int i = 0; i < COUNT; i++) {
        boxes[i]->value++;
    }
    return unused;
}

static void *get(void *unused)
{
    wait_for(1);
    for (int i = 0; i < COUNT; i++) {
        ((struct box *)percid_pool_get(pool))->value++;
    }
    pass_on();
    return unused;
}

static void *append(void *unused)
{
    struct box *const pointer = &box;
    CHECK(percid_ring_append(ring, &pointer, sizeof pointer) == 0);
    pass_on();
    wait_for(2);
    box.value++;
    return unused;
}

static void write_behind(const percid_event *event, void *argument)
{
    struct box *pointer;
    (void)argument;
    memcpy(&pointer, event->bytes, sizeof pointer);
    pointer->value++;
}

static void *poll_ring(void *unused)
{
    wait_for(1);
    CHECK(percid_ring_poll(ring, write_behind, NULL) == 1);
    pass_on();
    return unused;
}

static void *mark(void *unused)
{
    CHECK(percid_mask_mark(mask, ID) == 0);
    pass_on();
    wait_for(2);
    box.value++;
    return unused;
}

static void write_box(uint32_t id, void *argument)
{
    (void)argument;
    CHECK(id == ID);
    box.value++;
}

static void *drain_mask(void *unused)
{
    wait_for(1);
    CHECK(percid_mask_drain(mask, write_box, NULL) == 1);
    pass_on();
    return unused;
}

static int run(void *(*one)(void *), void *(*other)(void *))
{
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, one, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, other, NULL) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    puts("ok");
    return 0;
}

int main(int count, char **arguments)
{
    const char *const structure = count == 2 ? arguments[1] : "";
    if (strcmp(structure, "local") == 0) {
        CHECK(percid_local_create(&local, sizeof(struct box), 8, NULL, NULL, NULL) == 0);
        return run(with_local, with_local);
    }
    if (strcmp(structure, "stack") == 0) {
        CHECK(percid_stack_create(&stack, 16, SIZE_MAX) == 0);
        return run(push, drain_stack);
    }
    if (strcmp(structure, "pool") == 0) {
        CHECK(percid_pool_create(&pool, sizeof(struct box), 8, 1) == 0);
        return run(put, get);
    }
    if (strcmp(structure, "ring") == 0) {
        CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
        return run(append, poll_ring);
    }
    if (strcmp(structure, "mask") == 0) {
        CHECK(percid_mask_create(&mask) == 0);
        return run(mark, drain_mask);
    }
    fprintf(stderr, "there is no structure \"%s\"\n", structure);
    return 2;
}
