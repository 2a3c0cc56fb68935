//! Histograms against a list of what was recorded.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid::Histogram;
use percid::histogram::Snapshot;
use percid_fuzz::one_cpu::{self, Thief};

#[derive(Arbitrary, Debug)]
struct Input {
    source: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Record(Value),
    RecordMany(Value, u32),
    Quantile(u8, u8),
    Take,
    Merge,
    /// Steals this CPU's ID: the next record goes to another one's memory.
    Steal,
    PutBack,
}

/// A value near a power of two, at which buckets begin and end.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Value {
    power: u8,
    parts: u8,
    off: i8,
}

impl Value {
    fn number(self) -> u64 {
        let power = 1u64 << (self.power % 64);
        power
            .wrapping_add(power / 64 * u64::from(self.parts % 64))
            .wrapping_add_signed(self.off.into())
    }
}

/// Each value and how often it was recorded.
type Recorded = BTreeMap<u64, u64>;

fuzz_target!(init: { one_cpu::stay(); }, |input: Input| {
    let (source, can_be_stolen) = one_cpu::source(input.source);
    let histogram = Histogram::with_source(source).expect("it works");
    let (mut recorded, mut merged) = (Recorded::new(), (Recorded::new(), Snapshot::new()));
    let mut thief = Thief::default();
    for step in input.steps {
        match step {
            Step::Record(value) => {
                histogram.record(value.number());
                *recorded.entry(value.number()).or_insert(0) += 1;
            }
            Step::RecordMany(value, times) => {
                histogram.record_many(value.number(), times.into());
                *recorded.entry(value.number()).or_insert(0) += u64::from(times);
            }
            Step::Quantile(part, whole) => {
                check_quantile(&histogram.snapshot(), &recorded, part.min(whole), whole);
            }
            Step::Take => {
                check(&histogram.take(), &recorded);
                recorded.clear();
            }
            Step::Merge => {
                merged.1.merge(&histogram.snapshot());
                recorded.iter().for_each(|(&value, times)| *merged.0.entry(value).or_insert(0) += times);
            }
            Step::Steal => _ = can_be_stolen && thief.steal(),
            Step::PutBack => thief.put_back(),
        }
    }
    check(&histogram.snapshot(), &recorded);
    check(&merged.1, &merged.0);
    assert_eq!(histogram.unrecorded(), 0);
});

/// Returns the bucket of a value, as documented: below 128 one for each value, above that 64
/// between two powers of two.
fn bucket(value: u64) -> (u64, u64) {
    if value < 128 {
        return (value, value);
    }
    let power = (0..64).map(|bit| 1u64 << bit).rfind(|power| *power <= value).expect("it is not 0");
    let width = power / 64;
    let low = power + (value - power) / width * width;
    (low, low + (width - 1))
}

fn middle((low, high): (u64, u64)) -> u64 {
    low + (high - low) / 2
}

fn check(snapshot: &Snapshot, recorded: &Recorded) {
    let mut expected: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (&value, &times) in recorded {
        *expected.entry(bucket(value)).or_insert(0) += times;
        let error = middle(bucket(value)).abs_diff(value) as f64;
        assert!(error <= Histogram::RELATIVE_ERROR * value as f64, "{value}");
    }
    expected.retain(|_, times| *times > 0);
    let found: Vec<_> = snapshot.buckets().map(|it| ((it.low, it.high), it.count)).collect();
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    let count: u64 = recorded.values().sum();
    assert_eq!(snapshot.count(), count);
    let mut values = recorded.iter().filter(|(_, times)| **times > 0).map(|(&value, _)| value);
    let ends = (values.next(), values.next_back());
    let ends = (ends.0, ends.1.or(ends.0));
    let middle = |end: Option<u64>| end.map(|value| middle(bucket(value)));
    assert_eq!((snapshot.min(), snapshot.max()), (middle(ends.0), middle(ends.1)));
    assert_eq!(snapshot.mean().is_some(), count > 0);
}

/// Checks the quantile: the middle of the bucket of the value of rank `ceil(q * count)`.
fn check_quantile(snapshot: &Snapshot, recorded: &Recorded, part: u8, whole: u8) {
    let (part, whole) = (u64::from(part), u64::from(whole.max(1)));
    let count: u64 = recorded.values().sum();
    let rank = (part * count).div_ceil(whole).max(1);
    let mut below = 0;
    let found = recorded.iter().find(|(_, times)| {
        below += **times;
        below >= rank
    });
    let expected = found.map(|(&value, _)| middle(bucket(value)));
    assert_eq!(
        snapshot.quantile(part as f64 / whole as f64),
        expected,
        "{part}/{whole} of {count}"
    );
}
