//! The locations of malformed lines.
//!
//! Chunks are counted out of order, so the number of a line in the file is known only when the
//! chunks before it have been counted as well: each chunk notes how many lines it has.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::printable::printable;

/// Number of malformed lines that are shown.
pub(crate) const SHOWN: usize = 5;

/// Length of the shown part of a line, in bytes.
const EXCERPT: usize = 80;

/// A line that is no record of a request.
#[derive(Debug)]
pub(crate) struct Malformed {
    /// Its number within its chunk, from 0.
    line: u64,
    expected: &'static str,
    excerpt: String,
}

impl Malformed {
    pub(crate) fn new(line: u64, expected: &'static str, text: &[u8]) -> Malformed {
        let text = text.trim_ascii_end();
        let mut excerpt = printable(&text[..text.len().min(EXCERPT)]);
        if text.len() > EXCERPT {
            excerpt.push('…');
        }
        Malformed { line, expected, excerpt }
    }
}

/// A malformed line as it is reported.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Shown {
    /// Its number in the file, from 1.
    pub(crate) line: u64,
    pub(crate) expected: &'static str,
    pub(crate) excerpt: String,
}

/// The number of lines of each chunk, and the first malformed ones.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    lines: Vec<u64>,
    /// Malformed lines by chunk and line, so that a file that is read again changes nothing.
    first: BTreeMap<(usize, u64), Malformed>,
}

impl Places {
    pub(crate) fn new() -> Places {
        Places::default()
    }

    /// Notes what a chunk had.
    pub(crate) fn note(&self, chunk: usize, lines: u64, malformed: Vec<Malformed>) {
        let mut noted = self.noted();
        if noted.lines.len() <= chunk {
            noted.lines.resize(chunk + 1, 0);
        }
        noted.lines[chunk] = lines;
        noted.first.extend(malformed.into_iter().map(|it| ((chunk, it.line), it)));
        while noted.first.len() > SHOWN {
            noted.first.pop_last();
        }
    }

    /// Returns the number of lines of the file that were read so far.
    pub(crate) fn lines(&self) -> u64 {
        self.noted().lines.iter().sum()
    }

    /// Returns the first malformed lines, once all chunks have been noted.
    pub(crate) fn first_malformed(&self) -> Vec<Shown> {
        let noted = self.noted();
        let shown = noted.first.iter().map(|(&(chunk, line), malformed)| Shown {
            line: noted.lines[..chunk].iter().sum::<u64>() + line + 1,
            expected: malformed.expected,
            excerpt: malformed.excerpt.clone(),
        });
        shown.collect()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_across_chunks_noted_in_any_order() {
        let places = Places::new();
        places.note(2, 10, vec![Malformed::new(4, "a status", b"third")]);
        places.note(0, 7, vec![Malformed::new(0, "a host", b"first")]);
        places.note(1, 5, Vec::new());
        let lines: Vec<_> = places.first_malformed().iter().map(|it| it.line).collect();
        assert_eq!((lines, places.lines()), (vec![1, 17], 22));
    }

    #[test]
    fn the_first_ones_are_kept_whoever_comes_first() {
        let places = Places::new();
        for chunk in (0..100).rev() {
            places.note(chunk, 1, vec![Malformed::new(0, "a host", b"")]);
        }
        let lines: Vec<_> = places.first_malformed().iter().map(|it| it.line).collect();
        assert_eq!(lines, (1..=SHOWN as u64).collect::<Vec<_>>());
    }
}
