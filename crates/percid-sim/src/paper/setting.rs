//! The published intermittent benchmark as a simulation: its machine, its workload, and the numbers
//! of both.

use super::basis::{Basis, Listed};
use crate::cost::Laws;
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
    /// The numbers in the formulas. Simulated bursts take the default; only costs that
    /// [`Findings`](super::findings::Findings) computes change with them.
    pub laws: Laws,
    /// Time after which unused IDs expire, in multiples of the kernel's 100 ms.
    pub expiry_times: f64,
    /// A parameter of the benchmark that is multiplied in all rows, and the factor.
    pub multiplied: Option<(String, f64)>,
}

impl Setting {
    /// Returns the published machine and benchmark.
    pub fn published() -> Setting {
        let mut machine = Machine::preset("epyc-9654").expect("the published machine is a preset");
        let origin = "not charged: what the kernel does is part of the fitted numbers".to_owned();
        machine.costs.scan_cpu_ns = Sourced { value: 0.0, origin, fitted: false };
        let workload = Workload::preset("intermittent").expect("the benchmark is a preset");
        let (laws, expiry_times, multiplied) = (Laws::default(), 1.0, None);
        Setting { machine, workload, laws, expiry_times, multiplied }
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
        if let Some((name, factor)) = &self.multiplied {
            if let Some(value) = setting.workload.parameters.get_mut(name) {
                *value *= factor;
            }
        }
        setting
    }

    /// Sets a parameter of the benchmark.
    pub(super) fn set(&mut self, name: &str, value: f64) {
        self.workload.set(name, value).expect("a parameter of the benchmark");
    }

    /// Returns the numbers of the machine, and those of the benchmark that are the same in all rows,
    /// with their origins.
    pub fn parameters(&self) -> Vec<Parameter> {
        let machine = &self.machine;
        let hz = [("hz", &machine.kernel.hz)];
        let of_the_machine = machine.costs.all().into_iter().chain(hz);
        let of_the_benchmark = OF_THE_BENCHMARK.iter().map(|listed| Parameter {
            name: listed.name,
            value: self.workload.parameters[listed.name],
            origin: listed.origin.to_owned(),
            fitted: listed.basis == Basis::Fitted,
        });
        of_the_machine.map(Parameter::from).chain(of_the_benchmark).collect()
    }

    /// Returns one of [`Setting::parameters`] mutably. Its origin stays unchanged.
    pub fn number_mut(&mut self, name: &str) -> Option<&mut f64> {
        let Setting { machine, workload, .. } = self;
        let (costs, clocks) = (machine.costs.all_mut(), machine.kernel.all_mut());
        let of_the_machine = costs.into_iter().chain(clocks).find(|(known, _)| *known == name);
        match of_the_machine {
            Some((_, number)) => Some(&mut number.value),
            None => workload.parameters.get_mut(name),
        }
    }
}

/// Numbers of the benchmark that are the same in all rows. Its source is librseq's
/// `tests/basic_percpu_benchmark.c`, added five days before the table was first sent.
pub(super) const OF_THE_BENCHMARK: [Listed; 5] = [
    Listed::new(
        "warmup",
        Basis::Published,
        "the benchmark's source, librseq commit 95febd5e1d57: 20 000 bursts before the timed ones",
    ),
    Listed::new(
        "later",
        Basis::Derived,
        "the benchmark's source, librseq commit 95febd5e1d57: of 5 timed bursts the first follows the warm-up",
    ),
    Listed::new(
        "wake_us",
        Basis::Fitted,
        "measured elsewhere as about 100 us; fitted to the published table",
    ),
    Listed::new(
        "jitter_us",
        Basis::Assumed,
        "assumption: timer slack and exits from deep idle states",
    ),
    Listed::new(
        "setup_ms",
        Basis::Assumed,
        "assumption: mapping the areas and creating the threads",
    ),
];
