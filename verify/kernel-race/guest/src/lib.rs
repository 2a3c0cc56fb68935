//! The language between the guest and the program that drives its machine.
//!
//! The host puts a list of [`Round`]s into the root file system. The guest's first process runs
//! each in a process of its own, and writes [`Line`]s to the console.

use std::fmt;
use std::str::FromStr;

/// The beginning of every line of the guest.
pub const PREFIX: &str = "RACE ";
/// The list of rounds in the root file system, one a line.
pub const ROUNDS_PATH: &str = "/rounds";

/// Values of the word by which the host answers a [`Line::Arm`] or [`Line::Release`] of the guest.
pub mod answer {
    /// No answer yet.
    pub const NONE: u32 = 0;
    /// A CPU that comes to the place will be caught.
    pub const ARMED: u32 = 1;
    /// A CPU was caught at the place, or let go again.
    pub const DONE: u32 = 2;
}

/// The way in which the kernel is brought to the race.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// A virtual CPU is held inside a migration, as a hypervisor may hold it.
    Held,
    /// An ordinary timer interrupt inside a scan lets a real-time thread preempt it there.
    Preempted,
    /// Nothing but scheduling, affinity and real-time threads: for this many seconds.
    Unaided(u32),
}

/// The IDs that percid uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ids {
    /// The kernel's, requested by `PERCID_SOURCE`.
    Kernel,
    /// percid's table, requested by `PERCID_SOURCE`.
    Table,
    /// percid's own choice: the variable is not set.
    Chosen,
}

impl Ids {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Table, Self::Chosen];
}

/// One round: a process in which the kernel is brought to the race once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Round {
    /// The way to the race.
    pub way: Way,
    /// The IDs that percid uses.
    pub ids: Ids,
    /// `true` if this is the negative control: the same round, but no thread is stopped at the
    /// place.
    pub control: bool,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.pad("held"),
            Self::Preempted => f.pad("preempted"),
            Self::Unaided(seconds) => write!(f, "unaided-{seconds}"),
        }
    }
}

impl FromStr for Way {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let unaided = text.strip_prefix("unaided-").and_then(|seconds| seconds.parse().ok());
        match (text, unaided) {
            ("held", _) => Ok(Self::Held),
            ("preempted", _) => Ok(Self::Preempted),
            (_, Some(seconds)) => Ok(Self::Unaided(seconds)),
            _ => Err(Malformed(format!("`{text}`: expected held, preempted or unaided-SECONDS"))),
        }
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kernel => "kernel",
            Self::Table => "table",
            Self::Chosen => "chosen",
        })
    }
}

impl FromStr for Ids {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let found = Self::ALL.into_iter().find(|ids| ids.to_string() == text);
        found.ok_or_else(|| Malformed(format!("`{text}`: expected kernel, table or chosen")))
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let treatment = if self.control { "control" } else { "treated" };
        write!(f, "{}:{}:{treatment}", self.way, self.ids)
    }
}

impl FromStr for Round {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let words: Vec<&str> = text.split(':').collect();
        let [way, ids, treatment @ ("control" | "treated")] = words[..] else {
            return Err(Malformed(format!(
                "`{text}`: expected WAY:IDS:control or WAY:IDS:treated"
            )));
        };
        Ok(Self { way: way.parse()?, ids: ids.parse()?, control: treatment == "control" })
    }
}

/// The result of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Looks at the running threads in which all of them had kept their IDs for a while.
    pub samples: u64,
    /// Those in which two running threads had one `mm_cid`.
    pub doubled: u64,
    /// Increments made.
    pub added: i64,
    /// Increments that the counter has.
    pub kept: i64,
}

/// A line of the guest's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The machine is up.
    Boot {
        /// The kernel's release.
        release: String,
        /// The kernel's preemption mode: `none`, `voluntary`, `full`, `lazy`, or `unknown`.
        preemption: String,
    },
    /// The address range of a function of the kernel.
    Symbol {
        /// Its name.
        name: String,
        /// Its first byte.
        start: u64,
        /// The first byte of the next symbol.
        end: u64,
    },
    /// A round begins.
    Begin(Round),
    /// The source that percid uses, and the reason.
    Source(String),
    /// The guest waits until a CPU that comes to the place will be caught.
    Arm {
        /// The CPU that must be caught.
        cpu: u32,
        /// The address, in the process of the round, of the word that the host answers by.
        answer: u64,
        /// The address of the word with the ID that must be cleared at the place; 0 if any will do.
        id: u64,
    },
    /// The guest waits until the CPU that was caught has been let go.
    Release {
        /// The address of the word that the host answers by.
        answer: u64,
    },
    /// The result of the round.
    Result(Outcome),
    /// The round has no result, for this reason.
    Failed(String),
    /// The progress of an unaided round: attempts, and those that ended in a duplicate.
    Progress {
        /// Attempts made.
        attempts: u64,
        /// Attempts after which two running threads had one ID.
        doubled: u64,
        /// Number of times that a thread was made to change its CPU.
        migrations: u64,
        /// Seconds since the round began.
        seconds: u64,
    },
    /// For people.
    Note(String),
    /// All rounds are over.
    End,
}

/// A text that is not of the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        match self {
            Self::Boot { release, preemption } => {
                write!(f, "boot release={release} preemption={preemption}")
            }
            Self::Symbol { name, start, end } => {
                write!(f, "symbol name={name} start={start:x} end={end:x}")
            }
            Self::Begin(round) => write!(f, "begin {round}"),
            Self::Source(text) => write!(f, "source {text}"),
            Self::Arm { cpu, answer, id } => write!(f, "arm cpu={cpu} answer={answer:x} id={id:x}"),
            Self::Release { answer } => write!(f, "release answer={answer:x}"),
            Self::Result(Outcome { samples, doubled, added, kept }) => {
                write!(f, "result samples={samples} doubled={doubled} added={added} kept={kept}")
            }
            Self::Failed(text) => write!(f, "failed {text}"),
            Self::Progress { attempts, doubled, migrations, seconds } => write!(
                f,
                "progress attempts={attempts} doubled={doubled} migrations={migrations} \
                 seconds={seconds}"
            ),
            Self::Note(text) => write!(f, "note {text}"),
            Self::End => f.write_str("end"),
        }
    }
}

impl FromStr for Line {
    type Err = Malformed;

    /// Reads a line, with its prefix.
    fn from_str(line: &str) -> Result<Self, Malformed> {
        let body = line.strip_prefix(PREFIX).unwrap_or_default();
        let (kind, rest) = body.split_once(' ').unwrap_or((body, ""));
        let fields = Fields { line, rest };
        Ok(match kind {
            "boot" => Self::Boot {
                release: fields.text("release")?.to_owned(),
                preemption: fields.text("preemption")?.to_owned(),
            },
            "symbol" => Self::Symbol {
                name: fields.text("name")?.to_owned(),
                start: fields.hexadecimal("start")?,
                end: fields.hexadecimal("end")?,
            },
            "begin" => Self::Begin(rest.parse()?),
            "source" => Self::Source(rest.to_owned()),
            "arm" => Self::Arm {
                cpu: fields.number("cpu")?,
                answer: fields.hexadecimal("answer")?,
                id: fields.hexadecimal("id")?,
            },
            "release" => Self::Release { answer: fields.hexadecimal("answer")? },
            "result" => Self::Result(Outcome {
                samples: fields.number("samples")?,
                doubled: fields.number("doubled")?,
                added: fields.number("added")?,
                kept: fields.number("kept")?,
            }),
            "failed" => Self::Failed(rest.to_owned()),
            "progress" => Self::Progress {
                attempts: fields.number("attempts")?,
                doubled: fields.number("doubled")?,
                migrations: fields.number("migrations")?,
                seconds: fields.number("seconds")?,
            },
            "note" => Self::Note(rest.to_owned()),
            "end" if rest.is_empty() => Self::End,
            _ => return Err(fields.malformed("a known kind of line")),
        })
    }
}

/// The `name=value` words of a line.
struct Fields<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> Result<&'a str, Malformed> {
        let words = self.rest.split(' ').filter_map(|word| word.split_once('='));
        let mut values = words.filter(|(key, _)| *key == name).map(|(_, value)| value);
        values.next().ok_or_else(|| self.malformed(name))
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<T, Malformed> {
        self.text(name)?.parse().map_err(|_| self.malformed(name))
    }

    fn hexadecimal(&self, name: &str) -> Result<u64, Malformed> {
        u64::from_str_radix(self.text(name)?, 16).map_err(|_| self.malformed(name))
    }

    fn malformed(&self, expected: &str) -> Malformed {
        Malformed(format!("`{}`: expected {expected}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_was_written() {
        let round = Round { way: Way::Unaided(60), ids: Ids::Chosen, control: true };
        let outcome = Outcome { samples: 9, doubled: 3, added: 5_000_000_000, kept: -1 };
        let lines = [
            Line::Boot { release: "6.18.15+deb13".into(), preemption: "lazy".into() },
            Line::Symbol { name: "f.isra.0".into(), start: 0xffff_ffff_8100_0000, end: 1 },
            Line::Begin(round),
            Line::Begin(Round { way: Way::Held, ids: Ids::Kernel, control: false }),
            Line::Source("table, because".into()),
            Line::Arm { cpu: 7, answer: 0x7fff_0000, id: 0 },
            Line::Release { answer: 16 },
            Line::Result(outcome),
            Line::Failed("nobody came".into()),
            Line::Progress { attempts: 1, doubled: 2, migrations: 3, seconds: 4 },
            Line::Note("a b=c".into()),
            Line::End,
        ];
        for line in lines {
            assert_eq!(line.to_string().parse(), Ok(line));
        }
    }

    #[test]
    fn what_a_message_of_the_kernel_has_cut_is_refused() {
        for line in [
            "",
            "end",
            "RACE ",
            "RACE en",
            "RACE end [    1.2] BUG",
            "RACE result samples=1 doubled=1 added=2",
            "RACE result samples=x doubled=1 added=2 kept=2",
            "RACE arm cpu=7 answer=0xz id=0",
            "RACE begin held:kernel",
            "RACE begin held:kernel:often",
            "RACE begin unaided-x:kernel:control",
        ] {
            assert!(line.parse::<Line>().is_err(), "{line}");
        }
    }
}
