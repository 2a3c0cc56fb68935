//! Intervals as lines of text, in fixed columns.

use super::change::Change;
use super::interval::Interval;
use crate::numa::figures::{counts, percent};

/// Number of lines after which the column headings are repeated.
const HEADING_EVERY: usize = 20;

/// The most nodes that have columns; the JSON has all.
const NODES_SHOWN: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Lines {
    since_heading: usize,
    /// The nodes that have columns.
    nodes: Vec<u32>,
}

impl Lines {
    /// Returns one line for each balancer.
    pub(super) fn render(&mut self, interval: &Interval) -> String {
        let mut text = String::new();
        for change in &interval.balancers {
            if self.since_heading.is_multiple_of(HEADING_EVERY) || !self.has_columns_for(change) {
                self.nodes = change.nodes.iter().take(NODES_SHOWN).copied().collect();
                self.since_heading = 0;
                text += &self.heading();
            }
            self.since_heading += 1;
            text += &self.line(interval.seconds, change);
        }
        text
    }

    fn has_columns_for(&self, change: &Change) -> bool {
        change.nodes.iter().take(NODES_SHOWN).all(|node| self.nodes.contains(node))
    }

    fn heading(&self) -> String {
        let names = ["time", "balancer", "passes", "scanned/s", "moved/s", "pending", "local %"];
        let nodes = self.nodes.iter().map(|node| format!("node {node} %"));
        row(names.into_iter().map(str::to_owned).chain(nodes), "skipped")
    }

    fn line(&self, seconds: f64, change: &Change) -> String {
        let total = &change.total;
        let rate = |count| match change.per_second(count) {
            Some(rate) => format!("{rate:.0}"),
            None => "-".to_owned(),
        };
        let cells = [
            format!("{seconds:.1}"),
            change.number.to_string(),
            change.passes.to_string(),
            rate(total.scanned),
            rate(total.moved),
            total.pending.to_string(),
            percent(total.local_share()),
        ];
        let nodes = self.nodes.iter().map(|node| percent(total.share_on(*node)));
        let skipped = counts(total.skipped.iter().map(|(reason, count)| (reason, *count)));
        row(cells.into_iter().chain(nodes), &skipped)
    }
}

fn row(cells: impl Iterator<Item = String>, last: &str) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:>9}")).collect();
    format!("{}  {last}\n", cells.join(" "))
}
