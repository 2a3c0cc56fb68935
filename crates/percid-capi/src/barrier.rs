//! Keeps panics inside the library: unwinding must not enter frames of C. And the other way round
//! the end of a thread, which is an unwinding too: no function is a cancellation point.

use std::ffi::c_int;
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

unsafe extern "C" {
    safe fn pthread_setcancelstate(state: c_int, before: &mut c_int) -> c_int;
}

/// glibc's and musl's.
const CANCEL_DISABLE: c_int = 1;

/// As [`guard`], for what reads files, or waits for threads, by functions of the C library: these
/// are cancellation points, and a thread that ends there would be caught here, which ends the
/// process.
pub(crate) fn uncancelled<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // Neither can fail: these are states.
    let _ = pthread_setcancelstate(CANCEL_DISABLE, &mut before);
    let answer = guard(otherwise, body);
    let _ = pthread_setcancelstate(before, &mut 0);
    answer
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
