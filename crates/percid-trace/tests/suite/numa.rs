//! Events of NUMA balancing: from lines of text, from the kernel's records, and stored.

use crate::fixture;

use fixture::{error, from_text};
use percid_rules::scan::{Policy, SkipReason, Traits};
use percid_trace::collector::Tracepoint;
use percid_trace::formats::Formats;
use percid_trace::numa::{self, Event, MigrateReason, ScanSettings, ThreadMove, What};

const HEAD: &str = "          worker-71      [003] d..2.     5.000001: ";

fn line(text: &str) -> String {
    format!("{HEAD}{text}\n")
}

/// The only event of a line.
fn what(text: &str) -> What {
    let trace = from_text(&line(text));
    assert_eq!(trace.numa.len(), 1, "{text}");
    let Event { time, cpu, .. } = trace.numa[0];
    assert_eq!((time, cpu), (5_000_001_000, 3));
    trace.numa[0].what
}

const PLACE: ThreadMove = ThreadMove { from_cpu: 1, from_node: 0, to_cpu: 6, to_node: 1 };

#[test]
fn lines_of_the_kernel_are_understood() {
    let skip = what(
        "sched_skip_vma_numa: numa_scan_offset=7F0A1C200000 vm_start=7F0A1C000000 \
         vm_end=7F0A1C400000 reason=pid_inactive",
    );
    let (offset, start, end) = (0x7f0a_1c20_0000, 0x7f0a_1c00_0000, 0x7f0a_1c40_0000);
    assert_eq!(skip, What::Skip { offset, start, end, reason: Some(SkipReason::PidInactive) });
    let moved = "sched_move_numa: pid=72 tgid=71 ngid=0 src_cpu=1 src_nid=0 dst_cpu=6 dst_nid=1";
    assert_eq!(what(moved), What::Move(PLACE));
    let two = "src_pid=72 src_tgid=71 src_ngid=0 src_cpu=1 src_nid=0 dst_pid=90 dst_tgid=71 \
               dst_ngid=0 dst_cpu=6 dst_nid=1";
    assert_eq!(what(&format!("sched_swap_numa: {two}")), What::Swap(PLACE, 90));
    assert_eq!(what(&format!("sched_stick_numa: {two}")), What::Stick(PLACE));
    let reason = MigrateReason::NUMA_MISPLACED;
    let start = "mm_migrate_pages_start: mode=MIGRATE_ASYNC reason=numa_misplaced";
    assert_eq!(what(start), What::MigrateStart { reason });
    let pages = "mm_migrate_pages: nr_succeeded=3 nr_failed=1 nr_thp_succeeded=0 nr_thp_failed=0 \
                 nr_thp_split=0 nr_split=0 mode=MIGRATE_ASYNC reason=numa_misplaced";
    assert_eq!(what(pages), What::Migrated { moved: 3, failed: 1, reason });
}

#[test]
fn the_thread_is_the_one_that_is_told_of() {
    let moved = "sched_move_numa: pid=72 tgid=71 ngid=0 src_cpu=1 src_nid=0 dst_cpu=6 dst_nid=1";
    assert_eq!(from_text(&line(moved)).numa[0].thread, 72);
    let start = "mm_migrate_pages_start: mode=MIGRATE_ASYNC reason=compaction";
    assert_eq!(from_text(&line(start)).numa[0].thread, 71);
}

#[test]
fn a_reason_of_a_later_kernel_is_kept_as_unknown() {
    let new = "sched_skip_vma_numa: numa_scan_offset=0 vm_start=1000 vm_end=2000 reason=moonlight";
    assert_eq!(what(new), What::Skip { offset: 0, start: 0x1000, end: 0x2000, reason: None });
    let new = "mm_migrate_pages_start: mode=MIGRATE_ASYNC reason=moonlight";
    assert_eq!(what(new), What::MigrateStart { reason: MigrateReason::OTHER });
}

#[test]
fn lines_that_are_not_as_they_should_be_say_what_was_expected() {
    for (text, expected) in [
        ("sched_skip_vma_numa: vm_start=1000 vm_end=2000 reason=x", "numa_scan_offset=HEX"),
        ("sched_skip_vma_numa: numa_scan_offset=0 vm_start=xyz vm_end=2 reason=x", "vm_start=HEX"),
        ("sched_move_numa: pid=72 src_cpu=1", "tgid=NUMBER"),
        ("sched_swap_numa: pid=72 src_cpu=1", "src_pid=NUMBER"),
        ("mm_migrate_pages: nr_failed=1 mode=x reason=numa_misplaced", "nr_succeeded=NUMBER"),
        ("mm_migrate_pages_start: reason=numa_misplaced", "mode=WORD"),
    ] {
        let error = error(&line(text));
        assert!(error.starts_with("line 1: ") && error.contains(expected), "{error}");
    }
}

/// The description that the kernel gives of the event, with the numbers of its reasons in another
/// order than any kernel's.
const DESCRIPTION: &str = "\
name: sched_skip_vma_numa
ID: 400
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long numa_scan_offset;\toffset:8;\tsize:8;\tsigned:0;
\tfield:unsigned long vm_start;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned long vm_end;\toffset:24;\tsize:8;\tsigned:0;
\tfield:enum numa_vmaskip_reason reason;\toffset:32;\tsize:4;\tsigned:0;

print fmt: \"numa_scan_offset=%lX vm_start=%lX vm_end=%lX reason=%s\", REC->numa_scan_offset, \
REC->vm_start, REC->vm_end, __print_symbolic(REC->reason, { 0, \"seq_completed\" }, { 3, \
\"shared_ro\" }, { 5, \"moonlight\" })
";

fn record(reason: u32) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(400u16.to_le_bytes());
    record.extend([0, 0]);
    record.extend(71u32.to_le_bytes());
    for number in [1u64 << 40, 4096, 8192] {
        record.extend(number.to_le_bytes());
    }
    record.extend(reason.to_le_bytes());
    record
}

#[test]
fn the_kernels_description_says_which_reason_a_number_is() {
    let mut formats = Formats::new(percid_trace::formats::ByteOrder::Little, true);
    formats.add("sched", DESCRIPTION).expect("a description");
    for (number, expected) in [
        (0, Some(SkipReason::SeqCompleted)),
        (3, Some(SkipReason::SharedRo)),
        (1, None),
        (5, None),
        (4_000_000_000, None),
    ] {
        let skip =
            numa::Tracepoint::SkipVma { offset: 1 << 40, start: 4096, end: 8192, reason: expected };
        let record = record(number);
        assert_eq!(formats.decode(&record), Ok(Some((71, Tracepoint::Numa(skip)))), "{number}");
        assert!(formats.decode(&record[..record.len() - 1]).is_err(), "cut off");
    }
}

/// One event of every kind, and of those that say nothing in a column.
fn all_kinds() -> Vec<Event> {
    let traits = Traits { policy: Some(Policy::Fixed), file: true, ..Traits::ANONYMOUS };
    let reason = MigrateReason::NUMA_MISPLACED;
    let (start, end) = (1 << 46, (1 << 46) + 4096);
    let what = [
        What::Process { process: 70, threads: 3 },
        What::Region { process: 70, start, end, traits },
        What::Region { process: 70, start: end, end: end + 1, traits: Traits::ANONYMOUS },
        What::Pass { ticks: u64::MAX, took: None },
        What::Pass { ticks: 0, took: Some(1 << 40) },
        What::Skip { offset: 0, start, end, reason: Some(SkipReason::IgnorePidInactive) },
        What::Skip { offset: end, start, end, reason: None },
        What::Arm { start, end, changed: Some(7) },
        What::Arm { start, end, changed: None },
        What::Hint { address: start + 5, took: Some(0), node: Some(3) },
        What::Hint { address: start, took: None, node: None },
        What::Move(PLACE),
        What::Stick(PLACE),
        What::Swap(PLACE, 90),
        What::MigrateStart { reason: MigrateReason::OTHER },
        What::Migrated { moved: 5, failed: 1 << 40, reason },
    ];
    let event = |(time, what)| Event { time, cpu: time as u32 % 3, thread: 71, what };
    (100..).zip(what).map(event).collect()
}

#[test]
fn every_kind_has_a_name_of_its_own() {
    let mut names: Vec<&str> = all_kinds().iter().map(|event| event.what.name()).collect();
    names.sort_unstable();
    names.dedup();
    let mut all = numa::KINDS;
    all.sort_unstable();
    assert_eq!(names, all);
}

#[cfg(all(feature = "files", target_endian = "little"))]
mod stored {
    use super::*;
    use percid_trace::event::{self, State};
    use percid_trace::{Origin, Trace, parquet};

    fn trace(numa: Vec<Event>) -> Trace {
        let switch = |(time, next)| event::Event {
            time,
            cpu: 1,
            what: event::What::Switch { prev: 0, state: State::RUNNABLE, next },
        };
        let events = [(99, 71), (105, 72), (500, 71)].into_iter().map(switch).collect();
        let scan = Some(ScanSettings { delay_ms: 1000, size_mb: 256 });
        let origin = Origin { scan, nodes: vec![0, 0, 1, 1], ..Origin::default() };
        Trace { origin, events, numa, ..Trace::default() }
    }

    fn stored(trace: &Trace) -> Vec<u8> {
        let mut file = Vec::new();
        parquet::write(trace, &mut file).expect("memory takes everything");
        file
    }

    fn has(file: &[u8], word: &str) -> bool {
        file.windows(word.len()).any(|window| window == word.as_bytes())
    }

    #[test]
    fn every_kind_comes_back() {
        let trace = trace(all_kinds());
        let back = parquet::read_bytes(stored(&trace)).expect("our own file");
        assert_eq!(back.numa, trace.numa);
        assert_eq!((back.events.len(), &back.origin), (3, &trace.origin));
        let mut other = trace.clone();
        other.numa[4].what = What::Hint { address: 0, took: None, node: None };
        assert!(trace.same_events(&back) && !trace.same_events(&other));
    }

    /// Programs that know the table of schedules only still read files that have nothing else.
    #[test]
    fn a_schedule_alone_is_stored_as_before() {
        let (with, without) = (stored(&trace(all_kinds())), stored(&trace(Vec::new())));
        assert!(has(&with, "from_node") && has(&with, "traits"));
        assert!(!has(&without, "from_node") && !has(&without, "traits"));
        assert_eq!(parquet::read_bytes(without).expect("our own file").numa, []);
    }
}
