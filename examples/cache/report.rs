//! The report: text for people, or one JSON document.

use std::fmt;
use std::io::{self, Write};

use percid::Histogram;
use serde::Serialize;

use crate::accounts::Accounts;
use crate::page;

/// All figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) threads: usize,
    pub(crate) source: String,
    pub(crate) seconds: f64,
    pub(crate) lookups: i64,
    pub(crate) hits: i64,
    pub(crate) misses: i64,
    pub(crate) hit_rate: f64,
    pub(crate) hit_nanoseconds: Option<Times>,
    pub(crate) miss_nanoseconds: Option<Times>,
    pub(crate) pages: Accounts,
    /// The IDs that were ever in use: about as many as CPUs took part.
    pub(crate) ids: u32,
    /// Memory of the pool and the batches for each ID beside the pages of the cache, in bytes.
    pub(crate) bytes_per_id: u64,
    /// Lookups that found the page of another key.
    pub(crate) wrong_pages: i64,
    /// Pages that came out of the pool as another thread left them.
    pub(crate) unwiped_pages: i64,
}

/// Durations, each within 1/128 of the exact value.
#[derive(Debug, Serialize)]
pub(crate) struct Times {
    median: u64,
    p99: u64,
    p999: u64,
    max: u64,
}

impl Times {
    pub(crate) fn of(histogram: &Histogram) -> Option<Times> {
        let times = histogram.snapshot();
        Some(Times {
            median: times.quantile(0.5)?,
            p99: times.quantile(0.99)?,
            p999: times.quantile(0.999)?,
            max: times.max()?,
        })
    }
}

impl Report {
    /// Returns the fault, if any.
    pub(crate) fn fault(&self) -> Option<String> {
        let Accounts { made, cached, pending, idle, leaked } = self.pages;
        if !self.pages.balance() {
            return Some(format!(
                "the accounts of pages do not balance: {made} made, {cached} cached, {pending} \
                 pending, {idle} idle, {leaked} leaked"
            ));
        }
        let Report { wrong_pages, unwiped_pages, .. } = self;
        (wrong_pages + unwiped_pages != 0)
            .then(|| format!("{wrong_pages} wrong pages, {unwiped_pages} that were not wiped"))
    }

    /// Prints the report to standard output.
    pub(crate) fn print(&self, json: bool) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if json {
            serde_json::to_writer_pretty(&mut stdout, self)?;
            writeln!(stdout)?;
        } else {
            write!(stdout, "{self}")?;
        }
        stdout.flush()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.lookups as f64 / self.seconds;
        write!(f, "{} lookups in {:.3} s, {rate:.0} per second", self.lookups, self.seconds)?;
        writeln!(f, " (threads: {}, source: {})", self.threads, self.source)?;
        writeln!(f, "hit rate  {:.2} %", self.hit_rate * 100.0)?;
        write_times(f, "hits", self.hits, self.hit_nanoseconds.as_ref())?;
        write_times(f, "misses", self.misses, self.miss_nanoseconds.as_ref())?;
        let Accounts { made, cached, pending, idle, .. } = self.pages;
        writeln!(f, "pages     {made} made = {cached} cached + {pending} pending + {idle} idle")?;
        write!(f, "memory    {} KiB in the cache", cached * page::BYTES / 1024)?;
        writeln!(f, ", {} KiB beside it for each of {} IDs", self.bytes_per_id / 1024, self.ids)
    }
}

fn write_times(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    count: i64,
    times: Option<&Times>,
) -> fmt::Result {
    let Some(Times { median, p99, p999, max }) = times else {
        return writeln!(f, "{title:9} {count}");
    };
    write!(f, "{title:9} {count}, median {median} ns")?;
    writeln!(f, ", p99 {p99} ns, p99.9 {p999} ns, max {max} ns")
}
