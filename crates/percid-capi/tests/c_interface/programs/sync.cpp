// The C++ wrapper's locks, domains and budgets: in the standard library's guards, under threads, and their errors.
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include <percid.hpp>

#include "check.h"

namespace {

using namespace std::chrono_literals;

template <class T>
constexpr bool moves_only = std::is_nothrow_move_constructible<T>::value && !std::is_copy_constructible<T>::value &&
                            std::is_move_assignable<T>::value && !std::is_copy_assignable<T>::value;

static_assert(moves_only<percid::rw_lock> && moves_only<percid::rcu_domain> && moves_only<percid::budget>, "one owner");
static_assert(moves_only<percid::rcu_guard>, "one owner");

constexpr int rounds = 2000;
constexpr percid::source impossible = static_cast<percid::source>(17);

template <class F>
void on_threads(const F &work)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&work, i] { work(i); });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

template <class F>
std::error_code thrown_by(const F &work)
{
    try {
        work();
    } catch (const std::system_error &error) {
        return error.code();
    }
    return {};
}

void locks(percid::rw_lock lock)
{
    long value = 0, same = 0;
    on_threads([&](int number) {
        for (int i = 0; i < rounds; i++) {
            if (i % 4 == number) {
                const std::unique_lock<percid::rw_lock> writing(lock);
                value++;
                same++;
            } else {
                const std::shared_lock<percid::rw_lock> reading(lock);
                CHECK(value == same);
            }
        }
    });
    CHECK(value == rounds);

    std::shared_lock<percid::rw_lock> reading(lock, 1h);
    CHECK(reading && lock.try_lock_shared_until(std::chrono::system_clock::now() + 1h));
    lock.unlock_shared();
    CHECK(!std::unique_lock<percid::rw_lock>(lock, std::try_to_lock) && !lock.try_lock_for(1us) && !lock.try_lock_for(-1h));
    CHECK(!lock.try_lock_until(std::chrono::steady_clock::now() + 1us));
    std::thread([&reading] { reading.unlock(); }).join();
    CHECK(lock.try_lock_for(std::chrono::hours::max()));
    CHECK(!lock.try_lock() && !lock.try_lock_shared() && !lock.try_lock_shared_for(1us));
    lock.unlock();
    percid::rw_lock other = std::move(lock);
    CHECK(other.try_lock() && thrown_by([&] { lock.lock(); }) == std::errc::invalid_argument);
    CHECK(thrown_by([&] { lock.lock_shared(); }) == std::errc::invalid_argument && !lock.try_lock_shared());
    other.unlock();
}

struct Node {
    static std::atomic<int> alive;

    std::atomic<int> value{1};

    Node()
    {
        alive++;
    }
    ~Node()
    {
        value = -1;
        alive--;
    }
};

std::atomic<int> Node::alive{0};

void domains(percid::rcu_domain domain)
{
    std::atomic<Node *> shown{new Node};
    on_threads([&](int number) {
        for (int i = 0; i < rounds; i++) {
            if (number == 0 && i % 8 == 0) {
                domain.retire(shown.exchange(new Node));
                continue;
            }
            const percid::rcu_guard reading(domain);
            const Node *const node = shown.load();
            percid::rcu_guard inner(domain), moved(std::move(inner));
            CHECK(node->value == 1);
        }
    });
    CHECK(domain.reader_count() == 0 && domain.deferred_count() == rounds / 8 && Node::alive == rounds / 8 + 1);
    CHECK(domain.flush() == rounds / 8 && Node::alive == 1);

    int called = 0;
    const auto count = [&called](Node *node) {
        delete node;
        called++;
    };
    domain.retire(shown.exchange(nullptr), count);
    domain.defer([&called, kept = std::make_unique<int>(3)] { called += *kept; });
    domain.synchronize();
    CHECK(called == 0);
    {
        const percid::rcu_domain moved(std::move(domain));
        CHECK(moved.deferred_count() == 2);
        std::error_code error;
        domain.retire(static_cast<const Node *>(nullptr), error);
        CHECK(error == std::errc::invalid_argument && thrown_by([&] { domain.synchronize(); }) == error);
        CHECK(domain.flush(error) == 0 && error == std::errc::invalid_argument);
    }
    CHECK(called == 4 && Node::alive == 0);
}

void budgets(percid::budget budget)
{
    std::atomic<std::uint64_t> charged{0};
    on_threads([&](int number) {
        for (int i = 0; i < rounds; i++) {
            const auto units = static_cast<std::uint64_t>(i * 7 + number) % 500;
            if (budget.try_charge(units)) {
                CHECK((charged += units) <= 1000);
                charged -= units;
                budget.release(units);
            }
        }
    });
    CHECK(budget.exact() == 0 && budget.limit() == 1000 && budget.try_charge(1000) && !budget.try_charge(1));
    CHECK(budget.approximate() == 1000);
    percid::budget moved(std::move(budget));
    CHECK(moved.exact() == 1000 && budget.limit() == 0 && !budget.try_charge(0));
}

} // namespace

int main()
{
    locks(percid::rw_lock());
    domains(percid::rcu_domain());
    budgets(percid::budget(1000));
    for (const auto source : {percid::source::kernel, percid::source::table, percid::source::atomic}) {
        if (percid::prepare(source) == percid::source_error::none) {
            locks(percid::rw_lock(source));
            domains(percid::rcu_domain(source));
            budgets(percid::budget(source, 1000, 20));
        }
    }
    CHECK(thrown_by([] { percid::rw_lock lock(impossible); }) == std::errc::invalid_argument);
    CHECK(thrown_by([] { percid::rcu_domain domain(impossible); }) == std::errc::invalid_argument);
    CHECK(thrown_by([] { percid::rcu_domain domain(std::size_t(4097)); }) == std::errc::invalid_argument);
    CHECK(thrown_by([] { percid::budget budget(impossible, 1, 1); }) == std::errc::invalid_argument);
    std::cout << "ok\n";
    return 0;
}
