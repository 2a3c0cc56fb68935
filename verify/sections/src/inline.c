/* The increment of C programs, as a function. */
#include <percid.h>

int percid_inline_add(uint64_t address, int64_t n)
{
    return percid_add_fast(address, n);
}
