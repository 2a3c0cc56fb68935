//! Containment of panics inside the library: unwinding must not enter frames of C. In the other
//! direction, the end of a thread, which is an unwinding too, must not enter the library: no
//! function is a cancellation point.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; if it panics, returns `otherwise`. The panic's message has been printed by then.
///
/// Costs nothing unless `body` panics. Unwind safety: percid's structures are shared between
/// threads and keep their guarantees when a thread stops anywhere.
#[inline(always)]
pub(crate) fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

unsafe extern "C" {
    safe fn pthread_setcancelstate(state: c_int, before: &mut c_int) -> c_int;
}

/// The value of glibc and musl.
const CANCEL_DISABLE: c_int = 1;

/// Does the same as [`guard`], with cancellation disabled. It is for bodies that read files, or
/// wait for threads, by functions of the C library. These are cancellation points, and the
/// unwinding of a thread that ends there would be caught here, which ends the process.
pub(crate) fn uncancelled<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // Neither call can fail: the arguments are valid states.
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
