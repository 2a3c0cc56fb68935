/*
 * percid.hpp: per-CPU data for user space, for C++17 and later. Header-only, over percid.h.
 *
 *     static percid::static_counter requests;
 *     static percid::local<std::unordered_map<std::string, int>> hits;
 *
 *     requests.add();                                    // on any thread, in any signal handler
 *     hits.with([](auto &mine) { mine["/index"]++; });   // exclusive, without waiting
 *     std::cout << requests.sum() << '\n';
 *
 *     c++ -std=c++17 program.cpp $(pkg-config --cflags --libs percid)
 *
 * Objects give their memory back when they are destroyed, and can be moved but not copied; no other
 * thread may use an object while it is moved or destroyed. Everything else may be called by any
 * number of threads at once. Constructors that can fail throw std::system_error; nothing else
 * throws unless it says so. What percid.h says about signals, fork and costs holds here too.
 *
 * Exceptions of callbacks: those of with() and for_each() come out of them, and for_each() then
 * leaves the rest out. The callbacks of drain() and poll() must not throw, since what they are
 * given would be lost: std::terminate() is called. Programs that are compiled without exceptions
 * use percid.h.
 */
#ifndef PERCID_HPP
#define PERCID_HPP

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "percid.h" /* IWYU pragma: export */

namespace percid {

/* Where concurrency IDs come from. */
enum class source : int {
    /* The kernel's own (Linux 6.3 and later). */
    kernel = PERCID_SOURCE_KERNEL,
    /* percid's table from CPU to ID (Linux 5.10 and later). */
    table = PERCID_SOURCE_TABLE,
    /* None: every update is one atomic instruction. */
    atomic = PERCID_SOURCE_ATOMIC,
};

/* "kernel", "table" or "atomic". */
inline const char *name(source which) noexcept
{
    return percid_source_name(static_cast<int>(which));
}

/* The version of the library that the program runs with, such as "0.1.0". */
inline const char *version() noexcept
{
    return percid_version();
}

/* Chooses the source for this process at the first call. Not needed, but cheap early in main(). */
inline source init() noexcept
{
    return static_cast<source>(percid_init());
}

/* One line for people: why the process uses that source. May throw std::bad_alloc. */
inline std::string reason()
{
    std::string line(percid_reason(nullptr, 0), '\0');
    percid_reason(line.data(), line.size() + 1);
    return line;
}

/* The ID of the calling thread, a hint: the thread may be moved before the caller looks at it. */
inline std::optional<std::uint32_t> current_id() noexcept
{
    const int id = percid_current_id();
    return id < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(id));
}

/* Makes the process's IDs dense again; returns how many were taken back. */
inline std::uint32_t compact() noexcept
{
    return percid_compact();
}

/* Limits the IDs that there may be while threads wander; 0: never more than min(allowed CPUs,
 * threads). */
inline void set_density(std::uint32_t most) noexcept
{
    percid_set_density(most);
}

/* Why a source cannot be used: see enum percid_unavailable. */
enum class unavailable : int {
    no = PERCID_UNAVAILABLE_NO,
    no_rseq = PERCID_UNAVAILABLE_NO_RSEQ,
    no_kernel_ids = PERCID_UNAVAILABLE_NO_KERNEL_IDS,
    shared_area = PERCID_UNAVAILABLE_SHARED_AREA,
    no_membarrier = PERCID_UNAVAILABLE_NO_MEMBARRIER,
    membarrier_refused = PERCID_UNAVAILABLE_MEMBARRIER_REFUSED,
    sections_not_aborted = PERCID_UNAVAILABLE_SECTIONS_NOT_ABORTED,
    sections_not_probed = PERCID_UNAVAILABLE_SECTIONS_NOT_PROBED,
    probe_refused = PERCID_UNAVAILABLE_PROBE_REFUSED,
    no_memory = PERCID_UNAVAILABLE_NO_MEMORY,
    other = PERCID_UNAVAILABLE_OTHER,
};

/* Why the process uses the source that init() returns: see enum percid_choice. */
enum class choice : int {
    override_ = PERCID_CHOICE_OVERRIDE,
    table_works = PERCID_CHOICE_TABLE_WORKS,
    table_is_not = PERCID_CHOICE_TABLE_IS_NOT,
    being_chosen = PERCID_CHOICE_BEING_CHOSEN,
    not_known_yet = PERCID_CHOICE_NOT_KNOWN_YET,
    other = PERCID_CHOICE_OTHER,
};

inline choice read_choice() noexcept
{
    return static_cast<choice>(percid_choice_read());
}

/* The source of a name; nothing if there is none of that name. */
inline std::optional<source> source_by_name(const char *text) noexcept
{
    const int found = percid_source_by_name(text);
    return found < 0 ? std::nullopt : std::optional<source>(static_cast<source>(found));
}

/* Prepares the process to use a source: no if it can. */
inline unavailable prepare(source which) noexcept
{
    return static_cast<unavailable>(percid_source_unavailable(static_cast<int>(which)));
}

/* One line for people: why a source cannot be used; empty if it can. May throw std::bad_alloc. */
inline std::string reason(source which)
{
    std::string line(percid_source_reason(static_cast<int>(which), nullptr, 0), '\0');
    percid_source_reason(static_cast<int>(which), line.data(), line.size() + 1);
    return line;
}

/* The ID that a source gives to the calling thread now, whatever the process has chosen: a hint. */
inline std::optional<std::uint32_t> current_id(source which) noexcept
{
    const int id = percid_source_current_id(static_cast<int>(which));
    return id < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(id));
}

/* How many IDs of a source the process has used: all that ever existed are below. */
inline std::uint32_t ids_seen(source which) noexcept
{
    return percid_source_ids_seen(static_cast<int>(which));
}

/* What percid's table has had to do so far. */
using activity = percid_activity;

/* Nothing if the table was not used, or another thread is busy with it at this moment. */
inline std::optional<activity> read_activity() noexcept
{
    activity now{};
    return percid_activity_read(&now, sizeof now) == 0 ? std::optional<activity>(now) : std::nullopt;
}

/* Addresses: start and bytes. */
using range = percid_range;

/* The memory that holds an ID's copies of all structures. May throw std::bad_alloc. */
inline std::vector<range> memory_of(std::uint32_t id)
{
    std::vector<range> ranges(percid_id_memory(id, nullptr, 0));
    /* There may be more by now. */
    percid_id_memory(id, ranges.data(), ranges.size());
    return ranges;
}

/* What the machine and the kernel offer; see percid_machine. */
using machine = percid_machine;

inline machine read_machine() noexcept
{
    machine now{};
    percid_machine_read(&now, sizeof now);
    return now;
}

/* A CPU and whom it shares with. */
using cpu = percid_cpu;

/* The CPUs that may ever exist, ascending. May throw std::bad_alloc. */
inline std::vector<cpu> read_cpus()
{
    std::vector<cpu> found(percid_machine_cpus(nullptr, sizeof(cpu), 0));
    percid_machine_cpus(found.data(), sizeof(cpu), found.size());
    return found;
}

/* What a probe of the kernel saw: see percid_probe. */
using kernel_probe = percid_probe;

/* Tries for so long whether the kernel aborts critical sections; nothing if it cannot be tried. */
inline std::optional<kernel_probe> probe_machine(std::chrono::milliseconds limit) noexcept
{
    kernel_probe seen{};
    const auto most = static_cast<std::uint32_t>(limit.count());
    return percid_machine_probe(most, &seen, sizeof seen) == 0 ? std::optional<kernel_probe>(seen) : std::nullopt;
}

namespace detail {

/* Throws for a negative errno. */
inline void check(int result, const char *what)
{
    if (result < 0) {
        throw std::system_error(-result, std::generic_category(), what);
    }
}

/* A handle of percid.h that one object owns. */
template <class H>
class owner {
public:
    owner() noexcept = default;

    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

    owner &operator=(owner &&other) noexcept
    {
        owner taken(std::move(other));
        std::swap(handle_, taken.handle_);
        return *this;
    }

    ~owner()
    {
        destroy(handle_);
    }

    H *get() const noexcept
    {
        return handle_;
    }

    /* Where a function of percid.h stores a new handle. */
    H **place() noexcept
    {
        return &handle_;
    }

private:
    /* Each of these allows NULL. */
    static void destroy(percid_stack *stack) noexcept
    {
        percid_stack_destroy(stack, nullptr, nullptr);
    }
    static void destroy(percid_pool *pool) noexcept
    {
        percid_pool_destroy(pool);
    }
    static void destroy(percid_local *local) noexcept
    {
        percid_local_destroy(local);
    }
    static void destroy(percid_ring *ring) noexcept
    {
        percid_ring_destroy(ring);
    }
    static void destroy(percid_mask *mask) noexcept
    {
        percid_mask_destroy(mask);
    }
    static void destroy(percid_balancer *balancer) noexcept
    {
        percid_balancer_destroy(balancer);
    }
    static void destroy(percid_region *region) noexcept
    {
        percid_region_unregister(region);
    }
    static void destroy(percid_report *report) noexcept
    {
        percid_report_free(report);
    }
    static void destroy(percid_snapshot *snapshot) noexcept
    {
        percid_snapshot_free(snapshot);
    }

    H *handle_ = nullptr;
};

/* A callable of the caller's, on its way through C as the argument of a callback. */
template <class F>
void *pass(F &callable) noexcept
{
    return const_cast<void *>(static_cast<const void *>(std::addressof(callable)));
}

template <class F>
F &passed(void *argument) noexcept
{
    return *static_cast<F *>(argument);
}

} // namespace detail

/*
 * A signed 64-bit counter that every CPU updates in memory of its own, for objects that live as
 * long as the process: it is constant-initialised and has no destructor, so it can be used before
 * main() and by threads that still run when the process ends.
 */
class static_counter {
public:
    constexpr static_counter() noexcept = default;
    static_counter(const static_counter &) = delete;
    static_counter &operator=(const static_counter &) = delete;

    /* Adds n, which may be negative. Inline: no call, no locked instruction. Async-signal-safe. */
    void add(std::int64_t n = 1) noexcept
    {
        percid_counter_add(&counter_, n);
    }

    /* The sum over all IDs: exact for what happened before. Async-signal-safe. */
    std::int64_t sum() const noexcept
    {
        return percid_counter_sum(&counter_);
    }

    /* The sum, which it resets to zero: an increment is in this result or in a later one.
     * Async-signal-safe. */
    std::int64_t take() noexcept
    {
        return percid_counter_take(&counter_);
    }

    /* What each ID has added, by ID. The rest of the sum is shared(). May throw std::bad_alloc. */
    std::vector<std::int64_t> by_id() const
    {
        std::vector<std::int64_t> values(percid_counter_by_id(&counter_, nullptr, 0));
        /* There may be more by now. */
        percid_counter_by_id(&counter_, values.data(), values.size());
        return values;
    }

    /* What was added without an ID, less what take() has taken. */
    std::int64_t shared() const noexcept
    {
        return percid_counter_shared(&counter_);
    }

    /* For the functions of percid.h. */
    percid_counter *c_counter() noexcept
    {
        return &counter_;
    }

protected:
    percid_counter counter_ = PERCID_COUNTER_INIT;
};

/* A static_counter that gives its memory back when it is destroyed, and can be moved. */
class counter : public static_counter {
public:
    constexpr counter() noexcept = default;

    /* One that uses this source, whatever the process has chosen. Throws if it cannot be used. */
    explicit counter(source which)
    {
        detail::check(percid_counter_with_source(&counter_, static_cast<int>(which)), "percid::counter");
    }

    counter(counter &&other) noexcept
    {
        std::swap(counter_, other.counter_);
    }

    counter &operator=(counter &&other) noexcept
    {
        counter taken(std::move(other));
        std::swap(counter_, taken.counter_);
        return *this;
    }

    ~counter()
    {
        percid_counter_destroy(&counter_);
    }
};

/* A bucket of a snapshot: low and high, the smallest and the largest value that belong to it, and
 * count. */
using bucket = percid_bucket;

/* What a histogram had recorded at some time. */
class snapshot {
public:
    /* One without values, to merge others into. Throws if there is no memory. */
    snapshot()
    {
        detail::check(percid_snapshot_create(counts_.place()), "percid::snapshot");
    }

    std::uint64_t count() const noexcept
    {
        return percid_snapshot_count(counts_.get());
    }

    /* What a share q of the values does not exceed, up to 1/128; nothing if there are no values. */
    std::optional<std::uint64_t> quantile(double q) const noexcept
    {
        std::uint64_t value = 0;
        return given(percid_snapshot_quantile(counts_.get(), q, &value), value);
    }

    std::optional<std::uint64_t> min() const noexcept
    {
        std::uint64_t value = 0;
        return given(percid_snapshot_min(counts_.get(), &value), value);
    }

    std::optional<std::uint64_t> max() const noexcept
    {
        std::uint64_t value = 0;
        return given(percid_snapshot_max(counts_.get(), &value), value);
    }

    std::optional<double> mean() const noexcept
    {
        double value = 0;
        return given(percid_snapshot_mean(counts_.get(), &value), value);
    }

    /* Adds the values of another snapshot. */
    void merge(const snapshot &other) noexcept
    {
        percid_snapshot_merge(counts_.get(), other.counts_.get());
    }

    /* The buckets that have values, from the smallest. May throw std::bad_alloc. */
    std::vector<bucket> buckets() const
    {
        std::vector<bucket> found(percid_snapshot_buckets(counts_.get(), nullptr, 0));
        percid_snapshot_buckets(counts_.get(), found.data(), found.size());
        return found;
    }

private:
    friend class static_histogram;

    explicit snapshot(std::nullptr_t) noexcept {}

    /* By reference: arguments are evaluated in any order, and the first one stores the value. */
    template <class V>
    static std::optional<V> given(int result, const V &value) noexcept
    {
        return result == 0 ? std::optional<V>(value) : std::nullopt;
    }

    detail::owner<percid_snapshot> counts_;
};

/* A histogram of unsigned 64-bit values, for objects that live as long as the process: see
 * static_counter. */
class static_histogram {
public:
    /* How far a reported value can be from the recorded one, as a share of it. */
    static constexpr double relative_error = 1.0 / 128;

    constexpr static_histogram() noexcept = default;
    static_histogram(const static_histogram &) = delete;
    static_histogram &operator=(const static_histogram &) = delete;

    /* Counts a value `times` times. Inline. Async-signal-safe. */
    void record(std::uint64_t value, std::uint64_t times = 1) noexcept
    {
        percid_histogram_record_many(&histogram_, value, times);
    }

    /* What has been recorded so far. Throws if there is no memory. */
    percid::snapshot snapshot() const
    {
        percid::snapshot taken(nullptr);
        detail::check(percid_histogram_snapshot(&histogram_, taken.counts_.place()), "percid::histogram");
        return taken;
    }

    /* The same, and removes it: every record is in exactly one of the snapshots taken. */
    percid::snapshot take()
    {
        percid::snapshot taken(nullptr);
        detail::check(percid_histogram_take(&histogram_, taken.counts_.place()), "percid::histogram");
        return taken;
    }

    /* How many values could not be recorded because the first use found no memory. */
    std::uint64_t unrecorded() const noexcept
    {
        return percid_histogram_unrecorded(&histogram_);
    }

    /* For the functions of percid.h. */
    percid_histogram *c_histogram() noexcept
    {
        return &histogram_;
    }

protected:
    percid_histogram histogram_ = PERCID_HISTOGRAM_INIT;
};

/* A static_histogram that gives its memory back when it is destroyed, and can be moved. */
class histogram : public static_histogram {
public:
    constexpr histogram() noexcept = default;

    /* One that uses this source, whatever the process has chosen. Throws if it cannot be used. */
    explicit histogram(source which)
    {
        detail::check(percid_histogram_with_source(&histogram_, static_cast<int>(which)), "percid::histogram");
    }

    histogram(histogram &&other) noexcept
    {
        std::swap(histogram_, other.histogram_);
    }

    histogram &operator=(histogram &&other) noexcept
    {
        histogram taken(std::move(other));
        std::swap(histogram_, taken.histogram_);
        return *this;
    }

    ~histogram()
    {
        percid_histogram_destroy(&histogram_);
    }
};

/*
 * A list of pointers, last in, first out, of which every CPU has a part of its own: stack<node *>.
 * It does not own what they point to: drain it before it is destroyed.
 */
template <class P>
class stack {
    static_assert(std::is_pointer<P>::value, "a stack holds pointers");

public:
    static constexpr std::size_t unbounded = PERCID_UNBOUNDED;

    /* Keeps up to capacity items for every ID, and about as many as shared in the list that IDs
     * share. Throws for a capacity of 0 or above 2 097 151, or without memory. */
    explicit stack(std::uint32_t capacity, std::size_t shared = unbounded)
    {
        detail::check(percid_stack_create(stack_.place(), capacity, shared), "percid::stack");
    }

    /* For a source, whatever the process has chosen. Throws if it cannot be used. */
    stack(source which, std::uint32_t capacity)
    {
        detail::check(percid_stack_create_with_source(stack_.place(), static_cast<int>(which), capacity),
                      "percid::stack");
    }

    /* How many items every ID keeps at most. */
    std::uint32_t capacity() const noexcept
    {
        return percid_stack_capacity(stack_.get());
    }

    /* Pushes an item that is not null. False if there is no room for it. Async-signal-safe. */
    [[nodiscard]] bool push(P item) noexcept
    {
        return percid_stack_push(stack_.get(), const_cast<void *>(static_cast<const void *>(item))) == 0;
    }

    /* Pops the item that this CPU pushed last, or one of the shared list; null if there is none.
     * Async-signal-safe. */
    [[nodiscard]] P pop() noexcept
    {
        return static_cast<P>(percid_stack_pop(stack_.get()));
    }

    /* Hands all items to visit(P) and returns how many. */
    template <class F>
    std::size_t drain(F &&visit)
    {
        using visitor = std::remove_reference_t<F>;
        const auto call = [](void *item, void *argument) noexcept {
            detail::passed<visitor>(argument)(static_cast<P>(item));
        };
        const std::int64_t count = percid_stack_drain(stack_.get(), call, detail::pass(visit));
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }

private:
    detail::owner<percid_stack> stack_;
};

/*
 * Memory for objects of type T, of which every CPU keeps some of its own: make() constructs an
 * object there, and its pointer destroys it and puts the memory back. Pointers must not outlive
 * their pool.
 */
template <class T>
class pool {
public:
    /* Destroys an object and puts its memory back. */
    class deleter {
    public:
        deleter() noexcept = default;

        void operator()(T *object) const noexcept
        {
            object->~T();
            percid_pool_put(pool_, object);
        }

    private:
        friend class pool;

        explicit deleter(percid_pool *pool) noexcept : pool_(pool) {}

        percid_pool *pool_ = nullptr;
    };

    using pointer = std::unique_ptr<T, deleter>;

    /* Keeps memory for up to capacity idle objects for every ID, and any number that IDs share.
     * Throws for a capacity of 0 or above 2 097 151, or without memory. */
    explicit pool(std::uint32_t capacity)
    {
        detail::check(percid_pool_create(pool_.place(), sizeof(T), alignof(T), capacity), "percid::pool");
    }

    /* For a source, whatever the process has chosen. Throws if it cannot be used. */
    pool(source which, std::uint32_t capacity)
    {
        detail::check(percid_pool_create_with_source(pool_.place(), static_cast<int>(which), sizeof(T), alignof(T),
                                                     capacity),
                      "percid::pool");
    }

    /* The addresses of the pool's memory, in no order. May throw std::bad_alloc. */
    std::vector<range> slabs() const
    {
        std::vector<range> found(percid_pool_slabs(pool_.get(), nullptr, 0));
        /* There may be more by now. */
        percid_pool_slabs(pool_.get(), found.data(), found.size());
        return found;
    }

    /* Constructs an object. Throws std::bad_alloc, and what its constructor throws. */
    template <class... A>
    [[nodiscard]] pointer make(A &&...arguments)
    {
        void *const memory = percid_pool_get(pool_.get());
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        try {
            return pointer(::new (memory) T(std::forward<A>(arguments)...), deleter(pool_.get()));
        } catch (...) {
            percid_pool_put(pool_.get(), memory);
            throw;
        }
    }

    /* Gives memory without objects back to the kernel; returns how many would have fitted. */
    std::size_t drain() noexcept
    {
        const std::int64_t count = percid_pool_drain(pool_.get());
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }

private:
    detail::owner<percid_pool> pool_;
};

/*
 * A value of type T for every CPU that asks for one, to be used exclusively by any callable. It is
 * made when it is first asked for, and destroyed by drain() or with this object.
 */
template <class T>
class local {
    static_assert(alignof(T) <= 4096, "values are aligned to a page at most");

public:
    /* Values are made by the default constructor. Throws if there is no memory. */
    local() : local([] { return T(); }) {}

    /* Values are made by make(), which any thread may call. */
    explicit local(std::function<T()> make) : make_(std::make_unique<std::function<T()>>(std::move(make)))
    {
        detail::check(percid_local_create(local_.place(), sizeof(T), alignof(T), construct, destroy, make_.get()),
                      "percid::local");
    }

    /* For a source, whatever the process has chosen. Throws if it cannot be used. */
    explicit local(source which, std::function<T()> make = [] { return T(); })
        : make_(std::make_unique<std::function<T()>>(std::move(make)))
    {
        detail::check(percid_local_create_with_source(local_.place(), static_cast<int>(which), sizeof(T), alignof(T),
                                                      construct, destroy, make_.get()),
                      "percid::local");
    }

    local(local &&) noexcept = default;

    local &operator=(local &&other) noexcept
    {
        /* The values before what makes them. */
        local_ = std::move(other.local_);
        make_ = std::move(other.make_);
        return *this;
    }

    /* Lends a value to visit(T &), whose result it returns. Does not wait. Throws what visit() and
     * make() throw, and std::system_error if another value is needed and there is no memory for it.
     * */
    template <class F>
    auto with(F &&visit) -> decltype(visit(std::declval<T &>()))
    {
        using R = decltype(visit(std::declval<T &>()));
        static_assert(!std::is_reference<R>::value, "the loan ends before the reference would");
        call<F, R> state{visit, {}, nullptr};
        const auto run = [](void *value, void *argument) noexcept {
            auto &mine = detail::passed<call<F, R>>(argument);
            try {
                mine.run(*std::launder(static_cast<T *>(value)));
            } catch (...) {
                mine.thrown = std::current_exception();
            }
        };
        const int result = percid_local_with(local_.get(), run, &state);
        rethrow(state.thrown);
        if (result == -ECANCELED) {
            rethrow(std::exchange(thrown_by_make(), nullptr));
        }
        detail::check(result, "percid::local::with");
        return state.take();
    }

    /* Calls visit(T &) for every value. Waits for those that use one, so it must not be called from
     * with(): throws std::system_error, and what visit() throws. */
    template <class F>
    void for_each(F &&visit)
    {
        using visitor = std::remove_reference_t<F>;
        each<visitor> state{visit, nullptr};
        const auto run = [](void *value, void *argument) noexcept {
            auto &mine = detail::passed<each<visitor>>(argument);
            try {
                if (!mine.thrown) {
                    mine.visit(*std::launder(static_cast<T *>(value)));
                }
            } catch (...) {
                mine.thrown = std::current_exception();
            }
        };
        const int result = percid_local_for_each(local_.get(), run, &state);
        rethrow(state.thrown);
        detail::check(result, "percid::local::for_each");
    }

    /* Takes all values out: hands each to visit(T &&) and destroys it. Returns how many. Throws
     * std::system_error when called from with(). */
    template <class F>
    std::size_t drain(F &&visit)
    {
        using visitor = std::remove_reference_t<F>;
        const auto run = [](void *value, void *argument) noexcept {
            detail::passed<visitor>(argument)(std::move(*std::launder(static_cast<T *>(value))));
        };
        const std::int64_t count = percid_local_drain(local_.get(), run, detail::pass(visit));
        detail::check(count < 0 ? static_cast<int>(count) : 0, "percid::local::drain");
        return static_cast<std::size_t>(count);
    }

private:
    /* A call of with() that returns something. */
    template <class F, class R>
    struct call {
        F &visit;
        std::optional<R> result;
        std::exception_ptr thrown;

        void run(T &value)
        {
            result.emplace(visit(value));
        }
        R take()
        {
            return std::move(*result);
        }
    };

    template <class F>
    struct call<F, void> {
        F &visit;
        std::optional<char> result;
        std::exception_ptr thrown;

        void run(T &value)
        {
            visit(value);
        }
        void take() {}
    };

    template <class F>
    struct each {
        F &visit;
        std::exception_ptr thrown;
    };

    static void rethrow(const std::exception_ptr &thrown)
    {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    }

    /* What make() has thrown on this thread, on its way through C. */
    static std::exception_ptr &thrown_by_make() noexcept
    {
        static thread_local std::exception_ptr thrown;
        return thrown;
    }

    static int construct(void *memory, void *context) noexcept
    {
        try {
            ::new (memory) T((*static_cast<std::function<T()> *>(context))());
            return 0;
        } catch (...) {
            thrown_by_make() = std::current_exception();
            return -ECANCELED;
        }
    }

    static void destroy(void *value, void *) noexcept
    {
        std::launder(static_cast<T *>(value))->~T();
    }

    /* Declared first, since the values are destroyed before it. */
    std::unique_ptr<std::function<T()>> make_;
    detail::owner<percid_local> local_;
};

/* What happens to a record when a ring is full. */
enum class overflow : int {
    /* The new record is lost. */
    drop_newest = PERCID_OVERFLOW_DROP_NEWEST,
    /* The oldest records are lost: an eighth of the ring at a time. */
    overwrite_oldest = PERCID_OVERFLOW_OVERWRITE_OLDEST,
};

/* A record as the consumer gets it: id (-1: appended without one), number, bytes, length. */
using event = percid_event;

/* A ring of byte records for every CPU, emptied by one consumer at a time. */
class ring {
public:
    /* Of `bytes` bytes, a power of two from 128 to 8 MiB, for every ID. Throws for others, or
     * without memory. */
    ring(std::size_t bytes, overflow policy)
    {
        detail::check(percid_ring_create(ring_.place(), bytes, static_cast<int>(policy)), "percid::ring");
    }

    /* For a source, whatever the process has chosen. Throws if it cannot be used. */
    ring(source which, std::size_t bytes, overflow policy)
    {
        detail::check(percid_ring_create_with_source(ring_.place(), static_cast<int>(which), bytes,
                                                     static_cast<int>(policy)),
                      "percid::ring");
    }

    /* Appends a record. False if it is lost: there is no room, or it is too long.
     * Async-signal-safe. */
    bool append(const void *record, std::size_t length) noexcept
    {
        return percid_ring_append(ring_.get(), record, length) == 0;
    }

    /* Appends the bytes of a value. */
    template <class T>
    bool append(const T &record) noexcept
    {
        static_assert(std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value, "its bytes are copied");
        return append(std::addressof(record), sizeof record);
    }

    /* The most bytes of a record. */
    std::size_t max_record_len() const noexcept
    {
        return percid_ring_max_record_len(ring_.get());
    }

    /* Hands every record that is there to visit(const event &) and returns how many; nothing if
     * another thread is polling. */
    template <class F>
    std::optional<std::size_t> poll(F &&visit)
    {
        using visitor = std::remove_reference_t<F>;
        const auto call = [](const percid_event *record, void *argument) noexcept {
            detail::passed<visitor>(argument)(*record);
        };
        const std::int64_t count = percid_ring_poll(ring_.get(), call, detail::pass(visit));
        return count < 0 ? std::nullopt : std::optional<std::size_t>(static_cast<std::size_t>(count));
    }

    /* How many records were lost so far. */
    std::uint64_t lost() const noexcept
    {
        return percid_ring_lost(ring_.get());
    }

private:
    detail::owner<percid_ring> ring_;
};

/* Which IDs have something to flush. */
class mask {
public:
    /* Without members. Throws if there is no memory. */
    mask()
    {
        detail::check(percid_mask_create(mask_.place()), "percid::mask");
    }

    /* Makes an ID a member, after something was published that a drain must find. IDs are below
     * 8192: false for others. Async-signal-safe. */
    bool mark(std::uint32_t id) noexcept
    {
        return percid_mask_mark(mask_.get(), id) == 0;
    }

    bool is_marked(std::uint32_t id) const noexcept
    {
        return percid_mask_is_marked(mask_.get(), id) == 1;
    }

    /* Takes all members out and calls visit(std::uint32_t) for each. Returns how many there were.
     * */
    template <class F>
    std::size_t drain(F &&visit)
    {
        using visitor = std::remove_reference_t<F>;
        const auto call = [](std::uint32_t id, void *argument) noexcept {
            detail::passed<visitor>(argument)(id);
        };
        const std::int64_t count = percid_mask_drain(mask_.get(), call, detail::pass(visit));
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }

private:
    detail::owner<percid_mask> mask_;
};

/* Memory that follows its threads, on machines with several nodes: see percid_balancer. All that a
 * balancer has and makes is in this namespace, by C's names without percid_ and without what the
 * name of a class says already. */
namespace numa {

/* Which of the published fixes a balancer's scan has. */
enum class rules : int {
    /* Linux 6.6, before the published series. */
    base = PERCID_SCAN_RULES_BASE,
    /* The published series, Linux 6.7. */
    selective = PERCID_SCAN_RULES_SELECTIVE,
    /* With the fixes that followed, as in Linux 6.12. The default. */
    fixed = PERCID_SCAN_RULES_FIXED,
};

/* How a balancer learns who uses a region. */
enum class access : int {
    /* The program says so, by region::touch(). */
    reported = PERCID_ACCESS_REPORTED,
    /* By faults. A program that asks for it promises what percid_region_register_trapped() says. */
    trapped = PERCID_ACCESS_TRAPPED,
    /* Writes only; who writes to an armed page waits until that was noted. */
    written = PERCID_ACCESS_WRITTEN,
};

/* Why a region was not scanned; but the last one says why it was. */
enum class reason : int {
    unsuitable = PERCID_SCAN_REASON_UNSUITABLE,
    shared_ro = PERCID_SCAN_REASON_SHARED_RO,
    inaccessible = PERCID_SCAN_REASON_INACCESSIBLE,
    scan_delay = PERCID_SCAN_REASON_SCAN_DELAY,
    seq_completed = PERCID_SCAN_REASON_SEQ_COMPLETED,
    pid_inactive = PERCID_SCAN_REASON_PID_INACTIVE,
    ignore_pid_inactive = PERCID_SCAN_REASON_IGNORE_PID_INACTIVE,
};

/* The published name. */
inline const char *name(reason which) noexcept
{
    return percid_scan_reason_name(static_cast<int>(which));
}

/* The constants and rules of a balancer: the members of percid_balancer_settings, with their
 * defaults. */
struct settings : percid_balancer_settings {
    settings() noexcept : percid_balancer_settings()
    {
        percid_balancer_settings_init(this, sizeof(percid_balancer_settings));
    }

    /* Chooses the rules. */
    settings &with(numa::rules which) noexcept
    {
        rules = static_cast<int>(which);
        return *this;
    }
};

/* A decision of a balancer: kind, one of percid_balancer_event_kind, and the members that it
 * names. */
using event = percid_balancer_event;

/* What a pass did: armed, skipped, took_ns. */
using passed = percid_pass;

/* What became of a batch of pages: moved, failed, more. */
using batch = percid_batch;

/* What a balancer has done in all, and with a region. */
using totals = percid_balancer_totals;
using figures = percid_region_figures;

/* A node and a count; an errno and a number of pages. */
using on_node = percid_on_node;
using failure = percid_region_failure;

/* What a balancer had done and seen at some time. The functions that return vectors may throw
 * std::bad_alloc; those for a region of an index that there is not answer with nothing. */
class report {
public:
    numa::totals totals() const noexcept
    {
        numa::totals found{};
        percid_report_totals(report_.get(), &found, sizeof found);
        return found;
    }

    /* The nodes that have memory, ascending. */
    std::vector<std::uint32_t> nodes() const
    {
        std::vector<std::uint32_t> found(percid_report_nodes(report_.get(), nullptr, 0));
        percid_report_nodes(report_.get(), found.data(), found.size());
        return found;
    }

    /* How many regions there are, by ascending address. */
    std::size_t regions() const noexcept
    {
        return percid_report_regions(report_.get());
    }

    std::optional<numa::figures> region(std::size_t index) const noexcept
    {
        numa::figures found{};
        const int result = percid_report_region(report_.get(), index, &found, sizeof found);
        return result == 0 ? std::optional<numa::figures>(found) : std::nullopt;
    }

    /* The pages of a region on each node that has any. */
    std::vector<on_node> pages(std::size_t index) const
    {
        return list<on_node>(percid_report_pages, index);
    }

    /* How much each node has used a region of late. */
    std::vector<on_node> use(std::size_t index) const
    {
        return list<on_node>(percid_report_use, index);
    }

    /* The pages of a region that could not be looked up, armed or moved, by errno. */
    std::vector<failure> failures(std::size_t index) const
    {
        return list<failure>(percid_report_failures, index);
    }

    /* How often a region was left out for a reason. */
    std::uint64_t skipped(std::size_t index, reason which) const noexcept
    {
        return percid_report_skipped(report_.get(), index, static_cast<int>(which));
    }

private:
    friend class balancer;

    report() noexcept = default;

    template <class T>
    std::vector<T> list(std::size_t (*of)(const percid_report *, std::size_t, T *, std::size_t),
                        std::size_t index) const
    {
        std::vector<T> found(of(report_.get(), index, nullptr, 0));
        of(report_.get(), index, found.data(), found.size());
        return found;
    }

    detail::owner<percid_report> report_;
};

/* Keeps the memory of its regions near the threads that use it. Regions may outlive it, and are
 * then left alone. */
class balancer {
public:
    /* With the published constants and all fixes. Throws if there is no memory for it. */
    balancer()
    {
        detail::check(percid_balancer_create(balancer_.place(), nullptr), "percid::numa::balancer");
    }

    /* Throws for settings that cannot be used. */
    explicit balancer(const settings &chosen)
    {
        detail::check(percid_balancer_create(balancer_.place(), &chosen), "percid::numa::balancer");
    }

    /* Whether there is anything to balance: several nodes with memory. */
    bool has_nodes() const noexcept
    {
        return percid_balancer_has_nodes(balancer_.get()) == 1;
    }

    /* Starts a thread that makes passes and moves pages by itself. Throws if there can be none. */
    void start()
    {
        detail::check(percid_balancer_start(balancer_.get()), "percid::numa::balancer::start");
    }

    /* Ends that thread and waits for it. */
    void stop() noexcept
    {
        percid_balancer_stop(balancer_.get());
    }

    /* Makes a pass on behalf of the calling thread. */
    numa::passed pass() noexcept
    {
        numa::passed done{};
        percid_balancer_pass(balancer_.get(), &done);
        return done;
    }

    /* Moves a batch of the pages that are to move. */
    numa::batch move_batch() noexcept
    {
        numa::batch done{};
        percid_balancer_move_batch(balancer_.get(), &done);
        return done;
    }

    /* Takes up to `most` of the decisions that were not taken yet, the oldest first; none if
     * another thread is taking some. May throw std::bad_alloc. */
    std::vector<event> take_events(std::size_t most = 4096)
    {
        std::vector<event> events(most);
        const std::int64_t count = percid_balancer_take_events(balancer_.get(), events.data(), events.size());
        events.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return events;
    }

    /* What was done and seen so far. Throws if the balancer was moved from. */
    numa::report report() const
    {
        numa::report made;
        detail::check(percid_report_create(made.report_.place(), balancer_.get()), "percid::numa::report");
        return made;
    }

private:
    friend class region;

    detail::owner<percid_balancer> balancer_;
};

/* Memory that a balancer looks after for as long as this object lives. */
class region {
public:
    /* Registers memory of whole pages. Throws std::system_error, with the text of
     * percid_region_error(). */
    region(balancer &by, const void *start, std::size_t bytes, numa::access how = numa::access::reported)
    {
        const auto add = how == numa::access::trapped   ? percid_region_register_trapped
                         : how == numa::access::written ? percid_region_register_written
                                                        : percid_region_register;
        const int result = add(region_.place(), by.balancer_.get(), start, bytes);
        if (result < 0) {
            const char *const why = percid_region_error(result);
            detail::check(result, why == nullptr ? "percid::numa::region" : why);
        }
    }

    /* Says that the calling thread uses the memory at that offset from the start, in bytes.
     * Async-signal-safe. */
    void touch(std::size_t offset) noexcept
    {
        percid_region_touch(region_.get(), offset);
    }

    void *start() const noexcept
    {
        return percid_region_start(region_.get());
    }

    std::size_t bytes() const noexcept
    {
        return percid_region_bytes(region_.get());
    }

    numa::access access() const noexcept
    {
        return static_cast<numa::access>(percid_region_access(region_.get()));
    }

private:
    friend class exclusion;

    detail::owner<percid_region> region_;
};

/* A part of a trapped region stays accessible for as long as this object lives, for system calls.
 * It may outlive the region. */
class exclusion {
public:
    /* Throws if the part is not in the region. */
    exclusion(region &of, std::size_t offset, std::size_t bytes)
        : region_(of.region_.get()), offset_(offset), bytes_(bytes)
    {
        detail::check(percid_region_exclude_begin(region_, offset, bytes), "percid::numa::exclusion");
    }

    exclusion(const exclusion &) = delete;
    exclusion &operator=(const exclusion &) = delete;

    ~exclusion()
    {
        percid_region_exclude_end(region_, offset_, bytes_);
    }

private:
    percid_region *region_;
    std::size_t offset_;
    std::size_t bytes_;
};

} // namespace numa

} // namespace percid

#endif
