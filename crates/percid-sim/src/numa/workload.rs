//! NUMA01_THREADLOCAL of the autonuma benchmark, and what is assumed about it.
//!
//! Each of two processes has one region of 3 GiB. Every worker first zeroes all of it with its own
//! memory policy bound to a node, and then its own part of it a thousand times under the default
//! policy.

use std::ops::Range;

use percid_rules::scan::{HUGE_PAGE, Traits};
use serde::Serialize;

use crate::time::{MS, Ns, SECOND};

/// A mebibyte.
const MIB: u64 = 1 << 20;
/// A part of a file that can be read only.
const FILE: Traits = Traits { file: true, writable: false, ..Traits::ANONYMOUS };
/// Memory without any access rights.
const GUARD: Traits = Traits { readable: false, writable: false, ..Traits::ANONYMOUS };
/// Memory that the kernel maps for its own use, like the data of its clocks.
const SPECIAL: Traits = Traits { movable: false, writable: false, ..Traits::ANONYMOUS };

/// A page, in bytes.
pub(super) const PAGE: u64 = 4096;

/// The benchmark, its machine and the assumptions. [`Parameters::list`] says where each comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Runs of the benchmark over which counts are summed.
    pub iterations: u32,
    /// Processes in each.
    pub processes: u32,
    /// Worker threads of a process.
    pub workers: u32,
    /// What a process zeroes, in bytes.
    pub memory: u64,
    /// How often each worker zeroes its part of it.
    pub rounds: u32,
    /// A tick of the scheduler.
    pub tick: Ns,
    /// The period that new threads begin with.
    pub first_period: Ns,
    /// The smallest share of a CPU that a worker gets between two looks; the greatest is 1.
    pub least_share: f64,
    /// Whether the workers' policy is bound while they prepare the memory.
    pub bound_preparation: bool,
    /// Whether periods follow the faults.
    pub adaptation: bool,
    /// Whether a worker that leaves the node it prefers begins again with the shortest period.
    pub hurry_after_move: bool,
    /// Whether a period that doubles puts off the next pass of the process too.
    pub put_off: bool,
    /// What the main thread runs after the preparation, as a share of what a worker does.
    pub main_share: f64,
    /// File segments that can only be read.
    pub file_regions: u32,
    /// Small regions that can be written, beside the workers' stacks.
    pub data_regions: u32,
    /// How long the preparation takes.
    pub preparation: Ns,
    /// The mean time between two moves of a worker to the other node.
    pub stay: Ns,
    /// The speed at which both processes zero together with half of the memory on the other node,
    /// in bytes a second.
    pub speed: f64,
    /// What a byte on the other node costs, if one on the own node costs 1.
    pub remote_cost: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            iterations: 7,
            processes: 2,
            workers: 40,
            memory: 3072 * MIB,
            rounds: 1000,
            tick: 4 * MS,
            first_period: 1000 * MS,
            least_share: 0.887,
            bound_preparation: true,
            adaptation: true,
            hurry_after_move: true,
            put_off: false,
            main_share: 0.95,
            file_regions: 14,
            data_regions: 12,
            preparation: 4700 * MS,
            stay: 270 * SECOND,
            speed: 38.6e9,
            remote_cost: 2.8,
        }
    }
}

/// A parameter, for readers.
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// Its value, with its unit.
    pub value: String,
    /// Where it comes from.
    pub origin: &'static str,
    /// Whether it was chosen so that the published figures come out.
    pub fitted: bool,
}

impl Parameters {
    /// All parameters with their origins.
    pub fn list(&self) -> Vec<Parameter> {
        let seconds = |time: Ns| format!("{} s", time as f64 / SECOND as f64);
        let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
        let fact = |name, value, origin| Parameter { name, value, origin, fitted: false };
        let fitted = |name, value, origin| Parameter { name, value, origin, fitted: true };
        vec![
            fact("iterations", self.iterations.to_string(), "the published counts are sums over 7"),
            fact("processes", self.processes.to_string(), "the benchmark's source"),
            fact(
                "workers a process",
                self.workers.to_string(),
                "half of the machine's CPUs; 80 CPUs agree with the published processor times",
            ),
            fact("memory", format!("{} MiB", self.memory / MIB), "the benchmark's source"),
            fact("rounds", self.rounds.to_string(), "the benchmark's source"),
            fact("tick", seconds(self.tick), "HZ = 250, what distributions build"),
            fact("first period", seconds(self.first_period), "the scan delay, Linux's default"),
            fact(
                "least share of a CPU",
                self.least_share.to_string(),
                "published processor time: 93 217 s in 1234.77 s on 80 CPUs is a mean of 0.944",
            ),
            fact(
                "bound while preparing",
                yes(self.bound_preparation),
                "the benchmark's source; a region without a policy has that of the scanning thread",
            ),
            fact("periods adapt", yes(self.adaptation), "Linux"),
            fact(
                "shortest period after a move",
                yes(self.hurry_after_move),
                "Linux, for threads that leave the node they prefer",
            ),
            fitted(
                "a doubled period puts off the process's pass",
                yes(self.put_off),
                "Linux does; left out because the counts fit better without",
            ),
            fitted(
                "main thread's share",
                self.main_share.to_string(),
                "base counts; that it runs follows from the published hash tables, where it scans",
            ),
            fitted(
                "file regions",
                self.file_regions.to_string(),
                "shared_ro against inaccessible; plausible are 14 to 16",
            ),
            fitted(
                "data regions",
                self.data_regions.to_string(),
                "pid_inactive against inaccessible",
            ),
            fitted("preparation", seconds(self.preparation), "unsuitable"),
            fitted("stay on a node", seconds(self.stay), "selective counts and migrations"),
            fitted("speed", format!("{} GB/s", self.speed / 1e9), "elapsed, base"),
            fitted("remote cost", self.remote_cost.to_string(), "elapsed, selective"),
        ]
    }
}

/// The threads that touch the pages of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// No thread, once they are there.
    Unused,
    /// A stack: its thread, all the time.
    Stack(u32),
    /// Each worker zeroes its part, round after round.
    Parts,
}

/// A region of the benchmark.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) range: Range<u64>,
    pub(super) traits: Traits,
    pub(super) used: Use,
    /// Pages that are there.
    pub(super) resident: u64,
}

/// The thread that a process begins with; workers count from 1.
pub(super) const MAIN: u32 = 0;
/// Pages that a small region has in memory.
const FEW: u64 = 2;
/// The size of everything but the memory that is zeroed.
const SMALL: u64 = 8 * MIB;
/// Segments of the program, and of the loader, that can only be read: header, code, constants, and
/// what is read-only after relocation.
const SEGMENTS: u32 = 4;
/// Small regions that can be written and whose places are known: data of the program and of the
/// loader, the heap, the main thread's stack.
const PLACED: u32 = 4;

/// The regions of a process, by ascending address: the program and its heap, a guard and a stack
/// per worker, the memory, libraries, what the kernel maps, the loader, the main thread's stack.
/// `skew` shifts the memory against huge pages, in pages.
pub(super) fn regions(parameters: &Parameters, skew: u64) -> Vec<Part> {
    let mut list = List { parts: Vec::new(), end: HUGE_PAGE };
    let first_files = SEGMENTS.min(parameters.file_regions);
    let last_files = SEGMENTS.min(parameters.file_regions - first_files);
    list.add(first_files, FILE, Use::Unused);
    list.add(2, Traits::ANONYMOUS, Use::Unused);
    for worker in 1..=parameters.workers {
        list.add(1, GUARD, Use::Unused);
        list.add(1, Traits::ANONYMOUS, Use::Stack(worker));
    }
    list.memory(parameters.memory, skew % (HUGE_PAGE / PAGE));
    list.add(parameters.file_regions - first_files - last_files, FILE, Use::Unused);
    list.add(parameters.data_regions.saturating_sub(PLACED), Traits::ANONYMOUS, Use::Unused);
    list.add(1, SPECIAL, Use::Unused);
    list.add(last_files, FILE, Use::Unused);
    list.add(1, Traits::ANONYMOUS, Use::Unused);
    list.add(1, Traits::ANONYMOUS, Use::Stack(MAIN));
    list.parts
}

struct List {
    parts: Vec<Part>,
    end: u64,
}

impl List {
    fn add(&mut self, count: u32, traits: Traits, used: Use) {
        for _ in 0..count {
            let range = self.end..self.end + SMALL;
            let resident = if traits == Traits::ANONYMOUS { FEW } else { 0 };
            self.parts.push(Part { range, traits, used, resident });
            self.end += SMALL;
        }
    }

    fn memory(&mut self, size: u64, skew: u64) {
        let start = self.end.next_multiple_of(HUGE_PAGE) + skew * PAGE;
        let (range, traits) = (start..start + size, Traits::ANONYMOUS);
        self.parts.push(Part { range, traits, used: Use::Parts, resident: size / PAGE });
        self.end = start + size;
    }
}
