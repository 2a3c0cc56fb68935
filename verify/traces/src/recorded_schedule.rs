//! Recordings match the activity of the threads, with tracefs and with perf events, for the whole
//! system.

use percid_trace::record::Backend;

use crate::recording::{self, Handicap};
use crate::verdict::Verdict;
use crate::{cpus, facts, replays};

pub(crate) fn run() -> Verdict {
    let online = cpus::of_class("online")?;
    let mut all = Vec::new();
    for backend in [Backend::Tracefs, Backend::PerfEvents] {
        let named = |error| format!("{backend}: {error}");
        let recording = recording::of_system(backend).map_err(named)?;
        let figures = facts::check(&recording, &online).map_err(named)?;
        facts::control(&recording, &online).map_err(named)?;
        let replays = replays::check(&recording).map_err(named)?;
        let lost = lost(backend).map_err(named)?;
        all.push(format!("{backend}: {figures}{replays} lost_when_slow={lost}"));
    }
    Ok(all.join("; "))
}

/// Runs the negative control of losses: a reader that is slower than the kernel's writes loses
/// events, and they are counted.
fn lost(backend: Backend) -> Result<u64, String> {
    let slow = Handicap { kernel_buffer_kib: 4, reads_late: true };
    match recording::of_command(backend, slow)?.recorded.trace.origin.lost {
        0 => Err("nothing was lost by a reader that is too slow".to_owned()),
        lost => Ok(lost),
    }
}
