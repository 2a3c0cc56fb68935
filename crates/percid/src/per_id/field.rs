//! Fields of a value, by their offset.

use std::fmt;
use std::marker::PhantomData;

/// A field of type `W` in values of type `T`: made by [`field!`](crate::field).
///
/// ```
/// use percid::per_id::{Field, Word};
///
/// struct Shard {
///     hits: Word,
/// }
/// const HITS: Field<Shard, Word> = percid::field!(Shard, hits);
/// ```
pub struct Field<T, W> {
    offset: usize,
    owner: PhantomData<fn(&T) -> &W>,
}

impl<T, W> Field<T, W> {
    /// Creates a field: for [`field!`](crate::field), which proves the contract.
    ///
    /// # Safety
    ///
    /// Each value of type `T` has a field of type `W` at this offset.
    #[doc(hidden)]
    pub const unsafe fn new(offset: usize, _projection: fn(&T) -> &W) -> Field<T, W> {
        Field { offset, owner: PhantomData }
    }

    /// Creates a field at an offset that is not known to the compiler.
    ///
    /// # Safety
    ///
    /// Each value has a field of type `W` at this offset.
    #[cfg(all(
        feature = "capi",
        target_os = "linux",
        target_pointer_width = "64",
        not(percid_elsewhere)
    ))]
    pub(super) const unsafe fn at_offset(offset: usize) -> Field<T, W> {
        Field { offset, owner: PhantomData }
    }

    /// Returns a projection as it is: for [`field!`](crate::field), where it gives the types.
    #[doc(hidden)]
    pub const fn projection(projection: fn(&T) -> &W) -> fn(&T) -> &W {
        projection
    }

    /// Returns the field of a value.
    ///
    /// ```
    /// use percid::per_id::Word;
    ///
    /// struct Shard {
    ///     hits: Word,
    /// }
    /// let shard = Shard { hits: Word::new(3) };
    /// assert_eq!(percid::field!(Shard, hits).of(&shard).load(), 3);
    /// ```
    #[inline(always)]
    pub fn of(self, value: &T) -> &W {
        // SAFETY: the value has this field, by the contract of `new`.
        unsafe { &*std::ptr::from_ref(value).byte_add(self.offset).cast::<W>() }
    }

    /// Returns the offset from the start of the value, in bytes.
    ///
    /// ```
    /// assert_eq!(percid::field!((u32, [u8; 2]), 1).offset() % 2, 0);
    /// ```
    #[inline(always)]
    pub const fn offset(self) -> usize {
        self.offset
    }
}

impl<T> Field<T, T> {
    /// Returns the value itself, if it is a field.
    ///
    /// ```
    /// use percid::per_id::{Field, Word};
    ///
    /// assert_eq!(Field::whole().of(&Word::new(3)).load(), 3);
    /// ```
    pub const fn whole() -> Field<T, T> {
        Field { offset: 0, owner: PhantomData }
    }
}

impl<T, W, const LENGTH: usize> Field<T, [W; LENGTH]> {
    /// Returns the element of an array.
    ///
    /// ```
    /// use percid::per_id::{Field, Word};
    ///
    /// struct Shard {
    ///     sizes: [Word; 4],
    /// }
    /// let third: Field<Shard, Word> = percid::field!(Shard, sizes).at(2);
    /// assert_eq!(third.offset(), 16);
    /// ```
    ///
    /// # Panics
    ///
    /// If the array has no such element.
    #[inline(always)]
    pub const fn at(self, index: usize) -> Field<T, W> {
        assert!(index < LENGTH, "the array of the field has no such element");
        Field { offset: self.offset + index * size_of::<W>(), owner: PhantomData }
    }
}

impl<T, W> Clone for Field<T, W> {
    fn clone(&self) -> Field<T, W> {
        *self
    }
}

impl<T, W> Copy for Field<T, W> {}

impl<T, W> fmt::Debug for Field<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field").field("offset", &self.offset).finish()
    }
}

/// Returns the [`Field`](crate::per_id::Field) of a struct, by its name; the names of nested fields
/// are separated by dots. It takes the same arguments as [`offset_of!`](std::mem::offset_of).
///
/// ```
/// use percid::per_id::{Field, Word};
///
/// struct Shard {
///     hits: Word,
///     misses: Word,
/// }
/// const MISSES: Field<Shard, Word> = percid::field!(Shard, misses);
/// assert_eq!(MISSES.of(&Shard { hits: Word::new(1), misses: Word::new(2) }).load(), 2);
/// ```
///
/// Only fields that exist in every value have an offset. The field of an enumeration's variant
/// does not, nor does what a field points to:
///
/// ```compile_fail
/// use percid::per_id::Word;
///
/// struct Shard {
///     hits: Box<(Word, Word)>,
/// }
/// let _ = percid::field!(Shard, hits.0);
/// ```
#[macro_export]
macro_rules! field {
    ($owner:ty, $($name:tt).+) => {{
        // The projection stands outside of the unsafe block: it must not read a union.
        const OFFSET: usize = ::std::mem::offset_of!($owner, $($name).+);
        let projection = $crate::per_id::Field::projection(|value: &$owner| &value.$($name).+);
        // SAFETY: `offset_of!` takes only fields that lie in the value itself, and the projection
        // has the field's type.
        unsafe { $crate::per_id::Field::new(OFFSET, projection) }
    }};
}
