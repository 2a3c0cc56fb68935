//! Linux 6.13 (commit 7e019dcc470f): cache-local IDs. In addition to [`super::slots`], a CPU
//! remembers its ID (R1), and new IDs are assigned up to the bound before any is shared (R3 to R5).

use super::impossible::Impossible;
use super::policy::{Id, Policy, PolicySpec, Process, Thread};
use super::slots::{CpuSlot, Generation, Ids, Slot, Slots};
use crate::topology::Topology;

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "linux-6.13",
    about: "Linux 6.13: a CPU comes back to the ID that it had",
    create: &|topology| Box::new(Slots::<Linux613>::new(topology.cpus())),
};

/// The same policy, whose unused IDs expire after half of the time, and after twice the time.
pub(super) const WITH_OTHER_EXPIRY: [(f64, PolicySpec); 2] = [
    (0.5, PolicySpec { create: &|topology| create(topology, 0.5), ..SPEC }),
    (2.0, PolicySpec { create: &|topology| create(topology, 2.0), ..SPEC }),
];

fn create(topology: &Topology, expiry_times: f64) -> Box<dyn Policy> {
    Box::new(Slots::<Linux613>::new(topology.cpus()).with_period_times(expiry_times))
}

struct Linux613;

impl Generation for Linux613 {
    fn allocate(
        ids: &mut Ids,
        process: &Process<'_>,
        recent: Option<Id>,
    ) -> Result<Id, Impossible> {
        if let Some(id) = recent.filter(|&id| ids.taken.take(id)) {
            return Ok(id);
        }
        expand_or_first_free(ids, process)
    }

    fn is_settled(to: &CpuSlot) -> bool {
        is_settled(to)
    }

    fn is_full(process: &Process<'_>, _: Thread) -> bool {
        is_full(process)
    }
}

/// Assigns a new ID if the bound allows it (R4), otherwise the first free one (R5).
pub(super) fn expand_or_first_free(ids: &mut Ids, process: &Process<'_>) -> Result<Id, Impossible> {
    while ids.max_nr_cid < process.nr_cpus_allowed.min(process.users) {
        ids.max_nr_cid += 1;
        if ids.taken.take(ids.max_nr_cid - 1) {
            return Ok(ids.max_nr_cid - 1);
        }
    }
    let first = ids.taken.take_first_below(process.nr_cpus_allowed);
    first.ok_or(Impossible("CPUs that the process is not allowed hold its IDs"))
}

/// Returns `true` if the CPU needs no ID, because it has or remembers one (R6).
pub(super) fn is_settled(to: &CpuSlot) -> bool {
    to.slot != Slot::Unset || to.recent.is_some()
}

/// Returns `true` if there are at least as many threads as the process may have IDs (R6).
pub(super) fn is_full(process: &Process<'_>) -> bool {
    process.users >= process.nr_cpus_allowed
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::super::{PolicySpec, linux_6_4, linux_6_14};
    use super::*;

    /// Returns the IDs of four CPUs whose pinned threads run one after the other for 20 ms each.
    /// There is a pause of 60 ms for all threads between two rounds.
    fn rounds(entry: &PolicySpec) -> Vec<Vec<Id>> {
        let mut s = Scenario::new(entry, 4);
        s.spawn(3);
        let mut rounds = vec![(0..4).map(|cpu| s.run(cpu, cpu)).collect()];
        (0..4).for_each(|cpu| s.idle(cpu));
        for order in [[2, 0, 3, 1], [1, 3, 0, 2], [3, 2, 1, 0]] {
            let mut ids = vec![0; 4];
            for cpu in order {
                ids[cpu as usize] = s.run(cpu, cpu);
                s.advance_ms(20);
                s.tick(cpu);
                s.idle(cpu);
            }
            s.advance_ms(60);
            rounds.push(ids);
        }
        rounds
    }

    #[test]
    fn r1_r7_a_cpu_whose_slot_expired_gets_its_id_back() {
        for entry in [&SPEC, &linux_6_14::SPEC] {
            let rounds = rounds(entry);
            assert!(rounds.iter().all(|round| *round == [0, 1, 2, 3]), "{rounds:?}");
        }
        let wandering = rounds(&linux_6_4::SPEC);
        assert_ne!(wandering[3], wandering[0], "the control: 6.4 has no recent ID");
    }

    #[test]
    fn r4_expansion_comes_before_reuse() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!(s.run(0, 0), 0);
        s.exit(0);
        s.spawn(1);
        assert_eq!(s.run(1, 1), 1, "0 is free, and 1 was never used");
        assert_eq!(s.run(2, 2), 2);
        assert_eq!(s.run(3, 3), 0, "R5: no more than threads");
    }

    #[test]
    fn r3_r5_the_allowed_cpus_bound_too() {
        let mut s = Scenario::new(&SPEC, 8);
        s.allow(2);
        s.spawn(5);
        assert_eq!((s.run(6, 0), s.run(7, 1)), (0, 1));
        s.idle(7);
        assert_eq!(s.run(7, 2), 1);
    }

    #[test]
    fn r6_a_cpu_that_remembers_an_id_counts_as_settled() {
        let mut s = Scenario::new(&SPEC, 3);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.exit(1);
        // CPU 1 remembers ID 1, and its slot is unset. Two threads on three CPUs: the ID is freed.
        assert_eq!(s.run(1, 0), 1);
        assert_eq!(s.work().steals, 1);
        s.spawn(1);
        assert_eq!(s.run(0, 3), 2, "it was made to forget 0");
        // With three threads, everything stays unchanged.
        assert_eq!(s.run(0, 0), 2);
        assert_eq!(s.work().steals, 1);
    }

    #[test]
    fn r8_a_slot_above_the_ids_in_use_is_cleared() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(1, 1), s.run(2, 2)), (0, 1, 2));
        s.exit(0);
        s.exit(1);
        s.advance_ms(100);
        s.tick(2);
        assert_eq!((s.work().expired, s.id(2)), (1, 2), "2 >= 1 in use");
        s.idle(2);
        assert_eq!(s.run(2, 2), 2, "R9 is missing: the recent ID, although one thread is left");
    }
}
