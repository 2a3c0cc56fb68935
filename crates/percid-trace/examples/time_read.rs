//! Times how fast a trace is read: `cargo run --release -p percid-trace --example time_read -- FILE`
use std::time::Instant;
fn main() {
    let path = std::env::args_os().nth(1).expect("a file");
    let bytes = std::fs::read(&path).unwrap();
    for _ in 0..3 {
        let begin = Instant::now();
        let trace = percid_trace::read::read_bytes(&bytes).unwrap_or_else(|e| panic!("{e}"));
        let seconds = begin.elapsed().as_secs_f64();
        let million = trace.events.len() as f64 / 1e6;
        println!(
            "{million:.3} million events in {seconds:.3} s: {:.2} million/s {:?}",
            million / seconds,
            trace.origin
        );
    }
}
