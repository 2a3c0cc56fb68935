//! A workload on a certain machine, with numbers for all amounts and with scripts as lists of
//! operations.

use std::ops::Range;

use super::description::{
    Affinity, Amount, CpuMax, Memory, ScriptStep, Selection, SpreadKind, StrayWakes, Threads,
    Workload,
};
use super::part::Described;
use crate::file::Error;
use crate::machine::Machine;
use crate::random::Random;
use crate::time::{MS, Ns, US};
use crate::topology::{Cpu, Reach};

/// A workload that is ready for simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Simulated time; `None` for no limit.
    pub duration: Option<Ns>,
    /// The CPUs that may be used, in the order of their numbers.
    pub cpus: Vec<Cpu>,
    /// The wakes that land on a CPU against the scheduler's rule, if there are any.
    pub wakes: Option<Wakes>,
    /// The programs that run beside each other; one if the file lists none.
    pub parts: Vec<Part>,
    /// The groups of threads of all parts, part after part.
    pub groups: Vec<Group>,
    /// Changes of the affinity of all threads.
    pub affinity_changes: Vec<AffinityChange>,
}

/// One of the programs that run beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name in the file; the workload's name if the file lists no programs.
    pub name: String,
    /// The memory that its bursts write to.
    pub memory: Memory,
    /// Number of processes that run it.
    pub processes: u32,
    /// Run time limit of each process with its children, if there is one.
    pub quota: Option<Quota>,
    /// Indices of the program's groups that each of its processes has.
    pub groups: Range<usize>,
}

impl Part {
    /// Returns the indices of its groups.
    pub fn group_indices(&self) -> impl Iterator<Item = GroupIndex> + use<> {
        self.groups.clone().map(|at| GroupIndex(at as u32))
    }
}

/// A limit of CPU time, as in `cpu.max` of cgroup v2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Maximum run time of all threads together, per period.
    pub max: Ns,
    /// Length of the period.
    pub period: Ns,
}

/// The wakes that land on a CPU against the scheduler's rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wakes {
    /// Shares of the wakes that land at each distance from the thread's last CPU, from the same
    /// core to another socket.
    shares: [f64; 4],
    /// End of these wakes.
    pub until: Ns,
}

impl Wakes {
    const REACHES: [Reach; 4] = [Reach::Core, Reach::L3, Reach::Socket, Reach::Machine];

    /// Returns the distance at which a wake lands for a random number from 0 to 1; `None` if it
    /// follows the scheduler's rule.
    pub fn reach(&self, drawn: f64) -> Option<Reach> {
        let mut end = 0.0;
        let shares = self.shares.iter().zip(Wakes::REACHES);
        let mut ends = shares.map(|(share, reach)| {
            end += share;
            (end, reach)
        });
        ends.find(|(end, _)| drawn < *end).map(|(_, reach)| reach)
    }
}

impl Program {
    /// Returns a group of threads.
    pub fn group(&self, group: GroupIndex) -> &Group {
        &self.groups[group.0 as usize]
    }

    /// Returns the initial number of processes.
    pub fn processes(&self) -> u32 {
        self.parts.iter().map(|part| part.processes).sum()
    }

    /// Returns the initial number of threads, with all groups.
    pub fn threads(&self) -> u64 {
        let of_process = |part: &Part| -> u64 {
            self.groups[part.groups.clone()].iter().map(|group| u64::from(group.count)).sum()
        };
        self.parts.iter().map(|part| u64::from(part.processes) * of_process(part)).sum()
    }
}

/// Index of a group in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupIndex(pub u32);

/// Threads with the same script.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The name in the file.
    pub name: String,
    /// Number of threads.
    pub count: u32,
    /// `true` if each thread stays on one CPU. CPUs are assigned in order, and the assignment
    /// starts over if there are more threads than CPUs.
    pub pinned: bool,
    /// Creation time.
    pub start: Ns,
    /// Operations of each thread. A thread ends after the last one.
    pub ops: Vec<Op>,
}

/// One operation of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// Waits until all threads of the group have reached this operation.
    Barrier,
    /// Waits likewise, but computes in the meantime.
    SpinBarrier,
    /// Waits for this thread's turn, which begins `after` the previous turn.
    Turn {
        /// The pause between two turns.
        after: Ns,
        /// Maximum addition to the pause.
        jitter: Ns,
    },
    /// Ends the turn.
    EndTurn,
    /// Computes.
    Run {
        /// Duration.
        time: Spread,
        /// Own data that it goes through, in bytes: the same data each time.
        bytes: u64,
    },
    /// Writes to the area that the ID selects.
    Burst {
        /// Number of bursts without a pause.
        times: u32,
        /// `true` if the results include it.
        timed: bool,
    },
    /// Sleeps.
    Sleep(Spread),
    /// Sleeps until a timer expires.
    Timer {
        /// Time to the expiry.
        after: Ns,
        /// Maximum addition to it.
        jitter: Ns,
        /// `true` if `after` is multiplied by the thread's place in an order of its group that is
        /// shuffled once, from 0 on. The first thread does not sleep.
        by_place: bool,
    },
    /// Begins a loop of the given depth.
    Repeat {
        /// Number of iterations; `u32::MAX` for an endless loop.
        times: u32,
        /// Index of the first operation after the loop.
        past: u32,
        /// Number of surrounding loops.
        depth: u32,
    },
    /// Ends an iteration of a loop.
    Again {
        /// Index of the first operation inside the loop.
        first: u32,
        /// Number of surrounding loops.
        depth: u32,
    },
    /// Ends this thread and begins another one.
    Respawn,
    /// Copies the process.
    Fork {
        /// The group whose script the child's thread executes.
        group: GroupIndex,
    },
    /// Replaces the program.
    Exec,
    /// Blocks forever.
    Wait,
}

/// Maximum number of nested loops.
pub(crate) const MAX_DEPTH: usize = 4;

/// A duration that varies around a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// Constant.
    Constant(Ns),
    /// Uniform from 0 to twice this mean.
    Uniform(Ns),
    /// Exponential with this mean.
    Exponential(Ns),
}

impl Spread {
    /// Returns the mean.
    pub fn mean(self) -> Ns {
        match self {
            Spread::Constant(mean) | Spread::Uniform(mean) | Spread::Exponential(mean) => mean,
        }
    }

    /// Returns a duration, drawn by `random` if it varies.
    pub fn draw(self, random: &mut Random) -> Ns {
        match self {
            Spread::Constant(ns) => ns,
            Spread::Uniform(mean) => random.below(2 * mean + 1),
            Spread::Exponential(mean) => random.exponential(mean as f64) as Ns,
        }
    }
}

/// A change of the affinity of all threads, made from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffinityChange {
    /// Time of the first change.
    pub at: Ns,
    /// Time between repetitions.
    pub every: Option<Ns>,
    /// The selected CPUs that threads are confined to.
    pub to: Confinement,
}

/// The CPUs to which all threads are confined, with their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Neighbouring CPUs, from a random one on.
    Random(u32),
    /// The first CPUs.
    First(u32),
}

/// Maximum number of threads of all processes together, at the start.
const MAX_THREADS: u32 = 1_000_000;
/// Maximum number of processes, and of groups of threads, of all programs. With both limits, every
/// group of every process has a number that fits into an event of the engine.
const MAX_PROCESSES: u32 = 32_768;
const MAX_GROUPS: usize = 256;
/// Maximum data per pass: a tebibyte, in KiB.
const MAX_KB: f64 = 1_073_741_824.0;
/// Maximum time: a day, in milliseconds.
const MAX_MS: f64 = 86_400_000.0;

impl Workload {
    /// Returns the workload on a machine, with numbers for all amounts.
    ///
    /// # Errors
    ///
    /// Returns the line, the field, and what was expected if a number is not allowed, or a name is
    /// unknown.
    pub fn program(&self, machine: &Machine) -> Result<Program, Error> {
        self.program_on(select(self, machine)?)
    }

    /// Returns the workload on these CPUs, in the order of their numbers, regardless of the
    /// workload's own selection.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Workload::program`].
    pub fn program_on(&self, selected: Vec<Cpu>) -> Result<Program, Error> {
        let compiler = Compiler::of_all(self, selected.len() as u32);
        let duration = match &self.duration_ms {
            Some(amount) => Some(compiler.time(amount, &["duration_ms"], MS)?),
            None => None,
        };
        let changes: Result<Vec<AffinityChange>, Error> = self
            .affinity_changes
            .iter()
            .enumerate()
            .map(|(at, change)| compiler.affinity_change(at, change))
            .collect();
        let mut program = Program {
            duration,
            cpus: selected,
            wakes: compiler.wakes(&self.wakes)?,
            parts: Vec::new(),
            groups: Vec::new(),
            affinity_changes: changes?,
        };
        for described in self.described()? {
            compiler.add_part(&mut program, &described)?;
        }
        Ok(program)
    }
}

/// Returns the CPUs that the workload may use, in the order of their numbers.
fn select(workload: &Workload, machine: &Machine) -> Result<Vec<Cpu>, Error> {
    let compiler = Compiler::of_all(workload, machine.topology.cpus());
    let Selection { l3s, cores_per_l3, threads_per_core } = &workload.cpus;
    let topology = &machine.topology;
    let limit = |amount: &Option<Amount>, field: &str, most: u32| match amount {
        Some(amount) => compiler.count(amount, &["cpus", field], 1.0, f64::from(most)),
        None => Ok(most),
    };
    let l3s = limit(l3s, "l3s", topology.l3s())?;
    let cores = limit(cores_per_l3, "cores_per_l3", topology.cores_per_l3())?;
    let threads = limit(threads_per_core, "threads_per_core", topology.threads_per_core())?;
    let ranks = topology.ranks();
    let is_selected = |cpu: &Cpu| {
        let rank = ranks[*cpu as usize];
        topology.place(*cpu).l3 < l3s && rank.core_of_l3 < cores && rank.thread_of_core < threads
    };
    Ok((0..topology.cpus()).filter(is_selected).collect())
}

struct Compiler<'a> {
    workload: &'a Workload,
    cpus: u32,
    /// Path of fields before those that errors name.
    path: &'a [String],
    /// The groups of threads that scripts may name; `first_group` is the index of the first one.
    threads: &'a [Threads],
    first_group: usize,
}

impl<'a> Compiler<'a> {
    /// Creates a compiler for the parts that concern all programs.
    fn of_all(workload: &'a Workload, cpus: u32) -> Compiler<'a> {
        Compiler { workload, cpus, path: &[], threads: &[], first_group: 0 }
    }

    /// Adds one of the programs, and its groups of threads.
    fn add_part(&self, program: &mut Program, described: &Described<'_>) -> Result<(), Error> {
        let first = program.groups.len();
        let of_part = Compiler {
            workload: self.workload,
            cpus: self.cpus,
            path: &described.path,
            threads: described.threads,
            first_group: first,
        };
        let processes = match described.processes {
            Some(amount) => {
                let most = f64::from(MAX_PROCESSES);
                of_part.count(amount, &["processes"], 1.0, most)?
            }
            None => 1,
        };
        for (at, group) in described.threads.iter().enumerate() {
            program.groups.push(of_part.group(at, group)?);
        }
        let last = program.groups.len();
        if last == first || last > MAX_GROUPS {
            return Err(of_part.fault(&["threads"], "expected 1 to 256 groups of threads"));
        }
        program.parts.push(Part {
            name: described.name.to_owned(),
            memory: described.memory,
            processes,
            quota: described.quota.map(|quota| of_part.quota(quota)).transpose()?,
            groups: first..last,
        });
        if program.processes() > MAX_PROCESSES {
            let expected = "expected at most 32768, those of all programs together";
            return Err(of_part.fault(&["processes"], expected));
        }
        if program.threads() > u64::from(MAX_THREADS) {
            let expected = "expected at most 1000000 threads, those of all processes together";
            return Err(of_part.fault(&["threads"], expected));
        }
        Ok(())
    }

    fn fault(&self, path: &[&str], expected: &str) -> Error {
        Error::of_field(&self.workload.text, &self.path_of(path), expected)
    }

    fn path_of<'b>(&'b self, path: &[&'b str]) -> Vec<&'b str> {
        self.path.iter().map(String::as_str).chain(path.iter().copied()).collect()
    }

    fn value(&self, amount: &Amount, path: &[&str]) -> Result<f64, Error> {
        let product = match amount {
            Amount::Number(number) => return Ok(*number),
            Amount::Product(product) => product,
        };
        product.split('*').map(str::trim).try_fold(1.0, |value, factor| {
            let known = match factor {
                "cpus" => Some(f64::from(self.cpus)),
                name => self.workload.parameters.get(name).copied(),
            };
            let factor = known.or_else(|| factor.parse().ok()).ok_or_else(|| {
                let expected =
                    format!("{factor:?} is neither a number, nor `cpus`, nor a parameter");
                self.fault(path, &expected)
            })?;
            Ok(value * factor)
        })
    }

    fn count(&self, amount: &Amount, path: &[&str], least: f64, most: f64) -> Result<u32, Error> {
        let value = self.value(amount, path)?;
        if value.fract() == 0.0 && (least..=most).contains(&value) {
            Ok(value as u32)
        } else {
            let expected = format!("expected a whole number from {least} to {most}, found {value}");
            Err(self.fault_of(amount, path, &expected))
        }
    }

    /// Returns the error of a number. If a parameter is the number, the error names the parameter,
    /// which can be set without the file.
    fn fault_of(&self, amount: &Amount, path: &[&str], expected: &str) -> Error {
        match amount {
            Amount::Product(name) if self.workload.parameters.contains_key(name.trim()) => {
                let (name, field, cpus) = (name.trim(), self.path_of(path).join("."), self.cpus);
                let place = format!("{field}, on {cpus} CPUs");
                Error::of_file(format!("parameter {name}: {expected} ({place})"))
            }
            _ => self.fault(path, expected),
        }
    }

    fn time(&self, amount: &Amount, path: &[&str], unit: Ns) -> Result<Ns, Error> {
        let value = self.value(amount, path)?;
        let most = MAX_MS * MS as f64 / unit as f64;
        if (0.0..=most).contains(&value) {
            Ok((value * unit as f64) as Ns)
        } else {
            let expected = format!("expected a number from 0 to {most}, found {value}");
            Err(self.fault_of(amount, path, &expected))
        }
    }

    fn wakes(&self, astray: &StrayWakes) -> Result<Option<Wakes>, Error> {
        let StrayWakes { same_core, same_l3, same_socket, other_socket, until_ms } = astray;
        let given = [
            ("same_core", same_core),
            ("same_l3", same_l3),
            ("same_socket", same_socket),
            ("other_socket", other_socket),
        ];
        let mut shares = [0.0; 4];
        for (share, (field, amount)) in shares.iter_mut().zip(given) {
            let Some(amount) = amount else { continue };
            let path = ["wakes", field];
            *share = self.share(amount, &path)?;
        }
        if shares.iter().sum::<f64>() > 1.0 {
            return Err(self.fault(&["wakes"], "expected shares of which the sum is at most 1"));
        }
        let until = match until_ms {
            Some(amount) => self.time(amount, &["wakes", "until_ms"], MS)?,
            None => Ns::MAX,
        };
        let are_some = shares.iter().any(|share| *share > 0.0);
        Ok(are_some.then_some(Wakes { shares, until }))
    }

    fn quota(&self, quota: &CpuMax) -> Result<Quota, Error> {
        let max = self.time(&quota.max_us, &["quota", "max_us"], US)?;
        let period = match &quota.period_us {
            Some(amount) => self.time(amount, &["quota", "period_us"], US)?,
            None => 100 * MS,
        };
        if max < MS {
            return Err(self.fault(&["quota", "max_us"], "expected at least 1000, as Linux does"));
        }
        if !(MS..=1000 * MS).contains(&period) {
            let expected = "expected 1000 to 1000000, as Linux does";
            return Err(self.fault(&["quota", "period_us"], expected));
        }
        Ok(Quota { max, period })
    }

    fn group(&self, at: usize, group: &Threads) -> Result<Group, Error> {
        let at = at.to_string();
        let path = |field: &'static str| ["threads", &at, field];
        let start = match &group.start_ms {
            Some(amount) => self.time(amount, &path("start_ms"), MS)?,
            None => 0,
        };
        let mut ops = Vec::new();
        self.script(&mut ops, &group.script, &path("script"), 0)?;
        Ok(Group {
            name: group.name.clone(),
            count: self.count(&group.count, &path("count"), 0.0, f64::from(MAX_THREADS))?,
            pinned: group.pinned,
            start,
            ops,
        })
    }

    fn script(
        &self,
        ops: &mut Vec<Op>,
        steps: &[ScriptStep],
        path: &[&str],
        depth: u32,
    ) -> Result<(), Error> {
        for (at, step) in steps.iter().enumerate() {
            let at = at.to_string();
            let path = [path, &[at.as_str()]].concat();
            match step {
                ScriptStep::Repeat { times, steps } => {
                    self.repeat(ops, times.as_ref(), steps, &path, depth)?
                }
                ScriptStep::Respawn if !lets_time_pass(ops, 0) => {
                    let expected =
                        "expected a step that takes time before, else threads never end to begin";
                    return Err(self.fault(&path, expected));
                }
                step => ops.push(self.step(step, &path)?),
            }
        }
        Ok(())
    }

    fn repeat(
        &self,
        ops: &mut Vec<Op>,
        times: Option<&Amount>,
        steps: &[ScriptStep],
        path: &[&str],
        depth: u32,
    ) -> Result<(), Error> {
        if depth as usize == MAX_DEPTH {
            return Err(self.fault(path, "expected at most 4 loops inside each other"));
        }
        let times = match times {
            Some(amount) => self.count(amount, path, 0.0, f64::from(u32::MAX))?,
            None => u32::MAX,
        };
        let head = ops.len();
        let past = u32::MAX;
        ops.push(Op::Repeat { times, past, depth });
        self.script(ops, steps, path, depth + 1)?;
        if !lets_time_pass(&ops[head + 1..], head + 1) {
            return Err(self.fault(path, "expected a step that takes time, else it never ends"));
        }
        ops.push(Op::Again { first: head as u32 + 1, depth });
        ops[head] = Op::Repeat { times, past: ops.len() as u32, depth };
        Ok(())
    }

    fn step(&self, step: &ScriptStep, path: &[&str]) -> Result<Op, Error> {
        Ok(match step {
            ScriptStep::Barrier => Op::Barrier,
            ScriptStep::SpinBarrier => Op::SpinBarrier,
            ScriptStep::Turn { after_ms, jitter_us } => {
                let jitter = jitter_us.as_ref().map_or(Ok(0), |amount| self.time(amount, path, US));
                Op::Turn { after: self.time(after_ms, path, MS)?, jitter: jitter? }
            }
            ScriptStep::EndTurn => Op::EndTurn,
            ScriptStep::Run { us, spread, kb } => {
                let kb = kb.as_ref().map_or(Ok(0), |kb| self.count(kb, path, 0.0, MAX_KB));
                Op::Run { time: self.spread(us, *spread, path)?, bytes: u64::from(kb?) << 10 }
            }
            ScriptStep::Sleep {
                us,
                spread,
                by_place: false,
                slack_share: None,
                jitter_us: None,
            } => Op::Sleep(self.spread(us, *spread, path)?),
            ScriptStep::Sleep { us, spread, by_place, slack_share, jitter_us } => {
                if *spread != SpreadKind::Constant {
                    let expected = "expected a constant `us` beside the step's other fields";
                    return Err(self.fault(path, expected));
                }
                let slack =
                    slack_share.as_ref().map_or(Ok(0.0), |share| self.share(share, path))?;
                let jitter =
                    jitter_us.as_ref().map_or(Ok(0), |amount| self.time(amount, path, US))?;
                let after = (self.time(us, path, US)? as f64 * (1.0 + slack)) as Ns;
                Op::Timer { after, jitter, by_place: *by_place }
            }
            ScriptStep::Burst { times, timed } => {
                let most = f64::from(u32::MAX);
                let times =
                    times.as_ref().map_or(Ok(1), |amount| self.count(amount, path, 1.0, most));
                Op::Burst { times: times?, timed: *timed }
            }
            ScriptStep::Respawn => Op::Respawn,
            ScriptStep::Fork { group } => Op::Fork { group: self.group_named(group, path)? },
            ScriptStep::Exec => Op::Exec,
            ScriptStep::Wait | ScriptStep::Repeat { .. } => Op::Wait,
        })
    }

    fn share(&self, amount: &Amount, path: &[&str]) -> Result<f64, Error> {
        let share = self.value(amount, path)?;
        if (0.0..=1.0).contains(&share) {
            Ok(share)
        } else {
            let expected = format!("expected a share from 0 to 1, found {share}");
            Err(self.fault_of(amount, path, &expected))
        }
    }

    fn spread(&self, us: &Amount, kind: SpreadKind, path: &[&str]) -> Result<Spread, Error> {
        let mean = self.time(us, path, US)?;
        Ok(match kind {
            SpreadKind::Constant => Spread::Constant(mean),
            SpreadKind::Uniform => Spread::Uniform(mean),
            SpreadKind::Exponential => Spread::Exponential(mean),
        })
    }

    fn group_named(&self, name: &str, path: &[&str]) -> Result<GroupIndex, Error> {
        let found = self.threads.iter().position(|group| group.name == name);
        let expected = format!("{name:?} is no group of threads");
        found
            .map(|at| GroupIndex((self.first_group + at) as u32))
            .ok_or_else(|| self.fault(path, &expected))
    }

    fn affinity_change(&self, at: usize, change: &Affinity) -> Result<AffinityChange, Error> {
        let number = at.to_string();
        let path = |field: &'static str| ["affinity_changes", &number, field];
        let cpus = |amount: &Amount, field: &'static str| {
            self.count(amount, &path(field), 1.0, f64::from(self.cpus))
        };
        let to = match (&change.wander, &change.confine) {
            (Some(amount), None) => Confinement::Random(cpus(amount, "wander")?),
            (None, Some(amount)) => Confinement::First(cpus(amount, "confine")?),
            _ => {
                return Err(self.fault(
                    &["affinity_changes", &number],
                    "expected either `wander` or `confine`",
                ));
            }
        };
        let every = match &change.every_ms {
            Some(amount) => Some(self.time(amount, &path("every_ms"), MS)?),
            None => None,
        };
        if let (Some(0), Some(amount)) = (every, &change.every_ms) {
            return Err(self.fault_of(amount, &path("every_ms"), "expected more than 0"));
        }
        Ok(AffinityChange { at: self.time(&change.at_ms, &path("at_ms"), MS)?, every, to })
    }
}

/// Returns `true` if these operations take time; `first` is the index of the first one in its
/// script.
fn lets_time_pass(ops: &[Op], first: usize) -> bool {
    let mut at = 0;
    while let Some(op) = ops.get(at) {
        match op {
            Op::Run { .. } | Op::Burst { .. } | Op::Sleep(_) | Op::Timer { .. } | Op::Wait => {
                return true;
            }
            Op::Repeat { times: 0, past, .. } => {
                at = (*past as usize).saturating_sub(first).max(at + 1)
            }
            _ => at += 1,
        }
    }
    false
}
