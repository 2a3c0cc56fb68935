//! The table of bytes per object and ID in the README is that of this build.

use std::cell::Cell;
use std::rc::Rc;

use crate::per_id::Word;
use crate::sys::steps::{self, Step};
use crate::{
    Buckets, Counter, FloatCounter, Histogram, Local, Overflow, PerId, Pool, Ring, Source, Stack,
};

/// Returns the bytes of each ID's memory that belong to an object, which is created by `create`.
fn bytes_per_id<T>(create: impl FnOnce(Source) -> T) -> usize {
    let claimed = Rc::new(Cell::new(None));
    let seen = Rc::clone(&claimed);
    let watching = steps::watch(move |step| {
        if let Step::Claim(bytes) = step {
            seen.set(Some(seen.get().unwrap_or(bytes)));
        }
        None
    });
    drop(create(Source::Atomic));
    drop(watching);
    let bytes: usize = claimed.get().expect("it has memory of IDs");
    // Blocks have a power of two of words.
    bytes.next_multiple_of(8).next_power_of_two()
}

fn with_commas(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", with_commas(number / 1000), number % 1000),
    }
}

fn row<T>(name: &str, create: impl FnOnce(Source) -> T) -> String {
    let (object, per_id) = (with_commas(size_of::<T>()), with_commas(bytes_per_id(create)));
    format!("| {name} | {object} | {per_id} |")
}

/// Returns the first cells of all rows.
fn rows() -> [String; 9] {
    const AVAILABLE: &str = "the atomic source";
    [
        row("`Counter`", |source| Counter::with_source(source).expect(AVAILABLE)),
        row("`FloatCounter`", |source| FloatCounter::with_source(source).expect(AVAILABLE)),
        row("`Buckets`, 12", |source| Buckets::with_source(source, 12).expect(AVAILABLE)),
        row("`Histogram`", |source| Histogram::with_source(source).expect(AVAILABLE)),
        row("`Local<u64>`", |source| <Local<u64>>::with_source(source, || 0).expect(AVAILABLE)),
        row("`Stack`, capacity 64", |source| {
            Stack::<Box<u64>>::with_source(source, 64).expect(AVAILABLE)
        }),
        row("`Pool`, capacity 64", |source| {
            <Pool<u64>>::with_source(source, || 0, 64).expect(AVAILABLE)
        }),
        row("`Ring`, 64 KiB", |source| {
            Ring::with_source(source, 1 << 16, Overflow::DropNewest).expect(AVAILABLE)
        }),
        row("`PerId<Word>`", |source| {
            <PerId<Word>>::with_source(source, || Word::new(0)).expect(AVAILABLE)
        }),
    ]
}

/// Returns the rows that a text lacks.
fn missing(text: &str) -> Vec<String> {
    rows().into_iter().filter(|row| !text.contains(row.as_str())).collect()
}

#[test]
fn the_table_of_the_readme_has_the_sizes_of_this_build() {
    assert_eq!(missing(include_str!("../README.md")), [""; 0]);
}

/// Control: a size that has changed is reported.
#[test]
fn another_size_is_missed() {
    let [counter, ..] = rows();
    assert_eq!(counter, "| `Counter` | 8 | 8 |");
    let text = include_str!("../README.md").replace(&counter, "| `Counter` | 8 | 16 |");
    assert!(missing(&text).contains(&counter));
}
