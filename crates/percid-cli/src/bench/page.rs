//! The page behind `--html`: a chart for each family of operations and for each other part.

use percid_report::{Axis, Bars, Page};

use super::document::Document;
use super::figures::{Figure, distinct};
use super::summary::Facts;
use super::titles::title;
use percid_command::report::lead;

/// All that was measured.
pub(super) fn page(document: &Document) -> Page {
    let machine = document.machine.summary();
    let mut page = Page::new("percid bench", lead(&machine, document.interrupted));
    page.section("In short", paragraphs(&Facts(document).to_string()));
    if let Some(ops) = &document.ops {
        let about = "Time per operation: the fastest round.";
        page.section("Single operations", about);
        families(&ops.results, &mut page);
    }
    if let Some(mask) = &document.mask {
        page.section("Membership of a mask that all threads share", "");
        families(&mask.mask, &mut page);
    }
    if let Some(wander) = &document.wander {
        let about = "Time of a move to another CPU and ten increments there.";
        page.section("Threads that keep changing their CPU", about);
        let series = ["fastest", "median"];
        let mut bars = Bars::grouped(Axis::new("move and counter"), time("move"), series);
        for row in &wander.wander {
            let name = format!("{}: {}", title(row.movement), title(row.counter));
            bars.category(name, [row.ns_min, row.ns_median]);
        }
        page.chart("Moves", "", bars);
    }
    if let Some(intermittent) = &document.intermittent {
        page.section("Coming back to per-CPU memory after a pause", "");
        let series = ["at once", "after a pause"];
        let mut bars = Bars::grouped(Axis::new("what selects the copy"), time("burst"), series);
        for row in &intermittent.rows {
            let name = format!("{}, {} ms", title(&row.index), row.delay_ms);
            bars.category(name, [Some(row.ns_hot), row.ns_later]);
        }
        page.chart("Bursts over 16 KiB", "", bars);
    }
    page
}

fn time(of: &str) -> Axis {
    Axis::new(format!("time per {of}")).unit("ns").logarithmic()
}

/// Lines that begin at the margin begin a paragraph.
fn paragraphs(text: &str) -> String {
    text.replace("\n  ", " ").replace('\n', "\n\n")
}

/// A chart for each family: in it each operation with each source, a bar for each team.
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
        page.chart(family.to_string(), "", bars);
    }
}

fn name(op: &str, source: &str) -> String {
    match source {
        "none" => title(op).to_owned(),
        source => format!("{} ({})", title(op), title(source)),
    }
}
