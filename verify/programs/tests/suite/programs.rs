//! Runs the programs as processes of their own, one after the other, and reads what they found.
//!
//! A stress ends after so many thefts, and events of other kinds, however long that takes. With
//! `PERCID_STRESS=long` it lasts so many seconds. Every stress prints its seed; `PERCID_SEED` repeats
//! it.

use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

/// The programs load the machine as much as they can: two at once would only weaken each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The output of a program, and its result.
struct Outcome {
    passed: bool,
    line: String,
    messages: String,
}

impl Outcome {
    /// Returns the value of `key=` in the summary line.
    fn figure(&self, key: &str) -> &str {
        let found = self
            .line
            .split_whitespace()
            .find_map(|word| word.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')));
        found.unwrap_or_else(|| panic!("no {key}= in {:?}", self.line))
    }

    fn number(&self, key: &str) -> i64 {
        self.figure(key).parse().unwrap_or_else(|_| panic!("{key} is no number: {}", self.line))
    }
}

fn run_with(environment: &[(&str, &str)], arguments: &str) -> Outcome {
    run_command(Command::new(PROGRAMS), environment, arguments)
}

const PROGRAMS: &str = env!("CARGO_BIN_EXE_percid-programs");

/// Runs like [`run_with`]; the command is the programs, or a command that starts them.
fn run_command(mut command: Command, environment: &[(&str, &str)], arguments: &str) -> Outcome {
    command.args(arguments.split_whitespace()).env_remove("PERCID_SOURCE");
    command.envs(environment.iter().copied());
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let line = String::from_utf8_lossy(&stdout).trim().to_owned();
    let messages = String::from_utf8_lossy(&stderr).into_owned();
    println!("{arguments} {environment:?}\n{line}\n{messages}");
    assert!(status.code().is_some(), "{arguments}: ended by {status}: {messages}");
    assert_ne!(status.code(), Some(77), "{arguments}: neither passed nor failed: {line}");
    Outcome { passed: status.success(), line, messages }
}

fn run(arguments: &str) -> Outcome {
    let _alone = alone();
    run_with(&[], arguments)
}

fn pass(arguments: &str) -> Outcome {
    let outcome = run(arguments);
    assert!(outcome.passed, "{arguments}: {}\n{}", outcome.line, outcome.messages);
    outcome
}

/// Returns the sources of this machine: the kernel's may be missing.
fn sources() -> Vec<&'static str> {
    let available = |source: &&str| {
        let source: percid::Source = source.parse().expect("a source");
        source.prepare().is_ok()
    };
    ["kernel", "table", "atomic"].into_iter().filter(available).collect()
}

/// Returns the length of a stress, as an option: seconds in the long form, otherwise events.
fn lasting(seconds: u32, events: u32) -> String {
    let long = std::env::var_os("PERCID_STRESS").is_some_and(|wish| wish == "long");
    if long { format!("--seconds {seconds}") } else { format!("--events {events}") }
}

fn cpus() -> usize {
    percid::machine::read().allowed.len()
}

#[test]
fn no_increment_is_lost_or_doubled_with_any_source() {
    for source in sources() {
        let outcome = pass(&format!("stress {} --source {source}", lasting(20, 500)));
        assert_eq!(outcome.number("lost"), 0);
        assert!(outcome.number("signals") > 0 && outcome.number("threads_started") > 0);
    }
}

#[test]
fn the_stress_sees_a_missing_fence() {
    if cpus() < 2 {
        println!("one CPU: a thief never runs beside its victim, so the fence cannot be missed");
        return;
    }
    for way in ["", "--evict"] {
        assert_loses(&format!("stress --events 1000 --source table --skip-fence {way}"));
    }
}

#[test]
fn structures_keep_what_they_promise_with_any_source() {
    // The seconds of the long form, and the events of the short one.
    let structures = [
        ("stack", 20, 300),
        ("pool", 20, 300),
        ("local", 20, 100),
        ("ring", 20, 300),
        ("histogram", 5, 300),
        ("buckets", 10, 300),
        ("mask", 5, 150),
    ];
    for (structure, seconds, events) in structures {
        for source in sources() {
            let lasting = lasting(seconds, events);
            pass(&format!("stress --structure {structure} {lasting} --source {source}"));
        }
    }
}

#[test]
fn a_drain_of_the_mask_misses_no_member() {
    pass(&format!("mask-order {}", lasting(5, 500)));
    pass("mask-refused");
}

#[test]
fn the_stress_of_a_stack_sees_a_missing_fence() {
    if cpus() > 1 {
        assert_fails("stress --structure stack --events 1000 --skip-fence --source table");
    }
}

#[test]
#[ignore = "slow: tried until it is seen, with every source"]
fn the_stress_of_structures_sees_a_missing_fence() {
    if cpus() < 2 {
        println!("one CPU: nothing runs beside a drain, so the fence cannot be missed");
        return;
    }
    for source in sources().into_iter().filter(|&source| source != "atomic") {
        for structure in ["--structure stack", "--structure local --threads 2"] {
            assert_fails(&format!(
                "stress {structure} --events 1000 --skip-fence --source {source}"
            ));
        }
    }
    // Only IDs can be stolen from buckets, and only the table can do that.
    assert_fails("stress --structure buckets --events 1000 --skip-fence --source table");
    assert_fails("mask-order --events 100 --skip-fence");
}

/// Number of tries of a negative control. The windows are a few instructions wide, so not every try
/// fails: a third does, and on a busy machine one in fifteen. If it is only one in forty, all tries
/// pass with a probability of (39/40)^1000 < 1e-10.
const TRIES: u32 = 1000;

/// Checks that a structure without its fence breaks before long.
fn assert_fails(arguments: &str) {
    assert_caught(arguments, || !run(arguments).passed);
}

/// Checks the same, and that increments are lost.
fn assert_loses(arguments: &str) {
    assert_caught(arguments, || {
        let outcome = run(arguments);
        !outcome.passed && outcome.number("lost") != 0
    });
}

fn assert_caught(control: &str, is_caught: impl Fn() -> bool) {
    let tries = (1..=TRIES).find(|_| is_caught());
    let tries = tries.unwrap_or_else(|| panic!("it passed {TRIES} times: {control}"));
    println!("caught at try {tries}: {control}");
}

#[test]
fn the_stress_sees_threads_without_rseq() {
    if sources().contains(&"kernel") {
        assert_loses("stress --events 1000 --source kernel --unregister");
    }
}

#[test]
fn ids_may_be_taken_back_by_compaction() {
    let outcome = pass(&format!("stress {} --source table --evict", lasting(5, 500)));
    assert_eq!(outcome.number("lost"), 0);
}

#[test]
fn threads_that_nobody_joins() {
    pass("detached");
}

#[test]
fn an_increment_fits_on_a_small_signal_stack() {
    let _alone = alone();
    for source in sources() {
        let outcome = run_with(&[("PERCID_SOURCE", source)], "stack");
        assert!(outcome.passed, "{}", outcome.line);
    }
}

#[test]
fn ids_stay_below_the_bound() {
    for (threads, confined) in [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (4, 1)] {
        let confined = if confined == 0 { String::new() } else { format!("--cpus {confined}") };
        pass(&format!("density --source table --threads {threads} {confined}"));
    }
}

#[test]
fn the_bound_follows_affinity_and_threads() {
    pass("bounds");
}

#[test]
fn the_chosen_source_is_the_one_this_kernel_deserves() {
    pass("choice");
}

#[test]
fn a_first_use_finds_out_whether_the_kernel_aborts() {
    let outcome = pass("probe --starts 20 --expect good");
    assert_eq!(outcome.number("bad"), 0);
}

#[test]
fn a_section_that_the_kernel_does_not_know_fails_the_probe() {
    let outcome = pass("probe --starts 20 --expect bad --probe wrong-descriptor");
    assert_eq!(outcome.number("good"), 0);
}

#[test]
fn without_aborts_a_wish_for_ids_is_not_granted() {
    for source in ["table", "kernel"] {
        let _alone = alone();
        let wish = [("PERCID_SOURCE", source)];
        let count = || run_with(&wish, "count --probe wrong-descriptor");
        // On a busy machine a first use may have too little time for the answer, and reports that.
        // If one in ten has enough, none does with a probability of 0.9^1000 < 1e-45.
        let answered =
            |outcome: &Outcome| !outcome.line.contains("could not be determined in time");
        let outcome = (0..TRIES).map(|_| count()).find(answered).expect("an answer some time");
        assert!(outcome.passed, "{}", outcome.line);
        assert_eq!(outcome.figure("source"), "atomic");
        let says = ["is not possible", "does not abort critical sections"];
        assert!(says.iter().all(|text| outcome.messages.contains(text)), "{}", outcome.messages);
    }
}

#[test]
fn extra_ids_come_and_go() {
    pass("wander");
    pass("density --threads 1 --relaxed");
}

#[test]
fn a_cpu_comes_back_to_its_own_memory() {
    pass("bursts --seconds 2");
}

#[test]
fn density_is_seen_to_fail_where_there_is_none() {
    if cpus() < 2 {
        println!("one CPU: every index is dense");
        return;
    }
    // The atomic source's hints are CPU numbers.
    // A thread that wanders over all of them has them all.
    assert_fails("density --source atomic --threads 1");
}

#[test]
fn handlers_may_interrupt_anything() {
    for source in sources() {
        pass(&format!("handlers {} --source {source}", lasting(10, 1000)));
    }
}

#[test]
fn signals_during_the_first_use() {
    let _alone = alone();
    for source in sources() {
        let outcome = run_with(&[("PERCID_SOURCE", source)], "first-use");
        assert!(outcome.passed, "{}", outcome.line);
    }
}

#[test]
fn children_start_fresh() {
    for source in sources() {
        pass(&format!("forking {} --source {source}", lasting(8, 6)));
    }
}

#[test]
fn a_child_in_a_namespace_knows_its_parents_threads_from_its_own() {
    for source in sources() {
        let outcome = pass(&format!("namespaces --source {source}"));
        assert!(outcome.line.contains("skipped:") || outcome.number("children") == 2);
    }
}

#[test]
fn ten_thousand_counters_cost_what_is_promised() {
    for source in sources() {
        pass(&format!("memory --source {source}"));
    }
}

/// Uses the atomic source: valgrind has no rseq. `PERCID_VALGRIND=require` fails if it is missing.
#[test]
#[ignore = "slow: under valgrind"]
fn nothing_leaks_and_nothing_unset_is_read_under_valgrind() {
    let _alone = alone();
    if Command::new("valgrind").arg("--version").output().is_err() {
        let required = std::env::var_os("PERCID_VALGRIND").is_some_and(|wish| wish == "require");
        assert!(!required, "valgrind is required and not installed");
        return percid_skips::not_checked("programs under valgrind", "it is not installed");
    }
    for structure in ["counter", "histogram", "local", "stack", "pool", "ring", "mask"] {
        let stress = format!("stress --events 20 --threads 3 --structure {structure}");
        let output = under_valgrind(&stress);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{structure}: {}\n{messages}", output.status);
    }
    let control = under_valgrind("leak");
    assert_eq!(control.status.code(), Some(VALGRIND_FOUND), "the negative control passed");
}

/// Exit status of valgrind if it has found an error.
const VALGRIND_FOUND: i32 = 9;

fn under_valgrind(arguments: &str) -> Output {
    let found = format!("--error-exitcode={VALGRIND_FOUND}");
    let mut command = Command::new("valgrind");
    // Fair: otherwise the thread that ends the others may never run.
    command.args(["--quiet", "--fair-sched=yes", &found, "--leak-check=full"]);
    command
        .args(["--errors-for-leak-kinds=definite,indirect", env!("CARGO_BIN_EXE_percid-programs")]);
    command.args(arguments.split_whitespace()).args(["--source", "atomic"]);
    command.output().expect("valgrind starts")
}

/// Time is printed and not asserted; what is counted is the same however many CPUs there may be.
#[test]
fn a_pool_costs_nothing_for_cpus_that_do_not_use_it() {
    for source in sources() {
        for possible in [cpus(), 1024, 8192] {
            pass(&format!("pool-cost --possible {possible} --source {source}"));
        }
    }
}

#[test]
fn without_room_in_the_arena_everything_still_counts() {
    pass("exhaustion");
    pass("exhaustion --confined");
}

#[test]
fn locked_memory_is_little_and_no_reason_to_refuse() {
    pass("locked");
    pass("locked --confined");
}

#[test]
fn a_bad_environment_ends_in_a_working_program() {
    let _alone = alone();
    for errno in ["EPERM", "EACCES", "ENOMEM", "ENOSYS"] {
        for (deny, expected) in [("rseq", &["atomic"][..]), ("both", &["atomic"])] {
            let outcome = run_with(&[], &format!("count --deny {deny} --errno {errno}"));
            assert!(outcome.passed && expected.contains(&outcome.figure("source")));
            assert_eq!(outcome.messages, "", "an automatic choice is no reason for a message");
        }
        // Without the fence the kernel's IDs remain, if there are any.
        let outcome = run_with(&[], &format!("count --deny membarrier --errno {errno}"));
        assert!(outcome.passed && outcome.figure("source") != "table");
        for (deny, refused) in
            [("rseq", "registration refused"), ("membarrier", "membarrier refused")]
        {
            let wish = [("PERCID_SOURCE", "table")];
            let outcome = run_with(&wish, &format!("count --deny {deny} --errno {errno}"));
            let expected = format!("{refused}: {errno} (");
            assert!(outcome.messages.contains(&expected), "{}", outcome.messages);
            let named = ["a sandbox", "out of memory"][usize::from(errno == "ENOMEM")];
            assert!(outcome.messages.contains(named), "{}", outcome.messages);
        }
    }
}

#[test]
fn an_impossible_wish_is_answered_once() {
    let _alone = alone();
    let outcome = run_with(&[("PERCID_SOURCE", "nonsense")], "count");
    assert!(outcome.passed);
    assert_eq!(outcome.messages.lines().count(), 1, "{}", outcome.messages);
    assert!(outcome.messages.contains("expected kernel, table or atomic"));

    let outcome = run_with(&[("PERCID_SOURCE", "table")], "count --deny both");
    assert!(outcome.passed && outcome.figure("source") == "atomic");
    assert_eq!(outcome.messages.lines().count(), 1, "{}", outcome.messages);
    assert!(outcome.messages.contains("is not possible"));
}

/// A user whom nothing belongs to.
const STRANGER: u32 = 65534;

/// Returns the programs in a folder that every user may enter, as a file of root with these
/// permissions; `None` if this process may not set them.
fn programs_with_mode(mode: u32) -> Option<String> {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = std::env::temp_dir().join(format!("percid-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).expect("its own folder");
    let file = folder.join(format!("programs-{mode:o}"));
    std::fs::copy(PROGRAMS, &file).expect("a copy");
    chown(&file, Some(0), Some(0)).ok()?;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).ok()?;
    Some(file.into_os_string().into_string().expect("a name in UTF-8"))
}

/// Checks nothing if this is not root, or if programs cannot have more rights than their caller
/// (`nosuid`, `no_new_privs`).
#[test]
fn a_program_with_more_rights_than_its_caller_does_not_obey_the_caller() {
    use std::os::unix::process::CommandExt;
    let _alone = alone();
    let (Some(plain), Some(elevated)) = (programs_with_mode(0o755), programs_with_mode(0o4755))
    else {
        return percid_skips::not_checked(
            "programs with more rights",
            "no file can be given to root",
        );
    };
    let folder = std::path::Path::new(&plain).parent().expect("a folder").to_owned();
    let run = |file: &str, wish: &str| {
        let mut command = Command::new(file);
        command.uid(STRANGER).gid(STRANGER).current_dir("/");
        run_command(command, &[("PERCID_SOURCE", wish)], "count")
    };
    let obeys = run(&plain, "atomic");
    assert_eq!((obeys.figure("source"), obeys.figure("elevated")), ("atomic", "false"));
    assert!(run(&plain, "nonsense").messages.contains("nonsense"));
    let elevated = |wish| run(&elevated, wish);
    let by_itself = elevated("");
    let is_elevated = by_itself.figure("elevated") == "true";
    if !is_elevated {
        percid_skips::not_checked("programs with more rights", "programs get none here");
    }
    for wish in ["atomic", "kernel", "nonsense"].into_iter().filter(|_| is_elevated) {
        let outcome = elevated(wish);
        assert_eq!(outcome.figure("source"), by_itself.figure("source"), "{wish}");
        assert!(!outcome.line.contains("PERCID_SOURCE"), "{}", outcome.line);
        assert_eq!(outcome.messages, "");
    }
    std::fs::remove_dir_all(folder).expect("its own folder");
}

#[test]
fn every_wish_that_can_be_granted_is() {
    let _alone = alone();
    for source in sources() {
        let outcome = run_with(&[("PERCID_SOURCE", source)], "count");
        assert!(outcome.passed);
        assert_eq!((outcome.figure("source"), outcome.messages.as_str()), (source, ""));
    }
}

#[test]
fn without_the_c_librarys_registration_percid_registers_itself() {
    let _alone = alone();
    for source in sources() {
        let outcome =
            run_with(&[WITHOUT_LIBC], &format!("stress {} --source {source}", lasting(5, 300)));
        assert!(outcome.passed, "{}", outcome.line);
    }
}

/// Without the C library's registration: then percid's own, or another owner's.
const WITHOUT_LIBC: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

#[test]
fn the_kernel_knows_the_area_by_the_size_that_is_told() {
    pass("area");
    let _alone = alone();
    let own = run_with(&[WITHOUT_LIBC], "area");
    assert!(own.passed, "{}", own.line);
    assert!(!own.line.contains("registered=Libc"), "{}", own.line);
}

/// Checks nothing if no watchpoints are available: some hypervisors have none. The mask is omitted,
/// since it has no sections.
#[test]
#[ignore = "slow: an interrupt for each store"]
fn of_the_rseq_area_only_one_field_is_ever_written() {
    for source in sources().into_iter().filter(|&source| source != "atomic") {
        for structure in ["counter", "histogram", "local", "stack", "pool", "ring"] {
            let stress =
                format!("stress --events 100 --watch --source {source} --structure {structure}");
            let outcome = run(&stress);
            if outcome.line.contains("no watchpoint: ") {
                return percid_skips::not_checked(
                    "what is written to the rseq area",
                    "no watchpoint is to be had",
                );
            }
            assert!(outcome.passed, "{}", outcome.line);
            assert!(outcome.number("written_to_rseq_cs") > 0);
        }
        let control = run(&format!("stress --events 100 --watch --clobber --source {source}"));
        assert!(!control.passed && control.number("written_to_other_fields") > 0);
    }
}

/// Registers threads itself, as allocators do, and relies on it; see there for its variants.
const OWNER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/owner.c");

/// The owner registers every other thread only.
const SPARING: (&str, &str) = ("OWNER_SPARING", "1");

/// Compiles the owner; its exit status shows whether it lost something.
fn compile_owner(name: &str, options: &[&str]) -> String {
    let file = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", OWNER, "-o", &file]);
    let status = compiler.args(options).status().expect("a C compiler");
    assert!(status.success(), "{OWNER}: {options:?}: {status}");
    file
}

/// Returns the environment with the owner as a library that is loaded before all others.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn owner_in_front(name: &str, options: &[&str]) -> [(&'static str, String); 2] {
    let library = compile_owner(name, &[&["-shared"], options].concat());
    [("GLIBC_TUNABLES", "glibc.pthread.rseq=0".to_owned()), ("LD_PRELOAD", library)]
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn borrowed<'a>(environment: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn an_owner_with_the_shared_name_shares_its_area() {
    let owner = owner_in_front("libnamed.so", &["-DOWNER_NAMED"]);
    shares_its_area(PROGRAMS, &borrowed(&owner));
}

/// Linked, the area is found without the loader's help.
#[test]
#[ignore = "long: Cargo links the programs anew"]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn an_owner_among_the_programs_own_objects_shares_its_area() {
    shares_its_area(&programs_with_owner(), &[WITHOUT_LIBC]);
}

/// Links the programs with the owner among their own objects.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn programs_with_owner() -> String {
    let object = compile_owner("owner.o", &["-c", "-DOWNER_NAMED"]);
    let folder = format!("{}/owned", env!("CARGO_TARGET_TMPDIR"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["rustc", "--quiet", "--manifest-path"]);
    cargo.args([concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "--bin", "percid-programs"]);
    cargo.args(["--target-dir", &folder, "--", &format!("-Clink-arg={object}")]);
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "the programs with an owner: {status}");
    format!("{folder}/debug/percid-programs")
}

/// Checks threads that all are the owner's, and every other one.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn shares_its_area(program: &str, owner: &[(&str, &str)]) {
    let _alone = alone();
    for sparing in [None, Some(SPARING)] {
        let environment: Vec<_> = owner.iter().copied().chain(sparing).collect();
        let run = |arguments: &str| run_command(Command::new(program), &environment, arguments);
        let counters = format!("stress {}", lasting(5, 300));
        let stacks = format!("stress {} --structure stack", lasting(5, 300));
        let forking = format!("forking {}", lasting(8, 6));
        for arguments in ["choice", "area", &counters, &stacks, &forking] {
            let outcome = run(arguments);
            assert!(outcome.passed, "{arguments}: {}", outcome.line);
        }
        assert_eq!(run("area").figure("registered"), "Shared");
        assert_eq!(run("count").figure("source"), "table");
        // The sections are in use: without fences the stress must notice. And the kernel's IDs are
        // refused.
        if cpus() > 1 {
            let unfenced = "stress --events 1000 --source table --skip-fence";
            assert_caught(unfenced, || !run(unfenced).passed);
        }
        let wish = [&environment[..], &[("PERCID_SOURCE", "kernel")]].concat();
        let refused = run_command(Command::new(program), &wish, "count");
        assert!(refused.messages.contains("mm_cid says 0"), "{}", refused.messages);
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn an_owner_that_cannot_be_shared_with_is_named_with_the_remedy() {
    let signed = owner_in_front("libsigned.so", &["-DOWNER_NAMED", "-DOWNER_SIGNATURE=0x12345678"]);
    let hidden = owner_in_front("libhidden.so", &[]);
    let _alone = alone();
    for owner in [&signed, &hidden] {
        let run = |arguments: &str| run_with(&borrowed(owner), arguments);
        let choice = run("choice");
        assert!(choice.passed && choice.figure("chosen") == "atomic", "{}", choice.line);
        assert!(choice.line.contains("another library has registered"), "{}", choice.line);
        assert!(choice.line.contains("GLIBC_TUNABLES=glibc.pthread.rseq=0"), "{}", choice.line);
        assert!(run("count").passed && run(&format!("stress {}", lasting(3, 200))).passed);
    }
    // Threads that it leaves alone are percid's, the others count atomically.
    let sparing = [borrowed(&hidden), vec![SPARING]].concat();
    let outcome = run_with(&sparing, &format!("stress {} --source table", lasting(3, 200)));
    assert!(outcome.passed && outcome.number("lost") == 0, "{}", outcome.line);
}

/// With the C library below `PERCID_NEWER_LIBC`, of 2.41 or later: `newer_libc.sh` makes such a
/// folder.
#[test]
fn with_a_c_library_that_registers_what_the_kernel_announces() {
    let Some(root) = std::env::var_os("PERCID_NEWER_LIBC") else {
        return percid_skips::not_checked("a newer C library", "PERCID_NEWER_LIBC is not set");
    };
    let _alone = alone();
    let libraries = std::path::Path::new(&root).join("usr/lib/x86_64-linux-gnu");
    let run = |environment: &[(&str, &str)], arguments: &str| {
        let mut loader = Command::new(libraries.join("ld-linux-x86-64.so.2"));
        loader.arg("--library-path").arg(&libraries).arg(PROGRAMS);
        let outcome = run_command(loader, environment, arguments);
        assert!(outcome.passed, "{arguments}: {}", outcome.line);
        outcome
    };
    let area = run(&[], "area");
    assert_eq!(area.figure("registered"), "Libc");
    assert_eq!(area.number("bytes"), area.number("announced").max(32));
    assert_eq!(run(&[WITHOUT_LIBC], "area").figure("registered"), "Percid");
    for source in sources() {
        run(&[], &format!("stress {} --source {source}", lasting(3, 200)));
    }
}

/// Uses pretended nodes: this machine may have only one. The cost is printed, not checked, since
/// the machine may have other load.
#[test]
fn a_reported_access_counts_once_for_every_armed_page() {
    let outcome = pass("numa-touch");
    assert!(outcome.number("armed") > 0 && outcome.number("seen") == outcome.number("armed"));
}

#[test]
fn trapped_memory_survives_whatever_happens_to_it() {
    let outcome = pass(&format!("numa-trap {}", lasting(10, 45)));
    assert_eq!(outcome.number("lost"), 0);
    assert!(outcome.number("trapped") > 0 && outcome.number("signals") > 0);
    assert!(outcome.number("crashes") > 0 && outcome.number("children") > 0);
}

#[test]
fn memory_whose_writes_are_seen_survives_whatever_happens_to_it() {
    let outcome = pass(&format!("numa-written {}", lasting(10, 45)));
    if outcome.line.contains("skipped:") {
        return;
    }
    assert_eq!(outcome.number("lost"), 0);
    assert!(outcome.number("system_calls") > 0 && outcome.number("refused_where_trapped") > 0);
    assert!(outcome.number("caught") > 0 && outcome.number("signals") > 0);
    assert!(outcome.number("children") > 0 && outcome.number("sharers") > 0);
}

/// The rest needs several nodes: `verify/vm` has machines with 2, 4 and 8.
#[test]
fn memory_follows_where_there_are_nodes() {
    for program in [
        "numa-follow --seconds 60",
        "numa-follow --seconds 60 --access written",
        "numa-partial",
        "numa-shared",
        "numa-tiers",
    ] {
        pass(program);
    }
}
