//! The common rules of the generations.

use super::{Case, Size, System, case};
use crate::kernel::{Memory, SHARED_ID};
use crate::rules::Rules;

/// Returns every configuration of the rules.
pub(super) fn all() -> Vec<Case> {
    let new = |agents, tagged| Rules::new(agents, tagged);
    let two_cpus = Rules { cpus: 2, ..new(2, true) };
    let locked = Rules { locks_source: true, ..new(2, false) };
    let after = Rules { sharing_ends: false, ..new(2, false) };
    let buffered = |barrier| Rules { memory: Memory::Buffered { barrier }, ..new(1, false) };
    let buffered_tagged = Rules { memory: Memory::Buffered { barrier: true }, ..two_cpus };
    cases! { Rules:
        "rules/one-agent", Quick, new(1, false), None,
            "b, c, d: one remote agent at a time is safe";
        "rules/two-agents", Quick, new(2, false), Some(SHARED_ID), "b, c, d: the ABA at its barest";
        "rules/two-agents/ownership", Full, after, None, "even so, no bit is freed twice or leaks";
        "rules/two-agents/tagged/2-cpus", Quick, two_cpus, None,
            "b, c, d: a version tag removes it (2 CPUs)";
        "rules/two-agents/tagged", Standard, new(2, true), None,
            "b, c, d: a version tag removes it";
        "rules/two-agents/locked/2-cpus", Quick, Rules { cpus: 2, ..locked }, None,
            "b, c, d: the source's run-queue lock removes it (2 CPUs)";
        "rules/two-agents/locked", Standard, locked, None,
            "b, c, d: the source's run-queue lock removes it";
        "rules/three-agents/tagged/2-cpus", Standard, Rules { agents: 3, ..two_cpus }, None,
            "b, c, d: also among three agents (2 CPUs)";
        "rules/barrier", Standard, buffered(true), None,
            "rule 5: the barrier makes a store buffer harmless";
        "rules/barrier/tagged/2-cpus", Standard, buffered_tagged, None,
            "rule 5, two agents, tagged (2 CPUs)";
        "rules/no-barrier", Quick, buffered(false), Some(SHARED_ID),
            "rule 5: without the barrier one agent is enough";
    }
}
