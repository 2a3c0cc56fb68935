//! `percid-install` builds percid for C and C++ and installs it: headers, a shared library with
//! symbol versions, a static library, and the file for pkg-config. Its options are those of `cargo
//! cinstall`.
//!
//! Cargo compiles the static library of this package; the rest is done by the C toolchain, because
//! rustc gives every shared library a version script of its own and lets no other stand beside it.

mod compile;
mod directories;
mod link;
mod options;
mod pkg_config;
mod symbols;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use directories::Directories;
use options::{Asked, LibraryType, Options};

/// The binary interface: the first number is in the soname and grows when a program has to be
/// compiled again, the second when something is added.
const INTERFACE: &str = "1.0.0";
const SONAME: &str = "libpercid.so.1";

/// The files that programs include, by their names.
const HEADERS: [(&str, &str); 3] = [
    ("percid.h", include_str!("../../../include/percid.h")),
    ("percid_inline.h", include_str!("../../../include/percid_inline.h")),
    ("percid.hpp", include_str!("../../../include/percid.hpp")),
];

/// What went wrong, for people.
type Failure = String;

fn main() -> ExitCode {
    let options = match options::parse(std::env::args_os().skip(1)) {
        Ok(Asked::Install(options)) => options,
        Ok(Asked::Help) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("percid-install: {wrong}; --help lists the options");
            return ExitCode::from(2);
        }
    };
    match install(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("percid-install: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn install(options: &Options) -> Result<(), Failure> {
    if !options.quiet {
        eprintln!("percid-install: compiling");
    }
    let compiled = compile::static_library(options)?;
    let products = link::products(&compiled, options)?;
    let directories = Directories::of(options);
    let destination = Destination { root: options.destdir.as_deref(), quiet: options.quiet };
    for (name, text) in HEADERS {
        destination.write(&directories.include.join(name), text.as_bytes())?;
    }
    for kind in &options.library_types {
        match kind {
            LibraryType::Staticlib => {
                destination.copy(&products.archive, &directories.lib.join("libpercid.a"), 0o644)?;
            }
            LibraryType::Cdylib => {
                let file = format!("libpercid.so.{INTERFACE}");
                destination.copy(&products.shared, &directories.lib.join(&file), 0o755)?;
                destination.link(&file, &directories.lib.join(SONAME))?;
                destination.link(SONAME, &directories.lib.join("libpercid.so"))?;
            }
        }
    }
    let description = pkg_config::file(&directories, &compiled.native_libraries, options);
    destination.write(&directories.pkg_config.join("percid.pc"), description.as_bytes())
}

/// Where the files go.
struct Destination<'o> {
    /// The folder that stands for `/`.
    root: Option<&'o Path>,
    quiet: bool,
}

impl Destination<'_> {
    fn write(&self, path: &Path, content: &[u8]) -> Result<(), Failure> {
        self.put(path, |path| fs::write(path, content))
    }

    fn copy(&self, from: &Path, path: &Path, mode: u32) -> Result<(), Failure> {
        self.put(path, |path| {
            fs::copy(from, path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        })
    }

    fn link(&self, target: &str, path: &Path) -> Result<(), Failure> {
        self.put(path, |path| symlink(target, path))
    }

    /// Makes one file. What is there already is removed first, not overwritten: running programs
    /// may have mapped it.
    fn put(
        &self,
        path: &Path,
        make: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let path = self.below_root(path);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder
            .and_then(|()| remove(&path))
            .and_then(|()| make(&path))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        if !self.quiet {
            // No thread reads any more: nothing to complain about.
            let _ = writeln!(std::io::stdout(), "{}", path.display());
        }
        Ok(())
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        let relative = path.strip_prefix("/").unwrap_or(path);
        self.root.map_or_else(|| path.to_owned(), |root| root.join(relative))
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
