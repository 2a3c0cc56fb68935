//! This machine, for the simulator: its actual CPUs and caches, and those of its costs that are
//! known.

use std::fs;
use std::hint;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use percid_sim::machine::{Costs, Machine, Sourced};
use percid_sim::topology::{Place, Topology};

use crate::background;
use crate::burst::{AREA, burst};
use crate::exit::Failure;
use crate::node_distances::{self, NODES};
use crate::placing::{Described, Placing};

/// The machine that supplies costs that are not measured.
const LIKE: &str = "epyc-9654";

/// The CPUs in a description of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Plugged-in CPUs, numbered without gaps: for simulations.
    Dense,
    /// All CPUs up to the last one that is plugged in, with the kernel's numbers: for recordings. A
    /// CPU that is not plugged in is on a separate core, where nothing ever runs.
    Kernel,
}

/// Reads the machine, and measures a hot burst and the data that others displace, which takes a
/// tenth of a second.
pub fn machine(numbering: Numbering) -> Result<Machine, Failure> {
    let here = percid::machine::read();
    let like = Machine::preset(LIKE).expect("a machine that comes with the simulator");
    let (places, placing) = places(&here.cpus, numbering);
    if places.is_empty() {
        let cause = io::Error::new(io::ErrorKind::NotFound, "the kernel names no core of any CPU");
        return Err(Failure::new("cannot describe this machine", cause));
    }
    let model = here.cpu_model.as_deref().unwrap_or("unnamed processor");
    let name = format!("this machine, {model}");
    let kernel = like.kernel.assumed_like(&like.name);
    let mut topology = Topology::new(places);
    if let Some(distances) = node_distances::read(Path::new(NODES), &placing.nodes()) {
        // Ignore an invalid table.
        topology = topology.clone().with_distances(distances).unwrap_or(topology);
    }
    let mut machine = Machine { name, topology, kernel, costs: costs(&like) };
    let value = background::mb_s(&machine);
    machine.costs.background_mb_s = Sourced {
        value,
        origin: "measured here: bursts after pauses of 1 ms in which the CPU was busy".to_owned(),
        fitted: false,
    };
    Ok(machine)
}

fn costs(like: &Machine) -> Costs {
    let mut costs = like.costs.assumed_like(&like.name);
    costs.hot_ns = Sourced {
        value: hot_ns(),
        origin: "measured here: the fastest of the bursts of a few milliseconds".to_owned(),
        fitted: false,
    };
    for (level, size) in [(2, &mut costs.core_cache_kb), (3, &mut costs.l3_cache_kb)] {
        if let Some(value) = cache_kb(level) {
            let origin = format!("read here: the cache of level {level} of the first CPU");
            *size = Sourced { value, origin, fitted: false };
        }
    }
    costs
}

/// Returns the size of the first CPU's cache of a level, if the kernel reports it.
fn cache_kb(level: u32) -> Option<f64> {
    let read = |index: u32, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}");
        fs::read_to_string(path).ok()
    };
    let is_wanted = |index: &u32| {
        let found = read(*index, "level").and_then(|text| text.trim().parse().ok());
        found == Some(level)
    };
    let size = read((0..8).find(is_wanted)?, "size")?;
    size.trim().strip_suffix('K')?.parse().ok().filter(|&kb: &f64| kb >= 1.0)
}

/// Returns the positions of the CPUs, in the order of their numbers.
fn places(cpus: &[percid::machine::Cpu], numbering: Numbering) -> (Vec<Place>, Placing) {
    let mut placing = Placing::default();
    let mut places: Vec<Place> = Vec::new();
    for cpu in cpus.iter().filter_map(described) {
        let place = placing.place(&cpu);
        while numbering == Numbering::Kernel && places.len() < cpu.cpu as usize {
            places.push(placing.alone(place));
        }
        places.push(place);
    }
    (places, placing)
}

/// Describes a CPU; `None` if it is not plugged in.
fn described(cpu: &percid::machine::Cpu) -> Option<Described> {
    Some(Described {
        cpu: cpu.number,
        core: cpu.core?.into(),
        l3: cpu.l3.map(i64::from),
        socket: socket(cpu.number),
        node: cpu.node.map(i64::from),
    })
}

fn socket(cpu: u32) -> Option<i64> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Time for which the fastest burst is sought.
const MEASURED: Duration = Duration::from_millis(5);
/// Bursts that are timed together, so that the cost of reading the clock is negligible.
const BATCH: u32 = 16;

/// Returns the time of a burst on memory that this core touched last, in nanoseconds.
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
    // If the clock did not advance, the burst was merely short.
    fastest.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            places(&cpus, numbering).0.iter().map(|place| place.core).collect()
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
            let is_measured = ["hot_ns", "background_mb_s"].contains(&name);
            assert_eq!(given.origin.contains("measured here:"), is_measured, "{name}");
            assert!(!given.fitted, "{name}: nothing was fitted to this machine");
        }
        let hot = machine.costs.hot_ns.value;
        assert!((50.0..100_000.0).contains(&hot), "{hot} ns for 256 cache lines");
    }
}
