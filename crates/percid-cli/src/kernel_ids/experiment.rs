//! Executes the script, in a process that does nothing else.

use std::fs;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use percid::Source;
use percid_sim::conformance::Recording;

use super::journal::{JournalEntry, Note, recording};
use super::script::{Act, FIRST_THREAD, HOLD_MS, MOST_CPUS, ScriptStep, script};

/// Time between an action of a thread and reading its ID: longer than the kernel takes to react.
const APART: Duration = Duration::from_micros(50);

/// Runs the experiment in this process. Returns the recording to print, for [`Recording::read`].
///
/// # Errors
///
/// Returns what is missing.
pub(super) fn record() -> Result<Recording, String> {
    Source::Kernel.prepare().map_err(|why| why.to_string())?;
    let machine = percid::machine::read();
    let mut cpus: Vec<u32> = machine.allowed.iter().collect();
    cpus.reverse();
    cpus.truncate(MOST_CPUS);
    if cpus.len() < 2 {
        return Err("a single CPU is allowed: an ID cannot be another one there".to_owned());
    }
    let allowed = allowed(&machine);
    pin(cpus[0])?;
    let stage = Stage { script: script(cpus.len()), cpus, began: Instant::now() };
    let first = stage.cpus[0];
    // CPU numbers may have gaps.
    let possible = (machine.possible.len() as u32).max(first + 1);
    let entries = play(&Arc::new(stage), FIRST_THREAD)?;
    Ok(recording(machine.kernel_release.clone(), (possible, allowed), first, entries))
}

/// Returns the number of CPUs that the process may use by the kernel's own count. It includes CPUs
/// that are not plugged in, which `sched_getaffinity` leaves out.
fn allowed(machine: &percid::machine::Machine) -> u32 {
    let weight = |status: String| {
        let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?.to_owned();
        let digits = mask.trim().chars().filter(|&digit| digit != ',');
        digits.map(|digit| Some(digit.to_digit(16)?.count_ones())).sum()
    };
    let known = fs::read_to_string("/proc/self/status").ok().and_then(weight);
    known.unwrap_or(machine.allowed.len() as u32)
}

/// State shared by all threads of the experiment.
struct Stage {
    script: Vec<ScriptStep>,
    cpus: Vec<u32>,
    began: Instant,
}

type Played = Result<Vec<JournalEntry>, String>;

/// Executes the steps of a thread. Returns its entries and those of the threads that it started.
fn play(stage: &Arc<Stage>, thread: usize) -> Played {
    let mut actor = Actor { stage, thread, entries: Vec::with_capacity(256) };
    let mut started = Vec::new();
    actor.runs();
    for step in stage.script.iter().filter(|step| step.thread == thread) {
        actor.sleep_until(stage.began + Duration::from_millis(step.at_ms));
        match step.act {
            Act::Start => started.push(actor.start(started.len() + 1)?),
            Act::Go(cpu) => actor.go(stage.cpus[cpu])?,
            Act::Stay(ms) => actor.stay(ms),
            Act::End => actor.note(Note::Ends),
        }
    }
    let mut entries = actor.entries;
    for child in started {
        entries.extend(child.join().map_err(|_| "a thread of the experiment panicked")??);
    }
    Ok(entries)
}

/// A thread of the experiment.
struct Actor<'a> {
    stage: &'a Arc<Stage>,
    thread: usize,
    entries: Vec<JournalEntry>,
}

impl Actor<'_> {
    fn note(&mut self, note: Note) {
        let time = self.stage.began.elapsed().as_nanos() as u64;
        self.entries.push(JournalEntry { time, thread: self.thread as u32, note });
    }

    fn runs(&mut self) {
        // SAFETY: the call takes no argument and accesses no memory of this program.
        let cpu = unsafe { libc::sched_getcpu() };
        self.note(Note::Runs(cpu as u32));
    }

    fn sleep_until(&mut self, when: Instant) {
        let remaining = when.saturating_duration_since(Instant::now());
        if !remaining.is_zero() {
            self.note(Note::Sleeps);
            thread::sleep(remaining);
            self.runs();
        }
    }

    fn start(&mut self, child: usize) -> Result<JoinHandle<Played>, String> {
        self.note(Note::Starts(child as u32));
        let stage = Arc::clone(self.stage);
        let thread = thread::Builder::new().spawn(move || play(&stage, child));
        thread.map_err(|error| format!("starting a thread: {error}"))
    }

    fn go(&mut self, cpu: u32) -> Result<(), String> {
        self.spin(APART);
        pin(cpu)?;
        self.note(Note::Moved(cpu));
        self.look();
        Ok(())
    }

    fn stay(&mut self, ms: u64) {
        self.spin(Duration::from_millis(ms));
        if ms >= HOLD_MS {
            self.note(Note::Ticked);
        }
        self.look();
    }

    fn look(&mut self) {
        self.spin(APART);
        if let Some(id) = Source::Kernel.current_id() {
            self.note(Note::Id(id));
        }
    }

    fn spin(&self, duration: Duration) {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
    }
}

/// Restricts the calling thread to one CPU.
fn pin(cpu: u32) -> Result<(), String> {
    let mut mask = vec![0u64; cpu as usize / 64 + 1];
    mask[cpu as usize / 64] = 1 << (cpu % 64);
    // SAFETY: the mask is readable for its whole size.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, 8 * mask.len(), mask.as_ptr()) };
    let why = || format!("CPU {cpu}: {}", std::io::Error::last_os_error());
    if done == 0 { Ok(()) } else { Err(why()) }
}
