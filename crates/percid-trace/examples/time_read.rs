//! Times how fast a trace is read: `cargo run --release -p percid-trace --example time_read -- FILE`.

use std::time::Instant;

use percid_trace::read::read_bytes;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let bytes = std::fs::read(path)?;
    for _ in 0..5 {
        let begin = Instant::now();
        let events = read_bytes(&bytes)?.events.len();
        let seconds = begin.elapsed().as_secs_f64();
        let rate = events as f64 / seconds / 1e6;
        println!("{events} events in {seconds:.3} s: {rate:.2} million/s");
    }
    Ok(())
}
