//! Tests of the memory functions, for every system.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use super::memory::*;

/// A number of whole pages on every machine.
const PART: usize = 1 << 16;

fn byte(start: NonNull<u8>, offset: usize) -> &'static AtomicU8 {
    // SAFETY: the tests unmap memory only after its last use.
    unsafe { start.add(offset).cast().as_ref() }
}

#[test]
fn a_reservation_opens_in_parts_and_again() {
    let start = reserve(64 * PART).expect("address space");
    for part in [3, 5, 4] {
        // SAFETY: inside the reservation.
        assert!(unsafe { open(start.as_ptr().add(part * PART), PART) });
        for place in [part * PART, (part + 1) * PART - 1] {
            assert_eq!(byte(start, place).fetch_add(1, Relaxed), 0);
        }
    }
    // SAFETY: inside the reservation.
    assert!(unsafe { open(start.as_ptr().add(3 * PART), 3 * PART) });
    assert!([3, 4, 5].into_iter().all(|part| byte(start, part * PART).load(Relaxed) == 1));
    // SAFETY: no thread uses it.
    unsafe { unmap(start, 64 * PART) };
}

#[test]
fn what_is_discarded_is_zero_and_what_is_beside_it_stays() {
    let start = map(3 * PART).expect("memory");
    for _ in 0..3 {
        (0..3 * PART).step_by(64).for_each(|place| byte(start, place).store(7, Relaxed));
        // SAFETY: memory of this test.
        assert!(unsafe { discard(start.as_ptr().expose_provenance() + PART, PART) });
        for place in (0..3 * PART).step_by(64) {
            let expected = if place / PART == 1 { 0 } else { 7 };
            assert_eq!(byte(start, place).load(Relaxed), expected, "{place:x}");
        }
    }
    // SAFETY: no thread uses it.
    unsafe { unmap(start, 3 * PART) };
}

/// A thread that has lost a race for a block reads memory that its new owner frees.
#[test]
#[cfg_attr(miri, ignore = "to Miri it is a race, as it would be to the language")]
fn who_looks_while_it_is_discarded_finds_something() {
    let start = map(PART).expect("memory");
    let (place, over) = (byte(start, 8), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                let seen = place.load(Relaxed);
                assert!([0, 9].contains(&seen), "{seen}");
            }
        });
        for _ in 0..5000 {
            place.store(9, Relaxed);
            // SAFETY: memory of this test, whose contents do not matter.
            assert!(unsafe { discard(start.as_ptr().expose_provenance(), PART) });
        }
        over.store(true, Relaxed);
    });
    // SAFETY: no thread uses it.
    unsafe { unmap(start, PART) };
}

#[test]
#[cfg_attr(miri, ignore = "Miri gives up where there is no memory")]
fn what_no_machine_has_is_refused() {
    assert_eq!(map(usize::MAX - PART + 1), None);
}
