//! Records the kernel's NUMA scan of this process, for a comparison with the simulated scan.
//!
//! Two threads, of which only one runs at a time, touch regions of every kind while regions are
//! mapped and unmapped and a policy changes. The kernel reports every pass (`task_numa_work`),
//! every skipped region (`sched_skip_vma_numa`), every armed chunk (`change_prot_numa`) and every
//! hint fault. It needs root, tracefs with probes, debugfs, and memory on several nodes.
//!
//! The recording goes to standard output, a word and its values a line, numbers in hexadecimal
//! except for those of settings:
//!
//! ```text
//! settings delay_ms 100 size_mb 1 tick_ms 4 threads 2
//! region MAP START END FLAGS [file] [fixed|balancing]     a region of snapshot MAP, flags as in smaps
//! map MAP                                                 from here on the regions are those of MAP
//! policy THREAD fixed|default                             a thread's own policy changes
//! pass THREAD TICKS                                       the scan's work begins, at this time in ticks
//! skip START REASON                                       a line of the kernel's trace
//! arm START END CHANGED                                   a chunk is armed, this many pages change
//! hint THREAD ADDRESS                                     a thread traps a hint fault
//! ```

mod memory;
mod recording;
mod script;
mod tracing;

use crate::options::Options;
use crate::verdict::Verdict;

pub(crate) fn run(options: &Options) -> Verdict {
    let steps = (options.seconds / script::STEP.as_secs_f64()) as usize;
    let tracing = tracing::Tracing::begin().map_err(|(what, error)| format!("{what}: {error}"))?;
    let maps = script::play(steps, &tracing)?;
    let trace = tracing.end().map_err(|error| format!("reading the trace: {error}"))?;
    let recording = recording::Recording::read(&trace)?;
    print!("{}", tracing::settings(script::THREADS));
    for (number, map) in maps.iter().enumerate() {
        print!("{}", map.lines(number));
    }
    print!("{}", recording.lines);
    Ok(recording.figures())
}
