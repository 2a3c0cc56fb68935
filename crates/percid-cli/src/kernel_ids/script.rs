//! The actions of the experiment's threads, and their times.
//!
//! The first thread visits every CPU, highest number first: this shows at once if IDs are the
//! numbers of CPUs. Then there is one more thread for each CPU. They meet, so that every CPU holds
//! an ID. After that each in turn is the only running thread of the process, with pauses that
//! exceed the time after which kernels release a CPU's ID. One of them moves. At last they end. The
//! remaining thread reads its ID, and visits every CPU again: this shows if the number of IDs
//! shrinks.

/// The initial thread.
pub(super) const FIRST_THREAD: usize = 0;

/// An action of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Starts the next thread.
    Start,
    /// Moves to a CPU, by its position among those of the experiment, and reads its ID.
    Go(usize),
    /// Stays on its CPU for this many milliseconds, and reads its ID.
    Stay(u64),
    /// Ends.
    End,
}

/// An action, and its time in milliseconds since the beginning of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptStep {
    pub(super) thread: usize,
    pub(super) at_ms: u64,
    pub(super) act: Act,
}

/// Maximum number of CPUs that take part: more would make it longer, and nothing clearer.
pub(super) const MOST_CPUS: usize = 3;

/// Long enough for two ticks of 4 ms, the usual period, and for one of 10 ms: kernels that scan do
/// so in a tick.
pub(super) const HOLD_MS: u64 = 12;

/// Pause between the turns: longer than the 100 ms for which an ID stays unused, by more than a few
/// ticks.
const PAUSE_MS: u64 = 150;

/// Long enough for threads to have ended even if others use the CPUs. A thread that joins them
/// would run too early: the kernel wakes it while it still counts them, and the thread then keeps
/// the ID it takes.
const END_MS: u64 = 60;

/// Long enough for a move to another CPU.
const MOMENT_MS: u64 = 4;

/// Returns the script for this many CPUs, at least two, ordered by time.
pub(super) fn script(cpus: usize) -> Vec<ScriptStep> {
    let mut script = Writer { steps: Vec::new(), now_ms: 1 };
    (0..cpus).for_each(|cpu| script.act(FIRST_THREAD, Act::Go(cpu)));
    script.act(FIRST_THREAD, Act::Go(0));
    (0..cpus).for_each(|_| script.act(FIRST_THREAD, Act::Start));
    let meeting_ms = MOMENT_MS * cpus as u64;
    for cpu in 0..cpus {
        script.act(1 + cpu, Act::Go(cpu));
        script.push(1 + cpu, Act::Stay(meeting_ms - MOMENT_MS * cpu as u64));
    }
    script.now_ms += meeting_ms;
    for _ in 0..2 {
        // Neither the order in which they met, nor the opposite one.
        for cpu in (0..cpus).map(|nr| (nr + 1) % cpus) {
            script.turn(1 + cpu, None);
        }
    }
    script.turn(1, Some(1));
    script.turn(1, Some(0));
    for thread in 1..=cpus {
        script.act(thread, Act::End);
        script.now_ms += MOMENT_MS;
    }
    script.now_ms += END_MS;
    script.act(FIRST_THREAD, Act::Stay(0));
    (0..cpus).rev().for_each(|cpu| script.act(FIRST_THREAD, Act::Go(cpu)));
    script.steps
}

struct Writer {
    steps: Vec<ScriptStep>,
    now_ms: u64,
}

impl Writer {
    fn push(&mut self, thread: usize, act: Act) {
        self.steps.push(ScriptStep { thread, at_ms: self.now_ms, act });
    }

    /// Adds an action that takes a moment.
    fn act(&mut self, thread: usize, act: Act) {
        self.push(thread, act);
        self.now_ms += MOMENT_MS;
    }

    /// Makes a thread the only running one after a pause, on another CPU if `cpu` is given.
    fn turn(&mut self, thread: usize, cpu: Option<usize>) {
        self.now_ms += PAUSE_MS;
        if let Some(cpu) = cpu {
            self.push(thread, Act::Go(cpu));
        }
        self.push(thread, Act::Stay(HOLD_MS));
        self.now_ms += HOLD_MS;
    }
}
