#include "comdat.hpp"

void mark_elsewhere()
{
    meter.mark();
}
