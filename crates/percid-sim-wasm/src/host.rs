//! State that a module's imports read and write.

use std::sync::Arc;

use percid_sim::policies::{Overhead, Process, Work};
use percid_sim::topology::{Cpu, Topology};
use wasmi::errors::LinkerError;
use wasmi::{Caller, Engine, Error, Linker, StoreLimits, StoreLimitsBuilder};

use crate::interface::NAMESPACE;

/// Maximum memory of an instance, in bytes.
const MAX_MEMORY: usize = 16 << 20;

/// Maximum number of entries of an instance's table.
const MAX_TABLE: usize = 1 << 16;

/// State of one instance.
pub(crate) struct Host {
    now: u64,
    threads: u32,
    allowed_cpus: u32,
    /// The places of the CPUs, if the module asks for distances.
    distances: Option<Arc<Topology>>,
    pub(crate) work: Work,
    pub(crate) overhead: Overhead,
    limits: StoreLimits,
}

impl Host {
    pub(crate) fn new(distances: Option<Arc<Topology>>) -> Host {
        let limits = StoreLimitsBuilder::new().memory_size(MAX_MEMORY).table_elements(MAX_TABLE);
        Host {
            now: 0,
            threads: 0,
            allowed_cpus: 0,
            distances,
            work: Work::default(),
            overhead: Overhead::default(),
            limits: limits.build(),
        }
    }

    /// Begins another process, with the work of the start.
    pub(crate) fn restart(&mut self, work: Work, overhead: Overhead) {
        (self.now, self.threads, self.allowed_cpus) = (0, 0, 0);
        (self.work, self.overhead) = (work, overhead);
    }

    pub(crate) fn limits(&mut self) -> &mut StoreLimits {
        &mut self.limits
    }

    /// Takes over the numbers that imports return during a call.
    #[inline]
    pub(crate) fn observe(&mut self, process: &Process<'_>) {
        self.now = process.now;
        self.threads = process.users;
        self.allowed_cpus = process.nr_cpus_allowed;
    }

    /// Returns 0 for CPUs of one core, 1 for one last-level cache, 2 for one socket, otherwise 3.
    fn distance(&self, cpu: Cpu, other: Cpu) -> Result<i32, Error> {
        let Some(topology) = &self.distances else { return Ok(0) };
        let cpus = topology.cpus();
        if cpu >= cpus || other >= cpus {
            let what = format!("distance({cpu}, {other}): expected CPUs below {cpus}");
            return Err(Error::new(what));
        }
        Ok(topology.reach(cpu, other) as i32)
    }

    fn count(&mut self, what: i32, number: u32) -> Result<(), Error> {
        let number = u64::from(number);
        let total = match what {
            0 => &mut self.work.steals,
            1 => &mut self.work.scans,
            2 => &mut self.work.expired,
            3 => &mut self.work.slow_paths,
            _ => return Err(Error::new(format!("count({what}, ..): expected 0 to 3"))),
        };
        *total = total.saturating_add(number);
        Ok(())
    }

    fn charge(&mut self, what: i32, number: u32) -> Result<(), Error> {
        let Overhead { slow_paths, fenced, fenced_all, scans } = &mut self.overhead;
        match what {
            0 => *slow_paths = slow_paths.saturating_add(number),
            1 => *fenced = Some(number),
            2 => *fenced_all = fenced_all.saturating_add(number),
            3 => *scans = scans.saturating_add(number),
            _ => return Err(Error::new(format!("charge({what}, ..): expected 0 to 3"))),
        }
        Ok(())
    }
}

/// Returns the imports.
pub(crate) fn imports(engine: &Engine) -> Result<Linker<Host>, LinkerError> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(NAMESPACE, "now", |host: Caller<'_, Host>| host.data().now as i64)?
        .func_wrap(NAMESPACE, "threads", |host: Caller<'_, Host>| host.data().threads as i32)?
        .func_wrap(NAMESPACE, "allowed_cpus", |host: Caller<'_, Host>| {
            host.data().allowed_cpus as i32
        })?
        .func_wrap(NAMESPACE, "distance", |host: Caller<'_, Host>, cpu: i32, other: i32| {
            host.data().distance(cpu as Cpu, other as Cpu)
        })?
        .func_wrap(NAMESPACE, "count", |mut host: Caller<'_, Host>, what: i32, number: i32| {
            host.data_mut().count(what, number as u32)
        })?
        .func_wrap(NAMESPACE, "charge", |mut host: Caller<'_, Host>, what: i32, number: i32| {
            host.data_mut().charge(what, number as u32)
        })?;
    Ok(linker)
}
