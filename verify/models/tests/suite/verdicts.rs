//! Every quick configuration has the verdict that it must have, after exactly the exploration that
//! it should take.

use percid_models::catalogue::{Case, Size, catalogue};
use percid_models::explore::{Report, Verdict};
use rayon::prelude::*;

/// Name, states visited, and the length of the counter-example (0: none).
const PINNED: &[(&str, usize, usize)] = &[
    ("b/late-move", 51_810, 16),
    ("b/late-scan", 140_460, 18),
    ("b/late-move/tagged", 155_083, 0),
    ("b/late-move/locked", 190_883, 0),
    ("b/late-move/unweighed", 155_544, 0),
    ("b/two-moves", 70_278, 30),
    ("c/late-move", 105_168, 19),
    ("c/late-scan", 246_341, 26),
    ("c/two-moves", 111_700, 38),
    ("d/late-move", 105_168, 19),
    ("d/late-scan", 246_341, 26),
    ("d/two-moves", 119_364, 40),
    ("e", 3_007, 0),
    ("e/four-threads", 5_033, 0),
    ("e/three-cpus", 137_409, 0),
    ("e/scarce", 3_356, 0),
    ("e/scarce/four-threads", 5_975, 0),
    ("e/scarce/three-cpus", 89_241, 0),
    ("e/two-words", 5_528, 12),
    ("e/no-transit", 2_833, 11),
    ("e/kept-in-transit", 4_215, 12),
    ("e/unlocked", 303, 12),
    ("e/marked-at-exit", 975, 16),
    ("rules/one-agent", 89_937, 0),
    ("rules/two-agents", 68_645, 21),
    ("rules/two-agents/tagged/2-cpus", 63_630, 0),
    ("rules/two-agents/locked/2-cpus", 13_735, 0),
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
    ("mask", 42_888, 0),
    ("mask/two-ids", 217_946, 0),
    ("mask/three-markers", 80_190, 0),
    ("mask/arm", 26_635, 0),
    ("mask/fences", 4_408, 0),
    ("mask/fences/arm", 28_379, 0),
    ("mask/fences/marker-only", 2_099, 0),
    ("mask/no-barrier/sequential", 743, 0),
    ("mask/no-membarrier", 728, 9),
    ("mask/membarrier-first", 2_303, 10),
    ("mask/visit-first", 2_938, 11),
    ("mask/test-first", 2_012, 10),
    ("mask/torn-take", 1_213, 9),
    ("mask/torn-set", 168, 6),
    ("mask/one-word", 5_858, 11),
    ("mask/fences/marker-only/arm", 529, 8),
    ("seizure/stack", 33_849, 0),
    ("seizure/stack/x86", 119_947, 0),
    ("seizure/stack/theft", 95_561, 0),
    ("seizure/stack/no-membarrier", 2_727, 20),
    ("seizure/stack/no-membarrier/items", 4_606, 23),
    ("seizure/stack/plain-membarrier", 3_258, 21),
    ("seizure/stack/membarrier-first", 3_272, 21),
    ("seizure/stack/no-confirmation", 3_861, 22),
    ("seizure/stack/no-confirmation/items", 4_596, 23),
    ("seizure/stack/plain-seizure", 2_303, 19),
    ("seizure/stack/no-lock", 35_297, 32),
    ("seizure/stack/gives-up", 6_388, 25),
    ("seizure/stack/release-first", 8_600, 27),
    ("seizure/stack/mark-first", 16_695, 30),
    ("seizure/stack/unprotected", 2_387, 17),
    ("seizure/stack/waits", 390, 10),
    ("seizure/stack/unfenced-theft", 7_753, 20),
    ("local", 8_567, 0),
    ("local/arm", 25_292, 0),
    ("local/theft", 12_577, 0),
    ("local/theft/x86", 27_505, 0),
    ("local/exchange", 36_494, 0),
    ("local/exchange/x86", 51_508, 0),
    ("local/no-exchange", 8_567, 0),
    ("local/open-first", 8_615, 0),
    ("local/exchange/open-first", 45_482, 0),
    ("local/no-membarrier", 6_494, 20),
    ("local/plain-membarrier", 7_642, 21),
    ("local/membarrier-first", 7_642, 21),
    ("local/no-closing", 6_434, 20),
    ("local/no-closing/progress", 5_788, 19),
    ("local/state-first", 7_895, 25),
    ("local/no-turns", 22_386, 29),
    ("local/open-first/no-exchange", 8_239, 23),
    ("local/clear-last", 8_671, 28),
    ("local/skips-held", 4_517, 17),
    ("local/waits", 2_757, 15),
    ("local/unfenced-theft", 3_158, 14),
    ("local/exchange/no-exchange", 29_884, 24),
    ("local/exchange/no-closing", 12_810, 18),
    ("local/exchange/no-first-look", 16_979, 21),
    ("local/exchange/no-second-look", 12_658, 17),
    ("sync/lock", 476_598, 0),
    ("sync/grace", 107_814, 0),
    ("sync/grace/two-readers", 132_701, 0),
    ("sync/count", 90_391, 0),
    ("sync/budget", 5_376, 0),
    ("sync/budget/three-threads", 30_643, 0),
    ("sync/lock/no-fence", 2_246, 9),
    ("sync/lock/fence-first", 5_939, 11),
    ("sync/lock/test-first", 5_210, 11),
    ("sync/lock/one-pass", 29_460, 15),
    ("sync/lock/wake-first", 470_938, 10),
    ("sync/lock/no-mutex", 54_476, 11),
    ("sync/grace/no-fence", 1_364, 16),
    ("sync/grace/fence-first", 2_281, 18),
    ("sync/grace/one-parity", 14_457, 24),
    ("sync/grace/load-first", 3_422, 18),
    ("sync/grace/one-pass", 133_464, 22),
    ("sync/count/no-bias", 19_952, 17),
    ("sync/count/bias-first", 1_201, 9),
    ("sync/count/open-unlocked", 7_670, 12),
    ("sync/count/torn-close", 16_772, 15),
    ("sync/count/test-last", 6_020, 13),
    ("sync/budget/undo", 4_864, 16),
    ("sync/budget/give-first", 1_188, 13),
    ("sync/budget/torn-collect", 2_904, 16),
];

/// Configurations whose exploration takes longest, each a wider form of one beside it.
const LARGE: [&str; 4] =
    ["table/three-ids", "table/two-handlers", "mask/two-ids", "mask/three-markers"];

/// Explores the quick configurations that are large, or all others.
fn verdicts_are_as_pinned(large: bool) {
    let is_chosen = |name: &str| LARGE.contains(&name) == large;
    let cases: Vec<Case> = catalogue()
        .into_iter()
        .filter(|case| case.size == Size::Quick && is_chosen(&case.name))
        .collect();
    let reports: Vec<Report> = cases.par_iter().map(Case::run).collect();
    let mut found = Vec::new();
    for (case, report) in cases.iter().zip(&reports) {
        println!("{}: {report}", case.name);
        assert!(case.accepts(&report.verdict), "{}: {report}", case.name);
        let steps = match &report.verdict {
            Verdict::Holds => 0,
            Verdict::Broken { trace, .. } => trace.lines.len(),
        };
        found.push((case.name.as_str(), report.states, steps));
    }
    let pinned = PINNED.iter().copied().filter(|(name, ..)| is_chosen(name));
    assert_eq!(found, pinned.collect::<Vec<_>>());
}

#[test]
fn quick_configurations_have_the_verdicts_that_they_must_have() {
    verdicts_are_as_pinned(false);
}

#[test]
#[ignore = "long: the largest of the quick ones take as long as half of the others"]
fn large_configurations_have_the_verdicts_that_they_must_have() {
    verdicts_are_as_pinned(true);
}
