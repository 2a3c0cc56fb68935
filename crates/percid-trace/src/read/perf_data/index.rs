//! The records that a trace may need, in the order of their times.

use tracepoint_decode::PerfEventHeaderType as Type;

use super::container::{Container, Record};
use super::layouts::Layouts;
use crate::error::Error;

/// A record that a trace may need.
pub(super) struct IndexEntry {
    pub(super) time: u64,
    pub(super) at: u64,
}

/// The records that a trace may need, by time.
pub(super) struct Index {
    pub(super) entries: Vec<IndexEntry>,
    pub(super) lost: u64,
}

impl Index {
    pub(super) fn new(container: &Container<'_>, layouts: &Layouts) -> Result<Index, Error> {
        let order = container.order;
        let mut entries = Vec::new();
        let (mut lost, mut lost_samples) = (0u64, 0u64);
        let mut rest = container.records.all(order);
        while !rest.is_empty() {
            let at = rest.position();
            let Record { kind, mut body, .. } = Record::take(&mut rest)?;
            let time = match kind {
                Type::Sample => {
                    let time = layouts.of_sample(body).sample_time(body.rest(), order);
                    time.ok_or_else(|| body.error("a sample has no time"))?
                }
                Type::Comm | Type::Fork | Type::Exit | Type::Switch | Type::SwitchCpuWide => {
                    layouts.of_other(body).tail_time(body.rest(), order).unwrap_or(0)
                }
                Type::Lost => {
                    let all = body;
                    body.u64("the event of lost records")?;
                    lost = lost.saturating_add(body.u64("the number of lost records")?);
                    layouts.of_other(all).tail_time(all.rest(), order).unwrap_or(0)
                }
                Type::LostSamples => {
                    let number = body.u64("the number of lost samples")?;
                    lost_samples = lost_samples.saturating_add(number);
                    continue;
                }
                _ => continue,
            };
            entries.push(IndexEntry { time, at });
        }
        entries.sort_by_key(|entry| entry.time);
        // Both report the same losses: the first when there was room again, the second at the end
        // and so for all.
        Ok(Index { entries, lost: lost.max(lost_samples) })
    }
}
