//! A replay as a page.

use percid_command::report::lead;
use percid_report::{Axis, Bars, Page, Span, Timeline};

use super::figures::{ProcessFigures, Results, TimeLine};
use super::text;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

pub(super) fn page(results: &Results, top: usize) -> Page {
    let Results { trustworthiness, trace, .. } = results;
    let what = format!("{trustworthiness}\n\n{trace}\n\nReplayed on {}.", text::machine(results));
    let mut page = Page::new("percid trace replay", lead(&what, results.interrupted));
    if results.processes.is_empty() && !results.interrupted {
        page.section(text::NOBODY, "");
        return page;
    }
    for process in results.processes.iter().take(top) {
        show(process, &mut page);
    }
    for process in results.numa_scan.iter().flat_map(|scan| &scan.processes) {
        process.show(&mut page);
    }
    time_lines(results, &mut page);
    page
}

fn show(process: &ProcessFigures, page: &mut Page) {
    let left_out = process.left_out.iter().map(ToString::to_string);
    let advice: Vec<String> = left_out.chain(process.advice.iter().cloned()).collect();
    page.section(
        text::title(process),
        format!("{}.\n\n{}", text::summary(process), advice.join("\n\n")),
    );
    text::table(process).show_on(page);
    let kinds = ["same CPU", "same core", "same L3 cache", "same node", "other node"];
    let share = Axis::new("acquisitions").unit("%");
    let mut bars = Bars::stacked(Axis::new("policy"), share, kinds);
    for figures in &process.policies {
        let reached =
            [figures.same_cpu, figures.same_core, figures.same_l3, figures.same_node, 1.0];
        let mut before = 0.0;
        let parts = reached.map(|share| 100.0 * (share - std::mem::replace(&mut before, share)));
        bars.category(figures.policy, parts);
    }
    page.chart(format!("Where IDs were used before: {}", text::title(process)), "", bars);
}

fn time_lines(results: &Results, page: &mut Page) {
    page.section(
        "Time lines",
        "Which ID was used on which CPU. Colours are IDs; IDs of different processes with one number have the \
         same colour.",
    );
    for line in &results.time_lines {
        let left_out = match line.left_out {
            0 => String::new(),
            more => {
                format!("The first {} turns; {more} later ones are not shown.", line.turns.len())
            }
        };
        page.chart(line.policy, left_out, time_line(results, line));
    }
}

fn time_line(results: &Results, line: &TimeLine) -> Timeline {
    let mut timeline = Timeline::new(Axis::new("time").unit("ms"), "CPU", "ID");
    let shown = line.turns.iter().filter(|turn| results.process(turn.space).is_some());
    for turn in shown {
        let (from, to) = (turn.from as f64 / MS, turn.to as f64 / MS);
        timeline.span(Span { row: turn.cpu, id: turn.id, from, to });
    }
    timeline
}
