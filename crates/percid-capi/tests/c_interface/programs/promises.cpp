// What the headers promise to a compiler, wherever they are included, and however often.
#pragma GCC visibility push(hidden)
#include <percid.h>
#include <percid.h>
#include <percid.hpp>
#include <percid.hpp>
#pragma GCC visibility pop

#include <cstring>

#include "check.h"

// Visible from outside, though what it is made of was included where everything is hidden: no warning.
struct __attribute__((visibility("default"))) Shown {
    percid_counter counter;
    percid_event event;
};

static_assert(PERCID_VERSION_MAJOR * 1000000 + PERCID_VERSION_MINOR * 1000 + PERCID_VERSION_PATCH == EXPECTED_NUMBER,
              "the header's version");

// A function that calls none of the program's does not throw, and code that calls it knows.
static_assert(noexcept(percid_counter_add(nullptr, 1)), "inline");
static_assert(noexcept(percid_counter_sum(nullptr)), "called");
static_assert(noexcept(percid_histogram_record(nullptr, 1)), "inline");
static_assert(!noexcept(percid_stack_drain(nullptr, nullptr, nullptr)), "a callback may throw");

int main()
{
    Shown shown = {PERCID_COUNTER_INIT, {}};
    percid_counter_add(&shown.counter, 3);
    CHECK(percid_counter_sum(&shown.counter) == 3);
    percid_counter_destroy(&shown.counter);
    CHECK(std::strcmp(percid_version(), EXPECTED_VERSION) == 0);
    std::puts("ok");
    return 0;
}
