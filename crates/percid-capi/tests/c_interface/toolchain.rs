//! Compilers, and programs made by them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::installation::Installation;

/// A pair of compilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compiler {
    pub(crate) c: &'static str,
    pub(crate) cpp: &'static str,
}

const GCC: Compiler = Compiler { c: "gcc", cpp: "g++" };
const CLANG: Compiler = Compiler { c: "clang", cpp: "clang++" };

/// Every warning is an error in what users include.
pub(crate) const WARNINGS: &str = "-Wall -Wextra -Werror -pedantic";

/// The compilers of this machine; says which are missing.
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

/// One of the compilers, for what does not depend on which.
pub(crate) fn any_compiler() -> Compiler {
    compilers()[0]
}

/// Whether a program of this name can be run.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether these programs can be run; says which cannot. `PERCID_TOOLS=require` fails where one is
/// missing, so that the checks of the project skip nothing.
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

/// Whether Rust can compile for a target; says if it cannot.
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

/// Whether a compiler knows these options; says so if not.
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

/// The folder of the test programs.
pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c_interface/programs")
}

/// A program to be compiled.
#[derive(Debug)]
pub(crate) struct Build<'i> {
    command: Command,
    name: String,
    output: PathBuf,
    installation: Option<&'i Installation>,
}

/// A compiled program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    name: String,
    library_path: Option<PathBuf>,
}

impl<'i> Build<'i> {
    /// Compiles these source files of the tests (or others, by their whole paths) with a compiler
    /// that is called as `compiler`, and these options.
    pub(crate) fn new(compiler: &str, sources: &[&str], options: &str) -> Build<'i> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let stem = Path::new(sources[0]).file_stem().expect("a file").to_string_lossy();
        let output = scratch("built").join(format!("{stem}-{number}"));
        let mut command = Command::new(compiler);
        // Its complaints are compared with what it says in English.
        command.env("LC_ALL", "C");
        command.args(options.split_whitespace());
        command.arg(format!("-DEXPECTED_VERSION=\"{}\"", env!("CARGO_PKG_VERSION")));
        command.arg("-I").arg(programs()).arg("-o").arg(&output);
        command.args(sources.iter().map(|source| programs().join(source)));
        let name = format!("{compiler} {options} {}", sources.join(" "));
        Build { command, name, output, installation: None }
    }

    /// With what pkg-config says about an installation.
    pub(crate) fn against(mut self, installation: &'i Installation) -> Build<'i> {
        self.command.args(installation.pkg_config(&["--cflags", "--libs"]));
        self.installation = Some(installation);
        self
    }

    /// With what pkg-config says about linking everything statically.
    pub(crate) fn entirely_static(mut self, installation: &'i Installation) -> Build<'i> {
        self.command.args(installation.pkg_config(&["--static", "--cflags", "--libs"]));
        self
    }

    /// With further arguments, behind all others.
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Build<'i> {
        self.command.args(arguments);
        self
    }

    /// What the compiler says.
    pub(crate) fn try_make(mut self) -> Result<Program, String> {
        let output = self.command.output().map_err(|error| format!("{}: {error}", self.name))?;
        if !output.status.success() {
            return Err(format!("{}:\n{}", self.name, String::from_utf8_lossy(&output.stderr)));
        }
        let library_path = self.installation.map(|installation| installation.libraries());
        Ok(Program { path: self.output, name: self.name, library_path })
    }

    /// Compiles it, which must succeed.
    pub(crate) fn make(self) -> Program {
        self.try_make().unwrap_or_else(|failure| panic!("{failure}"))
    }
}

impl Program {
    /// A command that runs it.
    pub(crate) fn command(&self) -> Command {
        self.command_under(&[])
    }

    /// A command that has another program run it.
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

    /// Runs a command of this program, which must end well and say "ok" last.
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

    /// Runs a command of this program: how it ended, and all it said.
    pub(crate) fn outcome(&self, command: &mut Command) -> (Output, String) {
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let errors = String::from_utf8_lossy(&output.stderr);
        let text = format!("{errors}{}", String::from_utf8_lossy(&output.stdout));
        (output, text)
    }

    /// Runs it with the source that the process chooses and with each that can be asked for.
    pub(crate) fn must_pass_with_every_source(&self) {
        self.must_pass(&mut self.command());
        for source in ["kernel", "table", "atomic"] {
            self.must_pass(self.command().env("PERCID_SOURCE", source));
        }
    }
}

/// An empty folder of this name on first call, for what the tests make.
pub(crate) fn scratch(name: &str) -> PathBuf {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_interface");
        // What an earlier run left behind.
        let _ = std::fs::remove_dir_all(&root);
        root
    });
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).expect("a writable target folder");
    folder
}

/// The output of a program that must succeed.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
