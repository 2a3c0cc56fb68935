//! The structures of percid: nothing is lost and nothing is counted twice.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::per_id::{Bytes, Field, Pointer, Unchanged, Word};
use percid::{
    Buckets, Counter, FloatCounter, Histogram, Local, Overflow, PerId, Pool, Ring, Source, Stack,
    field,
};
use percid_check::{Check, Failure, Random, Structure};

/// Checks a structure, and that each source with sections was interrupted in them.
fn check<S: Structure>(
    make: impl Fn(Source) -> Result<S, SourceError> + 'static,
) -> Result<(), Failure> {
    let report = Check::new(make).rounds(10).run()?;
    println!("{report}");
    let sources = report.sources.iter().map(|of_source| of_source.source);
    let sources: Vec<Source> = sources.chain(report.unavailable.iter().map(|one| one.0)).collect();
    assert_eq!(sources.len(), Source::ALL.len(), "{report}");
    for of_source in &report.sources {
        let work = of_source.work;
        assert!(work.operations > 0 && work.visits > 0, "{report}");
        assert_eq!(work.instructions > 0, of_source.no_instructions.is_none(), "{report}");
        assert!(work.aborts >= work.interruptions, "{report}");
        if of_source.source == Source::Table {
            assert!(work.steals > 0 && work.evictions > 0 && work.forks > 0, "{report}");
        }
    }
    Ok(())
}

/// The accounts of numbers that operations put in, and that visits took out.
#[derive(Default)]
struct Sums {
    added: AtomicI64,
    taken: AtomicI64,
}

impl Sums {
    fn add(&self, n: u64) {
        self.added.fetch_add(n as i64, Relaxed);
    }

    fn take(&self, n: u64) {
        self.taken.fetch_add(n as i64, Relaxed);
    }

    /// Compares with what is left in the structure.
    fn compare(&self, left: u64) -> Result<(), String> {
        let (added, taken) = (self.added.load(Relaxed), self.taken.load(Relaxed));
        if added == taken + left as i64 {
            return Ok(());
        }
        Err(format!("added {added}, taken {taken}, left {left}"))
    }
}

/// A counter, and its additions, takes and sums.
struct Counted<C> {
    counter: C,
    add: fn(&C, u64),
    take: fn(&C) -> u64,
    sum: fn(&C) -> u64,
    sums: Sums,
}

impl<C: Sync> Structure for Counted<C> {
    fn operate(&self, random: &mut Random) {
        let n = random.below(10);
        (self.add)(&self.counter, n);
        self.sums.add(n);
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        self.sums.take((self.take)(&self.counter));
    }

    fn audit(&self) -> Result<(), String> {
        self.sums.compare((self.sum)(&self.counter))
    }
}

#[test]
fn counter_loses_nothing() -> Result<(), Failure> {
    check(|source| {
        Ok(Counted {
            counter: Counter::with_source(source)?,
            add: |counter, n| counter.add(n as i64),
            take: |counter| counter.take() as u64,
            sum: |counter| counter.sum() as u64,
            sums: Sums::default(),
        })
    })
}

#[test]
fn float_counter_loses_nothing() -> Result<(), Failure> {
    check(|source| {
        Ok(Counted {
            counter: FloatCounter::with_source(source)?,
            add: |counter, n| counter.add(n as f64),
            take: |counter| counter.take() as u64,
            sum: |counter| counter.sum() as u64,
            sums: Sums::default(),
        })
    })
}

const BUCKETS: usize = 4;

struct Tallies(Buckets, [Sums; BUCKETS]);

impl Tallies {
    fn compare(&self) -> Result<(), String> {
        let mut counts = [0; BUCKETS];
        let sum = self.0.read(&mut counts);
        let weighted = (0..).zip(counts).map(|(bucket, count)| bucket * count).sum::<u64>() as f64;
        self.1.iter().zip(counts).try_for_each(|(sums, count)| sums.compare(count))?;
        if sum == weighted { Ok(()) } else { Err(format!("sum {sum}, not {weighted}")) }
    }
}

impl Structure for Tallies {
    fn operate(&self, random: &mut Random) {
        let bucket = random.below(BUCKETS as u64);
        self.0.record(bucket as usize, bucket as f64);
        self.1[bucket as usize].add(1);
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        let mut counts = [0; BUCKETS];
        let sum = self.0.read(&mut counts);
        // Each count is in a reading with its value.
        let weighted = (0..).zip(counts).map(|(bucket, count)| bucket * count).sum::<u64>();
        assert_eq!(sum, weighted as f64);
    }

    fn audit(&self) -> Result<(), String> {
        self.compare()
    }
}

#[test]
fn buckets_lose_nothing() -> Result<(), Failure> {
    check(|source| Ok(Tallies(Buckets::with_source(source, BUCKETS)?, Default::default())))
}

struct Recorded(Histogram, Sums);

impl Structure for Recorded {
    fn operate(&self, random: &mut Random) {
        self.0.record(random.below(1000));
        self.1.add(1);
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        self.1.take(self.0.take().count());
    }

    fn audit(&self) -> Result<(), String> {
        self.1.compare(self.0.snapshot().count())
    }
}

#[test]
fn histogram_loses_nothing() -> Result<(), Failure> {
    check(|source| Ok(Recorded(Histogram::with_source(source)?, Sums::default())))
}

struct Items(Stack<u64>, Sums);

impl Structure for Items {
    fn operate(&self, random: &mut Random) {
        for _ in 0..random.below(4) {
            let item = 1 + random.below(1000);
            self.0.push(item).expect("memory");
            self.1.add(item);
        }
        for _ in 0..random.below(4) {
            self.1.take(self.0.pop().unwrap_or(0));
        }
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        self.0.drain(|item| self.1.take(item));
    }

    fn audit(&self) -> Result<(), String> {
        self.visit();
        self.1.compare(0)
    }
}

#[test]
fn stack_loses_nothing() -> Result<(), Failure> {
    check(|source| Ok(Items(Stack::with_source(source, 4)?, Sums::default())))
}

struct Records(Ring, Sums);

impl Structure for Records {
    fn operate(&self, random: &mut Random) {
        let length = random.below(41);
        // A record that does not fit is counted as lost.
        let _ = self.0.append(&[length as u8; 41][..length as usize]);
        self.1.add(1);
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        let Some(mut consumer) = self.0.consumer() else { return };
        let delivered = consumer.poll(|event| {
            let length = event.bytes.len();
            assert!(event.bytes.iter().all(|&byte| usize::from(byte) == length), "a torn record");
        });
        self.1.take(delivered as u64);
    }

    fn audit(&self) -> Result<(), String> {
        self.visit();
        self.1.compare(self.0.lost())
    }
}

fn records(source: Source, overflow: Overflow) -> Result<Records, SourceError> {
    Ok(Records(Ring::with_source(source, 512, overflow)?, Sums::default()))
}

#[test]
fn ring_loses_nothing_uncounted() -> Result<(), Failure> {
    check(|source| records(source, Overflow::DropNewest))
}

#[test]
fn overwriting_ring_loses_nothing_uncounted() -> Result<(), Failure> {
    check(|source| records(source, Overflow::OverwriteOldest))
}

struct Values(Local<u64>, Sums);

impl Structure for Values {
    fn operate(&self, random: &mut Random) {
        let n = random.below(10);
        self.0.with(|value| *value += n);
        self.1.add(n);
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        self.0.drain(|value| self.1.take(value));
    }

    fn audit(&self) -> Result<(), String> {
        let mut left = 0;
        self.0.for_each(|value| left += *value);
        self.1.compare(left)
    }
}

#[test]
fn local_loses_nothing() -> Result<(), Failure> {
    check(|source| {
        let local = Local::with_source(source, u64::default as fn() -> u64)?;
        Ok(Values(local, Sums::default()))
    })
}

/// An object of a pool, which is lent to one thread at a time.
struct Lent {
    is_lent: AtomicBool,
    live: Arc<Sums>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.live.take(1);
    }
}

type Make = Box<dyn Fn() -> Lent + Send + Sync>;

struct Lending(Pool<Lent, Make>, Arc<Sums>);

impl Structure for Lending {
    fn operate(&self, random: &mut Random) {
        let lent: Vec<_> = (0..random.below(4)).map(|_| self.0.get()).collect();
        for object in &lent {
            assert!(!object.is_lent.swap(true, Relaxed), "an object is lent twice");
        }
        for object in lent {
            object.is_lent.store(false, Relaxed);
        }
    }

    fn visit(&self) {
        self.0.drain();
    }

    fn audit(&self) -> Result<(), String> {
        self.0.drain();
        self.1.compare(0)
    }
}

#[test]
fn pool_lends_each_object_once() -> Result<(), Failure> {
    check(|source| {
        let live = Arc::new(Sums::default());
        let all = Arc::clone(&live);
        let make: Make = Box::new(move || {
            all.add(1);
            Lent { is_lent: AtomicBool::new(false), live: Arc::clone(&all) }
        });
        Ok(Lending(Pool::with_source(source, make, 2)?, live))
    })
}

/// The value of an ID that all operations on words use.
struct Part {
    sum: Word,
    length: Word,
    copies: Word,
    text: Bytes<64>,
}

impl Part {
    fn new() -> Part {
        let word = || Word::new(0);
        Part { sum: word(), length: word(), copies: word(), text: Bytes::new() }
    }
}

struct Words(PerId<Part>, Sums);

impl Words {
    /// Appends a text to the log of this CPU if that has room, and counts its bytes.
    fn log(&self, text: &[u8]) {
        let (length, log) = (field!(Part, length), field!(Part, text));
        for _ in 0..100 {
            let at = self.0.current().map_or(0, |part| part.length.load());
            let new = at + text.len() as i64;
            let to = (log, at as usize);
            match self.0.copy_then_store_if(length, at, new, to, text) {
                Ok(_) => return self.1.add(text.len() as u64),
                Err(Unchanged::TooLong) => return,
                Err(_) => (),
            }
        }
    }
}

impl Structure for Words {
    fn operate(&self, random: &mut Random) {
        let n = random.below(10) as i64;
        match random.below(4) {
            0 => self.log(&[7; 9][..n as usize]),
            1 => {
                let (seen, _) = self.0.swap(field!(Part, sum), n).expect("memory");
                self.1.add(n as u64);
                self.1.take(seen as u64);
            }
            2 => {
                let seen = self.0.current().map_or(0, |part| part.sum.load());
                let first = (field!(Part, copies), n);
                let stored = self.0.store_both_if(field!(Part, sum), seen, seen + n, first);
                self.1.add(if stored.is_ok() { n as u64 } else { 0 });
            }
            _ => {
                self.0.add(field!(Part, sum), n).expect("memory");
                self.1.add(n as u64);
            }
        }
    }

    fn interrupt(&self, random: &mut Random) {
        self.operate(random);
    }

    fn visit(&self) {
        for part in self.0.visit() {
            let mut log = [0; 64];
            let log = &mut log[..part.length.load() as usize];
            assert!(part.text.read(0, log) && log.iter().all(|&byte| byte == 7), "a torn text");
            self.1.take((part.sum.load() + part.length.load()) as u64);
            part.sum.store(0);
            part.length.store(0);
        }
    }

    fn audit(&self) -> Result<(), String> {
        let of_part = |part: &Part| (part.sum.load() + part.length.load()) as u64;
        self.1.compare(self.0.iter().map(|(_, part)| of_part(part)).sum())
    }
}

#[test]
fn words_lose_nothing() -> Result<(), Failure> {
    check(|source| {
        Ok(Words(PerId::with_source(source, Part::new as fn() -> Part)?, Sums::default()))
    })
}

struct Node {
    next: Pointer<Node>,
    number: u64,
}

struct Lists(PerId<Pointer<Node>>, Sums);

impl Structure for Lists {
    fn operate(&self, random: &mut Random) {
        let (head, next) = (Field::whole(), field!(Node, next));
        for _ in 0..random.below(4) {
            let number = 1 + random.below(1000);
            let node = Box::new(Node { next: Pointer::null(), number });
            let node = NonNull::from(Box::leak(node));
            // SAFETY: the node is valid, and in no list until it was popped or taken.
            unsafe { self.0.push(head, node, next) }.expect("memory");
            self.1.add(number);
        }
        for _ in 0..random.below(4) {
            // SAFETY: all nodes were pushed above, with this field.
            if let Some(node) = unsafe { self.0.pop(head, next) }.expect("memory") {
                // SAFETY: the node was a box, and it is in no list any more.
                self.1.take(unsafe { Box::from_raw(node.as_ptr()) }.number);
            }
        }
    }

    fn visit(&self) {
        for list in self.0.visit() {
            let mut first = list.load();
            list.store(ptr::null_mut());
            while let Some(node) = NonNull::new(first) {
                // SAFETY: the node was a box, and its list is this thread's.
                let node = unsafe { Box::from_raw(node.as_ptr()) };
                self.1.take(node.number);
                first = node.next.load();
            }
        }
    }

    fn audit(&self) -> Result<(), String> {
        self.visit();
        self.1.compare(0)
    }
}

#[test]
fn lists_lose_nothing() -> Result<(), Failure> {
    check(|source| {
        let make = Pointer::null as fn() -> Pointer<Node>;
        Ok(Lists(PerId::with_source(source, make)?, Sums::default()))
    })
}
