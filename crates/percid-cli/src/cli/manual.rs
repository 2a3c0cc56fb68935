//! What every manual ends with.

const EXIT_AND_ENVIRONMENT: &str = "\
Output:
  The result goes to standard output, everything else to standard error. With --json
  standard output is exactly one JSON document, whose times are nanoseconds unless the
  name says otherwise. Work of more than two seconds reports its progress.

Exit status:
  0    everything asked for was measured or simulated
  1    a measurement could not be made, a structure lost or doubled something, a simulated
       figure is outside its bounds around the published one, a file could not be
       written, or a process has no balancer or none that answers; what was there was
       printed
  2    wrong arguments, or a file that is not what it should be (one line on standard error
       says what is allowed)
  130  Ctrl-C or SIGTERM; what was finished by then was printed, and JSON has
       \"interrupted\": true

Environment:
  PERCID_SOURCE=kernel|table|atomic
       where this program's IDs come from, in place of percid's own choice. A source that
       this machine lacks is named on standard error once and the best possible one is used.
       Programs with more rights than their caller ignore it.";

/// The end of a subcommand's manual: its examples, and what holds for all.
pub(super) fn manual(examples: &str) -> String {
    format!("{examples}\n\n{EXIT_AND_ENVIRONMENT}")
}
