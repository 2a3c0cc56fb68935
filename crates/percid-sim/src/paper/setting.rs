//! The published intermittent benchmark as a simulation: its machine, its workload, and the numbers
//! of both.

use crate::machine::{Machine, Parameter, Sourced};
use crate::published::Intermittent;
use crate::workload::Workload;

/// All inputs of the simulation of a cell.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The machine.
    pub machine: Machine,
    /// The workload, with its parameters set.
    pub workload: Workload,
}

impl Setting {
    /// Returns the published machine and benchmark.
    pub fn published() -> Setting {
        let mut machine = Machine::preset("epyc-9654").expect("the published machine is a preset");
        let origin = "not charged: what the kernel does is part of the fitted numbers".to_owned();
        machine.costs.scan_cpu_ns = Sourced { value: 0.0, origin, fitted: false };
        let workload = Workload::preset("intermittent").expect("the benchmark is a preset");
        Setting { machine, workload }
    }

    /// Returns the setting for one row of the table.
    pub fn row(&self, row: &Intermittent) -> Setting {
        let mut setting = self.clone();
        let per_l3 = row.threads / row.l3s;
        let cores = per_l3.min(setting.machine.topology.cores_per_l3());
        let set = [
            ("delay_ms", row.delay_ms as f64),
            ("l3s", f64::from(row.l3s)),
            ("cores_per_l3", f64::from(cores)),
            ("threads_per_core", f64::from(per_l3 / cores)),
        ];
        for (name, value) in set {
            setting.set(name, value);
        }
        setting
    }

    /// Sets a parameter of the benchmark.
    pub(super) fn set(&mut self, name: &str, value: f64) {
        self.workload.set(name, value).expect("a parameter of the benchmark");
    }

    /// Returns all numbers that the table depends on, with their origins: those of the machine, and
    /// those of the benchmark that its publication does not state.
    pub fn parameters(&self) -> Vec<Parameter> {
        let machine = &self.machine;
        let hz = [("hz", &machine.kernel.hz)];
        let of_the_machine = machine.costs.all().into_iter().chain(hz);
        let of_the_benchmark = OF_THE_BENCHMARK.iter().map(|&(name, origin, fitted)| Parameter {
            name,
            value: self.workload.parameters[name],
            origin: origin.to_owned(),
            fitted,
        });
        of_the_machine.map(Parameter::from).chain(of_the_benchmark).collect()
    }

    /// Returns one of [`Setting::parameters`] mutably. Its origin stays unchanged.
    pub fn number_mut(&mut self, name: &str) -> Option<&mut f64> {
        let Setting { machine, workload } = self;
        let (costs, clocks) = (machine.costs.all_mut(), machine.kernel.all_mut());
        let of_the_machine = costs.into_iter().chain(clocks).find(|(known, _)| *known == name);
        match of_the_machine {
            Some((_, number)) => Some(&mut number.value),
            None => workload.parameters.get_mut(name),
        }
    }
}

/// Numbers of the benchmark that its publication does not state: name, origin, and `true` if it is
/// fitted.
const OF_THE_BENCHMARK: [(&str, &str, bool); 3] = [
    ("wake_us", "measured elsewhere as about 100 us; fitted to the published table", true),
    ("jitter_us", "assumption: timer slack and exits from deep idle states", false),
    ("setup_ms", "assumption: mapping the areas and creating the threads", false),
];
