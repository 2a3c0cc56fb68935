//! Analyses of schedules that no kernel makes: none may take long or add up to more than there was.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid_fuzz::machines;
use percid_fuzz::schedules::Schedule;
use percid_sim::run_control::RunControl;
use percid_trace::Trace;
use percid_trace::questions::{self, *};
use percid_trace::window::Window;

#[derive(Arbitrary, Debug)]
struct Asked {
    schedule: Schedule,
    /// From and to, in units of the schedule's pauses.
    window: (Option<u16>, Option<u16>),
    processes: Vec<u8>,
    slices: u16,
    worst: u8,
}

fuzz_target!(|asked: Asked| {
    let trace = asked.schedule.trace();
    let unit = |time: Option<u16>| time.map(|time| u64::from(time) * 4096);
    let all = Window::default();
    let (from, to) = (unit(asked.window.0), unit(asked.window.1));
    let (from, to) = (from.unwrap_or(all.from), to.unwrap_or(all.to));
    // The command refuses a window that ends before it begins.
    let window = Window { from: from.min(to), to: from.max(to) };
    let processes: Vec<u32> = asked.processes.iter().map(|nr| 1000 + u32::from(nr % 16)).collect();
    let progress = RunControl::default();

    let settings =
        LatencySettings { window, processes: processes.clone(), worst: usize::from(asked.worst) };
    let found = latency(&trace, &settings, &progress);
    assert!(found.is_whole && found.worst.len() <= settings.worst);
    assert!(found.worst.is_sorted_by(|one, next| one.ns >= next.ns), "the longest first");

    let settings = PreemptionsSettings { window, processes: processes.clone() };
    let found = preemptions(&trace, &settings, &progress);
    let told: u64 = found.delays.iter().map(|delay| delay.ns).sum();
    assert_eq!(told + found.unattributed_ns, found.waited_ns, "every moment of a wait has a cause");

    let settings = MigrationsSettings { window, processes: processes.clone() };
    let found = migrations(&trace, machines::small(), &settings, &progress).expect("few CPUs");
    for (_, thread) in &found.threads {
        assert!(thread.moves() <= thread.turns, "{thread:?}");
    }

    let settings = UsageSettings { window, processes, slices: u32::from(asked.slices % 300) + 1 };
    check_usage(&trace, &usage(&trace, &settings, &progress));
    questions::Wakeups::from_trace(&trace);
});

/// Checks that no CPU does more in a slice than its length, nor threads more than their CPU.
fn check_usage(trace: &Trace, found: &Usage) {
    let ends = trace.events.first().zip(trace.events.last());
    let whole = ends.map_or(0, |(first, last)| last.time - first.time);
    assert!(found.from <= found.to && found.to <= whole.max(found.from), "{found:?}");
    for cpu in &found.cpus {
        for slice in &cpu.slices {
            assert!(slice.busy_ns + slice.idle_ns <= found.slice_ns, "{slice:?}");
            assert!(slice.idle_while_waiting_ns <= slice.idle_ns, "{slice:?}");
        }
    }
    for cell in &found.cells {
        let slice = &found.cpus[cell.cpu as usize].slices[cell.slice as usize];
        assert!(cell.ns <= slice.busy_ns, "{cell:?}");
    }
}
