//! `percid trace replay`: policies beside each other on a recorded schedule.

mod figures;
mod page;
mod scan;
mod text;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use percid_command::arguments::chosen;
use percid_command::exit::{Exit, Failure, complain};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::presets;
use percid_command::report::Report;
use percid_command::this_machine::Numbering;
use percid_command::trace::ReplayArguments;
use percid_command::watch::watched;
use percid_sim::machine::Machine;
use percid_sim::policies::PolicySpec;
use percid_sim::run_control::RunControl;
use percid_trace::Trace;
use percid_trace::replay::{self, Replay, Settings, TopologyMismatch};

use crate::file;
use crate::info::About;
use crate::tracks;
use crate::window;
use figures::{Results, Setting};
use scan::ScanFigures;

/// Number of processes in the JSON document, if not more are requested.
const PROCESSES: usize = 10_000;

pub(crate) fn run(arguments: &ReplayArguments, json: bool) -> Result<Exit, Failure> {
    let machine = presets::machine(&arguments.machine, Numbering::Kernel)?;
    let policies = chosen(&arguments.policy);
    let report = Report::to(arguments.html.as_deref())?;
    file::spare(arguments.html.as_deref(), &arguments.file)?;
    let interrupt = Interrupt::listen()?;
    let (trace, quality) =
        window::load_closed(&arguments.file, &arguments.window.time, &interrupt)?;
    let wanted = window::wanted(&trace, &arguments.window)?;
    let subject_processes = wanted.of_subject();
    let settings = Settings {
        processes: wanted.processes,
        area_bytes: arguments.area_bytes,
        spans_drawn: if report.is_wanted() { tracks::spans(policies.len()) } else { 0 },
        spaces_kept: PROCESSES.max(arguments.limit as usize),
        ..Settings::default()
    };
    let replays = replay_all(&trace, &machine, &policies, &settings, &interrupt)?;
    let stopped = replays.iter().any(|replay| !replay.is_whole);
    let (policies, replays) = most_complete(&policies, replays);
    let top = arguments.limit as usize;
    let about = About::new(&trace, &arguments.file, subject_processes);
    let setting = Setting { about, trace: &trace, arguments, machine: &machine, quality };
    let mut results = Results::new(setting, &policies, replays, stopped);
    results.numa_scan = ScanFigures::from_trace(&trace, &settings.processes);
    let printed = if json {
        output::print_json(&results)
    } else {
        output::print_text(&text::Text { results: &results, top })
    };
    if stopped && !json {
        complain(format_args!("interrupted: {}", results.seen()));
    }
    let exit = if stopped { Exit::Interrupted } else { Exit::Complete };
    report.write(printed, || page::page(&results, top), exit)
}

/// The policies that lived through the whole trace. If none did, those that saw most of it.
fn most_complete(
    policies: &[&'static PolicySpec],
    replays: Vec<Replay>,
) -> (Vec<&'static PolicySpec>, Vec<Replay>) {
    let any_whole = replays.iter().any(|replay| replay.is_whole);
    let is_begun = |replay: &Replay| replay.duration_ns > 0;
    let any_begun = replays.iter().any(is_begun);
    let all = policies.iter().copied().zip(replays);
    all.filter(|(_, replay)| replay.is_whole || !any_whole && (is_begun(replay) || !any_begun))
        .unzip()
}

/// Replays under each policy, as many at once as there are CPUs. Says if there was not room for all
/// processes.
pub(crate) fn replay_all(
    trace: &Trace,
    machine: &Machine,
    policies: &[&'static PolicySpec],
    settings: &Settings,
    interrupt: &Interrupt,
) -> Result<Vec<Replay>, Failure> {
    let total = trace.events.len() as u64 * policies.len() as u64;
    let one = |entry: &PolicySpec, progress: &RunControl| {
        replay::replay(trace, machine, entry, settings, progress)
    };
    let replays = watched("replay", Some(total), interrupt, |progress| {
        in_parallel(policies, |entry| one(entry, progress))
    });
    let replays: Vec<Replay> =
        replays.into_iter().collect::<Result<_, TopologyMismatch>>().map_err(misfit)?;
    let refused = replays.iter().map(|replay| replay.spaces_refused).max().unwrap_or(0);
    if refused > 0 {
        complain(format_args!(
            "{refused} processes were not replayed: with more at once a policy would take over {} MiB on this machine",
            settings.policy_bytes >> 20
        ));
    }
    tell_stuck(policies, &replays);
    Ok(replays)
}

/// Reports which policies could not go on with a process.
fn tell_stuck(policies: &[&'static PolicySpec], replays: &[Replay]) {
    for (policy, replay) in policies.iter().zip(replays) {
        if replay.spaces_stuck > 0 {
            complain(format_args!(
                "{} could not go on with some processes ({}), and is left out there: the trace shows what no kernel does",
                policy.name, replay.spaces_stuck
            ));
        }
    }
}

pub(crate) fn misfit(misfit: TopologyMismatch) -> Failure {
    let fitting = Machine::presets().collect::<Vec<_>>().join(", ");
    Failure::Usage(format!("{misfit}; choose one by --machine: {fitting}, or a file"))
}

/// Returns the results, in the order of the inputs.
fn in_parallel<Q: Sync, A: Send>(questions: &[Q], answer: impl Fn(&Q) -> A + Sync) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let answers: Vec<Mutex<Option<A>>> = questions.iter().map(|_| Mutex::new(None)).collect();
    let workers = thread::available_parallelism().map_or(1, |cpus| cpus.get()).min(questions.len());
    let work = || {
        while let Some((question, place)) = {
            let at = next.fetch_add(1, Relaxed);
            questions.get(at).zip(answers.get(at))
        } {
            let answered = answer(question);
            *place.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(answered);
        }
    };
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let taken = answers.into_iter().map(Mutex::into_inner);
    taken.filter_map(|answer| answer.unwrap_or_else(|poisoned| poisoned.into_inner())).collect()
}

#[cfg(test)]
mod tests {
    use percid_sim::policies::ALL;

    use super::*;

    fn kept(seen: [(u64, bool); 3]) -> Vec<u64> {
        let replay =
            |(duration_ns, is_whole)| Replay { duration_ns, is_whole, ..Replay::default() };
        let policies: Vec<&'static PolicySpec> = ALL.iter().take(3).collect();
        let (left, replays) = most_complete(&policies, seen.map(replay).into());
        assert_eq!(left.len(), replays.len());
        replays.iter().map(|replay| replay.duration_ns).collect()
    }

    #[test]
    fn policies_that_did_not_begin_take_nothing_from_those_that_did() {
        assert_eq!(kept([(9, true), (9, true), (9, true)]), [9, 9, 9]);
        assert_eq!(kept([(9, true), (4, false), (0, false)]), [9]);
        assert_eq!(kept([(5, false), (4, false), (0, false)]), [5, 4]);
        assert_eq!(kept([(0, false), (0, false), (0, false)]), [0, 0, 0]);
    }
}
