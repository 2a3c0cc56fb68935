//! `percid sim thread-hash`: the precision with which activity sets distinguish the threads of a
//! process, and a search for the threads of a table.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use percid_report::{Axis, Lines, Page, Strips};
use percid_rules::scan::Width;
use percid_sim::numa::hash::{self, Crowd, Method, Study};
use serde::Serialize;

use super::numbers::{figure, hundredths};
use super::published::{runs_table, strips as published_strips};
use crate::cli::{HashArguments, ThreadIds};
use percid_command::exit::{Exit, Failure};
use percid_command::output;
use percid_command::report::{self, Report};
use percid_command::text_table::{Align, TextTable};

/// The document of `percid sim thread-hash --json`.
#[derive(Debug, Serialize)]
struct Document {
    tables: Tables,
    crowds: Vec<Crowd>,
    never_collide: Vec<Limit>,
    blind: Vec<Limit>,
}

/// The tables of the published runs, or of the requested ranges.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Tables {
    Published(Vec<hash::Table>),
    Asked(Vec<Frequencies>),
}

/// Number of threads for each bit.
#[derive(Debug, Serialize)]
struct Frequencies {
    /// The IDs of the threads.
    threads: String,
    /// The lowest ID, and the highest.
    first: u32,
    last: u32,
    method: Method,
    bits: u32,
    computed: BTreeMap<u32, u32>,
}

/// A number of threads for sets of one width.
#[derive(Debug, Serialize)]
struct Limit {
    bits: u32,
    threads: u32,
}

const WIDTHS: [Width; 2] = [Width::Bits64, Width::Bits128];

pub(crate) fn run(arguments: &HashArguments, json: bool) -> Result<Exit, Failure> {
    if !arguments.find.is_empty() {
        return search::run(arguments, json);
    }
    let report = Report::to(arguments.html.as_deref())?;
    let document = Document::compute(arguments);
    let printed = if json { output::print_json(&document) } else { output::print_text(&document) };
    report.write(printed, || document.page(), Exit::Complete)
}

impl Document {
    fn compute(arguments: &HashArguments) -> Document {
        let sizes: Vec<u32> = arguments.threads.iter().map(|&threads| threads as u32).collect();
        let Study { tables, crowds, never_collide, blind } = hash::study(&sizes);
        let limits = |of: Vec<(u32, u32)>| -> Vec<Limit> {
            of.into_iter().map(|(bits, threads)| Limit { bits, threads }).collect()
        };
        let tables = match &arguments.range[..] {
            [] => Tables::Published(tables),
            ranges => Tables::Asked(ranges.iter().flat_map(frequencies).collect()),
        };
        Document { tables, crowds, never_collide: limits(never_collide), blind: limits(blind) }
    }
}

impl Document {
    fn page(&self) -> Page {
        let limits = self.never_collide.iter();
        let limits = limits.map(|limit| format!("{} in {} bits", limit.threads, limit.bits));
        let limits: Vec<String> = limits.collect();
        let verdict = format!(
            "Threads with consecutive IDs never collide (hash32) up to {}.",
            limits.join(" and ")
        );
        let what = "Activity sets of the NUMA scan.";
        let mut page = report::page("percid sim thread-hash", verdict, what, false);
        match &self.tables {
            Tables::Published(tables) => {
                page.chart("Threads by bit, computed and published", "", published_strips(tables));
            }
            Tables::Asked(tables) => {
                page.chart("Threads by bit", "", asked_strips(tables));
            }
        }
        page.section("Collisions", "");
        let text = "Means over every first ID.";
        page.chart("Pairs of threads that collide", text, collisions(&self.crowds));
        page.section("All that was computed", "").printed(self.to_string().trim_end());
        page
    }
}

/// Returns a row of bits for each method and width.
fn asked_strips(tables: &[Frequencies]) -> Strips {
    let mut strips = Strips::new(Axis::new("method and bits"), Axis::new("bit"), "threads");
    for of_range in tables.chunk_by(|one, other| one.threads == other.threads) {
        strips.group(of_range[0].threads.as_str());
        for table in of_range {
            let count = |bit: u32| *table.computed.get(&bit).unwrap_or(&0);
            strips.row(
                format!("{}, {}", table.method.name(), table.bits),
                (0..table.bits).map(count),
            );
        }
    }
    strips
}

/// Returns the share of colliding pairs over the number of threads.
fn collisions(crowds: &[Crowd]) -> Lines {
    let share = Axis::new("colliding pairs").unit("%");
    let mut lines = Lines::new(Axis::new("threads").logarithmic(), share);
    let name = |crowd: &Crowd| format!("{}, {} bits", crowd.method.name(), crowd.bits);
    let names: BTreeSet<String> = crowds.iter().map(name).collect();
    for of in names {
        let points = crowds.iter().filter(|crowd| name(crowd) == of);
        let points = points.map(|crowd| (f64::from(crowd.threads), 100.0 * crowd.colliding_pairs));
        lines.series(of.as_str(), points);
    }
    lines
}

fn frequencies(threads: &ThreadIds) -> Vec<Frequencies> {
    let ways = Method::ALL.into_iter().flat_map(|method| WIDTHS.map(|width| (method, width)));
    let table = |(method, width): (Method, Width)| Frequencies {
        threads: threads.to_string(),
        first: threads.ids().min().unwrap_or(0),
        last: threads.ids().max().unwrap_or(0),
        method,
        bits: width.bits(),
        computed: hash::frequencies(method, width, threads.ids()),
    };
    ways.map(table).collect()
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tables {
            Tables::Published(tables) => {
                writeln!(f, "The published runs, sets of 64 bits\n{}", runs_table(tables))?;
            }
            Tables::Asked(tables) => writeln!(f, "Threads by bit\n{}", asked(tables))?,
        }
        writeln!(f, "Threads with consecutive IDs, over every first ID\n{}", crowds(&self.crowds))?;
        for Limit { bits, threads } in &self.never_collide {
            writeln!(f, "  {bits} bits: up to {threads} threads never collide (hash32)")?;
        }
        for Limit { bits, threads } in &self.blind {
            writeln!(
                f,
                "  {bits} bits: from {threads} threads on every bit is always set (hash32)"
            )?;
        }
        Ok(())
    }
}

fn asked(tables: &[Frequencies]) -> TextTable {
    let right = Align::Right;
    let mut text = TextTable::new([
        ("thread IDs", Align::Left),
        ("method", Align::Left),
        ("set", right),
        ("bits used", right),
        ("most threads of a bit", right),
        ("bit:threads", Align::Left),
    ]);
    for table in tables {
        let counts: Vec<String> =
            table.computed.iter().map(|(bit, count)| format!("{bit}:{count}")).collect();
        text.row(vec![
            table.threads.clone(),
            table.method.name().to_owned(),
            table.bits.to_string(),
            table.computed.len().to_string(),
            table.computed.values().max().unwrap_or(&0).to_string(),
            counts.join(" "),
        ]);
    }
    text
}

fn crowds(crowds: &[Crowd]) -> TextTable {
    let mut text =
        TextTable::new([("method", Align::Left), ("set", Align::Right), ("threads", Align::Right)]);
    text.group(
        "distinct bits".to_owned(),
        ["fewest", "mean", "most"].map(|name| (name, Align::Right)),
    );
    text.group(
        "%".to_owned(),
        ["pairs that collide", "first IDs without collision"].map(|name| (name, Align::Right)),
    );
    for crowd in crowds {
        let (fewest, mean, most) = crowd.distinct;
        text.row(vec![
            crowd.method.name().to_owned(),
            crowd.bits.to_string(),
            crowd.threads.to_string(),
            fewest.to_string(),
            figure(mean),
            most.to_string(),
            format!("{:.3}", 100.0 * crowd.colliding_pairs),
            hundredths(crowd.free),
        ]);
    }
    text
}
