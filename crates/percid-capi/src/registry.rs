//! Objects with handles for C. A handle of another type, or of a destroyed object, is detected.
//!
//! A handle is the address of an object in its lower 48 bits and a *tag* in the upper 16: the
//! type's number (6 bits, the highest of which is set) and the generation (10 bits) of the object's
//! *record*. Records are never freed, only reused with the next generation. So the record of a
//! destroyed object's handle can still be read, and the handle's generation differs. A record is
//! retired at its last generation. A program that creates and destroys objects forever thus loses
//! one record, of about a hundred bytes and the object, for every 1 022 objects.
//!
//! A handle whose highest bit is clear is NULL, or the address of an object of static storage,
//! which C has initialised by the macro of its type. It has no record, and is never destroyed.
//!
//! The good handle of an object is stored before it, at a different offset for each type that has
//! inline code. So one comparison tells that code that a handle is of its type and its object
//! exists. Types without inline code may share an offset: the library compares the tag first.
//!
//! User-space addresses have 48 bits or fewer on every 64-bit Linux unless a program asks for more.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use crate::barrier::uncancelled;
use crate::copies;
use crate::errno;
use crate::headroom;

/// The position of the tag.
const SHIFT: u32 = 48;
const ADDRESS: u64 = (1 << SHIFT) - 1;

/// The position of the type in a tag.
const TYPE_SHIFT: u32 = 10;

/// Lower bound of the types' numbers, exclusive.
const TYPES: u64 = 32;
/// Maximum number of types. A tag of ones only is no type's, so no handle is `(void *)-1`.
const MAX_TYPES: u64 = 30;
/// Number of offsets for good handles. The types from this number on share the last one.
const PLACES: usize = 14;
const GENERATION: u64 = (1 << TYPE_SHIFT) - 1;

const FIRST_GENERATION: u64 = 1;
/// A record of this generation is not reused.
const LAST: u64 = GENERATION;

/// Number of bytes requested from the kernel at a time.
const SLAB: usize = 64 * 1024;

/// A type of C's objects with handles.
pub(crate) trait Object {
    /// The library's type of the object.
    type Inner;

    /// Its number in handles, from 33 to 62 and different from that of other types; from 33 to 45
    /// if it has inline code, whose offset of the good handle depends on it.
    const TYPE: u64;

    /// Returns an object of static storage, if its memory is a valid one.
    ///
    /// # Errors
    ///
    /// `-EINVAL` if there are none of this type, or the arguments of its macro were not allowed.
    ///
    /// # Safety
    ///
    /// The address is that of an aligned object of this type.
    unsafe fn of_static<'a>(_address: *const Self) -> Result<&'a Self::Inner, c_int> {
        Err(-libc::EINVAL)
    }
}

/// The records of one type of objects, with a list of the free ones.
#[derive(Debug)]
pub(crate) struct Registry<T: Object> {
    /// The first free record, and in the upper bits the number of pushes. So a pop that was
    /// interrupted for long does not mistake a changed list for the one it has read.
    free: AtomicU64,
    objects: std::marker::PhantomData<fn() -> T>,
}

/// The header before an object. It has its own cache line, because objects have lines that are
/// written to and others that are not.
#[repr(C, align(64))]
struct Front {
    /// The copy of percid that has created it.
    copy: AtomicU64,
    /// The next free record, while this one is free.
    next: AtomicU64,
    /// The good handle, at the place of its type; zeros at the others. Inline code reads it.
    good: [AtomicU64; PLACES],
}

#[repr(C)]
struct Record<T: Object> {
    front: Front,
    object: UnsafeCell<MaybeUninit<T::Inner>>,
}

/// The constants of the fast paths in C programs.
const _: () = assert!(offset_of!(Front, good) + PLACES * 8 == size_of::<Front>());

/// Returns the place of a type's good handle, from 1; the last one for all types from it on.
const fn place<T: Object>() -> usize {
    let number = (T::TYPE - TYPES) as usize;
    if number < PLACES { number } else { PLACES }
}

impl<T: Object> Record<T> {
    /// Returns the good handle; 8 bytes before the object for the first type.
    fn good(&self) -> &AtomicU64 {
        &self.front.good[PLACES - const { place::<T>() }]
    }

    fn address(&self) -> u64 {
        self.object.get().addr() as u64
    }
}

impl<T: Object> Registry<T> {
    pub(crate) const fn new() -> Registry<T> {
        const {
            assert!(T::TYPE > TYPES && T::TYPE <= TYPES + MAX_TYPES);
            assert!(offset_of!(Record<T>, object) == size_of::<Front>());
        }
        Registry { free: AtomicU64::new(0), objects: std::marker::PhantomData }
    }

    /// Creates an object and stores its handle in `place`, or NULL if that fails. Returns 0 or the
    /// error.
    ///
    /// # Safety
    ///
    /// `place` is NULL or the caller's memory for a handle.
    pub(crate) unsafe fn create(
        &self,
        place: *mut *mut T,
        make: impl FnOnce() -> Result<T::Inner, c_int>,
    ) -> c_int {
        if place.is_null() {
            return -libc::EINVAL;
        }
        let made = errno::preserved(|| {
            uncancelled(Err(-libc::EFAULT), || {
                headroom::ask()?;
                let object = make()?;
                self.place(object).ok_or(-libc::ENOMEM)
            })
        });
        // SAFETY: the caller guarantees memory for a handle, and it is not NULL.
        unsafe { place.write(made.unwrap_or(ptr::null_mut())) };
        made.err().unwrap_or(0)
    }

    /// Returns the object of a handle.
    ///
    /// # Errors
    ///
    /// Returns `-EINVAL` for NULL, another type's handle, and an invalid object of static storage;
    /// `-EBADF` if the object is destroyed; `-EXDEV` if another copy of percid has created it.
    ///
    /// # Safety
    ///
    /// The handle is NULL, came from [`create`](Registry::create) of any type, or is the address of
    /// a `T` of static storage. Its object is not destroyed within `'a`.
    #[inline(always)]
    pub(crate) unsafe fn object<'a>(handle: *const T) -> Result<&'a T::Inner, c_int>
    where
        T::Inner: 'a,
    {
        let Some(record) = record_of::<T>(handle.addr() as u64)? else {
            return match handle.is_null() || !handle.addr().is_multiple_of(64) {
                true => Err(-libc::EINVAL),
                // SAFETY: the caller guarantees the address of a `T` of static storage.
                false => unsafe { T::of_static(handle) },
            };
        };
        // SAFETY: records are never freed; one of the handle's generation has an object.
        unsafe {
            if (*record).good().load(Acquire) != handle.addr() as u64 {
                return Err(-libc::EBADF);
            }
            if (*record).front.copy.load(Relaxed) != copies::this() {
                return Err(copies::refused());
            }
            Ok((*(*record).object.get()).assume_init_ref())
        }
    }

    /// Returns the result of `body` for the object of a handle, or the handle's error.
    ///
    /// # Safety
    ///
    /// The contract of [`object`](Registry::object) holds, until `body` returns.
    #[inline(always)]
    pub(crate) unsafe fn with(handle: *const T, body: impl FnOnce(&T::Inner) -> c_int) -> c_int {
        // SAFETY: the caller's contract is the same.
        match unsafe { Registry::object(handle) } {
            Ok(object) => body(object),
            Err(error) => error,
        }
    }

    /// Destroys an object. Returns 0; -EINVAL for NULL, another type's handle, or an object of
    /// static storage; -EBADF if it is destroyed already.
    ///
    /// # Safety
    ///
    /// The contract of [`object`](Registry::object) holds, and no thread uses the object any more.
    pub(crate) unsafe fn destroy(&self, handle: *mut T) -> c_int {
        let good = handle.addr() as u64;
        let record = match record_of::<T>(good) {
            Ok(Some(record)) => record,
            Ok(None) => return -libc::EINVAL,
            Err(error) => return error,
        };
        let next = good + (1 << SHIFT);
        // SAFETY: records are never freed.
        let this = unsafe { &*record };
        if this.front.copy.load(Relaxed) != copies::this() {
            return copies::refused();
        }
        if this.good().compare_exchange(good, next, AcqRel, Relaxed).is_err() {
            return -libc::EBADF;
        }
        errno::preserved(|| {
            // SAFETY: the exchange succeeds once for every object, which no thread uses any more.
            uncancelled((), || unsafe { (*this.object.get()).assume_init_drop() });
        });
        if next >> SHIFT & GENERATION < LAST {
            self.give_back(record);
        }
        0
    }

    /// Does the same as [`destroy`](Registry::destroy), for objects whose destruction allocates:
    /// returns `-ENOMEM` if there is no memory, and the object stays.
    ///
    /// # Safety
    ///
    /// The contract of [`destroy`](Registry::destroy) holds.
    pub(crate) unsafe fn destroy_with_memory(&self, handle: *mut T) -> c_int {
        // SAFETY: the caller guarantees a handle.
        let good = unsafe { Registry::object(handle.cast_const()) }.map(drop);
        match good.and_then(|()| errno::preserved(headroom::ask)) {
            // SAFETY: the caller guarantees a handle, and that no thread uses the object any more.
            Ok(()) => unsafe { self.destroy(handle) },
            Err(error) => error,
        }
    }

    fn place(&self, object: T::Inner) -> Option<*mut T> {
        let record = self.take().or_else(|| {
            self.more();
            self.take()
        })?;
        // SAFETY: only this thread uses the record until its handle is returned.
        let handle = unsafe {
            (*(*record).object.get()).write(object);
            (*record).good().load(Relaxed)
        };
        Some(ptr::without_provenance_mut(handle as usize))
    }

    fn take(&self) -> Option<*mut Record<T>> {
        let mut first = self.free.load(Acquire);
        loop {
            match self.try_take(first) {
                Ok(record) => return record,
                Err(now) => first = now,
            }
        }
    }

    /// Takes the first free record, if the list is unchanged since `first` was read; otherwise the
    /// error is its new state. Even if records were taken and the first one was returned since, the
    /// upper bits differ.
    fn try_take(&self, first: u64) -> Result<Option<*mut Record<T>>, u64> {
        let (record, changes) = unpack::<T>(first);
        if record.is_null() {
            return Ok(None);
        }
        // SAFETY: records are never freed; if another thread has taken this one, the exchange
        // fails.
        let next = unsafe { (*record).front.next.load(Relaxed) };
        let rest = next | changes << SHIFT;
        self.free.compare_exchange_weak(first, rest, AcqRel, Acquire).map(|_| Some(record))
    }

    fn give_back(&self, record: *mut Record<T>) {
        let mut first = self.free.load(Acquire);
        loop {
            // SAFETY: only this thread uses the record until the exchange.
            unsafe { (*record).front.next.store(first & ADDRESS, Relaxed) };
            let changed = pack(record, (first >> SHIFT) + 1);
            match self.free.compare_exchange_weak(first, changed, Release, Acquire) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Allocates more records, unless there is no memory.
    #[cold]
    fn more(&self) {
        let count = (SLAB / size_of::<Record<T>>()).max(1);
        let bytes = count * size_of::<Record<T>>();
        let Some(start) = percid::capi::map(bytes) else { return };
        let records = start.as_ptr().cast::<Record<T>>();
        if records.expose_provenance() as u64 > ADDRESS {
            return;
        }
        for index in 0..count {
            // SAFETY: `count` records fit into the mapping, which is page-aligned and zeroed, and
            // no other thread uses it.
            unsafe {
                let record = records.add(index);
                (*record).front.copy.store(copies::this(), Relaxed);
                let tag = T::TYPE << TYPE_SHIFT | FIRST_GENERATION;
                (*record).good().store((*record).address() | tag << SHIFT, Relaxed);
                self.give_back(record);
            }
        }
    }
}

/// Returns `true` if this is not a handle, but the address of an object of static storage (or
/// NULL).
pub(crate) fn is_static<T: Object>(handle: *const T) -> bool {
    handle.addr() as i64 >= 0
}

/// Returns the record of a handle; `None` for an object of static storage, or NULL. `-EINVAL` for
/// another type's handle.
#[inline(always)]
fn record_of<T: Object>(handle: u64) -> Result<Option<*mut Record<T>>, c_int> {
    if handle >> (SHIFT + TYPE_SHIFT) == T::TYPE {
        let record = (handle & ADDRESS) as usize - offset_of!(Record<T>, object);
        Ok(Some(ptr::with_exposed_provenance_mut(record)))
    } else if handle as i64 >= 0 {
        Ok(None)
    } else {
        Err(-libc::EINVAL)
    }
}

fn pack<T: Object>(record: *mut Record<T>, upper: u64) -> u64 {
    record.addr() as u64 | upper << SHIFT
}

#[inline(always)]
fn unpack<T: Object>(packed: u64) -> (*mut Record<T>, u64) {
    (ptr::with_exposed_provenance_mut((packed & ADDRESS) as usize), packed >> SHIFT)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use super::*;

    #[derive(Debug)]
    struct Number;

    impl Object for Number {
        type Inner = Arc<u32>;
        const TYPE: u64 = 62;
    }

    /// Another type with the same content, and the number of one that these tests do not use.
    #[derive(Debug)]
    struct Other;

    impl Object for Other {
        type Inner = Arc<u32>;
        const TYPE: u64 = crate::memory::Memory::TYPE;
    }

    /// A type from whose number on good handles share an offset.
    #[derive(Debug)]
    struct Sharing;

    impl Object for Sharing {
        type Inner = Arc<u32>;
        const TYPE: u64 = TYPES + PLACES as u64;
    }

    fn create(handles: &Registry<Number>, object: &Arc<u32>) -> *mut Number {
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is a valid place for a handle.
        let result = unsafe { handles.create(&mut handle, || Ok(Arc::clone(object))) };
        assert_eq!(result, 0);
        handle
    }

    /// Returns the current value of a handle's object.
    fn value(handle: *const Number) -> Result<u32, c_int> {
        // SAFETY: the handles of these tests come from `create`.
        unsafe { Registry::object(handle).map(|object| **object) }
    }

    #[test]
    fn no_two_types_have_one_number() {
        use crate::numa::{balancer, own_memory, region};
        let numbers = [
            crate::stack::Stack::TYPE,
            crate::pool::Pool::TYPE,
            crate::local::Local::TYPE,
            crate::ring::Ring::TYPE,
            crate::consumer::Consumer::TYPE,
            crate::mask::Mask::TYPE,
            crate::memory::Memory::TYPE,
            balancer::Balancer::TYPE,
            region::Region::TYPE,
            own_memory::IdRegions::TYPE,
            own_memory::PoolRegions::TYPE,
            crate::metrics::registry::Registry::TYPE,
            crate::metrics::family::Family::TYPE,
            crate::rwlock::Rwlock::TYPE,
            crate::domain::Domain::TYPE,
            crate::budget::Budget::TYPE,
            Number::TYPE,
        ];
        assert_eq!(HashSet::from(numbers).len(), numbers.len());
    }

    #[test]
    fn a_handle_is_good_until_its_object_is_destroyed() {
        static HANDLES: Registry<Number> = Registry::new();
        let object = Arc::new(7);
        let handle = create(&HANDLES, &object);
        assert_eq!((value(handle), Arc::strong_count(&object)), (Ok(7), 2));
        // SAFETY: no thread uses the object.
        assert_eq!(unsafe { HANDLES.destroy(handle) }, 0);
        assert_eq!((value(handle), Arc::strong_count(&object)), (Err(-libc::EBADF), 1));
        // SAFETY: no thread uses the object.
        assert_eq!(unsafe { HANDLES.destroy(handle) }, -libc::EBADF);
        let another = create(&HANDLES, &object);
        assert_eq!(another.addr() as u64 & ADDRESS, handle.addr() as u64 & ADDRESS, "used again");
        assert_eq!((value(handle), value(another)), (Err(-libc::EBADF), Ok(7)));
    }

    #[test]
    fn an_old_handle_does_no_harm_to_a_later_object_in_its_place() {
        static HANDLES: Registry<Number> = Registry::new();
        let object = Arc::new(7);
        let old: [_; 3] = std::array::from_fn(|_| {
            let handle = create(&HANDLES, &object);
            // SAFETY: no thread uses the object.
            assert_eq!(unsafe { HANDLES.destroy(handle) }, 0);
            handle
        });
        let present = create(&HANDLES, &object);
        for handle in old {
            // SAFETY: no thread uses the object.
            assert_eq!(unsafe { HANDLES.destroy(handle) }, -libc::EBADF);
            assert_eq!(value(present), Ok(7));
        }
    }

    /// Two types whose good handles are at one offset.
    #[test]
    fn handles_of_types_that_share_a_place_are_told_apart() {
        static HANDLES: Registry<Number> = Registry::new();
        static SHARING: Registry<Sharing> = Registry::new();
        assert_eq!(place::<Number>(), place::<Sharing>());
        let object = Arc::new(7);
        let handle = create(&HANDLES, &object);
        let as_sharing = handle.cast::<Sharing>();
        // SAFETY: the handle came from `create`.
        unsafe {
            assert_eq!(Registry::object(as_sharing).map(drop), Err(-libc::EINVAL));
            assert_eq!(SHARING.destroy(as_sharing), -libc::EINVAL);
            assert_eq!((value(handle), HANDLES.destroy(handle)), (Ok(7), 0));
        }
    }

    /// The offsets of inline code (`percid_inline.h`) are those of its types alone.
    #[test]
    fn a_type_with_inline_code_shares_its_place_with_none() {
        let inline = [
            place::<crate::stack::Stack>(),
            place::<crate::pool::Pool>(),
            place::<crate::local::Local>(),
            place::<crate::ring::Ring>(),
            place::<crate::mask::Mask>(),
            place::<crate::memory::Memory>(),
        ];
        assert_eq!(inline, [1, 2, 3, 4, 5, 13]);
        assert!(inline.iter().all(|&place| place < PLACES));
    }

    #[test]
    fn null_is_no_handle() {
        static HANDLES: Registry<Number> = Registry::new();
        assert_eq!(value(ptr::null()), Err(-libc::EINVAL));
        // SAFETY: NULL is allowed.
        unsafe {
            assert_eq!(HANDLES.destroy(ptr::null_mut()), -libc::EINVAL);
            assert_eq!(HANDLES.create(ptr::null_mut(), || Ok(Arc::new(1))), -libc::EINVAL);
        }
    }

    #[test]
    fn handles_of_another_type_are_no_handles_at_all() {
        static HANDLES: Registry<Number> = Registry::new();
        static OTHERS: Registry<Other> = Registry::new();
        let object = Arc::new(7);
        let handle = create(&HANDLES, &object);
        let as_other = handle.cast::<Other>();
        // SAFETY: the handles of these tests come from `create`.
        unsafe {
            assert_eq!(Registry::object(as_other).map(drop), Err(-libc::EINVAL));
            assert_eq!(OTHERS.destroy(as_other), -libc::EINVAL);
            assert_eq!((value(handle), HANDLES.destroy(handle)), (Ok(7), 0));
            // Handles of another type are detected even if the object is destroyed.
            assert_eq!(OTHERS.destroy(as_other), -libc::EINVAL);
        }
    }

    #[test]
    fn what_has_no_tag_is_no_object_of_a_type_without_static_storage() {
        static HANDLES: Registry<Number> = Registry::new();
        let memory = [0_u64; 16];
        let address = memory.as_ptr().map_addr(|address| address.next_multiple_of(64));
        let handle = address.cast::<Number>().cast_mut();
        assert_eq!(value(handle), Err(-libc::EINVAL));
        // SAFETY: no thread uses the object.
        assert_eq!(unsafe { HANDLES.destroy(handle) }, -libc::EINVAL);
    }

    #[test]
    fn what_cannot_be_made_leaves_null() {
        static HANDLES: Registry<Number> = Registry::new();
        let mut handle = ptr::dangling_mut();
        // SAFETY: `handle` is a valid place for a handle.
        let result = unsafe { HANDLES.create(&mut handle, || Err(-libc::ERANGE)) };
        assert_eq!((result, handle), (-libc::ERANGE, ptr::null_mut()));
    }

    #[test]
    fn a_list_that_has_its_first_record_back_is_another() {
        static HANDLES: Registry<Number> = Registry::new();
        HANDLES.more();
        let seen = HANDLES.free.load(Relaxed);
        let first = HANDLES.take().expect("a record");
        let second = HANDLES.take().expect("a record");
        assert_ne!(first, second);
        HANDLES.give_back(first);
        // It would make the second record, which is in use, the first free one.
        assert!(HANDLES.try_take(seen).is_err());
        assert_eq!(HANDLES.take(), Some(first));
    }

    #[test]
    fn a_record_is_retired_and_no_handle_comes_twice() {
        static HANDLES: Registry<Number> = Registry::new();
        let object = Arc::new(1);
        let mut seen = HashSet::new();
        let mut records = HashSet::new();
        for _ in 0..3 * LAST {
            let handle = create(&HANDLES, &object);
            assert!(seen.insert(handle));
            records.insert(handle.addr() as u64 & ADDRESS);
            // SAFETY: no thread uses the object.
            assert_eq!(unsafe { HANDLES.destroy(handle) }, 0);
        }
        assert_eq!(records.len(), 4, "the last of them has just begun");
    }

    #[test]
    fn threads_get_records_of_their_own() {
        static HANDLES: Registry<Number> = Registry::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    let object = Arc::new(thread);
                    for _ in 0..5_000 {
                        let both = [create(&HANDLES, &object), create(&HANDLES, &object)];
                        for handle in both {
                            assert_eq!(value(handle), Ok(thread));
                            // SAFETY: no thread uses the object.
                            assert_eq!(unsafe { HANDLES.destroy(handle) }, 0);
                        }
                    }
                });
            }
        });
    }
}
