//! Changes under a balancer: the size of pages, the nodes that the process may use, its memory
//! policy, the number of its threads, the process itself. They run on real nodes, each in its own
//! child. Each has a control, in which the same memory does what the change prevents, or stays
//! where it is without the change.

mod children;
mod cpuset;
mod crowd;
mod folios;
mod following;
mod policies;

use super::environment::{alone, nodes};
use super::hazards::in_child_of_its_own;
use super::stages::Stages;
use crate::options::Options;
use crate::verdict::Verdict;

/// `Ok` with a reason if the kernel has no such thing, which is said.
type Outcome = Result<Option<String>, String>;

/// A change and its name.
type Change = (&'static str, fn() -> Outcome);

const ALL: [Change; 6] = [
    ("small pages that become a huge one", folios::collapsed),
    ("folios of 64 KiB", folios::middle_sized),
    ("nodes that are forbidden and permitted again", cpuset::forbidden_for_a_time),
    ("a memory policy that threads inherit", policies::inherited),
    ("thousands of idle threads", crowd::idle),
    ("children made in the midst of passes", children::of_passes),
];

pub(crate) fn run(_: &Options) -> Verdict {
    if nodes().len() < 2 {
        return Ok("skipped: one node".to_owned());
    }
    alone()?;
    let mut stages = Stages::default();
    for (name, change) in ALL {
        stages.silent(name, || in_child_of_its_own(|| said(change())))?;
    }
    Ok(format!("changes={}", ALL.len()))
}

fn said(outcome: Outcome) -> Result<(), String> {
    if let Some(missing) = outcome? {
        eprint!(" skipped: {missing};");
    }
    Ok(())
}
