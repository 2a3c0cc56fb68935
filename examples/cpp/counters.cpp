// Counters in C++: statistics of a class, shared by all its objects or owned by each.
//
// c++ -std=c++17 -O2 -pthread counters.cpp $(pkg-config --cflags --libs percid) -o counters &&
// ./counters
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <percid.hpp>

// A cache that counts its own hits and misses. A counter is eight bytes, is moved with its owner,
// and gives its memory back with it.
class Cache {
public:
    explicit Cache(std::string name) : name_(std::move(name)) {}

    bool look_up(unsigned key) noexcept
    {
        const bool hit = key % 8 != 0;
        (hit ? hits_ : misses_).add();
        // Of all caches, for the life of the process: a static_counter needs no destructor, so
        // threads may use it until the very end.
        all_lookups.add();
        return hit;
    }

    void report() const
    {
        std::cout << name_ << ": " << hits_.sum() << " hits, " << misses_.sum() << " misses\n";
    }

    std::int64_t lookups() const noexcept
    {
        return hits_.sum() + misses_.sum();
    }

    static percid::static_counter all_lookups;

private:
    std::string name_;
    percid::counter hits_;
    percid::counter misses_;
};

percid::static_counter Cache::all_lookups;

int main()
{
    std::cout << "IDs come from: " << percid::name(percid::init()) << "; " << percid::reason() << '\n';

    std::vector<Cache> caches;
    for (const char *name : {"names", "addresses"}) {
        caches.emplace_back(name);
    }
    constexpr unsigned lookups = 100000;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&caches] {
            for (unsigned key = 0; key < lookups; key++) {
                caches[key % 2].look_up(key);
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }

    std::int64_t sum = 0;
    for (const auto &cache : caches) {
        cache.report();
        sum += cache.lookups();
    }
    std::cout << "all: " << Cache::all_lookups.sum() << '\n';
    return sum == Cache::all_lookups.sum() && sum == 4 * lookups ? EXIT_SUCCESS : EXIT_FAILURE;
}
