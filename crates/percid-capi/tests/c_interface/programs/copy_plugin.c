/* A module that uses percid, for copies.c. */
#include "copy_user.h"

int plugin_make(void);
int plugin_work(void);
int plugin_check(const char *name, uint64_t rounds);
const void *plugin_copy(void);

int plugin_make(void)
{
    return user_make();
}

int plugin_work(void)
{
    return user_work();
}

int plugin_check(const char *name, uint64_t rounds)
{
    return user_check(name, rounds);
}

const void *plugin_copy(void)
{
    return user_copy();
}
