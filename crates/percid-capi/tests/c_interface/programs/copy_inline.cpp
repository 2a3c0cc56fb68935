// A plugin with an object that C++ inline functions share: the dynamic linker makes one of those of
// all plugins, also where they do not see each other otherwise. The rest is for copies.c.
#include <percid.hpp>

inline percid::static_counter &shared_count()
{
    static percid::static_counter count;
    return count;
}

extern "C" {

int plugin_make()
{
    return 0;
}

int plugin_work()
{
    shared_count().add(1);
    return 0;
}

// Two plugins have this.
int plugin_check(const char *, std::uint64_t rounds)
{
    return shared_count().sum() == static_cast<std::int64_t>(2 * rounds) ? 0 : 1;
}

const void *plugin_copy()
{
    return percid_interface_address()->fast_path;
}
}
