//! The series of an instrument, by their attributes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use opentelemetry::KeyValue;

use crate::attribute_map::AttributeMap;
use crate::attributes;
use crate::cell::Cell;
use crate::data::Point;
use crate::found_before::FoundBefore;

/// The attribute of the series for all values without a series of their own.
const OVERFLOW: &str = "otel.metric.overflow";

/// A series: its cell and its start time.
pub(crate) struct Series<C> {
    start: SystemTime,
    pub(crate) cell: C,
}

pub(crate) struct SeriesMap<C> {
    new_cell: Box<dyn Fn() -> C + Send + Sync>,
    limit: usize,
    /// The series without attributes: found without a table, and not counted by the limit.
    plain: OnceLock<Arc<Series<C>>>,
    overflow: OnceLock<Arc<Series<C>>>,
    has_told: AtomicBool,
    tell_overflow: Box<dyn Fn() + Send + Sync>,
    others: RwLock<AttributeMap<Arc<Series<C>>>>,
    found: FoundBefore<Arc<Series<C>>>,
}

/// Returns the attributes of the overflow series.
pub(crate) fn overflow_attributes() -> Arc<[KeyValue]> {
    Arc::new([KeyValue::new(OVERFLOW, true)])
}

/// Returns `true` if a set in canonical form is that of the overflow series.
pub(crate) fn is_overflow(set: &[&KeyValue]) -> bool {
    let overflow = KeyValue::new(OVERFLOW, true);
    attributes::are_same(set.iter().copied(), [&overflow].into_iter())
}

impl<C: Cell> SeriesMap<C> {
    /// Creates a map of at most `limit` series, with cells by `new_cell`. When another series is
    /// requested, calls `tell_overflow`, once.
    pub(crate) fn new(
        new_cell: Box<dyn Fn() -> C + Send + Sync>,
        limit: usize,
        tell_overflow: Box<dyn Fn() + Send + Sync>,
    ) -> SeriesMap<C> {
        SeriesMap {
            new_cell,
            limit,
            plain: OnceLock::new(),
            overflow: OnceLock::new(),
            has_told: AtomicBool::new(false),
            tell_overflow,
            others: RwLock::new(AttributeMap::new()),
            // Each series in some orders of its attributes.
            // #[gamma::skip(literal, reason = "a cache of any size has the same results")]
            found: FoundBefore::new(limit.saturating_mul(2).saturating_add(64)),
        }
    }

    /// Calls `use_it` with the cell of these attributes.
    #[inline]
    pub(crate) fn with(&self, attributes: &[KeyValue], use_it: impl Fn(&C)) {
        if attributes.is_empty() {
            return use_it(&self.plain().cell);
        }
        if self.found.with(attributes, |series| use_it(&series.cell)).is_none() {
            self.with_slowly(attributes, &use_it);
        }
    }

    #[cold]
    fn with_slowly(&self, attributes: &[KeyValue], use_it: &dyn Fn(&C)) {
        match self.look_up(attributes) {
            Some(series) => {
                use_it(&series.cell);
                self.found.insert(attributes, series);
            }
            // Not cached: an unlimited number of attributes would displace those that have a
            // series.
            None => use_it(&self.overflow().cell),
        }
    }

    /// Returns the series of these attributes, for a caller that keeps it.
    pub(crate) fn get(&self, attributes: &[KeyValue]) -> Arc<Series<C>> {
        if attributes.is_empty() {
            return Arc::clone(self.plain());
        }
        self.look_up(attributes).unwrap_or_else(|| Arc::clone(self.overflow()))
    }

    #[inline]
    fn plain(&self) -> &Arc<Series<C>> {
        self.plain.get_or_init(|| self.new_series())
    }

    fn overflow(&self) -> &Arc<Series<C>> {
        self.overflow.get_or_init(|| self.new_series())
    }

    fn new_series(&self) -> Arc<Series<C>> {
        Arc::new(Series { start: SystemTime::now(), cell: (self.new_cell)() })
    }

    /// Returns the series of these attributes, or `None` for the overflow series.
    fn look_up(&self, attributes: &[KeyValue]) -> Option<Arc<Series<C>>> {
        let set = attributes::canonical(attributes);
        if is_overflow(&set) {
            return None;
        }
        let series = self.look_up_set(&set);
        if series.is_none() && !self.has_told.swap(true, Relaxed) {
            (self.tell_overflow)();
        }
        series
    }

    fn look_up_set(&self, set: &[&KeyValue]) -> Option<Arc<Series<C>>> {
        {
            let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(series) = others.get(set) {
                return Some(Arc::clone(series));
            }
            // It spares the write lock, under which the same is decided.
            // #[gamma::skip(cond.always_false, relational.ge_to_gt, reason = "a short cut")]
            if others.len() >= self.limit {
                return None;
            }
        }
        self.add(set)
    }

    /// Returns the series of a set that was looked up in vain: another thread may have added it
    /// since, or taken the last room.
    fn add(&self, set: &[&KeyValue]) -> Option<Arc<Series<C>>> {
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = others.get(set) {
            return Some(Arc::clone(series));
        }
        let has_room = others.len() < self.limit;
        has_room.then(|| {
            let series = self.new_series();
            let attributes = set.iter().map(|&attribute| attribute.clone()).collect();
            others.add(attributes, Arc::clone(&series));
            series
        })
    }

    /// Returns all series. Adding a series takes the lock; recording does not.
    pub(crate) fn read(&self, time: SystemTime) -> Vec<Point<C::Value>> {
        let point = |attributes: Arc<[KeyValue]>, series: &Series<C>| {
            // A series may begin after the collection began. It is included with the collection's
            // time.
            let start = series.start.min(time);
            series.cell.read().map(|value| Point { attributes, start, value })
        };
        let plain = self.plain.get().and_then(|series| point(Arc::new([]), series));
        let overflow = self.overflow.get().and_then(|series| point(overflow_attributes(), series));
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let points =
            others.iter().filter_map(|(attributes, series)| point(Arc::clone(attributes), series));
        plain.into_iter().chain(overflow).chain(points).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::cell::{IntegerSum, Record};
    use crate::data::Number;
    use crate::meaning::Counted;

    fn counters(limit: usize) -> (SeriesMap<IntegerSum<Counted>>, Arc<AtomicUsize>) {
        let told = Arc::new(AtomicUsize::new(0));
        let tells = Arc::clone(&told);
        let tell = Box::new(move || _ = tells.fetch_add(1, Relaxed));
        (SeriesMap::new(Box::new(IntegerSum::new), limit, tell), told)
    }

    fn total(map: &SeriesMap<IntegerSum<Counted>>) -> u64 {
        let value = |point: Point<Number>| match point.value {
            Number::U64(value) => value,
            other => panic!("{other:?}"),
        };
        map.read(SystemTime::now()).into_iter().map(value).sum()
    }

    #[test]
    fn threads_that_come_with_the_same_attributes_get_the_same_series() {
        let (map, _) = counters(300);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let map = &map;
                scope.spawn(move || {
                    for n in 0..20_000 {
                        let pair = [KeyValue::new("n", n % 300), KeyValue::new("x", "y")];
                        let [n, x] = pair;
                        let given = if thread % 2 == 0 { [n, x] } else { [x, n] };
                        map.with(&given, |cell| cell.record(1));
                    }
                });
            }
        });
        assert_eq!((map.read(SystemTime::now()).len(), total(&map)), (300, 160_000));
    }

    #[test]
    fn nothing_is_lost_beyond_the_limit_and_it_is_told_once() {
        let (map, told) = counters(3);
        for n in 0..100 {
            map.with(&[KeyValue::new("n", n)], |cell| cell.record(1));
        }
        assert_eq!((map.read(SystemTime::now()).len(), total(&map)), (4, 100));
        map.with(&[], |cell| cell.record(1));
        map.with(&overflow_attributes(), |cell| cell.record(1));
        assert_eq!((map.read(SystemTime::now()).len(), total(&map)), (5, 102));
        assert_eq!(told.load(Relaxed), 1);
    }

    /// Another thread was faster after both had looked up their sets in vain.
    #[test]
    fn threads_that_race_for_the_last_series_do_not_exceed_the_limit() {
        let (map, _) = counters(1);
        let [a, b] = ["a", "b"].map(|key| KeyValue::new(key, 1));
        let first = map.add(&[&a]).expect("room for one");
        assert!(map.add(&[&a]).is_some_and(|again| Arc::ptr_eq(&again, &first)));
        assert!(map.add(&[&b]).is_none());
    }

    #[test]
    fn what_is_kept_is_the_same_series() {
        let (map, told) = counters(1);
        map.with(&overflow_attributes(), |cell| cell.record(9));
        assert_eq!(map.overflow().cell.read(), Some(Number::U64(9)), "whatever the limit");
        assert!(Arc::ptr_eq(&map.get(&overflow_attributes()), map.overflow()));
        assert_eq!(told.load(Relaxed), 0);
        let kept = map.get(&[KeyValue::new("a", 1)]);
        kept.cell.record(5);
        map.with(&[KeyValue::new("a", 1)], |cell| cell.record(2));
        assert_eq!(kept.cell.read(), Some(Number::U64(7)));
        assert!(Arc::ptr_eq(&map.get(&[KeyValue::new("b", 1)]), map.overflow()));
    }
}
