//! Measures the wait of a new label set while the page of many others is made, or idle ones are
//! searched.
//!
//! `percid-metrics-waits [SERIES]`
//!
//! SERIES counters (100000 by default) differ in one label. One thread reads their page, or
//! searches for idle ones, three times. Another one registers new counters at that time, one each
//! millisecond, and times each. The last column contains the waits that the machine causes: the
//! same measurement, while the first thread only computes.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::PrometheusBuilder as PeerBuilder;
use percid_metrics::PrometheusBuilder;

static METADATA: Metadata<'static> = Metadata::new("percid", Level::INFO, None);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let series = std::env::args().nth(1).map_or(Ok(100_000), |it| it.parse())?;
    println!(
        "{series} series, milliseconds{:>28}{:>16}{:>22}",
        "each", "longest wait", "without, as long"
    );
    let ours = || PrometheusBuilder::new();
    let recorder = ours().build_recorder();
    let handle = recorder.handle();
    measure("page, percid", series, &recorder, 3, || drop(handle.render()));
    let hour = Some(Duration::from_secs(3600));
    let recorder = ours().idle_timeout(metrics_util::MetricKindMask::ALL, hour).build_recorder();
    let handle = recorder.handle();
    measure("upkeep, percid", series, &recorder, 3, || handle.run_upkeep());
    let at_once = Some(Duration::ZERO);
    let recorder = ours().idle_timeout(metrics_util::MetricKindMask::ALL, at_once).build_recorder();
    let handle = recorder.handle();
    measure("upkeep that forgets all, percid", series, &recorder, 1, || handle.run_upkeep());
    let recorder = PeerBuilder::new().build_recorder();
    let handle = recorder.handle();
    measure("page, exporter", series, &recorder, 3, || drop(handle.render()));
    Ok(())
}

fn measure(
    what: &str,
    series: usize,
    recorder: &(impl Recorder + Sync),
    times: u32,
    work: impl Fn() + Sync,
) {
    let mut next = 0;
    let mut register = || {
        let labels = vec![Label::new("user", format!("user {next}"))];
        next += 1;
        recorder
            .register_counter(&Key::from_parts("requests_total", labels), &METADATA)
            .increment(1);
    };
    (0..series).for_each(|_| register());
    let (took, wait) = longest(&mut register, || (0..times).for_each(|_| work()));
    let idly = || {
        let began = Instant::now();
        while began.elapsed() < took {
            std::hint::spin_loop();
        }
    };
    let (_, alone) = longest(&mut register, idly);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("{what:<36}{:>16.1}{:>16.2}{:>22.2}", ms(took / times), ms(wait), ms(alone));
}

/// Returns the duration of `work`, and the longest call of `register` in that time.
fn longest(register: &mut impl FnMut(), work: impl Fn() + Sync) -> (Duration, Duration) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let began = Instant::now();
            work();
            is_over.store(true, Relaxed);
            began.elapsed()
        });
        let mut longest = Duration::ZERO;
        while !is_over.load(Relaxed) {
            let began = Instant::now();
            register();
            longest = longest.max(began.elapsed());
            thread::sleep(Duration::from_millis(1));
        }
        (worker.join().expect("no panic"), longest)
    })
}
