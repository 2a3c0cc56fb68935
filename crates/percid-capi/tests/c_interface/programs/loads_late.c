/* Loads a library that uses percid while threads are running, which then use it as well. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { THREADS = 4, ADDITIONS = 100000 };

static pthread_barrier_t loaded;
static void (*plugin_add)(void);
static int64_t (*plugin_sum)(void);

static void *work(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < ADDITIONS; i++) {
        plugin_add();
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    void *library, *symbol;
    CHECK(count == 2);
    CHECK(pthread_barrier_init(&loaded, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    }
    library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(library != NULL);
    symbol = dlsym(library, "plugin_add");
    memcpy(&plugin_add, &symbol, sizeof symbol);
    symbol = dlsym(library, "plugin_sum");
    memcpy(&plugin_sum, &symbol, sizeof symbol);
    pthread_barrier_wait(&loaded);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(plugin_sum() == (int64_t)THREADS * ADDITIONS);
    puts("ok");
    return 0;
}
