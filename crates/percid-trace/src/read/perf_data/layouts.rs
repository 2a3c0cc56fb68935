//! The layouts of a file's records, which depend on the event to which they belong.

use std::collections::HashMap;

use super::container::Container;
use super::sample::Layout;
use crate::error::Error;
use crate::formats::ByteOrder;
use crate::read::bytes::Bytes;

/// Layouts of the records of each event.
pub(super) struct Layouts {
    order: ByteOrder,
    first: Layout,
    /// Layouts by the event's numbers; empty if all events have the same layout.
    by_id: HashMap<u64, Layout>,
}

impl Layouts {
    pub(super) fn new(container: &Container<'_>) -> Result<Layouts, Error> {
        let events = &container.events;
        let Some(first) = events.first() else {
            return Err(Error::at_byte(0, "the file has no events"));
        };
        let layouts = Layouts {
            order: container.order,
            first: Layout::new(first.attributes),
            by_id: HashMap::new(),
        };
        let others = || events.iter().map(|event| Layout::new(event.attributes));
        if others().all(|layout| layout == layouts.first) {
            return Ok(layouts);
        }
        if !others().all(|layout| layout.identifies_like(&layouts.first)) {
            let what = "the records of its events differ and do not say to which event they belong";
            return Err(Error::at_byte(0, what));
        }
        let by_id = events.iter().flat_map(|event| {
            let layout = Layout::new(event.attributes);
            event.ids.iter().map(move |&id| (id, layout))
        });
        Ok(Layouts { by_id: by_id.collect(), ..layouts })
    }

    #[inline]
    pub(super) fn of_sample(&self, body: Bytes<'_>) -> &Layout {
        self.get(|first| first.sample_id(body.rest(), self.order))
    }

    pub(super) fn of_other(&self, body: Bytes<'_>) -> &Layout {
        self.get(|first| first.tail_id(body.rest(), self.order))
    }

    /// Returns the layout of the event with this number. Records that perf synthesized at the
    /// beginning of the recording have the number 0.
    #[inline]
    fn get(&self, id: impl Fn(&Layout) -> Option<u64>) -> &Layout {
        if self.by_id.is_empty() {
            return &self.first;
        }
        let layout = id(&self.first).and_then(|id| self.by_id.get(&id));
        layout.unwrap_or(&self.first)
    }
}
