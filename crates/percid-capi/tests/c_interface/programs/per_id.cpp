// The C++ wrapper's values of each ID: typed fields, every operation, and threads, with every source.
#include <atomic>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <percid.hpp>

#include "check.h"

namespace {

constexpr int threads = 4;
constexpr int rounds = 20000;
constexpr std::size_t length = 40;

struct Node {
    std::atomic<int> taken{0};
    percid::pointer<Node> next;
};

struct Part {
    static std::atomic<int> alive;

    percid::word sum;
    percid::word used;
    percid::word slots[8];
    percid::word version;
    percid::bytes<2 * length> texts;
    percid::pointer<Node> list;

    explicit Part(std::int64_t start = 0) : sum(start)
    {
        alive++;
    }
    Part(const Part &) = delete;
    Part &operator=(const Part &) = delete;
    ~Part()
    {
        alive--;
    }
};

std::atomic<int> Part::alive{0};

using parts_type = percid::per_id<Part>;

static_assert(std::is_nothrow_move_constructible<parts_type>::value && !std::is_copy_constructible<parts_type>::value);
static_assert(sizeof(percid::word) == 8 && sizeof(percid::pointer<Node>) == 8 && sizeof(percid::bytes<3>) == 8);

percid::static_per_id<Part> static_parts;

std::vector<percid::source> sources()
{
    std::vector<percid::source> found;
    for (const percid::source which : {percid::source::kernel, percid::source::table, percid::source::atomic}) {
        if (percid::prepare(which) == percid::source_error::none) {
            found.push_back(which);
        }
    }
    return found;
}

void take(Node *node)
{
    while (node != nullptr) {
        Node *const next = node->next.load();
        CHECK(node->taken.fetch_add(1) == 0);
        node = next;
    }
}

template <class P>
void work(P &parts, Node *nodes)
{
    for (int i = 0; i < rounds; i++) {
        parts.add(&Part::sum, 1);
        parts.push(&Part::list, nodes + i, &Node::next);
        if (i % 2 == 0) {
            if (Node *const node = parts.pop(&Part::list, &Node::next)) {
                CHECK(node->taken.fetch_add(1) == 0);
            }
        }
        if (i % 1000 == 0) {
            take(parts.swap(&Part::list, nullptr).seen);
        }
        const Part *const mine = parts.current();
        if (mine == nullptr) {
            continue;
        }
        const std::int64_t used = mine->used.load(), version = mine->version.load();
        if (used < 8) {
            parts.store_both_if(&Part::used, used, used + 1, percid::element(&Part::slots, static_cast<std::size_t>(used)),
                                used + 7);
        }
        const std::vector<char> text(length, static_cast<char>(version + 1));
        // An operation that is interrupted may leave a part of the text that is not published.
        const std::size_t start = length * static_cast<std::size_t>((version + 1) % 2);
        parts.copy_then_store_if(&Part::version, version, version + 1, &Part::texts, start, text.data(), length);
    }
}

// Whoever holds a value finds it whole. Returns what it had counted.
std::int64_t emptied(Part &part)
{
    char text[length];
    for (std::int64_t i = 0; i < part.used.load(); i++) {
        CHECK(part.slots[i].load() == i + 7);
    }
    const std::size_t start = length * static_cast<std::size_t>(part.version.load() % 2);
    CHECK(part.texts.read(start, text, length) && !part.texts.read(length + 1, text, length));
    for (const char byte : text) {
        CHECK(byte == static_cast<char>(part.version.load()));
    }
    take(part.list.load());
    part.list.store(nullptr);
    part.used.store(0);
    const std::int64_t sum = part.sum.load();
    part.sum.store(0);
    return sum;
}

template <class P>
void every_operation_is_done_as_a_whole(P &parts)
{
    std::vector<Node> nodes(threads * rounds);
    std::vector<std::thread> running;
    std::int64_t sum = 0;
    const auto visit = [&sum](Part &part) { sum += emptied(part); };
    for (int i = 0; i < threads; i++) {
        running.emplace_back([&parts, &nodes, i] { work(parts, &nodes[static_cast<std::size_t>(i * rounds)]); });
    }
    for (int i = 0; i < 50; i++) {
        parts.for_each(visit);
        std::this_thread::yield();
    }
    for (auto &thread : running) {
        thread.join();
    }
    parts.for_each(visit);
    CHECK(sum == threads * rounds);
    for (const Node &node : nodes) {
        CHECK(node.taken.load() == 1);
    }
}

template <class P>
void outcomes_say_what_was_seen(P &parts)
{
    parts.add(&Part::sum, 1);
    parts.for_each([](Part &part) {
        part.sum.store(5);
        part.used.store(1);
    });
    const auto differs = parts.store_if(&Part::sum, 4, 9);
    CHECK(!differs && differs.value == nullptr && differs.seen == 5);
    const auto other = parts.store_if_both(&Part::sum, 5, 9, &Part::used, 0);
    CHECK(!other && other.seen == 5 && other.other == 1);
    Node node;
    const auto list = parts.store_if_both(&Part::sum, 5, 9, &Part::list, &node);
    CHECK(!list && list.other == nullptr);
    const auto stored = parts.store_if(&Part::sum, 5, 6);
    CHECK(stored && stored.value->sum.load() == 6 && stored.seen == 5);
    CHECK(parts.id_of(*stored.value) == std::nullopt || parts.get(*parts.id_of(*stored.value)) == stored.value);
    CHECK(!parts.settle());
    std::error_code error;
    CHECK(!parts.copy_then_store_if(&Part::used, 1, 2, &Part::texts, 76, "hello", 5, error));
    CHECK(error == std::errc::invalid_argument);
    CHECK(parts.add(&Part::sum, 1, error) != nullptr && !error);
}

template <class P>
void visits_have_values_to_themselves(P &parts)
{
    parts.add(&Part::sum, 1);
    try {
        parts.for_each([&parts](Part &part) {
            CHECK(&parts.add(&Part::sum, 1) != &part);
            std::error_code error;
            parts.for_each([](Part &) {}, error);
            CHECK(error == std::errc::resource_deadlock_would_occur);
            throw std::runtime_error("enough");
        });
        CHECK(false && "it should have thrown");
    } catch (const std::runtime_error &error) {
        CHECK(std::string_view(error.what()) == "enough");
    }
    // The value that was visited is an ID's again.
    parts.for_each([](Part &part) { part.sum.store(0); });
    int values = 0;
    for (const Part &part : parts) {
        CHECK(part.sum.load() == 0);
        values++;
    }
    CHECK(values >= 2);
}

void a_value_may_be_one_word(percid::source which)
{
    using whole = percid::field<percid::word, percid::word>;
    percid::per_id<percid::word> words(which);
    CHECK(words.add(whole::whole(), 7).load() == 7);
    CHECK(words.fetch_add(whole::whole(), -2).seen == 7);
    CHECK(words.swap(whole::whole(), 0).seen == 5);
    std::error_code error;
    CHECK(words.fetch_add(whole::whole(), 3, error).value != nullptr && !error);
    CHECK(words.for_each([](percid::word &) {}) == 0);
    words.with_id(UINT32_MAX, [](percid::word &) {}, error);
    CHECK(error == std::errc::no_such_file_or_directory);
    for (percid::word &word : words) {
        if (const auto id = words.id_of(word)) {
            words.with_id(*id, [](percid::word &held) { held.store(11); });
            CHECK(word.load() == 11);
        }
    }
}

void values_are_made_and_destroyed_with_their_object(percid::source which)
{
    const int before = Part::alive;
    {
        parts_type parts(which, [] { return Part(100); });
        CHECK(parts.begin() == parts.end() && parts.current() == nullptr);
        CHECK(parts.add(&Part::sum, 1).sum.load() == 101);
        parts_type moved(std::move(parts));
        std::error_code error;
        CHECK(parts.add(&Part::sum, 1, error) == nullptr && error == std::errc::invalid_argument);
        moved.add(&Part::sum, 1);
        CHECK(Part::alive > before);
        moved = parts_type(which);
        CHECK(Part::alive == before);
        CHECK(moved.add(&Part::sum, 1).sum.load() == 1);
    }
    CHECK(Part::alive == before);
}

template <class P>
void use(P &parts)
{
    every_operation_is_done_as_a_whole(parts);
    outcomes_say_what_was_seen(parts);
    visits_have_values_to_themselves(parts);
}

} // namespace

int main()
{
    use(static_parts);
    for (const percid::source which : sources()) {
        parts_type parts(which);
        use(parts);
        a_value_may_be_one_word(which);
        values_are_made_and_destroyed_with_their_object(which);
    }
    std::cout << "ok\n";
    return 0;
}
