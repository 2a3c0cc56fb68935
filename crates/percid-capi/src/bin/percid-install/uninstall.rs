//! Uninstallation, by the list of installed files.

use std::fs;
use std::io;
use std::path::Path;

use crate::destination::{Destination, remove};
use crate::directories::Directories;
use crate::failure::Failure;
use crate::lock::{Lock, Mode};
use crate::manifest::{FileState, Manifest};
use crate::options::Options;
use crate::output::{say, tell};

/// Removes every unchanged file of the list, then the list, then the folders that were created for
/// them, unless they contain other files.
pub(crate) fn uninstall(options: &Options) -> Result<(), Failure> {
    let directories = Directories::from_options(options)?;
    let destination = Destination { root: options.destdir.as_deref() };
    let list = destination.real(&directories.manifest());
    // Another installer may be running; without the folder there is nothing to do.
    let _lock = Lock::take(&destination.real(&directories.lib), Mode::Exclusive).ok();
    let Some(manifest) = Manifest::read(&list)? else {
        tell(options, &format!("nothing to remove: there is no {}", list.display()));
        return Ok(());
    };
    if manifest.prefix != directories.prefix {
        return Err(format!(
            "{} is of an installation below {}: expected that prefix, or a tree that was not copied",
            list.display(),
            manifest.prefix.display()
        ));
    }
    let mut kept = 0;
    for file in &manifest.files {
        let path = destination.real(&file.path);
        match file.state(destination)? {
            FileState::Missing => {}
            FileState::Changed if !options.force => {
                eprintln!(
                    "percid-install: left alone: {}: changed after it was installed",
                    path.display()
                );
                kept += 1;
            }
            FileState::Unchanged | FileState::Changed => remove_file(&path, options)?,
        }
    }
    if kept > 0 {
        return Err(format!("{kept} files were left; --force removes them too"));
    }
    remove_file(&list, options)?;
    for folder in manifest.folders.iter().rev() {
        remove_folder(&destination.real(folder), options)?;
    }
    Ok(())
}

fn remove_file(path: &Path, options: &Options) -> Result<(), Failure> {
    if !options.dry_run {
        remove(path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    say(options, path);
    Ok(())
}

fn remove_folder(path: &Path, options: &Options) -> Result<(), Failure> {
    // A dry run does not know which folders would be empty.
    if options.dry_run {
        return Ok(());
    }
    match fs::remove_dir(path) {
        Ok(()) => say(options, path),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::DirectoryNotEmpty
                    | io::ErrorKind::NotADirectory
            ) => {}
        Err(error) => return Err(format!("cannot remove {}: {error}", path.display())),
    }
    Ok(())
}
