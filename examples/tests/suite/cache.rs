//! The cache: its accounts, and figures that can be known beforehand.

use crate::program;

use std::collections::BTreeSet;

use program::{Outcome, sources};
use serde_json::{Value, json};

const CACHE: &str = env!("CARGO_BIN_EXE_cache");

fn cache(arguments: &str) -> Outcome {
    program::run(CACHE, None, &arguments.split_whitespace().collect::<Vec<_>>())
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Adds the pages up again, independent of the program's own verdict.
fn assert_accounts(report: &Value) {
    let of = |field: &str| number(&report["pages"][field]);
    assert_eq!(of("made"), of("cached") + of("pending") + of("idle"), "{report}");
    assert_eq!(of("leaked"), 0, "{report}");
    assert_eq!(number(&report["hits"]) + number(&report["misses"]), number(&report["lookups"]));
    assert_eq!((&report["wrong_pages"], &report["unwiped_pages"]), (&json!(0), &json!(0)));
}

#[test]
fn no_page_is_lost_doubled_wrong_or_unwiped() {
    for source in sources() {
        // Small, so that nearly every lookup evicts; seldom drained, so that batches get full.
        for arguments in [
            "--json --threads 8 --lookups 10000 --keys 20000 --capacity 1024 --skew 0.3",
            "--json --threads 4 --lookups 20000 --keys 20000 --capacity 1024 --skew 0.3 --drain-ms 5000",
        ] {
            let arguments: Vec<_> = arguments.split_whitespace().collect();
            let report = program::run(CACHE, source, &arguments).report();
            assert_accounts(&report);
            assert!(number(&report["misses"]) > 10_000, "{report}");
            assert_eq!(number(&report["pages"]["cached"]), 1024, "{report}");
            if let Some(source) = source {
                assert_eq!(report["source"], source.to_string());
            }
        }
    }
}

/// The keys of one thread are known: if none is evicted, there are as many misses as different
/// keys.
#[test]
fn a_cache_with_room_for_all_misses_every_key_once() {
    let arguments = "--json --threads 1 --lookups 50000 --keys 2000 --capacity 1000000 --skew 1";
    let report = cache(arguments).report();
    assert_accounts(&report);
    assert_eq!(report["misses"], report["pages"]["cached"]);
    assert_eq!(report["pages"]["made"], report["pages"]["cached"], "no page was evicted");
    assert!((1900..=2000).contains(&number(&report["misses"])), "{report}");
}

#[test]
fn the_hit_rate_depends_on_seed_and_room_only() {
    let hits = |capacity: u32, seed: u32| {
        let arguments = format!(
            "--json --threads 1 --lookups 30000 --keys 10000 --capacity {capacity} --seed {seed}"
        );
        number(&cache(&arguments).report()["hits"])
    };
    assert_eq!(hits(1024, 1), hits(1024, 1));
    let different: BTreeSet<_> = (1..=3).map(|seed| hits(1024, seed)).collect();
    assert!(different.len() > 1, "the seed has no effect");
    assert!(hits(256, 1) < hits(1024, 1) && hits(1024, 1) < hits(4096, 1));
}

#[test]
fn one_page_is_a_cache_too() {
    let report = cache("--json --threads 2 --lookups 1000 --keys 1 --capacity 1").report();
    assert_accounts(&report);
    assert_eq!(report["pages"]["cached"], 1);
    // Both threads may load it at the same time, once.
    assert!((1..=2).contains(&number(&report["misses"])), "{report}");
}

#[test]
fn text_names_the_figures() {
    let outcome = cache("--threads 2 --lookups 5000");
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    for part in ["10000 lookups", "hit rate", "idle\n", "IDs\n", "threads: 2"] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let cases = [
        ("--threads 0", "--threads must be 1 to"),
        ("--capacity 0", "--capacity must be at least 1"),
        ("--keys 0", "--keys must be 1 to"),
        ("--skew -1", "--skew must be 0 to 10"),
        ("--skew NaN", "--skew must be 0 to 10"),
        ("--seed today", "\"today\""),
        ("pages", "pages"),
    ];
    for (arguments, message) in cases {
        let outcome = cache(arguments);
        assert_eq!(outcome.status, 2, "{arguments}");
        assert!(outcome.stderr.contains(message), "{arguments}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{arguments}");
    }
    let help = cache("--help");
    assert!(help.status == 0 && help.stdout.contains("Usage: cache"), "{help:?}");
}
