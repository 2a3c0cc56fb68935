//! Files of traces.

use std::panic;

use percid_trace::read::{Format, read_bytes};
use percid_trace::{Error, Trace, parquet, perfetto};

use crate::traces::SHORT;

/// Reads a file of a format. `None` if it is of another one, or refused.
pub fn read(bytes: &[u8], format: Format) -> Option<Trace> {
    let read = match Format::detect(bytes) {
        detected if detected == format => read_bytes(bytes),
        _ => return None,
    };
    match read {
        Ok(trace) => Some(trace),
        Err(Error::Malformed(malformed)) => {
            assert!(!malformed.what.is_empty(), "an error without words");
            None
        }
        Err(Error::Io(error)) => panic!("reading memory asks no system: {error}"),
    }
}

/// Checks that a trace is the same after it was stored as Parquet.
pub fn check_stored(trace: &Trace) {
    if trace.events.len() > SHORT {
        return;
    }
    let mut stored = Vec::new();
    parquet::write(trace, &mut stored).expect("every trace can be stored");
    let again = parquet::read_bytes(stored).expect("what was stored can be read");
    if let Some(place) = trace.first_difference(&again) {
        panic!(
            "event {place}: {:?}, stored {:?}",
            trace.events.get(place),
            again.events.get(place)
        );
    }
    assert_eq!(trace.origin, again.origin);
}

/// Checks that Perfetto's form of a trace can be written and read.
pub fn check_shown(trace: &Trace) {
    if trace.events.len() > SHORT {
        return;
    }
    let mut shown = Vec::new();
    perfetto::write(trace, &[], &mut shown).expect("every trace can be shown");
    perfetto::read(&shown[..]).expect("what was written can be read");
}

/// Allows panics that the reader of Parquet catches, which are no faults; libFuzzer's hook ends the
/// program at any panic. Must be called when the target begins.
pub fn allow_caught_panics() {
    let end = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !parquet::catches_panics() {
            end(info);
        }
    }));
}
