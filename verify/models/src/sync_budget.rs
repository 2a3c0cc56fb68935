//! The limit of `percid-sync`: credits by ID, and the units that are left for all.
//!
//! A charge of a credit is one step, since it is one critical section that compares. A thread may be
//! on any CPU at each step. A visit takes a credit in one step.

use crate::explore::Model;

/// The safety property: the limit is never exceeded.
pub const EXCEEDED: &str = "P1 limit: no more than the limit is charged";

/// CPUs, and credits.
const CPUS: usize = 2;
/// Threads in the largest configuration.
const THREADS: usize = 3;

/// An error in the protocol: a negative control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A charge subtracts first, and gives back what made a credit negative.
    Undo,
    /// A batch is given to a credit before it is taken from the units that are left.
    GiveFirst,
    /// Collected credits are added to the units that are left before they are taken.
    TornCollect,
}

/// One configuration.
#[derive(Debug, Clone, Copy)]
pub struct SyncBudget {
    /// The limit.
    pub limit: i8,
    /// Number of threads.
    pub threads: u8,
    /// Number of charges of each.
    pub charges: u8,
    /// The error, if there is one.
    pub flaw: Option<Flaw>,
}

/// The next step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Between two operations.
    Out,
    /// Charge the credit of the CPU.
    Credit,
    /// Negative control: look at the credit of this CPU, which was charged.
    Look(u8),
    /// Negative control: give back what was charged, to the CPU's credit.
    Undo,
    /// Charge what is left, and take a batch; after a collection if `true`.
    Left(bool),
    /// Give a batch to the CPU's credit; afterwards take it, in a negative control.
    Give {
        /// `true` if the batch is to be taken.
        take: bool,
    },
    /// Negative control: take a batch from what is left.
    Take,
    /// Collect the credit of this CPU.
    Collect(u8),
    /// Negative control: take the credit, which was this, from this CPU.
    Torn(u8, i8),
    /// Release what was charged.
    Release,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    step: Step,
    charged: i8,
    left: u8,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    credits: [i8; CPUS],
    left: i8,
    /// `true` while a thread collects.
    collecting: bool,
    threads: [Thread; THREADS],
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A thread begins to charge a unit.
    Charge(usize),
    /// A thread begins to release a unit.
    Release(usize),
    /// A thread takes its next step, on a CPU.
    Thread(usize, u8),
}

impl SyncBudget {
    /// Returns the protocol with two threads that charge three times, and a limit of three units.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: 3, threads: 2, charges: 3, flaw: None }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn step(&self, state: &mut State, nr: usize, cpu: u8) {
        let thread = &mut state.threads[nr];
        let seen = state.credits;
        let credit = &mut state.credits[usize::from(cpu)];
        thread.step = match thread.step {
            Step::Out => Step::Out,
            Step::Credit if self.has(Flaw::Undo) => {
                *credit -= 1;
                Step::Look(cpu)
            }
            Step::Credit if *credit >= 1 => {
                *credit -= 1;
                thread.charged += 1;
                Step::Out
            }
            Step::Credit => Step::Left(false),
            Step::Look(charged) if seen[usize::from(charged)] >= 0 => {
                thread.charged += 1;
                Step::Out
            }
            Step::Look(_) => Step::Undo,
            Step::Undo => {
                *credit += 1;
                Step::Left(false)
            }
            Step::Left(collected) if state.left < 1 => {
                // A charge that is refused ends.
                state.collecting = !collected;
                if collected { Step::Out } else { Step::Collect(0) }
            }
            Step::Left(collected) => {
                state.left -= 1;
                thread.charged += 1;
                state.collecting &= !collected;
                let batch = state.left >= 1;
                let take = self.has(Flaw::GiveFirst);
                if batch && !take {
                    state.left -= 1;
                }
                if batch { Step::Give { take } } else { Step::Out }
            }
            Step::Give { take } => {
                *credit += 1;
                if take { Step::Take } else { Step::Out }
            }
            Step::Take => {
                state.left -= 1;
                Step::Out
            }
            Step::Collect(cpu) => {
                let credit = &mut state.credits[usize::from(cpu)];
                if self.has(Flaw::TornCollect) {
                    state.left += *credit;
                    Step::Torn(cpu, *credit)
                } else {
                    state.left += std::mem::take(credit);
                    Self::after_collecting(cpu)
                }
            }
            Step::Torn(cpu, seen) => {
                state.credits[usize::from(cpu)] -= seen;
                Self::after_collecting(cpu)
            }
            Step::Release => {
                *credit += 1;
                Step::Out
            }
        };
    }

    fn after_collecting(cpu: u8) -> Step {
        if usize::from(cpu) + 1 < CPUS { Step::Collect(cpu + 1) } else { Step::Left(true) }
    }
}

impl Default for SyncBudget {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for SyncBudget {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let thread = |nr: u8| Thread {
            step: Step::Out,
            charged: 0,
            left: if nr < self.threads { self.charges } else { 0 },
        };
        vec![State {
            credits: [0; CPUS],
            left: self.limit,
            collecting: false,
            threads: std::array::from_fn(|nr| thread(nr as u8)),
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        for (nr, thread) in state.threads.iter().enumerate().take(self.threads.into()) {
            match thread.step {
                Step::Out => {
                    if thread.left > 0 {
                        out.push(Action::Charge(nr));
                    }
                    if thread.charged > 0 {
                        out.push(Action::Release(nr));
                    }
                }
                // One thread collects at a time.
                Step::Left(false) if state.left < 1 && state.collecting => {}
                _ => out.extend((0..CPUS as u8).map(|cpu| Action::Thread(nr, cpu))),
            }
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Charge(nr) => {
                next.threads[nr].left -= 1;
                next.threads[nr].step = Step::Credit;
            }
            Action::Release(nr) => {
                // The caller does not use them any more.
                next.threads[nr].charged -= 1;
                next.threads[nr].step = Step::Release;
            }
            Action::Thread(nr, cpu) => self.step(&mut next, nr, cpu),
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        *state
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        let charged: i8 = state.threads.iter().map(|thread| thread.charged).sum();
        (charged > self.limit).then_some(EXCEEDED)
    }

    fn begins(&self, _: &State, action: Action) -> bool {
        !matches!(action, Action::Thread(..))
    }

    fn at_rest(&self, state: &State) -> bool {
        state.threads.iter().all(|thread| thread.step == Step::Out)
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        match action {
            Action::Charge(nr) => (format!("T{nr}"), "begins to charge".into()),
            Action::Release(nr) => (format!("T{nr}"), "begins to release".into()),
            Action::Thread(nr, cpu) => {
                (format!("T{nr}"), format!("{:?} on CPU {cpu}", before.threads[nr].step))
            }
        }
    }

    fn picture(&self, state: &State) -> String {
        let charged = state.threads.map(|thread| thread.charged);
        format!("credits: {:?}, left: {}, charged: {charged:?}", state.credits, state.left)
    }
}
