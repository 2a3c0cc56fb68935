/*
 * percid.h: per-CPU data for user space, on any 64-bit Linux.
 *
 *     static percid_counter requests = PERCID_COUNTER_INIT;
 *
 *     percid_counter_add(&requests, 1);         // on any thread, in any signal handler
 *     printf("%" PRId64 "\n", percid_counter_sum(&requests));
 *
 *     cc program.c $(pkg-config --cflags --libs percid)
 *
 * Every CPU that runs the program gets its own copy of the program's data, so that an update takes
 * no locked instruction. Each copy belongs to a concurrency ID: a small integer that a running
 * thread holds, and no two running threads of a process hold at the same time.
 *
 *     counter     added to by all threads      histogram   of values, with quantiles
 *     stack       of pointers                  pool        of objects of one size
 *     local       a value for any function     ring        of byte records
 *     mask        which IDs have work to do   numa        memory that follows its threads
 *     memory      of each ID, for structures of your own
 *     rwlock      read by many             domain      of readers that are waited for (RCU)
 *     budget      that is never exceeded
 *     family      counters, gauges and histograms by labels
 *     registry    of families, and the page that Prometheus reads of them
 *
 * What holds everywhere, unless a function says otherwise:
 *
 * Errors    Functions that can fail return an int (or int64_t where they count): 0 or more is
 *           success, anything below is an errno value with a minus sign. errno itself is left
 *           alone. No function throws or jumps, and what a caller does wrong is answered as far as
 *           that is cheap to see.
 * Pointers  A pointer is NULL or points to what its type says, for as long as the call lasts. NULL
 *           is answered by -EINVAL where there is an answer, by 0 or by doing nothing where there
 *           is not.
 * Names     percid_<type>_<verb>, where the type is what the function works on, or the structure that
 *           it reads: percid_counter_add(), percid_machine_read(). What concerns the whole process
 *           has no type: percid_init(), percid_version(), percid_reason(), percid_current_id(),
 *           percid_compact_ids(), percid_set_id_limit(), and the fences. What shall be made comes first.
 * Handles   percid_stack, percid_pool, percid_local, percid_ring, percid_mask, percid_memory,
 *           percid_rwlock, percid_domain, percid_budget, percid_balancer, percid_registry and
 *           percid_family are made by percid_..._create(), percid_region by
 *           percid_region_register(), percid_consumer by percid_consumer_open(); these handles are
 *           no addresses. One that was destroyed is recognised forever and answered by -EBADF, one
 *           of another type by -EINVAL.
 * Static    percid_stack, percid_pool, percid_local, percid_ring, percid_mask and percid_memory may have
 *           static storage instead: initialised by PERCID_..._INIT, handed to functions by their address.
 *           Such an object costs nothing until it is used, may be used before main() and after
 *           exit() was called, and is never destroyed: it must not be moved, copied, or go away.
 *           Arguments that percid_..._create() would refuse are answered by -EINVAL, or NULL, when
 *           it is used.
 * Callbacks are given the `argument` of the call. They may call functions of the library, on the
 *           same object too; what would wait for itself, or destroy the object, answers -EDEADLK.
 *           One may end its thread (pthread_exit(), pthread_cancel()), throw (C++), or leave by
 *           longjmp(), but the latter two not with musl: then the call ends with it. The value that
 *           it had is as it left it, for whoever comes next; what it was handed (an item, a record,
 *           a member) is its own, and what was not handed out stays. With glibc the end of a thread
 *           is an unwinding: it must not meet `noexcept`, or `catch (...)` without `throw;`.
 *           A function deferred in a domain must return: any thread may be the one that calls it.
 * Cancelling  No function is a cancellation point, also when it waits, but for what its callbacks
 *           do. A thread with PTHREAD_CANCEL_ASYNCHRONOUS must not call any.
 * Memory    Where there is none, functions say so, by -ENOMEM or as they describe. Most that call
 *           malloc() ask first for 120 KiB, more than they need. They end the process as abort()
 *           does if other threads, or a process with thousands of mappings or threads, leave less
 *           of that than they do need; and so do percid_ring_poll(), percid_consumer_next(),
 *           percid_pool_drain(), percid_pool_slabs(), ends of objects, and a balancer's own threads
 *           when malloc() has less than a few ten KiB left.
 * Threads   Every function may be called by any number of threads at once, on the same object too.
 *           Only creating and destroying an object excludes every other use of it.
 * Signals   "Async-signal-safe" functions may be called in a signal handler that interrupts
 *           anything, themselves included, and do not wait.
 * Fork      A child has the values of its parent, on memory of its own. A child of vfork() must not
 *           call any of this, nor threads that were made by clone() behind the C library's back.
 * dlclose   A shared library that uses these functions, or contains the static percid library, stays
 *           loaded: it sees to that itself when it is loaded, by dladdr() and dlopen(). Threads keep a
 *           pointer to the last critical section that they ran, and the kernel reads it whenever one
 *           of them returns to the program: it ends the process if nothing is there. With -z nodelete
 *           a library stays in any case. What was compiled with PERCID_NO_INLINE, and uses
 *           libpercid.so, may be unloaded.
 * Copies    There may be several copies of percid in a process, of several versions: in the program,
 *           beside it, in plugins. Each module gets everything from one of them, because these
 *           headers refer to one symbol, percid_interface_1; the dynamic linker decides which, as it
 *           does for what C++ inline functions share. An object belongs to the copy that has made it
 *           or used it first. Functions of another copy refuse it: -EXDEV, or 0 or nothing where
 *           there is no error to answer, and one line on standard error. What is inline does not
 *           look at that: call a function of the module that has the object. Functions that a module
 *           finds by name, with dlsym() for instance, are those of the library that has the name.
 * Versions  A program runs with any later version of the library. With an older one, functions that
 *           it does not have answer -ENOSYS, or 0 or nothing, and one line on standard error.
 *
 * This file is generated from the library's source: changes belong there.
 */

/* Whatever is the default where this file is included; undone at its end. */
#pragma GCC visibility push(default)

#ifndef PERCID_H
#define PERCID_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
#error "percid.h needs C99 or later"
#elif defined(__cplusplus) && __cplusplus < 201103L
#error "percid.h needs C++11 or later (and percid.hpp C++17)"
#endif

/** The version of this header; percid_version() says that of the library. */
#define PERCID_VERSION_MAJOR 0
#define PERCID_VERSION_MINOR 1
#define PERCID_VERSION_PATCH 0

/*
 * Every function is inline, and calls the library through a table (percid_interface.h): so a module
 * gets all of them from the same copy of percid, if there are several. In C++ they are hidden, so
 * that a module does not get another's; what calls them inline has to be hidden too.
 */
#if defined(__cplusplus)
#define PERCID_INLINE inline __attribute__((visibility("hidden")))
#define PERCID_NOEXCEPT noexcept
#else
#define PERCID_INLINE static inline
#define PERCID_NOEXCEPT
#endif
#define PERCID_MUST_USE __attribute__((warn_unused_result))

/** A counter of value 0, for a static or any other initialisation. */
#define PERCID_COUNTER_INIT {0}

/** An empty histogram, for a static or any other initialisation. */
#define PERCID_HISTOGRAM_INIT {0}

/** How far a value that a snapshot reports can be from the recorded one, as a share of it. */
#define PERCID_HISTOGRAM_RELATIVE_ERROR (1.0 / 128)

/** The fewest bytes of a ring. */
#define PERCID_RING_MIN_BYTES 128

/** The most bytes of a ring: 8 MiB. */
#define PERCID_RING_MAX_BYTES 8388608

/** How many label sets a family may have if its settings do not say. */
#define PERCID_FAMILY_LIMIT 2000

/** Any number. */
#define PERCID_UNBOUNDED SIZE_MAX

/** An object's alignment: on cache lines of its own. */
#define PERCID_ALIGNED(bytes) __attribute__((aligned(bytes)))

/** A stack of static storage that keeps up to `capacity` items for every ID (1 to 2 097 151), and
 *  any number in the shared list. */
#define PERCID_STACK_INIT(capacity) PERCID_STACK_INIT_BOUNDED(capacity, PERCID_UNBOUNDED)

/** The same with about `shared` items in the shared list. */
#define PERCID_STACK_INIT_BOUNDED(capacity, shared) {0, (capacity), (shared), {0}}

/** A pool of static storage, of objects of `size` bytes that are aligned to `align` bytes. It keeps
 *  up to `capacity` idle objects for every ID, and any number that IDs share. */
#define PERCID_POOL_INIT(size, align, capacity) \
    PERCID_POOL_INIT_BOUNDED(size, align, capacity, PERCID_UNBOUNDED)

/** The same with about `shared` idle objects that IDs share: see percid_pool_create_bounded(). */
#define PERCID_POOL_INIT_BOUNDED(size, align, capacity, shared) \
    {0, (capacity), (shared), {0}, 0, (size), (align), {0}}

/** A local of static storage: what the arguments are, percid_local_create() says. */
#define PERCID_LOCAL_INIT(size, align, make, drop, context) \
    {0, {0}, (size), (align), (make), (drop), (context), {0}}

/** A ring of static storage, of `bytes` bytes for every ID. */
#define PERCID_RING_INIT(bytes, overflow) {0, (bytes), (overflow), {0}}

/** A mask of static storage, without members. */
#define PERCID_MASK_INIT {{0}, {0}}

/** Memory of static storage: what the arguments are, percid_memory_create() says. */
#define PERCID_MEMORY_INIT(size, align, init, context) \
    {0, (size), (align), (init), (context), (align) <= 8 ? (size) : 0, {0}}

/** The offset of a member of a value, or of an item of a list, for the operations on memory. Does not
 *  compile unless the member has 8 bytes that are aligned to 8: `PERCID_FIELD(struct traffic, packets)`. */
#define PERCID_FIELD(type, member) \
    (offsetof(type, member) + 0 * sizeof(char[PERCID_IS_WORD(type, member) ? 1 : -1]))
#define PERCID_IS_WORD(type, member) (PERCID_SIZE_OF(type, member) == 8 && offsetof(type, member) % 8 == 0)
#if defined(__cplusplus)
#define PERCID_SIZE_OF(type, member) sizeof(static_cast<type *>(nullptr)->member)
#else
#define PERCID_SIZE_OF(type, member) sizeof(((type *)0)->member)
#endif


/**
 * The sources of concurrency IDs. The numbers are fixed.
 */
typedef enum percid_source {
    /**
     * The kernel's own: `mm_cid` of the rseq area (Linux 6.3 and later).
     */
    PERCID_SOURCE_KERNEL = 1,
    /**
     * percid's table from CPU to ID (Linux 5.10 and later).
     */
    PERCID_SOURCE_TABLE = 2,
    /**
     * No IDs: the CPU number is a mere hint, and every update is one atomic instruction.
     */
    PERCID_SOURCE_ATOMIC = 3,
} percid_source;

/**
 * The reason why the process uses the source that percid_init() returns. The numbers are fixed.
 */
typedef enum percid_selection_reason {
    /**
     * The environment variable PERCID_SOURCE requests it.
     */
    PERCID_SELECTION_REASON_REQUESTED = 1,
    /**
     * The table works here: the default.
     */
    PERCID_SELECTION_REASON_TABLE_AVAILABLE = 2,
    /**
     * The table does not work here; percid_source_unavailable() returns the reason.
     */
    PERCID_SELECTION_REASON_TABLE_UNAVAILABLE = 3,
    /**
     * Another thread, or the code that this signal handler interrupted, is currently selecting the
     * source.
     */
    PERCID_SELECTION_REASON_SELECTING = 4,
    /**
     * It is not known yet if the kernel aborts critical sections; a later use tries again.
     */
    PERCID_SELECTION_REASON_PROBE_INCONCLUSIVE = 5,
    /**
     * A reason for which this version of the interface has no number.
     */
    PERCID_SELECTION_REASON_OTHER = 6,
} percid_selection_reason;

/**
 * The reason why a source cannot be used. The numbers are fixed.
 */
typedef enum percid_source_error {
    /**
     * It can be used.
     */
    PERCID_SOURCE_ERROR_NONE = 0,
    /**
     * No registered rseq area: see `registration` in percid_machine.
     */
    PERCID_SOURCE_ERROR_NO_RSEQ = 1,
    /**
     * The rseq area holds no mm_cid: a kernel before Linux 6.3.
     */
    PERCID_SOURCE_ERROR_NO_KERNEL_IDS = 2,
    /**
     * The rseq area is shared with another library: in threads that are not registered its mm_cid
     * is 0.
     */
    PERCID_SOURCE_ERROR_SHARED_AREA = 3,
    /**
     * The kernel has no fence for critical sections: a kernel before Linux 5.10.
     */
    PERCID_SOURCE_ERROR_NO_MEMBARRIER = 4,
    /**
     * The kernel has the fence, but refuses it to this process.
     */
    PERCID_SOURCE_ERROR_MEMBARRIER_REFUSED = 5,
    /**
     * The kernel does not abort critical sections when it must, so updates would be lost.
     */
    PERCID_SOURCE_ERROR_SECTIONS_NOT_ABORTED = 6,
    /**
     * The time of a first use was too short to determine if the kernel aborts critical sections.
     * The next use tries again, longer.
     */
    PERCID_SOURCE_ERROR_SECTIONS_NOT_PROBED = 7,
    /**
     * A child process was refused, which is needed to determine if the kernel aborts critical
     * sections.
     */
    PERCID_SOURCE_ERROR_PROBE_REFUSED = 8,
    /**
     * The memory for the table, or for the shards of all structures, is not available.
     */
    PERCID_SOURCE_ERROR_NO_MEMORY = 9,
    /**
     * A reason for which this version of the interface has no number.
     */
    PERCID_SOURCE_ERROR_OTHER = 10,
} percid_source_error;

/**
 * The component that registers the threads of this process for restartable sequences (rseq).
 */
typedef enum percid_registration {
    /**
     * The C library registers every thread when it starts.
     */
    PERCID_REGISTRATION_LIBC = 1,
    /**
     * percid registers each thread at its first need, because the C library does not.
     */
    PERCID_REGISTRATION_PERCID = 2,
    /**
     * A library of the program defines the thread-local area __rseq_abi, and percid shares it.
     * Only PERCID_SOURCE_TABLE works then.
     */
    PERCID_REGISTRATION_SHARED = 3,
    /**
     * Another library has registered its own area, which cannot be found, and a thread has only
     * one.
     */
    PERCID_REGISTRATION_OCCUPIED = 4,
    /**
     * The kernel refuses.
     */
    PERCID_REGISTRATION_REFUSED = 5,
    /**
     * percid has no critical sections for this architecture.
     */
    PERCID_REGISTRATION_UNSUPPORTED = 6,
    /**
     * A value for which this version of the interface has no number.
     */
    PERCID_REGISTRATION_OTHER = 7,
} percid_registration;

/**
 * The way in which the kernel updates a registered rseq area.
 */
typedef enum percid_rseq_mode {
    /**
     * No area is registered.
     */
    PERCID_RSEQ_MODE_NONE = 0,
    /**
     * The only mode of a kernel that announces at most 32 bytes.
     */
    PERCID_RSEQ_MODE_SINGLE = 1,
    /**
     * 32 bytes are registered with a kernel that announces more: it rewrites all IDs at every
     * switch, for libraries that rely on it.
     */
    PERCID_RSEQ_MODE_COMPATIBLE = 2,
    /**
     * More than 32 bytes are registered: IDs are written when they change, and a process that
     * writes to one of the kernel's fields is killed.
     */
    PERCID_RSEQ_MODE_FAST = 3,
    /**
     * A value for which this version of the interface has no number.
     */
    PERCID_RSEQ_MODE_OTHER = 4,
} percid_rseq_mode;

/**
 * The fields of an rseq area, as bits.
 */
typedef enum percid_rseq_field {
    /**
     * cpu_id_start
     */
    PERCID_RSEQ_FIELD_CPU_ID_START = 1,
    /**
     * cpu_id
     */
    PERCID_RSEQ_FIELD_CPU_ID = 2,
    /**
     * rseq_cs
     */
    PERCID_RSEQ_FIELD_RSEQ_CS = 4,
    /**
     * flags
     */
    PERCID_RSEQ_FIELD_FLAGS = 8,
    /**
     * node_id (Linux 6.3)
     */
    PERCID_RSEQ_FIELD_NODE_ID = 16,
    /**
     * mm_cid (Linux 6.3)
     */
    PERCID_RSEQ_FIELD_MM_CID = 32,
} percid_rseq_field;

/**
 * The behaviour of a kernel's own IDs, PERCID_SOURCE_KERNEL.
 */
typedef enum percid_generation {
    /**
     * The kernel has none.
     */
    PERCID_GENERATION_NONE = 0,
    /**
     * Linux 6.3: the first free ID at every switch into the process; nothing is remembered.
     */
    PERCID_GENERATION_FIRST_FREE = 1,
    /**
     * Linux 6.4 to 6.12: a CPU keeps its ID for a while, but gets another one after every pause.
     */
    PERCID_GENERATION_CACHE_COLD = 2,
    /**
     * Linux 6.13: cache-local, but not dense any more after the number of threads or allowed CPUs
     * has decreased.
     */
    PERCID_GENERATION_NOT_COMPACTING = 3,
    /**
     * Linux 6.14 to 6.18: cache-local and dense.
     */
    PERCID_GENERATION_CACHE_LOCAL = 4,
    /**
     * Linux 6.19 and later: an ID belongs to a thread or to a CPU, and may exceed the density
     * bound.
     */
    PERCID_GENERATION_OWNED = 5,
    /**
     * A value for which this version of the interface has no number.
     */
    PERCID_GENERATION_OTHER = 6,
} percid_generation;

/**
 * Verdict on the kernel's aborts of critical sections.
 */
typedef enum percid_verdict {
    /**
     * There were too few decided rounds.
     */
    PERCID_VERDICT_UNDECIDED = 0,
    /**
     * The kernel aborted critical sections often enough, in each kind of round.
     */
    PERCID_VERDICT_GOOD = 1,
    /**
     * The kernel ignored an event that must abort a critical section, so updates would be lost.
     */
    PERCID_VERDICT_BAD = 2,
} percid_verdict;

/**
 * The effect of appending a record to a full ring.
 */
typedef enum percid_overflow {
    /**
     * The new record is lost.
     */
    PERCID_OVERFLOW_DROP_NEWEST = 1,
    /**
     * The oldest records are lost: an eighth of the ring at a time.
     */
    PERCID_OVERFLOW_OVERWRITE_OLDEST = 2,
} percid_overflow;

/**
 * The set of published fixes in a balancer's scan. The numbers are fixed.
 */
typedef enum percid_scan_rules {
    /**
     * Linux 6.4 to 6.6, before the published series: a region that the scanning thread does not
     * use may never be scanned.
     */
    PERCID_SCAN_RULES_BASE = 1,
    /**
     * The published series (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
     */
    PERCID_SCAN_RULES_SELECTIVE = 2,
    /**
     * The series and the later fixes, as in Linux 6.12. The default.
     */
    PERCID_SCAN_RULES_FIXED = 3,
} percid_scan_rules;

/**
 * The order of a scan's visits. The numbers are fixed.
 */
typedef enum percid_scan_order {
    /**
     * The order of addresses, from the end of the last pass, as in Linux.
     */
    PERCID_SCAN_ORDER_ADDRESS = 1,
    /**
     * The order of use: first regions that the scanning thread uses, then those that several
     * threads use, then those that any thread uses, then one region without users. No kernel does
     * this.
     */
    PERCID_SCAN_ORDER_ACTIVITY = 2,
} percid_scan_order;

/**
 * The method by which a balancer detects the threads that use a region. The numbers are fixed.
 */
typedef enum percid_access {
    /**
     * The program reports accesses, by percid_region_touch().
     */
    PERCID_ACCESS_REPORTED = 1,
    /**
     * Page faults: armed pages have no access rights.
     */
    PERCID_ACCESS_TRAPPED = 2,
    /**
     * Write protection: a thread that writes to an armed page waits until the access is recorded;
     * reads are not detected.
     */
    PERCID_ACCESS_WRITTEN = 3,
} percid_access;

/**
 * The type of an event. The numbers are fixed; later versions may add some.
 */
typedef enum percid_balancer_event_kind {
    /**
     * A pass begins: `thread`, `sequence`.
     */
    PERCID_BALANCER_EVENT_KIND_PASS = 1,
    /**
     * A region was left out, or was not (PERCID_SKIP_REASON_IGNORE_PID_INACTIVE): `region`,
     * `reason`.
     */
    PERCID_BALANCER_EVENT_KIND_SKIPPED = 2,
    /**
     * A part of a region was armed: `region`, `start`, `end`, `pages`.
     */
    PERCID_BALANCER_EVENT_KIND_ARMED = 3,
    /**
     * Pages were moved: `region`, `pages`, `failed`.
     */
    PERCID_BALANCER_EVENT_KIND_MOVED = 4,
    /**
     * The memory of a region is not mapped any more, or other memory is mapped there. From now on
     * the region is ignored: `region`.
     */
    PERCID_BALANCER_EVENT_KIND_GONE = 5,
    /**
     * Another SIGSEGV handler has replaced percid's: trapped regions are not armed.
     */
    PERCID_BALANCER_EVENT_KIND_HANDLER_REPLACED = 6,
    /**
     * The mappings of the process could not be read: this pass armed nothing.
     */
    PERCID_BALANCER_EVENT_KIND_MAPPINGS_UNREADABLE = 7,
} percid_balancer_event_kind;

/**
 * The reason why a region was not scanned, or, for the last one, why it was. The numbers are
 * fixed.
 */
typedef enum percid_skip_reason {
    /**
     * Its pages cannot migrate, or a memory policy places them.
     */
    PERCID_SKIP_REASON_UNSUITABLE = 1,
    /**
     * A file's pages that cannot be written.
     */
    PERCID_SKIP_REASON_SHARED_RO = 2,
    /**
     * It has no access rights, so no access can be detected.
     */
    PERCID_SKIP_REASON_INACCESSIBLE = 3,
    /**
     * It is too new.
     */
    PERCID_SKIP_REASON_SCAN_DELAY = 4,
    /**
     * It was already scanned in this scan cycle.
     */
    PERCID_SKIP_REASON_SEQ_COMPLETED = 5,
    /**
     * The scanning thread has not used it recently.
     */
    PERCID_SKIP_REASON_PID_INACTIVE = 6,
    /**
     * The same, but its scan had begun and is completed.
     */
    PERCID_SKIP_REASON_IGNORE_PID_INACTIVE = 7,
} percid_skip_reason;

/**
 * The type of a family's series. The numbers are fixed.
 */
typedef enum percid_metric {
    /**
     * Counters of events: percid_counter.
     */
    PERCID_METRIC_COUNTER = 1,
    /**
     * Sums of floats that only grow: percid_float_counter.
     */
    PERCID_METRIC_FLOAT_COUNTER = 2,
    /**
     * Values that increase and decrease: percid_gauge.
     */
    PERCID_METRIC_GAUGE = 3,
    /**
     * Histograms: percid_buckets.
     */
    PERCID_METRIC_BUCKETS = 4,
} percid_metric;

/**
 * A text format of pages. The numbers are fixed.
 */
typedef enum percid_format {
    /**
     * Prometheus' own, version 0.0.4.
     */
    PERCID_FORMAT_TEXT = 1,
    /**
     * OpenMetrics 1.0.
     */
    PERCID_FORMAT_OPEN_METRICS = 2,
} percid_format;

/**
 * Moves memory to the threads that use it, on machines with several nodes (NUMA): the pages of
 * registered regions move to the nodes of their users. Needs no privileges, and does not depend on
 * the machine-wide switch.
 *
 * It regularly *arms* pages of its regions, so that the next access to each is detected. A page
 * that is used from another node twice in a row moves there. Every decision is counted by region
 * and reason.
 *
 * Threads: any number of threads may use it at once. Pages are moved by the balancer's own thread,
 * which percid_balancer_start() starts, or by the caller of percid_balancer_move_batch(). A thread
 * of the program that faults or maps memory during that time waits for at most one batch.
 * Signals: percid_region_touch(), percid_region_touch_all(), percid_id_regions_touch(),
 * percid_pool_regions_touch() and access to registered memory are async-signal-safe; the rest is
 * not. The balancer's own thread blocks all signals.
 * Fork: a child has all of the memory. Its balancer does nothing, faults at pages that were armed
 * are caught, and its regions may be unregistered. To balance the child, create another balancer.
 * Cost: with one node nothing is armed, mapped, started or caught. With several nodes about 0.2 us
 * for every page that is armed, and less than 3 % of the total time that the process's threads
 * run; a copy for every page that moves.
 * Memory: 6.6 bytes per page, or per 64 KiB of trapped memory, and 4 KiB; none with one node. Leak
 * checkers do not follow handles: unregister regions and destroy the balancer before they count.
 */
typedef struct percid_balancer percid_balancer;

/**
 * Counts of values in buckets with upper limits chosen by the program, and their exact sum: a
 * series of a family, on a page a histogram.
 *
 * A limit belongs to its bucket, like `le`. A value that is not a number belongs to the last
 * bucket, and makes the sum not a number.
 *
 * Threads: any number of threads may use it at once. Count and sum change in one step.
 * Signals: recording is async-signal-safe and leaves errno alone; reading is not.
 * Memory: for every ID that used it about 24 bytes and 8 for each limit, rounded up to a power of
 * two.
 */
typedef struct percid_buckets percid_buckets;

/**
 * A number of units, such as bytes of memory, that is charged and released by many threads and
 * never exceeded, not by one unit.
 *
 * Made by percid_budget_create().
 *
 * Threads: any number of threads may use it at once. A thread may release what another one has
 * charged.
 * Exactness: the units that are charged and not released are never more than the limit. A charge
 * is refused if there is no room for it, or if other threads move credits at that moment.
 * Waiting: nothing waits as long as there is room. A charge without room waits for another thread
 * that collects the credits of the IDs.
 * Signals: not in a signal handler.
 * Fork: the child has a copy, in which all units are still charged.
 * Memory: about 200 bytes, and 16 bytes for every ID that used it. If there is none for an ID, its
 * threads charge a shared number.
 * Cost: as long as an ID has credit, a charge is a call and one conditional store in a section, and
 * a second one if the thread used another budget in between; a release is one addition. Near the
 * limit both are an atomic operation on a shared word. A charge without room runs a fence of all
 * CPUs, about 10 us for every 64 IDs, if some ID has credit.
 */
typedef struct percid_budget percid_budget;

/**
 * The held consumer of a ring: percid_consumer_next() fetches one record after the other.
 *
 * Threads: a consumer may be passed from one thread to another, and is used by one at a time.
 * While it is open, percid_ring_poll() returns -EBUSY.
 * Fork: the child has a copy, with which it may continue to read its copy of the records; then it
 * must not open another one. If a thread of the parent was in percid_consumer_next(), the record
 * that it was fetching may be missed, and the child's copy begins a new round.
 * Memory: about a hundred bytes, and as many as the longest record that it has fetched.
 */
typedef struct percid_consumer percid_consumer;

/**
 * Readers that are waited for: read-copy-update, in the shape of the kernel's SRCU.
 *
 * Made by percid_domain_create(). A reader is between percid_domain_read_lock() and
 * percid_domain_read_unlock(). percid_domain_synchronize() waits until every reader that was inside
 * when it was called has left, so that what was removed before is used by nobody.
 *
 * Threads: any number of threads may use it at once. No thread registers. Threads may end at any
 * time, but not inside: a reader that never leaves is waited for forever.
 * Nesting: a thread may be inside several times, also of several domains, and another thread may
 * end what it began. A thread that synchronizes, flushes or defers while it is inside waits for
 * itself, forever.
 * Waiting: readers never wait. While percid_domain_synchronize() waits for readers, it sleeps up to
 * a millisecond between two looks at them.
 * Signals: percid_domain_read_lock() and percid_domain_read_unlock() are async-signal-safe. The
 * rest is not.
 * Fork: in the child, readers that were other threads of the parent never leave; if there were any,
 * percid_domain_synchronize() waits forever. Functions that wait are copied, as all memory is.
 * Memory: about 250 bytes, 16 bytes for every ID that used it, and about 50 bytes for every
 * function that waits, whose number is limited.
 * Cost: entering and leaving are two calls, and two additions as those of a counter.
 * percid_domain_synchronize() runs one fence of all CPUs, about 10 us, and reads two words of each
 * ID. Threads that call it at the same time share its work.
 */
typedef struct percid_domain percid_domain;

/**
 * The series of one metric, distinguished by the values of its labels; created by
 * percid_family_create().
 *
 * percid_family_counter() and the similar functions find the series with the given values, or
 * create it. The stored pointer is valid until the registry is destroyed: a program that knows the
 * values beforehand looks the series up once and keeps the pointer.
 *
 * Cost: values that this CPU has used before are found in memory of this CPU, by their hash and a
 * comparison, without a locked instruction: about 30 ns for two short values. Others are looked up
 * in a map, under a lock.
 * Limit: the settings limit the number of series. One more series contains everything beyond the
 * limit: its labels all have the settings' overflow value. So nothing is lost, and a client that
 * always sends new values does not fill a server's memory.
 * Threads: any number of threads may use it at once.
 * Signals: not for signal handlers. A stored series may be used there as its type permits.
 * Fork: stored series count in the child. In the child of a process that had several threads,
 * looking up values that are new to a CPU, and making a page, may wait forever: another thread may
 * have held the lock.
 * Memory: for each series about 150 bytes, its values, and the memory of its type; for each ID
 * that looked it up about 100 bytes more, for at most 8192 series.
 */
typedef struct percid_family percid_family;

/**
 * A sum of floats that only grows, such as seconds: a series of a family.
 *
 * Every CPU adds to its own memory. Each CPU's sum is rounded as floats are, and so is their
 * total.
 *
 * Threads: any number of threads may use it at once.
 * Signals: adding is async-signal-safe and leaves errno alone.
 */
typedef struct percid_float_counter percid_float_counter;

/**
 * A value that can be set, increased and decreased: a series of a family.
 *
 * Threads: any number of threads may use it at once. A change that runs at the same time as
 * percid_gauge_set() is applied before or after it, and never partially.
 * Signals: percid_gauge_add() is async-signal-safe and leaves errno alone; the rest is not.
 * Cost: additions go to memory of the CPU. Setting takes a lock, because all threads set the same
 * value.
 */
typedef struct percid_gauge percid_gauge;

/**
 * The memory of all IDs of a source, which contains their parts of all structures, as regions of a
 * balancer, from percid_id_regions_register() to percid_id_regions_unregister().
 *
 * Such memory is on the node where it was first used. An ID stays with its CPU, but not forever: a
 * thread that moves to another node and takes over an ID there uses counters on a remote node.
 *
 * Threads: any number of threads may use it at once.
 * Signals: percid_id_regions_touch() is async-signal-safe; the rest is not.
 * Fork: in the child no page is armed any more.
 */
typedef struct percid_id_regions percid_id_regions;

/**
 * The memory of a pool's objects as regions of a balancer, from percid_pool_regions_register() to
 * percid_pool_regions_unregister().
 *
 * Threads: any number of threads may use it at once.
 * Signals: percid_pool_regions_touch() is async-signal-safe; the rest is not.
 * Fork: in the child no page is armed any more.
 */
typedef struct percid_pool_regions percid_pool_regions;

/**
 * Memory that a balancer manages, from percid_region_register() to percid_region_unregister().
 *
 * Threads: any number of threads may use it at once.
 * Signals: percid_region_touch() and percid_region_touch_all() are async-signal-safe and leave errno
 * alone; the rest is not.
 * Fork: in the child no page is armed anew. One that was armed is disarmed when it is touched.
 * Memory: 6.6 bytes per page, or per 64 KiB of trapped memory, and 4 KiB; none with one node.
 */
typedef struct percid_region percid_region;

/**
 * The metrics of one page: families, and the page that a server shows of them.
 *
 *     percid_registry_create(&registry);
 *     percid_family_create(&requests, registry, &settings, sizeof settings);
 *     percid_family_counter(requests, (const char *[]){"GET", "200"}, 2, &counter);
 *     percid_counter_add(counter, 1);
 *     length = percid_registry_render(registry, PERCID_FORMAT_TEXT, page, sizeof page);
 *
 * Threads: any number of threads may use it at once. Updates never wait for a page.
 * Signals: not for signal handlers.
 * Fork: the same as for percid_family.
 */
typedef struct percid_registry percid_registry;

/**
 * The actions and observations of a balancer until some time. A report belongs to its creator, and
 * does not change; any number of threads may read it.
 */
typedef struct percid_report percid_report;

/**
 * A readers-writer lock for data that is read often and written rarely. Reading touches memory of
 * the running thread's ID only, so readers on different CPUs do not slow each other down.
 *
 * Made by percid_rwlock_create().
 *
 * Threads: any number of threads may use it at once. There is one writer or any number of readers.
 * A thread may release what another thread has locked, for reading and for writing.
 * Waiting: readers wait for a writer, and for one that waits before them; a writer that ends admits
 * all readers that wait. A writer waits for the readers inside, and for other writers. So no side
 * starves the other. Threads that wait sleep. A thread that locks for reading twice waits forever
 * if a writer comes in between, and so does one that locks for writing while it has the lock.
 * Order: what a thread did before it released the lock is visible to threads that lock it later, if
 * one of both was a writer.
 * Signals: not in a signal handler. The last reader takes a mutex if a writer waits.
 * Fork: in the child, what other threads of the parent had locked is never released. A writer waits
 * forever if one of them was reading, and all wait if one was writing.
 * Memory: about 200 bytes, and 8 bytes for every ID that used it. If there is no memory for an ID's
 * word, its readers share one.
 * Cost: a lock and unlock for reading are two calls, two additions as those of a counter, and two
 * loads of a word that only writers change. A writer runs one fence of all CPUs, about 10 us, and
 * reads a word of each ID; it runs none if another writer hands the lock over to it.
 */
typedef struct percid_rwlock percid_rwlock;

/**
 * The content of a histogram at one time: 29.5 KiB that belong to the caller.
 *
 * Functions that change a snapshot must not run at the same time as others on the same one.
 */
typedef struct percid_snapshot percid_snapshot;

/**
 * The numbers of a thread, as the kernel keeps them in its rseq area: hints, since the thread may be
 * moved at any time. The structure may grow.
 */
typedef struct percid_kernel_numbers {
    /**
     * The CPU that runs the thread (`cpu_id`).
     */
    int cpu;
    /**
     * The NUMA node of that CPU (`node_id`); -1 before Linux 6.3.
     */
    int node;
    /**
     * The concurrency ID (`mm_cid`); -1 before Linux 6.3, and in an area that is shared with another
     * library. PERCID_SOURCE_KERNEL uses it, and tells when it cannot be trusted.
     */
    int mm_cid;
} percid_kernel_numbers;

/**
 * All properties that percid's choices depend on. The structure may grow.
 */
typedef struct percid_machine {
    /**
     * The kernel's release, such as "6.18.44"; empty if unknown.
     */
    char kernel_release[72];
    /**
     * The processor's name from /proc/cpuinfo; empty if it has none.
     */
    char cpu_model[128];
    /**
     * The architecture that the library was built for, such as "x86_64".
     */
    char arch[16];
    /**
     * The component that registers the threads: one of enum percid_registration.
     */
    int registration;
    /**
     * The kernel's errno if `registration` is PERCID_REGISTRATION_REFUSED, otherwise 0.
     */
    int registration_error;
    /**
     * Number of bytes that are registered for the calling thread; 0 if none.
     */
    uint32_t rseq_registered_size;
    /**
     * The kernel's way to update them: one of enum percid_rseq_mode.
     */
    int rseq_mode;
    /**
     * The fields that are live in the registered area: bits of enum percid_rseq_field.
     */
    uint32_t rseq_fields;
    /**
     * The size of the fields that this kernel fills, in bytes; 0 on kernels that do not report it.
     */
    uint32_t rseq_feature_size;
    /**
     * The alignment that this kernel requires for larger areas, in bytes; 0 on kernels that do not
     * report it.
     */
    uint32_t rseq_align;
    /**
     * The largest size and alignment, in bytes, of an area that percid registers itself.
     */
    uint32_t rseq_max_own_size;
    /**
     * The bit mask of commands that membarrier() reports; 0 if the kernel has none.
     */
    uint32_t membarrier_commands;
    /**
     * 1 if the commands include the private expedited rseq flavour, which aborts critical
     * sections.
     */
    int membarrier_rseq;
    /**
     * 1 if that flavour can fence a single CPU.
     */
    int membarrier_per_cpu;
    /**
     * The expected behaviour of the kernel's own IDs for its release: one of enum
     * percid_generation. It is a hint: distributions backport scheduler changes to older releases.
     */
    int generation;
    /**
     * Number of CPUs that may ever exist.
     */
    uint32_t possible_cpus;
    /**
     * The largest number of a CPU that may ever exist.
     */
    uint32_t last_possible_cpu;
    /**
     * Number of CPUs on which the calling thread may run.
     */
    uint32_t allowed_cpus;
} percid_machine;

/**
 * One CPU and its position in the topology. The structure may grow.
 */
typedef struct percid_cpu {
    /**
     * The kernel's number of the CPU.
     */
    uint32_t number;
    /**
     * 1 if the calling thread may run on it.
     */
    int allowed;
    /**
     * The smallest CPU of its core; -1 if the kernel does not report it, for instance if the CPU
     * is unplugged.
     */
    int32_t core;
    /**
     * The smallest CPU that shares its last-level cache, or -1.
     */
    int32_t l3;
    /**
     * The number of its NUMA node, or -1.
     */
    int32_t node;
} percid_cpu;

/**
 * Outcomes of the rounds of one kind.
 */
typedef struct percid_probe_counts {
    /**
     * Rounds in which the critical section was aborted, as required.
     */
    uint64_t aborted;
    /**
     * Rounds in which the critical section continued without an abort: a kernel bug.
     */
    uint64_t ignored;
    /**
     * Undecided rounds: the thread was moved, or nothing happened in time.
     */
    uint64_t undecided;
} percid_probe_counts;

/**
 * Result of a probe of the kernel. The structure may grow.
 */
typedef struct percid_probe_report {
    /**
     * Fences of all CPUs.
     */
    struct percid_probe_counts fences;
    /**
     * Fences of the critical section's CPU only.
     */
    struct percid_probe_counts fences_of_one_cpu;
    /**
     * Preemptions on the critical section's CPU.
     */
    struct percid_probe_counts preemptions;
    /**
     * The verdict: one of enum percid_verdict.
     */
    int verdict;
    /**
     * Always 0.
     */
    int reserved;
} percid_probe_report;

/**
 * Statistics of the slow path of percid's table in this process. The structure may grow.
 *
 * The difference of two of these, taken a second apart, shows the cost of IDs for a program whose
 * threads move between CPUs: a slow path takes 1 us or less, a steal from a CPU that runs the
 * process about 10 us. A child of fork() starts at zero.
 */
typedef struct percid_table_stats {
    /**
     * IDs assigned to CPUs that had none: the slow paths that succeeded.
     */
    uint64_t assigned;
    /**
     * The assigned IDs that were stolen from another CPU, with a fence of that CPU.
     */
    uint64_t stolen;
    /**
     * IDs that were evicted because they had expired or were above the bound.
     */
    uint64_t evicted;
    /**
     * Fences of all CPUs for evictions.
     */
    uint64_t eviction_fences;
    /**
     * IDs currently held by CPUs.
     */
    uint32_t ids_held;
    /**
     * The current limit of IDs: new IDs are below it.
     */
    uint32_t id_bound;
} percid_table_stats;

/**
 * A range of addresses.
 */
typedef struct percid_range {
    /**
     * The first address.
     */
    void *start;
    /**
     * Number of bytes.
     */
    size_t bytes;
} percid_range;

/**
 * A signed 64-bit counter that every CPU updates in its own memory.
 *
 * It is valid when all its bytes are zero: initialise it with PERCID_COUNTER_INIT, statically or
 * otherwise, or with calloc(). It may be moved (but not copied) while no thread uses it.
 *
 * Threads: any number of threads may use it at once. An increment is never lost and never counted
 * twice.
 * Signals: everything but percid_counter_destroy() is async-signal-safe and leaves errno alone.
 * Fork: the child's counter starts with the parent's value, on its own memory.
 * Overflow: values wrap around at 64 bits (at 60 bits for a counter that found no memory for IDs).
 * Memory: these 8 bytes, and 8 bytes for every ID that used it, page by page.
 */
typedef struct percid_counter {
    /**
     * Private to the library.
     */
    uint64_t word;
} percid_counter;

/**
 * A histogram of unsigned 64-bit values that every CPU updates in its own memory.
 *
 * Values below 128 have a bucket each; above that there are 64 buckets between two powers of two.
 * The reported value is the middle of the bucket, at most 1/128 of the value away from it.
 *
 * It is valid when all its bytes are zero: initialise it with PERCID_HISTOGRAM_INIT, or with
 * calloc(). It may be moved (but not copied) while no thread uses it.
 *
 * Threads: any number of threads may use it at once. A record is never lost and never counted
 * twice.
 * Signals: recording is async-signal-safe and leaves errno alone; the rest is not.
 * Fork: the child's histogram starts with the parent's counts, on its own memory.
 * Memory: these 8 bytes, and address space for 3776 buckets (29.5 KiB) for every ID. Only touched
 * pages cost memory: values within a factor of 256 touch one or two.
 */
typedef struct percid_histogram {
    /**
     * Private to the library.
     */
    uint64_t word;
} percid_histogram;

/**
 * A bucket of a snapshot.
 */
typedef struct percid_bucket {
    /**
     * The smallest value of the bucket.
     */
    uint64_t low;
    /**
     * The largest value of the bucket.
     */
    uint64_t high;
    /**
     * Number of values in the bucket.
     */
    uint64_t count;
} percid_bucket;

/**
 * A list of pointers, last in, first out, with a separate shard for every CPU.
 *
 * Made by percid_stack_create(), or of static storage: `static percid_stack free_list =
 * PERCID_STACK_INIT(64);`.
 *
 * A CPU pops the items that it pushed, while they are in its cache, without a locked instruction.
 * A CPU whose shard is full moves a batch of up to 30 items to a list that all CPUs share; one
 * whose shard is empty fetches a batch from there.
 *
 * Threads: any number of threads may use it at once. No item is lost or handed out twice.
 * Signals: pushing and popping is async-signal-safe; the rest is not.
 * Fork: the child has a copy of everything except the items that other threads of the parent were
 * moving.
 * Memory: 256 bytes; 8 * (capacity + 1) bytes for every ID that used it, rounded up to a power of
 * two; 256 bytes for every 30 items of the shared list. Leak checkers do not scan this memory:
 * drain a stack before they count.
 */
typedef struct PERCID_ALIGNED(64) percid_stack {
    /**
     * Private to the library.
     */
    uint64_t word;
    /**
     * Maximum number of items of every ID.
     */
    uint64_t capacity;
    /**
     * Approximate maximum number of items in the shared list.
     */
    size_t shared;
    /**
     * Private to the library.
     */
    uint64_t rest[29];
} percid_stack;

/**
 * A pool of objects of one size, some of which every CPU keeps for itself.
 *
 * Made by percid_pool_create(), or of static storage: `static percid_pool pages =
 * PERCID_POOL_INIT(4096, 4096, 64);`.
 *
 * The next percid_pool_get() on this CPU returns the object that was put last, which is still in
 * the CPU's cache. Every object has a header of 16 bytes before it, which is checked: an object
 * that is put twice, into another pool, or after its pool was destroyed, is refused. (Two threads
 * that put one object at the very same time are not detected.)
 *
 * Threads: any number of threads may use it at once, and put objects that others got. No object is
 * returned to two users.
 * Signals: getting and putting is async-signal-safe; the rest is not.
 * Fork: the child has copies of the objects, in its own pool, except of those that other threads
 * of the parent were moving.
 * Memory: slabs of 64 KiB, or the multiple of that which eight objects need, from the kernel,
 * whose pages cost memory when they are touched. They are freed when a drain finds all objects of
 * a slab idle, and with the pool; their address space stays.
 */
typedef struct PERCID_ALIGNED(64) percid_pool {
    /**
     * Private to the library.
     */
    uint64_t word;
    /**
     * Maximum number of idle objects of every ID.
     */
    uint64_t capacity;
    /**
     * Approximate maximum number of idle objects that IDs share.
     */
    size_t shared;
    /**
     * Private to the library.
     */
    uint64_t idle[29];
    /**
     * The number that identifies the pool's objects.
     */
    uint64_t number;
    /**
     * The size of an object.
     */
    size_t size;
    /**
     * Its alignment.
     */
    size_t align;
    /**
     * Private to the library.
     */
    uint64_t rest[5];
} percid_pool;

/**
 * A value for every CPU that requests one, which any function may use.
 *
 * Made by percid_local_create(), or of static storage: `static percid_local hits =
 * PERCID_LOCAL_INIT(sizeof(struct hits), 8, NULL, NULL, NULL);`.
 *
 * percid_local_with() passes the CPU's value to a function under a lock that takes no locked
 * instruction, and so do percid_local_acquire() and percid_local_release(). The other functions
 * access all values, and interrupt the CPUs for a moment by a fence.
 *
 * Threads: any number of threads may use it at once. No two callbacks ever have the same value at
 * the same time.
 * Value: a thread gets the value of its current CPU, and keeps it to the end of the callback, even
 * if it moves. If another user has that value (a thread that was preempted inside its callback, or
 * the caller itself further up its stack), the thread gets an extra one, which is made if needed.
 * There are at most as many extra values as callbacks were ever active at the same time.
 * Signals: percid_local_with() is async-signal-safe if its callback is, and if the value exists
 * already; a new one is allocated by malloc().
 * Fork: the child has a copy of every value. Values that other threads of the parent were using
 * are lost to it: percid_local_with() uses others. The first call of the other functions waits
 * about a second for each of them, unless the child has one thread only, and skips them. Values
 * that the forking thread was using are available again when it releases them.
 * Memory: 320 bytes, and memory for every ID that used it and for every extra value. The latter is
 * the size of a value, rounded up to a multiple of 128 bytes, and 128 bytes (or its alignment, if
 * that is more); for an extra value it is at least a page. Leak checkers do not scan this memory:
 * drain before they count.
 */
typedef struct PERCID_ALIGNED(64) percid_local {
    /**
     * Private to the library.
     */
    uint64_t word;
    /**
     * Private to the library.
     */
    uint64_t values[31];
    /**
     * The size of a value.
     */
    size_t size;
    /**
     * Its alignment.
     */
    size_t align;
    /**
     * Initialises a zeroed value, if zeros are not enough.
     */
    int (*make)(void *value, void *context);
    /**
     * Called before the memory of a value is freed.
     */
    void (*drop)(void *value, void *context);
    /**
     * The argument of both functions.
     */
    void *context;
    /**
     * Private to the library.
     */
    uint64_t rest[3];
} percid_local;

/**
 * A ring of byte records for every CPU, drained by one consumer at a time.
 *
 * Made by percid_ring_create(), or of static storage: `static percid_ring events =
 * PERCID_RING_INIT(65536, PERCID_OVERFLOW_OVERWRITE_OLDEST);`.
 *
 * Threads: any number of threads may append at once.
 * Order: records of one ID are delivered in the order in which they were appended. Between IDs
 * there is no order, and a thread that moves to another CPU appends to another ID's ring: add a
 * time to the record if order matters.
 * Loss: a record is delivered once or counted as lost once.
 * Signals: appending is async-signal-safe and does not wait; the rest is not.
 * Fork: the child has a copy of the records that were not consumed yet.
 * Memory: 128 bytes; for every ID that used it 192 bytes and the part of the ring that was ever
 * written, page by page.
 */
typedef struct PERCID_ALIGNED(64) percid_ring {
    /**
     * Private to the library.
     */
    uint64_t word;
    /**
     * Number of bytes of every ID.
     */
    uint64_t capacity;
    /**
     * The effect of appending to a full ring: one of enum percid_overflow.
     */
    uint32_t overflow;
    /**
     * Private to the library.
     */
    uint32_t rest[27];
} percid_ring;

/**
 * A record in the form that the consumer receives.
 */
typedef struct percid_event {
    /**
     * The ID whose ring contained it; -1 if it was appended without one.
     */
    int64_t id;
    /**
     * Its number among the records of this ID: gaps are lost records.
     */
    uint64_t number;
    /**
     * The appended bytes, aligned to 8: valid until the callback returns, or the next call for the
     * consumer.
     */
    const void *bytes;
    /**
     * Number of bytes.
     */
    size_t length;
} percid_event;

/**
 * The set of IDs that have data to flush: a cache that is not empty, a pending batch, a pinned
 * epoch.
 *
 * Made by percid_mask_create(), or of static storage: `static percid_mask active =
 * PERCID_MASK_INIT;`.
 *
 * Order: store the data that the mark announces before percid_mask_mark(). Then a drain that
 * begins after that call has returned visits the ID and finds the data, unless another drain has
 * taken the mark, which then finds it. Data that is published while a drain runs is marked for the
 * next one. Stale marks are possible and cost an unnecessary visit. No ID is visited that is
 * larger than all that were ever marked. If the memory for IDs from 512 on is refused, every drain
 * visits all of them up to the largest marked one, and they are members for
 * percid_mask_is_marked().
 * Threads: any number of threads may use it at once.
 * Signals: marking is async-signal-safe and leaves errno alone; draining is if its callback is.
 * Fork: the child's mask is the parent's, except for members that another thread of the parent had
 * removed and not visited yet.
 * Memory: 192 bytes; 1 KiB more once an ID of 512 or more is marked.
 */
typedef struct PERCID_ALIGNED(64) percid_mask {
    /**
     * Private to the library: a bit for each of the first 512 IDs.
     */
    uint64_t marked[8];
    /**
     * Private to the library.
     */
    uint64_t rest[16];
} percid_mask;

/**
 * A value of the program's own type for every ID that uses one, and operations on its 64-bit
 * words: per-ID data for structures of your own.
 *
 * Made by percid_memory_create(), or of static storage: `static percid_memory traffic =
 * PERCID_MEMORY_INIT(sizeof(struct traffic), 8, NULL, NULL);`.
 *
 * An operation reads and writes words of the running thread's value in one critical section: it
 * is done as a whole, with the ID's value to itself, or not at all. No locked instruction is
 * needed. Words are `uint64_t`, `int64_t` or pointers; they are named by their offset, as in
 * `offsetof(struct traffic, packets)`. Read them by `__atomic_load_n(&value->packets,
 * __ATOMIC_ACQUIRE)`. Only operations and visits change a value, the latter by __atomic_store_n()
 * where others read.
 *
 * Threads: any number of threads may use it at once. Two operations on one value never overlap.
 * An operation may use another value than the one before, since a thread may move; each stores the
 * address of the value that it worked on.
 * Value: an operation works on a value that belongs to no ID if it was interrupted or moved eight
 * times in a row, if the thread can have no ID, or if its ID's value is being visited.
 * percid_memory_next() and percid_memory_for_each() include these values.
 * Waiting: operations do not wait.
 * Signals: operations are async-signal-safe if `init` is, and leave errno alone;
 * percid_memory_create(), percid_memory_for_each() and percid_memory_destroy() are not.
 * Fork: the child has a copy of every value. Values that other threads of the parent were making
 * or visiting are lost to it.
 * Memory: 64 bytes; for every ID that used it the size of a value and 8 bytes (or its alignment,
 * if that is more), rounded up to a power of two; at least a page for each value without an ID.
 * Values of several objects share an ID's cache lines.
 * Cost: an addition about 25 instructions, two of them stores, none locked; with
 * PERCID_SOURCE_ATOMIC a locked instruction. Inline on x86-64, if values are aligned to 8 bytes or
 * less; otherwise a call.
 */
typedef struct PERCID_ALIGNED(64) percid_memory {
    /**
     * Private to the library.
     */
    uint64_t word;
    /**
     * The size of a value.
     */
    size_t size;
    /**
     * Its alignment.
     */
    size_t align;
    /**
     * Initialises a zeroed value, if zeros are not enough.
     */
    void (*init)(void *value, void *context);
    /**
     * The argument of the function.
     */
    void *context;
    /**
     * The size again, if operations may be inline; otherwise 0.
     */
    size_t inline_size;
    /**
     * Private to the library.
     */
    uint64_t rest[2];
} percid_memory;

/**
 * The value that an operation worked on, and the words that it has seen there.
 */
typedef struct percid_outcome {
    /**
     * The value; NULL if nothing was changed.
     */
    void *value;
    /**
     * The word `field` before the operation.
     */
    uint64_t seen;
    /**
     * The other word of percid_memory_store_if_both(), if `field` was as expected but that was
     * not; otherwise 0.
     */
    uint64_t other;
} percid_outcome;

/**
 * The constants and rules of a balancer, filled by percid_balancer_settings_init() and then
 * changed as required.
 *
 * Later versions may add members at the end. The defaults of the scan's members are the published
 * values (Linux 6.7, commits 9ae5c00ea2e6 to ef4e0604996f).
 */
typedef struct percid_balancer_settings {
    /**
     * The size of this structure in bytes, which percid_balancer_settings_init() stores. Do not
     * change it.
     */
    size_t size;
    /**
     * Age at which a new region is scanned first, in nanoseconds; 1 s.
     */
    uint64_t scan_delay_ns;
    /**
     * Maximum amount that a pass arms, in bytes; 256 MiB. It may examine eight times as much.
     */
    uint64_t scan_size;
    /**
     * The shortest time in which all regions together are scanned once, in nanoseconds; 1 s.
     */
    uint64_t period_min_ns;
    /**
     * The longest such time, in nanoseconds; 60 s.
     */
    uint64_t period_max_ns;
    /**
     * Maximum amount to arm per second, in bytes; 2560 MiB.
     */
    uint64_t max_rate;
    /**
     * Maximum amount that one system call moves, in bytes: during the call, threads of the program
     * may have to wait for a page fault or their own mapping. 8 MiB, percid's own value.
     */
    uint64_t batch;
    /**
     * Approximate maximum time for which one system call moves pages, in nanoseconds: earlier
     * calls determine the number of pages, at least 64 KiB. 10 ms, percid's own value.
     */
    uint64_t batch_time_ns;
    /**
     * Maximum amount to move per second, in bytes; 2560 MiB, percid's own value.
     */
    uint64_t bandwidth;
    /**
     * Not 0: pages that were moved before need longer evidence to be moved again. 1, percid's own
     * addition.
     */
    int backoff;
    /**
     * Number of bits in the sets of recent threads of a region: 64, as published, or 128.
     */
    int width;
    /**
     * The order in which regions are visited: one of enum percid_scan_order;
     * PERCID_SCAN_ORDER_ADDRESS.
     */
    int order;
    /**
     * Not 0: windows of activity end also for regions that the scanning thread does not use. 1.
     * This and the following five members are the rules of the scan, which
     * percid_balancer_settings_set_rules() sets as in Linux.
     */
    int window_before_test;
    /**
     * Not 0: no region is scanned twice in a scan cycle. 1.
     */
    int once_per_sequence;
    /**
     * Not 0: a region whose scan has begun is completed by any thread. 1.
     */
    int complete_partial;
    /**
     * Not 0: if regions were left out because the scanning thread does not use them, one of them
     * is scanned nevertheless. 1.
     */
    int scan_one_inactive;
    /**
     * Not 0: activity does not count in the region's own first two scan cycles, instead of the
     * process's. 1.
     */
    int per_region_cycles;
    /**
     * Not 0: a region that was left out for more scan cycles than there are threads is scanned. 1.
     */
    int scan_starved;
    /**
     * Not 0: unused memory is demoted, that is moved to the nearest node without CPUs. Memory that
     * is used there soon after it was armed is promoted, that is moved to the node of the thread
     * that uses it. 0.
     */
    int tiers;
    /**
     * With `tiers`: memory that was armed for this time and not used is demoted, in nanoseconds;
     * 120 s. With a year, which is the maximum, nothing is demoted.
     */
    uint64_t cold_after_ns;
    /**
     * With `tiers`: memory that is used sooner than this time after it was armed is promoted, in
     * nanoseconds; 1 s. The balancer changes it, up to twice the value, so that the promotion rate
     * is close to its limit. With 0 nothing is promoted.
     */
    uint64_t hot_threshold_ns;
    /**
     * With `tiers`: maximum amount to promote per second, and to demote per second, in bytes; 128
     * MiB, percid's own value.
     */
    uint64_t tiers_rate;
} percid_balancer_settings;

/**
 * Result of a pass.
 */
typedef struct percid_pass {
    /**
     * Pages that were armed.
     */
    uint64_t armed;
    /**
     * Regions that were left out.
     */
    uint64_t skipped;
    /**
     * Duration of the pass in nanoseconds.
     */
    uint64_t took_ns;
} percid_pass;

/**
 * Result of a batch of pages.
 */
typedef struct percid_batch {
    /**
     * Pages that were moved.
     */
    uint64_t moved;
    /**
     * Pages that could not be moved; the report contains them by errno.
     */
    uint64_t failed;
    /**
     * 1 if more migrations are pending, otherwise 0.
     */
    int more;
} percid_batch;

/**
 * A decision of a balancer, or the result of one. Members that its kind does not name are 0. Later
 * versions may add kinds, but no members.
 */
typedef struct percid_balancer_event {
    /**
     * One of enum percid_balancer_event_kind.
     */
    int kind;
    /**
     * One of enum percid_skip_reason.
     */
    int reason;
    /**
     * The address at which the region starts.
     */
    uint64_t region;
    /**
     * The first address of the part.
     */
    uint64_t start;
    /**
     * The address after the part.
     */
    uint64_t end;
    /**
     * Number of pages that were moved, or that were armed and were not armed before.
     */
    uint64_t pages;
    /**
     * Number of pages that could not be moved.
     */
    uint64_t failed;
    /**
     * Number of finished scan cycles over all regions.
     */
    int64_t sequence;
    /**
     * The thread for which the pass is made, by the number that gettid() returns.
     */
    uint32_t thread;
    /**
     * Always 0.
     */
    uint32_t reserved;
} percid_balancer_event;

/**
 * The total actions of a balancer. Later versions may add members at the end.
 */
typedef struct percid_balancer_totals {
    /**
     * Number of finished scan cycles over all regions.
     */
    int64_t sequence;
    /**
     * Number of passes.
     */
    uint64_t passes;
    /**
     * Number of passes that armed nothing because the process's mappings could not be read.
     */
    uint64_t unreadable_passes;
    /**
     * The current time from one pass to the next, in nanoseconds.
     */
    uint64_t period_ns;
    /**
     * Total duration of the passes, in nanoseconds.
     */
    uint64_t scan_time_ns;
    /**
     * Total time for moving pages, in nanoseconds.
     */
    uint64_t move_time_ns;
    /**
     * Time since the balancer was created, in nanoseconds.
     */
    uint64_t age_ns;
    /**
     * Number of threads of the process.
     */
    uint64_t threads;
    /**
     * Number of threads that share a bit of the active-thread sets with another thread.
     */
    uint64_t collisions;
    /**
     * Events that were lost because they were not taken in time.
     */
    uint64_t events_lost;
} percid_balancer_totals;

/**
 * Actions and observations in a region. Later versions may add members at the end.
 */
typedef struct percid_region_figures {
    /**
     * The start of the region.
     */
    void *start;
    /**
     * The size of the region in bytes.
     */
    size_t bytes;
    /**
     * The access method: one of enum percid_access.
     */
    int access;
    /**
     * 1 if its memory is no longer the registered one, and the region is ignored; otherwise 0.
     */
    int gone;
    /**
     * Pages that have no memory yet.
     */
    uint64_t absent;
    /**
     * First accesses to armed granules (a page, or 64 KiB of trapped memory) by threads on the
     * granule's node.
     */
    uint64_t local_uses;
    /**
     * First accesses by threads on other nodes.
     */
    uint64_t remote_uses;
    /**
     * First accesses by the thread that was recorded there before, or without such a thread.
     */
    uint64_t private_uses;
    /**
     * First accesses by another thread than the one that was recorded there before.
     */
    uint64_t shared_uses;
    /**
     * Number of distinct bits of the threads that used it recently.
     */
    uint64_t active;
    /**
     * Pages that were armed.
     */
    uint64_t scanned;
    /**
     * Pages that were moved.
     */
    uint64_t moved;
    /**
     * Moved pages that went from a node without CPUs to one with CPUs.
     */
    uint64_t promoted;
    /**
     * Moved pages that went to a node without CPUs.
     */
    uint64_t demoted;
    /**
     * Pages with a pending migration.
     */
    uint64_t pending;
    /**
     * Number of times all granules were disarmed because the process had too many mappings.
     */
    uint64_t disarmed_whole;
    /**
     * Accesses to armed memory by threads whose node the kernel did not report.
     */
    uint64_t unattributed;
    /**
     * Time spent on arming, in nanoseconds.
     */
    uint64_t scan_time_ns;
    /**
     * Time spent on moving, in nanoseconds.
     */
    uint64_t move_time_ns;
} percid_region_figures;

/**
 * A count on a node.
 */
typedef struct percid_on_node {
    /**
     * The node.
     */
    uint32_t node;
    /**
     * Always 0.
     */
    uint32_t reserved;
    /**
     * The count.
     */
    uint64_t count;
} percid_on_node;

/**
 * Pages of a region that could not be looked up, armed or moved.
 */
typedef struct percid_region_failure {
    /**
     * The kernel's errno, above 0.
     */
    int error;
    /**
     * Always 0.
     */
    int reserved;
    /**
     * Number of pages.
     */
    uint64_t pages;
} percid_region_failure;

/**
 * Settings of a new family. Members that are zero have the default named here.
 *
 * Later versions may add members at the end.
 */
typedef struct percid_family_settings {
    /**
     * The type of its series: one of enum percid_metric.
     */
    int kind;
    /**
     * The name: letters, digits, underscores and colons, no digit first. On the page a counter's
     * name ends in _total, even if this name does not.
     */
    const char *name;
    /**
     * A description for users; none.
     */
    const char *help;
    /**
     * The unit, such as seconds; none. The name ends in it on the page (before _total), even if
     * `name` does not.
     */
    const char *unit;
    /**
     * The names of the labels: letters, digits and underscores, no digit first, not __ first, and
     * not `le` of a histogram; none. Without labels there is one series, which is on the page at
     * once.
     */
    const char *const *labels;
    /**
     * Number of labels.
     */
    size_t label_count;
    /**
     * Labels that all series have: a name, its value, another name, and so on; none.
     */
    const char *const *constants;
    /**
     * Number of texts: twice the number of constant labels.
     */
    size_t constant_count;
    /**
     * The upper limits of a histogram's buckets, in ascending order, at most 2047. Infinity may be
     * the last one, and is always added. The default is that of Prometheus' clients: from 0.005 to
     * 10.
     */
    const double *limits;
    /**
     * Number of limits.
     */
    size_t limit_count;
    /**
     * Maximum number of series, in addition to the one beyond the limit; PERCID_FAMILY_LIMIT. With
     * PERCID_UNBOUNDED there is no limit, and the source of the values determines the program's
     * memory consumption.
     */
    size_t most;
    /**
     * The value of the labels of the series beyond the limit; "other".
     */
    const char *overflow;
    /**
     * Memory for a sentence: the setting that percid_family_create() refuses, and the allowed
     * values. Empty if it refuses none. None.
     */
    char *why;
    /**
     * Size of that memory in bytes: the text is truncated to fit with a final zero.
     */
    size_t why_size;
} percid_family_settings;

/**
 * Returns the name of a source: "kernel", "table" or "atomic"; NULL if no source has this number.
 *
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE const char *percid_source_name(int source) PERCID_NOEXCEPT;

/**
 * Returns the source with a name: one of enum percid_source; -EINVAL for NULL or another name.
 *
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE int percid_source_by_name(const char *name) PERCID_NOEXCEPT;

/**
 * Prepares the process to use a source, independently of the selected one, and so determines if it
 * can.
 *
 * Returns 0 if it can; -EINVAL if no source has this number; otherwise an error for the reason,
 * which percid_source_unavailable() and percid_source_reason() return: -ENOSYS, -ENOTSUP, -EPERM
 * or another errno of the kernel's, -EAGAIN if the next call may determine more, or -ENOMEM.
 *
 * The first call for PERCID_SOURCE_TABLE registers the process for the kernel's fence: 2 us while
 * the process has one thread, about 20 ms afterwards. After a success it costs a call.
 * Async-signal-safe.
 */
PERCID_INLINE int percid_source_prepare(int source) PERCID_NOEXCEPT;

/**
 * Returns the reason why a source cannot be used: one of enum percid_source_error, which is 0 if it
 * can be used; or -EINVAL if no source has this number. Has the effects of
 * percid_source_prepare().
 */
PERCID_INLINE int percid_source_unavailable(int source) PERCID_NOEXCEPT;

/**
 * Writes one line into `text` that explains why a source cannot be used. It is empty if it can be
 * used, or if no source has this number.
 *
 * Writes at most `size` bytes, the last of them a zero, and returns the length of the whole line
 * without the zero, as percid_reason() does. Has the effects of percid_source_prepare().
 */
PERCID_INLINE size_t percid_source_reason(int source, char *text, size_t size) PERCID_NOEXCEPT;

/**
 * Returns the current ID of the calling thread from a source, independently of the selected one:
 * like percid_current_id(), and -EINVAL if no source has this number.
 *
 * Async-signal-safe; costs about 15 ns once the CPU has an ID.
 */
PERCID_INLINE int percid_source_current_id(int source) PERCID_NOEXCEPT;

/**
 * Returns a number that is above all IDs of a source that the process has ever used; 0 if no
 * source has this number.
 *
 * A program needs at least this many entries for data that it keeps for each ID; another ID may
 * appear at any time. Async-signal-safe; costs a call.
 */
PERCID_INLINE uint32_t percid_source_id_count(int source) PERCID_NOEXCEPT;

/**
 * Returns the version of the library that the program runs with, such as "0.1.0". Never NULL.
 *
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE const char *percid_version(void) PERCID_NOEXCEPT;

/**
 * Selects the source of IDs for this process at the first call; later calls return the same.
 *
 * Every operation that needs a source selects it, so programs need not call this. Calling it early
 * in main(), before threads are started, makes the registration for the kernel's fence cheap: 2 us
 * instead of 20 ms. The environment variable PERCID_SOURCE (kernel, table or atomic) overrides the
 * selection; if the requested source is not available, one line on standard error reports that. A
 * program with more rights than its caller (set-user-ID, file capabilities) ignores it.
 *
 * While another thread (or the code that a signal handler interrupted) is selecting the source,
 * the result is PERCID_SOURCE_ATOMIC; objects that are used in that time lose nothing by it.
 * Async-signal-safe.
 */
PERCID_INLINE enum percid_source percid_init(void) PERCID_NOEXCEPT;

/**
 * Writes one line into `text` that explains why the process uses the source that percid_init()
 * returns.
 *
 * Writes at most `size` bytes, the last of them a zero, and returns the length of the whole line
 * without the zero, as snprintf() does: a line that does not fit is truncated. With `size` 0
 * nothing is written and `text` may be NULL. 512 bytes are enough for every line of this version.
 *
 * Async-signal-safe; costs a microsecond.
 */
PERCID_INLINE size_t percid_reason(char *text, size_t size) PERCID_NOEXCEPT;

/**
 * Returns the reason why the process uses the source that percid_init() returns.
 *
 * Async-signal-safe; costs a call, the first time the cost of percid_init().
 */
PERCID_INLINE enum percid_selection_reason percid_selection_reason_read(void) PERCID_NOEXCEPT;

/**
 * Returns the ID of the calling thread, 0 or more, or -EAGAIN if it can have none at the moment.
 *
 * The ID is a hint: the thread may be moved to another CPU before the caller uses the result, and
 * another thread may have the ID then. It is suitable for selecting among shards that are
 * protected otherwise. With PERCID_SOURCE_ATOMIC it is a recent CPU number.
 *
 * Async-signal-safe; costs about 15 ns once the CPU has an ID.
 */
PERCID_INLINE int percid_current_id(void) PERCID_NOEXCEPT;

/**
 * Stores the numbers of the calling thread in `numbers`, of `size` bytes.
 *
 * Returns 0; -EINVAL for NULL or no bytes; -EAGAIN if the thread has no rseq area. Registers the
 * thread if percid does that for this process. Async-signal-safe; costs a few loads.
 */
PERCID_INLINE int percid_kernel_numbers_read(struct percid_kernel_numbers *numbers, size_t size) PERCID_NOEXCEPT;

/**
 * Makes the process's IDs dense again, on request: evicts IDs at or above min(allowed CPUs,
 * threads), and those that no CPU has renewed for 100 ms. CPUs that still use theirs get one again
 * at their next operation.
 *
 * Returns the number of evicted IDs; always 0 if the source is not PERCID_SOURCE_TABLE, whose IDs
 * are percid's own. Costs one fence of all CPUs, about 10 us. Async-signal-safe.
 */
PERCID_INLINE uint32_t percid_compact_ids(void) PERCID_NOEXCEPT;

/**
 * Sets the number of IDs that there may be while the process's threads move between more CPUs than
 * there are threads.
 *
 * After ten steals per thread within 100 ms, percid assigns extra IDs, up to the number of CPUs
 * visited within 100 ms. They cost memory, and save the time of a steal per move, about 1 us.
 * `most` is a limit for them. UINT32_MAX sets none, which is the default, and 0 keeps the IDs
 * below min(allowed CPUs, threads) at any time. After the threads have not moved for 200 ms, the
 * next request for an ID by any CPU ends the extra ones.
 *
 * The setting holds for the whole process; sources other than PERCID_SOURCE_TABLE ignore it.
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE void percid_set_id_limit(uint32_t most) PERCID_NOEXCEPT;

/**
 * Stores the current properties of the machine and the kernel in `machine`, of `size` bytes.
 *
 * Returns 0, -EINVAL for NULL or no bytes, or -ENOMEM. Reads about ten small files for every
 * possible CPU; registers the calling thread for rseq if the C library has not, and the process
 * for the fence (20 ms if it has several threads); allocates, so it is not async-signal-safe.
 */
PERCID_INLINE int percid_machine_read(struct percid_machine *machine, size_t size) PERCID_NOEXCEPT;

/**
 * Returns the number of CPUs that may ever exist, and writes the first `capacity` of them,
 * ascending, to `cpus`, each in `size` bytes (that is sizeof(percid_cpu)). Returns 0 without
 * memory. With `capacity` 0 nothing is written and `cpus` may be NULL. Costs the same as
 * percid_machine_read().
 */
PERCID_INLINE size_t percid_machine_cpus(struct percid_cpu *cpus, size_t size, size_t capacity) PERCID_NOEXCEPT;

/**
 * Determines if the running kernel aborts critical sections when it must. Tests it for at most
 * this number of milliseconds, and stores the result in `probe`, of `size` bytes.
 *
 * percid does this by itself if architecture and release leave doubt; this function does it on
 * request. A child process (clone() with CLONE_VM, gone at the end) fences or preempts a critical
 * section of the calling thread, a few hundred to a few ten thousand times a second. All signals
 * that can be blocked are blocked for the calling thread during the test.
 *
 * Returns 0; -EINVAL for NULL or no bytes; or the reason why it cannot be tested, as
 * percid_source_prepare() does.
 */
PERCID_INLINE
int percid_machine_probe(uint32_t milliseconds,
                         struct percid_probe_report *probe,
                         size_t size) PERCID_NOEXCEPT;

/**
 * Stores the statistics of percid's table in `stats`, of `size` bytes.
 *
 * Returns 0; -EINVAL for NULL or no bytes; -EAGAIN if PERCID_SOURCE_TABLE has not been used, or
 * another thread is currently using the table. Async-signal-safe; costs a few loads for every
 * possible CPU.
 */
PERCID_INLINE int percid_table_stats_read(struct percid_table_stats *stats, size_t size) PERCID_NOEXCEPT;

/**
 * Returns the number of memory ranges that hold an ID's parts of all structures, for mbind() for
 * instance, and writes the first `capacity` of them to `ranges`. With `capacity` 0 nothing is
 * written and `ranges` may be NULL.
 *
 * With more structures there are more ranges, and the last ones grow; none is removed. An ID that
 * no CPU has had yet has the addresses, but no memory at them. Async-signal-safe; costs a call and
 * a few loads.
 */
PERCID_INLINE size_t percid_id_memory(uint32_t id, struct percid_range *ranges, size_t capacity) PERCID_NOEXCEPT;

/**
 * Handles all cases except the common one of percid_counter_add(): the first use, a CPU without an
 * ID, an aborted critical section, PERCID_SOURCE_ATOMIC. In the common case it does the same as
 * the inline function, by a call, and takes 1 ns more.
 */
PERCID_INLINE void percid_counter_add_slow(struct percid_counter *counter, int64_t n) PERCID_NOEXCEPT;

/**
 * Initialises `counter`, whose old content is ignored, as a counter of value 0 that uses this
 * source, independently of the process's source: for measurements and tests.
 *
 * Returns 0; -EINVAL if `counter` is NULL or no source has this number; -ENOSYS, -ENOTSUP, -EPERM
 * or another negative errno if the machine or a sandbox does not allow the source; -ENOMEM. On
 * error `counter` is unchanged.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_counter_with_source(struct percid_counter *counter,
                               int source) PERCID_NOEXCEPT;

/**
 * Returns the sum over all IDs; 0 for NULL.
 *
 * The sum contains every increment that happens before it, so it is exact after joining threads;
 * it may miss increments that run at the same time. Costs the reading of one word for every ID
 * ever used.
 */
PERCID_INLINE int64_t percid_counter_sum(const struct percid_counter *counter) PERCID_NOEXCEPT;

/**
 * Returns the sum over all IDs, and resets it to zero; 0 for NULL.
 *
 * An increment that runs at the same time is contained either in the result or in the remaining
 * value: the results of all calls and the last sum add up to the total of all increments. Costs
 * the same as a sum.
 */
PERCID_INLINE int64_t percid_counter_take(struct percid_counter *counter) PERCID_NOEXCEPT;

/**
 * Returns the number of IDs, and writes the amounts that the first `capacity` IDs have added to
 * `values`. The rest of the sum is percid_counter_shared(). With `capacity` 0 nothing is written
 * and `values` may be NULL; 0 is returned if `counter` is NULL.
 *
 * Costs the same as a sum.
 */
PERCID_INLINE
size_t percid_counter_per_id(const struct percid_counter *counter,
                             int64_t *values,
                             size_t capacity) PERCID_NOEXCEPT;

/**
 * Returns the amount that was added without an ID, minus the amount that percid_counter_take() has
 * taken from it; 0 for NULL.
 */
PERCID_INLINE int64_t percid_counter_shared(const struct percid_counter *counter) PERCID_NOEXCEPT;

/**
 * Frees the counter's memory and makes it a new counter of value 0. NULL is allowed.
 *
 * No other thread may use the counter during the call: an increment in flight would go to a thread
 * that gets the memory next. Counters that live as long as the process need not be destroyed.
 * Costs the reading of one word for every ID ever used. Not for signal handlers.
 *
 * If the counter was copied, which is not allowed, and a copy was destroyed before, nothing is
 * freed a second time. The copy becomes a new counter, and one line on standard error reports it,
 * once in the process. This is detected only while no other object has the memory. It is not
 * detected if a copy is used after the other was destroyed, or is destroyed when another object
 * has the memory already, which then loses it.
 */
PERCID_INLINE void percid_counter_destroy(struct percid_counter *counter) PERCID_NOEXCEPT;

/**
 * Handles all cases except the common one of percid_histogram_record_many(). In the common case it
 * does the same as the inline function, by a call, and takes 1 ns more.
 */
PERCID_INLINE
void percid_histogram_record_slow(struct percid_histogram *histogram,
                                  uint64_t value,
                                  uint64_t times) PERCID_NOEXCEPT;

/**
 * Initialises `histogram`, whose old content is ignored, as an empty histogram that uses this
 * source, independently of the process's source: for measurements and tests. Returns the same
 * values as percid_counter_with_source().
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_histogram_with_source(struct percid_histogram *histogram,
                                 int source) PERCID_NOEXCEPT;

/**
 * Stores a snapshot of all recorded values in `snapshot`, to be freed by percid_snapshot_free().
 *
 * The snapshot contains every record that happens before it, and may miss those that run at the
 * same time. Returns 0, or -EINVAL for NULL. Costs the reading of 3776 words for every ID ever
 * used.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_histogram_snapshot(const struct percid_histogram *histogram,
                              struct percid_snapshot **snapshot) PERCID_NOEXCEPT;

/**
 * Stores a snapshot like percid_histogram_snapshot(), and removes its content from the histogram:
 * every record is in exactly one of the snapshots taken, or still in the histogram.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_histogram_take(struct percid_histogram *histogram,
                          struct percid_snapshot **snapshot) PERCID_NOEXCEPT;

/**
 * Returns the number of values that were not recorded because the first use found no memory; 0 for
 * NULL.
 */
PERCID_INLINE uint64_t percid_histogram_unrecorded(const struct percid_histogram *histogram) PERCID_NOEXCEPT;

/**
 * Frees the histogram's memory and makes it a new one. NULL is allowed. No other thread may use it
 * during the call. For copies see percid_counter_destroy().
 */
PERCID_INLINE void percid_histogram_destroy(struct percid_histogram *histogram) PERCID_NOEXCEPT;

/**
 * Stores a snapshot without values in `snapshot`, to merge others into. Returns 0, or -EINVAL for
 * NULL.
 */
PERCID_INLINE PERCID_MUST_USE int percid_snapshot_create(struct percid_snapshot **snapshot) PERCID_NOEXCEPT;

/**
 * Frees a snapshot. NULL is allowed.
 */
PERCID_INLINE void percid_snapshot_free(struct percid_snapshot *snapshot) PERCID_NOEXCEPT;

/**
 * Returns the number of recorded values; 0 for NULL.
 */
PERCID_INLINE uint64_t percid_snapshot_count(const struct percid_snapshot *snapshot) PERCID_NOEXCEPT;

/**
 * Stores in `value` a bound that a share `q` of the values does not exceed: 0.5 for the median, 0
 * for the smallest, 1 for the largest. Returns 0, -ENODATA if there are no values, -EINVAL for
 * NULL or a `q` that is not a number.
 */
PERCID_INLINE
int percid_snapshot_quantile(const struct percid_snapshot *snapshot,
                             double q,
                             uint64_t *value) PERCID_NOEXCEPT;

/**
 * Stores the smallest value, within 1/128. Returns the same values as percid_snapshot_quantile().
 */
PERCID_INLINE int percid_snapshot_min(const struct percid_snapshot *snapshot, uint64_t *value) PERCID_NOEXCEPT;

/**
 * Stores the largest value, within 1/128. Returns the same values as percid_snapshot_quantile().
 */
PERCID_INLINE int percid_snapshot_max(const struct percid_snapshot *snapshot, uint64_t *value) PERCID_NOEXCEPT;

/**
 * Stores the mean value, within 1/128. Returns the same values as percid_snapshot_quantile().
 */
PERCID_INLINE int percid_snapshot_mean(const struct percid_snapshot *snapshot, double *mean) PERCID_NOEXCEPT;

/**
 * Returns the number of buckets that have values, and writes the first `capacity` of them,
 * beginning with the smallest, to `buckets`. With `capacity` 0 nothing is written and `buckets`
 * may be NULL; 0 is returned if `snapshot` is NULL.
 */
PERCID_INLINE
size_t percid_snapshot_buckets(const struct percid_snapshot *snapshot,
                               struct percid_bucket *buckets,
                               size_t capacity) PERCID_NOEXCEPT;

/**
 * Adds the values of `other`, for instance of another histogram, to `snapshot`. Returns 0, -EINVAL
 * for NULL, or -ENOMEM, which is possible only if both are the same.
 */
PERCID_INLINE
int percid_snapshot_merge(struct percid_snapshot *snapshot,
                          const struct percid_snapshot *other) PERCID_NOEXCEPT;

/**
 * Stores a new stack in `stack`. It keeps up to `capacity` items for every ID (1 to 2 097 151),
 * and about `shared` in the shared list: PERCID_UNBOUNDED for any number.
 *
 * Returns 0, -EINVAL for NULL or another capacity, or -ENOMEM; on error `stack` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_stack_create(struct percid_stack **stack,
                        uint32_t capacity,
                        size_t shared) PERCID_NOEXCEPT;

/**
 * Stores a new stack like percid_stack_create(), with a source that is independent of the
 * process's: for measurements and tests. IDs share any number of items.
 *
 * Returns 0, -EINVAL for NULL, another capacity or a number that is not a source's, -ENOMEM, or
 * the reason why the source cannot be used, as percid_source_prepare() does; on error `stack`
 * becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_stack_create_with_source(struct percid_stack **stack,
                                    int source,
                                    uint32_t capacity) PERCID_NOEXCEPT;

/**
 * Returns the maximum number of items of every ID; 0 if there is no such stack. Async-signal-safe;
 * costs a call.
 */
PERCID_INLINE uint32_t percid_stack_capacity(const struct percid_stack *stack) PERCID_NOEXCEPT;

/**
 * Pushes an item, which must not be NULL.
 *
 * Returns 0; -ENOSPC if there is no room: this CPU's shard is full, and the shared list as well,
 * or there is no memory for it; -EINVAL for NULL; -EBADF if the stack is destroyed.
 * Async-signal-safe. Costs about 20 instructions and a call.
 */
PERCID_INLINE PERCID_MUST_USE int percid_stack_push(struct percid_stack *stack, void *item) PERCID_NOEXCEPT;

/**
 * Pops the item that this CPU pushed last, or one of the shared list.
 *
 * Returns NULL if there is none, or no such stack. Items in the shards of other CPUs are not
 * found. Async-signal-safe. Costs about 20 instructions and a call.
 */
PERCID_INLINE PERCID_MUST_USE void *percid_stack_pop(struct percid_stack *stack) PERCID_NOEXCEPT;

/**
 * Passes all items to `visit`, those of every ID and those of the shared list, and returns their
 * number. It may miss items that are pushed, or moved by another thread, during the call; and the
 * shards of all CPUs, if the process has entered a sandbox since the first push that refuses
 * membarrier().
 *
 * Returns -EINVAL for NULL, -EBADF if the stack is destroyed, -EDEADLK if `visit` calls it, which
 * may push and pop: the drain passes such items too, or misses them. If `visit` does not return,
 * the items that were not passed to it stay. Waits for a drain by another thread. Costs one fence
 * of all CPUs, about 10 us, for every 64 IDs.
 */
PERCID_INLINE
int64_t percid_stack_drain(struct percid_stack *stack,
                           void (*visit)(void *item, void *argument),
                           void *argument);

/**
 * Destroys a stack, and passes the remaining items to `visit`, unless that is NULL. No other
 * thread may use it during the call. If `visit` does not return, the stack stays, with the items
 * that were not passed to it. Items that `visit` pushes are passed too.
 *
 * Returns 0; -EINVAL for NULL, and for a stack of static storage, which is unchanged; -EDEADLK if
 * the `visit` of a drain calls it; -EBUSY if `visit` has pushed more in each of 100 drains, and
 * the stack stays with those items; -EBADF if it was destroyed before. Its handle is still
 * detected: every function returns -EBADF, or NULL.
 */
PERCID_INLINE
int percid_stack_destroy(struct percid_stack *stack,
                         void (*visit)(void *item, void *argument),
                         void *argument);

/**
 * Stores a new pool in `pool`, of objects of `size` bytes that are aligned to `align` bytes (a
 * power of two up to 4096). It keeps up to `capacity` idle objects for every ID (1 to 2 097 151),
 * and any number that IDs share.
 *
 * Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `pool` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_pool_create(struct percid_pool **pool,
                       size_t size,
                       size_t align,
                       uint32_t capacity) PERCID_NOEXCEPT;

/**
 * Stores a new pool like percid_pool_create(), with about `shared` idle objects that IDs share at
 * most: PERCID_UNBOUNDED for any number.
 *
 * Objects beyond that are not reused until their memory has been returned to the kernel. This
 * happens at once if the object is the last one of a slab whose other objects are idle in this way
 * (percid_pool_put() then makes a system call, once for all objects of a slab), otherwise with
 * percid_pool_drain().
 */
PERCID_INLINE
int percid_pool_create_bounded(struct percid_pool **pool,
                               size_t size,
                               size_t align,
                               uint32_t capacity,
                               size_t shared) PERCID_NOEXCEPT;

/**
 * Stores a new pool like percid_pool_create(), with a source that is independent of the process's:
 * for measurements and tests.
 *
 * Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
 * the reason why the source cannot be used, as percid_source_prepare() does; on error `pool`
 * becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_pool_create_with_source(struct percid_pool **pool,
                                   int source,
                                   size_t size,
                                   size_t align,
                                   uint32_t capacity) PERCID_NOEXCEPT;

/**
 * Returns the size of the pool's objects in bytes, as it was created; 0 if there is no such pool.
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE size_t percid_pool_size(const struct percid_pool *pool) PERCID_NOEXCEPT;

/**
 * Returns the alignment of the pool's objects in bytes, as it was created; 0 if there is no such
 * pool. Async-signal-safe; costs a call.
 */
PERCID_INLINE size_t percid_pool_align(const struct percid_pool *pool) PERCID_NOEXCEPT;

/**
 * Returns the number of the pool's slabs, and writes the addresses of the first `capacity` of them
 * to `slabs`, in no order. With `capacity` 0 nothing is written and `slabs` may be NULL; 0 is
 * returned if there is no such pool.
 *
 * For mbind() or a NUMA balancer: slabs are whole pages, and belong to the pool until the process
 * ends. Any percid_pool_get() may add a slab. Allocates, so it is not async-signal-safe; costs a
 * few nanoseconds per slab.
 */
PERCID_INLINE
size_t percid_pool_slabs(const struct percid_pool *pool,
                         struct percid_range *slabs,
                         size_t capacity) PERCID_NOEXCEPT;

/**
 * Returns an object: zeroed if it is new, and with the content that it was put with if it is
 * reused.
 *
 * Returns NULL if there is no memory, or no such pool. Async-signal-safe. Costs about 25
 * instructions and a call.
 */
PERCID_INLINE PERCID_MUST_USE void *percid_pool_get(struct percid_pool *pool) PERCID_NOEXCEPT;

/**
 * Takes back an object that percid_pool_get() of any pool has returned and no thread uses any
 * more.
 *
 * Returns 0, or an error, and then nothing has happened: -EALREADY if it was put before, -EXDEV if
 * it belongs to another pool, -ESTALE if its memory is gone (its pool was destroyed, or it was put
 * before a drain or into a full bounded pool), -EBADF if `pool` is destroyed, -EINVAL for NULL. An
 * address that never was an object of a pool must not be put. Async-signal-safe. Costs about 25
 * instructions and a call.
 */
PERCID_INLINE int percid_pool_put(struct percid_pool *pool, void *object) PERCID_NOEXCEPT;

/**
 * Returns the memory of slabs without objects in use to the kernel. Returns the number of idle
 * objects in them. -EINVAL for NULL, -EBADF if the pool is destroyed.
 *
 * Waits for a drain by another thread. Costs a fence of all CPUs, about 10 us, for every 64 IDs,
 * and a small cost for every idle object.
 */
PERCID_INLINE int64_t percid_pool_drain(struct percid_pool *pool) PERCID_NOEXCEPT;

/**
 * Destroys a pool. No other thread may use it during the call. The memory of its objects is freed,
 * also of those in use.
 *
 * Returns 0; -EINVAL for NULL, and for a pool of static storage, which is unchanged; -EBADF if it
 * was destroyed before. Its handle and its objects are still detected: every function returns
 * -EBADF, -ESTALE, or NULL.
 */
PERCID_INLINE int percid_pool_destroy(struct percid_pool *pool) PERCID_NOEXCEPT;

/**
 * Stores a new object in `local`, whose values have `size` bytes that are aligned to `align` bytes
 * (a power of two up to 4096).
 *
 * A value is made when an ID first requests one: its memory is zeroed and passed to `make`, which
 * returns 0, or an error below 0 that percid_local_with() then returns. `drop` is called before
 * its memory is freed. Either may be NULL, and both get `context`; any thread may call them.
 *
 * Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `local` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_local_create(struct percid_local **local,
                        size_t size,
                        size_t align,
                        int (*make)(void *value, void *context),
                        void (*drop)(void *value, void *context),
                        void *context);

/**
 * Stores a new object like percid_local_create(), with a source that is independent of the
 * process's: for measurements and tests.
 *
 * Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
 * the reason why the source cannot be used, as percid_source_prepare() does; on error `local`
 * becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_local_create_with_source(struct percid_local **local,
                                    int source,
                                    size_t size,
                                    size_t align,
                                    int (*make)(void *value, void *context),
                                    void (*drop)(void *value, void *context),
                                    void *context);

/**
 * Passes a value to `visit`, until that returns, throws, ends its thread or jumps: the value then
 * has the content that `visit` has left in it.
 *
 * Returns 0; -ENOMEM if another value is needed and there is no memory for it; the error of
 * `make`; -EINVAL for NULL; -EBADF if the object is destroyed. Never waits for a thread. Costs
 * about 20 instructions, a call, and the callback.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_local_with(struct percid_local *local,
                      void (*visit)(void *value, void *argument),
                      void *argument);

/**
 * Takes a value and stores its address in `value`: only the caller may use it until
 * percid_local_release(). This is percid_local_with() without a callback.
 *
 * A value that is never released is lost: other threads get extra ones, and visits wait. So it
 * must be released on every path, including exceptions and pthread_exit() (`__attribute__
 * ((cleanup))` with -fexceptions, or pthread_cleanup_push(), do that). Another thread may release
 * it.
 *
 * Returns 0, or an error of percid_local_with(); then `value` becomes NULL. Never waits for a
 * thread.
 */
PERCID_INLINE PERCID_MUST_USE int percid_local_acquire(struct percid_local *local, void **value);

/**
 * Releases a value that percid_local_acquire() has stored. NULL is allowed.
 *
 * Async-signal-safe. Costs 3 instructions and a call.
 */
PERCID_INLINE void percid_local_release(void *value) PERCID_NOEXCEPT;

/**
 * Calls `visit` for every existing value, of every ID and the extra ones. It may miss values that
 * are made during the call; and those of all IDs, if the process has entered a sandbox since the
 * first use that refuses membarrier().
 *
 * Returns 0, -EINVAL for NULL, -EBADF if the object is destroyed. Waits for callbacks that are
 * using a value (so -EDEADLK if a callback of this object calls it), and for other visits. `visit`
 * may call percid_local_with(), which passes it another value; but if it keeps a value that it has
 * acquired, the visit ends with -EDEADLK. If it does not return, the remaining values are not
 * visited. Costs one fence of all CPUs, about 10 us, for every 64 IDs.
 */
PERCID_INLINE
int percid_local_for_each(struct percid_local *local,
                          void (*visit)(void *value, void *argument),
                          void *argument);

/**
 * Removes all values: calls `visit` for each, unless that is NULL, and then the `drop` of the
 * object. New values are made when they are needed. Returns the number of values, or an error of
 * percid_local_for_each(): the remaining values stay if `visit` or `drop` has kept one. If `visit`
 * does not return, its value is dropped, and the others stay; if `drop` does not return, the
 * others stay too.
 */
PERCID_INLINE
int64_t percid_local_drain(struct percid_local *local,
                           void (*visit)(void *value, void *argument),
                           void *argument);

/**
 * Destroys the object and drops its values. No other thread may use it during the call. If `drop`
 * does not return, the object stays, with the values that were not dropped. Values that `drop`
 * makes by using the object itself are dropped too.
 *
 * Returns 0; -EINVAL for NULL, and for an object of static storage, which is unchanged; -EDEADLK
 * if the caller has one of its values, also one that `drop` has kept, or is in a visit of it;
 * -EBUSY if `drop` has made another value in each of 100 drains, and the object stays with that
 * value; -EBADF if it was destroyed before. Its handle is still detected.
 */
PERCID_INLINE int percid_local_destroy(struct percid_local *local);

/**
 * Stores a new ring in `ring`, of `bytes` bytes (a power of two from 128 to 8 MiB) for every ID.
 * `overflow` is one of enum percid_overflow.
 *
 * Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `ring` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_ring_create(struct percid_ring **ring,
                       size_t bytes,
                       int overflow) PERCID_NOEXCEPT;

/**
 * Stores a new ring like percid_ring_create(), with a source that is independent of the process's:
 * for measurements and tests.
 *
 * Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
 * the reason why the source cannot be used, as percid_source_prepare() does; on error `ring`
 * becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_ring_create_with_source(struct percid_ring **ring,
                                   int source,
                                   size_t bytes,
                                   int overflow) PERCID_NOEXCEPT;

/**
 * Appends a record of `length` bytes.
 *
 * Returns 0; -EMSGSIZE if it is longer than percid_ring_max_record_len(), or -ENOSPC if there is
 * no room now: then it is lost, and counted as such; -EINVAL for NULL (unless `length` is 0);
 * -EBADF if the ring is destroyed. Async-signal-safe, never waits. Costs about 30 instructions, 6
 * for each word, and a call.
 */
PERCID_INLINE int percid_ring_append(struct percid_ring *ring, const void *record, size_t length) PERCID_NOEXCEPT;

/**
 * Returns the maximum size of a record in the ring: a quarter of the ring minus 16, and at most 65
 * 535 bytes. 0 if there is no such ring.
 */
PERCID_INLINE size_t percid_ring_max_record_len(const struct percid_ring *ring) PERCID_NOEXCEPT;

/**
 * Passes every existing record to `visit`, ID by ID, and returns their number. Records that are
 * appended during the call may be missed; the next poll delivers them.
 *
 * Returns -EBUSY if another thread is polling or a consumer is open, -EDEADLK if `visit` calls it
 * (which may append: this poll or the next one delivers the record), -EINVAL for NULL, -EBADF if
 * the ring is destroyed. If `visit` does not return, the record counts as delivered, and the next
 * poll continues after it.
 *
 * A child of fork() may poll even if a thread of its parent was polling: it continues after the
 * record that was being delivered. If the child continues a poll in which it was forked, it must
 * not begin another.
 */
PERCID_INLINE
int64_t percid_ring_poll(struct percid_ring *ring,
                         void (*visit)(const struct percid_event *event, void *argument),
                         void *argument);

/**
 * Returns the number of lost records: not appended, or found overwritten by the consumer. 0 if
 * there is no such ring. Costs the reading of one word for every ID ever used.
 */
PERCID_INLINE uint64_t percid_ring_lost(const struct percid_ring *ring) PERCID_NOEXCEPT;

/**
 * Destroys a ring, with the records that were not consumed. No other thread may use it during the
 * call.
 *
 * Returns 0; -EINVAL for NULL, and for a ring of static storage, which is unchanged; -EDEADLK if
 * the `visit` of a poll calls it; -EBADF if it was destroyed before. Its handle is still detected.
 */
PERCID_INLINE int percid_ring_destroy(struct percid_ring *ring) PERCID_NOEXCEPT;

/**
 * Occupies the place of the ring's consumer and stores a handle in `consumer`.
 *
 * Returns 0; -EBUSY if the ring has a consumer, or another thread is polling it; -EDEADLK if the
 * caller itself is polling it, further up its stack; -EINVAL for NULL; -EBADF if the ring is
 * destroyed; -ENOMEM. On error `consumer` becomes NULL.
 */
PERCID_INLINE int percid_consumer_open(struct percid_consumer **consumer, struct percid_ring *ring) PERCID_NOEXCEPT;

/**
 * Fetches the next record and stores it in `event`. Its bytes are valid until the next call for
 * this consumer.
 *
 * Returns 1; or 0 at the end of a round, without changing `event`. A round contains every record
 * that was appended before it began, and ends however fast others are appended; the next call
 * begins another round.
 *
 * Returns -EBUSY if another thread is using the consumer; -EINVAL for NULL; -EBADF if the consumer
 * is closed or its ring destroyed. Not async-signal-safe: it allocates if a record is longer than
 * all before. Costs a call, and the copying of the record.
 */
PERCID_INLINE
int percid_consumer_next(struct percid_consumer *consumer,
                         struct percid_event *event) PERCID_NOEXCEPT;

/**
 * Releases the place of the ring's consumer; the next consumer continues where this one stopped.
 *
 * Returns 0, also if the ring was destroyed before; -EBUSY if another thread is using the
 * consumer; -EINVAL for NULL; -EBADF if it was closed before. Its handle is still detected.
 */
PERCID_INLINE int percid_consumer_close(struct percid_consumer *consumer) PERCID_NOEXCEPT;

/**
 * The cheap half of a fence, for the side that runs often.
 *
 * If one thread does A; percid_fence_light(); B and another C; percid_fence_all(), which returns
 * 0; D, then B sees C, or D sees A, or both. A to D are relaxed or stronger accesses of
 * atomic variables, by __atomic_store_n() and the like.
 *
 * Async-signal-safe. Costs a load and a test, no barrier instruction, if the fence is
 * asymmetric (percid_fence_is_asymmetric()); otherwise a full barrier.
 */
PERCID_INLINE void percid_fence_light(void) PERCID_NOEXCEPT;

/**
 * The costly half of a fence: see percid_fence_light().
 *
 * If the fence is asymmetric, it also reaches critical sections. When it returns 0, each section of
 * this process that was running has been done or aborted; what it stored is visible to the caller,
 * and sections that begin later see what the caller stored before. It does not reach operations
 * that hold a value, as those with PERCID_SOURCE_ATOMIC do: percid_memory_settle() does.
 *
 * Returns 0, or an errno with a minus sign if the kernel refuses the fence, although it was available
 * before: the caller knows nothing about other threads then. Async-signal-safe; costs about 10 us
 * if asymmetric, otherwise a full barrier.
 */
PERCID_INLINE
int percid_fence_all(void) PERCID_NOEXCEPT;

/**
 * Fences one CPU, like percid_fence_all() for the threads that ran on it when the call began.
 *
 * Sections whose thread was on another CPU are not reached. So it is for data of one CPU, such as
 * the value of an ID that percid's table assigns to that CPU.
 *
 * Returns what percid_fence_all() does. Async-signal-safe; costs 10 us if the CPU runs a thread of
 * this process, and less than 1 us otherwise.
 */
PERCID_INLINE int percid_fence_cpu(uint32_t cpu) PERCID_NOEXCEPT;

/**
 * Returns 1 if percid_fence_light() costs no barrier: from Linux 5.10 on, without a sandbox that
 * refuses membarrier(), and without a race detector, which would not know this fence. Otherwise 0.
 *
 * All calls of a process return the same. Async-signal-safe; the first call registers the process
 * for the fence: 2 us while it has one thread, about 20 ms later.
 */
PERCID_INLINE int percid_fence_is_asymmetric(void) PERCID_NOEXCEPT;

/**
 * Stores a new lock that no thread has in `lock`. Returns 0, -EINVAL for NULL, or -ENOMEM; on error
 * `lock` becomes NULL.
 */
PERCID_INLINE PERCID_MUST_USE int percid_rwlock_create(struct percid_rwlock **lock) PERCID_NOEXCEPT;

/**
 * Stores a new lock like percid_rwlock_create(), whose readers are counted by a source that is
 * independent of the process's: for measurements and tests.
 *
 * Returns 0, -EINVAL for NULL or a number that is not a source's, -ENOMEM, or the reason why the
 * source cannot be used, as percid_source_prepare() does; on error `lock` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_rwlock_create_with_source(struct percid_rwlock **lock,
                                     int source) PERCID_NOEXCEPT;

/**
 * Locks for reading. Waits for writers.
 *
 * Returns 0; -EINVAL for NULL; -EBADF if the lock is destroyed.
 */
PERCID_INLINE PERCID_MUST_USE int percid_rwlock_read_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Locks for reading if no writer has the lock or waits for it. Does not wait.
 *
 * Returns 0, -EBUSY if there is a writer, or an error of percid_rwlock_read_lock().
 */
PERCID_INLINE PERCID_MUST_USE int percid_rwlock_try_read_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Locks for reading. Waits for writers, at most for this number of nanoseconds.
 *
 * Returns 0, -ETIMEDOUT if the time is over, or an error of percid_rwlock_read_lock().
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_rwlock_timed_read_lock(struct percid_rwlock *lock,
                                  uint64_t nanoseconds) PERCID_NOEXCEPT;

/**
 * Ends reading. Any thread may call it, once for each lock for reading: otherwise a later writer
 * waits forever, or writes while others read.
 *
 * Returns 0; -EINVAL for NULL; -EBADF if the lock is destroyed.
 */
PERCID_INLINE int percid_rwlock_read_unlock(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Locks for writing. Waits for all other threads that have the lock.
 *
 * Returns 0; -EPERM if the process has entered a sandbox that refuses membarrier() since it first
 * used percid, and then the lock is as before; -EINVAL for NULL; -EBADF if the lock is destroyed.
 */
PERCID_INLINE PERCID_MUST_USE int percid_rwlock_write_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Locks for writing if no thread has the lock. Readers that come at the same time wait for this
 * call, and percid_rwlock_try_read_lock() may fail.
 *
 * Returns 0, -EBUSY if a thread has the lock, or an error of percid_rwlock_write_lock().
 */
PERCID_INLINE PERCID_MUST_USE int percid_rwlock_try_write_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Locks for writing. Waits for all other threads that have the lock, at most for this number of
 * nanoseconds.
 *
 * Returns 0, -ETIMEDOUT if the time is over, or an error of percid_rwlock_write_lock().
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_rwlock_timed_write_lock(struct percid_rwlock *lock,
                                   uint64_t nanoseconds) PERCID_NOEXCEPT;

/**
 * Ends writing: readers that wait are inside, and the next writer has its turn.
 *
 * Returns 0; -EPERM if no writer has the lock or waits for it; -EINVAL for NULL; -EBADF if the lock
 * is destroyed.
 */
PERCID_INLINE int percid_rwlock_write_unlock(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Destroys a lock. No other thread may use it during the call.
 *
 * Returns 0; -EBUSY if a thread has the lock, and then it stays; -EINVAL for NULL; -EBADF if it was
 * destroyed before. Its handle is still detected. Costs the reading of one word for every ID that
 * used it.
 */
PERCID_INLINE int percid_rwlock_destroy(struct percid_rwlock *lock) PERCID_NOEXCEPT;

/**
 * Stores a new domain without readers in `domain`, in which at most 1024 functions wait. Returns
 * 0, -EINVAL for NULL, or -ENOMEM; on error `domain` becomes NULL.
 */
PERCID_INLINE PERCID_MUST_USE int percid_domain_create(struct percid_domain **domain) PERCID_NOEXCEPT;

/**
 * Stores a new domain like percid_domain_create(), in which at most `limit` functions wait: up to
 * 4096, and -EINVAL for more. With 0 percid_domain_defer() waits each time.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_domain_create_bounded(struct percid_domain **domain,
                                 size_t limit) PERCID_NOEXCEPT;

/**
 * Stores a new domain like percid_domain_create(), whose readers are counted by a source that is
 * independent of the process's: for measurements and tests.
 *
 * Returns 0, -EINVAL for NULL or a number that is not a source's, -ENOMEM, or the reason why the
 * source cannot be used, as percid_source_prepare() does; on error `domain` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_domain_create_with_source(struct percid_domain **domain,
                                     int source) PERCID_NOEXCEPT;

/**
 * Begins to read, and returns the token with which percid_domain_read_unlock() must end it: 0 or 1.
 * -EINVAL for NULL; -EBADF if the domain is destroyed.
 */
PERCID_INLINE PERCID_MUST_USE int percid_domain_read_lock(struct percid_domain *domain) PERCID_NOEXCEPT;

/**
 * Ends reading, with the token that percid_domain_read_lock() has returned to this thread or
 * another one: once for each call of that.
 *
 * Returns 0; -EINVAL for NULL, and for what is no token; -EBADF if the domain is destroyed.
 */
PERCID_INLINE int percid_domain_read_unlock(struct percid_domain *domain, int token) PERCID_NOEXCEPT;

/**
 * Waits until every reader that is inside now has left.
 *
 * Returns 0; -EPERM if the process has entered a sandbox that refuses membarrier() since it first
 * used percid: nothing is known about the readers then. -EINVAL for NULL; -EBADF if the domain is
 * destroyed.
 */
PERCID_INLINE PERCID_MUST_USE int percid_domain_synchronize(struct percid_domain *domain) PERCID_NOEXCEPT;

/**
 * Calls `function` with `argument` when every reader that is inside now has left: in a later call
 * of percid_domain_flush() or percid_domain_defer(), by any thread, or when the domain is destroyed.
 *
 * If as many functions wait as may, it waits for the readers itself, and calls all functions that
 * wait, and this one. If membarrier() is refused, they go on waiting, and this one too, beyond the
 * limit.
 *
 * The function must return: it must not throw, end its thread, or jump. It may use the domain, but
 * what would destroy it answers -EDEADLK.
 *
 * Returns 0; -EINVAL for NULL; -EBADF if the domain is destroyed; -ENOMEM. On error the function is
 * not called.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_domain_defer(struct percid_domain *domain,
                        void (*function)(void *argument),
                        void *argument);

/**
 * Defers a function like percid_domain_defer(), but never waits and calls no function.
 *
 * Returns 0, -EAGAIN if as many functions wait as may, or an error of percid_domain_defer().
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_domain_try_defer(struct percid_domain *domain,
                            void (*function)(void *argument),
                            void *argument);

/**
 * Waits for the readers that are inside now, and calls all functions that were deferred before.
 * Returns their number: 0 at once if there are none. -EPERM if membarrier() is refused, and then
 * they go on waiting; -EINVAL for NULL; -EBADF if the domain is destroyed.
 */
PERCID_INLINE int64_t percid_domain_flush(struct percid_domain *domain) PERCID_NOEXCEPT;

/**
 * Returns the number of functions that wait; 0 if there is no such domain.
 */
PERCID_INLINE size_t percid_domain_deferred_count(const struct percid_domain *domain) PERCID_NOEXCEPT;

/**
 * Returns about how many readers are inside; 0 if there is no such domain. It is exact if none
 * enters or leaves at the same time. Costs the reading of two words for every ID that used it.
 */
PERCID_INLINE size_t percid_domain_reader_count(const struct percid_domain *domain) PERCID_NOEXCEPT;

/**
 * Destroys a domain, and calls the functions that wait, and those that these defer in it. No other
 * thread may use it during the call.
 *
 * Returns 0; -EBUSY if a reader is inside, or if the functions have deferred others in each of 100
 * calls, and then the domain stays, with the functions that wait; -EDEADLK if a deferred function
 * calls it; -EINVAL for NULL; -EBADF if it was destroyed before. Its handle is still detected.
 */
PERCID_INLINE int percid_domain_destroy(struct percid_domain *domain) PERCID_NOEXCEPT;

/**
 * Stores a new budget of `limit` units in `budget`, of which nothing is charged. Limits above
 * INT64_MAX are that. Each ID takes units from the limit in batches of a 1024th of it.
 *
 * Returns 0, -EINVAL for NULL, or -ENOMEM; on error `budget` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_budget_create(struct percid_budget **budget,
                         uint64_t limit) PERCID_NOEXCEPT;

/**
 * Stores a new budget like percid_budget_create(), with a source that is independent of the
 * process's, for measurements and tests; and with batches of `batch` units. Larger batches are
 * faster, and percid_budget_approximate() is less exact.
 *
 * Returns 0, -EINVAL for NULL or a number that is not a source's, -ENOMEM, or the reason why the
 * source cannot be used, as percid_source_prepare() does; on error `budget` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_budget_create_with_source(struct percid_budget **budget,
                                     int source,
                                     uint64_t limit,
                                     uint64_t batch) PERCID_NOEXCEPT;

/**
 * Stores a new budget like percid_budget_create(), with batches of `batch` units.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_budget_create_with_batch(struct percid_budget **budget,
                                    uint64_t limit,
                                    uint64_t batch) PERCID_NOEXCEPT;

/**
 * Charges units.
 *
 * Returns 0; -EDQUOT if there is no room for them, and then nothing was charged; -EINVAL for NULL;
 * -EBADF if the budget is destroyed.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_budget_try_charge(struct percid_budget *budget,
                             uint64_t units) PERCID_NOEXCEPT;

/**
 * Releases units that were charged, by any thread. Releasing units that were not charged raises the
 * limit by them.
 *
 * Returns 0; -EINVAL for NULL, and for more units than the limit, of which none are released;
 * -EBADF if the budget is destroyed.
 */
PERCID_INLINE int percid_budget_release(struct percid_budget *budget, uint64_t units) PERCID_NOEXCEPT;

/**
 * Returns the limit; 0 if there is no such budget. Async-signal-safe.
 */
PERCID_INLINE uint64_t percid_budget_limit(const struct percid_budget *budget) PERCID_NOEXCEPT;

/**
 * Returns the units that are charged or lie in the credits of IDs: one load. It is never less than
 * what is charged (except for releases under way), and more by three batches at most for every ID.
 * 0 if there is no such budget. Async-signal-safe.
 */
PERCID_INLINE uint64_t percid_budget_approximate(const struct percid_budget *budget) PERCID_NOEXCEPT;

/**
 * Returns the units that are charged: one load for every ID, under a mutex. It is exact if nothing
 * is charged or released at the same time; each of those may be contained or not. 0 if there is no
 * such budget.
 */
PERCID_INLINE uint64_t percid_budget_exact(const struct percid_budget *budget) PERCID_NOEXCEPT;

/**
 * Destroys a budget, whatever is charged. No other thread may use it during the call.
 *
 * Returns 0; -EINVAL for NULL; -EBADF if it was destroyed before. Its handle is still detected.
 */
PERCID_INLINE int percid_budget_destroy(struct percid_budget *budget) PERCID_NOEXCEPT;

/**
 * Stores a new mask without members in `mask`. Returns 0, -EINVAL for NULL, or -ENOMEM; on error
 * `mask` becomes NULL.
 */
PERCID_INLINE PERCID_MUST_USE int percid_mask_create(struct percid_mask **mask) PERCID_NOEXCEPT;

/**
 * Makes `id` a member, after data was published that a drain must find.
 *
 * Returns 0, -ERANGE for an ID of 8192 or more, which no CPU can have, -EINVAL for NULL, -EBADF if
 * the mask is destroyed. Costs a call, a load and a test if the bit is set, otherwise one locked
 * instruction. The first call that sets a bit registers the process for the kernel's fence: 2 us
 * early in main(), 20 ms later.
 */
PERCID_INLINE int percid_mask_mark(struct percid_mask *mask, uint32_t id) PERCID_NOEXCEPT;

/**
 * Returns 1 if `id` is currently a member, 0 if it is not, or an error of percid_mask_mark().
 */
PERCID_INLINE int percid_mask_is_marked(const struct percid_mask *mask, uint32_t id) PERCID_NOEXCEPT;

/**
 * Removes all members and calls `visit` for each; data that was published before they were marked
 * is visible to it. Returns the number of members; -EINVAL for NULL; -EBADF if the mask is
 * destroyed.
 *
 * `visit` may mark and drain: an inner drain finds the members that the outer one has not taken.
 * If it does not return, the members that were not passed to it stay members.
 *
 * Costs one fence of all CPUs, about 10 us, if there is any member; otherwise 9 loads.
 */
PERCID_INLINE
int64_t percid_mask_drain(struct percid_mask *mask,
                          void (*visit)(uint32_t id, void *argument),
                          void *argument);

/**
 * Destroys a mask. No other thread may use it during the call.
 *
 * Returns 0; -EINVAL for NULL, and for a mask of static storage, which is unchanged; -EDEADLK if
 * the `visit` of a drain calls it; -EBADF if it was destroyed before. Its handle is still
 * detected.
 */
PERCID_INLINE int percid_mask_destroy(struct percid_mask *mask) PERCID_NOEXCEPT;

/**
 * Stores a new object in `memory`, whose values have `size` bytes (at least 1, and below 16 MiB)
 * that are aligned to `align` bytes (a power of two up to 64).
 *
 * A value is made when an ID first uses one: its memory is zeroed and passed to `init`, which may
 * be NULL, with `context`. Any operation of any thread may call it, also in a signal handler. It
 * must not use the object, and it must return: the process ends if it does not.
 *
 * Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `memory` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_memory_create(struct percid_memory **memory,
                         size_t size,
                         size_t align,
                         void (*init)(void *value, void *context),
                         void *context);

/**
 * Stores a new object like percid_memory_create(), with a source that is independent of the
 * process's: for measurements and tests.
 *
 * Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
 * the reason why the source cannot be used, as percid_source_prepare() does; on error `memory`
 * becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_memory_create_with_source(struct percid_memory **memory,
                                     int source,
                                     size_t size,
                                     size_t align,
                                     void (*init)(void *value, void *context),
                                     void *context);

/**
 * Adds `n` to the word at offset `field` of the running thread's value. Wraps around. Stores the
 * address of the value in `value`, unless that is NULL; NULL on error.
 *
 * Returns 0; -ENOMEM if there is no memory for the value; -EINVAL for NULL, or if the word is not
 * aligned to 8 bytes inside the value; -EBADF if the object is destroyed. Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_add(struct percid_memory *memory,
                      size_t field,
                      int64_t n,
                      void **value) PERCID_NOEXCEPT;

/**
 * Adds `n` to the word at offset `field` of the running thread's value, like percid_memory_add(). The
 * word before that is `seen` in `outcome`, which may be NULL.
 *
 * Returns 0, or an error of percid_memory_add(). Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_fetch_add(struct percid_memory *memory,
                            size_t field,
                            int64_t n,
                            struct percid_outcome *outcome) PERCID_NOEXCEPT;

/**
 * Stores `desired` in the word at offset `field` of the running thread's value. The word that it
 * replaced is `seen` in `outcome`, which may be NULL. With 0 it takes a whole list.
 *
 * Returns 0, or an error of percid_memory_add(). Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_swap(struct percid_memory *memory,
                       size_t field,
                       uint64_t desired,
                       struct percid_outcome *outcome) PERCID_NOEXCEPT;

/**
 * Stores `desired` in the word at offset `field` of the running thread's value, if it has the value
 * `expected`. The word before that is `seen` in `outcome`, which may be NULL.
 *
 * Returns 1; 0 without effect if the word has another value; or an error of percid_memory_add().
 * Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_store_if(struct percid_memory *memory,
                           size_t field,
                           uint64_t expected,
                           uint64_t desired,
                           struct percid_outcome *outcome) PERCID_NOEXCEPT;

/**
 * Stores `desired` in the word at offset `field` of the running thread's value, if it has the value
 * `expected`, and before that `first_value` in the word at offset `first`.
 *
 * The word at `first` is meaningless until `desired` is stored: an operation that is interrupted may
 * have stored it without storing `desired`. So only what `desired` says may give it a meaning, such as a
 * slot above the number of slots in use.
 *
 * Returns what percid_memory_store_if() does. Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_store_both_if(struct percid_memory *memory,
                                size_t field,
                                uint64_t expected,
                                uint64_t desired,
                                size_t first,
                                uint64_t first_value,
                                struct percid_outcome *outcome) PERCID_NOEXCEPT;

/**
 * Stores `desired` in the word at offset `field` of the running thread's value, if it has the value
 * `expected` and the word at offset `second` has the value `expected_second`.
 *
 * Returns what percid_memory_store_if() does. If only the second word has another value, that is
 * `other` in `outcome`. Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_store_if_both(struct percid_memory *memory,
                                size_t field,
                                uint64_t expected,
                                uint64_t desired,
                                size_t second,
                                uint64_t expected_second,
                                struct percid_outcome *outcome) PERCID_NOEXCEPT;

/**
 * Copies `length` bytes to offset `to` of the running thread's value, and then stores `desired` in the
 * word at offset `field`, if that has the value `expected`.
 *
 * The destination is meaningless until `desired` is stored: an operation that is interrupted may have
 * written a part of it. The time is that of the copy; a long one is interrupted more often.
 *
 * Returns what percid_memory_store_if() does, and -EINVAL if the bytes do not fit.
 * Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_copy_then_store_if(struct percid_memory *memory,
                                     size_t field,
                                     uint64_t expected,
                                     uint64_t desired,
                                     size_t to,
                                     const void *bytes,
                                     size_t length,
                                     struct percid_outcome *outcome) PERCID_NOEXCEPT;

/**
 * Makes `item` the first of a list of the running thread's value: the word at offset `head` points
 * to the first item, and that at offset `next` of each item to the one behind it. Stores the
 * address of the value in `value`, unless that is NULL; NULL on error.
 *
 * The item is in no list before. It stays where it is until it was popped, or taken with its list;
 * until then only operations of this object use its word at `next`.
 *
 * Returns 0; an error of percid_memory_add(); -EINVAL also if `item` is NULL, or if it or `next`
 * is not aligned to 8 bytes. Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_push(struct percid_memory *memory,
                       size_t head,
                       void *item,
                       size_t next,
                       void **value) PERCID_NOEXCEPT;

/**
 * Takes the first item out of a list of the running thread's value, and stores it in `item`: NULL
 * if that list is empty, or on error.
 *
 * All items of the list were added by percid_memory_push(), with the same `next`. An item that was
 * popped is the caller's: it may be freed at once.
 *
 * Returns 1; 0 if the list is empty; an error of percid_memory_push(); -EINVAL also if `item` is
 * NULL. Async-signal-safe.
 */
PERCID_INLINE
int percid_memory_pop(struct percid_memory *memory,
                      size_t head,
                      size_t next,
                      void **item) PERCID_NOEXCEPT;

/**
 * Returns the value of an ID; NULL if that ID has not used one, or while it is being made.
 * Async-signal-safe.
 */
PERCID_INLINE void *percid_memory_get(struct percid_memory *memory, uint32_t id) PERCID_NOEXCEPT;

/**
 * Returns the value of the running thread's ID, as a hint: the thread may be moved at any time.
 * NULL if there is none yet. Async-signal-safe.
 */
PERCID_INLINE void *percid_memory_current(struct percid_memory *memory) PERCID_NOEXCEPT;

/**
 * Returns the value behind another one, in the order of IDs and then those that belong to no ID;
 * the first one behind NULL; NULL if there are no more. Values may change at any time: see
 * percid_memory_for_each().
 *
 *     for (void *value = NULL; (value = percid_memory_next(memory, value)) != NULL;)
 *
 * Async-signal-safe.
 */
PERCID_INLINE void *percid_memory_next(struct percid_memory *memory, const void *value) PERCID_NOEXCEPT;

/**
 * Returns the ID of a value; -ENOENT if it belongs to no ID, -EINVAL for NULL, -EBADF if the
 * object is destroyed. Async-signal-safe.
 */
PERCID_INLINE int percid_memory_id_of(struct percid_memory *memory, const void *value) PERCID_NOEXCEPT;

/**
 * Calls `visit` for every existing value, of every ID and those that belong to none. No operation
 * changes the value meanwhile, and `visit` may: threads whose value is being visited work on
 * others. All earlier operations on the value are visible.
 *
 * It misses values that are being made, or used by a thread without an ID, for about a second or
 * longer; and those of all IDs, if the process has entered a sandbox since the first use that
 * refuses membarrier().
 *
 * Returns the number of values that it has missed, which is 0 as a rule; -EINVAL for NULL, -EBADF if
 * the object is destroyed, -EDEADLK if `visit` of this object calls it. Waits for other visits.
 * `visit` may call the operations, which work on other values. If it does not return, the remaining
 * values are not visited. Costs one fence of all CPUs, about 10 us, for every 64 IDs.
 */
PERCID_INLINE
int percid_memory_for_each(struct percid_memory *memory,
                           void (*visit)(void *value, void *argument),
                           void *argument);

/**
 * Calls `visit` for the value of one ID, which no operation changes meanwhile, and `visit` may.
 *
 * Returns 0; -ENOENT if the ID has no value; -EBUSY if another thread has held or made it for about
 * a second; an error of percid_fence_all(); -EINVAL for NULL, -EBADF if the object is destroyed,
 * -EDEADLK if `visit` of this object calls it. Waits for other visits. `visit` may call the
 * operations, which work on other values. Costs one fence of all CPUs, about 10 us.
 */
PERCID_INLINE
int percid_memory_with_id(struct percid_memory *memory,
                          uint32_t id,
                          void (*visit)(void *value, void *argument),
                          void *argument);

/**
 * Waits for the operations on this object that are running. When it returns 0, every operation that
 * may have read a word before the call has ended; what it stored is visible to the caller, and
 * later operations see what the caller stored before. So memory to which no word leads any more is
 * used by no operation.
 *
 * Returns 0; -EBUSY if the caller visits a value, or another thread has held one for about a
 * second; an error of percid_fence_all(); -EINVAL for NULL, -EBADF if the object is destroyed. Costs
 * one fence of all CPUs, about 10 us, and a load for each value without an ID; with
 * PERCID_SOURCE_ATOMIC for each value.
 */
PERCID_INLINE
int percid_memory_settle(struct percid_memory *memory) PERCID_NOEXCEPT;

/**
 * Calls `drop` for every value, unless it is NULL, and destroys the object. No other thread may
 * use it during the call, and `drop` must not either. If `drop` does not return, the object stays,
 * with all values.
 *
 * Returns 0; -EINVAL for NULL, and for an object of static storage, which is unchanged; -EDEADLK
 * if the caller is in a visit of it; -EBADF if it was destroyed before. Its handle is still
 * detected.
 */
PERCID_INLINE
int percid_memory_destroy(struct percid_memory *memory,
                          void (*drop)(void *value, void *argument),
                          void *argument);

/**
 * Fills `settings` with the defaults. `size` is sizeof(percid_balancer_settings).
 *
 * Returns 0, or -EINVAL for NULL or a size that this structure never had.
 */
PERCID_INLINE
int percid_balancer_settings_init(struct percid_balancer_settings *settings,
                                  size_t size) PERCID_NOEXCEPT;

/**
 * Sets the rules of a scan in `settings`, from `order` on, as in a release of Linux: `rules` is
 * one of enum percid_scan_rules. The width is unchanged.
 *
 * Returns 0, or -EINVAL for NULL, settings that percid_balancer_settings_init() has not filled, or
 * an unknown number.
 */
PERCID_INLINE
int percid_balancer_settings_set_rules(struct percid_balancer_settings *settings,
                                       int rules) PERCID_NOEXCEPT;

/**
 * Stores a new balancer without regions in `balancer`, with these settings, or with the defaults
 * if `settings` is NULL.
 *
 * Returns 0; -EINVAL if `balancer` is NULL, for an invalid size, rate, rule set or width, or
 * settings that percid_balancer_settings_init() has not filled; -ERANGE if the shortest period is
 * longer than the longest one, or the scan size an eighth of 2^63 bytes or more; -E2BIG if the
 * settings have members that this version of the library does not support, and they are not 0;
 * -ENOMEM. On error `balancer` becomes NULL.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_balancer_create(struct percid_balancer **balancer,
                           const struct percid_balancer_settings *settings) PERCID_NOEXCEPT;

/**
 * Returns 1 if there are several nodes with memory, so that there is something to balance,
 * otherwise 0. -EINVAL for NULL, -EBADF if the balancer is destroyed.
 */
PERCID_INLINE int percid_balancer_has_nodes(const struct percid_balancer *balancer) PERCID_NOEXCEPT;

/**
 * Starts a thread that makes passes and moves pages, unless it runs already or there is nothing to
 * balance. A pass is due when a thread of the program has *run* for its own period, and never
 * before it has run for 32 times the duration of its last pass.
 *
 * Returns 0; -EAGAIN or another negative errno if no thread can be started; -EINVAL for NULL;
 * -EBADF if the balancer is destroyed.
 */
PERCID_INLINE int percid_balancer_start(struct percid_balancer *balancer) PERCID_NOEXCEPT;

/**
 * Ends that thread and waits for it: for at most a batch or a pass. Armed pages stay armed.
 *
 * Returns 0, also if there is no such thread; -EINVAL for NULL; -EBADF if the balancer is
 * destroyed.
 */
PERCID_INLINE int percid_balancer_stop(struct percid_balancer *balancer) PERCID_NOEXCEPT;

/**
 * Lets other processes request this balancer's report until it is destroyed: `percid numa report`
 * and `percid numa watch` do. They need the right to inspect this process (PTRACE_MODE_READ, which
 * commonly its user and root have).
 *
 * The report is in a memfd, which takes one descriptor. A thread that sleeps until a process
 * requests a report makes it; with one node too. All reports together take at most a tenth of a
 * CPU. A second call changes nothing. In a child of fork() no report is made.
 *
 * Returns 0; -EPERM if the balancer belongs to the parent of this process; -EINVAL for NULL;
 * -EBADF if it is destroyed; another negative errno if no descriptor, memory or thread is
 * available.
 */
PERCID_INLINE int percid_balancer_publish(struct percid_balancer *balancer) PERCID_NOEXCEPT;

/**
 * Makes a pass on behalf of the calling thread: arms the regions that are due, and moves nothing.
 * For programs without the balancer's thread. Stores the result in `passed`, unless that is NULL.
 *
 * Returns 0, -EINVAL if `balancer` is NULL, -EBADF if it is destroyed, -ENOMEM. Costs a reading of
 * /proc/self/maps and about 0.2 us for every page that is armed; with one node nothing.
 */
PERCID_INLINE
int percid_balancer_pass(struct percid_balancer *balancer,
                         struct percid_pass *passed) PERCID_NOEXCEPT;

/**
 * Moves a batch of the pending pages of one region. Stores the result in `batch`, unless that is
 * NULL. Threads of the program that map memory or take a page fault during that time wait for at
 * most this batch.
 *
 * Returns 0, -EINVAL if `balancer` is NULL, -EBADF if it is destroyed, -ENOMEM.
 */
PERCID_INLINE
int percid_balancer_move_batch(struct percid_balancer *balancer,
                               struct percid_batch *batch) PERCID_NOEXCEPT;

/**
 * Stops a balancer's thread and destroys the balancer. No other thread may use it during the call.
 * Its regions stay usable, are not balanced any more, and must be unregistered as before.
 *
 * Returns 0, -EINVAL for NULL, -EBADF if it was destroyed before. Its handle is still detected.
 */
PERCID_INLINE int percid_balancer_destroy(struct percid_balancer *balancer) PERCID_NOEXCEPT;

/**
 * Registers `bytes` bytes of memory from `start` on, for which the program reports accesses by
 * percid_region_touch(), and stores the region in `region`.
 *
 * The range begins and ends at multiples of the page size, and consists of mappings of the same
 * kind and access rights. The memory may be unmapped while it is registered: the balancer detects
 * that, and ignores the region from then on.
 *
 * Returns 0, or one of these errors, and then `region` becomes NULL; percid_region_error() has a
 * text for each:
 *
 *     -EINVAL   `region` or `balancer` is NULL, the range is empty, or is not made of whole pages
 *     -EBADF    the balancer is destroyed
 *     -EEXIST   a part is registered already, with this balancer
 *     -ENXIO    nothing is mapped in a part
 *     -ENOTSUP  the kernel never moves what is mapped there: its own pages, or those of hugetlbfs
 *     -EXDEV    the mappings have different rights, or are of memory and files: register each
 *     -ENOMEM   no memory to keep track of the pages
 *     -ENOSYS   /proc/self/maps cannot be read
 *     -EPERM    the balancer belongs to the parent of this process
 *
 * Costs a reading of /proc/self/maps.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_region_register(struct percid_region **region,
                           struct percid_balancer *balancer,
                           const void *start,
                           size_t bytes) PERCID_NOEXCEPT;

/**
 * Registers memory to which accesses are detected by faults, so that the program need not report
 * them. Armed memory has no access rights. A handler of SIGSEGV, which the first call installs,
 * records the faulting thread and restores the rights. A fault that is not at armed memory is
 * passed to the previous handler: a crash stays a crash.
 *
 * The program guarantees that, until the region is unregistered,
 *
 *   - the memory stays mapped, with the access rights that it has now, and nothing changes them;
 *   - no thread runs, now or later, on a stack in it that the registration has not refused;
 *   - no thread blocks SIGSEGV while it uses the memory, or installs another handler of SIGSEGV
 *     that does not call the previous one;
 *   - no pointer into it is passed to a system call unless the part is excluded: the call would
 *     fail with EFAULT, or complete only a part of its work;
 *   - no child of vfork() and no other process that shares the address space uses it.
 *
 * Returns 0, an error of percid_region_register(), or
 *
 *     -EDEADLK  a fault in the range could not be handled, or is percid's own: see below
 *     -EFAULT   the memory has no access rights, or is executable: rights might not be restored
 *     -EDQUOT   RLIMIT_DATA is set: rights might not be restored
 *     -ENOSPC   there are 256 trapped regions already
 *     -EBUSY    another handler of SIGSEGV was installed after percid's
 *
 * -EDEADLK is returned for memory that contains any part of
 *
 *   - the stack of any thread, used or not yet used, with the adjacent data: thread-local
 *     variables, the rseq area, all data that the C library stores for the thread; and the memory
 *     below a stack that has no guard;
 *   - the calling thread's alternate signal stack;
 *   - the memory that the handler itself uses: percid's variables, the constants of the program or
 *     library that percid is linked into, and the C library;
 *   - percid's structures: their memory for each ID, and the objects of pools, which
 *     percid_region_register() accepts.
 *
 * Not detected are, of other threads, the alternate signal stacks and the thread-local variables
 * of libraries that were loaded by dlopen(); and stacks that the program has allocated by itself,
 * as for coroutines, unless a thread that waits in a system call is on one. Threads that start
 * later get other memory, except those whose stack the program provides.
 *
 * Costs a reading of /proc, and a thread that ends at once: about 100 us, and more for every
 * thread. The first access to 64 KiB of armed memory costs 4 us.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_region_register_trapped(struct percid_region **region,
                                   struct percid_balancer *balancer,
                                   const void *start,
                                   size_t bytes) PERCID_NOEXCEPT;

/**
 * Registers memory to which writes are detected, by userfaultfd: the first write to 64 KiB of
 * armed memory waits until the thread is recorded, about 12 us. Reads are not detected. System
 * calls wait in the same way, so nothing has to be excluded. The first such region of a balancer
 * starts a thread and opens two descriptors.
 *
 * No stack, thread-local memory or robust mutex may be in the range: data that the kernel writes
 * there when a thread ends would be lost. Checkpoints of the process fail, other users of
 * userfaultfd cannot have the same memory, and a debugger that writes to an armed page waits
 * forever.
 *
 * Returns 0, an error of percid_region_register(), or
 *
 *     -EDEADLK          the range contains a part of a thread's stack, or other memory that
 *                       percid_region_register_trapped() refuses with this error, except memory
 *                       that only a handler uses
 *     -ENODEV           the memory is a file's, shared with other processes, or may not be written
 *     -EACCES           the process may not use userfaultfd for system calls: that needs
 *                       CAP_SYS_PTRACE, vm.unprivileged_userfaultfd = 1, or the right to open
 *                       /dev/userfaultfd
 *     -EPROTONOSUPPORT  the kernel has no userfaultfd with write protection (Linux 5.7; 6.10 on
 *                       64-bit Arm)
 *     -EALREADY         another user of userfaultfd monitors the memory
 *     -EUSERS           the balancer has 256 such regions already
 *     -EIO              the kernel refused for another reason
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_region_register_written(struct percid_region **region,
                                   struct percid_balancer *balancer,
                                   const void *start,
                                   size_t bytes) PERCID_NOEXCEPT;

/**
 * Returns a short text for an error of percid_region_register(), percid_region_register_trapped()
 * or percid_region_register_written(); NULL if the number is none of them.
 *
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE const char *percid_region_error(int error) PERCID_NOEXCEPT;

/**
 * Reports that the calling thread uses the memory `offset` bytes from the region's start. Call it
 * about as often as the program proceeds from one page to another. More frequent calls have no
 * effect, because an armed page counts once. Offsets beyond the region, trapped regions and
 * unregistered regions are ignored.
 *
 * Async-signal-safe; never waits. Costs a call, four loads and two tests unless the page is armed;
 * then two or three system calls.
 */
PERCID_INLINE void percid_region_touch(struct percid_region *region, size_t offset) PERCID_NOEXCEPT;

/**
 * Reports that the calling thread uses all of the region. Trapped regions and unregistered regions
 * are ignored.
 *
 * Async-signal-safe; never waits. Costs a load for every 64 pages, and for every armed one the
 * cost of percid_region_touch().
 */
PERCID_INLINE void percid_region_touch_all(struct percid_region *region) PERCID_NOEXCEPT;

/**
 * Returns the start of a region; NULL if there is no such region.
 */
PERCID_INLINE void *percid_region_start(const struct percid_region *region) PERCID_NOEXCEPT;

/**
 * Returns the size of a region in bytes; 0 if there is no such region.
 */
PERCID_INLINE size_t percid_region_bytes(const struct percid_region *region) PERCID_NOEXCEPT;

/**
 * Returns the access method of a region: one of enum percid_access. -EINVAL for NULL, -EBADF if it
 * is unregistered.
 */
PERCID_INLINE int percid_region_access(const struct percid_region *region) PERCID_NOEXCEPT;

/**
 * Keeps a part of a trapped region, `bytes` bytes from `offset` on, accessible until
 * percid_region_exclude_end(): for buffers that are passed to system calls, which fail with EFAULT
 * at armed memory. Whole granules of 64 KiB around the part are disarmed, and not armed again
 * until then. A part may be excluded several times.
 *
 * Returns 0; -ERANGE if the part is not in the region; -EINVAL for NULL; -EBADF if the region is
 * unregistered; -ENOMEM. Waits for the piece that is currently being armed, or the batch that is
 * being moved.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_region_exclude_begin(struct percid_region *region,
                                size_t offset,
                                size_t bytes) PERCID_NOEXCEPT;

/**
 * Ends an exclusion by percid_region_exclude_begin() with the same arguments, so that the part may
 * be armed again.
 *
 * Returns 0; -ENOENT if it is not excluded; -ERANGE, -EINVAL and -EBADF like
 * percid_region_exclude_begin().
 */
PERCID_INLINE
int percid_region_exclude_end(struct percid_region *region,
                              size_t offset,
                              size_t bytes) PERCID_NOEXCEPT;

/**
 * Unregisters memory, which is disarmed and can be used for anything then. Exclusions need not be
 * ended before. No other thread may use the region during the call. Waits for a running pass or
 * batch.
 *
 * Returns 0, -EINVAL for NULL, -EBADF if it was unregistered before, or -ENOMEM, and it stays
 * registered. Its handle is still detected.
 */
PERCID_INLINE int percid_region_unregister(struct percid_region *region) PERCID_NOEXCEPT;

/**
 * Registers the memory of all existing IDs of a source (one of enum percid_source), and stores the
 * regions in `regions`. For IDs that come later unregister and register again.
 *
 * Returns 0; -EINVAL also for a number that is not a source's; and the errors of
 * percid_region_register(), for the first region that cannot be registered. On error `regions`
 * becomes NULL.
 */
PERCID_INLINE
int percid_id_regions_register(struct percid_id_regions **regions,
                               struct percid_balancer *balancer,
                               int source) PERCID_NOEXCEPT;

/**
 * Reports that the calling thread uses the memory of its current ID, as its counters, stacks and
 * other structures of the source do. Call it regularly: once per period is enough. Unregistered
 * regions are ignored.
 *
 * Async-signal-safe; never waits. Costs about 40 ns, and two system calls for every armed page of
 * the ID.
 */
PERCID_INLINE void percid_id_regions_touch(struct percid_id_regions *regions) PERCID_NOEXCEPT;

/**
 * Stores the first `capacity` address ranges of an ID's regions in `ranges`, and returns the
 * number of all: 0 if the ID did not exist when they were registered, or there are no such
 * regions.
 */
PERCID_INLINE
size_t percid_id_regions_of_id(const struct percid_id_regions *regions,
                               uint32_t id,
                               struct percid_range *ranges,
                               size_t capacity) PERCID_NOEXCEPT;

/**
 * Unregisters the regions. No other thread may use them during the call.
 *
 * Returns 0, -EINVAL for NULL, -EBADF if they were unregistered before, or -ENOMEM, and they stay
 * registered. The handle is still detected.
 */
PERCID_INLINE int percid_id_regions_unregister(struct percid_id_regions *regions) PERCID_NOEXCEPT;

/**
 * Registers the memory of the existing objects of a pool, and stores the regions in `regions`: one
 * for all adjacent slabs. For objects that come later unregister and register again. The pool may
 * be destroyed before.
 *
 * Returns 0, or the error of percid_region_register() for the first region that cannot be
 * registered; -EINVAL and -EBADF for the pool as for the balancer. On error `regions` becomes
 * NULL.
 */
PERCID_INLINE
int percid_pool_regions_register(struct percid_pool_regions **regions,
                                 struct percid_balancer *balancer,
                                 const struct percid_pool *pool) PERCID_NOEXCEPT;

/**
 * Reports that the calling thread uses an object, by an address in it; for a large object, call it
 * once for every page. Addresses outside the regions are ignored, and so are unregistered regions.
 *
 * Async-signal-safe; never waits. Costs a search among the regions, and the cost of
 * percid_region_touch().
 */
PERCID_INLINE
void percid_pool_regions_touch(struct percid_pool_regions *regions,
                               const void *object) PERCID_NOEXCEPT;

/**
 * Stores the first `capacity` address ranges of the regions in `ranges`, ascending, and returns
 * the number of all; 0 if there are no such regions.
 */
PERCID_INLINE
size_t percid_pool_regions_ranges(const struct percid_pool_regions *regions,
                                  struct percid_range *ranges,
                                  size_t capacity) PERCID_NOEXCEPT;

/**
 * Unregisters the regions. No other thread may use them during the call.
 *
 * Returns 0, -EINVAL for NULL, -EBADF if they were unregistered before, or -ENOMEM, and they stay
 * registered. The handle is still detected.
 */
PERCID_INLINE int percid_pool_regions_unregister(struct percid_pool_regions *regions) PERCID_NOEXCEPT;

/**
 * Writes up to `capacity` of the decisions that were not taken yet, the oldest first, to `events`
 * and returns their number. The rest is kept for the next call; a balancer keeps 4096, and counts
 * lost ones.
 *
 * Returns 0 in a child of fork(); -EBUSY if another thread is taking decisions; -EINVAL if
 * `balancer` is NULL, or `events` is and `capacity` is not 0; -EBADF if the balancer is destroyed;
 * -ENOMEM.
 */
PERCID_INLINE
int64_t percid_balancer_take_events(struct percid_balancer *balancer,
                                    struct percid_balancer_event *events,
                                    size_t capacity) PERCID_NOEXCEPT;

/**
 * Stores a report in `report`, to be freed by percid_report_free().
 *
 * Returns 0; -EINVAL for NULL; -EBADF if the balancer is destroyed; -ENOMEM; on error `report`
 * becomes NULL. Looks up the node of every page of every region: about a microsecond for every ten
 * pages.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_report_create(struct percid_report **report,
                         const struct percid_balancer *balancer) PERCID_NOEXCEPT;

/**
 * Frees a report. NULL is allowed.
 */
PERCID_INLINE void percid_report_free(struct percid_report *report) PERCID_NOEXCEPT;

/**
 * Stores the total actions of the balancer in `totals`. `size` is sizeof(percid_balancer_totals).
 * Returns 0, or -EINVAL for NULL.
 */
PERCID_INLINE
int percid_report_totals(const struct percid_report *report,
                         struct percid_balancer_totals *totals,
                         size_t size) PERCID_NOEXCEPT;

/**
 * Writes the first `capacity` of the nodes that have memory, ascending, to `nodes`, and returns
 * the number of all. With one node, nothing is ever armed. With `capacity` 0 nothing is written
 * and `nodes` may be NULL; 0 is returned if `report` is NULL.
 */
PERCID_INLINE
size_t percid_report_nodes(const struct percid_report *report,
                           uint32_t *nodes,
                           size_t capacity) PERCID_NOEXCEPT;

/**
 * Does the same for the nodes without CPUs to and from which the balancer moves memory, by
 * percid_balancer_settings.tiers.
 */
PERCID_INLINE
size_t percid_report_slow_nodes(const struct percid_report *report,
                                uint32_t *nodes,
                                size_t capacity) PERCID_NOEXCEPT;

/**
 * Returns the number of regions in a report; 0 if it is NULL.
 */
PERCID_INLINE size_t percid_report_regions(const struct percid_report *report) PERCID_NOEXCEPT;

/**
 * Stores the actions and observations in the region with index `index` (by ascending address) in
 * `figures`. `size` is sizeof(percid_region_figures).
 *
 * Returns 0, -EINVAL for NULL, -ERANGE if there are no more than `index` regions.
 */
PERCID_INLINE
int percid_report_region(const struct percid_report *report,
                         size_t index,
                         struct percid_region_figures *figures,
                         size_t size) PERCID_NOEXCEPT;

/**
 * Returns the number of nodes that have pages of a region at the time of the report, and writes
 * the first `capacity` of them to `nodes`, with the numbers of pages. With `capacity` 0 nothing is
 * written and `nodes` may be NULL; 0 is returned if there is no such region.
 */
PERCID_INLINE
size_t percid_report_pages(const struct percid_report *report,
                           size_t index,
                           struct percid_on_node *nodes,
                           size_t capacity) PERCID_NOEXCEPT;

/**
 * Does the same as percid_report_pages() for the recent use of a region by each node: detected
 * accesses, halved every scan cycle.
 */
PERCID_INLINE
size_t percid_report_use(const struct percid_report *report,
                         size_t index,
                         struct percid_on_node *nodes,
                         size_t capacity) PERCID_NOEXCEPT;

/**
 * Does the same as percid_report_pages() for the pages of a region that could not be looked up,
 * armed or moved, by errno.
 */
PERCID_INLINE
size_t percid_report_failures(const struct percid_report *report,
                              size_t index,
                              struct percid_region_failure *failures,
                              size_t capacity) PERCID_NOEXCEPT;

/**
 * Returns the number of times a region was left out for a reason (one of enum percid_skip_reason),
 * or was scanned for the last one; 0 if there is no such region or reason.
 */
PERCID_INLINE
uint64_t percid_report_skipped(const struct percid_report *report,
                               size_t index,
                               int reason) PERCID_NOEXCEPT;

/**
 * Returns the share of passes in the time that the process's threads have run, from 0 to 1. It is
 * at most 3 %, apart from the duration of the last pass; 0 if `report` is NULL.
 */
PERCID_INLINE double percid_report_scan_share(const struct percid_report *report) PERCID_NOEXCEPT;

/**
 * Stores the share of local accesses among the detected accesses in a region, from 0 to 1.
 *
 * Returns 0; -ENODATA if no access was detected; -EINVAL for NULL, or if there is no such region.
 */
PERCID_INLINE
int percid_report_local_share(const struct percid_report *report,
                              size_t index,
                              double *share) PERCID_NOEXCEPT;

/**
 * Returns the share of a region's pages that are on a node, from 0 to 1; 0 if there is no such
 * region.
 */
PERCID_INLINE
double percid_report_share_on(const struct percid_report *report,
                              size_t index,
                              uint32_t node) PERCID_NOEXCEPT;

/**
 * Returns the published name of a reason, such as "pid_inactive"; NULL if no reason has this
 * number.
 *
 * Async-signal-safe; costs a call.
 */
PERCID_INLINE const char *percid_skip_reason_name(int reason) PERCID_NOEXCEPT;

/**
 * Adds `n`, unless it is negative or not a number, because a counter never decreases. Costs about
 * 2 ns.
 */
PERCID_INLINE void percid_float_counter_add(struct percid_float_counter *counter, double n) PERCID_NOEXCEPT;

/**
 * Returns the sum; 0 for NULL. Costs the reading of one word for every ID ever used.
 */
PERCID_INLINE double percid_float_counter_sum(const struct percid_float_counter *counter) PERCID_NOEXCEPT;

/**
 * Adds `n`, which may be negative. Costs about 2 ns.
 */
PERCID_INLINE void percid_gauge_add(struct percid_gauge *gauge, double n) PERCID_NOEXCEPT;

/**
 * Sets the value, which is read back exactly unless it is changed.
 */
PERCID_INLINE void percid_gauge_set(struct percid_gauge *gauge, double value) PERCID_NOEXCEPT;

/**
 * Raises the value to `value`, if it is less or not a number.
 */
PERCID_INLINE void percid_gauge_max(struct percid_gauge *gauge, double value) PERCID_NOEXCEPT;

/**
 * Returns the value; 0 for NULL.
 */
PERCID_INLINE double percid_gauge_value(const struct percid_gauge *gauge) PERCID_NOEXCEPT;

/**
 * Counts a value. Costs about 5 ns.
 */
PERCID_INLINE void percid_buckets_record(struct percid_buckets *buckets, double value) PERCID_NOEXCEPT;

/**
 * Counts a value `times` times, in one step.
 */
PERCID_INLINE
void percid_buckets_record_many(struct percid_buckets *buckets,
                                double value,
                                uint64_t times) PERCID_NOEXCEPT;

/**
 * Returns the number of buckets, which is one more than that of limits. Writes the numbers of
 * values in the first `capacity` buckets, not including those of other buckets, to `counts`, and
 * the sum of all values to `sum` unless it is NULL. With `capacity` 0 `counts` may be NULL;
 * returns 0 if `buckets` is NULL, -ENOMEM if there is no memory.
 */
PERCID_INLINE
int64_t percid_buckets_read(const struct percid_buckets *buckets,
                            uint64_t *counts,
                            size_t capacity,
                            double *sum) PERCID_NOEXCEPT;

/**
 * Counts `counts[n]` values in each bucket `n`, and adds `sum`, the sum of all of them, in one step:
 * percid_buckets_read() sees all or nothing of it. Values beyond the last bucket belong to that. Has
 * no effect if all `counts` are 0.
 *
 * Returns 0; -EINVAL for NULL, or if `count` is more than 2048, the maximum number of buckets.
 * Async-signal-safe.
 */
PERCID_INLINE
int percid_buckets_record_all(struct percid_buckets *buckets,
                              const uint64_t *counts,
                              size_t count,
                              double sum) PERCID_NOEXCEPT;

/**
 * Takes all values out, and leaves zeros. Writes the numbers of values in all buckets to `counts`,
 * and the sum of all values to `sum` unless it is NULL. Nothing is lost or taken twice, except what
 * cannot be recorded.
 *
 * Returns the number of buckets, as percid_buckets_read() does. If that is more than `capacity`,
 * nothing is taken or written.
 */
PERCID_INLINE
int64_t percid_buckets_take(struct percid_buckets *buckets,
                            uint64_t *counts,
                            size_t capacity,
                            double *sum) PERCID_NOEXCEPT;

/**
 * Stores the series with these values in `counter`: `count` texts in UTF-8, in the order of the
 * labels' names. If there is no such series, it is created with value 0; beyond the family's limit
 * it is the series of all others.
 *
 * The series is an ordinary percid_counter, so percid_counter_add() is inline. It is not moved
 * until the registry is destroyed, and must not be destroyed by itself. Taking from it decreases
 * it, which a page's reader interprets as a restart.
 *
 * Returns 0; -EINVAL for NULL, if `count` is not the number of labels, or if the family has other
 * series than counters; -EILSEQ if a value is not UTF-8; -ENOMEM; -EBADF if the registry is
 * destroyed. On error `counter` becomes NULL.
 */
PERCID_INLINE
int percid_family_counter(const struct percid_family *family,
                          const char *const *values,
                          size_t count,
                          struct percid_counter **counter) PERCID_NOEXCEPT;

/**
 * Does the same as percid_family_counter(), for a family of sums of floats.
 */
PERCID_INLINE
int percid_family_float_counter(const struct percid_family *family,
                                const char *const *values,
                                size_t count,
                                struct percid_float_counter **counter) PERCID_NOEXCEPT;

/**
 * Does the same as percid_family_counter(), for a family of gauges.
 */
PERCID_INLINE
int percid_family_gauge(const struct percid_family *family,
                        const char *const *values,
                        size_t count,
                        struct percid_gauge **gauge) PERCID_NOEXCEPT;

/**
 * Does the same as percid_family_counter(), for a family of histograms.
 */
PERCID_INLINE
int percid_family_buckets(const struct percid_family *family,
                          const char *const *values,
                          size_t count,
                          struct percid_buckets **buckets) PERCID_NOEXCEPT;

/**
 * Returns the number of series, including the one beyond the limit if it was needed; -EINVAL for
 * NULL, -EBADF if the registry is destroyed.
 */
PERCID_INLINE int64_t percid_family_series(const struct percid_family *family) PERCID_NOEXCEPT;

/**
 * Returns the number of look-ups of values beyond the limit; 0 if there is no such family.
 */
PERCID_INLINE uint64_t percid_family_refused(const struct percid_family *family) PERCID_NOEXCEPT;

/**
 * Stores a new registry without families in `registry`. Returns 0, -EINVAL for NULL, or -ENOMEM;
 * on error `registry` becomes NULL.
 */
PERCID_INLINE PERCID_MUST_USE int percid_registry_create(struct percid_registry **registry) PERCID_NOEXCEPT;

/**
 * Stores a new family of the registry in `family`. `settings` has `size` bytes, the size of the
 * structure in the program. The texts and arrays that it points to are copied.
 *
 * Returns 0; -EINVAL for NULL, an unknown kind, or a name, unit, label or limit that the formats
 * do not allow, or two labels of one name; -EEXIST if the registry has a metric with this name on
 * the page, or with another name that it would have there (for a histogram also the name with
 * _bucket, _sum and _count); -EILSEQ if a text is not UTF-8; -E2BIG if the settings have a member
 * that this version does not support and that is not 0; -ENOMEM; -EBADF if the registry is
 * destroyed. On error `family` becomes NULL, and the settings' memory for it receives a
 * description of the wrong setting.
 *
 * A family is destroyed with its registry, and not before.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_family_create(struct percid_family **family,
                         struct percid_registry *registry,
                         const struct percid_family_settings *settings,
                         size_t size) PERCID_NOEXCEPT;

/**
 * Destroys a registry with its families and their series. No other thread may use any of them
 * during the call, and no series may be used after it.
 *
 * Returns 0; -EINVAL for NULL; -EBADF if it was destroyed before; -ENOMEM, then it stays. Its
 * handle and those of its families are still detected.
 */
PERCID_INLINE int percid_registry_destroy(struct percid_registry *registry) PERCID_NOEXCEPT;

/**
 * Writes the page into `text`: the values of all series of the registry, metrics by name and
 * series by the values of their labels. `format` is one of enum percid_format.
 *
 * Writes at most `size` bytes, the last of them a zero, and returns the length of the whole page
 * without the zero, as snprintf() does; with `size` 0 nothing is written, and `text` may be NULL.
 * If the length is not less than `size`, the page did not fit, and `text` has the whole lines that
 * did. The next page may be longer than this one, so a program that requests the length first must
 * check again:
 *
 *     while ((length = percid_registry_render(registry, format, page, size)) >= (int64_t)size) {
 *         size = (size_t)length + 4096;
 *         page = realloc(page, size);
 *     }
 *
 * Each value contains every update that happened before the call, and may contain later ones.
 * Updates are not blocked. Costs about 400 ns for each line.
 *
 * Returns -EINVAL for NULL or a number that is not a format's, -EBADF if the registry is
 * destroyed, -ENOMEM: then `text` is empty.
 */
PERCID_INLINE
int64_t percid_registry_render(const struct percid_registry *registry,
                               int format,
                               char *text,
                               size_t size) PERCID_NOEXCEPT;

/**
 * Passes the page to `write`, part by part: `length` bytes of whole lines, which it must not keep.
 * No lock is held while it runs, so it may send them to a slow reader.
 *
 * If `write` returns a value other than 0, this function stops and returns that value. Otherwise
 * it returns 0, or an error of percid_registry_render(): then a part of the page may have been
 * passed already.
 */
PERCID_INLINE
PERCID_MUST_USE
int percid_registry_write(const struct percid_registry *registry,
                          int format,
                          int (*write)(const char *text, size_t length, void *argument),
                          void *argument);

/**
 * Returns the value of the header Content-Type for a format; NULL if no format has this number.
 *
 * Async-signal-safe.
 */
PERCID_INLINE const char *percid_format_content_type(int format) PERCID_NOEXCEPT;

/**
 * Returns the format that a client requests by the value of its header Accept: one of enum
 * percid_format. PERCID_FORMAT_TEXT for NULL and for clients that do not request OpenMetrics.
 */
PERCID_INLINE int percid_format_accepted(const char *accept) PERCID_NOEXCEPT;

#endif  /* PERCID_H */

#include "percid_interface.h" /* IWYU pragma: export */
/* What is inline: all or the common case of the functions that are called most. */
#include "percid_inline.h" /* IWYU pragma: export */

/* Not where it was included before. */
#ifdef PERCID_INLINE
#pragma GCC visibility pop
#undef PERCID_INLINE
#undef PERCID_NOEXCEPT
#undef PERCID_MUST_USE
#endif
