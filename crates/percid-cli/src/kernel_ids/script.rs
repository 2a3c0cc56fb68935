//! What the threads of the experiment do, and when.
//!
//! The first thread visits every CPU, highest number first: IDs that are the numbers of CPUs show
//! at once. Then there is one more thread for each CPU. They meet, so that every CPU holds an ID;
//! then each in turn has its CPU to itself, with pauses after which a CPU that forgets has
//! forgotten. One of them moves. At last they end, and the only one left looks, and visits every
//! CPU again: IDs that shrink show here.

/// The thread that is there from the beginning.
pub(super) const FIRST: usize = 0;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Starts the next thread.
    Start,
    /// Moves to a CPU, by its place among those of the experiment, and looks at its ID.
    Go(usize),
    /// Stays on its CPU for this many milliseconds, and looks at its ID.
    Stay(u64),
    /// Ends.
    End,
}

/// An act, and when it begins: in milliseconds since the beginning of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) thread: usize,
    pub(super) at_ms: u64,
    pub(super) act: Act,
}

/// Most CPUs that take part: more would make it longer, and nothing clearer.
pub(super) const MOST_CPUS: usize = 3;

/// Long enough for two ticks of 4 ms, the usual length, and for one of 10 ms: kernels that scan do
/// so in a tick.
pub(super) const HOLD_MS: u64 = 12;

/// Between the turns: longer than the 100 ms for which an ID stays unused, by more than a few
/// ticks.
const PAUSE_MS: u64 = 150;

/// Long enough for threads to be gone where others use the CPUs too. A thread that joins them runs
/// too early: the kernel wakes it while it still counts them, and the thread then keeps the ID it
/// takes.
const END_MS: u64 = 60;

/// Long enough to be moved to another CPU.
const MOMENT_MS: u64 = 4;

/// The script for this many CPUs, at least two, in the order of time.
pub(super) fn script(cpus: usize) -> Vec<Step> {
    let mut script = Writer { steps: Vec::new(), now_ms: 1 };
    (0..cpus).for_each(|cpu| script.act(FIRST, Act::Go(cpu)));
    script.act(FIRST, Act::Go(0));
    (0..cpus).for_each(|_| script.act(FIRST, Act::Start));
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
    script.act(FIRST, Act::Stay(0));
    (0..cpus).rev().for_each(|cpu| script.act(FIRST, Act::Go(cpu)));
    script.steps
}

struct Writer {
    steps: Vec<Step>,
    now_ms: u64,
}

impl Writer {
    fn push(&mut self, thread: usize, act: Act) {
        self.steps.push(Step { thread, at_ms: self.now_ms, act });
    }

    /// Something that takes a moment.
    fn act(&mut self, thread: usize, act: Act) {
        self.push(thread, act);
        self.now_ms += MOMENT_MS;
    }

    /// A thread has the process for itself after a pause, on another CPU if that is said.
    fn turn(&mut self, thread: usize, cpu: Option<usize>) {
        self.now_ms += PAUSE_MS;
        if let Some(cpu) = cpu {
            self.push(thread, Act::Go(cpu));
        }
        self.push(thread, Act::Stay(HOLD_MS));
        self.now_ms += HOLD_MS;
    }
}
