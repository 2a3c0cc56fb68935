//! Information of other tools' recordings about themselves, and the conclusions that they permit.

use crate::fixture;

use fixture::bytes;
use percid_trace::quality::{Quality, QualityLevel, Reason};
use percid_trace::read::read_bytes;
use percid_trace::trace::Sampling;
use percid_trace::{Coverage, Trace, gaps};

fn trace(file: &[u8]) -> Trace {
    read_bytes(file).expect("it is read")
}

fn reasons(trace: &Trace) -> Vec<Reason> {
    let found = Quality::from_trace(trace).limitations;
    found.into_iter().map(|limitation| limitation.reason).collect()
}

/// Changes the attributes of all events of a `perf.data` file: their period, and their flags.
fn with_attributes(file: &[u8], period: u64, flags: impl Fn(u64) -> u64) -> Vec<u8> {
    let word =
        |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes")) as usize;
    let (size, first, all) = (word(16), word(24), word(32));
    let mut changed = file.to_vec();
    for at in (first..first + all).step_by(size) {
        changed[at + 16..at + 24].copy_from_slice(&period.to_le_bytes());
        let flags = flags(word(at + 40) as u64);
        changed[at + 40..at + 48].copy_from_slice(&flags.to_le_bytes());
    }
    changed
}

const INHERIT: u64 = 1 << 1;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;

/// `forks.data` is of a command and by `-F 10`.
#[test]
fn what_perf_was_asked_for_is_read() {
    let file = bytes("forks.data");
    let coverage = |file: &[u8]| trace(file).origin.coverage;
    let expected = Coverage {
        sampling: Some(Sampling::Frequency(10)),
        away_only: true,
        filtered: true,
        ..Coverage::default()
    };
    assert_eq!(coverage(&file), expected);
    let every_third = with_attributes(&file, 3, |flags| flags & !FREQUENCY & !ENABLE_ON_EXEC);
    let expected = Coverage { sampling: Some(Sampling::Period(3)), ..Coverage::default() };
    assert_eq!(coverage(&every_third), expected);
    let all = with_attributes(&file, 1, |flags| flags & !FREQUENCY & !ENABLE_ON_EXEC);
    assert_eq!(coverage(&all), Coverage::default());
    let alone = with_attributes(&file, 1, |flags| (flags | ENABLE_ON_EXEC) & !FREQUENCY & !INHERIT);
    let expected =
        Coverage { away_only: true, not_inherited: true, filtered: true, ..Coverage::default() };
    assert_eq!(coverage(&alone), expected);
}

/// `sched.data` is by `-a`; another option stands in its place.
#[test]
fn a_recording_of_a_group_or_with_a_filter_is_one_of_some_threads() {
    let with = |option: &[u8]| {
        let mut file = bytes("sched.data");
        let places: Vec<usize> =
            (0..file.len() - 3).filter(|&at| file[at..at + 3] == *b"-a\0").collect();
        let [at] = places[..] else { panic!("{places:?}") };
        file[at..at + option.len()].copy_from_slice(option);
        trace(&file).origin.coverage.filtered
    };
    assert!(with(b"-G") && with(b"--cgroup") && with(b"--filter") && with(b"-p"));
    assert!(!with(b"-a") && !with(b"--all-cpus"), "the control");
}

#[test]
fn a_sampled_recording_permits_no_advice_and_a_whole_one_does() {
    for (file, level) in [
        ("forks.data", QualityLevel::Insufficient),
        ("numa-scan.txt", QualityLevel::Insufficient),
        ("sched.data", QualityLevel::Limited),
        ("switches-all.data", QualityLevel::Good),
        ("nginx.parquet", QualityLevel::Limited),
        ("trace-cmd.txt", QualityLevel::Good),
    ] {
        let judged = Quality::from_trace(&trace(&bytes(file)));
        assert_eq!(judged.level, level, "{file}: {judged}");
        assert_eq!(judged.permits_advice(), level > QualityLevel::Insufficient);
    }
}

#[test]
fn closing_its_gaps_does_not_make_a_recording_better() {
    for file in ["forks.data", "sched.data", "pipe.data", "wakes.parquet", "tracefs.txt"] {
        let mut trace = trace(&bytes(file));
        let before = Quality::from_trace(&trace);
        gaps::close(&mut trace);
        assert_eq!(Quality::from_trace(&trace), before, "{file}");
    }
}

#[test]
fn a_table_keeps_what_its_recording_lacks() {
    let trace = trace(&bytes("forks.data"));
    let mut file = Vec::new();
    percid_trace::parquet::write(&trace, &mut file).expect("it is written");
    let back = read_bytes(&file).expect("it is read");
    assert_eq!((back.origin.coverage, reasons(&back)), (trace.origin.coverage, reasons(&trace)));
}

/// Lines as `perf script` writes them.
fn script(times: &[u64]) -> String {
    let switch = |(nth, time): (usize, &u64)| {
        let (prev, next) = if nth % 2 == 0 { (70, 71) } else { (71, 70) };
        format!(
            "            test {prev:5} [000]  {:4}.{:06}: sched:sched_switch: prev_comm=test prev_pid={prev} \
             prev_prio=120 prev_state=S ==> next_comm=test next_pid={next} next_prio=120\n",
            time / 1_000_000,
            time % 1_000_000
        )
    };
    times.iter().enumerate().map(switch).collect()
}

#[test]
fn differences_of_times_are_not_taken_for_times() {
    let pauses = [0, 39, 68, 38, 2, 500, 30, 71, 12, 9, 3, 88];
    let mut now = 32_412_000_000;
    let times: Vec<u64> = pauses
        .iter()
        .map(|pause| {
            now += pause;
            now
        })
        .collect();
    assert_eq!(trace(script(&times).as_bytes()).events.len(), 2 + times.len());
    let refused = read_bytes(script(&pauses).as_bytes()).expect_err("differences").to_string();
    assert!(refused.contains("line 4") && refused.contains("--deltatime"), "{refused}");
}

#[test]
fn a_clock_that_steps_back_once_is_read() {
    let mut times: Vec<u64> = (0..100).map(|nth| 5_000_000 + 10 * nth).collect();
    times[50] -= 15;
    assert_eq!(trace(script(&times).as_bytes()).events.len(), 2 + times.len());
}
