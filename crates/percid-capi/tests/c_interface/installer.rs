//! `percid-install`: the folders of its files, the removal of files, and its error messages.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::installation::{
    installer, only_static, percid_install, second_step, shared, target_folder,
};
use crate::toolchain::{has_tools, scratch};

/// Returns all files and links below a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).expect("below").to_owned());
            }
        }
    }
    found
}

fn set(names: &[&str]) -> BTreeSet<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

/// Runs a command, which must end with this status. Returns its standard error.
fn ends_with(status: i32, command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{command:?}: {errors}");
    errors
}

/// Returns the path of a folder with this name that does not exist.
fn nowhere(name: &str) -> PathBuf {
    let folder = scratch(name);
    fs::remove_dir_all(&folder).expect("removable");
    folder
}

const ALWAYS: [&str; 11] = [
    "include/percid.cppm",
    "include/percid.h",
    "include/percid.hpp",
    "include/percid_inline.h",
    "include/percid_interface.h",
    "include/percid_sections.h",
    "lib/cmake/percid/percidConfig.cmake",
    "lib/cmake/percid/percidConfigVersion.cmake",
    "lib/percid/manifest",
    "lib/percid/valgrind.supp",
    "lib/pkgconfig/percid.pc",
];
const SHARED: [&str; 3] = ["lib/libpercid.so", "lib/libpercid.so.1", "lib/libpercid.so.1.0.0"];
const STATIC: [&str; 1] = ["lib/libpercid.a"];

fn everything() -> BTreeSet<PathBuf> {
    set(&[&ALWAYS[..], &SHARED, &STATIC].concat())
}

#[test]
fn both_libraries_are_installed_unless_one_is_asked_for() {
    assert_eq!(files(&only_static().prefix), set(&[&ALWAYS[..], &STATIC].concat()));
    assert_eq!(files(&shared().prefix), everything());
}

#[test]
fn a_package_is_staged_below_destdir_and_does_not_know_it() {
    let stage = scratch("stage");
    let options = ["--prefix=/usr", "--libdir=lib64", "--includedir=/opt/headers"];
    let mut command = installer();
    command.args(options).args(["--pkgconfigdir", "share/pkgconfig"]);
    command.args(["--cmakedir", "share/percid"]);
    command.args(["--library-type", "cdylib", "--quiet"]);
    let output = command.arg("--destdir").arg(&stage).output().expect("the installer starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b""[..], &b""[..]));
    let expected = [
        "opt/headers/percid.cppm",
        "opt/headers/percid.h",
        "opt/headers/percid.hpp",
        "opt/headers/percid_inline.h",
        "opt/headers/percid_interface.h",
        "opt/headers/percid_sections.h",
        "usr/lib64/libpercid.so",
        "usr/lib64/libpercid.so.1",
        "usr/lib64/libpercid.so.1.0.0",
        "usr/lib64/percid/manifest",
        "usr/lib64/percid/valgrind.supp",
        "usr/share/percid/percidConfig.cmake",
        "usr/share/percid/percidConfigVersion.cmake",
        "usr/share/pkgconfig/percid.pc",
    ];
    assert_eq!(files(&stage), set(&expected));
    for file in expected.iter().filter(|name| !name.contains("libpercid.so")) {
        let text = fs::read_to_string(stage.join(file)).expect("a text");
        assert!(!text.contains("stage"), "{file}: {text}");
    }
    let text = fs::read_to_string(stage.join("usr/share/pkgconfig/percid.pc")).expect("it");
    assert!(text.starts_with("prefix=/usr\nlibdir=${prefix}/lib64\nincludedir=/opt/headers\n"));
    ends_with(0, percid_install().arg("uninstall").args(options).env("DESTDIR", &stage));
    // The folder that replaces / is not percid's.
    assert_eq!(fs::read_dir(&stage).expect("the stage").count(), 0);
}

#[test]
fn wrong_wishes_are_refused_in_one_line() {
    let message = ends_with(2, installer().args(["--mandir", "x"]));
    assert_eq!(message, "percid-install: unknown option --mandir; --help lists the options\n");
    let message = ends_with(1, installer().args(["--prefix=/proc/percid", "--quiet"]));
    assert!(message.starts_with("percid-install: cannot write /proc/percid: "), "{message}");
    let message = ends_with(1, installer().args(["--profile=there-is-none", "--quiet"]));
    assert!(message.contains("there-is-none"), "{message}");
    let message =
        ends_with(1, installer().args(["--target=there-is-none", "--quiet"]).env("CC", ""));
    assert!(message.contains("expected CC to name a C compiler for it"), "{message}");
}

#[test]
fn the_second_step_neither_compiles_nor_writes_where_the_first_did() {
    let prefix = scratch("second-step");
    let nothing = scratch("nothing-built");
    let message = ends_with(1, percid_install().arg("install").arg("--products").arg(&nothing));
    assert!(message.contains("run percid-install build first"), "{message}");

    let mut command = second_step();
    let products = target_folder().join("tmp/c_interface/products/host");
    let before = times(&products);
    assert!(before.len() > 2, "{before:?}");
    ends_with(0, command.arg("--prefix").arg(&prefix));
    assert_eq!(times(&products), before);
    assert_eq!(files(&prefix), everything());
}

/// Returns the files of a folder with their modification times, and that of the folder itself.
fn times(folder: &Path) -> BTreeSet<(PathBuf, std::time::SystemTime)> {
    let names = files(folder).into_iter().chain([PathBuf::new()]);
    let time = |name: &Path| folder.join(name).metadata().and_then(|found| found.modified());
    names.map(|name| (name.clone(), time(&name).expect("a time"))).collect()
}

/// No value is judged, because the machine may be busy.
#[test]
#[ignore = "long: Cargo builds the library again, with the benchmark"]
fn the_benchmark_is_installed_if_it_is_asked_for_and_measures() {
    let (products, prefix) = (scratch("with-benchmark"), nowhere("benchmark"));
    let program = prefix.join("bin/percid-bench-c");
    let mut build = installer();
    build.args(["build", "--bench", "--library-type=staticlib", "--products"]).arg(&products);
    ends_with(0, &mut build);
    let step = |arguments: &[&str]| {
        let mut command = second_step();
        command.args(arguments).arg("--prefix").arg(&prefix).arg("--products").arg(&products);
        command
    };
    let dry = step(&["--dry-run"]).output().expect("it starts");
    let named = String::from_utf8(dry.stdout).expect("UTF-8");
    assert!(named.lines().any(|line| Path::new(line) == program), "{named}");
    ends_with(0, &mut step(&[]));
    assert_eq!(files(&prefix), set(&[&ALWAYS[..], &STATIC, &["bin/percid-bench-c"]].concat()));
    let mode = fs::metadata(&program).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    prints_json(&program);
    judges(&program);

    // An installation without the benchmark removes it, and so does uninstalling.
    ends_with(0, second_step().arg("--prefix").arg(&prefix));
    assert_eq!(files(&prefix), everything());
    ends_with(0, step(&["--bindir=libexec"]).arg("--quiet"));
    assert!(prefix.join("libexec/percid-bench-c").exists() && !program.exists());
    ends_with(0, percid_install().arg("uninstall").arg("--prefix").arg(&prefix));
    assert!(!prefix.exists());
    let message = ends_with(2, percid_install().args(["install", "--bench"]));
    assert!(message.contains("--bench means nothing to install"), "{message}");
}

/// Makes the shortest run: it prints a JSON object per line, and all operations in every required
/// way.
fn prints_json(benchmark: &Path) {
    const CHECK: &str = "\
import json, sys
ways = {}
for line in sys.stdin:
    one = json.loads(line)
    assert one['min_ns'] > 0 and one['median_ns'] >= one['min_ns'], line
    ways.setdefault(one['operation'], set()).add(one['way'])
inline = [name for name, found in ways.items() if {'Rust', 'C', 'C++'} <= found]
assert len(inline) == 7, inline
assert 'mimalloc malloc + free' in ways['for comparison'], ways
";
    if !has_tools(&["python3"]) {
        return;
    }
    let output = Command::new(benchmark).args(["--rounds", "1", "--json"]).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut python = Command::new("python3");
    python.args(["-c", CHECK]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut python = python.spawn().expect("it starts");
    python.stdin.take().expect("a pipe").write_all(&output.stdout).expect("it reads");
    let checked = python.wait_with_output().expect("it ends");
    let complaint = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{complaint}{}", String::from_utf8_lossy(&output.stdout));
}

/// Checks that the exit status matches the last lines.
fn judges(benchmark: &Path) {
    let output = Command::new(benchmark).args(["--rounds", "1", "--check"]).output();
    let output = output.expect("it starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let beyond = text.lines().find_map(|line| line.strip_prefix("beyond 1.15 times Rust"));
    let nothing = beyond.expect("a judgement").ends_with(": nothing");
    assert!(text.contains(" of mimalloc (0.7 wanted)"), "{text}");
    match output.status.code() {
        Some(0) => assert!(nothing, "{text}"),
        status => assert_eq!(status, Some(1), "{text}"),
    }
}

#[test]
fn only_what_was_built_can_be_installed() {
    let products = scratch("one-product");
    let mut build = installer();
    build.args(["build", "--library-type=staticlib", "--products"]).arg(&products);
    ends_with(0, &mut build);
    assert!(!products.join("host/libpercid.so.1.0.0").exists());
    let install = |library| {
        let mut command = percid_install();
        command.args(["install", library, "--products"]).arg(&products);
        command.arg("--prefix").arg(scratch("of-one-product"));
        command
    };
    let message = ends_with(1, &mut install("--library-type=cdylib"));
    assert!(message.contains("run percid-install build --library-type cdylib"), "{message}");
    ends_with(0, &mut install("--library-type=staticlib"));

    // Simulates that the program was compiled with other headers after the build.
    let description = products.join("host/built");
    let text = fs::read_to_string(&description).expect("a description");
    fs::write(&description, text.replacen("percid ", "percid 0", 1)).expect("writable");
    let message = ends_with(1, &mut install("--library-type=staticlib"));
    assert!(message.contains("built from another percid"), "{message}");
}

#[test]
fn what_fails_installs_nothing() {
    let prefix = scratch("obstacle");
    let obstacle = prefix.join("lib/pkgconfig/percid.pc");
    fs::create_dir_all(obstacle.join("folder")).expect("writable");
    fs::create_dir(prefix.join("include")).expect("writable");
    fs::write(prefix.join("include/percid.h"), "older").expect("writable");
    let message = ends_with(1, second_step().arg("--prefix").arg(&prefix));
    let expected = format!("cannot write {}: expected a file", obstacle.display());
    assert!(message.contains(&expected), "{message}");
    assert_eq!(files(&prefix), set(&["include/percid.h"]));
    assert_eq!(fs::read_to_string(prefix.join("include/percid.h")).expect("a file"), "older");
    assert!(!prefix.join("lib/cmake").exists());
}

#[test]
fn what_is_installed_can_be_read_by_everybody() {
    let prefix = nowhere("umask");
    let step = second_step();
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(step.get_program());
    command.args(step.get_args()).arg("--prefix").arg(&prefix);
    ends_with(0, &mut command);
    let mode = |name: &str| {
        fs::metadata(prefix.join(name)).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(["include/percid.h", "lib/libpercid.a"].map(mode), [0o644; 2]);
    assert_eq!(["", "include", "lib/percid", "lib/libpercid.so.1"].map(mode), [0o755; 4]);
}

#[test]
fn uninstalling_removes_what_was_installed_and_nothing_else() {
    let prefix = nowhere("uninstalled");
    let uninstall = |options: &[&str], status| {
        let mut command = percid_install();
        ends_with(status, command.arg("uninstall").args(options).arg("--prefix").arg(&prefix))
    };
    ends_with(0, second_step().arg("--prefix").arg(&prefix));
    uninstall(&["--dry-run"], 0);
    assert_eq!(files(&prefix), everything());
    uninstall(&[], 0);
    assert!(!prefix.exists());

    ends_with(0, second_step().arg("--prefix").arg(&prefix));
    fs::write(prefix.join("include/other.h"), "").expect("writable");
    fs::write(prefix.join("include/percid.h"), "changed").expect("writable");
    fs::remove_file(prefix.join("lib/libpercid.a")).expect("removable");
    for _ in 0..2 {
        let message = uninstall(&[], 1);
        assert!(message.contains("percid.h: changed after it was installed"), "{message}");
        let expected = ["include/other.h", "include/percid.h", "lib/percid/manifest"];
        assert_eq!(files(&prefix), set(&expected));
    }
    uninstall(&["--force"], 0);
    assert_eq!(files(&prefix), set(&["include/other.h"]));
    assert!(!prefix.join("lib").exists());
    let message = uninstall(&[], 0);
    assert!(message.contains("nothing to remove"), "{message}");
}

/// The list in the copy contains the paths of the original.
#[test]
fn uninstalling_a_copy_leaves_the_original_alone() {
    let (original, copy) = (nowhere("original"), nowhere("copy"));
    ends_with(0, second_step().arg("--prefix").arg(&original));
    ends_with(0, Command::new("cp").arg("-a").arg(&original).arg(&copy));
    let message = ends_with(1, percid_install().arg("uninstall").arg("--prefix").arg(&copy));
    assert!(message.contains(&format!("below {}", original.display())), "{message}");
    assert_eq!((files(&original), files(&copy)), (everything(), everything()));
    // Another installation replaces the list by one for the copy.
    ends_with(0, second_step().arg("--prefix").arg(&copy));
    ends_with(0, percid_install().arg("uninstall").arg("--prefix").arg(&copy));
    assert_eq!((files(&original), files(&copy)), (everything(), BTreeSet::new()));
}

/// A shared library that remained would be found by linkers, and not fit the headers.
#[test]
fn an_installation_replaces_the_one_before_it() {
    let prefix = nowhere("replaced");
    ends_with(0, second_step().arg("--prefix").arg(&prefix));
    let mut second = second_step();
    ends_with(0, second.arg("--library-type=staticlib").arg("--prefix").arg(&prefix));
    assert_eq!(files(&prefix), set(&[&ALWAYS[..], &STATIC].concat()));
    ends_with(0, percid_install().arg("uninstall").arg("--prefix").arg(&prefix));
    assert!(!prefix.exists());
}

#[test]
fn a_dry_run_names_the_files_and_does_nothing() {
    let prefix = nowhere("dry");
    let named = |output: Output| -> BTreeSet<PathBuf> {
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let paths = text.lines().map(Path::new);
        paths.map(|path| path.strip_prefix(&prefix).expect("below").to_owned()).collect()
    };
    let mut dry = second_step();
    let output = dry.arg("--dry-run").arg("--prefix").arg(&prefix).output().expect("it starts");
    assert_eq!(named(output), everything());
    // Both steps at once: nothing is compiled.
    let mut dry = percid_install();
    dry.env("CARGO", "false").arg("-n").arg("--prefix").arg(&prefix);
    assert_eq!(named(dry.output().expect("it starts")), everything());
    assert!(!prefix.exists());
}

/// A script replaces the system's cache of libraries.
#[test]
fn what_is_left_to_do_for_the_dynamic_linker_is_said() {
    let prefix = scratch("hinted");
    let tools = scratch("ldconfig");
    let lib = prefix.join("lib");
    let hint = |cache: &str, folders: &str| {
        let script = tools.join("ldconfig");
        let text = format!("#!/bin/sh\n[ $1 = -p ] && echo '{cache}' || echo '{folders}'\n");
        fs::write(&script, text).expect("writable");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("allowed");
        let mut command = second_step();
        ends_with(0, command.arg("--prefix").arg(&prefix).env("PATH", &tools))
    };
    let folder = format!("{}: (from /etc/ld.so.conf:1)", lib.display());
    let text = hint("", &folder);
    assert!(text.trim_end().ends_with("once root has run: ldconfig"), "{text}");
    let text = hint("", "/elsewhere: (from <builtin>)");
    assert!(text.contains("set LD_LIBRARY_PATH="), "{text}");
    let known = format!("\tlibpercid.so.1 (libc6,x86-64) => {}/libpercid.so.1", lib.display());
    assert_eq!(hint(&known, &folder), "");
}

/// Nothing has been built. The files of Cargo and of this program must not conflict.
#[test]
#[ignore = "long: Cargo builds everything, twice, in an empty folder"]
fn the_printed_commands_install_where_nothing_was_built() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("crates/percid-capi/README.md")).expect("the page");
    let printed = |words: &str| {
        let mut lines = page.lines().filter_map(|line| line.strip_prefix("    "));
        lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words}")).to_owned()
    };
    let build = printed("--bin percid-install -- build");
    let install = printed("percid-install install").replace("target/", "$CARGO_TARGET_DIR/");
    let both = printed("--bin percid-install -- --prefix ~/.local");
    let script = format!("set -e\n{both}\n{build}\n{install} --destdir ~/package\n");
    let home = scratch("newcomer");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(root);
    let old_home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if std::env::var_os(name).is_none() {
            shell.env(name, old_home.join(folder));
        }
    }
    shell.env("HOME", &home).env("CARGO_TARGET_DIR", home.join("target"));
    ends_with(0, &mut shell);
    assert_eq!(files(&home.join(".local")), everything());
    assert_eq!(files(&home.join("package/usr/local")), everything());
    // The folder is large, and not needed any more.
    fs::remove_dir_all(home.join("target")).expect("removable");
}
