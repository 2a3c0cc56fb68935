//! Linux 6.14 to 6.18 (commit 02d954c0fdf9): like 6.13, but the number of IDs decreases when the
//! process has fewer threads (R9).

use super::impossible::Impossible;
use super::linux_6_13::{expand_or_first_free, is_full, is_settled};
use super::policy::{Id, PolicySpec, Process, Thread};
use super::slots::{CpuSlot, Generation, Ids, Slots};

pub(super) const SPEC: PolicySpec = PolicySpec {
    name: "linux-6.14",
    about: "Linux 6.14 to 6.18: as 6.13, and dense again after threads have ended",
    create: &|topology| Box::new(Slots::<Linux614>::new(topology.cpus())),
};

struct Linux614;

impl Generation for Linux614 {
    fn allocate(
        ids: &mut Ids,
        process: &Process<'_>,
        recent: Option<Id>,
    ) -> Result<Id, Impossible> {
        ids.max_nr_cid = ids.max_nr_cid.min(process.nr_cpus_allowed.min(process.users));
        let below = ids.max_nr_cid;
        if let Some(id) = recent.filter(|&id| id < below && ids.taken.take(id)) {
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

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    #[test]
    fn r9_fewer_threads_make_the_ids_dense_again() {
        let mut s = Scenario::new(&SPEC, 4);
        s.spawn(2);
        assert_eq!((s.run(0, 0), s.run(1, 1), s.run(2, 2)), (0, 1, 2));
        s.exit(0);
        s.exit(1);
        s.advance_ms(100);
        s.tick(2);
        assert_eq!(s.id(2), 2, "a running thread keeps its ID");
        s.idle(2);
        assert_eq!(s.run(2, 2), 0, "its recent ID is above the bound");
        s.spawn(1);
        assert_eq!(s.run(3, 3), 1, "expansion goes on from the lowered number");
    }
}
