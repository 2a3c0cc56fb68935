//! Replays a recorded schedule of one process, and compares the policy's IDs with the kernel's IDs.
//!
//! A recording is text with one event per line and times in microseconds:
//!
//! ```text
//! percid-steps RELEASE POSSIBLE-CPUS ALLOWED-CPUS
//! 0 exec CPU THREAD
//! TIME spawn THREAD PARENT
//! TIME affinity THREAD ALLOWED-CPUS
//! TIME migrate THREAD FROM TO
//! TIME switch CPU PREVIOUS NEXT
//! TIME tick CPU THREAD [AGO]
//! TIME exit CPU THREAD
//! TIME leave CPU THREAD
//! TIME gone THREAD
//! TIME id THREAD ID
//! end
//! ```
//!
//! Threads are numbered from 0 in the order of their creation; `-` is no thread of the process. A
//! recording begins when the process starts its program, so nothing earlier matters. `id` is the ID
//! that the kernel reports for a running thread. A thread may share the memory of its process to
//! replace its program, as after `vfork`. Such a thread leaves first: it returns its ID and takes
//! no other one. It counts as a thread until it is gone. The union of the allowed CPUs does not
//! change.
//!
//! # Borderline decisions
//!
//! The kernel counts the 100 ms of its scans in timer ticks, and ages IDs by clocks that may lag by
//! a tick. So a decision near the limit can go either way. [`Recording::compare`] therefore replays
//! a recording several times: with all durations as they are, and shortened and lengthened by up to
//! [`SLACK_PERCENT`]. The comparison ends at the first ID at which the replays differ.
//!
//! A kernel scans when the ticked thread returns to user space, perhaps only when it runs again.
//! Such a tick is recorded at the time of the return, with the microseconds since it landed. The
//! kernel decides at the landing if a scan is due, and at the return which IDs are too old. So the
//! shortened replays use the first time for both, and the others use the second.

use std::fmt;

use percid_rules::Generation;

use crate::policies::{Id, Impossible, Policy, PolicySpec, Process, Thread, of_generation};
use crate::time::{MS, Ns, US};
use crate::topology::{Cpu, Place, Topology};

/// Minimum distance of a decision from a limit for it to count, in percent of 100 ms. It covers
/// four ticks of 4 ms, for the counted tick, the clock's lag, and the time from the tick to the
/// scan.
pub const SLACK_PERCENT: u64 = 16;

/// Scales of the replayed durations in percent; the true durations come first.
const PERCENT: [u64; 5] = [
    100,
    100 - SLACK_PERCENT,
    100 - SLACK_PERCENT / 2,
    100 + SLACK_PERCENT / 2,
    100 + SLACK_PERCENT,
];

/// The latest time in a recording: some centuries, with room for lengthened durations.
const LATEST: Ns = i64::MAX as Ns;

/// Returns the policy for the generation that a kernel release such as `6.18.44-amd64` hints at.
/// Returns `None` if that release has no IDs, or if the text gives no hint.
pub fn generation(release: &str) -> Option<&'static PolicySpec> {
    Generation::hinted_by(release).map(of_generation)
}

/// The events of a process, from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The kernel's release.
    pub release: String,
    /// Number of CPUs that may ever exist.
    pub possible: u32,
    /// Number of CPUs allowed to the process.
    pub allowed: u32,
    /// The events, in order.
    pub steps: Vec<Step>,
}

/// One event and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Time since the start.
    pub time: Ns,
    /// The event.
    pub event: Event,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A thread replaced the program.
    Exec(Cpu, Thread),
    /// A thread was created, with the affinity of its parent.
    Spawn(Thread, Thread),
    /// From now on, a thread may use this number of CPUs.
    Affinity(Thread, u32),
    /// A thread was queued on another CPU.
    Migrate(Thread, Cpu, Cpu),
    /// A CPU switched.
    Switch(Cpu, Option<Thread>, Option<Thread>),
    /// The timer tick found a thread running this many microseconds ago, and the thread now returns
    /// to user space.
    Tick(Cpu, Thread, u32),
    /// A thread began to end.
    Exit(Cpu, Thread),
    /// A running thread requested another program and no longer needs an ID of this process.
    Leave(Cpu, Thread),
    /// A thread that left no longer counts.
    Gone(Thread),
    /// A running thread has this ID.
    Id(Thread, Id),
}

/// The error for text that is not a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the expected text.
    pub expected: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for Malformed {}

/// An ID of the kernel beside the policy's ID; they differ in [`Conformance::differences`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Time of the check, since the start.
    pub time: Ns,
    /// The CPU that ran the thread.
    pub cpu: Cpu,
    /// The thread.
    pub thread: Thread,
    /// The ID that the policy gives.
    pub expected: Id,
    /// The ID that the kernel gave.
    pub found: Id,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { time, cpu, thread, expected, found } = self;
        let ms = time / MS;
        write!(f, "{ms} ms, CPU {cpu}, thread {thread}: expected ID {expected}, found {found}")
    }
}

/// The result of a replay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conformance {
    /// Number of compared IDs.
    pub compared: usize,
    /// Number of compared IDs before the first difference; all of them if there is no difference.
    pub agreed: usize,
    /// Time, since the start, at which the comparison ends; `None` if it covers the whole
    /// recording. From there on, the policy's IDs depend on [`SLACK_PERCENT`], or on the order of
    /// events that the trace does not determine.
    pub border: Option<Ns>,
    /// Number of IDs that the policy had to search for, in the whole recording.
    pub slow_paths: u64,
    /// Number of IDs that scans took back, in the whole recording.
    pub expired: u64,
    /// The IDs at which kernel and policy differ.
    pub differences: Vec<Difference>,
}

impl Conformance {
    /// Returns `true` if at least one ID was compared and no ID differed.
    pub fn agrees(&self) -> bool {
        self.compared > 0 && self.differences.is_empty()
    }
}

/// Writes the counts in one line, then the first differences, one per line.
impl fmt::Display for Conformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conformance { compared, agreed, border, slow_paths, expired, differences } = self;
        let different = differences.len();
        write!(
            f,
            "compared={compared} found={slow_paths} expired={expired} different={different}"
        )?;
        if agreed < compared {
            write!(f, " from the ID after {agreed} on")?;
        }
        if let Some(border) = border {
            write!(f, " undecided from {} ms on", border / MS)?;
        }
        let mut shown = differences.iter().take(MOST_SHOWN);
        shown.try_for_each(|difference| write!(f, "\n  {difference}"))
    }
}

/// Maximum number of differences shown: most later differences follow from the first one.
const MOST_SHOWN: usize = 10;

impl Recording {
    /// Reads the first recording in `text`, which may have other lines around it.
    ///
    /// # Errors
    ///
    /// Returns the line that does not match the format above, or that cannot follow the lines
    /// before it.
    pub fn read(text: &str) -> Result<Recording, Malformed> {
        let mut lines = (1..).zip(text.lines());
        let head = lines
            .find_map(|(line, text)| Some((line, text.trim_end().strip_prefix("percid-steps ")?)));
        let Some((line, head)) = head else {
            return Err(Malformed { line: 1, expected: "percid-steps".to_owned() });
        };
        let mut recording =
            Recording::begin(head).map_err(|expected| Malformed { line, expected })?;
        let mut state = ReplayState::new(&recording);
        for (line, text) in lines {
            if text.trim_end() == "end" {
                return Ok(recording);
            }
            let step = read_step(text).ok_or("TIME EVENT …, see the description".to_owned());
            let step = step.and_then(|step| state.advance(step).map(|()| step));
            recording.steps.push(step.map_err(|expected| Malformed { line, expected })?);
        }
        let line = text.lines().count();
        Err(Malformed { line, expected: "`end` after the last event".to_owned() })
    }

    fn begin(head: &str) -> Result<Recording, String> {
        let words: Vec<&str> = head.split(' ').collect();
        let [release, possible, allowed] = words[..] else {
            return Err("percid-steps RELEASE POSSIBLE-CPUS ALLOWED-CPUS".to_owned());
        };
        let number = |word: &str| word.parse().ok().filter(|&cpus| (1..=MOST_CPUS).contains(&cpus));
        match (number(possible), number(allowed)) {
            (Some(possible), Some(allowed)) if allowed <= possible => {
                Ok(Recording { release: release.to_owned(), possible, allowed, steps: Vec::new() })
            }
            _ => Err(format!("1 to {MOST_CPUS} possible CPUs and no more allowed ones")),
        }
    }

    /// Checks that every step can follow the ones before it, as [`Recording::read`] does.
    ///
    /// # Errors
    ///
    /// Returns the time, since the start, of the first step that cannot, and what was expected.
    pub fn check(&self) -> Result<(), (Ns, String)> {
        if !(1..=MOST_CPUS).contains(&self.possible) || !(1..=self.possible).contains(&self.allowed)
        {
            return Err((0, format!("1 to {MOST_CPUS} possible CPUs and no more allowed ones")));
        }
        let mut state = ReplayState::new(self);
        self.steps
            .iter()
            .try_for_each(|&step| state.advance(step).map_err(|what| (step.time, what)))
    }

    /// Replays the recording against a policy. If the recording was not read from text, the caller
    /// must [`check`](Recording::check) it before.
    pub fn compare(&self, entry: &PolicySpec) -> Conformance {
        self.compare_with(entry, std::iter::empty())
    }

    /// Compares like [`compare`](Recording::compare), but also accepts the outcomes of `others`:
    /// the same events in orders that the trace cannot distinguish. If one of them gives another ID
    /// at or before the first difference, the comparison ends there without a difference. They are
    /// replayed only if there is a difference.
    pub fn compare_with(
        &self,
        entry: &PolicySpec,
        others: impl IntoIterator<Item = Recording>,
    ) -> Conformance {
        let [exact, scaled @ ..] = PERCENT.map(|percent| self.replay(entry, percent));
        let is_same = |(a, b): &(&Difference, &Difference)| a == b;
        let alike = |until: usize, other: PolicyRun| {
            exact.ids[..until].iter().zip(&other.ids).take_while(is_same).count()
        };
        let decided = scaled.into_iter().fold(exact.ids.len(), alike);
        let first = exact.ids[..decided].iter().position(|id| id.expected != id.found);
        let is_doubtful = |&first: &usize| {
            let mut others = others.into_iter().map(|other| other.replay(entry, PERCENT[0]));
            others.any(|other| alike(first + 1, other) <= first)
        };
        let compared = first.filter(is_doubtful).unwrap_or(decided);
        let differs = |id: &&Difference| id.expected != id.found;
        Conformance {
            compared,
            agreed: first.unwrap_or(compared).min(compared),
            border: exact.ids.get(compared).map(|id| id.time),
            slow_paths: exact.work.slow_paths,
            expired: exact.work.expired,
            differences: exact.ids[..compared].iter().filter(differs).copied().collect(),
        }
    }

    /// Replays the recording with all durations scaled to `percent`, until the policy cannot go on.
    fn replay(&self, entry: &PolicySpec, percent: u64) -> PolicyRun {
        let place = |core| Place { core, l3: 0, socket: 0, node: 0 };
        let topology = Topology::new((0..self.possible).map(place).collect());
        let mut policy = (entry.create)(&topology);
        let mut state = ReplayState::new(self);
        let mut ids = Vec::new();
        for &Step { time, event } in &self.steps {
            // `read` or `check` has verified that every step can follow.
            let _ = state.advance(Step { time, event });
            let landed = match event {
                Event::Tick(_, _, ago) if percent < 100 => time.saturating_sub(Ns::from(ago) * US),
                _ => time,
            };
            let process = state.process(&topology, landed / 100 * percent);
            if let Event::Id(thread, found) = event {
                let Some(cpu) = state.cpu_of(thread) else { continue };
                let Ok(expected) = policy.id(&process, cpu, thread) else { break };
                ids.push(Difference { time, cpu, thread, expected, found });
            } else if tell(&mut *policy, &process, event).is_err() {
                break;
            }
        }
        PolicyRun { ids, work: policy.work() }
    }
}

/// The outcome of one replay: all requested IDs, and the policy's work.
struct PolicyRun {
    ids: Vec<Difference>,
    work: crate::policies::Work,
}

fn tell(policy: &mut dyn Policy, process: &Process<'_>, event: Event) -> Result<(), Impossible> {
    match event {
        Event::Exec(cpu, thread) => return policy.exec(process, cpu, thread),
        Event::Spawn(thread, _) => policy.spawn(process, thread),
        Event::Affinity(thread, _) => policy.affinity(process, thread),
        Event::Migrate(thread, from, to) => policy.migrate(process, thread, from, to),
        Event::Switch(cpu, prev, next) => return policy.switch(process, cpu, prev, next),
        Event::Tick(cpu, thread, _) => policy.tick(process, cpu, thread),
        Event::Exit(cpu, thread) | Event::Leave(cpu, thread) => policy.exit(process, thread, cpu),
        Event::Gone(_) | Event::Id(..) => {}
    }
    Ok(())
}

/// Maximum number of CPUs, the largest `NR_CPUS` that Linux can be built for. It prevents a number
/// in a recording from exhausting the memory.
const MOST_CPUS: u32 = 8192;

/// The state of the process at one moment.
struct ReplayState {
    allowed: u32,
    time: Ns,
    users: u32,
    thread_allowed: Vec<u32>,
    running: Vec<Option<Thread>>,
}

impl ReplayState {
    fn new(recording: &Recording) -> ReplayState {
        ReplayState {
            allowed: recording.allowed,
            time: 0,
            users: 0,
            thread_allowed: Vec::new(),
            running: vec![None; recording.possible as usize],
        }
    }

    fn process<'a>(&'a self, topology: &'a Topology, now: Ns) -> Process<'a> {
        Process {
            now,
            topology,
            users: self.users,
            nr_cpus_allowed: self.allowed,
            thread_allowed: &self.thread_allowed,
            running: &self.running,
        }
    }

    fn cpu_of(&self, thread: Thread) -> Option<Cpu> {
        self.running.iter().position(|&running| running == Some(thread)).map(|cpu| cpu as Cpu)
    }

    /// Advances to the state after `step`. Returns what was expected if that step cannot come now.
    fn advance(&mut self, step: Step) -> Result<(), String> {
        if step.time < self.time {
            return Err(format!("a time from {} us on", self.time / US));
        }
        self.time = step.time;
        match step.event {
            Event::Exec(cpu, thread) => self.exec(cpu, thread),
            Event::Spawn(thread, parent) => self.spawn(thread, parent),
            Event::Affinity(thread, weight) => {
                self.known(thread)?;
                self.thread_allowed[thread as usize] = weight;
                Ok(())
            }
            Event::Migrate(thread, from, to) => {
                self.known(thread)?;
                self.possible(from)?;
                self.possible(to)
            }
            Event::Switch(cpu, prev, next) => self.switch(cpu, prev, next),
            Event::Tick(cpu, thread, _) => self.runs(cpu, thread),
            Event::Exit(cpu, thread) => {
                self.runs(cpu, thread)?;
                self.end()
            }
            Event::Leave(cpu, thread) => self.runs(cpu, thread),
            Event::Gone(thread) => {
                self.known(thread)?;
                self.end()
            }
            Event::Id(thread, _) => match self.cpu_of(thread) {
                Some(_) => Ok(()),
                None => Err(format!("an ID of a running thread, which {thread} is not")),
            },
        }
    }

    fn exec(&mut self, cpu: Cpu, thread: Thread) -> Result<(), String> {
        self.possible(cpu)?;
        if thread != 0 || !self.thread_allowed.is_empty() {
            return Err("one exec, of thread 0, before everything else".to_owned());
        }
        self.thread_allowed.push(self.allowed);
        self.users = 1;
        self.running[cpu as usize] = Some(thread);
        Ok(())
    }

    fn spawn(&mut self, thread: Thread, parent: Thread) -> Result<(), String> {
        self.known(parent)?;
        if thread as usize != self.thread_allowed.len() {
            return Err(format!("thread {}, the next one", self.thread_allowed.len()));
        }
        self.thread_allowed.push(self.thread_allowed[parent as usize]);
        self.users += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        self.users = self.users.checked_sub(1).ok_or("a thread that has not ended")?;
        Ok(())
    }

    fn switch(
        &mut self,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) -> Result<(), String> {
        self.possible(cpu)?;
        if self.running[cpu as usize] != prev {
            return Err(match self.running[cpu as usize] {
                Some(thread) => format!("a switch away from thread {thread}"),
                None => "a switch away from no thread".to_owned(),
            });
        }
        if let Some(next) = next {
            self.known(next)?;
            if self.cpu_of(next).is_some_and(|running_on| running_on != cpu) {
                return Err(format!("a thread that does not run elsewhere, as {next} does"));
            }
        }
        self.running[cpu as usize] = next;
        let distinct = self.running.iter().flatten().count() as u32;
        if distinct > self.allowed {
            return Err(format!("at most {} running threads", self.allowed));
        }
        Ok(())
    }

    fn known(&self, thread: Thread) -> Result<(), String> {
        let count = self.thread_allowed.len();
        let known = (thread as usize) < count;
        known.then_some(()).ok_or_else(|| format!("one of the {count} threads so far"))
    }

    fn possible(&self, cpu: Cpu) -> Result<(), String> {
        let count = self.running.len();
        ((cpu as usize) < count).then_some(()).ok_or_else(|| format!("one of {count} CPUs"))
    }

    fn runs(&self, cpu: Cpu, thread: Thread) -> Result<(), String> {
        self.possible(cpu)?;
        let runs = self.running[cpu as usize] == Some(thread);
        runs.then_some(()).ok_or_else(|| format!("a thread that runs on CPU {cpu}"))
    }
}

/// Writes the text that [`Recording::read`] reads.
impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "percid-steps {} {} {}", self.release, self.possible, self.allowed)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        writeln!(f, "end")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_dash =
            |thread: Option<Thread>| thread.map_or("-".to_owned(), |thread| thread.to_string());
        write!(f, "{} ", self.time / US)?;
        match self.event {
            Event::Exec(cpu, thread) => write!(f, "exec {cpu} {thread}"),
            Event::Spawn(thread, parent) => write!(f, "spawn {thread} {parent}"),
            Event::Affinity(thread, cpus) => write!(f, "affinity {thread} {cpus}"),
            Event::Migrate(thread, from, to) => write!(f, "migrate {thread} {from} {to}"),
            Event::Switch(cpu, prev, next) => {
                write!(f, "switch {cpu} {} {}", or_dash(prev), or_dash(next))
            }
            Event::Tick(cpu, thread, 0) => write!(f, "tick {cpu} {thread}"),
            Event::Tick(cpu, thread, ago) => write!(f, "tick {cpu} {thread} {ago}"),
            Event::Exit(cpu, thread) => write!(f, "exit {cpu} {thread}"),
            Event::Leave(cpu, thread) => write!(f, "leave {cpu} {thread}"),
            Event::Gone(thread) => write!(f, "gone {thread}"),
            Event::Id(thread, id) => write!(f, "id {thread} {id}"),
        }
    }
}

fn read_step(text: &str) -> Option<Step> {
    let mut words = text.split_whitespace();
    let time = words.next()?.parse::<u64>().ok()?.checked_mul(US)?;
    if time > LATEST {
        return None;
    }
    let kind = words.next()?;
    let rest: Vec<Option<u32>> = words
        .map(|word| if word == "-" { Some(None) } else { word.parse().ok().map(Some) })
        .collect::<Option<_>>()?;
    let event = match (kind, &rest[..]) {
        ("exec", &[Some(cpu), Some(thread)]) => Event::Exec(cpu, thread),
        ("spawn", &[Some(thread), Some(parent)]) => Event::Spawn(thread, parent),
        ("affinity", &[Some(thread), Some(cpus)]) => Event::Affinity(thread, cpus),
        ("migrate", &[Some(thread), Some(from), Some(to)]) => Event::Migrate(thread, from, to),
        ("switch", &[Some(cpu), prev, next]) => Event::Switch(cpu, prev, next),
        ("tick", &[Some(cpu), Some(thread)]) => Event::Tick(cpu, thread, 0),
        ("tick", &[Some(cpu), Some(thread), Some(ago)]) => Event::Tick(cpu, thread, ago),
        ("exit", &[Some(cpu), Some(thread)]) => Event::Exit(cpu, thread),
        ("leave", &[Some(cpu), Some(thread)]) => Event::Leave(cpu, thread),
        ("gone", &[Some(thread)]) => Event::Gone(thread),
        ("id", &[Some(thread), Some(id)]) => Event::Id(thread, id),
        _ => return None,
    };
    Some(Step { time, event })
}
