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
//! it. The first thread that needs a shard *activates* it: it stores [`ACTIVATING`] (by a section,
//! if the word is 0), makes the ID a member of the stack's set, and stores the top of an empty
//! shard. A drain visits the members: it seizes a shard, takes the items, ends the membership, and
//! stores 0. Both change the membership only while they own the shard. Hence the invariant: *an
//! active shard's ID is a member*, so no drain misses one, and the hot path need not mark anything.
//!
//! Full shards move a batch to the shared list, empty ones refill from it. A batch is moved item by
//! item, each by a separate section, so it is harmless if the thread moves to another CPU in the
//! middle.

mod chunks;

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use crate::arena::{Block, STRIDE, word};
use crate::critical::by_mark;
use crate::handle::{self, Handle, Needs, State};
use crate::id::set::{IdSet, ids};
use crate::id::{Source, SourceError};
use crate::retry::retry;
use crate::seizure::{self, SEIZED, Seized, Verdict, Visit};
use crate::sys::{preserving_errno, race_detector};
use crate::visit_lock::{VisitGuard, VisitLock};
use chunks::{Chunk, Chunks, ITEMS, Item};

/// The top of a shard that is being activated.
const ACTIVATING: i64 = SEIZED;

/// The top of a shard that is active and has no items.
const EMPTY: i64 = 1;

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
        let mut stack = Stack::new(capacity);
        stack.handle = Handle::with_source(source, Needs::Fence, stack.bytes())?;
        Ok(stack)
    }

    /// Returns the maximum number of items that every ID keeps.
    ///
    /// ```
    /// assert_eq!(percid::Stack::<u32>::new(64).capacity(), 64);
    /// ```
    pub const fn capacity(&self) -> u32 {
        self.capacity as u32
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

    /// Passes all items to `visit`, those of every ID and those of the shared list, and returns
    /// their number.
    ///
    /// Waits for a drain by another thread. If `visit` calls it, it does nothing. If `visit`
    /// panics, the items that were not passed to it stay.
    ///
    /// ```
    /// let free = percid::Stack::new(64);
    /// for number in 1..=3 {
    ///     free.push(number).expect("room");
    /// }
    /// let mut sum = 0;
    /// assert_eq!(free.drain(|number| sum += number), 3);
    /// assert_eq!(sum, 6);
    /// ```
    pub fn drain(&self, mut visit: impl FnMut(T)) -> usize {
        let Some(mut draining) = self.drain_iter() else { return 0 };
        let mut count = 0;
        while let Some(item) = draining.next() {
            count += 1;
            visit(item);
        }
        count
    }

    /// Begins a drain that returns one item after the other: for C functions, which may end the
    /// thread or jump, and must not do so across percid's frames. Returns `None` inside a drain of
    /// this stack by this thread.
    #[doc(hidden)]
    pub fn drain_iter(&self) -> Option<Drain<'_, T>> {
        let visiting = self.visits.lock()?;
        let parts = match self.handle.state() {
            State::Claimed(block, Some(source)) => Some(Parts::new(block, source)),
            _ => None,
        };
        Some(Drain { stack: self, parts, shared: None, _visiting: visiting })
    }

    #[cold]
    #[inline(never)]
    fn push_slowly(&self, item: Item) -> Result<(), Item> {
        let item = announce_push(item);
        if let Some((shard, mut owned)) = self.handle.atomic_block().and_then(own_at_hint) {
            if shard.push(&mut owned, self.full(), item) {
                return Ok(());
            }
        }
        preserving_errno(|| {
            let State::Claimed(block, source) = self.handle.settle(Needs::Fence, self.bytes())
            else {
                return Err(item);
            };
            let pushed = source.and_then(|source| self.push_as(block, source, item));
            pushed.unwrap_or_else(|| match self.chunks.items() >= self.shared_limit {
                true => Err(item),
                false => self.chunks.push(item),
            })
        })
    }

    /// Pushes to this thread's current shard; `None` if it has none.
    fn push_as(&self, block: Block, source: Source, item: Item) -> Option<Result<(), Item>> {
        let make_room = || {
            match self.look(block, source)? {
                0 => self.activate(block, source),
                top if top == self.full() => {
                    if !self.flush(block, source) {
                        return Some(ControlFlow::Break(Err(item)));
                    }
                }
                1.. => {}
                ..0 => return None,
            }
            Some(ControlFlow::Continue(()))
        };
        retry(|| self.try_push(block, source, item).then_some(Ok(())), make_room)
    }

    #[cold]
    #[inline(never)]
    fn pop_slowly(&self) -> Option<Item> {
        self.find_item().inspect(|&item| announce_popped(item))
    }

    fn find_item(&self) -> Option<Item> {
        if let Some((shard, mut owned)) = self.handle.atomic_block().and_then(own_at_hint) {
            if let Some(item) = shard.pop(&mut owned) {
                return Some(item);
            }
        }
        preserving_errno(|| {
            let State::Claimed(block, source) = self.handle.settle(Needs::Fence, self.bytes())
            else {
                return None;
            };
            // While the source is being chosen, all items go to the shared list.
            let Some(source) = source else { return self.chunks.pop() };
            let refill = || match self.look(block, source)? {
                0 | EMPTY => Some(ControlFlow::Break(self.refill(block, source))),
                2.. => Some(ControlFlow::Continue(())),
                ..0 => None,
            };
            let popped = retry(|| self.try_pop(block, source).map(Some), refill);
            popped.unwrap_or_else(|| self.chunks.pop())
        })
    }

    /// Returns the top of this thread's current shard, as a hint; `None` if it has none.
    fn look(&self, block: Block, source: Source) -> Option<i64> {
        let id = source.ensure_id_hint()?;
        Some(block.word_of_id(id).load(Relaxed))
    }

    fn try_push(&self, block: Block, source: Source, item: Item) -> bool {
        if source == Source::Atomic {
            let owned = own_at_hint(block);
            return owned
                .is_some_and(|(shard, mut seized)| shard.push(&mut seized, self.full(), item));
        }
        // SAFETY: the block of this stack, whose source has been prepared.
        unsafe { try_push(handle::marked(block, source), &self.capacity, item) }
    }

    fn try_pop(&self, block: Block, source: Source) -> Option<Item> {
        if source == Source::Atomic {
            let (shard, mut seized) = own_at_hint(block)?;
            return shard.pop(&mut seized);
        }
        // SAFETY: the block of this stack, whose source has been prepared.
        unsafe { try_pop(handle::marked(block, source)) }
    }

    /// Activates this thread's current shard, unless another thread does.
    fn activate(&self, block: Block, source: Source) {
        let shard = if source == Source::Atomic {
            acquire_at_hint(block)
        } else {
            // SAFETY: the first word of this stack's block, whose source has been prepared.
            unsafe { try_activate(handle::marked(block, source)) }
        };
        if shard == 0 {
            return;
        }
        let id = ((shard - block.0) / STRIDE - 1) as u32;
        // SAFETY: the first word of a shard in an open slot, which belongs to this thread until it
        // is returned.
        let top: &AtomicI64 = unsafe { &*word(shard) };
        // The ID becomes a member first: a drain must not miss items that are pushed as soon as the
        // shard is active.
        seizure::owned(top, EMPTY).give_back_after(|| self.members.insert(id));
    }

    /// Moves a batch from this CPU's part to the shared list. Returns `false` if the list has no
    /// room.
    fn flush(&self, block: Block, source: Source) -> bool {
        if self.chunks.items() >= self.shared_limit {
            return false;
        }
        let Some(mut chunk) = self.chunks.fresh() else { return false };
        while chunk.len() < self.batch() {
            match self.try_pop(block, source) {
                Some(item) => chunk.push(item),
                None => break,
            }
        }
        self.chunks.put(chunk);
        true
    }

    /// Takes a batch from the shared list, one item for the caller and the rest for this CPU's
    /// part.
    fn refill(&self, block: Block, source: Source) -> Option<Item> {
        let mut chunk = self.chunks.take()?;
        let item = chunk.pop();
        self.stow(block, source, &mut chunk);
        self.chunks.put(chunk);
        item
    }

    /// Pushes a batch of a chunk's items until there is no room.
    fn stow(&self, block: Block, source: Source, chunk: &mut Chunk) {
        if chunk.len() > 0 && self.look(block, source) == Some(0) {
            self.activate(block, source);
        }
        for _ in 1..self.batch() {
            let Some(item) = chunk.pop() else { break };
            if !self.try_push(block, source, item) {
                chunk.push(item);
                break;
            }
        }
    }

    /// Returns the number of items that move at once: half of a part, so that it is neither full
    /// nor empty afterwards.
    fn batch(&self) -> usize {
        (self.capacity.div_ceil(2) as usize).min(ITEMS)
    }
}

/// A drain, item by item. If it is dropped before its end, the items that it has not returned stay.
#[doc(hidden)]
#[derive(Debug)]
pub struct Drain<'s, T> {
    stack: &'s Stack<T>,
    /// The parts of IDs; `None` if no item is left in them.
    parts: Option<Parts>,
    /// Number of items of the shared list that are still due, once the drain has reached that list.
    shared: Option<usize>,
    // Dropped last: the shards are returned under the lock.
    _visiting: VisitGuard<'s>,
}

/// The parts of all IDs, and the progress of the drain.
#[derive(Debug)]
struct Parts {
    block: Block,
    source: Source,
    ids: u32,
    /// The word of the set with the next IDs.
    next_word: usize,
    /// The ID that is bit 0 of the current visit.
    base: u32,
    visit: Visit<'static>,
    /// The shard that is being emptied, and its ID.
    present: Option<(u32, Seized<'static>)>,
}

impl<T: Send> Drain<'_, T> {
    /// Returns the next item.
    #[doc(hidden)]
    pub fn next(&mut self) -> Option<T> {
        let item = self.next_of_parts().or_else(|| self.next_shared())?;
        announce_popped(item);
        // SAFETY: the word was made of an item and is converted back once.
        Some(unsafe { from_word(item) })
    }

    fn next_of_parts(&mut self) -> Option<Item> {
        let item = self.parts.as_mut()?.next(&self.stack.members);
        if item.is_none() {
            self.parts = None;
        }
        item
    }

    /// Returns an item of the shared list. It returns at most as many as there were when the drain
    /// reached the list: other threads may push all the time.
    fn next_shared(&mut self) -> Option<Item> {
        let due = self.shared.get_or_insert_with(|| self.stack.chunks.items());
        *due = due.checked_sub(1)?;
        self.stack.chunks.pop()
    }
}

impl Parts {
    fn new(block: Block, source: Source) -> Parts {
        let visit = Visit::new(0, false);
        Parts { block, source, ids: source.id_count(), next_word: 0, base: 0, visit, present: None }
    }

    fn next(&mut self, members: &IdSet) -> Option<Item> {
        loop {
            if let Some((id, seized)) = &mut self.present {
                let shard = Shard { address: self.block.of_id(*id) };
                if let Some(item) = shard.pop(seized) {
                    return Some(item);
                }
                members.remove(*id);
                seized.value = 0;
                self.present = None;
            }
            self.present = Some(self.seize_next(members)?);
        }
    }

    fn seize_next(&mut self, members: &IdSet) -> Option<(u32, Seized<'static>)> {
        let sections = self.source != Source::Atomic;
        let judge = |top| match top {
            1.. => Verdict::Seize,
            0 | ACTIVATING => Verdict::Pass,
            // Another thread owns the shard. With sections that could only be a drain, and this is
            // the only drain: the word was left by a thread of the parent, at the time of a fork.
            _ if sections => Verdict::Pass,
            _ => Verdict::Wait,
        };
        loop {
            let (block, base) = (self.block, self.base);
            if let Some((bit, seized)) = self.visit.next(|bit| block.word_of_id(base + bit), judge)
            {
                return Some((base + bit, seized));
            }
            let (index, bits) = members.next_word(self.next_word, self.ids)?;
            self.next_word = index + 1;
            self.base = index as u32 * 64;
            self.visit = Visit::new(bits, sections);
        }
    }
}

/// Announces a push before it happens: a thread that pops the item sees everything behind it.
/// Returns the item to be pushed, with the bits that identify it.
fn announce_push(item: Item) -> Item {
    if !race_detector::is_present() {
        return item;
    }
    let bits = race_detector::frozen(item);
    race_detector::release(race_detector::key_of(bits));
    Item::new(bits)
}

fn announce_popped(item: Item) {
    if race_detector::is_present() {
        race_detector::acquire(race_detector::key_of(race_detector::frozen(item)));
    }
}

/// Runs the section `push`, in one place for all slow paths and all types of items.
///
/// # Safety
///
/// `word` is a stack's block with the mark of a source that has been prepared, and `capacity` is
/// the stack's capacity.
#[inline(never)]
unsafe fn try_push(word: usize, capacity: &u64, item: Item) -> bool {
    // SAFETY: the caller passes a stack's block with the mark of a prepared source, and its
    // capacity.
    unsafe { by_mark!(word, push(capacity, item), else false) }
}

/// Runs the section `pop`, with the obligations of [`try_push`].
#[inline(never)]
unsafe fn try_pop(word: usize) -> Option<Item> {
    // SAFETY: the caller passes a stack's block with the mark of a prepared source.
    unsafe { by_mark!(word, pop(), else None) }
}

/// Runs the section `acquire` on an inactive shard, with the obligations of [`try_push`]. Returns
/// the address of the shard; 0 if it is active already.
///
/// A stack's shard has no word that closes it: its top, which must be zero, is used instead.
#[inline(never)]
unsafe fn try_activate(word: usize) -> usize {
    // SAFETY: the caller passes a stack's block with the mark of a prepared source.
    unsafe { by_mark!(word, acquire::<0>(0, ACTIVATING as usize), else 0) }
}

/// Seizes the shard of the thread's hint for the atomic source, in which only the owner accesses a
/// shard.
fn own_at_hint(block: Block) -> Option<(Shard, Seized<'static>)> {
    let id = Source::Atomic.ensure_id_hint()?;
    let word = block.word_of_id(id);
    let top = word.load(Relaxed);
    let seized = if top > 0 { seizure::exchange(word, top)? } else { return None };
    Some((Shard { address: block.of_id(id) }, seized))
}

#[cfg(feature = "testing")]
impl<T: Send> Stack<T> {
    /// Returns the items of an ID, the top first; `None` if its shard is inactive.
    pub(crate) fn items_of_id(&self, id: u32) -> Option<Vec<T>>
    where
        T: Copy,
    {
        let (shard, top) = self.shard_of_id(id)?;
        // SAFETY: the slots below the top hold words that were made of items, which may be copied.
        let item = |slot| unsafe { from_word(shard.slot(slot).read()) };
        Some((1..top).rev().map(item).collect())
    }

    /// Pushes to the shard of an ID, which belongs to the caller alone.
    pub(crate) fn push_to_id(&self, id: u32, item: T) -> Result<(), T> {
        let item = into_word(item);
        let pushed = self.shard_of_id(id).is_some_and(|(shard, top)| {
            let seized = seizure::exchange(shard.word(), top);
            seized.is_some_and(|mut seized| shard.push(&mut seized, self.full(), item))
        });
        // SAFETY: the word was made of an item and no thread has taken it.
        if pushed { Ok(()) } else { Err(unsafe { from_word(item) }) }
    }

    /// Pops from the shard of an ID, which belongs to the caller alone.
    pub(crate) fn pop_from_id(&self, id: u32) -> Option<T> {
        let (shard, top) = self.shard_of_id(id)?;
        let item = shard.pop(&mut seizure::exchange(shard.word(), top)?)?;
        // SAFETY: the word was made of an item and is converted back once.
        Some(unsafe { from_word(item) })
    }

    /// Pushes to the shared list.
    pub(crate) fn push_shared(&self, item: T) -> Result<(), T> {
        // SAFETY: the word was made of an item and no thread has taken it.
        self.chunks.push(into_word(item)).map_err(|item| unsafe { from_word(item) })
    }

    fn shard_of_id(&self, id: u32) -> Option<(Shard, i64)> {
        match self.handle.state() {
            State::Claimed(block, Some(source)) if id < source.id_count() => {
                let shard = Shard { address: block.of_id(id) };
                let top = shard.word().load(Relaxed);
                (top > 0).then_some((shard, top))
            }
            _ => None,
        }
    }
}

#[cfg(feature = "testing")]
impl Shard {
    fn word(&self) -> &'static AtomicI64 {
        // SAFETY: the first word of a shard in an open slot, which stays mapped.
        unsafe { &*word(self.address) }
    }
}

fn acquire_at_hint(block: Block) -> usize {
    let Some(id) = Source::Atomic.ensure_id_hint() else { return 0 };
    let word = block.word_of_id(id);
    if seizure::claim(word, 0, ACTIVATING) { block.of_id(id) } else { 0 }
}

/// The slots of a shard that the calling thread owns.
struct Shard {
    address: usize,
}

impl Shard {
    fn push(&self, seized: &mut Seized<'_>, full: i64, item: Item) -> bool {
        let has_room = seized.value < full;
        if has_room {
            // SAFETY: a slot of a shard that this thread owns.
            unsafe { self.slot(seized.value).write(item) };
            seized.value += 1;
        }
        has_room
    }

    fn pop(&self, seized: &mut Seized<'_>) -> Option<Item> {
        if seized.value <= EMPTY {
            return None;
        }
        seized.value -= 1;
        // SAFETY: a slot below the top of a shard that this thread owns.
        Some(unsafe { self.slot(seized.value).read() })
    }

    fn slot(&self, index: i64) -> *mut Item {
        std::ptr::with_exposed_provenance_mut(self.address + index as usize * 8)
    }
}

/// An item as a word; bytes beyond its size are not initialised.
#[inline(always)]
fn into_word<T>(item: T) -> Item {
    let mut word = Item::uninit();
    // SAFETY: an item fits a word, as `Stack::bounded` asserts.
    unsafe { word.as_mut_ptr().cast::<T>().write(item) };
    word
}

/// Returns the item that a word was made of.
///
/// # Safety
///
/// The word was made of a `T`, which is converted back once.
#[inline(always)]
unsafe fn from_word<T>(word: Item) -> T {
    // SAFETY: the caller guarantees that the word was made of a `T`.
    unsafe { word.as_ptr().cast::<T>().read() }
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
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::sys::steps::{self, Step};

    fn with_every_source(capacity: u32, test: impl Fn(Stack<u64>, Source)) {
        for source in Source::ALL.into_iter().filter(|source| source.prepare().is_ok()) {
            test(Stack::with_source(source, capacity).expect("an available source"), source);
        }
    }

    #[test]
    fn the_last_item_comes_first() {
        with_every_source(8, |stack, source| {
            // Other CPUs have other parts; the test assumes that the thread mostly stays on its
            // CPU.
            (1..=5).for_each(|item| stack.push(item).expect("room"));
            let mut popped: Vec<u64> = std::iter::from_fn(|| stack.pop()).collect();
            stack.drain(|item| popped.push(item));
            popped.sort_unstable();
            assert_eq!(popped, [1, 2, 3, 4, 5], "{source}");
        });
    }

    #[test]
    fn what_does_not_fit_a_part_goes_to_the_shared_list_and_comes_back() {
        for capacity in [1, 2, 3, 64] {
            with_every_source(capacity, |stack, source| {
                (0..1000).for_each(|item| stack.push(item).expect("room"));
                let mut all: Vec<u64> = (0..500).filter_map(|_| stack.pop()).collect();
                stack.drain(|item| all.push(item));
                all.sort_unstable();
                assert_eq!(all, (0..1000).collect::<Vec<_>>(), "{source} {capacity}");
            });
        }
    }

    #[test]
    fn a_bounded_stack_refuses_and_gives_back() {
        let stack = Stack::bounded(4, 10);
        let refused = (0..10_000).filter(|&item| stack.push(item) == Err(item)).count();
        let kept = stack.drain(drop);
        assert_eq!(refused + kept, 10_000);
        assert!((10..10 + ITEMS + 4 * 64).contains(&kept), "{kept}");
    }

    #[test]
    fn a_batch_that_does_not_fit_goes_back_to_the_shared_list() {
        with_every_source(4, |stack, source| {
            for item in 0..20 {
                stack.chunks.push(into_word(item)).expect("memory");
            }
            assert!(stack.pop().is_some(), "{source}");
            assert_eq!(stack.drain(drop), 19, "{source}");
        });
    }

    /// The test includes threads whose part is not available: then all their items go to the shared
    /// list.
    #[test]
    fn the_shared_list_is_bounded() {
        with_every_source(4, |mut stack, source| {
            stack.shared_limit = 10;
            push_to_parts(&stack, 0..1);
            let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
            let change = |change: fn(&AtomicI64)| {
                (0..source.id_count()).for_each(|id| change(block.word_of_id(id)));
            };
            change(|word| _ = word.fetch_or(SEIZED, Relaxed));
            let kept = (0..1000).filter(|&item| stack.push(item).is_ok()).count();
            assert!((10..10 + ITEMS + 4 * 64).contains(&kept), "{source}: {kept}");
            change(|word| _ = word.fetch_and(i64::MAX, Relaxed));
            assert_eq!(stack.drain(drop), kept + 1, "{source}");
        });
    }

    #[test]
    fn it_goes_on_after_a_drain() {
        with_every_source(16, |stack, source| {
            for round in 0..3 {
                assert_eq!(stack.push(round), Ok(()), "{source}");
                let mut drained = Vec::new();
                assert_eq!(stack.drain(|item| drained.push(item)), 1, "{source}");
                assert_eq!(drained, [round], "{source}");
                assert_eq!(stack.pop(), None, "{source}");
            }
        });
    }

    #[test]
    fn items_are_dropped_with_it_and_no_earlier() {
        let stack = Stack::new(4);
        let item = Arc::new(());
        for _ in 0..100 {
            assert!(stack.push(Arc::clone(&item)).is_ok());
        }
        assert_eq!(Arc::strong_count(&item), 101);
        drop(stack.pop());
        assert_eq!(Arc::strong_count(&item), 100);
        drop(stack);
        assert_eq!(Arc::strong_count(&item), 1);
    }

    #[test]
    fn a_visitor_that_panics_keeps_the_rest() {
        with_every_source(64, |stack, source| {
            push_to_parts(&stack, 0..40);
            let seen = AtomicUsize::new(0);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                stack.drain(|_| assert!(seen.fetch_add(1, Relaxed) < 9, "enough"));
            }));
            assert!(result.is_err());
            assert_eq!(stack.drain(drop), 30, "{source}");
        });
    }

    /// The shared list has items that it could take.
    #[test]
    fn a_drain_inside_a_drain_does_nothing() {
        let stack = Stack::new(4);
        (0..100).for_each(|item| stack.push(item).expect("room"));
        assert_eq!(stack.drain(|_| assert_eq!(stack.drain(drop), 0)), 100);
    }

    /// Returns the tops of all existing shards.
    fn tops(stack: &Stack<u64>) -> Vec<i64> {
        let State::Claimed(block, Some(source)) = stack.handle.state() else { return Vec::new() };
        (0..source.id_count()).map(|id| block.word_of_id(id).load(Relaxed)).collect()
    }

    /// Returns a stack for the observed steps of the test's own thread; it exists forever.
    fn watched(capacity: u32, source: Source) -> &'static Stack<u64> {
        Box::leak(Box::new(Stack::with_source(source, capacity).expect("an available source")))
    }

    /// Pushes these items, all of them to parts: occasionally no ID is available.
    fn push_to_parts(stack: &Stack<u64>, items: std::ops::Range<u64>) {
        loop {
            items.clone().for_each(|item| stack.push(item).expect("room"));
            if stack.chunks.items() == 0 {
                return;
            }
            stack.drain(drop);
        }
    }

    #[test]
    fn a_shard_is_a_member_before_it_is_active_and_until_it_is_not() {
        for source in Source::ALL.into_iter().filter(|source| source.prepare().is_ok()) {
            let stack = watched(8, source);
            let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
            let note = std::rc::Rc::clone(&seen);
            let _watching = steps::watch(move |step| {
                if let Step::Insert(id) | Step::Remove(id) = step {
                    let top = tops(stack)[id as usize];
                    note.borrow_mut().push((matches!(step, Step::Insert(_)), top));
                }
                None
            });
            // The thread stays on the same CPU except at the end of a time slice, which comes after
            // hundreds of attempts. If it were every second attempt, all would fail once in 2^100.
            let right = (0..100).any(|_| {
                seen.borrow_mut().clear();
                stack.push(5).expect("room");
                stack.drain(drop);
                // When the membership ends, the only item was taken out.
                *seen.borrow() == [(true, ACTIVATING), (false, 2 | SEIZED)]
            });
            assert!(right, "{source}: {seen:?}");
        }
    }

    #[test]
    fn a_drain_without_the_fence_leaves_everything_as_it_is() {
        for source in [Source::Table, Source::Kernel] {
            if source.prepare().is_err() {
                continue;
            }
            let stack = watched(64, source);
            push_to_parts(stack, 0..10);
            let watching = steps::watch(|step| match step {
                Step::Membarrier(_) => Some(Err(steps::REFUSED)),
                _ => None,
            });
            assert_eq!(stack.drain(drop), 0, "{source}");
            drop(watching);
            assert!(tops(stack).iter().all(|&top| top >= 0), "{source}: a mark is left");
            let mut drained = Vec::new();
            assert_eq!(stack.drain(|item| drained.push(item)), 10, "{source}");
            drained.sort_unstable();
            assert_eq!(drained, (0..10).collect::<Vec<_>>(), "{source}");
        }
    }

    /// In a child of `fork`, a shard that a thread of the parent owned may be in any state.
    #[test]
    fn what_another_thread_owned_at_a_fork_is_left_alone() {
        with_every_source(8, |stack, source| {
            push_to_parts(&stack, 7..8);
            let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
            let id = tops(&stack).iter().position(|&top| top == 2).expect("where it was pushed");
            let word = block.word_of_id(id as u32);
            word.store(2 | SEIZED, Relaxed);
            assert_eq!(stack.drain(drop), 0, "{source}");
            assert_eq!(word.load(Relaxed), 2 | SEIZED, "{source}");
        });
        static DROPPED: AtomicUsize = AtomicUsize::new(0);
        struct Item;
        impl Drop for Item {
            fn drop(&mut self) {
                DROPPED.fetch_add(1, Relaxed);
            }
        }
        for source in Source::ALL.into_iter().filter(|source| source.prepare().is_ok()) {
            let stack = Stack::with_source(source, 8).expect("an available source");
            (0..5).for_each(|_| assert!(stack.push(Item).is_ok()));
            let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
            (0..source.id_count()).for_each(|id| {
                block.word_of_id(id).fetch_or(SEIZED, Relaxed);
            });
            let in_parts = 5 - stack.chunks.items();
            DROPPED.store(0, Relaxed);
            drop(stack);
            assert_eq!(DROPPED.load(Relaxed), 5 - in_parts, "{source}");
        }
    }

    #[test]
    fn a_full_part_takes_no_more_and_nothing_is_lost_on_the_way_to_it() {
        with_every_source(4, |stack, source| {
            push_to_parts(&stack, 0..2);
            (0..100).for_each(|item| stack.push(item).expect("room"));
            assert!(tops(&stack).iter().all(|&top| top <= stack.full()), "{source}");
            let State::Claimed(block, Some(_)) = stack.handle.state() else { panic!("{source}") };
            let mut chunk = stack.chunks.fresh().expect("memory");
            (0..20).for_each(|item| chunk.push(into_word(item)));
            // Finally there is no room, and the rest stays in the chunk.
            let before = stack.chunks.items();
            let stowed: usize = (0..10)
                .map(|_| {
                    let items = chunk.len();
                    stack.stow(block, source, &mut chunk);
                    items - chunk.len()
                })
                .sum();
            assert_eq!(chunk.len() + stowed, 20, "{source}");
            stack.chunks.put(chunk);
            assert!(stack.chunks.items() >= before, "{source}");
            assert_eq!(stack.drain(drop), 122, "{source}");
        });
    }

    #[test]
    #[cfg_attr(not(unix), ignore = "errno is kept on Unix")]
    fn errno_is_left_alone() {
        use crate::sys::{errno, set_errno};

        while crate::id::selection::get().is_none() {}
        for push in [true, false] {
            let stack = Stack::new(4);
            // Every step of the first use sets errno as if it failed.
            let _watching = steps::watch(move |_| {
                set_errno(84);
                None
            });
            set_errno(33);
            if push {
                stack.push(1u64).expect("room");
            } else {
                assert_eq!(stack.pop(), None);
            }
            assert_eq!(errno(), 33);
        }
    }

    #[test]
    fn nothing_is_lost_among_threads_and_drains() {
        const ITEMS: u64 = if cfg!(miri) { 100 } else { 50_000 };
        const DRAINS: usize = if cfg!(miri) { 10 } else { 200 };
        with_every_source(32, |stack, source| {
            let gone: usize = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut popped = 0;
                            for item in 0..ITEMS {
                                stack.push(item).expect("room");
                                popped += usize::from(item % 3 != 0 && stack.pop().is_some());
                            }
                            popped
                        })
                    })
                    .collect();
                let drained: usize = (0..DRAINS).map(|_| stack.drain(drop)).sum();
                let popped = workers.into_iter().map(|it| it.join().expect("no panic"));
                popped.sum::<usize>() + drained
            });
            assert_eq!(gone + stack.drain(drop), 4 * ITEMS as usize, "{source}");
        });
    }
}
