//! CPUs keep their numbers if one of them is missing.

use std::collections::BTreeSet;

use percid_trace::event::Cpu;
use percid_trace::record::Backend;

use crate::recording::{self, Handicap, Recording};
use crate::verdict::Verdict;
use crate::{cpus, facts, replays};

pub(crate) fn run() -> Verdict {
    let all = cpus::of_class("online")?;
    let missing = all[all.len() / 2];
    let mut figures = Vec::new();
    for backend in [Backend::Tracefs, Backend::PerfEvents] {
        let named = |error| format!("{backend}: {error}");
        // The control: a CPU that is not missing is used.
        let whole = recording::of_command(backend, Handicap::NONE).map_err(named)?;
        check(&whole, &all).map_err(named)?;
        let unplugged = cpus::Unplugged::new(missing)?;
        let rest: Vec<Cpu> = all.iter().copied().filter(|&cpu| cpu != missing).collect();
        for recording in
            [recording::of_command(backend, Handicap::NONE), recording::of_system(backend)]
        {
            let recording = recording.map_err(named)?;
            let replays = check(&recording, &rest).map_err(named)?;
            figures.push(format!("{backend}: missing={missing}{replays}"));
        }
        drop(unplugged);
    }
    Ok(figures.join("; "))
}

/// Looks whether the CPUs on which something happened are exactly those.
fn check(recording: &Recording, online: &[Cpu]) -> Result<String, String> {
    facts::check(recording, online)?;
    let trace = &recording.recorded.trace;
    let found: BTreeSet<Cpu> = trace.events.iter().map(|event| event.cpu).collect();
    let (online, noted) = (online.iter().copied().collect(), recording.notes.cpus());
    if found != online || noted != online {
        return Err(format!("events on CPUs {found:?}, threads on {noted:?} of {online:?}"));
    }
    if trace.origin.online_cpus != Some(online.len() as u32) {
        return Err(format!("{:?} of {} CPUs", trace.origin, online.len()));
    }
    replays::check(recording)
}
