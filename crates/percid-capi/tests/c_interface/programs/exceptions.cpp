// What callables, makers and constructors throw comes out of the wrapper, and nothing is lost by it.
#include <atomic>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <pthread.h>
#include <unistd.h>

#include <percid.hpp>

#include "check.h"

namespace {

struct Planned : std::runtime_error {
    Planned() : std::runtime_error("planned") {}
};

// Whether f throws it.
template <class F>
bool throws(F &&f)
{
    try {
        f();
    } catch (const Planned &) {
        return true;
    }
    return false;
}

// Counts how many of it are alive.
struct Tracked {
    static int alive;
    bool moved = false;

    explicit Tracked(bool fail = false)
    {
        if (fail) {
            throw Planned();
        }
        alive++;
    }
    Tracked(Tracked &&other) noexcept
    {
        other.moved = true;
        alive++;
    }
    ~Tracked()
    {
        alive--;
    }
};
int Tracked::alive = 0;

void stacks()
{
    constexpr std::size_t items = 40;
    percid::stack<std::unique_ptr<Tracked>> stack(4);
    for (std::size_t i = 0; i < items; i++) {
        CHECK(stack.push(std::make_unique<Tracked>()));
    }
    CHECK(throws([&] { stack.drain([](std::unique_ptr<Tracked>) { throw Planned(); }); }));
    CHECK(Tracked::alive == items - 1);
    std::size_t given = 0;
    CHECK(throws([&] {
        stack.drain([&given](std::unique_ptr<Tracked>) {
            if (++given == 10) {
                throw Planned();
            }
        });
    }));
    CHECK(Tracked::alive == items - 11);
    CHECK(stack.drain([](std::unique_ptr<Tracked>) {}) == items - 11 && Tracked::alive == 0);
}

void pools()
{
    percid::pool<Tracked> pool(4);
    const Tracked *const first = pool.make().get();
    CHECK(throws([&] { (void)pool.make(true); }) && throws([&] { (void)pool.try_make(true); }));
    CHECK(Tracked::alive == 0);
    // Its memory went back, so the next one has it again (unless the thread has moved meanwhile).
    CHECK(first != nullptr && pool.drain() > 0);
}

void rings()
{
    percid::ring ring(4096, percid::overflow::drop_newest);
    for (int i = 0; i < 3; i++) {
        CHECK(ring.append(i));
    }
    CHECK(throws([&] { ring.poll([](const percid::event &) { throw Planned(); }); }));
    CHECK(ring.poll([](const percid::event &) {}) == std::size_t(2) && ring.lost() == 0);
}

void masks()
{
    percid::mask mask;
    CHECK(mask.mark(1) && mask.mark(600));
    CHECK(throws([&] { mask.drain([](std::uint32_t) { throw Planned(); }); }));
    CHECK(!mask.is_marked(1) && mask.is_marked(600));
    CHECK(mask.drain([](std::uint32_t) {}) == 1);
}

template <class L>
void uses(L &local)
{
    {
        // Three values, as three are lent at the same time.
        const auto one = local.lock(), two = local.lock(), three = local.lock();
        CHECK(one && two && three && Tracked::alive == 3);
        CHECK(throws([&] { local.with([](Tracked &) { throw Planned(); }); }));
    }
    CHECK(throws([&] {
        const auto mine = local.lock();
        throw Planned();
    }));
    const int alive = Tracked::alive;
    int visited = 0;
    CHECK(throws([&] {
        local.for_each([&visited](Tracked &) {
            visited++;
            throw Planned();
        });
    }));
    CHECK(visited == 1);
    local.for_each([&visited](Tracked &) { visited++; });
    CHECK(visited == 1 + alive);
    CHECK(throws([&] { local.drain([](Tracked &&) { throw Planned(); }); }) && Tracked::alive == alive - 1);
    CHECK(local.drain([](Tracked &&) {}) == static_cast<std::size_t>(alive - 1) && Tracked::alive == 0);
}

bool fail;

Tracked make()
{
    return Tracked(fail);
}

void locals()
{
    static percid::static_local<Tracked, make> of_process;
    percid::local<Tracked> local(make);
    fail = true;
    CHECK(throws([&] { (void)local.lock(); }) && throws([&] { local.with([](Tracked &) {}); }));
    CHECK(throws([] { (void)of_process.lock(); }));
    std::error_code error;
    CHECK(throws([&] { (void)local.lock(error); }));
    CHECK(local.drain([](Tracked &&) {}) == 0);
    fail = false;
    uses(local);
    uses(of_process);
}

// Values need not be movable.
void values_of_any_type()
{
    static percid::static_local<std::atomic<long>> atomics;
    percid::local<std::mutex> mutexes;
    atomics.lock()->store(3);
    // Checkers of leaks do not look where values are.
    atomics.drain([](std::atomic<long> &&) {});
    mutexes.with([](std::mutex &mine) { mine.lock(); });
    mutexes.for_each([](std::mutex &mine) { mine.unlock(); });
}

percid::static_local<std::string> cancelled;

void *cancel(void *)
{
    const auto mine = cancelled.lock();
    cancelled.with([](std::string &) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
        CHECK(false && "it was not cancelled");
    });
    return nullptr;
}

// The end of a thread is an unwinding with glibc, which destroys guards.
void threads()
{
#ifdef __GLIBC__
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, nullptr, cancel, nullptr) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    int values = 0;
    cancelled.for_each([&values](std::string &) { values++; });
    CHECK(values == 2 && cancelled.drain([](std::string &&) {}) == 2);
#endif
}

} // namespace

int main()
{
    // A thread that hangs is a failure.
    alarm(300);
    stacks();
    pools();
    rings();
    masks();
    locals();
    values_of_any_type();
    threads();
    std::cout << "ok\n";
    return 0;
}
