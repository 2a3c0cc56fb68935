//! A replay as a page.

use std::cmp::Reverse;

use percid_command::report;
use percid_report::{Axis, Bars, Page};
use percid_trace::replay::Used;

use super::figures::{PolicyFigures, ProcessFigures, Results};
use super::text;
use crate::printable::labelled;
use crate::times::ms;
use crate::tracks::{self, Cast, Process};

pub(super) fn page(results: &Results, top: usize) -> Page {
    let Results { quality, trace, .. } = results;
    let what = format!("{quality}\n\n{trace}\n\nReplayed on {}.", text::machine(results));
    let mut page =
        report::page("percid trace replay", verdict(results), &what, results.interrupted);
    if results.processes.is_empty() && !results.interrupted {
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

/// Returns the costs of the first process under the cheapest and the dearest policy.
fn verdict(results: &Results) -> String {
    let Some(process) = results.processes.first() else {
        let why = if results.interrupted { "" } else { ": no process runs in the trace" };
        return format!("0 processes were replayed{why}.");
    };
    let by = |one: &&PolicyFigures, other: &&PolicyFigures| {
        one.ns_per_turn.total_cmp(&other.ns_per_turn)
    };
    let policies = process.policies.iter();
    let Some((least, most)) = policies.clone().min_by(by).zip(policies.max_by(by)) else {
        return format!("0 policies replayed {}.", text::title(process));
    };
    let told = |figures: &PolicyFigures| {
        format!(
            "{:.2} us with {} IDs of {}",
            figures.ns_per_turn / 1000.0,
            figures.ids_used,
            figures.policy
        )
    };
    let (least, most) = (told(least), told(most));
    format!("A turn of {} costs from {least} to {most}.", text::title(process))
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
    page.chart(format!("Previous use of IDs: {}", text::title(process)), "", bars);
}

fn time_lines(results: &Results, page: &mut Page) {
    page.section(
        "Time lines",
        "The ID on each CPU: colours are processes, patterns are IDs. All of them show the same part of \
         the time.",
    );
    let places = results.places();
    // Those that ran longest have a colour.
    let mut order: Vec<usize> = (0..results.processes.len()).collect();
    order.sort_by_key(|&at| Reverse(results.processes[at].summary.run_ns));
    let mut ranks = vec![0; order.len()];
    order.iter().enumerate().for_each(|(rank, &at)| ranks[at] = rank);
    let processes = order.iter().map(|&at| process(&results.processes[at])).collect();
    let all = results.time_lines.iter().flat_map(|line| &line.spans);
    let all = all.map(|span| ((span.what.space, span.what.tid), span.row));
    let cast = Cast::new(processes, all, |(space, tid)| {
        let name = results.thread_names.get(&tid).map_or("", String::as_str);
        Some((labelled(name, tid), ranks[*places.get(&space)?]))
    });
    let bytes = tracks::bytes(results.time_lines.len());
    for line in &results.time_lines {
        let of = |used: Used| ((used.space, used.tid), used.id);
        let span = (0, results.duration_ns);
        let tracks = cast.tracks(&line.spans, span, Some("ID"), of, bytes);
        page.chart(line.policy, "", tracks.gathered(line.column_ns));
    }
}

fn process(process: &ProcessFigures) -> Process {
    let summary = &process.summary;
    Process {
        label: text::title(process),
        ms: ms(summary.run_ns),
        threads: u64::from(summary.threads),
    }
}
