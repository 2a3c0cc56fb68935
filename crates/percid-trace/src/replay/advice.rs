//! Conclusions from a replay, in words.

use percid_sim::cpu_list;

use super::outcome::SpaceReplay;
use super::space::SpaceSummary;
use super::tally::Tally;

/// Above this share of acquisitions on another core, memory wanders more than it stays.
const WANDERS: f64 = 0.2;
/// Smallest number of turns for which percentages are meaningful.
const ENOUGH_TURNS: u64 = 100;
/// Policies that differ by less than this share of time cost the same.
const WORTH_IT: f64 = 0.05;

/// The CPUs of a recording and of the machine that replays it.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// The CPUs on which something was recorded, as a list: `0-3,8`.
    pub cpus: &'a str,
    /// Number of CPUs that were online.
    pub online: u32,
    /// Number of CPUs of the machine on which it is replayed.
    pub machine: u32,
}

impl Recorded<'_> {
    /// Returns the beginning of sentences about the recorded CPUs, which may not hold for others.
    pub fn on(&self) -> String {
        let plural = if self.cpus.contains(['-', ',']) { "s" } else { "" };
        let all = cpu_list::count(self.cpus) == Some(self.online);
        let of = if all { String::new() } else { format!(" of {}", self.online) };
        format!("On CPU{plural} {}{of}", self.cpus)
    }
}

/// Sentences about one process: `results` are its replays under each policy, by name.
pub fn advice(
    results: &[(&str, &SpaceReplay)],
    recorded: Recorded<'_>,
    area_bytes: u64,
) -> Vec<String> {
    let Some((_, first)) = results.first() else { return Vec::new() };
    let summary = &first.summary;
    let mut said = vec![shards(summary, recorded, area_bytes)];
    said.extend(summary.guessed.then(alone));
    if summary.turns >= ENOUGH_TURNS {
        said.extend(sparse(results, summary));
        said.extend(wandering(results));
        said.extend(cheapest(results));
        said.extend(far_moves(summary));
    }
    let on = recorded.on();
    said.into_iter().map(|sentence| format!("{on} {sentence}")).collect()
}

/// Describes how many shards of the data it needed there, and whether that applies to other
/// machines.
fn shards(summary: &SpaceSummary, recorded: Recorded<'_>, area_bytes: u64) -> String {
    let most = summary.most_running;
    let limit = recorded.online.min(summary.allowed_cpus).max(1);
    if most >= limit && summary.most_threads > limit {
        return at_the_limit(summary, limit, recorded.machine);
    }
    if most <= 1 {
        return "its threads never ran at once: one shard of the data served it, which moved with them."
            .to_owned();
    }
    if most >= recorded.online {
        return format!("it ran on all {most} CPUs at once: it needed a shard for each.");
    }
    let memory = |shards: u32| amount(u64::from(shards).saturating_mul(area_bytes));
    format!(
        "it never ran more than {most} threads at once: {most} shards sufficed instead of {} ({} instead of {}).",
        recorded.online,
        memory(most),
        memory(recorded.online)
    )
}

/// A process that has more threads than it had CPUs, and used them all.
fn at_the_limit(summary: &SpaceSummary, limit: u32, machine: u32) -> String {
    let (shards, it) = match limit {
        1 => ("one shard".to_owned(), "the only CPU that it had".to_owned()),
        _ => (format!("{limit} shards"), format!("all {limit} CPUs that it had at once")),
    };
    let mut said = format!("it ran on {it}, and needed {shards} there.");
    if machine > limit {
        let threads = summary.most_threads;
        said += &format!(
            " With more CPUs it may run more of its {threads} threads at once: a recording there says how many."
        );
    }
    said
}

/// Bytes, in KiB where that is a whole number of them.
fn amount(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{} KiB", bytes / 1024),
    }
}

/// A number of IDs.
fn ids(number: u32) -> String {
    if number == 1 { "1 ID".to_owned() } else { format!("{number} IDs") }
}

/// A process that may only look as if it had so few threads.
fn alone() -> String {
    "nothing was recorded that says whether other threads belong to it: with task:task_newtask, or as text of ftrace with the \
     option record-tgid, it would say so."
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
    (!sparse.is_empty()).then(|| {
        format!(
            "there would be over twice as many shards as it needed under: {}.",
            sparse.join(", ")
        )
    })
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
            "its threads would often find memory that another core used last under: {}.",
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
            "its memory would be cheapest after acquisitions under {}, with {}; {} would make it {:.1} times as dear.",
            best.0,
            ids(best.1.tally.ids_used),
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
