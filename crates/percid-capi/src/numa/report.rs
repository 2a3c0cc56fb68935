//! Reports: the actions and observations of a balancer, in plain numbers.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use percid_numa::RegionReport;

use super::balancer::Balancer;
use super::region::Access;
use super::settings::nanoseconds;
use crate::barrier::{guard, uncancelled};
use crate::errno::preserved;
use crate::headroom;
use crate::list;
use crate::registry::Registry;
use crate::sized;

/// The reason why a region was not scanned, or, for the last one, why it was. The numbers are
/// fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Its pages cannot migrate, or a memory policy places them.
    Unsuitable = 1,
    /// A file's pages that cannot be written.
    SharedRo = 2,
    /// It has no access rights, so no access can be detected.
    Inaccessible = 3,
    /// It is too new.
    ScanDelay = 4,
    /// It was already scanned in this scan cycle.
    SeqCompleted = 5,
    /// The scanning thread has not used it recently.
    PidInactive = 6,
    /// The same, but its scan had begun and is completed.
    IgnorePidInactive = 7,
}

impl SkipReason {
    const ALL: [(SkipReason, percid_numa::SkipReason, &'static CStr); 7] = [
        (SkipReason::Unsuitable, percid_numa::SkipReason::Unsuitable, c"unsuitable"),
        (SkipReason::SharedRo, percid_numa::SkipReason::SharedRo, c"shared_ro"),
        (SkipReason::Inaccessible, percid_numa::SkipReason::Inaccessible, c"inaccessible"),
        (SkipReason::ScanDelay, percid_numa::SkipReason::ScanDelay, c"scan_delay"),
        (SkipReason::SeqCompleted, percid_numa::SkipReason::SeqCompleted, c"seq_completed"),
        (SkipReason::PidInactive, percid_numa::SkipReason::PidInactive, c"pid_inactive"),
        (
            SkipReason::IgnorePidInactive,
            percid_numa::SkipReason::IgnorePidInactive,
            c"ignore_pid_inactive",
        ),
    ];

    /// Returns the number of a reason; 0 for an unknown one.
    pub(super) fn number(of: percid_numa::SkipReason) -> c_int {
        let found = SkipReason::ALL.iter().find(|(_, reason, _)| *reason == of);
        found.map_or(0, |(reason, ..)| *reason as c_int)
    }
}

/// The actions and observations of a balancer until some time. A report belongs to its creator, and
/// does not change; any number of threads may read it.
#[derive(Debug)]
pub struct Report(percid_numa::Report);

/// The total actions of a balancer. Later versions may add members at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    /// Number of finished scan cycles over all regions.
    pub sequence: i64,
    /// Number of passes.
    pub passes: u64,
    /// Number of passes that armed nothing because the process's mappings could not be read.
    pub unreadable_passes: u64,
    /// The current time from one pass to the next, in nanoseconds.
    pub period_ns: u64,
    /// Total duration of the passes, in nanoseconds.
    pub scan_time_ns: u64,
    /// Total time for moving pages, in nanoseconds.
    pub move_time_ns: u64,
    /// Time since the balancer was created, in nanoseconds.
    pub age_ns: u64,
    /// Number of threads of the process.
    pub threads: u64,
    /// Number of threads that share a bit of the active-thread sets with another thread.
    pub collisions: u64,
    /// Events that were lost because they were not taken in time.
    pub events_lost: u64,
}

/// Actions and observations in a region. Later versions may add members at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// The start of the region.
    pub start: *mut c_void,
    /// The size of the region in bytes.
    pub bytes: usize,
    /// The access method: one of enum percid_access.
    pub access: c_int,
    /// 1 if its memory is no longer the registered one, and the region is ignored; otherwise 0.
    pub gone: c_int,
    /// Pages that have no memory yet.
    pub absent: u64,
    /// First accesses to armed granules (a page, or 64 KiB of trapped memory) by threads on the
    /// granule's node.
    pub local_uses: u64,
    /// First accesses by threads on other nodes.
    pub remote_uses: u64,
    /// First accesses by the thread that was recorded there before, or without such a thread.
    pub private_uses: u64,
    /// First accesses by another thread than the one that was recorded there before.
    pub shared_uses: u64,
    /// Number of distinct bits of the threads that used it recently.
    pub active: u64,
    /// Pages that were armed.
    pub scanned: u64,
    /// Pages that were moved.
    pub moved: u64,
    /// Moved pages that went from a node without CPUs to one with CPUs.
    pub promoted: u64,
    /// Moved pages that went to a node without CPUs.
    pub demoted: u64,
    /// Pages with a pending migration.
    pub pending: u64,
    /// Number of times all granules were disarmed because the process had too many mappings.
    pub disarmed_whole: u64,
    /// Accesses to armed memory by threads whose node the kernel did not report.
    pub unattributed: u64,
    /// Time spent on arming, in nanoseconds.
    pub scan_time_ns: u64,
    /// Time spent on moving, in nanoseconds.
    pub move_time_ns: u64,
}

/// A count on a node.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OnNode {
    /// The node.
    pub node: u32,
    /// Always 0.
    pub reserved: u32,
    /// The count.
    pub count: u64,
}

/// Pages of a region that could not be looked up, armed or moved.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// The kernel's errno, above 0.
    pub error: c_int,
    /// Always 0.
    pub reserved: c_int,
    /// Number of pages.
    pub pages: u64,
}

/// Stores a report in `report`, to be freed by percid_report_free().
///
/// Returns 0; -EINVAL for NULL; -EBADF if the balancer is destroyed; -ENOMEM; on error `report`
/// becomes NULL. Looks up the node of every page of every region: about a microsecond for every ten
/// pages.
///
/// # Safety
///
/// `report` is [memory](crate#safety) for a pointer. `balancer` is [a handle](crate#safety).
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_create(
    report: *mut *mut Report,
    balancer: *const Balancer,
) -> c_int {
    if report.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    let made = unsafe { Registry::object(balancer) }.and_then(|balancer| {
        let make = || {
            headroom::ask()?;
            Ok(Box::new(Report(balancer.balancer.report())))
        };
        preserved(|| uncancelled(Err(-libc::EFAULT), make))
    });
    let result = made.as_ref().err().copied().unwrap_or(0);
    // SAFETY: the caller guarantees a valid pointer, and it is not NULL.
    unsafe { report.write(made.map_or(ptr::null_mut(), Box::into_raw)) };
    result
}

/// Frees a report. NULL is allowed.
///
/// # Safety
///
/// `report` is [a result](crate#safety), which no thread uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_free(report: *mut Report) {
    if !report.is_null() {
        // SAFETY: the pointer was created by `Box::into_raw`, and the caller does not use it any
        // more.
        preserved(|| uncancelled((), || drop(unsafe { Box::from_raw(report) })));
    }
}

/// Stores the total actions of the balancer in `totals`. `size` is sizeof(percid_balancer_totals).
/// Returns 0, or -EINVAL for NULL.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `totals` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_totals(
    report: *const Report,
    totals: *mut Totals,
    size: usize,
) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(Report(report)) = (unsafe { report.as_ref() }) else { return -libc::EINVAL };
    let found = Totals {
        sequence: report.sequence,
        passes: report.passes,
        unreadable_passes: report.unreadable_passes,
        period_ns: nanoseconds(report.period),
        scan_time_ns: nanoseconds(report.scan_time),
        move_time_ns: nanoseconds(report.move_time),
        age_ns: nanoseconds(report.age),
        threads: report.threads as u64,
        collisions: report.collisions as u64,
        events_lost: report.events_lost,
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { sized::store(totals, size, &found) }
}

/// Writes the first `capacity` of the nodes that have memory, ascending, to `nodes`, and returns
/// the number of all. With one node, nothing is ever armed. With `capacity` 0 nothing is written
/// and `nodes` may be NULL; 0 is returned if `report` is NULL.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `nodes` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_nodes(
    report: *const Report,
    nodes: *mut u32,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(Report(report)) = (unsafe { report.as_ref() }) else { return 0 };
    // SAFETY: the caller guarantees memory for `capacity` nodes, or NULL.
    unsafe { list::write(report.nodes.iter().copied(), nodes, capacity) }
}

/// Does the same for the nodes without CPUs to and from which the balancer moves memory, by
/// percid_balancer_settings.tiers.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `nodes` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_slow_nodes(
    report: *const Report,
    nodes: *mut u32,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(Report(report)) = (unsafe { report.as_ref() }) else { return 0 };
    // SAFETY: the caller guarantees memory for `capacity` nodes, or NULL.
    unsafe { list::write(report.slow_nodes.iter().copied(), nodes, capacity) }
}

/// Returns the number of regions in a report; 0 if it is NULL.
///
/// # Safety
///
/// `report` is [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_regions(report: *const Report) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { report.as_ref() }.map_or(0, |report| report.0.regions.len())
}

/// Stores the actions and observations in the region with index `index` (by ascending address) in
/// `figures`. `size` is sizeof(percid_region_figures).
///
/// Returns 0, -EINVAL for NULL, -ERANGE if there are no more than `index` regions.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `figures` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_region(
    report: *const Report,
    index: usize,
    figures: *mut Figures,
    size: usize,
) -> c_int {
    if report.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(region) = (unsafe { region(report, index) }) else { return -libc::ERANGE };
    let found = Figures {
        start: ptr::with_exposed_provenance_mut(region.range.start),
        bytes: region.range.len(),
        access: Access::from_method(region.access) as c_int,
        gone: c_int::from(region.gone),
        absent: region.absent,
        local_uses: region.local,
        remote_uses: region.remote,
        private_uses: region.private,
        shared_uses: region.shared,
        active: u64::from(region.active),
        scanned: region.scanned,
        moved: region.moved,
        promoted: region.promoted,
        demoted: region.demoted,
        pending: region.pending,
        disarmed_whole: region.disarmed_whole,
        unattributed: region.unattributed,
        scan_time_ns: nanoseconds(region.scan_time),
        move_time_ns: nanoseconds(region.move_time),
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { sized::store(figures, size, &found) }
}

/// Returns the number of nodes that have pages of a region at the time of the report, and writes
/// the first `capacity` of them to `nodes`, with the numbers of pages. With `capacity` 0 nothing is
/// written and `nodes` may be NULL; 0 is returned if there is no such region.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `nodes` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_pages(
    report: *const Report,
    index: usize,
    nodes: *mut OnNode,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let found =
        unsafe { region(report, index) }.map_or([].as_slice(), |region| &region.pages_by_node);
    // SAFETY: the caller guarantees memory for `capacity` nodes, or NULL.
    unsafe { list::write(found.iter().map(on_node), nodes, capacity) }
}

/// Does the same as percid_report_pages() for the recent use of a region by each node: detected
/// accesses, halved every scan cycle.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `nodes` is [memory](crate#safety) for `capacity` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_use(
    report: *const Report,
    index: usize,
    nodes: *mut OnNode,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let found = unsafe { region(report, index) }
        .map_or([].as_slice(), |region| &region.recent_accesses_by_node);
    // SAFETY: the caller guarantees memory for `capacity` nodes, or NULL.
    unsafe { list::write(found.iter().map(on_node), nodes, capacity) }
}

/// Does the same as percid_report_pages() for the pages of a region that could not be looked up,
/// armed or moved, by errno.
///
/// # Safety
///
/// `report` is [a result](crate#safety). `failures` is [memory](crate#safety) for `capacity` of
/// them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_failures(
    report: *const Report,
    index: usize,
    failures: *mut Failure,
    capacity: usize,
) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let found = unsafe { region(report, index) }.map_or([].as_slice(), |region| &region.failed);
    let found = found.iter().map(|&(error, pages)| Failure { error, reserved: 0, pages });
    // SAFETY: the caller guarantees memory for `capacity` failures, or NULL.
    unsafe { list::write(found, failures, capacity) }
}

/// Returns the number of times a region was left out for a reason (one of enum percid_skip_reason),
/// or was scanned for the last one; 0 if there is no such region or reason.
///
/// # Safety
///
/// `report` is [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_skipped(
    report: *const Report,
    index: usize,
    reason: c_int,
) -> u64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let region = unsafe { region(report, index) };
    let reason = SkipReason::ALL.iter().find(|(number, ..)| *number as c_int == reason);
    match (region, reason) {
        (Some(region), Some((_, reason, _))) => guard(0, || region.skipped_for(*reason)),
        _ => 0,
    }
}

/// Returns the share of passes in the time that the process's threads have run, from 0 to 1. It is
/// at most 3 %, apart from the duration of the last pass; 0 if `report` is NULL.
///
/// # Safety
///
/// `report` is NULL or [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_scan_share(report: *const Report) -> f64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { report.as_ref() }.map_or(0.0, |Report(report)| report.scan_share())
}

/// Stores the share of local accesses among the detected accesses in a region, from 0 to 1.
///
/// Returns 0; -ENODATA if no access was detected; -EINVAL for NULL, or if there is no such region.
///
/// # Safety
///
/// `report` is NULL or [a result](crate#safety). `share` is [memory](crate#safety) for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_local_share(
    report: *const Report,
    index: usize,
    share: *mut f64,
) -> c_int {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    let Some(region) = (unsafe { region(report, index) }).filter(|_| !share.is_null()) else {
        return -libc::EINVAL;
    };
    let Some(found) = region.local_share() else { return -libc::ENODATA };
    // SAFETY: the caller guarantees memory for a number, and it is not NULL.
    unsafe { share.write(found) };
    0
}

/// Returns the share of a region's pages that are on a node, from 0 to 1; 0 if there is no such
/// region.
///
/// # Safety
///
/// `report` is NULL or [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_share_on(
    report: *const Report,
    index: usize,
    node: u32,
) -> f64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { region(report, index) }.map_or(0.0, |region| region.share_on(node))
}

/// Returns the published name of a reason, such as "pid_inactive"; NULL if no reason has this
/// number.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_skip_reason_name(reason: c_int) -> *const c_char {
    let found = SkipReason::ALL.iter().find(|(number, ..)| *number as c_int == reason);
    found.map_or(ptr::null(), |(_, _, name)| name.as_ptr())
}

/// # Safety
///
/// The report is NULL or valid, and outlives `'a`.
unsafe fn region<'a>(report: *const Report, index: usize) -> Option<&'a RegionReport> {
    // SAFETY: the caller guarantees that the report is NULL or valid, and that it outlives `'a`.
    unsafe { report.as_ref() }?.0.regions.get(index)
}

fn on_node(&(node, count): &(u32, u64)) -> OnNode {
    OnNode { node, reserved: 0, count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_fixed_numbers_and_the_published_names() {
        assert_eq!(percid_numa::SkipReason::ALL.len(), SkipReason::ALL.len());
        for (number, reason) in (1..).zip(percid_numa::SkipReason::ALL) {
            assert_eq!(SkipReason::number(reason), number);
            // SAFETY: names are NUL-terminated strings.
            let name = unsafe { CStr::from_ptr(percid_skip_reason_name(number)) };
            assert_eq!(name.to_bytes(), reason.name().as_bytes());
        }
        assert!([-1, 0, 8].into_iter().all(|number| percid_skip_reason_name(number).is_null()));
    }
}
