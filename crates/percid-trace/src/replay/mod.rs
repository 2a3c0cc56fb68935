//! Replays a recorded schedule under a policy: which IDs the threads of each process would have had.
//!
//! The schedule is taken as it is; what the policy costs does not change it. An *address space* is what IDs belong
//! to: a process from its `exec` on.

mod advice;
mod kept;
mod membership;
mod schedule;
mod space;
mod tally;

use std::fmt;

use percid_sim::Ns;
use percid_sim::comparison::Progress;
use percid_sim::cost::Prices;
use percid_sim::machine::Machine;
use percid_sim::policies::{Entry, Id, Policy, Thread};
use percid_sim::rest::Rest;
use percid_sim::topology::{Cpu, Place, Topology};
use percid_sim::workload::Memory;

pub use advice::advice;
pub use space::{Life, Moves, SpaceNumber};
pub use tally::{Acquisitions, Tally, Use};

use crate::event::Tid;
use crate::trace::Trace;
use kept::Kept;
use schedule::{At, Listener, Schedule};

/// What to replay, and what to keep of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The processes that are wanted, by number; empty for all.
    pub processes: Vec<Tid>,
    /// The memory that is indexed by the ID, in bytes for each ID.
    pub area_bytes: u64,
    /// So many turns are kept, the first ones. 0 if none are wanted.
    pub turns_kept: usize,
    /// So many address spaces are kept, those with most turns. 320 bytes each, and the name.
    pub spaces_kept: usize,
    /// What the policies of all living address spaces may take together, in bytes. Those that are begun beyond that are
    /// not replayed.
    pub policy_bytes: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            processes: Vec::new(),
            area_bytes: percid_sim::engine::AREA_BYTES,
            turns_kept: 0,
            spaces_kept: usize::MAX,
            policy_bytes: 1 << 30,
        }
    }
}

/// A schedule under a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replay {
    /// The address spaces in the order in which the trace shows them. Without those that are not wanted, and those whose threads never
    /// ran.
    pub spaces: Vec<SpaceReplay>,
    /// Address spaces that were replayed and not kept.
    pub spaces_left_out: u64,
    /// Address spaces that were not replayed, because too many lived at once: see [`Settings::policy_bytes`].
    pub spaces_refused: u64,
    /// From the first event to the last, in nanoseconds.
    pub duration_ns: Ns,
    /// Whether the whole trace was replayed, and not only its beginning.
    pub is_whole: bool,
    /// The first turns, in the order in which they ended.
    pub turns: Vec<Turn>,
    /// Turns that were not kept.
    pub turns_left_out: u64,
}

/// One address space under a policy.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpaceReplay {
    /// Its number; the same under all policies.
    pub number: SpaceNumber,
    /// What is so under all policies.
    pub life: Life,
    /// What the policy made of it.
    pub tally: Tally,
}

/// A thread used an ID on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The address space.
    pub space: SpaceNumber,
    /// Its process.
    pub process: Tid,
    /// The thread, by its number in that space.
    pub thread: Thread,
    /// The same by the kernel's number.
    pub tid: Tid,
    /// Where.
    pub cpu: Cpu,
    /// The ID.
    pub id: Id,
    /// From when on, in nanoseconds since the first event.
    pub from: Ns,
    /// Until when.
    pub to: Ns,
    /// Who used the ID before.
    pub last: Option<Use>,
    /// Whether the ID was taken from another CPU for it.
    pub stolen: bool,
}

/// A trace and a machine that do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The largest CPU in the trace.
    pub cpu: Cpu,
    /// The number of CPUs that the machine has.
    pub cpus: u32,
    /// The machine.
    pub machine: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit { cpu, cpus, machine } = self;
        write!(
            f,
            "the trace has events on CPU {cpu}, and {machine} has {cpus} CPUs, from 0 to {}",
            cpus.saturating_sub(1)
        )
    }
}

impl std::error::Error for Misfit {}

/// The largest CPU in a trace. `None` if it has no events.
pub fn largest_cpu(trace: &Trace) -> Option<Cpu> {
    trace.events.iter().map(|event| event.cpu).max()
}

/// Replays a trace under a policy on a machine. Counts events as they are done; if it is stopped, it answers what it has
/// by then.
///
/// # Errors
///
/// A machine with too few CPUs.
pub fn replay(
    trace: &Trace,
    machine: &Machine,
    policy: &Entry,
    settings: &Settings,
    progress: &Progress,
) -> Result<Replay, Misfit> {
    let topology = &machine.topology;
    if let Some(cpu) = largest_cpu(trace).filter(|&cpu| cpu >= topology.cpus()) {
        return Err(Misfit { cpu, cpus: topology.cpus(), machine: machine.name.clone() });
    }
    let mut schedule = Schedule::new(trace, topology, machine.kernel.hz.value);
    let mut player = Player::new(machine, policy, settings);
    let is_whole = schedule.follow(&mut player, progress);
    Ok(Replay {
        spaces_left_out: player.kept.left_out,
        spaces_refused: player.refused,
        spaces: player.kept.into_spaces(),
        duration_ns: schedule.now(),
        is_whole,
        turns: player.turns,
        turns_left_out: player.turns_left_out,
    })
}

/// The address spaces of a trace, without any policy, in the order in which it shows them; those whose threads never ran
/// are left out.
pub fn lives(trace: &Trace) -> Vec<Life> {
    let place = |cpu| Place { core: cpu, l3: 0, socket: 0, node: 0 };
    let cpus = largest_cpu(trace).map_or(0, |cpu| cpu + 1);
    let topology = Topology::new((0..cpus).map(place).collect());
    let mut lives = Lives(Vec::new());
    Schedule::new(trace, &topology, 1.0).follow(&mut lives, &Progress::default());
    lives.0.sort_by_key(|(number, _)| *number);
    lives.0.into_iter().map(|(_, life)| life).collect()
}

/// Notes the address spaces that had turns, as they end.
struct Lives(Vec<(SpaceNumber, Life)>);

impl Listener for Lives {
    fn spawn(&mut self, _: At<'_>, _: Thread) {}
    fn exec(&mut self, _: At<'_>, _: Cpu, _: Thread) {}
    fn affinity(&mut self, _: At<'_>, _: Thread) {}
    fn migrate(&mut self, _: At<'_>, _: Thread, _: Cpu, _: Cpu) {}
    fn switch(&mut self, _: At<'_>, _: Cpu, _: Option<Thread>, _: Option<Thread>) {}
    fn tick(&mut self, _: At<'_>, _: Cpu, _: Thread) {}
    fn exit(&mut self, _: At<'_>, _: Cpu, _: Thread) {}
    fn busy(&mut self, _: Ns, _: Cpu, _: bool) {}

    fn end(&mut self, number: SpaceNumber, life: Life) {
        if life.turns > 0 {
            self.0.push((number, life));
        }
    }
}

/// A policy at work in one address space.
struct Work {
    policy: Box<dyn Policy>,
    tally: Tally,
    /// For each ID, its last use.
    uses: Vec<Option<Use>>,
    steals: u64,
}

/// What is done about an address space.
enum Part {
    /// It has not been seen.
    Unseen,
    /// It is replayed.
    Played(Box<Work>),
    /// It is not.
    Ignored,
}

/// What the work for an address space takes: at most so much for every CPU, and so much besides, in bytes.
const WORK_CPU_BYTES: usize = 56;
const WORK_BYTES: usize = 512;

/// Lets a policy live through a schedule.
struct Player<'a> {
    entry: &'a Entry,
    settings: &'a Settings,
    topology: &'a Topology,
    prices: Prices,
    cores: Vec<Rest>,
    /// For each space its part.
    parts: Vec<Part>,
    /// So many more spaces may be played at once.
    room: usize,
    refused: u64,
    kept: Kept,
    /// For each CPU the turn that goes on there.
    current: Vec<Option<Turn>>,
    turns: Vec<Turn>,
    turns_left_out: u64,
}

impl<'a> Player<'a> {
    fn new(machine: &'a Machine, entry: &'a Entry, settings: &'a Settings) -> Player<'a> {
        let topology = &machine.topology;
        Player {
            entry,
            settings,
            topology,
            prices: Prices::new(machine, Memory::ZeroPage),
            cores: vec![Rest::default(); topology.cores() as usize],
            parts: Vec::new(),
            room: settings.policy_bytes / (WORK_BYTES + topology.cpus() as usize * WORK_CPU_BYTES),
            refused: 0,
            kept: Kept::new(settings.spaces_kept),
            current: vec![None; topology.cpus() as usize],
            turns: Vec::new(),
            turns_left_out: 0,
        }
    }

    /// The work for a space, begun at its first event if it is wanted.
    fn work(&mut self, at: At<'_>) -> Option<&mut Work> {
        let index = at.number as usize;
        if index >= self.parts.len() {
            self.parts.resize_with(index + 1, || Part::Unseen);
        }
        if matches!(self.parts[index], Part::Unseen) {
            self.parts[index] = self.begin(at.space.life.process);
        }
        match &mut self.parts[index] {
            Part::Played(work) => Some(work),
            Part::Unseen | Part::Ignored => None,
        }
    }

    /// Begins a space of a process, if it is wanted and there is room.
    fn begin(&mut self, process: Tid) -> Part {
        let wanted = &self.settings.processes;
        if !wanted.is_empty() && !wanted.contains(&process) {
            return Part::Ignored;
        }
        let Some(room) = self.room.checked_sub(1) else {
            self.refused += 1;
            return Part::Ignored;
        };
        self.room = room;
        Part::Played(Box::new(Work::new(self.entry, self.topology)))
    }

    /// A thread that runs uses its ID.
    fn acquire(&mut self, at: At<'_>, cpu: Cpu, thread: Thread) {
        let (topology, core) = (self.topology, self.topology.place(cpu).core as usize);
        let Some(work) = self.work(at) else { return };
        let id = work.policy.id(&at.view(), cpu, thread);
        let is_same = |turn: Turn| (turn.space, turn.thread, turn.id) == (at.number, thread, id);
        if self.current[cpu as usize].is_some_and(is_same) {
            return;
        }
        let Some(work) = self.work(at) else { return };
        let last = work.use_id(topology, id, cpu, at.now);
        let stolen = work.notice_steal();
        let turn = Turn {
            space: at.number,
            process: at.space.life.process,
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
        let rest = &self.cores[core];
        let idle = last.map_or(rest.last(), |last| rest.longest_since(last.at));
        let (_, ns) = self.prices.burst(topology, cpu, last.map(|last| last.cpu), idle);
        if let Some(work) = self.work(at) {
            work.tally.burst_ns += ns;
        }
        self.keep(before, at.now);
        self.keep(robbed, at.now);
    }

    /// Ends the turn of a CPU from which the ID was taken while its thread runs: that thread will ask anew.
    fn end_robbed(&mut self, cpu: Cpu, taken: Turn) -> Option<Turn> {
        let is_robbed = |turn: &mut Turn| (turn.space, turn.id) == (taken.space, taken.id);
        self.current[cpu as usize].take_if(|turn| cpu != taken.cpu && is_robbed(turn))
    }

    /// The turn of a CPU is over, if it was one of this space.
    fn end_turn(&mut self, at: At<'_>, cpu: Cpu) {
        let over = self.current[cpu as usize].take_if(|turn| turn.space == at.number);
        self.keep(over, at.now);
    }

    /// A turn is over.
    fn keep(&mut self, turn: Option<Turn>, now: Ns) {
        let Some(turn) = turn else { return };
        if self.turns.len() < self.settings.turns_kept {
            self.turns.push(Turn { to: now, ..turn });
        } else {
            self.turns_left_out += 1;
        }
    }
}

impl Work {
    fn new(entry: &Entry, topology: &Topology) -> Work {
        Work {
            policy: (entry.create)(topology),
            tally: Tally::default(),
            uses: Vec::new(),
            steals: 0,
        }
    }

    /// Notes that an ID is used now. Answers who used it before.
    fn use_id(&mut self, topology: &Topology, id: Id, cpu: Cpu, at: Ns) -> Option<Use> {
        let index = id as usize;
        if index >= self.uses.len() {
            self.uses.resize(index + 1, None);
        }
        let last = self.uses[index].replace(Use { cpu, at });
        self.tally.acquire(topology, id, cpu, last);
        last
    }

    /// Whether the policy has stolen since this was asked last.
    fn notice_steal(&mut self) -> bool {
        let steals = self.policy.work().steals;
        std::mem::replace(&mut self.steals, steals) != steals
    }
}

impl Listener for Player<'_> {
    fn spawn(&mut self, at: At<'_>, thread: Thread) {
        if let Some(work) = self.work(at) {
            work.policy.spawn(&at.view(), thread);
        }
    }

    fn exec(&mut self, at: At<'_>, cpu: Cpu, thread: Thread) {
        if let Some(work) = self.work(at) {
            work.policy.exec(&at.view(), cpu, thread);
        }
        self.acquire(at, cpu, thread);
    }

    fn affinity(&mut self, at: At<'_>, thread: Thread) {
        if let Some(work) = self.work(at) {
            work.policy.affinity(&at.view(), thread);
        }
    }

    fn migrate(&mut self, at: At<'_>, thread: Thread, from: Cpu, to: Cpu) {
        if let Some(work) = self.work(at) {
            work.policy.migrate(&at.view(), thread, from, to);
        }
    }

    fn switch(&mut self, at: At<'_>, cpu: Cpu, prev: Option<Thread>, next: Option<Thread>) {
        let Some(work) = self.work(at) else { return };
        work.policy.switch(&at.view(), cpu, prev, next);
        self.end_turn(at, cpu);
        if let Some(next) = next {
            self.acquire(at, cpu, next);
        }
    }

    fn tick(&mut self, at: At<'_>, cpu: Cpu, thread: Thread) {
        let Some(work) = self.work(at) else { return };
        work.policy.tick(&at.view(), cpu, thread);
        self.acquire(at, cpu, thread);
    }

    fn exit(&mut self, at: At<'_>, cpu: Cpu, thread: Thread) {
        let Some(work) = self.work(at) else { return };
        work.policy.exit(&at.view(), thread, cpu);
        self.end_turn(at, cpu);
    }

    fn end(&mut self, number: SpaceNumber, life: Life) {
        let Some(part) = self.parts.get_mut(number as usize) else { return };
        let Part::Played(work) = std::mem::replace(part, Part::Ignored) else { return };
        self.room += 1;
        let Work { policy, mut tally, .. } = *work;
        tally.work = policy.work();
        tally.memory_bytes = u64::from(tally.ids_used) * self.settings.area_bytes;
        if life.turns > 0 {
            self.kept.take(SpaceReplay { number, life, tally });
        }
    }

    fn busy(&mut self, now: Ns, cpu: Cpu, is_busy: bool) {
        let core = &mut self.cores[self.topology.place(cpu).core as usize];
        if is_busy { core.enter(now) } else { core.leave(now) }
    }
}
