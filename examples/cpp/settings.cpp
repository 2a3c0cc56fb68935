// Settings that are read all the time and replaced now and then: percid::rcu_domain, rw_lock and budget.
//
// c++ -std=c++17 -O2 -pthread settings.cpp $(pkg-config --cflags --libs percid) -o settings && ./settings
//
// Requests read the settings without a lock that others would feel. The statistics by name are under a
// lock of the standard library's kind, and the requests at one time are limited.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <percid.hpp>

struct Settings {
    int version;
    std::string greeting;
};

class Server {
public:
    ~Server()
    {
        delete settings_.load();
    }

    // False if the server is busy, or the settings are not as they were made.
    bool handle()
    {
        if (!requests_.try_charge(1)) {
            return false;
        }
        bool is_right = false;
        {
            const percid::rcu_guard reading(readers_);
            const Settings *const settings = settings_.load();
            is_right = settings->greeting == greeting(settings->version);
        }
        {
            const std::shared_lock<percid::rw_lock> reading(lock_);
            is_right = is_right && limits_.at("seconds") > 0;
        }
        requests_.release(1);
        return is_right;
    }

    // The old settings are deleted when no request reads them any more.
    void change(int version)
    {
        readers_.retire(settings_.exchange(new Settings{version, greeting(version)}));
        const std::unique_lock<percid::rw_lock> writing(lock_);
        limits_["seconds"] = version + 1;
    }

    std::uint64_t running() const
    {
        return requests_.exact();
    }

private:
    static std::string greeting(int version)
    {
        return "This is version " + std::to_string(version) + ".";
    }

    percid::rcu_domain readers_;
    std::atomic<Settings *> settings_{new Settings{0, greeting(0)}};
    percid::rw_lock lock_;
    std::map<std::string, int> limits_{{"seconds", 1}};
    percid::budget requests_{100};
};

int main()
{
    Server server;
    std::atomic<int> handled{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) {
        threads.emplace_back([&] {
            for (int request = 0; request < 50000; request++) {
                handled += server.handle() ? 1 : 0;
            }
        });
    }
    for (int version = 1; version <= 100; version++) {
        server.change(version);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    std::cout << handled << " requests, " << server.running() << " running\n";
    return handled == 200000 && server.running() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
