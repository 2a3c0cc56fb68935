//! The rows: the structures' data for the tests of the table.

use std::alloc::Layout;
use std::ptr;

use super::{Cell, Contract, Fences, Visit};
use crate::id::{Source, SourceError};
use crate::per_id::{Field, Word};
use crate::pool::RawPool;
use crate::{
    ActiveMask, Buckets, Counter, FloatCounter, Histogram, Local, Overflow, PerId, Pool, Ring,
    Stack,
};

const NUMBERS: &str = "numbers lead to no memory";
const READS_ONLY: &str = "it has no visitor: readings are copies";

/// Calls a function with the type of every row, by its index.
macro_rules! rows {
    ($($name:literal: $row:ty),* $(,)?) => {
        pub(super) const NAMES: &[&str] = &[$($name),*];
        /// Calls `$f::<Row>()` for the row of this index.
        macro_rules! of_row {
            ($index:expr, $f:ident) => {{
                let runs: &[fn()] = &[$($f::<$row>),*];
                runs[$index]()
            }};
        }
        pub(super) use of_row;
    };
}

rows! {
    "Counter": crate::Counter,
    "FloatCounter": crate::FloatCounter,
    "Buckets": crate::Buckets,
    "Histogram": crate::contract::rows::Coarse,
    "Local": crate::contract::rows::Values,
    "PerId": crate::contract::rows::Words,
    "Stack": crate::contract::rows::Numbers,
    "Pool": crate::contract::rows::Boxes,
    "RawPool": crate::pool::RawPool,
    "Ring": crate::Ring,
    "ActiveMask": crate::ActiveMask,
}

pub(super) type Coarse = Histogram<2, 16>;
pub(super) type Values = Local<u64>;
pub(super) type Words = PerId<Word>;
pub(super) type Numbers = Stack<u64>;
pub(super) type Boxes = Pool<u64>;

/// So small that a life leaves something in the shared list.
const CAPACITY: u32 = 4;

/// A batch of such a shard is two items.
const BATCHES: u64 = 505;

impl Contract for Counter {
    const HANDS_OVER: Cell<()> = Err(NUMBERS);
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Err(READS_ONLY);
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Counter::with_source(source)
    }

    fn fresh() -> Self {
        Counter::new()
    }

    fn put(&self) -> bool {
        self.add(1);
        true
    }

    fn count(&self) -> u64 {
        assert_eq!(self.per_id().sum::<i64>() + self.shared(), self.sum());
        self.take() as u64
    }

    fn told(&self) -> Cell<u64> {
        Err("it counts without memory too")
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        (0..3).for_each(|n| self.add(n));
        self.swap(7);
        self.take();
    }
}

impl Contract for FloatCounter {
    const HANDS_OVER: Cell<()> = Err(NUMBERS);
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Err(READS_ONLY);
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        FloatCounter::with_source(source)
    }

    fn fresh() -> Self {
        FloatCounter::new()
    }

    fn put(&self) -> bool {
        let before = self.unrecorded();
        self.add(1.0);
        self.unrecorded() == before
    }

    fn count(&self) -> u64 {
        self.take() as u64
    }

    fn told(&self) -> Cell<u64> {
        Ok(self.unrecorded())
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        self.add(0.5);
        self.take();
        self.add(-2.0);
    }
}

impl Contract for Buckets {
    const HANDS_OVER: Cell<()> = Ok(());
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Err(READS_ONLY);
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Buckets::with_source(source, 5)
    }

    fn fresh() -> Self {
        Buckets::new(5)
    }

    fn put(&self) -> bool {
        let before = self.unrecorded();
        self.record(3, 2.0);
        self.unrecorded() == before
    }

    fn count(&self) -> u64 {
        let mut counts = [0; 5];
        let sum = self.read(&mut counts);
        assert_eq!((counts[0], counts[3]), (0, (sum / 2.0) as u64));
        counts[3]
    }

    fn told(&self) -> Cell<u64> {
        Ok(self.unrecorded())
    }

    fn kept_by_count(counted: u64) -> u64 {
        counted
    }

    fn live(&self) {
        (0..7).for_each(|bucket| self.record(bucket, 0.5));
        self.record_many(2, 3, 9.0);
        self.record_all(&[2, 0, 1], 1.5);
        self.take(&mut [0; 5]);
    }
}

impl Contract for Coarse {
    const HANDS_OVER: Cell<()> = Err(NUMBERS);
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Err(READS_ONLY);
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Coarse::sized_with_source(source)
    }

    fn fresh() -> Self {
        Coarse::sized()
    }

    fn put(&self) -> bool {
        let before = self.unrecorded();
        self.record(1000);
        self.unrecorded() == before
    }

    fn count(&self) -> u64 {
        self.take().count()
    }

    fn told(&self) -> Cell<u64> {
        Ok(self.unrecorded())
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        (0..16).for_each(|shift| self.record(1 << shift));
    }
}

impl Contract for Values {
    const HANDS_OVER: Cell<()> =
        Err("its lock is a Rust program's own, which is compiled for the detector");
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> =
        Ok((|local, visit| local.drain(|_| visit()), Fences::PerWord, false));
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Local::with_source(source, || 0)
    }

    fn fresh() -> Self {
        Local::new(|| 0)
    }

    fn put(&self) -> bool {
        self.try_with(|value| *value += 1).is_some()
    }

    fn count(&self) -> u64 {
        let mut sum = 0;
        self.for_each(|value| sum += *value);
        sum
    }

    fn told(&self) -> Cell<u64> {
        Err("it tells each caller")
    }

    fn kept_by_count(counted: u64) -> u64 {
        counted
    }

    fn live(&self) {
        // The inner calls have extra values.
        self.with(|_| self.with(|_| self.with(|value| *value += 1)));
    }
}

impl Contract for Words {
    const HANDS_OVER: Cell<()> = Ok(());
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Ok((
        |words, visit| {
            words.visit().for_each(|word| {
                assert_eq!(words.id_of(&word), word.id());
                word.store(0);
                visit();
            });
        },
        Fences::PerWord,
        false,
    ));
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        PerId::with_source(source, || Word::new(0))
    }

    fn fresh() -> Self {
        PerId::new(|| Word::new(0))
    }

    fn put(&self) -> bool {
        self.add(Field::whole(), 1).is_ok()
    }

    fn count(&self) -> u64 {
        let read = self.iter().map(|(id, word)| {
            assert_eq!(self.id_of(word), id);
            assert!(id.is_none_or(|id| self.get(id).is_some_and(|of_id| ptr::eq(of_id, word))));
            word.load()
        });
        let (read, visited) = (read.sum(), self.visit().map(|word| word.load()).sum::<i64>());
        assert!(visited <= read, "{visited} of {read}");
        visited as u64
    }

    fn told(&self) -> Cell<u64> {
        Err("it tells each caller")
    }

    fn kept_by_count(counted: u64) -> u64 {
        counted
    }

    fn live(&self) {
        self.put();
        // While all values are held, an operation makes an extra one.
        let held: Vec<_> = self.visit().collect();
        self.put();
        drop(held);
    }
}

impl Contract for Numbers {
    const HANDS_OVER: Cell<()> = Ok(());
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = BATCHES;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> =
        Ok((|stack, visit| _ = stack.drain(|_| visit()), Fences::PerWord, true));
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Stack::with_source(source, CAPACITY)
    }

    fn fresh() -> Self {
        Stack::new(CAPACITY)
    }

    fn put(&self) -> bool {
        self.push(7).is_ok()
    }

    fn count(&self) -> u64 {
        self.drain(|item| assert_eq!(item, 7)) as u64
    }

    fn told(&self) -> Cell<u64> {
        Err("it tells each caller")
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        (0..40).for_each(|item| self.push(item).expect("room"));
        (0..20).for_each(|_| _ = self.pop());
    }
}

impl Contract for Boxes {
    const HANDS_OVER: Cell<()> = Ok(());
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = BATCHES;
    const HANDLER: Cell<()> = Err("boxes come from the global allocator, as its contract says");
    const VISIT: Cell<(Visit<Self>, Fences, bool)> =
        Err("what a drain calls is the destructor, which has no way to the pool");
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Pool::with_source(source, || 0, CAPACITY)
    }

    fn fresh() -> Self {
        Pool::new(|| 0, CAPACITY)
    }

    /// A different object each time.
    fn put(&self) -> bool {
        self.idle.push(Box::new(0)).is_ok()
    }

    fn count(&self) -> u64 {
        self.drain() as u64
    }

    fn told(&self) -> Cell<u64> {
        Err("what is not kept is dropped, as its contract says")
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        let loans: Vec<_> = (0..40).map(|_| self.get()).collect();
        drop(loans);
        (0..20).for_each(|_| drop(self.get()));
    }
}

impl Contract for RawPool {
    const HANDS_OVER: Cell<()> = Ok(());
    // A slab's header and its address space: a late object is recognised there.
    const LEAVES: (u64, u64) = (128, 64 << 10);
    const TAKES_MEMORY: u64 = BATCHES + 2;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Err("its drain calls nothing");
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        RawPool::with_source(source, Layout::new::<u64>(), CAPACITY)
    }

    fn fresh() -> Self {
        RawPool::new(Layout::new::<u64>(), CAPACITY)
    }

    /// Puts a different object each time, as long as the one before does not belong to the thread.
    fn put(&self) -> bool {
        let Some(object) = self.get_new() else { return false };
        // SAFETY: the object came from this pool, and no thread uses it.
        unsafe { self.put(object) }.is_ok()
    }

    fn count(&self) -> u64 {
        self.drain() as u64
    }

    fn told(&self) -> Cell<u64> {
        Err("it tells each caller")
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        let objects: Vec<_> = (0..40).map(|_| self.get().expect("memory")).collect();
        for &object in &objects[1..] {
            // SAFETY: the object came from this pool, and no thread uses it.
            unsafe { self.put(object) }.expect("it was lent");
        }
        (0..20).for_each(|_| _ = self.get());
    }
}

impl Contract for Ring {
    const HANDS_OVER: Cell<()> = Ok(());
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> = Ok((
        |ring, visit| _ = ring.consumer().expect("no other consumer").poll(|_| visit()),
        Fences::None,
        true,
    ));
    const IDS: Cell<()> = Ok(());

    fn with(source: Source) -> Result<Self, SourceError> {
        Ring::with_source(source, 4096, Overflow::DropNewest)
    }

    fn fresh() -> Self {
        Ring::new(4096, Overflow::DropNewest)
    }

    fn put(&self) -> bool {
        self.append(b"record").is_ok()
    }

    fn count(&self) -> u64 {
        let mut consumer = self.consumer().expect("no other consumer");
        consumer.poll(|event| assert_eq!(event.bytes, b"record")) as u64
    }

    fn told(&self) -> Cell<u64> {
        Ok(self.lost())
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        (0..3).for_each(|_| _ = self.append(&[7; 2000]));
        self.consumer().expect("no other consumer").poll(|_| ());
        assert_eq!(self.append(&[7; 5000]), Err(crate::ring::AppendError::TooLong));
    }
}

impl Contract for ActiveMask {
    const HANDS_OVER: Cell<()> = Ok(());
    const LEAVES: (u64, u64) = (0, 0);
    const TAKES_MEMORY: u64 = 0;
    const HANDLER: Cell<()> = Ok(());
    const VISIT: Cell<(Visit<Self>, Fences, bool)> =
        Ok((|mask, visit| _ = mask.drain(|_| visit()), Fences::None, true));
    const IDS: Cell<()> = Err("its IDs are the caller's: its own tests mark all of them");

    fn with(_: Source) -> Result<Self, SourceError> {
        Ok(ActiveMask::new())
    }

    fn fresh() -> Self {
        ActiveMask::new()
    }

    /// Marks the next ID that is not marked: each put is a visit. The first one needs memory.
    fn put(&self) -> bool {
        let free = [600, 3, 64, 511, 512, 8191].into_iter().chain(4..60);
        let id = free.into_iter().find(|&id| !self.is_marked(id));
        id.inspect(|&id| self.mark(id)).is_some()
    }

    fn count(&self) -> u64 {
        self.drain(|_| ()) as u64
    }

    fn told(&self) -> Cell<u64> {
        Err("without memory a visit finds too many, and none too few")
    }

    fn kept_by_count(_: u64) -> u64 {
        0
    }

    fn live(&self) {
        [0, 63, 64, 511, 512, 8191].into_iter().for_each(|id| self.mark(id));
        self.drain(|_| ());
        self.mark(600);
    }
}
