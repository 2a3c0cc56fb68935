/* What one thread writes, without atomics, before it hands it over, another one reads after it was
 * handed over. Correct programs, about which a race detector has nothing to say. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

#include "check.h"

#ifndef ROUNDS
#define ROUNDS 2000
#endif

enum { THREADS = 3, IDS = ROUNDS, SIZE = 48 };

struct box {
    long value;
    long twice;
};

static percid_stack *stack;
static percid_pool *pool;
static percid_local *local;
static percid_ring *ring;
static percid_mask *mask;

/* Together with the workers; ends with the last of them. */
static void run(void *(*work)(void *), void (*meanwhile)(void))
{
    pthread_t workers[THREADS];
    for (long i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&workers[i], NULL, work, (void *)(i * ROUNDS)) == 0);
    }
    for (int i = 0; i < 50; i++) {
        meanwhile();
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    meanwhile();
}

static struct box *new_box(long value)
{
    struct box *const box = (struct box *)malloc(sizeof *box);
    CHECK(box != NULL);
    box->value = value;
    box->twice = 2 * value;
    return box;
}

static void open_box(struct box *box)
{
    CHECK(box->twice == 2 * box->value);
    free(box);
}

static void *through_a_stack(void *first)
{
    for (long i = 0; i < ROUNDS; i++) {
        struct box *box;
        CHECK(percid_stack_push(stack, new_box((long)first + i)) == 0);
        box = i % 3 == 0 ? NULL : (struct box *)percid_stack_pop(stack);
        if (box != NULL) {
            open_box(box);
        }
    }
    return NULL;
}

/* Visits are one after the other: what they share needs no lock. */
static long visits;

static void visit_item(void *item, void *argument)
{
    (void)argument;
    visits++;
    open_box((struct box *)item);
}

static void drain_stack(void)
{
    CHECK(percid_stack_drain(stack, visit_item, NULL) >= 0);
}

static void *through_a_pool(void *first)
{
    for (long i = 0; i < ROUNDS; i++) {
        unsigned char *objects[5];
        for (int k = 0; k < 5; k++) {
            objects[k] = (unsigned char *)percid_pool_get(pool);
            CHECK(objects[k] != NULL);
            memset(objects[k], (int)((long)first + i + k), SIZE);
        }
        for (int k = 0; k < 5; k++) {
            CHECK(objects[k][SIZE - 1] == (unsigned char)((long)first + i + k));
            CHECK(percid_pool_put(pool, objects[k]) == 0);
        }
    }
    return NULL;
}

static void drain_pool(void)
{
    CHECK(percid_pool_drain(pool) >= 0);
}

static void add(void *value, void *amount)
{
    ((struct box *)value)->value += (long)amount;
    ((struct box *)value)->twice += 2 * (long)amount;
}

static void nest(void *value, void *amount)
{
    CHECK(percid_local_with(local, add, amount) == 0);
    add(value, amount);
}

static void *through_a_local(void *first)
{
    (void)first;
    for (long i = 0; i < ROUNDS; i++) {
        CHECK(percid_local_with(local, i % 10 == 0 ? nest : add, (void *)i) == 0);
    }
    return NULL;
}

/* By nothing but acquiring and releasing. On one CPU, so that it is one value. */
static void stay_on_one_cpu(void)
{
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET((size_t)sched_getcpu(), &cpu);
    CHECK(sched_setaffinity(0, sizeof cpu, &cpu) == 0);
}

static void *through_a_local_inline(void *first)
{
    for (long i = 0; i < ROUNDS; i++) {
        void *value;
        CHECK(percid_local_acquire(local, &value) == 0);
        add(value, first);
        percid_local_release(value);
        sched_yield();
    }
    return NULL;
}

static void nothing(void)
{
}

static void look(void *value, void *argument)
{
    (void)argument;
    visits++;
    CHECK(((struct box *)value)->twice == 2 * ((struct box *)value)->value);
}

static void visit_local(void)
{
    CHECK(percid_local_for_each(local, look, NULL) == 0);
    CHECK(percid_local_drain(local, look, NULL) >= 0);
}

static void see(const percid_event *event, void *argument)
{
    struct box *box;
    (void)argument;
    visits++;
    memcpy(&box, event->bytes, sizeof box);
    open_box(box);
}

/* Consumers are refused while there is one, so what they share needs no lock either. */
static void poll_ring(void)
{
    const int64_t seen = percid_ring_poll(ring, see, NULL);
    CHECK(seen >= 0 || seen == -EBUSY);
}

static void *through_a_ring(void *first)
{
    for (long i = 0; i < ROUNDS; i++) {
        struct box *const box = new_box((long)first + i);
        if (percid_ring_append(ring, &box, sizeof box) != 0) {
            free(box);
            poll_ring();
        }
    }
    return NULL;
}

static long published[THREADS * ROUNDS];

static void *through_a_mask(void *first)
{
    const long begin = (long)first / ROUNDS * IDS;
    for (long id = begin; id < begin + IDS; id++) {
        published[id] = id + 1;
        CHECK(percid_mask_mark(mask, (uint32_t)id) == 0);
    }
    return NULL;
}

static void find(uint32_t id, void *argument)
{
    (void)argument;
    CHECK(published[id] == id + 1L);
}

static void drain_mask(void)
{
    CHECK(percid_mask_drain(mask, find, NULL) >= 0);
}

int main(void)
{
    CHECK(percid_stack_create(&stack, 16, SIZE_MAX) == 0);
    run(through_a_stack, drain_stack);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
    CHECK(percid_pool_create(&pool, SIZE, 8, 4) == 0);
    run(through_a_pool, drain_pool);
    CHECK(percid_pool_destroy(pool) == 0);
    CHECK(percid_local_create(&local, sizeof(struct box), 8, NULL, NULL, NULL) == 0);
    run(through_a_local, visit_local);
    CHECK(percid_local_destroy(local) == 0);
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    run(through_a_ring, poll_ring);
    CHECK(percid_ring_destroy(ring) == 0);
    CHECK(percid_mask_create(&mask) == 0);
    run(through_a_mask, drain_mask);
    CHECK(percid_mask_destroy(mask) == 0);
    stay_on_one_cpu();
    CHECK(percid_local_create(&local, sizeof(struct box), 8, NULL, NULL, NULL) == 0);
    run(through_a_local_inline, nothing);
    CHECK(percid_local_destroy(local) == 0);
    puts("ok");
    return 0;
}
