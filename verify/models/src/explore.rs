//! The explorer: breadth-first search of the whole reachable state space.
//!
//! States are stored in full, never as fingerprints, so "no counter-example" is a statement about
//! every reachable state. The search proceeds in layers; the first violation it meets therefore
//! ends a shortest path to any violation.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

use hashbrown::{DefaultHashBuilder, HashTable};

/// A protocol as a transition system in which every action is one atomic step.
pub trait Model {
    /// One global state.
    type State: Copy + Eq + Hash;
    /// One atomic step of one actor.
    type Action: Copy;

    /// Returns every state that the system may start in.
    fn initial(&self) -> Vec<Self::State>;

    /// Appends every action that is enabled in `state`.
    fn actions(&self, state: &Self::State, out: &mut Vec<Self::Action>);

    /// Returns the state after `action`, which must be enabled.
    fn apply(&self, state: &Self::State, action: Self::Action) -> Self::State;

    /// Returns the representative of `state` among those that differ from it by a renaming only.
    fn canonical(&self, state: &Self::State) -> Self::State;

    /// Returns the safety property that `state` breaks, if any.
    fn broken(&self, state: &Self::State) -> Option<&'static str>;

    /// Returns `true` if `action`, taken in `before`, begins new work, as opposed to continuing
    /// work in flight.
    fn begins(&self, before: &Self::State, action: Self::Action) -> bool;

    /// Returns `true` if no work is in flight in `state`.
    fn at_rest(&self, state: &Self::State) -> bool;

    /// Returns the actor of `action` in `before`, and a description of the step, for a reader.
    fn narrate(&self, before: &Self::State, action: Self::Action) -> (String, String);

    /// Returns `state` on one line, for a reader.
    fn picture(&self, state: &Self::State) -> String;
}

/// The property that [`explore`] checks besides the safety properties of the model.
pub const DRAINS: &str = "P3 progress: work in flight can finish without new work beginning";

/// One line of a counter-example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The actor.
    pub actor: String,
    /// The one atomic step.
    pub step: String,
    /// The state after the step.
    pub after: String,
}

/// A shortest path from an initial state to a violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The initial state.
    pub start: String,
    /// The steps, in order.
    pub lines: Vec<Line>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |text: fn(&Line) -> &str| {
            self.lines.iter().map(|l| text(l).chars().count()).max().unwrap_or(0)
        };
        let (actor, step) = (width(|l| &l.actor), width(|l| &l.step));
        writeln!(f, "   0  {:actor$}  {:step$}  {}", "", "(initial state)", self.start)?;
        for (number, line) in (1..).zip(&self.lines) {
            writeln!(f, "{number:4}  {:actor$}  {:step$}  {}", line.actor, line.step, line.after)?;
        }
        Ok(())
    }
}

/// The result of an exploration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every reachable state was visited, and all properties hold in all of them.
    Holds,
    /// A property is broken at the end of a shortest path.
    Broken {
        /// The property.
        property: &'static str,
        /// The path.
        trace: Trace,
    },
}

impl Verdict {
    /// Returns the broken property, if one is.
    #[must_use]
    pub fn broken(&self) -> Option<&'static str> {
        match self {
            Self::Holds => None,
            Self::Broken { property, .. } => Some(property),
        }
    }
}

/// The result of [`explore`].
#[derive(Debug, Clone)]
pub struct Report {
    /// Distinct states visited, up to renaming.
    pub states: usize,
    /// Transitions followed from them.
    pub transitions: u64,
    /// Steps from an initial state to the farthest state visited.
    pub depth: u32,
    /// The result.
    pub verdict: Verdict,
    /// Wall-clock time.
    pub elapsed: Duration,
    /// Bytes of memory that the visited set took.
    pub bytes: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} states, {} transitions, depth {}: ",
            grouped(self.states as u64),
            grouped(self.transitions),
            self.depth
        )?;
        match &self.verdict {
            Verdict::Holds => write!(f, "holds, space exhausted"),
            Verdict::Broken { property, trace } => {
                write!(f, "BROKEN after {} steps: {property}", trace.lines.len())
            }
        }
    }
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Visits every reachable state of `model`, or stops at the first one that breaks a property.
///
/// # Panics
///
/// If there are 2^32 - 1 states or more.
pub fn explore<M: Model>(model: &M) -> Report {
    let begun = Instant::now();
    let mut search = Search::new(model);
    let bad = search.breadth_first().or_else(|| search.first_stuck());
    Report {
        states: search.visited.states.len(),
        transitions: search.transitions,
        depth: search.depth,
        verdict: bad.map_or(Verdict::Holds, |(property, at)| Verdict::Broken {
            property,
            trace: search.trace(at),
        }),
        elapsed: begun.elapsed(),
        bytes: search.visited.bytes(),
    }
}

/// Index of a visited state; parents have smaller indices than their children.
type Index = u32;

/// The parent of an initial state.
const NONE: Index = Index::MAX;

/// All states visited so far, in order of discovery.
struct Visited<S> {
    states: Vec<S>,
    parents: Vec<Index>,
    index: HashTable<Index>,
    hasher: DefaultHashBuilder,
}

impl<S: Copy + Eq + Hash> Visited<S> {
    fn find(&self, state: &S) -> Option<Index> {
        let hash = self.hasher.hash_one(state);
        self.index.find(hash, |&i| self.states[i as usize] == *state).copied()
    }

    /// Adds `state`; false if it was there.
    fn insert(&mut self, state: S, parent: Index) -> bool {
        let Self { states, parents, index, hasher } = self;
        let entry = index.entry(
            hasher.hash_one(state),
            |&i| states[i as usize] == state,
            |&i| hasher.hash_one(states[i as usize]),
        );
        let hashbrown::hash_table::Entry::Vacant(vacant) = entry else { return false };
        let fresh = Index::try_from(states.len())
            .ok()
            .filter(|&i| i != NONE)
            .expect("the index has 32 bits");
        vacant.insert(fresh);
        states.push(state);
        parents.push(parent);
        true
    }

    fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<S>()
            + self.parents.capacity() * size_of::<Index>()
            + self.index.allocation_size()
    }
}

struct Search<'a, M: Model> {
    model: &'a M,
    visited: Visited<M::State>,
    transitions: u64,
    depth: u32,
}

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M) -> Self {
        let visited = Visited {
            states: Vec::new(),
            parents: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        Self { model, visited, transitions: 0, depth: 0 }
    }

    /// Visits layer after layer until there is nothing new, or until a state breaks a safety
    /// property.
    fn breadth_first(&mut self) -> Option<(&'static str, Index)> {
        for state in self.model.initial() {
            self.visited.insert(self.model.canonical(&state), NONE);
        }
        let mut layer = 0..self.visited.states.len();
        loop {
            for at in layer.clone() {
                if let Some(property) = self.model.broken(&self.visited.states[at]) {
                    return Some((property, at as Index));
                }
            }
            layer.clone().for_each(|at| self.expand(at));
            if layer.end == self.visited.states.len() {
                return None;
            }
            layer = layer.end..self.visited.states.len();
            self.depth += 1;
        }
    }

    fn expand(&mut self, at: usize) {
        let state = self.visited.states[at];
        let mut actions = Vec::new();
        self.model.actions(&state, &mut actions);
        self.transitions += actions.len() as u64;
        for action in actions {
            let next = self.model.canonical(&self.model.apply(&state, action));
            self.visited.insert(next, at as Index);
        }
    }

    /// Returns the earliest visited state from which work in flight cannot come to rest unless new
    /// work begins.
    ///
    /// Computed as a fixed point: a state is good if it is at rest, or if a step of work in flight
    /// leads to a good one. Such steps mostly lead to later states, so that passes from the last
    /// state to the first one converge at once.
    fn first_stuck(&self) -> Option<(&'static str, Index)> {
        let mut pending: Vec<Index> = (0..self.visited.states.len() as Index).rev().collect();
        let mut good = vec![false; pending.len()];
        loop {
            let before = pending.len();
            pending.retain(|&at| {
                good[at as usize] = self.drains(at, &good);
                !good[at as usize]
            });
            if pending.len() == before {
                return pending.last().map(|&at| (DRAINS, at));
            }
        }
    }

    fn drains(&self, at: Index, good: &[bool]) -> bool {
        let state = &self.visited.states[at as usize];
        if self.model.at_rest(state) {
            return true;
        }
        let mut actions = Vec::new();
        self.model.actions(state, &mut actions);
        actions.retain(|&action| !self.model.begins(state, action));
        actions.into_iter().any(|action| {
            let next = self.model.canonical(&self.model.apply(state, action));
            self.visited.find(&next).is_some_and(|next| good[next as usize])
        })
    }

    /// Returns the path to a visited state, without the renamings of the exploration.
    ///
    /// The visited states are representatives, in which the actors change their names from one step
    /// to the next. The path is therefore walked again from its first state, taking at each step an
    /// action that leads to the same representative.
    fn trace(&self, end: Index) -> Trace {
        let mut path = vec![end];
        while let Some(&at) = path.last().filter(|&&at| self.visited.parents[at as usize] != NONE) {
            path.push(self.visited.parents[at as usize]);
        }
        let mut steps = path.iter().rev().map(|&at| self.visited.states[at as usize]);
        let mut state = steps.next().expect("a path has a first state");
        let mut trace = Trace { start: self.model.picture(&state), lines: Vec::new() };
        for wanted in steps {
            let mut actions = Vec::new();
            self.model.actions(&state, &mut actions);
            let action = actions
                .into_iter()
                .find(|&action| self.model.canonical(&self.model.apply(&state, action)) == wanted)
                .expect("a renaming of the state has the renamed successors");
            let (actor, step) = self.model.narrate(&state, action);
            state = self.model.apply(&state, action);
            trace.lines.push(Line { actor, step, after: self.model.picture(&state) });
        }
        trace
    }
}
