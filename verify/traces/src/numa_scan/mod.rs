//! The recorded walk of the kernel's NUMA scan, replayed under the kernel's own rules, is the
//! kernel's walk; under other rules it is another one.

#[cfg(feature = "files")]
mod bring_out;
mod regions;
pub(crate) mod workload;

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use percid_trace::Trace;
use percid_trace::record::{Backend, Extra, Options, Recorded, Target, record};
use percid_trace::scan_walk::{self, RULE_SETS, Source, Walk, of_release};

use crate::verdict::Verdict;

/// Longer than the workload takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(120);

const KERNEL_BUFFER_KIB: u32 = 2048;

/// Short times, so that many passes and windows of activity come in a few seconds; the smallest
/// size, so that regions of a few MiB take several passes.
const SETTINGS: [(&str, &str); 4] = [
    ("scan_delay_ms", "100"),
    ("scan_size_mb", "1"),
    ("scan_period_min_ms", "1000"),
    ("scan_period_max_ms", "1000"),
];

/// Minimum share of the lines that must be the same under the kernel's own rules. Emulated CPUs
/// stop sometimes, and regions are checked only every tenth of a second.
const AGREES: f64 = 0.95;

pub(crate) fn run() -> Verdict {
    for (name, value) in SETTINGS {
        // A kernel that is built without the scan has none; that is said below.
        let _ = fs::write(format!("/sys/kernel/debug/sched/numa_balancing/{name}"), value);
    }
    #[cfg(feature = "files")]
    bring_out::listen().map_err(|error| format!("tracefs: {error}"))?;
    let recorded = recorded()?;
    if let Some(why) = &recorded.no_scan {
        return Ok(format!("nothing to compare: {why}"));
    }
    let trace = &recorded.trace;
    let walks = scan_walk::walks(trace);
    let walk = walks.iter().max_by_key(|walk| walk.steps.len()).ok_or("nothing was scanned")?;
    #[cfg(feature = "files")]
    bring_out::print(trace).map_err(|error| format!("bringing it out: {error}"))?;
    let by_probes = judge(trace, walk)?;
    let tells_skips =
        trace.numa.iter().any(|event| matches!(event.what, percid_trace::numa::What::Skip { .. }));
    if !tells_skips {
        return Ok(format!("without={:?} {by_probes}", recorded.without));
    }
    let mut plain = trace.clone();
    plain.numa.retain(|event| !is_of_probe(&event.what));
    let walks = scan_walk::walks(&plain);
    let walk = walks.iter().max_by_key(|walk| walk.steps.len()).ok_or("nothing was left out")?;
    let by_tracepoints = figures(trace, walk)?;
    Ok(format!("without={:?} {by_probes}; {by_tracepoints}", recorded.without))
}

fn recorded() -> Result<Recorded, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let target = Target::Command(vec![this.into(), workload::NAME.into()]);
    let extra = Extra { ids: false, ticks: false, wakeups: false, affinity: false, numa: true };
    let options = Options {
        backend: Some(Backend::Tracefs),
        kernel_buffer_kib: KERNEL_BUFFER_KIB,
        limit: Some(LIMIT),
        extra,
        ..Options::new(target)
    };
    let recorded = record(&options, &AtomicBool::new(false), |_| {});
    let mut recorded = recorded.map_err(|refusal| refusal.to_string())?;
    if let Some(why) = recorded.broken.take() {
        return Err(why);
    }
    match recorded.status {
        Some(status) if status.success() => Ok(recorded),
        status => Err(format!("the workload ended with {status:?}")),
    }
}

fn is_of_probe(what: &percid_trace::numa::What) -> bool {
    use percid_trace::numa::What::{Arm, Hint, Pass};
    matches!(what, Pass { .. } | Arm { .. } | Hint { .. })
}

/// Checks that the kernel's own rules agree, and that others do not.
fn judge(trace: &Trace, walk: &Walk) -> Verdict {
    if walk.source != Source::Probes {
        return Err("the probes told nothing".to_owned());
    }
    let release = trace.origin.release.as_deref().unwrap_or_default();
    let own = of_release(release).ok_or_else(|| format!("{release}: no rules are known"))?;
    let figures = format!("{}, {:?}", figures(trace, walk)?, walk.costs);
    // A pass is timed unless the recording ends in it.
    if walk.costs.passes.count == 0 || walk.costs.hint_faults.count == 0 {
        return Err(format!("{figures}: passes and hint faults should have times"));
    }
    if walk.costs.kernel().accesses == 0 {
        return Err(format!("{figures}: accesses should have nodes"));
    }
    // Before the published series all is another walk, and so it is before regions were tracked.
    let control = if own.name == "base" { "linux-6.12" } else { "base" };
    for set in &RULE_SETS {
        let agreement = scan_walk::replay(walk, &set.rules).agreement;
        let agrees = agreement.share() >= AGREES;
        if set == own && !agrees {
            return Err(format!("{figures}: {} should agree; {:x?}", set.name, agreement.first));
        }
        if set.name == control && agrees {
            return Err(format!("{figures}: {} should not agree", set.name));
        }
    }
    Ok(figures)
}

fn figures(trace: &Trace, walk: &Walk) -> Verdict {
    let kernel = scan_walk::kernel(walk);
    let mut figures = format!(
        "{}: {} events, passes={} armed={} {:?} {:?}",
        walk.source.name(),
        trace.numa.len(),
        kernel.passes,
        kernel.armed,
        kernel.noted,
        walk.inferred
    );
    for set in &RULE_SETS {
        let replayed = scan_walk::replay(walk, &set.rules);
        let agreement = replayed.agreement;
        figures.push_str(&format!(
            "; {} passes={} lines={} kernel_only={} rules_only={}",
            set.name,
            agreement.passes,
            agreement.lines,
            agreement.kernel_only,
            agreement.rules_only
        ));
    }
    Ok(figures)
}
