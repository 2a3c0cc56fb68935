//! The free list: what threads took, with every source.

use crate::program::{self, sources};

const PAGE: &str = include_str!("../../../docs/how-to/build-a-structure.md");
const LIST: &str = include_str!("../../free_list/free_list.rs");
const TESTS: &str = include_str!("../../free_list/tests.rs");

#[test]
fn the_page_shows_the_code_as_it_is() {
    let blocks = PAGE.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<&str> = blocks.collect();
    let [list, fault, structure] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    let before_the_test = LIST.split("\n#[cfg(test)]").next().unwrap_or_default();
    assert!(before_the_test.ends_with(list), "another list");
    assert!(TESTS.contains(fault) && TESTS.ends_with(structure), "other tests");
    assert!(list.lines().count() <= 80);
}

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
