//! The events of the published intermittent benchmark: the index of each CPU from burst to burst,
//! and the minor faults of the bursts, with the kernel's IDs and with the table's.
//!
//! One thread per CPU; all meet at a barrier, so that all hold an ID at once. Then they run one
//! after the other, in an order that is shuffled once, with a pause before each round. The duration
//! of a burst is not measured: an emulated machine has no caches.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use percid::{Counter, Source};

use crate::options::Options;
use crate::pinning;
use crate::random::{Random, seed};
use crate::verdict::Verdict;

/// Bytes that a burst touches.
const AREA: usize = 16 * 1024;
const ROUNDS: usize = 6;

/// The results for one source.
struct Seen {
    /// The largest number of distinct indices on one CPU.
    per_cpu: usize,
    /// Number of distinct indices in total.
    distinct: usize,
    /// Number of minor faults of all bursts after each CPU's first.
    later_faults: i64,
}

pub(crate) fn run(options: &Options) -> Verdict {
    refuse_hint_faults();
    let cpus = pinning::allowed();
    let pause =
        Duration::from_secs_f64(options.seconds / (2.0 * ROUNDS as f64 * cpus.len() as f64));
    let mut figures = format!("cpus={} pause={pause:?}", cpus.len());
    let mut right = true;
    for source in [Source::Kernel, Source::Table] {
        if let Err(why) = source.prepare() {
            figures += &format!(" {source}: none ({why})");
            continue;
        }
        let seen = observe(source, &cpus, pause)?;
        figures += &format!(
            " {source}: indices_per_cpu_max={} distinct={} later_faults={}",
            seen.per_cpu, seen.distinct, seen.later_faults
        );
        right &= source == Source::Kernel || (seen.per_cpu, seen.later_faults) == (1, 0);
    }
    if right { Ok(figures) } else { Err(figures) }
}

fn observe(source: Source, cpus: &[u32], pause: Duration) -> Result<Seen, String> {
    let counter = Counter::with_source(source).map_err(|error| error.to_string())?;
    // An area for every ID that could be: memory that no thread has touched.
    let areas = vec![0u8; AREA * (cpus.len() + 8)];
    let order = shuffled(cpus.len());
    // Whose turn it is: the position in the order, over all rounds.
    let (turn, next) = (Mutex::new(0), Condvar::new());
    let start = std::sync::Barrier::new(cpus.len());
    let areas_at = areas.as_ptr() as usize;
    let work = |mine: usize, cpu: u32| {
        pinning::restrict(0, &[cpu]);
        counter.add(1);
        start.wait();
        let (mut indices, mut later_faults) = (Vec::new(), 0);
        for round in 0..ROUNDS {
            let my_turn = round * cpus.len() + order[mine];
            let mut now = next
                .wait_while(turn.lock().expect("no panic"), |now| *now != my_turn)
                .expect("no panic");
            std::thread::sleep(pause);
            let (index, faults) = burst(source, &counter, areas_at);
            later_faults += if round > 0 { faults } else { 0 };
            indices.extend(index);
            *now += 1;
            drop(now);
            next.notify_all();
        }
        (indices, later_faults)
    };
    let (mut all, mut seen) = (Vec::new(), Seen { per_cpu: 0, distinct: 0, later_faults: 0 });
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (cpus.iter().enumerate())
            .map(|(mine, &cpu)| scope.spawn(move || work(mine, cpu)))
            .collect();
        for thread in threads {
            let (mut indices, faults) = thread.join().expect("no panic");
            all.extend_from_slice(&indices);
            indices.sort_unstable();
            indices.dedup();
            seen.per_cpu = seen.per_cpu.max(indices.len());
            seen.later_faults += faults;
        }
    });
    all.sort_unstable();
    all.dedup();
    seen.distinct = all.len();
    Ok(seen)
}

/// Runs one burst over the area of the present index. Returns the index and the number of minor
/// faults.
fn burst(source: Source, counter: &Counter, areas: usize) -> (Option<u32>, i64) {
    // A program would do the same: an operation that needs an ID, then use the index of that ID.
    counter.add(1);
    let index = source.current_id();
    let before = minor_faults();
    if let Some(index) = index {
        for offset in (0..AREA).step_by(64) {
            let byte = (areas + index as usize * AREA + offset) as *mut u8;
            // SAFETY: inside the areas, which have room for more IDs than there are CPUs, and live
            // until all threads have ended; one thread runs at a time.
            unsafe { byte.write_volatile(byte.read_volatile().wrapping_add(1)) };
        }
    }
    (index, minor_faults() - before)
}

/// Excludes this process from the kernel's NUMA balancing: it unmaps pages periodically to detect
/// the accessing threads, and those faults must not be counted here. It scans only threads without
/// a policy; this one, for the calling thread and its children, has the effect of the default.
fn refuse_hint_faults() {
    const MPOL_LOCAL: libc::c_long = 4;
    // SAFETY: the call reads no memory for this policy. Kernels without NUMA refuse it, rightly.
    unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_LOCAL, 0, 0) };
}

fn minor_faults() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure has room for the answer, and zero is a valid value of it.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_minflt
    }
}

/// Returns the place of each thread in the order.
fn shuffled(count: usize) -> Vec<usize> {
    let mut random = Random::new(seed(), 3);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}
