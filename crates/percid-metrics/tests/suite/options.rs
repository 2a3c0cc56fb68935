//! Every option of the builder with every kind of metric and every description: the page matches
//! the declarations.
#![cfg(feature = "recorder")]

use std::collections::HashMap;
use std::time::Duration;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use metrics_util::MetricKindMask;
use percid_metrics::{Format, Matcher, PrometheusBuilder, PrometheusRecorder};

/// The units of the facade, and the name of each at the end of a metric's name.
const UNITS: [(Option<Unit>, &str); 18] = [
    (None, ""),
    (Some(Unit::Count), ""),
    (Some(Unit::Percent), "ratio"),
    (Some(Unit::Seconds), "seconds"),
    (Some(Unit::Milliseconds), "milliseconds"),
    (Some(Unit::Microseconds), "microseconds"),
    (Some(Unit::Nanoseconds), "nanoseconds"),
    (Some(Unit::Tebibytes), "tebibytes"),
    (Some(Unit::Gibibytes), "gibibytes"),
    (Some(Unit::Mebibytes), "mebibytes"),
    (Some(Unit::Kibibytes), "kibibytes"),
    (Some(Unit::Bytes), "bytes"),
    (Some(Unit::TerabitsPerSecond), "terabits_per_second"),
    (Some(Unit::GigabitsPerSecond), "gigabits_per_second"),
    (Some(Unit::MegabitsPerSecond), "megabits_per_second"),
    (Some(Unit::KilobitsPerSecond), "kilobits_per_second"),
    (Some(Unit::BitsPerSecond), "bits_per_second"),
    (Some(Unit::CountPerSecond), "count_per_second"),
];

const KINDS: [&str; 4] = ["counter", "counter_total", "gauge", "histogram"];

/// The settings of a builder.
#[derive(Debug, Clone, Copy)]
struct Options {
    unit_suffix: bool,
    label: bool,
    buckets: Buckets,
    idle: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Buckets {
    Summaries,
    ForAll,
    ByName,
}

impl Options {
    fn all() -> impl Iterator<Item = Options> {
        let buckets = [Buckets::Summaries, Buckets::ForAll, Buckets::ByName];
        (0..24).map(move |n| Options {
            unit_suffix: n & 1 > 0,
            label: n & 2 > 0,
            idle: n & 4 > 0,
            buckets: buckets[n / 8],
        })
    }

    fn recorder(self) -> PrometheusRecorder {
        let mut builder = PrometheusBuilder::new().set_enable_unit_suffix(self.unit_suffix);
        builder = builder.set_quantiles(&[0.25]).expect("a quantile");
        if self.label {
            builder = builder.add_global_label("zo.ne", "a");
        }
        builder = match self.buckets {
            Buckets::Summaries => builder,
            Buckets::ForAll => builder.set_buckets(&[0.5]).expect("limits"),
            Buckets::ByName => {
                let matcher = Matcher::Prefix("histogram".to_owned());
                builder.set_buckets_for_metric(matcher, &[0.5]).expect("limits")
            }
        };
        if self.idle {
            builder = builder.idle_timeout(MetricKindMask::ALL, Some(Duration::from_secs(1 << 30)));
        }
        builder.build_recorder()
    }
}

/// A declared metric, with the index of its unit.
#[derive(Debug, Clone, Copy)]
struct Declared {
    kind: &'static str,
    unit: usize,
    is_described: bool,
    /// `true` if the name contains the unit already.
    ends_in_unit: bool,
}

impl Declared {
    fn all() -> impl Iterator<Item = Declared> {
        let units = 0..UNITS.len();
        let each = units.flat_map(|unit| KINDS.map(|kind| (unit, kind)));
        each.flat_map(|(unit, kind)| {
            [(true, false), (true, true), (false, false)].map(|(is_described, ends_in_unit)| {
                Declared { kind, unit, is_described, ends_in_unit }
            })
        })
        .filter(|it| !it.ends_in_unit || !UNITS[it.unit].1.is_empty())
    }

    /// Returns the name without `_total`, as on the page before a unit is appended.
    fn stem(&self, dot: char) -> String {
        let Declared { kind, unit, is_described, ends_in_unit } = self;
        let kind = kind.trim_end_matches("_total").to_owned() + &kind.len().to_string();
        // `own` distinguishes it from the name that gets this one by its suffix.
        let end =
            if *ends_in_unit { format!("{dot}own{dot}{}", UNITS[*unit].1) } else { String::new() };
        format!("{kind}{dot}x{unit}{}{end}", if *is_described { "d" } else { "" })
    }

    fn declared_name(&self) -> String {
        let total = if self.kind == "counter_total" { "_total" } else { "" };
        self.stem('.') + total
    }

    /// Returns the description's text. It needs escaping, and differs for each metric.
    fn text(&self) -> String {
        format!("say \\ of\n{}", self.declared_name())
    }

    fn describe(&self) {
        if !self.is_described {
            return;
        }
        let (name, text) = (self.declared_name(), self.text());
        match (self.kind, UNITS[self.unit].0) {
            ("gauge", Some(unit)) => describe_gauge!(name, unit, text),
            ("gauge", None) => describe_gauge!(name, text),
            ("histogram", Some(unit)) => describe_histogram!(name, unit, text),
            ("histogram", None) => describe_histogram!(name, text),
            (_, Some(unit)) => describe_counter!(name, unit, text),
            (_, None) => describe_counter!(name, text),
        }
    }

    fn record(&self) {
        let name = self.declared_name();
        match self.kind {
            "gauge" => gauge!(name).set(0.25),
            "histogram" => histogram!(name).record(0.25),
            _ => counter!(name).increment(7),
        }
    }

    /// Returns the expected lines of the page.
    fn lines(&self, options: Options, format: Format) -> Vec<String> {
        let unit = UNITS[self.unit].1;
        let mut family = self.stem('_');
        let has_suffix = options.unit_suffix && self.is_described && !self.ends_in_unit;
        if has_suffix && !unit.is_empty() {
            family = format!("{family}_{unit}");
        }
        let total = if self.kind == "counter_total" { "_total" } else { "" };
        let is_open = format == Format::OpenMetrics;
        // OpenMetrics names the family of a counter without `_total`, which all its samples have.
        let (head, sample) = match self.kind {
            "counter" if is_open => (family.clone(), format!("{family}_total")),
            "counter_total" if is_open => (family.clone(), format!("{family}_total")),
            _ => (format!("{family}{total}"), format!("{family}{total}")),
        };
        let kind = match (self.kind, options.buckets) {
            ("histogram", Buckets::Summaries) => "summary",
            ("histogram", _) => "histogram",
            ("gauge", _) => "gauge",
            _ => "counter",
        };
        let mut lines = vec![format!("# TYPE {head} {kind}")];
        if self.is_described {
            let text = format!("say \\\\ of\\n{}", self.declared_name());
            lines.push(format!("# HELP {head} {text}"));
            if is_open && (self.ends_in_unit || options.unit_suffix) && !unit.is_empty() {
                lines.push(format!("# UNIT {head} {unit}"));
            }
        }
        let label = if options.label { "{zo_ne=\"a\"}" } else { "" };
        lines.push(match (self.kind, options.buckets) {
            ("gauge", _) => format!("{sample}{label} 0.25"),
            ("histogram", Buckets::Summaries) => format!("{sample}_count{label} 1"),
            ("histogram", _) => {
                let first = if options.label { "zo_ne=\"a\"," } else { "" };
                format!("{sample}_bucket{{{first}le=\"0.5\"}} 1")
            }
            _ => format!("{sample}{label} 7"),
        });
        lines
    }
}

fn page(recorder: &PrometheusRecorder, format: Format) -> String {
    let mut page = Vec::new();
    recorder.handle().render_as(format, &mut page).expect("a vector takes everything");
    String::from_utf8(page).expect("text")
}

#[test]
fn the_page_says_what_was_declared() {
    for options in Options::all() {
        for described_first in [true, false] {
            let recorder = options.recorder();
            with_local_recorder(&recorder, || {
                for metric in Declared::all() {
                    if described_first {
                        metric.describe();
                    }
                    metric.record();
                    if !described_first {
                        metric.describe();
                    }
                }
            });
            for format in [Format::Text, Format::OpenMetrics] {
                let page = page(&recorder, format);
                let mut there = HashMap::<&str, usize>::new();
                page.lines().for_each(|line| *there.entry(line).or_default() += 1);
                for metric in Declared::all() {
                    for line in metric.lines(options, format) {
                        let times = there.remove(&*line);
                        assert_eq!(times, Some(1), "{options:?}, {format:?}, {metric:?}: {line}");
                    }
                }
                let eof = (format == Format::OpenMetrics).then_some("# EOF");
                let left: Vec<&str> = there.into_keys().filter(|it| it.starts_with("# ")).collect();
                assert_eq!(
                    left,
                    Vec::from_iter(eof),
                    "{options:?}, {format:?}: nothing else is said"
                );
            }
        }
    }
}

/// Two names that become the same one: the description of the name that is on the page is used.
#[test]
fn a_description_by_the_name_on_the_page_comes_first() {
    let recorder = PrometheusBuilder::new().set_enable_unit_suffix(true).build_recorder();
    with_local_recorder(&recorder, || {
        for name in ["read", "read_bytes", "sent"] {
            describe_counter!(name, Unit::Bytes, format!("by {name}"));
            counter!(name).increment(1);
        }
        describe_counter!("sent_bytes", Unit::Bytes, "never used");
    });
    let page = page(&recorder, Format::Text);
    assert!(page.contains("# HELP read_bytes by read_bytes\n"), "{page}");
    assert!(page.contains("\nread_bytes 2\n"), "{page}");
    assert!(page.contains("# HELP sent_bytes by sent\n"), "{page}");
}
