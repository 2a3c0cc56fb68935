//! The speed of the host's time-stamp counter.
//!
//! The emulated counter runs at the host's speed. A guest that must find it out itself measures
//! against an emulated timer, on a host that may be busy, and gets a wrong result; so the harness
//! measures it once and passes it to the guest.

use std::time::Duration;

/// Long enough for an error far below a per mille, short enough to go
/// unnoticed.
const INTERVAL: Duration = Duration::from_millis(50);

/// Two clocks are read within this time, so that the interval is known to less than a per mille.
#[cfg(target_arch = "x86_64")]
const TOGETHER: Duration = Duration::from_micros(20);

/// Returns the host's time-stamp counter in kHz, or `None` if there is none.
#[cfg(target_arch = "x86_64")]
pub fn tsc_khz() -> Option<u64> {
    let (start, first) = both_clocks();
    std::thread::sleep(INTERVAL);
    let (end, last) = both_clocks();
    let nanoseconds = end.duration_since(start).as_nanos();
    let khz = u128::from(last - first) * 1_000_000 / nanoseconds;
    u64::try_from(khz).ok()
}

/// Returns the time and the counter at the same moment: read again if something came in between.
#[cfg(target_arch = "x86_64")]
fn both_clocks() -> (std::time::Instant, u64) {
    loop {
        let now = std::time::Instant::now();
        let ticks = read_tsc();
        if now.elapsed() < TOGETHER {
            return (now, ticks);
        }
    }
}

/// Returns the host's time-stamp counter in kHz, or `None` if there is none.
#[cfg(not(target_arch = "x86_64"))]
pub fn tsc_khz() -> Option<u64> {
    None
}

#[cfg(target_arch = "x86_64")]
fn read_tsc() -> u64 {
    // SAFETY: every x86-64 CPU has the instruction, and Linux leaves it
    // enabled for user space.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn two_measurements_agree() {
        let first = tsc_khz().expect("x86-64 has a counter");
        let second = tsc_khz().expect("x86-64 has a counter");
        assert!(first > 100_000, "{first} kHz is no plausible CPU");
        assert!(first.abs_diff(second) < first / 50, "{first} and {second}");
    }
}
