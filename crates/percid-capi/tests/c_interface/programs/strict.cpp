// Every template and inline function, for compilers that warn of all they can.
#include <percid.hpp>
// Both, and again.
#include <percid.h>
#include <percid.hpp>

int main()
{
    percid::counter counter;
    counter.add(5);
    percid::histogram histogram;
    histogram.record(3);
    percid::pool<int> pool(4);
    const auto object = pool.make(7);
    percid::stack<int *> stack(4);
    std::size_t count = stack.push(object.get()) ? 0 : 100;
    count += stack.drain([](int *item) { *item = 8; });
    percid::ring ring(128, percid::overflow::overwrite_oldest);
    ring.append(*object);
    count += ring.poll([](const percid::event &) {}).value_or(100);
    percid::mask mask;
    mask.mark(1);
    count += mask.drain([](std::uint32_t) {});
    percid::local<long> local([] { return 3L; });
    local.for_each([](long &) {});
    const long value = local.with([](long &mine) { return mine; });
    count += local.drain([](long &&) {});
    count += histogram.take().buckets().size();
    percid::rw_lock lock;
    percid::rcu_domain domain;
    percid::budget budget(5);
    count += lock.try_lock_for(std::chrono::seconds(1)) && budget.try_charge(5) ? 0U : 100U;
    lock.unlock();
    domain.retire(new int(1));
    domain.defer([&count] { count--; });
    const percid::rcu_guard reading(domain);
    percid::numa::balancer balancer(percid::numa::settings().with(percid::numa::rules::base));
    balancer.take_events();
    count += balancer.report().regions();
    return count == 5 && value == 3 && *object == 8 && counter.take() == 5 ? 0 : 1;
}
