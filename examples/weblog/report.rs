//! The report: text for people, or one JSON document.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use crate::aggregate::{Aggregate, Hits};
use crate::options::Options;
use crate::places::{Places, Shown};
use crate::printable::printable;
use crate::record::{Method, Status};

/// All figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    file: String,
    threads: usize,
    repeat: u32,
    source: String,
    seconds: f64,
    lines_per_second: f64,
    lines: i64,
    malformed: i64,
    first_malformed: Vec<Shown>,
    bytes: i64,
    requests_by_status: BTreeMap<&'static str, i64>,
    requests_by_method: BTreeMap<&'static str, i64>,
    response_bytes: Option<Sizes>,
    paths: usize,
    top_paths: Vec<Path>,
}

/// The distribution of the responses' sizes, each figure within 1/128 of the exact one.
#[derive(Debug, Serialize)]
struct Sizes {
    min: u64,
    median: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

#[derive(Debug, Serialize)]
struct Path {
    path: String,
    hits: u64,
}

/// Adds up what all CPUs have counted. The workers have been joined: nothing is missing.
pub(crate) fn collect(
    options: &Options,
    requests: &Aggregate,
    places: &Places,
    seconds: f64,
) -> Report {
    let (by_status, by_method) = (requests.by_status(), requests.by_method());
    let malformed = requests.malformed();
    let lines = by_status.iter().sum::<i64>() + malformed;
    let hits = requests.hits();
    Report {
        file: options.name().into_owned(),
        threads: options.threads,
        repeat: options.repeat,
        source: percid::init().source.to_string(),
        seconds,
        lines_per_second: lines as f64 / seconds,
        lines,
        malformed,
        first_malformed: places.first_malformed(),
        bytes: requests.bytes(),
        requests_by_status: named(&Status::NAMES, &by_status),
        requests_by_method: named(&Method::NAMES, &by_method),
        response_bytes: sizes(requests),
        paths: hits.len(),
        top_paths: top(hits, options.top),
    }
}

/// Returns the counts that are not zero.
fn named(names: &[&'static str], counts: &[i64]) -> BTreeMap<&'static str, i64> {
    let pairs = names.iter().copied().zip(counts.iter().copied());
    pairs.filter(|(_, count)| *count != 0).collect()
}

fn sizes(requests: &Aggregate) -> Option<Sizes> {
    let sizes = requests.sizes();
    Some(Sizes {
        min: sizes.min()?,
        median: sizes.quantile(0.5)?,
        p90: sizes.quantile(0.9)?,
        p99: sizes.quantile(0.99)?,
        max: sizes.max()?,
    })
}

/// Returns the paths with most hits; among equals those that come first in the alphabet.
fn top(hits: Hits, count: usize) -> Vec<Path> {
    let mut paths: Vec<_> = hits.into_iter().collect();
    paths.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    paths.truncate(count);
    paths.into_iter().map(|(path, hits)| Path { path: printable(&path), hits }).collect()
}

impl Report {
    /// Prints the report to standard output, and the first malformed lines to standard error.
    pub(crate) fn print(&self, json: bool) -> io::Result<()> {
        for Shown { line, expected, excerpt } in &self.first_malformed {
            eprintln!("{}:{line}: expected {expected}: {excerpt}", self.file);
        }
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
        writeln!(f, "{}: {} lines, {} of them malformed", self.file, self.lines, self.malformed)?;
        write!(f, "{:.3} s, {:.0} lines per second", self.seconds, self.lines_per_second)?;
        writeln!(f, " (threads: {}, source: {})", self.threads, self.source)?;
        write_counts(f, "status", &self.requests_by_status)?;
        write_counts(f, "method", &self.requests_by_method)?;
        writeln!(f, "bytes    {} in all", self.bytes)?;
        if let Some(Sizes { min, median, p90, p99, max }) = &self.response_bytes {
            write!(f, "size     min {min}  median {median}  p90 {p90}  p99 {p99}  max {max}")?;
            writeln!(f, "  (within 1/128)")?;
        }
        writeln!(f, "paths    {} different ones; most hits:", self.paths)?;
        self.top_paths.iter().try_for_each(|Path { path, hits }| writeln!(f, "{hits:10} {path}"))
    }
}

fn write_counts(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    counts: &BTreeMap<&str, i64>,
) -> fmt::Result {
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    writeln!(f, "{title}   {}", counts.join("  "))
}
