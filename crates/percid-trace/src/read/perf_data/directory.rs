//! Directories written by `perf record --threads`: the file `data`, which is like any other, and
//! for each thread of perf `data.0`, `data.1` and so on, which contain records only.

use std::fs;
use std::path::Path;

use super::container::Container;
use super::reader::trace;
use crate::error::{Error, Malformed};
use crate::trace::Trace;

/// The file that describes the records of all files.
const MAIN: &str = "data";

/// Reads a directory.
pub(in crate::read) fn read_directory(path: &Path) -> Result<Trace, Error> {
    let main = path.join(MAIN);
    if !main.is_file() {
        let what = "this is a directory without a file `data`: a file was expected, or what perf record --threads \
                    makes";
        return Err(Error::in_file(what));
    }
    let bytes = fs::read(main)?;
    let mut container = Container::read(&bytes).map_err(|error| within(MAIN, error))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        names.extend(name.to_str().filter(|name| is_part(name)).map(str::to_owned));
    }
    // Records with the same time are kept in the order in which they are read.
    names.sort_unstable_by_key(|name| (name.len(), name.clone()));
    for name in names {
        let part = fs::read(path.join(&name))?;
        let appended = container.records.append(&part, container.order);
        appended.map_err(|error| within(&name, error))?;
    }
    trace(container)
}

/// Returns `true` if a file has the records of a thread.
fn is_part(name: &str) -> bool {
    let number = name.strip_prefix("data.").unwrap_or("");
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Adds the file's name to an error.
fn within(name: &str, error: Error) -> Error {
    match error {
        Error::Malformed(Malformed { at, what }) => {
            Error::Malformed(Malformed { at, what: format!("in {name}: {what}") })
        }
        other => other,
    }
}
