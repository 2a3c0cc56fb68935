//! The only symbol that C programs refer to: a table of the functions, `percid_interface_1`.
//!
//! Every function of the header is an inline function of the caller's module that calls through
//! this table. The inline critical sections find the fast path's words in it. If a process has
//! several copies of percid, the dynamic linker selects the table of each module. The module then
//! gets everything else from the same copy.
//!
//! C programs contain the offsets of the table's members. So a later version appends functions, and
//! never moves or removes one; an incompatible change needs another name, `percid_interface_2`.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;

use crate::budget::*;
use crate::consumer::*;
use crate::counter::*;
use crate::domain::*;
use crate::fence::*;
use crate::histogram::*;
use crate::local::*;
use crate::machine::*;
use crate::mask::*;
use crate::memory::*;
use crate::metrics::family::*;
use crate::metrics::page::*;
use crate::metrics::registry::*;
use crate::metrics::series::*;
use crate::numa::balancer::*;
use crate::numa::event::*;
use crate::numa::own_memory::*;
use crate::numa::region::*;
use crate::numa::report::*;
use crate::numa::settings::*;
use crate::pool::*;
use crate::process::*;
use crate::ring::*;
use crate::rwlock::*;
use crate::source::*;
use crate::stack::*;
use crate::table_stats::*;

/// The number of this interface, which is in its symbol's name.
pub const NUMBER: u32 = 1;

/// Number of functions in the first release of this interface. Headers check for a later function
/// before they call it. (There was no release yet.)
pub const FIRST_RELEASE_FUNCTIONS: usize = FUNCTIONS.len();

/// Size of the table in every version: a program may have a copy of it, with the size of the
/// version that it was compiled with.
const BYTES: usize = 4096;

/// Maximum number of functions.
pub const CAPACITY: usize = (BYTES - size_of::<Start>()) / size_of::<*const ()>();

/// A pointer to any function.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Function(*const ());

/// The beginning of the table.
#[repr(C)]
struct Start {
    /// Number of bytes in use: this version does not have functions after them.
    size: u32,
    /// [`NUMBER`].
    number: u32,
    version: *const c_char,
    /// The words that inline critical sections read (`percid_inline.h` contains their offsets).
    fast_path: *const (),
    missing: unsafe extern "C" fn(name: *const c_char) -> c_int,
}

/// The table.
#[repr(C)]
pub struct Interface {
    start: Start,
    functions: [Function; CAPACITY],
}

// SAFETY: it is constant; it points to functions, a text, and words that are atomic.
unsafe impl Sync for Interface {}

impl fmt::Debug for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interface").field("size", &self.start.size).finish_non_exhaustive()
    }
}

const _: () = assert!(size_of::<Interface>() == BYTES);

impl Interface {
    /// Reports on standard error that this table lacks a function, and returns -ENOSYS, which
    /// headers return then.
    pub fn lacks(&self, name: &CStr) -> c_int {
        // SAFETY: the argument is a NUL-terminated string.
        unsafe { (self.start.missing)(name.as_ptr()) }
    }
}

macro_rules! functions {
    ($($name:ident)*) => {
        /// The names of the table's functions, in its order.
        pub const FUNCTIONS: &[&str] = &[$(stringify!($name)),*];

        const ADDRESSES: [Function; FUNCTIONS.len()] = [$(Function($name as *const ())),*];
    };
}

// Functions of a later release than the first of this interface are at the end, in the order of
// their introduction.
functions! {
    percid_version
    percid_init
    percid_source_name
    percid_source_by_name
    percid_source_prepare
    percid_source_unavailable
    percid_source_reason
    percid_source_current_id
    percid_source_id_count
    percid_selection_reason_read
    percid_reason
    percid_current_id
    percid_compact_ids
    percid_set_id_limit
    percid_kernel_numbers_read

    percid_fence_light
    percid_fence_all
    percid_fence_cpu
    percid_fence_is_asymmetric

    percid_table_stats_read
    percid_id_memory
    percid_machine_read
    percid_machine_cpus
    percid_machine_probe

    percid_counter_add_slow
    percid_counter_with_source
    percid_counter_sum
    percid_counter_take
    percid_counter_per_id
    percid_counter_shared
    percid_counter_destroy

    percid_histogram_record_slow
    percid_histogram_with_source
    percid_histogram_snapshot
    percid_histogram_take
    percid_histogram_unrecorded
    percid_histogram_destroy

    percid_snapshot_create
    percid_snapshot_free
    percid_snapshot_count
    percid_snapshot_quantile
    percid_snapshot_min
    percid_snapshot_max
    percid_snapshot_mean
    percid_snapshot_buckets
    percid_snapshot_merge

    percid_stack_create
    percid_stack_create_with_source
    percid_stack_capacity
    percid_stack_push
    percid_stack_pop
    percid_stack_drain
    percid_stack_destroy

    percid_pool_create
    percid_pool_create_bounded
    percid_pool_create_with_source
    percid_pool_size
    percid_pool_align
    percid_pool_slabs
    percid_pool_get
    percid_pool_put
    percid_pool_drain
    percid_pool_destroy

    percid_local_create
    percid_local_create_with_source
    percid_local_acquire
    percid_local_release
    percid_local_with
    percid_local_for_each
    percid_local_drain
    percid_local_destroy

    percid_ring_create
    percid_ring_create_with_source
    percid_ring_append
    percid_ring_max_record_len
    percid_ring_poll
    percid_ring_lost
    percid_ring_destroy

    percid_consumer_open
    percid_consumer_next
    percid_consumer_close

    percid_mask_create
    percid_mask_mark
    percid_mask_is_marked
    percid_mask_drain
    percid_mask_destroy

    percid_memory_create
    percid_memory_create_with_source
    percid_memory_add
    percid_memory_fetch_add
    percid_memory_swap
    percid_memory_store_if
    percid_memory_store_both_if
    percid_memory_store_if_both
    percid_memory_copy_then_store_if
    percid_memory_push
    percid_memory_pop
    percid_memory_get
    percid_memory_current
    percid_memory_next
    percid_memory_id_of
    percid_memory_for_each
    percid_memory_with_id
    percid_memory_settle
    percid_memory_destroy

    percid_rwlock_create
    percid_rwlock_create_with_source
    percid_rwlock_read_lock
    percid_rwlock_try_read_lock
    percid_rwlock_timed_read_lock
    percid_rwlock_read_unlock
    percid_rwlock_write_lock
    percid_rwlock_try_write_lock
    percid_rwlock_timed_write_lock
    percid_rwlock_write_unlock
    percid_rwlock_destroy

    percid_domain_create
    percid_domain_create_bounded
    percid_domain_create_with_source
    percid_domain_read_lock
    percid_domain_read_unlock
    percid_domain_synchronize
    percid_domain_defer
    percid_domain_try_defer
    percid_domain_flush
    percid_domain_deferred_count
    percid_domain_reader_count
    percid_domain_destroy

    percid_budget_create
    percid_budget_create_with_batch
    percid_budget_create_with_source
    percid_budget_try_charge
    percid_budget_release
    percid_budget_limit
    percid_budget_approximate
    percid_budget_exact
    percid_budget_destroy

    percid_balancer_settings_init
    percid_balancer_settings_set_rules
    percid_balancer_create
    percid_balancer_has_nodes
    percid_balancer_start
    percid_balancer_stop
    percid_balancer_publish
    percid_balancer_pass
    percid_balancer_move_batch
    percid_balancer_take_events
    percid_balancer_destroy

    percid_region_register
    percid_region_register_trapped
    percid_region_register_written
    percid_region_error
    percid_region_touch
    percid_region_touch_all
    percid_region_start
    percid_region_bytes
    percid_region_access
    percid_region_exclude_begin
    percid_region_exclude_end
    percid_region_unregister

    percid_id_regions_register
    percid_id_regions_touch
    percid_id_regions_of_id
    percid_id_regions_unregister
    percid_pool_regions_register
    percid_pool_regions_touch
    percid_pool_regions_ranges
    percid_pool_regions_unregister

    percid_report_create
    percid_report_free
    percid_report_totals
    percid_report_nodes
    percid_report_slow_nodes
    percid_report_regions
    percid_report_region
    percid_report_pages
    percid_report_use
    percid_report_failures
    percid_report_skipped
    percid_report_scan_share
    percid_report_local_share
    percid_report_share_on
    percid_skip_reason_name

    percid_float_counter_add
    percid_float_counter_sum
    percid_gauge_add
    percid_gauge_set
    percid_gauge_max
    percid_gauge_value
    percid_buckets_record
    percid_buckets_record_many
    percid_buckets_read
    percid_buckets_record_all
    percid_buckets_take

    percid_family_counter
    percid_family_float_counter
    percid_family_gauge
    percid_family_buckets
    percid_family_series
    percid_family_refused

    percid_registry_create
    percid_family_create
    percid_registry_render
    percid_registry_write
    percid_registry_destroy
    percid_format_content_type
    percid_format_accepted
}

/// Functions with critical sections that are inline in the header; C uses a function of the table
/// for the rest of each. These are for languages that cannot include the header.
pub const INLINED: &[&str] =
    &["percid_counter_add", "percid_histogram_record", "percid_histogram_record_many"];

/// Functions of the table whose common case is inline in the header: C calls those of the table for
/// all other cases.
pub const COMMON_CASE_INLINE: &[&str] = &[
    "percid_stack_push",
    "percid_stack_pop",
    "percid_pool_get",
    "percid_pool_put",
    "percid_local_acquire",
    "percid_local_release",
    "percid_ring_append",
    "percid_mask_mark",
    "percid_fence_light",
    "percid_memory_add",
    "percid_memory_fetch_add",
    "percid_memory_swap",
    "percid_memory_store_if",
    "percid_memory_store_both_if",
    "percid_memory_store_if_both",
    "percid_memory_copy_then_store_if",
    "percid_memory_push",
    "percid_memory_pop",
];

/// The table of this copy of percid. The library itself does not read it: that would be a look-up,
/// and bind all modules of the process to this copy.
#[unsafe(export_name = "percid_interface_1")]
pub static INTERFACE: Interface = Interface {
    start: Start {
        size: (size_of::<Start>() + FUNCTIONS.len() * size_of::<Function>()) as u32,
        number: NUMBER,
        version: VERSION.as_ptr(),
        fast_path: percid::capi::FAST_PATH_WORDS,
        missing,
    },
    functions: filled(),
};

const fn filled() -> [Function; CAPACITY] {
    let mut functions = [Function(std::ptr::null()); CAPACITY];
    let mut index = 0;
    while index < ADDRESSES.len() {
        functions[index] = ADDRESSES[index];
        index += 1;
    }
    functions
}

/// Reports that a program has called a function which this version does not have: it was compiled
/// for a later version.
///
/// Async-signal-safe.
///
/// # Safety
///
/// `name` is a NUL-terminated string.
unsafe extern "C" fn missing(name: *const c_char) -> c_int {
    // SAFETY: the caller guarantees a NUL-terminated string.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("such function");
    percid::capi::say(format_args!(
        "this process uses version {}, which has no {name}(): the caller needs a later one",
        env!("CARGO_PKG_VERSION")
    ));
    -libc::ENOSYS
}
