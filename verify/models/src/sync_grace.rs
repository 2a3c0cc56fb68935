//! The grace periods of `percid-sync`: readers count themselves by the parity of a phase, and read a
//! pointer. One thread replaces what it points to, waits for a grace period, and frees the old one.
//!
//! The words are described in [`sync_words`](crate::sync_words). A version of the data is a number;
//! a grace period whose sums find readers sums again.

use crate::explore::Model;
use crate::sync_words::{CPUS, Cpu, Found, Passes, Words};

/// The safety property: no reader uses a version that was freed.
pub const FREED: &str = "P1 lifetime: no reader has a version that was freed";

/// Readers in the largest configuration.
pub const READERS: usize = 2;

/// An error in the protocol: a negative control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// There is no barrier on other CPUs.
    NoFence,
    /// The barrier comes before the new version is published.
    FenceFirst,
    /// The words are summed once.
    OnePass,
    /// Only the readers of the phase at the beginning are waited for.
    OneParity,
    /// Readers read the pointer before they count themselves.
    LoadFirst,
}

/// One configuration.
#[derive(Debug, Clone, Copy)]
pub struct SyncGrace {
    /// Number of readers.
    pub readers: u8,
    /// Number of times that each reader comes.
    pub rounds: u8,
    /// Number of versions that are published after the first.
    pub updates: u8,
    /// The error, if there is one.
    pub flaw: Option<Flaw>,
}

/// The next step of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadStep {
    /// Nothing in progress.
    Out,
    /// Read the phase.
    Phase,
    /// Count the entry in the number of this parity.
    Enter(u8),
    /// Read the pointer.
    Load(u8),
    /// Use this version, and stop.
    Inside(u8, u8),
    /// Count the exit.
    Leave(u8),
}

/// A reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reader {
    /// The next step.
    pub step: ReadStep,
    /// The CPU.
    pub cpu: Cpu,
    /// The version that was read before the entry: of a negative control.
    pub early: u8,
    /// The number of times that it may come.
    pub left: u8,
}

/// The next step of the updater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Nothing in progress.
    Out,
    /// Publish the next version.
    Publish,
    /// Run a barrier on the CPUs in the set.
    Fence(u8),
    /// Sum the words of the parity that is not the phase's.
    Other(Passes),
    /// Change the phase.
    Flip,
    /// Sum the words of the parity that the phase had.
    Old(Passes),
    /// Free the version before.
    Free,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    words: [Words; 2],
    phase: u8,
    /// The version that others see.
    pointer: u8,
    /// The version that was published last.
    published: u8,
    /// The versions below are freed.
    freed: u8,
    readers: [Reader; READERS],
    updater: Step,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A reader takes its next step.
    Reader(usize),
    /// A reader moves to the other CPU.
    Move(usize),
    /// The oldest operation of a CPU on the words of a parity becomes visible.
    Flush(usize, Cpu),
    /// The updater's store becomes visible.
    FlushPointer,
    /// The updater takes its next step; in a fence, on this CPU.
    Updater(Cpu),
}

impl SyncGrace {
    /// Returns the protocol with one reader that comes three times, and two updates.
    #[must_use]
    pub const fn new() -> Self {
        Self { readers: 1, rounds: 3, updates: 2, flaw: None }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn reader_step(&self, state: &mut State, nr: usize) {
        let reader = &mut state.readers[nr];
        reader.step = match reader.step {
            ReadStep::Out => {
                reader.left -= 1;
                ReadStep::Phase
            }
            ReadStep::Phase => {
                reader.early = if self.has(Flaw::LoadFirst) { state.pointer } else { 0 };
                ReadStep::Enter(state.phase)
            }
            ReadStep::Enter(parity) => {
                state.words[usize::from(parity)].count(reader.cpu, true);
                ReadStep::Load(parity)
            }
            ReadStep::Load(parity) => {
                let early = self.has(Flaw::LoadFirst);
                ReadStep::Inside(parity, if early { reader.early } else { state.pointer })
            }
            ReadStep::Inside(parity, _) => ReadStep::Leave(parity),
            ReadStep::Leave(parity) => {
                state.words[usize::from(parity)].count(reader.cpu, false);
                ReadStep::Out
            }
        };
    }

    fn updater_step(&self, state: &mut State, cpu: Cpu) {
        let other = Step::Other(Passes::default());
        let old = Step::Old(Passes::default());
        let all = (1 << CPUS) - 1;
        state.updater = match state.updater {
            Step::Out if self.has(Flaw::FenceFirst) => Step::Fence(all),
            Step::Out => Step::Publish,
            Step::Publish => {
                state.published += 1;
                let fenced = self.has(Flaw::FenceFirst) || self.has(Flaw::NoFence);
                if fenced {
                    // A fence of the updater's own.
                    state.pointer = state.published;
                    other
                } else {
                    Step::Fence(all)
                }
            }
            Step::Fence(left) => {
                state.pointer = state.published;
                state.words.iter_mut().for_each(|words| words.barrier(cpu));
                match left & !(1 << cpu) {
                    0 if self.has(Flaw::FenceFirst) => Step::Publish,
                    0 if self.has(Flaw::OneParity) => Step::Flip,
                    0 => other,
                    left => Step::Fence(left),
                }
            }
            Step::Other(passes) => {
                self.sum(state, 1 - state.phase, passes, Step::Other, Step::Flip)
            }
            Step::Flip => {
                state.phase = 1 - state.phase;
                old
            }
            Step::Old(passes) => self.sum(state, 1 - state.phase, passes, Step::Old, Step::Free),
            Step::Free => {
                state.freed = state.published;
                Step::Out
            }
        };
    }

    fn sum(
        &self,
        state: &State,
        parity: u8,
        mut passes: Passes,
        again: fn(Passes) -> Step,
        next: Step,
    ) -> Step {
        match passes.step(&state.words[usize::from(parity)], self.has(Flaw::OnePass)) {
            Found::Pending => again(passes),
            Found::None => next,
            Found::Some => again(Passes::default()),
        }
    }
}

impl Default for SyncGrace {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for SyncGrace {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let reader = |nr: u8| Reader {
            step: ReadStep::Out,
            cpu: nr % CPUS as u8,
            early: 0,
            left: if nr < self.readers { self.rounds } else { 0 },
        };
        vec![State {
            words: [Words::default(); 2],
            phase: 0,
            pointer: 0,
            published: 0,
            freed: 0,
            readers: std::array::from_fn(|nr| reader(nr as u8)),
            updater: Step::Out,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        for (nr, reader) in state.readers.iter().enumerate().take(self.readers.into()) {
            let may = match reader.step {
                ReadStep::Out => reader.left > 0,
                ReadStep::Enter(parity) | ReadStep::Leave(parity) => {
                    state.words[usize::from(parity)].has_room(reader.cpu)
                }
                _ => true,
            };
            if may {
                out.push(Action::Reader(nr));
            }
            if reader.step != ReadStep::Out {
                out.push(Action::Move(nr));
            }
        }
        for (parity, words) in state.words.iter().enumerate() {
            let waiting = (0..CPUS as Cpu).filter(|&cpu| words.waits(cpu));
            out.extend(waiting.map(|cpu| Action::Flush(parity, cpu)));
        }
        if state.pointer != state.published {
            out.push(Action::FlushPointer);
        }
        match state.updater {
            Step::Out if state.published == self.updates => {}
            Step::Fence(left) => {
                let cpus = (0..CPUS as Cpu).filter(|cpu| left & 1 << cpu != 0);
                out.extend(cpus.map(Action::Updater));
            }
            _ => out.push(Action::Updater(0)),
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Reader(nr) => self.reader_step(&mut next, nr),
            Action::Move(nr) => {
                for words in &mut next.words {
                    (0..CPUS as Cpu).for_each(|cpu| words.barrier(cpu));
                }
                next.readers[nr].cpu ^= 1;
            }
            Action::Flush(parity, cpu) => next.words[parity].flush_one(cpu),
            Action::FlushPointer => next.pointer = next.published,
            Action::Updater(cpu) => self.updater_step(&mut next, cpu),
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        *state
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        let uses_freed = |reader: &Reader| match reader.step {
            ReadStep::Inside(_, version) => version < state.freed,
            _ => false,
        };
        state.readers.iter().any(uses_freed).then_some(FREED)
    }

    fn begins(&self, before: &State, action: Action) -> bool {
        match action {
            Action::Reader(nr) => before.readers[nr].step == ReadStep::Out,
            Action::Updater(_) => before.updater == Step::Out,
            _ => false,
        }
    }

    fn at_rest(&self, state: &State) -> bool {
        let readers_are = state.readers.iter().all(|reader| reader.step == ReadStep::Out);
        readers_are && state.updater == Step::Out
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        match action {
            Action::Reader(nr) => {
                let reader = before.readers[nr];
                (format!("R{nr}"), format!("{:?} on CPU {}", reader.step, reader.cpu))
            }
            Action::Move(nr) => (format!("R{nr}"), "moves".into()),
            Action::Flush(_, cpu) => (format!("CPU {cpu}"), "an operation becomes visible".into()),
            Action::FlushPointer => ("U".into(), "the version becomes visible".into()),
            Action::Updater(cpu) => ("U".into(), format!("{:?} (CPU {cpu})", before.updater)),
        }
    }

    fn picture(&self, state: &State) -> String {
        let (phase, pointer, freed) = (state.phase, state.pointer, state.freed);
        format!("phase: {phase}, pointer: {pointer}, freed below {freed}, {:?}", state.words)
    }
}
