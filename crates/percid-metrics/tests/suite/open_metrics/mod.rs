//! Pages conform to OpenMetrics 1.0, for any names and values.
#![cfg(feature = "recorder")]

mod check;

use check::check;
use metrics::{
    Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use percid_metrics::{
    Counter, Description, FloatCounter, Format, Gauge, Histogram, Matcher, PrometheusBuilder,
    Registry,
};
use proptest::prelude::*;

const BROKEN: &str = include_str!("broken.txt");

/// Negative control: the check finds each broken rule, and returns it.
#[test]
fn every_broken_rule_is_found() {
    let mut rules = 0;
    for rule in BROKEN.split("\n== ").skip(1) {
        let (title, rest) = rule.split_once('\n').expect("a title");
        let (page, says) = rest.split_once("-- ").expect("what must be said");
        let page = page.replace('␍', "\r");
        let says = says.trim_end().replace('␍', "\r");
        assert_eq!(check(&page), Err(says), "{title}");
        rules += 1;
    }
    assert_eq!(rules, 33);
}

#[test]
fn what_the_specification_shows_is_accepted() {
    for page in [
        "# EOF\n",
        "# TYPE a gauge\n# EOF",
        "# TYPE foo_seconds counter\n# UNIT foo_seconds seconds\n# HELP foo_seconds b \\n \\\" c\nfoo_seconds_total{a=\"x\",b=\"\\\\ \\\" \\n \"} 17.0\n# EOF\n",
        "# TYPE a histogram\na_bucket{le=\"0.0\"} 0\na_bucket{le=\"1e-05\"} 0\na_bucket{le=\"0.1\"} 8\na_bucket{le=\"1e+06\"} 8\na_bucket{le=\"+Inf\"} 17\na_count 17\na_sum 324789.3\n# EOF\n",
        "# TYPE a summary\na{quantile=\"0.95\"} NaN\na_count 17\n# EOF\n",
        "# TYPE a gauge\na NaN\n# TYPE b gauge\nb -Inf\n# EOF\n",
    ] {
        assert_eq!(check(page), Ok(()), "{page}");
    }
}

/// Names that collide, and others.
fn name() -> impl Strategy<Value = String> {
    let end = prop_oneof![
        Just(""),
        Just("_total"),
        Just("_sum"),
        Just("_count"),
        Just("_bucket"),
        Just("_seconds"),
        Just("_seconds_total"),
    ];
    let begin = prop_oneof![Just("a".to_owned()), Just("b".to_owned()), ".{0,4}"];
    (begin, end).prop_map(|(begin, end)| format!("{begin}{end}"))
}

fn labels() -> impl Strategy<Value = Vec<Label>> {
    let key = prop_oneof![
        Just("le".to_owned()),
        Just("__name__".to_owned()),
        Just("c".to_owned()),
        ".{0,3}"
    ];
    let label = (key, ".{0,5}").prop_map(|(key, value)| Label::new(key, value));
    prop::collection::vec(label, 0..3)
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-1.0),
        Just(0.0),
        any::<f64>(),
        0.0..1e7,
    ]
}

proptest! {
    #[test]
    fn every_page_of_a_recorder_is_right(
        metrics in prop::collection::vec((0..4, name(), labels(), value()), 0..20),
        limits in prop::collection::btree_set(-1000i32..1000, 1..4),
        quantiles in prop::collection::vec(0.0..=1.0, 1..3),
        unit_suffix: bool,
    ) {
        let limits: Vec<f64> = limits.into_iter().map(|limit| f64::from(limit) / 16.0).collect();
        let recorder = PrometheusBuilder::new()
            .set_quantiles(&quantiles).expect("quantiles")
            .set_buckets_for_metric(Matcher::Prefix("b".to_owned()), &limits).expect("limits")
            .set_enable_unit_suffix(unit_suffix)
            .build_recorder();
        with_local_recorder(&recorder, || {
            for (kind, name, labels, value) in metrics {
                match kind {
                    0 => counter!(name, labels).increment(3),
                    1 => gauge!(name, labels).set(value),
                    2 => histogram!(name, labels).record(value),
                    _ => {
                        describe_counter!(name.clone(), Unit::Seconds, "a \"b\" \\ \n c");
                        describe_gauge!(name.clone(), Unit::Bytes, "");
                        describe_histogram!(name, Unit::Seconds, "x");
                    }
                }
            }
        });
        let mut page = Vec::new();
        recorder.handle().render_as(Format::OpenMetrics, &mut page).expect("a vector takes everything");
        let page = String::from_utf8(page).expect("text");
        prop_assert_eq!(check(&page), Ok(()), "{}", page);
    }

    #[test]
    fn every_page_of_a_registry_is_right(
        metrics in prop::collection::vec((0..4, name(), ".{0,5}", value(), any::<bool>()), 0..20),
        limits in prop::collection::btree_set(-1000i32..1000, 1..4),
    ) {
        let registry = Registry::new();
        for (kind, name, label, value, has_unit) in metrics {
            let mut description = Description::new(name).help(&*label).labels(["c"]);
            if has_unit {
                description = description.unit("seconds");
            }
            // Refused metrics are not on the page.
            match kind {
                0 => _ = registry.register::<Counter>(description).map(|it| it.get([&label]).map(Counter::inc)),
                1 => _ = registry.register::<Gauge>(description).map(|it| it.get([&label]).map(|it| it.set(value))),
                2 => _ = registry.register::<FloatCounter>(description).map(|it| it.get([&label]).map(|it| it.inc_by(value))),
                _ => {
                    let limits = limits.iter().map(|limit| f64::from(*limit) / 16.0);
                    let metric = registry.register::<Histogram>(description.buckets(limits));
                    _ = metric.map(|it| it.get([&label]).map(|it| it.observe(value)));
                }
            }
        }
        let page = registry.render(Format::OpenMetrics);
        prop_assert_eq!(check(&page), Ok(()), "{}", page);
    }
}
