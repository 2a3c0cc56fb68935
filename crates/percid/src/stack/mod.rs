//! Stacks: per-ID lists of items, last in, first out.
//!
//! # A shard's memory
//!
//! Word 0 is the *top*: the number of the first free slot, one more than the number of items. 0
//! means that the shard is inactive (never used, or drained), a negative number that it is seized.
//! Slots 1 to `capacity` follow. So one signed comparison is sufficient for a pop (`top > 1`), and
//! one unsigned comparison for a push (`top - 1 < capacity`).
//!
//! # Changes of a shard
//!
//! While the shard is active, only the sections `push` and `pop` of the CPU that has the ID change
//! it. The first thread that needs a shard *activates* it: it stores
//! [`ACTIVATING`](shard::ACTIVATING) (by a section, if the word is 0), makes the ID a member of the
//! stack's set, and stores the top of an empty shard. A drain visits the members: it seizes a
//! shard, takes the items, ends the membership, and stores 0. Both change the membership only while
//! they own the shard. Hence the invariant: *an active shard's ID is a member*, so no drain misses
//! one, and the hot path need not mark anything.
//!
//! Full shards move a batch to the shared list, empty ones refill from it. A batch is moved item by
//! item, each by a separate section, so it is harmless if the thread moves to another CPU in the
//! middle.

#[cfg(feature = "capi")]
mod capi;
mod chunks;
mod drain;
mod item;
mod shard;
mod slow;
#[cfg(feature = "testing")]
mod testing;

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use crate::arena::STRIDE;
use crate::critical::by_mark;
use crate::handle::{Handle, Needs, State};
use crate::id::set::{IdSet, ids};
use crate::id::{Source, SourceError};
use crate::seizure;
use crate::visit_lock::VisitLock;
use chunks::Chunks;
use item::{from_word, into_word};
use shard::Shard;

/// The maximum capacity: a shard must fit a slot of the arena.
const MAX_CAPACITY: u32 = (STRIDE / 8 - 1) as u32;

/// A list of items, last in, first out. Every CPU has a part of its own.
///
/// A CPU pops the items that it pushed, which are still in its cache, without a locked instruction.
/// A CPU whose part is full moves a batch of up to 30 items to a list that all CPUs share; one
/// whose part is empty takes a batch from there. Items have up to 8 bytes: a `Box`, an `Arc`, a
/// pointer, a number.
///
/// ```
/// static FREE: percid::Stack<Box<[u8; 4096]>> = percid::Stack::new(64);
///
/// let buffer = FREE.pop().unwrap_or_else(|| Box::new([0; 4096]));
/// // … use it …
/// let _ = FREE.push(buffer); // dropped if there is no room
/// assert_eq!(FREE.drain(drop), 1);
/// ```
///
/// Items are pushed and popped as the same type, lifetimes included:
///
/// ```compile_fail
/// fn shorten<'s, 'a>(stack: &'s percid::Stack<&'static u64>) -> &'s percid::Stack<&'a u64> {
///     stack
/// }
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. No item is lost or
///   returned twice.
/// * **A pop may miss** items in the parts of other CPUs, and items that another thread is
///   currently moving. `None` means that this CPU's part and the shared list were found empty. It
///   can also mean that the thread was interrupted or moved eight times in a row and the shared
///   list was found empty.
/// * **A drain may miss** items that are pushed, or moved by another thread, while it runs; and the
///   parts of all CPUs, if the process has entered a sandbox that refuses `membarrier` since its
///   first push.
/// * **Signals**: [`push`](Stack::push) and [`pop`](Stack::pop) are async-signal-safe, also in a
///   handler that interrupts one of them, and preserve `errno`; neither waits.
///   [`drain`](Stack::drain) waits for other drains: do not call it in a handler.
/// * **Async**: no method returns a guard, so nothing is held across `.await`. A popped item belongs
///   to its task.
/// * **Fork**: the child has a copy of everything except the items that other threads of the parent
///   were moving at the time. If items own something outside the process's memory, the caller must
///   take care of it.
/// * **Memory**: 256 bytes for the handle; `8 * (capacity + 1)` bytes, rounded up to a power of
///   two, for every ID that used it; 256 bytes for every batch in the shared list.
/// * **Cost**: a push and a pop about 25 instructions each, three and two of them stores, none
///   locked; with [`Source::Atomic`] a call and one locked instruction each. A batch costs two
///   locked instructions, and is needed once in 15 operations at worst. Creating a stack is a
///   constant, whatever the number of CPUs. A drain of a stack in use costs one fence, about 10 us,
///   per 64 IDs.
#[repr(C, align(64))]
pub struct Stack<T> {
    // The fields that the hot path reads, on a cache line that is not written any more.
    handle: Handle,
    capacity: u64,
    shared_limit: usize,
    members: IdSet,
    chunks: Chunks,
    visits: VisitLock,
    /// The object owns items, and is invariant: an item that is pushed as one type must not be
    /// popped as another.
    items: PhantomData<*mut T>,
}

/// Offsets and sizes that C programs contain as numbers: they define stacks in static storage, and
/// push and pop inline.
#[cfg(all(feature = "capi", target_pointer_width = "64"))]
const _: () = {
    type Pointers = Stack<usize>;
    assert!(size_of::<Pointers>() == 256);
    assert!(std::mem::offset_of!(Pointers, handle) == 0);
    assert!(std::mem::offset_of!(Pointers, capacity) == 8);
    assert!(std::mem::offset_of!(Pointers, shared_limit) == 16);
};

// SAFETY: a stack moves items between threads, which `T: Send` allows, and returns no references to
// them.
unsafe impl<T: Send> Sync for Stack<T> {}
// SAFETY: a stack only moves items between threads, which `T: Send` allows.
unsafe impl<T: Send> Send for Stack<T> {}

impl<T> Stack<T> {
    const ITEM_FITS: () = assert!(
        size_of::<T>() <= 8 && align_of::<T>() <= 8,
        "items of a stack have up to 8 bytes: box larger ones"
    );

    /// Creates an empty stack that keeps up to `capacity` items for every ID, and any number in the
    /// shared list. It will use the source of the process (see [`init`](crate::init)).
    ///
    /// ```
    /// use percid::Stack;
    ///
    /// static FREE: Stack<u32> = Stack::new(64);
    /// assert_eq!(FREE.pop(), None);
    /// ```
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    #[must_use]
    pub const fn new(capacity: u32) -> Stack<T> {
        Stack::bounded(capacity, usize::MAX)
    }

    /// Creates a stack like [`new`](Stack::new) with at most about `shared` items in the shared
    /// list: pushes beyond that are refused. (Threads that move a batch at the same time may exceed
    /// it by a batch each.)
    ///
    /// ```
    /// use percid::Stack;
    ///
    /// // 64 items for each ID, and about 1000 that IDs share.
    /// static FREE: Stack<u32> = Stack::bounded(64, 1000);
    /// assert_eq!(FREE.push(7), Ok(()));
    /// ```
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    #[must_use]
    pub const fn bounded(capacity: u32, shared: usize) -> Stack<T> {
        const { Self::ITEM_FITS };
        assert!(
            capacity > 0 && capacity <= MAX_CAPACITY,
            "a stack holds 1 to 2 097 151 items per ID (131 071 on 32 bits)"
        );
        Stack {
            handle: Handle::new(),
            capacity: capacity as u64,
            shared_limit: shared,
            members: IdSet::new(),
            chunks: Chunks::new(),
            visits: VisitLock { visitor: AtomicU64::new(0) },
            items: PhantomData,
        }
    }

    /// Creates a stack like [`new`](Stack::new) that uses `source`, whatever the process has
    /// chosen.
    ///
    /// ```
    /// use percid::{Source, Stack};
    ///
    /// let free: Stack<u32> = Stack::with_source(Source::Atomic, 64)?;
    /// assert_eq!(free.push(7), Ok(()));
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used, or not with the fence that a drain needs.
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    pub fn with_source(source: Source, capacity: u32) -> Result<Stack<T>, SourceError> {
        Stack::bounded_with_source(source, capacity, usize::MAX)
    }

    /// Creates a stack like [`bounded`](Stack::bounded) that uses `source`, whatever the process has
    /// chosen.
    ///
    /// ```
    /// use percid::{Source, Stack};
    ///
    /// let free: Stack<u32> = Stack::bounded_with_source(Source::Atomic, 1, 0)?;
    /// assert_eq!((free.push(7), free.push(8)), (Ok(()), Err(8)));
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`with_source`](Stack::with_source).
    ///
    /// # Panics
    ///
    /// If the capacity is 0 or above 2 097 151 (131 071 on 32 bits).
    pub fn bounded_with_source(
        source: Source,
        capacity: u32,
        shared: usize,
    ) -> Result<Stack<T>, SourceError> {
        let mut stack = Stack::bounded(capacity, shared);
        stack.handle = Handle::with_source(source, Needs::Fence, stack.bytes())?;
        Ok(stack)
    }

    /// Returns the maximum number of items that every ID keeps.
    ///
    /// ```
    /// assert_eq!(percid::Stack::<u32>::new(64).capacity(), 64);
    /// ```
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity as u32
    }

    /// Returns about how many items it has: those of every ID, and those of the shared list. It
    /// misses items that another thread is currently moving.
    ///
    /// ```
    /// let free = percid::Stack::new(64);
    /// free.push(7).expect("room");
    /// assert_eq!(free.item_count(), 1);
    /// ```
    #[must_use]
    pub fn item_count(&self) -> usize {
        let of_ids = match self.handle.state() {
            State::Claimed(block, Some(source)) => {
                let members = self.members.words_below(source.id_count());
                let ids = members.flat_map(|(index, bits)| ids(index, bits));
                let tops = ids.map(|id| block.word_of_id(id).load(Relaxed));
                tops.map(|top| (top - 1).max(0) as usize).sum()
            }
            _ => 0,
        };
        of_ids + self.chunks.items()
    }

    const fn bytes(&self) -> usize {
        (self.capacity as usize + 1) * 8
    }

    /// Returns the top of a full shard.
    fn full(&self) -> i64 {
        self.capacity as i64 + 1
    }
}

impl<T: Send> Stack<T> {
    /// Pushes an item.
    ///
    /// ```
    /// let free = percid::Stack::new(64);
    /// if let Err(buffer) = free.push(Box::new([0u8; 4096])) {
    ///     drop(buffer); // no room
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the item if there is no room: the CPU's part is full, and the shared list is full as
    /// well, or there is no memory for it.
    #[inline(always)]
    pub fn push(&self, item: T) -> Result<(), T> {
        let word = self.handle.word();
        let item = into_word(item);
        // SAFETY: the word of this stack's handle.
        let pushed = unsafe { by_mark!(word, push(&self.capacity, item), else false) };
        if pushed {
            return Ok(());
        }
        // SAFETY: the word was made of an item and no thread has taken it.
        self.push_slowly(item).map_err(|item| unsafe { from_word(item) })
    }

    /// Pops the item that this CPU pushed last, or one of the shared list. Returns `None` if there
    /// is none.
    ///
    /// ```
    /// let free = percid::Stack::new(64);
    /// let buffer = free.pop().unwrap_or_else(|| Box::new([0u8; 4096]));
    /// assert_eq!(buffer.len(), 4096);
    /// ```
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        // SAFETY: the word of this stack's handle.
        let popped = unsafe { by_mark!(self.handle.word(), pop(), else None) };
        // SAFETY: the word was made of an item and is converted back once.
        popped.or_else(|| self.pop_slowly()).map(|item| unsafe { from_word(item) })
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        // SAFETY (of every `from_word` below): the word was made of an item, which is converted
        // back once.
        if let State::Claimed(block, Some(source)) = self.handle.state() {
            let members = self.members.words_below(source.id_count());
            for id in members.flat_map(|(index, bits)| ids(index, bits)) {
                let shard = Shard { address: block.of_id(id) };
                let word = block.word_of_id(id);
                // In a child of fork a thread of the parent may own it: then its contents are
                // unknown.
                let mut seized = match word.load(Acquire) {
                    top @ 1.. => seizure::exchange(word, top),
                    _ => None,
                };
                while let Some(item) = seized.as_mut().and_then(|seized| shard.pop(seized)) {
                    // SAFETY: the word was made of an item, which is converted back once.
                    drop(unsafe { from_word::<T>(item) });
                }
            }
        }
        while let Some(item) = self.chunks.pop() {
            // SAFETY: the word was made of an item, which is converted back once.
            drop(unsafe { from_word::<T>(item) });
        }
        self.chunks.clear();
        self.members.clear();
        let bytes = self.bytes();
        // SAFETY: `&mut self` proves that no operation on this stack is running or will run.
        unsafe { self.handle.release(bytes) };
    }
}

impl<T> fmt::Debug for Stack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("capacity", &self.capacity)
            .field("in_shared_list", &self.chunks.items())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
