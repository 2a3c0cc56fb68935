//! The modules in `policies/`, compiled and compared with the built-in policies, and modules that
//! are wrong.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use percid_sim::contract::{Search, check};
use percid_sim::engine::{Outcome, Simulation};
use percid_sim::machine::Machine;
use percid_sim::policies::{self, PolicySpec};
use percid_sim::run_control::RunControl;
use percid_sim::workload::Workload;
use percid_sim_wasm::load;
use percid_skips::not_checked;

/// Compiles a module by a command whose last arguments are its output and its source. Returns
/// `None` if the compiler is missing or has no WebAssembly.
fn compiled(source: &str, compiler: &str, arguments: &[&str]) -> Option<&'static PolicySpec> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let to = folder.join(Path::new(source).with_extension("wasm"));
    let from: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies").join(source);
    let output = Command::new(compiler).args(arguments).arg("-o").args([&to, &from]).output();
    let problem = match output {
        Ok(output) if output.status.success() => {
            let module = std::fs::read(to).expect("the compiler's output");
            return Some(load(source, &module).expect("a policy"));
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let is_missing = ["E0463", "No such file", "No available targets", "unable to find"]
        .iter()
        .any(|hint| problem.contains(hint));
    assert!(is_missing, "{problem}");
    not_checked(&format!("policies/{source}"), &problem);
    None
}

fn rust() -> Option<&'static PolicySpec> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let arguments = "--target wasm32-unknown-unknown --edition 2024 -O --crate-type cdylib \
                     -C panic=abort -C link-args=-zstack-size=4096";
    compiled("linux_6_3.rs", &rustc, &arguments.split_whitespace().collect::<Vec<_>>())
}

fn c() -> Option<&'static PolicySpec> {
    let arguments = "--target=wasm32 -O2 -nostdlib -Wall -Werror -Wl,--no-entry \
                     -Wl,-z,stack-size=4096";
    compiled("per_thread.c", "clang", &arguments.split_whitespace().collect::<Vec<_>>())
}

fn simulate(
    entry: &'static PolicySpec,
    workload: &str,
    ms: f64,
    seed: u64,
) -> Result<Outcome, String> {
    let machine = Machine::preset("epyc-9654").expect("a preset");
    let mut workload = Workload::preset(workload).expect("a preset");
    workload.set("duration_ms", ms).expect("a parameter");
    let program = workload.program(&machine).expect("a program");
    let simulation = Simulation::new(&machine, &program, entry, seed).record_spans(10_000);
    simulation.run(&AtomicBool::new(false)).map_err(|violation| violation.to_string())
}

/// Compares a module with a built-in policy, bit for bit, and with another one, which differs.
fn expect_equal(module: &'static PolicySpec, built_in: &str, other: &str) {
    let [built_in, other] =
        [built_in, other].map(|name| policies::find(name).expect("a built-in policy"));
    for (workload, ms) in
        [("container", 300.0), ("churn", 100.0), ("oversubscribed", 60.0), ("fork-exec", 60.0)]
    {
        for seed in [1, 77] {
            let of = |entry| simulate(entry, workload, ms, seed).expect("the contract is kept");
            let outcome = of(module);
            assert_eq!(outcome, of(built_in), "{workload}, seed {seed}");
            assert_ne!(outcome, of(other), "{workload}, seed {seed}");
        }
    }
    let found = check(module, Search { runs: 300, seed: 1 }, &RunControl::default());
    assert_eq!(found.finding, None);
}

#[test]
fn linux_6_3_in_rust_gives_what_the_built_in_policy_gives() {
    if let Some(module) = rust() {
        expect_equal(module, "linux-6.3", "per-cpu");
    }
}

#[test]
fn per_thread_in_c_gives_what_the_built_in_policy_gives() {
    if let Some(module) = c() {
        expect_equal(module, "per-thread", "linux-6.3");
    }
}

fn module(text: &str) -> Result<&'static PolicySpec, String> {
    let module = wat::parse_str(text).expect("a module in text form");
    load("test.wasm", &module).map_err(|error| error.to_string())
}

const ID: &str = r#"(func (export "percid_id") (param i32 i32) (result i32) local.get 0)"#;

#[test]
fn a_module_that_does_not_fit_the_interface_is_refused_with_what_was_expected() {
    let not_a_module = load("x", b"not a module").expect_err("no module").to_string();
    assert!(not_a_module.starts_with("expected a WebAssembly module: "), "{not_a_module}");
    let cases = [
        (
            "(module)".to_owned(),
            "lacks a function; expected the export percid_id(cpu: i32, thread: i32) -> i32",
        ),
        (
            r#"(module (func (export "percid_id") (param i32) (result i32) local.get 0))"#
                .to_owned(),
            "exports percid_id with parameters [I32] and results [I32]; expected percid_id(cpu: \
             i32, thread: i32) -> i32",
        ),
        (
            r#"(module (global (export "percid_id") i32 (i32.const 1)))"#.to_owned(),
            "exports percid_id, which is no function",
        ),
        (
            format!(r#"(module {ID} (func (export "percid_swich")))"#),
            "exports percid_swich; expected percid_start, percid_id, percid_switch",
        ),
        (
            format!(r#"(module (import "percid" "time" (func)) {ID})"#),
            "imports percid.time; expected imports from percid: now, threads",
        ),
        (
            format!(r#"(module (import "wasi_snapshot_preview1" "fd_write" (func)) {ID})"#),
            "imports wasi_snapshot_preview1.fd_write; expected imports from percid",
        ),
        (
            format!(r#"(module (import "percid" "now" (func (result i32))) {ID})"#),
            "expected now() -> i64",
        ),
    ];
    for (text, expected) in cases {
        let said = module(&text).expect_err(&text);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_module_that_fails_ends_the_run_with_an_error() {
    let counts = r#"(import "percid" "count" (func $count (param i32 i32)))"#;
    let charges = r#"(import "percid" "charge" (func $charge (param i32 i32)))"#;
    let asks = r#"(import "percid" "distance" (func $distance (param i32 i32) (result i32)))"#;
    let id =
        |body: &str| format!(r#"(func (export "percid_id") (param i32 i32) (result i32) {body})"#);
    let cases = [
        (id("unreachable"), "percid_id trapped: wasm `unreachable` instruction executed"),
        (id("(loop $l (br $l)) i32.const 0"), "percid_id does not end: it used 5000000 units"),
        (id("i32.const -1"), ") returned -1"),
        (id("local.get 0 i32.const 1 i32.shr_u"), "gets ID 0, which thread"),
        (id("i32.const 99999"), "gets ID 99999; expected an ID below"),
        (
            id("(i32.div_u (i32.const 1) (i32.const 0))"),
            "percid_id trapped: integer divide by zero",
        ),
        (id("(i32.load (i32.const 70000))") + "(memory 1)", "percid_id trapped: out of bounds"),
        (
            format!(r#"{ID} (func (export "percid_tick") (param i32 i32) unreachable)"#),
            "percid_tick",
        ),
        (
            format!(r#"{ID} (func (export "percid_switch") (param i32 i32 i32) unreachable)"#),
            "percid_switch trapped",
        ),
        (
            format!(r#"{ID} (func (export "percid_start") (param i32) unreachable)"#),
            "percid_start trapped",
        ),
        (format!("{ID} (func $f unreachable) (start $f)"), "the start of the module trapped"),
        (format!("{ID} (memory 1000)"), "the start of the module failed"),
        (
            counts.to_owned() + &id("(call $count (i32.const 9) (i32.const 1)) local.get 0"),
            "percid_id failed: count(9, ..): expected 0 to 3",
        ),
        (
            charges.to_owned() + &id("(call $charge (i32.const 1) (i32.const 7777)) local.get 0"),
            "pays for a fence of CPU 7777; expected a CPU below",
        ),
        (
            charges.to_owned() + &id("(call $charge (i32.const 2) (i32.const -1)) local.get 0"),
            "expected at most 65536 of each",
        ),
        (
            asks.to_owned() + &id("(call $distance (i32.const -1) (i32.const 0))"),
            "expected CPUs below",
        ),
    ];
    for (body, expected) in cases {
        let entry = module(&format!("(module {body})")).expect("it fits the interface");
        let said = simulate(entry, "oversubscribed", 20.0, 1).expect_err(&body);
        assert!(said.contains(expected) && said.contains("policy test.wasm "), "{said}");
        let found = check(entry, Search { runs: 100, seed: 1 }, &RunControl::default());
        let said = found.finding.expect(&body).violation.to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn imports_tell_the_state_of_the_process_and_the_machine() {
    // The ID is 0 for as long as every import returns what the schedule implies.
    let text = r#"(module
        (import "percid" "now" (func $now (result i64)))
        (import "percid" "threads" (func $threads (result i32)))
        (import "percid" "allowed_cpus" (func $allowed (result i32)))
        (import "percid" "distance" (func $distance (param i32 i32) (result i32)))
        (global $cpus (mut i32) (i32.const 0))
        (func (export "percid_start") (param i32) (global.set $cpus (local.get 0)))
        (func (export "percid_id") (param i32 i32) (result i32)
            (if (i64.lt_s (call $now) (i64.const 0)) (then unreachable))
            (if (i32.lt_s (call $threads) (i32.const 1)) (then unreachable))
            (if (i32.gt_u (call $allowed) (global.get $cpus)) (then unreachable))
            (if (call $distance (local.get 0) (local.get 0)) (then unreachable))
            local.get 0))"#;
    let entry = module(text).expect("a policy");
    let found = check(entry, Search { runs: 200, seed: 1 }, &RunControl::default());
    assert_eq!(found.finding, None);
    // The control: a wrong expectation is found.
    let wrong = text.replace("(call $threads) (i32.const 1)", "(call $threads) (i32.const 2)");
    let entry = module(&wrong).expect("a policy");
    let found = check(entry, Search { runs: 200, seed: 1 }, &RunControl::default());
    assert!(found.finding.is_some());
}

/// Each of these traps at the first thread of a process if state of an earlier process is left: a
/// global, memory, the size of the memory, a table.
#[test]
fn a_process_sees_nothing_of_the_processes_before() {
    let bodies = [
        "global.get $used if unreachable end i32.const 1 global.set $used",
        "i32.const 8 i32.load if unreachable end i32.const 8 i32.const 1 i32.store",
        "memory.size i32.const 1 i32.ne if unreachable end i32.const 1 memory.grow drop",
        "i32.const 0 call_indirect i32.const 0 ref.func $trap table.set 0",
    ];
    for body in bodies {
        let text = format!(
            r#"(module
                (memory 1)
                (table 1 funcref)
                (global $used (mut i32) (i32.const 0))
                (func $nothing)
                (func $trap unreachable)
                (elem (i32.const 0) $nothing)
                (elem declare func $trap)
                (func (export "percid_spawn") (param i32 i32)
                    local.get 0 i32.eqz if {body} end)
                (func (export "percid_id") (param i32 i32) (result i32) local.get 0)
            )"#
        );
        let entry = module(&text).expect("a policy");
        simulate(entry, "fork-exec", 60.0, 1).unwrap_or_else(|why| panic!("{body}: {why}"));
    }
}
