// Objects of static storage: used by initialisers before main(), by threads that still run while the
// process ends, and by what exit() calls. The controls: with OWNED, the same by objects that are made
// and destroyed; with OWNED and LATE, not before main().
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include <percid.hpp>

#include "check.h"

#if defined(__cpp_constinit)
#define STATIC constinit static
#else
#define STATIC static
#endif

namespace {

using map = std::map<std::string, long>;

void use();

constexpr int threads = 3;

// How often each thread has used all objects. These are there for good in any case.
std::atomic<long> rounds[threads];

// The first of all objects: it is made before the others, and destroyed after them.
struct First {
    First()
    {
#ifndef LATE
        use();
#endif
    }
    ~First()
    {
        use();
        // The others are gone by now if they can go; every thread uses them once more, whole.
        for (const auto &mine : rounds) {
            const long before = mine;
            while (mine < before + 2) {
                std::this_thread::yield();
            }
        }
    }
} first;

struct Record {
    long number;
};

map one_entry()
{
    return {{"made", 1}};
}

#ifdef OWNED
percid::local<map> counts;
percid::local<map> made(one_entry);
percid::stack<std::unique_ptr<Record>> records(64);
percid::pool<std::string> names(64);
percid::ring ring(4096, percid::overflow::overwrite_oldest);
percid::mask mask;
percid::counter counter;
percid::histogram histogram;
#else
STATIC percid::static_local<map> counts;
STATIC percid::static_local<map, one_entry> made;
STATIC percid::static_stack<std::unique_ptr<Record>, 64> records;
STATIC percid::static_pool<std::string, 64> names;
STATIC percid::static_ring<4096, percid::overflow::overwrite_oldest> ring;
STATIC percid::static_mask mask;
STATIC percid::static_counter counter;
STATIC percid::static_histogram histogram;

static_assert(std::is_trivially_destructible<decltype(counts)>::value, "never destroyed");
static_assert(std::is_trivially_destructible<decltype(records)>::value, "never destroyed");
static_assert(std::is_trivially_destructible<decltype(names)>::value, "never destroyed");
static_assert(std::is_trivially_destructible<decltype(ring)>::value, "never destroyed");
static_assert(std::is_trivially_destructible<decltype(mask)>::value, "never destroyed");
static_assert(!std::is_move_constructible<decltype(counts)>::value, "where it is, for good");
#endif

// Every thread changes every object.
void use()
{
    counts.with([](map &mine) { mine["used"]++; });
    CHECK(made.lock()->at("made") == 1);
    if (auto record = records.pop()) {
        CHECK(record->number == 7);
    }
    CHECK(records.push(std::make_unique<Record>(Record{7})));
    CHECK(*names.make("name") == "name");
    CHECK(ring.append(Record{8}));
    CHECK(mask.mark(9));
    counter.add();
    histogram.record(10);
}

} // namespace

int main()
{
    for (auto &mine : rounds) {
        std::thread([&mine] {
            for (;;) {
                use();
                mine++;
            }
        }).detach();
    }
    for (const auto &mine : rounds) {
        while (mine == 0) {
            std::this_thread::yield();
        }
    }
    long used = 0;
    counts.for_each([&used](map &mine) { used += mine["used"]; });
    CHECK(used > 0);
    // Before main() returns: what threads find wrong afterwards ends the process in another way.
    std::cout << "ok" << std::endl;
    return 0;
}
