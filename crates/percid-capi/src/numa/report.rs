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

/// Why a region was not scanned; but the last one says why it was. The numbers are fixed.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its pages cannot migrate, or a memory policy places them.
    Unsuitable = 1,
    /// A file's pages that cannot be written.
    SharedRo = 2,
    /// It has no access rights, so no access can be seen.
    Inaccessible = 3,
    /// It is too new.
    ScanDelay = 4,
    /// It was scanned in this sequence already.
    SeqCompleted = 5,
    /// The scanning thread did not use it of late.
    PidInactive = 6,
    /// The same, but its scan had begun and is completed.
    IgnorePidInactive = 7,
}

impl Reason {
    const ALL: [(Reason, percid_numa::Reason, &'static CStr); 7] = [
        (Reason::Unsuitable, percid_numa::Reason::Unsuitable, c"unsuitable"),
        (Reason::SharedRo, percid_numa::Reason::SharedRo, c"shared_ro"),
        (Reason::Inaccessible, percid_numa::Reason::Inaccessible, c"inaccessible"),
        (Reason::ScanDelay, percid_numa::Reason::ScanDelay, c"scan_delay"),
        (Reason::SeqCompleted, percid_numa::Reason::SeqCompleted, c"seq_completed"),
        (Reason::PidInactive, percid_numa::Reason::PidInactive, c"pid_inactive"),
        (Reason::IgnorePidInactive, percid_numa::Reason::IgnorePidInactive, c"ignore_pid_inactive"),
    ];

    /// Returns the number of a reason; 0 for an unknown one.
    pub(super) fn number(of: percid_numa::Reason) -> c_int {
        let found = Reason::ALL.iter().find(|(_, reason, _)| *reason == of);
        found.map_or(0, |(reason, ..)| *reason as c_int)
    }
}

/// What a balancer had done and seen at some time. It belongs to the caller who made it, and does
/// not change; any number of threads may read it.
#[derive(Debug)]
pub struct Report(percid_numa::Report);

/// What a balancer has done in all. Later versions may add members at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Totals {
    /// How often all regions have been walked.
    pub sequence: i64,
    /// How many passes were made.
    pub passes: u64,
    /// How many of them armed nothing because the process's mappings could not be read.
    pub blind_passes: u64,
    /// The time from one pass to the next, at present, in nanoseconds.
    pub period_ns: u64,
    /// How long the passes took together, in nanoseconds.
    pub scan_time_ns: u64,
    /// How long moving pages took, in nanoseconds.
    pub move_time_ns: u64,
    /// How long the balancer has existed, in nanoseconds.
    pub age_ns: u64,
    /// How many threads the process has.
    pub threads: u64,
    /// How many of them share their bit in the sets of active threads with another.
    pub collisions: u64,
    /// Events that were lost because they were not taken in time.
    pub events_lost: u64,
}

/// What was done to a region, and what was seen there. Later versions may add members at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Where it starts.
    pub start: *mut c_void,
    /// How many bytes it has.
    pub bytes: usize,
    /// How access to it is seen: one of enum percid_access.
    pub access: c_int,
    /// 1 if its memory is no longer what was registered, and is left alone; else 0.
    pub gone: c_int,
    /// Pages that have no memory yet.
    pub absent: u64,
    /// First accesses to armed grains (a page, or 64 KiB of trapped memory) by threads on the
    /// grain's node.
    pub local_uses: u64,
    /// The same by threads on other nodes.
    pub remote_uses: u64,
    /// The same by the thread that was seen there before, or where none was.
    pub private_uses: u64,
    /// The same by another thread than was seen there before.
    pub shared_uses: u64,
    /// Distinct bits of the threads that used it of late.
    pub active: u64,
    /// Pages that were armed.
    pub scanned: u64,
    /// Pages that were moved.
    pub moved: u64,
    /// Those among them that went from a node without CPUs to one with some.
    pub promoted: u64,
    /// Those among them that went to a node without CPUs.
    pub demoted: u64,
    /// Pages that are to move.
    pub pending: u64,
    /// How often all grains were disarmed because the process had too many mappings.
    pub disarmed_whole: u64,
    /// Uses of armed memory by threads whose node the kernel did not say.
    pub unattributed: u64,
    /// Time spent on arming, in nanoseconds.
    pub scan_time_ns: u64,
    /// Time spent on moving, in nanoseconds.
    pub move_time_ns: u64,
}

/// A count of something on a node.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OnNode {
    /// The node.
    pub node: u32,
    /// 0.
    pub reserved: u32,
    /// How often.
    pub count: u64,
}

/// Pages of a region that could not be looked up, armed or moved.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Failure {
    /// The errno that the kernel gave, above 0.
    pub error: c_int,
    /// 0.
    pub reserved: c_int,
    /// How many pages.
    pub pages: u64,
}

/// Stores a report in `report`, to be freed by percid_report_free().
///
/// Returns 0; -EINVAL for NULL; -EBADF if the balancer is destroyed; -ENOMEM; on error `report`
/// becomes NULL. Looks up where every page of every region is: about a microsecond for every ten pages.
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

/// Stores what the balancer has done in all in `totals`. `size` is sizeof(percid_balancer_totals).
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
        blind_passes: report.blind_passes,
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
/// how many there are. With one, nothing is ever armed. With `capacity` 0 nothing is written and
/// `nodes` may be NULL; 0 is returned if `report` is NULL.
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

/// The same of those nodes without CPUs that the balancer moves memory to and from, by
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

/// Returns how many regions a report has; 0 if it is NULL.
///
/// # Safety
///
/// `report` is [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_regions(report: *const Report) -> usize {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { report.as_ref() }.map_or(0, |report| report.0.regions.len())
}

/// Stores what was done to the region of number `index` (by ascending address), and what was seen
/// there, in `figures`. `size` is sizeof(percid_region_figures).
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
        access: Access::of(region.access) as c_int,
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

/// The pages of a region on each node that has any, at the time of the report: writes the first
/// `capacity` nodes to `nodes` and returns how many there are. With `capacity` 0 nothing is written
/// and `nodes` may be NULL; 0 is returned if there is no such region.
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

/// How much each node has used a region of late: accesses that were seen, halved every sequence. As
/// percid_report_pages().
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
    let found =
        unsafe { region(report, index) }.map_or([].as_slice(), |region| &region.use_by_node);
    // SAFETY: the caller guarantees memory for `capacity` nodes, or NULL.
    unsafe { list::write(found.iter().map(on_node), nodes, capacity) }
}

/// The pages of a region that could not be looked up, armed or moved, by errno. As
/// percid_report_pages().
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

/// Returns how often a region was left out for a reason (one of enum percid_scan_reason), or was
/// scanned for the last one; 0 if there is no such region or reason.
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
    let reason = Reason::ALL.iter().find(|(number, ..)| *number as c_int == reason);
    match (region, reason) {
        (Some(region), Some((_, reason, _))) => guard(0, || region.skipped_for(*reason)),
        _ => 0,
    }
}

/// Returns which part of the time that the process's threads have run passes have taken, from 0 to
/// 1, 3 % at most but for what the last one took; 0 if `report` is NULL.
///
/// # Safety
///
/// `report` is NULL or [a result](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_report_scan_share(report: *const Report) -> f64 {
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { report.as_ref() }.map_or(0.0, |Report(report)| report.scan_share())
}

/// Stores which part of the accesses that were seen in a region were local, from 0 to 1.
///
/// Returns 0; -ENODATA if none was seen; -EINVAL for NULL, or if there is no such region.
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

/// Returns which part of the pages of a region is on a node, from 0 to 1; 0 if there is no such
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

/// Returns the published name of a reason, such as "pid_inactive"; NULL if there is none of this
/// number.
///
/// Async-signal-safe; costs a call.
#[unsafe(no_mangle)]
pub extern "C" fn percid_scan_reason_name(reason: c_int) -> *const c_char {
    let found = Reason::ALL.iter().find(|(number, ..)| *number as c_int == reason);
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
        assert_eq!(percid_numa::Reason::ALL.len(), Reason::ALL.len());
        for (number, reason) in (1..).zip(percid_numa::Reason::ALL) {
            assert_eq!(Reason::number(reason), number);
            // SAFETY: names are NUL-terminated strings.
            let name = unsafe { CStr::from_ptr(percid_scan_reason_name(number)) };
            assert_eq!(name.to_bytes(), reason.name().as_bytes());
        }
        assert!([-1, 0, 8].into_iter().all(|number| percid_scan_reason_name(number).is_null()));
    }
}
