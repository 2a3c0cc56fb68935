/* Functions that the library calls and that do not return: their thread is cancelled or exits, or
 * they jump. And what a child of fork() finds of the parent's threads that were inside a call. */

#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <percid.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Far longer than anything here takes: a hang is a failure. */
#define LIMIT 300

/* Each of these rings, stacks and locals lives for one check. */
static percid_stack *stack;
static percid_local *local;
static percid_ring *ring;
static percid_mask *mask;

/* How functions end. */
enum way { CANCELLED, EXITED, JUMPED, WAYS };

static enum way way;
static __thread jmp_buf place;
static int armed;

static void end(void)
{
    if (!armed) {
        return;
    }
    armed = 0;
    switch (way) {
    case CANCELLED:
        pthread_cancel(pthread_self());
        pthread_testcancel();
        break;
    case EXITED:
        pthread_exit(&way);
    default:
        longjmp(place, 1);
    }
    CHECK(0 && "it came back");
}

static void *run(void *operation)
{
    void (*volatile run)(void);
    memcpy((void *)&run, &operation, sizeof run);
    if (setjmp(place) == 0) {
        run();
        CHECK(0 && "it returned");
    }
    return &place;
}

/* Runs `operation` on a thread of its own, which ends where the operation's function is armed. */
static void run_to_the_end(void (*operation)(void))
{
    void *argument, *result;
    pthread_t thread;
    memcpy(&argument, &operation, sizeof argument);
    armed = 1;
    CHECK(pthread_create(&thread, NULL, run, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(!armed);
    CHECK((way == CANCELLED) == (result == PTHREAD_CANCELED));
    CHECK((way == EXITED) == (result == &way));
}

static int counted;

static void count(void *value, void *argument)
{
    (void)value, (void)argument;
    counted++;
}

static void ending(void *value, void *argument)
{
    count(value, argument);
    end();
}

/* A value of a local: made, and dropped. */
static int made, dropped;

static int make(void *value, void *context)
{
    (void)context;
    end();
    *(int *)value = 42;
    made++;
    return 0;
}

static void drop(void *value, void *context)
{
    (void)context;
    CHECK(*(int *)value == 42);
    dropped++;
}

static void ending_drop(void *value, void *context)
{
    drop(value, context);
    end();
}

static void create_local(void (*function)(void *, void *))
{
    made = dropped = counted = 0;
    CHECK(percid_local_create(&local, sizeof(int), sizeof(int), make, function, NULL) == 0);
}

static int each(void)
{
    counted = 0;
    CHECK(percid_local_for_each(local, count, NULL) == 0);
    return counted;
}

static void with_inside(void *value, void *argument)
{
    int *depth = argument;
    (void)value;
    if (--*depth > 0) {
        CHECK(percid_local_with(local, with_inside, depth) == 0);
    }
}

/* Makes as many values. */
static void make_values(int depth)
{
    int inside = depth;
    CHECK(percid_local_with(local, with_inside, &inside) == 0);
    CHECK(made == depth);
}

static void with(void)
{
    CHECK(percid_local_with(local, ending, NULL) == 0);
}

static void for_each(void)
{
    percid_local_for_each(local, ending, NULL);
}

static void drain_local(void)
{
    percid_local_drain(local, ending, NULL);
}

static void drain_dropping(void)
{
    percid_local_drain(local, NULL, NULL);
}

static void destroy_local(void)
{
    percid_local_destroy(local);
}

static void locals(void)
{
    int rest;

    create_local(drop);
    run_to_the_end(with);
    /* What was made while the function was armed is not made. */
    CHECK(made == 0 && each() == 0);
    make_values(1);
    armed = 0;
    run_to_the_end(with);
    CHECK(each() == made && percid_local_drain(local, NULL, NULL) == made && dropped == made);
    CHECK(percid_local_destroy(local) == 0);

    create_local(drop);
    make_values(3);
    run_to_the_end(for_each);
    CHECK(each() == 3);
    counted = 0;
    run_to_the_end(drain_local);
    CHECK(counted == 1 && dropped == 1);
    CHECK(each() == 2);
    CHECK(percid_local_drain(local, NULL, NULL) == 2 && dropped == 3);
    CHECK(percid_local_destroy(local) == 0);

    create_local(ending_drop);
    make_values(3);
    run_to_the_end(drain_dropping);
    CHECK(dropped == 1 && each() == 2);
    run_to_the_end(destroy_local);
    CHECK(dropped == 2 && (rest = each()) == 1);
    CHECK(percid_local_destroy(local) == 0 && dropped == 3);
    CHECK(percid_local_destroy(local) == -EBADF);
}

static void drain_stack(void)
{
    percid_stack_drain(stack, ending, NULL);
}

static void destroy_stack(void)
{
    percid_stack_destroy(stack, ending, NULL);
}

static void push(int items)
{
    for (int item = 1; item <= items; item++) {
        CHECK(percid_stack_push(stack, (void *)(uintptr_t)item) == 0);
    }
}

static void stacks(void)
{
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(40);
    run_to_the_end(drain_stack);
    CHECK(percid_stack_drain(stack, count, NULL) == 39);
    push(40);
    run_to_the_end(destroy_stack);
    push(1);
    counted = 0;
    CHECK(percid_stack_destroy(stack, count, NULL) == 0 && counted == 40);
    CHECK(percid_stack_push(stack, stack) == -EBADF);
}

static void ending_event(const percid_event *event, void *argument)
{
    CHECK(event->length == sizeof(int));
    (void)argument;
    end();
}

static void poll_ring(void)
{
    percid_ring_poll(ring, ending_event, NULL);
}

static void append(int records)
{
    for (int record = 0; record < records; record++) {
        CHECK(percid_ring_append(ring, &record, sizeof record) == 0);
    }
}

static void rings(void)
{
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    append(3);
    run_to_the_end(poll_ring);
    CHECK(percid_ring_poll(ring, ending_event, NULL) == 2);
    append(3);
    CHECK(percid_ring_poll(ring, ending_event, NULL) == 3 && percid_ring_lost(ring) == 0);
    CHECK(percid_ring_destroy(ring) == 0);
}

static void ending_id(uint32_t id, void *argument)
{
    (void)id, (void)argument;
    end();
}

static void drain_mask(void)
{
    percid_mask_drain(mask, ending_id, NULL);
}

static void masks(void)
{
    static const uint32_t members[] = {1, 70, 511, 512, 8191};
    CHECK(percid_mask_create(&mask) == 0);
    for (int member = 0; member < 5; member++) {
        CHECK(percid_mask_mark(mask, members[member]) == 0);
    }
    for (int left = 4; left >= 0; left--) {
        run_to_the_end(drain_mask);
        for (int member = 0; member < 5; member++) {
            CHECK(percid_mask_is_marked(mask, members[member]) == (member > 4 - left));
        }
    }
    CHECK(percid_mask_drain(mask, ending_id, NULL) == 0);
    CHECK(percid_mask_destroy(mask) == 0);
}

/* What reads the files of the kernel, and starts and awaits threads. */
static void pages_and_machines(void)
{
    const size_t bytes = 64 << 12;
    percid_balancer *balancer;
    percid_region *region;
    percid_report *report;
    percid_machine machine;
    percid_pass passed;
    void *const start =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED);
    CHECK(percid_machine_read(&machine, sizeof machine) == 0);
    CHECK(percid_balancer_create(&balancer, NULL) == 0);
    CHECK(percid_region_register(&region, balancer, start, bytes) == 0);
    CHECK(percid_balancer_start(balancer) == 0);
    CHECK(percid_balancer_pass(balancer, &passed) == 0);
    CHECK(percid_report_create(&report, balancer) == 0);
    percid_report_free(report);
    CHECK(percid_balancer_stop(balancer) == 0 && percid_region_unregister(region) == 0);
    CHECK(percid_balancer_destroy(balancer) == 0 && munmap(start, bytes) == 0);
}

/* Functions of the library are no cancellation points. */
static void *is_due(void *argument)
{
    percid_pool *pool;
    char text[512];
    int old;
    CHECK(pthread_cancel(pthread_self()) == 0);
    /* From here on every cancellation point ends the thread. */
    CHECK(percid_pool_create(&pool, 64, 8, 4) == 0);
    void *object = percid_pool_get(pool);
    CHECK(percid_pool_put(pool, object) == 0);
    CHECK(percid_pool_drain(pool) == 1 && percid_pool_destroy(pool) == 0);
    create_local(drop);
    make_values(2);
    CHECK(each() == 2 && percid_local_drain(local, NULL, NULL) == 2);
    CHECK(percid_local_destroy(local) == 0);
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(40);
    CHECK(percid_stack_drain(stack, count, NULL) == 40);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_OVERWRITE_OLDEST) == 0);
    append(1000);
    CHECK(percid_ring_poll(ring, ending_event, NULL) > 0 && percid_ring_destroy(ring) == 0);
    CHECK(percid_mask_create(&mask) == 0 && percid_mask_mark(mask, 3) == 0);
    CHECK(percid_mask_drain(mask, ending_id, NULL) == 1 && percid_mask_destroy(mask) == 0);
    percid_reason(text, sizeof text);
    percid_compact_ids();
    pages_and_machines();
    *(int *)argument = 1;
    pthread_testcancel();
    CHECK(0 && "it was not cancelled");
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return NULL;
}

static void cancelled_at_last(void)
{
    int reached = 0;
    void *result;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, is_due, &reached) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && reached);
}

/* A thread inside a call, and another that waits for it. */
static pthread_barrier_t inside;
static volatile int leave;

static void stay(void *value, void *argument)
{
    int old;
    (void)value, (void)argument;
    /* The program's own sleep is a cancellation point. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    pthread_barrier_wait(&inside);
    while (!leave) {
        usleep(1000);
    }
    pthread_setcancelstate(old, &old);
}

static void stay_once(void *value, void *argument)
{
    if (!__atomic_exchange_n((int *)argument, 1, __ATOMIC_RELAXED)) {
        stay(value, argument);
    }
}

static void stay_at_event(const percid_event *event, void *argument)
{
    (void)event;
    stay_once(NULL, argument);
}

static void *stay_within(void *argument)
{
    CHECK(percid_local_with(local, stay, argument) == 0);
    return NULL;
}

static void *stay_in_each(void *argument)
{
    CHECK(percid_local_for_each(local, stay_once, argument) == 0);
    return NULL;
}

static void *stay_in_drain(void *argument)
{
    CHECK(percid_stack_drain(stack, stay_once, argument) > 0);
    return NULL;
}

static void *stay_in_poll(void *argument)
{
    CHECK(percid_ring_poll(ring, stay_at_event, argument) > 0);
    return NULL;
}

static pthread_t stays;
static int stayed;

static void start(void *(*operation)(void *))
{
    stayed = leave = 0;
    CHECK(pthread_barrier_init(&inside, NULL, 2) == 0);
    CHECK(pthread_create(&stays, NULL, operation, &stayed) == 0);
    pthread_barrier_wait(&inside);
}

static void stop(void)
{
    leave = 1;
    CHECK(pthread_join(stays, NULL) == 0);
}

/* A thread that waits, and whether it still does. */
static pid_t waiting;

static void *waits_for_each(void *argument)
{
    __atomic_store_n(&waiting, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    percid_local_for_each(local, count, NULL);
    *(int *)argument = 1;
    pthread_testcancel();
    return NULL;
}

static void *waits_for_drain(void *argument)
{
    __atomic_store_n(&waiting, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    percid_stack_drain(stack, count, NULL);
    *(int *)argument = 1;
    pthread_testcancel();
    return NULL;
}

/* How often the thread that waits has given up its CPU. */
static long sleeps(void)
{
    char line[128];
    long found = -1;
    snprintf(line, sizeof line, "/proc/self/task/%d/status", (int)waiting);
    FILE *const status = fopen(line, "r");
    /* Whoever has ended does not wait. */
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL) {
        sscanf(line, "voluntary_ctxt_switches: %ld", &found);
    }
    CHECK(fclose(status) == 0 && found >= 0);
    return found;
}

/* Returns when the thread has gone to sleep, and woken up to see that it has to wait, ten times more. */
static void let_it_wait(void)
{
    while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == 0) {
        usleep(100);
    }
    for (const long before = sleeps(); sleeps() < before + 10;) {
        usleep(100);
    }
}

/* Cancels a thread while it waits for the one that stays. It ends when it has got what it waited
 * for, and no earlier. */
static void cancel_waiting(void *(*waits)(void *))
{
    int reached = 0;
    void *result;
    pthread_t thread;
    waiting = 0;
    CHECK(pthread_create(&thread, NULL, waits, &reached) == 0);
    let_it_wait();
    CHECK(pthread_cancel(thread) == 0);
    let_it_wait();
    CHECK(!__atomic_load_n(&reached, __ATOMIC_RELAXED));
    stop();
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && reached);
}

static void cancelled_while_they_wait(void)
{
    create_local(drop);
    make_values(1);
    start(stay_within);
    cancel_waiting(waits_for_each);
    start(stay_in_each);
    cancel_waiting(waits_for_each);
    CHECK(each() == made && percid_local_destroy(local) == 0);
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(3);
    start(stay_in_drain);
    cancel_waiting(waits_for_drain);
    push(3);
    CHECK(percid_stack_drain(stack, count, NULL) == 3);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
}

/* Forks while a thread stays inside a call; the child runs `check`, alone and beside a thread. */
static void *idle(void *argument)
{
    for (;;) {
        sleep(LIMIT);
    }
    return argument;
}

static void in_child(void (*check)(void), int beside)
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_t thread;
        alarm(LIMIT);
        CHECK(!beside || pthread_create(&thread, NULL, idle, NULL) == 0);
        check();
        _exit(7);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void in_children(void *(*operation)(void *), void (*check)(void))
{
    start(operation);
    in_child(check, 0);
    in_child(check, 1);
    stop();
}

static int before_fork;

static void child_of_with(void)
{
    /* All but the one that a thread of the parent was using; twice, and destroyed. */
    CHECK(each() == before_fork - 1);
    CHECK(percid_local_with(local, count, NULL) == 0);
    CHECK(each() >= before_fork - 1);
    CHECK(percid_local_drain(local, NULL, NULL) >= before_fork - 1);
    CHECK(percid_local_destroy(local) == 0);
}

static void child_of_drain(void)
{
    const int64_t left = percid_stack_drain(stack, count, NULL);
    CHECK(left >= 0 && left < 40);
    push(40);
    CHECK(percid_stack_drain(stack, count, NULL) == 40);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
}

static void child_of_poll(void)
{
    CHECK(percid_ring_poll(ring, ending_event, NULL) == 2);
    append(3);
    CHECK(percid_ring_poll(ring, ending_event, NULL) == 3);
    CHECK(percid_ring_destroy(ring) == 0);
}

static percid_consumer *consumer;

static void *fetch(void *argument)
{
    percid_event event;
    while (!leave) {
        CHECK(percid_consumer_next(consumer, &event) >= 0);
    }
    return argument;
}

static void child_of_next(void)
{
    percid_event event;
    CHECK(percid_consumer_next(consumer, &event) == 0);
    append(3);
    for (int record = 0; record < 3; record++) {
        CHECK(percid_consumer_next(consumer, &event) == 1);
    }
    CHECK(percid_consumer_next(consumer, &event) == 0);
    CHECK(percid_consumer_close(consumer) == 0);
    CHECK(percid_consumer_open(&consumer, ring) == 0);
}

/* A thread is inside percid_consumer_next() most of the time, and in most of the forks. */
static void forks_while_another_fetches(void)
{
    pthread_t thread;
    leave = 0;
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    CHECK(percid_consumer_open(&consumer, ring) == 0);
    CHECK(pthread_create(&thread, NULL, fetch, NULL) == 0);
    for (int child = 0; child < 20; child++) {
        usleep(1000);
        in_child(child_of_next, 0);
    }
    leave = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(percid_consumer_close(consumer) == 0 && percid_ring_destroy(ring) == 0);
}

static void forks(void)
{
    create_local(drop);
    make_values(3);
    /* Before it forks, nothing of this is to be noticed: visits wait as long as it takes. */
    CHECK(each() == 3);
    start(stay_within);
    before_fork = made;
    in_child(child_of_with, 0);
    in_child(child_of_with, 1);
    stop();
    CHECK(each() == before_fork);
    in_children(stay_in_each, child_of_with);
    CHECK(each() == before_fork && percid_local_destroy(local) == 0);
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(40);
    in_children(stay_in_drain, child_of_drain);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    append(3);
    in_children(stay_in_poll, child_of_poll);
    CHECK(percid_ring_destroy(ring) == 0);
}

/* Functions that call back into the object that has called them. */
static void again_within(void *value, void *argument)
{
    int *inside = argument;
    CHECK(percid_local_for_each(local, count, NULL) == -EDEADLK);
    CHECK(percid_local_drain(local, count, NULL) == -EDEADLK);
    CHECK(percid_local_destroy(local) == -EDEADLK);
    if (!*inside) {
        *inside = 1;
        CHECK(percid_local_with(local, again_within, inside) == 0);
        *inside = 0;
    }
    CHECK(*(int *)value == 42);
}

static int forked_inside;

static void fork_inside(void *item, void *argument)
{
    int status;
    count(item, argument);
    if (forked_inside) {
        return;
    }
    forked_inside = 1;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(LIMIT);
        forked_inside = 2;
    }
    CHECK(percid_stack_drain(stack, count, NULL) == -EDEADLK);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == -EDEADLK);
    if (child != 0) {
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
}

/* A child of fork() goes on with the drain in which it was forked. */
static void forks_inside_a_drain(void)
{
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(40);
    counted = 0;
    CHECK(percid_stack_drain(stack, fork_inside, NULL) == 40 && counted == 40);
    push(3);
    CHECK(percid_stack_drain(stack, count, NULL) == 3);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
    if (forked_inside == 2) {
        _exit(7);
    }
}

static void again_in_drain(void *item, void *argument)
{
    CHECK(percid_stack_drain(stack, count, NULL) == -EDEADLK);
    CHECK(percid_stack_destroy(stack, count, NULL) == -EDEADLK);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == -EDEADLK);
    /* Pushing and popping is allowed. */
    if (item == (void *)1) {
        CHECK(percid_stack_push(stack, (void *)7) == 0);
        *(int *)argument += percid_stack_pop(stack) != NULL;
    }
}

static void again_in_poll(const percid_event *event, void *argument)
{
    CHECK(percid_ring_poll(ring, again_in_poll, argument) == -EDEADLK);
    CHECK(percid_ring_destroy(ring) == -EDEADLK);
    CHECK(percid_ring_lost(ring) == 0);
    if (*(const int *)event->bytes == 0) {
        append(1);
    }
}

static void again_in_mask(uint32_t id, void *argument)
{
    CHECK(percid_mask_destroy(mask) == -EDEADLK);
    if (++*(int *)argument == 1) {
        CHECK(id == 3);
        /* The members of the outer drain are its own; what comes now is anyone's. */
        CHECK(percid_mask_mark(mask, 3) == 0 && percid_mask_mark(mask, 4) == 0);
        CHECK(percid_mask_drain(mask, again_in_mask, argument) == 2);
        CHECK(percid_mask_mark(mask, 6) == 0);
    }
}

static void calls_back(void)
{
    int inside = 0, popped = 0;
    create_local(drop);
    CHECK(percid_local_with(local, again_within, &inside) == 0);
    CHECK(percid_local_for_each(local, again_within, &inside) == 0);
    inside = 1;
    CHECK(percid_local_drain(local, again_within, &inside) >= 2);
    CHECK(percid_local_destroy(local) == 0);
    CHECK(percid_stack_create(&stack, 64, PERCID_UNBOUNDED) == 0);
    push(3);
    CHECK(percid_stack_drain(stack, again_in_drain, &popped) >= 3 - popped);
    CHECK(percid_stack_destroy(stack, NULL, NULL) == 0);
    CHECK(percid_ring_create(&ring, 4096, PERCID_OVERFLOW_DROP_NEWEST) == 0);
    CHECK(percid_ring_append(ring, &(int){0}, sizeof(int)) == 0);
    append(0);
    int64_t polled = percid_ring_poll(ring, again_in_poll, NULL);
    CHECK(polled >= 1);
    CHECK(percid_ring_destroy(ring) == 0);
    CHECK(percid_mask_create(&mask) == 0);
    CHECK(percid_mask_mark(mask, 3) == 0 && percid_mask_mark(mask, 5) == 0);
    int visited = 0;
    CHECK(percid_mask_drain(mask, again_in_mask, &visited) == 2);
    CHECK(percid_mask_drain(mask, again_in_mask, &visited) == 1 && visited == 5);
    CHECK(percid_mask_destroy(mask) == 0);
}

static void *kept[4096];
static size_t kept_count, keep_count;

/* More than IDs can be used: one at least is an extra value, to which a visit comes last. */
static void keep(void *value, void *context)
{
    (void)context;
    CHECK(*(int *)value == 42);
    for (; kept_count < keep_count; kept_count++) {
        CHECK(percid_local_acquire(local, &kept[kept_count]) == 0);
    }
}

static void give_back(void)
{
    while (kept_count > 0) {
        percid_local_release(kept[--kept_count]);
    }
}

/* A visit does not wait for what its own function has taken and keeps. */
static void keeps_values(void)
{
    const size_t many = 2 * (size_t)sysconf(_SC_NPROCESSORS_CONF) + 2;
    keep_count = many < 4096 ? many : 4096;
    create_local(keep);
    make_values(3);
    CHECK(percid_local_for_each(local, keep, NULL) == -EDEADLK && kept_count == keep_count);
    give_back();
    CHECK(percid_local_drain(local, keep, NULL) == -EDEADLK);
    CHECK(percid_local_destroy(local) == -EDEADLK);
    give_back();
    /* By the function that drops values. */
    CHECK(percid_local_destroy(local) == -EDEADLK && kept_count == keep_count);
    keep_count = 0;
    give_back();
    CHECK(each() > 0 && percid_local_destroy(local) == 0);
}

/* Functions that put something into the object that is being destroyed. */
static int due;

static void push_another(void *item, void *argument)
{
    count(item, argument);
    if (due > 0) {
        due--;
        CHECK(percid_stack_push(stack, item) == 0);
    }
}

static void make_another(void *value, void *context)
{
    void *another;
    drop(value, context);
    if (due > 0) {
        due--;
        CHECK(percid_local_acquire(local, &another) == 0);
        percid_local_release(another);
    }
}

static void destroys_what_comes_meanwhile(void)
{
    counted = 0, due = 20;
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(3);
    CHECK(percid_stack_destroy(stack, push_another, NULL) == 0 && counted == 23);
    due = 1000000;
    CHECK(percid_stack_create(&stack, 4, PERCID_UNBOUNDED) == 0);
    push(3);
    CHECK(percid_stack_destroy(stack, push_another, NULL) == -EBUSY);
    counted = 0, due = 0;
    CHECK(percid_stack_destroy(stack, push_another, NULL) == 0 && counted == 3);

    create_local(make_another);
    make_values(3);
    due = 5;
    CHECK(percid_local_destroy(local) == 0 && made > 3 && dropped == made);
    create_local(make_another);
    make_values(3);
    due = 1000000;
    CHECK(percid_local_destroy(local) == -EBUSY && made > dropped);
    due = 0;
    CHECK(percid_local_destroy(local) == 0 && dropped == made);
}

int main(void)
{
    alarm(LIMIT);
    destroys_what_comes_meanwhile();
    calls_back();
    keeps_values();
    for (way = CANCELLED; way < WAYS; way++) {
#ifndef __GLIBC__
        if (way == JUMPED) {
            continue;
        }
#endif
        locals();
        stacks();
        rings();
        masks();
    }
    way = CANCELLED;
    armed = 0;
    cancelled_at_last();
    cancelled_while_they_wait();
    forks();
    forks_while_another_fetches();
    forks_inside_a_drain();
    puts("ok");
    return 0;
}
