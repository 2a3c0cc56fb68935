//! The cache with a read buffer: its tables, with every source, and wrong arguments.

use crate::program::{self, sources};

const PROGRAM: &str = env!("CARGO_BIN_EXE_read_cache");

#[test]
fn every_table_has_the_cache_with_each_number_of_threads() {
    for source in sources() {
        let arguments =
            ["--lookups", "4000", "--keys", "8000", "--capacity", "800", "--rounds", "1"];
        let outcome = program::run(PROGRAM, source, &arguments);
        assert_eq!(outcome.status, 0, "{source:?}: {}", outcome.stderr);
        let rows: Vec<Vec<&str>> =
            outcome.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
        let own: Vec<_> = rows.iter().filter(|row| row.first() == Some(&"percid")).collect();
        let threads: Vec<&str> = own.iter().map(|row| row[1]).collect();
        assert_eq!(threads, ["1", "2", "64"].repeat(3), "{source:?}: {}", outcome.stdout);
        for (number, row) in own.iter().enumerate() {
            let hit_rate: f64 = row[4].parse().expect("a number");
            assert_eq!(hit_rate == 1.0, number < 3, "{source:?}: {}", outcome.stdout);
        }
    }
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, message) in [
        (["--capacity", "7"], "--capacity must be at least 8"),
        (["--rounds", "0"], "must be at least 1"),
        (["--seed", "today"], "today"),
    ] {
        let outcome = program::run(PROGRAM, None, &arguments);
        assert_eq!(outcome.status, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(message), "{arguments:?}: {}", outcome.stderr);
    }
    let help = program::run(PROGRAM, None, &["--help"]);
    assert!(help.status == 0 && help.stdout.contains("Usage: read_cache"), "{help:?}");
}
