/*
 * Data that many threads read and few change: percid_domain, percid_rwlock and percid_budget.
 *
 *     cc -O2 -pthread routes.c $(pkg-config --cflags --libs percid) -o routes && ./routes
 *
 * Workers look a route up for every packet, in a table that is replaced as a whole, and take room
 * for the packet out of a limit that no number of threads exceeds. Names are under a lock, since
 * they are changed one by one.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <percid.h>

enum { WORKERS = 4, PACKETS = 100000, CHANGES = 100, ROUTES = 16, LIMIT = 1 << 20 };

struct table {
    int version;
    int next_hop[ROUTES];
};

static percid_domain *readers;
static struct table *routes;
static percid_rwlock *lock;
static char names[ROUTES][16];
static percid_budget *memory;
static percid_counter refused = PERCID_COUNTER_INIT;

static struct table *make_table(int version)
{
    struct table *const made = malloc(sizeof *made);
    if (made == NULL) {
        abort(); /* no memory */
    }
    made->version = version;
    for (int i = 0; i < ROUTES; i++) {
        made->next_hop[i] = version * ROUTES + i;
    }
    return made;
}

/* Returns where a packet goes, and checks that all of that is of one version. */
static int look_up(int packet)
{
    const int token = percid_domain_read_lock(readers);
    /* Until the token is given back, nobody frees the table. */
    const struct table *const table = __atomic_load_n(&routes, __ATOMIC_ACQUIRE);
    const int next_hop = table->next_hop[packet % ROUTES];
    const int is_right = next_hop == table->version * ROUTES + packet % ROUTES;
    percid_domain_read_unlock(readers, token);
    return is_right ? next_hop : -1;
}

static void *work(void *right)
{
    for (int i = 0; i < PACKETS; i++) {
        const uint64_t bytes = 64 + (uint64_t)i % 1000;
        if (percid_budget_try_charge(memory, bytes) != 0) {
            percid_counter_add(&refused, 1);
            continue;
        }
        const int next_hop = look_up(i);
        if (next_hop < 0 || percid_rwlock_read_lock(lock) != 0) {
            *(int *)right = 0;
            break;
        }
        *(int *)right &= names[next_hop % ROUTES][0] == 'r';
        percid_rwlock_read_unlock(lock);
        percid_budget_release(memory, bytes);
    }
    return NULL;
}

/* Shows another table. The old one is freed when nobody reads it any more. */
static int change_routes(int version)
{
    struct table *const old = routes;
    __atomic_store_n(&routes, make_table(version), __ATOMIC_RELEASE);
    return percid_domain_defer(readers, free, old);
}

static int rename_route(int number, int version)
{
    const int result = percid_rwlock_write_lock(lock);
    if (result == 0) {
        snprintf(names[number], sizeof names[number], "route %d.%d", number, version);
        percid_rwlock_write_unlock(lock);
    }
    return result;
}

int main(void)
{
    int error = percid_domain_create(&readers);
    error = error ? error : percid_rwlock_create(&lock);
    error = error ? error : percid_budget_create(&memory, LIMIT);
    routes = make_table(0);
    for (int i = 0; i < ROUTES; i++) {
        error = error ? error : rename_route(i, 0);
    }
    if (error != 0) {
        fprintf(stderr, "%s\n", strerror(-error));
        return EXIT_FAILURE;
    }
    pthread_t workers[WORKERS];
    int right[WORKERS], all = 1;
    for (int i = 0; i < WORKERS; i++) {
        right[i] = 1;
        if (pthread_create(&workers[i], NULL, work, &right[i]) != 0) {
            return EXIT_FAILURE;
        }
    }
    for (int i = 1; i <= CHANGES; i++) {
        all &= change_routes(i) == 0 && rename_route(i % ROUTES, i) == 0;
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
        all &= right[i];
    }
    const int64_t freed = percid_domain_flush(readers);
    printf("%d packets, %" PRId64 " refused; %" PRId64 " tables freed at the end; %" PRIu64 " bytes in use\n",
           WORKERS * PACKETS, percid_counter_sum(&refused), freed, percid_budget_exact(memory));
    all &= freed >= 0 && percid_budget_exact(memory) == 0;
    free(routes);
    all &= percid_domain_destroy(readers) == 0 && percid_rwlock_destroy(lock) == 0 && percid_budget_destroy(memory) == 0;
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
