/*
 * copies ROUNDS {local|global|deep}:PLUGIN...: loads libraries that use percid, whichever copy each
 * gets, and has four threads use all of them at once. Says how many copies there are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef WITH_PERCID
#include "copy_user.h"
#else
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#endif

#include "check.h"

enum { THREADS = 4, MODULES = 8 };

struct module {
    const char *name;
    int (*make)(void);
    int (*work)(void);
    int (*check)(const char *, uint64_t);
    const void *(*copy)(void);
};

static struct module modules[MODULES];
static int module_count;
static uint64_t rounds;
static pthread_barrier_t start;

static void find(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);
    CHECK(symbol != NULL);
    memcpy(place, &symbol, sizeof symbol);
}

static void load(char *argument)
{
    char *const path = strchr(argument, ':') + 1;
    const int mode = argument[0] == 'g' ? RTLD_GLOBAL : argument[0] == 'd' ? RTLD_LOCAL | RTLD_DEEPBIND : RTLD_LOCAL;
    void *library = dlopen(path, RTLD_NOW | mode);
    struct module *module = &modules[module_count++];
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(library != NULL);
    module->name = argument;
    find(library, "plugin_make", &module->make);
    find(library, "plugin_work", &module->work);
    find(library, "plugin_check", &module->check);
    find(library, "plugin_copy", &module->copy);
}

static void *work(void *unused)
{
    int wrong = 0;
    (void)unused;
    pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < rounds; i++) {
        for (int m = 0; m < module_count; m++) {
            wrong += modules[m].work();
        }
    }
    CHECK(wrong == 0);
    return NULL;
}

static int copies(void)
{
    int different = 0;
    for (int m = 0; m < module_count; m++) {
        int known = 0;
        for (int before = 0; before < m; before++) {
            known |= modules[before].copy() == modules[m].copy();
        }
        different += !known;
    }
    return different;
}

#ifdef WITH_NEIGHBOUR
int64_t neighbour_count(void);
#endif

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    int wrong = 0;
    CHECK(count > 2 && count - 2 < MODULES);
    rounds = strtoull(arguments[1], NULL, 10);
    CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
#ifdef WITH_PERCID
    modules[module_count++] = (struct module){"program", user_make, user_work, user_check, user_copy};
#endif
#ifdef WITH_NEIGHBOUR
    CHECK(neighbour_count() == 1);
#endif
    for (int i = 2; i < count; i++) {
        load(arguments[i]);
    }
    for (int m = 0; m < module_count; m++) {
        CHECK(modules[m].make() == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (int m = 0; m < module_count; m++) {
        wrong += modules[m].check(modules[m].name, THREADS * rounds);
    }
    CHECK(wrong == 0);
    printf("copies=%d\nok\n", copies());
    return 0;
}
