//! The reference count of `percid-sync`: words by ID that are open while the object is alive, a
//! shared number, and a thread that kills the object.
//!
//! A change of a word is one step, since it is one critical section that compares. A thread may be on
//! any CPU at each step. A word that a visit takes from its ID is read and closed in one step: the
//! models of `percid` show that nothing happens in between. All threads have one reference at first,
//! and the object has one more, which the killer gives back.

use crate::explore::Model;

/// The safety property: the last reference is the last.
pub const EARLY: &str = "P1 lifetime: nobody uses the object after it was freed";
/// The safety property: the last reference is noticed, once.
pub const FORGOTTEN: &str = "P2 end: a killed object without references is freed once";

/// CPUs, and words.
const CPUS: usize = 2;
/// Threads.
const THREADS: usize = 2;
/// Added to the shared number while the object is alive.
const BIAS: i8 = 50;

/// An error in the protocol: a negative control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// The shared number has no bias.
    NoBias,
    /// The bias is subtracted before the words are collected.
    BiasFirst,
    /// A word is opened without the mutex.
    OpenUnlocked,
    /// A word is read and closed in two steps.
    TornClose,
    /// A thread tests if the object is dead after it has given its reference back by a section.
    TestLast,
}

/// One configuration.
#[derive(Debug, Clone, Copy)]
pub struct SyncCount {
    /// References that each thread takes besides its first.
    pub gets: u8,
    /// The error, if there is one.
    pub flaw: Option<Flaw>,
}

/// The next step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Between two changes.
    Out,
    /// Change a word by this number.
    Word(i8),
    /// The word is closed: test if the object is dead.
    TestDead(i8),
    /// Take the mutex.
    Lock(i8),
    /// Open a word, unless the object is dead.
    Open(i8),
    /// Negative control: open a word.
    Blind(i8),
    /// Change the shared number.
    Shared(i8),
    /// Negative control: use the object after the change.
    Late,
}

/// A thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    step: Step,
    references: u8,
    gets_left: u8,
}

/// The next step of the killer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kill {
    /// Not begun: take the mutex, and mark the object as dead.
    Begin,
    /// Close this word.
    Close(u8),
    /// Negative control: close this word, whose count was this.
    Torn(u8, i8),
    /// Release the mutex, or begin again if a word is open.
    Unlock,
    /// Subtract the bias and the first reference.
    Bias,
    /// Done.
    Done,
}

/// A word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Word {
    open: bool,
    count: i8,
}

/// The global state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    words: [Word; CPUS],
    shared: i8,
    dead: bool,
    locked: bool,
    threads: [Thread; THREADS],
    killer: Kill,
    /// The number of times that a reference was noticed to be the last.
    freed: u8,
}

/// One atomic step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A thread begins to take a reference.
    Get(usize),
    /// A thread begins to give a reference back.
    Put(usize),
    /// A thread takes its next step, on a CPU.
    Thread(usize, usize),
    /// The killer takes its next step.
    Killer,
}

impl SyncCount {
    /// Returns the protocol with threads that take two references.
    #[must_use]
    pub const fn new() -> Self {
        Self { gets: 2, flaw: None }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn bias(&self) -> i8 {
        if self.has(Flaw::NoBias) { 0 } else { BIAS }
    }

    fn thread_step(&self, state: &mut State, nr: usize, cpu: usize) {
        let thread = &mut state.threads[nr];
        let word = &mut state.words[cpu];
        thread.step = match thread.step {
            Step::Out => Step::Out,
            Step::Word(change) if word.open => {
                word.count += change;
                thread.references = thread.references.saturating_add_signed(change);
                if self.has(Flaw::TestLast) && change < 0 { Step::Late } else { Step::Out }
            }
            Step::Word(change) => Step::TestDead(change),
            Step::TestDead(change) if state.dead => Step::Shared(change),
            Step::TestDead(change) if self.has(Flaw::OpenUnlocked) => Step::Blind(change),
            Step::TestDead(change) => Step::Lock(change),
            Step::Lock(change) => {
                state.locked = true;
                Step::Open(change)
            }
            Step::Open(change) => {
                word.open |= !state.dead && word.count == 0;
                state.locked = false;
                Step::Shared(change)
            }
            Step::Blind(change) => {
                word.open |= word.count == 0;
                Step::Shared(change)
            }
            Step::Shared(change) => {
                state.shared += change;
                thread.references = thread.references.saturating_add_signed(change);
                state.freed += u8::from(state.shared == 0);
                Step::Out
            }
            Step::Late => Step::Out,
        };
    }

    fn killer_step(&self, state: &mut State) {
        let subtract = |state: &mut State| {
            state.shared -= self.bias() + 1;
            state.freed += u8::from(state.shared == 0);
        };
        state.killer = match state.killer {
            Kill::Begin => {
                (state.locked, state.dead) = (true, true);
                if self.has(Flaw::BiasFirst) {
                    subtract(state);
                }
                Kill::Close(0)
            }
            Kill::Close(cpu) if self.has(Flaw::TornClose) => {
                Kill::Torn(cpu, state.words[usize::from(cpu)].count)
            }
            Kill::Close(cpu) => Self::close(state, cpu, state.words[usize::from(cpu)].count),
            Kill::Torn(cpu, count) => Self::close(state, cpu, count),
            Kill::Unlock if state.words.iter().any(|word| word.open) => Kill::Close(0),
            Kill::Unlock => {
                state.locked = false;
                if self.has(Flaw::BiasFirst) { Kill::Done } else { Kill::Bias }
            }
            Kill::Bias => {
                subtract(state);
                Kill::Done
            }
            Kill::Done => Kill::Done,
        };
    }

    fn close(state: &mut State, cpu: u8, count: i8) -> Kill {
        state.shared += count;
        state.words[usize::from(cpu)] = Word::default();
        if usize::from(cpu) + 1 < CPUS { Kill::Close(cpu + 1) } else { Kill::Unlock }
    }

    fn is_over(state: &State) -> bool {
        let gone = |thread: &Thread| thread.step == Step::Out && thread.references == 0;
        state.killer == Kill::Done && state.threads.iter().all(gone)
    }
}

impl Default for SyncCount {
    fn default() -> Self {
        Self::new()
    }
}

impl Model for SyncCount {
    type State = State;
    type Action = Action;

    fn initial(&self) -> Vec<State> {
        let thread = Thread { step: Step::Out, references: 1, gets_left: self.gets };
        vec![State {
            words: [Word::default(); CPUS],
            shared: self.bias() + 1 + THREADS as i8,
            dead: false,
            locked: false,
            threads: [thread; THREADS],
            killer: Kill::Begin,
            freed: 0,
        }]
    }

    fn actions(&self, state: &State, out: &mut Vec<Action>) {
        for (nr, thread) in state.threads.iter().enumerate() {
            match thread.step {
                Step::Out if thread.references > 0 => {
                    if thread.gets_left > 0 {
                        out.push(Action::Get(nr));
                    }
                    out.push(Action::Put(nr));
                }
                Step::Out => {}
                Step::Lock(_) if state.locked => {}
                _ => out.extend((0..CPUS).map(|cpu| Action::Thread(nr, cpu))),
            }
        }
        match state.killer {
            Kill::Done => {}
            Kill::Begin if state.locked => {}
            _ => out.push(Action::Killer),
        }
    }

    fn apply(&self, state: &State, action: Action) -> State {
        let mut next = *state;
        match action {
            Action::Get(nr) => {
                next.threads[nr].gets_left -= 1;
                next.threads[nr].step = Step::Word(1);
            }
            Action::Put(nr) => next.threads[nr].step = Step::Word(-1),
            Action::Thread(nr, cpu) => self.thread_step(&mut next, nr, cpu),
            Action::Killer => self.killer_step(&mut next),
        }
        next
    }

    fn canonical(&self, state: &State) -> State {
        *state
    }

    fn broken(&self, state: &State) -> Option<&'static str> {
        let uses = |thread: &Thread| thread.references > 0 || thread.step != Step::Out;
        let used = state.threads.iter().any(uses) || state.killer != Kill::Done;
        if state.freed > 0 && used {
            return Some(EARLY);
        }
        (state.freed > 1 || Self::is_over(state) && state.freed == 0).then_some(FORGOTTEN)
    }

    fn begins(&self, before: &State, action: Action) -> bool {
        match action {
            Action::Get(_) => true,
            Action::Put(_) | Action::Thread(..) => false,
            Action::Killer => before.killer == Kill::Begin,
        }
    }

    fn at_rest(&self, state: &State) -> bool {
        let idle = state.threads.iter().all(|thread| thread.step == Step::Out);
        idle && matches!(state.killer, Kill::Begin | Kill::Done)
    }

    fn narrate(&self, before: &State, action: Action) -> (String, String) {
        match action {
            Action::Get(nr) => (format!("T{nr}"), "takes a reference".into()),
            Action::Put(nr) => (format!("T{nr}"), "gives a reference back".into()),
            Action::Thread(nr, cpu) => {
                (format!("T{nr}"), format!("{:?} on CPU {cpu}", before.threads[nr].step))
            }
            Action::Killer => ("K".into(), format!("{:?}", before.killer)),
        }
    }

    fn picture(&self, state: &State) -> String {
        let State { words, shared, dead, freed, .. } = state;
        format!("{words:?}, shared: {shared}, dead: {dead}, freed: {freed}")
    }
}
