//! The results of a contender, and the comparison of contenders.

use std::time::Duration;

use percid_numa::PlacementTimeline;
use serde::{Deserialize, Serialize};

use super::contender::Contender;
use crate::options::Options;
use crate::verdict::Verdict;

/// Percid may take this much of the kernel's time.
const TIME: f64 = 1.2;
/// Or so many seconds more: the contenders are looked at every 0.1 s.
const RESOLUTION: f64 = 0.2;
/// And the same for its faults: this share of them.
const FAULTS: f64 = 0.25;
/// Maximum share of shared memory that may move in a second.
const WANDERING: f64 = 0.01;
/// Maximum share of passes in all run time, and the run time in seconds after which it applies.
const SCANNING: f64 = 0.03;
const SETTLED: f64 = 20.0;

/// The results of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) stage: String,
    /// Time until 95 % of the memory was on the node that uses it; `None` if that never happened,
    /// or was not tested.
    pub(super) seconds: Option<f64>,
    /// Duration of the stage.
    pub(super) lasted: f64,
    /// The share that was on the node that uses it at the end; `None` if all threads use the
    /// memory.
    pub(super) share: Option<f64>,
    /// Hint faults, by the kernel's count for the machine.
    pub(super) hint_faults: u64,
    /// Page table entries that the kernel armed, by its count for the machine.
    pub(super) pte_updates: u64,
    /// Interrupts by which CPUs were made to forget pages, by the machine's count; `None` if the
    /// processor needs none.
    pub(super) shootdowns: Option<u64>,
    /// Accesses to armed memory that percid detected by a fault.
    pub(super) caught: u64,
    /// Accesses to armed memory that were reported to percid.
    pub(super) reported: u64,
    /// Pages that moved, by the kernel's count for the machine.
    pub(super) moved: u64,
    /// The share of all pages that moved in a second, in the second half of the time that a stage may
    /// last, or in all of it if it was shorter.
    pub(super) moved_per_second: f64,
    /// The share of the time that percid's passes took, so far.
    pub(super) scan_share: f64,
    /// The seconds that the process's threads had run by then, together.
    pub(super) run_time: f64,
    /// Pages that all threads used in a second.
    pub(super) uses_per_second: f64,
    /// The times of percid's steps, if something moved in this stage.
    pub(super) stages: Option<Stages>,
}

/// The last episode of a balancer's timeline: the times of its steps, in seconds since the episode
/// began, and the numbers of pages and calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Stages {
    armed: Option<f64>,
    seen: Option<f64>,
    wanted: Option<f64>,
    moved: f64,
    pages: u64,
    batches: u64,
    rearmed: u64,
}

impl Stages {
    /// Returns `None` if nothing has moved.
    pub(super) fn of(episode: &PlacementTimeline) -> Option<Stages> {
        let since = |at: Duration| at.saturating_sub(episode.began).as_secs_f64();
        Some(Stages {
            armed: episode.armed.map(since),
            seen: episode.seen.map(since),
            wanted: episode.pending.map(since),
            moved: since(episode.moved?),
            pages: episode.pages,
            batches: episode.batches,
            rearmed: episode.rearmed,
        })
    }
}

impl Figures {
    fn faults(&self) -> u64 {
        self.hint_faults + self.caught
    }
}

/// A stage of a contender.
#[derive(Debug, Serialize)]
struct Row {
    contender: &'static str,
    run: usize,
    #[serde(flatten)]
    figures: Figures,
}

/// All contenders on one machine.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    nodes: usize,
    access: String,
    rows: Vec<Row>,
}

/// The results of a contender in a stage, over all runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Typical {
    /// The median; infinity if memory was not placed in most of the runs.
    seconds: f64,
    /// The median.
    faults: u64,
    /// The worst.
    moved_per_second: f64,
    places_memory: bool,
}

impl Typical {
    /// Returns `None` without any run.
    fn of(runs: &[&Figures]) -> Option<Typical> {
        let mut seconds: Vec<f64> =
            runs.iter().map(|run| run.seconds.unwrap_or(f64::INFINITY)).collect();
        seconds.sort_by(f64::total_cmp);
        let mut faults: Vec<u64> = runs.iter().map(|run| run.faults()).collect();
        faults.sort_unstable();
        Some(Typical {
            seconds: *seconds.get(runs.len() / 2)?,
            faults: *faults.get(runs.len() / 2)?,
            moved_per_second: runs.iter().map(|run| run.moved_per_second).fold(0.0, f64::max),
            places_memory: runs.iter().any(|run| run.share.is_some()),
        })
    }

    /// Returns the longest time that another contender may take. If memory was not placed in time,
    /// only the duration of the stage is the bound.
    fn bound(&self) -> f64 {
        (self.seconds * TIME).max(self.seconds + RESOLUTION)
    }
}

impl Comparison {
    pub(super) fn new(options: &Options, nodes: usize) -> Comparison {
        Comparison { nodes, access: options.access.to_string(), rows: Vec::new() }
    }

    pub(super) fn add(&mut self, contender: Contender, run: usize, figures: &[Figures]) {
        let rows = figures.iter().cloned();
        self.rows.extend(rows.map(|figures| Row { contender: contender.name(), run, figures }));
    }

    fn of(&self, contender: Contender, stage: &str) -> Option<Typical> {
        let same = |row: &&Row| row.contender == contender.name() && row.figures.stage == stage;
        let runs: Vec<&Figures> = self.rows.iter().filter(same).map(|row| &row.figures).collect();
        Typical::of(&runs)
    }

    /// Returns everything in one line, with the failures.
    pub(super) fn verdict(&self) -> Verdict {
        let mut wrong = Vec::new();
        for row in &self.rows {
            let of_percid = row.contender != Contender::Kernel.name();
            // Early on, the last pass counts for much.
            if of_percid && row.figures.run_time > SETTLED && row.figures.scan_share > SCANNING {
                wrong.push(format!("{}/{}: scan share", row.contender, row.figures.stage));
            }
        }
        let is_first_of_kernel =
            |row: &&Row| row.contender == Contender::Kernel.name() && row.run == 0;
        for row in self.rows.iter().filter(is_first_of_kernel) {
            wrong.extend(self.compare(&row.figures.stage));
        }
        let mut text = format!("nodes={} access={}", self.nodes, self.access);
        for Row { contender, figures, .. } in &self.rows {
            let time = figures.seconds.map_or("never".to_owned(), |time| format!("{time:.1}"));
            let share = figures.share.map_or("-".to_owned(), |share| format!("{share:.2}"));
            text += &format!(
                " | {contender} {} s={time} lasted={:.1} share={share} faults={} armed={} \
                 shootdowns={} moved={} moved/s={:.4} scan={:.3}",
                figures.stage,
                figures.lasted,
                figures.faults(),
                figures.pte_updates,
                figures.shootdowns.map_or("-".to_owned(), |count| count.to_string()),
                figures.moved,
                figures.moved_per_second,
                figures.scan_share,
            );
        }
        if wrong.is_empty() { Ok(text) } else { Err(format!("{} {text}", wrong.join("; "))) }
    }

    /// Returns the failures of percid compared with the kernel in a stage.
    fn compare(&self, stage: &str) -> Vec<String> {
        let of = |contender| self.of(contender, stage);
        let (Some(kernel), Some(percid), Some(both)) =
            (of(Contender::Kernel), of(Contender::Percid), of(Contender::Both))
        else {
            return vec![format!("{stage}: figures are missing")];
        };
        let mut wrong = Vec::new();
        if !kernel.places_memory || stage.ends_with("-after") {
            if percid.moved_per_second > WANDERING {
                wrong.push(format!("{stage}: shared memory wanders"));
            }
            return wrong;
        }
        if percid.seconds > kernel.bound() {
            wrong.push(format!("{stage}: percid is late"));
        }
        if both.seconds > kernel.bound().min(percid.bound()) {
            wrong.push(format!("{stage}: both are slower than one"));
        }
        if percid.faults as f64 > FAULTS * kernel.faults as f64 && percid.faults > 0 {
            wrong.push(format!("{stage}: faults"));
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(seconds: Option<f64>, hint_faults: u64) -> Figures {
        Figures {
            stage: "swap".to_owned(),
            seconds,
            lasted: 25.0,
            share: Some(1.0),
            hint_faults,
            pte_updates: hint_faults,
            shootdowns: None,
            caught: 0,
            reported: 0,
            moved: 4096,
            moved_per_second: 0.5,
            scan_share: 0.01,
            run_time: 100.0,
            uses_per_second: 1e6,
            stages: None,
        }
    }

    fn comparison(percid: [Option<f64>; 3], faults: u64) -> Comparison {
        let mut comparison =
            Comparison { nodes: 2, access: "trapped".to_owned(), rows: Vec::new() };
        for (run, seconds) in percid.into_iter().enumerate() {
            comparison.add(Contender::Kernel, run, &[figures(Some(2.0), 4000)]);
            comparison.add(Contender::Percid, run, &[figures(seconds, faults)]);
            comparison.add(Contender::Both, run, &[figures(Some(2.1), faults)]);
        }
        comparison
    }

    #[test]
    fn the_median_of_the_runs_counts() {
        assert!(comparison([Some(1.9), None, Some(2.3)], 1000).verdict().is_ok());
        for (late, why) in [
            (comparison([Some(2.5), None, Some(1.9)], 1000), "percid is late"),
            (comparison([Some(1.0); 3], 1000), "both are slower than one"),
            (comparison([Some(2.0); 3], 1001), "faults"),
        ] {
            assert!(late.verdict().is_err_and(|text| text.contains(why)), "{why}");
        }
    }

    #[test]
    fn memory_that_is_never_placed_is_late_whatever_else_happens() {
        let late = comparison([None; 3], 0).verdict();
        assert!(late.is_err_and(|text| text.starts_with("swap: percid is late")));
    }
}
