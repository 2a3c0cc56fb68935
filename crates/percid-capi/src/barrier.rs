//! Keeps panics inside the library: unwinding must not enter frames of C.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; if it panics, the answer is `otherwise`. The panic's message has been printed by
/// then.
///
/// Costs nothing as long as nothing panics. Unwind safety: percid's structures are shared between
/// threads and keep their promises when a thread stops anywhere.
#[inline(always)]
pub(crate) fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_answer() {
        assert_eq!(guard(-1, || 7), 7);
        assert_eq!(guard(-1, || panic!("this message is expected")), -1);
    }
}
