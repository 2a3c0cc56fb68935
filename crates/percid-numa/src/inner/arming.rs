//! Arming pages, which is what a pass of the scan does to memory; and disarming them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, MutexGuard, atomic::Ordering::Relaxed};
use std::time::Instant;

use percid_rules::scan::{Effects, Reason};

use crate::access::entry::{Entry, Tally};
use crate::access::mapping_budget;
use crate::access::pages::{Layout, Pages, Work};
use crate::access::trap;
use crate::access::write_protect::Monitor;
use crate::access_method::AccessMethod;
use crate::inner::log::Log;
use crate::report::event::Event;
use crate::sys::{maps, memory, nodes};

/// How many pages are looked up by one system call.
const LOOK_UP: usize = 512;

/// The effects of a pass, and its counts.
pub(crate) struct PassEffects<'a> {
    pub(crate) entries: &'a BTreeMap<usize, Arc<Entry>>,
    pub(crate) log: &'a mut Log,
    /// Bytes that were to be armed: as far as they had memory and were not armed yet, they are.
    pub(crate) looked_at: u64,
    /// Pages that were armed.
    pub(crate) armed: u64,
    /// Regions that were left out.
    pub(crate) skipped: u64,
    pub(crate) handler_replaced: bool,
}

impl<'a> PassEffects<'a> {
    pub(crate) fn new(
        entries: &'a BTreeMap<usize, Arc<Entry>>,
        log: &'a mut Log,
    ) -> PassEffects<'a> {
        PassEffects { entries, log, looked_at: 0, armed: 0, skipped: 0, handler_replaced: false }
    }
}

impl Effects for PassEffects<'_> {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        let region = region as usize;
        let Some(entry) = self.entries.get(&region) else { return 0 };
        let Some(pages) = &entry.pages else { return 0 };
        if entry.access == AccessMethod::Trapped && !trap::is_prepared() {
            self.handler_replaced = true;
            return 0;
        }
        if entry.access == AccessMethod::Trapped && memory::data_is_limited() {
            // As the kernel might say when the rights are to be restored.
            let pages = (part.end - part.start) / memory::page_size() as u64;
            entry.tally().fail(libc::ENOMEM, pages);
            return 0;
        }
        let began = Instant::now();
        let part = part.start as usize..part.end as usize;
        let mut tally = entry.tally();
        let armed = arm(entry, pages, part.clone(), &mut tally);
        tally.scanned += armed;
        tally.scan_time += began.elapsed();
        self.looked_at += part.len() as u64;
        self.armed += armed;
        self.log.push(Event::Armed { region, part, pages: armed });
        armed
    }

    fn note(&mut self, region: u64, reason: Reason) {
        let region = region as usize;
        if let Some(entry) = self.entries.get(&region) {
            entry.tally().skipped[reason as usize] += 1;
        }
        self.skipped += u64::from(reason != Reason::IgnorePidInactive);
        self.log.push(Event::Skipped { region, reason });
    }
}

/// Arms the grains of a part of a region. Returns how many of its pages were not armed before.
fn arm(entry: &Entry, pages: &Pages, part: Range<usize>, tally: &mut Tally) -> u64 {
    let layout = pages.layout;
    let first = layout.grain_at(part.start);
    let end = layout.grain_at(part.end - 1) + 1;
    let mut armed = 0;
    for piece in pieces(&layout, first..end) {
        // Released in between, so that a thread that excludes or unregisters waits for one piece
        // only.
        let work = pages.go_on_with_work();
        if work.over {
            break;
        }
        let wanted = piece.clone().filter(|&grain| !pages.is_armed(grain) && !work.excludes(grain));
        let found = match look_up(pages, wanted) {
            Ok(found) => found,
            Err((errno, count)) => {
                tally.fail(errno, count);
                break;
            }
        };
        armed += match (entry.access, &entry.monitor) {
            (AccessMethod::Trapped, _) => arm_runs(pages, &found, tally),
            (_, None) => mark(pages, &found),
            (_, Some(monitor)) => {
                let marked = mark(pages, &found);
                let (refused, vanished) = protect(monitor, pages, piece, tally);
                entry.vanished.fetch_or(vanished, Relaxed);
                marked.saturating_sub(refused)
            }
        };
    }
    armed
}

/// Cuts grains into pieces that take a short time each.
fn pieces(layout: &Layout, grains: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let at_once = (LOOK_UP >> (layout.shift - memory::page_size().trailing_zeros())).max(1);
    let end = grains.end;
    grains.step_by(at_once).map(move |start| start..end.min(start + at_once))
}

/// A grain with memory.
#[derive(Debug, Clone, Copy)]
struct Resident {
    grain: usize,
    /// The node of its first page.
    node: u32,
    pages: u64,
}

/// Finds out which grains have memory, and on which nodes. The error comes with the number of
/// pages.
fn look_up(
    pages: &Pages,
    grains: impl Iterator<Item = usize>,
) -> Result<Vec<Resident>, (i32, u64)> {
    let page = memory::page_size();
    let mut asked = Vec::new();
    for grain in grains {
        asked.extend(pages.layout.grain(grain).step_by(page).map(|address| (grain, address)));
    }
    let addresses: Vec<usize> = asked.iter().map(|(_, address)| *address).collect();
    let mut nodes = vec![nodes::UNTOUCHED; addresses.len()];
    if !addresses.is_empty() {
        nodes::query(&addresses, &mut nodes).map_err(|errno| (errno, addresses.len() as u64))?;
    }
    let mut found: Vec<Resident> = Vec::new();
    for ((grain, _), node) in asked.into_iter().zip(nodes) {
        let Ok(node) = u32::try_from(node) else { continue };
        match found.last_mut().filter(|there| there.grain == grain) {
            Some(there) => there.pages += 1,
            None => found.push(Resident { grain, node, pages: 1 }),
        }
    }
    Ok(found)
}

/// Arms grains. Returns how many of their pages were not armed before.
fn mark(pages: &Pages, found: &[Resident]) -> u64 {
    let new = found.iter().filter(|there| pages.arm(there.grain, there.node));
    new.map(|there| there.pages).sum()
}

/// Write-protects a piece, all of it at once if anything in it is armed: what is protected already
/// stays so, see [`write_protect`](crate::access::write_protect). Returns how many pages could not
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
    // Several mappings, on some kernels; or not all of it is what was registered.
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

/// Takes the rights of grains away, of neighbours by one system call.
fn arm_runs(pages: &Pages, found: &[Resident], tally: &mut Tally) -> u64 {
    let mut armed = 0;
    for run in found.chunk_by(|one, next| one.grain + 1 == next.grain) {
        let (first, last) = (run[0].grain, run[run.len() - 1].grain);
        let (start, end) = (pages.layout.grain(first).start, pages.layout.grain(last).end);
        let more = 2 - 2 * pages.armed_beside(&(first..last + 1));
        let mark = || run.iter().for_each(|there| _ = pages.arm(there.grain, there.node));
        let count: u64 = run.iter().map(|there| there.pages).sum();
        if !mapping_budget::fits(more) {
            // As the kernel would say if this used up the program's mappings.
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

/// Before a pass: counts the mappings of a trapped region anew. Restores all of its rights, which
/// makes one mapping of it again, if trapping has added too many, or if the kernel might refuse to
/// restore them later.
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
/// thread arms meanwhile. Piece by piece, because the program's faults and mappings wait for each.
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

/// Restores the rights of what is armed in a region that is no longer what was registered: parts of
/// armed grains that are mapped without rights. What has rights by now, or is not mapped, no longer
/// belongs to the region. Without `/proc` only the bits are known.
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
