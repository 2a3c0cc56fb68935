//! Requirements for every trace that a reader accepts, whatever the file contains.

use percid_trace::event::{Event, What};
use percid_trace::quality::Quality;
use percid_trace::{Trace, gaps, kernel_ids, replay};

/// Maximum length for expensive checks: a file of some kilobytes can have a hundred thousand
/// events.
pub(crate) const SHORT: usize = 2_000;

/// Checks what is promised of every trace, and that everything that takes traces takes this one.
pub fn check(trace: &Trace) {
    let key = |event: &Event| (event.time, event.cpu);
    assert!(trace.events.is_sorted_by_key(key), "by time and then by CPU");
    for event in &trace.events {
        assert!(event.cpu < 8192 && event.time <= i64::MAX as u64, "{event:?}");
        if let What::Name { name: text, .. } | What::Affinity { cpus: text, .. } = event.what {
            assert!((text.0 as usize) < trace.texts.len(), "{event:?} has no text");
        }
    }
    if trace.events.len() > SHORT {
        return;
    }
    replay::summaries(trace);
    let judged = Quality::from_trace(trace);
    let mut whole = trace.clone();
    let added = gaps::close(&mut whole);
    assert_eq!(whole.events.len(), trace.events.len() + added);
    assert_eq!(Quality::from_trace(&whole), judged, "also with the switches that were missing");
    let processes: Vec<u32> = trace.events.iter().filter_map(process).take(4).collect();
    kernel_ids::compare_all(trace, &processes, &Default::default());
}

fn process(event: &Event) -> Option<u32> {
    match event.what {
        What::Exec { thread, .. } => Some(thread),
        _ => None,
    }
}
