//! The pages of a registry, without another crate's interface.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use percid_metrics::registry::{LabelError, RegisterError};
use percid_metrics::{
    Counter, Description, FloatCounter, Format, Gauge, Histogram, Labelled, Registry,
};

fn registered() -> Registry {
    let registry = Registry::new();
    let requests = Description::new("requests")
        .help("All \"requests\"\nof \\ all")
        .constant_label("zone", "a\"b")
        .constant_label("rack", "7")
        .labels(["method", "code"]);
    let requests = registry.register::<Counter>(requests).expect("it is new");
    requests.get(["GET", "404"]).expect("labels").inc_by(2);
    requests.get(["GET", "200"]).expect("labels").inc_by(u64::MAX);
    let busy = Description::new("busy").unit("seconds").help("Busy.");
    let busy = registry.register::<FloatCounter>(busy).expect("it is new");
    busy.get::<&str>([]).expect("labels").inc_by(0.25);
    let in_flight = registry.register::<Gauge>(Description::new("in_flight").labels(["of"]));
    in_flight.expect("it is new").get(["a\\\"} 1\nb"]).expect("labels").set(-1.5);
    let sizes = Description::new("size").unit("bytes").buckets([10.0, 1e6, f64::INFINITY]);
    let sizes = registry.register::<Histogram>(sizes).expect("it is new");
    [10.0, 11.0, 1e9].iter().for_each(|&it| sizes.get::<&str>([]).expect("labels").observe(it));
    registry.register::<Counter>(Description::new("unseen").labels(["a"])).expect("it is new");
    registry
}

#[test]
fn the_text_format() {
    let expected = r#"# HELP busy_seconds_total Busy.
# TYPE busy_seconds_total counter
busy_seconds_total 0.25
# TYPE in_flight gauge
in_flight{of="a\\\"} 1\nb"} -1.5
# HELP requests_total All "requests"\nof \\ all
# TYPE requests_total counter
requests_total{zone="a\"b",rack="7",method="GET",code="200"} 18446744073709551615
requests_total{zone="a\"b",rack="7",method="GET",code="404"} 2
# TYPE size_bytes histogram
size_bytes_bucket{le="10"} 1
size_bytes_bucket{le="1000000"} 2
size_bytes_bucket{le="+Inf"} 3
size_bytes_sum 1000000021
size_bytes_count 3
"#;
    assert_eq!(registered().render(Format::Text), expected);
}

#[test]
fn openmetrics() {
    let expected = r##"# TYPE busy_seconds counter
# UNIT busy_seconds seconds
# HELP busy_seconds Busy.
busy_seconds_total 0.25
# TYPE in_flight gauge
in_flight{of="a\\\"} 1\nb"} -1.5
# TYPE requests counter
# HELP requests All \"requests\"\nof \\ all
requests_total{zone="a\"b",rack="7",method="GET",code="200"} 18446744073709551615
requests_total{zone="a\"b",rack="7",method="GET",code="404"} 2
# TYPE size_bytes histogram
# UNIT size_bytes bytes
size_bytes_bucket{le="10.0"} 1
size_bytes_bucket{le="1e+06"} 2
size_bytes_bucket{le="+Inf"} 3
size_bytes_sum 1000000021
size_bytes_count 3
# EOF
"##;
    assert_eq!(registered().render(Format::OpenMetrics), expected);
}

#[test]
fn a_name_is_registered_once() {
    let registry = registered();
    let taken = |error| matches!(error, Err(RegisterError::NameTaken(_)));
    assert!(taken(registry.register::<Gauge>(Description::new("requests")).map(drop)));
    assert!(taken(registry.register::<Counter>(Description::new("size_bytes_sum")).map(drop)));
    assert!(registry.register::<Counter>(Description::new("size")).is_ok());
    assert!(registry.register::<Counter>(Description::new("5")).is_err());
}

/// Its only series is not beyond the limit.
#[test]
fn a_metric_without_labels_has_one_series_whatever_its_limit() {
    let registry = Registry::new();
    let counter = registry.register::<Counter>(Description::new("a").limit(0)).expect("it is new");
    counter.get::<&str>([]).expect("labels").inc();
    assert_eq!((counter.len(), counter.refused()), (1, 0));
    assert!(registry.render(Format::Text).ends_with("\na_total 1\n"));
}

#[test]
fn labels_are_as_many_as_names_and_utf8() {
    let registry = Registry::new();
    let counters = registry.register::<Counter>(Description::new("a").labels(["b", "c"]));
    let counters = counters.expect("it is new");
    for given in [&[][..], &["x"], &["x", "y", "z"]] {
        let wrong = LabelError::WrongNumber { expected: 2, given: given.len() };
        assert_eq!(counters.get(given).map(drop), Err(wrong));
    }
    let hostile: [&[u8]; 2] = [b"x", b"\xff"];
    assert_eq!(counters.get(hostile).map(drop), Err(LabelError::NotUtf8));
    assert!(counters.is_empty());
    // Without a comparison of the numbers of values, these would have the same bytes.
    counters.get(["x", "y"]).expect("labels").inc();
    let one: [&[u8]; 1] = [b"x\xffy"];
    assert!(counters.get(one).is_err());
    // Without a separator, these lists would have the same bytes.
    counters.get(["x", ""]).expect("labels").inc_by(1);
    counters.get(["", "x"]).expect("labels").inc_by(2);
    assert_eq!((counters.len(), counters.get(["x", ""]).map(Counter::get)), (3, Ok(1)));
}

/// Returns the sum of all samples of a counter on a page.
fn total(page: &str) -> u64 {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| line.rsplit(' ').next().and_then(|it| it.parse::<u64>().ok()))
        .map(|it| it.expect("a number"))
        .sum()
}

const THREADS: u64 = 8;
const ROUNDS: u64 = 20_000;

/// Threads use new labels continuously while pages are made. The number of series stays below
/// `most`. No page has a smaller total than the previous one, and the last page has exactly the
/// counted total.
fn churn(counters: &Labelled<Counter>, registry: &Registry, most: usize) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut pages, mut last) = (0, 0);
            while !is_over.load(Relaxed) {
                let page = registry.render(Format::OpenMetrics);
                assert!(page.ends_with("# EOF\n"));
                let now = total(&page);
                assert!(now >= last, "{now} after {last}");
                (pages, last) = (pages + 1, now);
            }
            pages
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let user = format!("{}", (round * 7 + thread) % 5000);
                        counters.get([&*user, "x"]).expect("labels").inc();
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|it| it.join().expect("no panic"));
        is_over.store(true, Relaxed);
        assert!(reader.join().expect("no panic") > 0);
    });
    assert!(counters.len() <= most, "{} series", counters.len());
    assert_eq!(total(&registry.render(Format::Text)), THREADS * ROUNDS);
}

#[test]
fn nothing_is_lost_while_labels_come_and_pages_are_made() {
    let registry = Registry::new();
    let description = Description::new("hits").labels(["user", "of"]).limit(500);
    let counters = registry.register(description).expect("it is new");
    churn(&counters, &registry, 501);
    assert_eq!(counters.len(), 501);
    let others = counters.get(["other", "other"]).expect("labels").get();
    assert_eq!(others, counters.refused());
    assert!(others > 0);
}

#[test]
#[should_panic(expected = "5000 series")]
fn without_the_limit_there_are_more() {
    let registry = Registry::new();
    let description = Description::new("hits").labels(["user", "of"]).limit(usize::MAX);
    churn(&registry.register(description).expect("it is new"), &registry, 501);
}

#[test]
fn what_is_kept_outlives_its_registry() {
    let kept = {
        let registry = Registry::new();
        registry.register::<Counter>(Description::new("a").labels(["b"])).expect("it is new")
    };
    kept.get(["c"]).expect("labels").inc();
    assert_eq!(kept.get(["c"]).map(Counter::get), Ok(1));
}

/// The page is longer than a part, and its parts consist of whole lines.
#[test]
fn a_page_is_its_parts() {
    let registry = Registry::new();
    let gauges = registry.register::<Gauge>(Description::new("a").labels(["b"]));
    let gauges = gauges.expect("it is new");
    (0..1000).for_each(|it| gauges.get([format!("{it}")]).expect("labels").set(it.into()));
    let (mut parts, mut page) = (registry.parts(Format::Text).expect("memory"), String::new());
    let mut number = 0;
    while let Some(part) = parts.next().expect("memory") {
        assert!(part.ends_with(b"\n"));
        page += std::str::from_utf8(part).expect("text");
        number += 1;
    }
    assert!(number > 2, "{number} parts");
    assert_eq!(page, registry.render(Format::Text));
    assert_eq!(page.lines().count(), 1001);
}
