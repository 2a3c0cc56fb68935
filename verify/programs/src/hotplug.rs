//! CPUs are unplugged and plugged in again while threads count.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid::Counter;

use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    let counter = Counter::with_source(source).map_err(|error| error.to_string())?;
    let pluggable: Vec<u32> =
        pinning::allowed().into_iter().filter(|&cpu| plug(cpu, true)).collect();
    if pluggable.is_empty() {
        return Err("no CPU can be unplugged here".to_owned());
    }
    let (stop, added) = (AtomicBool::new(false), AtomicI64::new(0));
    let mut plugs = 0;
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    (0..1000).for_each(|_| counter.add(1));
                    added.fetch_add(1000, Relaxed);
                }
            });
        }
        let (seed, end) = (seed(), Instant::now() + Duration::from_secs_f64(options.seconds));
        let mut random = Random::new(seed, 0);
        while Instant::now() < end {
            let cpu = pluggable[random.below(pluggable.len())];
            plugs += u32::from(plug(cpu, false));
            std::thread::sleep(Duration::from_millis(5));
            plug(cpu, true);
        }
        stop.store(true, Relaxed);
    });
    let (sum, added) = (counter.sum(), added.load(Relaxed));
    let figures =
        format!("source={source} pluggable={} unplugged={plugs} sum={sum}", pluggable.len());
    if sum == added && plugs > 0 { Ok(figures) } else { Err(format!("{figures} added={added}")) }
}

/// Plugs a CPU in or out. `false` if the machine does not allow it.
fn plug(cpu: u32, online: bool) -> bool {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(file, if online { "1" } else { "0" }).is_ok()
}
