//! The arguments of `percid sim published`, and its manual.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use percid_command::arguments::whole;

pub(super) const ABOUT: &str = "\
Simulates what was published and prints it beside the published figures, cell by cell
with the error, and what becomes of it if one assumption is dropped. Without a part: all
but sensitivity, in JSON under their names; with one, its keys are those of the document.

  intermittent  coming back to per-CPU memory after a pause: 8 rows, 3 policies, Linux
                commit 7e019dcc470f on 2 x EPYC 9654. A prediction for memory that was
                written to beforehand stands beside each cell.
                rows: config, delay_ms, policy, model_ns, published_ns, error (a share),
                pre_faulted_ns, shares, ids_distinct, scans; mean_abs_error,
                worst_abs_error, speedups, assumptions, parameters (each with its origin
                and its sensitivity: how much the mean error changes, a share, if the
                number is halved or doubled, and whether it is unused)
  mask          test before set in the mask of an address space, Linux commit
                8f898fbbe5ee on 60 cores
                rows: metric, when, model, published (a range), error_percent, kind,
                accepted, within; ways, ways_among_processes, assumptions, parameters
  numa          which regions the NUMA scan leaves out, and why: Linux 6.6-rc2 without
                (base) and with the series on selective scanning
                rows: series, reason, kind, model, deviation, published, error_percent;
                elapsed (base, selective, gains in percent), counters, courses,
                contributions, rules, gain_by_workers, notes, parameters
  hash          the bits that threads get in the NUMA scan's activity sets, from their
                thread IDs
                tables: threads, method, computed, published, absent (threads computed
                and not published; null if others were published)
  predictions   what the model says where nothing was fitted: how long runs take and how
                much they differ, counters, other machines, pre-faulted memory
                rows: what, source, unit, model, published (a number, a range, or null),
                earlier (what an earlier model of this project said, or null), error (a
                share), kind, bound (within, or no-bound with the reason)
  sensitivity   all inputs of the first three parts, each halved and doubled, and nothing
                fitted again: which move a cell, and what they rest on
                tables: table, cells, chance (the cell that changes most with another
                seed), inputs (name, value, basis, origin, halved and doubled (cell,
                change: a share), matters: more than 5 %), in_code (constants that are
                not moved)

Kinds are fitted (numbers were chosen so that it and others come out), published (nothing
was fitted to it), by-construction (the model cannot miss it) and forecast (nobody has
published it). The numbers of published figures count the first two only.

--cross-validate fits the tables again without each of their rows or values, and predicts
what was left out with the numbers so found. In JSON intermittent has cross_validation:
mean_error and worst_error of the 24 cells so predicted (shares), policies (the same for
each), distinct (predictions of a row that differ by more than 2 %), rows and delays
(left_out, mean_error, worst_error, cells, fitted). mask and numa have leave_one_out:
fitted, refitted, mean_error, worst_error, left_out (name, model, published, error,
numbers). That of numa takes minutes.

One rule judges all published figures: the model agrees within 25 % of each, or within two
standard deviations if they were published. Goals for rows left out: a mean error of 12 %,
and of 15 % for each policy.

Each part ends with its bounds, in JSON `bounds`: name, figure, least, most and holds.
If one is missed, `within_bounds` is false. Cells out of bounds are marked with !. The exit
status is 1 if a bound of hash or sensitivity is missed: these are exact.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim published
  percid sim published intermittent --json | jq '.rows[] | [.config, .policy, .error]'
  percid sim published intermittent --cross-validate
  percid sim published predictions
  percid sim published sensitivity --json | jq '.tables[].inputs[] | select(.matters) | .name'
  percid sim published --html paper.html --seed 7";

#[derive(Clone, Debug, Args)]
pub(crate) struct PublishedArguments {
    /// The published results to compare [default: all but sensitivity]
    #[arg(value_enum, value_name = "PART")]
    pub(crate) part: Option<PublishedPart>,

    /// Seed of the simulations
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,

    /// Also fit the tables without each of their rows or values, and predict them
    #[arg(long)]
    pub(crate) cross_validate: bool,

    /// Also write a report with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PublishedPart {
    Intermittent,
    Mask,
    Numa,
    Hash,
    Predictions,
    Sensitivity,
}
