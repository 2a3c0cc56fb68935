//! Stacks: no item is lost or returned twice, with drains all the time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::id::SourceError;
use percid::{Source, Stack};

use super::items::Items;
use super::verdict;
use crate::chaos::Subject;
use crate::random::Random;
use crate::verdict::Verdict;

const ITEMS: usize = 4096;

/// Small, so that parts are full and empty all the time.
const CAPACITY: u32 = 24;

/// The most items a worker has at a time.
const HANDFUL: usize = 40;

struct Stacks {
    stack: Stack<u64>,
    items: Items,
    drained: AtomicU64,
}

pub(super) fn make(source: Source) -> Result<Box<dyn Subject>, SourceError> {
    let subject = Stacks {
        stack: Stack::with_source(source, CAPACITY)?,
        items: Items::new(ITEMS),
        drained: AtomicU64::new(0),
    };
    (0..ITEMS as u64).for_each(|item| subject.push(item));
    Ok(Box::new(subject))
}

impl Stacks {
    fn push(&self, item: u64) {
        self.items.put(item);
        self.stack.push(item).expect("the stack has no bound");
    }

    fn pop(&self) -> Option<u64> {
        self.stack.pop().inspect(|&item| self.items.took(item))
    }
}

impl Subject for Stacks {
    fn work(&self, random: &mut Random) {
        for _ in 0..20 {
            let wanted = random.below(HANDFUL);
            let hand: Vec<u64> = (0..wanted).map_while(|_| self.pop()).collect();
            hand.into_iter().for_each(|item| self.push(item));
        }
    }

    fn handle(&self) {
        if let Some(item) = self.pop() {
            self.push(item);
        }
    }

    fn visit(&self) {
        let mut hand = Vec::new();
        self.stack.drain(|item| {
            self.items.took(item);
            hand.push(item);
        });
        self.drained.fetch_add(hand.len() as u64, Relaxed);
        hand.into_iter().for_each(|item| self.push(item));
    }

    fn account(&self) -> Verdict {
        let left = self.stack.drain(|item| self.items.took(item));
        let (right, figures) = self.items.account();
        let drained = self.drained.load(Relaxed);
        verdict(
            right && left == ITEMS && drained > 0,
            format!("{figures} left={left} drained={drained}"),
        )
    }
}
