//! The cost of an event and of a span: without a subscriber, with the flight recorder, and with
//! `tracing_subscriber::fmt` that discards its output.
//!
//! A process has one subscriber, so each is measured in a process of its own. The values are
//! medians of 31 rounds.

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use percid_tracing::FlightRecorder;
use tracing::{info, info_span};
use tracing_subscriber::prelude::*;

const ROUNDS: usize = 31;
const EVENTS: u32 = 20_000;
const SUBSCRIBERS: [&str; 3] = ["none", "recorder", "fmt"];

fn main() {
    match std::env::args().nth(1) {
        Some(subscriber) => measure(&subscriber),
        None => measure_all(),
    }
}

fn measure_all() {
    let program = std::env::current_exe().expect("the path of this program");
    let columns = ["0 fields", "2 fields", "0, in a span", "2, in a span", "span"];
    println!("ns each    {}", columns.map(|column| format!("{column:>13}")).concat());
    for subscriber in SUBSCRIBERS {
        let status = Command::new(&program).arg(subscriber).status().expect("this program");
        assert!(status.success(), "{subscriber}: {status}");
    }
}

fn measure(name: &str) {
    match name {
        "recorder" => {
            let (layer, _) = FlightRecorder::builder().build();
            tracing_subscriber::registry().with(layer).init();
        }
        "fmt" => tracing_subscriber::fmt().with_writer(std::io::sink).init(),
        _ => (),
    }
    let outside = [time(|_| no_fields()), time(two_fields)];
    let inside =
        info_span!("request", id = 17).in_scope(|| [time(|_| no_fields()), time(two_fields)]);
    let span = time(|round| info_span!("span", round).in_scope(|| black_box(())));
    let figures = [outside[0], outside[1], inside[0], inside[1], span];
    println!("{name:11}{}", figures.map(|figure| format!("{figure:13.1}")).concat());
}

fn no_fields() {
    info!("read");
}

fn two_fields(round: u32) {
    info!(bytes = u64::from(round), path = "/index", "read");
}

/// Returns the nanoseconds for a call: the median of the rounds.
fn time(f: impl Fn(u32)) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..EVENTS).for_each(|event| f(black_box(event)));
            start.elapsed().as_nanos() as f64 / f64::from(EVENTS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
