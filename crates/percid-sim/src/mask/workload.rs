//! Workloads of the mask model, and their files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::file::{self, Error};
use crate::machine::{Parameter, Sourced};

/// The distribution of the work of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Exponentially distributed.
    #[default]
    Exponential,
    /// Constant.
    Constant,
}

/// Processes, each with a mask, whose threads take turns on the CPUs. Also has the processor's
/// numbers that the machine files lack.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The name, for tables.
    pub name: String,
    /// Description of the situation that it models.
    pub about: String,
    /// Distribution of the work of a turn.
    pub work_spread: Spread,
    /// The given numbers of [`NUMBERS`], in that order.
    numbers: Vec<(&'static Known, Sourced)>,
}

/// A workload as its file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    about: String,
    #[serde(default)]
    work_spread: Spread,
    program: BTreeMap<String, Sourced>,
    processor: BTreeMap<String, Sourced>,
}

/// The definition of a number in a file.
#[derive(Debug, PartialEq)]
pub struct Known {
    /// Name of the table in the file.
    pub section: &'static str,
    /// Name of the number; it ends with the unit.
    pub name: &'static str,
    /// Description of the number.
    pub about: &'static str,
    least: f64,
    most: f64,
    is_whole: bool,
    is_optional: bool,
}

const fn program(name: &'static str, [least, most]: [f64; 2], about: &'static str) -> Known {
    Known { section: "program", name, about, least, most, is_whole: false, is_optional: false }
}

const fn processor(name: &'static str, most: f64, about: &'static str) -> Known {
    let section = "processor";
    Known { section, name, about, least: 0.0, most, is_whole: false, is_optional: false }
}

impl Known {
    const fn whole(self) -> Known {
        Known { is_whole: true, ..self }
    }

    const fn optional(self) -> Known {
        Known { is_optional: true, ..self }
    }

    /// Returns the expected values, if this value is not allowed.
    fn fault(&self, value: f64) -> Option<String> {
        let fits = (self.least..=self.most).contains(&value);
        let kind = if self.is_whole { "a whole number" } else { "a number" };
        let expected = format!("expected {kind} from {} to {}", self.least, self.most);
        (!fits || self.is_whole && value.fract() != 0.0)
            .then(|| format!("{expected}, found {value}"))
    }
}

/// All numbers that a file can have. All are required, except the optional ones.
pub const NUMBERS: [Known; 18] = [
    program("processes", [1.0, 4096.0], "processes, each with a mask of its own").whole(),
    program("threads", [1.0, 65_536.0], "threads of each process").whole(),
    program("cpus", [1.0, 8192.0], "CPUs that are used, cores first; without it all")
        .whole()
        .optional(),
    program(
        "work_us",
        [0.001, 1e9],
        "mean work of a turn, in microseconds of a hardware thread whose sibling is busy too",
    ),
    program("scheduler_us", [0.0, 1e9], "the scheduler's part of a switch without the mask"),
    program(
        "alone_speed",
        [0.1, 16.0],
        "how many times faster a hardware thread runs whose siblings wait or idle",
    ),
    program(
        "other_space_share",
        [0.0, 1.0],
        "share of switches that prefer another process; without it who waits longest is next",
    )
    .optional(),
    program("sleep_share", [0.0, 1.0], "share of turns after which the thread sleeps"),
    program("sleep_us", [0.0, 1e9], "mean sleep"),
    program("kernel_share", [0.0, 1.0], "share of turns after which a kernel thread runs"),
    program("kernel_us", [0.0, 1e9], "how long it runs on average"),
    program("turns_per_flush", [1.0, 1e15], "turns for each flush of translations"),
    program(
        "turns_per_cpu",
        [1.0, 1e9],
        "turns for each CPU that are measured, after a fifth as many that are not",
    )
    .whole(),
    Known { least: 0.01, ..processor("clock_ghz", 100.0, "clock rate, for results in cycles") },
    processor("core_cycles", 1e6, "a load from the core's own cache"),
    processor("locked_ns", 1e6, "a locked instruction on a line that the core owns"),
    processor(
        "reload_ns",
        1e9,
        "the write of CR3, and looking up again the translations that it throws away",
    ),
    processor("trim_interval_ms", 1e9, "the shortest time between two trimmings, trim-rarely only"),
];

/// The workloads that come with the simulator: short name and text of the file.
const PRESETS: [(&str, &str); 4] = [
    ("linpack", include_str!("../../workloads/mask/linpack.toml")),
    ("hackbench", include_str!("../../workloads/mask/hackbench.toml")),
    ("flushing-server", include_str!("../../workloads/mask/flushing-server.toml")),
    ("sleepers", include_str!("../../workloads/mask/sleepers.toml")),
];

impl Workload {
    /// Returns the names of the workloads that come with the simulator.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// Returns the workload with this name, if it comes with the simulator.
    pub fn preset(name: &str) -> Option<Workload> {
        Workload::preset_text(name)
            .map(|text| Workload::parse(text).expect("the tests read all presets"))
    }

    /// Returns the file of a workload that comes with the simulator, as a start for a user's own
    /// file.
    pub fn preset_text(name: &str) -> Option<&'static str> {
        PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// Reads a workload from the text of a file.
    ///
    /// # Errors
    ///
    /// Returns the line, the field, and what was expected if the text is not TOML, lacks a number,
    /// or has an unknown or disallowed number.
    pub fn parse(text: &str) -> Result<Workload, Error> {
        let description: Description = file::parse(text)?;
        let tables = [("program", &description.program), ("processor", &description.processor)];
        for (section, table) in tables {
            let fault = |(name, number): (&String, &Sourced)| {
                let expected = expected(section, name, number.value)?;
                Some(Error::of_field(text, &[section, name], expected))
            };
            if let Some(fault) = table.iter().find_map(fault) {
                return Err(fault);
            }
        }
        let number = |known: &'static Known| {
            let table = if known.section == "program" { tables[0].1 } else { tables[1].1 };
            match table.get(known.name) {
                Some(number) => Some(Ok((known, number.clone()))),
                None if known.is_optional => None,
                None => {
                    let expected = format!("missing {}: {}", known.name, known.about);
                    Some(Err(Error::of_field(text, &[known.section], expected)))
                }
            }
        };
        let numbers = NUMBERS.iter().filter_map(number).collect::<Result<_, Error>>()?;
        let Description { name, about, work_spread, .. } = description;
        Ok(Workload { name, about, work_spread, numbers })
    }

    /// Sets a number.
    ///
    /// # Errors
    ///
    /// Returns the known names if `name` is unknown, or the expected values if the value is not
    /// allowed.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        let Some(known) = NUMBERS.iter().find(|known| known.name == name) else {
            let all = NUMBERS.map(|known| known.name).join(", ");
            return Err(Error::of_file(format!("expected one of {all}, found {name}")));
        };
        if let Some(expected) = known.fault(value) {
            return Err(Error::of_file(expected));
        }
        let number = Sourced { value, origin: "set by hand".to_owned(), fitted: false };
        match self.numbers.iter_mut().find(|(given, _)| given.name == name) {
            Some((_, given)) => *given = number,
            None => self.numbers.push((known, number)),
        }
        Ok(())
    }

    /// Returns a number, if it is given.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.iter().find(|(known, _)| known.name == name).map(|(_, number)| number.value)
    }

    /// Returns all given numbers with their origins.
    pub fn numbers(&self) -> Vec<Parameter> {
        self.numbers.iter().map(|(known, number)| Parameter::from((known.name, number))).collect()
    }
}

/// Returns what was expected of a number in a table, if the number is unknown or not allowed.
fn expected(section: &str, name: &str, value: f64) -> Option<String> {
    let mut known = NUMBERS.iter().filter(|known| known.section == section);
    match known.clone().find(|known| known.name == name) {
        Some(known) => known.fault(value),
        None => {
            let all = known.by_ref().map(|known| known.name).collect::<Vec<_>>().join(", ");
            Some(format!("unknown number, expected one of {all}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(from: &str, to: &str) -> String {
        let text = Workload::preset_text("linpack").expect("a preset");
        assert!(text.contains(from), "the preset says {from:?}");
        Workload::parse(&text.replacen(from, to, 1)).expect_err("a fault").to_string()
    }

    fn line_of(what: &str) -> usize {
        let text = Workload::preset_text("linpack").expect("a preset");
        1 + text.lines().take_while(|line| !line.starts_with(what)).count()
    }

    #[test]
    fn all_presets_can_be_read_and_have_the_name_of_their_file() {
        for name in Workload::presets() {
            let text = Workload::preset_text(name).expect("a preset");
            let workload = Workload::parse(text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(workload.name, name);
            assert!(workload.get("threads").is_some());
        }
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        let work = line_of("[program.work_us]");
        assert_eq!(
            error("[program.work_us]", "[program.wrok_us]").split(", expected").next(),
            Some(&*format!("line {work}: program.wrok_us: unknown number"))
        );
        let threads = error("[program.threads]\nvalue = 240", "[program.threads]\nvalue = 2.5");
        let line = line_of("[program.threads]");
        let expected = format!(
            "line {line}: program.threads: expected a whole number from 1 to 65536, found 2.5"
        );
        assert_eq!(threads, expected);
        let share = error("value = 0.001", "value = 1.5");
        assert!(share.ends_with("program.kernel_share: expected a number from 0 to 1, found 1.5"));
        let nan = error("value = 16.49", "value = nan");
        assert!(nan.contains("program.work_us: expected a number from 0.001"), "{nan}");
        let word = error("value = 16.49", "value = \"long\"");
        assert!(word.starts_with(&format!("line {}: ", work + 1)), "{word}");
        let spread = error("\"exponential\"", "\"wide\"");
        assert!(spread.contains("unknown variant `wide`"), "{spread}");
        let missing = error(
            "[processor.clock_ghz]\nvalue = 2.8\norigin = \"Xeon E7-4890 v2, base clock\"\n",
            "",
        );
        assert!(missing.contains("processor: missing clock_ghz"), "{missing}");
        assert!(error("name = \"linpack\"", "").contains("missing field `name`"));
    }

    #[test]
    fn numbers_are_set_by_name_if_they_can_be() {
        let mut workload = Workload::preset("linpack").expect("a preset");
        assert_eq!(workload.get("cpus"), None);
        workload.set("cpus", 60.0).expect("a number that is optional");
        workload.set("threads", 7.0).expect("a number");
        assert_eq!((workload.get("cpus"), workload.get("threads")), (Some(60.0), Some(7.0)));
        let before = workload.clone();
        assert!(workload.set("cpus", 0.0).expect_err("no CPU").to_string().contains("from 1 to"));
        let unknown = workload.set("colour", 1.0).expect_err("no number").to_string();
        assert!(unknown.contains("processes") && unknown.ends_with("found colour"), "{unknown}");
        assert_eq!(workload, before);
        let threads = workload.numbers().into_iter().find(|number| number.name == "threads");
        assert_eq!(threads.map(|number| number.origin), Some("set by hand".to_owned()));
    }
}
