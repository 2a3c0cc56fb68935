//! A recording in memory.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use super::options::Options;
use super::record_to;
use super::recorded::{Ended, Progress, Recorded};
use super::refusal::Refusal;
use super::sink::{Piece, Sink};
use crate::event::{Event, What};
use crate::gaps;
use crate::trace::{Origin, Trace};

/// Records until the target ends, the limit is reached, or `stop` is true. `progress` is called,
/// and `stop` checked, several times a second. A command that has not ended by then goes on.
///
/// All events are in memory: 32 bytes each. [`record_to`] does without that.
///
/// # Errors
///
/// Nothing could be recorded: see [`Refusal`]. A failure after the beginning is no error: see
/// [`Recorded::broken`].
pub fn record(
    options: &Options,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<Recorded, Refusal> {
    let mut whole = Whole::default();
    let ended = record_to(options, stop, &mut whole, progress)?;
    let mut trace = whole.finish();
    let inferred = gaps::close(&mut trace);
    let Ended { status, backend, without, no_scan, broken } = ended;
    Ok(Recorded { trace, inferred, status, backend, without, no_scan, broken })
}

/// All events.
#[derive(Debug, Default)]
struct Whole(Trace);

impl Sink for Whole {
    fn begin(&mut self, origin: &Origin) -> Result<(), String> {
        self.0.origin = origin.clone();
        Ok(())
    }

    fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String> {
        let Trace { origin, events, numa, counted, texts } = &mut self.0;
        let own = |event: &Event| {
            let mut event = *event;
            if let What::Name { name: text, .. } | What::Affinity { cpus: text, .. } =
                &mut event.what
            {
                *text = texts.intern(piece.texts.get(*text).as_bytes());
            }
            event
        };
        events.extend(piece.events.iter().map(own));
        numa.extend(piece.numa);
        counted.extend(piece.counted);
        origin.lost = piece.lost;
        Ok(ControlFlow::Continue(()))
    }
}

impl Whole {
    /// Returns the trace with its events in order, including those that the kernel held back.
    fn finish(mut self) -> Trace {
        let key = |event: &Event| (event.time, event.cpu);
        if !self.0.events.is_sorted_by_key(key) {
            self.0.events.sort_by_key(key);
        }
        self.0.counted.sort_by_key(|turn| (turn.time, turn.cpu));
        self.0
    }
}
