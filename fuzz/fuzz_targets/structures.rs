//! Counters, masks and locals against numbers and sets.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid::{ActiveMask, Counter, Local};
use percid_fuzz::one_cpu::{self, Thief};

#[derive(Arbitrary, Debug)]
struct Input {
    source: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Add(i64),
    TakeCount,
    Mark(u16),
    DrainMask,
    /// A drain that ends after some members.
    DrainSome(u8),
    Put(u8),
    Visit,
    DrainLocal,
    /// Steals this CPU's ID: later operations use another one's memory.
    Steal,
    PutBack,
    Compact,
}

fuzz_target!(init: { one_cpu::stay(); }, |input: Input| {
    let (source, can_be_stolen) = one_cpu::source(input.source);
    let counter = Counter::with_source(source).expect("it works");
    let local = <Local<Vec<u8>>>::with_source(source, Vec::new).expect("it works");
    let mask = ActiveMask::new();
    let (mut sum, mut members, mut put) = (0i64, BTreeSet::new(), Vec::new());
    let mut thief = Thief::default();
    for step in input.steps {
        match step {
            Step::Add(n) => {
                counter.add(n);
                sum = sum.wrapping_add(n);
            }
            Step::TakeCount => assert_eq!(counter.take(), std::mem::take(&mut sum)),
            Step::Mark(id) => {
                let id = u32::from(id) % 8192;
                mask.mark(id);
                members.insert(id);
            }
            Step::DrainMask => {
                let mut visited = Vec::new();
                assert_eq!(mask.drain(|id| visited.push(id)), members.len());
                assert!(visited.into_iter().eq(std::mem::take(&mut members)));
            }
            Step::DrainSome(most) => {
                let mut draining = mask.drain_iter();
                for _ in 0..most {
                    let Some(id) = draining.next() else { break };
                    assert!(members.remove(&id), "{id} was no member");
                }
            }
            Step::Put(byte) => {
                local.with(|bytes| bytes.push(byte));
                put.push(byte);
            }
            Step::Visit => {
                let mut all = Vec::new();
                local.for_each(|bytes| all.extend_from_slice(bytes));
                assert_same(all, &put);
            }
            Step::DrainLocal => {
                let mut all = Vec::new();
                local.drain(|bytes| all.extend(bytes));
                assert_same(all, &std::mem::take(&mut put));
            }
            Step::Steal => _ = can_be_stolen && thief.steal(),
            Step::PutBack => thief.put_back(),
            Step::Compact => _ = percid::compact_ids(),
        }
        assert_eq!(counter.sum(), sum);
        let per_id = counter.per_id().fold(counter.shared(), i64::wrapping_add);
        assert_eq!(per_id, sum);
        let probe = members.last().copied().unwrap_or(0);
        assert_eq!(mask.is_marked(probe), members.contains(&probe));
    }
});

/// Compares sorted: the items come from any IDs, so in any order.
fn assert_same(mut found: Vec<u8>, put: &[u8]) {
    let mut put = put.to_vec();
    found.sort_unstable();
    put.sort_unstable();
    assert_eq!(found, put);
}
