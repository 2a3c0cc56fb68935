//! percid's own table: the library's [`Space`] and order of an assignment, with modelled costs in
//! place of fences and signals. An ID is assigned when it is used, not at the switch.

use percid_rules::assign;
use percid_rules::space::{CpuState, Distance, IdState, Limits, Request, Space, SpaceCounters};

use super::impossible::Impossible;
use super::policy::{Id, Overhead, Policy, PolicySpec, Process, Thread, Work};
use super::threads::Threads;
use crate::time::MS;
use crate::topology::{Cpu, Topology};

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "percid-table",
    about: "percid's table from CPU to ID, in user space; extra IDs while steals are frequent",
    create: &|topology| Box::new(PercidTable::new(topology.cpus(), u32::MAX)),
};

/// The table with strict density.
pub(super) const STRICT: PolicySpec = PolicySpec {
    name: "percid-table-strict",
    about: "the same without extra IDs: never more than min(allowed CPUs, threads)",
    create: &|topology| Box::new(PercidTable::new(topology.cpus(), 0)),
};

struct PercidTable {
    /// Maximum number of IDs while steals are frequent.
    most: u32,
    counts: SpaceCounters,
    cpus: Vec<CpuState>,
    ids: Vec<IdState>,
    /// The CPU on which each thread last took an ID.
    previous_cpu: Threads<Option<Cpu>>,
    work: Work,
    overhead: Overhead,
}

impl PercidTable {
    fn new(cpus: u32, most: u32) -> PercidTable {
        PercidTable {
            most,
            counts: SpaceCounters::default(),
            cpus: vec![CpuState::default(); cpus as usize],
            ids: vec![IdState::default(); cpus as usize],
            previous_cpu: Threads::default(),
            work: Work::default(),
            overhead: Overhead::default(),
        }
    }

    fn space(&mut self) -> Space<'_> {
        Space::new(&mut self.counts, &mut self.cpus, &mut self.ids)
    }

    /// Assigns an ID to a CPU without one.
    fn enter(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible> {
        self.work.slow_paths += 1;
        self.overhead.slow_paths += 1;
        let limits =
            Limits { allowed: process.nr_cpus_allowed, threads: process.users, most: self.most };
        let now_ms = process.now / MS;
        let request = Request {
            cpu,
            thread: u64::from(thread),
            previous_cpu: *self.previous_cpu.get_mut(thread),
        };
        let table = &mut OnMachine { table: self, topology: process.topology };
        let obtained = assign::obtain(table, request, limits, now_ms);
        if let Some(expired) = obtained.expired {
            self.work.scans += 1;
            self.work.expired += u64::from(expired);
        }
        // No ID stays in transit here, so each is free or held by a CPU that can be stolen from.
        let id = obtained.id.ok_or(Impossible("no ID is free or held"))?;
        self.space().assign(cpu, id, u64::from(thread), now_ms);
        *self.previous_cpu.get_mut(thread) = Some(cpu);
        Ok(id)
    }
}

/// A table on a machine, on which CPUs have distances.
struct OnMachine<'a> {
    table: &'a mut PercidTable,
    topology: &'a Topology,
}

impl assign::Table for OnMachine<'_> {
    fn parts(&mut self) -> (Space<'_>, impl Fn(Cpu, Cpu) -> Distance) {
        let topology = self.topology;
        (self.table.space(), |a, b| topology.distance(a, b))
    }

    // A section takes no simulated time, so none is in flight: only the fences have a cost.
    fn unset(&mut self, _cpu: Cpu) {}

    fn restore(&mut self, _cpu: Cpu, _id: Id) {}

    fn fence(&mut self, cpu: Cpu) -> bool {
        self.table.work.steals += 1;
        self.table.overhead.fenced = Some(cpu);
        true
    }

    fn fence_all(&mut self, _evicted: u32) -> bool {
        self.table.overhead.fenced_all += 1;
        true
    }
}

impl Policy for PercidTable {
    fn exec(&mut self, process: &Process<'_>, _: Cpu, _: Thread) -> Result<(), Impossible> {
        let fresh = PercidTable::new(process.topology.cpus(), self.most);
        *self = PercidTable { work: self.work, ..fresh };
        Ok(())
    }

    fn id(&mut self, process: &Process<'_>, cpu: Cpu, thread: Thread) -> Result<Id, Impossible> {
        match self.space().held(cpu) {
            Some(id) => Ok(id),
            None => self.enter(process, cpu, thread),
        }
    }

    fn work(&self) -> Work {
        self.work
    }

    fn take_overhead(&mut self) -> Overhead {
        std::mem::take(&mut self.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn r1_r4_a_cpu_keeps_its_id_and_new_ones_come_first() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!((s.run(3, 0), s.run(1, 1)), (0, 1));
        s.idle(3);
        s.idle(1);
        assert_eq!((s.run(0, 2), s.run(1, 0)), (2, 1));
    }

    #[test]
    fn r6_a_thread_that_moves_takes_its_id_along() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.idle(1);
        assert_eq!(s.run(2, 1), 1);
        assert_eq!(s.work().steals, 1);
    }

    #[test]
    fn r7_before_a_theft_what_was_not_renewed_is_given_back() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.advance_ms(200);
        assert_eq!(s.run(2, 1), 1);
        assert_eq!((s.work().steals, s.work().scans), (1, 0), "the thread's own: no scan");
        s.exit(2);
        s.spawn(1);
        assert_eq!(s.run(3, 2), 0, "CPU 0 took it longest ago");
        let work = s.work();
        assert_eq!((work.steals, work.scans, work.expired), (1, 1, 1), "freed, not stolen");
    }

    #[test]
    fn r8_r9_the_bound_follows_the_threads() {
        let mut s = Scenario::new(&SPEC, 5);
        s.spawn(3);
        for cpu in 0..4 {
            assert_eq!(s.run(cpu, cpu), cpu);
        }
        s.exit(1);
        s.exit(2);
        assert_eq!(s.id(3), 3, "until somebody looks for an ID");
        s.run(4, 0);
        assert!(s.id(3) < 2);
    }
}
