/* Locks, domains and budgets: exact with every source. With an argument one of the three is not used as it must be,
   and the program must find that. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include <percid.h>

#include "check.h"

#ifndef ROUNDS
#define ROUNDS 4000
#endif

enum { THREADS = 4, POISON = 0x6b6b6b6b, LIMIT = 1000 };

static const char *fault = "";

static int is_faulty(const char *name)
{
    return strcmp(fault, name) == 0;
}

/* Runs a function on threads, each of which is told its number. */
static void on_threads(void *(*function)(void *))
{
    static int numbers[THREADS] = {0, 1, 2, 3};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, function, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void on_another_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Locks */

static percid_rwlock *lock;
static volatile long first, second;

static void write_both(int round)
{
    const long before = first;
    if (round % 16 == 0) {
        sched_yield();
    }
    first = before + 1;
    second++;
}

static void *read_and_write(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == *(int *)number) {
            if (is_faulty("lock") || is_faulty("race")) {
                CHECK(percid_rwlock_read_lock(lock) == 0);
                write_both(i);
                CHECK(percid_rwlock_read_unlock(lock) == 0);
                continue;
            }
            CHECK((i % 3 != 0 ? percid_rwlock_write_lock(lock) : percid_rwlock_timed_write_lock(lock, UINT64_MAX)) == 0);
            write_both(i);
            CHECK(percid_rwlock_write_unlock(lock) == 0);
        } else {
            const int result = i % 3 == 0   ? percid_rwlock_try_read_lock(lock)
                               : i % 3 == 1 ? percid_rwlock_timed_read_lock(lock, 1000)
                                            : percid_rwlock_read_lock(lock);
            if (result == 0) {
                /* The fault "race" goes on until a race detector has seen it. */
                CHECK(first == second || is_faulty("race"));
                CHECK(percid_rwlock_read_unlock(lock) == 0);
            } else {
                CHECK(result == (i % 3 == 0 ? -EBUSY : -ETIMEDOUT) && i % 3 != 2);
            }
        }
    }
    return NULL;
}

static void *unlock_read(void *unused)
{
    CHECK(percid_rwlock_read_unlock(lock) == 0);
    return unused;
}

static void *unlock_write(void *unused)
{
    CHECK(percid_rwlock_write_unlock(lock) == 0);
    return unused;
}

static void locks(void)
{
    first = second = 0;
    on_threads(read_and_write);
    CHECK(first == ROUNDS && second == ROUNDS);

    CHECK(percid_rwlock_read_lock(lock) == 0 && percid_rwlock_try_read_lock(lock) == 0);
    errno = 4711;
    CHECK(percid_rwlock_try_write_lock(lock) == -EBUSY && percid_rwlock_timed_write_lock(lock, 1000) == -ETIMEDOUT);
    CHECK(errno == 4711 && percid_rwlock_destroy(lock) == -EBUSY);
    on_another_thread(unlock_read, NULL);
    CHECK(percid_rwlock_read_unlock(lock) == 0);
    CHECK(percid_rwlock_write_unlock(lock) == -EPERM);

    CHECK(percid_rwlock_try_write_lock(lock) == 0 && percid_rwlock_try_write_lock(lock) == -EBUSY);
    CHECK(percid_rwlock_try_read_lock(lock) == -EBUSY && percid_rwlock_timed_read_lock(lock, 1000) == -ETIMEDOUT);
    CHECK(errno == 4711 && percid_rwlock_destroy(lock) == -EBUSY);
    on_another_thread(unlock_write, NULL);
    CHECK(percid_rwlock_destroy(lock) == 0 && percid_rwlock_destroy(lock) == -EBADF);
    CHECK(percid_rwlock_read_lock(lock) == -EBADF && percid_rwlock_write_lock(NULL) == -EINVAL);
}

/* Domains */

static percid_domain *domain;
static int nodes[2];
static int *shown;
static int removals;
static uint64_t removed_count;

static void poison(void *node)
{
    __atomic_store_n((int *)node, POISON, __ATOMIC_RELAXED);
    __atomic_fetch_add(&removed_count, 1, __ATOMIC_RELAXED);
}

/* Two nodes, one of which is shown: the other one is poisoned, and written again, only if no reader has it. */
static void replace(void)
{
    int *const old = shown;
    int *const other = &nodes[old == nodes];
    *other = 1;
    __atomic_store_n(&shown, other, __ATOMIC_RELEASE);
    if (is_faulty("domain")) {
        poison(old);
        sched_yield();
    } else if (removals % 2 == 0) {
        CHECK(percid_domain_synchronize(domain) == 0);
        poison(old);
    } else {
        CHECK(percid_domain_defer(domain, poison, old) == 0);
        CHECK(percid_domain_flush(domain) == 1);
    }
    removals++;
}

static void *read_and_replace(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (*(int *)number == 0) {
            if (i % 8 == 0) {
                replace();
            }
            continue;
        }
        const int token = percid_domain_read_lock(domain), inner = percid_domain_read_lock(domain);
        CHECK(token >= 0 && inner >= 0);
        const int *const node = __atomic_load_n(&shown, __ATOMIC_ACQUIRE);
        CHECK(__atomic_load_n(node, __ATOMIC_RELAXED) == 1);
        CHECK(percid_domain_read_unlock(domain, token) == 0);
        if (i % 16 == 0) {
            sched_yield();
        }
        CHECK(__atomic_load_n(node, __ATOMIC_RELAXED) == 1);
        CHECK(percid_domain_read_unlock(domain, inner) == 0);
    }
    return NULL;
}

static void *defer_many(void *number)
{
    static int nothing;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(percid_domain_defer(domain, poison, &nothing) == 0);
    }
    return number;
}

static void *leave(void *token)
{
    CHECK(percid_domain_read_unlock(domain, *(int *)token) == 0);
    return NULL;
}

static void destroy_in_function(void *result)
{
    *(int *)result = percid_domain_destroy(domain);
    CHECK(percid_domain_defer(domain, poison, result) == 0);
}

static void domains(void)
{
    int result = 0, token;
    nodes[0] = 1;
    shown = &nodes[0];
    removals = 0;
    removed_count = 0;
    on_threads(read_and_replace);
    CHECK(removals == (ROUNDS + 7) / 8 && removed_count == (uint64_t)removals);
    CHECK(percid_domain_reader_count(domain) == 0);

    removed_count = 0;
    on_threads(defer_many);
    CHECK(percid_domain_deferred_count(domain) <= 1024);
    CHECK(removed_count + percid_domain_deferred_count(domain) == (uint64_t)THREADS * ROUNDS);
    CHECK(percid_domain_flush(domain) >= 0 && removed_count == (uint64_t)THREADS * ROUNDS);

    token = percid_domain_read_lock(domain);
    CHECK(percid_domain_reader_count(domain) == 1 && percid_domain_destroy(domain) == -EBUSY);
    on_another_thread(leave, &token);
    CHECK(percid_domain_defer(domain, destroy_in_function, &result) == 0);
    CHECK(percid_domain_destroy(domain) == 0 && result == POISON && removed_count == (uint64_t)THREADS * ROUNDS + 1);
    CHECK(percid_domain_destroy(domain) == -EBADF && percid_domain_read_lock(domain) == -EBADF);

    CHECK(percid_domain_create_bounded(&domain, 4097) == -EINVAL && domain == NULL);
    CHECK(percid_domain_create_bounded(&domain, 1) == 0);
    CHECK(percid_domain_try_defer(domain, poison, &result) == 0);
    CHECK(percid_domain_try_defer(domain, poison, &result) == -EAGAIN && percid_domain_deferred_count(domain) == 1);
    CHECK(percid_domain_defer(domain, poison, &result) == 0 && percid_domain_deferred_count(domain) == 0);
    CHECK(percid_domain_defer(domain, NULL, NULL) == -EINVAL && percid_domain_flush(domain) == 0);
    CHECK(percid_domain_read_unlock(domain, 2) == -EINVAL && percid_domain_read_unlock(domain, -EBADF) == -EINVAL);
    CHECK(percid_domain_destroy(domain) == 0 && percid_domain_create_with_source(&domain, 99) == -EINVAL);
}

/* Budgets */

static percid_budget *budget;
static uint64_t charged;

static int charge(uint64_t units)
{
    if (is_faulty("budget")) {
        /* A test, and a charge later. */
        const uint64_t seen = __atomic_load_n(&charged, __ATOMIC_RELAXED);
        sched_yield();
        return seen + units <= LIMIT ? 0 : -EDQUOT;
    }
    return percid_budget_try_charge(budget, units);
}

static void *charge_and_release(void *number)
{
    enum { HELD = 40 };
    uint64_t held[HELD] = {0}, refused = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t *const place = &held[i % HELD];
        __atomic_fetch_sub(&charged, *place, __ATOMIC_RELAXED);
        CHECK(is_faulty("budget") || percid_budget_release(budget, *place) == 0);
        *place = (uint64_t)(i * 7 + *(int *)number) % 50;
        if (charge(*place) == 0) {
            CHECK(__atomic_add_fetch(&charged, *place, __ATOMIC_RELAXED) <= LIMIT);
        } else {
            *place = 0;
            refused++;
        }
    }
    for (int i = 0; i < HELD; i++) {
        __atomic_fetch_sub(&charged, held[i], __ATOMIC_RELAXED);
        CHECK(is_faulty("budget") || percid_budget_release(budget, held[i]) == 0);
    }
    CHECK(refused > 0);
    return NULL;
}

static void *charge_all(void *number)
{
    while (percid_budget_try_charge(budget, 1) == 0) {
        __atomic_fetch_add(&charged, 1, __ATOMIC_RELAXED);
    }
    return number;
}

static void budgets(void)
{
    charged = 0;
    on_threads(charge_and_release);
    CHECK(charged == 0 && percid_budget_exact(budget) == 0 && percid_budget_limit(budget) == LIMIT);
    on_threads(charge_all);
    CHECK(charged == LIMIT && percid_budget_exact(budget) == LIMIT && percid_budget_approximate(budget) == LIMIT);
    CHECK(percid_budget_try_charge(budget, 1) == -EDQUOT && percid_budget_try_charge(budget, UINT64_MAX) == -EDQUOT);
    CHECK(percid_budget_release(budget, LIMIT + 1) == -EINVAL && percid_budget_release(budget, LIMIT) == 0);
    CHECK(percid_budget_try_charge(budget, LIMIT) == 0 && percid_budget_release(budget, LIMIT) == 0);
    CHECK(percid_budget_destroy(budget) == 0 && percid_budget_destroy(budget) == -EBADF);
    CHECK(percid_budget_try_charge(budget, 1) == -EBADF && percid_budget_exact(budget) == 0);
    CHECK(percid_budget_create_with_batch(&budget, UINT64_MAX, 0) == 0 && percid_budget_limit(budget) == INT64_MAX);
    CHECK(percid_budget_try_charge(budget, 1) == 0 && percid_budget_approximate(budget) == 1);
    CHECK(percid_budget_destroy(budget) == 0);
}

int main(int count, char **words)
{
    if (count > 1) {
        fault = words[1];
    }
    CHECK(percid_rwlock_create(NULL) == -EINVAL && percid_rwlock_create_with_source(&lock, 99) == -EINVAL);
    CHECK(percid_rwlock_create(&lock) == 0 && percid_domain_create(&domain) == 0 && percid_budget_create(&budget, LIMIT) == 0);
    locks();
    domains();
    budgets();
    for (int source = PERCID_SOURCE_KERNEL; source <= PERCID_SOURCE_ATOMIC; source++) {
        if (percid_source_unavailable(source) == PERCID_SOURCE_ERROR_NONE) {
            CHECK(percid_rwlock_create_with_source(&lock, source) == 0);
            CHECK(percid_domain_create_with_source(&domain, source) == 0);
            CHECK(percid_budget_create_with_source(&budget, source, LIMIT, 20) == 0);
            locks();
            domains();
            budgets();
        }
    }
    puts("ok");
    return 0;
}
