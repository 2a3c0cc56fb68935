//! The command line: options of the same names and meanings as those of `cargo cinstall`.

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Builds percid for C and C++ and installs it. The options are those of `cargo cinstall`.

Usage: percid-install [OPTIONS]

Where to (relative directories begin at the prefix):
  --prefix DIR         [default: /usr/local]
  --libdir DIR         libraries [default: lib]
  --includedir DIR     headers [default: include]
  --pkgconfigdir DIR   percid.pc [default: LIBDIR/pkgconfig]
  --destdir DIR        puts everything below DIR, without telling the installed files, for packaging

What:
  --library-type TYPE  only this: cdylib or staticlib; may be repeated [default: both]
  --release            optimised; the default
  --debug              not optimised, with debug information
  --profile NAME       Cargo's profile of this name
  --target TRIPLE      for another machine; CC must name a C compiler for it

How:
  --target-dir DIR     Cargo's folder for what it compiles
  --locked, --frozen, --offline
                       as Cargo takes them
  -q, --quiet          says nothing
  -h, --help           shows this

The environment variables CC, AR and OBJCOPY name the C toolchain [default: cc, and what it uses].
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Help,
    Install(Box<Options>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibraryType {
    Cdylib,
    Staticlib,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) prefix: PathBuf,
    pub(crate) libdir: Option<PathBuf>,
    pub(crate) includedir: Option<PathBuf>,
    pub(crate) pkgconfigdir: Option<PathBuf>,
    pub(crate) destdir: Option<PathBuf>,
    pub(crate) library_types: Vec<LibraryType>,
    pub(crate) profile: String,
    pub(crate) target: Option<String>,
    pub(crate) target_dir: Option<PathBuf>,
    /// Passed on to Cargo.
    pub(crate) cargo_flags: Vec<String>,
    pub(crate) quiet: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            prefix: PathBuf::from("/usr/local"),
            libdir: None,
            includedir: None,
            pkgconfigdir: None,
            destdir: None,
            library_types: Vec::new(),
            profile: "release".to_owned(),
            target: None,
            target_dir: None,
            cargo_flags: Vec::new(),
            quiet: false,
        }
    }
}

/// Understands the command line, without the program's name.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (name, value) = split(&argument)?;
        let mut value = || {
            let value = value.clone().or_else(|| arguments.next());
            value.filter(|value| !value.is_empty()).ok_or(format!("{name} needs a value"))
        };
        match name.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "-q" | "--quiet" => options.quiet = true,
            "--prefix" => options.prefix = value()?.into(),
            "--libdir" => options.libdir = Some(value()?.into()),
            "--includedir" => options.includedir = Some(value()?.into()),
            "--pkgconfigdir" => options.pkgconfigdir = Some(value()?.into()),
            "--destdir" => options.destdir = Some(value()?.into()),
            "--library-type" => options.library_types.push(library_type(&text(value()?)?)?),
            "--release" => options.profile = "release".to_owned(),
            "--debug" => options.profile = "dev".to_owned(),
            "--profile" => options.profile = text(value()?)?,
            "--target" => options.target = Some(text(value()?)?),
            "--target-dir" => options.target_dir = Some(value()?.into()),
            "--locked" | "--frozen" | "--offline" => options.cargo_flags.push(name),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    if options.library_types.is_empty() {
        options.library_types = vec![LibraryType::Cdylib, LibraryType::Staticlib];
    }
    Ok(Asked::Install(Box::new(options)))
}

/// `--name=value` or `--name`.
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

fn library_type(name: &str) -> Result<LibraryType, String> {
    match name.to_ascii_lowercase().as_str() {
        "cdylib" => Ok(LibraryType::Cdylib),
        "staticlib" => Ok(LibraryType::Staticlib),
        _ => Err(format!("--library-type {name}: expected cdylib or staticlib")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match parsed(line) {
            Ok(Asked::Install(options)) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn nothing_means_both_libraries_optimised_below_usr_local() {
        let options = options("");
        assert_eq!(options.prefix, PathBuf::from("/usr/local"));
        assert_eq!(options.profile, "release");
        assert_eq!(options.library_types, [LibraryType::Cdylib, LibraryType::Staticlib]);
    }

    #[test]
    fn values_follow_or_are_attached() {
        let expected = options("--prefix /p --libdir l --target t --library-type staticlib");
        let attached = options("--prefix=/p --libdir=l --target=t --library-type=StaticLib");
        assert_eq!(attached, expected);
        assert_eq!(expected.library_types, [LibraryType::Staticlib]);
        assert_eq!(expected.libdir, Some(PathBuf::from("l")));
    }

    #[test]
    fn the_last_profile_counts_and_cargos_flags_are_passed_on() {
        assert_eq!(options("--debug --release").profile, "release");
        assert_eq!(options("--release --debug").profile, "dev");
        assert_eq!(options("--profile small").profile, "small");
        assert_eq!(options("--locked --offline").cargo_flags, ["--locked", "--offline"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parsed("--prefix"), Err("--prefix needs a value".to_owned()));
        assert_eq!(parsed("--prefix="), Err("--prefix needs a value".to_owned()));
        assert_eq!(parsed("--bindir x"), Err("unknown option --bindir".to_owned()));
        assert_eq!(parsed("here"), Err("unknown option here".to_owned()));
        assert!(parsed("--library-type dylib").is_err());
        assert_eq!(parsed("--debug --help"), Ok(Asked::Help));
    }
}
