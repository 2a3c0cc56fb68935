//! Inheritance: a machine's file may name another machine as its base, and give only the
//! differences.

use std::fs;
use std::path::{Path, PathBuf};

use super::Machine;
use super::given::Given;
use crate::file::{self, Error};

impl Machine {
    /// Reads a machine from the text of a file. Its base, if it has one, must be one of
    /// [`presets`](Machine::presets), because a text has no directory with other files.
    ///
    /// # Errors
    ///
    /// Returns the line, the field, and what was expected. Errors are text that is not TOML, missing
    /// fields that no base has, unknown fields, and impossible machines.
    pub fn parse(text: &str) -> Result<Machine, Error> {
        machine(text, None)
    }

    /// Reads a machine from a file, with the parts that it inherits from other files.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`parse`](Machine::parse) for this file or a base. Also returns an error
    /// if a file cannot be read, or if the bases form a cycle.
    pub fn read(path: &Path) -> Result<Machine, Error> {
        let text = file::read(path)?;
        machine(&text, Some(&Heir { path, of: None }))
    }
}

/// A file that is being read, and the file whose base it is.
struct Heir<'a> {
    path: &'a Path,
    of: Option<&'a Heir<'a>>,
}

fn machine(text: &str, heir: Option<&Heir<'_>>) -> Result<Machine, Error> {
    let given: Given = file::parse(text)?;
    let base = match &given.base {
        Some(name) => {
            let fault = |expected: String| Error::of_field(text, &["base"], expected);
            Some(base(name, heir).map_err(fault)?)
        }
        None => None,
    };
    given.over(base.as_ref(), text)
}

/// Returns the machine with this name, or the one in this file.
fn base(name: &str, heir: Option<&Heir<'_>>) -> Result<Machine, String> {
    if let Some(preset) = Machine::preset(name) {
        return Ok(preset);
    }
    let known = Machine::presets().collect::<Vec<_>>().join(", ");
    let expected = format!("expected one of {known}, or a file that ends in .toml");
    if !name.contains('/') && !name.ends_with(".toml") {
        return Err(format!("{expected}; found {name:?}"));
    }
    let Some(heir) = heir else {
        return Err(format!("expected one of {known}, as this text is in no file; found {name:?}"));
    };
    let path = heir.path.parent().unwrap_or(Path::new("")).join(name);
    if let Some(circle) = heir.circle(&path) {
        return Err(format!("expected a base that is another machine, found a circle: {circle}"));
    }
    let cannot = |fault: &dyn std::fmt::Display| format!("{}: {fault}", path.display());
    let text = file::read(&path).map_err(|fault| cannot(&fault))?;
    machine(&text, Some(&Heir { path: &path, of: Some(heir) })).map_err(|fault| cannot(&fault))
}

impl Heir<'_> {
    /// Returns the chain of bases back to this file, if the file is already being read.
    fn circle(&self, path: &Path) -> Option<String> {
        let real = |path: &Path| -> Option<PathBuf> { fs::canonicalize(path).ok() };
        let wanted = real(path)?;
        let mut way = vec![path.display().to_string()];
        let mut next = Some(self);
        while let Some(heir) = next {
            way.push(heir.path.display().to_string());
            if real(heir.path).as_ref() == Some(&wanted) {
                way.reverse();
                return Some(way.join(" -> "));
            }
            next = heir.of;
        }
        None
    }
}
