// Four threads count, each on the copy of whatever CPU it runs on.
#include <cstdio>
#include <thread>
#include <vector>

#include <percid.hpp>

static percid::static_counter requests;

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([] { for (int n = 0; n < 100000; n++) requests.add(); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    std::printf("%lld requests\n", static_cast<long long>(requests.sum()));
    return requests.sum() == 400000 ? 0 : 1;
}
