// A structure of the program's own: a free list of blocks on percid::per_id.
//
// c++ -std=c++17 -O2 -pthread free_list.cpp $(pkg-config --cflags --libs percid) -o free_list && ./free_list
//
// Threads take blocks and give them back, each on the part of the CPU that it runs on; another thread
// drains the list now and then. At the end every block is accounted for.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include <percid.hpp>

// A block of memory; the link is used while it is in the list.
struct Block {
    percid::pointer<Block> next;
    std::vector<unsigned char> bytes;
};

class FreeList {
public:
    FreeList() = default;
    FreeList(const FreeList &) = delete;
    FreeList &operator=(const FreeList &) = delete;
    ~FreeList()
    {
        drain();
    }

    // Takes a block of this CPU's part, or makes one.
    std::unique_ptr<Block> take()
    {
        std::error_code error;
        parts_.add(&Part::taken, 1, error);
        Block *const block = parts_.pop(&Part::first, &Block::next, error);
        return block != nullptr ? std::unique_ptr<Block>(block) : std::make_unique<Block>();
    }

    // Gives a block back to this CPU's part, or frees it where there is no memory for a part.
    void give_back(std::unique_ptr<Block> block) noexcept
    {
        std::error_code error;
        parts_.push(&Part::first, block.get(), &Block::next, error);
        if (!error) {
            static_cast<void>(block.release());
        }
    }

    // Frees the blocks of all parts; answers how many they were.
    std::size_t drain() noexcept
    {
        std::size_t freed = 0;
        std::error_code error;
        const auto free = [&freed](Part &part) {
            // No other thread uses the part meanwhile.
            for (Block *next = part.first.load(); next != nullptr; freed++) {
                const std::unique_ptr<Block> block(next);
                next = block->next.load();
            }
            part.first.store(nullptr);
        };
        parts_.for_each(free, error);
        return freed;
    }

    // How many blocks were ever taken.
    std::int64_t taken() const
    {
        std::int64_t sum = 0;
        for (const Part &part : parts_) {
            sum += part.taken.load();
        }
        return sum;
    }

private:
    // The part of an ID.
    struct Part {
        percid::pointer<Block> first;
        percid::word taken;
    };

    percid::per_id<Part> parts_;
};

int main()
{
    constexpr int threads = 4;
    constexpr int blocks = 100000;
    FreeList list;
    std::atomic<int> working{threads};
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; i++) {
        workers.emplace_back([&list, &working] {
            for (int n = 0; n < blocks; n++) {
                auto block = list.take();
                block->bytes.assign(1, static_cast<unsigned char>(n));
                list.give_back(std::move(block));
            }
            working--;
        });
    }
    std::size_t drained = 0;
    while (working > 0) {
        drained += list.drain();
        std::this_thread::yield();
    }
    for (auto &worker : workers) {
        worker.join();
    }
    const std::size_t left = list.drain();
    std::cout << list.taken() << " blocks taken by " << threads << " threads\n"
              << left << " were left at the end; drains had freed " << drained << " before\n";
    return list.taken() == std::int64_t(threads) * blocks ? EXIT_SUCCESS : EXIT_FAILURE;
}
