//! Checks of NUMA workloads, and numbers that can be set by name.

use super::{MIB, Pattern, Phase, Use, Workload};
use crate::file::Error;

/// Maximum number of processes. A simulation executes steps for each process and thread at
/// intervals.
const MOST_PROCESSES: u32 = 64;
const MOST_THREADS: u32 = 4096;
/// Maximum memory of a process in MiB. A simulation stores each huge page.
const MOST_MIB: u64 = 1 << 20;
/// Maximum number of rounds of a phase.
const MOST_ROUNDS: u32 = 1_000_000;
/// Maximum length of the preparation in seconds.
const MAX_PREPARATION_S: f64 = 3600.0;

impl Workload {
    /// Sets a number that all workloads have: `processes`, `threads`, `mib` (of every memory),
    /// `rounds` (of every phase) or `preparation_s`. Returns `None` if there is no such name, and
    /// an error if the value is not allowed.
    pub(in crate::numa) fn set(&mut self, name: &str, value: f64) -> Option<Result<(), Error>> {
        let whole = value as u64;
        match name {
            "processes" => self.processes = whole as u32,
            "threads" => self.threads = whole as u32,
            "mib" => self.memory.iter_mut().for_each(|memory| memory.mib = whole),
            "rounds" => self.phases.iter_mut().for_each(|phase| phase.rounds = whole as u32),
            "preparation_s" => self.preparation.seconds = value,
            _ => return None,
        }
        let is_whole = name == "preparation_s" || value == whole as f64;
        Some(if is_whole {
            self.check()
        } else {
            Err(Error::of_file(format!("{name}: expected a whole number, found {value}")))
        })
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let fault = |path: &[&str], expected: String| Error::of_field(&self.text, path, expected);
        let number = |path: &[&str], value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(fault(path, format!("expected {least} to {most}, found {value}")))
        };
        number(&["processes"], self.processes.into(), 1, MOST_PROCESSES.into())?;
        number(&["threads"], self.threads.into(), 1, MOST_THREADS.into())?;
        if !(0.0..=MAX_PREPARATION_S).contains(&self.preparation.seconds) {
            let expected =
                format!("expected 0 to {MAX_PREPARATION_S}, found {}", self.preparation.seconds);
            return Err(fault(&["preparation", "seconds"], expected));
        }
        if self.memory.is_empty() {
            return Err(fault(&["memory"], "expected at least one".to_owned()));
        }
        for (at, memory) in self.memory.iter().enumerate() {
            let at = at.to_string();
            number(&["memory", &at, "mib"], memory.mib, 1, MOST_MIB)?;
            if self.memory.iter().filter(|other| other.name == memory.name).count() > 1 {
                let expected = format!("expected a name of its own, found '{}' again", memory.name);
                return Err(fault(&["memory", &at, "name"], expected));
            }
        }
        number(&["memory"], self.bytes() / MIB, 1, MOST_MIB)?;
        if self.phases.is_empty() {
            return Err(fault(&["phase"], "expected at least one".to_owned()));
        }
        self.phases.iter().enumerate().try_for_each(|(at, phase)| self.check_phase(at, phase))
    }

    fn check_phase(&self, at: usize, phase: &Phase) -> Result<(), Error> {
        let at = at.to_string();
        if !(1..=MOST_ROUNDS).contains(&phase.rounds) {
            let expected = format!("expected 1 to {MOST_ROUNDS}, found {}", phase.rounds);
            return Err(Error::of_field(&self.text, &["phase", &at, "rounds"], expected));
        }
        if phase.uses.is_empty() {
            let path = ["phase", &at, "use"];
            return Err(Error::of_field(&self.text, &path, "expected at least one"));
        }
        for (place, one) in phase.uses.iter().enumerate() {
            self.check_use(one).map_err(|(field, expected)| {
                let path = ["phase", &at, "use", &place.to_string(), field];
                Error::of_field(&self.text, &path, expected)
            })?;
        }
        Ok(())
    }

    /// Checks a use. The error is the wrong field, and what was expected.
    fn check_use(&self, one: &Use) -> Result<(), (&'static str, String)> {
        let Some(memory) = self.memory.iter().find(|memory| memory.name == one.memory) else {
            let known: Vec<&str> = self.memory.iter().map(|memory| memory.name.as_str()).collect();
            let expected = format!("expected one of {}, found '{}'", known.join(", "), one.memory);
            return Err(("memory", expected));
        };
        let most = memory.mib * 1024;
        match (one.pattern, one.slice_kib) {
            (Pattern::Slices, Some(slice)) if slice % 4 != 0 || !(4..=most).contains(&slice) => {
                let expected = format!("expected a multiple of 4 from 4 to {most}, found {slice}");
                return Err(("slice_kib", expected));
            }
            (Pattern::Slices, None) => {
                return Err(("pattern", "slices need slice_kib, their size".to_owned()));
            }
            (Pattern::All | Pattern::Parts, Some(_)) => {
                return Err(("slice_kib", "only the pattern slices has slices".to_owned()));
            }
            _ => {}
        }
        match one.workers {
            Some((first, last)) if first == 0 || first > last || last > self.threads => {
                let expected = format!(
                    "expected the first and the last of 1 to {}, found {first} and {last}",
                    self.threads
                );
                Err(("workers", expected))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICES: &str = include_str!("../../../workloads/numa/slices.toml");
    const PHASES: &str = include_str!("../../../workloads/numa/phases.toml");

    fn fault(text: &str, from: &str, to: &str) -> String {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        Workload::parse(&changed).expect_err("a fault").to_string()
    }

    #[test]
    fn faults_have_a_line_and_a_field() {
        let cases = [
            ("threads = 40", "threads = 0", "line 6: threads: expected 1 to 4096, found 0"),
            ("mib = 4096", "mib = 0", "line 15: memory.0.mib: expected 1 to 1048576, found 0"),
            (
                "slice_kib = 512",
                "slice_kib = 6",
                "line 23: phase.0.use.0.slice_kib: expected a multiple of 4 from 4 to 4194304, found 6",
            ),
            (
                "slice_kib = 512",
                "",
                "line 22: phase.0.use.0.pattern: slices need slice_kib, their size",
            ),
            (
                "memory = \"array\"",
                "memory = \"heap\"",
                "line 21: phase.0.use.0.memory: expected one of array, found 'heap'",
            ),
            (
                "seconds = 2",
                "seconds = -1",
                "line 9: preparation.seconds: expected 0 to 3600, found -1",
            ),
        ];
        for (from, to, expected) in cases {
            assert_eq!(fault(SLICES, from, to), expected);
        }
        let last = fault(PHASES, "workers = [1, 16]", "workers = [1, 99]");
        assert_eq!(
            last,
            "line 46: phase.2.use.1.workers: expected the first and the last of 1 to 32, found 1 and 99"
        );
        let unknown = fault(SLICES, "rounds = 1000", "turns = 1000");
        assert!(unknown.starts_with("line 18: unknown field `turns`"), "{unknown}");
    }

    #[test]
    fn numbers_can_be_set_and_are_checked() {
        let mut workload = Workload::parse(SLICES).expect("a preset");
        assert_eq!(workload.set("threads", 8.0), Some(Ok(())));
        assert_eq!(workload.threads, 8);
        assert!(workload.set("colour", 8.0).is_none());
        for (name, value) in [("threads", 0.0), ("mib", 1.5), ("rounds", -1.0)] {
            let mut changed = workload.clone();
            assert!(changed.set(name, value).is_some_and(|result| result.is_err()), "{name}");
        }
    }
}
