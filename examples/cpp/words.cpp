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

class WordCount {
public:
    void read(std::string text)
    {
        // Constructed in memory that this CPU has used before; destroyed and put back at the end.
        const auto document = documents_.make(std::move(text));
        std::istringstream words(document->text);
        for (std::string word; words >> word;) {
            // The map is this thread's alone until the callable returns.
            words_.with([&word](counts &mine) { mine[word]++; });
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
    percid::pool<Document> documents_{64};
    percid::local<counts> words_;
};

int main()
{
    constexpr int threads = 4;
    constexpr int documents = 10000;
    WordCount word_count;
    std::vector<std::thread> readers;
    for (int i = 0; i < threads; i++) {
        readers.emplace_back([&word_count] {
            for (int document = 0; document < documents; document++) {
                word_count.read(document % 2 == 0 ? "to be or not to be" : "that is the question");
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
    const bool right = all.at("be") == threads * documents && all.at("question") == threads * documents / 2;
    return right && word_count.take().empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}
