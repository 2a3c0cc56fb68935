//! The value that a word of the running thread's ID probably has.
//!
//! A section that compares needs the value that it expects. To load it before costs more than a
//! section that fails and returns the value. So the first try guesses: threads often change one word
//! several times in turn, and then it is the value that they stored last.

use std::cell::Cell;

/// A guess for each thread.
pub(crate) type Guess = std::thread::LocalKey<Cell<i64>>;

/// Tries a change at most so many times: with the guess, and then with the value that was found.
const TRIES: u32 = 8;

/// The result of one try.
pub(crate) enum Try<R> {
    /// The change is decided, and the word probably has this value afterwards.
    Done(R, i64),
    /// The word has this value.
    Differs(i64),
}

/// Tries a change with values that are probably right. Returns `None` if it was not decided.
#[inline(always)]
pub(crate) fn with_guess<R>(
    guess: &'static Guess,
    mut change: impl FnMut(i64) -> Try<R>,
) -> Option<R> {
    let mut value = guess.get();
    for _ in 0..TRIES {
        match change(value) {
            Try::Done(result, after) => {
                guess.set(after);
                return Some(result);
            }
            Try::Differs(found) => value = found,
        }
    }
    None
}
