//! The readers-writer lock of `percid-sync`: readers count themselves and then test a word, with
//! the barrier on the writer's side.
//!
//! A writer closes the lock, runs a barrier on all CPUs, and sums the readers' words twice, under
//! the mutex. If readers may be inside it sleeps, until a reader that leaves finds the lock closed
//! and wakes it, which needs the mutex. The words are described in [`sync_words`](crate::sync_words).
//!
//! Readers that are refused do not wait here: they leave and are done. Turns that are handed over
//! are left out: nothing but the mutex takes part in them.

use crate::explore::Model;
use crate::sync_words::{CPUS, Cpu, Found, Passes, Words};

/// The safety property: a reader and a writer are never inside together.
pub const SHARED: &str = "P1 exclusion: no reader is inside with a writer";

/// Readers in the largest configuration.
pub const READERS: usize = 3;

/// An error in the protocol: a negative control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The writer runs no barrier on other CPUs.
    NoFence,
    /// The barrier comes before the lock is closed.
    FenceFirst,
    /// Readers test before they count themselves.
    TestFirst,
    /// The words are summed once.
    OnePass,
    /// A reader tests whether to wake the writer before it leaves.
    WakeFirst,
    /// A reader wakes the writer without the mutex.
    NoMutex,
}

/// One configuration.
#[derive(Debug, Clone, Copy)]
pub struct SyncLock {
    /// Number of readers.
    pub readers: u8,
    /// Number of times that each reader comes.
    pub rounds: u8,
    /// Number of times that the writer comes.
    pub writes: u8,
    /// The error, if there is one.
    pub flaw: Option<Flaw>,
}

/// The next step of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadStep {
    /// Nothing in progress.
    Out,
    /// Negative control: test whether the lock is open, before counting.
    EarlyTest,
    /// Count the entry; afterwards test the lock, unless that was done.
    Enter {
        /// `true` if the lock was tested.
        tested: bool,
    },
    /// Test whether the lock is open.
    Test,
    /// Read the data, and stop.
    Inside,
    /// Count the exit.
    Leave {
        /// The result of the test, if that was done early.
        wake: Option<bool>,
    },
    /// Test whether a writer may wait.
    WakeTest,
    /// Wake the writer.
    Wake,
}

/// A reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reader {
    /// The next step.
    pub step: ReadStep,
    /// The CPU.
    pub cpu: Cpu,
    /// The number of times that it may come.
    pub left: u8,
}

/// The next step of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteStep {
    /// Nothing in progress.
    Out,
    /// Store that the lock is closed.
    Close,
    /// Run a barrier on the CPUs in the set.
    Fence(u8),
    /// Sum the words.
    Sum(Passes),
    /// Negative control: the sum has found readers, and the writer is about to sleep.
    Tired,
    /// Asleep until a reader wakes it.
    Asleep,
    /// Write.
    Inside,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    words: Words,
    /// `true` if the lock is closed, for others than the writer.
    closed: bool,
    /// `true` if the writer's store waits in its buffer.
    closing: bool,
    readers: [Reader; READERS],
    writer: WriteStep,
    writes_left: u8,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A reader takes its next step.
    Reader(usize),
    /// A reader moves to the other CPU.
    Move(usize),
    /// The oldest operation of a CPU becomes visible.
    Flush(Cpu),
    /// The writer's store becomes visible.
    FlushWriter,
    /// The writer takes its next step; in a fence, on this CPU.
    Writer(Cpu),
}

impl SyncLock {
    /// Returns the protocol with two readers that come twice, and a writer.
    #[must_use]
    pub const fn new() -> Self {
        Self { readers: 2, rounds: 2, writes: 1, flaw: None }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn can_step(&self, state: &State, reader: &Reader) -> bool {
        match reader.step {
            ReadStep::Out => reader.left > 0,
            ReadStep::Enter { .. } | ReadStep::Leave { .. } => state.words.has_room(reader.cpu),
            // The writer sums under the mutex.
            ReadStep::Wake => self.has(Flaw::NoMutex) || !matches!(state.writer, WriteStep::Sum(_)),
            _ => true,
        }
    }

    fn reader_step(&self, state: &mut State, nr: usize) {
        let closed = state.closed;
        let reader = &mut state.readers[nr];
        let cpu = reader.cpu;
        reader.step = match reader.step {
            ReadStep::Out => {
                reader.left -= 1;
                match self.flaw {
                    Some(Flaw::TestFirst) => ReadStep::EarlyTest,
                    _ => ReadStep::Enter { tested: false },
                }
            }
            ReadStep::EarlyTest if closed => ReadStep::Out,
            ReadStep::EarlyTest => ReadStep::Enter { tested: true },
            ReadStep::Enter { tested } => {
                state.words.count(cpu, true);
                if tested { ReadStep::Inside } else { ReadStep::Test }
            }
            ReadStep::Test if closed => ReadStep::Leave { wake: self.early_wake(closed) },
            ReadStep::Test => ReadStep::Inside,
            ReadStep::Inside => ReadStep::Leave { wake: self.early_wake(closed) },
            ReadStep::Leave { wake } => {
                state.words.count(cpu, false);
                match wake {
                    None => ReadStep::WakeTest,
                    Some(true) => ReadStep::Wake,
                    Some(false) => ReadStep::Out,
                }
            }
            ReadStep::WakeTest if closed => ReadStep::Wake,
            ReadStep::WakeTest => ReadStep::Out,
            ReadStep::Wake => {
                // The mutex is a barrier.
                state.words.barrier(cpu);
                if state.writer == WriteStep::Asleep {
                    state.writer = WriteStep::Sum(Passes::default());
                }
                ReadStep::Out
            }
        };
    }

    fn early_wake(&self, closed: bool) -> Option<bool> {
        self.has(Flaw::WakeFirst).then_some(closed)
    }

    fn writer_step(&self, state: &mut State, cpu: Cpu) {
        let all = (1 << CPUS) - 1;
        let sum = WriteStep::Sum(Passes::default());
        state.writer = match state.writer {
            WriteStep::Out => {
                state.writes_left -= 1;
                if self.has(Flaw::FenceFirst) { WriteStep::Fence(all) } else { WriteStep::Close }
            }
            WriteStep::Close => {
                state.closing = true;
                let fenced = self.has(Flaw::FenceFirst) || self.has(Flaw::NoFence);
                // A fence of the writer's own.
                if fenced {
                    state.flush_writer();
                }
                if fenced { sum } else { WriteStep::Fence(all) }
            }
            WriteStep::Fence(left) => {
                state.flush_writer();
                state.words.barrier(cpu);
                match left & !(1 << cpu) {
                    0 if self.has(Flaw::FenceFirst) => WriteStep::Close,
                    0 => sum,
                    left => WriteStep::Fence(left),
                }
            }
            WriteStep::Sum(mut passes) => {
                match passes.step(&state.words, self.has(Flaw::OnePass)) {
                    Found::Pending => WriteStep::Sum(passes),
                    Found::None => WriteStep::Inside,
                    Found::Some if self.has(Flaw::NoMutex) => WriteStep::Tired,
                    Found::Some => WriteStep::Asleep,
                }
            }
            WriteStep::Tired | WriteStep::Asleep => WriteStep::Asleep,
            WriteStep::Inside => {
                state.closed = false;
                WriteStep::Out
            }
        };
    }
}

impl State {
    fn flush_writer(&mut self) {
        self.closed |= std::mem::take(&mut self.closing);
    }
}

impl Default for SyncLock {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for SyncLock {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let reader = |nr: u8| Reader {
            step: ReadStep::Out,
            cpu: nr % CPUS as u8,
            left: if nr < self.readers { self.rounds } else { 0 },
        };
        vec![State {
            words: Words::default(),
            closed: false,
            closing: false,
            readers: std::array::from_fn(|nr| reader(nr as u8)),
            writer: WriteStep::Out,
            writes_left: self.writes,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        for (nr, reader) in state.readers.iter().enumerate().take(self.readers.into()) {
            if self.can_step(state, reader) {
                out.push(Action::Reader(nr));
            }
            if reader.step != ReadStep::Out {
                out.push(Action::Move(nr));
            }
        }
        let cpus = 0..CPUS as Cpu;
        out.extend(cpus.clone().filter(|&cpu| state.words.waits(cpu)).map(Action::Flush));
        if state.closing {
            out.push(Action::FlushWriter);
        }
        match state.writer {
            WriteStep::Out if state.writes_left == 0 => {}
            WriteStep::Asleep => {}
            WriteStep::Fence(left) => {
                out.extend(cpus.filter(|cpu| left & 1 << cpu != 0).map(Action::Writer));
            }
            _ => out.push(Action::Writer(0)),
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Reader(nr) => self.reader_step(&mut next, nr),
            Action::Move(nr) => {
                (0..CPUS as Cpu).for_each(|cpu| next.words.barrier(cpu));
                next.readers[nr].cpu ^= 1;
            }
            Action::Flush(cpu) => next.words.flush_one(cpu),
            Action::FlushWriter => next.flush_writer(),
            Action::Writer(cpu) => self.writer_step(&mut next, cpu),
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        *state
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        let reading = state.readers.iter().any(|reader| reader.step == ReadStep::Inside);
        (reading && state.writer == WriteStep::Inside).then_some(SHARED)
    }

    fn begins(&self, before: &State, action: Action) -> bool {
        match action {
            Action::Reader(nr) => before.readers[nr].step == ReadStep::Out,
            Action::Writer(_) => before.writer == WriteStep::Out,
            _ => false,
        }
    }

    fn at_rest(&self, state: &State) -> bool {
        let readers_are = state.readers.iter().all(|reader| reader.step == ReadStep::Out);
        readers_are && state.writer == WriteStep::Out
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        match action {
            Action::Reader(nr) => {
                let reader = before.readers[nr];
                (format!("R{nr}"), format!("{:?} on CPU {}", reader.step, reader.cpu))
            }
            Action::Move(nr) => (format!("R{nr}"), "moves".into()),
            Action::Flush(cpu) => (format!("CPU {cpu}"), "an operation becomes visible".into()),
            Action::FlushWriter => ("W".into(), "the store becomes visible".into()),
            Action::Writer(cpu) => ("W".into(), format!("{:?} (CPU {cpu})", before.writer)),
        }
    }

    fn picture(&self, state: &State) -> String {
        format!("closed: {}, words: {:?}", state.closed, state.words)
    }
}
