//! Dumps on panics.

use std::panic;

use crate::destination::Destination;
use crate::recorder::FlightRecorder;

/// Installs a hook that dumps and then calls the one before. That one comes second, because hooks
/// that end the process are common.
pub(crate) fn install(recorder: FlightRecorder, destination: Destination) {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        destination.write(&recorder);
        previous(info);
    }));
}
