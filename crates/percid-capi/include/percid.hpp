/*
 * percid.hpp: per-CPU data for user space, for C++17 and later. Header-only, over percid.h.
 *
 *     static percid::static_counter requests;
 *     static percid::static_local<std::unordered_map<std::string, int>> hits;
 *
 *     requests.add();                                    // on any thread, in any signal handler
 *     hits.with([](auto &mine) { mine["/index"]++; });   // exclusive, without waiting
 *     std::cout << requests.sum() << '\n';
 *
 *     percid::registry metrics;                          // what Prometheus reads
 *     percid::family<percid::counter> answers(metrics, {"answers", "Answers.", nullptr, {"status"}});
 *     answers.with({"200"}).add();
 *     std::cout << metrics.render();
 *
 *     c++ -std=c++17 program.cpp $(pkg-config --cflags --libs percid)
 *
 * Lifetime    A static_ object (static_counter, static_stack ...) is for static storage: it is
 *             constant-initialised, so `constinit` accepts it and the initialisers of other objects
 *             may use it, and it is never destroyed, so threads that still run when the process
 *             ends may use it to their last instruction. The others give their memory back when
 *             they are destroyed, and can be moved but not copied; no other thread may use an
 *             object while it is moved or destroyed. One that was moved from has nothing and takes
 *             nothing.
 * Threads     Everything else may be called by any number of threads at once. What percid.h says
 *             about signals, fork and costs holds here too.
 * Errors      What can fail throws std::system_error, with an errno value. All of that has a form
 *             that takes a std::error_code & last, sets it and throws nothing; in a program
 *             without exceptions (-fno-exceptions) only these are there. Nothing else throws unless
 *             it says so.
 * Callables   are called on the calling thread before the function returns, and may throw: that comes
 *             out of the function, and nothing is lost by it. What they have not been given yet
 *             stays where it was.
 *             An rcu_domain keeps its own until the readers have left, and calls them on any
 *             thread: they must not throw.
 * Linking     No function of percid is shown by the program or library that was compiled with this
 *             header, whatever it is compiled with, so that libraries with copies of percid of
 *             their own do not call each other's. What they make of it is theirs: a
 *             std::vector<percid::counter>, or a class of their own that contains a
 *             percid::counter, is hidden by -fvisibility=hidden.
 */
#ifndef PERCID_HPP
#define PERCID_HPP

#if __cplusplus < 201703L
#error "percid.hpp needs C++17 or later (-std=c++17); percid.h is for all of C and C++"
#endif

/* Whatever is the default where this file is included; undone at its end. */
#pragma GCC visibility push(default)

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <version>
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif
#if defined(__cpp_lib_concepts)
#include <concepts>
#endif

#include "percid.h" /* IWYU pragma: export */

/* For every function, those that the compiler makes too. Classes are not hidden: compilers would
 * warn of every class that has one of them as a member. */
#define PERCID_HIDDEN [[gnu::visibility("hidden")]]
/* The same for what is inline whatever the compiler thinks: what is called most, and member templates,
 * of which clang forgets that they are hidden. */
#define PERCID_HIDDEN_INLINE [[gnu::visibility("hidden"), gnu::always_inline]]

#if defined(__cpp_exceptions)
#define PERCID_EXCEPTIONS 1
#else
#define PERCID_EXCEPTIONS 0
#endif

#if defined(__cpp_lib_concepts)
#define PERCID_REQUIRES(...) requires(__VA_ARGS__)
#else
#define PERCID_REQUIRES(...)
#endif

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
PERCID_HIDDEN inline const char *name(source which) noexcept
{
    return percid_source_name(static_cast<int>(which));
}

/* The version of the library that the program runs with, such as "0.1.0". */
PERCID_HIDDEN inline const char *version() noexcept
{
    return percid_version();
}

/* Chooses the source for this process at the first call. Not needed, but cheap early in main(). */
PERCID_HIDDEN inline source init() noexcept
{
    return static_cast<source>(percid_init());
}

/* One line for people: why the process uses that source. May throw std::bad_alloc. */
PERCID_HIDDEN inline std::string reason()
{
    std::string line(percid_reason(nullptr, 0), '\0');
    percid_reason(line.data(), line.size() + 1);
    return line;
}

/* The ID of the calling thread, a hint: the thread may be moved before the caller looks at it. */
[[nodiscard]] PERCID_HIDDEN inline std::optional<std::uint32_t> current_id() noexcept
{
    const int id = percid_current_id();
    return id < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(id));
}

/* The numbers of a thread as the kernel keeps them: hints. */
using kernel_numbers = percid_kernel_numbers;

/* Nothing if the thread has no rseq area. */
[[nodiscard]] PERCID_HIDDEN inline std::optional<kernel_numbers> read_kernel_numbers() noexcept
{
    kernel_numbers now{};
    return percid_kernel_numbers_read(&now, sizeof now) == 0 ? std::optional<kernel_numbers>(now) : std::nullopt;
}

/* Makes the process's IDs dense again; returns how many were taken back. */
PERCID_HIDDEN inline std::uint32_t compact_ids() noexcept
{
    return percid_compact_ids();
}

/* Limits the IDs that there may be while threads wander; 0: never more than min(allowed CPUs,
 * threads). */
PERCID_HIDDEN inline void set_id_limit(std::uint32_t most) noexcept
{
    percid_set_id_limit(most);
}

/* Why a source cannot be used: see enum percid_source_error. */
enum class source_error : int {
    none = PERCID_SOURCE_ERROR_NONE,
    no_rseq = PERCID_SOURCE_ERROR_NO_RSEQ,
    no_kernel_ids = PERCID_SOURCE_ERROR_NO_KERNEL_IDS,
    shared_area = PERCID_SOURCE_ERROR_SHARED_AREA,
    no_membarrier = PERCID_SOURCE_ERROR_NO_MEMBARRIER,
    membarrier_refused = PERCID_SOURCE_ERROR_MEMBARRIER_REFUSED,
    sections_not_aborted = PERCID_SOURCE_ERROR_SECTIONS_NOT_ABORTED,
    sections_not_probed = PERCID_SOURCE_ERROR_SECTIONS_NOT_PROBED,
    probe_refused = PERCID_SOURCE_ERROR_PROBE_REFUSED,
    no_memory = PERCID_SOURCE_ERROR_NO_MEMORY,
    other = PERCID_SOURCE_ERROR_OTHER,
};

/* Why the process uses the source that init() returns: see enum percid_selection_reason. */
enum class selection_reason : int {
    requested = PERCID_SELECTION_REASON_REQUESTED,
    table_available = PERCID_SELECTION_REASON_TABLE_AVAILABLE,
    table_unavailable = PERCID_SELECTION_REASON_TABLE_UNAVAILABLE,
    selecting = PERCID_SELECTION_REASON_SELECTING,
    probe_inconclusive = PERCID_SELECTION_REASON_PROBE_INCONCLUSIVE,
    other = PERCID_SELECTION_REASON_OTHER,
};

[[nodiscard]] PERCID_HIDDEN inline selection_reason read_selection_reason() noexcept
{
    return static_cast<selection_reason>(percid_selection_reason_read());
}

/* The source of a name; nothing if there is none of that name. */
[[nodiscard]] PERCID_HIDDEN inline std::optional<source> source_by_name(const char *text) noexcept
{
    const int found = percid_source_by_name(text);
    return found < 0 ? std::nullopt : std::optional<source>(static_cast<source>(found));
}

/* Prepares the process to use a source: none if it can. */
PERCID_HIDDEN inline source_error prepare(source which) noexcept
{
    return static_cast<source_error>(percid_source_unavailable(static_cast<int>(which)));
}

/* One line for people: why a source cannot be used; empty if it can. May throw std::bad_alloc. */
[[nodiscard]] PERCID_HIDDEN inline std::string reason(source which)
{
    std::string line(percid_source_reason(static_cast<int>(which), nullptr, 0), '\0');
    percid_source_reason(static_cast<int>(which), line.data(), line.size() + 1);
    return line;
}

/* The ID that a source gives to the calling thread now, whatever the process has chosen: a hint. */
[[nodiscard]] PERCID_HIDDEN inline std::optional<std::uint32_t> current_id(source which) noexcept
{
    const int id = percid_source_current_id(static_cast<int>(which));
    return id < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(id));
}

/* How many IDs of a source the process has used: all that ever existed are below. */
[[nodiscard]] PERCID_HIDDEN inline std::uint32_t id_count(source which) noexcept
{
    return percid_source_id_count(static_cast<int>(which));
}

/* What percid's table has had to do so far. */
using table_stats = percid_table_stats;

/* Nothing if the table was not used, or another thread is busy with it at this moment. */
[[nodiscard]] PERCID_HIDDEN inline std::optional<table_stats> read_table_stats() noexcept
{
    table_stats now{};
    return percid_table_stats_read(&now, sizeof now) == 0 ? std::optional<table_stats>(now) : std::nullopt;
}

/* Addresses: start and bytes. */
using range = percid_range;

/* The memory that holds an ID's copies of all structures. May throw std::bad_alloc. */
[[nodiscard]] PERCID_HIDDEN inline std::vector<range> memory_of(std::uint32_t id)
{
    std::vector<range> ranges(percid_id_memory(id, nullptr, 0));
    /* There may be more by now. */
    percid_id_memory(id, ranges.data(), ranges.size());
    return ranges;
}

/* What the machine and the kernel offer; see percid_machine. */
using machine = percid_machine;

[[nodiscard]] PERCID_HIDDEN inline machine read_machine() noexcept
{
    machine now{};
    percid_machine_read(&now, sizeof now);
    return now;
}

/* A CPU and whom it shares with. */
using cpu = percid_cpu;

/* The CPUs that may ever exist, ascending. May throw std::bad_alloc. */
[[nodiscard]] PERCID_HIDDEN inline std::vector<cpu> read_cpus()
{
    std::vector<cpu> found(percid_machine_cpus(nullptr, sizeof(cpu), 0));
    percid_machine_cpus(found.data(), sizeof(cpu), found.size());
    return found;
}

/* What a probe of the kernel saw: see percid_probe_report. */
using kernel_probe = percid_probe_report;

/* Tries for so long whether the kernel aborts critical sections; nothing if it cannot be tried. */
[[nodiscard]] PERCID_HIDDEN inline std::optional<kernel_probe> probe_machine(std::chrono::milliseconds limit) noexcept
{
    kernel_probe seen{};
    const auto most = static_cast<std::uint32_t>(limit.count());
    return percid_machine_probe(most, &seen, sizeof seen) == 0 ? std::optional<kernel_probe>(seen) : std::nullopt;
}

namespace detail {

/* A result of percid.h: a negative errno, or success. */
[[nodiscard]] PERCID_HIDDEN inline std::error_code error_of(std::int64_t result) noexcept
{
    return result < 0 ? std::error_code(static_cast<int>(-result), std::generic_category()) : std::error_code();
}

/* What was counted, unless that is an error. */
[[nodiscard]] PERCID_HIDDEN inline std::size_t count_of(std::int64_t result) noexcept
{
    return result < 0 ? 0 : static_cast<std::size_t>(result);
}

#if PERCID_EXCEPTIONS
/* Throws for a negative errno. */
PERCID_HIDDEN inline void check(std::int64_t result, const char *what)
{
    if (result < 0) {
        throw std::system_error(error_of(result), what);
    }
}
PERCID_HIDDEN inline void check(const std::error_code &error, const char *what)
{
    if (error) {
        throw std::system_error(error, what);
    }
}
#endif

PERCID_HIDDEN inline void destroy(percid_stack *stack) noexcept
{
    percid_stack_destroy(stack, nullptr, nullptr);
}
PERCID_HIDDEN inline void destroy(percid_pool *pool) noexcept
{
    percid_pool_destroy(pool);
}
PERCID_HIDDEN inline void destroy(percid_local *local) noexcept
{
    percid_local_destroy(local);
}
PERCID_HIDDEN inline void destroy(percid_ring *ring) noexcept
{
    percid_ring_destroy(ring);
}
PERCID_HIDDEN inline void destroy(percid_consumer *consumer) noexcept
{
    percid_consumer_close(consumer);
}
PERCID_HIDDEN inline void destroy(percid_mask *mask) noexcept
{
    percid_mask_destroy(mask);
}
PERCID_HIDDEN inline void destroy(percid_rwlock *lock) noexcept
{
    percid_rwlock_destroy(lock);
}
PERCID_HIDDEN inline void destroy(percid_domain *domain) noexcept
{
    percid_domain_destroy(domain);
}
PERCID_HIDDEN inline void destroy(percid_budget *budget) noexcept
{
    percid_budget_destroy(budget);
}
PERCID_HIDDEN inline void destroy(percid_snapshot *snapshot) noexcept
{
    percid_snapshot_free(snapshot);
}
PERCID_HIDDEN inline void destroy(percid_balancer *balancer) noexcept
{
    percid_balancer_destroy(balancer);
}
PERCID_HIDDEN inline void destroy(percid_region *region) noexcept
{
    percid_region_unregister(region);
}
PERCID_HIDDEN inline void destroy(percid_id_regions *regions) noexcept
{
    percid_id_regions_unregister(regions);
}
PERCID_HIDDEN inline void destroy(percid_pool_regions *regions) noexcept
{
    percid_pool_regions_unregister(regions);
}
PERCID_HIDDEN inline void destroy(percid_report *report) noexcept
{
    percid_report_free(report);
}
PERCID_HIDDEN inline void destroy(percid_registry *registry) noexcept
{
    percid_registry_destroy(registry);
}

/* Where an object is: behind a handle of percid.h, which one object owns. */
template <class C, void (*End)(C *) noexcept = destroy>
class owned {
public:
    PERCID_HIDDEN constexpr owned() noexcept = default;

    PERCID_HIDDEN owned(owned &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

    PERCID_HIDDEN owned &operator=(owned &&other) noexcept
    {
        owned taken(std::move(other));
        swap(taken);
        return *this;
    }

    PERCID_HIDDEN void swap(owned &other) noexcept
    {
        std::swap(handle_, other.handle_);
    }

    PERCID_HIDDEN ~owned()
    {
        if (handle_ != nullptr) {
            End(handle_);
        }
    }

    PERCID_HIDDEN C *get() const noexcept
    {
        return handle_;
    }

    /* Where a function of percid.h stores a new handle. */
    PERCID_HIDDEN C **place() noexcept
    {
        return &handle_;
    }

private:
    C *handle_ = nullptr;
};

/* Where an object is: here, for good. */
template <class C>
class placed {
public:
    PERCID_HIDDEN constexpr explicit placed(const C &initial) noexcept : object_(initial) {}
    placed(const placed &) = delete;
    placed &operator=(const placed &) = delete;

    PERCID_HIDDEN C *get() const noexcept
    {
        return &object_;
    }

private:
    mutable C object_;
};

/* The most items of an ID's part of a stack. */
PERCID_HIDDEN inline constexpr std::uint32_t max_capacity = 2097151;

} // namespace detail

/* The cheap half of a fence: if one thread does A; light_fence(); B and another C; fence_all(), which
 * succeeds; D, then B sees C, or D sees A, or both. No barrier if fence_is_asymmetric(). */
PERCID_HIDDEN inline void light_fence() noexcept
{
    percid_fence_light();
}

[[nodiscard]] PERCID_HIDDEN inline bool fence_is_asymmetric() noexcept
{
    return percid_fence_is_asymmetric() != 0;
}

/* The costly half, about 10 us. If it is asymmetric, critical sections that were running are over. */
[[nodiscard]] PERCID_HIDDEN inline std::error_code fence_all() noexcept
{
    return detail::error_of(percid_fence_all());
}

/* The same for the threads that ran on one CPU. */
[[nodiscard]] PERCID_HIDDEN inline std::error_code fence_cpu(std::uint32_t number) noexcept
{
    return detail::error_of(percid_fence_cpu(number));
}


/*
 * A signed 64-bit counter that every CPU updates in memory of its own, for static storage.
 */
class static_counter {
public:
    PERCID_HIDDEN constexpr static_counter() noexcept = default;
    static_counter(const static_counter &) = delete;
    static_counter &operator=(const static_counter &) = delete;

    /* Adds n, which may be negative. Inline: no call, no locked instruction. Async-signal-safe. */
    PERCID_HIDDEN_INLINE void add(std::int64_t n = 1) noexcept
    {
        percid_counter_add(&counter_, n);
    }

    /* The sum over all IDs: exact for what happened before. Async-signal-safe. */
    [[nodiscard]] PERCID_HIDDEN std::int64_t sum() const noexcept
    {
        return percid_counter_sum(&counter_);
    }

    /* The sum, which it resets to zero: an increment is in this result or in a later one.
     * Async-signal-safe. */
    PERCID_HIDDEN std::int64_t take() noexcept
    {
        return percid_counter_take(&counter_);
    }

    /* What each ID has added, by ID. The rest of the sum is shared(). May throw std::bad_alloc. */
    [[nodiscard]] PERCID_HIDDEN std::vector<std::int64_t> per_id() const
    {
        std::vector<std::int64_t> values(percid_counter_per_id(&counter_, nullptr, 0));
        /* There may be more by now. */
        percid_counter_per_id(&counter_, values.data(), values.size());
        return values;
    }

    /* What was added without an ID, less what take() has taken. */
    [[nodiscard]] PERCID_HIDDEN std::int64_t shared() const noexcept
    {
        return percid_counter_shared(&counter_);
    }

    /* For the functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_counter *c_counter() noexcept
    {
        return &counter_;
    }

protected:
    percid_counter counter_ = PERCID_COUNTER_INIT;
};

/* A static_counter that gives its memory back when it is destroyed, and can be moved. */
class counter : public static_counter {
public:
    PERCID_HIDDEN constexpr counter() noexcept = default;

    /* One that uses this source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit counter(source which)
    {
        detail::check(percid_counter_with_source(&counter_, static_cast<int>(which)), "percid::counter");
    }
#endif
    PERCID_HIDDEN counter(source which, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_counter_with_source(&counter_, static_cast<int>(which)));
    }

    PERCID_HIDDEN counter(counter &&other) noexcept
    {
        std::swap(counter_, other.counter_);
    }

    PERCID_HIDDEN counter &operator=(counter &&other) noexcept
    {
        counter taken(std::move(other));
        std::swap(counter_, taken.counter_);
        return *this;
    }

    PERCID_HIDDEN ~counter()
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
    /* One without values, to merge others into. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN snapshot()
    {
        detail::check(percid_snapshot_create(counts_.place()), "percid::snapshot");
    }
#endif
    PERCID_HIDDEN explicit snapshot(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_snapshot_create(counts_.place()));
    }

    PERCID_HIDDEN snapshot(snapshot &&) noexcept = default;
    PERCID_HIDDEN snapshot &operator=(snapshot &&) noexcept = default;
    PERCID_HIDDEN ~snapshot() = default;

    [[nodiscard]] PERCID_HIDDEN std::uint64_t count() const noexcept
    {
        return percid_snapshot_count(counts_.get());
    }

    /* What a share q of the values does not exceed, up to 1/128; nothing if there are no values. */
    [[nodiscard]] PERCID_HIDDEN std::optional<std::uint64_t> quantile(double q) const noexcept
    {
        std::uint64_t value = 0;
        return given(percid_snapshot_quantile(counts_.get(), q, &value), value);
    }

    [[nodiscard]] PERCID_HIDDEN std::optional<std::uint64_t> min() const noexcept
    {
        std::uint64_t value = 0;
        return given(percid_snapshot_min(counts_.get(), &value), value);
    }

    [[nodiscard]] PERCID_HIDDEN std::optional<std::uint64_t> max() const noexcept
    {
        std::uint64_t value = 0;
        return given(percid_snapshot_max(counts_.get(), &value), value);
    }

    [[nodiscard]] PERCID_HIDDEN std::optional<double> mean() const noexcept
    {
        double value = 0;
        return given(percid_snapshot_mean(counts_.get(), &value), value);
    }

    /* Adds the values of another snapshot. */
    PERCID_HIDDEN void merge(const snapshot &other) noexcept
    {
        percid_snapshot_merge(counts_.get(), other.counts_.get());
    }

    /* The buckets that have values, from the smallest. May throw std::bad_alloc. */
    [[nodiscard]] PERCID_HIDDEN std::vector<bucket> buckets() const
    {
        std::vector<bucket> found(percid_snapshot_buckets(counts_.get(), nullptr, 0));
        percid_snapshot_buckets(counts_.get(), found.data(), found.size());
        return found;
    }

private:
    friend class static_histogram;

    PERCID_HIDDEN explicit snapshot(std::nullptr_t) noexcept {}

    /* By reference: arguments are evaluated in any order, and the first one stores the value. */
    template <class V>
    PERCID_HIDDEN_INLINE static std::optional<V> given(int result, const V &value) noexcept
    {
        return result == 0 ? std::optional<V>(value) : std::nullopt;
    }

    detail::owned<percid_snapshot> counts_;
};

/* A histogram of unsigned 64-bit values, for static storage. */
class static_histogram {
public:
    /* How far a reported value can be from the recorded one, as a share of it. */
    PERCID_HIDDEN static constexpr double relative_error = 1.0 / 128;

    PERCID_HIDDEN constexpr static_histogram() noexcept = default;
    static_histogram(const static_histogram &) = delete;
    static_histogram &operator=(const static_histogram &) = delete;

    /* Counts a value `times` times. Inline. Async-signal-safe. */
    PERCID_HIDDEN_INLINE void record(std::uint64_t value, std::uint64_t times = 1) noexcept
    {
        percid_histogram_record_many(&histogram_, value, times);
    }

    /* What has been recorded so far. Fails if there is no memory; the snapshot is empty then. */
#if PERCID_EXCEPTIONS
    [[nodiscard]] PERCID_HIDDEN percid::snapshot snapshot() const
    {
        percid::snapshot taken(nullptr);
        detail::check(percid_histogram_snapshot(&histogram_, taken.counts_.place()), "percid::histogram");
        return taken;
    }
#endif
    [[nodiscard]] PERCID_HIDDEN percid::snapshot snapshot(std::error_code &error) const noexcept
    {
        percid::snapshot taken(nullptr);
        error = detail::error_of(percid_histogram_snapshot(&histogram_, taken.counts_.place()));
        return taken;
    }

    /* The same, and removes it: every record is in exactly one of the snapshots taken. */
#if PERCID_EXCEPTIONS
    [[nodiscard]] PERCID_HIDDEN percid::snapshot take()
    {
        percid::snapshot taken(nullptr);
        detail::check(percid_histogram_take(&histogram_, taken.counts_.place()), "percid::histogram");
        return taken;
    }
#endif
    [[nodiscard]] PERCID_HIDDEN percid::snapshot take(std::error_code &error) noexcept
    {
        percid::snapshot taken(nullptr);
        error = detail::error_of(percid_histogram_take(&histogram_, taken.counts_.place()));
        return taken;
    }

    /* How many values could not be recorded because the first use found no memory. */
    [[nodiscard]] PERCID_HIDDEN std::uint64_t unrecorded() const noexcept
    {
        return percid_histogram_unrecorded(&histogram_);
    }

    /* For the functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_histogram *c_histogram() noexcept
    {
        return &histogram_;
    }

protected:
    percid_histogram histogram_ = PERCID_HISTOGRAM_INIT;
};

/* A static_histogram that gives its memory back when it is destroyed, and can be moved. */
class histogram : public static_histogram {
public:
    PERCID_HIDDEN constexpr histogram() noexcept = default;

    /* One that uses this source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit histogram(source which)
    {
        detail::check(percid_histogram_with_source(&histogram_, static_cast<int>(which)), "percid::histogram");
    }
#endif
    PERCID_HIDDEN histogram(source which, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_histogram_with_source(&histogram_, static_cast<int>(which)));
    }

    PERCID_HIDDEN histogram(histogram &&other) noexcept
    {
        std::swap(histogram_, other.histogram_);
    }

    PERCID_HIDDEN histogram &operator=(histogram &&other) noexcept
    {
        histogram taken(std::move(other));
        std::swap(histogram_, taken.histogram_);
        return *this;
    }

    PERCID_HIDDEN ~histogram()
    {
        percid_histogram_destroy(&histogram_);
    }
};

namespace detail {

/* A callable of the caller's as a callback of percid.h, which gets an A. What it throws passes
 * through the library, as the end of the thread does. */
template <class A, class F>
PERCID_HIDDEN void call(A given, void *callable)
{
    (*static_cast<F *>(callable))(given);
}

/* How an item of a stack travels through C. */
template <class P>
struct item {
    static_assert(std::is_pointer<P>::value, "a stack holds pointers, or std::unique_ptr");

    using argument = P;
    static constexpr bool is_owner = false;

    PERCID_HIDDEN static void *get(P pushed) noexcept
    {
        return const_cast<void *>(static_cast<const volatile void *>(pushed));
    }
    PERCID_HIDDEN static void pushed(P) noexcept {}
    PERCID_HIDDEN static P adopt(void *popped) noexcept
    {
        return static_cast<P>(popped);
    }
};

template <class T, class D>
struct item<std::unique_ptr<T, D>> {
    using pointer = std::unique_ptr<T, D>;
    static_assert(std::is_empty<D>::value && std::is_default_constructible<D>::value && std::is_pointer<typename pointer::pointer>::value,
                  "a stack keeps the pointer alone, not its deleter");

    using argument = pointer &&;
    static constexpr bool is_owner = true;

    PERCID_HIDDEN static void *get(const pointer &pushed) noexcept
    {
        return item<typename pointer::pointer>::get(pushed.get());
    }
    PERCID_HIDDEN static void pushed(pointer &&pushed) noexcept
    {
        (void)pushed.release();
    }
    PERCID_HIDDEN static pointer adopt(void *popped) noexcept
    {
        return pointer(item<typename pointer::pointer>::adopt(popped));
    }
};

} // namespace detail

/* Room for any number of items. */
PERCID_HIDDEN inline constexpr std::size_t unbounded = PERCID_UNBOUNDED;

/* A stack of items, wherever the object is. */
template <class P, class Place>
class basic_stack {
public:
    basic_stack(const basic_stack &) = delete;
    basic_stack &operator=(const basic_stack &) = delete;

    /* How many items every ID keeps at most. */
    [[nodiscard]] PERCID_HIDDEN std::uint32_t capacity() const noexcept
    {
        return percid_stack_capacity(stack_.get());
    }

    /* Pushes an item that is not null. False if there is no room for it; a std::unique_ptr then
     * keeps it. Async-signal-safe. */
    [[nodiscard]] PERCID_HIDDEN_INLINE bool push(typename detail::item<P>::argument item) noexcept
    {
        if (percid_stack_push(stack_.get(), detail::item<P>::get(item)) != 0) {
            return false;
        }
        detail::item<P>::pushed(std::move(item));
        return true;
    }

    /* Pops the item that this CPU pushed last, or one of the shared list; null if there is none.
     * Async-signal-safe. */
    [[nodiscard]] PERCID_HIDDEN_INLINE P pop() noexcept
    {
        return detail::item<P>::adopt(percid_stack_pop(stack_.get()));
    }

    /* Hands all items to visit(P) and returns how many. If it throws, the items that it has not
     * been given stay. */
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, P>)
    PERCID_HIDDEN_INLINE std::size_t drain(F &&visit)
    {
        auto adopt = [&visit](void *item) { visit(detail::item<P>::adopt(item)); };
        return detail::count_of(percid_stack_drain(stack_.get(), detail::call<void *, decltype(adopt)>, &adopt));
    }

protected:
    PERCID_HIDDEN constexpr basic_stack() noexcept = default;
    PERCID_HIDDEN constexpr explicit basic_stack(const percid_stack &initial) noexcept : stack_(initial) {}
    PERCID_HIDDEN basic_stack(basic_stack &&) noexcept = default;
    PERCID_HIDDEN basic_stack &operator=(basic_stack &&) noexcept = default;
    PERCID_HIDDEN ~basic_stack() = default;

    Place stack_;
};

/*
 * A list of pointers, last in, first out, of which every CPU has a part of its own. A stack<node *>
 * does not own what they point to: drain it before it is destroyed. A stack<std::unique_ptr<node>>
 * does, and destroys what is left.
 */
template <class P>
class stack : public basic_stack<P, detail::owned<percid_stack>> {
public:
    /* Keeps up to capacity items for every ID, and about as many as shared in the list that IDs
     * share. Fails for a capacity of 0 or above 2 097 151, or without memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit stack(std::uint32_t capacity, std::size_t shared = unbounded)
    {
        detail::check(percid_stack_create(this->stack_.place(), capacity, shared), "percid::stack");
    }
#endif
    PERCID_HIDDEN stack(std::uint32_t capacity, std::size_t shared, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_stack_create(this->stack_.place(), capacity, shared));
    }
    PERCID_HIDDEN stack(std::uint32_t capacity, std::error_code &error) noexcept : stack(capacity, unbounded, error) {}

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN stack(source which, std::uint32_t capacity)
    {
        detail::check(percid_stack_create_with_source(this->stack_.place(), static_cast<int>(which), capacity),
                      "percid::stack");
    }
#endif
    PERCID_HIDDEN stack(source which, std::uint32_t capacity, std::error_code &error) noexcept
    {
        error = detail::error_of(
            percid_stack_create_with_source(this->stack_.place(), static_cast<int>(which), capacity));
    }

    PERCID_HIDDEN stack(stack &&) noexcept = default;

    PERCID_HIDDEN stack &operator=(stack &&other) noexcept
    {
        stack taken(std::move(other));
        this->stack_.swap(taken.stack_);
        return *this;
    }

    PERCID_HIDDEN ~stack()
    {
        if constexpr (detail::item<P>::is_owner) {
            this->drain([](P) noexcept {});
        }
    }
};

/* A stack for static storage. Whatever it holds when the process ends stays. */
template <class P, std::uint32_t Capacity, std::size_t Shared = unbounded>
class static_stack : public basic_stack<P, detail::placed<percid_stack>> {
    static_assert(Capacity >= 1 && Capacity <= detail::max_capacity, "a stack keeps 1 to 2 097 151 items for every ID");

public:
    PERCID_HIDDEN constexpr static_stack() noexcept
        : basic_stack<P, detail::placed<percid_stack>>(percid_stack PERCID_STACK_INIT_BOUNDED(Capacity, Shared))
    {
    }
    static_stack(const static_stack &) = delete;
    static_stack &operator=(const static_stack &) = delete;
};

/*
 * An object of a pool, which is destroyed and put back with its owner. It must not outlive the
 * pool; the pool may be moved.
 */
template <class T>
class pooled {
public:
    using element_type = T;

    PERCID_HIDDEN constexpr pooled() noexcept = default;
    PERCID_HIDDEN constexpr pooled(std::nullptr_t) noexcept {}

    PERCID_HIDDEN pooled(pooled &&other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), object_(std::exchange(other.object_, nullptr))
    {
    }

    PERCID_HIDDEN pooled &operator=(pooled &&other) noexcept
    {
        pooled taken(std::move(other));
        std::swap(pool_, taken.pool_);
        std::swap(object_, taken.object_);
        return *this;
    }

    PERCID_HIDDEN_INLINE ~pooled()
    {
        reset();
    }

    /* Destroys the object now, and puts it back. */
    PERCID_HIDDEN_INLINE void reset() noexcept
    {
        if (T *const object = std::exchange(object_, nullptr)) {
            object->~T();
            percid_pool_put(pool_, object);
        }
    }

    /* Gives up the object, for C or a container of pointers: it stays where it is, constructed, until
     * adopt() of its pool takes it again. Null if there is none. Costs no call; for signal handlers too. */
    [[nodiscard]] PERCID_HIDDEN T *release() noexcept
    {
        return std::exchange(object_, nullptr);
    }

    [[nodiscard]] PERCID_HIDDEN T *get() const noexcept
    {
        return object_;
    }
    [[nodiscard]] PERCID_HIDDEN T &operator*() const noexcept
    {
        return *object_;
    }
    [[nodiscard]] PERCID_HIDDEN T *operator->() const noexcept
    {
        return object_;
    }
    /* Whether there is an object. */
    PERCID_HIDDEN explicit operator bool() const noexcept
    {
        return object_ != nullptr;
    }

private:
    template <class, class>
    friend class basic_pool;

    PERCID_HIDDEN pooled(percid_pool *pool, T *object) noexcept : pool_(pool), object_(object) {}

    percid_pool *pool_ = nullptr;
    T *object_ = nullptr;
};

namespace numa {
class pool_regions;
} // namespace numa

/* A pool, wherever the object is. */
template <class T, class Place>
class basic_pool {
    static_assert(std::is_same<T, std::remove_cv_t<T>>::value, "objects are neither const nor volatile");
    static_assert(alignof(T) <= 4096, "objects are aligned to a page at most");

    friend class numa::pool_regions;

public:
    basic_pool(const basic_pool &) = delete;
    basic_pool &operator=(const basic_pool &) = delete;

    /* Constructs an object. Throws std::bad_alloc, and what its constructor throws. */
#if PERCID_EXCEPTIONS
    template <class... A>
    PERCID_REQUIRES(std::constructible_from<T, A...>)
    [[nodiscard]] PERCID_HIDDEN_INLINE pooled<T> make(A &&...arguments)
    {
        pooled<T> made = try_make(std::forward<A>(arguments)...);
        if (!made) {
            throw std::bad_alloc();
        }
        return made;
    }
#endif

    /* The same, but holds no object if there is no memory for it. Throws what the constructor
     * throws. */
    template <class... A>
    PERCID_REQUIRES(std::constructible_from<T, A...>)
    [[nodiscard]] PERCID_HIDDEN_INLINE pooled<T> try_make(A &&...arguments) noexcept(std::is_nothrow_constructible<T, A...>::value)
    {
        loan memory{pool_.get(), percid_pool_get(pool_.get())};
        if (memory.object == nullptr) {
            return nullptr;
        }
        T *const object = ::new (memory.object) T(std::forward<A>(arguments)...);
        memory.object = nullptr;
        return pooled<T>(memory.pool, object);
    }

    /* Takes an object again that pooled::release() has given up, once; on any thread. It must be one of
     * this pool: another pool's is destroyed with its owner, but its memory is not put back. Null is
     * allowed. Costs no call; for signal handlers too. */
    [[nodiscard]] PERCID_HIDDEN pooled<T> adopt(T *object) noexcept
    {
        return pooled<T>(pool_.get(), object);
    }

    /* The addresses of the pool's memory, in no order. May throw std::bad_alloc. */
    [[nodiscard]] PERCID_HIDDEN std::vector<range> slabs() const
    {
        std::vector<range> found(percid_pool_slabs(pool_.get(), nullptr, 0));
        /* There may be more by now. */
        percid_pool_slabs(pool_.get(), found.data(), found.size());
        return found;
    }

    /* Gives memory without objects back to the kernel; returns how many would have fitted. */
    PERCID_HIDDEN std::size_t drain() noexcept
    {
        return detail::count_of(percid_pool_drain(pool_.get()));
    }

protected:
    PERCID_HIDDEN constexpr basic_pool() noexcept = default;
    PERCID_HIDDEN constexpr explicit basic_pool(const percid_pool &initial) noexcept : pool_(initial) {}
    PERCID_HIDDEN basic_pool(basic_pool &&) noexcept = default;
    PERCID_HIDDEN basic_pool &operator=(basic_pool &&) noexcept = default;
    PERCID_HIDDEN ~basic_pool() = default;

    Place pool_;

private:
    /* Memory that goes back if a constructor throws. */
    struct loan {
        percid_pool *pool;
        void *object;

        PERCID_HIDDEN ~loan()
        {
            if (object != nullptr) {
                percid_pool_put(pool, object);
            }
        }
    };
};

/*
 * Memory for objects of type T, of which every CPU keeps some of its own: make() constructs an
 * object there, and the pooled<T> that it returns destroys it and puts the memory back.
 */
template <class T>
class pool : public basic_pool<T, detail::owned<percid_pool>> {
public:
    /* Keeps memory for up to capacity idle objects for every ID, and about as many as shared that
     * IDs share: what is beyond it goes back to the kernel. Fails for a capacity of 0 or above
     * 2 097 151, or without memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit pool(std::uint32_t capacity, std::size_t shared = unbounded)
    {
        detail::check(create(capacity, shared), "percid::pool");
    }
#endif
    PERCID_HIDDEN pool(std::uint32_t capacity, std::error_code &error) noexcept : pool(capacity, unbounded, error) {}
    PERCID_HIDDEN pool(std::uint32_t capacity, std::size_t shared, std::error_code &error) noexcept
    {
        error = detail::error_of(create(capacity, shared));
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN pool(source which, std::uint32_t capacity)
    {
        detail::check(create(which, capacity), "percid::pool");
    }
#endif
    PERCID_HIDDEN pool(source which, std::uint32_t capacity, std::error_code &error) noexcept
    {
        error = detail::error_of(create(which, capacity));
    }

    PERCID_HIDDEN pool(pool &&) noexcept = default;
    PERCID_HIDDEN pool &operator=(pool &&) noexcept = default;
    PERCID_HIDDEN ~pool() = default;

private:
    PERCID_HIDDEN int create(std::uint32_t capacity, std::size_t shared) noexcept
    {
        return percid_pool_create_bounded(this->pool_.place(), sizeof(T), alignof(T), capacity, shared);
    }

    PERCID_HIDDEN int create(source which, std::uint32_t capacity) noexcept
    {
        return percid_pool_create_with_source(this->pool_.place(), static_cast<int>(which), sizeof(T), alignof(T),
                                              capacity);
    }
};

/* A pool for static storage. */
template <class T, std::uint32_t Capacity, std::size_t Shared = unbounded>
class static_pool : public basic_pool<T, detail::placed<percid_pool>> {
    static_assert(Capacity >= 1 && Capacity <= detail::max_capacity, "a pool keeps 1 to 2 097 151 objects for every ID");

public:
    PERCID_HIDDEN constexpr static_pool() noexcept
        : basic_pool<T, detail::placed<percid_pool>>(
              percid_pool PERCID_POOL_INIT_BOUNDED(sizeof(T), alignof(T), Capacity, Shared))
    {
    }
    static_pool(const static_pool &) = delete;
    static_pool &operator=(const static_pool &) = delete;
};

/*
 * A value of a local, which is this object's alone until it is unlocked or destroyed; another thread
 * may do that. As with a std::unique_lock, whoever keeps it makes visits wait.
 */
template <class T>
class guard {
public:
    using element_type = T;

    PERCID_HIDDEN constexpr guard() noexcept = default;

    PERCID_HIDDEN guard(guard &&other) noexcept : value_(std::exchange(other.value_, nullptr)) {}

    PERCID_HIDDEN guard &operator=(guard &&other) noexcept
    {
        guard taken(std::move(other));
        std::swap(value_, taken.value_);
        return *this;
    }

    PERCID_HIDDEN_INLINE ~guard()
    {
        unlock();
    }

    /* Gives the value back now. */
    PERCID_HIDDEN_INLINE void unlock() noexcept
    {
        if (T *const value = std::exchange(value_, nullptr)) {
            percid_local_release(value);
        }
    }

    [[nodiscard]] PERCID_HIDDEN T *get() const noexcept
    {
        return value_;
    }
    [[nodiscard]] PERCID_HIDDEN T &operator*() const noexcept
    {
        return *value_;
    }
    [[nodiscard]] PERCID_HIDDEN T *operator->() const noexcept
    {
        return value_;
    }
    /* Whether there is a value. */
    PERCID_HIDDEN explicit operator bool() const noexcept
    {
        return value_ != nullptr;
    }

private:
    template <class, class>
    friend class basic_local;

    PERCID_HIDDEN explicit guard(T *value) noexcept : value_(value) {}

    T *value_ = nullptr;
};

namespace detail {

/* Values of types without a default constructor have another maker. */
template <class T>
PERCID_HIDDEN T make_default()
{
    if constexpr (std::is_default_constructible<T>::value) {
        return T();
    } else {
        std::abort();
    }
}

} // namespace detail

/* A local, wherever the object is. */
template <class T, class Place>
class basic_local {
    static_assert(std::is_same<T, std::remove_cv_t<T>>::value, "values are neither const nor volatile");
    static_assert(alignof(T) <= 4096, "values are aligned to a page at most");

public:
    basic_local(const basic_local &) = delete;
    basic_local &operator=(const basic_local &) = delete;

    /* Lends a value: `auto mine = hits.lock(); mine->total++;`. Does not wait, whoever has others.
     * Throws what the maker of values throws. Fails if another value is needed and there is no
     * memory for it; the guard is empty then. Async-signal-safe once the values have been made. */
#if PERCID_EXCEPTIONS
    [[nodiscard]] PERCID_HIDDEN_INLINE guard<T> lock()
    {
        void *value = nullptr;
        detail::check(percid_local_acquire(local_.get(), &value), "percid::local::lock");
        return guard<T>(std::launder(static_cast<T *>(value)));
    }
#endif
    [[nodiscard]] PERCID_HIDDEN_INLINE guard<T> lock(std::error_code &error)
    {
        void *value = nullptr;
        const int result = percid_local_acquire(local_.get(), &value);
        error = detail::error_of(result);
        return result < 0 ? guard<T>() : guard<T>(std::launder(static_cast<T *>(value)));
    }

    /* Lends a value to visit(T &), and returns what it returns. Throws what it throws, and what
     * lock() does. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<F, T &>)
    PERCID_HIDDEN_INLINE auto with(F &&visit) -> std::invoke_result_t<F, T &>
    {
        static_assert(!std::is_reference<std::invoke_result_t<F, T &>>::value, "the loan ends before the reference would");
        const guard<T> mine = lock();
        return std::invoke(std::forward<F>(visit), *mine);
    }
#endif
    /* With the error: a std::optional of what visit() returns, or whether it was called if it
     * returns nothing. */
    template <class F>
    PERCID_REQUIRES(std::invocable<F, T &>)
    PERCID_HIDDEN_INLINE auto with(F &&visit, std::error_code &error)
    {
        using result = std::invoke_result_t<F, T &>;
        static_assert(!std::is_reference<result>::value, "the loan ends before the reference would");
        const guard<T> mine = lock(error);
        if constexpr (std::is_void<result>::value) {
            if (mine) {
                std::invoke(std::forward<F>(visit), *mine);
            }
            return static_cast<bool>(mine);
        } else {
            return mine ? std::optional<result>(std::invoke(std::forward<F>(visit), *mine)) : std::nullopt;
        }
    }

    /* Calls visit(T &) for every value. Waits for those that use one, so it fails, with EDEADLK,
     * if the calling thread does: from the start, or when it comes to a value that visit() (or, in
     * drain(), a destructor) has locked and keeps. If visit() throws, the rest is left out. A
     * destructor that calls this or drain() must pass an error code, or it ends the program. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T &>)
    PERCID_HIDDEN_INLINE void for_each(F &&visit)
    {
        detail::check(visit_each(visit), "percid::local::for_each");
    }
#endif
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T &>)
    PERCID_HIDDEN_INLINE void for_each(F &&visit, std::error_code &error)
    {
        error = detail::error_of(visit_each(visit));
    }

    /* Takes all values out: hands each to visit(T &&) and destroys it. Returns how many. Fails as
     * for_each() does. If visit() throws, its value is destroyed, and the others stay. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T>)
    PERCID_HIDDEN_INLINE std::size_t drain(F &&visit)
    {
        const std::int64_t count = take_each(visit);
        detail::check(count, "percid::local::drain");
        return detail::count_of(count);
    }
#endif
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T>)
    PERCID_HIDDEN_INLINE std::size_t drain(F &&visit, std::error_code &error)
    {
        const std::int64_t count = take_each(visit);
        error = detail::error_of(count);
        return detail::count_of(count);
    }

protected:
    PERCID_HIDDEN constexpr basic_local() noexcept = default;
    PERCID_HIDDEN constexpr explicit basic_local(const percid_local &initial) noexcept : local_(initial) {}
    PERCID_HIDDEN basic_local(basic_local &&) noexcept = default;
    PERCID_HIDDEN basic_local &operator=(basic_local &&) noexcept = default;
    PERCID_HIDDEN ~basic_local() = default;

    PERCID_HIDDEN static void destroy(void *value, void *) noexcept
    {
        std::launder(static_cast<T *>(value))->~T();
    }

    Place local_;

private:
    template <class F>
    PERCID_HIDDEN_INLINE int visit_each(F &visit)
    {
        auto adopt = [&visit](void *value) { std::invoke(visit, *std::launder(static_cast<T *>(value))); };
        return percid_local_for_each(local_.get(), detail::call<void *, decltype(adopt)>, &adopt);
    }

    template <class F>
    PERCID_HIDDEN_INLINE std::int64_t take_each(F &visit)
    {
        auto adopt = [&visit](void *value) { std::invoke(visit, std::move(*std::launder(static_cast<T *>(value)))); };
        return percid_local_drain(local_.get(), detail::call<void *, decltype(adopt)>, &adopt);
    }
};

/*
 * A value of type T for every CPU that asks for one, to be used exclusively by any code. It is made
 * when it is first asked for, and destroyed by drain() or with this object.
 */
template <class T>
class local : public basic_local<T, detail::owned<percid_local>> {
public:
    /* What makes values; any thread may call it. */
    using maker = std::function<T()>;

    /* Values are made by make(), or by the default constructor. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit local(maker make = nullptr) : make_(kept(std::move(make)))
    {
        detail::check(create(), "percid::local");
    }
#endif
    PERCID_HIDDEN explicit local(std::error_code &error) : local(nullptr, error) {}
    PERCID_HIDDEN local(maker make, std::error_code &error) : make_(kept(std::move(make)))
    {
        error = detail::error_of(create());
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit local(source which, maker make = nullptr) : make_(kept(std::move(make)))
    {
        detail::check(create(which), "percid::local");
    }
#endif
    PERCID_HIDDEN local(source which, maker make, std::error_code &error) : make_(kept(std::move(make)))
    {
        error = detail::error_of(create(which));
    }

    PERCID_HIDDEN local(local &&) noexcept = default;
    PERCID_HIDDEN local &operator=(local &&) noexcept = default;
    PERCID_HIDDEN ~local() = default;

private:
    using base = basic_local<T, detail::owned<percid_local>>;

    PERCID_HIDDEN int create() noexcept
    {
        return percid_local_create(this->local_.place(), sizeof(T), alignof(T), make_value, base::destroy, make_.get());
    }

    PERCID_HIDDEN int create(source which) noexcept
    {
        return percid_local_create_with_source(this->local_.place(), static_cast<int>(which), sizeof(T), alignof(T),
                                               make_value, base::destroy, make_.get());
    }

    PERCID_HIDDEN static std::unique_ptr<maker> kept(maker make)
    {
        return make == nullptr ? nullptr : std::make_unique<maker>(std::move(make));
    }

    PERCID_HIDDEN static int make_value(void *memory, void *context)
    {
        ::new (memory) T(context == nullptr ? detail::make_default<T>() : (*static_cast<maker *>(context))());
        return 0;
    }

    /* Where the library finds it, wherever this object is moved. */
    std::unique_ptr<maker> make_;
};

/* A local for static storage. Values are made by Make, or by the default constructor. */
template <class T, T (*Make)() = detail::make_default<T>>
class static_local : public basic_local<T, detail::placed<percid_local>> {
    using base = basic_local<T, detail::placed<percid_local>>;

public:
    PERCID_HIDDEN constexpr static_local() noexcept
        : base(percid_local PERCID_LOCAL_INIT(sizeof(T), alignof(T), make_value, base::destroy, nullptr))
    {
    }
    static_local(const static_local &) = delete;
    static_local &operator=(const static_local &) = delete;

private:
    PERCID_HIDDEN static int make_value(void *memory, void *)
    {
        ::new (memory) T(Make());
        return 0;
    }
};

/* What happens to a record when a ring is full. */
enum class overflow : int {
    /* The new record is lost. */
    drop_newest = PERCID_OVERFLOW_DROP_NEWEST,
    /* The oldest records are lost: an eighth of the ring at a time. */
    overwrite_oldest = PERCID_OVERFLOW_OVERWRITE_OLDEST,
};

namespace detail {

/* Refers to bytes elsewhere, as std::string_view and std::span do. */
template <class T, class = void>
struct is_view : std::false_type {};
template <class T>
struct is_view<T, std::void_t<decltype(std::declval<const T &>().data()), decltype(std::declval<const T &>().size())>>
    : std::true_type {};
template <class T, std::size_t N>
struct is_view<std::array<T, N>, void> : std::false_type {};

} // namespace detail

/* Whether a record can be made of the bytes of a T. Not of a pointer, nor of what contains one and a
 * length: that would be the address. An array of characters is text. */
template <class T>
PERCID_HIDDEN inline constexpr bool is_record =
    std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value && !detail::is_view<T>::value &&
    !std::is_same<std::remove_cv_t<std::remove_extent_t<T>>, char>::value;

/* A record as the consumer gets it, while visit() runs: id (-1: appended without one), number (gaps
 * are lost records), bytes, length. */
class event : public percid_event {
public:
    PERCID_HIDDEN explicit event(const percid_event &record) noexcept : percid_event(record) {}

    /* The value that was appended; nothing if the record has another length. */
    template <class T>
    PERCID_REQUIRES(is_record<T>)
    [[nodiscard]] PERCID_HIDDEN_INLINE std::optional<T> as() const noexcept
    {
        static_assert(is_record<T>, "its bytes were copied");
        static_assert(std::is_default_constructible<T>::value, "its bytes are copied into one");
        if (length != sizeof(T)) {
            return std::nullopt;
        }
        std::optional<T> value(std::in_place);
        std::memcpy(std::addressof(*value), bytes, sizeof(T));
        return value;
    }

    /* The bytes as text. */
    [[nodiscard]] PERCID_HIDDEN std::string_view text() const noexcept
    {
        return {static_cast<const char *>(bytes), length};
    }

#if defined(__cpp_lib_span)
    /* The bytes. */
    [[nodiscard]] PERCID_HIDDEN std::span<const std::byte> span() const noexcept
    {
        return {static_cast<const std::byte *>(bytes), length};
    }
#endif
};

/* A ring, wherever the object is. */
template <class Place>
class basic_ring {
public:
    basic_ring(const basic_ring &) = delete;
    basic_ring &operator=(const basic_ring &) = delete;

    /* Appends a record. False if it is lost: there is no room, or it is too long.
     * Async-signal-safe. */
    PERCID_HIDDEN_INLINE bool append(const void *record, std::size_t length) noexcept
    {
        return percid_ring_append(ring_.get(), record, length) == 0;
    }

    /* Appends text. */
    PERCID_HIDDEN bool append(std::string_view text) noexcept
    {
        return append(text.data(), text.size());
    }

#if defined(__cpp_lib_span)
    /* Appends bytes: std::as_bytes() makes them of other spans. */
    PERCID_HIDDEN bool append(std::span<const std::byte> bytes) noexcept
    {
        return append(bytes.data(), bytes.size());
    }
#endif

    /* Appends the bytes of a value, padding included. */
    template <class T, std::enable_if_t<is_record<T>, int> = 0>
    PERCID_HIDDEN_INLINE bool append(const T &record) noexcept
    {
        return append(std::addressof(record), sizeof record);
    }

    /* The most bytes of a record. */
    [[nodiscard]] PERCID_HIDDEN std::size_t max_record_len() const noexcept
    {
        return percid_ring_max_record_len(ring_.get());
    }

    /* Hands every record that is there to visit(const event &) and returns how many; nothing if
     * another thread is polling. If it throws, the records that it has not been given stay. */
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, const event &>)
    PERCID_HIDDEN_INLINE std::optional<std::size_t> poll(F &&visit)
    {
        auto adopt = [&visit](const percid_event *record) { visit(event(*record)); };
        const std::int64_t count = percid_ring_poll(ring_.get(), detail::call<const percid_event *, decltype(adopt)>, &adopt);
        return count < 0 ? std::nullopt : std::optional<std::size_t>(static_cast<std::size_t>(count));
    }

    /* How many records were lost so far. */
    [[nodiscard]] PERCID_HIDDEN std::uint64_t lost() const noexcept
    {
        return percid_ring_lost(ring_.get());
    }

    /* For the functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_ring *c_ring() noexcept
    {
        return ring_.get();
    }

protected:
    PERCID_HIDDEN constexpr basic_ring() noexcept = default;
    PERCID_HIDDEN constexpr explicit basic_ring(const percid_ring &initial) noexcept : ring_(initial) {}
    PERCID_HIDDEN basic_ring(basic_ring &&) noexcept = default;
    PERCID_HIDDEN basic_ring &operator=(basic_ring &&) noexcept = default;
    PERCID_HIDDEN ~basic_ring() = default;

    Place ring_;
};

/* A ring of byte records for every CPU, emptied by one consumer at a time. */
class ring : public basic_ring<detail::owned<percid_ring>> {
public:
    /* Of `bytes` bytes, a power of two from 128 to 8 MiB, for every ID. Fails for others, or
     * without memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN ring(std::size_t bytes, overflow policy)
    {
        detail::check(create(bytes, policy), "percid::ring");
    }
#endif
    PERCID_HIDDEN ring(std::size_t bytes, overflow policy, std::error_code &error) noexcept
    {
        error = detail::error_of(create(bytes, policy));
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN ring(source which, std::size_t bytes, overflow policy)
    {
        detail::check(create(which, bytes, policy), "percid::ring");
    }
#endif
    PERCID_HIDDEN ring(source which, std::size_t bytes, overflow policy, std::error_code &error) noexcept
    {
        error = detail::error_of(create(which, bytes, policy));
    }

    PERCID_HIDDEN ring(ring &&) noexcept = default;
    PERCID_HIDDEN ring &operator=(ring &&) noexcept = default;
    PERCID_HIDDEN ~ring() = default;

private:
    PERCID_HIDDEN int create(std::size_t bytes, overflow policy) noexcept
    {
        return percid_ring_create(ring_.place(), bytes, static_cast<int>(policy));
    }

    PERCID_HIDDEN int create(source which, std::size_t bytes, overflow policy) noexcept
    {
        return percid_ring_create_with_source(ring_.place(), static_cast<int>(which), bytes,
                                              static_cast<int>(policy));
    }
};

/* The consumer of a ring, for as long as this object lives: fetches records instead of being called
 * for them. For one thread at a time. */
class consumer {
public:
    /* Fails if the ring has a consumer, or another thread polls it. */
#if PERCID_EXCEPTIONS
    template <class Place>
    PERCID_HIDDEN_INLINE explicit consumer(basic_ring<Place> &of)
    {
        detail::check(percid_consumer_open(consumer_.place(), of.c_ring()), "percid::consumer");
    }
#endif
    template <class Place>
    PERCID_HIDDEN_INLINE consumer(basic_ring<Place> &of, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_consumer_open(consumer_.place(), of.c_ring()));
    }

    PERCID_HIDDEN consumer(consumer &&) noexcept = default;
    PERCID_HIDDEN consumer &operator=(consumer &&) noexcept = default;
    PERCID_HIDDEN ~consumer() = default;

    /* The next record, whose bytes are good until the next call; nothing at the end of a round,
     * which has every record that was appended before it began. The next call begins another one.
     * */
    [[nodiscard]] PERCID_HIDDEN std::optional<event> next() noexcept
    {
        percid_event record{};
        const bool found = percid_consumer_next(consumer_.get(), &record) == 1;
        return found ? std::optional<event>(event(record)) : std::nullopt;
    }

private:
    detail::owned<percid_consumer> consumer_;
};

/* A ring for static storage. */
template <std::size_t Bytes, overflow Policy>
class static_ring : public basic_ring<detail::placed<percid_ring>> {
    static_assert(Bytes >= 128 && Bytes <= 8 << 20 && (Bytes & (Bytes - 1)) == 0,
                  "a ring has a power of two from 128 to 8 MiB");

public:
    PERCID_HIDDEN constexpr static_ring() noexcept
        : basic_ring(percid_ring PERCID_RING_INIT(Bytes, static_cast<int>(Policy)))
    {
    }
    static_ring(const static_ring &) = delete;
    static_ring &operator=(const static_ring &) = delete;
};

/* A mask, wherever the object is. */
template <class Place>
class basic_mask {
public:
    basic_mask(const basic_mask &) = delete;
    basic_mask &operator=(const basic_mask &) = delete;

    /* Makes an ID a member, after something was published that a drain must find. IDs are below
     * 8192: false for others. Async-signal-safe. */
    PERCID_HIDDEN_INLINE bool mark(std::uint32_t id) noexcept
    {
        return percid_mask_mark(mask_.get(), id) == 0;
    }

    [[nodiscard]] PERCID_HIDDEN bool is_marked(std::uint32_t id) const noexcept
    {
        return percid_mask_is_marked(mask_.get(), id) == 1;
    }

    /* Takes all members out and calls visit(std::uint32_t) for each. Returns how many there were. If
     * it throws, those that it has not been given stay members. */
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, std::uint32_t>)
    PERCID_HIDDEN_INLINE std::size_t drain(F &&visit)
    {
        using visitor = std::remove_reference_t<F>;
        void *const callable = const_cast<void *>(static_cast<const void *>(std::addressof(visit)));
        return detail::count_of(percid_mask_drain(mask_.get(), detail::call<std::uint32_t, visitor>, callable));
    }

protected:
    PERCID_HIDDEN constexpr basic_mask() noexcept = default;
    PERCID_HIDDEN constexpr explicit basic_mask(const percid_mask &initial) noexcept : mask_(initial) {}
    PERCID_HIDDEN basic_mask(basic_mask &&) noexcept = default;
    PERCID_HIDDEN basic_mask &operator=(basic_mask &&) noexcept = default;
    PERCID_HIDDEN ~basic_mask() = default;

    Place mask_;
};

/* Which IDs have something to flush. */
class mask : public basic_mask<detail::owned<percid_mask>> {
public:
    /* Without members. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN mask()
    {
        detail::check(percid_mask_create(mask_.place()), "percid::mask");
    }
#endif
    PERCID_HIDDEN explicit mask(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_mask_create(mask_.place()));
    }

    PERCID_HIDDEN mask(mask &&) noexcept = default;
    PERCID_HIDDEN mask &operator=(mask &&) noexcept = default;
    PERCID_HIDDEN ~mask() = default;
};

/* A mask for static storage. */
class static_mask : public basic_mask<detail::placed<percid_mask>> {
public:
    PERCID_HIDDEN constexpr static_mask() noexcept : basic_mask(percid_mask PERCID_MASK_INIT) {}
    static_mask(const static_mask &) = delete;
    static_mask &operator=(const static_mask &) = delete;
};

template <class T, class W>
class field;

namespace detail {

/* Where a member is in its object. With the C++ ABI of Linux that is what a pointer to a member of
 * data holds. */
template <class T, class W>
PERCID_HIDDEN_INLINE inline std::size_t offset_of(W T::*member) noexcept
{
    static_assert(sizeof member == sizeof(std::ptrdiff_t), "a pointer to a member is an offset");
    std::ptrdiff_t offset = 0;
    std::memcpy(&offset, &member, sizeof offset);
    return static_cast<std::size_t>(offset);
}

/* The type of a field: of `&T::name`, or of a field. */
template <class T, class F>
struct field_of;
template <class T, class W>
struct field_of<T, W T::*> {
    using type = W;
};
template <class T, class W>
struct field_of<T, field<T, W>> {
    using type = W;
};

/* Numbers and pointers as C has them. */
PERCID_HIDDEN inline std::uint64_t bits(std::int64_t value) noexcept
{
    return static_cast<std::uint64_t>(value);
}
PERCID_HIDDEN inline std::uint64_t bits(const volatile void *value) noexcept
{
    return reinterpret_cast<std::uintptr_t>(value);
}

template <class V>
PERCID_HIDDEN_INLINE inline V from_bits(std::uint64_t bits) noexcept
{
    if constexpr (std::is_pointer<V>::value) {
        return reinterpret_cast<V>(static_cast<std::uintptr_t>(bits));
    } else {
        return static_cast<V>(bits);
    }
}

/* Destroys the values of a per_id, and the object behind it. */
template <class T>
PERCID_HIDDEN void end_values(percid_memory *memory) noexcept
{
    const auto end = [](void *value, void *) { std::launder(static_cast<T *>(value))->~T(); };
    percid_memory_destroy(memory, end, nullptr);
}

} // namespace detail

/*
 * A 64-bit number in a value of a per_id: its operations change it.
 */
class word {
public:
    using value_type = std::int64_t;

    PERCID_HIDDEN constexpr explicit word(std::int64_t value = 0) noexcept : value_(value) {}
    word(const word &) = delete;
    word &operator=(const word &) = delete;

    /* The number. The thread sees what was written before the operation that stored it, but for add(). */
    [[nodiscard]] PERCID_HIDDEN std::int64_t load() const noexcept
    {
        return __atomic_load_n(&value_, __ATOMIC_ACQUIRE);
    }

    /* Stores a number, for whoever has the value to itself: a visitor. */
    PERCID_HIDDEN void store(std::int64_t value) noexcept
    {
        __atomic_store_n(&value_, value, __ATOMIC_RELEASE);
    }

private:
    std::int64_t value_;
};

/* A pointer in a value of a per_id, or in an item of its lists. */
template <class N>
class pointer {
public:
    using value_type = N *;

    PERCID_HIDDEN constexpr explicit pointer(N *value = nullptr) noexcept : value_(value) {}
    pointer(const pointer &) = delete;
    pointer &operator=(const pointer &) = delete;

    /* The pointer, as word::load() returns a number. */
    [[nodiscard]] PERCID_HIDDEN N *load() const noexcept
    {
        return __atomic_load_n(&value_, __ATOMIC_ACQUIRE);
    }

    /* Stores a pointer, as word::store() stores a number. */
    PERCID_HIDDEN void store(N *value) noexcept
    {
        __atomic_store_n(&value_, value, __ATOMIC_RELEASE);
    }

private:
    N *value_;
};

/* Bytes in a value of a per_id, the destination of a copy. */
template <std::size_t Length>
class bytes {
public:
    static constexpr std::size_t length = Length;

    PERCID_HIDDEN constexpr bytes() noexcept : bytes_{} {}
    bytes(const bytes &) = delete;
    bytes &operator=(const bytes &) = delete;

    /* Copies `count` bytes from `start` on. False without effect if they reach beyond the end. Bytes
     * that an operation is writing may be old or new: load the word that publishes them first. */
    PERCID_HIDDEN bool read(std::size_t start, void *to, std::size_t count) const noexcept
    {
        if (start > Length || count > Length - start) {
            return false;
        }
        for (std::size_t i = 0; i < count; i++) {
            static_cast<unsigned char *>(to)[i] = __atomic_load_n(&bytes_[start + i], __ATOMIC_RELAXED);
        }
        return true;
    }

private:
    alignas(8) unsigned char bytes_[Length];
};

/* A field of type W in values of type T: `&T::name`, or element() of an array. */
template <class T, class W>
class field {
public:
    PERCID_HIDDEN_INLINE field(W T::*member) noexcept : offset_(detail::offset_of(member)) {}

    /* The value itself, if it is a field. */
    [[nodiscard]] PERCID_HIDDEN_INLINE static field whole() noexcept
    {
        static_assert(std::is_same<T, W>::value, "the field is the whole value");
        return field(std::size_t(0));
    }

    /* Its distance from the start of a value, in bytes. */
    [[nodiscard]] PERCID_HIDDEN_INLINE std::size_t offset() const noexcept
    {
        return offset_;
    }

private:
    template <class O, class V, std::size_t N>
    friend field<O, V> element(V (O::*array)[N], std::size_t index) noexcept;

    PERCID_HIDDEN_INLINE explicit field(std::size_t offset) noexcept : offset_(offset) {}

    std::size_t offset_;
};

/* An element of an array, as a field. Ends the program if the array has no such element. */
template <class T, class W, std::size_t N>
[[nodiscard]] PERCID_HIDDEN inline field<T, W> element(W (T::*array)[N], std::size_t index) noexcept
{
    if (index >= N) {
        std::abort();
    }
    return field<T, W>(detail::offset_of(array) + index * sizeof(W));
}

/* What an operation that compares has done: true if it stored. */
template <class T, class V, class O = V>
struct outcome {
    /* The value that it worked on; null if it changed nothing. */
    T *value = nullptr;
    /* The field before. */
    V seen{};
    /* The other field of store_if_both(), if that alone was not as expected. */
    O other{};

    PERCID_HIDDEN explicit operator bool() const noexcept
    {
        return value != nullptr;
    }
};

/*
 * A value of type T for every ID that uses one, wherever the object is, and operations on its fields:
 * percid::word, percid::pointer and percid::bytes. Each is done as a whole on the running thread's
 * value, or not at all; see percid_memory. A thread may move between two of them. Those that fail
 * found no memory for the value. All are async-signal-safe if the maker of values is.
 *
 *     struct traffic { percid::word packets, bytes; };
 *     static percid::static_per_id<traffic> per_id;
 *     per_id.add(&traffic::bytes, 1500);
 */
template <class T, class Place>
class basic_per_id {
    static_assert(std::is_same<T, std::remove_cv_t<T>>::value, "values are neither const nor volatile");
    static_assert(alignof(T) <= 64, "values are aligned to a cache line at most");

    template <class F>
    using field_type = typename detail::field_of<T, F>::type;
    template <class F>
    using value_of = typename field_type<F>::value_type;

public:
    basic_per_id(const basic_per_id &) = delete;
    basic_per_id &operator=(const basic_per_id &) = delete;

    /* Adds to a word. Wraps around. Returns the value that it worked on. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN_INLINE T &add(field<T, word> where, std::int64_t n)
    {
        std::error_code error;
        T *const value = add(where, n, error);
        detail::check(error, "percid::per_id::add");
        return *value;
    }
#endif
    PERCID_HIDDEN_INLINE T *add(field<T, word> where, std::int64_t n, std::error_code &error) noexcept
    {
        void *value = nullptr;
        error = detail::error_of(percid_memory_add(memory_.get(), where.offset(), n, &value));
        return adopt(value);
    }

    /* Adds to a word, and returns the value before that. Wraps around. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN_INLINE outcome<T, std::int64_t> fetch_add(field<T, word> where, std::int64_t n)
    {
        std::error_code error;
        const outcome<T, std::int64_t> done = fetch_add(where, n, error);
        detail::check(error, "percid::per_id::fetch_add");
        return done;
    }
#endif
    PERCID_HIDDEN_INLINE outcome<T, std::int64_t> fetch_add(field<T, word> where, std::int64_t n,
                                                           std::error_code &error) noexcept
    {
        percid_outcome done{};
        error = detail::error_of(percid_memory_fetch_add(memory_.get(), where.offset(), n, &done));
        return told<std::int64_t, std::int64_t>(done);
    }

    /* Stores, and returns what it replaced. With a null pointer it takes a whole list. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> swap(F where, value_of<F> next)
    {
        std::error_code error;
        const outcome<T, value_of<F>> done = swap(where, next, error);
        detail::check(error, "percid::per_id::swap");
        return done;
    }
#endif
    template <class F>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> swap(F where, value_of<F> next, std::error_code &error) noexcept
    {
        percid_outcome done{};
        error = detail::error_of(percid_memory_swap(memory_.get(), offset(where), detail::bits(next), &done));
        return told<value_of<F>, value_of<F>>(done);
    }

    /* Stores `next` if the field has the value `expected`. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> store_if(F where, value_of<F> expected, value_of<F> next)
    {
        std::error_code error;
        const outcome<T, value_of<F>> done = store_if(where, expected, next, error);
        detail::check(error, "percid::per_id::store_if");
        return done;
    }
#endif
    template <class F>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> store_if(F where, value_of<F> expected, value_of<F> next,
                                                          std::error_code &error) noexcept
    {
        percid_outcome done{};
        error = detail::error_of(percid_memory_store_if(memory_.get(), offset(where), detail::bits(expected),
                                                        detail::bits(next), &done));
        return told<value_of<F>, value_of<F>>(done);
    }

    /* The same, and stores `first_value` in `first` before: that is meaningless until `next` is
     * stored, since an interrupted operation may have stored it alone. */
#if PERCID_EXCEPTIONS
    template <class F, class G>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> store_both_if(F where, value_of<F> expected, value_of<F> next, G first,
                                                               value_of<G> first_value)
    {
        std::error_code error;
        const outcome<T, value_of<F>> done = store_both_if(where, expected, next, first, first_value, error);
        detail::check(error, "percid::per_id::store_both_if");
        return done;
    }
#endif
    template <class F, class G>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> store_both_if(F where, value_of<F> expected, value_of<F> next, G first,
                                                               value_of<G> first_value, std::error_code &error) noexcept
    {
        percid_outcome done{};
        error = detail::error_of(percid_memory_store_both_if(memory_.get(), offset(where), detail::bits(expected),
                                                             detail::bits(next), offset(first),
                                                             detail::bits(first_value), &done));
        return told<value_of<F>, value_of<F>>(done);
    }

    /* Stores `next` if the field has the value `expected`, and `second` that which is expected there. */
#if PERCID_EXCEPTIONS
    template <class F, class G>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>, value_of<G>> store_if_both(F where, value_of<F> expected,
                                                                            value_of<F> next, G second,
                                                                            value_of<G> expected_second)
    {
        std::error_code error;
        const outcome<T, value_of<F>, value_of<G>> done =
            store_if_both(where, expected, next, second, expected_second, error);
        detail::check(error, "percid::per_id::store_if_both");
        return done;
    }
#endif
    template <class F, class G>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>, value_of<G>>
    store_if_both(F where, value_of<F> expected, value_of<F> next, G second, value_of<G> expected_second,
                  std::error_code &error) noexcept
    {
        percid_outcome done{};
        error = detail::error_of(percid_memory_store_if_both(memory_.get(), offset(where), detail::bits(expected),
                                                             detail::bits(next), offset(second),
                                                             detail::bits(expected_second), &done));
        return told<value_of<F>, value_of<G>>(done);
    }

    /* Copies `count` bytes into the field `to`, from its byte `start` on, and then stores `next`, if
     * the field has the value `expected`. The bytes are meaningless until then. Fails with EINVAL if
     * they do not fit. */
#if PERCID_EXCEPTIONS
    template <class F, class G>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> copy_then_store_if(F where, value_of<F> expected, value_of<F> next, G to,
                                                                    std::size_t start, const void *from,
                                                                    std::size_t count)
    {
        std::error_code error;
        const outcome<T, value_of<F>> done = copy_then_store_if(where, expected, next, to, start, from, count, error);
        detail::check(error, "percid::per_id::copy_then_store_if");
        return done;
    }
#endif
    template <class F, class G>
    PERCID_HIDDEN_INLINE outcome<T, value_of<F>> copy_then_store_if(F where, value_of<F> expected, value_of<F> next, G to,
                                                                    std::size_t start, const void *from, std::size_t count,
                                                                    std::error_code &error) noexcept
    {
        constexpr std::size_t length = field_type<G>::length;
        percid_outcome done{};
        if (start > length || count > length - start) {
            error = detail::error_of(-EINVAL);
        } else {
            error = detail::error_of(percid_memory_copy_then_store_if(memory_.get(), offset(where),
                                                                      detail::bits(expected), detail::bits(next),
                                                                      offset(to) + start, from, count, &done));
        }
        return told<value_of<F>, value_of<F>>(done);
    }

    /* Makes an item the first of a list. It is in no list, and stays where it is until it was popped
     * or taken with its list; only operations use its field `next` meanwhile. */
#if PERCID_EXCEPTIONS
    template <class F, class N>
    PERCID_HIDDEN_INLINE T &push(F head, N *item, pointer<N> N::*next)
    {
        std::error_code error;
        T *const value = push(head, item, next, error);
        detail::check(error, "percid::per_id::push");
        return *value;
    }
#endif
    template <class F, class N>
    PERCID_HIDDEN_INLINE T *push(F head, N *item, pointer<N> N::*next, std::error_code &error) noexcept
    {
        static_assert(std::is_same<field_type<F>, pointer<N>>::value, "the head points to items");
        void *value = nullptr;
        error = detail::error_of(
            percid_memory_push(memory_.get(), offset(head), item, detail::offset_of(next), &value));
        return adopt(value);
    }

    /* Takes the first item out of a list; null if that list is empty. All items were pushed with the
     * same `next`. */
#if PERCID_EXCEPTIONS
    template <class F, class N>
    [[nodiscard]] PERCID_HIDDEN_INLINE N *pop(F head, pointer<N> N::*next)
    {
        std::error_code error;
        N *const item = pop(head, next, error);
        detail::check(error, "percid::per_id::pop");
        return item;
    }
#endif
    template <class F, class N>
    [[nodiscard]] PERCID_HIDDEN_INLINE N *pop(F head, pointer<N> N::*next, std::error_code &error) noexcept
    {
        static_assert(std::is_same<field_type<F>, pointer<N>>::value, "the head points to items");
        void *item = nullptr;
        error = detail::error_of(percid_memory_pop(memory_.get(), offset(head), detail::offset_of(next), &item));
        return static_cast<N *>(item);
    }

    /* The value of an ID; null if that has not used one. */
    [[nodiscard]] PERCID_HIDDEN T *get(std::uint32_t id) const noexcept
    {
        return adopt(percid_memory_get(memory_.get(), id));
    }

    /* The value of the running thread's ID, a hint; null if there is none yet. */
    [[nodiscard]] PERCID_HIDDEN T *current() const noexcept
    {
        return adopt(percid_memory_current(memory_.get()));
    }

    /* The ID of a value; nothing if it belongs to none. */
    [[nodiscard]] PERCID_HIDDEN std::optional<std::uint32_t> id_of(const T &value) const noexcept
    {
        const int id = percid_memory_id_of(memory_.get(), std::addressof(value));
        return id < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(id));
    }

    /* Goes through all values, which may change meanwhile: `for (const traffic &value : per_id)`. */
    class iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = T *;
        using reference = T &;

        PERCID_HIDDEN T &operator*() const noexcept
        {
            return *value_;
        }
        PERCID_HIDDEN T *operator->() const noexcept
        {
            return value_;
        }
        PERCID_HIDDEN iterator &operator++() noexcept
        {
            value_ = adopt(percid_memory_next(memory_, value_));
            return *this;
        }
        PERCID_HIDDEN iterator operator++(int) noexcept
        {
            const iterator before = *this;
            ++*this;
            return before;
        }
        PERCID_HIDDEN bool operator==(const iterator &other) const noexcept
        {
            return value_ == other.value_;
        }
        PERCID_HIDDEN bool operator!=(const iterator &other) const noexcept
        {
            return value_ != other.value_;
        }

    private:
        friend class basic_per_id;

        PERCID_HIDDEN iterator(percid_memory *memory, T *value) noexcept : memory_(memory), value_(value) {}

        percid_memory *memory_;
        T *value_;
    };

    [[nodiscard]] PERCID_HIDDEN iterator begin() const noexcept
    {
        return ++iterator(memory_.get(), nullptr);
    }
    [[nodiscard]] PERCID_HIDDEN iterator end() const noexcept
    {
        return iterator(memory_.get(), nullptr);
    }

    /* Calls visit(T &) for every value, which no operation changes meanwhile. Returns the number of
     * values that it has missed, which is 0 as a rule. Waits for other visits; fails with EDEADLK inside
     * one of this object. If visit() throws, the rest is left out. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T &>)
    PERCID_HIDDEN_INLINE std::size_t for_each(F &&visit)
    {
        const int missed = visit_each(visit);
        detail::check(missed, "percid::per_id::for_each");
        return detail::count_of(missed);
    }
#endif
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T &>)
    PERCID_HIDDEN_INLINE std::size_t for_each(F &&visit, std::error_code &error)
    {
        const int missed = visit_each(visit);
        error = detail::error_of(missed);
        return detail::count_of(missed);
    }

    /* Calls visit(T &) for the value of one ID, which no operation changes meanwhile. Fails with ENOENT
     * if the ID has no value, EBUSY if another thread has held it for a second, and EDEADLK inside a
     * visit of this object. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T &>)
    PERCID_HIDDEN_INLINE void with_id(std::uint32_t id, F &&visit)
    {
        detail::check(visit_id(id, visit), "percid::per_id::with_id");
    }
#endif
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, T &>)
    PERCID_HIDDEN_INLINE void with_id(std::uint32_t id, F &&visit, std::error_code &error)
    {
        error = detail::error_of(visit_id(id, visit));
    }

    /* Waits for the operations on this object that are running: then none uses what its fields did
     * not show any more before. EBUSY if this thread visits a value, or another has held one for a second. */
    [[nodiscard]] PERCID_HIDDEN_INLINE std::error_code settle() noexcept
    {
        return detail::error_of(percid_memory_settle(memory_.get()));
    }

protected:
    PERCID_HIDDEN constexpr basic_per_id() noexcept = default;
    PERCID_HIDDEN constexpr explicit basic_per_id(const percid_memory &initial) noexcept : memory_(initial) {}
    PERCID_HIDDEN basic_per_id(basic_per_id &&) noexcept = default;
    PERCID_HIDDEN basic_per_id &operator=(basic_per_id &&) noexcept = default;
    PERCID_HIDDEN ~basic_per_id() = default;

    Place memory_;

private:
    PERCID_HIDDEN_INLINE static T *adopt(void *value) noexcept
    {
        return value == nullptr ? nullptr : std::launder(static_cast<T *>(value));
    }

    template <class F>
    PERCID_HIDDEN_INLINE static std::size_t offset(F where) noexcept
    {
        return field<T, field_type<F>>(where).offset();
    }

    template <class V, class O>
    PERCID_HIDDEN_INLINE static outcome<T, V, O> told(const percid_outcome &done) noexcept
    {
        return {adopt(done.value), detail::from_bits<V>(done.seen), detail::from_bits<O>(done.other)};
    }

    template <class F>
    PERCID_HIDDEN_INLINE int visit_each(F &visit)
    {
        auto found = [&visit](void *value) { std::invoke(visit, *adopt(value)); };
        return percid_memory_for_each(memory_.get(), detail::call<void *, decltype(found)>, &found);
    }

    template <class F>
    PERCID_HIDDEN_INLINE int visit_id(std::uint32_t id, F &visit)
    {
        auto found = [&visit](void *value) { std::invoke(visit, *adopt(value)); };
        return percid_memory_with_id(memory_.get(), id, detail::call<void *, decltype(found)>, &found);
    }
};

/*
 * A value of type T for every ID, with operations on its fields. Values are made when an ID first uses
 * one, and destroyed with this object.
 */
template <class T>
class per_id : public basic_per_id<T, detail::owned<percid_memory, detail::end_values<T>>> {
public:
    /* What makes values: any operation of any thread may call it, so it must not throw. */
    using maker = std::function<T()>;

    /* Values are made by make(), or by the default constructor. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit per_id(maker make = nullptr) : make_(kept(std::move(make)))
    {
        detail::check(create(), "percid::per_id");
    }
#endif
    PERCID_HIDDEN explicit per_id(std::error_code &error) : per_id(nullptr, error) {}
    PERCID_HIDDEN per_id(maker make, std::error_code &error) : make_(kept(std::move(make)))
    {
        error = detail::error_of(create());
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit per_id(source which, maker make = nullptr) : make_(kept(std::move(make)))
    {
        detail::check(create(which), "percid::per_id");
    }
#endif
    PERCID_HIDDEN per_id(source which, maker make, std::error_code &error) : make_(kept(std::move(make)))
    {
        error = detail::error_of(create(which));
    }

    PERCID_HIDDEN per_id(per_id &&) noexcept = default;
    PERCID_HIDDEN per_id &operator=(per_id &&) noexcept = default;
    PERCID_HIDDEN ~per_id() = default;

private:
    PERCID_HIDDEN int create() noexcept
    {
        return percid_memory_create(this->memory_.place(), sizeof(T), alignof(T), make_value, make_.get());
    }

    PERCID_HIDDEN int create(source which) noexcept
    {
        return percid_memory_create_with_source(this->memory_.place(), static_cast<int>(which), sizeof(T), alignof(T),
                                                make_value, make_.get());
    }

    PERCID_HIDDEN static std::unique_ptr<maker> kept(maker make)
    {
        return make == nullptr ? nullptr : std::make_unique<maker>(std::move(make));
    }

    PERCID_HIDDEN static void make_value(void *memory, void *context) noexcept
    {
        ::new (memory) T(context == nullptr ? detail::make_default<T>() : (*static_cast<maker *>(context))());
    }

    /* Where the library finds it, wherever this object is moved. */
    std::unique_ptr<maker> make_;
};

/* A per_id for static storage. Values are made by Make, or by the default constructor. */
template <class T, T (*Make)() = detail::make_default<T>>
class static_per_id : public basic_per_id<T, detail::placed<percid_memory>> {
    using base = basic_per_id<T, detail::placed<percid_memory>>;

public:
    PERCID_HIDDEN constexpr static_per_id() noexcept
        : base(percid_memory PERCID_MEMORY_INIT(sizeof(T), alignof(T), make_value, nullptr))
    {
    }
    static_per_id(const static_per_id &) = delete;
    static_per_id &operator=(const static_per_id &) = delete;

private:
    PERCID_HIDDEN static void make_value(void *memory, void *) noexcept
    {
        ::new (memory) T(Make());
    }
};

namespace detail {

/* A time as percid.h has it: none if it is over, and all that there is if it is longer. */
template <class Rep, class Period>
[[nodiscard]] PERCID_HIDDEN std::uint64_t nanoseconds_of(const std::chrono::duration<Rep, Period> &time)
{
    const auto exact = std::chrono::duration<long double, std::nano>(time).count();
    if (!(exact > 0)) {
        return 0;
    }
    return exact < 9.2e18L ? static_cast<std::uint64_t>(exact) + 1 : UINT64_MAX;
}

/* Tries for the time that is left until a clock, which may be set, is at its end. */
template <class Clock, class Duration, class F>
[[nodiscard]] PERCID_HIDDEN bool until(const std::chrono::time_point<Clock, Duration> &end, F try_for)
{
    do {
        if (try_for(end - Clock::now())) {
            return true;
        }
    } while (Clock::now() < end);
    return false;
}

/* What a domain calls for an object. */
template <class T, class D>
PERCID_HIDDEN void delete_retired(void *object) noexcept
{
    D()(static_cast<T *>(object));
}

/* What a domain calls for a callable of its own. */
template <class F>
PERCID_HIDDEN void call_deferred(void *callable) noexcept
{
    const std::unique_ptr<F> function(static_cast<F *>(callable));
    (*function)();
}

} // namespace detail

/* A readers-writer lock for data that is read often and written rarely: readers on different CPUs do not
 * slow each other down. It has the functions of std::shared_timed_mutex, for std::unique_lock and
 * std::shared_lock. Another thread may release what a thread has locked. Not for signal handlers. */
class rw_lock {
public:
    /* That no thread has. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN rw_lock()
    {
        detail::check(percid_rwlock_create(lock_.place()), "percid::rw_lock");
    }
#endif
    PERCID_HIDDEN explicit rw_lock(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_rwlock_create(lock_.place()));
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit rw_lock(source which)
    {
        detail::check(create(which), "percid::rw_lock");
    }
#endif
    PERCID_HIDDEN rw_lock(source which, std::error_code &error) noexcept
    {
        error = detail::error_of(create(which));
    }

    PERCID_HIDDEN rw_lock(rw_lock &&) noexcept = default;
    PERCID_HIDDEN rw_lock &operator=(rw_lock &&) noexcept = default;
    PERCID_HIDDEN ~rw_lock() = default;

    /* Locks for writing: waits for all others. Fails if membarrier() is refused that was not refused
     * before, and then the lock is as it was. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN void lock()
    {
        detail::check(percid_rwlock_write_lock(lock_.get()), "percid::rw_lock::lock");
    }
#endif
    PERCID_HIDDEN void lock(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_rwlock_write_lock(lock_.get()));
    }

    /* Locks for writing if no thread has the lock: true if it did. */
    [[nodiscard]] PERCID_HIDDEN bool try_lock() noexcept
    {
        return percid_rwlock_try_write_lock(lock_.get()) == 0;
    }

    /* Locks for writing, and waits so long at most: true if it did. */
    template <class Rep, class Period>
    [[nodiscard]] PERCID_HIDDEN_INLINE bool try_lock_for(const std::chrono::duration<Rep, Period> &time)
    {
        return percid_rwlock_timed_write_lock(lock_.get(), detail::nanoseconds_of(time)) == 0;
    }

    template <class Clock, class Duration>
    [[nodiscard]] PERCID_HIDDEN_INLINE bool try_lock_until(const std::chrono::time_point<Clock, Duration> &end)
    {
        return detail::until(end, [this](const auto &time) { return this->try_lock_for(time); });
    }

    PERCID_HIDDEN void unlock() noexcept
    {
        percid_rwlock_write_unlock(lock_.get());
    }

    /* Locks for reading: waits for writers. Fails only if this object was moved from. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN void lock_shared()
    {
        detail::check(percid_rwlock_read_lock(lock_.get()), "percid::rw_lock::lock_shared");
    }
#endif
    PERCID_HIDDEN void lock_shared(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_rwlock_read_lock(lock_.get()));
    }

    /* Locks for reading if there is no writer: true if it did. */
    [[nodiscard]] PERCID_HIDDEN bool try_lock_shared() noexcept
    {
        return percid_rwlock_try_read_lock(lock_.get()) == 0;
    }

    /* Locks for reading, and waits so long at most: true if it did. */
    template <class Rep, class Period>
    [[nodiscard]] PERCID_HIDDEN_INLINE bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &time)
    {
        return percid_rwlock_timed_read_lock(lock_.get(), detail::nanoseconds_of(time)) == 0;
    }

    template <class Clock, class Duration>
    [[nodiscard]] PERCID_HIDDEN_INLINE bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &end)
    {
        return detail::until(end, [this](const auto &time) { return this->try_lock_shared_for(time); });
    }

    PERCID_HIDDEN void unlock_shared() noexcept
    {
        percid_rwlock_read_unlock(lock_.get());
    }

    /* For the functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_rwlock *c_rwlock() noexcept
    {
        return lock_.get();
    }

private:
    PERCID_HIDDEN int create(source which) noexcept
    {
        return percid_rwlock_create_with_source(lock_.place(), static_cast<int>(which));
    }

    detail::owned<percid_rwlock> lock_;
};

/*
 * Readers that are waited for: read-copy-update, as `std::rcu_domain` of C++26, but there may be many
 * domains, and a reader is an rcu_guard:
 *
 *     percid::rcu_domain domain;
 *     std::atomic<const config *> current;
 *
 *     const percid::rcu_guard reading(domain);               // on any thread
 *     current.load()->use();
 *
 *     domain.retire(current.exchange(new config(changed)));  // deleted when nobody uses it
 *
 * When a domain is destroyed, it deletes what was retired. If a reader is inside then, it never does.
 */
class rcu_domain {
public:
    /* In which at most 1024 functions wait. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN rcu_domain()
    {
        detail::check(percid_domain_create(domain_.place()), "percid::rcu_domain");
    }
#endif
    PERCID_HIDDEN explicit rcu_domain(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_domain_create(domain_.place()));
    }

    /* In which at most so many functions wait, up to 4096: fails for more. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit rcu_domain(std::size_t limit)
    {
        detail::check(percid_domain_create_bounded(domain_.place(), limit), "percid::rcu_domain");
    }
#endif
    PERCID_HIDDEN rcu_domain(std::size_t limit, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_domain_create_bounded(domain_.place(), limit));
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit rcu_domain(source which)
    {
        detail::check(create(which), "percid::rcu_domain");
    }
#endif
    PERCID_HIDDEN rcu_domain(source which, std::error_code &error) noexcept
    {
        error = detail::error_of(create(which));
    }

    PERCID_HIDDEN rcu_domain(rcu_domain &&) noexcept = default;
    PERCID_HIDDEN rcu_domain &operator=(rcu_domain &&) noexcept = default;
    PERCID_HIDDEN ~rcu_domain() = default;

    /* Waits until every rcu_guard that exists now is gone. A thread that has one waits forever. Fails if
     * membarrier() is refused that was not refused before. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN void synchronize()
    {
        detail::check(percid_domain_synchronize(domain_.get()), "percid::rcu_domain::synchronize");
    }
#endif
    PERCID_HIDDEN void synchronize(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_domain_synchronize(domain_.get()));
    }

    /* Calls deleter(object) when every rcu_guard that exists now is gone: in a later call of this or of
     * flush(), on any thread, or when this object is destroyed. Waits itself if as many functions wait as
     * may. The call must not throw: that ends the program. Fails if there is no memory, and then the
     * caller still has the object. */
#if PERCID_EXCEPTIONS
    template <class T, class D = std::default_delete<T>>
    PERCID_HIDDEN_INLINE void retire(T *object, D deleter = D())
    {
        std::error_code error;
        retire(object, std::move(deleter), error);
        detail::check(error, "percid::rcu_domain::retire");
    }
#endif
    template <class T, class D>
    PERCID_HIDDEN_INLINE void retire(T *object, D deleter, std::error_code &error)
    {
        if constexpr (std::is_empty<D>::value && std::is_default_constructible<D>::value) {
            /* The object is all that must be kept. */
            void *const kept = const_cast<void *>(static_cast<const volatile void *>(object));
            error = detail::error_of(percid_domain_defer(domain_.get(), detail::delete_retired<T, D>, kept));
        } else {
            defer([object, deleter = std::move(deleter)]() mutable { deleter(object); }, error);
        }
    }
    template <class T>
    PERCID_HIDDEN_INLINE void retire(T *object, std::error_code &error)
    {
        retire(object, std::default_delete<T>(), error);
    }

    /* Calls function() as retire() calls a deleter, once. Throws what copying it throws. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<std::decay_t<F> &>)
    PERCID_HIDDEN_INLINE void defer(F &&function)
    {
        std::error_code error;
        defer(std::forward<F>(function), error);
        detail::check(error, "percid::rcu_domain::defer");
    }
#endif
    template <class F>
    PERCID_REQUIRES(std::invocable<std::decay_t<F> &>)
    PERCID_HIDDEN_INLINE void defer(F &&function, std::error_code &error)
    {
        using kept = std::decay_t<F>;
        std::unique_ptr<kept> made(new (std::nothrow) kept(std::forward<F>(function)));
        const int result = made == nullptr ? -ENOMEM
                                           : percid_domain_defer(domain_.get(), detail::call_deferred<kept>, made.get());
        if (result == 0) {
            (void)made.release();
        }
        error = detail::error_of(result);
    }

    /* Waits as synchronize() does, and calls all functions that were deferred before. Returns how many. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN std::size_t flush()
    {
        const std::int64_t count = percid_domain_flush(domain_.get());
        detail::check(count, "percid::rcu_domain::flush");
        return detail::count_of(count);
    }
#endif
    PERCID_HIDDEN std::size_t flush(std::error_code &error) noexcept
    {
        const std::int64_t count = percid_domain_flush(domain_.get());
        error = detail::error_of(count);
        return detail::count_of(count);
    }

    /* How many functions wait. */
    [[nodiscard]] PERCID_HIDDEN std::size_t deferred_count() const noexcept
    {
        return percid_domain_deferred_count(domain_.get());
    }

    /* About how many guards there are. */
    [[nodiscard]] PERCID_HIDDEN std::size_t reader_count() const noexcept
    {
        return percid_domain_reader_count(domain_.get());
    }

    /* For the functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_domain *c_domain() noexcept
    {
        return domain_.get();
    }

private:
    PERCID_HIDDEN int create(source which) noexcept
    {
        return percid_domain_create_with_source(domain_.place(), static_cast<int>(which));
    }

    detail::owned<percid_domain> domain_;
};

/* A reader of a domain, until it is destroyed. Guards nest, and another thread may destroy one.
 * Async-signal-safe. */
class rcu_guard {
public:
    PERCID_HIDDEN explicit rcu_guard(rcu_domain &domain) noexcept
        : domain_(domain.c_domain()), token_(percid_domain_read_lock(domain_))
    {
    }

    PERCID_HIDDEN rcu_guard(rcu_guard &&other) noexcept
        : domain_(std::exchange(other.domain_, nullptr)), token_(other.token_)
    {
    }

    PERCID_HIDDEN rcu_guard &operator=(rcu_guard &&other) noexcept
    {
        rcu_guard taken(std::move(other));
        std::swap(domain_, taken.domain_);
        std::swap(token_, taken.token_);
        return *this;
    }

    PERCID_HIDDEN ~rcu_guard()
    {
        percid_domain_read_unlock(domain_, token_);
    }

private:
    percid_domain *domain_;
    int token_;
};

/* A number of units, such as bytes of memory, that is charged and released by many threads and never
 * exceeded, not by one unit. Not for signal handlers. */
class budget {
public:
    /* Of which nothing is charged. Fails if there is no memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit budget(std::uint64_t limit)
    {
        detail::check(percid_budget_create(budget_.place(), limit), "percid::budget");
    }
#endif
    PERCID_HIDDEN budget(std::uint64_t limit, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_budget_create(budget_.place(), limit));
    }

    /* Of which each ID takes so many units at once. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN budget(std::uint64_t limit, std::uint64_t batch)
    {
        detail::check(percid_budget_create_with_batch(budget_.place(), limit, batch), "percid::budget");
    }
#endif
    PERCID_HIDDEN budget(std::uint64_t limit, std::uint64_t batch, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_budget_create_with_batch(budget_.place(), limit, batch));
    }

    /* For a source, whatever the process has chosen. Fails if it cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN budget(source which, std::uint64_t limit, std::uint64_t batch)
    {
        detail::check(create(which, limit, batch), "percid::budget");
    }
#endif
    PERCID_HIDDEN budget(source which, std::uint64_t limit, std::uint64_t batch, std::error_code &error) noexcept
    {
        error = detail::error_of(create(which, limit, batch));
    }

    PERCID_HIDDEN budget(budget &&) noexcept = default;
    PERCID_HIDDEN budget &operator=(budget &&) noexcept = default;
    PERCID_HIDDEN ~budget() = default;

    /* Charges units. False if there is no room for them: then nothing was charged. */
    [[nodiscard]] PERCID_HIDDEN bool try_charge(std::uint64_t units) noexcept
    {
        return percid_budget_try_charge(budget_.get(), units) == 0;
    }

    /* Releases units that were charged, by any thread. */
    PERCID_HIDDEN void release(std::uint64_t units) noexcept
    {
        percid_budget_release(budget_.get(), units);
    }

    [[nodiscard]] PERCID_HIDDEN std::uint64_t limit() const noexcept
    {
        return percid_budget_limit(budget_.get());
    }

    /* The units that are charged or lie in credits of IDs: one load. */
    [[nodiscard]] PERCID_HIDDEN std::uint64_t approximate() const noexcept
    {
        return percid_budget_approximate(budget_.get());
    }

    /* The units that are charged: one load for every ID. */
    [[nodiscard]] PERCID_HIDDEN std::uint64_t exact() const noexcept
    {
        return percid_budget_exact(budget_.get());
    }

private:
    PERCID_HIDDEN int create(source which, std::uint64_t limit, std::uint64_t batch) noexcept
    {
        return percid_budget_create_with_source(budget_.place(), static_cast<int>(which), limit, batch);
    }

    detail::owned<percid_budget> budget_;
};

/* A text format of pages. */
enum class format : int {
    /* Prometheus' own, version 0.0.4. */
    text = PERCID_FORMAT_TEXT,
    open_metrics = PERCID_FORMAT_OPEN_METRICS,
};

/* What a server calls a format in the header Content-Type. */
[[nodiscard]] PERCID_HIDDEN inline const char *content_type(format of) noexcept
{
    return percid_format_content_type(static_cast<int>(of));
}

/* The format that a client asks for by the value of its header Accept. */
[[nodiscard]] PERCID_HIDDEN inline format accepted(const char *accept) noexcept
{
    return static_cast<format>(percid_format_accepted(accept));
}

/* A series of a family of counters. It belongs to the registry, and must not be used when that is
 * gone; as the other series, it is a pointer, and copied as one. */
class counter_series {
public:
    PERCID_HIDDEN constexpr counter_series() noexcept = default;
    PERCID_HIDDEN constexpr explicit counter_series(percid_counter *series) noexcept : series_(series) {}

    /* Inline: no call, no locked instruction. Async-signal-safe. */
    PERCID_HIDDEN_INLINE void add(std::int64_t n = 1) const noexcept
    {
        percid_counter_add(series_, n);
    }

    [[nodiscard]] PERCID_HIDDEN std::int64_t sum() const noexcept
    {
        return percid_counter_sum(series_);
    }

    /* For functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_counter *c_counter() const noexcept
    {
        return series_;
    }

private:
    percid_counter *series_ = nullptr;
};

/* A sum of floats that only grows: a series of a family. */
class float_counter {
public:
    PERCID_HIDDEN constexpr float_counter() noexcept = default;
    PERCID_HIDDEN constexpr explicit float_counter(percid_float_counter *series) noexcept : series_(series) {}

    /* Nothing if n is negative or no number. Async-signal-safe. */
    PERCID_HIDDEN void add(double n) const noexcept
    {
        percid_float_counter_add(series_, n);
    }

    [[nodiscard]] PERCID_HIDDEN double sum() const noexcept
    {
        return percid_float_counter_sum(series_);
    }

private:
    percid_float_counter *series_ = nullptr;
};

/* A value that is set, and that rises and falls: a series of a family. */
class gauge {
public:
    PERCID_HIDDEN constexpr gauge() noexcept = default;
    PERCID_HIDDEN constexpr explicit gauge(percid_gauge *series) noexcept : series_(series) {}

    /* Adds n, which may be negative. Async-signal-safe. */
    PERCID_HIDDEN void add(double n = 1) const noexcept
    {
        percid_gauge_add(series_, n);
    }

    PERCID_HIDDEN void set(double value) const noexcept
    {
        percid_gauge_set(series_, value);
    }

    /* Raises it to value, if it is less or no number. */
    PERCID_HIDDEN void max(double value) const noexcept
    {
        percid_gauge_max(series_, value);
    }

    [[nodiscard]] PERCID_HIDDEN double value() const noexcept
    {
        return percid_gauge_value(series_);
    }

private:
    percid_gauge *series_ = nullptr;
};

/* Counts of values in buckets of the program's choice, and their exact sum: a series of a family, on a
 * page a histogram. */
class buckets {
public:
    PERCID_HIDDEN constexpr buckets() noexcept = default;
    PERCID_HIDDEN constexpr explicit buckets(percid_buckets *series) noexcept : series_(series) {}

    /* Counts a value so many times, in one step. Async-signal-safe. */
    PERCID_HIDDEN void record(double value, std::uint64_t times = 1) const noexcept
    {
        percid_buckets_record_many(series_, value, times);
    }

    /* Counts so many values in each bucket, and adds the sum of all of them, in one step. EINVAL if there
     * are more than 2048 counts. Async-signal-safe. */
    PERCID_HIDDEN std::error_code record_all(const std::vector<std::uint64_t> &counts, double sum) const noexcept
    {
        return detail::error_of(percid_buckets_record_all(series_, counts.data(), counts.size(), sum));
    }

    /* Takes all values out, and leaves zeros. May throw std::bad_alloc, before it takes anything. */
    [[nodiscard]] PERCID_HIDDEN std::pair<std::vector<std::uint64_t>, double> take() const
    {
        std::pair<std::vector<std::uint64_t>, double> all;
        all.first.resize(detail::count_of(percid_buckets_take(series_, nullptr, 0, nullptr)));
        percid_buckets_take(series_, all.first.data(), all.first.size(), &all.second);
        return all;
    }

    /* How many values each bucket has, those of others not counted, and the sum of all values. May
     * throw std::bad_alloc. */
    [[nodiscard]] PERCID_HIDDEN std::pair<std::vector<std::uint64_t>, double> read() const
    {
        std::pair<std::vector<std::uint64_t>, double> all;
        all.first.resize(detail::count_of(percid_buckets_read(series_, nullptr, 0, nullptr)));
        percid_buckets_read(series_, all.first.data(), all.first.size(), &all.second);
        return all;
    }

private:
    percid_buckets *series_ = nullptr;
};

/* What is said of a family when it is made: see percid_family_settings. Nothing of it is kept. */
struct family_settings {
    const char *name = nullptr;
    const char *help = nullptr;
    const char *unit = nullptr;
    std::vector<const char *> labels = {};
    /* Names and values of labels that all series have. */
    std::vector<std::pair<const char *, const char *>> constants = {};
    /* Of a histogram's buckets. */
    std::vector<double> limits = {};
    std::size_t most = PERCID_FAMILY_LIMIT;
    const char *overflow = nullptr;
};

/* A value of a label, in UTF-8. It refers to the text, which must live as long as the call: a C string
 * and a std::string are passed on as they are, a std::string_view is copied, up to 256 bytes of each call
 * on the stack. A zero inside a text is refused, as NULL is. */
class label_value {
public:
    PERCID_HIDDEN constexpr label_value(const char *text) noexcept : text_(text) {}
    PERCID_HIDDEN label_value(const std::string &text) noexcept : text_(has_zero(text) ? nullptr : text.c_str()) {}
    PERCID_HIDDEN label_value(std::string_view text) noexcept
        : text_(has_zero(text) ? nullptr : text.empty() ? "" : text.data()), copied_(text_ == nullptr ? 0 : text.size())
    {
    }

private:
    template <class>
    friend class family;

    PERCID_HIDDEN static bool has_zero(std::string_view text) noexcept
    {
        return text.find('\0') != std::string_view::npos;
    }

    /* Where the texts of a call are that C gets. */
    struct memory {
        static constexpr std::size_t few = 8;
        const char *values[few];
        char texts[256];
        std::unique_ptr<const char *[]> more_values;
        std::unique_ptr<char[]> more_texts;
    };

    /* The values, each with a zero behind it; NULL without memory. */
    PERCID_HIDDEN static const char *const *zero_ended(std::initializer_list<label_value> values,
                                                       memory &place) noexcept
    {
        const char **found = place.values;
        if (values.size() > memory::few) {
            place.more_values.reset(found = new (std::nothrow) const char *[values.size()]);
        }
        std::size_t bytes = 0;
        for (const label_value &value : values) {
            bytes += value.copied_ == 0 ? 0 : value.copied_ + 1;
        }
        char *copy = place.texts;
        if (bytes > sizeof place.texts) {
            place.more_texts.reset(copy = new (std::nothrow) char[bytes]);
        }
        if (found == nullptr || copy == nullptr) {
            return nullptr;
        }
        for (const label_value &value : values) {
            *found++ = value.copied_ == 0 ? value.text_ : copy;
            if (value.copied_ != 0) {
                copy = std::copy_n(value.text_, value.copied_, copy);
                *copy++ = '\0';
            }
        }
        return found - values.size();
    }

    const char *text_;
    /* The length of what has no zero behind it. */
    std::size_t copied_ = 0;
};

namespace detail {

/* Of which series a family can be. */
template <class Metric>
struct series_of;

template <>
struct series_of<counter> {
    using type = counter_series;
    using c_type = percid_counter;
    static constexpr int kind = PERCID_METRIC_COUNTER;

    PERCID_HIDDEN static int find(const percid_family *family, const char *const *values, std::size_t count,
                                  c_type **series) noexcept
    {
        return percid_family_counter(family, values, count, series);
    }
};

template <>
struct series_of<float_counter> {
    using type = float_counter;
    using c_type = percid_float_counter;
    static constexpr int kind = PERCID_METRIC_FLOAT_COUNTER;

    PERCID_HIDDEN static int find(const percid_family *family, const char *const *values, std::size_t count,
                                  c_type **series) noexcept
    {
        return percid_family_float_counter(family, values, count, series);
    }
};

template <>
struct series_of<gauge> {
    using type = gauge;
    using c_type = percid_gauge;
    static constexpr int kind = PERCID_METRIC_GAUGE;

    PERCID_HIDDEN static int find(const percid_family *family, const char *const *values, std::size_t count,
                                  c_type **series) noexcept
    {
        return percid_family_gauge(family, values, count, series);
    }
};

template <>
struct series_of<buckets> {
    using type = buckets;
    using c_type = percid_buckets;
    static constexpr int kind = PERCID_METRIC_BUCKETS;

    PERCID_HIDDEN static int find(const percid_family *family, const char *const *values, std::size_t count,
                                  c_type **series) noexcept
    {
        return percid_family_buckets(family, values, count, series);
    }
};

/* Hands a part of a page to a callable. */
template <class F>
PERCID_HIDDEN_INLINE inline int write_part(const char *text, std::size_t length, void *callable)
{
    (*static_cast<F *>(callable))(std::string_view(text, length));
    return 0;
}

} // namespace detail

/* The metrics of one page, with their families and series, which end with it. */
class registry {
public:
    /* Fails without memory. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN registry()
    {
        detail::check(percid_registry_create(registry_.place()), "percid::registry");
    }
#endif
    PERCID_HIDDEN explicit registry(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_registry_create(registry_.place()));
    }

    PERCID_HIDDEN registry(registry &&) noexcept = default;
    PERCID_HIDDEN registry &operator=(registry &&) noexcept = default;
    PERCID_HIDDEN ~registry() = default;

    /* The page. May throw std::bad_alloc. */
#if PERCID_EXCEPTIONS
    [[nodiscard]] PERCID_HIDDEN std::string render(format of = format::text) const
    {
        std::string page;
        detail::check(render_into(page, of), "percid::registry::render");
        return page;
    }
#endif
    [[nodiscard]] PERCID_HIDDEN std::string render(format of, std::error_code &error) const
    {
        std::string page;
        error = detail::error_of(render_into(page, of));
        return page;
    }

    /* Calls take(std::string_view) with one part of the page after the other, of whole lines. No lock is
     * held meanwhile. */
#if PERCID_EXCEPTIONS
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, std::string_view>)
    PERCID_HIDDEN_INLINE void write(F &&take, format of = format::text) const
    {
        detail::check(write_parts(take, of), "percid::registry::write");
    }
#endif
    template <class F>
    PERCID_REQUIRES(std::invocable<F &, std::string_view>)
    PERCID_HIDDEN_INLINE void write(F &&take, format of, std::error_code &error) const
    {
        error = detail::error_of(write_parts(take, of));
    }

    /* For functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_registry *c_registry() const noexcept
    {
        return registry_.get();
    }

private:
    PERCID_HIDDEN std::int64_t render_into(std::string &page, format of) const
    {
        for (;;) {
            const std::size_t room = page.size();
            const std::int64_t length =
                percid_registry_render(registry_.get(), static_cast<int>(of), page.data(), room + 1);
            if (length <= static_cast<std::int64_t>(room)) {
                page.resize(detail::count_of(length));
                return length;
            }
            /* The next one may be longer. */
            page.resize(static_cast<std::size_t>(length) + static_cast<std::size_t>(length) / 8);
        }
    }

    template <class F>
    PERCID_HIDDEN_INLINE int write_parts(F &take, format of) const
    {
        void *const callable = const_cast<void *>(static_cast<const void *>(std::addressof(take)));
        return percid_registry_write(registry_.get(), static_cast<int>(of), detail::write_part<F>, callable);
    }

    detail::owned<percid_registry> registry_;
};

/* The series of one metric of a registry, by the values of their labels: a family of counter,
 * float_counter, gauge or buckets. It ends with its registry, and is copied as a pointer. */
template <class Metric>
class family {
    using traits = detail::series_of<Metric>;

public:
    /* What with() finds: counter_series, or Metric. */
    using series = typename traits::type;

    /* Adds a metric to the registry. Fails if the settings are not as the formats want them, the name
     * is taken, or there is no memory: see percid_family_create(). The exception's text says which
     * setting is wrong. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN family(registry &of, const family_settings &settings)
    {
        char why[256] = "";
        const int result = create(of, settings, why, sizeof why);
        detail::check(result, why[0] == '\0' ? "percid::family" : why);
    }
#endif
    PERCID_HIDDEN family(registry &of, const family_settings &settings, std::error_code &error)
    {
        error = detail::error_of(create(of, settings, nullptr, 0));
    }

    /* The series with these values, in UTF-8 and in the order of the labels; a new one if there is none,
     * or that of all others beyond the limit. Fails if they are not as many as labels, one is not UTF-8,
     * or there is no memory. It may be kept for as long as the registry lives. */
#if PERCID_EXCEPTIONS
    [[nodiscard]] PERCID_HIDDEN series with(std::initializer_list<label_value> values) const
    {
        typename traits::c_type *found;
        detail::check(find(values, &found), "percid::family::with");
        return series(found);
    }
    [[nodiscard]] PERCID_HIDDEN series with(const char *const *values, std::size_t count) const
    {
        typename traits::c_type *found;
        detail::check(traits::find(family_, values, count, &found), "percid::family::with");
        return series(found);
    }
#endif
    [[nodiscard]] PERCID_HIDDEN series with(std::initializer_list<label_value> values,
                                            std::error_code &error) const noexcept
    {
        typename traits::c_type *found = nullptr;
        error = detail::error_of(find(values, &found));
        return series(found);
    }
    [[nodiscard]] PERCID_HIDDEN series with(const char *const *values, std::size_t count,
                                            std::error_code &error) const noexcept
    {
        typename traits::c_type *found = nullptr;
        error = detail::error_of(traits::find(family_, values, count, &found));
        return series(found);
    }

    /* How many series there are. */
    [[nodiscard]] PERCID_HIDDEN std::size_t size() const noexcept
    {
        return detail::count_of(percid_family_series(family_));
    }

    /* How often values were looked up that were beyond the limit. */
    [[nodiscard]] PERCID_HIDDEN std::uint64_t refused() const noexcept
    {
        return percid_family_refused(family_);
    }

    /* For functions of percid.h. */
    [[nodiscard]] PERCID_HIDDEN percid_family *c_family() const noexcept
    {
        return family_;
    }

private:
    PERCID_HIDDEN int find(std::initializer_list<label_value> values, typename traits::c_type **found) const noexcept
    {
        label_value::memory place;
        const char *const *const texts = label_value::zero_ended(values, place);
        return texts == nullptr ? -ENOMEM : traits::find(family_, texts, values.size(), found);
    }

    PERCID_HIDDEN int create(registry &of, const family_settings &given, char *why, std::size_t why_size)
    {
        std::vector<const char *> constants;
        for (const auto &[name, value] : given.constants) {
            constants.insert(constants.end(), {name, value});
        }
        percid_family_settings settings{};
        settings.kind = traits::kind;
        settings.name = given.name;
        settings.help = given.help;
        settings.unit = given.unit;
        settings.labels = given.labels.data();
        settings.label_count = given.labels.size();
        settings.constants = constants.data();
        settings.constant_count = constants.size();
        settings.limits = given.limits.empty() ? nullptr : given.limits.data();
        settings.limit_count = given.limits.size();
        settings.most = given.most;
        settings.overflow = given.overflow;
        settings.why = why;
        settings.why_size = why_size;
        return percid_family_create(&family_, of.c_registry(), &settings, sizeof settings);
    }

    percid_family *family_ = nullptr;
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

/* The order of a scan's visits, for the settings' member of that name. */
enum class order : int {
    /* By address, as Linux does. The default. */
    address = PERCID_SCAN_ORDER_ADDRESS,
    /* First what the scanning thread uses, then what several threads use. In no kernel. */
    activity = PERCID_SCAN_ORDER_ACTIVITY,
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
enum class skip_reason : int {
    unsuitable = PERCID_SKIP_REASON_UNSUITABLE,
    shared_ro = PERCID_SKIP_REASON_SHARED_RO,
    inaccessible = PERCID_SKIP_REASON_INACCESSIBLE,
    scan_delay = PERCID_SKIP_REASON_SCAN_DELAY,
    seq_completed = PERCID_SKIP_REASON_SEQ_COMPLETED,
    pid_inactive = PERCID_SKIP_REASON_PID_INACTIVE,
    ignore_pid_inactive = PERCID_SKIP_REASON_IGNORE_PID_INACTIVE,
};

/* The published name. */
PERCID_HIDDEN inline const char *name(skip_reason which) noexcept
{
    return percid_skip_reason_name(static_cast<int>(which));
}

/* The constants and rules of a balancer: the members of percid_balancer_settings, with their
 * defaults. */
struct settings : percid_balancer_settings {
    PERCID_HIDDEN settings() noexcept : percid_balancer_settings()
    {
        percid_balancer_settings_init(this, sizeof(percid_balancer_settings));
    }

    /* Chooses the rules as a release of Linux has them; each can be set by itself afterwards. */
    PERCID_HIDDEN settings &with(numa::rules which) noexcept
    {
        percid_balancer_settings_set_rules(this, static_cast<int>(which));
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
    PERCID_HIDDEN report(report &&) noexcept = default;
    PERCID_HIDDEN report &operator=(report &&) noexcept = default;
    PERCID_HIDDEN ~report() = default;

    [[nodiscard]] PERCID_HIDDEN numa::totals totals() const noexcept
    {
        numa::totals found{};
        percid_report_totals(report_.get(), &found, sizeof found);
        return found;
    }

    /* The nodes that have memory, ascending. */
    [[nodiscard]] PERCID_HIDDEN std::vector<std::uint32_t> nodes() const
    {
        std::vector<std::uint32_t> found(percid_report_nodes(report_.get(), nullptr, 0));
        percid_report_nodes(report_.get(), found.data(), found.size());
        return found;
    }

    /* Those without CPUs that the balancer moves memory to and from, ascending. */
    [[nodiscard]] PERCID_HIDDEN std::vector<std::uint32_t> slow_nodes() const
    {
        std::vector<std::uint32_t> found(percid_report_slow_nodes(report_.get(), nullptr, 0));
        percid_report_slow_nodes(report_.get(), found.data(), found.size());
        return found;
    }

    /* How many regions there are, by ascending address. */
    [[nodiscard]] PERCID_HIDDEN std::size_t regions() const noexcept
    {
        return percid_report_regions(report_.get());
    }

    [[nodiscard]] PERCID_HIDDEN std::optional<numa::figures> region(std::size_t index) const noexcept
    {
        numa::figures found{};
        const int result = percid_report_region(report_.get(), index, &found, sizeof found);
        return result == 0 ? std::optional<numa::figures>(found) : std::nullopt;
    }

    /* The pages of a region on each node that has any. */
    [[nodiscard]] PERCID_HIDDEN std::vector<on_node> pages(std::size_t index) const
    {
        return list<on_node>(percid_report_pages, index);
    }

    /* How much each node has used a region of late. */
    [[nodiscard]] PERCID_HIDDEN std::vector<on_node> use(std::size_t index) const
    {
        return list<on_node>(percid_report_use, index);
    }

    /* The pages of a region that could not be looked up, armed or moved, by errno. */
    [[nodiscard]] PERCID_HIDDEN std::vector<failure> failures(std::size_t index) const
    {
        return list<failure>(percid_report_failures, index);
    }

    /* How often a region was left out for a reason. */
    [[nodiscard]] PERCID_HIDDEN std::uint64_t skipped(std::size_t index, skip_reason which) const noexcept
    {
        return percid_report_skipped(report_.get(), index, static_cast<int>(which));
    }

    /* Which part of the time that the process's threads have run passes have taken, from 0 to 1. */
    [[nodiscard]] PERCID_HIDDEN double scan_share() const noexcept
    {
        return percid_report_scan_share(report_.get());
    }

    /* Which part of the accesses that were seen in a region were local; nothing if none was. */
    [[nodiscard]] PERCID_HIDDEN std::optional<double> local_share(std::size_t index) const noexcept
    {
        double share = 0;
        const int result = percid_report_local_share(report_.get(), index, &share);
        return result == 0 ? std::optional<double>(share) : std::nullopt;
    }

    /* Which part of the pages of a region is on a node, from 0 to 1. */
    [[nodiscard]] PERCID_HIDDEN double share_on(std::size_t index, std::uint32_t node) const noexcept
    {
        return percid_report_share_on(report_.get(), index, node);
    }

private:
    friend class balancer;

    PERCID_HIDDEN report() noexcept = default;

    template <class T>
    PERCID_HIDDEN_INLINE std::vector<T> list(std::size_t (*of)(const percid_report *, std::size_t, T *, std::size_t),
                        std::size_t index) const
    {
        std::vector<T> found(of(report_.get(), index, nullptr, 0));
        of(report_.get(), index, found.data(), found.size());
        return found;
    }

    detail::owned<percid_report> report_;
};

/* Keeps the memory of its regions near the threads that use it. Regions may outlive it, and are
 * then left alone. */
class balancer {
public:
    /* With the published constants and all fixes, or these settings. Fails without memory for it,
     * or for settings that cannot be used. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN explicit balancer(const settings &chosen = settings())
    {
        detail::check(percid_balancer_create(balancer_.place(), &chosen), "percid::numa::balancer");
    }
#endif
    PERCID_HIDDEN balancer(const settings &chosen, std::error_code &error) noexcept
    {
        error = detail::error_of(percid_balancer_create(balancer_.place(), &chosen));
    }

    PERCID_HIDDEN balancer(balancer &&) noexcept = default;
    PERCID_HIDDEN balancer &operator=(balancer &&) noexcept = default;
    PERCID_HIDDEN ~balancer() = default;

    /* Whether there is anything to balance: several nodes with memory. */
    [[nodiscard]] PERCID_HIDDEN bool has_nodes() const noexcept
    {
        return percid_balancer_has_nodes(balancer_.get()) == 1;
    }

    /* Starts a thread that makes passes and moves pages by itself. Fails if there can be none. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN void start()
    {
        detail::check(percid_balancer_start(balancer_.get()), "percid::numa::balancer::start");
    }
#endif
    PERCID_HIDDEN void start(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_balancer_start(balancer_.get()));
    }

    /* Ends that thread and waits for it. */
    PERCID_HIDDEN void stop() noexcept
    {
        percid_balancer_stop(balancer_.get());
    }

    /* Lets other processes request its report until it is destroyed, as `percid numa report` does.
     * Fails without a descriptor, memory or a thread for it, and in a child of fork(). */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN void publish()
    {
        detail::check(percid_balancer_publish(balancer_.get()), "percid::numa::balancer::publish");
    }
#endif
    PERCID_HIDDEN void publish(std::error_code &error) noexcept
    {
        error = detail::error_of(percid_balancer_publish(balancer_.get()));
    }

    /* Makes a pass on behalf of the calling thread. */
    PERCID_HIDDEN numa::passed pass() noexcept
    {
        numa::passed done{};
        percid_balancer_pass(balancer_.get(), &done);
        return done;
    }

    /* Moves a batch of the pages that are to move. */
    PERCID_HIDDEN numa::batch move_batch() noexcept
    {
        numa::batch done{};
        percid_balancer_move_batch(balancer_.get(), &done);
        return done;
    }

    /* Takes up to `most` of the decisions that were not taken yet, the oldest first; none if
     * another thread is taking some. May throw std::bad_alloc. */
    PERCID_HIDDEN std::vector<event> take_events(std::size_t most = 4096)
    {
        std::vector<event> events(most);
        const std::int64_t count = percid_balancer_take_events(balancer_.get(), events.data(), events.size());
        events.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return events;
    }

    /* What was done and seen so far. Fails if the balancer was moved from. */
#if PERCID_EXCEPTIONS
    [[nodiscard]] PERCID_HIDDEN numa::report report() const
    {
        numa::report made;
        detail::check(percid_report_create(made.report_.place(), balancer_.get()), "percid::numa::report");
        return made;
    }
#endif
    [[nodiscard]] PERCID_HIDDEN numa::report report(std::error_code &error) const noexcept
    {
        numa::report made;
        error = detail::error_of(percid_report_create(made.report_.place(), balancer_.get()));
        return made;
    }

private:
    friend class region;
    friend class id_regions;
    friend class pool_regions;

    detail::owned<percid_balancer> balancer_;
};

/* Memory that a balancer looks after for as long as this object lives. */
class region {
public:
    /* Registers memory of whole pages. Fails for what percid_region_error() says. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN region(balancer &by, const void *start, std::size_t bytes, numa::access how = numa::access::reported)
    {
        const int result = add(by, start, bytes, how);
        const char *const why = percid_region_error(result);
        detail::check(result, why == nullptr ? "percid::numa::region" : why);
    }
#endif
    PERCID_HIDDEN region(balancer &by, const void *start, std::size_t bytes, numa::access how,
                         std::error_code &error) noexcept
    {
        error = detail::error_of(add(by, start, bytes, how));
    }

    PERCID_HIDDEN region(region &&) noexcept = default;
    PERCID_HIDDEN region &operator=(region &&) noexcept = default;
    PERCID_HIDDEN ~region() = default;

    /* Says that the calling thread uses the memory at that offset from the start, in bytes.
     * Async-signal-safe. */
    PERCID_HIDDEN void touch(std::size_t offset) noexcept
    {
        percid_region_touch(region_.get(), offset);
    }

    /* Says that the calling thread uses all of it. Async-signal-safe. */
    PERCID_HIDDEN void touch_all() noexcept
    {
        percid_region_touch_all(region_.get());
    }

    [[nodiscard]] PERCID_HIDDEN void *start() const noexcept
    {
        return percid_region_start(region_.get());
    }

    [[nodiscard]] PERCID_HIDDEN std::size_t bytes() const noexcept
    {
        return percid_region_bytes(region_.get());
    }

    [[nodiscard]] PERCID_HIDDEN numa::access access() const noexcept
    {
        return static_cast<numa::access>(percid_region_access(region_.get()));
    }

private:
    friend class exclusion;

    PERCID_HIDDEN int add(balancer &by, const void *start, std::size_t bytes, numa::access how) noexcept
    {
        switch (how) {
        case numa::access::trapped:
            return percid_region_register_trapped(region_.place(), by.balancer_.get(), start, bytes);
        case numa::access::written:
            return percid_region_register_written(region_.place(), by.balancer_.get(), start, bytes);
        case numa::access::reported:
            break;
        }
        return percid_region_register(region_.place(), by.balancer_.get(), start, bytes);
    }

    detail::owned<percid_region> region_;
};

/* The memory of all IDs of a source, where all structures have their copies, for as long as this
 * object lives. IDs that come later are not in it. */
class id_regions {
public:
    /* Fails for what percid_region_error() says. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN id_regions(balancer &by, source which)
    {
        detail::check(add(by, which), "percid::numa::id_regions");
    }
#endif
    PERCID_HIDDEN id_regions(balancer &by, source which, std::error_code &error) noexcept
    {
        error = detail::error_of(add(by, which));
    }

    PERCID_HIDDEN id_regions(id_regions &&) noexcept = default;
    PERCID_HIDDEN id_regions &operator=(id_regions &&) noexcept = default;
    PERCID_HIDDEN ~id_regions() = default;

    /* Says that the calling thread uses the memory of the ID that it has now; once per period is
     * enough. Async-signal-safe. */
    PERCID_HIDDEN void touch() noexcept
    {
        percid_id_regions_touch(regions_.get());
    }

    /* The addresses of an ID's regions; none if it did not exist when they were registered. May
     * throw std::bad_alloc. */
    [[nodiscard]] PERCID_HIDDEN std::vector<range> of_id(std::uint32_t id) const
    {
        std::vector<range> found(percid_id_regions_of_id(regions_.get(), id, nullptr, 0));
        percid_id_regions_of_id(regions_.get(), id, found.data(), found.size());
        return found;
    }

private:
    PERCID_HIDDEN int add(balancer &by, source which) noexcept
    {
        return percid_id_regions_register(regions_.place(), by.balancer_.get(), static_cast<int>(which));
    }

    detail::owned<percid_id_regions> regions_;
};

/* The memory of the objects that a pool has by now, for as long as this object lives; the pool may
 * go before. */
class pool_regions {
public:
    /* Fails for what percid_region_error() says. */
#if PERCID_EXCEPTIONS
    template <class T, class Place>
    PERCID_HIDDEN_INLINE pool_regions(balancer &by, const basic_pool<T, Place> &pool)
    {
        detail::check(add(by, pool.pool_.get()), "percid::numa::pool_regions");
    }
#endif
    template <class T, class Place>
    PERCID_HIDDEN_INLINE pool_regions(balancer &by, const basic_pool<T, Place> &pool,
                                        std::error_code &error) noexcept
    {
        error = detail::error_of(add(by, pool.pool_.get()));
    }

    PERCID_HIDDEN pool_regions(pool_regions &&) noexcept = default;
    PERCID_HIDDEN pool_regions &operator=(pool_regions &&) noexcept = default;
    PERCID_HIDDEN ~pool_regions() = default;

    /* Says that the calling thread uses an object, by an address in it; of a large one, once for
     * every page. Other addresses are ignored. Async-signal-safe. */
    PERCID_HIDDEN void touch(const void *object) noexcept
    {
        percid_pool_regions_touch(regions_.get(), object);
    }

    /* The addresses of the regions, ascending. May throw std::bad_alloc. */
    [[nodiscard]] PERCID_HIDDEN std::vector<range> ranges() const
    {
        std::vector<range> found(percid_pool_regions_ranges(regions_.get(), nullptr, 0));
        percid_pool_regions_ranges(regions_.get(), found.data(), found.size());
        return found;
    }

private:
    PERCID_HIDDEN int add(balancer &by, const percid_pool *pool) noexcept
    {
        return percid_pool_regions_register(regions_.place(), by.balancer_.get(), pool);
    }

    detail::owned<percid_pool_regions> regions_;
};

/* A part of a trapped region stays accessible for as long as this object lives, for system calls.
 * It may outlive the region. */
class exclusion {
public:
    /* Fails if the part is not in the region, and then excludes nothing. */
#if PERCID_EXCEPTIONS
    PERCID_HIDDEN exclusion(region &of, std::size_t offset, std::size_t bytes)
        : region_(of.region_.get()), offset_(offset), bytes_(bytes)
    {
        detail::check(percid_region_exclude_begin(region_, offset, bytes), "percid::numa::exclusion");
    }
#endif
    PERCID_HIDDEN exclusion(region &of, std::size_t offset, std::size_t bytes, std::error_code &error) noexcept
        : region_(of.region_.get()), offset_(offset), bytes_(bytes)
    {
        error = detail::error_of(percid_region_exclude_begin(region_, offset, bytes));
        if (error) {
            region_ = nullptr;
        }
    }

    exclusion(const exclusion &) = delete;
    exclusion &operator=(const exclusion &) = delete;

    PERCID_HIDDEN ~exclusion()
    {
        if (region_ != nullptr) {
            percid_region_exclude_end(region_, offset_, bytes_);
        }
    }

private:
    percid_region *region_;
    std::size_t offset_;
    std::size_t bytes_;
};

} // namespace numa

} // namespace percid

#undef PERCID_HIDDEN
#undef PERCID_HIDDEN_INLINE
#undef PERCID_EXCEPTIONS
#undef PERCID_REQUIRES

#pragma GCC visibility pop

#endif
