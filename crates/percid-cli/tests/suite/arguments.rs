//! Arguments, help, and output whose reader has closed it.

use crate::percid;

use std::process::{Command, Output, Stdio};

use percid::{bounded, command};

fn run(arguments: &str) -> Output {
    bounded(command(arguments).stdin(Stdio::null()))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn wrong_arguments_get_one_line_that_says_what_is_allowed() {
    let cases = [
        ("nonsense", "info, bench, sim, numa, kernel-ids, trace"),
        ("--nonsense", "--json"),
        ("info nonsense", "--json"),
        ("bench nonsense", "ops, increments, mask, metrics, sync, alloc, wander, intermittent"),
        ("bench ops --nonsense", "--seconds"),
        ("bench ops --seconds 0", "0.1 to 3600"),
        ("bench ops --seconds nan", "0.1 to 3600"),
        ("bench ops --seconds", "--seconds"),
        ("bench increments --threads 8-1", "FIRST <= LAST"),
        ("bench increments --threads 0-1", "1 <= FIRST"),
        ("bench alloc --idle-threads 10,0", "1 to 4096"),
        ("bench increments --note x", "--svg"),
        ("bench increments --svg /no/such/folder/x.svg", "folder that exists"),
        ("bench mask --nonsense", "--seconds"),
        ("bench mask --seconds 0", "0.1 to 3600"),
        ("bench intermittent --delay-ms 10,x", "1 to 10000"),
        ("bench intermittent --bursts 1", "2 to 10000"),
        ("bench intermittent --warmup 0", "1 to 10000000"),
        ("bench intermittent --cpus one-l4", "one-per-l3"),
        ("bench intermittent --cpus 3-1", "0,2,4-7"),
        ("bench intermittent --cpus 65535", "may use"),
        ("bench intermittent --index gpu", "forced-remote"),
        ("bench intermittent --overcommit 65", "0 to 64"),
        ("bench intermittent --other-memory 1,x", "0 to 1048576"),
        ("bench intermittent --repetitions 0", "1 to 1000"),
        ("bench intermittent --published --cpus cores", "--cpus"),
        ("bench intermittent --published --overcommit 1", "--overcommit"),
        ("bench intermittent --published --html /no/such/folder/x", "folder that exists"),
        ("--seconds 3 info", "bench"),
        ("info --seconds 3", "--check"),
        ("info --check --seconds 0", "0.1 to 3600"),
        ("bench --seconds 3 wander", "after 'wander'"),
        ("--seconds 3 bench", "after the subcommand"),
        ("--full bench", "percid bench --full"),
        ("--full info", "bench"),
        ("bench --full ops", "where all parts are measured"),
        ("--html /no/such/folder/page.html", "folder that exists"),
        ("bench --seconds 3 ops", "after 'ops'"),
        ("bench --seconds 3 mask", "after 'mask'"),
        ("bench --seconds 3 intermittent", "--delay-ms"),
        ("bench --html x ops", "after 'ops'"),
        ("bench --html x intermittent", "after 'intermittent'"),
        ("bench --html x increments", "where all parts are measured"),
        ("bench wander --html /no/such/folder/x", "folder that exists"),
        ("--seconds 3 sim", "bench"),
        (
            "sim nonsense",
            "run, check, sweep, mask, published, numa, thread-hash, page, list, show, import",
        ),
        ("sim run --nonsense", "--workload"),
        ("sim check", "POLICIES"),
        ("sim check nonsense", "linux-6.13, linux-6.14"),
        ("sim check per-cpu --runs 0", "1 to 1000000000"),
        ("sim check per-cpu --seconds 0", "0.1 to 3600"),
        ("sim sweep", "--store"),
        ("sim sweep --store x --shard 9/8", "such as 2/8"),
        ("sim sweep --store x --from y", "--merge"),
        ("sim run --policy linux-7", "linux-6.13, linux-6.14"),
        ("sim run --memory red", "copy-on-write, zero-page, pre-faulted"),
        ("sim run --set threads", "threads=8,16"),
        ("sim run --set threads=8,many", "threads=8,16"),
        ("sim run --set =8", "threads=8,16"),
        ("sim run --set threads=inf", "threads=8,16"),
        ("sim run --set threads=4..64", "a value before it that says the step"),
        ("sim run --set threads=8-1", "the smaller one first"),
        ("sim run --policy linux-6.1", "Linux 6.1 has no IDs"),
        ("sim run --policy linux-6.19-backport", "linux-6.6-backport"),
        ("sim run --csv - --json", "expected a file, as --json is printed"),
        ("sim run --csv /no/such/folder/rows.csv", "folder that exists"),
        ("sim run --seeds 0", "1 to 1000000"),
        ("sim run --seed -1", "--seed"),
        ("sim published nonsense", "intermittent, mask, numa, hash, predictions, sensitivity"),
        ("sim published hash --cross-validate", "expected the part intermittent, mask or numa"),
        ("sim thread-hash --threads 32768", "1 to 32767"),
        ("sim thread-hash --range 5", "FIRST-LAST"),
        ("sim thread-hash --range 5-4", "FIRST <= LAST"),
        ("sim thread-hash --range 0-4", "1 <= FIRST"),
        ("sim thread-hash --range 5-9,7", "in ascending order"),
        ("sim thread-hash --find iter0/9-thread", "iter0/8-thread"),
        ("sim thread-hash --find hash32=1", "BIT:THREADS"),
        ("sim thread-hash --find hash32=1:1,1:2", "expected each bit once, found 1 twice"),
        ("sim thread-hash --find hash32=64:1", "bits from 0 to 63, found 64"),
        ("sim thread-hash --find hash32=1:1 --find pid_6bit=1:2", "1 threads in each table"),
        ("sim thread-hash --find hash32=1:1 --bits 32", "64, 128"),
        ("sim thread-hash --missing 1", "--find"),
        ("sim show nonsense x", "machine, workload"),
        ("sim show machine pdp-11", "this, epyc-9654, cascade-lake"),
        ("sim show workload this", "intermittent, thread-pool"),
        ("sim show workload churn --whole", "expected with a machine"),
        ("sim import", "<FILE>"),
        ("sim page", "--out <DIR>"),
        ("sim import Cargo.toml --base pdp-11", "epyc-9654, cascade-lake"),
        ("sim import Cargo.toml", "Cargo.toml: expected the output of `lscpu -p`"),
        ("sim import no-such.xml", "no-such.xml: No such file"),
        ("--seconds 3 numa", "bench"),
        ("--seconds 3 trace info x", "bench"),
        ("trace", "record, top, recover, info, convert, replay, check-ids"),
        ("trace replay x --policy linux-7", "percid-table"),
        ("trace top --sort size", "wait, run, switches, migrations, preempted"),
        ("trace top --pid 0", "1 to 4194304"),
        ("trace top --interval 0", "0.1 to 3600"),
        ("help nonsense", "info, bench, sim, numa, kernel-ids, trace, help, completions"),
        (
            "help bench nonsense",
            "ops, increments, mask, metrics, sync, alloc, wander, intermittent",
        ),
        ("help info nonsense", "none"),
        ("help --json", "--json"),
        ("completions", "<SHELL>"),
        ("completions nonsense", "bash, elvish, fish, powershell, zsh"),
        ("completions bash --json", "--json"),
        ("numa nonsense", "report, watch, check-kernel, demo"),
        ("numa report --nonsense", "--pid"),
        ("numa report --pid 0", "1 to 4194304"),
        ("numa report --timeout 0", "0.1 to 3600"),
        ("numa watch", "<PID>"),
        ("numa watch self", "1 to 4194304"),
        ("numa watch 1 --count 0", "1 to 1000000000"),
        ("numa watch 1 --interval 0", "0.1 to 3600"),
        ("numa demo --memory 3", "1M to 1024G"),
        ("numa demo --memory 1024G", "MiB at most"),
        ("numa demo --memory 1M --threads 4096", "bytes at least"),
        ("numa demo --threads 4097", "1 to 4096"),
        ("numa demo --pairs 0", "1 to 1000"),
        ("numa demo --rules nonsense", "base, selective, fixed"),
        ("numa demo --access nonsense", "reported, trapped"),
    ];
    for (arguments, allowed) in cases {
        let output = run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
        assert!(said.contains(allowed), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn help_is_a_manual() {
    for arguments in [
        "--help",
        "kernel-ids --help",
        "completions --help",
        "help --help",
        "help",
        "help sim run",
        "info --help",
        "bench --help",
        "bench ops --help",
        "bench increments --help",
        "bench mask --help",
        "bench sync --help",
        "bench alloc --help",
        "bench wander --help",
        "bench intermittent --help",
        "sim --help",
        "sim run --help",
        "sim sweep --help",
        "sim published --help",
        "sim thread-hash --help",
        "sim list --help",
        "sim show --help",
        "sim import --help",
        "sim page --help",
        "numa --help",
        "numa report --help",
        "numa watch --help",
        "numa demo --help",
    ] {
        let output = run(arguments);
        let manual = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments}");
        assert!(output.stderr.is_empty(), "{arguments}");
        for part in ["Examples:", "Exit status:", "PERCID_SOURCE", "--json"] {
            assert!(manual.contains(part), "{arguments} lacks {part}");
        }
    }
}

#[test]
fn help_of_a_command_is_what_the_option_prints() {
    for command in ["", "info", "bench ops", "trace replay"] {
        let (help, option) = (run(&format!("help {command}")), run(&format!("{command} --help")));
        assert!(help.status.success() && !help.stdout.is_empty(), "{command}");
        assert_eq!(help.stdout, option.stdout, "{command}");
    }
}

/// Returns the commit that is checked out; `None` if this is no repository, as in an archive.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let folder = env!("CARGO_MANIFEST_DIR");
        let output = Command::new("git").args(["-C", folder]).args(arguments).output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(said)
    };
    git(&["ls-files", "--error-unmatch", "Cargo.toml"]).and_then(|_| git(&["rev-parse", "HEAD"]))
}

#[test]
fn the_version_says_what_was_built() {
    let version = env!("CARGO_PKG_VERSION");
    let short = run("-V");
    assert_eq!(String::from_utf8_lossy(&short.stdout), format!("percid {version}\n"));
    let document = percid::json("--version --json");
    assert_eq!(document["name"], "percid");
    assert_eq!(document["version"], version);
    assert_eq!(document["commit"].as_str(), commit().as_deref());
    let features = percid::list(&document, "features");
    assert_eq!(features.iter().any(|name| name == "trace"), cfg!(feature = "trace"));
    assert_eq!(features.iter().any(|name| name == "peers"), cfg!(feature = "peers"));
    let long = run("--version");
    let long = String::from_utf8_lossy(&long.stdout);
    let target = document["target"].as_str().expect("a target");
    assert!(target.contains(std::env::consts::ARCH), "{target}");
    for part in [version, target, document["commit"].as_str().unwrap_or("unknown")] {
        assert!(long.contains(part), "{part}: {long}");
    }
}

#[test]
fn pages_of_all_commands_are_written_into_a_folder() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("percid-pages-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let output = run(&format!("help --man {}", folder.display()));
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    let page = |name: &str| std::fs::read(folder.join(name)).expect(name);
    for (name, command) in [
        ("percid.1", ""),
        ("percid-sim-thread-hash.1", "sim thread-hash"),
        ("percid-trace-record.1", "trace record"),
    ] {
        assert_eq!(page(name), run(&format!("help {command} --man")).stdout, "{name}");
    }
    let _ = std::fs::remove_dir_all(&folder);
    let output = run(&format!("help --man {}", folder.display()));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    for arguments in [
        "info",
        "info --json",
        "--help",
        "bench intermittent --delay-ms 1 --warmup 1",
        "sim list",
        "sim run --seeds 1 --policy per-cpu",
        "numa",
        "numa demo --seconds 0.1 --memory 1M",
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = bounded(command(arguments).stdout(writer));
        assert_eq!(output.status.code(), Some(0), "{arguments}");
        assert!(!stderr(&output).contains("panicked"), "{arguments}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = bounded(command("info").stdout(full));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("standard output"));
}

#[test]
fn a_closed_stderr_is_no_panic() {
    let program = env!("CARGO_BIN_EXE_percid");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {program:?} nonsense 2>&-")]);
    let output = bounded(shell.stdout(Stdio::null()));
    assert_eq!(output.status.code(), Some(2));
}

/// A folder with the program, and next to it a replacement of `percid-trace`. They are links: a
/// file that was just written may still be open in a child of another test, and then it cannot be
/// executed.
struct Beside(std::path::PathBuf);

impl Beside {
    fn new(name: &str, stand_in: Option<&str>) -> Beside {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("percid-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let program = env!("CARGO_BIN_EXE_percid");
        std::fs::hard_link(program, folder.join("percid")).expect("a link");
        if let Some(stand_in) = stand_in {
            let link = folder.join("percid-trace");
            std::os::unix::fs::symlink(stand_in, link).expect("a link");
        }
        Beside(folder)
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(self.0.join("percid"));
        command.args(arguments.split_whitespace()).env("PATH", "").output().expect("it starts")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
#[cfg(not(feature = "trace"))]
fn trace_is_another_program_and_gets_all_arguments() {
    let beside = Beside::new("trace", Some("/bin/echo"));
    let output = beside.run("--json trace replay x --policy all");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--json replay x --policy all\n");
}

#[test]
#[cfg(not(feature = "trace"))]
fn where_that_program_is_missing_it_is_said_how_to_get_it() {
    let output = Beside::new("no-trace", None).run("trace replay x");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().count() == 1 && said.contains("--features trace"), "{said}");
}

#[test]
#[cfg(feature = "trace")]
fn trace_needs_no_other_program() {
    let output = Beside::new("within", Some("/bin/false")).run(concat!(
        "--json trace info ",
        env!("CARGO_MANIFEST_DIR"),
        "/../percid-trace/tests/fixtures/sched.data"
    ));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert!(output.status.success() && said["processes"].is_array(), "{}", stderr(&output));
}
