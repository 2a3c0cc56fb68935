//! Gauges.

use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::record::{Cell, Record};
use crate::data::{Data, Number, Point};
use crate::meaning::{Level, Meaning};
use crate::numeric::Numeric;

/// The value that was recorded last. All threads write one word: the last value is a property of
/// all threads. With a word for each CPU, a clock would be needed to find it.
pub(crate) struct LastValue<T> {
    bits: AtomicU64,
    has_value: AtomicBool,
    type_of_value: PhantomData<T>,
}

impl<T> LastValue<T> {
    pub(crate) fn new() -> LastValue<T> {
        let (bits, has_value) = (AtomicU64::new(0), AtomicBool::new(false));
        LastValue { bits, has_value, type_of_value: PhantomData }
    }
}

impl<T: Numeric> Cell for LastValue<T> {
    type Value = Number;

    fn read(&self) -> Option<Number> {
        let has_value = self.has_value.load(Acquire);
        has_value.then(|| T::from_bits(self.bits.load(Relaxed)).number())
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        Level::data(points)
    }
}

impl<T: Numeric> Record<T> for LastValue<T> {
    #[inline]
    fn record(&self, value: T) {
        self.bits.store(value.to_bits(), Relaxed);
        // #[gamma::skip(cond.always_true, reason = "it spares a store of the same")]
        if !self.has_value.load(Relaxed) {
            self.has_value.store(true, Release);
        }
    }
}
