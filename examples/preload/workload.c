/*
 * Allocations whose numbers are known: by four threads, and by a child that fork() makes.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BLOCKS = 250000, KEPT = 100, CHILD_BLOCKS = 1000 };

/* The compiler knows malloc() and would leave pairs out. */
static void *(*volatile allocate)(size_t) = malloc;

static void allocate_and_free(int blocks)
{
    for (int i = 0; i < blocks; i++) {
        free(allocate(1000));
    }
}

static void *work(void *unused)
{
    allocate_and_free(BLOCKS);
    for (int i = 0; i < KEPT; i++) {
        (void)!allocate(50000);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, NULL) != 0) {
            return EXIT_FAILURE;
        }
    }
    const pid_t child = fork();
    if (child == 0) {
        allocate_and_free(CHILD_BLOCKS);
        return EXIT_SUCCESS;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        return EXIT_FAILURE;
    }
    printf("%d blocks of 1000 bytes by process %ld, %d by its child %ld\n", THREADS * BLOCKS, (long)getpid(),
           CHILD_BLOCKS, (long)child);
    return EXIT_SUCCESS;
}
