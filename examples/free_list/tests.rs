//! The test of the free list: each block is in one place.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use percid::Source;
use percid_check::{Check, Failure, Random, Structure};

use super::*;

/// A list with its accounts: each block is in one part, or kept. With `FAULT`, a block is taken in
/// two steps.
struct Accounted<const FAULT: bool> {
    list: FreeList,
    kept: Mutex<Option<Box<Block>>>,
    made: AtomicUsize,
    freed: AtomicUsize,
}

impl<const FAULT: bool> Accounted<FAULT> {
    fn take(&self) -> Box<Block> {
        let block = if FAULT { self.take_in_two_steps() } else { None };
        let mut block = block.unwrap_or_else(|| self.list.take());
        if block.bytes.is_empty() {
            block.bytes.push(1);
            self.made.fetch_add(1, Relaxed);
        }
        block
    }

    /// The fault: other threads may take both blocks between the steps, and give the first one back.
    fn take_in_two_steps(&self) -> Option<Box<Block>> {
        let first = self.list.parts.current()?.first.load();
        // SAFETY: no other thread runs between these lines in the part of the check that finds it.
        let next = unsafe { first.as_ref() }?.next.load();
        self.list.parts.store_if(FIRST, first, next).ok()?;
        // SAFETY: it was a box, and it is in no list any more.
        Some(unsafe { Box::from_raw(first) })
    }
}

impl<const FAULT: bool> Structure for Accounted<FAULT> {
    fn operate(&self, random: &mut Random) {
        let (first, mut second) = (self.take(), Some(self.take()));
        if random.below(2) == 0 {
            second = self.kept.lock().unwrap().replace(second.unwrap());
        }
        second.into_iter().for_each(|block| self.list.give_back(block));
        self.list.give_back(first);
    }

    fn visit(&self) {
        self.freed.fetch_add(self.list.drain(), Relaxed);
    }

    fn audit(&self) -> Result<(), String> {
        let kept = self.kept.lock().unwrap();
        let mut blocks: Vec<*const Block> =
            kept.as_deref().map(ptr::from_ref).into_iter().collect();
        for (_, part) in self.list.parts.iter() {
            let mut next = part.first.load().cast_const();
            // SAFETY: blocks of a list are valid, and no thread runs.
            while let Some(block) = unsafe { next.as_ref() } {
                if blocks.contains(&next) {
                    return Err("a block is in two places".to_owned());
                }
                blocks.push(next);
                next = block.next.load();
            }
        }
        let (made, freed) = (self.made.load(Relaxed), self.freed.load(Relaxed));
        let lost = made - freed - blocks.len();
        if lost == 0 { Ok(()) } else { Err(format!("{lost} blocks are lost")) }
    }
}

fn check<const FAULT: bool>() -> Check<Accounted<FAULT>> {
    Check::new(|source| {
        let part: fn() -> Part = || Part { first: Pointer::null(), taken: Word::new(0) };
        let list = FreeList { parts: PerId::with_source(source, part)? };
        let (made, freed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Accounted { list, kept: Mutex::new(None), made, freed })
    })
}

#[test]
fn every_block_is_in_one_place() -> Result<(), Failure> {
    println!("{}", check::<false>().run()?);
    Ok(())
}

#[test]
fn a_block_that_is_taken_in_two_steps_is_found_in_two_places() {
    for source in [Source::Kernel, Source::Table].into_iter().filter(|one| one.prepare().is_ok()) {
        let failure = check::<true>().sources(&[source]).run().unwrap_err();
        println!("{failure}");
        assert_eq!(failure.message(), "a block is in two places");
    }
}
