//! The comparison as a page.

use percid_report::{Axis, Bars, Lines, Page, Span, Timeline};
use percid_sim::comparison::{InUse, Level, Row};
use percid_sim::cost::Class;

use super::figures::Results;
use crate::sim::numbers::{self, hundredths, optional, plain, settings};
use percid_command::report::lead;
use percid_command::table::Table;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

pub(super) fn page(results: &Results) -> Page {
    let what = format!("{}: {}.", results.title(), results.workload.about);
    let mut page = Page::new("percid sim run", lead(&what, results.interrupted));
    costs(results, &mut page);
    shares(results, &mut page);
    counts(results, &mut page);
    timelines(results, &mut page);
    let shape = results.machine.shape();
    let parameters = settings(&results.workload.parameters);
    page.section("What was simulated", format!("{shape}.\n\n{parameters}"));
    numbers::table(results.machine.numbers()).show_on(&mut page);
    page
}

fn ns() -> Axis {
    Axis::new("time per burst").unit("ns")
}

fn costs(results: &Results, page: &mut Page) {
    page.section("Time per burst", "Simulated time. Shorter is better.");
    let policies = policies(results);
    if let [(swept, _)] = &results.sweeps[..] {
        let mut lines = Lines::new(Axis::new(swept), ns());
        for policy in &policies {
            let points = rows_of(results, policy)
                .filter_map(|row| Some((*row.parameters.get(swept)?, row.ns_per_burst?)));
            lines.series(*policy, points);
        }
        page.chart(format!("Mean over {swept}"), "", lines);
    }
    if results.sweeps.is_empty() {
        let series = ["least of the runs", "mean of all", "most of the runs"];
        let mut bars = Bars::grouped(Axis::new("policy"), ns().logarithmic(), series);
        for row in &results.rows {
            let costs = [row.ns_per_burst_min, row.ns_per_burst, row.ns_per_burst_max];
            bars.category(row.policy, costs);
        }
        page.chart("Policies", "", bars);
    } else {
        let mut bars = Bars::grouped(Axis::new("parameters"), ns().logarithmic(), policies);
        for rows in results.rows.chunk_by(|one, other| one.parameters == other.parameters) {
            bars.category(settings(&rows[0].parameters), rows.iter().map(|row| row.ns_per_burst));
        }
        page.chart("Means of all runs", "", bars);
    }
}

/// The policies of which there are rows.
fn policies(results: &Results) -> Vec<&'static str> {
    let mut policies = Vec::new();
    for row in &results.rows {
        if !policies.contains(&row.policy) {
            policies.push(row.policy);
        }
    }
    policies
}

fn rows_of<'a>(results: &'a Results, policy: &str) -> impl Iterator<Item = &'a Row> {
    results.rows.iter().filter(move |row| row.policy == policy)
}

fn shares(results: &Results, page: &mut Page) {
    page.section(
        "Where the memory was",
        "What bursts found: memory that this core touched last, memory from other caches, or memory that \
         was not touched before. A few expensive bursts can cost most of the time.",
    );
    let all = || results.rows.iter().map(|row| (row.policy.to_owned(), row));
    if results.sweeps.is_empty() {
        show_shares("", "policy", all(), page);
        return;
    }
    for policy in policies(results) {
        let rows = rows_of(results, policy).map(|row| (settings(&row.parameters), row));
        show_shares(&format!(", {policy}"), "parameters", rows, page);
    }
}

/// The shares of some rows by their names.
fn show_shares<'a>(
    of: &str,
    what: &str,
    rows: impl Iterator<Item = (String, &'a Row)>,
    page: &mut Page,
) {
    let classes = Class::ALL.map(Class::name);
    let axis = |of| Axis::new(format!("share of {of}")).unit("%");
    let mut bursts = Bars::stacked(Axis::new(what), axis("bursts"), classes);
    let mut cost = Bars::stacked(Axis::new(what), axis("cost"), classes);
    for (name, row) in rows {
        bursts.category(name.as_str(), row.shares.iter().map(|share| 100.0 * share.bursts));
        cost.category(name, row.shares.iter().map(|share| 100.0 * share.cost));
    }
    page.chart(format!("Shares of bursts{of}"), "", bursts);
    page.chart(format!("Shares of their cost{of}"), "", cost);
}

fn counts(results: &Results, page: &mut Page) {
    let columns = ["policy", "parameters", "ns/burst", "min", "max"].into_iter().map(str::to_owned);
    let columns = columns.chain(Class::ALL.map(|class| format!("{}, %", class.name())));
    let counts =
        ["IDs", "bound", "memory, bytes", "steals", "scans", "expired", "slow paths", "migrations"];
    let of_time = ["work, %", "interrupts"];
    let in_use = ["CPUs at a time", "CPUs in 100 ms", "IDs in 100 ms"];
    let quiet = ["IDs when quiet", "above bound, ms"];
    let further = of_time.into_iter().chain(in_use).chain(quiet);
    let columns = columns.chain(counts.into_iter().chain(further).map(str::to_owned));
    let mut table = Table::new(columns, 2);
    results.rows.iter().for_each(|row| table.row(cells(row)));
    page.section(
        "All figures",
        "IDs and memory are those of the run that needed most; counts those of all runs. What is in use is the mean \
         of looks every 10 ms; if wakes go astray, while they do, and quiet is the time after that.",
    );
    table.show_on(page);
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.policy.to_owned(), settings(&row.parameters)];
    cells.extend([row.ns_per_burst, row.ns_per_burst_min, row.ns_per_burst_max].map(optional));
    let share =
        |at: usize| row.shares.get(at).map_or("-".to_owned(), |share| hundredths(share.bursts));
    cells.extend((0..Class::ALL.len()).map(share));
    let (work, scheduling) = (&row.work, &row.scheduling);
    let ids = [u64::from(row.ids_distinct), u64::from(row.ids_bound), row.memory];
    let counts = [work.steals, work.scans, work.expired, work.slow_paths, scheduling.migrations];
    cells.extend(ids.into_iter().chain(counts).map(|count| count.to_string()));
    cells.push(optional(row.policy_share.map(|share| 100.0 * share)));
    cells.push(row.expense.interrupts.to_string());
    let level = |of: fn(&InUse) -> Level| optional(row.in_use.as_ref().map(|used| of(used).mean));
    cells.extend([level(|used| used.running), level(|used| used.visited), level(|used| used.ids)]);
    cells.push(row.quiet.map_or("-".to_owned(), |quiet| quiet.ids.to_string()));
    cells.push(optional(row.quiet.map(|quiet| quiet.above_bound_ns as f64 / MS)));
    cells
}

/// One for each policy, of the first combination of what is swept.
fn timelines(results: &Results, page: &mut Page) {
    let Some(first) = results.rows.first() else { return };
    let rows: Vec<&Row> =
        results.rows.iter().filter(|row| row.parameters == first.parameters).collect();
    let of = settings(&first.parameters);
    let of = if of.is_empty() { String::new() } else { format!(", {of}") };
    page.section(
        "IDs over CPUs",
        format!("Which CPU used which ID when, in the first run of each policy{of}. Ten colours are used in turn."),
    );
    for row in rows {
        let mut timeline = Timeline::new(Axis::new("time").unit("ms"), "CPU", "ID");
        for span in &row.spans {
            let (from, to) = (span.from as f64 / MS, span.to as f64 / MS);
            timeline.span(Span { row: span.cpu, id: span.id, from, to });
        }
        page.chart(row.policy, extent(row), timeline);
    }
}

/// How much of the run a time line shows.
fn extent(row: &Row) -> String {
    match row.spans.iter().map(|span| span.to).max() {
        None => "No CPU used an ID.".to_owned(),
        Some(end) => {
            let end = plain((end as f64 / MS).round());
            format!("The first {} uses of an ID, which end after {end} ms.", row.spans.len())
        }
    }
}
