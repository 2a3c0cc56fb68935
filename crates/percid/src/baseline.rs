//! The total of a floating-point sum that was taken already.
//!
//! Integers are taken by lowering the shared word (see [`shared_slot`](crate::shared_slot)). Floats
//! would not come out at zero: they round at each step. So a take stores the whole total in a word
//! of the object, the *baseline*, and every reading is the total less the baseline. If nothing was
//! added since, both are the same number and the difference is exactly zero.
//!
//! *Nothing is lost or taken twice.* Takes replace one baseline by the next, each in one exchange.
//! So the real amounts between them add up to the last total, whichever thread took in between.
//! That holds even if the baseline had another value in the meantime and returned to this one. The
//! result of a take is rounded once more than the totals are.
//!
//! *A reading contains all that the baseline contains*: the words of the IDs are read after the
//! baseline, and a take stores it after it has read them.

use crate::float_word::{float, float_bits};
use crate::sys::atomic::{
    AtomicI64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Returns the total that was not taken. `total` returns the total of all additions.
pub(crate) fn remaining(baseline: &AtomicI64, total: impl FnOnce() -> f64) -> f64 {
    // Acquire: pairs with the exchange in `take`. The total contains everything that was taken.
    let taken = float(baseline.load(Acquire));
    total() - taken
}

/// Takes the total that was not taken. Returns `None` if another thread took something during the
/// call: then try again.
pub(crate) fn take(baseline: &AtomicI64, total: impl FnOnce() -> f64) -> Option<f64> {
    // Acquire: pairs with the exchange below, of an earlier take.
    let before = baseline.load(Acquire);
    let total = total();
    // Release: pairs with the acquire loads above. Nothing is read afterwards.
    let replaced = baseline.compare_exchange(before, float_bits(total), Release, Relaxed);
    replaced.ok().map(|_| total - float(before))
}
