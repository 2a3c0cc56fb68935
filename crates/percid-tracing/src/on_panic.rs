//! Dumps on panics.

use std::panic;
use std::sync::Arc;

use crate::destination::Destination;
use crate::recording::Recording;

/// Installs a hook that dumps and then calls the previous hook. The previous hook comes second,
/// because it often ends the process.
pub(crate) fn install(recording: Arc<Recording>, destination: Destination) {
    let previous = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        destination.write(&recording);
        previous(info);
    }));
}
