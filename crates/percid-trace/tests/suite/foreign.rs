//! Files of other kernels and tools: old kernels, kernels of vendors, containers, newer
//! compression.

use crate::fixture;

use std::collections::BTreeMap;
use std::io::Read;

use fixture::{assert_same, bytes, error, events, from_text, names, trace, without_names};
use percid_trace::event::{Stage, State, Tid, What};
use percid_trace::quality::{Quality, QualityLevel, Reason};
use percid_trace::{Trace, read};

fn reported(name: &str) -> Trace {
    trace(&format!("reported/{name}"))
}

/// The states of the switches away from threads that are not idle.
fn states(trace: &Trace) -> Vec<State> {
    let state = |what| match what {
        What::Switch { prev, state, .. } if prev != 0 => Some(state),
        _ => None,
    };
    trace.events.iter().filter_map(|event| state(event.what)).collect()
}

fn count(trace: &Trace, is_one: impl Fn(What) -> bool) -> usize {
    trace.events.iter().filter(|event| is_one(event.what)).count()
}

fn switches(trace: &Trace) -> usize {
    count(trace, |what| matches!(what, What::Switch { .. }))
}

fn reasons(trace: &Trace) -> Vec<Reason> {
    Quality::from_trace(trace).limitations.iter().map(|found| found.reason).collect()
}

/// A file of trace-cmd in which the description of `sched_wakeup_new` is another one of the same
/// length.
fn with_description(name: &str, id: u32, fields: &[&str]) -> Vec<u8> {
    let mut file = bytes("instances.6.dat");
    let find = |text: &[u8]| file.windows(text.len()).position(|window| window == text);
    let begin = find(b"name: sched_wakeup_new\n").expect("a description");
    let size = u64::from_le_bytes(*file[begin - 8..].first_chunk().expect("its size")) as usize;
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    for (at, field) in
        ["common_type", "common_pid"].iter().zip(["unsigned short", "int"]).enumerate()
    {
        let (name, kind) = field;
        text += &format!(
            "\tfield:{kind} {name};\toffset:{};\tsize:{};\tsigned:0;\n",
            4 * at,
            4 * at.max(1) / (2 - at.min(1))
        );
    }
    for (at, field) in fields.iter().enumerate() {
        text += &format!("\tfield:int {field};\toffset:{};\tsize:4;\tsigned:1;\n", 8 + 4 * at);
    }
    assert!(text.len() <= size, "{} of {size}", text.len());
    text += &" ".repeat(size - text.len());
    file[begin..begin + size].copy_from_slice(text.as_bytes());
    file
}

const OLD_STICK: [&str; 7] = ["pid", "tgid", "ngid", "src_cpu", "src_nid", "dst_cpu", "dst_nid"];

/// trace-cmd describes all events of a system, whatever was enabled.
#[test]
fn an_event_of_before_linux_5_7_refuses_no_file() {
    let whole = trace("instances.6.dat");
    let is_new = |what| matches!(what, What::Wakeup { stage: Stage::New, .. });
    let wakeups_new = count(&whole, is_new);
    assert!(wakeups_new > 0);
    // Its records are those of sched_wakeup_new, whose bytes are numbers too.
    let file = with_description("sched_stick_numa", 373, &OLD_STICK);
    let old = read::read_bytes(&file).expect("a file");
    assert_eq!((count(&old, is_new), old.numa.len()), (0, wakeups_new));
    assert_eq!(switches(&old), switches(&whole));
    assert_eq!((old.origin.coverage.unread, &old.origin.remarks[..]), (0, &[][..]));
    // The same as text.
    let text = reported("old_stick_numa.txt");
    assert_eq!((switches(&text), text.numa.len(), text.origin.coverage.unread), (2, 1, 0));
}

/// Described in a way that is not known, an event is left out, and what it was is told.
#[test]
fn an_event_that_is_described_otherwise_is_left_out_and_told() {
    let left_out = |name: &str, id| {
        let file = with_description(name, id, &OLD_STICK);
        read::read_bytes(&file).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let whole = trace("instances.6.dat");
    let numa = left_out("sched_swap_numa", 373);
    assert_eq!(switches(&numa), switches(&whole));
    let [remark] = &numa.origin.remarks[..] else { panic!("{:?}", numa.origin.remarks) };
    assert!(remark.contains("records of sched_swap_numa were left out"), "{remark}");
    assert!(remark.contains("has no field src_pid") && !remark.starts_with('0'), "{remark}");
    assert_eq!(numa.origin.coverage.unread, 0, "the schedule does not need it");
    assert_eq!(left_out("sched_swap_numa", 9999).origin.remarks, [""; 0], "there are none");
    let needed = left_out("sched_wakeup_new", 373);
    assert!(needed.origin.coverage.unread > 0, "{:?}", needed.origin);
    assert!(needed.origin.remarks[0].contains("has no field comm"), "{:?}", needed.origin);
    let judged = Quality::from_trace(&needed);
    assert!(
        judged.level < QualityLevel::Good
            && judged.to_string().contains("sched_wakeup_new were left out")
    );
}

/// The kernel prints its states by a table, which stands in the description.
#[test]
fn states_are_read_by_the_files_own_table() {
    let table = "\"|\", { 0x00000001, \"S\" }";
    let with = |letter: &str| {
        let mut file = bytes("instances.6.dat");
        let at = file.windows(table.len()).position(|text| text == table.as_bytes());
        let at = at.expect("a table") + table.len() - 4;
        file[at] = letter.as_bytes()[0];
        states(&read::read_bytes(&file).expect("a file"))
    };
    let (today, other) = (with("S"), with("x"));
    let of = |states: &[State], state| states.iter().filter(|&&it| it == state).count();
    let sleeping = of(&today, State::SLEEPING);
    assert!(sleeping > 5 && of(&other, State::SLEEPING) == 0);
    assert_eq!(of(&other, State::DEAD), sleeping + of(&today, State::DEAD));
}

#[test]
fn numbers_of_states_are_read_or_said_to_be_unknown() {
    let today = reported("old_dead_16.txt");
    assert_eq!(states(&today), [State::DEAD; 4]);
    assert!(!today.origin.coverage.no_states && !reasons(&today).contains(&Reason::NoStates));
    let old = reported("old_dead_64.txt");
    assert!(states(&old).iter().all(|state| *state == State::SLEEPING), "nobody is parked");
    assert!(old.origin.coverage.no_states && reasons(&old).contains(&Reason::NoStates));
    assert!(old.origin.remarks[0].contains("the kernel's release"), "{:?}", old.origin.remarks);
    // A thread that was preempted on a kernel of 4.9 shows which table it is.
    let text = String::from_utf8(bytes("reported/old_dead_64.txt")).expect("text");
    let preempted = "              sh-605   (  600) [002] d..3 100.041000: sched_switch: prev_comm=sh prev_pid=605 \
                     prev_prio=120 prev_state=4096 next_comm=swapper/2 next_pid=0 next_prio=120\n";
    let known = from_text(&format!("{text}{preempted}"));
    assert_eq!(states(&known), [[State::DEAD; 4].as_slice(), &[State::PREEMPTED]].concat());
    assert!(!known.origin.coverage.no_states);
}

/// Letters mean the same in all kernels.
#[test]
fn letters_of_old_kernels_are_read() {
    for (file, state) in [
        ("x", "X"),
        ("X", "X"),
        ("xK", "X"),
        ("Z", "Z"),
        ("K", "D"),
        ("W", "D"),
        ("DK", "D"),
        ("N", "I"),
        ("P", "P"),
        ("t", "t"),
        ("Rplus", "R+"),
    ] {
        let trace = reported(&format!("old_state_{file}.txt"));
        let [found] = states(&trace)[..] else { panic!("{file}: {:?}", events(&trace)) };
        assert_eq!(found.to_string(), state, "{file}");
        assert_eq!((trace.origin.coverage.unread, trace.origin.coverage.no_states), (0, false));
        assert_eq!(found.is_dead(), "xXZ".contains(&file[..1]), "{file}");
    }
    let unknown = String::from_utf8(bytes("reported/old_state_x.txt")).expect("text");
    let unknown = error(&unknown.replace("prev_state=x", "prev_state=q"));
    assert!(unknown.contains("line 2: sched_switch should say"), "{unknown}");
}

#[test]
fn names_may_be_longer_and_values_may_follow() {
    for (file, switches_of, wakeups) in
        [("long_names.txt", 2, 1), ("long_names_wake.txt", 2, 1), ("wake_state.txt", 2, 1)]
    {
        let trace = reported(file);
        assert_eq!(switches(&trace), switches_of, "{file}: {:?}", events(&trace));
        assert_eq!(count(&trace, |what| matches!(what, What::Wakeup { .. })), wakeups, "{file}");
        assert_eq!((trace.origin.coverage.unread, trace.origin.remarks.len()), (0, 0), "{file}");
    }
    let trace = reported("long_names.txt");
    let member = What::Member { thread: 679, process: 611 };
    assert!(trace.events.iter().any(|event| event.what == member), "{:?}", events(&trace));
    let long = "        a-71    [003] d..2.  5.000001: sched_switch: prev_comm=a-very-long-name-of-a-thread prev_pid=71 \
                prev_prio=120 prev_state=S ==> next_comm=another-very-long-name next_pid=72 next_prio=98 more=1\n";
    assert_eq!(names(&from_text(long))[&72], ["another-very-lo"]);
    assert!(error(&long.replace("more=1", "more")).contains("sched_switch should say"));
}

/// Each reason once, for all events that a trace has a use for.
#[test]
fn what_is_not_read_is_counted_and_told_once() {
    let good = String::from_utf8(bytes("reported/wake_state.txt")).expect("text");
    let good: String =
        (100..140).map(|second| good.replace(" 100.", &format!(" {second}."))).collect();
    for event in
        ["sched_wakeup", "sched_waking", "sched_migrate_task", "sched_process_exit", "task_newtask"]
    {
        let odd = format!("a strange beginning: {event}: comm=a pid=1 prio=120 target_cpu=001\n")
            .repeat(3);
        let trace = from_text(&format!("{good}{odd}"));
        assert_eq!(trace.origin.coverage.unread, 3, "{event}");
        let [remark] = &trace.origin.remarks[..] else { panic!("{:?}", trace.origin.remarks) };
        let expected =
            format!("3 lines were not read, the first is line 121: a {event} should begin with");
        assert!(remark.starts_with(&expected), "{remark}");
    }
    for no_event in ["# sched_wakeup: x\n", "my_sched_wakeup: x\n", "sched_wakeups: x\n"] {
        let trace = from_text(&format!("{good}{no_event}"));
        assert_eq!(trace.origin.coverage.unread, 0, "{no_event}");
    }
}

#[test]
fn packets_that_zstd_compressed_are_read() {
    let (zlib, zstd) = (reported("zlib50.pftrace"), reported("zstd133.pftrace"));
    assert_eq!(switches(&zlib), 2);
    assert_same(&zstd, &zlib);
    assert_eq!(zstd.origin, zlib.origin);
    let mut damaged = bytes("reported/zstd133.pftrace");
    damaged[30] ^= 0xff;
    let refused = read::read_bytes(&damaged).map(|trace| events(&trace));
    assert!(refused.is_err(), "{refused:?}");
}

/// Another field with the same content, and a packet with nothing of the scheduler.
#[test]
fn a_trace_that_looks_empty_says_why() {
    for (file, tag) in [("zlib50.pftrace", &[0x92u8, 3][..]), ("zstd133.pftrace", &[0xaa, 8])] {
        let mut bytes = bytes(&format!("reported/{file}"));
        let at = bytes.windows(2).position(|window| window == tag).expect("the field");
        // Field 200.
        bytes[at..at + 2].copy_from_slice(&[0xc2, 0x0c]);
        let trace = read::read_bytes(&bytes).expect("a trace");
        let [unknown, empty] = &trace.origin.remarks[..] else { panic!("{:?}", trace.origin) };
        assert!(
            unknown.starts_with("1 packets were not read, because they carry others in field 200")
        );
        assert!(empty.starts_with("none of its 1 packets holds an event"), "{empty}");
    }
    assert_eq!(reported("zlib50.pftrace").origin.remarks, [""; 0], "the control");
}

/// Numbers of the kernel's states in a trace of Perfetto: those of its release.
#[test]
fn states_of_perfetto_are_those_of_its_kernel() {
    // Behind the beginning of a packet and of its field.
    let mut packets = Vec::new();
    let compressed = &bytes("reported/zlib50.pftrace")[5..];
    flate2::read::ZlibDecoder::new(compressed).read_to_end(&mut packets).expect("packets");
    let dead = packets.windows(3).position(|bytes| bytes == [0x20, 0x10, 0x2a]).expect("a state");
    packets[dead + 1] = 64;
    // The packets are of percid's own export, which has the same states for all kernels.
    let ours = [0x50, 0xe4, 0xc6, 0xc9, 0x83, 0x07];
    let places = packets.windows(ours.len()).enumerate().filter(|(_, bytes)| *bytes == ours);
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    let as_ours = packets.clone();
    places.into_iter().for_each(|at| packets[at + 1] ^= 1);
    let of_release = |release: &str, packets: &[u8]| {
        let name = [&[0x1a, release.len() as u8], release.as_bytes()].concat();
        let info = [&[0x0a, name.len() as u8], &name[..]].concat();
        let packet = [&[0xea, 0x02, info.len() as u8], &info[..]].concat();
        let file = [&[0x0a, packet.len() as u8], &packet[..], packets].concat();
        let trace = read::read_bytes(&file).expect("a trace");
        (states(&trace)[0].to_string(), trace.origin.coverage.no_states)
    };
    assert_eq!(of_release("4.9.186-perf", &packets), ("X".into(), false));
    assert_eq!(of_release("5.10.43", &packets), ("P".into(), false));
    assert_eq!(of_release("unknown", &packets), ("S".into(), true));
    assert_eq!(of_release("4.9.186", &as_ours), ("P".into(), false));
}

/// Records of `perf.data`: where each begins, its type and its length.
fn records(file: &[u8]) -> Vec<(usize, u32, usize)> {
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().expect("a number"));
    let is_pipe = word(8) == 16;
    let (mut at, end) = match is_pipe {
        true => (16, file.len()),
        false => (word(40) as usize, (word(40) + word(48)) as usize),
    };
    let mut records = Vec::new();
    while at < end {
        let kind = word(at) as u32;
        let mut length = (word(at) >> 48) as usize;
        // Tracing data follows its record.
        let more = if kind == 66 { word(at + 8) as u32 as usize } else { 0 };
        records.push((at, kind, length));
        length += more;
        at += length;
    }
    records
}

/// The numbers that perf itself writes are others than those of the kernel's tracepoints, as in a
/// container.
fn in_a_namespace(name: &str) -> Vec<u8> {
    let mut file = bytes(name);
    let word = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().expect("a number"));
    let sample_type = word(word(24) as usize + 24);
    let identifier = 8 * (sample_type >> 16 & 1) as usize;
    let pointer = 8 * (sample_type & 1) as usize;
    for (at, kind, _) in records(&file) {
        let numbers: &[usize] = match kind {
            9 => &[identifier + pointer, identifier + pointer + 4],
            3 => &[0, 4],
            4 | 7 => &[0, 4, 8, 12],
            _ => &[],
        };
        for number in numbers {
            let number = &mut file[at + 8 + number..][..4];
            let before = u32::from_le_bytes(number.try_into().expect("four bytes"));
            if before != 0 && before != u32::MAX {
                number.copy_from_slice(&(before + 1_000_000).to_le_bytes());
            }
        }
    }
    file
}

#[test]
fn a_recording_from_a_pid_namespace_has_one_numbering() {
    for name in ["sched.data", "forks.data"] {
        let (outside, inside) =
            (trace(name), read::read_bytes(&in_a_namespace(name)).expect("a file"));
        let mut ran: BTreeMap<Tid, ()> = BTreeMap::new();
        for event in &inside.events {
            match event.what {
                What::Switch { prev, next, .. } => {
                    ran.extend([(prev, ()), (next, ())]);
                }
                What::Name { thread, .. } => assert!(thread < 1_000_000, "{name}: {thread}"),
                What::Member { thread, process } => {
                    assert!(
                        thread < 1_000_000 && process < 1_000_000,
                        "{name}: {thread} of {process}"
                    );
                }
                What::Fork { parent, child, .. } => {
                    assert!(parent < 1_000_000 && child < 1_000_000, "{name}: {child} of {parent}");
                }
                _ => {}
            }
        }
        assert_eq!(switches(&inside), switches(&outside), "{name}");
        let [remark] = &inside.origin.remarks[..] else { panic!("{:?}", inside.origin.remarks) };
        assert!(remark.starts_with("perf ran in a PID namespace"), "{remark}");
        assert_eq!(outside.origin.remarks, [""; 0], "the control");
        let (seen, known) = (names(&inside), names(&outside));
        let lost: Vec<Tid> = ran
            .into_keys()
            .filter(|thread| {
                seen.get(thread).map(|n| n.last()) != known.get(thread).map(|n| n.last())
            })
            .collect();
        assert_eq!(lost, [0; 0], "{name}: names of threads that ran");
    }
}

/// perf's own words in the same pipe: behind the records, before them and among them.
#[test]
fn text_among_the_records_of_a_pipe_is_left_out() {
    let (whole, file) = (trace("pipe.data"), bytes("pipe.data"));
    let records = records(&file);
    let words = b"[ perf record: Woken up 1 times to write data ]\n[ perf record: Captured and wrote 0.040 MB - ]\n";
    for at in [file.len(), records[records.len() / 2].0, records[1].0] {
        let mut mixed = file.clone();
        mixed.splice(at..at, words.iter().copied());
        let read = read::read_bytes(&mixed).unwrap_or_else(|error| panic!("at {at}: {error}"));
        assert_same(&read, &whole);
        assert!(
            read.origin.remarks[0].starts_with("95 bytes of text among the records"),
            "{:?}",
            read.origin
        );
    }
    let mut broken = file.clone();
    broken.extend_from_slice(b"\x09 of none\x00");
    assert!(read::read_bytes(&broken).is_err(), "the control");
}

#[test]
fn what_is_not_read_is_called_by_its_name() {
    let told = |bytes: &[u8]| read::read_bytes(bytes).expect_err("it was read").to_string();
    let version_1 = told(&[b"PERFFILE".as_slice(), &[0; 100]].concat());
    assert!(
        version_1.contains("perf.data in version 1") && version_1.contains("perf inject"),
        "{version_1}"
    );
    let page = |time: u64| {
        let mut page = vec![0; 4096];
        page[..8].copy_from_slice(&time.to_le_bytes());
        page[8..16].copy_from_slice(&100u64.to_le_bytes());
        page
    };
    let pages = told(&[page(5), page(6)].concat());
    assert!(pages.contains("raw pages of tracefs") && pages.contains("trace-cmd"), "{pages}");
    assert!(
        told(&[page(6), page(5)].concat()).contains("no line is that of an event"),
        "the control"
    );
}

/// Without its last column the text does not say why a turn ended.
#[test]
fn timehist_without_states_says_that_they_were_not_asked_for() {
    let with = String::from_utf8(bytes("timehist.txt")).expect("text");
    let width =
        with.lines().nth(2).expect("the line below the heading").rfind(' ').expect("columns");
    let cut = |line: &str| {
        format!("{}\n", line.get(..width).filter(|_| !line.contains("migrated")).unwrap_or(line))
    };
    let without: String = with.lines().map(cut).collect();
    let (with, without) = (from_text(&with), from_text(&without));
    assert_eq!(switches(&with), switches(&without));
    assert!(!with.origin.coverage.no_states && without.origin.coverage.no_states);
    let judged = Quality::from_trace(&without).to_string();
    assert!(judged.contains("perf sched timehist --state"), "{judged}");
    assert!(without_names(with).events.len() > 10);
}
