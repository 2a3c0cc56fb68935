//! Machines for the tests that boot one: only on request.

use std::env;

use percid_vm::cache::Cache;
use percid_vm::guest::Source;
use percid_vm::harness::Harness;
use percid_vm::kernel::Kernel;
use percid_vm::platform::{Arch, Platform, Series};
use percid_vm::protocol::Job;

/// Returns `true` if the tests that boot a machine are left out: unless `PERCID_VM=require` is set.
pub(crate) fn skipped(arch: Arch) -> bool {
    if env::var_os("PERCID_VM").is_none_or(|wish| wish != "require") {
        percid_skips::not_checked("what is booted", "PERCID_VM=require is not set");
        return true;
    }
    arch.emulator().demand().unwrap_or_else(|error| panic!("{error}"));
    false
}

/// Returns the output of percid's programs on Linux 6.12, where all of them must pass.
pub(crate) fn outputs(shape: &str, jobs: &[Job]) -> Vec<String> {
    let cache = Cache::find();
    let kernel = Kernel::ready(Platform::x86_64(Series::V6_12), &cache)
        .unwrap_or_else(|error| panic!("{error}"));
    let programs = Source::programs().build(&cache, Arch::X86_64).expect("the programs build");
    let harness = Harness::new(&cache, &programs).expect("the harness is ready");
    let shape = shape.parse().expect("a good shape");
    let verdict = harness.boot(&kernel, shape, jobs, None).expect("the emulator runs").verdict;
    assert!(verdict.passed(), "{:?}: {:?}", verdict.faults, verdict.results);
    verdict.results.iter().map(|result| result.output.join("\n")).collect()
}
