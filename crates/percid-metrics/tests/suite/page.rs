//! The page that a recorder writes.
#![cfg(feature = "recorder")]

use std::io;

use metrics::{
    Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use percid_metrics::{Format, Matcher, PrometheusBuilder, PrometheusRecorder};

fn page(recorder: &PrometheusRecorder, format: Format) -> String {
    let mut page = Vec::new();
    recorder.handle().render_as(format, &mut page).expect("a vector takes everything");
    String::from_utf8(page).expect("text")
}

fn recorded() -> PrometheusRecorder {
    let builder = PrometheusBuilder::new().set_quantiles(&[0.5, 1.0]).expect("quantiles");
    let sizes = Matcher::Suffix("_bytes".to_owned());
    let builder = builder.set_buckets_for_metric(sizes, &[1e3, 1e6]).expect("limits");
    let recorder = builder.add_global_label("zone", "a").build_recorder();
    with_local_recorder(&recorder, || {
        describe_counter!("requests_total", Unit::Count, "All \"requests\"\nof \\ all");
        describe_gauge!("temperature_seconds", Unit::Seconds, "warm");
        describe_histogram!("sizes_bytes", Unit::Bytes, "sizes");
        counter!("requests_total", "code" => "200").increment(3);
        counter!("requests_total", "code" => "200").absolute(5);
        counter!("requests_total", "code" => "200").absolute(4);
        counter!("requests_total", "code" => "404", "zone" => "b").increment(1);
        gauge!("temperature_seconds").set(0.1);
        gauge!("in.flight").increment(2.0);
        gauge!("in.flight").decrement(5.0);
        for size in [10.0, 1e3, 5e5, 1e9] {
            histogram!("sizes_bytes").record(size);
        }
        histogram!("latency").record_many(2.0, 3);
    });
    recorder
}

#[test]
fn the_text_format() {
    let expected = r#"# TYPE in_flight gauge
in_flight{zone="a"} -3
# TYPE latency summary
latency{zone="a",quantile="0.5"} MIDDLE
latency{zone="a",quantile="1"} MIDDLE
latency_sum{zone="a"} 6
latency_count{zone="a"} 3
# HELP requests_total All "requests"\nof \\ all
# TYPE requests_total counter
requests_total{code="200",zone="a"} 5
requests_total{code="404",zone="b"} 1
# HELP sizes_bytes sizes
# TYPE sizes_bytes histogram
sizes_bytes_bucket{zone="a",le="1000"} 2
sizes_bytes_bucket{zone="a",le="1000000"} 3
sizes_bytes_bucket{zone="a",le="+Inf"} 4
sizes_bytes_sum{zone="a"} 1000501010
sizes_bytes_count{zone="a"} 4
# HELP temperature_seconds warm
# TYPE temperature_seconds gauge
temperature_seconds{zone="a"} 0.1
"#;
    // The middle of the bucket of 2. Its last digit depends on the system's logarithms.
    let page = page(&recorded(), Format::Text);
    let page = page.replace("1.9152065613971472", "MIDDLE").replace("1.9152065613971474", "MIDDLE");
    assert_eq!(page, expected);
}

#[test]
fn the_open_metrics_format() {
    let page = page(&recorded(), Format::OpenMetrics);
    assert!(
        page.contains(
            "# TYPE requests counter\n# HELP requests All \\\"requests\\\"\\nof \\\\ all\n"
        )
    );
    assert!(page.contains("requests_total{code=\"200\",zone=\"a\"} 5\n"));
    assert!(page.contains("# TYPE sizes_bytes histogram\n# UNIT sizes_bytes bytes\n"));
    assert!(page.contains("sizes_bytes_bucket{zone=\"a\",le=\"1e+06\"} 3\n"), "{page}");
    assert!(page.contains("latency{zone=\"a\",quantile=\"1.0\"} "), "{page}");
    assert!(page.contains("# UNIT temperature_seconds seconds\n"));
    assert!(page.ends_with("\n# EOF\n"));
}

/// Fails at one of its writes.
struct Fails(usize);

impl io::Write for Fails {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn wherever_a_writer_fails_its_error_is_returned() {
    let (recorder, handle) = (recorded(), recorded().handle());
    assert_eq!(handle.render(), page(&recorder, Format::Text));
    for format in [Format::Text, Format::OpenMetrics] {
        let write = |writes| handle.render_as(format, &mut Fails(writes));
        let failing = (0..).map_while(|writes| write(writes).err());
        let kinds: Vec<_> = failing.take(10_000).map(|error| error.kind()).collect();
        assert!((100..10_000).contains(&kinds.len()), "{format:?}: {}", kinds.len());
        assert!(kinds.iter().all(|kind| *kind == io::ErrorKind::StorageFull), "{format:?}");
    }
}

/// Returns `true` if the line is a comment, or a sample followed by a number.
fn is_well_formed(line: &str) -> bool {
    if line.starts_with("# ") {
        return true;
    }
    let name_end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    let Some(name_end) = name_end.filter(|&end| end > 0) else { return false };
    let rest = &line[name_end..];
    let value = match rest.strip_prefix('{') {
        Some(labels) => {
            let (mut quoted, mut escaped, mut end) = (false, false, None);
            for (place, char) in labels.char_indices() {
                match char {
                    _ if escaped => escaped = false,
                    '\\' if quoted => escaped = true,
                    '"' => quoted = !quoted,
                    '}' if !quoted => {
                        end = Some(place);
                        break;
                    }
                    _ => {}
                }
            }
            end.map_or("", |end| &labels[end + 1..])
        }
        None => rest,
    };
    value.strip_prefix(' ').is_some_and(|value| value.parse::<f64>().is_ok())
}

#[test]
fn a_line_that_is_wrong_is_found() {
    for bad in ["", "a", "a{b=\"c\" 1", "a{b=\"c\\\"} 1", "5 1x", "a{b=\"}\"} x"] {
        assert!(!is_well_formed(bad), "{bad}");
    }
    assert!(is_well_formed("a{b=\"}\\\"\"} 1"));
}

#[test]
fn nothing_hostile_breaks_the_page() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let hostile = ["a\"} 1\nb 2\n", "\\", "\\\"", "\n# EOF\n", "{}", "", "\u{0}\u{7f}é", "le", "5"];
    with_local_recorder(&recorder, || {
        for (number, text) in hostile.into_iter().enumerate() {
            let labels = vec![Label::new(text, text), Label::new("quantile", text)];
            counter!(format!("c{text}"), labels.clone()).increment(1);
            gauge!(format!("g{text}"), labels.clone()).set(number as f64);
            histogram!(format!("h{text}"), labels).record(f64::NAN);
            describe_counter!(format!("c{text}"), text);
        }
    });
    for format in [Format::Text, Format::OpenMetrics] {
        let page = page(&recorder, format);
        for line in page.lines() {
            assert!(is_well_formed(line), "{line:?}");
        }
        assert_eq!(
            page.matches("# EOF").count(),
            usize::from(format == Format::OpenMetrics) + page.matches("\\n# EOF").count()
        );
    }
}

#[test]
fn names_that_become_the_same_are_added_up_or_left_out() {
    let recorder = PrometheusBuilder::new().build_recorder();
    with_local_recorder(&recorder, || {
        counter!("a.b").increment(1);
        counter!("a_b").increment(2);
        gauge!("a-b").set(7.0);
        gauge!("g.g").set(1.0);
        gauge!("g_g").set(1.0);
    });
    let page = page(&recorder, Format::Text);
    assert_eq!(page.matches("# TYPE").count(), 3);
    assert!(page.contains("a_b 3\n") && page.contains("g_g 1\n"), "{page}");
    assert!(page.ends_with("\npercid_metrics_dropped 2\n"), "{page}");
}

#[test]
fn units_are_appended_where_that_is_asked_for() {
    let recorder = PrometheusBuilder::new().set_enable_unit_suffix(true).build_recorder();
    with_local_recorder(&recorder, || {
        describe_counter!("read_total", Unit::Bytes, "");
        describe_gauge!("age_seconds", Unit::Seconds, "");
        counter!("read_total").increment(1);
        gauge!("age_seconds").set(1.0);
    });
    let page = page(&recorder, Format::Text);
    assert!(
        page.contains("\nread_bytes_total 1\n") && page.contains("\nage_seconds 1\n"),
        "{page}"
    );
}
