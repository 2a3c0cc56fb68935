//! Recordings replayed under policies, on a machine like this one.

use percid_sim::conformance::generation;
use percid_sim::machine::Machine;
use percid_sim::policies::{PolicySpec, find};
use percid_sim::run_control::RunControl;
use percid_sim::topology::{Place, Topology};
use percid_trace::replay::{Settings, SpaceReplay, replay};

use crate::cpus;
use crate::recording::Recording;

/// Replays the workload under the table and the kernel's own policy, and looks at what no policy
/// may exceed.
pub(crate) fn check(recording: &Recording) -> Result<String, String> {
    let machine = machine()?;
    let online = cpus::of_class("online")?.len() as u32;
    let table = find("percid-table").ok_or("no percid-table")?;
    let release = recording.recorded.trace.origin.release.as_deref().unwrap_or_default();
    let mut figures = String::new();
    for policy in [Some(table), generation(release)].into_iter().flatten() {
        let space = under(recording, &machine, policy)?;
        let summary = &space.summary;
        // Children that share the memory until they replace their programs are counted for so long.
        let (threads, children) = (1 + recording.notes.threads.len(), recording.notes.children);
        if summary.most_running > online
            || !(threads..=threads + children).contains(&(summary.threads as usize))
        {
            return Err(format!("{summary:?} on {online} CPUs"));
        }
        // The kernel's policies leave IDs behind on CPUs, of which there are more than threads.
        let is_dense = policy.name == table.name;
        let most = if is_dense { online.min(summary.most_threads) } else { online };
        let (used, bound) = (space.tally.ids_used, space.tally.ids_bound);
        if used == 0 || used > most || (is_dense && bound > most) {
            return Err(format!("{}: {used} IDs up to {bound}, expected {most}", policy.name));
        }
        figures += &format!(" {}={used}/{bound}/{}", policy.name, summary.most_running);
    }
    Ok(figures)
}

fn under(
    recording: &Recording,
    machine: &Machine,
    policy: &PolicySpec,
) -> Result<SpaceReplay, String> {
    let processes = vec![recording.notes.process];
    let settings = Settings { processes, ..Settings::default() };
    let trace = &recording.recorded.trace;
    let replay = replay(trace, machine, policy, &settings, &RunControl::default());
    let replay = replay.map_err(|misfit| misfit.to_string())?;
    // The spaces before the last one belong to the copy of this process from which the workload
    // began.
    replay.spaces.into_iter().next_back().ok_or_else(|| format!("{}: nothing", policy.name))
}

/// Returns a machine with the CPUs of this one, including unplugged ones.
fn machine() -> Result<Machine, String> {
    let like = Machine::preset("epyc-9654").ok_or("no such machine")?;
    let possible = cpus::of_class("possible")?;
    let place = |&core: &u32| Place { core, l3: 0, socket: 0, node: 0 };
    let topology = Topology::new(possible.iter().map(place).collect());
    Ok(Machine { name: "this machine".to_owned(), topology, ..like })
}
