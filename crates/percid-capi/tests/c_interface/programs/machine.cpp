// Sources, the table's activity, an ID's memory and the machine, from C++.
#include <chrono>
#include <iostream>

#include <percid.hpp>

#include "check.h"

namespace {

void sources()
{
    for (const auto which : {percid::source::kernel, percid::source::table, percid::source::atomic}) {
        const percid::source_error why = percid::prepare(which);
        CHECK(percid::source_by_name(percid::name(which)) == which);
        CHECK((why == percid::source_error::none) == percid::reason(which).empty());
        if (why != percid::source_error::none) {
            continue;
        }
        percid::counter counter(which);
        counter.add();
        const auto id = percid::current_id(which);
        CHECK(!id || *id < percid::id_count(which));
    }
    CHECK(percid::prepare(percid::source::atomic) == percid::source_error::none);
    CHECK(!percid::source_by_name("mutex"));
}

void consume(percid::ring &ring)
{
    CHECK(ring.append(1) && ring.append(2));
    {
        percid::consumer held(ring);
        std::error_code error;
        percid::consumer second(ring, error);
        CHECK(error == std::errc::device_or_resource_busy && !second.next());
        int sum = 0;
        while (const auto record = held.next()) {
            sum += *record->as<int>();
        }
        CHECK(sum == 3);
    }
    CHECK(ring.append(4) && ring.poll([](const percid::event &record) { CHECK(record.as<int>() == 4); }) == 1u);
}

void each_source()
{
    for (const auto which : {percid::source::kernel, percid::source::table, percid::source::atomic}) {
        if (percid::prepare(which) != percid::source_error::none) {
            continue;
        }
        int item = 1;
        percid::stack<int *> stack(which, 20);
        CHECK(stack.capacity() == 20 && stack.push(&item) && stack.drain([](int *) {}) == 1);
        percid::pool<int> pool(which, 20);
        CHECK(*pool.make(7) == 7 && pool.slabs().size() == 1);
        percid::pool<int> bounded(20, 0);
        CHECK(*bounded.make(7) == 7);
        percid::local<int> zeroes(which);
        percid::local<int> ones(which, [] { return 1; });
        CHECK(zeroes.with([](int &value) { return value; }) == 0);
        CHECK(ones.with([](int &value) { return value; }) == 1);
        percid::ring ring(which, 4096, percid::overflow::drop_newest);
        CHECK(ring.append(item) && ring.poll([](const percid::event &) {}) == 1u);
        consume(ring);
    }
}

void process()
{
    percid::static_counter counter;
    counter.add();
    if (percid::init() == percid::source::table) {
        CHECK(percid::read_table_stats()->ids_held > 0);
    }
    const auto numbers = percid::read_kernel_numbers();
    CHECK(!numbers || numbers->cpu >= 0);
    percid::light_fence();
    CHECK(!percid::fence_all() && !percid::fence_cpu(0));
    CHECK(percid::fence_is_asymmetric() == (percid_fence_is_asymmetric() == 1));
    CHECK(percid::read_selection_reason() != percid::selection_reason::other);
    CHECK(!percid::memory_of(0).empty() && percid::memory_of(0)[0].bytes >= 4096);
}

void machine()
{
    const percid::machine now = percid::read_machine();
    const auto cpus = percid::read_cpus();
    CHECK(now.kernel_release[0] != 0 && cpus.size() == now.possible_cpus);
    const auto seen = percid::probe_machine(std::chrono::milliseconds(10));
    CHECK(!seen || seen->verdict != PERCID_VERDICT_BAD || seen->fences.ignored + seen->preemptions.ignored +
                                                                  seen->fences_of_one_cpu.ignored > 0);
}

} // namespace

int main()
{
    sources();
    each_source();
    process();
    machine();
    std::cout << "ok\n";
}
