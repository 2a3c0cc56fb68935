// Families and pages by the wrapper: what is found, shown, refused and left when a callable throws.
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <percid.hpp>

#include "check.h"

namespace {

static_assert(!std::is_copy_constructible<percid::registry>::value, "two owners");
static_assert(std::is_nothrow_move_constructible<percid::registry>::value, "movable");
static_assert(std::is_trivially_copyable<percid::family<percid::counter>>::value, "a pointer");
static_assert(std::is_trivially_copyable<percid::counter_series>::value, "a pointer");

int error_of(const std::function<void()> &work)
{
    try {
        work();
    } catch (const std::system_error &error) {
        return error.code().value();
    }
    return 0;
}

void pages()
{
    percid::registry metrics;
    percid::family<percid::counter> requests(metrics, {"requests", "Requests.", nullptr, {"method", "status"}});
    percid::family<percid::buckets> seconds(metrics, {"request", nullptr, "seconds", {}, {{"zone", "a"}}, {0.1, 1.0}});
    percid::family<percid::gauge> depth(metrics, {"depth"});
    percid::family<percid::float_counter> busy(metrics, {"busy"});
    const auto get = requests.with({"GET", "200"});
    get.add(3);
    requests.with({"GET", std::string("404")}).add();
    seconds.with({}).record(0.5);
    seconds.with({}).record(7.0, 2);
    depth.with({}).set(4.0);
    depth.with({}).add(-1.5);
    busy.with({}).add(0.25);
    CHECK(get.sum() == 3 && requests.size() == 2 && requests.refused() == 0);
    CHECK(requests.with({"GET", "200"}).c_counter() == get.c_counter());
    const auto [taken, taken_sum] = seconds.with({}).take();
    CHECK(taken == std::vector<std::uint64_t>({0, 1, 2}) && taken_sum == 14.5);
    CHECK(seconds.with({}).read().second == 0.0);
    CHECK(!seconds.with({}).record_all(taken, taken_sum));
    const auto [counts, sum] = seconds.with({}).read();
    CHECK(counts == std::vector<std::uint64_t>({0, 1, 2}) && sum == 14.5);
    const std::string expected = "# TYPE busy_total counter\n"
                                 "busy_total 0.25\n"
                                 "# TYPE depth gauge\n"
                                 "depth 2.5\n"
                                 "# TYPE request_seconds histogram\n"
                                 "request_seconds_bucket{zone=\"a\",le=\"0.1\"} 0\n"
                                 "request_seconds_bucket{zone=\"a\",le=\"1\"} 1\n"
                                 "request_seconds_bucket{zone=\"a\",le=\"+Inf\"} 3\n"
                                 "request_seconds_sum{zone=\"a\"} 14.5\n"
                                 "request_seconds_count{zone=\"a\"} 3\n"
                                 "# HELP requests_total Requests.\n"
                                 "# TYPE requests_total counter\n"
                                 "requests_total{method=\"GET\",status=\"200\"} 3\n"
                                 "requests_total{method=\"GET\",status=\"404\"} 1\n";
    CHECK(metrics.render() == expected);
    std::string parts;
    metrics.write([&](std::string_view part) { parts += part; });
    CHECK(parts == expected);
    const std::string open = metrics.render(percid::format::open_metrics);
    CHECK(open.size() > 6 && open.compare(open.size() - 6, 6, "# EOF\n") == 0);
    percid::registry moved(std::move(metrics));
    CHECK(moved.render() == expected);
    CHECK(error_of([&] { (void)metrics.render(); }) == EINVAL);
}

/* Views have no zero behind them; texts that have one are passed on as they are. */
void labels()
{
    percid::registry metrics;
    percid::family<percid::counter> pairs(metrics, {"pairs", nullptr, nullptr, {"a", "b"}});
    const std::string whole = "firstsecond";
    const std::string_view first = std::string_view(whole).substr(0, 5);
    const auto *const found = pairs.with({"first", "second"}).c_counter();
    CHECK(pairs.with({first, std::string("second")}).c_counter() == found);
    CHECK(pairs.with({first, std::string_view(whole).substr(5)}).c_counter() == found);
    CHECK(pairs.with({std::string_view(), ""}).c_counter() == pairs.with({"", std::string()}).c_counter());
    CHECK(pairs.size() == 2);
    // Both on the heap: many, and long ones.
    const std::string longer(400, 'x');
    const auto long_one = pairs.with({std::string_view(longer).substr(1), std::string_view(longer)});
    CHECK(long_one.c_counter() == pairs.with({longer.c_str() + 1, longer}).c_counter());
    percid::family<percid::gauge> many(metrics, {"many", nullptr, nullptr, {"a", "b", "c", "d", "e", "f", "g", "h", "i"}});
    many.with({first, first, first, first, first, first, first, first, "i"}).set(7.0);
    CHECK(metrics.render().find("many{a=\"first\",b=\"first\",c=\"first\",d=\"first\",e=\"first\",f=\"first\","
                                "g=\"first\",h=\"first\",i=\"i\"} 7\n") != std::string::npos);
    // C would take what is before the zero for all of it.
    const std::string with_zero("first\0", 6);
    CHECK(error_of([&] { (void)pairs.with({with_zero, "second"}); }) == EINVAL);
    CHECK(error_of([&] { (void)pairs.with({std::string_view(with_zero), "second"}); }) == EINVAL);
    CHECK(error_of([&] { (void)pairs.with({nullptr, "second"}); }) == EINVAL);
}

void refusals()
{
    percid::registry metrics;
    percid::family<percid::counter> requests(metrics, {"requests", nullptr, nullptr, {"method"}});
    const auto make = [&](const char *name) { percid::family<percid::gauge>(metrics, {name}); };
    CHECK(error_of([&] { make("requests_total"); }) == EEXIST);
    CHECK(error_of([&] { make("a b"); }) == EINVAL);
    CHECK(error_of([&] { make("\xff"); }) == EILSEQ);
    try {
        make("a b");
        CHECK(false);
    } catch (const std::system_error &error) {
        CHECK(std::string(error.what()).find("\"a b\" is no name of a metric: letters") != std::string::npos);
    }
    CHECK(error_of([&] { make("other"); }) == 0);
    CHECK(error_of([&] { (void)requests.with({}); }) == EINVAL);
    CHECK(error_of([&] { (void)requests.with({"\xff"}); }) == EILSEQ);
    std::error_code error;
    const auto none = requests.with({"a", "b"}, error);
    CHECK(error.value() == EINVAL);
    none.add();
    CHECK(none.sum() == 0);
    CHECK(error_of([&] { metrics.write([](std::string_view) {}, static_cast<percid::format>(7)); }) == EINVAL);
    // What is thrown in the middle of a page comes out, and the next page is whole.
    requests.with({"GET"}).add();
    try {
        metrics.write([](std::string_view) { throw 7; });
        CHECK(false);
    } catch (int seven) {
        CHECK(seven == 7);
    }
    CHECK(metrics.render().find("requests_total{method=\"GET\"} 1\n") != std::string::npos);
}

void threads()
{
    percid::registry metrics;
    percid::family<percid::counter> hits(metrics, {"hits", nullptr, nullptr, {"user"}, {}, {}, 50});
    std::vector<std::thread> running;
    for (int thread = 0; thread < 4; thread++) {
        running.emplace_back([&] {
            for (int i = 0; i < 10000; i++) {
                hits.with({std::to_string(i % 200)}).add();
            }
        });
    }
    for (auto &thread : running) {
        CHECK(!metrics.render(percid::format::open_metrics).empty());
        thread.join();
    }
    CHECK(hits.size() == 51);
    std::int64_t total = hits.with({"other"}).sum();
    CHECK(total == static_cast<std::int64_t>(hits.refused()));
    for (int user = 0; user < 200; user++) {
        std::error_code error;
        const auto series = hits.with({std::to_string(user)}, error);
        if (series.c_counter() != hits.with({"other"}).c_counter()) {
            total += series.sum();
        }
    }
    CHECK(total == 40000);
}

} // namespace

int main()
{
    pages();
    labels();
    refusals();
    threads();
    CHECK(percid::accepted("application/openmetrics-text") == percid::format::open_metrics);
    CHECK(std::string(percid::content_type(percid::format::text)).find("version=0.0.4") != std::string::npos);
    std::cout << "ok\n";
}
