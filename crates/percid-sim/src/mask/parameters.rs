//! The numbers of the model, from a machine and a workload.

use serde::Serialize;

use super::policy::Cycles;
use super::workload::{NUMBERS, Spread, Workload};
use crate::file::Error;
use crate::machine::{Machine, Parameter};
use crate::topology::{Cpu, Topology};

/// The rule by which CPUs get the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// In the order of arrival, like a home agent with one queue for each line.
    InOrder,
    /// The CPU nearest to the last owner first, and the oldest request among equals: as if caches
    /// passed the line among their own cores first.
    NearestFirst,
    /// All at once: each access takes its own transfer and waits for no other. No hardware can do
    /// so; it removes the queue from the model.
    Unqueued,
}

/// Maximum number of threads: more than Linux can number.
const MOST_THREADS: u64 = 1 << 22;

/// Latencies that the model takes from the machine's file.
pub(super) const LATENCIES: [&str; 3] = ["same_l3_ns", "same_socket_ns", "other_socket_ns"];

/// The numbers of the machine and of the program. The default is the published run.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The topology of the CPUs that are used.
    pub topology: Topology,
    /// Clock rate in GHz, which converts nanoseconds to cycles.
    pub clock_ghz: f64,
    /// Latency of a load from the own core's cache, in cycles.
    pub core_cycles: f64,
    /// Time to fetch a line from behind the same last-level cache, in nanoseconds.
    pub same_l3_ns: f64,
    /// Time to fetch a line from another cache of the socket or to invalidate it there, in
    /// nanoseconds.
    pub same_socket_ns: f64,
    /// Time to fetch a line from another socket or to invalidate it there, in nanoseconds.
    pub other_socket_ns: f64,
    /// Time of a locked instruction on a line that the core owns, in nanoseconds.
    pub locked_ns: f64,
    /// Time to load another address space's page tables, or the own ones again after a missed
    /// flush, in nanoseconds.
    pub reload_ns: f64,
    /// The rule by which CPUs get the line.
    pub arbitration: Arbitration,
    /// Number of processes, each with a mask.
    pub processes: u32,
    /// Number of threads of each process.
    pub threads: u32,
    /// Mean work of a turn, in microseconds of a hardware thread whose sibling is busy too.
    pub work_us: f64,
    /// Distribution of the work.
    pub work_spread: Spread,
    /// The scheduler's part of a switch without the mask, in microseconds of such a hardware
    /// thread.
    pub scheduler_us: f64,
    /// Speed of a hardware thread while its siblings wait, relative to normal. 1: no slowdown by
    /// sharing; 2: a core of two does no more with two threads than with one.
    pub alone_speed: f64,
    /// Share of switches that prefer a thread of another process. If `None`, the thread that has
    /// waited longest is next.
    pub other_space_share: Option<f64>,
    /// Share of turns after which the thread sleeps.
    pub sleep_share: f64,
    /// Mean sleep, in microseconds.
    pub sleep_us: f64,
    /// Share of turns after which a kernel thread runs.
    pub kernel_share: f64,
    /// Mean run time of the kernel thread, in microseconds.
    pub kernel_us: f64,
    /// Number of turns per flush of translations (an unmapping, a change of protection).
    pub turns_per_flush: f64,
    /// Minimum time between two trimmings, in milliseconds; only
    /// [`TrimRarely`](super::MaskPolicy::TrimRarely) uses it.
    pub trim_interval_ms: f64,
    /// Number of measured turns per CPU, after a fifth as many that are not measured.
    pub turns_per_cpu: u32,
}

/// Name of the machine of the published run; it comes with the simulator.
pub const PUBLISHED_MACHINE: &str = "ivy-bridge-ex";
/// Name of the workload of the published run.
pub const PUBLISHED_WORKLOAD: &str = "linpack";

/// Returns the machine and the workload of the published run.
pub(super) fn published() -> (Machine, Workload) {
    let machine = Machine::preset(PUBLISHED_MACHINE).expect("a preset");
    (machine, Workload::preset(PUBLISHED_WORKLOAD).expect("a preset"))
}

impl Default for Parameters {
    fn default() -> Parameters {
        let (machine, workload) = published();
        Parameters::from_machine(&machine, &workload).expect("the tests simulate it")
    }
}

/// Returns all numbers of a simulation with their origins: the machine's latencies and the
/// workload's numbers. The fitted ones come first.
pub fn numbers(machine: &Machine, workload: &Workload) -> Vec<Parameter> {
    let latencies = machine.costs.all().into_iter();
    let latencies = latencies.filter(|(name, _)| LATENCIES.contains(name)).map(Parameter::from);
    let mut numbers: Vec<Parameter> = workload.numbers().into_iter().chain(latencies).collect();
    numbers.sort_by_key(|number| !number.fitted);
    numbers
}

/// Sets a number of the workload or a latency of the machine.
///
/// # Errors
///
/// Returns the known names if `name` is unknown, or the expected values if the value is not
/// allowed.
pub fn set(
    machine: &mut Machine,
    workload: &mut Workload,
    name: &str,
    value: f64,
) -> Result<(), Error> {
    if LATENCIES.contains(&name) {
        return machine.set(name, value);
    }
    if NUMBERS.iter().any(|known| known.name == name) {
        return workload.set(name, value);
    }
    let all = NUMBERS.iter().map(|known| known.name).chain(LATENCIES);
    let all = all.collect::<Vec<_>>().join(", ");
    Err(Error::of_file(format!("expected one of {all}, found {name}")))
}

impl Parameters {
    /// Returns the numbers of a workload on a machine.
    ///
    /// # Errors
    ///
    /// Returns an error if the workload uses more CPUs than the machine has, or has too many
    /// threads.
    pub fn from_machine(machine: &Machine, workload: &Workload) -> Result<Parameters, Error> {
        let all = machine.topology.cpus();
        let number = |name| workload.get(name).unwrap_or(0.0);
        let cpus = workload.get("cpus").map_or(all, |cpus| cpus as u32);
        if cpus > all {
            let expected = format!("expected at most {all}, the CPUs of {}", machine.name);
            return Err(Error::of_file(format!("program.cpus: {expected}, found {cpus}")));
        }
        let [processes, threads] = ["processes", "threads"].map(|name| number(name) as u32);
        if u64::from(processes) * u64::from(threads) > MOST_THREADS {
            let expected = format!("expected at most {MOST_THREADS} threads in all");
            let fault = format!("program.threads: {expected}, found {processes} times {threads}");
            return Err(Error::of_file(fault));
        }
        Ok(Parameters {
            topology: cores_first(&machine.topology, cpus),
            clock_ghz: number("clock_ghz"),
            core_cycles: number("core_cycles"),
            same_l3_ns: machine.costs.same_l3_ns.value,
            same_socket_ns: machine.costs.same_socket_ns.value,
            other_socket_ns: machine.costs.other_socket_ns.value,
            locked_ns: number("locked_ns"),
            reload_ns: number("reload_ns"),
            arbitration: Arbitration::InOrder,
            processes,
            threads,
            work_us: number("work_us"),
            work_spread: workload.work_spread,
            scheduler_us: number("scheduler_us"),
            alone_speed: number("alone_speed"),
            other_space_share: workload.get("other_space_share"),
            sleep_share: number("sleep_share"),
            sleep_us: number("sleep_us"),
            kernel_share: number("kernel_share"),
            kernel_us: number("kernel_us"),
            turns_per_flush: number("turns_per_flush"),
            trim_interval_ms: number("trim_interval_ms"),
            turns_per_cpu: number("turns_per_cpu") as u32,
        })
    }

    /// Returns the parameters for the first `cpus` of the CPUs, or for all of them if there are
    /// fewer.
    pub fn with_cpus(&self, cpus: u32) -> Parameters {
        let cpus = cpus.min(self.topology.cpus());
        Parameters { topology: cores_first(&self.topology, cpus), ..self.clone() }
    }

    /// Converts nanoseconds to cycles, rounded.
    pub(super) fn cycles(&self, ns: f64) -> Cycles {
        (ns * self.clock_ghz).round() as Cycles
    }

    /// Converts microseconds to cycles.
    pub(super) fn cycles_of_us(&self, us: f64) -> f64 {
        us * 1e3 * self.clock_ghz
    }
}

/// Returns the topology of the first `cpus` CPUs. One CPU of each core comes before their siblings.
fn cores_first(topology: &Topology, cpus: u32) -> Topology {
    let ranks = topology.ranks();
    let mut order: Vec<Cpu> = (0..topology.cpus()).collect();
    order.sort_by_key(|&cpu| (ranks[cpu as usize].thread_of_core, topology.place(cpu).core));
    Topology::new(order.into_iter().take(cpus as usize).map(|cpu| topology.place(cpu)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_fill_cores_before_they_share_them() {
        let topology = Parameters::default().topology;
        assert_eq!((topology.place(14).socket, topology.place(15).socket), (0, 1));
        assert_eq!(topology.place(59).core, 59);
        assert_eq!(topology.place(60), topology.place(0));
        let some = Parameters::default().with_cpus(61).topology;
        assert_eq!((some.cpus(), some.cores(), some.threads_per_core()), (61, 60, 2));
        let adjacent: Vec<_> = [0, 60, 1, 61].map(|cpu| topology.place(cpu)).into();
        let mixed = cores_first(&Topology::new(adjacent), 3);
        assert_eq!([0, 1, 2].map(|cpu| mixed.place(cpu).core), [0, 1, 0]);
    }

    #[test]
    fn at_most_three_numbers_of_the_published_run_are_fitted() {
        let (machine, workload) = published();
        let numbers = numbers(&machine, &workload);
        assert_eq!(numbers.iter().take_while(|number| number.fitted).count(), 3);
        assert_eq!(numbers.iter().filter(|number| number.fitted).count(), 3);
        assert!(numbers.iter().any(|number| number.name == "other_socket_ns"));
    }

    #[test]
    fn numbers_of_both_files_can_be_set() {
        let (mut machine, mut workload) = published();
        set(&mut machine, &mut workload, "other_socket_ns", 300.0).expect("a latency");
        set(&mut machine, &mut workload, "reload_ns", 1.0).expect("a number");
        let parameters =
            Parameters::from_machine(&machine, &workload).expect("the machine has the CPUs");
        assert_eq!((parameters.other_socket_ns, parameters.reload_ns), (300.0, 1.0));
        let unknown = set(&mut machine, &mut workload, "hot_ns", 1.0).expect_err("not used here");
        assert!(unknown.to_string().contains("other_socket_ns"), "{unknown}");
        let fault = set(&mut machine, &mut workload, "threads", 0.5).expect_err("no number");
        assert!(!fault.to_string().contains("latency"), "{fault}");
        workload.set("cpus", 121.0).expect("another machine may have as many");
        let fault = Parameters::from_machine(&machine, &workload)
            .expect_err("this one has not")
            .to_string();
        assert!(fault.contains("program.cpus: expected at most 120"), "{fault}");
    }
}
