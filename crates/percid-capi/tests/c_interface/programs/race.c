/* What a race detector must complain about: says whether it runs at all. */
#include <pthread.h>
#include <stddef.h>

static volatile long counter;

static void *add(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        counter++;
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, add, NULL) != 0) {
        return 1;
    }
    add(NULL);
    return pthread_join(thread, NULL);
}
