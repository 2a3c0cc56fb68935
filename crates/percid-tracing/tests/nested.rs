//! Values that record something while they are recorded. Only the global subscriber can be called
//! by its own calls, so this test has a process of its own.

use std::fmt;

use percid_tracing::{FlightRecorder, Format};
use tracing_subscriber::prelude::*;

#[derive(Clone, Copy)]
struct Records;

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tracing::info!("inner event");
        f.write_str("outer value")
    }
}

#[test]
fn a_value_that_records_something_itself_is_recorded_too() {
    let (layer, recorder) = FlightRecorder::builder().build();
    tracing_subscriber::registry().with(layer).init();
    tracing::info!(value = ?Records, "outer event");
    let mut out = Vec::new();
    let dumped = recorder.dump(Format::Text, &mut out).expect("a dump in memory");
    let out = String::from_utf8_lossy(&out);
    assert_eq!((dumped.records, dumped.damaged), (2, 0), "{out}");
    assert!(out.contains("inner event") && out.contains("outer event value=outer value"), "{out}");
}
