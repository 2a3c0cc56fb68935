//! The arguments of `percid sim`, and its manual.

mod check;
mod import;
mod mask;
mod numa;
mod page;
mod published;
mod run;
mod setting;
mod show;
mod sweep;
mod thread_hash;

use clap::{Args, Subcommand};

use super::manual::manual;

pub(crate) use check::ContractArguments;
pub(crate) use import::ImportArguments;
pub(crate) use mask::MaskArguments;
pub(crate) use numa::{MemoryArguments, ScanRules};
pub(crate) use page::PageArguments;
pub(crate) use published::{PublishedArguments, PublishedPart};
pub(crate) use run::RunArguments;
pub(crate) use setting::Setting;
pub(crate) use show::{ShowArguments, Shown};
pub(crate) use sweep::SweepArguments;
pub(crate) use thread_hash::{HashArguments, ThreadIds, Wanted};

pub(super) const ABOUT: &str = "\
Simulates policies for concurrency IDs, membership masks and NUMA scanning on other
machines than this one. docs/explanation/simulator-model.md says what is modelled, what
is assumed and where the limits are.

Without a subcommand it shows what can be simulated, as `percid sim list` does.
Simulations are deterministic: the same arguments and seed give the same result, bit
for bit, on every machine; all CPUs that this program may use take part.";

pub(super) const EXAMPLES: &str = "\
Examples:
  percid sim                         machines, workloads and policies that there are
  percid sim published                   published results beside simulated ones
  percid sim run --workload thread-pool --set threads=8,32,128 --html report.html
  percid sim check percid-table
  percid sim numa --workload phases --seeds 1
  percid sim mask --workload hackbench
  percid sim thread-hash --threads 65,129,385";

const LIST_ABOUT: &str = "\
Shows the machines, workloads and policies that come with the simulator: machines with
their numbers of CPUs, workloads with their parameters and the values these have unless
--set says otherwise, workloads for `percid sim numa` and `percid sim mask`, policies of
IDs and of masks with what they are, and the releases of kernels that stand for a policy.
In JSON: machines, workloads, memory_workloads, mask_workloads, policies, mask_policies,
releases.";

#[derive(Clone, Debug, Args)]
pub(crate) struct SimArguments {
    #[command(subcommand)]
    pub(crate) part: Option<SimPart>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SimPart {
    /// Simulate policies beside each other
    #[command(long_about = run::ABOUT, after_long_help = manual(run::EXAMPLES))]
    Run(RunArguments),
    /// Search for a schedule in which a policy breaks its contract
    #[command(long_about = check::ABOUT, after_long_help = manual(check::EXAMPLES))]
    Check(ContractArguments),
    /// Simulate a parameter space, run by run, into a folder of Parquet files
    #[command(long_about = sweep::ABOUT, after_long_help = manual(sweep::EXAMPLES))]
    Sweep(SweepArguments),
    /// Simulate how CPUs share the mask of an address space
    #[command(long_about = mask::ABOUT, after_long_help = manual(mask::EXAMPLES))]
    Mask(MaskArguments),
    /// Show published results beside simulated ones, cell by cell
    #[command(long_about = published::ABOUT, after_long_help = manual(published::EXAMPLES))]
    Published(PublishedArguments),
    /// Simulate the NUMA scan's rules beside each other
    #[command(long_about = numa::ABOUT, after_long_help = manual(numa::EXAMPLES))]
    Numa(MemoryArguments),
    /// Compute how well activity sets of 64 and 128 bits tell threads apart
    #[command(long_about = thread_hash::ABOUT, after_long_help = manual(thread_hash::EXAMPLES))]
    ThreadHash(HashArguments),
    /// Write the simulator as a web page
    #[command(long_about = page::ABOUT, after_long_help = manual(page::EXAMPLES))]
    Page(PageArguments),
    /// Show machines, workloads with their parameters, and policies
    #[command(
        long_about = LIST_ABOUT,
        after_long_help = manual("Examples:\n  percid sim list\n  percid sim list --json | jq '.workloads[].name'"),
    )]
    List,
    /// Print the file of a machine or workload
    #[command(long_about = show::ABOUT, after_long_help = manual(show::EXAMPLES))]
    Show(ShowArguments),
    /// Print the file of a machine that lscpu or hwloc describes
    #[command(long_about = import::ABOUT, after_long_help = manual(import::EXAMPLES))]
    Import(ImportArguments),
}
