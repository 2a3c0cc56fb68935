//! `percid numa watch`: the activity of a process's balancers, interval by interval.

mod change;
mod interval;
mod lines;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::kernel_counters::KernelCounters;
use super::process::Process;
use super::publication::{self, Silence};
use super::published_report::PublishedReport;
use super::report::publications;
use crate::cli::WatchArguments;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;

use change::Change;
use interval::Interval;
use lines::Lines;

/// Interval at which the process is checked for existence.
const LOOK: Duration = Duration::from_millis(100);

/// The last line of `percid numa watch --json`.
#[derive(Debug, Serialize)]
struct Last {
    ended: bool,
    interrupted: bool,
}

/// Why there are no more intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Process,
    Publication,
    Count,
    Interrupted,
    /// There was no first report.
    NoAnswer,
}

pub(crate) fn run(arguments: &WatchArguments, json: bool) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen()?;
    let process = Process { number: arguments.pid };
    if publications(process)?.is_empty() {
        complain(format_args!("process {} publishes no balancer's report", arguments.pid));
        return Ok(Exit::NoAnswer);
    }
    let mut watch =
        Watch { process, arguments, interrupt, reports: BTreeMap::new(), next_number: 1 };
    let end = watch.intervals(json)?;
    let ended = matches!(end, End::Process | End::Publication);
    let interrupted = end == End::Interrupted;
    if json {
        output::print_json_line(&Last { ended, interrupted })?;
    }
    match end {
        End::Process => complain(format_args!("process {} has ended", arguments.pid)),
        End::Publication => {
            complain(format_args!("process {} publishes nothing more", arguments.pid))
        }
        End::Interrupted => complain(format_args!("interrupted")),
        // The reason was printed.
        End::NoAnswer => return Ok(Exit::NoAnswer),
        End::Count => {}
    }
    Ok(if interrupted { Exit::Interrupted } else { Exit::Complete })
}

struct Watch<'a> {
    process: Process,
    arguments: &'a WatchArguments,
    interrupt: Interrupt,
    /// The last report of each balancer with its number, by the inode of what it publishes.
    reports: BTreeMap<u64, (usize, PublishedReport)>,
    next_number: usize,
}

impl Watch<'_> {
    fn intervals(&mut self, json: bool) -> Result<End, Failure> {
        let mut lines = Lines::default();
        if let Err(end) = self.changes() {
            return Ok(end);
        }
        if self.reports.is_empty() {
            return Ok(End::NoAnswer);
        }
        let began = Instant::now();
        let mut before = KernelCounters::read();
        for _ in 0..self.arguments.count.unwrap_or(u64::MAX) {
            if let Err(end) = self.pause() {
                return Ok(end);
            }
            let balancers = match self.changes() {
                Ok(balancers) => balancers,
                Err(end) => return Ok(end),
            };
            let counters = KernelCounters::read();
            let kernel_counters = counters.since(&std::mem::replace(&mut before, counters));
            let seconds = began.elapsed().as_secs_f64();
            let interval = Interval { seconds, kernel_counters, balancers };
            match json {
                true => output::print_json_line(&interval)?,
                false => output::print_text(&lines.render(&interval))?,
            }
        }
        Ok(End::Count)
    }

    /// Sleeps for an interval.
    fn pause(&self) -> Result<(), End> {
        let end = Instant::now() + self.arguments.interval;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if self.interrupt.pressed() {
                return Err(End::Interrupted);
            }
            if left.is_zero() {
                return Ok(());
            }
            if !self.process.exists() {
                return Err(End::Process);
            }
            self.interrupt.sleep(left.min(LOOK));
        }
    }

    /// Reads all balancers' reports. Returns the changes since the last ones.
    fn changes(&mut self) -> Result<Vec<Change>, End> {
        let publications = publication::list(&self.process).unwrap_or_default();
        if publications.is_empty() {
            return Err(if self.process.exists() { End::Publication } else { End::Process });
        }
        let mut changes = Vec::new();
        for publication in &publications {
            let patience = self.arguments.patience.timeout;
            let report = match publication.ask(&self.process, patience, &self.interrupt) {
                Ok(report) => report,
                Err(Silence::Interrupted) => return Err(End::Interrupted),
                Err(Silence::Ended) => return Err(End::Process),
                Err(Silence::Because(why)) => {
                    complain(format_args!("process {}: {why}", self.process.number));
                    continue;
                }
            };
            changes.extend(self.change(publication.inode, report));
        }
        Ok(changes)
    }

    fn change(&mut self, inode: u64, report: PublishedReport) -> Option<Change> {
        if let Some((number, before)) = self.reports.get_mut(&inode) {
            let change = Change::between(*number, before, &report);
            *before = report;
            return Some(change);
        }
        self.reports.insert(inode, (self.next_number, report));
        self.next_number += 1;
        None
    }
}
