//! Lets a policy follow a recorded schedule, and counts what becomes of its IDs.

use percid_sim::Ns;
use percid_sim::cost::{Found, Prices};
use percid_sim::idle_history::Idleness;
use percid_sim::machine::Machine;
use percid_sim::policies::{Id, Impossible, Policy, PolicySpec, Thread};
use percid_sim::topology::{Cpu, Topology};
use percid_sim::workload::Memory;

use super::outcome::{PolicyFailure, Replay, SpaceReplay, Turn, Used};
use super::schedule::{Listener, SpaceMoment};
use super::space::{SpaceNumber, SpaceSummary};
use super::tally::{LastUse, Tally};
use super::top_spaces::TopSpaces;
use crate::event::Tid;
use crate::overview::Overview;

/// Settings of a replay: the processes, and the amount of results that is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The processes that are wanted, by number; empty for all.
    pub processes: Vec<Tid>,
    /// The memory that is indexed by the ID, in bytes for each ID.
    pub area_bytes: u64,
    /// The number of turns that are kept, the first ones. 0 if none are wanted.
    pub turns_kept: usize,
    /// About how many spans of time the picture of all turns has at most. 0 if none is wanted.
    pub spans_drawn: usize,
    /// The number of address spaces that are kept, those with most turns: 350 bytes each, and the
    /// name.
    pub spaces_kept: usize,
    /// Bytes that the policies of all living address spaces may take together. An address space
    /// that begins beyond that is not replayed.
    pub policy_bytes: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            processes: Vec::new(),
            area_bytes: percid_sim::engine::AREA_BYTES,
            turns_kept: 0,
            spans_drawn: 0,
            spaces_kept: usize::MAX,
            policy_bytes: 1 << 30,
        }
    }
}

/// An address space that is replayed under the policy.
struct SpaceReplayer {
    policy: Box<dyn Policy>,
    tally: Tally,
    /// Last use of each ID.
    uses: Vec<Option<LastUse>>,
    steals: u64,
}

/// The state of an address space's replay.
enum SpaceState {
    /// It has not been seen yet.
    Unseen,
    /// It is replayed.
    Replayed(Box<SpaceReplayer>),
    /// Its policy could not go on.
    PolicyFailure(Box<SpaceReplayer>, PolicyFailure),
    /// It is not wanted, has ended, or found the memory for policies used up.
    Ignored,
}

/// The memory that the replay of one address space takes at most, in bytes: for each CPU, and
/// besides.
const CPU_BYTES: usize = 56;
const BASE_BYTES: usize = 512;

/// Replays the address spaces of a schedule, each under a separate policy.
pub(super) struct Player<'a> {
    entry: &'a PolicySpec,
    settings: &'a Settings,
    topology: &'a Topology,
    prices: Prices,
    idleness: Idleness,
    /// Address spaces by number.
    spaces: Vec<SpaceState>,
    /// Number of further spaces that may be replayed at the same time.
    space_budget: usize,
    refused: u64,
    stuck: u64,
    top_spaces: TopSpaces,
    /// The current turn of each CPU.
    current: Vec<Option<Turn>>,
    turns: Vec<Turn>,
    turns_left_out: u64,
    overview: Overview<Used>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        machine: &'a Machine,
        entry: &'a PolicySpec,
        settings: &'a Settings,
    ) -> Player<'a> {
        let topology = &machine.topology;
        Player {
            entry,
            settings,
            topology,
            prices: Prices::new(machine, Memory::ZeroPage),
            idleness: Idleness::new(topology),
            spaces: Vec::new(),
            space_budget: settings.policy_bytes
                / (BASE_BYTES + topology.cpus() as usize * CPU_BYTES),
            refused: 0,
            stuck: 0,
            top_spaces: TopSpaces::new(settings.spaces_kept),
            current: vec![None; topology.cpus() as usize],
            turns: Vec::new(),
            turns_left_out: 0,
            overview: Overview::new(settings.spans_drawn),
        }
    }

    pub(super) fn into_replay(self, duration_ns: Ns, is_whole: bool) -> Replay {
        Replay {
            spaces_left_out: self.top_spaces.left_out,
            spaces_refused: self.refused,
            spaces_stuck: self.stuck,
            spaces: self.top_spaces.into_spaces(),
            duration_ns,
            is_whole,
            turns: self.turns,
            turns_left_out: self.turns_left_out,
            width_drawn: self.overview.width(),
            drawn: self.overview.into_spans(),
        }
    }

    /// The replay of the space of an event. It begins at the first event of a space that is wanted.
    fn space(&mut self, at: SpaceMoment<'_>) -> Option<&mut SpaceReplayer> {
        let index = at.number as usize;
        if index >= self.spaces.len() {
            self.spaces.resize_with(index + 1, || SpaceState::Unseen);
        }
        if matches!(self.spaces[index], SpaceState::Unseen) {
            self.spaces[index] = self.begin(at.space.summary.process);
        }
        match &mut self.spaces[index] {
            SpaceState::Replayed(space) => Some(space),
            SpaceState::Unseen | SpaceState::PolicyFailure(..) | SpaceState::Ignored => None,
        }
    }

    /// Returns a policy's result. A policy that cannot go on receives no further events.
    fn answer<T>(&mut self, at: SpaceMoment<'_>, answer: Result<T, Impossible>) -> Option<T> {
        let why = match answer {
            Ok(answer) => return Some(answer),
            Err(why) => why,
        };
        let state = &mut self.spaces[at.number as usize];
        if let SpaceState::Replayed(space) = std::mem::replace(state, SpaceState::Ignored) {
            self.stuck += 1;
            *state = SpaceState::PolicyFailure(space, PolicyFailure { at: at.now, why });
        }
        None
    }

    /// Begins a space of a process, if it is wanted and its policy may take more memory.
    fn begin(&mut self, process: Tid) -> SpaceState {
        let wanted = &self.settings.processes;
        if !wanted.is_empty() && !wanted.contains(&process) {
            return SpaceState::Ignored;
        }
        let Some(space_budget) = self.space_budget.checked_sub(1) else {
            self.refused += 1;
            return SpaceState::Ignored;
        };
        self.space_budget = space_budget;
        SpaceState::Replayed(Box::new(SpaceReplayer::new(self.entry, self.topology)))
    }

    /// A thread that runs uses its ID.
    fn acquire(&mut self, at: SpaceMoment<'_>, cpu: Cpu, thread: Thread) {
        let topology = self.topology;
        let Some(space) = self.space(at) else { return };
        let answer = space.policy.id(&at.view(), cpu, thread);
        let Some(id) = self.answer(at, answer) else { return self.end_turn(at, cpu) };
        let is_same = |turn: Turn| (turn.space, turn.thread, turn.id) == (at.number, thread, id);
        if self.current[cpu as usize].is_some_and(is_same) {
            return;
        }
        let Some(space) = self.space(at) else { return };
        let last = space.use_id(topology, id, cpu, at.now);
        let stolen = space.notice_steal();
        let turn = Turn {
            space: at.number,
            process: at.space.summary.process,
            thread,
            tid: at.space.tids[thread as usize],
            cpu,
            id,
            from: at.now,
            to: at.now,
            last,
            stolen,
        };
        let before = self.current[cpu as usize].replace(turn);
        let robbed = last.and_then(|last| self.end_robbed(last.cpu, turn));
        let idle = self.idleness.idle(topology, cpu, last.map(|last| last.at));
        let found = Found::new(topology, cpu, last.map(|last| last.cpu), idle);
        let (_, ns) = self.prices.burst(&found);
        if let Some(space) = self.space(at) {
            space.tally.burst_ns += ns;
        }
        self.keep(before, at.now);
        self.keep(robbed, at.now);
    }

    /// Ends the turn of a CPU from which the ID was taken while its thread runs: that thread will
    /// get another one.
    fn end_robbed(&mut self, cpu: Cpu, taken: Turn) -> Option<Turn> {
        let is_robbed = |turn: &mut Turn| (turn.space, turn.id) == (taken.space, taken.id);
        self.current[cpu as usize].take_if(|turn| cpu != taken.cpu && is_robbed(turn))
    }

    /// The turn of a CPU is over, if it was one of this space.
    fn end_turn(&mut self, at: SpaceMoment<'_>, cpu: Cpu) {
        let over = self.current[cpu as usize].take_if(|turn| turn.space == at.number);
        self.keep(over, at.now);
    }

    /// A turn is over.
    fn keep(&mut self, turn: Option<Turn>, now: Ns) {
        let Some(turn) = turn else { return };
        let Turn { space, tid, id, .. } = turn;
        self.overview.note(turn.cpu, Used { space, tid, id }, turn.from, now);
        if self.turns.len() < self.settings.turns_kept {
            self.turns.push(Turn { to: now, ..turn });
        } else {
            self.turns_left_out += 1;
        }
    }
}

impl SpaceReplayer {
    fn new(entry: &PolicySpec, topology: &Topology) -> SpaceReplayer {
        SpaceReplayer {
            policy: (entry.create)(topology),
            tally: Tally::default(),
            uses: Vec::new(),
            steals: 0,
        }
    }

    /// Notes that an ID is used now. Returns its use before.
    fn use_id(&mut self, topology: &Topology, id: Id, cpu: Cpu, at: Ns) -> Option<LastUse> {
        let index = id as usize;
        if index >= self.uses.len() {
            self.uses.resize(index + 1, None);
        }
        let last = self.uses[index].replace(LastUse { cpu, at });
        self.tally.acquire(topology, id, cpu, last);
        last
    }

    /// Returns `true` if the policy has stolen since the last call.
    fn notice_steal(&mut self) -> bool {
        let steals = self.policy.work().steals;
        std::mem::replace(&mut self.steals, steals) != steals
    }
}

impl Listener for Player<'_> {
    fn spawn(&mut self, at: SpaceMoment<'_>, thread: Thread) {
        if let Some(space) = self.space(at) {
            space.policy.spawn(&at.view(), thread);
        }
    }

    fn exec(&mut self, at: SpaceMoment<'_>, cpu: Cpu, thread: Thread) {
        let Some(space) = self.space(at) else { return };
        let answer = space.policy.exec(&at.view(), cpu, thread);
        self.answer(at, answer);
        self.acquire(at, cpu, thread);
    }

    fn affinity(&mut self, at: SpaceMoment<'_>, thread: Thread) {
        if let Some(space) = self.space(at) {
            space.policy.affinity(&at.view(), thread);
        }
    }

    fn migrate(&mut self, at: SpaceMoment<'_>, thread: Thread, from: Cpu, to: Cpu) {
        if let Some(space) = self.space(at) {
            space.policy.migrate(&at.view(), thread, from, to);
        }
    }

    fn switch(
        &mut self,
        at: SpaceMoment<'_>,
        cpu: Cpu,
        prev: Option<Thread>,
        next: Option<Thread>,
    ) {
        let Some(space) = self.space(at) else { return };
        let answer = space.policy.switch(&at.view(), cpu, prev, next);
        self.answer(at, answer);
        self.end_turn(at, cpu);
        if let Some(next) = next {
            self.acquire(at, cpu, next);
        }
    }

    fn tick(&mut self, at: SpaceMoment<'_>, cpu: Cpu, thread: Thread) {
        let Some(space) = self.space(at) else { return };
        space.policy.tick(&at.view(), cpu, thread);
        self.acquire(at, cpu, thread);
    }

    fn exit(&mut self, at: SpaceMoment<'_>, cpu: Cpu, thread: Thread) {
        let Some(space) = self.space(at) else { return };
        space.policy.exit(&at.view(), thread, cpu);
        self.end_turn(at, cpu);
    }

    fn end(&mut self, number: SpaceNumber, summary: SpaceSummary) {
        let Some(state) = self.spaces.get_mut(number as usize) else { return };
        let (space, stuck) = match std::mem::replace(state, SpaceState::Ignored) {
            SpaceState::Replayed(space) => (space, None),
            SpaceState::PolicyFailure(space, stuck) => (space, Some(stuck)),
            SpaceState::Unseen | SpaceState::Ignored => return,
        };
        self.space_budget += 1;
        let SpaceReplayer { policy, mut tally, .. } = *space;
        tally.work = policy.work();
        tally.memory_bytes = u64::from(tally.ids_used) * self.settings.area_bytes;
        if summary.turns > 0 {
            self.top_spaces.take(SpaceReplay { number, summary, tally, stuck });
        }
    }

    fn busy(&mut self, now: Ns, cpu: Cpu, is_busy: bool) {
        match is_busy {
            true => self.idleness.enter(self.topology, cpu, now),
            false => self.idleness.leave(self.topology, cpu, now),
        }
    }
}
