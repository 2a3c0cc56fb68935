//! Memory of each ID in a form of the program's own, and operations on its words.

use std::ffi::{c_int, c_void};
use std::ptr;

use percid::capi::{Form, Prepare, Untyped, UntypedPerId, link};
use percid::per_id::{Field, Missed, NoMemory, Pointer, Unchanged, Unsettled, Word};

use crate::barrier::guard;
use crate::copies;
use crate::ends::{is_visiting, visiting};
use crate::errno;
use crate::registry::{Object, Registry, is_static};
use crate::source::source;

/// A value of the program's own type for every ID that uses one, and operations on its 64-bit
/// words: per-ID data for structures of your own.
///
/// Made by percid_memory_create(), or of static storage: `static percid_memory traffic =
/// PERCID_MEMORY_INIT(sizeof(struct traffic), 8, NULL, NULL);`.
///
/// An operation reads and writes words of the running thread's value in one critical section: it
/// is done as a whole, with the ID's value to itself, or not at all. No locked instruction is
/// needed. Words are `uint64_t`, `int64_t` or pointers; they are named by their offset, as in
/// `offsetof(struct traffic, packets)`. Read them by `__atomic_load_n(&value->packets,
/// __ATOMIC_ACQUIRE)`. Only operations and visits change a value, the latter by __atomic_store_n()
/// where others read.
///
/// Threads: any number of threads may use it at once. Two operations on one value never overlap.
/// An operation may use another value than the one before, since a thread may move; each stores the
/// address of the value that it worked on.
/// Value: an operation works on a value that belongs to no ID if it was interrupted or moved eight
/// times in a row, if the thread can have no ID, or if its ID's value is being visited.
/// percid_memory_next() and percid_memory_for_each() include these values.
/// Waiting: operations do not wait.
/// Signals: operations are async-signal-safe if `init` is, and leave errno alone;
/// percid_memory_create(), percid_memory_for_each() and percid_memory_destroy() are not.
/// Fork: the child has a copy of every value. Values that other threads of the parent were making
/// or visiting are lost to it.
/// Memory: 64 bytes; for every ID that used it the size of a value and 8 bytes (or its alignment,
/// if that is more), rounded up to a power of two; at least a page for each value without an ID.
/// Values of several objects share an ID's cache lines.
/// Cost: an addition about 25 instructions, two of them stores, none locked; with
/// PERCID_SOURCE_ATOMIC a locked instruction. Inline on x86-64, if values are aligned to 8 bytes or
/// less; otherwise a call.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Memory {
    /// Private to the library.
    word: u64,
    /// The size of a value.
    size: usize,
    /// Its alignment.
    align: usize,
    /// Initialises a zeroed value, if zeros are not enough.
    init: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void)>,
    /// The argument of the function.
    context: *mut c_void,
    /// The size again, if operations may be inline; otherwise 0.
    inline_size: usize,
    /// Private to the library.
    rest: [u64; 2],
}

/// The value that an operation worked on, and the words that it has seen there.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// The value; NULL if nothing was changed.
    value: *mut c_void,
    /// The word `field` before the operation.
    seen: u64,
    /// The other word of percid_memory_store_if_both(), if `field` was as expected but that was
    /// not; otherwise 0.
    other: u64,
}

/// The constants of the static initialiser, and of the fast path in C programs.
const _: () = {
    assert!(size_of::<Memory>() == size_of::<UntypedPerId>());
    assert!(align_of::<Memory>() == align_of::<UntypedPerId>());
};

static MEMORIES: Registry<Memory> = Registry::new();

impl Object for Memory {
    type Inner = UntypedPerId;
    const TYPE: u64 = 45;

    #[inline(always)]
    unsafe fn of_static<'a>(address: *const Memory) -> Result<&'a UntypedPerId, c_int> {
        // SAFETY: the caller guarantees an object; these of its members never change, and the form
        // begins at the first of them.
        let form = unsafe { &*(&raw const (*address).size).cast::<Form>() };
        if !form.is_valid() {
            return Err(-libc::EINVAL);
        }
        // SAFETY: the members that the macro initialises are those of the library's type. All its
        // other words are zero at first, and change only atomically.
        unsafe { copies::own(address.cast()) }
    }
}

/// Stores a new object in `memory`, whose values have `size` bytes (at least 1, and below 16 MiB)
/// that are aligned to `align` bytes (a power of two up to 64).
///
/// A value is made when an ID first uses one: its memory is zeroed and passed to `init`, which may
/// be NULL, with `context`. Any operation of any thread may call it, also in a signal handler. It
/// must not use the object, and it must return: the process ends if it does not.
///
/// Returns 0, -EINVAL for NULL or invalid arguments, or -ENOMEM; on error `memory` becomes NULL.
///
/// # Safety
///
/// `memory` is [memory](crate#safety) for a handle. `init` is [a callback](crate#safety) with
/// `context`, on any thread, until the object is destroyed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_create(
    memory: *mut *mut Memory,
    size: usize,
    align: usize,
    init: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    let new = || Ok(UntypedPerId::new(form(size, align, init, context)?));
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { MEMORIES.create(memory, new) }
}

/// Stores a new object like percid_memory_create(), with a source that is independent of the
/// process's: for measurements and tests.
///
/// Returns 0, -EINVAL for NULL, invalid arguments or a number that is not a source's, -ENOMEM, or
/// the reason why the source cannot be used, as percid_source_prepare() does; on error `memory`
/// becomes NULL.
///
/// # Safety
///
/// The contract of [`percid_memory_create`] holds.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_create_with_source(
    memory: *mut *mut Memory,
    source: c_int,
    size: usize,
    align: usize,
    init: Option<unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void)>,
    context: *mut c_void,
) -> c_int {
    let new = || {
        let form = form(size, align, init, context)?;
        let source = self::source(source).ok_or(-libc::EINVAL)?;
        UntypedPerId::with_source(source, form).map_err(errno::of_source_error)
    };
    // SAFETY: the caller guarantees that the pointer is NULL or valid.
    unsafe { MEMORIES.create(memory, new) }
}

/// Adds `n` to the word at offset `field` of the running thread's value. Wraps around. Stores the
/// address of the value in `value`, unless that is NULL; NULL on error.
///
/// Returns 0; -ENOMEM if there is no memory for the value; -EINVAL for NULL, or if the word is not
/// aligned to 8 bytes inside the value; -EBADF if the object is destroyed. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `value` is [memory](crate#safety) for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_add(
    memory: *mut Memory,
    field: usize,
    n: i64,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let word = word(memory, field)?;
        let done = guard(Err(NoMemory), || memory.add(word, n)).map_err(no_memory)?;
        Ok(address(memory, done))
    });
    // SAFETY: the caller guarantees NULL or memory for a pointer.
    unsafe { answer_with(value, done) }
}

/// Adds `n` to the word at offset `field` of the running thread's value, like percid_memory_add(). The
/// word before that is `seen` in `outcome`, which may be NULL.
///
/// Returns 0, or an error of percid_memory_add(). Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `outcome` is [memory](crate#safety) for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_fetch_add(
    memory: *mut Memory,
    field: usize,
    n: i64,
    outcome: *mut Outcome,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let word = word(memory, field)?;
        let done = guard(Err(NoMemory), || memory.fetch_add(word, n));
        let (seen, value) = done.map_err(no_memory)?;
        Ok((0, Outcome { value: address(memory, value), seen: seen as u64, other: 0 }))
    });
    // SAFETY: the caller guarantees NULL or memory for an outcome.
    unsafe { answer(outcome, done) }
}

/// Stores `desired` in the word at offset `field` of the running thread's value. The word that it
/// replaced is `seen` in `outcome`, which may be NULL. With 0 it takes a whole list.
///
/// Returns 0, or an error of percid_memory_add(). Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `outcome` is [memory](crate#safety) for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_swap(
    memory: *mut Memory,
    field: usize,
    desired: u64,
    outcome: *mut Outcome,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let word = word(memory, field)?;
        let done = guard(Err(NoMemory), || memory.swap(word, desired as i64));
        let (seen, value) = done.map_err(no_memory)?;
        Ok((0, Outcome { value: address(memory, value), seen: seen as u64, other: 0 }))
    });
    // SAFETY: the caller guarantees NULL or memory for an outcome.
    unsafe { answer(outcome, done) }
}

/// Stores `desired` in the word at offset `field` of the running thread's value, if it has the value
/// `expected`. The word before that is `seen` in `outcome`, which may be NULL.
///
/// Returns 1; 0 without effect if the word has another value; or an error of percid_memory_add().
/// Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `outcome` is [memory](crate#safety) for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_store_if(
    memory: *mut Memory,
    field: usize,
    expected: u64,
    desired: u64,
    outcome: *mut Outcome,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let word = word(memory, field)?;
        compared(memory, expected, || memory.store_if(word, expected as i64, desired as i64))
    });
    // SAFETY: the caller guarantees NULL or memory for an outcome.
    unsafe { answer(outcome, done) }
}

/// Stores `desired` in the word at offset `field` of the running thread's value, if it has the value
/// `expected`, and before that `first_value` in the word at offset `first`.
///
/// The word at `first` is meaningless until `desired` is stored: an operation that is interrupted may
/// have stored it without storing `desired`. So only what `desired` says may give it a meaning, such as a
/// slot above the number of slots in use.
///
/// Returns what percid_memory_store_if() does. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `outcome` is [memory](crate#safety) for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_store_both_if(
    memory: *mut Memory,
    field: usize,
    expected: u64,
    desired: u64,
    first: usize,
    first_value: u64,
    outcome: *mut Outcome,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let (word, first) = (word(memory, field)?, word(memory, first)?);
        let before = (first, first_value as i64);
        let store = || memory.store_both_if(word, expected as i64, desired as i64, before);
        compared(memory, expected, store)
    });
    // SAFETY: the caller guarantees NULL or memory for an outcome.
    unsafe { answer(outcome, done) }
}

/// Stores `desired` in the word at offset `field` of the running thread's value, if it has the value
/// `expected` and the word at offset `second` has the value `expected_second`.
///
/// Returns what percid_memory_store_if() does. If only the second word has another value, that is
/// `other` in `outcome`. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `outcome` is [memory](crate#safety) for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_store_if_both(
    memory: *mut Memory,
    field: usize,
    expected: u64,
    desired: u64,
    second: usize,
    expected_second: u64,
    outcome: *mut Outcome,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let (word, second) = (word(memory, field)?, word(memory, second)?);
        let beside = (second, expected_second as i64);
        let store = || memory.store_if_both(word, expected as i64, desired as i64, beside);
        compared(memory, expected, store)
    });
    // SAFETY: the caller guarantees NULL or memory for an outcome.
    unsafe { answer(outcome, done) }
}

/// Copies `length` bytes to offset `to` of the running thread's value, and then stores `desired` in the
/// word at offset `field`, if that has the value `expected`.
///
/// The destination is meaningless until `desired` is stored: an operation that is interrupted may have
/// written a part of it. The time is that of the copy; a long one is interrupted more often.
///
/// Returns what percid_memory_store_if() does, and -EINVAL if the bytes do not fit.
/// Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `bytes` is NULL or points to `length` bytes. `outcome` is
/// [memory](crate#safety) for an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_copy_then_store_if(
    memory: *mut Memory,
    field: usize,
    expected: u64,
    desired: u64,
    to: usize,
    bytes: *const c_void,
    length: usize,
    outcome: *mut Outcome,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let word = word(memory, field)?;
        if !memory.form().has(to, length) || (bytes.is_null() && length > 0) {
            return Err(-libc::EINVAL);
        }
        let bytes = if length > 0 { bytes.cast() } else { ptr::dangling() };
        // SAFETY: the caller guarantees `length` bytes.
        let bytes: &[u8] = unsafe { std::slice::from_raw_parts(bytes, length) };
        let (old, new) = (expected as i64, desired as i64);
        compared(memory, expected, || memory.copy_then_store_if_at(word, old, new, to, bytes))
    });
    // SAFETY: the caller guarantees NULL or memory for an outcome.
    unsafe { answer(outcome, done) }
}

/// Makes `item` the first of a list of the running thread's value: the word at offset `head` points
/// to the first item, and that at offset `next` of each item to the one behind it. Stores the
/// address of the value in `value`, unless that is NULL; NULL on error.
///
/// The item is in no list before. It stays where it is until it was popped, or taken with its list;
/// until then only operations of this object use its word at `next`.
///
/// Returns 0; an error of percid_memory_add(); -EINVAL also if `item` is NULL, or if it or `next`
/// is not aligned to 8 bytes. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `item` is NULL or points to an item with a word at offset
/// `next`, which no other thread uses. `value` is [memory](crate#safety) for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_push(
    memory: *mut Memory,
    head: usize,
    item: *mut c_void,
    next: usize,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let done = unsafe { object(memory) }.and_then(|memory| {
        let (head, next) = list(memory, head, next)?;
        let item = ptr::NonNull::new(item.cast()).filter(|item| item.is_aligned());
        let item = item.ok_or(-libc::EINVAL)?;
        // SAFETY: the caller guarantees an item that is in no list.
        let done = guard(Err(NoMemory), || unsafe { memory.push(head, item, next) });
        Ok(address(memory, done.map_err(no_memory)?))
    });
    // SAFETY: the caller guarantees NULL or memory for a pointer.
    unsafe { answer_with(value, done) }
}

/// Takes the first item out of a list of the running thread's value, and stores it in `item`: NULL
/// if that list is empty, or on error.
///
/// All items of the list were added by percid_memory_push(), with the same `next`. An item that was
/// popped is the caller's: it may be freed at once.
///
/// Returns 1; 0 if the list is empty; an error of percid_memory_push(); -EINVAL also if `item` is
/// NULL. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). Items were added as described. `item` is
/// [memory](crate#safety) for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_pop(
    memory: *mut Memory,
    head: usize,
    next: usize,
    item: *mut *mut c_void,
) -> c_int {
    if item.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    let popped = unsafe { object(memory) }.and_then(|memory| {
        let (head, next) = list(memory, head, next)?;
        // SAFETY: the caller guarantees that the items were pushed with this `next`.
        let popped = guard(Err(NoMemory), || unsafe { memory.pop(head, next) });
        Ok(popped.map_err(no_memory)?.map_or(ptr::null_mut(), ptr::NonNull::as_ptr))
    });
    // SAFETY: the caller guarantees memory for a pointer, and it is not NULL.
    unsafe { item.write(popped.map_or(ptr::null_mut(), <*mut Untyped>::cast)) };
    popped.map_or_else(|error| error, |popped| c_int::from(!popped.is_null()))
}

/// Returns the value of an ID; NULL if that ID has not used one, or while it is being made.
/// Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_get(memory: *mut Memory, id: u32) -> *mut c_void {
    // SAFETY: the caller guarantees a handle.
    found(unsafe { object(memory) }, |memory| memory.get(id))
}

/// Returns the value of the running thread's ID, as a hint: the thread may be moved at any time.
/// NULL if there is none yet. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_current(memory: *mut Memory) -> *mut c_void {
    // SAFETY: the caller guarantees a handle.
    found(unsafe { object(memory) }, |memory| memory.current())
}

/// Returns the value behind another one, in the order of IDs and then those that belong to no ID;
/// the first one behind NULL; NULL if there are no more. Values may change at any time: see
/// percid_memory_for_each().
///
///     for (void *value = NULL; (value = percid_memory_next(memory, value)) != NULL;)
///
/// Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_next(
    memory: *mut Memory,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the caller guarantees a handle.
    found(unsafe { object(memory) }, |memory| match value.is_null() {
        true => memory.behind(None),
        false => memory.behind(Some(memory.form().value(value)?)),
    })
}

/// Returns the ID of a value; -ENOENT if it belongs to no ID, -EINVAL for NULL, -EBADF if the
/// object is destroyed. Async-signal-safe.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_id_of(memory: *mut Memory, value: *const c_void) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let memory = match unsafe { object(memory) } {
        Ok(memory) if !value.is_null() => memory,
        Ok(_) => return -libc::EINVAL,
        Err(error) => return error,
    };
    let id = guard(None, || memory.id_of(memory.form().value(value)?));
    id.and_then(|id| c_int::try_from(id).ok()).unwrap_or(-libc::ENOENT)
}

/// Calls `visit` for every existing value, of every ID and those that belong to none. No operation
/// changes the value meanwhile, and `visit` may: threads whose value is being visited work on
/// others. All earlier operations on the value are visible.
///
/// It misses values that are being made, or used by a thread without an ID, for about a second or
/// longer; and those of all IDs, if the process has entered a sandbox since the first use that
/// refuses membarrier().
///
/// Returns the number of values that it has missed, which is 0 as a rule; -EINVAL for NULL, -EBADF if
/// the object is destroyed, -EDEADLK if `visit` of this object calls it. Waits for other visits.
/// `visit` may call the operations, which work on other values. If it does not return, the remaining
/// values are not visited. Costs one fence of all CPUs, about 10 us, for every 64 IDs.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_memory_for_each(
    memory: *mut Memory,
    visit: Option<unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let (memory, visit) = match unsafe { visitable(memory, visit) } {
        Ok(both) => both,
        Err(error) => return error,
    };
    let Some(values) = guard(None, || Some(memory.visit())) else { return -libc::EFAULT };
    // The held value is released before the visit ends.
    visiting(memory, (None, values), |(held, values)| {
        loop {
            *held = None;
            *held = guard(None, || values.next());
            let Some(value) = held.as_deref() else { return number_of(values.missed()) };
            // SAFETY: the caller guarantees a function for these arguments; only this thread uses
            // the value during the call.
            unsafe { visit(address(memory, value), argument) };
        }
    })
}

/// Calls `visit` for the value of one ID, which no operation changes meanwhile, and `visit` may.
///
/// Returns 0; -ENOENT if the ID has no value; -EBUSY if another thread has held or made it for about
/// a second; an error of percid_fence_all(); -EINVAL for NULL, -EBADF if the object is destroyed,
/// -EDEADLK if `visit` of this object calls it. Waits for other visits. `visit` may call the
/// operations, which work on other values. Costs one fence of all CPUs, about 10 us.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety). `visit` is [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_memory_with_id(
    memory: *mut Memory,
    id: u32,
    visit: Option<unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller guarantees a handle.
    let (memory, visit) = match unsafe { visitable(memory, visit) } {
        Ok(both) => both,
        Err(error) => return error,
    };
    let held = match guard(Err(-libc::EFAULT), || memory.hold(id).map_err(why_missed)) {
        Ok(held) => held,
        Err(error) => return error,
    };
    visiting(memory, held, |held| {
        // SAFETY: the caller guarantees a function for these arguments; only this thread uses the
        // value during the call.
        unsafe { visit(address(memory, held), argument) };
        0
    })
}

/// Waits for the operations on this object that are running. When it returns 0, every operation that
/// may have read a word before the call has ended; what it stored is visible to the caller, and
/// later operations see what the caller stored before. So memory to which no word leads any more is
/// used by no operation.
///
/// Returns 0; -EBUSY if the caller visits a value, or another thread has held one for about a
/// second; an error of percid_fence_all(); -EINVAL for NULL, -EBADF if the object is destroyed. Costs
/// one fence of all CPUs, about 10 us, and a load for each value without an ID; with
/// PERCID_SOURCE_ATOMIC for each value.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_memory_settle(memory: *mut Memory) -> c_int {
    // SAFETY: the caller guarantees a handle.
    match unsafe { object(memory) } {
        Ok(memory) => guard(-libc::EFAULT, || match memory.settle() {
            Err(Unsettled::Refused(refused)) => -refused.errno,
            Err(_) => -libc::EBUSY,
            Ok(()) => 0,
        }),
        Err(error) => error,
    }
}

/// Calls `drop` for every value, unless it is NULL, and destroys the object. No other thread may
/// use it during the call, and `drop` must not either. If `drop` does not return, the object stays,
/// with all values.
///
/// Returns 0; -EINVAL for NULL, and for an object of static storage, which is unchanged; -EDEADLK
/// if the caller is in a visit of it; -EBADF if it was destroyed before. Its handle is still
/// detected.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety), which no other thread uses. `drop` is
/// [a callback](crate#safety) with `argument`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn percid_memory_destroy(
    memory: *mut Memory,
    drop: Option<unsafe extern "C-unwind" fn(value: *mut c_void, argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    if is_static(memory) {
        return -libc::EINVAL;
    }
    // SAFETY: the caller guarantees a handle.
    match unsafe { object(memory) } {
        Ok(memory) if is_visiting(memory) => return -libc::EDEADLK,
        Ok(memory) => {
            let mut next = memory.behind(None);
            while let (Some(value), Some(drop)) = (next, drop) {
                // SAFETY: the caller guarantees a function for these arguments, and that no other
                // thread uses the object.
                unsafe { drop(address(memory, value), argument) };
                next = memory.behind(Some(value));
            }
        }
        Err(error) => return error,
    }
    // SAFETY: the caller guarantees a handle that no other thread uses.
    unsafe { MEMORIES.destroy(memory) }
}

/// Returns the form with these properties.
fn form(
    size: usize,
    align: usize,
    prepare: Option<Prepare>,
    context: *mut c_void,
) -> Result<Form, c_int> {
    Form::new(size, align, prepare, context).ok_or(-libc::EINVAL)
}

/// Returns the object of a handle.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
#[inline(always)]
unsafe fn object<'a>(memory: *mut Memory) -> Result<&'a UntypedPerId, c_int> {
    // SAFETY: the caller guarantees a handle.
    unsafe { Registry::object(memory.cast_const()) }
}

/// Returns the object and the callback of a visit, unless the calling thread is inside one already.
///
/// # Safety
///
/// `memory` is [a handle](crate#safety).
unsafe fn visitable<'a, V>(
    memory: *mut Memory,
    visit: Option<V>,
) -> Result<(&'a UntypedPerId, V), c_int> {
    // SAFETY: the caller guarantees a handle.
    let memory = unsafe { object(memory) }?;
    let visit = visit.ok_or(-libc::EINVAL)?;
    if is_visiting(memory) { Err(-libc::EDEADLK) } else { Ok((memory, visit)) }
}

#[inline(always)]
fn word(memory: &UntypedPerId, at: usize) -> Result<Field<Untyped, Word>, c_int> {
    memory.form().word(at).ok_or(-libc::EINVAL)
}

/// A pointer in a value or in an item.
type Link = Field<Untyped, Pointer<Untyped>>;

/// Returns the head of a list, and the link in its items.
#[inline(always)]
fn list(memory: &UntypedPerId, head: usize, next: usize) -> Result<(Link, Link), c_int> {
    let head = memory.form().pointer(head).filter(|_| next.is_multiple_of(8));
    // SAFETY: the program guarantees items that have a pointer there.
    head.map(|head| (head, unsafe { link(next) })).ok_or(-libc::EINVAL)
}

#[inline(always)]
fn address(memory: &UntypedPerId, value: &Untyped) -> *mut c_void {
    memory.form().address(value).as_ptr()
}

/// Returns a number of values.
fn number_of(values: usize) -> c_int {
    c_int::try_from(values).unwrap_or(c_int::MAX)
}

fn why_missed(missed: Missed) -> c_int {
    match missed {
        Missed::NoValue => -libc::ENOENT,
        Missed::Refused(refused) => -refused.errno,
        _ => -libc::EBUSY,
    }
}

fn no_memory(_: NoMemory) -> c_int {
    -libc::ENOMEM
}

/// Returns the result of an operation that compares, and what it has seen.
#[inline(always)]
fn compared<'m>(
    memory: &UntypedPerId,
    expected: u64,
    operation: impl FnOnce() -> Result<&'m Untyped, Unchanged<i64>>,
) -> Result<(c_int, Outcome), c_int> {
    let (value, other) = (ptr::null_mut(), 0);
    match guard(Err(Unchanged::NoMemory), operation) {
        Ok(done) => Ok((1, Outcome { value: address(memory, done), seen: expected, other })),
        Err(Unchanged::Differs(seen)) => Ok((0, Outcome { value, seen: seen as u64, other })),
        Err(Unchanged::OtherDiffers(other)) => {
            Ok((0, Outcome { value, seen: expected, other: other as u64 }))
        }
        Err(Unchanged::TooLong) => Err(-libc::EINVAL),
        Err(_) => Err(-libc::ENOMEM),
    }
}

/// Stores the outcome, unless the pointer is NULL, and returns the operation's result.
///
/// # Safety
///
/// `place` is NULL or the caller's memory for an outcome.
#[inline(always)]
unsafe fn answer(place: *mut Outcome, done: Result<(c_int, Outcome), c_int>) -> c_int {
    let nothing = Outcome { value: ptr::null_mut(), seen: 0, other: 0 };
    let (result, outcome) = done.unwrap_or_else(|error| (error, nothing));
    if !place.is_null() {
        // SAFETY: the caller guarantees memory for an outcome, and it is not NULL.
        unsafe { place.write(outcome) };
    }
    result
}

/// Stores the address of the value, unless the pointer is NULL, and returns 0 or the error.
///
/// # Safety
///
/// `place` is NULL or the caller's memory for a pointer.
#[inline(always)]
unsafe fn answer_with(place: *mut *mut c_void, done: Result<*mut c_void, c_int>) -> c_int {
    if !place.is_null() {
        // SAFETY: the caller guarantees memory for a pointer, and it is not NULL.
        unsafe { place.write(done.unwrap_or(ptr::null_mut())) };
    }
    done.err().unwrap_or(0)
}

/// Returns the address of a value that was found.
fn found<'m>(
    memory: Result<&'m UntypedPerId, c_int>,
    find: impl FnOnce(&'m UntypedPerId) -> Option<&'m Untyped>,
) -> *mut c_void {
    let Ok(memory) = memory else { return ptr::null_mut() };
    guard(None, || find(memory)).map_or(ptr::null_mut(), |value| address(memory, value))
}
