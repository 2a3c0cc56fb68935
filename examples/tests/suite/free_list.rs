//! The free list: what threads took, with every source.

use crate::program::{self, sources};

#[test]
fn every_block_is_counted() {
    for source in sources() {
        for (threads, lines) in
            [("1", "100000 blocks taken by 1"), ("4", "400000 blocks taken by 4")]
        {
            let outcome = program::run(env!("CARGO_BIN_EXE_free_list"), source, &[threads]);
            assert!(outcome.stdout.starts_with(lines), "{source:?}: {}", outcome.stdout);
        }
    }
}

#[test]
fn a_wrong_number_of_threads_is_refused() {
    for wrong in ["0", "1001", "many"] {
        let outcome = program::run(env!("CARGO_BIN_EXE_free_list"), None, &[wrong]);
        assert!(outcome.stderr.contains("from 1 to 1000"), "{wrong}");
        assert_eq!(outcome.status, 2, "{wrong}");
    }
}
