//! The command line. Options that `cargo cinstall` has too have the same names and meanings.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::parts::{LibraryType, Parts};

pub(crate) const HELP: &str = include_str!("help.txt");

/// The request of the command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Help,
    Do(Task, Box<Options>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    BuildAndInstall,
    Build,
    Install,
    Uninstall,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) prefix: PathBuf,
    pub(crate) bindir: Option<PathBuf>,
    pub(crate) libdir: Option<PathBuf>,
    pub(crate) includedir: Option<PathBuf>,
    pub(crate) pkgconfigdir: Option<PathBuf>,
    pub(crate) cmakedir: Option<PathBuf>,
    pub(crate) destdir: Option<PathBuf>,
    pub(crate) force: bool,
    /// Empty if none was named.
    pub(crate) library_types: Vec<LibraryType>,
    pub(crate) benchmark: bool,
    pub(crate) target: Option<String>,
    pub(crate) products: Option<PathBuf>,
    pub(crate) profile: String,
    /// `true` if debug information is kept, also if the profile is not Cargo's for debugging.
    pub(crate) unstripped: bool,
    pub(crate) target_dir: Option<PathBuf>,
    /// Options passed to Cargo.
    pub(crate) cargo_flags: Vec<String>,
    pub(crate) dry_run: bool,
    pub(crate) quiet: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            prefix: PathBuf::from("/usr/local"),
            bindir: None,
            libdir: None,
            includedir: None,
            pkgconfigdir: None,
            cmakedir: None,
            destdir: None,
            force: false,
            library_types: Vec::new(),
            benchmark: false,
            target: None,
            products: None,
            profile: "release".to_owned(),
            unstripped: false,
            target_dir: None,
            cargo_flags: Vec::new(),
            dry_run: false,
            quiet: false,
        }
    }
}

impl Options {
    /// Returns the parts to build.
    pub(crate) fn built(&self) -> Parts {
        let libraries = match self.library_types.as_slice() {
            [] => LibraryType::ALL.to_vec(),
            named => named.to_vec(),
        };
        Parts { libraries, benchmark: self.benchmark }
    }

    /// Returns `true` if debug information is removed from the libraries.
    pub(crate) fn strips(&self) -> bool {
        !self.unstripped && self.profile != "dev"
    }

    /// Applies an option. `value` returns the argument after it.
    fn take(
        &mut self,
        name: &str,
        value: &mut dyn FnMut() -> Result<OsString, String>,
    ) -> Result<(), String> {
        match name {
            "-q" | "--quiet" => self.quiet = true,
            "-n" | "--dry-run" => self.dry_run = true,
            "--force" => self.force = true,
            "--prefix" => self.prefix = value()?.into(),
            "--bindir" => self.bindir = Some(value()?.into()),
            "--libdir" => self.libdir = Some(value()?.into()),
            "--includedir" => self.includedir = Some(value()?.into()),
            "--pkgconfigdir" => self.pkgconfigdir = Some(value()?.into()),
            "--cmakedir" => self.cmakedir = Some(value()?.into()),
            "--destdir" => self.destdir = Some(value()?.into()),
            "--library-type" => self.library_types.push(library_type(&text(value()?)?)?),
            "--bench" => self.benchmark = true,
            "--release" => self.profile = "release".to_owned(),
            "--debug" => self.profile = "dev".to_owned(),
            "--profile" => self.profile = text(value()?)?,
            "--no-strip" => self.unstripped = true,
            "--target" => self.target = Some(triple(text(value()?)?)?),
            "--products" => self.products = Some(value()?.into()),
            "--target-dir" => self.target_dir = Some(value()?.into()),
            "--locked" | "--frozen" | "--offline" => self.cargo_flags.push(name.to_owned()),
            _ if name.starts_with('-') => return Err(format!("unknown option {name}")),
            _ => {
                return Err(format!("{name}: expected an option, build, install or uninstall"));
            }
        }
        Ok(())
    }
}

impl Task {
    fn named(name: &str) -> Option<Task> {
        match name {
            "build" => Some(Task::Build),
            "install" => Some(Task::Install),
            "uninstall" => Some(Task::Uninstall),
            _ => None,
        }
    }

    /// Returns `true` if the task has this option.
    fn takes(self, option: &str) -> bool {
        let (builds, installs) = match self {
            Task::BuildAndInstall => (true, true),
            Task::Build => (true, false),
            Task::Install | Task::Uninstall => (false, true),
        };
        match option {
            "--bench" | "--release" | "--debug" | "--profile" | "--no-strip" | "--target-dir"
            | "--locked" | "--frozen" | "--offline" => builds,
            "--prefix" | "--bindir" | "--libdir" | "--includedir" | "--pkgconfigdir"
            | "--cmakedir" | "--destdir" => installs,
            "--target" | "--library-type" | "--products" => self != Task::Uninstall,
            "--force" => self == Task::Uninstall,
            _ => true,
        }
    }
}

/// Parses the command line, without the program's name.
///
/// # Errors
///
/// Returns a description of the error.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut options = Options::default();
    let mut task = None;
    let mut taken = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (name, attached) = split(&argument)?;
        if matches!(name.as_str(), "-h" | "--help") {
            return Ok(Asked::Help);
        }
        if let Some(named) = Task::named(&name).filter(|_| task.is_none()) {
            task = Some(named);
            continue;
        }
        let mut used = false;
        let mut value = || {
            used = true;
            let value = attached.clone().or_else(|| arguments.next());
            value.filter(|value| !value.is_empty()).ok_or(format!("{name} needs a value"))
        };
        options.take(&name, &mut value)?;
        if attached.is_some() && !used {
            return Err(format!("{name} takes no value"));
        }
        taken.push(name);
    }
    let task = task.unwrap_or(Task::BuildAndInstall);
    match taken.iter().find(|option| !task.takes(option)) {
        Some(option) => Err(format!("{option} means nothing to {}", task.words())),
        None => Ok(Asked::Do(task, Box::new(options))),
    }
}

impl Task {
    fn words(self) -> &'static str {
        match self {
            Task::BuildAndInstall => "building and installing",
            Task::Build => "build",
            Task::Install => "install, which takes what was built",
            Task::Uninstall => "uninstall",
        }
    }
}

/// Splits `--name=value`, or `--name` without a value.
fn split(argument: &OsString) -> Result<(String, Option<OsString>), String> {
    let argument = text(argument.clone())?;
    match argument.split_once('=') {
        Some((name, value)) if name.starts_with("--") => Ok((name.to_owned(), Some(value.into()))),
        _ => Ok((argument, None)),
    }
}

fn text(value: OsString) -> Result<String, String> {
    value.into_string().map_err(|value| format!("{value:?} is not UTF-8"))
}

/// Checks a target's name, which becomes the name of a folder.
fn triple(name: String) -> Result<String, String> {
    match name.contains('/') || name.starts_with('.') {
        true => Err(format!("--target {name}: expected a name like x86_64-unknown-linux-musl")),
        false => Ok(name),
    }
}

fn library_type(name: &str) -> Result<LibraryType, String> {
    LibraryType::named(name)
        .ok_or_else(|| format!("--library-type {name}: expected cdylib or staticlib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn asked(line: &str) -> (Task, Options) {
        match parsed(line) {
            Ok(Asked::Do(task, options)) => (task, *options),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn options(line: &str) -> Options {
        asked(line).1
    }

    #[test]
    fn nothing_means_both_libraries_optimised_below_usr_local() {
        let (task, options) = asked("");
        assert_eq!(task, Task::BuildAndInstall);
        assert_eq!(options.prefix, PathBuf::from("/usr/local"));
        assert_eq!(options.profile, "release");
        let both = LibraryType::ALL.to_vec();
        assert_eq!(options.built(), Parts { libraries: both, benchmark: false });
    }

    #[test]
    fn values_follow_or_are_attached() {
        let expected = options("--prefix /p --libdir l --target t --library-type staticlib");
        let attached = options("--prefix=/p --libdir=l --target=t --library-type=StaticLib");
        assert_eq!(attached, expected);
        assert_eq!(expected.built().libraries, [LibraryType::Staticlib]);
        assert_eq!(expected.libdir, Some(PathBuf::from("l")));
    }

    #[test]
    fn the_last_profile_counts_and_cargos_flags_are_passed_on() {
        assert_eq!(options("--debug --release").profile, "release");
        assert_eq!(options("--release --debug").profile, "dev");
        assert_eq!(options("--profile small").profile, "small");
        assert!(options("--profile small").strips());
        assert!(!options("--debug").strips());
        assert!(!options("--no-strip").strips());
        assert_eq!(options("--locked --offline").cargo_flags, ["--locked", "--offline"]);
    }

    #[test]
    fn steps_have_options_of_their_own() {
        assert_eq!(asked("build --debug").0, Task::Build);
        assert_eq!(asked("--prefix /p install").0, Task::Install);
        assert_eq!(asked("uninstall --prefix=/p --force -n").0, Task::Uninstall);
        assert!(asked("build --bench").1.built().benchmark);
        let wrong = [
            "build --prefix /p",
            "uninstall --release",
            "install --debug",
            "install --bench",
            "install --no-strip",
            "--force",
        ];
        for wrong in wrong {
            assert!(parsed(wrong).expect_err(wrong).contains(" means nothing to "), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parsed("--prefix"), Err("--prefix needs a value".to_owned()));
        assert_eq!(parsed("--prefix="), Err("--prefix needs a value".to_owned()));
        assert_eq!(parsed("--quiet=yes"), Err("--quiet takes no value".to_owned()));
        assert_eq!(parsed("--mandir x"), Err("unknown option --mandir".to_owned()));
        let expected = "here: expected an option, build, install or uninstall";
        assert_eq!(parsed("here"), Err(expected.to_owned()));
        assert!(parsed("build install").is_err());
        assert!(parsed("--library-type dylib").is_err());
        assert!(parsed("--target ../x").is_err());
        assert_eq!(parsed("--debug --help"), Ok(Asked::Help));
    }
}
