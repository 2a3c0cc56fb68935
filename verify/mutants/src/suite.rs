//! Suites: what is run to notice a mutant.

use std::fmt;

/// The kind of command of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Kind {
    Lib,
    Loom,
    Rules,
    Numa,
    NumaTests,
    Capi,
    Programs,
    Run,
    Aborts,
    Portable,
    Elsewhere,
    Plain,
    Sections,
    SectionsArm,
    Sweep,
}

const KINDS: [(&str, Kind); 15] = [
    ("lib", Kind::Lib),
    ("loom", Kind::Loom),
    ("rules", Kind::Rules),
    ("numa", Kind::Numa),
    ("numa-tests", Kind::NumaTests),
    ("capi", Kind::Capi),
    ("programs", Kind::Programs),
    ("run", Kind::Run),
    ("aborts", Kind::Aborts),
    ("portable", Kind::Portable),
    ("elsewhere", Kind::Elsewhere),
    ("plain", Kind::Plain),
    ("sections", Kind::Sections),
    ("sections-arm", Kind::SectionsArm),
    ("sweep", Kind::Sweep),
];

/// Tests of another architecture, in an emulator of user space.
const ARM: &str = "test -p percid-sections --target aarch64-unknown-linux-gnu \
    --config target.aarch64-unknown-linux-gnu.linker=\"aarch64-linux-gnu-gcc\" \
    --config target.aarch64-unknown-linux-gnu.runner=[\"qemu-aarch64\",\"-L\",\"/usr/aarch64-linux-gnu\"]";

/// A suite with its arguments, as `lib cell::` or `run stress --seconds 2`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Suite {
    kind: Kind,
    arguments: Vec<String>,
}

/// A command in the folder of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The program: `cargo`, or a program below the build folder.
    pub program: Program,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// `RUSTFLAGS`, if any. Builds with flags have a separate folder.
    pub flags: Option<&'static str>,
}

/// The program of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The one that `CARGO` names.
    Cargo,
    /// A program of this name that was built in debug mode.
    Built(&'static str),
}

impl Suite {
    /// Reads the name of a suite and what follows.
    ///
    /// # Errors
    ///
    /// Says which names there are.
    pub fn parse(text: &str) -> Result<Suite, String> {
        let mut words = text.split_whitespace().map(str::to_owned);
        let name = words.next().unwrap_or_default();
        let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) else {
            let known = KINDS.map(|(known, _)| known).join(", ");
            return Err(format!("there is no suite '{name}'; there are {known}"));
        };
        Ok(Suite { kind: *kind, arguments: words.collect() })
    }

    /// Returns the command that builds the programs of the suite.
    pub fn build(&self) -> Line {
        let mut arguments = match self.kind {
            Kind::Run => words("build -p percid-programs"),
            Kind::Aborts => words("build -p percid-aborts"),
            _ => self.tests(),
        };
        if self.names_tests() {
            arguments.push("--no-run".to_owned());
        }
        self.line(Program::Cargo, arguments)
    }

    /// Returns the command that must fail if the suite notices a mutant.
    pub fn run(&self) -> Line {
        let (program, mut arguments) = match self.kind {
            Kind::Run => (Program::Built("percid-programs"), Vec::new()),
            Kind::Aborts => (Program::Built("percid-aborts"), Vec::new()),
            _ => (Program::Cargo, [self.tests(), vec!["--".to_owned()]].concat()),
        };
        if self.kind == Kind::Loom {
            // The largest models are too slow for every run of all tests.
            arguments.push("--include-ignored".to_owned());
        }
        arguments.extend(self.arguments.iter().cloned());
        self.line(program, arguments)
    }

    /// Returns `true` if the suite is tests, of which its arguments select some.
    pub(crate) fn names_tests(&self) -> bool {
        !matches!(self.kind, Kind::Run | Kind::Aborts)
    }

    /// Returns the tests' command without their names. Tests of a library are built without
    /// optimisation: that takes a seventh of the time, and their results do not depend on it.
    fn tests(&self) -> Vec<String> {
        words(match self.kind {
            Kind::Lib | Kind::Portable | Kind::Elsewhere | Kind::Plain => {
                "test -p percid --lib --features testing \
                 --config profile.dev.package.percid.opt-level=0"
            }
            Kind::Loom => "test -p percid-loom",
            Kind::Rules => "test -p percid-rules",
            Kind::Numa => {
                "test -p percid-numa --lib --config profile.dev.package.percid-numa.opt-level=0"
            }
            Kind::NumaTests => "test -p percid-numa-checks",
            Kind::Capi => "test -p percid-capi",
            Kind::Programs => "test -p percid-programs --test suite",
            Kind::Sections => "test -p percid-sections",
            Kind::SectionsArm => ARM,
            Kind::Sweep => "test -p percid-sweep --lib",
            Kind::Run | Kind::Aborts => "",
        })
    }

    fn line(&self, program: Program, arguments: Vec<String>) -> Line {
        let flags = match self.kind {
            Kind::Portable => Some("--cfg percid_portable"),
            Kind::Elsewhere => Some("--cfg percid_elsewhere"),
            Kind::Plain => Some("--cfg percid_elsewhere --cfg percid_plain"),
            _ => None,
        };
        Line { program, arguments, flags }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        f.write_str(name)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_is_built_and_then_run() {
        let suite = Suite::parse("lib cell:: --exact").expect("a suite");
        assert_eq!(suite.to_string(), "lib cell:: --exact");
        assert!(suite.build().arguments.join(" ").starts_with("test -p percid --lib "));
        assert!(suite.build().arguments.join(" ").ends_with(" --no-run"));
        assert!(suite.run().arguments.join(" ").ends_with(" -- cell:: --exact"));
        let program = Suite::parse("run stress --seconds 2").expect("a suite");
        assert_eq!(program.run().program, Program::Built("percid-programs"));
        assert_eq!(program.run().arguments, ["stress", "--seconds", "2"]);
        let flags = |name| Suite::parse(name).expect("a suite").run().flags;
        assert!(flags("portable").is_some() && flags("lib").is_none());
        assert!(flags("plain").is_some_and(|plain| plain.contains("percid_elsewhere")));
        assert!(Suite::parse("everything").is_err_and(|why| why.contains("loom")));
    }
}
