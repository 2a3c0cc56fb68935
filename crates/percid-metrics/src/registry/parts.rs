//! A page, made part by part.

use std::fmt::{self, Write as _};
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::vec;

use super::description::Described;
use super::labelled::Labelled;
use super::metric::Metric;
use super::values::LabelValues;
use crate::family::{Entry, NoMemory};
use crate::page::{Format, Page, label_value};

/// A part is handed out when it has so many bytes.
const ENOUGH: usize = 4096;

/// A metric whose series go onto pages, whatever its type.
pub(super) trait Collect: Send + Sync {
    fn described(&self) -> &Described;

    /// Its series as of now.
    fn collect(&self) -> Result<Box<dyn Series>, NoMemory>;
}

/// The series of a metric.
pub(super) trait Series: Send {
    fn is_empty(&self) -> bool;

    /// Writes the next one, and returns how many values it could not record; `None` behind the last.
    fn write(
        &mut self,
        page: &mut Page<'_, Buffer>,
        labels: &mut String,
    ) -> io::Result<Option<u64>>;
}

struct Collected<M> {
    described: Arc<Described>,
    series: vec::IntoIter<Arc<Entry<LabelValues, M>>>,
}

impl<M: Metric> Collect for Labelled<M> {
    fn described(&self) -> &Described {
        Labelled::described(self)
    }

    fn collect(&self) -> Result<Box<dyn Series>, NoMemory> {
        let described = Arc::clone(Labelled::described(self));
        Ok(Box::new(Collected { described, series: self.sorted()?.into_iter() }))
    }
}

impl<M: Metric> Series for Collected<M> {
    fn is_empty(&self) -> bool {
        self.series.as_slice().is_empty()
    }

    fn write(
        &mut self,
        page: &mut Page<'_, Buffer>,
        labels: &mut String,
    ) -> io::Result<Option<u64>> {
        let Some(entry) = self.series.next() else { return Ok(None) };
        write_labels(labels, &self.described, entry.labels())?;
        entry.metric().write(page, &self.described.name, labels).map(Some)
    }
}

/// Labels as they are written.
fn write_labels(text: &mut String, described: &Described, values: &LabelValues) -> io::Result<()> {
    text.clear();
    // Each character of a value may become two; a comma, an equals sign and two quotes.
    let names: usize = described.labels.iter().map(|name| name.len() + 4).sum();
    let bytes = described.constant.len() + names + 2 * values.bytes();
    text.try_reserve(bytes).map_err(|_| ErrorKind::OutOfMemory)?;
    text.push_str(&described.constant);
    for (name, value) in described.labels.iter().zip(values.iter()) {
        let comma = if text.is_empty() { "" } else { "," };
        // A string takes everything.
        let _ = write!(text, "{comma}{name}=\"{}\"", label_value(value));
    }
    Ok(())
}

/// A page of a [`Registry`](crate::Registry), made part by part.
///
/// Metrics come by name, and the series of each by the values of their labels. The list of a metric's series is
/// made when its turn comes; each value is read when it is written. Nothing stops meanwhile, and no lock
/// is held between two parts, so that one may take as long as one likes over each.
pub struct Parts {
    format: Format,
    metrics: vec::IntoIter<Arc<dyn Collect>>,
    now: Option<Box<dyn Series>>,
    unrecorded: u64,
    is_over: bool,
    buffer: Buffer,
    labels: String,
}

impl Parts {
    pub(super) fn new(format: Format, metrics: Vec<Arc<dyn Collect>>) -> Parts {
        Parts {
            format,
            metrics: metrics.into_iter(),
            now: None,
            unrecorded: 0,
            is_over: false,
            buffer: Buffer(Vec::new()),
            labels: String::new(),
        }
    }

    /// The next part: UTF-8, of whole lines, mostly of a few KiB. `None` behind the last.
    ///
    /// # Errors
    ///
    /// There is no memory. The page is not whole then.
    #[expect(clippy::should_implement_trait, reason = "a part is lent")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, NoMemory> {
        self.buffer.0.clear();
        while !self.is_over && self.buffer.0.len() < ENOUGH {
            // Nothing else can go wrong with memory.
            self.step().map_err(|_| NoMemory)?;
        }
        Ok(Some(&*self.buffer.0).filter(|part| !part.is_empty()))
    }

    /// Writes one thing: a series, what stands in front of a metric's series, or the end.
    fn step(&mut self) -> io::Result<()> {
        let mut page = Page::new(&mut self.buffer, self.format);
        if let Some(series) = &mut self.now {
            match series.write(&mut page, &mut self.labels)? {
                Some(unrecorded) => self.unrecorded += unrecorded,
                None => self.now = None,
            }
            return Ok(());
        }
        let Some(metric) = self.metrics.next() else {
            self.is_over = true;
            if self.unrecorded > 0 {
                let lost = self.unrecorded;
                page.comment(&format!("{lost} values were not recorded: there was no memory"))?;
            }
            return page.end();
        };
        let series = metric.collect().map_err(|NoMemory| ErrorKind::OutOfMemory)?;
        if series.is_empty() {
            return Ok(());
        }
        let described = metric.described();
        let (help, unit) = (described.help.as_deref(), described.unit.as_deref());
        page.family(&described.name, described.kind, help, unit)?;
        self.now = Some(series);
        Ok(())
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("format", &self.format).finish_non_exhaustive()
    }
}

/// Bytes, as long as there is memory for them.
pub(super) struct Buffer(Vec<u8>);

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
