//! Dumps on signals. signal-hook's handler sets a flag, writes a byte to a pipe, and calls the
//! previous handler. A thread reads the pipe and dumps.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::thread;

use signal_hook::consts::FORBIDDEN;
use signal_hook::iterator::Signals;

use crate::destination::Destination;
use crate::recording::Recording;

/// The range of signals that signal-hook's iterator supports. It panics at others.
const SIGNALS: std::ops::Range<i32> = 1..128;

pub(crate) fn start(
    recording: Arc<Recording>,
    signal: i32,
    destination: Destination,
) -> io::Result<()> {
    if FORBIDDEN.contains(&signal) || !SIGNALS.contains(&signal) {
        let message = format!("signal {signal} cannot be handled");
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    let mut signals = Signals::new([signal])?;
    let thread = thread::Builder::new().name("flight-recorder".to_owned());
    let dump = move || signals.forever().for_each(|_| destination.write(&recording));
    thread.spawn(dump).map(drop)
}
