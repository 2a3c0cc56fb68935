//! The arguments of `percid sim check`, and its manual.

use std::time::Duration;

use clap::Args;
use percid_command::arguments::{PolicyChoice, policy, seconds, whole};

pub(super) const ABOUT: &str = "\
Executes random schedules of one process, each on a random machine, and checks after every
step that the policy keeps its contract:

  unique     no two running threads have one ID
  bounded    an ID is below the number of CPUs, or below the largest number of threads at
             a time if that is more
  stable     a running thread keeps its ID until it is switched away from, replaces the
             program, or the policy reports a fence of its CPU
  work       fences are of CPUs that the machine has, and their number is sensible
  failed     every running thread gets an ID

`percid sim run` checks the same in every run. Policies are those of `percid sim run`:
names, releases, or files of WebAssembly modules.

If a schedule breaks the contract, this command reduces it to few steps, on a small
machine, and prints them. Every policy is checked. The exit status is 1 if one of them
breaks its contract. `--seed N --runs 1` repeats one schedule.

In JSON, `policies` has for each policy: its name, `runs`, and `finding`, which is null or
has the `seed` of the schedule, its number of `random_steps`, the `machine` (cpus, cores,
l3s, sockets) and the `allowed` CPUs of the first thread after the reduction, `steps` (at
in nanoseconds, text), the `violation` (policy, at, cpu, thread, breach) and the `message`.
JSON also has `seed`, `runs` and `interrupted`.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim check all
  percid sim check percid-table --runs 100000 --seconds 60
  percid sim check linux-6.14,per-thread --seed 7 --runs 1 --json";

#[derive(Clone, Debug, Args)]
pub(crate) struct ContractArguments {
    /// Policies, separated by commas, or `all`
    #[arg(value_name = "POLICIES", value_delimiter = ',', required = true, value_parser = policy)]
    pub(crate) policy: Vec<PolicyChoice>,

    /// Number of random schedules for each policy
    #[arg(long, value_name = "N", default_value = "2000", value_parser = whole::<1, 1_000_000_000>)]
    pub(crate) runs: u64,

    /// Time after which no more schedules begin, for each policy [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) seconds: Option<Duration>,

    /// Seed of the first schedule; the others follow it
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) seed: u64,
}
