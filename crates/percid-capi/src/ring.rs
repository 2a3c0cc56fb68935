//! Rings of byte records.

use std::ffi::{c_int, c_void};

use percid::ring::AppendError;

use crate::barrier::guard;
use crate::callback::count;
use crate::copies;
use crate::ends::{is_visiting, visiting};
use crate::errno;
use crate::registry::{Object, Registry, is_static};
use crate::source::source;

/// The effect of appending a record to a full ring.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    /// The new record is lost.
    DropNewest = 1,
    /// The oldest records are lost: an eighth of the ring at a time.
    OverwriteOldest = 2,
}

/// A ring of byte records for every CPU, drained by one consumer at a time.
///
/// Made by percid_ring_create(), or of static storage: `static percid_ring events =
/// PERCID_RING_INIT(65536, PERCID_OVERFLOW_OVERWRITE_OLDEST);`.
///
/// Threads: any number of threads may append at once.
/// Order: records of one ID are delivered in the order in which they were appended. Between IDs
/// there is no order, and a thread that moves to another CPU appends to another ID's ring: add a
/// time to the record if order matters.
/// Loss: a record is delivered once or counted as lost once.
/// Signals: appending is async-signal-safe and does not wait; the rest is not.
/// Fork: the child has a copy of the records that were not consumed yet.
/// Memory: 128 bytes; for every ID that used it 192 bytes and the part of the ring that was ever
/// written, page by page.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring {
    /// Private to the library.
    word: u64,
    /// Number of bytes of every ID.
    capacity: u64,
    /// The effect of appending to a full ring: one of enum percid_overflow.
    overflow: u32,
    /// Private to the library.
    rest: [u32; 27],
}

const _: () = {
    assert!(size_of::<Ring>() == size_of::<percid::Ring>());
    assert!(align_of::<Ring>() == align_of::<percid::Ring>());
    assert!(Overflow::DropNewest as u32 == percid::Overflow::DropNewest as u32);
    assert!(Overflow::OverwriteOldest as u32 == percid::Overflow::OverwriteOldest as u32);
};

/// A record in the form that the consumer receives.
#[repr(C)]
#[derive(Debug)]
pub struct Event {
    /// The ID whose ring contained it; -1 if it was appended without one.
    pub id: i64,
    /// Its number among the records of this ID: gaps are lost records.
    pub number: u64,
    /// The appended bytes, aligned to 8: valid until the callback returns, or the next call for the
    /// consumer.
    pub bytes: *const c_void,
    /// Number of bytes.
    pub length: usize,
}

impl Event {
    pub(crate) fn from_percid(event: percid::ring::Event<'_>) -> Event {
        Event {
            id: event.id.map_or(-1, i64::from),
            number: event.number,
            bytes: event.bytes.as_ptr().cast(),
            length: event.bytes.len(),
        }
    }
}

static RINGS: Registry<Ring> = Registry::new();

impl Object for Ring {
    type Inner = percid::Ring;
    const TYPE: u64 = 36;

    unsafe fn of_static<'a>(address: *const Ring) -> Result<&'a percid::Ring, c_int> {
        // SAFETY: the caller guarantees an object; these of its members never change.
        let (capacity, overflow) = unsafe { ((*address).capacity, (*address).overflow) };
        if !is_size(capacity) || policy(overflow.into()).is_none() {
            return Err(-libc::EINVAL);
        }
        // SAFETY: size, alignment and the members initialised by the macro are those of the
        // library's type. All its other words are zero at first, and members visible to other
        // threads change only atomically.
        unsafe { copies::own(address.cast()) }
    }
}

/// Stores a new ring in `ring`, of `bytes` bytes (a power of two from 128 to 8 MiB) for every ID.
/// `overflow` is one of enum percid_overflow.
///
/// Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `ring` becomes NULL.
///
/// # Safety
///
/// `ring` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_ring_create(
    ring: *mut *mut Ring,
    bytes: usize,
    overflow: c_int,
) -> c_int {
    let make = || {
        let overflow = policy(overflow.into()).filter(|_| is_size(bytes as u64));
        Ok(percid::Ring::new(bytes, overflow.ok_or(-libc::EINVAL)?))
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { RINGS.create(ring, make) }
}

fn policy(number: i64) -> Option<percid::Overflow> {
    let policies = [
        (Overflow::DropNewest, percid::Overflow::DropNewest),
        (Overflow::OverwriteOldest, percid::Overflow::OverwriteOldest),
    ];
    let found = policies.into_iter().find(|(policy, _)| *policy as i64 == number);
    found.map(|(_, policy)| policy)
}

/// Stores a new ring like percid_ring_create(), with a source that is independent of the process's:
/// for measurements and tests.
///
/// Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
/// the reason why the source cannot be used, as percid_source_prepare() does; on error `ring`
/// becomes NULL.
///
/// # Safety
///
/// `ring` is [memory](crate#safety) for a handle.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_ring_create_with_source(
    ring: *mut *mut Ring,
    source: c_int,
    bytes: usize,
    overflow: c_int,
) -> c_int {
    let make = || {
        let overflow = policy(overflow.into()).filter(|_| is_size(bytes as u64));
        let overflow = overflow.ok_or(-libc::EINVAL)?;
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        percid::Ring::with_source(source, bytes, overflow).map_err(errno::of_source_error)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { RINGS.create(ring, make) }
}

const _: () = {
    assert!(percid::Ring::MIN_BYTES == 128, "PERCID_RING_MIN_BYTES");
    assert!(percid::Ring::MAX_BYTES == 8 << 20, "PERCID_RING_MAX_BYTES");
};

/// Returns `true` if a ring may have this number of bytes.
fn is_size(bytes: u64) -> bool {
    let sizes = percid::Ring::MIN_BYTES as u64..=percid::Ring::MAX_BYTES as u64;
    bytes.is_power_of_two() && sizes.contains(&bytes)
}

/// Appends a record of `length` bytes.
///
/// Returns 0; -EMSGSIZE if it is longer than percid_ring_max_record_len(), or -ENOSPC if there is
/// no room now: then it is lost, and counted as such; -EINVAL for NULL (unless `length` is 0);
/// -EBADF if the ring is destroyed. Async-signal-safe, never waits. Costs about 30 instructions, 6
/// for each word, and a call.
///
/// # Safety
///
/// `ring` is [a handle](crate#safety). `record` is NULL or points to `length` bytes that no thread
/// writes to meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_ring_append(
    ring: *mut Ring,
    record: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let ring = match unsafe { Registry::object(ring) } {
        Ok(ring) => ring,
        Err(error) => return error,
    };
    let record = match (record.is_null(), length) {
        (_, 0) => &[],
        (true, _) => return -libc::EINVAL,
        // A slice cannot be longer than this, and no record is.
        (false, length) if isize::try_from(length).is_err() => return -libc::EMSGSIZE,
        // SAFETY: the caller guarantees `length` bytes that no thread writes to.
        (false, length) => unsafe { std::slice::from_raw_parts(record.cast::<u8>(), length) },
    };
    guard(-libc::EFAULT, || match ring.append(record) {
        Ok(()) => 0,
        Err(AppendError::TooLong) => -libc::EMSGSIZE,
        Err(_) => -libc::ENOSPC,
    })
}

/// Returns the maximum size of a record in the ring: a quarter of the ring minus 16, and at most 65
/// 535 bytes. 0 if there is no such ring.
///
/// # Safety
///
/// `ring` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_ring_max_record_len(ring: *const Ring) -> usize {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(ring) }.map_or(0, percid::Ring::max_record_len)
}

/// Passes every existing record to `visit`, ID by ID, and returns their number. Records that are
/// appended during the call may be missed; the next poll delivers them.
///
/// Returns -EBUSY if another thread is polling or a consumer is open, -EDEADLK if `visit` calls it
/// (which may append: this poll or the next one delivers the record), -EINVAL for NULL, -EBADF if
/// the ring is destroyed. If `visit` does not return, the record counts as delivered, and the next
/// poll continues after it.
///
/// A child of fork() may poll even if a thread of its parent was polling: it continues after the
/// record that was being delivered. If the child continues a poll in which it was forked, it must
/// not begin another.
///
/// # Safety
///
/// `ring` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_ring_poll(
    ring: *mut Ring,
    visit: Option<unsafe extern "C-unwind" fn(event: *const Event, argument: *mut c_void)>,
    argument: *mut c_void,
) -> i64 {
    // SAFETY: the caller guarantees a handle.
    let (ring, visit) = match (unsafe { Registry::object(ring) }, visit) {
        (Ok(ring), Some(visit)) => (ring, visit),
        (Ok(_), None) => return i64::from(-libc::EINVAL),
        (Err(error), _) => return i64::from(error),
    };
    if is_visiting(ring) {
        return i64::from(-libc::EDEADLK);
    }
    let begin = || {
        let consumer = ring.consumer()?;
        let poll = consumer.begin();
        Some((consumer, poll))
    };
    let Some(polling) = guard(None, begin) else { return i64::from(-libc::EBUSY) };
    visiting(ring, polling, |(consumer, poll)| {
        let mut polled = 0;
        while let Some(event) = guard(None, || consumer.next(poll)) {
            polled += 1;
            // SAFETY: the caller guarantees a function for these arguments.
            unsafe { visit(&Event::from_percid(event), argument) };
        }
        count(polled)
    })
}

/// Returns the number of lost records: not appended, or found overwritten by the consumer. 0 if
/// there is no such ring. Costs the reading of one word for every ID ever used.
///
/// # Safety
///
/// `ring` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_ring_lost(ring: *const Ring) -> u64 {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(ring) }.map_or(0, |ring| guard(0, || ring.lost()))
}

/// Destroys a ring, with the records that were not consumed. No other thread may use it during the
/// call.
///
/// Returns 0; -EINVAL for NULL, and for a ring of static storage, which is unchanged; -EDEADLK if
/// the `visit` of a poll calls it; -EBADF if it was destroyed before. Its handle is still detected.
///
/// # Safety
///
/// `ring` is [a handle](crate#safety), which no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_ring_destroy(ring: *mut Ring) -> c_int {
    // SAFETY: the caller guarantees a handle that no other thread uses.
    match unsafe { Registry::object(ring) } {
        Ok(visited) if is_visiting(visited) && !is_static(ring) => -libc::EDEADLK,
        // SAFETY: the caller guarantees a handle that no other thread uses.
        _ => unsafe { RINGS.destroy(ring) },
    }
}
