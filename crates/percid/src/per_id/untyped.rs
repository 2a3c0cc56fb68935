//! Values whose size and alignment are known at run time only, for the C interface.
//!
//! The value of Rust's type is an [`Untyped`] 8 bytes behind the start of the shard, whatever the
//! alignment. The caller's value begins at the first address from there on that has its alignment.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, offset_of};
use std::ops::Deref;
use std::ptr::{self, NonNull};

use super::make::sealed::Make;
use super::shard::Shard;
use super::{Field, PerId, Pointer, Unchanged, Word};
use crate::arena::STRIDE;
use crate::id::{Source, SourceError};

/// Prepares a zeroed value.
pub type Prepare = unsafe extern "C-unwind" fn(value: *mut c_void, context: *mut c_void);

/// A value of which Rust knows the address only.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct Untyped(());

/// The size and alignment of values, and the function that prepares them.
#[repr(C)]
#[derive(Debug)]
pub struct Form {
    /// The size of a value, in bytes.
    size: usize,
    /// Its alignment, a power of two up to 64.
    align: usize,
    /// Called with a zeroed value and `context`, unless zeros are enough.
    prepare: Option<Prepare>,
    /// The argument of `prepare`.
    context: *mut c_void,
    /// The size again, if the value is 8 bytes behind the start of the shard: one comparison tells
    /// inline code of C both that it is and that a word lies inside. Otherwise 0.
    inline_size: usize,
}

// SAFETY: the context is only passed on, and the function may be called by any thread.
unsafe impl Send for Form {}
// SAFETY: the context is only passed on, by several threads at once too.
unsafe impl Sync for Form {}

const _: () = {
    assert!(Shard::<Untyped>::VALUE == 8 && size_of::<Untyped>() == 0);
    // C programs initialise objects, and read the form.
    assert!(offset_of!(PerId<Untyped, Form>, make) == 8);
};

impl Form {
    /// Creates a form; `None` if there can be no such values.
    pub fn new(
        size: usize,
        align: usize,
        prepare: Option<Prepare>,
        context: *mut c_void,
    ) -> Option<Form> {
        let inline_size = if align <= 8 { size } else { 0 };
        Some(Form { size, align, prepare, context, inline_size }).filter(Form::is_valid)
    }

    /// Returns `true` if there can be such values.
    pub fn is_valid(&self) -> bool {
        let size = (1..=STRIDE - 64).contains(&self.size);
        let inline = self.inline_size == if self.align <= 8 { self.size } else { 0 };
        size && inline && self.align.is_power_of_two() && self.align <= 64
    }

    /// Returns the address of the caller's value.
    #[inline(always)]
    pub fn address(&self, value: &Untyped) -> NonNull<c_void> {
        // SAFETY: the shard has the size for a value of this alignment.
        unsafe { NonNull::from(value).cast::<u8>().add(self.padding()) }.cast()
    }

    /// Returns the value whose address is that of a caller's value; `None` for other addresses, as
    /// far as the alignment tells.
    pub fn value<'v>(&self, address: *const c_void) -> Option<&'v Untyped> {
        let value = address.cast::<u8>().wrapping_sub(self.padding()).cast::<Untyped>();
        // SAFETY: a reference to a type without bytes is valid at every aligned address.
        (!value.is_null() && value.is_aligned()).then(|| unsafe { &*value })
    }

    /// Returns the word at this offset of the caller's value; `None` if it lies outside.
    #[inline(always)]
    pub fn word(&self, at: usize) -> Option<Field<Untyped, Word>> {
        // SAFETY: eight bytes at an aligned place inside the value.
        self.is_word(at).then(|| unsafe { Field::at_offset(self.padding() + at) })
    }

    /// Returns the pointer at this offset of the caller's value; `None` if it lies outside.
    #[inline(always)]
    pub fn pointer(&self, at: usize) -> Option<Field<Untyped, Pointer<Untyped>>> {
        // SAFETY: eight bytes at an aligned place inside the value.
        self.is_word(at).then(|| unsafe { Field::at_offset(self.padding() + at) })
    }

    #[inline(always)]
    fn is_word(&self, at: usize) -> bool {
        at.is_multiple_of(8) && self.has(at, 8)
    }

    /// Returns `true` if these bytes lie inside a value.
    #[inline(always)]
    pub fn has(&self, at: usize, bytes: usize) -> bool {
        at <= self.size && bytes <= self.size - at
    }

    /// The bytes between the start of an [`Untyped`] and that of the caller's value.
    #[inline(always)]
    fn padding(&self) -> usize {
        self.align.max(8) - 8
    }
}

impl Make<Untyped> for Form {
    fn shard_bytes(&self) -> usize {
        Shard::<Untyped>::VALUE + self.padding() + self.size
    }

    unsafe fn make_at(&self, value: *mut Untyped) {
        if let Some(prepare) = self.prepare {
            // SAFETY: the caller guarantees memory of a shard, which the value is a part of; the
            // program guarantees a function for these arguments.
            unsafe { prepare(self.address(&*value).as_ptr(), self.context) };
        }
    }
}

/// Returns the link of a list's items at this offset.
///
/// # Safety
///
/// Each item has a pointer at this offset.
#[inline(always)]
pub unsafe fn link(next: usize) -> Field<Untyped, Pointer<Untyped>> {
    // SAFETY: the caller's obligation.
    unsafe { Field::at_offset(next) }
}

/// A [`PerId`] of untyped values.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct UntypedPerId(ManuallyDrop<PerId<Untyped, Form>>);

impl UntypedPerId {
    /// Creates an object with values of this form, which is valid.
    pub const fn new(form: Form) -> UntypedPerId {
        UntypedPerId(ManuallyDrop::new(PerId::made_by(form)))
    }

    /// Creates an object that uses `source`, whatever the process has chosen.
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that visits need.
    pub fn with_source(source: Source, form: Form) -> Result<UntypedPerId, SourceError> {
        let mut object = UntypedPerId::new(form);
        object.0.use_source(source)?;
        Ok(object)
    }

    /// Returns the form of the values.
    #[inline(always)]
    pub fn form(&self) -> &Form {
        &self.0.make
    }

    /// Returns the value that [`PerId::iter`] returns behind this one; the first behind none.
    pub fn behind(&self, value: Option<&Untyped>) -> Option<&Untyped> {
        let first = match value {
            None => Some(0),
            Some(value) => self.id_of(value).map(|id| id + 1),
        };
        let mut extras = self.extras().filter_map(Shard::value);
        match first {
            Some(first) => {
                let of_id = self.values_from(first).next().map(|(_, value)| value);
                of_id.or_else(|| extras.next())
            }
            None => {
                extras.find(|&extra| value.is_some_and(|value| ptr::eq(extra, value)))?;
                extras.next()
            }
        }
    }

    /// Copies bytes to an offset of the value, and then stores `new` in a word that has the value
    /// `expected`: see [`PerId::copy_then_store_if`].
    ///
    /// # Errors
    ///
    /// Those of [`PerId::copy_then_store_if`].
    #[inline(always)]
    pub fn copy_then_store_if_at(
        &self,
        field: Field<Untyped, Word>,
        expected: i64,
        new: i64,
        to: usize,
        bytes: &[u8],
    ) -> Result<&Untyped, Unchanged<i64>> {
        if !self.form().has(to, bytes.len()) {
            return Err(Unchanged::TooLong);
        }
        // SAFETY: the destination lies inside the caller's value, which only operations change.
        unsafe { self.copy_to(field, expected, new, self.form().padding() + to, bytes) }
    }
}

impl Deref for UntypedPerId {
    type Target = PerId<Untyped, Form>;

    #[inline(always)]
    fn deref(&self) -> &PerId<Untyped, Form> {
        &self.0
    }
}

impl Drop for UntypedPerId {
    fn drop(&mut self) {
        let bytes = self.form().shard_bytes();
        // SAFETY: the size of this form's shards; an object that is dropped is not used any more.
        unsafe { self.0.release(bytes, bytes) };
        // The form owns nothing.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(size: usize, align: usize) -> Form {
        Form::new(size, align, None, ptr::null_mut()).expect("a valid form")
    }

    #[test]
    fn values_have_their_alignment_and_bounds() {
        for source in Source::ALL.iter().copied().filter(|source| source.prepare().is_ok()) {
            for align in [1, 8, 16, 32, 64] {
                let object = UntypedPerId::with_source(source, form(40, align)).expect("memory");
                let last = object.form().word(32).expect("inside");
                assert!(
                    [33, 36, 40, usize::MAX - 7].iter().all(|&at| object.form().word(at).is_none())
                );
                let value = object.add(last, 5).expect("memory");
                let address = object.form().address(value);
                assert!(address.addr().get().is_multiple_of(align), "{source} {align}");
                assert_eq!(
                    object.form().value(address.as_ptr()).map(ptr::from_ref),
                    Some(ptr::from_ref(value))
                );
                // With the only value held, the operation makes another one.
                let held: Vec<_> = object.visit().collect();
                let extra = object.form().address(object.add(last, 6).expect("memory"));
                assert!(extra.addr().get().is_multiple_of(align), "{source} {align}");
                drop(held);
                let sum: i64 = object.iter().map(|(_, value)| last.of(value).load()).sum();
                assert_eq!(sum, 11, "{source} {align}");
            }
        }
    }

    #[test]
    fn each_value_is_behind_one_other() {
        let object = UntypedPerId::new(form(8, 8));
        let word = object.form().word(0).expect("inside");
        assert!(object.behind(None).is_none());
        object.add(word, 1).expect("memory");
        let held: Vec<_> = object.visit().collect();
        object.add(word, 1).expect("memory");
        drop(held);
        let all: Vec<_> = object.iter().map(|(_, value)| ptr::from_ref(value)).collect();
        let walk = std::iter::successors(object.behind(None), |&value| object.behind(Some(value)));
        assert_eq!(walk.map(ptr::from_ref).collect::<Vec<_>>(), all);
        assert!(all.len() >= 2);
        let no_value = word.of(object.behind(None).expect("a value")) as *const Word;
        let outside = object.form().value(no_value.wrapping_add(100).cast()).expect("aligned");
        assert!(object.behind(Some(outside)).is_none());
    }

    #[test]
    fn only_values_that_fit_are_valid() {
        let is_valid = |size, align| Form::new(size, align, None, ptr::null_mut()).is_some();
        for (size, align) in [(1, 1), (8, 8), (STRIDE - 64, 64)] {
            assert!(is_valid(size, align), "{size} {align}");
        }
        for (size, align) in [(0, 8), (8, 0), (8, 3), (8, 128), (STRIDE - 63, 64)] {
            assert!(!is_valid(size, align), "{size} {align}");
        }
        let mut of_c = form(40, 64);
        of_c.inline_size = 40;
        assert!(!of_c.is_valid(), "inline code would use another place");
    }
}
