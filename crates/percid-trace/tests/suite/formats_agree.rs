//! The same trace in each format is read as the same events.

use crate::fixture;

use std::collections::{BTreeMap, HashMap};

use fixture::{assert_same, bytes, names, trace, without_names};
use percid_trace::event::{Event, IDLE, Shares, State, UNKNOWN, What};
use percid_trace::read;

/// Every kind of event that these recordings can have is in them.
fn kinds(trace: &percid_trace::Trace) -> HashMap<&'static str, usize> {
    let mut kinds = HashMap::new();
    for event in &trace.events {
        *kinds.entry(event.what.name()).or_default() += 1;
    }
    kinds
}

#[test]
fn perf_data_says_what_perf_script_says() {
    let (data, script) = (trace("sched.data"), trace("sched.script.txt"));
    let kinds = kinds(&data);
    assert_eq!(names(&data), names(&script));
    assert_same(&without_names(data), &without_names(script));
    for kind in [
        "switch",
        "waking",
        "wakeup",
        "wakeup_new",
        "migrate",
        "fork",
        "exec",
        "exit",
        "id",
        "name",
    ] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
}

#[test]
fn a_changed_line_is_noticed() {
    let text = String::from_utf8(bytes("sched.script.txt")).expect("text");
    let changed = text.replacen("prev_state=S", "prev_state=D", 1);
    assert_ne!(text, changed);
    let (data, changed) = (trace("sched.data"), fixture::from_text(&changed));
    assert!(!without_names(data).same_events(&without_names(changed)));
}

/// A file with its records in another order, as from buffers that are read backwards.
fn backwards(mut file: Vec<u8>) -> Vec<u8> {
    let number = |at: usize| {
        usize::try_from(u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes")))
    };
    let (begin, len) = (number(40).expect("an offset"), number(48).expect("a size"));
    let data = file[begin..begin + len].to_vec();
    let (mut at, mut end) = (0, begin + len);
    while at < len {
        let size = usize::from(u16::from_le_bytes([data[at + 6], data[at + 7]]));
        file[end - size..end].copy_from_slice(&data[at..at + size]);
        (at, end) = (at + size, end - size);
    }
    file
}

#[test]
fn records_may_come_in_any_order() {
    let forwards = bytes("sched.data");
    let backwards = backwards(forwards.clone());
    assert_ne!(forwards, backwards);
    let backwards = read::read_bytes(&backwards).expect("it is read");
    assert_same(&backwards, &trace("sched.data"));
}

/// A record of `perf record` with these numbers in it.
fn record(kind: u32, numbers: &[u64]) -> Vec<u8> {
    let size = u16::try_from(8 + 8 * numbers.len()).expect("a record");
    let mut record = kind.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(size.to_le_bytes());
    record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    record
}

#[test]
fn lost_records_are_counted() {
    let lost = |records: &[Vec<u8>]| {
        let file = [bytes("pipe.data"), records.concat()].concat();
        read::read_bytes(&file).expect("it is read").origin.lost
    };
    const LOST: u32 = 2;
    const LOST_SAMPLES: u32 = 13;
    assert_eq!(lost(&[]), 0);
    assert_eq!(lost(&[record(LOST, &[1, 5]), record(LOST, &[2, 7])]), 12);
    // Two ways to tell of the same losses.
    assert_eq!(lost(&[record(LOST, &[1, 5]), record(LOST_SAMPLES, &[7])]), 7);
    assert_eq!(lost(&[record(LOST, &[1, u64::MAX]), record(LOST, &[1, 1])]), u64::MAX);
}

#[test]
fn compressed_perf_data_says_what_perf_script_says() {
    let data = trace("compressed.data");
    assert!(kinds(&data)["member"] > 3, "threads that were there before");
    assert_same(&without_names(data), &without_names(trace("compressed.script.txt")));
}

/// `perf record --threads`, which `perf script` reads too.
#[test]
fn a_directory_of_perf_data_says_what_perf_script_says() {
    let (data, script) = (trace("threads"), trace("threads.script.txt.gz"));
    let kinds = kinds(&data);
    assert!(kinds["switch"] > 50 && kinds["waking"] > 10, "{kinds:?}");
    assert_same(&without_names(data), &without_names(script));
    let main = read::read(&fixture::path("threads/data")).map_or(0, |trace| trace.events.len());
    assert!(main < kinds["switch"], "most records are in the other files");
}

#[test]
fn perf_data_from_a_pipe_says_what_perf_script_says() {
    let mut data = trace("pipe.data");
    // perf record was asked for neither forks nor ends of threads, so they come from other records
    // than tracepoints.
    let untold = |what| matches!(what, What::Fork { .. } | What::Exec { .. } | What::Exit { .. });
    assert!(data.events.iter().any(|event| untold(event.what)));
    data.events.retain(|event| !untold(event.what));
    assert_same(&without_names(data), &without_names(trace("pipe.script.txt")));
}

#[test]
fn threads_that_were_there_before_belong_to_processes_and_have_names() {
    let data = trace("compressed.data");
    let beginning = data.events[0].time;
    let first = data.events.iter().take_while(|event| event.time == beginning);
    let kthreadd = first.filter(|event| match event.what {
        What::Member { thread: 2, process: 2 } => true,
        What::Name { thread: 2, name } => data.texts.get(name) == "kthreadd",
        _ => false,
    });
    assert_eq!(kthreadd.count(), 2);
}

/// The records of forks in this file have no CPU, as those of its first event do not ask for it.
#[test]
fn each_new_thread_is_told_once_also_without_its_cpu() {
    let shares = shares(&trace("forks.data"));
    let told = |what: Shares| shares.values().filter(|told| **told == [what]).count();
    assert_eq!(
        (told(Shares::Process), told(Shares::Nothing), shares.len()),
        (6, 3, 9),
        "{shares:?}"
    );
}

/// `perf` lists the kernel's own threads like processes, of which they are none.
#[test]
fn threads_of_the_kernel_belong_to_no_process() {
    let data = trace("compressed.data");
    let all = names(&data);
    let members: Vec<u32> = data
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Member { thread, .. } => Some(thread),
            _ => None,
        })
        .collect();
    let named = |name: &str| {
        let thread = all.iter().find(|(_, names)| names.contains(&name));
        *thread.unwrap_or_else(|| panic!("no {name} in {all:?}")).0
    };
    for name in ["kdamond.0", "kcompactd0", "migration/0"] {
        assert!(!members.contains(&named(name)), "{name}");
    }
    assert!(members.contains(&1));
}

#[test]
fn the_origin_is_told() {
    let origin = trace("sched.data").origin;
    assert_eq!(origin.release.as_deref(), Some("6.18.44-fc-v509"));
    assert_eq!(origin.clock.as_deref(), Some("perf"));
    assert_eq!((origin.possible_cpus, origin.online_cpus), (Some(2), Some(2)));
    assert_eq!(origin.lost, 0);
    assert_eq!(origin.command.as_deref(), Some("/usr/bin/python3 -SIB names.py"));
}

/// A line of `perf script` on a switch.
struct Line {
    time: u64,
    cpu: u32,
    thread: u32,
    out: bool,
    preempted: bool,
    /// The other thread, if it is told.
    other: Option<u32>,
}

/// Returns the switches in the output of `perf script`.
fn lines(script: &str) -> Vec<Line> {
    let script = String::from_utf8(bytes(script)).expect("text");
    let switches = script.lines().filter(|line| line.contains("PERF_RECORD_SWITCH"));
    let lines = switches.map(|line| {
        let (head, tail) = line.split_once(": PERF_RECORD_SWITCH").expect("a switch");
        let mut words = head.split_whitespace().rev();
        let other =
            tail.rsplit_once('/').map(|(_, thread)| thread.trim().parse().expect("a thread"));
        Line {
            time: words.next().expect("a time").replace('.', "").parse().expect("a time"),
            cpu: words.next().expect("a CPU").trim_matches(['[', ']']).parse().expect("a CPU"),
            thread: words.next().expect("a thread").parse().expect("a thread"),
            out: tail.contains("OUT"),
            preempted: tail.contains("preempt"),
            other,
        }
    });
    lines.collect()
}

/// The switches in a trace.
fn switches(trace: &percid_trace::Trace) -> Vec<(u64, u32, What)> {
    let switches = trace.events.iter().filter(|event| matches!(event.what, What::Switch { .. }));
    switches.map(|event| (event.time, event.cpu, event.what)).collect()
}

/// Returns the event of a line, with the fields that it contains.
fn switch(line: &Line) -> (u64, u32, What) {
    let other = line.other.unwrap_or(UNKNOWN);
    let what = match (line.out, line.preempted) {
        (true, true) => What::Switch { prev: line.thread, state: State::PREEMPTED, next: other },
        (true, false) => What::Switch { prev: line.thread, state: State::SLEEPING, next: other },
        (false, _) => What::Switch { prev: other, state: State::RUNNABLE, next: line.thread },
    };
    (line.time, line.cpu, what)
}

#[test]
fn switches_of_own_threads_are_read_without_tracepoints() {
    let data = trace("switches.data");
    let mut expected: Vec<(u64, u32, What)> = Vec::new();
    let lines = lines("switches.script.txt");
    for line in &lines {
        let (time, cpu, what) = switch(line);
        // The end of one turn and the beginning of the next, with no time for another in between.
        match expected.iter_mut().rfind(|(_, on, _)| *on == cpu) {
            Some((before, _, What::Switch { next, .. }))
                if !line.out && *next == UNKNOWN && time - *before < 1500 =>
            {
                *next = line.thread;
            }
            _ => expected.push((time, cpu, what)),
        }
    }
    assert_eq!((lines.len(), expected.len()), (15, 13), "two were told of twice");
    assert_eq!(switches(&data), expected);
    let kinds = kinds(&data);
    for kind in ["fork", "exec", "exit", "name"] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
}

#[test]
fn switches_of_all_threads_are_told_once() {
    let lines = lines("switches-all.script.txt");
    let mut running = HashMap::new();
    let mut expected = Vec::new();
    for line in &lines {
        let (_, _, what @ What::Switch { next, .. }) = switch(line) else { unreachable!() };
        // The thread that comes says the same again as the one that went, unless that was not seen
        // to go.
        if running.insert(line.cpu, next) != Some(next) || line.out {
            expected.push((line.time, line.cpu, what));
        }
    }
    assert!(expected.len() > 10 && expected.len() < lines.len(), "{}", expected.len());
    assert_eq!(switches(&trace("switches-all.data")), expected);
}

#[test]
fn short_lines_of_trace_cmd_say_what_full_lines_say() {
    let mut full = trace("trace-cmd.txt");
    // The short ones do not say whether a thread was preempted.
    for event in &mut full.events {
        if let What::Switch { state, .. } = &mut event.what {
            if *state == State::PREEMPTED {
                *state = State::RUNNABLE;
            }
        }
    }
    assert!(kinds(&full)["tick"] > 0);
    assert_same(&without_names(full), &without_names(trace("trace-cmd.short.txt")));
}

#[test]
fn lines_with_flags_and_microseconds_say_what_lines_with_nanoseconds_say() {
    let mut short = trace("trace-cmd.short.txt");
    for event in &mut short.events {
        // The writer rounds to the next microsecond.
        event.time = (event.time + 500) / 1000 * 1000;
    }
    short.events.sort_by_key(|event| (event.time, event.cpu));
    assert_same(&without_names(short), &without_names(trace("trace-cmd.latency.txt")));
}

#[test]
fn text_of_tracefs_tells_processes() {
    let tracefs = trace("tracefs.txt");
    let kinds = kinds(&tracefs);
    for kind in
        ["switch", "waking", "wakeup", "wakeup_new", "fork", "exec", "exit", "id", "tick", "member"]
    {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
    assert_eq!(tracefs.origin.online_cpus, Some(2));
    assert!(tracefs.events.iter().any(|event| {
        matches!(event.what, What::Member { thread, process } if thread != process)
    }));
}

/// Names that look like parts of a line, as `names.py` gives them to threads.
const NAMES: [&str; 9] = [
    " ==> next_comm=",
    "x-1 [0] 1.2: a:",
    " prev_pid=7",
    "a b=c pid=1",
    "9 [120] S ==> b",
    ": [001] 1.0: x:",
    " newcomm=x",
    " child_comm=b",
    "é#[x]-(7)",
];

#[test]
fn names_that_look_like_lines_are_read_from_each_format() {
    for file in [
        "sched.data",
        "sched.script.txt",
        "trace-cmd.txt",
        "trace-cmd.short.txt",
        "tracefs.txt",
        "trace-cmd.zstd.dat",
    ] {
        let trace = trace(file);
        let mut threads = HashMap::new();
        for event in &trace.events {
            if let What::Name { thread, name } = event.what {
                threads.insert(trace.texts.get(name).to_owned(), thread);
            }
        }
        for name in NAMES {
            let Some(thread) = threads.get(name) else {
                panic!("{file}: no {name:?} in {threads:?}")
            };
            let ends =
                trace.events.iter().any(|event| event.what == What::Exit { thread: *thread });
            assert!(ends, "{file}: {name:?} is not the name of a thread that ends");
        }
    }
}

#[test]
fn idle_threads_and_threads_beside_the_first_are_told() {
    let data = trace("sched.data");
    let idle = |event: &&Event| matches!(event.what, What::Switch { next: IDLE, .. });
    assert!(data.events.iter().filter(idle).count() > 5);
    for file in ["sched.data", "trace-cmd.txt", "tracefs.txt"] {
        let trace = trace(file);
        let beside =
            |event: &&Event| matches!(event.what, What::Fork { shares: Shares::Process, .. });
        assert!(trace.events.iter().filter(beside).count() >= NAMES.len(), "{file}");
    }
}

/// Returns what each new thread shares with its creator.
fn shares(trace: &percid_trace::Trace) -> BTreeMap<u32, Vec<Shares>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for event in &trace.events {
        if let What::Fork { child, shares, .. } = event.what {
            all.entry(child).or_default().push(shares);
        }
    }
    all
}

/// `perf sched record` asks for `sched_process_fork` and not for `task_newtask`.
#[test]
fn threads_beside_the_first_are_told_without_task_newtask() {
    let whole = bytes("sched.data");
    let (known, unknown) = (b"name: task_newtask\n", b"name: task_newtasq\n");
    let at = whole.windows(known.len()).position(|text| text == known).expect("its description");
    let mut lacking = whole.clone();
    lacking[at..][..known.len()].copy_from_slice(unknown);
    let told = shares(&read::read_bytes(&lacking).expect("it is read"));
    // The kernel's records do not tell vfork from fork.
    let expected = shares(&trace("sched.data")).into_iter().map(|(child, shares)| {
        let without_vfork = |shares| match shares {
            Shares::Memory => Shares::Nothing,
            other => other,
        };
        (child, shares.into_iter().map(without_vfork).collect::<Vec<_>>())
    });
    let beside = |shares: &&Vec<Shares>| shares.contains(&Shares::Process);
    assert!(told.values().filter(beside).count() >= NAMES.len(), "{told:?}");
    for (child, shares) in expected {
        assert_eq!(told.get(&child), Some(&shares), "{child}");
    }
}

#[test]
fn formats_are_told_by_their_first_bytes() {
    use read::Format;
    assert_eq!(Format::detect(&bytes("sched.data")[..Format::MAGIC]), Format::PerfData);
    assert_eq!(Format::detect(&bytes("pipe.data")[..Format::MAGIC]), Format::PerfData);
    assert_eq!(Format::detect(&bytes("tracefs.txt")[..Format::MAGIC]), Format::Text);
    assert_eq!(Format::detect(b"PAR1...."), Format::Parquet);
    assert_eq!(Format::detect(b"\x0a\x20\x08\x01...."), Format::Perfetto);
    assert_eq!(Format::detect(b"\n\n"), Format::Text);
    assert_eq!(Format::detect(b""), Format::Text);
}
