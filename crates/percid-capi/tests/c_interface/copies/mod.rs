//! Several copies of percid in one process: in the program, in libraries, in plugins, of several
//! versions. Each module uses one of them for everything.

mod rust;
mod versions;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::installation::{only_static, shared};
use crate::selection::is_whole;
use crate::toolchain::{Build, Program, WARNINGS, any_compiler, compilers};

const SOURCES: [&str; 3] = ["kernel", "table", "atomic"];

/// The plugins, each of which gets percid in another way.
#[derive(Debug)]
struct Plugins {
    /// With the static library inside.
    with_static: PathBuf,
    /// With the static library inside, all symbols hidden.
    hidden: PathBuf,
    /// With an older static library inside.
    older: PathBuf,
    /// With the shared library.
    with_shared: PathBuf,
    /// With the library that Cargo builds.
    with_cargos: PathBuf,
}

fn plugins() -> &'static Plugins {
    static MADE: OnceLock<Plugins> = OnceLock::new();
    MADE.get_or_init(|| Plugins {
        with_static: plugin(headers(), &inside(&only_static().library("libpercid.a"))),
        hidden: plugin(headers(), &{
            let mut all = inside(&only_static().library("libpercid.a"));
            all.push("-Wl,--exclude-libs,ALL".to_owned());
            all
        }),
        older: plugin(headers(), &inside(versions::older())),
        with_shared: plugin(headers(), &beside(&shared().libraries(), "percid")),
        with_cargos: plugin(headers(), &beside(cargos_folder(), "percid_capi")),
    })
}

/// Returns the options for the unchanged headers.
fn headers() -> &'static str {
    concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include")
}

/// Returns the arguments that link with a static library and its dependencies.
fn inside(archive: &Path) -> Vec<String> {
    let archive = archive.to_str().expect("a path in UTF-8");
    [archive, "-pthread", "-ldl", "-lm", "-Wl,-z,nodelete"].map(str::to_owned).to_vec()
}

/// Returns the arguments that link with a shared library, which is found at run time.
fn beside(folder: &Path, name: &str) -> [String; 3] {
    let folder = folder.to_str().expect("a path in UTF-8");
    [format!("-L{folder}"), format!("-l{name}"), format!("-Wl,-rpath,{folder}")]
}

/// Returns the folder of the shared library that Cargo builds of the package for its tests.
pub(crate) fn cargos_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| Path::new(env!("CARGO_BIN_EXE_percid-install")).with_file_name("deps"))
}

fn plugin(headers: &str, arguments: &[String]) -> PathBuf {
    let options = format!("-std=gnu11 -O2 -shared -fPIC {WARNINGS} {headers}");
    made(Build::new(any_compiler().c, &["copy_plugin.c"], &options), arguments).path
}

fn made(build: Build, arguments: &[String]) -> Program {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    build.arguments(&arguments).make()
}

/// Returns the programs that load the plugins.
fn hosts() -> &'static [(&'static str, Program)] {
    static MADE: OnceLock<Vec<(&'static str, Program)>> = OnceLock::new();
    MADE.get_or_init(make_hosts)
}

fn make_hosts() -> Vec<(&'static str, Program)> {
    let archive = inside(&only_static().library("libpercid.a"));
    let with = |more: &[String]| [&archive, more].concat();
    let using = "-DWITH_PERCID";
    vec![
        ("a program without percid", host("", &[])),
        ("a program with a copy", host(using, &archive)),
        ("a program that exports", host(using, &with(&["-rdynamic".to_owned()]))),
        (
            "a program with a copy and a library that uses it",
            host("-DWITH_PERCID -DWITH_NEIGHBOUR", &with(&neighbour())),
        ),
        ("a program with the shared library", {
            host(using, &beside(&shared().libraries(), "percid"))
        }),
        ("a program with Cargo's library", host(using, &beside(cargos_folder(), "percid_capi"))),
    ]
}

fn host(options: &str, arguments: &[String]) -> Program {
    let options = format!("-std=gnu11 -O2 -pthread {WARNINGS} {} {options}", headers());
    made(
        Build::new(any_compiler().c, &["copies.c"], &options),
        &[arguments, &["-ldl".to_owned()]].concat(),
    )
}

/// Returns a library that uses percid but does not contain it.
fn neighbour() -> Vec<String> {
    let options = format!("-std=gnu11 -O2 -shared -fPIC {WARNINGS} {}", headers());
    let library = Build::new(any_compiler().c, &["copy_neighbour.c"], &options).make();
    vec![library.path.to_str().expect("a path in UTF-8").to_owned()]
}

/// Returns the command without Cargo's library folders, which contain older libraries: each module
/// names its own folder.
fn command(host: &Program) -> Command {
    let mut command = host.command();
    command.env_remove("LD_LIBRARY_PATH");
    command
}

/// Runs a program that loads plugins, and returns the number of copies.
fn copies(
    host: &Program,
    rounds: u32,
    plugins: &[(&str, &Path)],
    environment: &[(&str, &str)],
) -> usize {
    let mut command = command(host);
    command.arg(rounds.to_string()).envs(environment.iter().copied());
    command.args(plugins.iter().map(|(mode, path)| format!("{mode}:{}", path.display())));
    let (output, text) = host.outcome(&mut command);
    let said = output.status.success().then(|| text.strip_prefix("copies=")).flatten();
    let number =
        said.and_then(|said| said.strip_suffix("\nok\n")).and_then(|said| said.parse().ok());
    number.unwrap_or_else(|| panic!("{command:?}: {}\n{text}", output.status))
}

#[test]
fn every_module_gets_everything_from_one_copy() {
    let plugins = plugins();
    let all = |mode| {
        let paths = [
            &plugins.with_static,
            &plugins.with_shared,
            &plugins.older,
            &plugins.hidden,
            &plugins.with_cargos,
        ];
        paths.map(|path| (mode, path.as_path()))
    };
    for (name, host) in hosts() {
        for source in SOURCES {
            let number = copies(host, 2_000, &all("local"), &[("PERCID_SOURCE", source)]);
            println!("{name}, {source}: {number} copies");
        }
        for mode in ["global", "deep"] {
            let mut backwards = all(mode);
            let number = copies(host, 2_000, &backwards, &[]);
            backwards.reverse();
            let other_way = copies(host, 2_000, &backwards, &[]);
            println!("{name}, {mode}: {number} copies, {other_way} the other way round");
        }
        for preloaded in [shared().library("libpercid.so"), plugins.with_static.clone()] {
            let preloaded = preloaded.to_str().expect("a path in UTF-8");
            let number = copies(host, 2_000, &all("local"), &[("LD_PRELOAD", preloaded)]);
            println!("{name}, {preloaded} loaded before: {number} copies");
        }
    }
}

/// Returns the number of rounds to make: all if `PERCID_MATRIX` asks for it.
fn stress(rounds: u32) -> u32 {
    if is_whole() { rounds } else { rounds / 10 }
}

/// Two static copies and one shared copy, of two versions.
#[test]
pub(crate) fn three_copies_of_two_versions_count_under_stress() {
    let host = host("-DWITH_PERCID", &inside(&only_static().library("libpercid.a")));
    let plugins = plugins();
    let mut older = inside(versions::older());
    older.push("-Wl,--exclude-libs,ALL".to_owned());
    let older = plugin(headers(), &older);
    for source in SOURCES {
        let loaded = [("local", older.as_path()), ("local", &plugins.with_shared)];
        assert_eq!(copies(&host, stress(200_000), &loaded, &[("PERCID_SOURCE", source)]), 3);
    }
}

/// Libraries of two versions, with which a program is linked in either order. There is one copy if
/// the table is visible, and one for each library if it is not.
#[test]
pub(crate) fn two_libraries_of_a_program_that_each_contain_percid_count_under_stress() {
    for (hiding, expected) in [(None, 1), (Some("-Wl,--exclude-libs,ALL"), 2)] {
        let library = |archive: &Path| {
            let arguments: Vec<_> =
                inside(archive).into_iter().chain(hiding.map(str::to_owned)).collect();
            plugin(headers(), &arguments)
        };
        let mut libraries =
            [library(&only_static().library("libpercid.a")), library(versions::older())];
        for _ in 0..2 {
            let paths = libraries.each_ref().map(|path| path.to_str().expect("a path in UTF-8"));
            // The program refers to nothing in them.
            let host = host("", &["-Wl,--no-as-needed", paths[0], paths[1]].map(str::to_owned));
            let loaded = libraries.each_ref().map(|path| ("local", path.as_path()));
            for source in SOURCES {
                let number = copies(&host, stress(50_000), &loaded, &[("PERCID_SOURCE", source)]);
                assert_eq!(number, expected, "{hiding:?}, {source}");
            }
            libraries.reverse();
        }
    }
}

/// Another interface has another symbol: neither gets the other's table.
#[test]
fn interfaces_stand_beside_each_other() {
    let headers = versions::next_headers();
    let next = plugin(&headers, &inside(&versions::next()));
    for (name, host) in hosts() {
        let loaded = [("global", next.as_path()), ("global", &plugins().with_static)];
        let number = copies(host, 2_000, &loaded, &[]);
        assert_eq!(number, if *name == "a program with a copy" { 3 } else { 2 }, "{name}");
    }
}

/// One copy adds and another sums, as with functions that are bound one by one.
#[test]
fn a_mixture_of_copies_is_seen() {
    let mixed = plugin(
        &format!("{} -DCOPIES_ARE_MIXED", headers()),
        &beside(&shared().libraries(), "percid"),
    );
    for (name, host) in hosts() {
        let mut command = command(host);
        command.args(["2000", &format!("local:{}", mixed.display())]);
        let (output, text) = host.outcome(command.env("PERCID_SOURCE", "table"));
        let exports =
            ["a program that exports", "a program with a copy and a library that uses it"];
        assert_eq!(output.status.success(), !exports.contains(name), "{name}: {text}");
    }
}

/// Objects of one copy are refused by another.
#[test]
fn objects_of_another_copy_are_refused() {
    let options = format!("-std=gnu11 -O2 {WARNINGS} {}", headers());
    let archive = inside(&only_static().library("libpercid.a"));
    let host = made(Build::new(any_compiler().c, &["foreign.c"], &options), &archive);
    let options = format!("-shared -fPIC {options}");
    let plugin = made(Build::new(any_compiler().c, &["foreign_plugin.c"], &options), &archive);
    for source in SOURCES {
        let mut command = host.command();
        command.arg(&plugin.path).env("PERCID_SOURCE", source);
        let (output, text) = host.outcome(&mut command);
        assert!(output.status.success() && text.ends_with("\nok\n"), "{source}: {text}");
        let told = "percid: an object of another copy of percid in this process is refused";
        assert_eq!(text.matches(told).count(), 1, "{text}");
    }
}

#[test]
fn what_an_older_library_lacks_is_answered() {
    let older = versions::older();
    let current = only_static().library("libpercid.a");
    for compiler in compilers() {
        for (dialect, name) in [("-std=c99", compiler.c), ("-std=c++11 -x c++", compiler.cpp)] {
            let run = |archive: &Path| {
                let options = format!("{dialect} -O2 {WARNINGS} {}", versions::later_headers());
                let build = Build::new(name, &["late_functions.c"], &options);
                let program = made(build, &inside(archive));
                let (output, text) = program.outcome(&mut program.command());
                assert!(output.status.success(), "{text}");
                text
            };
            assert_eq!(run(&current), format!("{}\nok\n", env!("CARGO_PKG_VERSION")));
            let answer = run(older);
            assert!(answer.ends_with("0.0.1\nok\n"), "{answer}");
            let told = answer.lines().filter(|line| line.starts_with("missing: percid_report_"));
            assert_eq!(told.count(), 5, "{answer}");
        }
    }
}

#[test]
fn the_library_itself_says_what_it_lacks() {
    let table = &percid_capi::interface::INTERFACE;
    assert_eq!(table.lacks(c"percid_tomorrow"), -libc::ENOSYS);
}

/// Objects that C++ inline functions share belong to one copy. (clang does not have plugins share
/// it.)
#[test]
fn plugins_share_the_objects_of_inline_functions() {
    for compiler in compilers().iter().filter(|compiler| compiler.c == "gcc") {
        let made_by = |archive: &[String]| {
            let options = format!("-std=c++17 -O2 -shared -fPIC {WARNINGS} {}", headers());
            made(Build::new(compiler.cpp, &["copy_inline.cpp"], &options), archive).path
        };
        let current = made_by(&inside(&only_static().library("libpercid.a")));
        let other = made_by(&inside(versions::older()));
        let host = host("", &[]);
        for source in SOURCES {
            for modes in [["local", "local"], ["global", "local"], ["deep", "deep"]] {
                let loaded = [(modes[0], current.as_path()), (modes[1], &other)];
                let number = copies(&host, 20_000, &loaded, &[("PERCID_SOURCE", source)]);
                assert_eq!(number, 1, "{modes:?}");
            }
        }
    }
}

/// Environment variable with the plugin for the Rust program, which is this one.
const PLUGIN_OF_RUST: &str = "PERCID_TEST_PLUGIN";

#[test]
fn a_rust_program_with_percid_inside_loads_plugins() {
    let plugins = plugins();
    let itself = std::env::current_exe().expect("this program");
    for plugin in [&plugins.with_static, &plugins.with_shared, &plugins.hidden] {
        for source in SOURCES {
            let mut command = Command::new(&itself);
            command.env_remove("LD_LIBRARY_PATH");
            command.args(["--exact", "--ignored", "copies::rust::counts_beside_a_plugin"]);
            command.env(PLUGIN_OF_RUST, plugin).env("PERCID_SOURCE", source);
            let output = command.output().expect("this program");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{source}: {text}");
        }
    }
}
