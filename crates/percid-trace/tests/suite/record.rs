//! Recordings of a small program whose threads note what they did.
//!
//! The program is this test binary itself, started again with `PERCID_TRACE_PROGRAM`, the file for
//! the notes.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use percid_sim::conformance::generation;
use percid_trace::event::{Shares, State, Tid, What};
use percid_trace::kernel_ids::{self, Insufficient};
use percid_trace::record::{Backend, Options, Recorded, Refusal, Target, record};
use percid_trace::trace::Trace;

/// Reports what is missing. That is a failure if the environment has `PERCID_TRACE=require`.
fn skip(missing: &str) {
    percid_skips::not_checked("recordings of a program", missing);
    assert!(std::env::var("PERCID_TRACE").as_deref() != Ok("require"), "{missing}");
}

const NOTES: &str = "PERCID_TRACE_PROGRAM";
/// Number of times that each of its threads works and rests, in 20 ms of work.
const ROUNDS: &str = "PERCID_TRACE_ROUNDS";
const THREADS: u32 = 6;

/// The program. Without notes to write it is a test that has nothing to do.
#[test]
fn program() {
    let Some(path) = std::env::var_os(NOTES) else { return };
    let notes = Mutex::new(String::new());
    thread::scope(|scope| {
        for nr in 0..THREADS {
            let notes = &notes;
            scope.spawn(move || {
                let gaps = work(nr);
                let (tid, time) = (gettid(), thread_cpu_time());
                let mut notes = notes.lock().expect("no thread fails");
                writeln!(notes, "{tid} {time} {gaps}").expect("a string");
            });
        }
    });
    fs::write(path, notes.into_inner().expect("no thread fails")).expect("a place for notes");
}

/// Every thread sleeps and yields; the first visits two CPUs and stays on the second. Returns for how
/// many nanoseconds it got nowhere while it worked.
fn work(nr: u32) -> u64 {
    if nr == 0 {
        let cpus = allowed_cpus();
        pin(cpus[0]);
        pin(cpus[cpus.len() - 1]);
    }
    let mut gaps = Duration::ZERO;
    let rounds = std::env::var(ROUNDS).map_or(20, |rounds| rounds.parse().expect("a number"));
    for round in 0..rounds {
        let mut now = Instant::now();
        let until = now + Duration::from_millis(20) / rounds;
        while now < until {
            let before = std::mem::replace(&mut now, Instant::now());
            gaps += (now - before).saturating_sub(Duration::from_micros(100));
        }
        if (nr + round).is_multiple_of(3) {
            thread::yield_now()
        } else {
            thread::sleep(Duration::from_micros(300))
        }
    }
    gaps.as_nanos() as u64
}

fn gettid() -> Tid {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() as Tid }
}

/// Nanoseconds for which the calling thread has run.
fn thread_cpu_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn allowed_cpus() -> Vec<usize> {
    // SAFETY: all zero is an empty set, and the calls stay within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    }
}

/// Restricts the calling thread to one CPU.
fn pin(cpu: usize) {
    // SAFETY: all zero is an empty set, and the calls stay within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// The command that runs the program, and where its notes will be.
fn command() -> (Vec<OsString>, PathBuf) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nr = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir();
    let notes = folder.join(format!("percid-record-{}-{nr}", std::process::id()));
    let mut variable = OsString::from(format!("{NOTES}="));
    variable.push(&notes);
    let this = std::env::current_exe().expect("this program").into_os_string();
    let arguments = ["--exact", "record::program", "--quiet"].map(OsString::from);
    let words = ["env".into(), variable, this].into_iter().chain(arguments).collect();
    (words, notes)
}

/// Time that a thread noted, in nanoseconds.
struct Noted {
    /// Run time of the thread.
    ran: u64,
    /// Time in which it made no progress while it worked: another thread ran, or the machine stood
    /// still.
    gaps: u64,
}

type Notes = BTreeMap<Tid, Noted>;

/// Times that the threads noted.
fn read_notes(path: &PathBuf) -> Notes {
    let text = fs::read_to_string(path).expect("the program's notes");
    fs::remove_file(path).expect("the notes are ours");
    let numbers = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').flat_map(str::parse).collect();
        let [tid, ran, gaps] = numbers[..] else { panic!("three numbers: {line}") };
        (tid as Tid, Noted { ran, gaps })
    };
    text.lines().map(numbers).collect()
}

fn options(target: Target, backend: Backend) -> Options {
    let mut options = Options::new(target);
    options.backend = Some(backend);
    options.kernel_buffer_kib = 8192;
    options.limit = Some(Duration::from_secs(600));
    options
}

fn recorded(options: &Options) -> Option<Recorded> {
    match record(options, &AtomicBool::new(false), |_| {}) {
        Ok(recorded) => Some(recorded),
        Err(Refusal::NotPermitted(backends)) => {
            skip(&Refusal::NotPermitted(backends).to_string());
            None
        }
        Err(refusal) => panic!("{refusal}"),
    }
}

/// Number of recordings of which the first is taken that lacks no switch, or else the last.
const RECORDINGS: u32 = 10;

/// Records the program. `None` if that is not permitted here.
fn recorded_program(backend: Backend) -> Option<(Recorded, Notes)> {
    let mut tries = 0;
    loop {
        let (words, notes) = command();
        let recorded = recorded(&options(Target::Command(words), backend))?;
        assert!(recorded.status.is_some_and(|status| status.success()), "{:?}", recorded.status);
        assert_eq!(recorded.trace.origin.lost, 0);
        let notes = read_notes(&notes);
        assert_eq!(notes.len() as u32, THREADS);
        tries += 1;
        if recorded.inferred == 0 || tries == RECORDINGS {
            return Some((recorded, notes));
        }
    }
}

/// The threads that were created within their process, and those that ended.
fn births_and_deaths(trace: &Trace) -> (BTreeSet<Tid>, BTreeSet<Tid>) {
    let (mut born, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in &trace.events {
        match event.what {
            What::Fork { child, shares: Shares::Process, .. } => drop(born.insert(child)),
            What::Exit { thread } => drop(ended.insert(thread)),
            _ => {}
        }
    }
    (born, ended)
}

/// For how long each thread ran, in nanoseconds. A turn must end on the CPU where it began, and
/// before the thread's next one begins.
fn run_times(trace: &Trace, threads: &Notes) -> HashMap<Tid, u64> {
    let mut running: HashMap<Tid, (u32, u64)> = HashMap::new();
    let mut times: HashMap<Tid, u64> = HashMap::new();
    for event in &trace.events {
        let What::Switch { prev, next, .. } = event.what else { continue };
        if threads.contains_key(&prev) {
            let began = running.remove(&prev);
            let Some((cpu, since)) = began else { panic!("thread {prev} did not run: {event:?}") };
            assert_eq!(cpu, event.cpu, "thread {prev} moved while it ran");
            *times.entry(prev).or_default() += event.time - since;
        }
        if threads.contains_key(&next) {
            let before = running.insert(next, (event.cpu, event.time));
            assert_eq!(before, None, "thread {next} ran twice: {event:?}");
        }
    }
    assert!(running.is_empty(), "a switch away from every thread that ended: {running:?}");
    times
}

/// Checks the properties of every recording of the program.
fn check(recorded: &Recorded, notes: &Notes) {
    let (born, ended) = births_and_deaths(&recorded.trace);
    for tid in notes.keys() {
        assert!(born.contains(tid), "thread {tid} was created");
        assert!(ended.contains(tid), "thread {tid} ended");
    }
    // If the kernel left out a switch, it is not known since when or how long a thread ran.
    if recorded.inferred > 0 {
        return percid_skips::not_checked("run times", "the kernel left out a switch each time");
    }
    let times = run_times(&recorded.trace, notes);
    for (tid, noted) in notes {
        // Time that a hypervisor takes is in neither or in one of the two. The thread has recorded
        // it in its notes.
        let (time, Noted { ran, gaps }) = (times[tid], noted);
        assert!(
            time >= ran / 2 && time <= ran * 4 + gaps,
            "thread {tid}: {time} ns, noted {ran} ns and gaps of {gaps} ns"
        );
    }
}

#[test]
fn a_command_by_tracefs() {
    let Some((recorded, notes)) = recorded_program(Backend::Tracefs) else { return };
    check(&recorded, &notes);
    // The switch that the kernel left out may be the last one of a thread.
    for &tid in notes.keys().filter(|_| recorded.inferred == 0) {
        let mut states = recorded.trace.events.iter().rev().filter_map(|event| match event.what {
            What::Switch { prev, state, .. } if prev == tid => Some(state),
            _ => None,
        });
        let last = states.next();
        assert_eq!(last, Some(State::DEAD), "the last switch away from thread {tid}");
    }
    let named = recorded.trace.events.iter().any(|event| match event.what {
        What::Name { name, .. } => recorded.trace.texts.get(name) == "record::program",
        _ => false,
    });
    assert!(named, "the test's thread has its name");
    let sleeps = recorded.trace.events.iter().filter(|event| match event.what {
        What::Switch { prev, state, .. } => notes.contains_key(&prev) && state == State::SLEEPING,
        _ => false,
    });
    // Each slept in two of three rounds. A thread that is held up for 300 us while it goes to sleep
    // does not sleep any more. Were it one of ten, half of them would be so once in 10^18 runs.
    assert!(sleeps.count() as u32 >= THREADS * 13 / 2, "each thread slept");
}

/// The first thread of the program is moved at least once, and others are when they are woken.
#[test]
fn migrations_fit_the_turns() {
    let Some((recorded, notes)) = recorded_program(Backend::Tracefs) else { return };
    let mut places: HashMap<Tid, u32> = HashMap::new();
    let (mut migrations, mut moves) = (0, 0);
    for event in &recorded.trace.events {
        match event.what {
            What::Migrate { thread, to, .. } if notes.contains_key(&thread) => {
                migrations += 1;
                places.insert(thread, to);
            }
            What::Switch { next, .. } if notes.contains_key(&next) => {
                let came = places.insert(next, event.cpu);
                moves += u32::from(came.is_some_and(|place| place != event.cpu));
            }
            _ => {}
        }
    }
    // A migration can be left out as a switch can.
    let are_all = recorded.inferred == 0;
    assert!(moves == 0 || !are_all, "{moves} moves without one of {migrations} migrations");
    let several = allowed_cpus().len() > 1;
    assert!(migrations > 0 || !several, "six threads on several CPUs are moved");
}

#[test]
fn a_command_by_perf_events() {
    let Some((recorded, notes)) = recorded_program(Backend::PerfEvents) else { return };
    check(&recorded, &notes);
    assert!(recorded.without.contains(&"wakeups"));
}

/// Starts the program within a shell that waits for a line, so that it can be recorded by its
/// number.
#[test]
fn a_process_that_runs_already() {
    let (words, notes) = command();
    let mut shell = std::process::Command::new("sh")
        .args(["-c", "read line; exec \"$@\"", "sh"])
        .args(words)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("a shell");
    let stdin = shell.stdin.take();
    let options = options(Target::Process(shell.id()), Backend::Tracefs);
    let begun = Mutex::new(stdin);
    // The first look at the progress comes after the recording has begun.
    let result = record(&options, &AtomicBool::new(false), |_| {
        drop(begun.lock().expect("one thread").take());
    });
    drop(begun);
    shell.wait().expect("the shell ends");
    match result {
        Ok(recorded) => check(&recorded, &read_notes(&notes)),
        Err(Refusal::NotPermitted(backends)) => skip(&Refusal::NotPermitted(backends).to_string()),
        Err(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn the_whole_system_until_somebody_says_stop() {
    let (stop, looks) = (AtomicBool::new(false), AtomicU32::new(0));
    let last_cpu = *allowed_cpus().last().expect("a CPU");
    let options = options(Target::System, Backend::Tracefs);
    let result = record(&options, &stop, |_| {
        thread::sleep(Duration::from_micros(100));
        match looks.fetch_add(1, Ordering::Relaxed) {
            0 => pin(last_cpu),
            _ => stop.store(true, Ordering::Relaxed),
        }
    });
    let recorded = match result {
        Ok(recorded) => recorded,
        Err(refusal) => return skip(&refusal.to_string()),
    };
    assert_eq!(looks.into_inner(), 2);
    assert!(recorded.status.is_none());
    let own = std::process::id();
    let members = |event: &&_| matches!(event, What::Member { process, .. } if *process == own);
    let whats = || recorded.trace.events.iter().map(|event| event.what);
    assert!(whats().filter(|what| members(&what)).count() >= 1, "the test's own threads");
    let slept = whats().any(|what| matches!(what, What::Switch { prev, .. } if prev == gettid()));
    assert!(slept, "the recording thread sleeps between two looks");
    assert!(recorded.trace.events.is_sorted_by_key(|event| (event.time, event.cpu)));
    let affinities: Vec<&str> = whats()
        .filter_map(|what| match what {
            What::Affinity { thread, cpus } if thread == gettid() => Some(cpus),
            _ => None,
        })
        .map(|cpus| recorded.trace.texts.get(cpus))
        .collect();
    assert_eq!(affinities.len(), 2, "at the beginning, and after it was changed: {affinities:?}");
    assert_eq!(affinities[1], last_cpu.to_string());
}

/// The kernel tells of the switch away from a thread that has ended when it does not name that
/// thread any more. A switch that it leaves out shows by what happens afterwards.
#[test]
fn threads_of_a_whole_system_end_once_by_perf_events() {
    let (words, notes) = command();
    let (stop, mut child) = (AtomicBool::new(false), None);
    let options = options(Target::System, Backend::PerfEvents);
    // The first look at the progress comes after the recording has begun.
    let result = record(&options, &stop, |_| match &mut child {
        None => child = std::process::Command::new(&words[0]).args(&words[1..]).spawn().ok(),
        Some(child) => stop.store(!matches!(child.try_wait(), Ok(None)), Ordering::Relaxed),
    });
    let recorded = match result {
        Ok(recorded) => recorded,
        Err(refusal) => return skip(&refusal.to_string()),
    };
    let notes = read_notes(&notes);
    check(&recorded, &notes);
    let ends = recorded.trace.events.iter().filter_map(|event| match event.what {
        What::Switch { prev, state: State::DEAD, .. } if notes.contains_key(&prev) => Some(prev),
        _ => None,
    });
    let ends: Vec<Tid> = ends.collect();
    let ended: BTreeSet<Tid> = ends.iter().copied().collect();
    assert_eq!(ends.len(), ended.len(), "once: {ends:?}");
    let inferred = recorded.inferred;
    assert!(ended.len() + inferred >= notes.len(), "{ended:?} of {:?}, {inferred}", notes.keys());
}

/// A reader that is slower than the kernel writes.
#[test]
fn losses_are_counted() {
    for (backend, what) in [(Backend::Tracefs, "sub-buffers"), (Backend::PerfEvents, "records")] {
        let (mut words, notes) = command();
        words.insert(1, format!("{ROUNDS}=400").into());
        let mut options = options(Target::Command(words), backend);
        options.kernel_buffer_kib = 4;
        let slow = |_| thread::sleep(Duration::from_millis(400));
        let recorded = match record(&options, &AtomicBool::new(false), slow) {
            Ok(recorded) => recorded,
            Err(refusal) => return skip(&refusal.to_string()),
        };
        read_notes(&notes);
        let Trace { origin, events, .. } = recorded.trace;
        assert!(origin.lost > 0, "{what}: {} events are all that fit", events.len());
        assert!(!events.is_empty(), "{what}: those that fit are there");
    }
}

/// The process of a thread that was created in the trace, by who created whom.
fn process_of(trace: &Trace, mut thread: Tid) -> Tid {
    for event in trace.events.iter().rev() {
        match event.what {
            What::Fork { parent, child, shares: Shares::Process } if child == thread => {
                thread = parent;
            }
            _ => {}
        }
    }
    thread
}

#[test]
fn the_kernels_ids_are_those_of_its_policy() {
    let Some((recorded, notes)) = recorded_program(Backend::Tracefs) else { return };
    let trace = &recorded.trace;
    let process = process_of(trace, *notes.keys().next().expect("threads"));
    let comparison = match kernel_ids::compare(trace, process) {
        Ok(comparison) => comparison,
        Err(missing @ (Insufficient::NoIds(_) | Insufficient::NoGeneration(_))) => {
            return skip(&missing.to_string());
        }
        Err(missing) => panic!("{missing}"),
    };
    assert!(comparison.agrees(), "{comparison}");
    assert!(comparison.compared >= notes.len(), "{comparison}");
    let mut wrong = recorded.trace.clone();
    let last = wrong.events.iter_mut().find_map(|event| match &mut event.what {
        What::Id { thread, id, .. } if notes.contains_key(thread) => Some(id),
        _ => None,
    });
    *last.expect("an ID of a noted thread") += 1;
    // In the order of the trace alone: another one that is as possible might explain it.
    let recording = kernel_ids::recording(&wrong, process).expect("as before");
    let policy = generation(&recording.release).expect("as before");
    let differences = recording.compare(policy).differences;
    assert_eq!(differences.len(), 1, "the altered one is found: {differences:?}");
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let refused = |target| {
        let options = Options::new(target);
        record(&options, &AtomicBool::new(false), |_| {}).expect_err("nothing to record")
    };
    let refusal = refused(Target::Process(Tid::MAX - 1));
    assert!(matches!(refusal, Refusal::NoProcess(_)), "{refusal}");
    let command = |word: &str| Target::Command(vec![word.into()]);
    let refusal = refused(command("/no/such/command"));
    if let Refusal::NotPermitted(_) = refusal {
        return skip(&refusal.to_string());
    }
    assert_eq!(refusal.to_string(), "/no/such/command: command not found");
    assert_eq!(refusal.exit_code(), 127);
    let refusal = refused(command("/dev/null"));
    assert!(refusal.to_string().starts_with("/dev/null: cannot be started: "), "{refusal}");
    assert_eq!(refusal.exit_code(), 126);
}

/// Returns `true` if the tests run as the superuser.
fn is_root() -> bool {
    // SAFETY: the call has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// Permissions of an ordinary user, in this test binary started again as one.
#[test]
fn an_ordinary_user() {
    if !is_root() {
        return skip("to become an ordinary user one has to be the superuser");
    }
    for test in ["a_command_by_perf_events", "refusals_to_an_ordinary_user"] {
        let this = std::env::current_exe().expect("this program");
        let test = format!("record::{test}");
        let output = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(this)
            .args(["--exact", &test, "--nocapture"])
            .output();
        let output = match output {
            Ok(output) => output,
            Err(error) => return skip(&format!("setpriv: {error}")),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, error) = (text(&output.stdout), text(&output.stderr));
        if matches!(output.status.code(), Some(126 | 127)) {
            return skip(&error);
        }
        assert!(output.status.success() && said.contains("1 passed"), "{said}{error}");
    }
}

/// Has something to do for an ordinary user only.
#[test]
fn refusals_to_an_ordinary_user() {
    if is_root() {
        return;
    }
    let refused = |backend| {
        let options = Options { backend, ..Options::new(Target::System) };
        record(&options, &AtomicBool::new(false), |_| {}).expect_err("no rights").to_string()
    };
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim().parse::<i32>().is_ok_and(|paranoid| paranoid <= 0) {
        return skip("perf_event_paranoid permits everything");
    }
    let both = refused(None);
    assert!(both.contains("\n  tracefs: /sys/"), "{both}");
    assert!(both.contains("permission denied") || both.contains("not mounted"), "{both}");
    let setting = format!("perf events: perf_event_paranoid is {}", paranoid.trim());
    assert!(both.contains(&setting), "{both}");
    assert!(!refused(Some(Backend::PerfEvents)).contains("tracefs"));
}
