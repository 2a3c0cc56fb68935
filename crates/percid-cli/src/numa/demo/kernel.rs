//! Effect of the kernel's own balancing on the comparison.

use crate::numa::nodes::KernelBalancing;

/// Returns its state, and its effect if several nodes have memory. Printed before any run.
pub(super) fn explained(kernel: KernelBalancing, has_nodes: bool) -> String {
    let state = format!("the kernel's own balancing: {}", kernel.text());
    if !has_nodes {
        return state;
    }
    let meaning = match kernel.value {
        None | Some(0) => "; it moves nothing in these runs",
        Some(_) if kernel.is_on() => {
            "; it moves pages in all runs, so those\n\
             \"without\" balancing are balanced too, and percid is compared with the kernel.\n\
             To compare with nothing, as root: sysctl kernel.numa_balancing=0"
        }
        Some(_) => {
            "; it moves no page among nodes of\n\
             one tier; where nodes are of different tiers, it moves pages in all runs"
        }
    };
    state + meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_told_apart_and_a_way_out_is_offered_where_one_is_needed() {
        let of = |value| explained(KernelBalancing { value }, true);
        for (value, state, moves) in [
            (None, "built without", "moves nothing"),
            (Some(0), ": off", "moves nothing"),
            (Some(1), ": on (1)", "are balanced too"),
            (Some(2), "tiers only (2)", "of different tiers"),
            (Some(3), ": on (3)", "are balanced too"),
        ] {
            let text = of(value);
            assert!(text.contains(state) && text.contains(moves), "{value:?}: {text}");
            let offered = text.contains("sysctl kernel.numa_balancing=0");
            assert_eq!(offered, matches!(value, Some(1 | 3)), "{value:?}: {text}");
        }
    }

    #[test]
    fn on_one_node_it_means_nothing() {
        let text = explained(KernelBalancing { value: Some(1) }, false);
        assert_eq!(text, "the kernel's own balancing: on (1)");
    }
}
