//! The report of `--html`: a chart for each family of operations and for each other part.

use percid_report::{Axis, Bars, Page};

use super::document::Document;
use super::figures::{Figure, distinct};
use super::summary::{Costs, Facts};
use super::titles::title;
use super::{intermittent, wander};
use crate::judged::{Judged, Part};
use percid_command::report;

/// Returns the report of all measurements.
pub(super) fn page(document: &Document) -> Page {
    let increments = document.ops.as_ref().filter(|part| part.hiding().is_none());
    let increments = increments.and_then(|part| Costs::of(&part.report, &document.machine)?.told());
    let mut page = begun("percid bench", increments.unwrap_or_else(|| result(document)), document);
    parts(document, &mut page);
    page.section("In short", Facts(document).sentences().join("\n\n"));
    page
}

/// Returns the report of one part.
pub(super) fn of_part(name: &str, document: &Document) -> Page {
    let mut page = begun(&format!("percid bench {name}"), result(document), document);
    parts(document, &mut page);
    page
}

fn begun(title: &str, verdict: String, document: &Document) -> Page {
    // The machine, and then the ID source.
    let machine = document.machine.summary().replacen('\n', "\n\n", 1);
    report::page(title, verdict, &machine, document.interrupted)
}

/// Returns the result of the first part that was measured.
fn result(document: &Document) -> String {
    let ops = document.ops.as_ref().map(|part| of(part, |ops| span(&ops.results)));
    let mask = || document.mask.as_ref().map(|part| of(part, |mask| span(&mask.mask)));
    let wander = || document.wander.as_ref().map(|part| of(part, moves));
    let intermittent = || document.intermittent.as_ref().map(|part| of(part, bursts));
    let found = ops.or_else(mask).or_else(wander).or_else(intermittent);
    found.unwrap_or_else(|| NOTHING.to_owned())
}

/// Returns the result of a part, unless its times are noise.
fn of<R: Part>(part: &Judged<R>, told: impl Fn(&R) -> String) -> String {
    match part.hiding() {
        Some(noise) => format!("0 times can be shown, because {noise}."),
        None => told(&part.report),
    }
}

const NOTHING: &str = "0 times were measured.";

fn moves(report: &wander::WanderReport) -> String {
    least_and_most("a move", report.wander.iter().map(|row| (name_of_move(row), row.ns_min)))
}

fn bursts(report: &intermittent::IntermittentReport) -> String {
    let rows = report.rows.iter();
    let times = rows.filter_map(|row| Some((name_of_burst(row), row.ns_later?)));
    least_and_most("a burst after a pause", times)
}

fn parts(document: &Document, page: &mut Page) {
    if let Some(ops) = shown(&document.ops, "Single operations", page) {
        let about = format!("{}\n\nTime per operation: the fastest round.", span(&ops.results));
        page.section("Single operations", about);
        families(&ops.results, page);
    }
    let title = "Membership of a mask that all threads share";
    if let Some(mask) = shown(&document.mask, title, page) {
        page.section(title, span(&mask.mask));
        families(&mask.mask, page);
    }
    let title = "Threads that keep changing their CPU";
    if let Some(wander) = shown(&document.wander, title, page) {
        let told = moves(wander);
        let about = "Time of a move to another CPU and ten increments there.";
        page.section(title, format!("{told}\n\n{about}"));
        let series = ["fastest", "median"];
        let mut bars = Bars::grouped(Axis::new("move and counter"), time("move"), series);
        for row in &wander.wander {
            bars.category(name_of_move(row), [row.ns_min, row.ns_median]);
        }
        page.chart("Moves", "", bars);
    }
    let title = "Coming back to per-CPU memory after a pause";
    if let Some(intermittent) = shown(&document.intermittent, title, page) {
        let told = bursts(intermittent);
        let about = "At once: right after bursts without pauses.";
        page.section(title, format!("{told}\n\n{about} A burst writes to 16 KiB."));
        let series = ["at once", "after a pause"];
        let mut bars = Bars::grouped(Axis::new("what selects the shard"), time("burst"), series);
        for row in &intermittent.rows {
            bars.category(name_of_burst(row), [Some(row.ns_hot), row.ns_later]);
        }
        page.chart("Bursts over 16 KiB", "", bars);
    }
}

/// Returns a part if its times can be shown; otherwise a section gives the reason.
fn shown<'a, R: Part>(part: &'a Option<Judged<R>>, title: &str, page: &mut Page) -> Option<&'a R> {
    let part = part.as_ref()?;
    let Some(noise) = part.hiding() else { return Some(&part.report) };
    let why = format!("No times: {noise}.");
    page.section(title, why).printed(part.report.counts().trim_end());
    None
}

fn name_of_move(row: &wander::Row) -> String {
    format!("{}: {}", title(row.movement), title(row.counter))
}

fn name_of_burst(row: &intermittent::Row) -> String {
    let name = format!("{}, {} ms", title(&row.index), row.delay_ms);
    match (row.overcommit, row.other_memory_kib) {
        (0, _) => name,
        (competitors, None) => format!("{name}, {competitors} competitors"),
        (competitors, Some(kib)) => format!("{name}, {competitors} competitors with {kib} KiB"),
    }
}

/// Returns the smallest and the largest time, and the names of both.
fn least_and_most(of: &str, figures: impl Iterator<Item = (String, f64)>) -> String {
    let figures: Vec<(String, f64)> = figures.collect();
    let by = |(_, one): &&(String, f64), (_, other): &&(String, f64)| one.total_cmp(other);
    let ends = figures.iter().min_by(by).zip(figures.iter().max_by(by));
    ends.map_or(NOTHING.to_owned(), |((first, least), (last, most))| {
        let [least, most] = [*least, *most].map(two_digits);
        format!("The time of {of} is from {least} ns ({first}) to {most} ns ({last}).")
    })
}

fn time(of: &str) -> Axis {
    Axis::new(format!("time per {of}")).unit("ns").logarithmic()
}

/// Returns the smallest and the largest value, and the names of both.
fn span(figures: &[Figure]) -> String {
    let by = |one: &&Figure, other: &&Figure| one.ns_min.total_cmp(&other.ns_min);
    let ends = figures.iter().min_by(by).zip(figures.iter().max_by(by));
    ends.map_or(NOTHING.to_owned(), |(least, most)| {
        let told = |figure: &Figure| {
            let name = name(figure.op, &figure.source);
            format!("{} ns ({name}, {})", two_digits(figure.ns_min), figure.team)
        };
        format!("The time of an operation is from {} to {}.", told(least), told(most))
    })
}

/// Formats a time with enough digits to compare orders of magnitude.
fn two_digits(ns: f64) -> String {
    if ns < 10.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

/// Adds a chart for each family: in it each operation with each source, a bar for each team.
fn families(figures: &[Figure], page: &mut Page) {
    let teams = distinct(figures.iter().map(|figure| figure.team));
    for family in distinct(figures.iter().map(|figure| figure.family)) {
        let here = || figures.iter().filter(move |figure| figure.family == family);
        let mut bars = Bars::grouped(
            Axis::new("operation"),
            time("operation"),
            teams.iter().map(ToString::to_string),
        );
        for (op, source) in distinct(here().map(|figure| (figure.op, &figure.source))) {
            let of_team = |team| {
                let is_it = |figure: &&Figure| {
                    (figure.op, &figure.source, figure.team) == (op, source, team)
                };
                here().find(is_it).map(|figure| figure.ns_min)
            };
            bars.category(name(op, source), teams.iter().map(|&team| of_team(team)));
        }
        page.chart(capitalised(&family.to_string()), "", bars);
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn name(op: &str, source: &str) -> String {
    match source {
        "none" => title(op).to_owned(),
        source => format!("{} ({})", title(op), title(source)),
    }
}
