//! Every quick configuration has the verdict that it must have, after exactly the exploration that
//! it should take.

use percid_models::catalogue::{Size, catalogue};
use percid_models::explore::Verdict;

/// Name, states visited, and the length of the counter-example (0: none).
const PINNED: &[(&str, usize, usize)] = &[
    ("b/two-moves", 70_278, 30),
    ("c/two-moves", 111_700, 38),
    ("d/two-moves", 119_364, 40),
    ("rules/one-agent", 89_937, 0),
    ("rules/two-agents", 68_645, 21),
    ("rules/two-agents/tagged/2-cpus", 63_630, 0),
    ("rules/no-barrier", 6_617, 15),
    ("table", 120_959, 0),
    ("table/one-id", 47_276, 0),
    ("table/three-ids", 116_686, 0),
    ("table/two-handlers", 254_436, 0),
    ("table/exits", 138_302, 0),
    ("table/open-signals", 122_926, 0),
    ("table/no-fence", 2_171, 21),
    ("table/fence-first", 2_584, 22),
    ("table/install-first", 4_305, 26),
    ("table/cpu-outside", 8_708, 24),
    ("table/waiting", 10, 3),
    ("table/waiting/deadlock", 76_532, 6),
    ("table/waiting/blocked", 58_470, 0),
];

#[test]
fn quick_configurations_have_the_verdicts_that_they_must_have() {
    let mut found = Vec::new();
    for case in catalogue().into_iter().filter(|case| case.size == Size::Quick) {
        let report = case.run();
        println!("{}: {report}", case.name);
        assert!(case.accepts(&report.verdict), "{}: {report}", case.name);
        let steps = match &report.verdict {
            Verdict::Holds => 0,
            Verdict::Broken { trace, .. } => trace.lines.len(),
        };
        found.push((case.name, report.states, steps));
    }
    let found: Vec<_> =
        found.iter().map(|(name, states, steps)| (name.as_str(), *states, *steps)).collect();
    assert_eq!(found, PINNED);
}
