//! Metrics that do not change any more, with a clock that the test moves.
#![cfg(feature = "recorder")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_util::MetricKindMask;
use percid_metrics::{PrometheusBuilder, PrometheusRecorder};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Seconds since the recorder was made.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_secs(), SeqCst);
    }
}

/// Creates a recorder that removes these kinds when the clock has advanced by [`TIMEOUT`].
fn recorder(kinds: MetricKindMask) -> (PrometheusRecorder, Clock) {
    let (clock, start) = (Clock::default(), Instant::now());
    let of_recorder = clock.clone();
    let builder = PrometheusBuilder::new()
        .idle_timeout(kinds, Some(TIMEOUT))
        .idle_clock(move || start + Duration::from_secs(of_recorder.0.load(SeqCst)));
    (builder.build_recorder(), clock)
}

#[test]
fn what_nobody_has_is_forgotten_and_what_somebody_has_comes_back() {
    let (recorder, clock) = recorder(MetricKindMask::ALL);
    let handle = recorder.handle();
    let kept = with_local_recorder(&recorder, || {
        counter!("forgotten").increment(1);
        gauge!("forgotten_too").set(1.0);
        histogram!("forgotten_as_well").record(1.0);
        let kept = counter!("kept");
        kept.increment(5);
        kept
    });
    let names = ["forgotten ", "forgotten_too ", "forgotten_as_well_sum ", "kept "];
    let has_all = |page: String| names.iter().all(|name| page.contains(name));
    assert!(has_all(handle.render()));
    clock.pass(TIMEOUT - Duration::from_secs(1));
    assert!(has_all(handle.render()), "not before the time is over");
    clock.pass(Duration::from_secs(1));
    assert_eq!(handle.render(), "");
    kept.increment(2);
    assert_eq!(handle.render(), "# TYPE kept counter\nkept 7\n");
    with_local_recorder(&recorder, || counter!("forgotten").increment(1));
    assert!(handle.render().contains("\nforgotten 1\n"), "it begins anew");
}

/// The time counts from the first page that has the last change.
#[test]
fn what_changes_now_and_then_stays() {
    let (recorder, clock) = recorder(MetricKindMask::ALL);
    let page = || recorder.handle().render();
    for count in 1..=3 {
        with_local_recorder(&recorder, || counter!("changes").increment(1));
        assert!(page().contains(&format!("\nchanges {count}\n")));
        clock.pass(TIMEOUT * 2 / 3);
        assert!(page().contains("\nchanges "), "after two thirds of the time");
    }
    clock.pass(TIMEOUT / 3);
    assert_eq!(page(), "", "the control");
}

#[test]
fn other_kinds_stay() {
    let (recorder, clock) = recorder(MetricKindMask::GAUGE);
    with_local_recorder(&recorder, || {
        counter!("counter").increment(1);
        gauge!("gauge").set(1.0);
    });
    let page = || recorder.handle().render();
    assert!(page().contains("\ngauge 1\n"));
    clock.pass(TIMEOUT);
    assert_eq!(page(), "# TYPE counter counter\ncounter 1\n");
}

const THREADS: usize = 8;
const NAMES: usize = 40;

/// Threads count by the macro, which drops its handle at once. During that time the page is read
/// continuously and everything idle is removed. Each increment of a name adds a bit of its own. So
/// it is found on some page, however often the name began anew and wherever a thread was delayed.
///
/// The timeout expires at each page: what has not changed since the previous page is removed.
/// Threads wait for pages between two halves, so that names are removed there, at any speed of the
/// machine.
#[test]
fn nothing_is_lost_while_metrics_are_forgotten() {
    const ALL: u64 = (1 << 50) - 1;
    let (recorder, clock) = recorder(MetricKindMask::ALL);
    let pages = AtomicU64::new(0);
    let mut seen = HashMap::<String, u64>::new();
    let mut read = || {
        let page = recorder.handle().render();
        clock.pass(TIMEOUT);
        pages.fetch_add(1, SeqCst);
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.split_once(' ').expect("a sample");
            let value: u64 = value.parse().expect("a number");
            *seen.entry(name.to_owned()).or_default() |= value;
        }
    };
    std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (recorder, pages) = (&recorder, &pages);
            move || {
                for name in (0..NAMES).map(|name| format!("count_{thread}_{name}")) {
                    for half in [0..25, 25..50] {
                        with_local_recorder(recorder, || {
                            half.for_each(|bit| counter!(name.clone()).increment(1 << bit));
                        });
                        let until = pages.load(SeqCst) + fastrand::u64(0..5);
                        while pages.load(SeqCst) < until {
                            std::thread::yield_now();
                        }
                        // At any time while a page is made.
                        (0..fastrand::u32(0..100_000)).for_each(|_| std::hint::spin_loop());
                    }
                }
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            read();
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    (0..3).for_each(|_| read());
    assert_eq!(recorder.handle().render(), "", "the control: they are forgotten indeed");
    let lost: Vec<_> = seen.iter().filter(|(_, counted)| **counted != ALL).collect();
    assert_eq!((seen.len(), lost), (THREADS * NAMES, Vec::new()));
}
