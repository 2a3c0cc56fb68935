//! The layer that converts `tracing`'s calls to records.

use std::cell::RefCell;
use std::sync::Arc;

use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Interest, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::callsites::NONE;
use crate::encode::{Buffer, Encoder, Head};
use crate::layout::{Kind, RECORD_BYTES};
use crate::recording::Recording;
use crate::{processor, thread};

thread_local! {
    /// The buffer in which a record is encoded. A buffer on the stack would have to be cleared for
    /// each.
    static BUFFER: RefCell<Buffer> = const { RefCell::new([0; RECORD_BYTES]) };
}

/// The layer that stores events and spans in a [`FlightRecorder`](crate::FlightRecorder).
///
/// It stores all events and spans that it gets. A filter selects by level and target, as for any
/// other layer.
///
/// ```
/// use percid_tracing::{FlightRecorder, Format};
/// use tracing_subscriber::{Layer, filter::LevelFilter, prelude::*};
///
/// let (layer, recorder) = FlightRecorder::builder().build();
/// let subscriber = tracing_subscriber::registry().with(layer.with_filter(LevelFilter::INFO));
/// tracing::subscriber::with_default(subscriber, || {
///     tracing::info!(bytes = 17, "read");
///     tracing::debug!("not stored");
/// });
/// assert_eq!(recorder.dump(Format::Text, std::io::sink())?.records, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// * **Threads**: any number of threads may record at once. They do not wait for each other, with
///   one exception: a thread without an ID ([`percid::ring::AppendError::Busy`]) yields at most 64
///   times before its record is lost.
/// * **Signals**: `tracing` itself is not async-signal-safe, so handlers must not use it.
/// * **Fork**: a child continues with a copy of the records.
/// * **Cost**: an event whose values are numbers, booleans and strings does not allocate or take a
///   lock. It makes no system call, unless the clock needs one. The first record of a thread
///   allocates, and so does the first record of many a callsite.
#[derive(Debug)]
pub struct FlightLayer {
    pub(crate) recording: Arc<Recording>,
}

/// The subject of a record.
struct Subject {
    kind: Kind,
    metadata: &'static Metadata<'static>,
    span: u64,
    other: u64,
    other_callsite: u32,
}

impl FlightLayer {
    fn write(&self, subject: &Subject, fill: impl FnOnce(&mut Encoder<'_>)) {
        let head = Head {
            kind: subject.kind,
            cpu: processor::current(),
            time: self.recording.clock.now(),
            thread: thread::number(),
            callsite: self.recording.callsites.number(subject.metadata),
            span: subject.span,
            other_callsite: subject.other_callsite,
            other: subject.other,
        };
        BUFFER.with(|buffer| match buffer.try_borrow_mut() {
            Ok(mut buffer) => self.encode(&mut buffer, &head, fill),
            // The `Debug` of a value that is being written records an event itself.
            Err(_) => self.encode(&mut [0; RECORD_BYTES], &head, fill),
        });
    }

    fn encode(&self, buffer: &mut Buffer, head: &Head, fill: impl FnOnce(&mut Encoder<'_>)) {
        let mut encoder = Encoder::begin(buffer, head);
        fill(&mut encoder);
        self.recording.append(encoder.finish());
    }

    /// Stores a record about a span, with another span.
    fn write_span<'a, S: LookupSpan<'a>>(
        &self,
        kind: Kind,
        span: &SpanRef<'a, S>,
        other: Option<SpanRef<'a, S>>,
        fill: impl FnOnce(&mut Encoder<'_>),
    ) {
        let subject = Subject {
            kind,
            metadata: span.metadata(),
            span: span.id().into_u64(),
            other: id_of(&other),
            other_callsite: self.callsite_of(&other),
        };
        self.write(&subject, fill);
    }

    fn callsite_of<'a, S: LookupSpan<'a>>(&self, span: &Option<SpanRef<'a, S>>) -> u32 {
        span.as_ref().map_or(NONE, |span| self.recording.callsites.number(span.metadata()))
    }
}

fn id_of<'a, S: LookupSpan<'a>>(span: &Option<SpanRef<'a, S>>) -> u64 {
    span.as_ref().map_or(0, |span| span.id().into_u64())
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for FlightLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // An allocation is acceptable here. Otherwise the first event would allocate.
        self.recording.callsites.number(metadata);
        Interest::always()
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let span = context.event_span(event);
        let subject = Subject {
            kind: Kind::Event,
            metadata: event.metadata(),
            span: id_of(&span),
            // #[gamma::skip(literal, reason = "it is not stored of events")]
            other: 0,
            other_callsite: self.callsite_of(&span),
        };
        self.write(&subject, |encoder| event.record(encoder));
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        self.write_span(Kind::New, &span, span.parent(), |encoder| attributes.record(encoder));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        self.write_span(Kind::Set, &span, None, |encoder| values.record(encoder));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        self.write_span(Kind::Follows, &span, context.span(follows), |_| ());
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        self.write_span(Kind::Enter, &span, None, |_| ());
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        self.write_span(Kind::Exit, &span, None, |_| ());
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        self.write_span(Kind::Close, &span, None, |_| ());
    }
}
