//! Compilers, and programs built by them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use crate::installation::Installation;
use crate::selection::{SOURCES, Source};

/// A pair of compilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compiler {
    pub(crate) c: &'static str,
    pub(crate) cpp: &'static str,
}

const GCC: Compiler = Compiler { c: "gcc", cpp: "g++" };
const CLANG: Compiler = Compiler { c: "clang", cpp: "clang++" };

/// Options that make every warning an error.
pub(crate) const WARNINGS: &str = "-Wall -Wextra -Werror -pedantic";

/// Returns the compilers of this machine; reports the missing ones.
pub(crate) fn compilers() -> &'static [Compiler] {
    static FOUND: OnceLock<Vec<Compiler>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let (there, missing): (Vec<_>, Vec<_>) =
            [GCC, CLANG].into_iter().partition(|one| is_installed(one.c) && is_installed(one.cpp));
        for one in missing {
            let what = format!("the C interface with {} and {}", one.c, one.cpp);
            percid_skips::not_checked(&what, "they are not both installed");
        }
        assert!(!there.is_empty(), "these tests need a C compiler: install gcc or clang");
        there
    })
}

/// Returns one of the compilers, for tests that do not depend on it.
pub(crate) fn any_compiler() -> Compiler {
    compilers()[0]
}

/// Returns `true` if a program of this name can be run.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns `true` if these programs can be run; otherwise reports the missing ones. With
/// `PERCID_TOOLS=require` a missing one fails, so that the checks of the project skip nothing.
pub(crate) fn has_tools(names: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = |name: &&&str| !std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    let missing: Vec<_> = names.iter().filter(missing).collect();
    let required = std::env::var_os("PERCID_TOOLS").is_some_and(|wish| wish == "require");
    assert!(missing.is_empty() || !required, "not installed: {missing:?}");
    if !missing.is_empty() {
        percid_skips::not_checked(
            "a part of the C interface",
            &format!("not installed: {missing:?}"),
        );
    }
    missing.is_empty()
}

/// Returns `true` if Rust can compile for a target; otherwise reports it.
pub(crate) fn has_rust_target(target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let print = ["--print", "target-libdir", "--target", target];
    let output = Command::new(rustc).args(print).output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let there = path.is_ok_and(|path| Path::new(&path).is_dir());
    if !there {
        percid_skips::not_checked(
            &format!("the C interface for {target}"),
            "Rust has no such target here",
        );
    }
    there
}

/// Returns `true` if a compiler has these options; otherwise reports it.
pub(crate) fn try_options(compiler: &str, options: &str) -> bool {
    let mut command = Command::new(compiler);
    command.args(options.split_whitespace().filter(|option| option.starts_with("-std=")));
    command.args([
        "-E",
        "-dM",
        "-x",
        if compiler.contains("++") { "c++" } else { "c" },
        "/dev/null",
    ]);
    let known = command.output().is_ok_and(|output| output.status.success());
    if !known {
        percid_skips::not_checked(
            &format!("the C interface with {options}"),
            &format!("{compiler} does not know it"),
        );
    }
    known
}

/// Returns the folder of the test programs.
pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c_interface/programs")
}

/// A program to compile and link.
#[derive(Debug)]
pub(crate) struct Build {
    compiler: String,
    sources: Vec<PathBuf>,
    options: Vec<String>,
    arguments: Vec<String>,
    name: String,
    library_path: Option<PathBuf>,
}

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    name: String,
    library_path: Option<PathBuf>,
}

impl Build {
    /// Creates a build of these source files of the tests (or others, by their absolute paths) with
    /// the compiler `compiler` and these options.
    pub(crate) fn new(compiler: &str, sources: &[&str], options: &str) -> Build {
        Build {
            compiler: compiler.to_owned(),
            sources: sources.iter().map(|source| programs().join(source)).collect(),
            options: options.split_whitespace().map(str::to_owned).collect(),
            arguments: Vec::new(),
            name: format!("{compiler} {options} {}", sources.join(" ")),
            library_path: None,
        }
    }

    /// Adds pkg-config's options for an installation.
    pub(crate) fn against(mut self, installation: &Installation) -> Build {
        self.options.extend_from_slice(installation.compile_options());
        self.arguments.extend(installation.pkg_config(&["--libs"]));
        self.library_path = Some(installation.libraries());
        self
    }

    /// Adds pkg-config's options for linking everything statically.
    pub(crate) fn entirely_static(mut self, installation: &Installation) -> Build {
        self.options.extend_from_slice(installation.compile_options());
        self.arguments.extend(installation.pkg_config(&["--static", "--libs"]));
        self
    }

    /// Adds arguments for the linker, after all others.
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Build {
        self.arguments.extend(arguments.iter().map(|&one| one.to_owned()));
        self
    }

    /// Builds the program, or returns the compiler's errors. Each source file is compiled once with
    /// the same options, and the same objects are linked once with the same arguments.
    pub(crate) fn try_make(self) -> Result<Program, String> {
        let objects: Result<Vec<_>, _> =
            self.sources.iter().map(|one| self.compiled(one, "-c")).collect();
        let mut linker = self.command();
        linker.args(self.options.iter().zip(self.before()).filter_map(for_linker)).args(objects?);
        let path = made_once(linker.args(&self.arguments), &self.sources[0], &self.name)?;
        Ok(Program { path, name: self.name, library_path: self.library_path })
    }

    /// Returns the output of the compiler for a source file: an object (`-c`), or assembly (`-S`).
    fn compiled(&self, source: &Path, what: &str) -> Result<PathBuf, String> {
        let mut compiler = self.command();
        let options = self.options.iter().filter(|option| !is_for_linker(option));
        compiler.args(options).arg(format!("-DEXPECTED_VERSION=\"{}\"", env!("CARGO_PKG_VERSION")));
        compiler.arg("-I").arg(programs()).arg(what).arg(source);
        made_once(&mut compiler, source, &self.name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.compiler);
        // Error messages are compared with the English ones.
        command.env("LC_ALL", "C");
        command
    }

    /// Returns the prefix of each option.
    fn before(&self) -> impl Iterator<Item = &str> {
        std::iter::once("").chain(self.options.iter().map(String::as_str))
    }

    /// Returns the assembly of its only source file.
    pub(crate) fn assembly(self) -> String {
        let path =
            self.compiled(&self.sources[0], "-S").unwrap_or_else(|failure| panic!("{failure}"));
        std::fs::read_to_string(path).expect("assembly")
    }

    /// Compiles and links it, which must succeed.
    pub(crate) fn make(self) -> Program {
        self.try_make().unwrap_or_else(|failure| panic!("{failure}"))
    }
}

/// Returns `true` if only the linker has an option: clang warns of it when it compiles.
fn is_for_linker(option: &str) -> bool {
    const WHOLE: [&str; 6] = ["-static", "-static-pie", "-shared", "-pie", "-no-pie", "-rdynamic"];
    WHOLE.contains(&option) || option.starts_with("-Wl,") || option.starts_with("-fuse-ld=")
}

/// Returns the option if the linker needs it: the linker links objects of known languages, and has
/// no warnings.
fn for_linker<'o>((option, before): (&'o String, &str)) -> Option<&'o str> {
    const WITH_VALUE: [&str; 2] = ["-x", "-include"];
    const OF_COMPILER: [&str; 5] = ["-std=", "-D", "-I", "-W", "-pedantic"];
    let of_compiler = WITH_VALUE.contains(&option.as_str())
        || WITH_VALUE.contains(&before)
        || OF_COMPILER.iter().any(|start| option.starts_with(start));
    (is_for_linker(option) || !of_compiler).then_some(option)
}

/// Returns the file that this command makes of a source file, or the error messages. The command
/// runs once.
fn made_once(command: &mut Command, source: &Path, name: &str) -> Result<PathBuf, String> {
    /// Results by commands, with a number for each.
    type Made = BTreeMap<String, Arc<(usize, OnceLock<Result<PathBuf, String>>)>>;
    static MADE: Mutex<Made> = Mutex::new(BTreeMap::new());
    let made = {
        let mut all = MADE.lock().expect("no panic in between");
        let number = all.len();
        all.entry(format!("{command:?}"))
            .or_insert_with(|| Arc::new((number, OnceLock::new())))
            .clone()
    };
    let (number, made) = &*made;
    let make = || {
        let stem = source.file_stem().expect("a file").to_string_lossy();
        let path = scratch("built").join(format!("{stem}-{number}"));
        let output = command.arg("-o").arg(&path).output();
        let output = output.map_err(|error| format!("{name}: {error}"))?;
        match output.status.success() {
            true => Ok(path),
            false => Err(format!("{name}:\n{}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    made.get_or_init(make).clone()
}

impl Program {
    /// Returns a command that runs it.
    pub(crate) fn command(&self) -> Command {
        self.command_under(&[])
    }

    /// Returns a command by which another program runs it.
    pub(crate) fn command_under(&self, runner: &[&str]) -> Command {
        let (first, rest) = match runner.split_first() {
            Some((first, rest)) => (Path::new(first), rest),
            None => (self.path.as_path(), [].as_slice()),
        };
        let mut command = Command::new(first);
        command.args(rest).env_remove("PERCID_SOURCE");
        if !runner.is_empty() {
            command.arg(&self.path);
        }
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        command
    }

    /// Runs a command of this program, which must succeed and print "ok" last.
    pub(crate) fn must_pass(&self, command: &mut Command) {
        let (output, text) = self.outcome(command);
        let passed = output.status.success();
        assert!(
            passed && text.trim_end().ends_with("ok"),
            "{}: {}\n{text}",
            self.name,
            output.status
        );
    }

    /// Runs a command of this program. Returns its status and all its output.
    pub(crate) fn outcome(&self, command: &mut Command) -> (Output, String) {
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let errors = String::from_utf8_lossy(&output.stderr);
        let text = format!("{errors}{}", String::from_utf8_lossy(&output.stdout));
        (output, text)
    }

    /// Runs it with the default source of the process and with each that can be requested.
    pub(crate) fn must_pass_with_every_source(&self) {
        self.must_pass_with(&SOURCES);
    }

    /// Runs it with each of these sources.
    pub(crate) fn must_pass_with(&self, sources: &[Source]) {
        for source in sources {
            self.must_pass(self.command().envs(source.map(|source| ("PERCID_SOURCE", source))));
        }
    }
}

/// Returns a folder of this name for files of the tests. It is empty on the first call.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_interface");
        // Remove the files of an earlier run.
        let _ = std::fs::remove_dir_all(&root);
        root
    });
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).expect("a writable target folder");
    folder
}

/// Returns the output of a program that must succeed.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
