//! The operations.

use std::fmt;
use std::ptr::NonNull;

use super::make::sealed::Make;
use super::shard::{Shard, shard_at};
use super::words::{sealed::Bits, write};
use super::{Bytes, Field, PerId, Pointer, Stored, Word};
use crate::critical::MARKS;
use crate::critical::words::{CopyRequest, NOT_DONE, Outcome, word_section};
use crate::handle::State;

/// The error of an operation for whose first use there is no memory.
///
/// ```
/// use percid::per_id::NoMemory;
///
/// assert_eq!(NoMemory.to_string(), "no memory for the value of an ID");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for the value of an ID")
    }
}

impl std::error::Error for NoMemory {}

/// The reason why a comparing operation has changed nothing. `V` is the type of the field's values,
/// `O` that of the other field's.
///
/// ```
/// use percid::per_id::Unchanged;
///
/// let seen: Unchanged<i64> = Unchanged::Differs(7);
/// assert_eq!(seen.to_string(), "the field has the value 7");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unchanged<V, O = V> {
    /// The field has this value, not the expected one.
    Differs(V),
    /// The field has the expected value, but the other field has this one.
    OtherDiffers(O),
    /// The bytes reach beyond the end of their field.
    TooLong,
    /// There is no memory for the value of the ID.
    NoMemory,
}

impl<V: fmt::Debug, O: fmt::Debug> fmt::Display for Unchanged<V, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unchanged::Differs(seen) => write!(f, "the field has the value {seen:?}"),
            Unchanged::OtherDiffers(seen) => write!(f, "the other field has the value {seen:?}"),
            Unchanged::TooLong => f.write_str("the bytes reach beyond the end of their field"),
            Unchanged::NoMemory => NoMemory.fmt(f),
        }
    }
}

impl<V: fmt::Debug, O: fmt::Debug> std::error::Error for Unchanged<V, O> {}

type Stores<'p, T, W, O = W> = Result<&'p T, Unchanged<<W as Bits>::Value, <O as Bits>::Value>>;

/// The operations on the running thread's value. Each is one section, and returns the value that it
/// worked on.
impl<T: Send + Sync, F: Make<T>> PerId<T, F> {
    /// Adds `n` to a word. Wraps around.
    ///
    /// The addition is relaxed: it orders no other memory. All other operations except
    /// [`fetch_add`](PerId::fetch_add) release what the thread stored before to threads that load the
    /// field.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Field, Word}};
    ///
    /// let words = PerId::new(|| Word::new(40));
    /// assert_eq!(words.add(Field::whole(), 2)?.load(), 42);
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for the value.
    #[inline(always)]
    pub fn add(&self, field: Field<T, Word>, n: i64) -> Result<&T, NoMemory> {
        let at = offset(field);
        let section = move |word| {
            // SAFETY: the word of this object, and a field of its values.
            let done: Outcome = unsafe { word_section!(word, add_word(at, n), else NOT_DONE) };
            Self::value_in(done.shard)
        };
        let held = move |value| {
            let word: &Word = field.of(value);
            word.set(word.get().wrapping_add(n));
            value
        };
        self.operate(section, held).ok_or(NoMemory)
    }

    /// Adds `n` to a word, and returns the value before that. Wraps around.
    ///
    /// Its section is that of [`add`](PerId::add), and so is its memory order. The value that it
    /// stored is the returned one plus `n`, which the compiler has in a register.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Field, Word}};
    ///
    /// let tickets = PerId::new(|| Word::new(40));
    /// assert_eq!(tickets.fetch_add(Field::whole(), 2)?.0, 40);
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for the value.
    #[inline(always)]
    pub fn fetch_add(&self, field: Field<T, Word>, n: i64) -> Result<(i64, &T), NoMemory> {
        let at = offset(field);
        let section = move |word| {
            // SAFETY: the word of this object, and a field of its values.
            let done: Outcome = unsafe { word_section!(word, add_word(at, n), else NOT_DONE) };
            Some(((done.seen as i64).wrapping_sub(n), Self::value_in(done.shard)?))
        };
        let held = move |value| {
            let word: &Word = field.of(value);
            let before = word.get();
            word.set(before.wrapping_add(n));
            (before, value)
        };
        self.operate(section, held).ok_or(NoMemory)
    }

    /// Stores `new` in a field, and returns what it replaced. With a null pointer it takes a whole
    /// list.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Field, Word}};
    ///
    /// let words = PerId::new(|| Word::new(40));
    /// assert_eq!(words.swap(Field::whole(), 2)?.0, 40);
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for the value.
    #[inline(always)]
    pub fn swap<W: Stored>(
        &self,
        field: Field<T, W>,
        new: W::Value,
    ) -> Result<(W::Value, &T), NoMemory> {
        let (at, bits) = (offset(field), W::to_bits(new));
        let section = move |word| {
            // SAFETY: the word of this object, and a field of its values.
            let done: Outcome = unsafe { word_section!(word, swap(at, bits), else NOT_DONE) };
            Some((W::from_bits(done.seen), Self::value_in(done.shard)?))
        };
        let held = move |value| {
            let place: &W = field.of(value);
            let seen = place.get();
            place.set(new);
            (seen, value)
        };
        self.operate(section, held).ok_or(NoMemory)
    }

    /// Stores `new` in a field if it has the value `expected`.
    ///
    /// To try again, expect the value in [`Unchanged::Differs`]. [`current`](PerId::current) may return
    /// another value of `T` than the one that the operation works on, always if the thread has no ID.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Field, Unchanged, Word}};
    ///
    /// let words = PerId::new(|| Word::new(40));
    /// assert!(words.store_if(Field::whole(), 40, 41).is_ok());
    /// assert_eq!(words.store_if(Field::whole(), 0, 1).err(), Some(Unchanged::Differs(41)));
    /// ```
    ///
    /// # Errors
    ///
    /// The field has another value, or there is no memory for the value.
    #[inline(always)]
    pub fn store_if<W: Stored>(
        &self,
        field: Field<T, W>,
        expected: W::Value,
        new: W::Value,
    ) -> Stores<'_, T, W> {
        let (at, old, bits) = (offset(field), W::to_bits(expected), W::to_bits(new));
        let section = move |word| {
            // SAFETY: the word of this object, and a field of its values.
            let done: Outcome =
                unsafe { word_section!(word, store_if(at, old, bits), else NOT_DONE) };
            Self::stored::<W, W>(done, expected, None)
        };
        let held = move |value| {
            expect::<W, W>(field.of(value), expected)?;
            field.of(value).set(new);
            Ok(value)
        };
        self.operate(section, held).unwrap_or(Err(Unchanged::NoMemory))
    }

    /// Stores `new` in a field if it has the value `expected`, and before that a value in another
    /// field.
    ///
    /// The other field is meaningless until `new` is stored: an operation that is interrupted may
    /// have stored it without storing `new`. So only what `new` says may give it a meaning, such as
    /// a slot above the number of slots in use.
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// struct Slots {
    ///     used: Word,
    ///     slots: [Word; 8],
    /// }
    /// let slots = PerId::new(|| Slots { used: Word::new(0), slots: Default::default() });
    /// let (used, slot) = (percid::field!(Slots, used), percid::field!(Slots, slots));
    /// let value = slots.store_both_if(used, 0, 1, (slot.at(0), 7))?;
    /// assert_eq!((value.used.load(), value.slots[0].load()), (1, 7));
    /// # Ok::<(), percid::per_id::Unchanged<i64>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The field has another value, or there is no memory for the value.
    #[inline(always)]
    pub fn store_both_if<W: Stored, O: Stored>(
        &self,
        field: Field<T, W>,
        expected: W::Value,
        new: W::Value,
        first: (Field<T, O>, O::Value),
    ) -> Stores<'_, T, W> {
        let (at, old, bits) = (offset(field), W::to_bits(expected), W::to_bits(new));
        let before = (offset(first.0), O::to_bits(first.1));
        let section = move |word| {
            // SAFETY: the word of this object, and fields of its values.
            let done: Outcome =
                unsafe { word_section!(word, store_both_if(at, old, before, bits), else NOT_DONE) };
            Self::stored::<W, W>(done, expected, None)
        };
        let held = move |value| {
            expect::<W, W>(field.of(value), expected)?;
            first.0.of(value).set(first.1);
            field.of(value).set(new);
            Ok(value)
        };
        self.operate(section, held).unwrap_or(Err(Unchanged::NoMemory))
    }

    /// Stores `new` in a field if it has the value `expected` and another field has the value that
    /// is expected there.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Unchanged, Word}};
    ///
    /// struct Gate {
    ///     closed: Word,
    ///     owner: Word,
    /// }
    /// let gates = PerId::new(|| Gate { closed: Word::new(1), owner: Word::new(0) });
    /// let (owner, closed) = (percid::field!(Gate, owner), percid::field!(Gate, closed));
    /// let entered = gates.store_if_both(owner, 0, 77, (closed, 0));
    /// assert_eq!(entered.err(), Some(Unchanged::OtherDiffers(1)));
    /// ```
    ///
    /// # Errors
    ///
    /// One of the fields has another value, or there is no memory for the value.
    #[inline(always)]
    pub fn store_if_both<W: Stored, O: Stored>(
        &self,
        field: Field<T, W>,
        expected: W::Value,
        new: W::Value,
        other: (Field<T, O>, O::Value),
    ) -> Stores<'_, T, W, O> {
        let (at, old, bits) = (offset(field), W::to_bits(expected), W::to_bits(new));
        let second = (offset(other.0), O::to_bits(other.1));
        let section = move |word| {
            // SAFETY: the word of this object, and fields of its values.
            let done: Outcome =
                unsafe { word_section!(word, store_if_both(at, old, second, bits), else NOT_DONE) };
            Self::stored::<W, O>(done, expected, Some(other.1))
        };
        let held = move |value| {
            expect::<W, O>(field.of(value), expected)?;
            match other.0.of(value).get() {
                seen if seen != other.1 => return Err(Unchanged::OtherDiffers(seen)),
                _ => field.of(value).set(new),
            }
            Ok(value)
        };
        self.operate(section, held).unwrap_or(Err(Unchanged::NoMemory))
    }

    /// Copies bytes into a field, and then stores `new` in another field, if that has the value
    /// `expected`. The bytes go to `to.0`, from its byte `to.1` on.
    ///
    /// The destination is meaningless until `new` is stored: an operation that is interrupted may
    /// have written a part of it. The time is that of the copy; a long one is interrupted more
    /// often.
    ///
    /// ```
    /// use percid::{PerId, per_id::{Bytes, Word}};
    ///
    /// struct Log {
    ///     length: Word,
    ///     text: Bytes<64>,
    /// }
    /// let logs = PerId::new(|| Log { length: Word::new(0), text: Bytes::new() });
    /// let (length, text) = (percid::field!(Log, length), percid::field!(Log, text));
    /// let log = logs.copy_then_store_if(length, 0, 5, (text, 0), b"hello")?;
    /// let mut read = [0; 5];
    /// assert!(log.text.read(0, &mut read) && &read == b"hello");
    /// # Ok::<(), percid::per_id::Unchanged<i64>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The field has another value, the bytes do not fit, or there is no memory for the value.
    #[inline(always)]
    pub fn copy_then_store_if<W: Stored, const LENGTH: usize>(
        &self,
        field: Field<T, W>,
        expected: W::Value,
        new: W::Value,
        to: (Field<T, Bytes<LENGTH>>, usize),
        bytes: &[u8],
    ) -> Stores<'_, T, W> {
        if to.1.checked_add(bytes.len()).is_none_or(|end| end > LENGTH) {
            return Err(Unchanged::TooLong);
        }
        // SAFETY: the bytes lie in the field of a value, whose bytes change only by operations.
        unsafe { self.copy_to(field, expected, new, to.0.offset() + to.1, bytes) }
    }

    /// Copies bytes to offset `to` of the value, and then stores `new` in a field, if that has the
    /// value `expected`.
    ///
    /// # Safety
    ///
    /// The destination lies inside the value, and is accessed only as [`Bytes`] are.
    #[inline(always)]
    pub(super) unsafe fn copy_to<W: Stored>(
        &self,
        field: Field<T, W>,
        expected: W::Value,
        new: W::Value,
        to: usize,
        bytes: &[u8],
    ) -> Stores<'_, T, W> {
        let (at, old, bits) = (offset(field), W::to_bits(expected), W::to_bits(new));
        let section = move |word| {
            let request = CopyRequest::new(bytes, Shard::<T>::VALUE + to, old, bits);
            // SAFETY: the word of this object, fields of its values, and bytes that fit.
            let done: Outcome =
                unsafe { word_section!(word, copy_then_store_if(at, &request), else NOT_DONE) };
            Self::stored::<W, W>(done, expected, None)
        };
        let held = move |value| {
            expect::<W, W>(field.of(value), expected)?;
            // SAFETY: the caller guarantees that the destination lies inside the value.
            unsafe { write(std::ptr::from_ref(value).cast::<u8>().add(to), bytes) };
            field.of(value).set(new);
            Ok(value)
        };
        self.operate(section, held).unwrap_or(Err(Unchanged::NoMemory))
    }

    /// Makes `item` the first of a list: `head` points to the first item, and the field `next` of
    /// each item to the one behind it.
    ///
    /// ```
    /// use percid::PerId;
    /// use percid::per_id::{Field, Pointer};
    /// use std::ptr::NonNull;
    ///
    /// struct Item(u32, Pointer<Item>);
    ///
    /// let lists = PerId::new(Pointer::null);
    /// let item = NonNull::from(Box::leak(Box::new(Item(7, Pointer::null()))));
    /// let next = percid::field!(Item, 1);
    /// // SAFETY: the item is valid, and stays so until it is freed below.
    /// unsafe { lists.push(Field::whole(), item, next) }?;
    /// for list in lists.visit() {
    ///     let item = list.load();
    ///     list.store(std::ptr::null_mut());
    ///     // SAFETY: the item was a box, and it is in no list any more.
    ///     assert_eq!(unsafe { Box::from_raw(item) }.0, 7);
    /// }
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    ///
    /// # Safety
    ///
    /// The item is valid, and in no list. It stays valid and unmoved until it was popped, or taken
    /// with its list. Until then only operations of this object use its field `next`.
    ///
    /// # Errors
    ///
    /// There is no memory for the value.
    #[inline(always)]
    pub unsafe fn push<N>(
        &self,
        head: Field<T, Pointer<N>>,
        item: NonNull<N>,
        next: Field<N, Pointer<N>>,
    ) -> Result<&T, NoMemory> {
        let (at, bits) = (offset(head), Pointer::to_bits(item.as_ptr()));
        let link = item.addr().get() + next.offset();
        let section = move |word| {
            // SAFETY: the word of this object, and a field of its values; the item is only this
            // thread's until it is in the list.
            let done: Outcome =
                unsafe { word_section!(word, push_link(at, bits, link), else NOT_DONE) };
            Self::value_in(done.shard)
        };
        let held = move |value| {
            let head: &Pointer<N> = head.of(value);
            // SAFETY: the caller guarantees that the item is valid.
            next.of(unsafe { item.as_ref() }).set(head.get());
            head.set(item.as_ptr());
            value
        };
        self.operate(section, held).ok_or(NoMemory)
    }

    /// Takes the first item out of a list; `None` if the list of this value is empty.
    ///
    /// ```
    /// use percid::PerId;
    /// use percid::per_id::{Field, Pointer};
    ///
    /// struct Item(u32, Pointer<Item>);
    ///
    /// let lists = PerId::new(Pointer::<Item>::null);
    /// // SAFETY: nothing was pushed.
    /// assert!(unsafe { lists.pop(Field::whole(), percid::field!(Item, 1)) }?.is_none());
    /// # Ok::<(), percid::per_id::NoMemory>(())
    /// ```
    ///
    /// # Safety
    ///
    /// All items of the list were added by [`push`](PerId::push), with the same field `next`.
    ///
    /// # Errors
    ///
    /// There is no memory for the value.
    #[inline(always)]
    pub unsafe fn pop<N>(
        &self,
        head: Field<T, Pointer<N>>,
        next: Field<N, Pointer<N>>,
    ) -> Result<Option<NonNull<N>>, NoMemory> {
        let at = offset(head);
        let section = move |word| {
            // SAFETY: the word of this object, and a field of its values that leads to items.
            let done: Outcome =
                unsafe { word_section!(word, pop_link(at, next.offset()), else NOT_DONE) };
            Self::value_in(done.shard)?;
            Some(NonNull::new(Pointer::from_bits(done.seen)))
        };
        let held = move |value| {
            let head: &Pointer<N> = head.of(value);
            let first = NonNull::new(head.get())?;
            // SAFETY: the caller guarantees that items are valid as long as they are in the list.
            head.set(next.of(unsafe { first.as_ref() }).get());
            Some(first)
        };
        self.operate(section, held).ok_or(NoMemory)
    }

    /// Does an operation by its section, or on a value that the thread holds. The functions contain
    /// their captures, so that the first try needs no stack.
    #[inline(always)]
    fn operate<'p, R>(
        &'p self,
        section: impl Fn(usize) -> Option<R> + Copy,
        held: impl Fn(&'p T) -> R + Copy,
    ) -> Option<R> {
        section(self.handle.word()).or_else(|| self.operate_slowly(section, held))
    }

    /// Returns the value in the shard that a section worked on; `None` if it was not done.
    #[inline(always)]
    fn value_in<'p>(shard: usize) -> Option<&'p T> {
        // SAFETY: a section works on ready shards of its object only, and its callers return the
        // value for as long as that is borrowed.
        (shard != 0).then(|| unsafe { shard_at::<T>(shard & !MARKS).value_unchecked() })
    }

    /// Returns the result of a section that compares; `None` if it was not done.
    #[inline(always)]
    fn stored<'p, W: Stored, O: Stored>(
        done: Outcome,
        expected: W::Value,
        other: Option<O::Value>,
    ) -> Option<Stores<'p, T, W, O>> {
        let value = Self::value_in(done.shard)?;
        let (seen, beside) = (W::from_bits(done.seen), O::from_bits(done.other));
        Some(match other {
            _ if seen != expected => Err(Unchanged::Differs(seen)),
            Some(other) if beside != other => Err(Unchanged::OtherDiffers(beside)),
            _ => Ok(value),
        })
    }
}

impl<T: Send + Sync, F> PerId<T, F> {
    /// Returns the value of the running thread's ID, as a hint: the thread may be moved at any
    /// time. `None` if there is none yet.
    ///
    /// ```
    /// use percid::{PerId, per_id::Word};
    ///
    /// let words = PerId::new(|| Word::new(0));
    /// assert!(words.current().is_none());
    /// ```
    #[inline]
    pub fn current(&self) -> Option<&T> {
        let State::Claimed(_, Some(source)) = self.handle.state() else { return None };
        self.get(source.hint()?)
    }
}

/// Returns the offset of a field from the start of a shard.
#[inline(always)]
fn offset<T, W>(field: Field<T, W>) -> usize {
    Shard::<T>::VALUE + field.offset()
}

/// Compares a field of a value that the thread holds.
fn expect<W: Stored, O: Stored>(
    field: &W,
    expected: W::Value,
) -> Result<(), Unchanged<W::Value, O::Value>> {
    match field.get() {
        seen if seen == expected => Ok(()),
        seen => Err(Unchanged::Differs(seen)),
    }
}
