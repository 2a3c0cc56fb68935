// An inline function with critical sections: every file that uses it has a copy, and the linker
// keeps one.
#include <percid.hpp>

struct Meter {
    percid::static_counter count;

    __attribute__((noinline)) void mark()
    {
        count.add();
    }
};

extern Meter meter;
void mark_elsewhere();
