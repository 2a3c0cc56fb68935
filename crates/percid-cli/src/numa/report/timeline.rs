//! The time of each stage until memory is placed.

use std::fmt;

use crate::numa::published_report::{PlacementTimeline, PublishedReport};
use percid_command::text_table::{Align, TextTable};

/// Prints the episodes of a balancer, oldest first.
pub(super) fn fmt(f: &mut fmt::Formatter<'_>, report: &PublishedReport) -> fmt::Result {
    if report.timeline.is_empty() {
        return writeln!(
            f,
            "\n  no timeline: no region was registered, or the balancer has no thread"
        );
    }
    let right = Align::Right;
    let mut table = TextTable::new([("began s ago", right)]);
    let times = ["start delay", "until used", "filter", "moving", "total"];
    table.group("ms".to_owned(), times.map(|name| (name, right)));
    table.group("pages".to_owned(), ["moved", "looked again"].map(|name| (name, right)));
    table.group("calls".to_owned(), [("batches", right)]);
    for episode in &report.timeline {
        table.row(row(report, episode));
    }
    write!(f, "\n{table}")
}

fn row(report: &PublishedReport, episode: &PlacementTimeline) -> Vec<String> {
    let ago = report.age_ns.saturating_sub(episode.began_ns) as f64 / 1e9;
    let stages = [
        Some(episode.began_ns),
        episode.armed_ns,
        episode.seen_ns,
        episode.pending_ns,
        episode.moved_ns,
    ];
    let between = |from: Option<u64>, to: Option<u64>| match from.zip(to) {
        Some((from, to)) => format!("{:.0}", to.saturating_sub(from) as f64 / 1e6),
        None => "-".to_owned(),
    };
    let mut row = vec![format!("{ago:.1}")];
    row.extend(stages.windows(2).map(|pair| between(pair[0], pair[1])));
    row.push(between(stages[0], stages[4]));
    row.extend([episode.pages, episode.rearmed, episode.batches].map(|n| n.to_string()));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"format":1,"nodes":[0,1],"sequence":0,"passes":0,"period_ns":1,"scan_ns":0,
        "move_ns":0,"age_ns":5000000000,"threads":1,"collisions":0,"events_lost":0,"regions":[],
        "timeline":[
          {"began_ns":1000000000,"armed_ns":2050000000,"seen_ns":2070000000,"pending_ns":2090000000,
           "moved_ns":2400000000,"pages":2048,"batches":3,"rearmed":16},
          {"began_ns":4000000000,"armed_ns":null,"seen_ns":null,"pending_ns":null,"moved_ns":null,
           "pages":0,"batches":0,"rearmed":0}]}"#;

    #[test]
    fn each_stage_has_the_time_since_the_one_before() {
        let report = PublishedReport::parse(REPORT.as_bytes()).expect("a report");
        let rows = report.timeline.iter().map(|episode| row(&report, episode).join(" "));
        let rows: Vec<String> = rows.collect();
        assert_eq!(rows[0], "4.0 1050 20 20 310 1400 2048 16 3");
        assert_eq!(rows[1], "1.0 - - - - - 0 0 0");
    }
}
