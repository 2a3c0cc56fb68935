//! The IDs of a real kernel 6.12, step by step, against the simulator's policy of its generation.
//! The schedule is recorded in the machine and replayed here. `PERCID_VM` is as in `boot.rs`.

use std::env;
use std::time::Duration;

use percid_sim::conformance::{Recording, generation};
use percid_sim::policies::find;
use percid_vm::cache::Cache;
use percid_vm::guest::Source;
use percid_vm::harness::Harness;
use percid_vm::kernel::Kernel;
use percid_vm::platform::{Arch, Platform, Series};
use percid_vm::protocol::Job;
use percid_vm::tool;

/// How many IDs must agree before the first that differs, in one of the recordings at least. The
/// intermittent pattern has about 150, the random schedule that follows it the others.
const DECIDED: usize = 150;

/// In no recording this many IDs are those of the next generation, before the first that differs.
const DECIDED_OF_OTHER: usize = 100;

/// Schedules to record. Emulated CPUs stand still now and then. So in some of them a decision soon
/// falls on the border, and in some it cannot be seen whether a scan came before a switch or after
/// it, and an ID differs: what comes after that is printed and decides nothing. So several are
/// recorded in a boot, and if none is long enough, others in another.
const SEEDS: [[u64; 5]; 3] = [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15]];

fn skipped() -> bool {
    if env::var_os("PERCID_VM").is_none_or(|wish| wish != "require") {
        percid_skips::not_checked("what is booted", "PERCID_VM=require is not set");
        return true;
    }
    tool::QEMU.demand().unwrap_or_else(|error| panic!("{error}"));
    false
}

/// Records in a machine with 4 CPUs.
fn record(seeds: [u64; 5]) -> Vec<Recording> {
    let cache = Cache::find();
    let kernel = Kernel::ready(Platform::x86_64(Series::V6_12), &cache)
        .unwrap_or_else(|error| panic!("{error}"));
    let programs = Source::programs().build(&cache, Arch::X86_64).expect("the programs build");
    let jobs = seeds.map(|seed| {
        Job::new(&format!("PERCID_SEED={seed} id-steps"), Duration::from_secs(120))
            .expect("a good command")
    });
    let harness = Harness::new(&cache, &programs).expect("the harness is ready");
    let shape = "4/1".parse().expect("a good shape");
    let boot = harness.boot(&kernel, shape, &jobs, None).expect("the emulator runs");
    assert!(boot.verdict.passed(), "{:?}: {:?}", boot.verdict.faults, boot.verdict.results);
    let texts = boot.verdict.results.iter().map(|result| result.output.join("\n"));
    texts
        .map(|text| Recording::read(&text).unwrap_or_else(|error| panic!("{error}:\n{text}")))
        .collect()
}

#[test]
fn ids_of_kernel_6_12_are_those_of_its_policy() {
    if skipped() {
        return;
    }
    let other = find("linux-6.13").expect("a policy");
    let (mut most, mut most_of_other) = (0, 0);
    for seeds in SEEDS {
        for recording in record(seeds) {
            let policy = generation(&recording.release).expect("6.12 has IDs");
            assert_eq!(policy.name, "linux-6.4");
            let comparison = recording.compare(policy);
            println!("{}: {comparison}", policy.name);
            most = most.max(comparison.agreed);
            let control = recording.compare(other);
            println!("{}: {control}", other.name);
            most_of_other = most_of_other.max(control.agreed);
        }
        if most >= DECIDED {
            break;
        }
    }
    assert!(most >= DECIDED, "{most} IDs agree in the longest recording");
    // The control: no recording is that of the next generation.
    assert!(most_of_other < DECIDED_OF_OTHER, "{}: {most_of_other} IDs agree", other.name);
}
