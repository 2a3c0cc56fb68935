//! `percid-install` builds percid for C and C++, installs it and removes it: headers, a shared
//! library with symbol versions, a static library, the files for pkg-config and CMake, and, if
//! requested, the benchmark. Its options are those of `cargo cinstall`.
//!
//! Cargo compiles the static library of this package. The C toolchain does the rest, because rustc
//! gives every shared library its own version script and does not allow another one.

mod cmake;
mod compile;
mod destination;
mod directories;
mod failure;
mod files;
mod fingerprint;
mod install;
mod link;
mod loader;
mod lock;
mod manifest;
mod options;
mod output;
mod parts;
mod pkg_config;
mod product_names;
mod products;
mod setting;
mod symbols;
mod uninstall;
mod visibility;

use std::path::PathBuf;
use std::process::ExitCode;

use failure::Failure;
use options::{Asked, Options, Task};
use output::{say, tell};
use products::Products;

fn main() -> ExitCode {
    let (task, options) = match options::parse(std::env::args_os().skip(1)) {
        Ok(Asked::Do(task, mut options)) => {
            options.destdir = options.destdir.take().or_else(destdir);
            (task, options)
        }
        Ok(Asked::Help) => {
            print!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("percid-install: {wrong}; --help lists the options");
            return ExitCode::from(2);
        }
    };
    match run(task, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("percid-install: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `DESTDIR`, the convention of make, CMake and Meson.
fn destdir() -> Option<PathBuf> {
    std::env::var_os("DESTDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn run(task: Task, options: &Options) -> Result<(), Failure> {
    match task {
        Task::Uninstall => uninstall::uninstall(options),
        Task::Build if options.dry_run => {
            say(options, &products::folder(options)?);
            Ok(())
        }
        Task::Install if options.dry_run => install::pretend(options),
        Task::BuildAndInstall if options.dry_run => {
            install::pretend_these(&options.built(), options)
        }
        Task::Install => install::install(&Products::find(options)?, options),
        Task::Build => {
            let products = build(options)?;
            say(options, &products.folder);
            tell(options, &next_step(options));
            Ok(())
        }
        Task::BuildAndInstall => install::install(&build(options)?, options),
    }
}

fn build(options: &Options) -> Result<Products, Failure> {
    tell(options, "compiling");
    Products::build(options)
}

/// Returns the command that installs the build products.
fn next_step(options: &Options) -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| "percid-install".into());
    let target = options.target.iter().map(|target| format!(" --target {target}"));
    let products = options.products.iter().map(|folder| {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
        format!(" --products {}", folder.display())
    });
    let rest: String = target.chain(products).collect();
    format!("built; to install it, as root if need be: {} install{rest}", program.display())
}
