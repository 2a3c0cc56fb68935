#include "comdat.hpp"

#include "check.h"

Meter meter;

int main()
{
    for (int i = 0; i < 1000; i++) {
        meter.mark();
        mark_elsewhere();
    }
    CHECK(meter.count.sum() == 2000);
    std::puts("ok");
    return 0;
}
