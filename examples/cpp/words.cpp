// Any type for every CPU, and objects from a pool: percid::local and percid::pool.
//
// c++ -std=c++17 -O2 -pthread words.cpp $(pkg-config --cflags --libs percid) -o words && ./words
//
// Threads count words, each into the map of the CPU it runs on: no lock is held for long, none is
// waited for. At the end one thread drains the maps and merges them.
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <percid.hpp>

using counts = std::map<std::string, long>;

// A document to be read, in memory of the pool.
struct Document {
    std::string text;

    explicit Document(std::string content) : text(std::move(content)) {}
};

// For all word counts, as long as the process lives: a static_ object needs no initialiser to run
// and no destructor, so others may use it before main() and threads until the very end.
static percid::static_pool<Document, 64> documents;

class WordCount {
public:
    void read(std::string text)
    {
        // Constructed in memory that this CPU has used before; destroyed and put back at the end.
        const auto document = documents.make(std::move(text));
        std::istringstream words(document->text);
        // The map is this thread's alone until the guard goes. (With a callable instead:
        // words_.with([](counts &mine) { ... }).)
        const auto mine = words_.lock();
        for (std::string word; words >> word;) {
            (*mine)[word]++;
        }
    }

    // Takes what was counted so far.
    counts take()
    {
        counts all;
        words_.drain([&all](counts &&mine) {
            for (const auto &entry : mine) {
                all[entry.first] += entry.second;
            }
        });
        return all;
    }

private:
    percid::local<counts> words_;
};

int main()
{
    constexpr int threads = 4;
    constexpr int texts = 10000;
    WordCount word_count;
    std::vector<std::thread> readers;
    for (int i = 0; i < threads; i++) {
        readers.emplace_back([&word_count] {
            for (int text = 0; text < texts; text++) {
                word_count.read(text % 2 == 0 ? "to be or not to be" : "that is the question");
            }
        });
    }
    for (auto &reader : readers) {
        reader.join();
    }
    const counts all = word_count.take();
    for (const auto &entry : all) {
        std::cout << entry.second << ' ' << entry.first << '\n';
    }
    const bool right = all.at("be") == threads * texts && all.at("question") == threads * texts / 2;
    return right && word_count.take().empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}
