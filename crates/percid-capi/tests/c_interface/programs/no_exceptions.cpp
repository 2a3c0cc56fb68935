// The C++ wrapper in programs without exceptions and type information: errors are returned.
#include <iostream>
#include <memory>
#include <string>
#include <system_error>

#include <percid.hpp>

#include "check.h"

namespace {

constexpr percid::source impossible = static_cast<percid::source>(17);

bool is_invalid(const std::error_code &error)
{
    return error == std::errc::invalid_argument;
}

void what_fails_says_so()
{
    std::error_code error;
    CHECK((percid::counter(impossible, error), is_invalid(error)));
    CHECK((percid::histogram(impossible, error), is_invalid(error)));
    CHECK((percid::stack<int *>(0, error), is_invalid(error)));
    CHECK((percid::stack<int *>(impossible, 64, error), is_invalid(error)));
    CHECK((percid::pool<int>(0, error), is_invalid(error)));
    CHECK((percid::pool<int>(impossible, 64, error), is_invalid(error)));
    CHECK((percid::local<int>(impossible, nullptr, error), is_invalid(error)));
    CHECK((percid::ring(100, percid::overflow::drop_newest, error), is_invalid(error)));
    percid::per_id<percid::bytes<16>> values(impossible, nullptr, error);
    CHECK(is_invalid(error));
    CHECK((values.for_each([](percid::bytes<16> &) {}, error), is_invalid(error)));
    CHECK((percid::ring(impossible, 128, percid::overflow::drop_newest, error), is_invalid(error)));
    CHECK((percid::rw_lock(impossible, error), is_invalid(error)));
    CHECK((percid::rcu_domain(impossible, error), is_invalid(error)));
    CHECK((percid::budget(impossible, 1, 1, error), is_invalid(error)));
    percid::numa::settings none;
    none.size = 0;
    percid::numa::balancer balancer(none, error);
    CHECK(is_invalid(error));
    CHECK((balancer.start(error), is_invalid(error)));
    CHECK(balancer.report(error).regions() == 0 && is_invalid(error));
    percid::numa::region region(balancer, nullptr, 4096, percid::numa::access::reported, error);
    CHECK(error);
    CHECK((percid::numa::exclusion(region, 0, 4096, error), is_invalid(error)));
}

// What failed takes nothing.
void objects_without_anything_are_harmless()
{
    std::error_code error;
    percid::stack<std::unique_ptr<int>> stack(0, error);
    auto item = std::make_unique<int>(3);
    CHECK(!stack.push(std::move(item)) && item != nullptr && stack.pop() == nullptr);
    percid::pool<int> pool(0, error);
    CHECK(!pool.try_make(3));
    percid::ring ring(100, percid::overflow::drop_newest, error);
    CHECK(!ring.append("text") && !ring.poll([](const percid::event &) {}));
    percid::rw_lock lock(impossible, error);
    CHECK((lock.lock(error), is_invalid(error)) && !lock.try_lock_shared());
    percid::rcu_domain domain(impossible, error);
    CHECK((domain.synchronize(error), is_invalid(error)) && domain.reader_count() == 0);
    CHECK((domain.defer([] { CHECK(false); }, error), is_invalid(error)) && domain.flush(error) == 0);
    percid::rcu_guard reading(domain);
    percid::local<int> local(impossible, nullptr, error);
    CHECK(!local.lock(error) && is_invalid(error));
    CHECK(!local.with([](int &) {}, error) && !local.with([](int &value) { return value; }, error));
    CHECK((local.for_each([](int &) {}, error), is_invalid(error)));
    CHECK(local.drain([](int &&) {}, error) == 0 && is_invalid(error));
}

void what_works_sets_no_error()
{
    std::error_code error = std::make_error_code(std::errc::io_error);
    percid::local<std::string> local(error);
    CHECK(!error);
    CHECK(local.with([](std::string &mine) { mine = "text"; }, error) && !error);
    CHECK(local.with([](std::string &mine) { return mine.size(); }, error) == std::size_t(4));
    {
        const auto mine = local.lock(error);
        CHECK(mine && *mine == "text");
        local.for_each([](std::string &) {}, error);
        CHECK(error == std::errc::resource_deadlock_would_occur);
    }
    std::string all;
    CHECK(local.drain([&all](std::string &&mine) { all += mine; }, error) == 1 && !error && all == "text");

    percid::histogram histogram;
    histogram.record(3);
    CHECK(histogram.snapshot(error).count() == 1 && histogram.take(error).count() == 1 && !error);
    percid::snapshot none(error);
    CHECK(!error && !none.min());
    percid::pool<std::string> pool(64, error);
    CHECK(!error && *pool.try_make("pooled") == "pooled");
    percid::registry metrics(error);
    CHECK(!error);
    const percid::family<percid::counter> hits(metrics, {"hits", nullptr, nullptr, {"of"}}, error);
    CHECK(!error);
    hits.with({"a"}, error).add(7);
    CHECK(!error && metrics.render(percid::format::text, error) == "# TYPE hits_total counter\nhits_total{of=\"a\"} 7\n");
    std::size_t bytes = 0;
    metrics.write([&bytes](std::string_view part) { bytes += part.size(); }, percid::format::text, error);
    CHECK(!error && bytes == metrics.render(percid::format::text, error).size());
    const percid::family<percid::gauge> again(metrics, {"hits"}, error);
    CHECK(error == std::errc::file_exists && again.size() == 0);
    struct Part {
        percid::word count;
    };
    percid::per_id<Part> parts(error);
    CHECK(!error && parts.add(&Part::count, 7, error)->count.load() == 7 && !error);
    CHECK(!parts.store_if(&Part::count, 3, 4, error) && !error);
    percid::rw_lock lock(error);
    CHECK(!error && (lock.lock_shared(error), !error) && !lock.try_lock());
    lock.unlock_shared();
    CHECK((lock.lock(error), !error) && !lock.try_lock_shared());
    lock.unlock();
    percid::rcu_domain domain(std::size_t(2), error);
    CHECK(!error && (domain.retire(new int(3), error), !error) && domain.deferred_count() == 1);
    CHECK(domain.flush(error) == 1 && !error && (domain.synchronize(error), !error));
    percid::budget budget(10, error);
    CHECK(!error && budget.try_charge(10) && !budget.try_charge(1) && budget.exact() == 10);
    percid::mask mask(error);
    CHECK(!error && mask.mark(3) && mask.drain([](std::uint32_t) {}) == 1);
}

} // namespace

int main()
{
    what_fails_says_so();
    objects_without_anything_are_harmless();
    what_works_sets_no_error();
    std::cout << "ok\n";
    return 0;
}
