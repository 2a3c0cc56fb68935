// What C++20 adds to the wrapper: spans, and concepts that can be asked.
#include <array>
#include <cstddef>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <percid.hpp>

#include "check.h"

namespace {

// Whether these compile.
template <class R, class T>
concept appends = requires(R ring, const T &value) { ring.append(value); };
template <class L, class F>
concept lends = requires(L local, F visit) { local.with(visit); };
template <class P, class... A>
concept makes = requires(P pool, A... arguments) { pool.make(arguments...); };

struct Record {
    int number;
};

static_assert(appends<percid::ring, Record> && appends<percid::ring, int> && appends<percid::ring, std::array<int, 3>>);
static_assert(appends<percid::ring, std::string> && appends<percid::ring, std::string_view> && appends<percid::ring, char[5]>);
static_assert(appends<percid::ring, std::span<const std::byte>> && appends<percid::ring, std::span<std::byte, 4>>);
// An address would be appended, or the address of what is freed.
static_assert(!appends<percid::ring, int *> && !appends<percid::ring, std::span<int>>);
static_assert(!appends<percid::ring, std::vector<int>> && !appends<percid::ring, std::unique_ptr<int>>);

static_assert(lends<percid::local<std::string>, void (*)(std::string &)>);
static_assert(lends<percid::static_local<std::string>, void (*)(const std::string &)>);
static_assert(!lends<percid::local<std::string>, void (*)(std::string &&)>);
static_assert(!lends<percid::local<std::string>, void (*)()>);

static_assert(makes<percid::pool<std::string>, const char *> && makes<percid::static_pool<std::string, 8>, std::size_t, char>);
static_assert(!makes<percid::pool<std::string>, std::string, std::vector<int>>);

void spans()
{
    percid::ring ring(4096, percid::overflow::drop_newest);
    const std::vector<int> numbers{1, 2, 3};
    CHECK(ring.append(std::as_bytes(std::span(numbers))));
    CHECK(ring.append(std::span<const std::byte>()));
    std::size_t seen = 0;
    const auto polled = ring.poll([&](const percid::event &event) {
        const std::span<const std::byte> bytes = event.span();
        CHECK(bytes.size() == (seen == 0 ? 3 * sizeof(int) : 0));
        if (!bytes.empty()) {
            CHECK((*event.as<std::array<int, 3>>() == std::array{1, 2, 3}));
        }
        seen++;
    });
    CHECK(polled == seen && seen == 2);
}

} // namespace

int main()
{
    spans();
    std::cout << "ok\n";
    return 0;
}
