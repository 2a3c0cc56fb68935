//! The cost of a reported access: to pages that are not armed, which is nearly all of them; and to
//! armed ones.

use std::hint::black_box;
use std::time::Instant;

use percid_numa::Balancer;

use super::area::{Area, PAGE};
use super::environment::quick;
use crate::options::Options;
use crate::verdict::Verdict;

const BYTES: usize = 4 << 20;
const TOUCHES: usize = 1_000_000;
/// The best of several rounds, since others use the machine too.
const ROUNDS: usize = 50;

pub(crate) fn run(_: &Options) -> Verdict {
    percid_numa::testing::pretend_nodes(2);
    let balancer =
        Balancer::builder().settings(quick()).build().map_err(|error| error.to_string())?;
    let area = Area::new(BYTES)?;
    let region =
        balancer.register(area.start(), area.bytes()).map_err(|error| error.to_string())?;
    (0..area.pages())
        .for_each(|page| _ = area.word(page).fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let cheapest = (0..ROUNDS)
        .map(|_| per_step(TOUCHES, |offset| region.touch(offset)))
        .fold(f64::MAX, f64::min);
    // The same loop without the touch.
    let nothing = (0..ROUNDS)
        .map(|_| per_step(TOUCHES, |offset| _ = black_box(offset)))
        .fold(f64::MAX, f64::min);
    let armed = balancer.pass().armed as usize;
    let began = Instant::now();
    (0..area.pages()).for_each(|page| region.touch(page * PAGE));
    let of_armed = began.elapsed().as_secs_f64() * 1e9 / armed.max(1) as f64;
    let report = balancer.report();
    let seen = report.regions.first().map_or(0, |region| region.local + region.remote);
    let figures = format!(
        "ns_per_touch={cheapest:.3} loop_ns={nothing:.3} ns_per_armed_touch={of_armed:.0} armed={armed} seen={seen}"
    );
    let right = armed == area.pages() && seen == armed as u64;
    if right { Ok(figures) } else { Err(figures) }
}

/// Returns nanoseconds a step, at offsets that go through all pages.
fn per_step(steps: usize, step: impl Fn(usize)) -> f64 {
    let began = Instant::now();
    let mut offset = 0;
    for _ in 0..steps {
        step(black_box(offset));
        offset = (offset + 5 * PAGE + 64) & (BYTES - 1);
    }
    began.elapsed().as_secs_f64() * 1e9 / steps as f64
}
