//! Pools: no object is lent to two, and every object is dropped once, with drains all the time.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::pool::RawPool;
use percid::{Pool, Source};

use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

const CAPACITY: u32 = 8;

/// The most objects a worker has at a time.
const HANDFUL: usize = 20;

static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// An object that counts its users.
struct Object {
    users: AtomicU32,
}

impl Object {
    fn make() -> Object {
        MADE.fetch_add(1, Relaxed);
        Object { users: AtomicU32::new(0) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Relaxed);
    }
}

struct Pools {
    pool: Pool<Object>,
    /// Handlers use this one: it takes its memory from the kernel.
    raw: RawPool,
    lent: AtomicU64,
    doubled: AtomicU64,
    refused: AtomicU64,
    drained: AtomicU64,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    Ok(Box::new(Pools {
        pool: <Pool<_>>::with_source(source, Object::make, CAPACITY)?,
        raw: RawPool::with_source(source, Layout::new::<AtomicU32>(), CAPACITY)?,
        lent: AtomicU64::new(0),
        doubled: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        drained: AtomicU64::new(0),
    }))
}

impl Pools {
    fn enter(&self, users: &AtomicU32) {
        self.lent.fetch_add(1, Relaxed);
        self.doubled.fetch_add(u64::from(users.fetch_add(1, Relaxed) != 0), Relaxed);
    }

    fn get(&self) -> NonNull<AtomicU32> {
        let object = self.raw.get().expect("memory").cast::<AtomicU32>();
        // SAFETY: zeroed memory of this layout, or what `put` left there.
        self.enter(unsafe { object.as_ref() });
        object
    }

    fn put(&self, object: NonNull<AtomicU32>) {
        // SAFETY: the object came from this pool and is not used any more.
        let put = unsafe {
            object.as_ref().fetch_sub(1, Relaxed);
            self.raw.put(object.cast())
        };
        self.refused.fetch_add(u64::from(put.is_err()), Relaxed);
    }
}

impl Subject for Pools {
    fn work(&self, random: &mut Random) {
        for _ in 0..20 {
            let wanted = random.below(HANDFUL);
            let loans: Vec<_> = (0..wanted).map(|_| self.pool.get()).collect();
            loans.iter().for_each(|loan| self.enter(&loan.users));
            let objects: Vec<_> = (0..wanted).map(|_| self.get()).collect();
            loans.iter().for_each(|loan| _ = loan.users.fetch_sub(1, Relaxed));
            objects.into_iter().for_each(|object| self.put(object));
        }
    }

    fn handle(&self) {
        self.put(self.get());
    }

    fn visit(&self) {
        self.drained.fetch_add((self.pool.drain() + self.raw.drain()) as u64, Relaxed);
    }

    fn account(&self) -> Verdict {
        let drained = self.drained.load(Relaxed);
        self.visit();
        let left = self.raw.drain();
        let (made, dropped) = (MADE.load(Relaxed), DROPPED.load(Relaxed));
        let (doubled, refused) = (self.doubled.load(Relaxed), self.refused.load(Relaxed));
        let lost = made as i64 - dropped as i64;
        let figures = format!(
            "lent={} made={made} lost={lost} doubled={doubled} refused={refused} drained={drained} \
             left={left}",
            self.lent.load(Relaxed)
        );
        verdict(lost == 0 && doubled == 0 && refused == 0 && left == 0 && drained > 0, figures)
    }
}
