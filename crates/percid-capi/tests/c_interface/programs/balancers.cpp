// Balancers and regions in C++, whatever nodes the machine has.
#include <percid.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include "check.h"

#ifdef PRETENDED_NODES
// Of the library as it is built for this alone.
extern "C" void percid_testing_pretend_nodes(std::uint32_t count);
#endif

namespace numa = percid::numa;

static_assert(!std::is_copy_constructible<numa::balancer>::value, "one owner");
static_assert(!std::is_copy_constructible<numa::region>::value, "one owner");
static_assert(std::is_nothrow_move_constructible<numa::region>::value, "moved");
static_assert(std::is_nothrow_move_assignable<numa::report>::value, "moved");

namespace {

constexpr std::size_t pages = 64;

std::size_t page()
{
    return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Memory of so many pages.
class area {
public:
    area() : start_(mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    {
        CHECK(start_ != MAP_FAILED);
        std::memset(start_, 1, bytes());
    }
    area(const area &) = delete;
    area &operator=(const area &) = delete;
    ~area()
    {
        munmap(start_, bytes());
    }
    static std::size_t bytes()
    {
        return pages * page();
    }
    char *start() const
    {
        return static_cast<char *>(start_);
    }

private:
    void *start_;
};

template <class F>
int error_of(F &&body)
{
    try {
        body();
    } catch (const std::system_error &error) {
        std::printf("%s\n", error.what());
        return error.code().value();
    }
    return 0;
}

void figures()
{
    const area memory;
    numa::settings settings;
    settings.scan_delay_ns = 0;
    numa::balancer balancer(settings);
    numa::region region(balancer, memory.start(), memory.bytes());
    CHECK(region.start() == memory.start() && region.bytes() == memory.bytes());
    CHECK(region.access() == numa::access::reported);
    balancer.start();
    std::vector<std::thread> users;
    std::atomic<bool> seen{false};
    for (int i = 0; i < 4; i++) {
        users.emplace_back([&region, &seen] {
            do {
                for (std::size_t at = 0; at < pages; at++) {
                    region.touch(at * page());
                }
            } while (!seen);
            region.touch_all();
        });
    }
    // What the balancer's thread has armed, it finds armed: until one was used again.
    std::uint64_t armed = 0;
    for (int i = 0; i < 100 || (balancer.has_nodes() && armed == 0); i++) {
        armed += balancer.pass().armed;
        balancer.move_batch();
    }
    seen = true;
    for (auto &user : users) {
        user.join();
    }
    balancer.stop();

    const numa::report report = balancer.report();
    CHECK(report.regions() == 1 && !report.region(1) && report.pages(1).empty());
    const auto found = report.region(0);
    CHECK(found && found->start == memory.start() && found->bytes == memory.bytes() && found->gone == 0);
    std::uint64_t present = 0;
    for (const auto &node : report.pages(0)) {
        present += node.count;
    }
    CHECK(present == pages && found->absent == 0);
    CHECK(balancer.has_nodes() == (report.nodes().size() > 1));
    // The balancer's thread arms too.
    CHECK(found->scanned >= armed && (armed > 0) == balancer.has_nodes());
    CHECK(report.totals().passes >= (balancer.has_nodes() ? 100u : 0u));
    CHECK(balancer.take_events(1).size() == (balancer.has_nodes() ? 1u : 0u));
    CHECK(balancer.take_events().empty() != balancer.has_nodes());
    CHECK(std::strcmp(name(numa::skip_reason::shared_ro), "shared_ro") == 0);
    CHECK(report.skipped(0, numa::skip_reason::unsuitable) == 0);
    for (const auto &failure : report.failures(0)) {
        CHECK(failure.error > 0 && failure.pages > 0);
    }
    CHECK(report.use(0).empty() || balancer.has_nodes());
}

void memory_of_percid()
{
    percid::pool<std::array<char, 8192>> pool(16);
    auto first = pool.make();
    first->fill(1);
    percid::counter counter;
    counter.add(1);
    numa::settings settings;
    settings.scan_delay_ns = 0;
    settings.with(numa::rules::base).order = static_cast<int>(numa::order::activity);
    CHECK(settings.scan_starved == 0);
    numa::balancer balancer(settings.with(numa::rules::fixed));
    CHECK(settings.scan_starved == 1);
    numa::id_regions ids(balancer, percid::source::atomic);
    CHECK(ids.of_id(1u << 30).empty());
    ids.touch();
    numa::pool_regions objects(balancer, pool);
    CHECK(!objects.ranges().empty());
    std::size_t passes = 0;
    while (balancer.pass().armed == 0 && balancer.has_nodes() && passes++ < 1000) {
    }
    objects.touch(first.get());
    objects.touch(nullptr);
    const numa::report report = balancer.report();
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < report.regions(); i++) {
        seen += report.region(i)->local_uses + report.region(i)->remote_uses;
        CHECK(report.local_share(i).has_value() == (report.region(i)->local_uses + report.region(i)->remote_uses > 0));
        CHECK(report.share_on(i, 0) >= 0.0 && report.share_on(i, 0) <= 1.0);
    }
    CHECK(seen == (balancer.has_nodes() ? 1u : 0u) && report.scan_share() <= 1.0);
    CHECK(error_of([&] { numa::pool_regions(balancer, pool); }) == EEXIST);
    balancer.publish();
    balancer.publish();
}

void trapped_memory_and_exclusions()
{
    const area memory;
    numa::balancer balancer;
    numa::region region(balancer, memory.start(), memory.bytes(), numa::access::trapped);
    CHECK(region.access() == numa::access::trapped);
    {
        const numa::exclusion buffer(region, 0, 100);
        const numa::region moved = std::move(region);
        CHECK(moved.bytes() == memory.bytes() && region.bytes() == 0);
        // The region ends first.
    }
    numa::region again(balancer, memory.start(), memory.bytes(), numa::access::trapped);
    CHECK(error_of([&] { numa::exclusion(again, memory.bytes(), 1); }) == ERANGE);
}

void refusals()
{
    const area memory;
    numa::balancer balancer;
    const numa::region region(balancer, memory.start(), memory.bytes());
    CHECK(error_of([&] { numa::region(balancer, memory.start(), page()); }) == EEXIST);
    CHECK(error_of([&] { numa::region(balancer, memory.start() + 1, page()); }) == EINVAL);
    CHECK(error_of([&] { numa::region(balancer, nullptr, page()); }) == ENXIO);
    numa::settings settings;
    settings.batch = 0;
    CHECK(error_of([&] { numa::balancer{settings}; }) == EINVAL);
    // An object that was moved from answers, and does nothing.
    numa::balancer taken(std::move(balancer));
    CHECK(!balancer.has_nodes() && balancer.take_events().empty() && balancer.pass().armed == 0);
    CHECK(error_of([&] { (void)balancer.report(); }) == EINVAL && taken.report().regions() == 1);
}

} // namespace

int main()
{
#ifdef PRETENDED_NODES
    percid_testing_pretend_nodes(PRETENDED_NODES);
#endif
    figures();
    memory_of_percid();
    trapped_memory_and_exclusions();
    refusals();
    std::puts("ok");
    return 0;
}
