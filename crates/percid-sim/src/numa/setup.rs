//! The inputs of a simulated run, with the origin of each number.

use std::time::Duration;

use percid_rules::scan::{Settings, Tiers};
use serde::Serialize;

use super::parameters::Parameters;
use super::system::System;
use super::workload::Workload;
use crate::file::Error;
use crate::machine::Machine;
use crate::time::{MS, Ns, SECOND};

/// Maximum length of a run in simulated seconds.
const LONGEST_RUN: f64 = 3600.0;

/// Speed of local memory in bytes per second: fitted to the published time without the series.
const SPEED: f64 = 65e9;
/// Relative cost of a byte on the other node: fitted to the published time with the series.
const REMOTE_COST: f64 = 2.4;
/// Relative cost of a byte on a node without CPUs.
const SLOW_COST: f64 = 4.0;

/// A workload on a machine, with the assumptions about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The workload.
    pub workload: Workload,
    /// The machine.
    pub system: System,
    /// The assumptions about kernel and environment.
    pub parameters: Parameters,
    /// The constants of memory tiers, for rules that use them.
    pub tiers: Tiers,
    /// The constants of the scan.
    pub scan: Settings,
}

/// A parameter in a form for readers.
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// Description of the parameter.
    pub name: &'static str,
    /// Its value, with its unit.
    pub value: String,
    /// The origin of the value.
    pub origin: &'static str,
    /// `true` if it was fitted to the published values.
    pub fitted: bool,
}

impl Setup {
    /// Returns the published benchmark on its machine.
    pub fn published() -> Setup {
        let workload = Workload::preset("numa01-threadlocal").expect("a preset");
        let system = System::uniform("2 x Cascade Lake, 80 CPUs", 2, 80, SPEED, REMOTE_COST);
        let (parameters, tiers) = (Parameters::default(), Tiers::default());
        Setup { workload, system, parameters, tiers, scan: Settings::default() }
    }

    /// Returns the setup of a workload on a machine of the simulator. The machine's file has no
    /// speed of its memory, so that of the published machine is assumed until it is set.
    pub fn from_machine(machine: &Machine, workload: Workload) -> Setup {
        let mut system = System::from_machine(machine, SPEED, REMOTE_COST);
        system.slow_cost = SLOW_COST;
        let tick = machine.kernel.tick_ns();
        let parameters = Parameters { tick, ..Parameters::default() };
        let (tiers, scan) = (Tiers::default(), Settings::default());
        Setup { workload, system, parameters, tiers, scan }
    }

    /// The names that [`Setup::set`] accepts.
    pub const NAMES: [&'static str; 17] = [
        "processes",
        "threads",
        "mib",
        "rounds",
        "preparation_s",
        "cpus",
        "speed_gb_s",
        "remote_cost",
        "slow_cost",
        "cold_after_s",
        "hot_threshold_ms",
        "tiers_mib_s",
        "stay_s",
        "reluctance",
        "first_period_ms",
        "least_share",
        "main_share",
    ];

    /// Sets a number by its name.
    ///
    /// # Errors
    ///
    /// Returns the known names if `name` is unknown, or the expected values if the value is not
    /// allowed.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        if let Some(result) = self.workload.set(name, value) {
            return result;
        }
        let (least, most) = match name {
            "cpus" => (1.0, 8192.0),
            "speed_gb_s" => (0.001, 1e6),
            "remote_cost" | "slow_cost" => (1.0, 1000.0),
            "cold_after_s" => (0.0, 3600.0),
            "hot_threshold_ms" => (0.0, 60_000.0),
            "tiers_mib_s" => (1.0, 1e6),
            "stay_s" => (0.001, 1e9),
            "first_period_ms" => (1.0, 60_000.0),
            "least_share" => (0.01, 1.0),
            "main_share" | "reluctance" => (0.0, 1.0),
            _ => {
                let known = Setup::NAMES.join(", ");
                return Err(Error::of_file(format!("expected one of {known}")));
            }
        };
        if !(least..=most).contains(&value) {
            let expected = format!("{name}: expected {least} to {most}, found {value}");
            return Err(Error::of_file(expected));
        }
        let Setup { system, parameters, tiers, .. } = self;
        match name {
            "cpus" => system.cpus = value as u32,
            "speed_gb_s" => system.speed = value * 1e9,
            "remote_cost" => system.remote_cost = value,
            "slow_cost" => system.slow_cost = value,
            "cold_after_s" => tiers.cold_after = Duration::from_secs_f64(value),
            "hot_threshold_ms" => tiers.hot_threshold = Duration::from_secs_f64(value / 1000.0),
            "tiers_mib_s" => tiers.rate = (value * f64::from(1 << 20)) as u64,
            "stay_s" => parameters.stay = (value * SECOND as f64) as Ns,
            "first_period_ms" => parameters.first_period = (value * MS as f64) as Ns,
            "least_share" => parameters.least_share = value,
            "reluctance" => parameters.reluctance = value,
            _ => parameters.main_share = value,
        }
        Ok(())
    }

    /// Checks that a run ends in reasonable time.
    ///
    /// # Errors
    ///
    /// Returns the maximum duration of a run, if it is too long.
    pub fn check(&self) -> Result<(), Error> {
        let dearest = match self.system.all_nodes() > self.system.nodes() {
            true => self.system.remote_cost.max(self.system.slow_cost),
            false => self.system.remote_cost,
        };
        let slowest = self.fastest_s() * dearest;
        if slowest > LONGEST_RUN {
            let expected = format!(
                "expected a run of at most {LONGEST_RUN} simulated seconds, found up to {slowest:.0}: fewer \
                 rounds, less memory or faster memory (speed_gb_s)"
            );
            return Err(Error::of_file(expected));
        }
        Ok(())
    }

    /// Returns the time of a run in seconds if all memory is always local.
    pub fn fastest_s(&self) -> f64 {
        let traffic = self.workload.traffic() * f64::from(self.workload.processes);
        self.workload.preparation.seconds + traffic / self.system.speed
    }

    /// Returns the time at which the first phase begins.
    pub(super) fn prepared_at(&self) -> Ns {
        (self.workload.preparation.seconds * SECOND as f64) as Ns
    }

    /// Returns the share of a CPU that is available to each thread.
    pub(super) fn cpu_share(&self) -> f64 {
        let threads = f64::from(self.workload.processes) * f64::from(self.workload.threads);
        (f64::from(self.system.cpus) / threads).min(1.0)
    }

    /// Returns all numbers with their origins.
    pub fn list(&self) -> Vec<Parameter> {
        let mut list = self.facts();
        list.extend(self.fits());
        if self.system.all_nodes() > self.system.nodes() {
            list.extend(self.of_tiers());
        }
        list
    }

    fn facts(&self) -> Vec<Parameter> {
        let Setup { workload, system, parameters, .. } = self;
        let fact = |name, value, origin| Parameter { name, value, origin, fitted: false };
        let memory = workload.bytes() / super::workload::MIB;
        vec![
            fact("processes", workload.processes.to_string(), "the workload"),
            fact("workers a process", workload.threads.to_string(), "the workload"),
            fact("memory of a process", format!("{memory} MiB"), "the workload"),
            fact(
                "bound while preparing",
                yes(workload.preparation.bound),
                "the workload; a region without a policy has that of the scanning thread",
            ),
            fact("nodes", system.nodes().to_string(), "the machine"),
            fact("tick", seconds(parameters.tick), "HZ = 250, what distributions build"),
            fact(
                "first period",
                seconds(parameters.first_period),
                "the scan delay, Linux's default",
            ),
            fact("periods adapt", yes(parameters.adaptation), "Linux"),
            fact(
                "shortest period after a move",
                yes(parameters.hurry_after_move),
                "Linux, for threads that leave the node they prefer",
            ),
            fact(
                "workers return to the node they prefer",
                yes(parameters.go_home),
                "Linux, when they trap; that there is always a CPU for them is assumed",
            ),
        ]
    }

    fn of_tiers(&self) -> Vec<Parameter> {
        let Setup { system, tiers, .. } = self;
        let number = |name, value, origin| Parameter { name, value, origin, fitted: false };
        vec![
            number(
                "nodes without CPUs",
                (system.all_nodes() - system.nodes()).to_string(),
                "the machine",
            ),
            number(
                "a byte on a node without CPUs",
                system.slow_cost.to_string(),
                "assumption: between memory behind CXL and persistent memory",
            ),
            number(
                "cold after",
                format!("{} s", tiers.cold_after.as_secs_f64()),
                "percid's default: the shortest in Lagar-Cavilla and others, ASPLOS 2019",
            ),
            number(
                "hot threshold",
                format!("{} s", tiers.hot_threshold.as_secs_f64()),
                "Linux 6.1",
            ),
            number(
                "promotion and demotion",
                format!("{} MiB/s each", tiers.rate >> 20),
                "percid's default",
            ),
        ]
    }

    fn fits(&self) -> Vec<Parameter> {
        let Setup { workload, system, parameters, .. } = self;
        let fitted = |name, value, origin| Parameter { name, value, origin, fitted: true };
        vec![
            fitted(
                "main thread's share",
                parameters.main_share.to_string(),
                "base counts; that it runs follows from the published hash tables, where it scans",
            ),
            fitted(
                "file regions",
                parameters.file_regions.to_string(),
                "shared_ro against inaccessible; plausible are 14 to 16",
            ),
            fitted(
                "data regions",
                parameters.data_regions.to_string(),
                "pid_inactive against inaccessible",
            ),
            fitted("preparation", format!("{} s", workload.preparation.seconds), "unsuitable"),
            fitted("stay on a node", seconds(parameters.stay), "selective counts"),
            fitted(
                "moves from the preferred node left out",
                parameters.reluctance.to_string(),
                "Linux leaves them out until balancing has failed several times; none, because the updates fit better",
            ),
            fitted(
                "a doubled period puts off the process's pass",
                yes(parameters.put_off),
                "Linux does; left out because ignore_pid_inactive and elapsed cannot both be met with it",
            ),
            fitted(
                "CPUs",
                system.cpus.to_string(),
                "80 CPUs agree with the published processor times; published are two sockets",
            ),
            fitted(
                "least share of a CPU",
                parameters.least_share.to_string(),
                "published processor time: 93 217 s in 1234.77 s on 80 CPUs is a mean of 0.944",
            ),
            fitted("speed", format!("{} GB/s", system.speed / 1e9), "elapsed, base"),
            fitted("remote cost", system.remote_cost.to_string(), "elapsed, selective"),
        ]
    }
}

fn seconds(time: Ns) -> String {
    format!("{} s", time as f64 / SECOND as f64)
}

fn yes(on: bool) -> String {
    if on { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_listed_with_its_origin() {
        let setup = Setup::published();
        let list = setup.list();
        assert!(list.iter().all(|parameter| !parameter.origin.is_empty()));
        // The `Debug` output names each field once. In addition, the workload has five numbers and
        // the machine four.
        let fields = format!("{:?}", setup.parameters).matches(": ").count();
        assert_eq!(list.len(), fields + 5 + 4);
    }

    #[test]
    fn every_name_can_be_set_and_others_are_refused() {
        for name in Setup::NAMES {
            let mut setup = Setup::published();
            assert_eq!(setup.set(name, 1.0), Ok(()), "{name}");
            assert!(setup.set(name, -1.0).is_err(), "{name}");
        }
        let mut setup = Setup::published();
        assert!(setup.set("colour", 1.0).is_err());
    }

    #[test]
    fn a_run_without_an_end_is_refused() {
        let mut setup = Setup::published();
        assert_eq!(setup.check(), Ok(()));
        setup.set("rounds", 1e6).expect("a number");
        assert!(setup.check().is_err());
    }
}
