//! `FILE.partial`: what is written while `FILE` is recorded.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use percid_command::exit::Failure;

/// Suffix of its name.
pub(crate) const ENDING: &str = ".partial";

/// Returns its path for a file.
pub(crate) fn path_of(file: &Path) -> PathBuf {
    // Beside the file that a link leads to, on its disk.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(ENDING);
    file.with_file_name(name)
}

/// Creates it, readable for the users who may read the final file. If the target is not a file,
/// such as a pipe, it is among the temporary files.
///
/// # Errors
///
/// It exists already, or the system refuses.
pub(crate) fn create(file: &Path) -> Result<(PathBuf, File), Failure> {
    let replaced = fs::metadata(file).ok();
    let is_file = replaced.as_ref().is_none_or(fs::Metadata::is_file);
    let path = match is_file {
        true => path_of(file),
        false => env::temp_dir().join(format!("percid-{}{ENDING}", std::process::id())),
    };
    let created = File::options().write(true).create_new(true).open(&path);
    let created = created.and_then(|made| {
        if let Some(replaced) = replaced.filter(|_| is_file) {
            made.set_permissions(replaced.permissions())?;
        }
        Ok(made)
    });
    match created {
        Ok(made) => Ok((path, made)),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Err(in_the_way(&path)),
        Err(cause) => Err(Failure::new(format!("cannot write {}", path.display()), cause)),
    }
}

/// Nobody else's recording is overwritten.
fn in_the_way(path: &Path) -> Failure {
    let what = "a recording into the same file goes on, or was cut off";
    let finish = format!("percid trace recover {}", path.display());
    Failure::Usage(format!("{}: {what}: `{finish}` finishes it, or remove it", path.display()))
}
