//! The common end of all manuals.

const EXIT_AND_ENVIRONMENT: &str = "\
Output:
  The result goes to standard output, everything else to standard error. With --json
  standard output is exactly one JSON document, whose times are nanoseconds unless the
  name says otherwise. Work of more than two seconds reports its progress.

Exit status:
  0    everything asked for was measured or simulated
  1    a measurement could not be made, a structure lost or doubled something, a simulated
       figure is outside its bounds around the published one, a policy breaks its
       contract, a file could not be written, or a process has no balancer or none that
       answers; what was there was printed
  2    wrong arguments, or a file that is not what it should be (one line on standard error
       says what is allowed)
  3    `percid info --check` could not check what percid's promises rest on
  130  Ctrl-C or SIGTERM; what was finished by then was printed, and JSON has
       \"interrupted\": true

Time and noise:
  Whatever takes --seconds begins nothing new after three times as long and half a second
  for each row of its figures, so that it ends on a busy machine too. `intermittent` takes
  what its delays and bursts take for the seconds; its rows count once for each thread,
  and a warm-up ends after that half second. A step that has begun still ends, which takes
  seconds if this program has the lowest priority. If rows or parts of them are missing
  then, a line says `partial`, and JSON has the part's name in the list `partial`.

  Times are noise if others could have used every CPU at more than half of the looks that
  were taken meanwhile (runnable threads in /proc/loadavg, without percid's own), or if
  the measuring thread waited for a CPU for more than half of the time. Then `the machine
  was busy: N runnable threads on M CPUs` stands in their place, and in JSON they are null
  and the list `noise` has the part. Counts are printed all the same.

Environment:
  PERCID_BUSY=ignore
       everything is measured to the end, however long that takes, and times are printed
       although they are noise. The noisy ones are still named.
  PERCID_SOURCE=kernel|table|atomic
       where this program's IDs come from, in place of percid's own choice. A source that
       this machine lacks is named on standard error once and the best possible one is used.
       Programs with more rights than their caller ignore it.";

/// Returns the end of a subcommand's manual: its examples, and the common end.
pub(super) fn manual(examples: &str) -> String {
    format!("{examples}\n\n{EXIT_AND_ENVIRONMENT}")
}
