//! This machine, for the simulator: its CPUs and caches as they are, and those of its costs that
//! are known.

use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::hint;
use std::io;
use std::time::{Duration, Instant};

use percid_sim::machine::{Costs, Machine, Sourced};
use percid_sim::topology::{Place, Topology};

use crate::burst::{AREA, burst};
use crate::exit::Failure;

/// The machine whose costs are taken where none are measured.
const LIKE: &str = "epyc-9654";

/// Which CPUs a description of this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Those that are plugged in, numbered without gaps: for what is simulated.
    Dense,
    /// All up to the last one that is plugged in, with the kernel's numbers: for what was recorded.
    /// One that is not plugged in stands on a core of its own, where nothing ever runs.
    Kernel,
}

/// Reads the machine and measures a hot burst, which takes some milliseconds.
pub fn machine(numbering: Numbering) -> Result<Machine, Failure> {
    let here = percid::machine::read();
    let like = Machine::preset(LIKE).expect("a machine that comes with the simulator");
    let places = places(&here.cpus, numbering);
    if places.is_empty() {
        let cause = io::Error::new(io::ErrorKind::NotFound, "the kernel names no core of any CPU");
        return Err(Failure::new("cannot describe this machine", cause));
    }
    let model = here.cpu_model.as_deref().unwrap_or("unnamed processor");
    let mut kernel = like.kernel.clone();
    assume(&mut kernel.hz, &like.name);
    assume(&mut kernel.slice_ms, &like.name);
    let name = format!("this machine, {model}");
    Ok(Machine { name, topology: Topology::new(places), kernel, costs: costs(&like) })
}

fn assume(given: &mut Sourced, like: &str) {
    given.origin = format!("assumption: not measured here, as for {like} ({})", given.origin);
    given.fitted = false;
}

fn costs(like: &Machine) -> Costs {
    let mut costs = like.costs.clone();
    costs.all_mut().into_iter().for_each(|(_, given)| assume(given, &like.name));
    costs.hot_ns = Sourced {
        value: hot_ns(),
        origin: "measured here: the fastest of the bursts of a few milliseconds".to_owned(),
        fitted: false,
    };
    costs
}

/// The places of the CPUs, in the order of their numbers.
fn places(cpus: &[percid::machine::Cpu], numbering: Numbering) -> Vec<Place> {
    let (mut cores, mut l3s) = (Numbers::default(), Numbers::default());
    let (mut sockets, mut nodes) = (Numbers::default(), Numbers::default());
    let mut places: Vec<Place> = Vec::new();
    let plugged_in = cpus.iter().filter_map(|cpu| Some((cpu, cpu.core?)));
    for (cpu, core) in plugged_in {
        // Virtual machines may not report sockets, caches or nodes: then there is one of them.
        let socket = socket(cpu.number).unwrap_or(0);
        let place = Place {
            core: cores.of(core),
            l3: l3s.of((socket, cpu.l3)),
            socket: sockets.of(socket),
            node: nodes.of(cpu.node),
        };
        while numbering == Numbering::Kernel && places.len() < cpu.number as usize {
            places.push(Place { core: cores.unnamed(), ..place });
        }
        places.push(place);
    }
    places
}

fn socket(cpu: u32) -> Option<i64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Numbers from 0 without gaps, in the order in which things are met first.
struct Numbers<T> {
    met: HashMap<T, u32>,
    next: u32,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers { met: HashMap::new(), next: 0 }
    }
}

impl<T: Hash + Eq> Numbers<T> {
    fn of(&mut self, thing: T) -> u32 {
        let next = self.next;
        let number = *self.met.entry(thing).or_insert(next);
        self.next += u32::from(number == next);
        number
    }

    /// The number of a thing that has no name and is not met again.
    fn unnamed(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}

/// How long to look for the fastest burst.
const MEASURED: Duration = Duration::from_millis(5);
/// Bursts that are timed together, so that reading the clock does not count.
const BATCH: u32 = 16;

/// A burst on memory that this core touched last, in nanoseconds.
fn hot_ns() -> f64 {
    let mut area = [0; AREA];
    let mut batch = || {
        let began = Instant::now();
        (0..BATCH).for_each(|_| burst(hint::black_box(&mut area)));
        began.elapsed().as_nanos() as f64 / f64::from(BATCH)
    };
    let end = Instant::now() + MEASURED;
    let mut fastest = batch();
    while Instant::now() < end {
        fastest = fastest.min(batch());
    }
    // A clock that stands still says only that it was short.
    fastest.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_numbered_without_gaps_as_they_are_met() {
        let mut numbers = Numbers::default();
        assert_eq!([7, 3, 7, 9].map(|thing| numbers.of(thing)), [0, 1, 0, 2]);
    }

    #[test]
    fn a_cpu_that_is_not_plugged_in_keeps_its_number_where_the_kernels_numbers_count() {
        let cpu = |number, core| {
            let mut cpu = percid::machine::read().cpus[0];
            (cpu.number, cpu.core, cpu.l3, cpu.node) = (number, core, Some(0), Some(0));
            cpu
        };
        let cpus = [(0, Some(0)), (1, None), (2, Some(2)), (3, Some(2)), (4, None)];
        let cpus = cpus.map(|(number, core)| cpu(number, core));
        let cores = |numbering| -> Vec<u32> {
            places(&cpus, numbering).iter().map(|place| place.core).collect()
        };
        assert_eq!(cores(Numbering::Dense), [0, 1, 1]);
        let as_numbered = cores(Numbering::Kernel);
        assert_eq!(as_numbered.len(), 4, "none above the last one");
        assert_eq!(as_numbered[2], as_numbered[3], "hardware threads of one core");
        assert!(as_numbered[1] != as_numbered[0] && as_numbered[1] != as_numbered[2]);
        assert!(as_numbered.iter().all(|&core| core < 3), "no gap in the numbers of cores");
    }

    #[test]
    fn this_machine_can_be_simulated_and_says_what_was_measured() {
        let machine = machine(Numbering::Dense).expect("a machine");
        assert!(machine.topology.cpus() >= 1 && machine.topology.cores() >= 1);
        for (name, given) in machine.costs.all() {
            assert_eq!(given.origin.contains("measured here:"), name == "hot_ns", "{name}");
            assert!(!given.fitted, "{name}: nothing was fitted to this machine");
        }
        let hot = machine.costs.hot_ns.value;
        assert!((50.0..100_000.0).contains(&hot), "{hot} ns for 256 cache lines");
    }
}
