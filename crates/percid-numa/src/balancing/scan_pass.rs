//! Scan passes: which regions a pass visits, and what it changes in them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use percid_rules::scan::{Scan, Scanner, Settings};

use crate::access::region_record::RegionRecord;
use crate::access_method::AccessMethod;
use crate::balancing::arming::{self, PassEffects};
use crate::balancing::log::Log;
use crate::balancing::mapping;
use crate::balancing::shared::Inner;
use crate::balancing::state::Change;
use crate::done::Pass;
use crate::kernel::Linux;
use crate::lock::lock;
use crate::report::event::Event;
use crate::sys::maps::{self, Mapping};
use crate::sys::{clock, nodes, process};

impl Inner {
    /// Makes a pass on behalf of the calling thread, however long it takes.
    pub(crate) fn pass(&self) -> Pass {
        let balances = nodes::own_policy().is_none_or(|mode| mode.is_default() || mode.balances());
        let threads = process::thread_ids().len().max(1) as u32;
        let scanner = Scanner { thread: process::thread_id(), balances, threads };
        self.pass_for(scanner, self.settings.scan_size)
    }

    /// Makes a pass that arms this many bytes at most, rounded up to a multiple of
    /// [`HUGE_PAGE`](percid_rules::scan::HUGE_PAGE).
    pub(super) fn pass_for(&self, scanner: Scanner, scan_size: u64) -> Pass {
        let settings = Settings { scan_size, ..self.settings };
        let began = clock::own_run_time();
        let mut scan = lock(&self.scan);
        let Some(entries) = self.begin_pass(&mut scan) else { return Pass::default() };
        let mut log = Log::default();
        log.push(Event::Pass { thread: scanner.thread, sequence: scan.sequence() });
        let before = scan.sequence();
        let size = lock(&self.state).piece_size;
        let mut effects = PassEffects::new(&entries, &mut log, size);
        let mappings = maps::all();
        match &mappings {
            Some(mappings) => {
                refresh(&mut scan, &entries, effects.log, mappings);
                scan.pass(scanner, self.began.elapsed(), &settings, &self.rules, &mut effects);
            }
            None => effects.log.push(Event::MappingsUnreadable),
        }
        let PassEffects { looked_at, armed, skipped, handler_replaced, size, .. } = effects;
        if handler_replaced {
            log.push(Event::HandlerReplaced);
        }
        for (start, entry) in &entries {
            entry.active.store(scan.users(*start as u64), Relaxed);
        }
        let took = clock::own_run_time().saturating_sub(began);
        let mut state = lock(&self.state);
        if scan.sequence() != before {
            state.adapt(&self.settings, scan.bytes());
        }
        state.log.append(log);
        state.sequence = scan.sequence();
        state.passes += 1;
        state.armed += armed;
        state.unreadable_passes += u64::from(mappings.is_none());
        state.scan_time += took;
        state.pass_size.learn(looked_at, took);
        state.piece_size = size;
        Pass { armed, skipped, took }
    }

    /// Passes changes of the regions to the scan, and the usable nodes to the regions. Returns the
    /// regions of this pass; a region that is unregistered later stays in it, and is skipped.
    /// Returns `None` if only one node is usable.
    fn begin_pass(&self, scan: &mut Scan) -> Option<BTreeMap<usize, Arc<RegionRecord>>> {
        let (changes, entries) = {
            let mut state = lock(&self.state);
            (std::mem::take(&mut state.changes), state.entries.clone())
        };
        for change in changes {
            match change {
                Change::Registered(range, traits, at) => {
                    let start = range.start;
                    scan.add(range, traits);
                    // The delay of the region began at its registration, not with this pass.
                    scan.visit(start, at, &self.settings);
                }
                Change::Unregistered(start) => _ = scan.remove(start),
            }
        }
        let nodes = nodes::usable_nodes();
        let pages = entries.values().filter_map(|entry| entry.pages.as_ref());
        pages.for_each(|pages| pages.set_nodes(&nodes));
        if let Some(tiers) = &self.tiers {
            tiers.begin_pass(&Linux, &entries, &nodes);
        }
        (nodes.len() > 1).then_some(entries)
    }
}

/// Updates all regions before a pass: checks whether they still exist, and collects the threads
/// that used them.
fn refresh(
    scan: &mut Scan,
    entries: &BTreeMap<usize, Arc<RegionRecord>>,
    log: &mut Log,
    mappings: &[Mapping],
) {
    for (&start, entry) in entries {
        let Some(pages) = entry.pages.as_ref().filter(|_| !entry.gone.load(Relaxed)) else {
            continue;
        };
        let trapped = entry.access == AccessMethod::Trapped;
        match mapping::look_again(mappings, &entry.range, pages.layout.rights, trapped) {
            Some(traits) if !entry.vanished.load(Relaxed) => scan.set_traits(start as u64, traits),
            _ if entry.mark_gone() => {
                scan.remove(start as u64);
                log.push(Event::Gone { region: start });
                continue;
            }
            _ => continue,
        }
        scan.used_by(start as u64, pages.take_users());
        pages.sequence.store(scan.sequences_of(start as u64), Relaxed);
        if trapped {
            arming::keep_to_budget(pages);
        }
    }
}
