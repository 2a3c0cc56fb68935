//! The held consumer of a ring: for programs that fetch records instead of receiving callbacks.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use percid::capi::process;
use percid::ring::Poll;

use crate::barrier::guard;
use crate::ends::is_visiting;
use crate::registry::{Object, Registry};
use crate::ring::{Event, Ring};

/// The held consumer of a ring: percid_consumer_next() fetches one record after the other.
///
/// Threads: a consumer may be passed from one thread to another, and is used by one at a time.
/// While it is open, percid_ring_poll() returns -EBUSY.
/// Fork: the child has a copy, with which it may continue to read its copy of the records; then it
/// must not open another one. If a thread of the parent was in percid_consumer_next(), the record
/// that it was fetching may be missed, and the child's copy begins a new round.
/// Memory: about a hundred bytes, and as many as the longest record that it has fetched.
#[derive(Debug)]
pub struct Consumer {
    /// The program's handle of the ring, which may be destroyed before the consumer.
    ring: *const Ring,
    /// The process whose thread is using the consumer; 0 if none is.
    in_use: AtomicU64,
    held: UnsafeCell<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    consumer: percid::ring::Consumer<'static>,
    /// The current round.
    round: Option<Poll>,
}

// SAFETY: only the thread that has set `in_use` accesses `held`; the ring's handle is a number.
unsafe impl Send for Consumer {}
// SAFETY: only the thread that has set `in_use` accesses `held`, so shared references may be used
// by several threads.
unsafe impl Sync for Consumer {}

static CONSUMERS: Registry<Consumer> = Registry::new();

impl Object for Consumer {
    type Inner = Consumer;
    const TYPE: u64 = 40;
}

/// Occupies the place of the ring's consumer and stores a handle in `consumer`.
///
/// Returns 0; -EBUSY if the ring has a consumer, or another thread is polling it; -EDEADLK if the
/// caller itself is polling it, further up its stack; -EINVAL for NULL; -EBADF if the ring is
/// destroyed; -ENOMEM. On error `consumer` becomes NULL.
///
/// # Safety
///
/// `consumer` is [memory](crate#safety) for a handle, `ring` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_consumer_open(
    consumer: *mut *mut Consumer,
    ring: *mut Ring,
) -> c_int {
    let make = || {
        // SAFETY: the caller guarantees a handle. References to the object are used only while the
        // handle is good.
        let object: &'static percid::Ring = unsafe { Registry::object(ring.cast_const()) }?;
        if is_visiting(object) {
            return Err(-libc::EDEADLK);
        }
        let consumer = object.consumer().ok_or(-libc::EBUSY)?;
        let held = UnsafeCell::new(Some(Held { consumer, round: None }));
        Ok(Consumer { ring, in_use: AtomicU64::new(0), held })
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { CONSUMERS.create(consumer, make) }
}

/// Fetches the next record and stores it in `event`. Its bytes are valid until the next call for
/// this consumer.
///
/// Returns 1; or 0 at the end of a round, without changing `event`. A round contains every record
/// that was appended before it began, and ends however fast others are appended; the next call
/// begins another round.
///
/// Returns -EBUSY if another thread is using the consumer; -EINVAL for NULL; -EBADF if the consumer
/// is closed or its ring destroyed. Not async-signal-safe: it allocates if a record is longer than
/// all before. Costs a call, and the copying of the record.
///
/// # Safety
///
/// `consumer` is [a handle](crate#safety). `event` is [memory](crate#safety) for an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_consumer_next(consumer: *mut Consumer, event: *mut Event) -> c_int {
    if event.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    let consumer = match unsafe { Registry::object(consumer.cast_const()) } {
        Ok(consumer) => consumer,
        Err(error) => return error,
    };
    let next = |held: &mut Option<Held>| match held {
        Some(held) if consumer.has_ring() => Ok(guard(None, || held.next())),
        _ => Err(-libc::EBADF),
    };
    match consumer.with(next) {
        Ok(Some(found)) => {
            // SAFETY: the caller guarantees memory for an event, and it is not NULL.
            unsafe { event.write(found) };
            1
        }
        Ok(None) => 0,
        Err(error) => error,
    }
}

/// Releases the place of the ring's consumer; the next consumer continues where this one stopped.
///
/// Returns 0, also if the ring was destroyed before; -EBUSY if another thread is using the
/// consumer; -EINVAL for NULL; -EBADF if it was closed before. Its handle is still detected.
///
/// # Safety
///
/// `consumer` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_consumer_close(consumer: *mut Consumer) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let object = match unsafe { Registry::object(consumer.cast_const()) } {
        Ok(object) => object,
        Err(error) => return error,
    };
    let held = match object.with(|held| Ok(held.take())) {
        Ok(held) => held,
        Err(error) => return error,
    };
    guard((), || match held {
        Some(held) if object.has_ring() => held.end(),
        // A destroyed ring must not be accessed any more.
        Some(held) => held.consumer.abandon(),
        None => {}
    });
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { CONSUMERS.destroy(consumer) }
}

impl Consumer {
    /// Returns `true` if the ring exists. (Its destruction requires that it is not in use.)
    fn has_ring(&self) -> bool {
        // SAFETY: it was a good handle when the consumer was created.
        unsafe { Registry::object(self.ring) }.is_ok()
    }

    /// Runs `body` with exclusive access. In a child of fork the mark of a parent's thread is
    /// ignored, because the child does not have that thread.
    ///
    /// # Errors
    ///
    /// Fails if another thread uses the consumer, and with the errors of `body`.
    fn with<T>(
        &self,
        body: impl FnOnce(&mut Option<Held>) -> Result<T, c_int>,
    ) -> Result<T, c_int> {
        let own = process();
        let user = self.in_use.load(Relaxed);
        if user == own || self.in_use.compare_exchange(user, own, Acquire, Relaxed).is_err() {
            return Err(-libc::EBUSY);
        }
        if user != 0 {
            // SAFETY: this thread has set the mark, so no other one accesses `held`. The old value
            // is neither read nor dropped: the parent's thread may have been in the middle of a
            // change.
            unsafe { self.held.get().write(self.anew()) };
        }
        // SAFETY: this thread has set the mark, so no other one accesses `held`.
        let result = body(unsafe { &mut *self.held.get() });
        self.in_use.store(0, Release);
        result
    }

    /// Returns a new consumer that replaces the one that a thread of the parent was using.
    fn anew(&self) -> Option<Held> {
        // SAFETY: it was a good handle when the consumer was created; references to the object are
        // used only while it exists.
        let ring: &'static percid::Ring = unsafe { Registry::object(self.ring) }.ok()?;
        Some(Held { consumer: ring.consumer()?, round: None })
    }
}

impl Held {
    fn next(&mut self) -> Option<Event> {
        let round = self.round.get_or_insert_with(|| self.consumer.begin());
        let next = self.consumer.next(round).map(Event::from_percid);
        if next.is_none() {
            self.round = None;
        }
        next
    }

    fn end(mut self) {
        if let Some(round) = self.round {
            self.consumer.end(round);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::ring::{percid_ring_append, percid_ring_create, percid_ring_destroy};

    #[test]
    fn a_thread_of_the_parent_is_no_user_of_the_childs_copy() {
        let (mut ring, mut consumer) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointers are places for handles, handles, and a place for an event; an event
        // may be zero.
        unsafe {
            assert_eq!(percid_ring_create(&mut ring, 4096, 1), 0);
            assert_eq!(percid_ring_append(ring, c"record".as_ptr().cast(), 6), 0);
            assert_eq!(percid_consumer_open(&mut consumer, ring), 0);
            let held = Registry::object(consumer.cast_const()).expect("open");
            let mut event = std::mem::zeroed();
            held.in_use.store(process(), Relaxed);
            assert_eq!(percid_consumer_next(consumer, &mut event), -libc::EBUSY);
            assert_eq!(percid_consumer_close(consumer), -libc::EBUSY);
            // The state in a child of fork: another process holds the consumer's place, and the
            // mark names it.
            held.in_use.store(process() + 1, Relaxed);
            let abandoned = (*held.held.get()).take().expect("open");
            abandoned.end();
            assert_eq!(percid_consumer_next(consumer, &mut event), 1);
            assert_eq!(percid_consumer_next(consumer, &mut event), 0);
            held.in_use.store(process() + 1, Relaxed);
            (*held.held.get()).take().expect("taken anew").end();
            assert_eq!(percid_consumer_close(consumer), 0);
            assert_eq!(percid_ring_destroy(ring), 0);
        }
    }
}
