//! `percid-install` builds percid for C and C++ and installs it: headers, a shared library with
//! symbol versions, a static library, and the file for pkg-config. Its options are those of `cargo
//! cinstall`.
//!
//! Cargo compiles the static library of this package; the rest is done by the C toolchain, because
//! rustc gives every shared library a version script of its own and lets no other stand beside it.

mod compile;
mod directories;
mod files;
mod link;
mod options;
mod pkg_config;
mod setting;
mod symbols;
mod visibility;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use directories::Directories;
use files::{Content, FILES};
use options::{Asked, Options};
use setting::Setting;

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
    let products = link::libraries(&compiled, options)?;
    let directories = Directories::of(options);
    let setting = Setting {
        directories: &directories,
        library_types: &options.library_types,
        native_libraries: &compiled.native_libraries,
    };
    let destination = Destination { root: options.destdir.as_deref(), quiet: options.quiet };
    for file in FILES.iter().filter(|file| file.belongs_to(&options.library_types)) {
        let path = directories.path(file.folder).join(file.name);
        match file.content {
            Content::Text(text) => destination.write(&path, text.as_bytes())?,
            Content::Written(text) => destination.write(&path, text(&setting).as_bytes())?,
            Content::Product(mode) => destination.copy(&products.join(file.name), &path, mode)?,
            Content::Link(target) => destination.link(target, &path)?,
        }
    }
    Ok(())
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
