//! Measures the share of a web service's time that its metrics take, by client library.
//!
//! usage: percid-metrics-share [--seconds N] [--rounds N] [--json]
//!        percid-metrics-share serve CLIENT
//!
//! Starts the service once for each client library and round, and sends it requests over eight
//! connections. perf counts the samples in the two functions that count a request, or below them.
//! `serve` is that service: it prints its address, and runs until it is ended.

mod clients;
mod load;
mod samples;
mod service;

use std::process::ExitCode;
use std::time::Duration;

use clients::NAMES;
use load::Measured;

const USAGE: &str = "usage: percid-metrics-share [--seconds N] [--rounds N] [--json]\n       \
                     percid-metrics-share serve CLIENT";

struct Options {
    seconds: Duration,
    rounds: usize,
    json: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", client] => service::run(client),
        _ if arguments.iter().any(|argument| argument == "--help") => {
            println!("{USAGE}\nCLIENT is one of {}", NAMES.join(", "));
            return ExitCode::SUCCESS;
        }
        _ => match options(&arguments) {
            Some(options) => compare(&options),
            None => {
                eprintln!("{USAGE}\nCLIENT is one of {}", NAMES.join(", "));
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("percid-metrics-share: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn options(arguments: &[String]) -> Option<Options> {
    let mut options = Options { seconds: Duration::from_secs(5), rounds: 3, json: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => options.seconds = Duration::from_secs(positive(rest.next()?)? as u64),
            "--rounds" => options.rounds = positive(rest.next()?)?,
            "--json" => options.json = true,
            _ => return None,
        }
    }
    Some(options)
}

fn positive(text: &str) -> Option<usize> {
    text.parse().ok().filter(|&number| number > 0)
}

/// Runs one client after the other in every round, so that all have the same machine.
fn compare(options: &Options) -> Result<(), String> {
    let mut all: Vec<Vec<Measured>> = vec![Vec::new(); NAMES.len()];
    for _ in 0..options.rounds {
        for (client, measured) in NAMES.iter().zip(&mut all) {
            measured.push(load::measure(client, options.seconds)?);
        }
    }
    let rows = NAMES.iter().zip(all);
    if options.json {
        let rows: Vec<_> =
            rows.flat_map(|(client, all)| all.into_iter().map(|it| it.json(client))).collect();
        println!("{}", serde_json::json!({ "results": rows }));
        return Ok(());
    }
    println!("{:<36}{:>22}{:>12}{:>12}", "", "in metrics, % (range)", "samples", "requests/s");
    for (client, mut all) in rows {
        all.sort_by(|a, b| a.share().total_cmp(&b.share()));
        let middle = &all[all.len() / 2];
        let percent = |it: &Measured| 100.0 * it.share();
        let range = format!("{:.1} to {:.1}", percent(&all[0]), percent(&all[all.len() - 1]));
        let share = format!("{:.1} ({range})", percent(middle));
        println!(
            "{client:<36}{share:>22}{:>12}{:>12.0}",
            middle.samples.all, middle.requests_per_second
        );
    }
    Ok(())
}
