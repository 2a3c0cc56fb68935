//! What a replay means, in words.

use super::outcome::SpaceReplay;
use super::space::SpaceSummary;
use super::tally::Tally;

/// Above this share of acquisitions on another core, memory wanders more than it stays.
const WANDERS: f64 = 0.2;
/// Of fewer turns nothing can be said in percent.
const ENOUGH_TURNS: u64 = 100;
/// Policies that differ by less than this share of time cost the same.
const WORTH_IT: f64 = 0.05;

/// Sentences about one process: `results` are its replays under each policy, by name, on a machine
/// with `cpus` CPUs.
pub fn advice(results: &[(&str, &SpaceReplay)], cpus: u32, area_bytes: u64) -> Vec<String> {
    let Some((_, first)) = results.first() else { return Vec::new() };
    let summary = &first.summary;
    let mut said = vec![copies(summary, cpus, area_bytes)];
    said.extend(summary.guessed.then(alone));
    if summary.turns < ENOUGH_TURNS {
        return said;
    }
    said.extend(sparse(results, summary));
    said.extend(wandering(results));
    said.extend(cheapest(results));
    said.extend(far_moves(summary));
    said
}

fn copies(summary: &SpaceSummary, cpus: u32, area_bytes: u64) -> String {
    let most = summary.most_running;
    if most <= 1 {
        return "Its threads never run at once: one copy of the data serves it, and per-CPU data would keep nothing \
                nearer."
            .to_owned();
    }
    let kib = |copies: u32| u64::from(copies) * area_bytes / 1024;
    if most >= cpus {
        return format!("It runs on all {cpus} CPUs at once: it needs a copy for each.");
    }
    format!(
        "It never runs more than {most} threads at once: {most} copies suffice instead of {cpus} ({} KiB instead of {} KiB).",
        kib(most),
        kib(cpus)
    )
}

/// A process that may only look as if it had so few threads.
fn alone() -> String {
    "The trace does not say whether other threads belong to it: recorded with task:task_newtask, or as text of ftrace with the \
     option record-tgid, it would."
        .to_owned()
}

/// Policies with many more IDs than threads ever ran at once.
fn sparse(results: &[(&str, &SpaceReplay)], summary: &SpaceSummary) -> Option<String> {
    let most = summary.most_running.max(1);
    let is_sparse = |tally: &Tally| tally.ids_used > 2 * most && tally.ids_used > most + 1;
    let sparse: Vec<String> = results
        .iter()
        .filter(|(_, space)| is_sparse(&space.tally))
        .map(|(name, space)| format!("{name} ({})", space.tally.ids_used))
        .collect();
    (!sparse.is_empty())
        .then(|| format!("More than twice as many copies as needed: {}.", sparse.join(", ")))
}

/// Policies under which the memory of an ID leaves its core often.
fn wandering(results: &[(&str, &SpaceReplay)]) -> Option<String> {
    let elsewhere = |tally: &Tally| 1.0 - tally.acquisitions.shares()[1];
    let wandering: Vec<String> = results
        .iter()
        .filter(|(_, space)| elsewhere(&space.tally) > WANDERS)
        .map(|(name, space)| format!("{name} ({:.0} %)", 100.0 * elsewhere(&space.tally)))
        .collect();
    (!wandering.is_empty()).then(|| {
        format!(
            "Memory that another core used last is what threads find often under: {}.",
            wandering.join(", ")
        )
    })
}

fn cheapest(results: &[(&str, &SpaceReplay)]) -> Option<String> {
    let by_cost = |(_, space): &&(&str, &SpaceReplay)| (space.tally.burst_ns, space.tally.ids_used);
    let best = results.iter().min_by_key(by_cost)?;
    let worst = results.iter().max_by_key(by_cost)?;
    let (cheap, dear) = (best.1.tally.burst_ns as f64, worst.1.tally.burst_ns as f64);
    (cheap > 0.0 && dear > cheap * (1.0 + WORTH_IT)).then(|| {
        format!(
            "After acquisitions, memory is cheapest under {}, with {} IDs; {} makes it {:.1} times as dear.",
            best.0,
            best.1.tally.ids_used,
            worst.0,
            dear / cheap
        )
    })
}

/// Threads that the scheduler moved far: no policy can make up for that.
fn far_moves(summary: &SpaceSummary) -> Option<String> {
    let (far, turns) = (summary.moves.across_l3s(), summary.turns.max(1));
    (far * 20 > turns).then(|| {
        format!(
            "{:.0} % of its turns began behind another last-level cache than the thread's turn before: affinity \
             would help more than any policy.",
            100.0 * far as f64 / turns as f64
        )
    })
}
