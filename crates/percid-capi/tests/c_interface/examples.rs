//! The examples are built as their pages describe, and run.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::installation::{all, shared};
use crate::selection::{SOURCES, one_way, some_compilers};
use crate::toolchain::{Build, Compiler, Program, WARNINGS, any_compiler, has_tools, scratch};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Returns the path of an example's file, for a compiler.
fn source(name: &str) -> String {
    folder(name).to_str().expect("a path in UTF-8").to_owned()
}

/// Returns the example programs of a language, by the suffix of their names.
fn examples(name: &str, end: &str) -> Vec<PathBuf> {
    let folder = folder(name);
    let entries = std::fs::read_dir(&folder).expect("the examples");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|found| found == end)).collect();
    found.sort();
    assert!(!found.is_empty(), "no examples in {}", folder.display());
    found
}

/// Compiles and runs examples, each of which checks its own results.
fn must_run(paths: &[PathBuf], called: impl Fn(Compiler) -> &'static str, dialect: &str) {
    for (index, path) in paths.iter().enumerate() {
        for (compiler, installation) in one_way(index) {
            let options = format!("{dialect} -O2 {WARNINGS} -pthread");
            let source = path.to_str().expect("a path in UTF-8");
            let build = Build::new(called(compiler), &[source], &options);
            let program = build.against(installation).make();
            let (output, text) = program.outcome(&mut program.command());
            assert!(
                output.status.success() && !text.is_empty(),
                "{source}: {}\n{text}",
                output.status
            );
            println!("{source}:\n{text}");
        }
    }
}

#[test]
pub(crate) fn examples_in_c() {
    must_run(&examples("c", "c"), |compiler| compiler.c, "-std=c11");
}

#[test]
pub(crate) fn examples_in_cpp() {
    must_run(&examples("cpp", "cpp"), |compiler| compiler.cpp, "-std=c++17");
}

/// Returns the build of an example's shared library.
fn shared_library(name: &str, compiler: &str, options: &str) -> Build {
    let options = format!("-std=gnu11 -O2 -fPIC -shared -Wl,-z,nodelete {WARNINGS} {options}");
    Build::new(compiler, &[&source(name)], &options)
}

/// Returns a process's report of the blocks of 513 to 1024 bytes: the number of allocated ones,
/// their bytes, the number of freed ones, and the remaining ones.
fn blocks_of_1024(report: &str, process: &str) -> Vec<i64> {
    let (_, own) = report
        .split_once(&format!("allocations of process {process}\n"))
        .unwrap_or_else(|| panic!("no report of {process}: {report}"));
    let own = own.split("allocations of").next().expect("a part");
    let mut lines = own.lines().map(|line| line.split_whitespace());
    let line = lines.find_map(|mut line| (line.next() == Some("1024")).then_some(line));
    line.expect(own).map(|number| number.parse().expect(own)).collect()
}

fn preloaded(library: &Program, command: &mut Command) -> Output {
    command.env("LD_PRELOAD", &library.path).env("LD_LIBRARY_PATH", shared().libraries());
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    output
}

/// The number of blocks of a size that nothing else in the process uses is known exactly, in the
/// parent and in the child.
#[test]
pub(crate) fn allocations_of_any_program_are_counted() {
    for compiler in some_compilers(0) {
        let options = format!("-std=gnu11 -O2 {WARNINGS} -pthread");
        let workload = Build::new(compiler.c, &[&source("preload/workload.c")], &options).make();
        for (_, installation) in all() {
            let library = shared_library("preload/allocations.c", compiler.c, "");
            let library = library.against(installation).make();
            for wish in SOURCES {
                let mut command = workload.command();
                command.envs(wish.map(|wish| ("PERCID_SOURCE", wish)));
                let output = preloaded(&library, &mut command);
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                let words: Vec<&str> = text.split_whitespace().collect();
                let (parent, child) = (words[7].trim_end_matches(','), words[words.len() - 1]);
                let report = String::from_utf8_lossy(&output.stderr);
                let expected = [1_000_000, 1_000_000_000, 1_000_000, 0];
                assert_eq!(blocks_of_1024(&report, parent)[..4], expected, "{wish:?}");
                let expected = [1000, 1_000_000, 1000, 0];
                assert_eq!(blocks_of_1024(&report, child)[..4], expected, "{wish:?}");
            }
        }
    }
}

/// ls closes standard error before it ends, bash forks, and all of them allocate before any
/// initialisation.
#[test]
fn programs_of_the_system_bear_being_counted() {
    let library = shared_library("preload/allocations.c", any_compiler().c, "");
    let library = library.against(shared()).make();
    for script in ["ls -l /", "for i in 1 2 3; do (echo $(echo $i)); done; ls | sort | tail -1"] {
        let output = preloaded(&library, Command::new("bash").args(["-c", script]));
        let report = String::from_utf8_lossy(&output.stderr);
        assert!(report.contains("allocations of process"), "{script}: {report}");
        assert!(!output.stdout.is_empty(), "{script}");
    }
}

#[test]
pub(crate) fn a_program_and_its_plugins_count_whichever_copies_they_use() {
    for compiler in some_compilers(0) {
        let plugins = all().map(|(_, installation)| {
            shared_library("plugin/plugin.c", compiler.c, "").against(installation).make()
        });
        for (word, installation) in all() {
            let options = format!("-std=c11 -O2 {WARNINGS} -pthread");
            let host = Build::new(compiler.c, &[&source("plugin/host.c")], &options);
            let host = host.against(installation).arguments(&["-ldl"]).make();
            for wish in SOURCES {
                let mut command = host.command();
                command.args(plugins.iter().map(|plugin| &plugin.path));
                command.envs(wish.map(|wish| ("PERCID_SOURCE", wish)));
                command.env("LD_LIBRARY_PATH", shared().libraries());
                let (output, text) = host.outcome(&mut command);
                assert!(output.status.success(), "{} {word} {wish:?}: {text}", compiler.c);
            }
        }
    }
}

/// Runs a program that was not linked with percid, with every source.
fn must_run_with_every_source(command: &mut Command) {
    command.env("LD_LIBRARY_PATH", shared().libraries());
    for wish in SOURCES {
        match wish {
            Some(wish) => command.env("PERCID_SOURCE", wish),
            None => command.env_remove("PERCID_SOURCE"),
        };
        let output = command.output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {errors}");
        println!("{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn python_counts() {
    if has_tools(&["python3"]) {
        let mut python = Command::new("python3");
        // Leave no file in the source tree.
        python.env("PYTHONDONTWRITEBYTECODE", "1").arg(folder("python/requests.py"));
        must_run_with_every_source(&mut python);
    }
}

/// Returns a number that changes with the headers.
fn fingerprint(prefix: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let entries = std::fs::read_dir(prefix.join("include")).expect("headers");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a header").path()).collect();
    paths.sort();
    for path in paths {
        std::fs::read(path).expect("a header").hash(&mut hasher);
    }
    hasher.finish()
}

#[test]
#[ignore = "long: go compiles its own library first"]
fn go_counts() {
    if !has_tools(&["go"]) {
        return;
    }
    for (word, installation) in all() {
        let program = scratch("go").join(word);
        let mut go = Command::new("go");
        go.args(["build", "-o"]).arg(&program).arg(folder("go/requests.go"));
        go.env("PKG_CONFIG_PATH", installation.libraries().join("pkgconfig"));
        // go does not detect changed headers, but does detect changed options.
        go.env("CGO_CFLAGS", format!("-O2 -DHEADERS={}", fingerprint(&installation.prefix)));
        let output = go.output().expect("go starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        must_run_with_every_source(&mut Command::new(program));
    }
}
