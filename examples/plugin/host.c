/*
 * A program that loads plugins, all of which count: percid_counter.
 *
 *     cc -O2 -pthread host.c $(pkg-config --cflags --libs percid) -ldl -o host
 *     cc -O2 -fPIC -shared plugin.c $(pkg-config --cflags --libs percid) -Wl,-z,nodelete -o plugin.so
 *     ./host ./plugin.so
 *
 * The host counts requests, each plugin the bytes it has handled, on the host's threads. Whether the two
 * share one libpercid.so or each contains a libpercid.a of its own makes no difference to what they
 * count. Each sums up its own counters: a counter belongs to the copy of the library that has used it
 * first, and another module may use another copy.
 *
 * Threads keep a pointer to the last critical section that they ran, so a plugin stays mapped after
 * dlclose(): -z nodelete sees to that.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <percid.h>

#include "plugin.h"

enum { THREADS = 4, REQUESTS = 1000000 };

static percid_counter requests = PERCID_COUNTER_INIT;

static void *work(void *handle)
{
    for (uint32_t i = 0; i < REQUESTS; i++) {
        percid_counter_add(&requests, 1);
        (*(plugin_handle **)handle)(i);
    }
    return NULL;
}

/* Lets a plugin handle requests on several threads. Returns whether both have counted them all. */
static int run(const char *path)
{
    void *const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 0;
    }
    plugin_handle *handle;
    plugin_bytes *handled_bytes;
    /* What POSIX prescribes instead of a cast. */
    *(void **)&handle = dlsym(plugin, "plugin_handle_request");
    *(void **)&handled_bytes = dlsym(plugin, "plugin_handled_bytes");
    if (handle == NULL || handled_bytes == NULL) {
        fprintf(stderr, "%s is no plugin\n", path);
        return 0;
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)&handle) != 0) {
            abort();
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    const int64_t counted = percid_counter_take(&requests);
    const int64_t bytes = handled_bytes();
    printf("%s: the host counted %" PRId64 " requests, the plugin %" PRId64 " bytes\n", path, counted, bytes);
    dlclose(plugin);
    /* 0 to 999, again and again. */
    const int64_t rounds = (int64_t)THREADS * REQUESTS / 1000;
    return counted == (int64_t)THREADS * REQUESTS && bytes == rounds * (999 * 1000 / 2);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: host PLUGIN...\n");
        return EXIT_FAILURE;
    }
    int all = 1;
    for (int i = 1; i < argc; i++) {
        all &= run(argv[i]);
    }
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
