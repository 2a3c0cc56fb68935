//! The text formats: Prometheus' (version 0.0.4) and OpenMetrics' (1.0).
//!
//! Sources: the Prometheus documentation, *Exposition formats*, and the OpenMetrics specification.
//! The page is written to its destination directly, so it takes no memory of its own.

mod escape;
mod format;
mod names;
mod number;

use std::fmt;
use std::io::{self, Write};

pub(crate) use escape::{help, label_value};
pub use format::Format;
pub(crate) use names::{is_label_name, is_metric_name};
#[cfg(feature = "recorder")]
pub(crate) use names::{label_name, metric_name};
use number::canonical;
pub(crate) use number::number;

use crate::histogram::Snapshot;

/// The kind of a family's metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    #[cfg(feature = "recorder")]
    Summary,
    /// A counter that cannot have its type, because another metric has its name without `_total`.
    #[cfg(feature = "recorder")]
    Unknown,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            #[cfg(feature = "recorder")]
            Kind::Summary => "summary",
            #[cfg(feature = "recorder")]
            Kind::Unknown => "unknown",
        }
    }
}

/// A page that is being written.
pub(crate) struct PageWriter<'w, W> {
    out: &'w mut W,
    format: Format,
}

impl<'w, W: Write> PageWriter<'w, W> {
    pub(crate) fn new(out: &'w mut W, format: Format) -> PageWriter<'w, W> {
        PageWriter { out, format }
    }

    /// Begins a family of metrics. `unit` is the last part of its name.
    pub(crate) fn family(
        &mut self,
        name: &str,
        kind: Kind,
        text: Option<&str>,
        unit: Option<&str>,
    ) -> io::Result<()> {
        let name = self.family_name(name, kind);
        if self.format == Format::OpenMetrics {
            return self.open_metrics_family(name, kind, text, unit);
        }
        self.help(name, text)?;
        writeln!(self.out, "# TYPE {name} {}", kind.name())
    }

    fn open_metrics_family(
        &mut self,
        name: &str,
        kind: Kind,
        text: Option<&str>,
        unit: Option<&str>,
    ) -> io::Result<()> {
        writeln!(self.out, "# TYPE {name} {}", kind.name())?;
        let is_last = |unit: &&str| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_'));
        if let Some(unit) = unit.filter(is_last) {
            writeln!(self.out, "# UNIT {name} {unit}")?;
        }
        self.help(name, text)
    }

    fn help(&mut self, name: &str, text: Option<&str>) -> io::Result<()> {
        let Some(text) = text else { return Ok(()) };
        writeln!(self.out, "# HELP {name} {}", help(text, self.format))
    }

    /// Returns the family's name in this format: without `_total` for counters in OpenMetrics.
    fn family_name<'n>(&self, name: &'n str, kind: Kind) -> &'n str {
        match (self.format, kind) {
            (Format::OpenMetrics, Kind::Counter) => without_total(name),
            _ => name,
        }
    }

    /// Writes a sample of a counter.
    pub(crate) fn counter(&mut self, name: &str, labels: &str, value: u64) -> io::Result<()> {
        self.total(name, labels, value)
    }

    /// Writes a sample of a counter of floats.
    pub(crate) fn float_counter(&mut self, name: &str, labels: &str, value: f64) -> io::Result<()> {
        self.total(name, labels, number(value))
    }

    fn total(&mut self, name: &str, labels: &str, value: impl fmt::Display) -> io::Result<()> {
        let name = self.family_name(name, Kind::Counter);
        let total = if self.format == Format::OpenMetrics { "_total" } else { "" };
        writeln!(self.out, "{name}{total}{} {value}", self.braces(labels, None))
    }

    /// Returns labels in braces. `last` is one more label, whose value is a number.
    fn braces<'a>(&self, labels: &'a str, last: Option<(&'a str, f64)>) -> Braces<'a> {
        Braces { labels, last, format: self.format }
    }

    /// Writes a sample that is a float. `suffix` belongs to the name; `last` is one more label.
    pub(crate) fn sample(
        &mut self,
        (name, suffix): (&str, &str),
        labels: &str,
        last: Option<(&str, f64)>,
        value: f64,
    ) -> io::Result<()> {
        writeln!(self.out, "{name}{suffix}{} {}", self.braces(labels, last), number(value))
    }

    /// Writes a sample that is a number of events.
    pub(crate) fn count(
        &mut self,
        (name, suffix): (&str, &str),
        labels: &str,
        last: Option<(&str, f64)>,
        value: u64,
    ) -> io::Result<()> {
        writeln!(self.out, "{name}{suffix}{} {value}", self.braces(labels, last))
    }

    /// Writes the number of values that were not recorded because there was no memory, if any.
    pub(crate) fn unrecorded(&mut self, values: u64) -> io::Result<()> {
        if values == 0 {
            return Ok(());
        }
        let text = "Values that were not recorded: there was no memory";
        self.family("percid_unrecorded_values_total", Kind::Counter, Some(text), None)?;
        self.counter("percid_unrecorded_values_total", "", values)
    }

    /// Writes the number of metrics that are not on the page, if any.
    #[cfg(feature = "recorder")]
    pub(crate) fn left_out(&mut self, metrics: usize) -> io::Result<()> {
        if metrics == 0 {
            return Ok(());
        }
        let text = "Metrics that are left out: their names and labels are those of others";
        self.family("percid_metrics_dropped", Kind::Gauge, Some(text), None)?;
        self.count(("percid_metrics_dropped", ""), "", None, metrics as u64)
    }

    /// Writes a classic histogram.
    pub(crate) fn histogram(&mut self, name: &str, labels: &str, all: &Snapshot) -> io::Result<()> {
        let mut smallest = f64::INFINITY;
        for (limit, count) in all.cumulative() {
            smallest = smallest.min(limit);
            self.count((name, "_bucket"), labels, Some(("le", limit)), count)?;
        }
        // With negative limits, a sum is not a counter, even while it grows. There is a count if
        // and only if there is a sum.
        if self.takes(all.sum) && self.takes(smallest) {
            self.sample((name, "_sum"), labels, None, all.sum)?;
            self.count((name, "_count"), labels, None, all.count)?;
        }
        Ok(())
    }

    /// Returns `true` if a sum or a quantile may be on the page. OpenMetrics allows neither
    /// negative values nor a NaN sum.
    pub(crate) fn takes(&self, sum: f64) -> bool {
        self.format == Format::Text || sum >= 0.0
    }

    pub(crate) fn end(self) -> io::Result<()> {
        match self.format {
            Format::Text => Ok(()),
            Format::OpenMetrics => writeln!(self.out, "# EOF"),
        }
    }
}

/// Returns the name of a counter without the `_total` of Prometheus' format.
pub(crate) fn without_total(name: &str) -> &str {
    name.strip_suffix("_total").filter(|rest| !rest.is_empty()).unwrap_or(name)
}

/// Labels as they are written, and one more whose value is a number.
struct Braces<'a> {
    labels: &'a str,
    last: Option<(&'a str, f64)>,
    format: Format,
}

impl fmt::Display for Braces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.labels;
        let Some((name, value)) = self.last else {
            return if labels.is_empty() { Ok(()) } else { write!(f, "{{{labels}}}") };
        };
        let comma = if labels.is_empty() { "" } else { "," };
        match self.format {
            Format::Text => write!(f, "{{{labels}{comma}{name}=\"{}\"}}", number(value)),
            Format::OpenMetrics => write!(f, "{{{labels}{comma}{name}=\"{}\"}}", canonical(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the output of `write`. Checks the errors when the writer fails at one of its writes.
    fn written(
        format: Format,
        write: impl Fn(&mut PageWriter<'_, Limited>) -> io::Result<()>,
    ) -> String {
        let with = |left| {
            let mut out = Limited { left, text: Vec::new() };
            write(&mut PageWriter::new(&mut out, format)).map(|()| out.text)
        };
        let failing = (0..1000).map_while(|left| with(left).err());
        assert!(failing.map(|error| error.kind()).all(|it| it == io::ErrorKind::StorageFull));
        String::from_utf8(with(1000).expect("no limit")).expect("text")
    }

    /// A writer that fails after a number of writes.
    struct Limited {
        left: usize,
        text: Vec<u8>,
    }

    impl Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            self.text.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_not_on_the_page_is_told_there() {
        let text = "# HELP percid_unrecorded_values_total Values that were not recorded: there was no memory
# TYPE percid_unrecorded_values_total counter
percid_unrecorded_values_total 3
";
        let open = "# TYPE percid_unrecorded_values counter
# HELP percid_unrecorded_values Values that were not recorded: there was no memory
percid_unrecorded_values_total 3
";
        for (format, expected) in [(Format::Text, text), (Format::OpenMetrics, open)] {
            assert_eq!(written(format, |page| page.unrecorded(0)), "");
            assert_eq!(written(format, |page| page.unrecorded(3)), expected);
        }
        #[cfg(feature = "recorder")]
        {
            let expected = "# HELP percid_metrics_dropped Metrics that are left out: their names and \
                labels are those of others\n# TYPE percid_metrics_dropped gauge\n\
                percid_metrics_dropped 2\n";
            assert_eq!(written(Format::Text, |page| page.left_out(0)), "");
            assert_eq!(written(Format::Text, |page| page.left_out(2)), expected);
        }
    }

    /// With negative limits or a negative sum, OpenMetrics has neither sum nor count.
    #[test]
    fn a_histogram_has_a_sum_where_the_format_has_one() {
        let of =
            |limit, sum| Snapshot { count: 3, sum, buckets: vec![(limit, 1), (f64::INFINITY, 2)] };
        for (limit, sum, has_sum) in [
            (0.0, 0.0, true),
            (0.5, 7.0, true),
            (-0.5, 7.0, false),
            (0.5, -1.0, false),
            (0.5, f64::NAN, false),
        ] {
            for format in [Format::Text, Format::OpenMetrics] {
                let is_open = format == Format::OpenMetrics;
                let page = written(format, |page| page.histogram("h", "a=\"b\"", &of(limit, sum)));
                let le: Box<dyn fmt::Display> =
                    if is_open { Box::new(canonical(limit)) } else { Box::new(number(limit)) };
                let mut expected = format!(
                    "h_bucket{{a=\"b\",le=\"{le}\"}} 1\nh_bucket{{a=\"b\",le=\"+Inf\"}} 3\n"
                );
                if has_sum || !is_open {
                    expected +=
                        &format!("h_sum{{a=\"b\"}} {}\nh_count{{a=\"b\"}} 3\n", number(sum));
                }
                assert_eq!(page, expected, "{limit} {sum} {format:?}");
            }
        }
    }
}
