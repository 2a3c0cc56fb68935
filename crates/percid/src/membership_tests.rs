//! Tests of sets of members whose bits are taken behind a fence.

use std::sync::atomic::Ordering::Relaxed;

use crate::membership::take;
use crate::sys::atomic::AtomicU64;
use crate::sys::steps::{self, Fence, Step};

#[test]
fn nothing_is_taken_without_the_fence() {
    let words = [0, 6, 1 << 63].map(AtomicU64::new);
    let left = || words.each_ref().map(|word| word.load(Relaxed));
    let answering = |answer| {
        steps::watch(move |step| {
            assert!(matches!(step, Step::Membarrier(Fence::OfAll)), "{step:?}");
            Some(answer)
        })
    };
    let watching = answering(Err(libc::EINVAL));
    assert_eq!((take(&words), left()), ([0; 3], [0, 6, 1 << 63]));
    drop(watching);
    let watching = answering(Ok(()));
    assert_eq!((take(&words), left()), ([0, 6, 1 << 63], [0; 3]));
    drop(watching);
    let _watching = steps::watch(|step| panic!("{step:?} for nothing"));
    assert_eq!(take(&words), [0; 3]);
}
