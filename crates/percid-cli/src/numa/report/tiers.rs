//! Pages that moved to nodes without CPUs and back.

use std::fmt;

use crate::numa::published_report::PublishedReport;
use percid_command::text_table::{Align, TextTable};

/// Prints the pages by region, if the balancer uses memory tiers.
pub(super) fn fmt(f: &mut fmt::Formatter<'_>, report: &PublishedReport) -> fmt::Result {
    if report.slow_nodes.is_empty() {
        return Ok(());
    }
    let nodes: Vec<String> = report.slow_nodes.iter().map(u32::to_string).collect();
    write!(f, "\n  nodes without CPUs: {}\n{}", nodes.join(", "), table(report))
}

fn table(report: &PublishedReport) -> TextTable {
    let mut table = TextTable::new([("region", Align::Left)]);
    let columns = ["demoted", "promoted"].map(|name| (name, Align::Right));
    table.group("pages".to_owned(), columns);
    for region in &report.regions {
        let name = format!("{:x}-{:x}", region.start, region.end);
        table.row(vec![name, region.demoted.to_string(), region.promoted.to_string()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown<'a>(&'a PublishedReport);

    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            super::fmt(f, self.0)
        }
    }

    fn report(slow: &str) -> PublishedReport {
        let text = format!(
            r#"{{"format":1,"nodes":[0,1],{slow}"sequence":0,"passes":0,"period_ns":1,"scan_ns":0,"move_ns":0,
            "age_ns":0,"threads":1,"collisions":0,"events_lost":0,"regions":[{{"start":4096,"end":8192,
            "access":"reported","gone":false,"pages_by_node":{{}},"absent":0,"local":0,"remote":0,"private":0,
            "shared":0,"recent_accesses_by_node":{{}},"active":0,"scanned":0,"skipped":{{}},"moved":12,"promoted":5,
            "demoted":7,"pending":0,"failed":{{}},"disarmed_whole":0,"scan_ns":0,"move_ns":0}}]}}"#
        );
        PublishedReport::parse(text.as_bytes()).expect("a report")
    }

    #[test]
    fn what_went_and_returned_is_shown_where_there_are_slow_nodes() {
        let shown = Shown(&report(r#""slow_nodes":[1],"#)).to_string();
        assert!(shown.contains("nodes without CPUs: 1\n"), "{shown}");
        let words: Vec<&str> = shown.lines().last().expect("a row").split_whitespace().collect();
        assert_eq!(words, ["1000-2000", "7", "5"], "{shown}");
        assert_eq!(Shown(&report(r#""slow_nodes":[],"#)).to_string(), "");
        assert_eq!(Shown(&report("")).to_string(), "", "of an older version");
    }

    #[test]
    fn nodes_that_cannot_be_are_refused() {
        let text = r#"{"format":1,"nodes":[0],"slow_nodes":[1024],"sequence":0,"passes":0,"period_ns":1,
            "scan_ns":0,"move_ns":0,"age_ns":0,"threads":1,"collisions":0,"events_lost":0,"regions":[]}"#;
        assert!(PublishedReport::parse(text.as_bytes()).expect_err("a node").contains("node 1024"));
    }
}
