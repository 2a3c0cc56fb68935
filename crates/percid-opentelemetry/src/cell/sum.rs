//! Counters and up-down counters.

use std::marker::PhantomData;

use super::record::{Cell, Record};
use crate::data::{Data, Number, Point};
use crate::meaning::{Balance, Counted, Meaning};

/// A sum of integers.
pub(crate) struct IntegerSum<M> {
    added: percid::Counter,
    meaning: PhantomData<M>,
}

impl<M> IntegerSum<M> {
    pub(crate) fn new() -> IntegerSum<M> {
        IntegerSum { added: percid::Counter::new(), meaning: PhantomData }
    }
}

impl Cell for IntegerSum<Counted> {
    type Value = Number;

    fn read(&self) -> Option<Number> {
        Some(Number::U64(self.added.sum() as u64))
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        Counted::data(points)
    }
}

impl Record<u64> for IntegerSum<Counted> {
    #[inline]
    fn record(&self, value: u64) {
        // Two's complement: the sum is right modulo 2^64.
        self.added.add(value as i64);
    }
}

impl Cell for IntegerSum<Balance> {
    type Value = Number;

    fn read(&self) -> Option<Number> {
        Some(Number::I64(self.added.sum()))
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        Balance::data(points)
    }
}

impl Record<i64> for IntegerSum<Balance> {
    #[inline]
    fn record(&self, value: i64) {
        self.added.add(value);
    }
}

/// A sum of floats.
pub(crate) struct FloatSum<M> {
    added: percid::FloatCounter,
    meaning: PhantomData<M>,
}

impl<M> FloatSum<M> {
    pub(crate) fn new() -> FloatSum<M> {
        FloatSum { added: percid::FloatCounter::new(), meaning: PhantomData }
    }
}

impl<M: Meaning> Cell for FloatSum<M> {
    type Value = Number;

    fn read(&self) -> Option<Number> {
        Some(Number::F64(self.added.sum()))
    }

    fn data(points: Vec<Point<Number>>) -> Data {
        M::data(points)
    }
}

impl<M: Meaning> Record<f64> for FloatSum<M> {
    #[inline]
    fn record(&self, value: f64) {
        // NaN and infinities would stay in the sum forever.
        if M::is_possible(value) {
            self.added.add(value);
        }
    }
}
