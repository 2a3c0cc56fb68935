//! The exporter: its thread, and the handle to it.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prost::Message;

use super::backoff::Backoff;
use super::clock::Clock;
use super::encode::request;
use super::receiver::{Again, Attempt, Receiver};
use crate::error::Error;
use crate::provider::PercidMeterProvider;

/// A thread that sends a provider's collections at regular intervals, by OTLP over HTTP.
/// [`OtlpBuilder`](super::OtlpBuilder) starts it.
///
/// # Contract
///
/// * **Attempts**: an attempt that cannot be sent, or is answered with the status 429, 502, 503 or
///   504, is repeated. The wait is about 1, 2, 4, ... seconds, and at least that of the header
///   `Retry-After`. When the [timeout](super::OtlpBuilder::with_timeout) is over, the collection is
///   dropped. The next collection includes its sums.
/// * **Errors** go to the provider's handler (see [`Error`]), one for each dropped collection. A
///   call that requested the collection returns them, too.
/// * **Threads**: any number of threads may use it. The callbacks of observable instruments are
///   called in the exporter's thread. They must not flush or shut down.
/// * **Dropping** it is a [`shutdown`](OtlpExporter::shutdown).
/// * **Signals**: no method may be called in a signal handler.
/// * **Fork**: the child has no exporter thread. There [`force_flush`](OtlpExporter::force_flush),
///   [`shutdown`](OtlpExporter::shutdown) and dropping wait until their time is over. A child that
///   continues should [`forget`](std::mem::forget) the exporter and start its own.
/// * **Cost**: a collection in the exporter's thread, a message in memory, and a request. The
///   connection is kept.
pub struct OtlpExporter {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    provider: PercidMeterProvider,
    receiver: Receiver,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<ExporterState>,
    changed: Condvar,
}

#[derive(Default)]
struct ExporterState {
    /// Number of requested exports, and number of those that are complete.
    asked: u64,
    answered: u64,
    answer: Option<Error>,
    is_stopping: bool,
    has_stopped: bool,
}

impl ExporterState {
    fn is_asked(&self) -> bool {
        self.asked > self.answered || self.is_stopping
    }
}

impl OtlpExporter {
    pub(crate) fn start(
        provider: PercidMeterProvider,
        receiver: Receiver,
        (interval, timeout): (Duration, Duration),
        clock: Arc<dyn Clock>,
    ) -> io::Result<OtlpExporter> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { provider, receiver, timeout, clock, state, changed });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("percid-otlp".to_owned())
            .spawn(move || of_thread.run(interval))?;
        Ok(OtlpExporter { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Sends the current values, and waits until this is done. The wait is at most twice the
    /// [timeout](super::OtlpBuilder::with_timeout) and two seconds, because another export may be
    /// running.
    ///
    /// ```
    /// use percid_opentelemetry::PercidMeterProvider;
    /// use percid_opentelemetry::otlp::OtlpBuilder;
    ///
    /// let provider = PercidMeterProvider::builder().build();
    /// let exporter = OtlpBuilder::new().start(&provider)?;
    /// // Nothing was recorded, so nothing is sent.
    /// assert_eq!(exporter.force_flush(), Ok(()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the last attempt, or [`Error::Stopped`] if the exporter has stopped or not
    /// exported in time.
    pub fn force_flush(&self) -> Result<(), Error> {
        self.shared.ask(self.shared.state())
    }

    /// Sends the current values for the last time, and ends the thread. Waits at most as long as
    /// [`force_flush`](OtlpExporter::force_flush). A running export is dropped instead of being
    /// repeated. Instruments may still be used.
    ///
    /// ```
    /// use percid_opentelemetry::otlp::OtlpBuilder;
    /// use percid_opentelemetry::{Error, PercidMeterProvider};
    ///
    /// let provider = PercidMeterProvider::builder().build();
    /// let exporter = OtlpBuilder::new().start(&provider)?;
    /// assert_eq!(exporter.shutdown(), Ok(()));
    /// assert_eq!(exporter.force_flush(), Err(Error::Stopped));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of the last attempt, or [`Error::Stopped`] if it was shut down before or has not
    /// exported in time.
    pub fn shutdown(&self) -> Result<(), Error> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = thread.take() else { return Err(Error::Stopped) };
        let mut state = self.shared.state();
        state.is_stopping = true;
        let result = self.shared.ask(state);
        // A thread that has not stopped in time is not joined. If it panicked, there was no answer.
        if self.shared.state().has_stopped {
            _ = thread.join();
        }
        result
    }
}

impl Drop for OtlpExporter {
    fn drop(&mut self) {
        // The handler has been called with the error.
        _ = self.shutdown();
    }
}

impl fmt::Debug for OtlpExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_stopped = self.shared.state().has_stopped;
        f.debug_struct("OtlpExporter").field("has_stopped", &has_stopped).finish_non_exhaustive()
    }
}

/// Time for a collection, in addition to the request.
const COLLECTING: Duration = Duration::from_secs(1);

impl Shared {
    fn run(&self, interval: Duration) {
        let _stops = Stops(self);
        let mut next = self.clock.now() + interval;
        loop {
            let state = self.wait(self.state(), next, |state| !state.is_asked());
            let (asked, is_last) = (state.asked, state.is_stopping);
            drop(state);
            let answer = self.export(is_last).err();
            if let Some(error) = &answer {
                self.provider.tell(error);
            }
            self.answer(asked, answer, is_last);
            if is_last {
                return;
            }
            let now = self.clock.now();
            if now >= next {
                // Missed exports are not made up for.
                next = (next + interval).max(now);
            }
        }
    }

    fn answer(&self, asked: u64, answer: Option<Error>, is_last: bool) {
        let mut state = self.state();
        state.answered = asked;
        state.answer = answer;
        state.has_stopped = is_last;
        self.changed.notify_all();
    }

    /// Sends the current values, with further attempts if necessary.
    fn export(&self, is_last: bool) -> Result<(), Error> {
        let collection = self.provider.collect();
        if collection.scopes.is_empty() {
            return Ok(());
        }
        let message = request(&collection).encode_to_vec();
        let (end, mut backoff) = (self.clock.now() + self.timeout, Backoff::new());
        loop {
            let left = end.saturating_duration_since(self.clock.now());
            let (error, asked_for) = match self.receiver.post(&message, left) {
                Attempt::Received(complaint) => return complaint.map_or(Ok(()), Err),
                Attempt::Failed { error, again: Again::Never } => return Err(error),
                Attempt::Failed { error, again: Again::After(asked_for) } => (error, asked_for),
            };
            let wait = backoff.wait(asked_for);
            if !self.rest(wait, end, is_last) {
                return Err(error);
            }
        }
    }

    /// Waits before another attempt. Returns `false` if there is no time for one. Also returns
    /// `false` if the last collection, which includes this one, must be sent instead.
    fn rest(&self, wait: Duration, end: Instant, is_last: bool) -> bool {
        let now = self.clock.now();
        if wait >= end.saturating_duration_since(now) {
            return false;
        }
        self.clock.pauses(wait);
        let may_go_on = |state: &ExporterState| is_last || !state.is_stopping;
        let state = self.wait(self.state(), now + wait, may_go_on);
        may_go_on(&state)
    }

    /// Requests an export, and waits until it is complete.
    fn ask(&self, mut state: MutexGuard<'_, ExporterState>) -> Result<(), Error> {
        // #[gamma::skip(literal.int_increment, reason = "only the order of the numbers matters")]
        state.asked += 1;
        let asked = state.asked;
        self.changed.notify_all();
        // #[gamma::skip(literal, arith, reason = "only a clock can see how long it waits")]
        let end = self.clock.now() + (self.timeout + COLLECTING) * 2;
        let is_waiting = |state: &ExporterState| state.answered < asked && !state.has_stopped;
        let state = self.wait(state, end, is_waiting);
        if state.answered < asked {
            return Err(Error::Stopped);
        }
        state.answer.clone().map_or(Ok(()), Err)
    }

    fn state(&self) -> MutexGuard<'_, ExporterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits on `state` while `is_to_wait` returns `true`, until `end` at most.
    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, ExporterState>,
        end: Instant,
        is_to_wait: impl Fn(&ExporterState) -> bool,
    ) -> MutexGuard<'a, ExporterState> {
        loop {
            let left = end.saturating_duration_since(self.clock.now());
            if left.is_zero() || !is_to_wait(&state) {
                return state;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Marks the thread as stopped when it ends, even if the program's error handler panics in it. So
/// no other thread waits for it.
struct Stops<'a>(&'a Shared);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.state().has_stopped = true;
        self.0.changed.notify_all();
    }
}
