// percid as a module, beside headers of the C++ library.
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

import percid;

#include "check.h"

namespace {

constinit percid::static_counter counter;
constinit percid::static_local<std::string> text;
constinit percid::static_stack<std::unique_ptr<int>, 64> items;

} // namespace

int main()
{
    for (int i = 0; i < 10; i++) {
        counter.add();
    }
    CHECK(counter.sum() == 10);
    text.with([](std::string &mine) { mine = "text"; });
    CHECK(*text.lock() == "text");
    CHECK(items.push(std::make_unique<int>(3)) && *items.pop() == 3);
    percid::ring ring(4096, percid::overflow::drop_newest);
    CHECK(ring.append(5) && ring.poll([](const percid::event &event) { CHECK(event.as<int>() == 5); }) == 1u);
    try {
        percid::pool<int> none(0);
        CHECK(false && "a pool of capacity 0");
    } catch (const std::exception &) {
    }
    percid::rw_lock lock;
    percid::rcu_domain domain;
    percid::budget budget(1);
    CHECK(lock.try_lock() && budget.try_charge(1));
    lock.unlock();
    domain.retire(new int(3));
    CHECK(domain.flush() == 1);
    percid::numa::balancer balancer;
    CHECK(balancer.report().regions() == 0);
    std::cout << "ok\n";
    return 0;
}
