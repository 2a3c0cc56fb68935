//! Dumps on panics.

use std::panic;

use crate::destination::Destination;
use crate::recorder::FlightRecorder;

/// Installs a hook that dumps and then calls the previous hook. The previous hook comes second,
/// because it often ends the process.
pub(crate) fn install(recorder: FlightRecorder, destination: Destination) {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        destination.write(&recorder);
        previous(info);
    }));
}
