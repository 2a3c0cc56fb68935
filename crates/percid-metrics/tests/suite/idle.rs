//! Metrics that are not changed any more.
#![cfg(feature = "recorder")]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_util::MetricKindMask;
use percid_metrics::PrometheusBuilder;

const TIMEOUT: Duration = Duration::from_millis(30);

#[test]
fn what_nobody_has_is_forgotten_and_what_somebody_has_comes_back() {
    let builder = PrometheusBuilder::new().idle_timeout(MetricKindMask::ALL, Some(TIMEOUT));
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    let kept = with_local_recorder(&recorder, || {
        counter!("forgotten").increment(1);
        gauge!("forgotten_too").set(1.0);
        histogram!("forgotten_as_well").record(1.0);
        let kept = counter!("kept");
        kept.increment(5);
        kept
    });
    assert!(
        ["forgotten ", "forgotten_too ", "forgotten_as_well_sum ", "kept "]
            .iter()
            .all(|name| handle.render().contains(name))
    );
    std::thread::sleep(2 * TIMEOUT);
    assert_eq!(handle.render(), "");
    kept.increment(2);
    assert_eq!(handle.render(), "# TYPE kept counter\nkept 7\n");
    with_local_recorder(&recorder, || counter!("forgotten").increment(1));
    assert!(handle.render().contains("\nforgotten 1\n"), "it begins anew");
}

#[test]
fn other_kinds_stay() {
    let builder = PrometheusBuilder::new().idle_timeout(MetricKindMask::GAUGE, Some(TIMEOUT));
    let recorder = builder.build_recorder();
    with_local_recorder(&recorder, || {
        counter!("counter").increment(1);
        gauge!("gauge").set(1.0);
    });
    let page = || recorder.handle().render();
    assert!(page().contains("\ngauge 1\n"));
    std::thread::sleep(2 * TIMEOUT);
    page();
    assert_eq!(page(), "# TYPE counter counter\ncounter 1\n");
}

/// Threads count by the macro, whose handle is gone at once, while the page is read all the time and
/// everything idle is forgotten: also between the two halves of what a thread counts by one name. The
/// first half is counted in ones and the second in thousands, so that each is found on some page.
#[test]
fn nothing_is_lost_while_metrics_are_forgotten() {
    const TIMES: u64 = 25;
    let timeout = Duration::from_millis(2);
    let builder = PrometheusBuilder::new().idle_timeout(MetricKindMask::ALL, Some(timeout));
    let recorder = builder.build_recorder();
    let mut seen = HashMap::<String, (u64, u64)>::new();
    let mut read = || {
        let page = recorder.handle().render();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.split_once(' ').expect("a sample");
            let value: u64 = value.parse().expect("a number");
            let (ones, thousands) = seen.entry(name.to_owned()).or_default();
            (*ones, *thousands) = ((*ones).max(value % 1000), (*thousands).max(value / 1000));
        }
    };
    let end = Instant::now() + Duration::from_millis(500);
    let names: usize = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let recorder = &recorder;
            move || {
                let mut names = 0;
                while Instant::now() < end {
                    let name = format!("count_{thread}_{names}");
                    for amount in [1, 1000] {
                        with_local_recorder(recorder, || {
                            (0..TIMES).for_each(|_| counter!(name.clone()).increment(amount));
                        });
                        std::thread::sleep(Duration::from_millis(fastrand::u64(0..6)));
                    }
                    names += 1;
                }
                names
            }
        };
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(work(thread))).collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            read();
        }
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    read();
    let lost: Vec<_> = seen.iter().filter(|(_, counted)| **counted != (TIMES, TIMES)).collect();
    assert_eq!((seen.len(), lost), (names, Vec::new()));
}
