/* Increments in a signal handler that interrupts increments, and in children. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <percid.h>

#include "check.h"

/* So often a handler has interrupted additions when enough was added. */
enum { INTERRUPTIONS = 500 };

static percid_counter counter = PERCID_COUNTER_INIT;
static volatile sig_atomic_t handled;

static void handle(int signal)
{
    (void)signal;
    percid_counter_add(&counter, 1000);
    handled++;
}

static void set_timer(long microseconds)
{
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    timer.it_interval.tv_usec = microseconds;
    timer.it_value.tv_usec = microseconds;
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void interrupted(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    set_timer(50);
    int64_t added = 0;
    for (; handled < INTERRUPTIONS; added++) {
        percid_counter_add(&counter, 1);
    }
    set_timer(0);
    CHECK(percid_counter_sum(&counter) == added + (int64_t)handled * 1000);
    CHECK(percid_counter_take(&counter) == added + (int64_t)handled * 1000);
}

static void forked(void)
{
    int status;
    percid_counter_add(&counter, 5);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        percid_counter_add(&counter, 2);
        _exit(percid_counter_sum(&counter) == 7 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(percid_counter_sum(&counter) == 5);
}

int main(void)
{
    interrupted();
    forked();
    puts("ok");
    return 0;
}
