//! Data that other programs, and other machines on the same host, bring into the caches of this
//! machine.

use std::hint;
use std::time::{Duration, Instant};

use percid_sim::caches::BroughtIn;
use percid_sim::cost::{Found, Idle, Prices};
use percid_sim::machine::Machine;
use percid_sim::workload::Memory;

use crate::burst::{AREA, burst};

/// Time for which this thread only reads the clock before each burst.
const PAUSE: Duration = Duration::from_millis(1);
/// Bound of an undisturbed pause. A longer one was interrupted: something else ran on this CPU.
const UNDISTURBED: Duration = Duration::from_micros(1050);
/// Number of measured bursts; the median of the undisturbed ones counts.
const ROUNDS: usize = 101;
/// Time limit. If others use the CPUs, each pause takes longer: fewer bursts must suffice after
/// three times the time of all of them.
const LIMIT: Duration = Duration::from_millis(300);
/// Upper bound, in bytes per pause: larger amounts cannot be distinguished, because everything is
/// displaced.
const MAX_BYTES: u64 = 1 << 28;

/// Returns the rate of displacing data in MB per second. It is the rate with which the machine's
/// cost model explains the cost of bursts after pauses in which this CPU was busy without accessing
/// memory. The measurement takes a tenth of a second.
pub(crate) fn mb_s(machine: &Machine) -> f64 {
    brought_in(machine, burst_ns()) as f64 / PAUSE.as_secs_f64() / 1e6
}

/// Returns the bytes with which a burst has this cost, by the machine's cost model.
fn brought_in(machine: &Machine, ns: f64) -> u64 {
    let prices = Prices::new(machine, Memory::PreFaulted);
    let cost = |bytes| {
        let found = Found::new(&machine.topology, 0, Some(0), Idle::default());
        let brought_in = BroughtIn { core: bytes, l3: bytes };
        prices.burst(&Found { brought_in, ..found }).1 as f64
    };
    let (mut least, mut most) = (0, MAX_BYTES);
    while most - least > 1 {
        let middle = least + (most - least) / 2;
        if cost(middle) < ns { least = middle } else { most = middle }
    }
    least
}

/// Returns the cost of a burst after a pause, in nanoseconds.
fn burst_ns() -> f64 {
    let mut area = [0; AREA];
    let round = || {
        burst(hint::black_box(&mut area));
        let began = Instant::now();
        while began.elapsed() < PAUSE {
            hint::spin_loop();
        }
        let pause = began.elapsed();
        let began = Instant::now();
        burst(hint::black_box(&mut area));
        (pause > UNDISTURBED, began.elapsed().as_nanos() as f64)
    };
    let began = Instant::now();
    let mut rounds = until(round, || began.elapsed() >= LIMIT);
    // If all rounds were disturbed, use them.
    rounds.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let undisturbed = rounds.iter().filter(|(disturbed, _)| !disturbed).count();
    let counted = if undisturbed > 0 { undisturbed } else { rounds.len() };
    rounds[counted / 2].1
}

/// Executes all rounds, or those until the time is over: at least one.
fn until<T>(mut round: impl FnMut() -> T, mut is_over: impl FnMut() -> bool) -> Vec<T> {
    let mut rounds = vec![round()];
    while rounds.len() < ROUNDS && !is_over() {
        rounds.push(round());
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_with_the_time() {
        assert_eq!(until(|| (), || false).len(), ROUNDS);
        assert_eq!(until(|| (), || true).len(), 1);
        let mut looks = 0;
        let third = || {
            looks += 1;
            looks == 3
        };
        assert_eq!(until(|| (), third).len(), 3);
    }

    #[test]
    fn what_was_brought_in_is_found_by_what_a_burst_costs() {
        let machine = Machine::preset("epyc-9654").expect("a preset");
        let costs = &machine.costs;
        assert_eq!(brought_in(&machine, costs.hot_ns.value), 0);
        let prices = Prices::new(&machine, Memory::PreFaulted);
        let found = Found::new(&machine.topology, 0, Some(0), Idle::default());
        for bytes in [2_000_000, 10_000_000, 60_000_000] {
            let brought = BroughtIn { core: bytes, l3: bytes };
            let (_, ns) = prices.burst(&Found { brought_in: brought, ..found });
            let by_cost = brought_in(&machine, ns as f64) as f64;
            // The resolution of the costs, from which the bytes are computed, is a nanosecond.
            assert!((by_cost / bytes as f64 - 1.0).abs() < 0.2, "{bytes}: {by_cost}");
        }
        let all = costs.hot_ns.value + 2.0 * costs.refill_memory_ns.value;
        assert_eq!(brought_in(&machine, all), MAX_BYTES - 1, "no more can be displaced");
    }
}
