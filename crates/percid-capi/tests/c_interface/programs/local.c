/* Values of one's own: nobody has the same at the same time, and every one is made and dropped
 * once. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <percid.h>

#include "check.h"

enum { THREADS = 4, ROUNDS = 50000 };

struct value {
    int in_use;
    long count;
    char *owned;
};

static percid_local *local;
static int made, dropped, context;

static int make(void *memory, void *passed)
{
    struct value *const value = (struct value *)memory;
    CHECK(passed == &context && value->in_use == 0 && value->count == 0);
    value->owned = (char *)malloc(16);
    if (value->owned == NULL) {
        return -ENOMEM;
    }
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
    return 0;
}

static void drop(void *memory, void *passed)
{
    struct value *const value = (struct value *)memory;
    CHECK(passed == &context && value->in_use == 0);
    free(value->owned);
    __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
}

static void enter(struct value *value)
{
    CHECK(__atomic_fetch_add(&value->in_use, 1, __ATOMIC_RELAXED) == 0);
}

static void leave(struct value *value)
{
    CHECK(__atomic_fetch_sub(&value->in_use, 1, __ATOMIC_RELAXED) == 1);
}

static void add(void *memory, void *amount)
{
    struct value *const value = (struct value *)memory;
    enter(value);
    value->count += *(const int *)amount;
    leave(value);
}

static void sum(void *memory, void *total)
{
    struct value *const value = (struct value *)memory;
    enter(value);
    *(long *)total += value->count;
    leave(value);
}

static void *work(void *unused)
{
    const int one = 1;
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(percid_local_with(local, add, (void *)&one) == 0);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t workers[THREADS];
    long total = 0;
    int64_t drained;
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&workers[i], NULL, work, NULL) == 0);
    }
    for (int i = 0; i < 20; i++) {
        long now = 0;
        CHECK(percid_local_for_each(local, sum, &now) == 0);
        CHECK(now >= 0 && now <= (long)THREADS * ROUNDS);
    }
    /* What is drained is not lost. */
    drained = percid_local_drain(local, sum, &total);
    CHECK(drained >= 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i], NULL) == 0);
    }
    CHECK(percid_local_for_each(local, sum, &total) == 0);
    CHECK(total == (long)THREADS * ROUNDS);
    drained += percid_local_drain(local, NULL, NULL);
    CHECK(drained == made && drained == dropped);
}

struct nesting {
    struct value *outer;
    int depth;
};

/* Inside a callback the value is another one, and visits would wait for themselves. */
static void nest(void *memory, void *argument)
{
    struct nesting *const nesting = (struct nesting *)argument;
    struct value *const value = (struct value *)memory;
    long total = 0;
    CHECK(value != nesting->outer);
    enter(value);
    CHECK(percid_local_for_each(local, sum, &total) == -EDEADLK);
    CHECK(percid_local_drain(local, NULL, NULL) == -EDEADLK);
    if (nesting->depth-- > 0) {
        nesting->outer = value;
        CHECK(percid_local_with(local, nest, nesting) == 0);
    }
    leave(value);
}

static void nested(void)
{
    struct nesting nesting = {NULL, 3};
    CHECK(percid_local_with(local, nest, &nesting) == 0);
    CHECK(percid_local_drain(local, NULL, NULL) >= 4);
}

static int fail(void *memory, void *result)
{
    (void)memory;
    return *(const int *)result;
}

static void must_not_be_called(void *memory, void *argument)
{
    (void)memory;
    (void)argument;
    CHECK(0 && "there is no value");
}

static void values_that_cannot_be_made(void)
{
    percid_local *failing;
    int result = -EIO;
    CHECK(percid_local_create(&failing, 1, 1, fail, must_not_be_called, &result) == 0);
    CHECK(percid_local_with(failing, must_not_be_called, NULL) == -EIO);
    result = 1;
    CHECK(percid_local_with(failing, must_not_be_called, NULL) == -ECANCELED);
    CHECK(percid_local_for_each(failing, must_not_be_called, NULL) == 0);
    CHECK(percid_local_drain(failing, must_not_be_called, NULL) == 0);
    CHECK(percid_local_destroy(failing) == 0);
}

static void ignore(void *memory, void *argument)
{
    CHECK((uintptr_t)memory % 4096 == 0 && argument == &context);
}

static void misuse(void)
{
    percid_local *plain;
    CHECK(percid_local_create(NULL, 8, 8, NULL, NULL, NULL) == -EINVAL);
    CHECK(percid_local_create(&plain, 8, 3, NULL, NULL, NULL) == -EINVAL && plain == NULL);
    CHECK(percid_local_create(&plain, 8, 0, NULL, NULL, NULL) == -EINVAL);
    CHECK(percid_local_create(&plain, 8, 8192, NULL, NULL, NULL) == -EINVAL);
    CHECK(percid_local_create(&plain, SIZE_MAX, 8, NULL, NULL, NULL) == -EINVAL);
    CHECK(percid_local_create(&plain, 0, 4096, NULL, NULL, NULL) == 0);
    CHECK(percid_local_with(plain, ignore, &context) == 0);
    CHECK(percid_local_with(plain, NULL, NULL) == -EINVAL);
    CHECK(percid_local_for_each(plain, NULL, NULL) == -EINVAL);
    CHECK(percid_local_with(NULL, ignore, NULL) == -EINVAL);
    CHECK(percid_local_for_each(NULL, ignore, NULL) == -EINVAL);
    CHECK(percid_local_drain(NULL, ignore, NULL) == -EINVAL);
    CHECK(percid_local_destroy(NULL) == -EINVAL);
    CHECK(percid_local_destroy(plain) == 0);
    CHECK(percid_local_destroy(plain) == -EBADF);
    CHECK(percid_local_with(plain, ignore, NULL) == -EBADF);
    CHECK(percid_local_for_each(plain, ignore, NULL) == -EBADF);
    CHECK(percid_local_drain(plain, ignore, NULL) == -EBADF);
}

int main(void)
{
    const int one = 1;
    CHECK(percid_local_create(&local, sizeof(struct value), sizeof(void *), make, drop, &context) == 0);
    threads();
    nested();
    CHECK(percid_local_with(local, add, (void *)&one) == 0);
    /* Destroying drops what is left. */
    CHECK(percid_local_destroy(local) == 0);
    CHECK(made == dropped && made > 0);
    values_that_cannot_be_made();
    misuse();
    puts("ok");
    return 0;
}
