//! Arming pages, the action of a scan pass; and disarming them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, MutexGuard, atomic::Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_rules::scan::{Effects, SkipReason};

use crate::access::mapping_budget;
use crate::access::pages::{Layout, Pace, Pages, Work};
use crate::access::region_record::{RegionRecord, Tally};
use crate::access::trap;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::balancing::log::Log;
use crate::balancing::residency::{self, Resident};
use crate::call_size::CallSize;
use crate::kernel::Linux;
use crate::report::event::Event;
use crate::sys::{maps, memory};

/// Number of pages that are disarmed by one system call.
const DISARM_AT_ONCE: usize = 512;

/// Sizes of the pieces that are armed at once: the first and smallest, and the largest. While a
/// piece is armed, threads of the program may have to wait for a fault or a mapping, for about
/// `PIECE_TIME`.
pub(crate) const FIRST_PIECE_SIZE: CallSize = CallSize::new(MIN_PIECE_BYTES);
const MIN_PIECE_BYTES: u64 = 2 << 20;
const MAX_PIECE_BYTES: u64 = 64 << 20;
const PIECE_TIME: Duration = Duration::from_micros(500);

/// The effects of a pass, and its counts.
pub(crate) struct PassEffects<'a> {
    pub(crate) entries: &'a BTreeMap<usize, Arc<RegionRecord>>,
    pub(crate) log: &'a mut Log,
    /// Bytes that the scan requested to arm: those with memory that were not armed yet are armed
    /// now.
    pub(crate) looked_at: u64,
    /// Number of pages that were armed.
    pub(crate) armed: u64,
    /// Number of regions that were skipped.
    pub(crate) skipped: u64,
    pub(crate) handler_replaced: bool,
    /// Size of the pieces that are armed at once.
    pub(crate) size: CallSize,
}

impl<'a> PassEffects<'a> {
    pub(crate) fn new(
        entries: &'a BTreeMap<usize, Arc<RegionRecord>>,
        log: &'a mut Log,
        size: CallSize,
    ) -> PassEffects<'a> {
        let handler_replaced = false;
        PassEffects { entries, log, looked_at: 0, armed: 0, skipped: 0, handler_replaced, size }
    }
}

impl Effects for PassEffects<'_> {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        let region = region as usize;
        let Some(entry) = self.entries.get(&region) else { return 0 };
        let Some(pages) = &entry.pages else { return 0 };
        match leave(entry) {
            Leave::Given => {}
            Leave::HandlerReplaced => {
                self.handler_replaced = true;
                return 0;
            }
            Leave::Refused(errno) => {
                let pages = (part.end - part.start) / memory::page_size() as u64;
                entry.tally().fail(errno, pages);
                return 0;
            }
        }
        let began = Instant::now();
        let part = part.start as usize..part.end as usize;
        let mut tally = entry.tally();
        let armed = arm(entry, pages, part.clone(), &mut tally, &mut self.size);
        tally.scanned += armed;
        tally.scan_time += began.elapsed();
        self.looked_at += part.len() as u64;
        self.armed += armed;
        self.log.push(Event::Armed { region, part, pages: armed });
        armed
    }

    fn note(&mut self, region: u64, reason: SkipReason) {
        let region = region as usize;
        if let Some(entry) = self.entries.get(&region) {
            entry.tally().skipped[reason as usize] += 1;
        }
        self.skipped += u64::from(reason != SkipReason::IgnorePidInactive);
        self.log.push(Event::Skipped { region, reason });
    }
}

/// Permission to arm memory of a region; checked before each part of it.
enum Leave {
    Given,
    /// Another handler has taken the place of percid's.
    HandlerReplaced,
    /// The kernel might refuse to restore the rights, with this `errno`.
    Refused(i32),
}

fn leave(entry: &RegionRecord) -> Leave {
    match entry.access {
        AccessMethod::Trapped if !trap::is_prepared() => Leave::HandlerReplaced,
        // The error that the kernel might return when the rights must be restored.
        AccessMethod::Trapped if memory::data_is_limited() => Leave::Refused(libc::ENOMEM),
        _ => Leave::Given,
    }
}

/// Arms the grains of a part of a region, piece by piece. Returns the number of its pages that were
/// not armed before.
fn arm(
    entry: &RegionRecord,
    pages: &Pages,
    part: Range<usize>,
    tally: &mut Tally,
    size: &mut CallSize,
) -> u64 {
    let layout = pages.layout;
    let mut next = layout.grain_at(part.start);
    let end = layout.grain_at(part.end - 1) + 1;
    let mut armed = 0;
    while next < end {
        let bytes = size.bytes(PIECE_TIME).clamp(MIN_PIECE_BYTES, MAX_PIECE_BYTES);
        let piece = next..end.min(next + (bytes >> layout.shift).max(1) as usize);
        next = piece.end;
        let began = Instant::now();
        // Released between pieces, so that a thread that excludes or unregisters waits for one
        // piece only.
        let mut work = pages.go_on_with_work();
        if work.over {
            break;
        }
        let is_wanted = |&grain: &usize| !pages.is_armed(grain) && !work.excludes(grain);
        let wanted: Vec<usize> = piece.clone().filter(is_wanted).collect();
        work.looks += 1;
        let found = match residency::look_up(&Linux, pages, &wanted, work.looks) {
            Ok(found) => found,
            Err((errno, count)) => {
                tally.fail(errno, count);
                break;
            }
        };
        armed += arm_found(entry, pages, piece, &found, tally);
        let done = found.iter().map(|there| there.pages).sum::<u64>() * memory::page_size() as u64;
        size.learn(done, began.elapsed());
    }
    armed
}

/// Arms the grains of a piece that have memory. Returns the number of pages that were not armed
/// before.
fn arm_found(
    entry: &RegionRecord,
    pages: &Pages,
    piece: Range<usize>,
    found: &[Resident],
    tally: &mut Tally,
) -> u64 {
    match (entry.access, &entry.monitor) {
        (AccessMethod::Trapped, _) => arm_runs(pages, found, tally),
        (_, None) => mark(pages, found),
        (_, Some(monitor)) => {
            let marked = mark(pages, found);
            let (refused, vanished) = protect(monitor, pages, piece, tally);
            entry.vanished.fetch_or(vanished, Relaxed);
            marked.saturating_sub(refused)
        }
    }
}

/// Arms again the grains that were requested at this pace. Their nodes are known, because they were
/// armed before. Returns the number of pages that were not armed before.
pub(crate) fn arm_again(entry: &RegionRecord, pages: &Pages, pace: Pace) -> u64 {
    let began = Instant::now();
    let mut tally = entry.tally();
    if !matches!(leave(entry), Leave::Given) || entry.gone.load(Relaxed) {
        return 0;
    }
    let mut armed = 0;
    for piece in pieces(&pages.layout, 0..pages.layout.grains()) {
        if pages.unsettled(pace) == 0 {
            break;
        }
        let grains = pages.take_again(piece.clone(), pace);
        let work = pages.go_on_with_work();
        if work.over {
            break;
        }
        let is_wanted = |&grain: &usize| !pages.is_armed(grain) && !work.excludes(grain);
        let found = grains.into_iter().filter(is_wanted).filter_map(|grain| {
            let count = (pages.layout.grain(grain).len() / memory::page_size()) as u64;
            pages.home(grain).map(|node| Resident { grain, node, pages: count })
        });
        let found: Vec<Resident> = found.collect();
        for run in found.chunk_by(|one, next| one.grain + 1 == next.grain) {
            let part = run[0].grain..run[run.len() - 1].grain + 1;
            armed += arm_found(entry, pages, part, run, &mut tally);
        }
    }
    tally.scanned += armed;
    tally.scan_time += began.elapsed();
    armed
}

/// Cuts grains into pieces that each take a short time.
fn pieces(layout: &Layout, grains: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let at_once = (DISARM_AT_ONCE >> (layout.shift - memory::page_size().trailing_zeros())).max(1);
    let end = grains.end;
    grains.step_by(at_once).map(move |start| start..end.min(start + at_once))
}

/// Marks grains as armed. Returns the number of their pages that were not armed before.
fn mark(pages: &Pages, found: &[Resident]) -> u64 {
    let new = found.iter().filter(|there| pages.arm(there.grain, there.node));
    new.map(|there| there.pages).sum()
}

/// Write-protects a piece, all of it at once if anything in it is armed: protected pages stay so,
/// see [`write_protect`](crate::access::write_protect). Returns the number of pages that could not
/// be protected, whose grains are disarmed; and whether one is not what was registered.
fn protect(
    monitor: &Monitor,
    pages: &Pages,
    piece: Range<usize>,
    tally: &mut Tally,
) -> (u64, bool) {
    let whole = pages.layout.grain(piece.start).start..pages.layout.grain(piece.end - 1).end;
    if !piece.clone().any(|grain| pages.is_armed(grain)) || monitor.protect(&whole).is_ok() {
        return (0, false);
    }
    // There are several mappings (an error on some kernels), or not all of it is what was
    // registered.
    let page = memory::page_size();
    let (mut refused, mut vanished) = (0, false);
    for grain in piece {
        let all = pages.layout.grain(grain).step_by(page).map(|start| start..start + page);
        let errors: Vec<i32> = all.filter_map(|page| monitor.protect(&page).err()).collect();
        for &errno in &errors {
            tally.fail(errno, 1);
            refused += 1;
            vanished |= errno == libc::ENOENT;
        }
        if !errors.is_empty() {
            pages.disarm(grain);
        }
    }
    (refused, vanished)
}

/// Removes the rights of grains, for neighbours by one system call.
fn arm_runs(pages: &Pages, found: &[Resident], tally: &mut Tally) -> u64 {
    let mut armed = 0;
    for run in found.chunk_by(|one, next| one.grain + 1 == next.grain) {
        let (first, last) = (run[0].grain, run[run.len() - 1].grain);
        let (start, end) = (pages.layout.grain(first).start, pages.layout.grain(last).end);
        let more = 2 - 2 * pages.armed_beside(&(first..last + 1));
        let mark = || run.iter().for_each(|there| _ = pages.arm(there.grain, there.node));
        let count: u64 = run.iter().map(|there| there.pages).sum();
        if !mapping_budget::fits(more) {
            // The errno that the kernel returns if there are too many mappings.
            tally.fail(libc::ENOMEM, count);
            continue;
        }
        match trap::arm(pages, start, end - start, mark) {
            Ok(()) => {
                armed += count;
                mapping_budget::add(pages, more);
            }
            Err(errno) => {
                let _ = trap::restore_rights(pages, start, end - start);
                run.iter().for_each(|there| _ = pages.disarm(there.grain));
                tally.fail(errno, count);
            }
        }
    }
    armed
}

/// Prepares a trapped region for a pass: counts its mappings anew. Restores all of its rights,
/// which makes it one mapping again, if trapping has added too many mappings, or if the kernel
/// might refuse to restore the rights later.
pub(crate) fn keep_to_budget(pages: &Pages) {
    mapping_budget::set(pages, pages.edges());
    let armed = pages.edges() > 0;
    if pages.was_disarmed_whole()
        || armed && (mapping_budget::is_short() || memory::data_is_limited())
    {
        for piece in pieces(&pages.layout, 0..pages.layout.grains()) {
            let work = pages.go_on_with_work();
            if work.over {
                return;
            }
            let _ = disarm(pages, &work, piece);
        }
        mapping_budget::set(pages, pages.edges());
    }
}

/// Restores the rights of some grains, see [`trap::disarm`]. The lock on `work` shows that no
/// thread arms at the same time. Works piece by piece, because the program's faults and mappings
/// wait for each piece.
pub(crate) fn disarm(
    pages: &Pages,
    _: &MutexGuard<'_, Work>,
    grains: Range<usize>,
) -> Result<(), i32> {
    let mut outcome = Ok(());
    for piece in pieces(&pages.layout, grains) {
        outcome = trap::disarm(pages, piece).and(outcome);
    }
    outcome
}

/// Restores the rights of the armed grains in a region that is no longer what was registered: of
/// the parts that are mapped without rights. Parts that have rights or are not mapped no longer
/// belong to the region. Without `/proc` only the bits are known.
pub(crate) fn disarm_rest(pages: &Pages, _: &MutexGuard<'_, Work>, grains: Range<usize>) {
    let mappings = maps::all();
    let armed: Vec<usize> = grains.filter(|&grain| pages.is_armed(grain)).collect();
    for run in armed.chunk_by(|one, next| one + 1 == *next) {
        let whole = pages.layout.grain(run[0]).start..pages.layout.grain(run[run.len() - 1]).end;
        for part in mappings.as_ref().map_or(vec![whole.clone()], |all| without_rights(all, &whole))
        {
            let _ = trap::restore_rights(pages, part.start, part.len());
        }
        run.iter().for_each(|&grain| _ = pages.disarm(grain));
    }
}

/// Returns the parts of a range that are mapped and have no access rights.
fn without_rights(mappings: &[maps::Mapping], range: &Range<usize>) -> Vec<Range<usize>> {
    let bare = maps::overlapping(mappings, range).iter().filter(|one| one.rights == [false; 3]);
    bare.map(|one| one.range.start.max(range.start)..one.range.end.min(range.end)).collect()
}
