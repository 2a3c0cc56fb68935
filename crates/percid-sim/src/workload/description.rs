//! Descriptions of workloads in files.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::file::{self, Error};

/// A workload as its file describes it; [`Workload::program`] computes its numbers for a machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The name, for tables.
    pub name: String,
    /// Description of the situation that it models.
    pub about: String,
    /// The kind of memory that bursts write to, for programs that do not define their own.
    #[serde(default)]
    pub memory: Memory,
    /// Simulated time, in milliseconds. If `None`, until all threads have ended or wait forever.
    pub(super) duration_ms: Option<Amount>,
    /// Number of processes that run this program; one if `None`.
    pub(super) processes: Option<Amount>,
    /// Named numbers that can be set from outside.
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
    /// The CPUs of the machine that it may use; all by default.
    #[serde(default)]
    pub(super) cpus: Selection,
    /// Shares of wakes that land on a CPU against the scheduler's rule; none by default.
    #[serde(default)]
    pub(super) wakes: StrayWakes,
    /// Run time limit of each process; unlimited if `None`.
    pub(super) quota: Option<CpuMax>,
    /// Groups of threads with the same script, if this is one program.
    pub(super) threads: Option<Vec<Threads>>,
    /// The programs, if there are several.
    pub(super) programs: Option<Vec<OneOfSeveral>>,
    /// Changes of the affinity of all threads.
    #[serde(default)]
    pub(super) affinity_changes: Vec<Affinity>,
    /// Text of the file, for line numbers in errors.
    #[serde(skip)]
    pub(super) text: String,
}

/// The memory that bursts write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Pages that are copied at the first write.
    #[default]
    CopyOnWrite,
    /// Pages that appear as zeroes at the first write.
    ZeroPage,
    /// Pages that the main thread wrote to at the start.
    PreFaulted,
}

impl Memory {
    /// All kinds, with their names.
    pub const ALL: [(&'static str, Memory); 3] = [
        ("copy-on-write", Memory::CopyOnWrite),
        ("zero-page", Memory::ZeroPage),
        ("pre-faulted", Memory::PreFaulted),
    ];

    /// Returns the name, as in files and on the command line.
    pub fn name(self) -> &'static str {
        let known = Memory::ALL.iter().find(|(_, memory)| *memory == self);
        known.map_or("", |(name, _)| name)
    }
}

/// A number, or a product of numbers, parameters and `cpus` (the number of selected CPUs), such as
/// `"2 * cpus"`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Number(f64),
    Product(String),
}

/// The regular part of a machine that a workload uses.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Selection {
    pub(super) l3s: Option<Amount>,
    pub(super) cores_per_l3: Option<Amount>,
    pub(super) threads_per_core: Option<Amount>,
}

/// Shares of the wakes that land on another idle CPU than that of the scheduler's rule, by the
/// distance from the thread's last CPU.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StrayWakes {
    /// Another hardware thread of the same core.
    pub(super) same_core: Option<Amount>,
    /// Another core behind the same last-level cache.
    pub(super) same_l3: Option<Amount>,
    /// Another last-level cache of the same socket.
    pub(super) same_socket: Option<Amount>,
    /// Another socket.
    pub(super) other_socket: Option<Amount>,
    /// End of these wakes, in milliseconds; the end of the run if `None`.
    pub(super) until_ms: Option<Amount>,
}

/// A CPU quota, as `cpu.max` of cgroup v2.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpuMax {
    /// Maximum run time of all threads of the process and its children together, per period.
    pub(super) max_us: Amount,
    /// Length of the period; 100 ms if `None`.
    pub(super) period_us: Option<Amount>,
}

/// One of several programs that run on the machine at the same time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneOfSeveral {
    pub(super) name: String,
    /// The kind of memory of its areas; the workload's if `None`.
    pub(super) memory: Option<Memory>,
    /// Number of processes that run it; one if `None`.
    pub(super) processes: Option<Amount>,
    /// Run time limit of each process; unlimited if `None`.
    pub(super) quota: Option<CpuMax>,
    pub(super) threads: Vec<Threads>,
}

/// A group of threads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Threads {
    pub(super) name: String,
    pub(super) count: Amount,
    /// `true` if each thread has one CPU, in the order of CPU numbers. If there are more threads
    /// than CPUs, the assignment starts over.
    #[serde(default)]
    pub(super) pinned: bool,
    /// Creation time, in milliseconds from the start of the process.
    pub(super) start_ms: Option<Amount>,
    pub(super) script: Vec<ScriptStep>,
}

/// A step of a thread's script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ScriptStep {
    /// Waits until all threads of the group have reached this step.
    Barrier,
    /// Waits likewise, but computes in the meantime.
    SpinBarrier,
    /// Waits for this thread's turn. Turns rotate in an order that is shuffled once.
    Turn { after_ms: Amount, jitter_us: Option<Amount> },
    /// Passes the turn to the next thread.
    EndTurn,
    /// Computes.
    Run {
        us: Amount,
        #[serde(default)]
        spread: SpreadKind,
        /// Amount of own data that it goes through, in KiB; none if `None`.
        kb: Option<Amount>,
    },
    /// Adds one to each byte of the area that the thread's ID selects.
    Burst {
        times: Option<Amount>,
        #[serde(default = "yes")]
        timed: bool,
    },
    /// Sleeps.
    Sleep {
        us: Amount,
        #[serde(default)]
        spread: SpreadKind,
        /// `true` if a thread sleeps so long for each thread before it, in an order of the group that
        /// is shuffled once. The first one does not sleep.
        #[serde(default)]
        by_place: bool,
        /// Share of the duration by which the timer is late; 0 if `None`.
        slack_share: Option<Amount>,
        /// Maximum random delay after the timer; 0 if `None`.
        jitter_us: Option<Amount>,
    },
    /// Repeats other steps several times, or until the end.
    Repeat { times: Option<Amount>, steps: Vec<ScriptStep> },
    /// Ends, and starts a new thread of the same group.
    Respawn,
    /// Copies the process, with one thread that executes the script of another group.
    Fork { group: String },
    /// Replaces the program: a new address space begins.
    Exec,
    /// Waits forever.
    Wait,
}

fn yes() -> bool {
    true
}

/// The distribution of a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SpreadKind {
    /// Constant.
    #[default]
    Constant,
    /// Uniform from 0 to twice the mean.
    Uniform,
    /// Exponential: many short durations, a few long ones.
    Exponential,
}

/// A change of the affinity of all threads of the process, made from outside.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Affinity {
    /// Time of the first change, in milliseconds.
    pub(super) at_ms: Amount,
    /// Time between repetitions, in milliseconds; `None` for a single change.
    pub(super) every_ms: Option<Amount>,
    /// Number of neighbouring CPUs that all threads are confined to, from a random one on.
    pub(super) wander: Option<Amount>,
    /// Number of the first selected CPUs that all threads are confined to.
    pub(super) confine: Option<Amount>,
}

/// The workloads that come with the simulator: short name and text of the file.
const PRESETS: [(&str, &str); 10] = [
    ("intermittent", include_str!("../../workloads/intermittent.toml")),
    ("thread-pool", include_str!("../../workloads/thread-pool.toml")),
    ("container", include_str!("../../workloads/container.toml")),
    ("churn", include_str!("../../workloads/churn.toml")),
    ("shrink", include_str!("../../workloads/shrink.toml")),
    ("oversubscribed", include_str!("../../workloads/oversubscribed.toml")),
    ("overcommitted", include_str!("../../workloads/overcommitted.toml")),
    ("neighbours", include_str!("../../workloads/neighbours.toml")),
    ("fork-exec", include_str!("../../workloads/fork-exec.toml")),
    ("wandering", include_str!("../../workloads/wandering.toml")),
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
    /// Returns the line and what was expected if the text is not TOML, lacks a field or has an
    /// unknown one. The validity of the numbers depends on the machine: see [`Workload::program`].
    pub fn parse(text: &str) -> Result<Workload, Error> {
        let mut workload: Workload = file::parse(text)?;
        workload.text = text.to_owned();
        Ok(workload)
    }

    /// Returns the text that it was read from, without the effects of [`set`](Workload::set).
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Sets a parameter.
    ///
    /// # Errors
    ///
    /// Returns the names of the parameters, if there is no such name.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        match self.parameters.get_mut(name) {
            Some(parameter) => {
                *parameter = value;
                Ok(())
            }
            None => {
                let known: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
                let known = known.join(", ");
                let expected = "or a number of the machine";
                let message =
                    format!("expected one of the parameters {known}, {expected}, found {name}");
                Err(Error::of_file(message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    fn machine() -> Machine {
        Machine::preset("epyc-9654").expect("a preset")
    }

    fn error(text: &str) -> String {
        match Workload::parse(text) {
            Ok(workload) => workload.program(&machine()).expect_err("a fault").to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn all_presets_make_programs_on_all_machines() {
        for name in Workload::presets() {
            let mut workload = Workload::preset(name).expect("a preset");
            for machine in Machine::presets().filter_map(Machine::preset) {
                if name == "intermittent" {
                    let l3s = f64::from(machine.topology.l3s());
                    workload.set("l3s", l3s).expect("a parameter");
                }
                let program = workload.program(&machine).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(program.groups.iter().any(|group| group.count > 0), "{name}");
            }
        }
    }

    #[test]
    fn a_parameter_that_does_not_fit_is_named_in_place_of_a_line() {
        let mut workload = Workload::preset("container").expect("a preset");
        workload.set("allowed", 385.0).expect("a parameter");
        let said = workload.program(&machine()).expect_err("384 CPUs").to_string();
        let expected = "parameter allowed: expected a whole number from 1 to 384, found 385 \
                        (affinity_changes.0.wander, on 384 CPUs)";
        assert_eq!(said, expected);
        let text = workload.text().replace("wander = \"allowed\"", "wander = 385");
        assert!(error(&text).starts_with("line "), "no parameter is this number");
        let text = workload.text().replace("wander = \"allowed\"", "wander = \"2 * cpus\"");
        assert!(error(&text).starts_with("line "), "nor this one");
    }

    #[test]
    fn the_published_rows_select_their_cpus() {
        for (row, l3s, cores, threads) in
            [(8, 1, 8, 1), (24, 24, 1, 1), (192, 24, 8, 1), (384, 24, 8, 2)]
        {
            let mut workload = Workload::preset("intermittent").expect("a preset");
            for (name, value) in
                [("l3s", l3s), ("cores_per_l3", cores), ("threads_per_core", threads)]
            {
                workload.set(name, f64::from(value)).expect("a parameter");
            }
            let program = workload.program(&machine()).expect("a program");
            assert_eq!(program.cpus.len(), row);
            assert_eq!(program.groups[1].count as usize, row);
        }
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        let head = "name = \"x\"\nabout = \"y\"\n";
        let group = |count: &str, script: &str| {
            format!("{head}[[threads]]\nname = \"w\"\ncount = {count}\nscript = [{script}]\n")
        };
        assert!(
            error(&group("\"many\"", "")).contains("line 5: threads.0.count: \"many\" is neither")
        );
        assert!(error(&group("1.5", "")).contains("threads.0.count: expected a whole number"));
        assert!(
            error(&group("1", "{ run = { us = -1 } }"))
                .contains("line 6: threads.0.script.0: expected")
        );
        assert!(error(&group("1", "{ fork = { group = \"z\" } }")).contains("\"z\" is no group"));
        assert!(
            error(&group("1", "{ repeat = { steps = [\"barrier\"] } }")).contains("takes time")
        );
        assert!(error(&group("1", "\"jump\"")).contains("line 6: unknown variant `jump`"));
        let sleep =
            |fields: &str| error(&group("1", &format!("{{ sleep = {{ us = 1, {fields} }} }}")));
        assert!(sleep("slack_share = 1.5").contains("expected a share from 0 to 1, found 1.5"));
        let both = sleep("by_place = true, spread = \"uniform\"");
        assert!(both.contains("line 6: threads.0.script.0: expected a constant `us`"), "{both}");
        assert!(error(head).contains("expected `[[threads]]`, or `[[programs]]` which have them"));
        let limited = |quota: &str| {
            error(&format!("{head}[quota]\n{quota}{}", &group("1", "\"wait\"")[head.len()..]))
        };
        assert!(limited("max_us = 500\n").contains("line 4: quota.max_us: expected at least 1000"));
        assert!(
            limited("max_us = 5e4\nperiod_us = 2e6\n")
                .contains("line 5: quota.period_us: expected")
        );
        assert!(limited("period_us = 2e6\n").contains("missing field `max_us`"));
        let act = format!("{}[[affinity_changes]]\nat_ms = 1\n", group("1", "\"wait\""));
        assert!(error(&act).contains("line 7: affinity_changes.0: expected either"));
    }

    /// Returns a workload of two programs, with more lines in its head and in the second one.
    fn two(head: &str, first: &str, second: &str, more: &str) -> String {
        let threads = "[[programs.threads]]\nname = \"w\"\ncount = 1\nscript = [\"wait\"]\n";
        format!(
            "name = \"x\"\nabout = \"y\"\n{head}[[programs]]\nname = \"{first}\"\n{threads}\
             [[programs]]\nname = \"{second}\"\n{more}{threads}"
        )
    }

    #[test]
    fn errors_in_programs_name_the_program_the_line_and_the_field() {
        let fine = Workload::parse(&two("", "a", "b", "")).expect("a workload");
        assert_eq!(fine.program(&machine()).expect("a program").parts.len(), 2);
        assert!(
            error(&two("", "a", "a", ""))
                .contains("line 10: programs.1.name: \"a\" is the name of")
        );
        assert!(error(&two("", "a", "", "")).contains("line 10: programs.1.name: expected a name"));
        let more = "processes = 0.5\n";
        assert!(
            error(&two("", "a", "b", more)).contains("line 11: programs.1.processes: expected")
        );
        let more = "[programs.quota]\nmax_us = 500\n";
        assert!(
            error(&two("", "a", "b", more)).contains("line 12: programs.1.quota.max_us: expected")
        );
        let more =
            "[[programs.threads]]\nname = \"v\"\ncount = 1\nscript = [{ run = { us = -1 } }]\n";
        assert!(
            error(&two("", "a", "b", more))
                .contains("line 14: programs.1.threads.0.script.0: expected")
        );
        let more = "colour = 1\n";
        assert!(error(&two("", "a", "b", more)).contains("line 11: unknown field `colour`"));
        let none = "name = \"x\"\nabout = \"y\"\nprograms = []\n";
        assert!(error(none).contains("line 3: programs: expected at least one"));
        let none = "name = \"x\"\nabout = \"y\"\n[[programs]]\nname = \"a\"\nthreads = []\n";
        assert!(error(none).contains("line 5: programs.0.threads: expected 1 to 256"));
    }

    #[test]
    fn what_belongs_to_one_program_is_not_given_for_all() {
        for (field, given) in [
            ("processes", "processes = 2\n"),
            ("quota", "quota = { max_us = 50000 }\n"),
            ("threads", "threads = [{ name = \"w\", count = 1, script = [] }]\n"),
        ] {
            let expected = format!("line 3: {field}: expected in each of `[[programs]]`");
            let found = error(&two(given, "a", "b", ""));
            assert!(found.contains(&expected), "{found}");
        }
        let text = two("memory = \"zero-page\"\n", "a", "b", "memory = \"pre-faulted\"\n");
        let mut workload = Workload::parse(&text).expect("a workload");
        let memories = |workload: &Workload| -> Vec<Memory> {
            let program = workload.program(&machine()).expect("a program");
            program.parts.iter().map(|part| part.memory).collect()
        };
        assert_eq!(memories(&workload), [Memory::ZeroPage, Memory::PreFaulted]);
        workload.set_memory(Memory::CopyOnWrite);
        assert_eq!(memories(&workload), [Memory::CopyOnWrite; 2]);
    }

    #[test]
    fn a_fork_names_a_group_of_its_own_program() {
        let group = |name: &str, script: &str| {
            format!("[[programs.threads]]\nname = \"{name}\"\ncount = 1\nscript = [{script}]\n")
        };
        let child = "{ fork = { group = \"child\" } }, { run = { us = 5 } }";
        let text = |forks: &str, other: &str| {
            format!(
                "name = \"x\"\nabout = \"y\"\n[[programs]]\nname = \"a\"\n{}{}\
                 [[programs]]\nname = \"b\"\n{}{}",
                group("main", forks),
                group("child", "\"wait\""),
                group("main", other),
                group("other", "\"wait\""),
            )
        };
        let workload = Workload::parse(&text(child, "\"wait\"")).expect("a workload");
        let program = workload.program(&machine()).expect("a program");
        assert!(
            program.groups[0]
                .ops
                .contains(&super::super::Op::Fork { group: super::super::GroupIndex(1) })
        );
        let found = error(&text("\"wait\"", child));
        assert!(found.contains("programs.1.threads.0.script.0: \"child\" is no group"), "{found}");
    }

    #[test]
    fn an_unknown_parameter_is_answered_with_the_known_ones() {
        let mut workload = Workload::preset("container").expect("a preset");
        let answer = workload.set("cpus", 3.0).expect_err("no such parameter");
        assert!(answer.to_string().contains("allowed, duration_ms"), "{answer}");
    }
}
