//! The command line.

use std::ffi::OsString;
use std::time::Duration;

use lexopt::Parser;
use lexopt::prelude::*;

use crate::selection::Selection;

/// Shown by `--help`.
pub const HELP: &str = "\
Puts small faults into a copy of percid, one at a time, and runs the suites of
tests that must notice each. The faults are in verify/mutants/catalogue.

usage: percid-mutants [options] [NAME...]

  NAME              this mutant; without any selection all are tried
  --room ROOM       all of this file of the catalogue
  --file FILE       all of this file of the project
  --since REVISION  all of the files that differ from this revision
  --dozen NUMBER    twelve of all: the first for 0, the next for 1, from the
                    beginning again after the last
  --minutes N       begin no other when this time is over, and say how many are left
  --jobs N          how many at a time, each in a copy of its own (1)
  --list            print the names of what is selected, one a line; try nothing
  --json            one JSON document on standard output at the end
  --help            this text

Selections add up. For each mutant a line says: noticed by which suite; survived;
equivalent (the catalogue has the argument why no execution can tell); does not
apply (the text that it changes is gone: it must be renewed); does not build. The
controls change nothing and must survive. The copy is target/mutants.

Exit status: 0 if everything is as the catalogue says, 1 if not, 2 if there is no
result.
";

/// The options of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The mutants to try.
    pub selection: Selection,
    /// The time after which no further mutant is begun.
    pub limit: Option<Duration>,
    /// Number of mutants that are tried at a time.
    pub jobs: usize,
    /// Print names only.
    pub list: bool,
    /// Print JSON.
    pub json: bool,
    /// Print the help.
    pub help: bool,
}

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// Says which argument is wrong.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Options, lexopt::Error> {
        let selection = Selection::default();
        let mut options =
            Options { selection, limit: None, jobs: 1, list: false, json: false, help: false };
        let chosen = &mut options.selection;
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("room") => chosen.rooms.push(parser.value()?.string()?),
                Long("file") => chosen.files.push(parser.value()?.string()?),
                Long("since") => chosen.since = Some(parser.value()?.string()?),
                Long("dozen") => chosen.dozen = Some(parser.value()?.parse()?),
                Long("minutes") => {
                    let minutes: u32 = parser.value()?.parse()?;
                    options.limit = Some(Duration::from_secs(60 * u64::from(minutes)));
                }
                Long("jobs") => {
                    options.jobs = parser.value()?.parse_with(|text| match text.parse() {
                        Ok(jobs @ 1..=64) => Ok(jobs),
                        _ => Err("a number from 1 to 64"),
                    })?;
                }
                Long("list") => options.list = true,
                Long("json") => options.json = true,
                Short('h') | Long("help") => options.help = true,
                Value(name) => chosen.names.push(name.string()?),
                _ => return Err(argument.unexpected()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let parse = |line: &str| Options::parse(line.split_whitespace().map(OsString::from));
        let options = parse("--since HEAD~1 --dozen 7 --minutes 6 a b").expect("options");
        assert_eq!(options.selection.names, ["a", "b"]);
        assert_eq!(options.selection.dozen, Some(7));
        assert_eq!(options.limit, Some(Duration::from_secs(360)));
        for wrong in ["--dozen x", "--jobs 0", "--minutes -1", "--room", "--unknown"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
