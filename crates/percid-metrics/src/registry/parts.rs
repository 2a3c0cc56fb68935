//! A page in parts.

use std::fmt::{self, Write as _};
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::vec;

use super::description::Described;
use super::metric::Any;
use super::series::Series;
use super::values::LabelValues;
use crate::entries::{MetricEntry, NoMemory};
use crate::page::{Format, PageWriter, label_value};

/// Number of bytes from which a part is returned.
const MIN_PART_BYTES: usize = 4096;

/// The metric that is being written, and its series that are left.
struct Turn {
    series: Series,
    left: vec::IntoIter<Arc<MetricEntry<LabelValues, Any>>>,
}

/// Writes labels in the format's syntax.
fn write_labels(text: &mut String, described: &Described, values: &LabelValues) -> io::Result<()> {
    text.clear();
    // A comma and an equals sign. Each byte of a value, and the one after it, may become two.
    // #[gamma::skip(literal.int_increment, reason = "more room does no harm")]
    let names: usize = described.labels.iter().map(|name| name.len() + 2).sum();
    let bytes = described.constant.len() + names + 2 * values.bytes();
    text.try_reserve(bytes).map_err(|_| ErrorKind::OutOfMemory)?;
    text.push_str(&described.constant);
    for (name, value) in described.labels.iter().zip(values.iter()) {
        let comma = if text.is_empty() { "" } else { "," };
        // A write to a string does not fail.
        let _ = write!(text, "{comma}{name}=\"{}\"", label_value(value));
    }
    Ok(())
}

/// A page of a [`Registry`](crate::Registry), made part by part.
///
/// Metrics are ordered by name, and the series of each by the values of their labels. The list of a
/// metric's series is made when its first line is written. Each value is read when it is written.
/// Updates continue during that time. No lock is held between two parts, so the caller may take any
/// time for each.
pub struct Parts {
    format: Format,
    metrics: vec::IntoIter<Series>,
    turn: Option<Turn>,
    unrecorded: u64,
    is_over: bool,
    buffer: Buffer,
    labels: String,
}

impl Parts {
    pub(super) fn new(format: Format, metrics: Vec<Series>) -> Parts {
        Parts {
            format,
            metrics: metrics.into_iter(),
            turn: None,
            unrecorded: 0,
            is_over: false,
            buffer: Buffer(Vec::new()),
            labels: String::new(),
        }
    }

    /// Returns the next part: UTF-8, whole lines, usually a few KiB. Returns `None` after the last
    /// one.
    ///
    /// # Errors
    ///
    /// [`NoMemory`] if there is no memory. Then the page is incomplete.
    #[expect(clippy::should_implement_trait, reason = "a part is lent")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, NoMemory> {
        self.buffer.0.clear();
        // #[gamma::skip(relational.lt_to_le, reason = "a byte more is a part, too")]
        while !self.is_over && self.buffer.0.len() < MIN_PART_BYTES {
            // Lack of memory is the only possible error.
            self.step().map_err(|_| NoMemory)?;
        }
        Ok(Some(&*self.buffer.0).filter(|part| !part.is_empty()))
    }

    /// Writes one series, the header of a metric, or the end.
    fn step(&mut self) -> io::Result<()> {
        let mut page = PageWriter::new(&mut self.buffer, self.format);
        if let Some(Turn { series, left }) = &mut self.turn {
            let described = series.described();
            match left.next() {
                Some(entry) => {
                    write_labels(&mut self.labels, described, &entry.labels)?;
                    let name = &described.name;
                    self.unrecorded += entry.metric.write(&mut page, name, &self.labels)?;
                }
                None => self.turn = None,
            }
            return Ok(());
        }
        let Some(series) = self.metrics.next() else {
            self.is_over = true;
            page.unrecorded(self.unrecorded)?;
            return page.end();
        };
        let left = series.sorted().map_err(|NoMemory| ErrorKind::OutOfMemory)?.into_iter();
        if left.as_slice().is_empty() {
            return Ok(());
        }
        let described = series.described();
        let (help, unit) = (described.help.as_deref(), described.unit.as_deref());
        page.family(&described.name, described.kind, help, unit)?;
        self.turn = Some(Turn { series, left });
        Ok(())
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("format", &self.format).finish_non_exhaustive()
    }
}

/// A writer to memory that fails if there is no more.
struct Buffer(Vec<u8>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_reserve(bytes.len()).map_err(|_| ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
