//! Linux 6.4 to 6.12 (commit 223baf9d17f2): a slot per CPU, and the first free ID for an empty one.
//! A CPU whose slot was cleared gets any free ID, so its memory may be another CPU's.

use super::impossible::Impossible;
use super::policy::{Id, Policy, PolicySpec, Process, Thread};
use super::slots::{CpuSlot, Generation, Ids, Slot, Slots};
use crate::topology::Topology;

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "linux-6.4",
    about: "Linux 6.4 to 6.12: an ID per CPU for as long as it is used, then the first free one",
    create: &|topology| Box::new(Slots::<Linux64>::new(topology.cpus())),
};

/// The same policy, whose unused IDs expire after half of the time, and after twice the time.
pub(super) const WITH_OTHER_EXPIRY: [(f64, PolicySpec); 2] = [
    (0.5, PolicySpec { create: &|topology| create(topology, 0.5), ..SPEC }),
    (2.0, PolicySpec { create: &|topology| create(topology, 2.0), ..SPEC }),
];

fn create(topology: &Topology, expiry_times: f64) -> Box<dyn Policy> {
    Box::new(Slots::<Linux64>::new(topology.cpus()).with_period_times(expiry_times))
}

struct Linux64;

impl Generation for Linux64 {
    fn allocate(ids: &mut Ids, process: &Process<'_>, _: Option<Id>) -> Result<Id, Impossible> {
        let first = ids.taken.take_first_below(process.running.len() as u32);
        first.ok_or(Impossible("more IDs are held than there are CPUs"))
    }

    fn is_settled(to: &CpuSlot) -> bool {
        to.slot != Slot::Unset
    }

    /// Returns `true` if there are at least as many users as CPUs allowed to the thread, not to the
    /// process: always for a pinned thread.
    fn is_full(process: &Process<'_>, thread: Thread) -> bool {
        process.users >= process.thread_allowed[thread as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn a_slot_stays_while_it_is_used_and_wanders_after_a_scan() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!((s.run(0, 0), s.run(3, 1)), (0, 1));
        s.idle(0);
        s.idle(3);
        s.advance_ms(99);
        assert_eq!(s.run(3, 1), 1, "CPU 3 keeps its ID");
        s.advance_ms(1);
        s.tick(3);
        assert_eq!(s.work().expired, 2, "0 by its age, and 1 is not below the one ID in use");
        s.idle(3);
        assert_eq!(s.run(3, 1), 0, "what CPU 0 had");
        assert_eq!(s.run(0, 0), 1);
    }

    #[test]
    fn the_scan_needs_a_tick_of_a_running_thread_100_ms_after_the_start() {
        let mut s = Scenario::new(&SPEC, 2);
        s.spawn(1);
        s.run(0, 0);
        s.advance_ms(99);
        s.tick(0);
        assert_eq!(s.work().scans, 0);
        s.idle(0);
        s.advance_ms(1000);
        s.tick(0);
        assert_eq!(s.work().scans, 0, "nobody runs");
        s.run(0, 0);
        s.tick(0);
        s.tick(0);
        assert_eq!(s.work().scans, 1, "at most once in 100 ms");
        s.exec(0);
        s.advance_ms(99);
        s.tick(0);
        assert_eq!(s.work().scans, 1, "R10: exec begins anew");
        s.advance_ms(1);
        s.tick(0);
        assert_eq!(s.work().scans, 2);
    }

    #[test]
    fn the_weight_scan_marks_the_slot_of_a_running_thread_which_gives_it_back_itself() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(1, 1), s.run(2, 2)), (0, 1, 2));
        s.idle(0);
        s.idle(1);
        s.advance_ms(100);
        s.tick(2);
        assert_eq!(s.work().expired, 3, "0 and 1 by their age, 2 by its number");
        assert_eq!(s.id(2), 2, "LAZY: still in use");
        assert_eq!(s.run(0, 0), 0);
        assert_eq!(s.run(1, 1), 1);
        s.idle(2);
        assert_eq!(s.run(3, 2), 2, "free again");
    }

    #[test]
    fn r6_looks_at_the_thread_s_own_affinity() {
        for (allowed, steals) in [(4, 1), (2, 0)] {
            let mut s = Scenario::new(&SPEC, 4);
            s.spawn(1);
            s.restrict(1, allowed);
            s.run(0, 0);
            s.run(1, 1);
            s.idle(0);
            s.run(0, 1);
            assert_eq!(s.work().steals, steals, "2 threads, {allowed} CPUs");
        }
    }

    #[test]
    fn a_move_to_an_empty_cpu_takes_the_id_along() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.idle(1);
        assert_eq!(s.run(3, 1), 1);
        s.idle(3);
        assert_eq!(s.run(1, 1), 1);
        assert_eq!(s.work().slow_paths, 2);
    }

    #[test]
    fn a_cpu_that_runs_the_process_keeps_its_id_from_a_thread_that_left() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(1);
        assert_eq!(s.run(0, 0), 0);
        assert_eq!(s.run(0, 1), 0);
        s.migrate(0, 3);
        assert_eq!(s.work().steals, 0);
        assert_eq!(s.run(3, 0), 1);
        s.idle(0);
        s.run(2, 0);
        assert_eq!(s.work().steals, 1, "its ID of CPU 3");
    }

    #[test]
    fn r10_the_end_of_a_thread_gives_its_cpu_s_id_back() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(1, 1)), (0, 1));
        s.exit(0);
        assert_eq!(s.run(2, 2), 0);
    }
}
