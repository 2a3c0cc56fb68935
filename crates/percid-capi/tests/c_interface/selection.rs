//! The tested combinations of compilers, libraries and sources: a selection, in which each program
//! has each of them once, or all combinations if `PERCID_MATRIX` is set.

use std::collections::BTreeSet;

use crate::installation::{Installation, all};
use crate::toolchain::{Compiler, compilers};

/// A requested source, or `None` for the default of the process.
pub(crate) type Source = Option<&'static str>;

pub(crate) const SOURCES: [Source; 4] = [None, Some("kernel"), Some("table"), Some("atomic")];

/// A way to make a program, and the sources that it is run with.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) compiler: Compiler,
    /// `shared` or `static`.
    pub(crate) library: &'static str,
    pub(crate) installation: &'static Installation,
    pub(crate) sources: &'static [Source],
}

/// Returns `true` if all combinations are tested.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("PERCID_MATRIX").is_some()
}

/// Returns the ways to build the program with this index in a list. Each compiler builds it with
/// one library, and the next program with the other one.
pub(crate) fn ways(index: usize) -> Vec<Way> {
    chosen_ways(index / 2, |compiler, library| (compiler + library + index).is_multiple_of(2))
}

/// Returns the ways to build the program with this index in a list of programs that compile slowly.
/// One compiler builds it, and the next program the other one, with either library.
pub(crate) fn linked_twice(index: usize) -> Vec<Way> {
    let compilers = compilers().len();
    chosen_ways(index / 2, |compiler, _| compiler == index % compilers)
}

/// Returns all ways, or those chosen by the numbers of compiler and library. One of two runs has
/// two sources, and the other run has the other two.
fn chosen_ways(turn: usize, is_chosen: impl Fn(usize, usize) -> bool) -> Vec<Way> {
    let mut ways = Vec::new();
    for (number, &compiler) in compilers().iter().enumerate() {
        for (other, (library, installation)) in all().into_iter().enumerate() {
            if is_whole() || is_chosen(number, other) {
                ways.push(Way { compiler, library, installation, sources: &SOURCES });
            }
        }
    }
    if let ([one, other], false) = (ways.as_mut_slice(), is_whole()) {
        let mut halves = [&SOURCES[..2], &SOURCES[2..]];
        halves.rotate_left(turn % 2);
        [one.sources, other.sources] = halves;
    }
    ways
}

/// Returns the compilers for the program with this index in a list: one of them, and the other one
/// for the next program.
pub(crate) fn some_compilers(index: usize) -> &'static [Compiler] {
    alternately(compilers(), index)
}

/// Returns one element of a list, and the next one for the next index; all of them if
/// `PERCID_MATRIX` is set.
pub(crate) fn alternately<T>(list: &[T], index: usize) -> &[T] {
    if is_whole() || list.is_empty() {
        return list;
    }
    let chosen = index % list.len();
    &list[chosen..=chosen]
}

/// Returns the ways to build the program with this index in a list, if one suffices.
pub(crate) fn one_way(index: usize) -> impl Iterator<Item = (Compiler, &'static Installation)> {
    let chosen = index / compilers().len() % 2;
    some_compilers(index).iter().flat_map(move |&compiler| {
        let libraries = all().into_iter().enumerate();
        let chosen = libraries.filter(move |(number, _)| is_whole() || *number == chosen);
        chosen.map(move |(_, (_, installation))| (compiler, installation))
    })
}

/// Control: every combination of a compiler, a library and a source is tested.
#[test]
fn four_programs_have_everything_with_everything() {
    for selection in [ways, linked_twice] {
        let mut found = BTreeSet::new();
        for way in (0..4).flat_map(selection) {
            found.extend(way.sources.iter().map(|source| (way.compiler.c, way.library, *source)));
        }
        assert_eq!(found.len(), compilers().len() * 2 * SOURCES.len());
    }
}
