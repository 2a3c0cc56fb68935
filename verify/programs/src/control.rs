//! Negative controls: a program that must find something wrong, given what breaks the library.

use std::env;
use std::process::{Command, ExitCode};

/// Number of tries: the window of a race may be small.
const TRIES: u32 = 5;

/// Runs this binary with the arguments after `control`, which must detect an error: it passes if a
/// try fails with figures. A failure without figures, or another end, proves nothing.
pub(crate) fn run() -> ExitCode {
    let arguments: Vec<_> = env::args_os().skip(2).collect();
    for _ in 0..TRIES {
        let output = env::current_exe().and_then(|own| Command::new(own).args(&arguments).output());
        let (status, text) = match &output {
            Ok(output) => (output.status.code(), String::from_utf8_lossy(&output.stdout)),
            Err(error) => (None, error.to_string().into()),
        };
        print!("{text}");
        match status {
            Some(0) => {}
            Some(1) if has_figures(&text) => {
                println!("PASS control: it fails, as it must");
                return ExitCode::SUCCESS;
            }
            other => {
                println!("FAIL control: it ended in another way than by its figures: {other:?}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("FAIL control: it passed {TRIES} times");
    ExitCode::FAILURE
}

/// Returns `true` if a program has printed its figures.
fn has_figures(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("FAIL ") && line.contains('='))
}
