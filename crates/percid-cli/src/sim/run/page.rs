//! The comparison as a report.

use std::collections::BTreeSet;

use percid_report::{Axis, Bars, Lines, Page, Span, Timeline};
use percid_sim::comparison::{InUse, Level, ProgramRow, Row};
use percid_sim::cost::Class;

use crate::sim::numbers::{self, Number, hundredths, optional, plain, settings};
use crate::sim::span;
use percid_command::report;
use percid_command::table::Table;
use percid_sim::results::Results;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

pub(super) fn page(results: &Results) -> Page {
    let what = format!("{}: {}.", results.title(), results.workload.about);
    let mut page = report::page("percid sim run", span(results), &what, results.interrupted);
    page.colours(policies(results));
    costs(results, &mut page);
    shares(results, &mut page);
    counts(results, &mut page);
    programs(results, &mut page);
    timelines(results, &mut page);
    let shape = results.machine.shape();
    let parameters = settings(&results.workload.parameters);
    let numbers = numbers::sentence(results.machine.numbers.iter().map(Number::from));
    page.section("Simulation", format!("{shape}.\n\n{parameters}\n\n{numbers}"));
    numbers::table(results.machine.numbers.iter().map(Number::from))
        .show_as("Numbers, and where they come from", &mut page);
    page
}

fn ns() -> Axis {
    Axis::new("time per burst").unit("ns")
}

fn costs(results: &Results, page: &mut Page) {
    let text = format!("{}\n\nSimulated time. Shorter is better.", span(results));
    page.section("Time per burst", text);
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
        page.chart("Policies", "", means(results));
    } else {
        let mut bars = Bars::grouped(Axis::new("parameters"), ns().logarithmic(), policies);
        for rows in results.rows.chunk_by(|one, other| one.parameters == other.parameters) {
            bars.category(settings(&rows[0].parameters), rows.iter().map(|row| row.ns_per_burst));
        }
        page.chart("Means of all runs", "", bars);
    }
}

/// Returns the means, with the minimum and the maximum of the runs if there are several.
fn means(results: &Results) -> Bars {
    let mut series = vec!["mean of all runs"];
    if results.seeds > 1 {
        series.extend(["least of the runs", "most of the runs"]);
    }
    let drawn = series.len();
    let mut bars = Bars::grouped(Axis::new("policy"), ns().logarithmic(), series);
    for row in &results.rows {
        let costs = [row.ns_per_burst, row.ns_per_burst_min, row.ns_per_burst_max];
        bars.category(row.policy, costs.into_iter().take(drawn));
    }
    bars
}

/// Returns the smallest and the largest mean, and their policies.
fn span(results: &Results) -> String {
    let costs = results.rows.iter().filter_map(|row| Some((name(row), row.ns_per_burst?)));
    let told = span::sentence("Time per burst", " ns", costs);
    told.unwrap_or_else(|| "0 bursts were simulated.".to_owned())
}

/// Returns a row's policy, with the swept parameters.
fn name(row: &Row) -> String {
    match settings(&row.parameters) {
        settings if settings.is_empty() => row.policy.to_owned(),
        settings => format!("{}, {settings}", row.policy),
    }
}

/// Returns the policies that have rows.
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

const FOUND: &str = "Bursts found memory that this core touched last, memory from other caches, or memory \
                     that was not touched before. A few expensive bursts can cost most of the time.";

/// Returns the bursts whose share of the cost exceeds their share of the bursts most.
fn dearest(results: &Results) -> String {
    let costs = results.rows.iter().flat_map(|row| {
        let classes = Class::ALL.into_iter().zip(&row.shares);
        classes.map(move |(class, share)| (row, class, share))
    });
    let most = costs.max_by(|(.., one), (.., other)| {
        (one.cost - one.bursts).total_cmp(&(other.cost - other.bursts))
    });
    most.map_or(String::new(), |(row, class, share)| {
        format!(
            "Dearest: {} with {}, {} % of the bursts and {} % of their cost.",
            class.name(),
            name(row),
            hundredths(share.bursts),
            hundredths(share.cost)
        )
    })
}

fn shares(results: &Results, page: &mut Page) {
    page.section("Place of the memory", format!("{}\n\n{FOUND}", dearest(results)));
    let classes = Class::ALL.map(Class::name);
    let axis = |of| Axis::new(format!("share of {of}")).unit("%");
    let mut bursts = Bars::stacked(Axis::new("policy"), axis("bursts"), classes);
    let mut cost = Bars::stacked(Axis::new("policy"), axis("cost"), classes);
    for rows in results.rows.chunk_by(|one, other| one.parameters == other.parameters) {
        if !results.sweeps.is_empty() {
            bursts.group(settings(&rows[0].parameters));
            cost.group(settings(&rows[0].parameters));
        }
        for row in rows {
            bursts.category(row.policy, row.shares.iter().map(|share| 100.0 * share.bursts));
            cost.category(row.policy, row.shares.iter().map(|share| 100.0 * share.cost));
        }
    }
    page.chart("Shares of bursts", "", bursts);
    page.chart("Shares of their cost", "", cost);
}

fn counts(results: &Results, page: &mut Page) {
    let columns = ["policy", "parameters", "mean, ns/burst", "least, ns/burst", "most, ns/burst"]
        .into_iter()
        .map(str::to_owned);
    let columns = columns.chain(Class::ALL.map(|class| format!("{}, %", class.name())));
    let counts =
        ["IDs", "bound", "memory, bytes", "steals", "scans", "expired", "slow paths", "migrations"];
    let of_time = ["work, %", "interrupts"];
    let quota = ["throttled", "throttled, ms"];
    let in_use = ["CPUs at a time", "CPUs in 100 ms", "IDs in 100 ms"];
    let quiet = ["IDs when quiet", "above bound, ms"];
    let further = of_time.into_iter().chain(quota).chain(in_use).chain(quiet);
    let columns = columns.chain(counts.into_iter().chain(further).map(str::to_owned));
    let mut table = Table::new(columns, 2);
    results.rows.iter().for_each(|row| table.row(cells(row)));
    let memory = results.rows.iter().map(|row| (name(row), row.memory as f64 / 1024.0));
    let memory = span::sentence("Memory", " KiB", memory).unwrap_or_default();
    let about = "IDs and memory are those of the run that needed most; counts those of all runs. Memory in use is the mean \
         of samples every 10 ms; if wakes go astray, while they do, and quiet is the time after that.";
    page.section("All figures", format!("{memory}\n\n{about}"));
    table.show_as("All rows", page);
}

/// Adds each program of a workload that lists several.
fn programs(results: &Results, page: &mut Page) {
    if results.rows.iter().all(|row| row.programs.is_empty()) {
        return;
    }
    let columns = [
        "policy",
        "program",
        "parameters",
        "mean, ns/burst",
        "least, ns/burst",
        "most, ns/burst",
        "bursts",
        "IDs",
        "bound",
        "memory, bytes",
        "run, ms",
        "throttled",
        "throttled, ms",
    ];
    let mut table = Table::new(columns.map(str::to_owned), 3);
    for row in &results.rows {
        row.programs.iter().for_each(|program| table.row(program_cells(row, program)));
    }
    page.section(
        "Each program",
        "The programs run beside each other on the same CPUs; what they share are CPUs and caches. Times of \
         running and of being throttled are those of all runs.",
    );
    table.show_on(page);
}

fn program_cells(row: &Row, program: &ProgramRow) -> Vec<String> {
    let mut cells = vec![row.policy.to_owned(), program.name.clone(), settings(&row.parameters)];
    let costs = [program.ns_per_burst, program.ns_per_burst_min, program.ns_per_burst_max];
    cells.extend(costs.map(optional));
    let ids = [program.ids_distinct, program.ids_bound].map(u64::from);
    let counts = [program.bursts, ids[0], ids[1], program.memory];
    cells.extend(counts.map(|count| count.to_string()));
    let ms = |ns: u64| numbers::figure(ns as f64 / MS);
    cells.push(ms(program.expense.run_ns));
    cells.push(program.throttling.throttled.to_string());
    cells.push(ms(program.throttling.throttled_ns));
    cells
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
    let throttled = row.throttling.throttled_ns as f64 / MS;
    cells.extend([row.throttling.throttled.to_string(), numbers::figure(throttled)]);
    let level = |of: fn(&InUse) -> Level| optional(row.in_use.as_ref().map(|used| of(used).mean));
    cells.extend([level(|used| used.running), level(|used| used.visited), level(|used| used.ids)]);
    cells.push(row.quiet.map_or("-".to_owned(), |quiet| quiet.ids.to_string()));
    cells.push(optional(row.quiet.map(|quiet| quiet.above_bound_ns as f64 / MS)));
    cells
}

/// Adds a timeline for each policy, of the first combination of the swept parameters.
fn timelines(results: &Results, page: &mut Page) {
    let Some(first) = results.rows.first() else { return };
    let rows: Vec<&Row> =
        results.rows.iter().filter(|row| row.parameters == first.parameters).collect();
    let of = settings(&first.parameters);
    let of = if of.is_empty() { String::new() } else { format!(", {of}") };
    page.section(
        "IDs over CPUs",
        format!(
            "{}\n\nWhich CPU used which ID when, in the first run of each policy{of}. Colours are used in turn.",
            ids_used(&rows)
        ),
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

/// Returns the smallest and the largest number of distinct IDs in the timelines.
fn ids_used(rows: &[&Row]) -> String {
    let distinct = |row: &Row| row.spans.iter().map(|span| span.id).collect::<BTreeSet<_>>().len();
    let counts = rows.iter().map(|row| (row.policy.to_owned(), distinct(row) as f64));
    span::sentence("The number of IDs", "", counts).unwrap_or_default()
}

/// Returns the part of the run that a timeline shows.
fn extent(row: &Row) -> String {
    match row.spans.iter().map(|span| span.to).max() {
        None => "No CPU used an ID.".to_owned(),
        Some(end) => {
            let end = plain((end as f64 / MS).round());
            format!("The first {} uses of an ID, which end after {end} ms.", row.spans.len())
        }
    }
}
