//! The fields of a value that critical sections change.

use std::cell::UnsafeCell;
use std::fmt;

use crate::sys::atomic::{
    AtomicI64, AtomicPtr, AtomicU8,
    Ordering::{Acquire, Relaxed, Release},
};

/// A 64-bit number in a value of [`PerId`](crate::PerId).
///
/// ```
/// let words = percid::PerId::new(|| percid::per_id::Word::new(5));
/// assert_eq!(words.add(percid::per_id::Field::whole(), 1)?.load(), 6);
/// # Ok::<(), percid::per_id::NoMemory>(())
/// ```
#[repr(transparent)]
#[derive(Default)]
pub struct Word(AtomicI64);

impl Word {
    /// Creates a word.
    ///
    /// ```
    /// assert_eq!(percid::per_id::Word::new(7).load(), 7);
    /// ```
    pub const fn new(value: i64) -> Word {
        Word(AtomicI64::new(value))
    }

    /// Returns the number. It sees everything that was written before the operation that stored it,
    /// except for [`add`](crate::PerId::add).
    ///
    /// ```
    /// assert_eq!(percid::per_id::Word::new(7).load(), 7);
    /// ```
    #[inline(always)]
    pub fn load(&self) -> i64 {
        self.0.load(Acquire)
    }

    /// Stores a number, as the holder of the shard (see [`Held`](crate::per_id::Held)). An operation
    /// of another thread may overwrite it, and may be overwritten, if this thread does not hold it.
    ///
    /// ```
    /// let word = percid::per_id::Word::new(7);
    /// word.store(8);
    /// assert_eq!(word.load(), 8);
    /// ```
    #[inline(always)]
    pub fn store(&self, value: i64) {
        self.0.store(value, Release);
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

/// A pointer in a value of [`PerId`](crate::PerId), or in an item of its lists.
///
/// ```
/// let lists = percid::PerId::new(percid::per_id::Pointer::<u64>::null);
/// assert_eq!(lists.iter().count(), 0);
/// ```
#[repr(transparent)]
pub struct Pointer<N>(AtomicPtr<N>);

impl<N> Pointer<N> {
    /// Creates a pointer.
    ///
    /// ```
    /// use percid::per_id::Pointer;
    ///
    /// let mut number = 7;
    /// assert_eq!(Pointer::new(&mut number).load(), &raw mut number);
    /// ```
    pub const fn new(value: *mut N) -> Pointer<N> {
        Pointer(AtomicPtr::new(value))
    }

    /// Creates a null pointer.
    ///
    /// ```
    /// assert!(percid::per_id::Pointer::<u8>::null().load().is_null());
    /// ```
    pub const fn null() -> Pointer<N> {
        Pointer::new(std::ptr::null_mut())
    }

    /// Returns the pointer. The thread sees what was written before the operation that stored it.
    ///
    /// ```
    /// assert!(percid::per_id::Pointer::<u8>::null().load().is_null());
    /// ```
    #[inline(always)]
    pub fn load(&self) -> *mut N {
        self.0.load(Acquire)
    }

    /// Stores a pointer, as [`Word::store`] does.
    ///
    /// ```
    /// let (mut number, pointer) = (7, percid::per_id::Pointer::null());
    /// pointer.store(&mut number);
    /// assert_eq!(pointer.load(), &raw mut number);
    /// ```
    #[inline(always)]
    pub fn store(&self, value: *mut N) {
        self.0.store(value, Release);
    }
}

impl<N> Default for Pointer<N> {
    fn default() -> Pointer<N> {
        Pointer::null()
    }
}

impl<N> fmt::Debug for Pointer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.load().fmt(f)
    }
}

/// Bytes in a value of [`PerId`](crate::PerId), the destination of a
/// [copy](crate::PerId::copy_then_store_if).
///
/// ```
/// let bytes = percid::per_id::Bytes::<4>::new();
/// assert_eq!(format!("{bytes:?}"), "4 bytes");
/// ```
#[repr(C, align(8))]
pub struct Bytes<const LENGTH: usize>(UnsafeCell<[u8; LENGTH]>);

// SAFETY: sections and `read` access the bytes, all of them as atomics do.
unsafe impl<const LENGTH: usize> Sync for Bytes<LENGTH> {}

impl<const LENGTH: usize> Bytes<LENGTH> {
    /// Creates zeros.
    ///
    /// ```
    /// let bytes = percid::per_id::Bytes::<4>::new();
    /// let mut read = [1; 4];
    /// assert!(bytes.read(0, &mut read) && read == [0; 4]);
    /// ```
    pub const fn new() -> Bytes<LENGTH> {
        Bytes(UnsafeCell::new([0; LENGTH]))
    }

    /// Copies the bytes from `start` on into `to`, each by a relaxed load. Returns `false` without
    /// effect if they reach beyond the end.
    ///
    /// Bytes that another thread's operation is currently writing may be old or new. So read what
    /// was published: load the word of the publishing operation first.
    ///
    /// ```
    /// let bytes = percid::per_id::Bytes::<16>::new();
    /// let mut read = [1; 4];
    /// assert!(bytes.read(12, &mut read) && read == [0; 4]);
    /// assert!(!bytes.read(13, &mut read));
    /// ```
    pub fn read(&self, start: usize, to: &mut [u8]) -> bool {
        let fits = start.checked_add(to.len()).is_some_and(|end| end <= LENGTH);
        if fits {
            for (index, byte) in to.iter_mut().enumerate() {
                *byte = self.byte(start + index).load(Relaxed);
            }
        }
        fits
    }
}

impl<const LENGTH: usize> Bytes<LENGTH> {
    fn byte(&self, index: usize) -> &AtomicU8 {
        assert!(index < LENGTH, "a byte beyond the end");
        // SAFETY: the byte lies inside, and is only accessed by atomics and sections.
        unsafe { AtomicU8::from_ptr(self.0.get().cast::<u8>().add(index)) }
    }
}

impl<const LENGTH: usize> Default for Bytes<LENGTH> {
    fn default() -> Bytes<LENGTH> {
        Bytes::new()
    }
}

impl<const LENGTH: usize> fmt::Debug for Bytes<LENGTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LENGTH} bytes")
    }
}

/// Copies bytes into a value, as the holder of the shard.
///
/// # Safety
///
/// The destination lies inside the value, in bytes that are accessed only as [`Bytes`] are.
pub(super) unsafe fn write(to: *const u8, from: &[u8]) {
    for (index, &byte) in from.iter().enumerate() {
        // SAFETY: the caller guarantees such bytes.
        unsafe { AtomicU8::from_ptr(to.add(index).cast_mut()) }.store(byte, Relaxed);
    }
}

/// A field that an operation compares and stores: a [`Word`] or a [`Pointer`].
///
/// ```
/// use percid::per_id::{Pointer, Stored, Word};
///
/// fn is_stored<W: Stored>() {}
/// is_stored::<Word>();
/// is_stored::<Pointer<u8>>();
/// ```
pub trait Stored: sealed::Bits {}

impl Stored for Word {}
impl<N> Stored for Pointer<N> {}

pub(super) mod sealed {
    use super::{Pointer, Relaxed, Word};

    /// The bits of a field, for sections.
    #[doc(hidden)]
    pub trait Bits {
        /// The value of the field.
        type Value: Copy + PartialEq;

        fn to_bits(value: Self::Value) -> u64;
        fn from_bits(bits: u64) -> Self::Value;
        fn get(&self) -> Self::Value;
        fn set(&self, value: Self::Value);
    }

    impl Bits for Word {
        type Value = i64;

        #[inline(always)]
        fn to_bits(value: i64) -> u64 {
            value as u64
        }

        #[inline(always)]
        fn from_bits(bits: u64) -> i64 {
            bits as i64
        }

        fn get(&self) -> i64 {
            self.0.load(Relaxed)
        }

        fn set(&self, value: i64) {
            self.store(value);
        }
    }

    impl<N> Bits for Pointer<N> {
        type Value = *mut N;

        #[inline(always)]
        fn to_bits(value: *mut N) -> u64 {
            value.expose_provenance() as u64
        }

        #[inline(always)]
        fn from_bits(bits: u64) -> *mut N {
            std::ptr::with_exposed_provenance_mut(bits as usize)
        }

        fn get(&self) -> *mut N {
            self.0.load(Relaxed)
        }

        fn set(&self, value: *mut N) {
            self.store(value);
        }
    }
}
