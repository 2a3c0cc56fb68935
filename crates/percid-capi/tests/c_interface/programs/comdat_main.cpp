#include "comdat.hpp"

#include "check.h"

Meter meter;

int main()
{
    for (int i = 0; i < 1000; i++) {
        meter.mark();
        mark_elsewhere();
    }
    CHECK(percid_counter_sum(&meter.count) == 2000);
    puts("ok");
    return 0;
}
