/*
 * percid_interface.h: how the functions of percid.h get to the library. Part of percid.h, which includes it.
 *
 * The library shows one symbol to C: a constant table of its functions. The functions of percid.h are
 * inline and call through it, and the sections of percid_inline.h find the words that they read in it.
 * Where a process has several copies of percid, the dynamic linker binds that one symbol, so a module
 * gets everything from one copy, whichever that is.
 *
 * This file is generated, from percid.h and the order of the table in the library's source.
 */
#ifndef PERCID_INTERFACE_H
#define PERCID_INTERFACE_H

#ifndef PERCID_H
#error "include percid.h, not this file"
#endif

/* Of 4096 bytes in every version. Later versions use more of them; what they do not use is zero. */
struct percid_interface {
    uint32_t size;   /* The bytes in use. */
    uint32_t number; /* 1, as in the symbol's name. */
    const char *version_text;
    const void *fast_path;
    int (*missing)(const char *name);
    const char *(*version)(void);
    enum percid_source (*init)(void);
    const char *(*source_name)(int source);
    int (*source_by_name)(const char *name);
    int (*source_prepare)(int source);
    int (*source_unavailable)(int source);
    size_t (*source_reason)(int source, char *text, size_t size);
    int (*source_current_id)(int source);
    uint32_t (*source_id_count)(int source);
    enum percid_selection_reason (*selection_reason_read)(void);
    size_t (*reason)(char *text, size_t size);
    int (*current_id)(void);
    uint32_t (*compact_ids)(void);
    void (*set_id_limit)(uint32_t most);
    int (*kernel_numbers_read)(struct percid_kernel_numbers *numbers, size_t size);
    void (*fence_light)(void);
    int (*fence_all)(void);
    int (*fence_cpu)(uint32_t cpu);
    int (*fence_is_asymmetric)(void);
    int (*table_stats_read)(struct percid_table_stats *stats, size_t size);
    size_t (*id_memory)(uint32_t id, struct percid_range *ranges, size_t capacity);
    int (*machine_read)(struct percid_machine *machine, size_t size);
    size_t (*machine_cpus)(struct percid_cpu *cpus, size_t size, size_t capacity);
    int (*machine_probe)(uint32_t milliseconds, struct percid_probe_report *probe, size_t size);
    void (*counter_add_slow)(struct percid_counter *counter, int64_t n);
    int (*counter_with_source)(struct percid_counter *counter, int source);
    int64_t (*counter_sum)(const struct percid_counter *counter);
    int64_t (*counter_take)(struct percid_counter *counter);
    size_t (*counter_per_id)(const struct percid_counter *counter, int64_t *values, size_t capacity);
    int64_t (*counter_shared)(const struct percid_counter *counter);
    void (*counter_destroy)(struct percid_counter *counter);
    void (*histogram_record_slow)(struct percid_histogram *histogram, uint64_t value, uint64_t times);
    int (*histogram_with_source)(struct percid_histogram *histogram, int source);
    int (*histogram_snapshot)(const struct percid_histogram *histogram, struct percid_snapshot **snapshot);
    int (*histogram_take)(struct percid_histogram *histogram, struct percid_snapshot **snapshot);
    uint64_t (*histogram_unrecorded)(const struct percid_histogram *histogram);
    void (*histogram_destroy)(struct percid_histogram *histogram);
    int (*snapshot_create)(struct percid_snapshot **snapshot);
    void (*snapshot_free)(struct percid_snapshot *snapshot);
    uint64_t (*snapshot_count)(const struct percid_snapshot *snapshot);
    int (*snapshot_quantile)(const struct percid_snapshot *snapshot, double q, uint64_t *value);
    int (*snapshot_min)(const struct percid_snapshot *snapshot, uint64_t *value);
    int (*snapshot_max)(const struct percid_snapshot *snapshot, uint64_t *value);
    int (*snapshot_mean)(const struct percid_snapshot *snapshot, double *mean);
    size_t (*snapshot_buckets)(const struct percid_snapshot *snapshot, struct percid_bucket *buckets, size_t capacity);
    int (*snapshot_merge)(struct percid_snapshot *snapshot, const struct percid_snapshot *other);
    int (*stack_create)(struct percid_stack **stack, uint32_t capacity, size_t shared);
    int (*stack_create_with_source)(struct percid_stack **stack, int source, uint32_t capacity);
    uint32_t (*stack_capacity)(const struct percid_stack *stack);
    int (*stack_push)(struct percid_stack *stack, void *item);
    void *(*stack_pop)(struct percid_stack *stack);
    int64_t (*stack_drain)(struct percid_stack *stack, void (*visit)(void *item, void *argument), void *argument);
    int (*stack_destroy)(struct percid_stack *stack, void (*visit)(void *item, void *argument), void *argument);
    int (*pool_create)(struct percid_pool **pool, size_t size, size_t align, uint32_t capacity);
    int (*pool_create_bounded)(struct percid_pool **pool, size_t size, size_t align, uint32_t capacity, size_t shared);
    int (*pool_create_with_source)(struct percid_pool **pool, int source, size_t size, size_t align, uint32_t capacity);
    size_t (*pool_size)(const struct percid_pool *pool);
    size_t (*pool_align)(const struct percid_pool *pool);
    size_t (*pool_slabs)(const struct percid_pool *pool, struct percid_range *slabs, size_t capacity);
    void *(*pool_get)(struct percid_pool *pool);
    int (*pool_put)(struct percid_pool *pool, void *object);
    int64_t (*pool_drain)(struct percid_pool *pool);
    int (*pool_destroy)(struct percid_pool *pool);
    int (*local_create)(struct percid_local **local, size_t size, size_t align, int (*make)(void *value, void *context), void (*drop)(void *value, void *context), void *context);
    int (*local_create_with_source)(struct percid_local **local, int source, size_t size, size_t align, int (*make)(void *value, void *context), void (*drop)(void *value, void *context), void *context);
    int (*local_acquire)(struct percid_local *local, void **value);
    void (*local_release)(void *value);
    int (*local_with)(struct percid_local *local, void (*visit)(void *value, void *argument), void *argument);
    int (*local_for_each)(struct percid_local *local, void (*visit)(void *value, void *argument), void *argument);
    int64_t (*local_drain)(struct percid_local *local, void (*visit)(void *value, void *argument), void *argument);
    int (*local_destroy)(struct percid_local *local);
    int (*ring_create)(struct percid_ring **ring, size_t bytes, int overflow);
    int (*ring_create_with_source)(struct percid_ring **ring, int source, size_t bytes, int overflow);
    int (*ring_append)(struct percid_ring *ring, const void *record, size_t length);
    size_t (*ring_max_record_len)(const struct percid_ring *ring);
    int64_t (*ring_poll)(struct percid_ring *ring, void (*visit)(const struct percid_event *event, void *argument), void *argument);
    uint64_t (*ring_lost)(const struct percid_ring *ring);
    int (*ring_destroy)(struct percid_ring *ring);
    int (*consumer_open)(struct percid_consumer **consumer, struct percid_ring *ring);
    int (*consumer_next)(struct percid_consumer *consumer, struct percid_event *event);
    int (*consumer_close)(struct percid_consumer *consumer);
    int (*mask_create)(struct percid_mask **mask);
    int (*mask_mark)(struct percid_mask *mask, uint32_t id);
    int (*mask_is_marked)(const struct percid_mask *mask, uint32_t id);
    int64_t (*mask_drain)(struct percid_mask *mask, void (*visit)(uint32_t id, void *argument), void *argument);
    int (*mask_destroy)(struct percid_mask *mask);
    int (*memory_create)(struct percid_memory **memory, size_t size, size_t align, void (*init)(void *value, void *context), void *context);
    int (*memory_create_with_source)(struct percid_memory **memory, int source, size_t size, size_t align, void (*init)(void *value, void *context), void *context);
    int (*memory_add)(struct percid_memory *memory, size_t field, int64_t n, void **value);
    int (*memory_fetch_add)(struct percid_memory *memory, size_t field, int64_t n, struct percid_outcome *outcome);
    int (*memory_swap)(struct percid_memory *memory, size_t field, uint64_t desired, struct percid_outcome *outcome);
    int (*memory_store_if)(struct percid_memory *memory, size_t field, uint64_t expected, uint64_t desired, struct percid_outcome *outcome);
    int (*memory_store_both_if)(struct percid_memory *memory, size_t field, uint64_t expected, uint64_t desired, size_t first, uint64_t first_value, struct percid_outcome *outcome);
    int (*memory_store_if_both)(struct percid_memory *memory, size_t field, uint64_t expected, uint64_t desired, size_t second, uint64_t expected_second, struct percid_outcome *outcome);
    int (*memory_copy_then_store_if)(struct percid_memory *memory, size_t field, uint64_t expected, uint64_t desired, size_t to, const void *bytes, size_t length, struct percid_outcome *outcome);
    int (*memory_push)(struct percid_memory *memory, size_t head, void *item, size_t next, void **value);
    int (*memory_pop)(struct percid_memory *memory, size_t head, size_t next, void **item);
    void *(*memory_get)(struct percid_memory *memory, uint32_t id);
    void *(*memory_current)(struct percid_memory *memory);
    void *(*memory_next)(struct percid_memory *memory, const void *value);
    int (*memory_id_of)(struct percid_memory *memory, const void *value);
    int (*memory_for_each)(struct percid_memory *memory, void (*visit)(void *value, void *argument), void *argument);
    int (*memory_with_id)(struct percid_memory *memory, uint32_t id, void (*visit)(void *value, void *argument), void *argument);
    int (*memory_settle)(struct percid_memory *memory);
    int (*memory_destroy)(struct percid_memory *memory, void (*drop)(void *value, void *argument), void *argument);
    int (*rwlock_create)(struct percid_rwlock **lock);
    int (*rwlock_create_with_source)(struct percid_rwlock **lock, int source);
    int (*rwlock_read_lock)(struct percid_rwlock *lock);
    int (*rwlock_try_read_lock)(struct percid_rwlock *lock);
    int (*rwlock_timed_read_lock)(struct percid_rwlock *lock, uint64_t nanoseconds);
    int (*rwlock_read_unlock)(struct percid_rwlock *lock);
    int (*rwlock_write_lock)(struct percid_rwlock *lock);
    int (*rwlock_try_write_lock)(struct percid_rwlock *lock);
    int (*rwlock_timed_write_lock)(struct percid_rwlock *lock, uint64_t nanoseconds);
    int (*rwlock_write_unlock)(struct percid_rwlock *lock);
    int (*rwlock_destroy)(struct percid_rwlock *lock);
    int (*domain_create)(struct percid_domain **domain);
    int (*domain_create_bounded)(struct percid_domain **domain, size_t limit);
    int (*domain_create_with_source)(struct percid_domain **domain, int source);
    int (*domain_read_lock)(struct percid_domain *domain);
    int (*domain_read_unlock)(struct percid_domain *domain, int token);
    int (*domain_synchronize)(struct percid_domain *domain);
    int (*domain_defer)(struct percid_domain *domain, void (*function)(void *argument), void *argument);
    int (*domain_try_defer)(struct percid_domain *domain, void (*function)(void *argument), void *argument);
    int64_t (*domain_flush)(struct percid_domain *domain);
    size_t (*domain_deferred_count)(const struct percid_domain *domain);
    size_t (*domain_reader_count)(const struct percid_domain *domain);
    int (*domain_destroy)(struct percid_domain *domain);
    int (*budget_create)(struct percid_budget **budget, uint64_t limit);
    int (*budget_create_with_batch)(struct percid_budget **budget, uint64_t limit, uint64_t batch);
    int (*budget_create_with_source)(struct percid_budget **budget, int source, uint64_t limit, uint64_t batch);
    int (*budget_try_charge)(struct percid_budget *budget, uint64_t units);
    int (*budget_release)(struct percid_budget *budget, uint64_t units);
    uint64_t (*budget_limit)(const struct percid_budget *budget);
    uint64_t (*budget_approximate)(const struct percid_budget *budget);
    uint64_t (*budget_exact)(const struct percid_budget *budget);
    int (*budget_destroy)(struct percid_budget *budget);
    int (*balancer_settings_init)(struct percid_balancer_settings *settings, size_t size);
    int (*balancer_settings_set_rules)(struct percid_balancer_settings *settings, int rules);
    int (*balancer_create)(struct percid_balancer **balancer, const struct percid_balancer_settings *settings);
    int (*balancer_has_nodes)(const struct percid_balancer *balancer);
    int (*balancer_start)(struct percid_balancer *balancer);
    int (*balancer_stop)(struct percid_balancer *balancer);
    int (*balancer_publish)(struct percid_balancer *balancer);
    int (*balancer_pass)(struct percid_balancer *balancer, struct percid_pass *passed);
    int (*balancer_move_batch)(struct percid_balancer *balancer, struct percid_batch *batch);
    int64_t (*balancer_take_events)(struct percid_balancer *balancer, struct percid_balancer_event *events, size_t capacity);
    int (*balancer_destroy)(struct percid_balancer *balancer);
    int (*region_register)(struct percid_region **region, struct percid_balancer *balancer, const void *start, size_t bytes);
    int (*region_register_trapped)(struct percid_region **region, struct percid_balancer *balancer, const void *start, size_t bytes);
    int (*region_register_written)(struct percid_region **region, struct percid_balancer *balancer, const void *start, size_t bytes);
    const char *(*region_error)(int error);
    void (*region_touch)(struct percid_region *region, size_t offset);
    void (*region_touch_all)(struct percid_region *region);
    void *(*region_start)(const struct percid_region *region);
    size_t (*region_bytes)(const struct percid_region *region);
    int (*region_access)(const struct percid_region *region);
    int (*region_exclude_begin)(struct percid_region *region, size_t offset, size_t bytes);
    int (*region_exclude_end)(struct percid_region *region, size_t offset, size_t bytes);
    int (*region_unregister)(struct percid_region *region);
    int (*id_regions_register)(struct percid_id_regions **regions, struct percid_balancer *balancer, int source);
    void (*id_regions_touch)(struct percid_id_regions *regions);
    size_t (*id_regions_of_id)(const struct percid_id_regions *regions, uint32_t id, struct percid_range *ranges, size_t capacity);
    int (*id_regions_unregister)(struct percid_id_regions *regions);
    int (*pool_regions_register)(struct percid_pool_regions **regions, struct percid_balancer *balancer, const struct percid_pool *pool);
    void (*pool_regions_touch)(struct percid_pool_regions *regions, const void *object);
    size_t (*pool_regions_ranges)(const struct percid_pool_regions *regions, struct percid_range *ranges, size_t capacity);
    int (*pool_regions_unregister)(struct percid_pool_regions *regions);
    int (*report_create)(struct percid_report **report, const struct percid_balancer *balancer);
    void (*report_free)(struct percid_report *report);
    int (*report_totals)(const struct percid_report *report, struct percid_balancer_totals *totals, size_t size);
    size_t (*report_nodes)(const struct percid_report *report, uint32_t *nodes, size_t capacity);
    size_t (*report_slow_nodes)(const struct percid_report *report, uint32_t *nodes, size_t capacity);
    size_t (*report_regions)(const struct percid_report *report);
    int (*report_region)(const struct percid_report *report, size_t index, struct percid_region_figures *figures, size_t size);
    size_t (*report_pages)(const struct percid_report *report, size_t index, struct percid_on_node *nodes, size_t capacity);
    size_t (*report_use)(const struct percid_report *report, size_t index, struct percid_on_node *nodes, size_t capacity);
    size_t (*report_failures)(const struct percid_report *report, size_t index, struct percid_region_failure *failures, size_t capacity);
    uint64_t (*report_skipped)(const struct percid_report *report, size_t index, int reason);
    double (*report_scan_share)(const struct percid_report *report);
    int (*report_local_share)(const struct percid_report *report, size_t index, double *share);
    double (*report_share_on)(const struct percid_report *report, size_t index, uint32_t node);
    const char *(*skip_reason_name)(int reason);
    void (*float_counter_add)(struct percid_float_counter *counter, double n);
    double (*float_counter_sum)(const struct percid_float_counter *counter);
    void (*gauge_add)(struct percid_gauge *gauge, double n);
    void (*gauge_set)(struct percid_gauge *gauge, double value);
    void (*gauge_max)(struct percid_gauge *gauge, double value);
    double (*gauge_value)(const struct percid_gauge *gauge);
    void (*buckets_record)(struct percid_buckets *buckets, double value);
    void (*buckets_record_many)(struct percid_buckets *buckets, double value, uint64_t times);
    int64_t (*buckets_read)(const struct percid_buckets *buckets, uint64_t *counts, size_t capacity, double *sum);
    int (*buckets_record_all)(struct percid_buckets *buckets, const uint64_t *counts, size_t count, double sum);
    int64_t (*buckets_take)(struct percid_buckets *buckets, uint64_t *counts, size_t capacity, double *sum);
    int (*family_counter)(const struct percid_family *family, const char *const *values, size_t count, struct percid_counter **counter);
    int (*family_float_counter)(const struct percid_family *family, const char *const *values, size_t count, struct percid_float_counter **counter);
    int (*family_gauge)(const struct percid_family *family, const char *const *values, size_t count, struct percid_gauge **gauge);
    int (*family_buckets)(const struct percid_family *family, const char *const *values, size_t count, struct percid_buckets **buckets);
    int64_t (*family_series)(const struct percid_family *family);
    uint64_t (*family_refused)(const struct percid_family *family);
    int (*registry_create)(struct percid_registry **registry);
    int (*family_create)(struct percid_family **family, struct percid_registry *registry, const struct percid_family_settings *settings, size_t size);
    int64_t (*registry_render)(const struct percid_registry *registry, int format, char *text, size_t size);
    int (*registry_write)(const struct percid_registry *registry, int format, int (*write)(const char *text, size_t length, void *argument), void *argument);
    int (*registry_destroy)(struct percid_registry *registry);
    const char *(*format_content_type)(int format);
    int (*format_accepted)(const char *accept);
    void (*later[301])(void);
};

/*
 * A compiler may choose a copy relocation for the table, which would do no harm, but make it a part
 * of the program's own binary interface. Where compilers go through the global offset table anyway
 * they see a constant, which they read once for many functions.
 */
#if defined(__PIC__) && (!defined(__PIE__) || defined(__clang__))
#define PERCID_TABLE_IS_SEEN 1
#else
#define PERCID_TABLE_IS_SEEN 0
#endif

#if defined(__cplusplus)
extern "C" {
#endif
extern const struct percid_interface percid_interface_1;
#if defined(__cplusplus)
}
#endif

/*
 * Whether addresses are taken by hand, and critical sections are inline: with gcc 5 or clang 9 and
 * later on x86-64 (LP64), 64-bit Arm and 64-bit RISC-V (little-endian), unless PERCID_NO_INLINE is
 * defined.
 */
#if defined(PERCID_NO_INLINE) || !defined(__linux__) || !defined(__LP64__) || defined(__INTEL_COMPILER)
#define PERCID_ADDS_INLINE 0
#elif defined(__clang__) ? __clang_major__ < 9 : !defined(__GNUC__) || __GNUC__ < 5
#define PERCID_ADDS_INLINE 0
#elif defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__))
#define PERCID_ADDS_INLINE 1
#elif defined(__riscv) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PERCID_ADDS_INLINE 1
#else
#define PERCID_ADDS_INLINE 0
#endif

/*
 * Other compilers get the address from the global offset table by hand. The statement is not
 * volatile, so they take it out of loops.
 */
PERCID_INLINE __attribute__((always_inline)) const struct percid_interface *
percid_interface_address(void) PERCID_NOEXCEPT
{
#if PERCID_ADDS_INLINE && !PERCID_TABLE_IS_SEEN && defined(__x86_64__)
    const struct percid_interface *address;
    __asm__("movq percid_interface_1@GOTPCREL(%%rip), %0" : "=r"(address));
    return address;
#elif PERCID_ADDS_INLINE && !PERCID_TABLE_IS_SEEN && defined(__aarch64__)
    const struct percid_interface *address;
    __asm__("adrp %0, :got:percid_interface_1\n\tldr %0, [%0, :got_lo12:percid_interface_1]"
            : "=r"(address));
    return address;
#elif PERCID_ADDS_INLINE && !PERCID_TABLE_IS_SEEN && defined(__riscv)
    const struct percid_interface *address;
    __asm__("1:\n\tauipc %0, %%got_pcrel_hi(percid_interface_1)\n\tld %0, %%pcrel_lo(1b)(%0)"
            : "=r"(address));
    return address;
#else
    return &percid_interface_1;
#endif
}

PERCID_INLINE const char *percid_version(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->version();
}

PERCID_INLINE enum percid_source percid_init(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->init();
}

PERCID_INLINE const char *percid_source_name(int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_name(source);
}

PERCID_INLINE int percid_source_by_name(const char *name) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_by_name(name);
}

PERCID_INLINE int percid_source_prepare(int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_prepare(source);
}

PERCID_INLINE int percid_source_unavailable(int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_unavailable(source);
}

PERCID_INLINE size_t percid_source_reason(int source, char *text, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_reason(source, text, size);
}

PERCID_INLINE int percid_source_current_id(int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_current_id(source);
}

PERCID_INLINE uint32_t percid_source_id_count(int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->source_id_count(source);
}

PERCID_INLINE enum percid_selection_reason percid_selection_reason_read(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->selection_reason_read();
}

PERCID_INLINE size_t percid_reason(char *text, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->reason(text, size);
}

PERCID_INLINE int percid_current_id(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->current_id();
}

PERCID_INLINE uint32_t percid_compact_ids(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->compact_ids();
}

PERCID_INLINE void percid_set_id_limit(uint32_t most) PERCID_NOEXCEPT
{
    percid_interface_address()->set_id_limit(most);
}

PERCID_INLINE int percid_kernel_numbers_read(struct percid_kernel_numbers *numbers, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->kernel_numbers_read(numbers, size);
}

PERCID_INLINE int percid_fence_all(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->fence_all();
}

PERCID_INLINE int percid_fence_cpu(uint32_t cpu) PERCID_NOEXCEPT
{
    return percid_interface_address()->fence_cpu(cpu);
}

PERCID_INLINE int percid_fence_is_asymmetric(void) PERCID_NOEXCEPT
{
    return percid_interface_address()->fence_is_asymmetric();
}

PERCID_INLINE int percid_table_stats_read(struct percid_table_stats *stats, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->table_stats_read(stats, size);
}

PERCID_INLINE size_t percid_id_memory(uint32_t id, struct percid_range *ranges, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->id_memory(id, ranges, capacity);
}

PERCID_INLINE int percid_machine_read(struct percid_machine *machine, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->machine_read(machine, size);
}

PERCID_INLINE size_t percid_machine_cpus(struct percid_cpu *cpus, size_t size, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->machine_cpus(cpus, size, capacity);
}

PERCID_INLINE int percid_machine_probe(uint32_t milliseconds, struct percid_probe_report *probe, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->machine_probe(milliseconds, probe, size);
}

PERCID_INLINE void percid_counter_add_slow(struct percid_counter *counter, int64_t n) PERCID_NOEXCEPT
{
    percid_interface_address()->counter_add_slow(counter, n);
}

PERCID_INLINE int percid_counter_with_source(struct percid_counter *counter, int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->counter_with_source(counter, source);
}

PERCID_INLINE int64_t percid_counter_sum(const struct percid_counter *counter) PERCID_NOEXCEPT
{
    return percid_interface_address()->counter_sum(counter);
}

PERCID_INLINE int64_t percid_counter_take(struct percid_counter *counter) PERCID_NOEXCEPT
{
    return percid_interface_address()->counter_take(counter);
}

PERCID_INLINE size_t percid_counter_per_id(const struct percid_counter *counter, int64_t *values, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->counter_per_id(counter, values, capacity);
}

PERCID_INLINE int64_t percid_counter_shared(const struct percid_counter *counter) PERCID_NOEXCEPT
{
    return percid_interface_address()->counter_shared(counter);
}

PERCID_INLINE void percid_counter_destroy(struct percid_counter *counter) PERCID_NOEXCEPT
{
    percid_interface_address()->counter_destroy(counter);
}

PERCID_INLINE void percid_histogram_record_slow(struct percid_histogram *histogram, uint64_t value, uint64_t times) PERCID_NOEXCEPT
{
    percid_interface_address()->histogram_record_slow(histogram, value, times);
}

PERCID_INLINE int percid_histogram_with_source(struct percid_histogram *histogram, int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->histogram_with_source(histogram, source);
}

PERCID_INLINE int percid_histogram_snapshot(const struct percid_histogram *histogram, struct percid_snapshot **snapshot) PERCID_NOEXCEPT
{
    return percid_interface_address()->histogram_snapshot(histogram, snapshot);
}

PERCID_INLINE int percid_histogram_take(struct percid_histogram *histogram, struct percid_snapshot **snapshot) PERCID_NOEXCEPT
{
    return percid_interface_address()->histogram_take(histogram, snapshot);
}

PERCID_INLINE uint64_t percid_histogram_unrecorded(const struct percid_histogram *histogram) PERCID_NOEXCEPT
{
    return percid_interface_address()->histogram_unrecorded(histogram);
}

PERCID_INLINE void percid_histogram_destroy(struct percid_histogram *histogram) PERCID_NOEXCEPT
{
    percid_interface_address()->histogram_destroy(histogram);
}

PERCID_INLINE int percid_snapshot_create(struct percid_snapshot **snapshot) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_create(snapshot);
}

PERCID_INLINE void percid_snapshot_free(struct percid_snapshot *snapshot) PERCID_NOEXCEPT
{
    percid_interface_address()->snapshot_free(snapshot);
}

PERCID_INLINE uint64_t percid_snapshot_count(const struct percid_snapshot *snapshot) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_count(snapshot);
}

PERCID_INLINE int percid_snapshot_quantile(const struct percid_snapshot *snapshot, double q, uint64_t *value) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_quantile(snapshot, q, value);
}

PERCID_INLINE int percid_snapshot_min(const struct percid_snapshot *snapshot, uint64_t *value) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_min(snapshot, value);
}

PERCID_INLINE int percid_snapshot_max(const struct percid_snapshot *snapshot, uint64_t *value) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_max(snapshot, value);
}

PERCID_INLINE int percid_snapshot_mean(const struct percid_snapshot *snapshot, double *mean) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_mean(snapshot, mean);
}

PERCID_INLINE size_t percid_snapshot_buckets(const struct percid_snapshot *snapshot, struct percid_bucket *buckets, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_buckets(snapshot, buckets, capacity);
}

PERCID_INLINE int percid_snapshot_merge(struct percid_snapshot *snapshot, const struct percid_snapshot *other) PERCID_NOEXCEPT
{
    return percid_interface_address()->snapshot_merge(snapshot, other);
}

PERCID_INLINE int percid_stack_create(struct percid_stack **stack, uint32_t capacity, size_t shared) PERCID_NOEXCEPT
{
    return percid_interface_address()->stack_create(stack, capacity, shared);
}

PERCID_INLINE int percid_stack_create_with_source(struct percid_stack **stack, int source, uint32_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->stack_create_with_source(stack, source, capacity);
}

PERCID_INLINE uint32_t percid_stack_capacity(const struct percid_stack *stack) PERCID_NOEXCEPT
{
    return percid_interface_address()->stack_capacity(stack);
}

PERCID_INLINE int64_t percid_stack_drain(struct percid_stack *stack, void (*visit)(void *item, void *argument), void *argument)
{
    return percid_interface_address()->stack_drain(stack, visit, argument);
}

PERCID_INLINE int percid_stack_destroy(struct percid_stack *stack, void (*visit)(void *item, void *argument), void *argument)
{
    return percid_interface_address()->stack_destroy(stack, visit, argument);
}

PERCID_INLINE int percid_pool_create(struct percid_pool **pool, size_t size, size_t align, uint32_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_create(pool, size, align, capacity);
}

PERCID_INLINE int percid_pool_create_bounded(struct percid_pool **pool, size_t size, size_t align, uint32_t capacity, size_t shared) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_create_bounded(pool, size, align, capacity, shared);
}

PERCID_INLINE int percid_pool_create_with_source(struct percid_pool **pool, int source, size_t size, size_t align, uint32_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_create_with_source(pool, source, size, align, capacity);
}

PERCID_INLINE size_t percid_pool_size(const struct percid_pool *pool) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_size(pool);
}

PERCID_INLINE size_t percid_pool_align(const struct percid_pool *pool) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_align(pool);
}

PERCID_INLINE size_t percid_pool_slabs(const struct percid_pool *pool, struct percid_range *slabs, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_slabs(pool, slabs, capacity);
}

PERCID_INLINE int64_t percid_pool_drain(struct percid_pool *pool) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_drain(pool);
}

PERCID_INLINE int percid_pool_destroy(struct percid_pool *pool) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_destroy(pool);
}

PERCID_INLINE int percid_local_create(struct percid_local **local, size_t size, size_t align, int (*make)(void *value, void *context), void (*drop)(void *value, void *context), void *context)
{
    return percid_interface_address()->local_create(local, size, align, make, drop, context);
}

PERCID_INLINE int percid_local_create_with_source(struct percid_local **local, int source, size_t size, size_t align, int (*make)(void *value, void *context), void (*drop)(void *value, void *context), void *context)
{
    return percid_interface_address()->local_create_with_source(local, source, size, align, make, drop, context);
}

PERCID_INLINE int percid_local_with(struct percid_local *local, void (*visit)(void *value, void *argument), void *argument)
{
    return percid_interface_address()->local_with(local, visit, argument);
}

PERCID_INLINE int percid_local_for_each(struct percid_local *local, void (*visit)(void *value, void *argument), void *argument)
{
    return percid_interface_address()->local_for_each(local, visit, argument);
}

PERCID_INLINE int64_t percid_local_drain(struct percid_local *local, void (*visit)(void *value, void *argument), void *argument)
{
    return percid_interface_address()->local_drain(local, visit, argument);
}

PERCID_INLINE int percid_local_destroy(struct percid_local *local)
{
    return percid_interface_address()->local_destroy(local);
}

PERCID_INLINE int percid_ring_create(struct percid_ring **ring, size_t bytes, int overflow) PERCID_NOEXCEPT
{
    return percid_interface_address()->ring_create(ring, bytes, overflow);
}

PERCID_INLINE int percid_ring_create_with_source(struct percid_ring **ring, int source, size_t bytes, int overflow) PERCID_NOEXCEPT
{
    return percid_interface_address()->ring_create_with_source(ring, source, bytes, overflow);
}

PERCID_INLINE size_t percid_ring_max_record_len(const struct percid_ring *ring) PERCID_NOEXCEPT
{
    return percid_interface_address()->ring_max_record_len(ring);
}

PERCID_INLINE int64_t percid_ring_poll(struct percid_ring *ring, void (*visit)(const struct percid_event *event, void *argument), void *argument)
{
    return percid_interface_address()->ring_poll(ring, visit, argument);
}

PERCID_INLINE uint64_t percid_ring_lost(const struct percid_ring *ring) PERCID_NOEXCEPT
{
    return percid_interface_address()->ring_lost(ring);
}

PERCID_INLINE int percid_ring_destroy(struct percid_ring *ring) PERCID_NOEXCEPT
{
    return percid_interface_address()->ring_destroy(ring);
}

PERCID_INLINE int percid_consumer_open(struct percid_consumer **consumer, struct percid_ring *ring) PERCID_NOEXCEPT
{
    return percid_interface_address()->consumer_open(consumer, ring);
}

PERCID_INLINE int percid_consumer_next(struct percid_consumer *consumer, struct percid_event *event) PERCID_NOEXCEPT
{
    return percid_interface_address()->consumer_next(consumer, event);
}

PERCID_INLINE int percid_consumer_close(struct percid_consumer *consumer) PERCID_NOEXCEPT
{
    return percid_interface_address()->consumer_close(consumer);
}

PERCID_INLINE int percid_mask_create(struct percid_mask **mask) PERCID_NOEXCEPT
{
    return percid_interface_address()->mask_create(mask);
}

PERCID_INLINE int percid_mask_is_marked(const struct percid_mask *mask, uint32_t id) PERCID_NOEXCEPT
{
    return percid_interface_address()->mask_is_marked(mask, id);
}

PERCID_INLINE int64_t percid_mask_drain(struct percid_mask *mask, void (*visit)(uint32_t id, void *argument), void *argument)
{
    return percid_interface_address()->mask_drain(mask, visit, argument);
}

PERCID_INLINE int percid_mask_destroy(struct percid_mask *mask) PERCID_NOEXCEPT
{
    return percid_interface_address()->mask_destroy(mask);
}

PERCID_INLINE int percid_memory_create(struct percid_memory **memory, size_t size, size_t align, void (*init)(void *value, void *context), void *context)
{
    return percid_interface_address()->memory_create(memory, size, align, init, context);
}

PERCID_INLINE int percid_memory_create_with_source(struct percid_memory **memory, int source, size_t size, size_t align, void (*init)(void *value, void *context), void *context)
{
    return percid_interface_address()->memory_create_with_source(memory, source, size, align, init, context);
}

PERCID_INLINE void *percid_memory_get(struct percid_memory *memory, uint32_t id) PERCID_NOEXCEPT
{
    return percid_interface_address()->memory_get(memory, id);
}

PERCID_INLINE void *percid_memory_current(struct percid_memory *memory) PERCID_NOEXCEPT
{
    return percid_interface_address()->memory_current(memory);
}

PERCID_INLINE void *percid_memory_next(struct percid_memory *memory, const void *value) PERCID_NOEXCEPT
{
    return percid_interface_address()->memory_next(memory, value);
}

PERCID_INLINE int percid_memory_id_of(struct percid_memory *memory, const void *value) PERCID_NOEXCEPT
{
    return percid_interface_address()->memory_id_of(memory, value);
}

PERCID_INLINE int percid_memory_for_each(struct percid_memory *memory, void (*visit)(void *value, void *argument), void *argument)
{
    return percid_interface_address()->memory_for_each(memory, visit, argument);
}

PERCID_INLINE int percid_memory_with_id(struct percid_memory *memory, uint32_t id, void (*visit)(void *value, void *argument), void *argument)
{
    return percid_interface_address()->memory_with_id(memory, id, visit, argument);
}

PERCID_INLINE int percid_memory_settle(struct percid_memory *memory) PERCID_NOEXCEPT
{
    return percid_interface_address()->memory_settle(memory);
}

PERCID_INLINE int percid_memory_destroy(struct percid_memory *memory, void (*drop)(void *value, void *argument), void *argument)
{
    return percid_interface_address()->memory_destroy(memory, drop, argument);
}

PERCID_INLINE int percid_rwlock_create(struct percid_rwlock **lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_create(lock);
}

PERCID_INLINE int percid_rwlock_create_with_source(struct percid_rwlock **lock, int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_create_with_source(lock, source);
}

PERCID_INLINE int percid_rwlock_read_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_read_lock(lock);
}

PERCID_INLINE int percid_rwlock_try_read_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_try_read_lock(lock);
}

PERCID_INLINE int percid_rwlock_timed_read_lock(struct percid_rwlock *lock, uint64_t nanoseconds) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_timed_read_lock(lock, nanoseconds);
}

PERCID_INLINE int percid_rwlock_read_unlock(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_read_unlock(lock);
}

PERCID_INLINE int percid_rwlock_write_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_write_lock(lock);
}

PERCID_INLINE int percid_rwlock_try_write_lock(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_try_write_lock(lock);
}

PERCID_INLINE int percid_rwlock_timed_write_lock(struct percid_rwlock *lock, uint64_t nanoseconds) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_timed_write_lock(lock, nanoseconds);
}

PERCID_INLINE int percid_rwlock_write_unlock(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_write_unlock(lock);
}

PERCID_INLINE int percid_rwlock_destroy(struct percid_rwlock *lock) PERCID_NOEXCEPT
{
    return percid_interface_address()->rwlock_destroy(lock);
}

PERCID_INLINE int percid_domain_create(struct percid_domain **domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_create(domain);
}

PERCID_INLINE int percid_domain_create_bounded(struct percid_domain **domain, size_t limit) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_create_bounded(domain, limit);
}

PERCID_INLINE int percid_domain_create_with_source(struct percid_domain **domain, int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_create_with_source(domain, source);
}

PERCID_INLINE int percid_domain_read_lock(struct percid_domain *domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_read_lock(domain);
}

PERCID_INLINE int percid_domain_read_unlock(struct percid_domain *domain, int token) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_read_unlock(domain, token);
}

PERCID_INLINE int percid_domain_synchronize(struct percid_domain *domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_synchronize(domain);
}

PERCID_INLINE int percid_domain_defer(struct percid_domain *domain, void (*function)(void *argument), void *argument)
{
    return percid_interface_address()->domain_defer(domain, function, argument);
}

PERCID_INLINE int percid_domain_try_defer(struct percid_domain *domain, void (*function)(void *argument), void *argument)
{
    return percid_interface_address()->domain_try_defer(domain, function, argument);
}

PERCID_INLINE int64_t percid_domain_flush(struct percid_domain *domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_flush(domain);
}

PERCID_INLINE size_t percid_domain_deferred_count(const struct percid_domain *domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_deferred_count(domain);
}

PERCID_INLINE size_t percid_domain_reader_count(const struct percid_domain *domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_reader_count(domain);
}

PERCID_INLINE int percid_domain_destroy(struct percid_domain *domain) PERCID_NOEXCEPT
{
    return percid_interface_address()->domain_destroy(domain);
}

PERCID_INLINE int percid_budget_create(struct percid_budget **budget, uint64_t limit) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_create(budget, limit);
}

PERCID_INLINE int percid_budget_create_with_batch(struct percid_budget **budget, uint64_t limit, uint64_t batch) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_create_with_batch(budget, limit, batch);
}

PERCID_INLINE int percid_budget_create_with_source(struct percid_budget **budget, int source, uint64_t limit, uint64_t batch) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_create_with_source(budget, source, limit, batch);
}

PERCID_INLINE int percid_budget_try_charge(struct percid_budget *budget, uint64_t units) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_try_charge(budget, units);
}

PERCID_INLINE int percid_budget_release(struct percid_budget *budget, uint64_t units) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_release(budget, units);
}

PERCID_INLINE uint64_t percid_budget_limit(const struct percid_budget *budget) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_limit(budget);
}

PERCID_INLINE uint64_t percid_budget_approximate(const struct percid_budget *budget) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_approximate(budget);
}

PERCID_INLINE uint64_t percid_budget_exact(const struct percid_budget *budget) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_exact(budget);
}

PERCID_INLINE int percid_budget_destroy(struct percid_budget *budget) PERCID_NOEXCEPT
{
    return percid_interface_address()->budget_destroy(budget);
}

PERCID_INLINE int percid_balancer_settings_init(struct percid_balancer_settings *settings, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_settings_init(settings, size);
}

PERCID_INLINE int percid_balancer_settings_set_rules(struct percid_balancer_settings *settings, int rules) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_settings_set_rules(settings, rules);
}

PERCID_INLINE int percid_balancer_create(struct percid_balancer **balancer, const struct percid_balancer_settings *settings) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_create(balancer, settings);
}

PERCID_INLINE int percid_balancer_has_nodes(const struct percid_balancer *balancer) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_has_nodes(balancer);
}

PERCID_INLINE int percid_balancer_start(struct percid_balancer *balancer) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_start(balancer);
}

PERCID_INLINE int percid_balancer_stop(struct percid_balancer *balancer) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_stop(balancer);
}

PERCID_INLINE int percid_balancer_publish(struct percid_balancer *balancer) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_publish(balancer);
}

PERCID_INLINE int percid_balancer_pass(struct percid_balancer *balancer, struct percid_pass *passed) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_pass(balancer, passed);
}

PERCID_INLINE int percid_balancer_move_batch(struct percid_balancer *balancer, struct percid_batch *batch) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_move_batch(balancer, batch);
}

PERCID_INLINE int64_t percid_balancer_take_events(struct percid_balancer *balancer, struct percid_balancer_event *events, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_take_events(balancer, events, capacity);
}

PERCID_INLINE int percid_balancer_destroy(struct percid_balancer *balancer) PERCID_NOEXCEPT
{
    return percid_interface_address()->balancer_destroy(balancer);
}

PERCID_INLINE int percid_region_register(struct percid_region **region, struct percid_balancer *balancer, const void *start, size_t bytes) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_register(region, balancer, start, bytes);
}

PERCID_INLINE int percid_region_register_trapped(struct percid_region **region, struct percid_balancer *balancer, const void *start, size_t bytes) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_register_trapped(region, balancer, start, bytes);
}

PERCID_INLINE int percid_region_register_written(struct percid_region **region, struct percid_balancer *balancer, const void *start, size_t bytes) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_register_written(region, balancer, start, bytes);
}

PERCID_INLINE const char *percid_region_error(int error) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_error(error);
}

PERCID_INLINE void percid_region_touch(struct percid_region *region, size_t offset) PERCID_NOEXCEPT
{
    percid_interface_address()->region_touch(region, offset);
}

PERCID_INLINE void percid_region_touch_all(struct percid_region *region) PERCID_NOEXCEPT
{
    percid_interface_address()->region_touch_all(region);
}

PERCID_INLINE void *percid_region_start(const struct percid_region *region) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_start(region);
}

PERCID_INLINE size_t percid_region_bytes(const struct percid_region *region) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_bytes(region);
}

PERCID_INLINE int percid_region_access(const struct percid_region *region) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_access(region);
}

PERCID_INLINE int percid_region_exclude_begin(struct percid_region *region, size_t offset, size_t bytes) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_exclude_begin(region, offset, bytes);
}

PERCID_INLINE int percid_region_exclude_end(struct percid_region *region, size_t offset, size_t bytes) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_exclude_end(region, offset, bytes);
}

PERCID_INLINE int percid_region_unregister(struct percid_region *region) PERCID_NOEXCEPT
{
    return percid_interface_address()->region_unregister(region);
}

PERCID_INLINE int percid_id_regions_register(struct percid_id_regions **regions, struct percid_balancer *balancer, int source) PERCID_NOEXCEPT
{
    return percid_interface_address()->id_regions_register(regions, balancer, source);
}

PERCID_INLINE void percid_id_regions_touch(struct percid_id_regions *regions) PERCID_NOEXCEPT
{
    percid_interface_address()->id_regions_touch(regions);
}

PERCID_INLINE size_t percid_id_regions_of_id(const struct percid_id_regions *regions, uint32_t id, struct percid_range *ranges, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->id_regions_of_id(regions, id, ranges, capacity);
}

PERCID_INLINE int percid_id_regions_unregister(struct percid_id_regions *regions) PERCID_NOEXCEPT
{
    return percid_interface_address()->id_regions_unregister(regions);
}

PERCID_INLINE int percid_pool_regions_register(struct percid_pool_regions **regions, struct percid_balancer *balancer, const struct percid_pool *pool) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_regions_register(regions, balancer, pool);
}

PERCID_INLINE void percid_pool_regions_touch(struct percid_pool_regions *regions, const void *object) PERCID_NOEXCEPT
{
    percid_interface_address()->pool_regions_touch(regions, object);
}

PERCID_INLINE size_t percid_pool_regions_ranges(const struct percid_pool_regions *regions, struct percid_range *ranges, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_regions_ranges(regions, ranges, capacity);
}

PERCID_INLINE int percid_pool_regions_unregister(struct percid_pool_regions *regions) PERCID_NOEXCEPT
{
    return percid_interface_address()->pool_regions_unregister(regions);
}

PERCID_INLINE int percid_report_create(struct percid_report **report, const struct percid_balancer *balancer) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_create(report, balancer);
}

PERCID_INLINE void percid_report_free(struct percid_report *report) PERCID_NOEXCEPT
{
    percid_interface_address()->report_free(report);
}

PERCID_INLINE int percid_report_totals(const struct percid_report *report, struct percid_balancer_totals *totals, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_totals(report, totals, size);
}

PERCID_INLINE size_t percid_report_nodes(const struct percid_report *report, uint32_t *nodes, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_nodes(report, nodes, capacity);
}

PERCID_INLINE size_t percid_report_slow_nodes(const struct percid_report *report, uint32_t *nodes, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_slow_nodes(report, nodes, capacity);
}

PERCID_INLINE size_t percid_report_regions(const struct percid_report *report) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_regions(report);
}

PERCID_INLINE int percid_report_region(const struct percid_report *report, size_t index, struct percid_region_figures *figures, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_region(report, index, figures, size);
}

PERCID_INLINE size_t percid_report_pages(const struct percid_report *report, size_t index, struct percid_on_node *nodes, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_pages(report, index, nodes, capacity);
}

PERCID_INLINE size_t percid_report_use(const struct percid_report *report, size_t index, struct percid_on_node *nodes, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_use(report, index, nodes, capacity);
}

PERCID_INLINE size_t percid_report_failures(const struct percid_report *report, size_t index, struct percid_region_failure *failures, size_t capacity) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_failures(report, index, failures, capacity);
}

PERCID_INLINE uint64_t percid_report_skipped(const struct percid_report *report, size_t index, int reason) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_skipped(report, index, reason);
}

PERCID_INLINE double percid_report_scan_share(const struct percid_report *report) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_scan_share(report);
}

PERCID_INLINE int percid_report_local_share(const struct percid_report *report, size_t index, double *share) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_local_share(report, index, share);
}

PERCID_INLINE double percid_report_share_on(const struct percid_report *report, size_t index, uint32_t node) PERCID_NOEXCEPT
{
    return percid_interface_address()->report_share_on(report, index, node);
}

PERCID_INLINE const char *percid_skip_reason_name(int reason) PERCID_NOEXCEPT
{
    return percid_interface_address()->skip_reason_name(reason);
}

PERCID_INLINE void percid_float_counter_add(struct percid_float_counter *counter, double n) PERCID_NOEXCEPT
{
    percid_interface_address()->float_counter_add(counter, n);
}

PERCID_INLINE double percid_float_counter_sum(const struct percid_float_counter *counter) PERCID_NOEXCEPT
{
    return percid_interface_address()->float_counter_sum(counter);
}

PERCID_INLINE void percid_gauge_add(struct percid_gauge *gauge, double n) PERCID_NOEXCEPT
{
    percid_interface_address()->gauge_add(gauge, n);
}

PERCID_INLINE void percid_gauge_set(struct percid_gauge *gauge, double value) PERCID_NOEXCEPT
{
    percid_interface_address()->gauge_set(gauge, value);
}

PERCID_INLINE void percid_gauge_max(struct percid_gauge *gauge, double value) PERCID_NOEXCEPT
{
    percid_interface_address()->gauge_max(gauge, value);
}

PERCID_INLINE double percid_gauge_value(const struct percid_gauge *gauge) PERCID_NOEXCEPT
{
    return percid_interface_address()->gauge_value(gauge);
}

PERCID_INLINE void percid_buckets_record(struct percid_buckets *buckets, double value) PERCID_NOEXCEPT
{
    percid_interface_address()->buckets_record(buckets, value);
}

PERCID_INLINE void percid_buckets_record_many(struct percid_buckets *buckets, double value, uint64_t times) PERCID_NOEXCEPT
{
    percid_interface_address()->buckets_record_many(buckets, value, times);
}

PERCID_INLINE int64_t percid_buckets_read(const struct percid_buckets *buckets, uint64_t *counts, size_t capacity, double *sum) PERCID_NOEXCEPT
{
    return percid_interface_address()->buckets_read(buckets, counts, capacity, sum);
}

PERCID_INLINE int percid_buckets_record_all(struct percid_buckets *buckets, const uint64_t *counts, size_t count, double sum) PERCID_NOEXCEPT
{
    return percid_interface_address()->buckets_record_all(buckets, counts, count, sum);
}

PERCID_INLINE int64_t percid_buckets_take(struct percid_buckets *buckets, uint64_t *counts, size_t capacity, double *sum) PERCID_NOEXCEPT
{
    return percid_interface_address()->buckets_take(buckets, counts, capacity, sum);
}

PERCID_INLINE int percid_family_counter(const struct percid_family *family, const char *const *values, size_t count, struct percid_counter **counter) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_counter(family, values, count, counter);
}

PERCID_INLINE int percid_family_float_counter(const struct percid_family *family, const char *const *values, size_t count, struct percid_float_counter **counter) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_float_counter(family, values, count, counter);
}

PERCID_INLINE int percid_family_gauge(const struct percid_family *family, const char *const *values, size_t count, struct percid_gauge **gauge) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_gauge(family, values, count, gauge);
}

PERCID_INLINE int percid_family_buckets(const struct percid_family *family, const char *const *values, size_t count, struct percid_buckets **buckets) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_buckets(family, values, count, buckets);
}

PERCID_INLINE int64_t percid_family_series(const struct percid_family *family) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_series(family);
}

PERCID_INLINE uint64_t percid_family_refused(const struct percid_family *family) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_refused(family);
}

PERCID_INLINE int percid_registry_create(struct percid_registry **registry) PERCID_NOEXCEPT
{
    return percid_interface_address()->registry_create(registry);
}

PERCID_INLINE int percid_family_create(struct percid_family **family, struct percid_registry *registry, const struct percid_family_settings *settings, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->family_create(family, registry, settings, size);
}

PERCID_INLINE int64_t percid_registry_render(const struct percid_registry *registry, int format, char *text, size_t size) PERCID_NOEXCEPT
{
    return percid_interface_address()->registry_render(registry, format, text, size);
}

PERCID_INLINE int percid_registry_write(const struct percid_registry *registry, int format, int (*write)(const char *text, size_t length, void *argument), void *argument)
{
    return percid_interface_address()->registry_write(registry, format, write, argument);
}

PERCID_INLINE int percid_registry_destroy(struct percid_registry *registry) PERCID_NOEXCEPT
{
    return percid_interface_address()->registry_destroy(registry);
}

PERCID_INLINE const char *percid_format_content_type(int format) PERCID_NOEXCEPT
{
    return percid_interface_address()->format_content_type(format);
}

PERCID_INLINE int percid_format_accepted(const char *accept) PERCID_NOEXCEPT
{
    return percid_interface_address()->format_accepted(accept);
}

#endif
