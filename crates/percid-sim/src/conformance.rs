//! Replays a recorded schedule of one process, and compares the IDs that a policy gives with those
//! that the kernel gave.
//!
//! The recording is text, one event a line, times in microseconds:
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
//! Threads are numbered from 0 in the order of their creation; `-` is no thread of the process. It
//! begins when the process starts its program, so that nothing before it matters. `id` is the ID
//! that a running thread has by the kernel's word. A thread that shares the memory of its process
//! to replace its program, as after `vfork`, leaves first: it gives its ID back and takes none any
//! more. It counts until it is gone. The union of the allowed CPUs does not change.
//!
//! # What lies on the border
//!
//! The kernel counts the 100 ms of its scans in timer ticks, and ages by clocks that may lag behind
//! by a tick, so a decision that falls on the border can go either way. [`Recording::compare`]
//! therefore replays a recording several times, with all durations as they are, and shortened and
//! lengthened by up to [`SLACK_PERCENT`]. From the first ID on in which the replays differ, nothing
//! is compared.
//!
//! A kernel scans when the ticked thread returns to user space, perhaps in its next turn only: such
//! a tick stands there and says how long ago it landed, in microseconds. Whether a scan is due is
//! decided when it lands, and what is too old when the thread returns; so the shortened replays
//! take the first time for both, the others the second.

use std::fmt;

use percid_rules::Generation;

use crate::policies::{Entry, Id, Impossible, Policy, Process, Thread, of_generation};
use crate::time::{MS, Ns, US};
use crate::topology::{Cpu, Place, Topology};

/// How far from a border a decision must be to count, in percent of 100 ms: four ticks of 4 ms,
/// for the tick that counts, the lag of a clock, and the way from the tick to the scan.
pub const SLACK_PERCENT: u64 = 16;

/// The durations of the replays, in percent of what they are; the true ones first.
const PERCENT: [u64; 5] = [
    100,
    100 - SLACK_PERCENT,
    100 - SLACK_PERCENT / 2,
    100 + SLACK_PERCENT / 2,
    100 + SLACK_PERCENT,
];

/// The latest time in a recording: some centuries, and room for durations that are lengthened.
const LATEST: Ns = i64::MAX as Ns;

/// The policy of the generation at which a kernel's release hints, such as `6.18.44-amd64`.
/// `None` if it has no IDs, or does not say.
pub fn generation(release: &str) -> Option<&'static Entry> {
    Generation::hinted_by(release).map(of_generation)
}

/// What happened in a process, from its start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// The kernel's release.
    pub release: String,
    /// The CPUs that may ever exist.
    pub possible: u32,
    /// The CPUs allowed to the process.
    pub allowed: u32,
    /// What happened, in this order.
    pub steps: Vec<Step>,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When, since the start.
    pub time: Ns,
    /// What.
    pub event: Event,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A thread replaced the program.
    Exec(Cpu, Thread),
    /// A thread was created, with the affinity of its parent.
    Spawn(Thread, Thread),
    /// A thread may use this number of CPUs from now on.
    Affinity(Thread, u32),
    /// A thread was queued on another CPU.
    Migrate(Thread, Cpu, Cpu),
    /// A CPU switched.
    Switch(Cpu, Option<Thread>, Option<Thread>),
    /// The timer tick found a thread running this many microseconds ago, and the thread returns to
    /// user space now.
    Tick(Cpu, Thread, u32),
    /// A thread began to end.
    Exit(Cpu, Thread),
    /// A running thread asked for another program: it has no use for an ID of this process any
    /// more.
    Leave(Cpu, Thread),
    /// A thread that left is not counted any more.
    Gone(Thread),
    /// A running thread has this ID.
    Id(Thread, Id),
}

/// Text that is no recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for Malformed {}

/// An ID that is not the policy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// When the thread had it, since the start.
    pub time: Ns,
    /// Where the thread ran.
    pub cpu: Cpu,
    /// The thread.
    pub thread: Thread,
    /// What the policy gives.
    pub expected: Id,
    /// What the kernel gave.
    pub found: Id,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { time, cpu, thread, expected, found } = self;
        let ms = time / MS;
        write!(f, "{ms} ms, CPU {cpu}, thread {thread}: expected ID {expected}, found {found}")
    }
}

/// What a replay found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conformance {
    /// How many IDs were compared.
    pub compared: usize,
    /// How many of them come before the first that differs; all if none does.
    pub agreed: usize,
    /// The time, since the start, from which on nothing is compared, because the policy's IDs
    /// depend on [`SLACK_PERCENT`] more or less, or are others in another order that is as
    /// possible.
    pub border: Option<Ns>,
    /// How many IDs the policy had to look for, in the whole recording.
    pub slow_paths: u64,
    /// How many IDs scans took back, in the whole recording.
    pub expired: u64,
    /// Where kernel and policy differ.
    pub differences: Vec<Difference>,
}

impl Conformance {
    /// Whether something was compared, and policy and kernel were of one mind.
    pub fn agrees(&self) -> bool {
        self.compared > 0 && self.differences.is_empty()
    }
}

/// The counts in one line, then the first differences in a line each.
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

/// After the first difference most others follow from it.
const MOST_SHOWN: usize = 10;

impl Recording {
    /// Reads the first recording in `text`, which may have other lines around it.
    ///
    /// # Errors
    ///
    /// The line that is not as described above, or that cannot follow the ones before it.
    pub fn read(text: &str) -> Result<Recording, Malformed> {
        let mut lines = (1..).zip(text.lines());
        let head = lines
            .find_map(|(line, text)| Some((line, text.trim_end().strip_prefix("percid-steps ")?)));
        let Some((line, head)) = head else {
            return Err(Malformed { line: 1, expected: "percid-steps".to_owned() });
        };
        let mut recording =
            Recording::begin(head).map_err(|expected| Malformed { line, expected })?;
        let mut state = State::new(&recording);
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

    /// Looks whether every step can follow the ones before it, as [`Recording::read`] does.
    ///
    /// # Errors
    ///
    /// The time of the first step that cannot, since the start, and what was expected.
    pub fn check(&self) -> Result<(), (Ns, String)> {
        if !(1..=MOST_CPUS).contains(&self.possible) || !(1..=self.possible).contains(&self.allowed)
        {
            return Err((0, format!("1 to {MOST_CPUS} possible CPUs and no more allowed ones")));
        }
        let mut state = State::new(self);
        self.steps
            .iter()
            .try_for_each(|&step| state.advance(step).map_err(|what| (step.time, what)))
    }

    /// Replays the recording against a policy. One that was not read is to be checked before.
    pub fn compare(&self, entry: &Entry) -> Conformance {
        self.compare_with(entry, std::iter::empty())
    }

    /// The same where `others` may have happened as well: the same events, in orders that the trace
    /// does not tell apart. Where one of them would have made another ID by then, the first
    /// difference is none: it ends the comparison. They are only replayed if there is a difference.
    pub fn compare_with(
        &self,
        entry: &Entry,
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

    /// Replays with all durations at `percent` of what they are, up to where the policy cannot go
    /// on.
    fn replay(&self, entry: &Entry, percent: u64) -> PolicyRun {
        let place = |core| Place { core, l3: 0, socket: 0, node: 0 };
        let topology = Topology::new((0..self.possible).map(place).collect());
        let mut policy = (entry.create)(&topology);
        let mut state = State::new(self);
        let mut ids = Vec::new();
        for &Step { time, event } in &self.steps {
            // `read` has seen that every step can follow.
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

/// What one replay gave: every ID that was asked for.
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

/// More CPUs than Linux can be built for, so that a number in a recording cannot exhaust the
/// memory.
const MOST_CPUS: u32 = 8192;

/// The process at one moment.
struct State {
    allowed: u32,
    time: Ns,
    users: u32,
    thread_allowed: Vec<u32>,
    running: Vec<Option<Thread>>,
}

impl State {
    fn new(recording: &Recording) -> State {
        State {
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

    /// Goes on to the state after `step`; says what was expected if that step cannot come now.
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

/// The text that [`Recording::read`] reads.
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
