//! Dumps of damaged records.

use serde_json::Value as Json;
use tracing_subscriber::prelude::*;

use crate::{FlightRecorder, Format};

/// Negative control: bytes that are not a record are counted, and no format shows them.
#[test]
fn what_is_damaged_is_counted_and_not_shown() {
    let (layer, recorder) = FlightRecorder::builder().build();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
        tracing::info!("before");
        recorder.recording().append(b"rubbish");
        recorder.recording().append(&[]);
        tracing::info!("after");
    });
    for format in [Format::Text, Format::JsonLines, Format::Chrome] {
        let mut out = Vec::new();
        let dumped = recorder.dump(format, &mut out).expect("a dump in memory");
        assert_eq!((dumped.records, dumped.lost, dumped.damaged), (2, 0, 2), "{format:?}");
        let out = String::from_utf8(out).expect("text");
        assert!(out.contains("before") && out.contains("after"), "{out}");
        assert!(out.contains("2 damaged") || out.contains("\"damaged\":2"), "{out}");
        assert!(!out.contains("rubbish"), "{out}");
    }
}

#[test]
fn times_do_not_decrease() {
    let (layer, recorder) = FlightRecorder::builder().build();
    let dispatch = tracing::Dispatch::new(tracing_subscriber::registry().with(layer));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                tracing::dispatcher::with_default(&dispatch, || {
                    (0..1000).for_each(|number| tracing::info!(number));
                });
            });
        }
    });
    let mut out = Vec::new();
    recorder.dump(Format::JsonLines, &mut out).expect("a dump in memory");
    let out = String::from_utf8(out).expect("text");
    let lines = out.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let times: Vec<u64> = lines.filter_map(|line| line["time"].as_u64()).collect();
    assert_eq!(times.len(), 4000);
    assert!(times.is_sorted());
}
