//! The explorer against two others: `stateright`, and a search that is too simple to be wrong.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use percid_models::explore::{Model, Verdict, explore};
use percid_models::kernel::{Generation, Kernel, Role, Undelayed};
use percid_models::local::{self, Local};
use percid_models::mask::{Draining, Mask};
use percid_models::memory::Memory;
use percid_models::modes::{Flaw, Modes};
use percid_models::rules::Rules;
use percid_models::seizure::{self, Seizure};
use percid_models::sync_budget::SyncBudget;
use percid_models::sync_count::SyncCount;
use percid_models::sync_grace::SyncGrace;
use percid_models::sync_lock::{self, SyncLock};
use percid_models::table::{Order, Table};
use stateright::{Checker, Model as _, Property};

const TWO_MOVES: &[Role] = &[Role::Mover, Role::Mover];

fn kernel() -> Kernel {
    Kernel { cpus: 2, threads: 2, tagged: true, ..Kernel::new(Generation::D, TWO_MOVES) }
}

/// Returns a configuration with a scan that may be late, among whole scans and switches.
fn late_scan(tagged: bool) -> Kernel {
    let undelayed = Undelayed { moves: false, ..Undelayed::ALL };
    let one_scan = Kernel::new(Generation::B, &[Role::Scanner]);
    Kernel { cpus: 2, threads: 3, exits: false, tagged, undelayed, ..one_scan }
}

fn rules(tagged: bool) -> Rules {
    Rules { cpus: 2, ..Rules::new(2, tagged) }
}

fn table(order: Order) -> Table {
    Table { cpus: 2, threads: 2, ids: 1, agents: 1, handlers: 1, order, ..Table::new() }
}

/// All kinds of things are interchangeable in one of these two.
const MASKS: [Mask; 2] = [
    Mask::new(),
    Mask { ids: 2, words: 2, drainers: 1, memory: Memory::Sequential, ..Mask::new() },
];

const SEIZURE: Seizure = Seizure { threads: 1, memory: Memory::Fifo, ..Seizure::with_theft() };

const LOCALS: [Local; 3] = [
    Local { threads: 1, visitors: 1, memory: Memory::Fifo, ..Local::with_theft() },
    Local { threads: 1, visitors: 1, ids: 2, ..Local::with_theft() },
    Local { visitors: 1, memory: Memory::Unordered, ..Local::with_exchange() },
];

/// One of our models, as `stateright` sees it.
#[derive(Clone)]
struct Foreign<M>(M);

impl<M> stateright::Model for Foreign<M>
where
    M: Model<State: Debug, Action: Debug + PartialEq>,
{
    type State = M::State;
    type Action = M::Action;

    fn init_states(&self) -> Vec<M::State> {
        self.0.initial()
    }

    fn actions(&self, state: &M::State, actions: &mut Vec<M::Action>) {
        self.0.actions(state, actions);
    }

    fn next_state(&self, state: &M::State, action: M::Action) -> Option<M::State> {
        Some(self.0.apply(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("safe", |model: &Self, state| model.0.broken(state).is_none())]
    }
}

/// Compares the number of states without symmetry, and the length of the counter-example if there
/// is one.
fn agrees_with_stateright<M>(model: M)
where
    M: Model<
            State: Debug + Send + Sync + 'static,
            Action: Debug + PartialEq + Send + Sync + 'static,
        >,
    M: Clone + Send + Sync + 'static,
{
    let ours = explore(&model);
    let theirs = Foreign(model).checker().spawn_bfs().join();
    let found = theirs.discovery("safe").map(|path| path.into_actions().len());
    match &ours.verdict {
        Verdict::Holds => {
            assert_eq!(found, None);
            assert_eq!(theirs.unique_state_count(), ours.states);
        }
        Verdict::Broken { trace, .. } => assert_eq!(found, Some(trace.lines.len())),
    }
}

#[test]
fn stateright_finds_the_same_in_small_models() {
    agrees_with_stateright(Rules { symmetric: false, ..rules(true) });
    agrees_with_stateright(Rules { symmetric: false, ..rules(false) });
    for mask in MASKS {
        agrees_with_stateright(Mask { symmetric: false, ..mask });
    }
    let no_barrier = Mask { draining: Draining::NoBarrier, ..Mask::new() };
    agrees_with_stateright(Mask { symmetric: false, ..no_barrier });
    let lock = SyncLock { rounds: 1, ..SyncLock::new() };
    agrees_with_stateright(lock);
    agrees_with_stateright(SyncCount { gets: 1, ..SyncCount::new() });
    agrees_with_stateright(SyncBudget::new());
    agrees_with_stateright(SyncGrace { rounds: 1, ..SyncGrace::new() });
    agrees_with_stateright(SyncLock { flaw: Some(sync_lock::Flaw::OnePass), ..lock });
}

#[test]
#[ignore = "slow: models that are larger"]
fn stateright_finds_the_same() {
    agrees_with_stateright(Kernel { symmetric: false, ..kernel() });
    agrees_with_stateright(Kernel { symmetric: false, ..late_scan(true) });
    agrees_with_stateright(Kernel { symmetric: false, ..late_scan(false) });
    agrees_with_stateright(Modes { symmetric: false, ..Modes::new() });
    let unlocked = Modes { flaw: Some(Flaw::Unlocked), ..Modes::new() };
    agrees_with_stateright(Modes { symmetric: false, ..unlocked });
    agrees_with_stateright(Table { symmetric: false, ..table(Order::Sound) });
    agrees_with_stateright(Table { symmetric: false, ..table(Order::NoFence) });
    agrees_with_stateright(Seizure { symmetric: false, ..SEIZURE });
    let no_membarrier = Seizure { flaw: Some(seizure::Flaw::NoMembarrier), ..SEIZURE };
    agrees_with_stateright(Seizure { symmetric: false, ..no_membarrier });
    for local in LOCALS {
        agrees_with_stateright(Local { symmetric: false, ..local });
        let flawed = Local { flaw: Some(local::Flaw::NoClosing), ..local };
        agrees_with_stateright(Local { symmetric: false, ..flawed });
    }
}

/// Returns all reachable states, without symmetry.
fn reachable<M: Model<State: Eq + Hash>>(model: &M) -> HashSet<M::State> {
    let mut seen: HashSet<M::State> = model.initial().into_iter().collect();
    let mut pending: Vec<M::State> = seen.iter().copied().collect();
    while let Some(state) = pending.pop() {
        let mut actions = Vec::new();
        model.actions(&state, &mut actions);
        let next = actions.into_iter().map(|action| model.apply(&state, action));
        pending.extend(next.filter(|next| seen.insert(*next)));
    }
    seen
}

/// Checks that symmetry visits one state of each class of reachable states that are renamings of
/// each other: no more, no fewer.
fn symmetry_is_exact<M: Model<State: Debug>>(plain: &M, symmetric: &M) {
    let classes: HashSet<M::State> =
        reachable(plain).iter().map(|state| symmetric.canonical(state)).collect();
    assert_eq!(explore(symmetric).states, classes.len());
    assert!(
        classes.iter().all(|state| symmetric.canonical(state) == *state),
        "a representative represents itself"
    );
}

#[test]
fn symmetry_loses_nothing_in_small_models() {
    symmetry_is_exact(&Rules { symmetric: false, ..rules(true) }, &rules(true));
    for mask in MASKS {
        symmetry_is_exact(&Mask { symmetric: false, ..mask }, &mask);
    }
}

#[test]
#[ignore = "slow: models that are larger"]
fn symmetry_loses_nothing() {
    symmetry_is_exact(&Kernel { symmetric: false, ..kernel() }, &kernel());
    symmetry_is_exact(&Kernel { symmetric: false, ..late_scan(true) }, &late_scan(true));
    symmetry_is_exact(&Modes { symmetric: false, ..Modes::new() }, &Modes::new());
    symmetry_is_exact(&Table { symmetric: false, ..table(Order::Sound) }, &table(Order::Sound));
    symmetry_is_exact(&Seizure { symmetric: false, ..SEIZURE }, &SEIZURE);
    for local in LOCALS {
        symmetry_is_exact(&Local { symmetric: false, ..local }, &local);
    }
}

#[test]
fn a_trace_is_a_path() {
    let broken = explore(&Rules { cpus: 2, ..Rules::new(2, false) });
    let Verdict::Broken { trace, .. } = broken.verdict else {
        panic!("the ABA exists on two CPUs")
    };
    let ends = trace.lines.last().map(|line| line.after.matches("T:0").count());
    assert_eq!(ends, Some(2), "two threads hold ID 0 in the end:\n{trace}");
}
