//! The subcommand `percid trace convert`, which writes a trace in another format.

use std::fmt;
use std::fs;
use std::path::Path;

use percid_command::arguments::PolicyChoice;
use percid_command::exit::{Exit, Failure};
use percid_command::interrupt::Interrupt;
use percid_command::output;
use percid_command::presets;
use percid_command::this_machine::Numbering;
use percid_command::trace::ConvertArguments;
use percid_command::watch::watched;
use percid_sim::policies::PolicySpec;
use percid_trace::perfetto::{IdSpan, IdTracks, Steal};
use percid_trace::replay::{Settings, Turn};
use percid_trace::{Trace, gaps, parquet, perfetto};
use serde::Serialize;

use crate::file;
use crate::replay::replay_all;
use crate::window;

pub(crate) fn run(arguments: &ConvertArguments, json: bool) -> Result<Exit, Failure> {
    let target = Target::from_path(&arguments.to)?;
    if target == Target::Parquet {
        file::check_parquet()?;
    }
    file::check_writable(&arguments.to)?;
    let policy = policy(arguments, target)?;
    let interrupt = Interrupt::listen()?;
    let mut trace = window::load(&arguments.file, &arguments.time, &interrupt)?;
    let tracks = match policy {
        Some(policy) => {
            gaps::close(&mut trace);
            vec![id_tracks(&trace, arguments, policy, &interrupt)?]
        }
        None => Vec::new(),
    };
    if interrupt.pressed() {
        return Ok(Exit::Interrupted);
    }
    let label = format!("writing {}", arguments.to.display());
    watched(&label, None, &interrupt, |_| {
        file::replace(&arguments.to, |to| match target {
            Target::Parquet => parquet::write(&trace, to),
            Target::Perfetto => perfetto::write(&trace, &tracks, to),
        })
    })?;
    let written = Written::new(&trace, &tracks, target, &arguments.to);
    if json {
        output::print_json(&written)?
    } else {
        output::print_text(&written)?
    }
    Ok(Exit::Complete)
}

/// Returns the policy whose IDs are requested, if any is.
fn policy(
    arguments: &ConvertArguments,
    target: Target,
) -> Result<Option<&'static PolicySpec>, Failure> {
    let Some(choice) = arguments.policy else { return Ok(None) };
    if target != Target::Perfetto {
        let expected = "--policy: expected with .pftrace or .perfetto-trace only";
        return Err(Failure::Usage(expected.to_owned()));
    }
    match choice {
        PolicyChoice::One(entry) => Ok(Some(entry)),
        PolicyChoice::All => Err(Failure::Usage("--policy: expected one policy".to_owned())),
    }
}

/// Returns the turns of all IDs, on the clock of the trace.
fn id_tracks(
    trace: &Trace,
    arguments: &ConvertArguments,
    policy: &'static PolicySpec,
    interrupt: &Interrupt,
) -> Result<IdTracks, Failure> {
    let machine = presets::machine(&arguments.machine, Numbering::Kernel)?;
    let settings = Settings { turns_kept: usize::MAX, spaces_kept: 0, ..Settings::default() };
    let replays = replay_all(trace, &machine, &[policy], &settings, interrupt)?;
    let Some(replay) = replays.first() else { return Ok(IdTracks::default()) };
    let origin = trace.events.first().map_or(0, |event| event.time);
    let mut tracks = IdTracks { policy: policy.name.to_owned(), ..IdTracks::default() };
    for turn in &replay.turns {
        let Turn { process, id, cpu, tid: thread, .. } = *turn;
        let (from_ns, to_ns) = (origin + turn.from, origin + turn.to);
        tracks.spans.push(IdSpan { process, id, cpu, thread, from_ns, to_ns });
        if let Some(last) = turn.last.filter(|_| turn.stolen) {
            let (from_cpu, to_cpu) = (last.cpu, cpu);
            tracks.steals.push(Steal { time_ns: from_ns, process, id, from_cpu, to_cpu });
        }
    }
    Ok(tracks)
}

/// The result of a conversion.
#[derive(Debug, Serialize)]
struct Written {
    file: String,
    bytes: u64,
    events: usize,
    lost: u64,
    /// Number of turns of IDs on their tracks.
    turns: usize,
    /// Number of steals of IDs between CPUs.
    steals: usize,
    /// The data that the format cannot store.
    left_out: LeftOut,
}

#[derive(Debug, Default, Serialize)]
struct LeftOut {
    /// Number of events of the kernel's NUMA balancing.
    numa_events: usize,
    /// Number of turns of threads for which counters were recorded.
    counted_turns: usize,
    /// Names of these counters.
    counters: Vec<String>,
}

impl LeftOut {
    fn new(trace: &Trace, target: Target) -> LeftOut {
        match target {
            Target::Parquet => LeftOut::default(),
            Target::Perfetto => LeftOut {
                numa_events: trace.numa.len(),
                counted_turns: trace.counted.len(),
                counters: trace.origin.counters.clone(),
            },
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { numa_events, counted_turns, counters } = self;
        if *numa_events > 0 {
            writeln!(f, "Left out: {numa_events} events of NUMA balancing; .parquet keeps them.")?;
        }
        if *counted_turns > 0 {
            let names = counters.join(", ");
            writeln!(
                f,
                "Left out: what was counted in {counted_turns} turns ({names}); .parquet keeps it."
            )?;
        }
        Ok(())
    }
}

impl Written {
    fn new(trace: &Trace, tracks: &[IdTracks], target: Target, path: &Path) -> Written {
        Written {
            file: path.display().to_string(),
            bytes: fs::metadata(path).map_or(0, |file| file.len()),
            events: trace.events.len(),
            lost: trace.origin.lost,
            turns: tracks.iter().map(|tracks| tracks.spans.len()).sum(),
            steals: tracks.iter().map(|tracks| tracks.steals.len()).sum(),
            left_out: LeftOut::new(trace, target),
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Written { file, bytes, events, turns, steals, left_out, .. } = self;
        write!(f, "{file}: {events} events in {bytes} bytes")?;
        match turns {
            0 => writeln!(f)?,
            _ => writeln!(f, ", {turns} turns of IDs, {steals} steals")?,
        }
        left_out.fmt(f)
    }
}

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Parquet,
    Perfetto,
}

impl Target {
    fn from_path(path: &Path) -> Result<Target, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => Ok(Target::Parquet),
            Some("pftrace" | "perfetto-trace") => Ok(Target::Perfetto),
            _ => {
                let expected = "expected a name that ends in .parquet, .pftrace or .perfetto-trace";
                Err(Failure::Usage(format!("{}: {expected}", path.display())))
            }
        }
    }
}
