//! Files that users write; errors name the line and the field.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde::de::DeserializeOwned;

/// The reason why a file is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    line: Option<usize>,
    message: String,
}

impl Error {
    /// Creates an error with the expected value of a field. `path` leads to the field: keys,
    /// and indices of list entries.
    pub(crate) fn of_field(text: &str, path: &[&str], expected: impl fmt::Display) -> Error {
        Error {
            line: line_of_field(text, path),
            message: format!("{}: {expected}", path.join(".")),
        }
    }
}

impl Error {
    /// Returns the line of the file, counted from 1; `None` if the error concerns no line.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the error without its line, for a text that the user has not written.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Creates an error without a line number.
    pub(crate) fn of_file(message: String) -> Error {
        Error { line: None, message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => write!(f, "{}", self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Returns the text of a file.
///
/// ```
/// let fault = percid_sim::file::read("/no/such/file".as_ref()).unwrap_err();
/// assert_eq!(fault.line(), None);
/// ```
///
/// # Errors
///
/// The file cannot be read, or is no text in UTF-8.
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|cause| {
        Error::of_file(match cause.kind() {
            ErrorKind::InvalidData => "expected text in UTF-8".to_owned(),
            _ => cause.to_string(),
        })
    })
}

/// Reads TOML into a type, which defines the fields.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| line_of(text, span.start));
        Error { line, message: error.message().trim_end().replace('\n', ", ") }
    })
}

/// Returns the line that contains the byte at `at`, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
}

/// Returns the line of a field, or of its nearest enclosing element that exists.
fn line_of_field(text: &str, path: &[&str]) -> Option<usize> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let mut line = None;
    let mut value: Option<&toml::de::DeValue<'_>> = None;
    for key in path {
        let found = match value {
            None => table.get_ref().get_key_value(*key),
            Some(toml::de::DeValue::Table(inner)) => inner.get_key_value(*key),
            Some(toml::de::DeValue::Array(items)) => {
                let item = key.parse().ok().and_then(|index: usize| items.get(index));
                let Some(item) = item else { break };
                line = Some(line_of(text, item.span().start));
                value = Some(item.get_ref());
                continue;
            }
            Some(_) => break,
        };
        let Some((key, inner)) = found else { break };
        line = Some(line_of(text, key.span().start));
        value = Some(inner.get_ref());
    }
    line
}
