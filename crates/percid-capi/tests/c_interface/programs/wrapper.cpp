// The C++ wrapper: ownership, moving, exceptions, and threads.
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <percid.hpp>

#include "check.h"

namespace {

percid::static_counter of_process;
percid::counter for_all_threads;

static_assert(std::is_trivially_destructible<percid::static_counter>::value, "it may be used until the very end");
static_assert(!std::is_copy_constructible<percid::counter>::value, "two owners");
static_assert(!std::is_copy_assignable<percid::counter>::value, "two owners");
static_assert(std::is_nothrow_move_constructible<percid::counter>::value, "movable");
static_assert(std::is_nothrow_move_assignable<percid::counter>::value, "movable");
static_assert(sizeof(percid::counter) == 8, "one word");

void run_threads(int threads, const std::function<void()> &work)
{
    std::vector<std::thread> running;
    for (int i = 0; i < threads; i++) {
        running.emplace_back(work);
    }
    for (auto &thread : running) {
        thread.join();
    }
}

void counters()
{
    run_threads(4, [] {
        for (int i = 0; i < 100000; i++) {
            of_process.add();
            for_all_threads.add(3);
        }
    });
    CHECK(of_process.sum() == 400000);
    CHECK(for_all_threads.take() == 1200000);
    CHECK(for_all_threads.sum() == 0);
    std::int64_t sum = of_process.shared();
    for (const std::int64_t value : of_process.per_id()) {
        sum += value;
    }
    CHECK(sum == 400000);
    CHECK(percid_counter_sum(of_process.c_counter()) == 400000);
}

void moving()
{
    percid::counter first;
    first.add(5);
    percid::counter second(std::move(first));
    CHECK(second.sum() == 5 && first.sum() == 0);
    first.add(1);
    second = std::move(first);
    CHECK(second.sum() == 1 && first.sum() == 0);
    percid::counter &itself = second;
    second = std::move(itself);
    CHECK(second.sum() == 1);
    std::vector<percid::counter> many(100);
    for (auto &one : many) {
        one.add(7);
    }
    many.resize(200);
    CHECK(many[99].sum() == 7 && many[100].sum() == 0);
}

void exceptions()
{
    percid::counter atomic(percid::source::atomic);
    atomic.add(9);
    CHECK(atomic.sum() == 9);
    try {
        percid::counter impossible(static_cast<percid::source>(17));
        CHECK(false && "no source has this number");
    } catch (const std::system_error &error) {
        CHECK(error.code() == std::errc::invalid_argument);
    }
}

void process()
{
    const percid::source source = percid::init();
    CHECK(!percid::reason().empty() && percid::reason().back() != '\0');
    CHECK(percid::current_id().has_value());
    CHECK(percid::version() == std::string(EXPECTED_VERSION));
    percid::compact_ids();
    std::cout << percid::name(source) << ": " << percid::reason() << '\n';
}

} // namespace

int main()
{
    process();
    counters();
    moving();
    exceptions();
    std::cout << "ok\n";
    return 0;
}
