// An inline function with critical sections: every file that uses it has a copy, and the linker
// keeps one.
#include <percid.h>

struct Meter {
    percid_counter count = PERCID_COUNTER_INIT;

    __attribute__((noinline)) void mark()
    {
        percid_counter_add(&count, 1);
    }
};

extern Meter meter;
void mark_elsewhere();
