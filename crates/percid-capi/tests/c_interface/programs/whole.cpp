// Uses every class and function template of the C++ wrapper, as a library that is not optimised: none
// of them may be shown by it.
#include <memory>
#include <string>

#include <percid.hpp>

namespace control {

// Shown, as any inline function is.
inline int shown_by_default()
{
    return 1;
}

} // namespace control

namespace {

// A class of the program that has one of percid's as a member must not be warned of.
struct Member {
    percid::counter counter;
    percid::stack<std::unique_ptr<int>> stack;
};

long three()
{
    return 3;
}

percid::static_counter static_counter;
percid::static_histogram static_histogram;
percid::static_stack<std::unique_ptr<int>, 64> static_stack;
percid::static_pool<std::string, 64, 100> static_pool;
percid::static_local<long, three> static_local;
percid::static_ring<4096, percid::overflow::drop_newest> static_ring;
percid::static_mask static_mask;

template <class T>
T moved(T &&from)
{
    T to(std::move(from));
    from = std::move(to);
    return std::move(from);
}

template <class L>
void use_local(L &local, std::error_code &error)
{
    local.with([](long &value) { value++; }, error);
    (void)local.with([](long &value) { return value; }, error);
    *local.lock(error) += 1;
    local.for_each([](long &) {}, error);
    local.drain([](long) {}, error);
#if defined(__cpp_exceptions)
    local.with([](long &value) { value++; });
    auto guard = moved(local.lock());
    guard.unlock();
    local.for_each([](long &) {});
    local.drain([](long) {});
#endif
}

template <class S, class P>
void use_memory(S &stack, P &pool)
{
    (void)stack.push(std::make_unique<int>(3));
    (void)stack.pop();
    stack.drain([](std::unique_ptr<int>) {});
    auto pooled = moved(pool.try_make("text"));
    (void)pooled->size();
    (void)pool.slabs();
    pool.drain();
#if defined(__cpp_exceptions)
    (void)pool.make(*pooled);
#endif
}

template <class R, class M>
void use_rest(R &ring, M &mask)
{
    ring.append("text");
    ring.append(3);
    (void)ring.poll([](const percid::event &event) {
        (void)event.as<int>();
        (void)event.text();
    });
    (void)ring.lost();
    std::error_code error;
    auto consumer = moved(percid::consumer(ring, error));
    (void)consumer.next();
    mask.mark(3);
    mask.drain([](std::uint32_t) {});
}

struct Node {
    percid::pointer<Node> next;
};

struct Part {
    percid::word count;
    percid::word slots[4];
    percid::pointer<Node> list;
    percid::bytes<8> text;
};

percid::static_per_id<Part> static_per_id;

template <class P>
void use_per_id(P &parts, std::error_code &error)
{
    Node node;
    char text[8];
    parts.add(&Part::count, 1, error);
    parts.fetch_add(&Part::count, 1, error);
    parts.swap(&Part::count, 0, error);
    parts.store_if(&Part::count, 0, 1, error);
    parts.store_both_if(&Part::count, 1, 2, percid::element(&Part::slots, 2), 3, error);
    parts.store_if_both(&Part::count, 2, 3, &Part::list, nullptr, error);
    parts.copy_then_store_if(&Part::count, 3, 4, &Part::text, 4, "text", 4, error);
    parts.push(&Part::list, &node, &Node::next, error);
    (void)parts.pop(&Part::list, &Node::next, error);
    parts.for_each([&text](Part &part) { part.text.read(0, text, sizeof text); }, error);
    for (Part &part : parts) {
        part.list.store(nullptr);
        part.count.store(part.count.load());
        (void)parts.id_of(part);
    }
    parts.with_id(0, [](Part &) {}, error);
    (void)parts.get(0);
    (void)parts.current();
#if defined(__cpp_exceptions)
    parts.add(&Part::count, 1);
    parts.fetch_add(&Part::count, 1);
    parts.swap(&Part::count, 0);
    parts.store_if(&Part::count, 0, 1);
    parts.store_both_if(&Part::count, 1, 2, percid::element(&Part::slots, 2), 3);
    parts.store_if_both(&Part::count, 2, 3, &Part::list, nullptr);
    parts.copy_then_store_if(&Part::count, 3, 4, &Part::text, 4, "text", 4);
    parts.push(&Part::list, &node, &Node::next);
    (void)parts.pop(&Part::list, &Node::next);
    parts.for_each([](Part &) {});
    parts.with_id(0, [](Part &) {});
#endif
}

template <class C, class H>
void count(C &counter, H &histogram, std::error_code &error)
{
    counter.add();
    (void)counter.per_id();
    (void)counter.take();
    histogram.record(3);
    auto taken = moved(histogram.take(error));
    taken.merge(histogram.snapshot(error));
    (void)taken.buckets();
    (void)taken.quantile(H::relative_error);
    (void)taken.mean();
}

} // namespace

// Everything, on behalf of the compiler.
int use_everything()
{
    std::error_code error;
    (void)percid::init();
    (void)percid::reason();
    (void)percid::current_id();
    use_memory(static_stack, static_pool);
    use_local(static_local, error);
    use_rest(static_ring, static_mask);
    count(static_counter, static_histogram, error);
    use_per_id(static_per_id, error);

    auto member = moved(Member{{}, {64, error}});
    auto pool = moved(percid::pool<std::string>(64, error));
    auto local = moved(percid::local<long>(three, error));
    auto ring = moved(percid::ring(4096, percid::overflow::drop_newest, error));
    auto mask = moved(percid::mask(error));
    auto histogram = moved(percid::histogram(percid::source::atomic, error));
    use_memory(member.stack, pool);
    use_local(local, error);
    use_rest(ring, mask);
    count(member.counter, histogram, error);

    auto per_id = moved(percid::per_id<Part>(error));
    use_per_id(per_id, error);

    auto balancer = moved(percid::numa::balancer(percid::numa::settings(), error));
    auto region = moved(percid::numa::region(balancer, nullptr, 0, percid::numa::access::trapped, error));
    percid::numa::exclusion(region, 0, 4096, error);
    region.touch(0);
    auto report = moved(balancer.report(error));
    (void)report.totals();
    (void)report.nodes();
    (void)report.use(0);
    (void)balancer.pass();
    (void)balancer.take_events();
    return control::shown_by_default();
}
