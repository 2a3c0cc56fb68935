//! Threads that may run on one CPU only.

use std::collections::HashSet;

use percid_sim::cpu_list;

use crate::event::{Tid, What};
use crate::trace::Trace;

/// Prefixes of the names of kernel threads that are bound to one CPU each.
const BOUND_NAMES: [&str; 9] = [
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "cpuhp/",
    "rcuc/",
    "irq_work/",
    "idle_inject/",
    "ktimers/",
    "backlog_napi/",
];

/// And those that look like them and do not.
const FREE_NAMES: &str = "kworker/u";

/// Returns the threads that may run on one CPU only, by any event of the trace.
pub(super) fn bound(trace: &Trace) -> HashSet<Tid> {
    let mut bound = HashSet::new();
    for event in &trace.events {
        let is_bound = match event.what {
            What::Affinity { cpus, .. } => cpu_list::count(trace.texts.get(cpus)) == Some(1),
            What::Name { name, .. } => {
                let name = trace.texts.get(name);
                let begins = |bound: &&str| name.starts_with(*bound);
                BOUND_NAMES.iter().any(begins) && !name.starts_with(FREE_NAMES)
            }
            _ => false,
        };
        if let (true, What::Affinity { thread, .. } | What::Name { thread, .. }) =
            (is_bound, event.what)
        {
            bound.insert(thread);
        }
    }
    bound
}
