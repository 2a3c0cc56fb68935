// The C++ wrapper's structures: ownership, moving, exceptions, and threads.
#include <atomic>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <percid.hpp>
#include <unistd.h>

#include "check.h"

namespace {

template <class T>
constexpr bool moves_only = std::is_nothrow_move_constructible<T>::value && !std::is_copy_constructible<T>::value &&
                            std::is_move_assignable<T>::value && !std::is_copy_assignable<T>::value;

static_assert(moves_only<percid::histogram>, "one owner");
static_assert(moves_only<percid::snapshot>, "one owner");
static_assert(moves_only<percid::stack<int *>>, "one owner");
static_assert(moves_only<percid::pool<int>>, "one owner");
static_assert(moves_only<percid::local<int>>, "one owner");
static_assert(moves_only<percid::ring>, "one owner");
static_assert(moves_only<percid::mask>, "one owner");
static_assert(moves_only<percid::stack<std::unique_ptr<int>>>, "one owner");
static_assert(moves_only<percid::pooled<int>>, "one owner");
static_assert(moves_only<percid::guard<int>>, "one owner");
static_assert(std::is_trivially_destructible<percid::static_histogram>::value, "usable until the very end");

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

// Runs f, which must throw an E; answers it.
template <class E, class F>
E thrown_by(F &&f)
{
    try {
        f();
    } catch (const E &error) {
        return error;
    }
    CHECK(false && "it should have thrown");
    std::abort();
}

template <class F>
void must_be_invalid(F &&f)
{
    CHECK(thrown_by<std::system_error>(f).code() == std::errc::invalid_argument);
}

// Counts how many of it are alive.
struct Tracked {
    static std::atomic<int> alive;

    int value;

    explicit Tracked(int initial = 0) : value(initial)
    {
        if (initial < 0) {
            throw std::runtime_error("negative");
        }
        alive++;
    }
    Tracked(Tracked &&other) noexcept : value(other.value)
    {
        alive++;
    }
    Tracked(const Tracked &) = delete;
    ~Tracked()
    {
        alive--;
    }
};

std::atomic<int> Tracked::alive{0};

percid::static_histogram of_process;

void histograms()
{
    run_threads(4, [] {
        for (std::uint64_t i = 1; i <= 10000; i++) {
            of_process.record(i);
        }
    });
    const percid::snapshot all = of_process.snapshot();
    CHECK(all.count() == 40000 && of_process.unrecorded() == 0);
    CHECK(*all.min() == 1 && *all.quantile(0.5) > 4900 && *all.quantile(0.5) < 5100);
    CHECK(*all.max() > 9900 && *all.mean() > 4900 && *all.mean() < 5100);
    percid::snapshot taken = of_process.take();
    CHECK(taken.count() == 40000 && of_process.snapshot().count() == 0);
    taken.merge(all);
    taken.merge(taken);
    CHECK(taken.count() == 160000);
    std::uint64_t sum = 0;
    for (const percid::bucket &bucket : taken.buckets()) {
        CHECK(bucket.low <= bucket.high);
        sum += bucket.count;
    }
    CHECK(sum == 160000);
    const percid::snapshot none;
    CHECK(!none.min() && !none.max() && !none.mean() && !none.quantile(0.5) && none.buckets().empty());

    percid::histogram first;
    first.record(7, 3);
    percid::histogram second(std::move(first));
    CHECK(second.snapshot().count() == 3 && first.snapshot().count() == 0);
    second = percid::histogram(percid::source::atomic);
    CHECK(second.snapshot().count() == 0);
    must_be_invalid([] { percid::histogram impossible(static_cast<percid::source>(0)); });
}

void stacks()
{
    std::vector<Tracked> items(1000);
    percid::stack<const Tracked *> stack(16);
    for (auto &item : items) {
        CHECK(stack.push(&item));
    }
    CHECK(stack.pop() != nullptr);
    percid::stack<const Tracked *> moved(std::move(stack));
    CHECK(!stack.push(&items[0]) && stack.pop() == nullptr);
    int seen = 0;
    CHECK(moved.drain([&seen](const Tracked *item) { seen += item != nullptr; }) == 999 && seen == 999);
    percid::stack<const Tracked *> bounded(1, 0);
    int kept = 0;
    for (auto &item : items) {
        kept += bounded.push(&item);
    }
    CHECK(kept >= 1 && kept < 1000);
    must_be_invalid([] { percid::stack<int *> empty(0); });
}

// Items that the stack owns go with it, and those it has no room for stay with the caller.
void owned_items()
{
    using owner = std::unique_ptr<Tracked>;
    {
        percid::stack<owner> stack(1, 0);
        owner item = std::make_unique<Tracked>(5);
        while (stack.push(std::move(item))) {
            CHECK(item == nullptr);
            item = std::make_unique<Tracked>(5);
        }
        CHECK(item != nullptr && Tracked::alive >= 2);
        percid::stack<owner> other(64);
        CHECK(other.push(std::make_unique<Tracked>(6)) && other.push(std::make_unique<Tracked>(7)));
        CHECK(other.pop()->value == 7);
        const int alive = Tracked::alive;
        // What the other had goes with what it was; what it has now was the first one's.
        other = std::move(stack);
        CHECK(Tracked::alive == alive - 1 && other.pop()->value == 5 && !stack.push(std::move(item)));
        CHECK(stack.pop() == nullptr && item != nullptr);
        CHECK(other.push(std::move(item)));
        int sum = 0;
        other.drain([&sum](owner given) { sum += given->value; });
        CHECK(sum % 5 == 0 && sum > 0 && Tracked::alive == 0);
        CHECK(other.push(std::make_unique<Tracked>(8)));
    }
    CHECK(Tracked::alive == 0);
}

void pools()
{
    percid::pool<Tracked> pool(32);
    run_threads(4, [&pool] {
        for (int i = 0; i < 20000; i++) {
            const auto object = pool.make(i);
            const auto another = pool.make(i + 1);
            CHECK(object->value == i && another->value == i + 1);
        }
    });
    CHECK(Tracked::alive == 0);
    auto kept = pool.make(5);
    // The pool moves, its objects stay.
    percid::pool<Tracked> moved(std::move(pool));
    CHECK(Tracked::alive == 1 && kept->value == 5);
    kept.reset();
    CHECK(Tracked::alive == 0);
    percid::pooled<Tracked> first = moved.make(1);
    percid::pooled<Tracked> second = moved.try_make(2);
    first = std::move(second);
    CHECK(Tracked::alive == 1 && first->value == 2 && !second && second.get() == nullptr);
    percid::pooled<Tracked> &itself = first;
    first = std::move(itself);
    CHECK((*first).value == 2);
    first = nullptr;
    CHECK(Tracked::alive == 0 && !first);
    CHECK(thrown_by<std::runtime_error>([&moved] { (void)moved.make(-1); }).what() == std::string("negative"));
    // What is released is neither destroyed nor put back, until it has an owner again.
    percid::pool<Tracked> other(32);
    auto owner = other.make(6);
    Tracked *const released = owner.release();
    CHECK(!owner && owner.release() == nullptr && !other.adopt(nullptr));
    owner = other.make(7);
    CHECK(Tracked::alive == 2 && owner.get() != released && released->value == 6);
    owner.reset();
    other.drain();
    std::thread([&other, released] { CHECK(other.adopt(released)->value == 6); }).join();
    CHECK(Tracked::alive == 0 && other.drain() > 0);
    CHECK(moved.drain() > 0 && moved.drain() == 0);
    must_be_invalid([] { percid::pool<int> none(0); });
}

void locals()
{
    using map = std::map<std::string, long>;
    percid::local<map> local;
    run_threads(4, [&local] {
        for (int i = 0; i < 20000; i++) {
            local.with([i](map &mine) { mine[i % 2 ? "odd" : "even"]++; });
        }
    });
    long sum = 0;
    local.for_each([&sum](map &mine) { sum += mine["odd"]; });
    CHECK(sum == 40000);
    // Results and exceptions come out.
    CHECK(local.with([](map &mine) { return std::make_unique<int>(static_cast<int>(mine.size())); }) != nullptr);
    CHECK(thrown_by<int>([&local] { local.with([](map &) { throw 7; }); }) == 7);
    CHECK(thrown_by<int>([&local] { local.for_each([](map &) { throw 8; }); }) == 8);
    // Inside a loan the value is another one, and a visit would wait for itself.
    local.with([&local](map &outer) {
        local.with([&outer](map &inner) { CHECK(&inner != &outer); });
        const auto error = thrown_by<std::system_error>([&local] { local.for_each([](map &) {}); });
        CHECK(error.code() == std::errc::resource_deadlock_would_occur);
    });
    // A guard has its value alone, also after it has moved; an empty one has none.
    {
        auto guard = local.lock();
        percid::guard<map> other(std::move(guard));
        CHECK(!guard && other && other.get() != &*local.lock());
        guard = std::move(other);
        guard->erase("none");
        CHECK(thrown_by<std::system_error>([&local] { local.for_each([](map &) {}); }).code().value() == EDEADLK);
        // Another thread may give it back.
        std::thread([&guard] { guard.unlock(); }).join();
        CHECK(!guard && guard.get() == nullptr);
    }
    local.for_each([](map &) {});
    percid::local<map> moved(std::move(local));
    std::vector<map> taken;
    CHECK(moved.drain([&taken](map &&mine) { taken.push_back(std::move(mine)); }) == taken.size());
    sum = 0;
    for (auto &one : taken) {
        sum += one["even"];
    }
    CHECK(sum == 40000);
    moved = percid::local<map>();
    moved.with([](map &mine) { CHECK(mine.empty()); });
}

/* Its destructor takes values of the same local, an extra one among them, and keeps them. */
struct Keeps {
    static percid::local<Keeps> *from;
    static std::vector<percid::guard<Keeps>> kept;

    ~Keeps()
    {
        const long values = from == nullptr ? 0 : 2 * sysconf(_SC_NPROCESSORS_CONF) + 2;
        while (static_cast<long>(kept.size()) < values) {
            kept.push_back(from->lock());
        }
    }
};
percid::local<Keeps> *Keeps::from = nullptr;
std::vector<percid::guard<Keeps>> Keeps::kept;

void a_drain_does_not_wait_for_what_a_destructor_keeps()
{
    percid::local<Keeps> local;
    local.with([&local](Keeps &) { local.with([](Keeps &) {}); });
    Keeps::from = &local;
    const auto error = thrown_by<std::system_error>([&local] { local.drain([](Keeps &&) {}); });
    CHECK(error.code() == std::errc::resource_deadlock_would_occur);
    Keeps::from = nullptr;
    Keeps::kept.clear();
    CHECK(local.drain([](Keeps &&) {}) > 0);
}

void values_are_destroyed_once()
{
    {
        percid::local<Tracked> local([] { return Tracked(3); });
        run_threads(4, [&local] {
            for (int i = 0; i < 1000; i++) {
                CHECK(local.with([](Tracked &mine) { return mine.value; }) == 3);
            }
        });
        CHECK(Tracked::alive > 0);
    }
    CHECK(Tracked::alive == 0);
    bool fail = true;
    percid::local<Tracked> failing([&fail] { return Tracked(fail ? -1 : 1); });
    CHECK(thrown_by<std::runtime_error>([&] { failing.with([](Tracked &) {}); }).what() == std::string("negative"));
    fail = false;
    failing.with([](Tracked &mine) { CHECK(mine.value == 1); });
}

struct Record {
    std::uint32_t writer;
    std::uint32_t number;
};

void rings()
{
    percid::ring ring(4096, percid::overflow::drop_newest);
    CHECK(ring.max_record_len() == 1008);
    std::atomic<std::uint32_t> writer{0};
    run_threads(4, [&ring, &writer] {
        const std::uint32_t me = writer++;
        for (std::uint32_t i = 0; i < 1000; i++) {
            (void)ring.append(Record{me, i});
        }
    });
    std::size_t seen = 0;
    const auto polled = ring.poll([&seen, &ring](const percid::event &event) {
        CHECK(event.length == sizeof(Record));
        CHECK(static_cast<const Record *>(event.bytes)->writer < 4);
        CHECK(!ring.poll([](const percid::event &) {}));
        seen++;
    });
    CHECK(polled && *polled == seen && seen + ring.lost() == 4000);
    CHECK(ring.append("text") && ring.append(std::string("string")) && ring.append(Record{1, 2}) && ring.append(3.5));
    seen = 0;
    ring.poll([&seen](const percid::event &event) {
        if (const auto record = event.as<Record>()) {
            seen += record->writer == 1 && record->number == 2;
            // Of the same length, so it cannot be told apart.
            seen += *event.as<double>() == 3.5;
        } else {
            CHECK(event.text() == "text" || event.text() == "string");
            CHECK(!event.as<std::uint16_t>());
        }
    });
    CHECK(seen == 2);
    percid::ring moved(std::move(ring));
    CHECK(moved.append("text", 4) && !ring.append("text", 4));
    must_be_invalid([] { percid::ring odd(100, percid::overflow::overwrite_oldest); });
}

void masks()
{
    percid::mask mask;
    CHECK(mask.mark(3) && mask.mark(500) && !mask.mark(9000));
    CHECK(mask.is_marked(3) && !mask.is_marked(4) && !mask.is_marked(9000));
    std::vector<std::uint32_t> ids;
    percid::mask moved(std::move(mask));
    CHECK(moved.drain([&ids](std::uint32_t id) { ids.push_back(id); }) == 2);
    CHECK((ids == std::vector<std::uint32_t>{3, 500}) && !mask.mark(3));
}

} // namespace

int main()
{
    alarm(300); // a hang is a failure
    histograms();
    stacks();
    owned_items();
    CHECK(Tracked::alive == 0);
    pools();
    locals();
    a_drain_does_not_wait_for_what_a_destructor_keeps();
    values_are_destroyed_once();
    CHECK(Tracked::alive == 0);
    rings();
    masks();
    std::cout << "ok\n";
    return 0;
}
