//! Samples of a process by perf, with the functions that called.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A part of the names of the functions that count.
const COUNTS: &str = "metrics_of_request";

/// Numbers of samples.
#[derive(Clone, Copy, Default)]
pub(crate) struct Samples {
    pub(crate) all: u64,
    pub(crate) in_metrics: u64,
}

/// A program that perf has started, and records. Both end with it.
pub(crate) struct Recording {
    perf: Child,
    folder: TempDir,
}

impl Recording {
    /// Starts this very program with these arguments, by the clock of the CPU, which virtual machines have
    /// too.
    pub(crate) fn start(arguments: &[&str]) -> Result<Recording, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let perf = Command::new("perf")
            .args(["record", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-o"])
            .arg(folder.path().join("data"))
            .arg("--")
            .arg(program)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf does not start: {error}"))?;
        Ok(Recording { perf, folder })
    }

    /// Returns the first line that the program prints.
    pub(crate) fn first_line(&mut self) -> Result<String, String> {
        let output = self.perf.stdout.take().ok_or("its output is taken")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        Ok(line.trim().to_owned())
    }

    pub(crate) fn end(mut self) -> Result<Samples, String> {
        self.interrupt();
        self.perf.wait().map_err(|error| error.to_string())?;
        let output = Command::new("perf")
            .args(["script", "-F", "event,ip,sym", "-i"])
            .arg(self.folder.path().join("data"))
            .output()
            .map_err(|error| error.to_string())?;
        let samples = count(&String::from_utf8_lossy(&output.stdout));
        if samples.all == 0 {
            return Err("perf recorded no sample".to_owned());
        }
        Ok(samples)
    }

    /// Interrupts perf, which ends the program, and writes its samples.
    fn interrupt(&self) {
        // Without it, `wait` shows that perf still runs.
        let _ = Command::new("kill").args(["-INT", &self.perf.id().to_string()]).status();
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if matches!(self.perf.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.perf.wait();
        }
    }
}

/// Samples are separated by empty lines.
fn count(script: &str) -> Samples {
    let mut samples = Samples::default();
    for sample in script.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        samples.all += 1;
        samples.in_metrics += u64::from(sample.contains(COUNTS));
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_below_a_function_that_counts_are_in_metrics() {
        let script = "cpu-clock: \n    1f add\n    2f Client::metrics_of_request_begun\n    3f run\n\n\
                      cpu-clock: \n    4f write\n    3f run\n\n";
        let Samples { all, in_metrics } = count(script);
        assert_eq!((all, in_metrics), (2, 1));
        assert_eq!(count("").all, 0);
    }
}
