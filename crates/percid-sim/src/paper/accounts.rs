//! The lists of numbers on which the published tables depend, with what each rests on. A walk over
//! all inputs ([`walk`](super::walk)) checks that no number that matters is missing.

use super::basis::Basis::{Assumed, Derived, Fitted, Measured, Published};
use super::basis::Listed;
use super::setting::OF_THE_BENCHMARK;

/// Creates an entry whose origin is in the file of the machine or of the workload.
const fn of_file(name: &'static str, basis: super::basis::Basis) -> Listed {
    Listed::new(name, basis, "")
}

const ROWS: &str = "the published table: the rows and their machine";

/// A law was chosen by the rows that fits had left out: that is a fit.
const LAW: &str = "the law that predicted the rows left out best, among 7: a choice by the table";

/// Returns the list of the intermittent benchmark.
pub fn intermittent() -> Vec<Listed> {
    let mut list = INTERMITTENT.to_vec();
    list.extend(OF_THE_BENCHMARK);
    list
}

const INTERMITTENT: [Listed; 38] = [
    of_file("hot_ns", Measured),
    of_file("cold_ns", Fitted),
    of_file("cooling_ms", Fitted),
    of_file("core_cache_kb", Published),
    of_file("l3_cache_kb", Published),
    of_file("refill_l3_ns", Measured),
    of_file("refill_memory_ns", Measured),
    of_file("background_mb_s", Assumed),
    of_file("sibling_factor", Assumed),
    of_file("overlap", Published),
    of_file("same_l3_ns", Assumed),
    of_file("same_socket_ns", Assumed),
    of_file("other_socket_ns", Assumed),
    of_file("first_touch_us", Fitted),
    of_file("first_touch_cooling_ms", Fitted),
    of_file("first_touch_hot_us", Measured),
    of_file("zero_page_share", Measured),
    of_file("slow_path_ns", Measured),
    of_file("fence_idle_ns", Measured),
    of_file("fence_running_ns", Measured),
    of_file("fence_each_ns", Assumed),
    of_file("interrupt_ns", Assumed),
    of_file("scan_cpu_ns", Assumed),
    of_file("hz", Assumed),
    of_file("slice_ms", Published),
    Listed::new("delay_ms", Published, ROWS),
    Listed::new("l3s", Published, ROWS),
    Listed::new("cores_per_l3", Published, ROWS),
    Listed::new("threads_per_core", Published, ROWS),
    Listed::new("lines", Published, "the published table: 16 kB, in lines of 64 bytes"),
    Listed::new("cooling_exponent", Fitted, LAW),
    Listed::new("cache_weight", Fitted, LAW),
    Listed::new(
        "first_touch_exponent",
        Fitted,
        "the law that predicted the rows left out best, among 9: a choice by the table",
    ),
    Listed::new("expiry_ms", Published, "Linux commit 223baf9d17f2"),
    Listed::new("machine.sockets", Published, ROWS),
    Listed::new("machine.l3s_per_socket", Published, ROWS),
    Listed::new("machine.cores_per_l3", Published, ROWS),
    Listed::new("machine.threads_per_core", Published, ROWS),
];

/// The list of the mask of an address space.
pub const MASK: [Listed; 25] = [
    of_file("processes", Published),
    of_file("threads", Assumed),
    of_file("work_us", Fitted),
    of_file("scheduler_us", Fitted),
    of_file("alone_speed", Fitted),
    of_file("other_space_share", Published),
    of_file("sleep_share", Assumed),
    of_file("sleep_us", Assumed),
    of_file("kernel_share", Assumed),
    of_file("kernel_us", Assumed),
    of_file("turns_per_flush", Assumed),
    of_file("turns_per_cpu", Assumed),
    Listed::new(
        "clock_ghz",
        Assumed,
        "assumption: Xeon E7-4890 v2, base clock; published are 60 cores and 120 threads",
    ),
    of_file("core_cycles", Measured),
    of_file("locked_ns", Measured),
    of_file("reload_ns", Assumed),
    of_file("trim_interval_ms", Published),
    of_file("same_l3_ns", Measured),
    of_file("same_socket_ns", Measured),
    of_file("other_socket_ns", Measured),
    Listed::new(
        "machine.sockets",
        Assumed,
        "assumption: 15 cores each, as E7-4890 v2; published are 60 cores",
    ),
    Listed::new("machine.cores_per_l3", Derived, "published: 60 cores, on the assumed 4 sockets"),
    Listed::new("machine.threads_per_core", Published, "published: 60 cores and 120 threads"),
    Listed::new("work_spread", Assumed, "assumption; moved to constant work"),
    Listed::new("arbitration", Assumed, "assumption; moved to the nearest CPU first"),
];

const LINUX: &str = "Linux's default";

/// The list of the NUMA scan.
pub const NUMA: [Listed; 32] = [
    Listed::new("processes", Published, "the benchmark"),
    Listed::new("threads", Derived, "the benchmark: half as many in each process as CPUs"),
    Listed::new("mib", Published, "the benchmark"),
    Listed::new("rounds", Published, "the benchmark"),
    Listed::new("preparation_s", Fitted, "unsuitable"),
    Listed::new(
        "cpus",
        Fitted,
        "80 CPUs agree with the published processor times; published are two sockets",
    ),
    Listed::new("speed_gb_s", Fitted, "elapsed, base"),
    Listed::new("remote_cost", Fitted, "elapsed, selective"),
    Listed::new("slow_cost", Assumed, "no node without CPUs: no cell depends on it"),
    Listed::new("cold_after_s", Assumed, "no node without CPUs: no cell depends on it"),
    Listed::new("hot_threshold_ms", Assumed, "no node without CPUs: no cell depends on it"),
    Listed::new("tiers_mib_s", Assumed, "no node without CPUs: no cell depends on it"),
    Listed::new("stay_s", Fitted, "selective counts"),
    Listed::new("reluctance", Fitted, "selective counts: none, because the updates fit better"),
    Listed::new("first_period_ms", Published, LINUX),
    Listed::new(
        "least_share",
        Fitted,
        "published processor time: 93 217 s in 1234.77 s on 80 CPUs is a mean of 0.944",
    ),
    Listed::new("main_share", Fitted, "base counts"),
    Listed::new("file_regions", Fitted, "shared_ro against inaccessible; plausible are 14 to 16"),
    Listed::new("data_regions", Fitted, "pid_inactive against inaccessible"),
    Listed::new(
        "put_off",
        Fitted,
        "Linux does; ignore_pid_inactive and elapsed cannot both be met with it",
    ),
    Listed::new("tick_ms", Assumed, "HZ = 250, distributions' default"),
    Listed::new("bound", Published, "the benchmark: the policy of its workers while they prepare"),
    Listed::new("place", Derived, "the benchmark: a policy bound to one node"),
    Listed::new("adaptation", Published, "Linux"),
    Listed::new("hurry_after_move", Published, "Linux"),
    Listed::new("go_home", Assumed, "Linux; that there is always a CPU is assumed"),
    Listed::new("scan_delay_ms", Published, LINUX),
    Listed::new("scan_size_mib", Published, LINUX),
    Listed::new("period_min_ms", Published, LINUX),
    Listed::new("period_max_ms", Published, LINUX),
    Listed::new("max_rate_mib", Published, LINUX),
    Listed::new("nodes", Published, "the machine: two sockets"),
];

/// A constant of the code on which a table may depend, and that the walk cannot move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InCode {
    /// The file, from the crate's `src`.
    pub file: &'static str,
    /// The constant.
    pub listed: Listed,
}

const fn in_code(
    file: &'static str,
    name: &'static str,
    basis: super::basis::Basis,
    why: &'static str,
) -> InCode {
    InCode { file, listed: Listed::new(name, basis, why) }
}

/// The numeric constants of the models' files. A test compares them with the files.
pub const IN_CODE: [InCode; 29] = [
    in_code("cost.rs", "DIGITS", Assumed, "rounding of states that are priced together: 3 %"),
    in_code("cost.rs", "HOT", Assumed, "only the name of a class depends on it"),
    in_code(
        "policies/slots.rs",
        "PERIOD",
        Published,
        "Linux commit 223baf9d17f2; moved as expiry_ms",
    ),
    in_code("mask/outcome.rs", "SAMPLE_THRESHOLD", Assumed, "no compared figure depends on it"),
    in_code("mask/parameters.rs", "MOST_THREADS", Published, "a limit"),
    in_code("numa/run.rs", "STEP", Assumed, "the time to arm an entry"),
    in_code("numa/thread.rs", "EARLY", Published, "Linux"),
    in_code("numa/thread.rs", "PART_OF_PERIOD", Published, "Linux"),
    in_code("numa/clock.rs", "REST", Published, "Linux"),
    in_code("numa/weights.rs", "MUCH_MORE", Published, "Linux"),
    in_code("numa/weights.rs", "MORE", Published, "Linux"),
    in_code("numa/setup.rs", "LONGEST_RUN", Assumed, "a limit"),
    in_code("numa/setup.rs", "SPEED", Fitted, "moved as speed_gb_s"),
    in_code("numa/setup.rs", "REMOTE_COST", Fitted, "moved as remote_cost"),
    in_code("numa/setup.rs", "SLOW_COST", Assumed, "moved as slow_cost"),
    in_code("numa/workload/layout.rs", "PAGE", Published, "the processor"),
    in_code("numa/workload/layout.rs", "MAIN", Published, "the number of a thread"),
    in_code("numa/workload/layout.rs", "FEW", Assumed, "resident pages of a small region"),
    in_code("numa/workload/layout.rs", "SMALL", Assumed, "size of a small region"),
    in_code(
        "numa/workload/layout.rs",
        "SEGMENTS",
        Derived,
        "ELF programs: segments before the memory",
    ),
    in_code(
        "numa/workload/layout.rs",
        "PLACED",
        Derived,
        "ELF programs: data regions with known places",
    ),
    in_code("../../percid-rules/src/scan/settings.rs", "MIB", Published, "a unit"),
    in_code(
        "../../percid-rules/src/scan/settings.rs",
        "LOOK",
        Published,
        "Linux: memory that a pass may inspect",
    ),
    in_code(
        "../../percid-rules/src/scan/settings.rs",
        "WINDOW",
        Published,
        "Linux: the length of an activity window",
    ),
    in_code("../../percid-rules/src/scan/period.rs", "MIN_WELL_PLACED_TENTHS", Published, "Linux"),
    in_code("../../percid-rules/src/scan/period.rs", "TENTHS", Published, "Linux"),
    in_code("../../percid-rules/src/scan/visit.rs", "HUGE_PAGE", Published, "the processor"),
    in_code("../../percid-rules/src/scan/visit.rs", "BLIND_SEQUENCES", Published, "Linux"),
    in_code("../../percid-rules/src/scan/activity.rs", "GOLDEN", Published, "Linux"),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The files of the models, apart from the engine, whose constants are sizes and limits.
    const FILES: [&str; 26] = [
        "cost.rs",
        "caches.rs",
        "idle_history.rs",
        "policies/slots.rs",
        "policies/linux_6_4.rs",
        "policies/linux_6_13.rs",
        "policies/per_cpu.rs",
        "mask/line.rs",
        "mask/outcome.rs",
        "mask/parameters.rs",
        "mask/ready.rs",
        "mask/simulation.rs",
        "numa/clock.rs",
        "numa/locality.rs",
        "numa/pages.rs",
        "numa/parameters.rs",
        "numa/run.rs",
        "numa/setup.rs",
        "numa/system.rs",
        "numa/thread.rs",
        "numa/weights.rs",
        "numa/workload/layout.rs",
        "../../percid-rules/src/scan/settings.rs",
        "../../percid-rules/src/scan/period.rs",
        "../../percid-rules/src/scan/visit.rs",
        "../../percid-rules/src/scan/activity.rs",
    ];

    /// Returns the numeric constants of a text before its tests.
    fn constants(text: &str) -> Vec<&str> {
        let text = text.split("#[cfg(test)]").next().unwrap_or(text);
        let name = |line: &'_ str| -> Option<(usize, usize)> {
            let start = line.find("const ")? + "const ".len();
            let (name, rest) = line[start..].split_once(": ")?;
            let kind = rest.split(" =").next()?;
            let numeric = |part: &str| {
                ["f64", "Ns", "Cycles", "u32", "u64", "u128", "i64", "usize"].contains(&part)
            };
            let parts = kind.trim_matches(['(', ')']);
            let is_name =
                name.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
            (is_name && parts.split(", ").all(numeric)).then_some((start, start + name.len()))
        };
        text.lines().filter_map(|line| name(line).map(|(from, to)| &line[from..to])).collect()
    }

    #[test]
    fn every_constant_of_the_models_is_on_the_list() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for file in FILES {
            let text = fs::read_to_string(source.join(file)).expect("a file of this crate");
            found.extend(constants(&text).into_iter().map(|name| (file, name.to_owned())));
        }
        let listed = IN_CODE.map(|one| (one.file, one.listed.name.to_owned()));
        for one in &found {
            assert!(listed.contains(one), "{one:?} is not on the list");
        }
        for one in &listed {
            assert!(found.contains(one), "{one:?} is in no file");
        }
    }

    #[test]
    fn numeric_constants_are_told_from_others() {
        let text = "const A: f64 = 1.0;\npub const B_2: (u128, u128) = (4, 3);\n\
                    const C: &str = \"\";\n    const fn d() {}\n#[cfg(test)]\nconst E: u64 = 1;\n";
        assert_eq!(constants(text), ["A", "B_2"]);
    }
}
