//! The errors that prevent the harness from working on the host.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A reason why no verdict could be reached. Each names the expected state and, if there is one,
/// the remedy.
#[derive(Debug)]
pub enum Error {
    /// The command line could not be understood.
    Usage(String),
    /// A program of the host is missing.
    MissingTool {
        /// The program's name, as searched in `PATH`.
        tool: String,
        /// The Debian package that brings it.
        package: &'static str,
    },
    /// A program of the host ran and failed.
    ToolFailed {
        /// The purpose of the program, as in "download the kernel".
        task: String,
        /// The command and its exit status.
        command: String,
        /// The end of what it wrote to its standard error.
        stderr: String,
    },
    /// A file or directory of the host could not be used.
    File {
        /// The failed action, as in "read".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A suite has no kernel of the wanted series any more.
    NoSuchKernel {
        /// The kernel, as in "6.12-arm64".
        kernel: String,
        /// The suite of Debian.
        suite: String,
        /// The path at which a package fetched by other means would be found.
        drop_in: PathBuf,
    },
    /// This machine's package sources do not contain Debian's address.
    NoMirror {
        /// The label of the archive.
        label: &'static str,
    },
    /// A kernel image does not look like one.
    BadImage {
        /// The image.
        path: PathBuf,
        /// The missing contents.
        expected: &'static str,
    },
    /// The guest's list of programs breaks the agreed form.
    BadProgramList {
        /// The line.
        line: String,
        /// The required form of a line.
        expected: &'static str,
    },
}

impl Error {
    /// Returns a closure for `map_err` that adds the failed action and `path`.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }
}

/// The result of everything here that can be prevented by the host: a missing tool, no network, a
/// bad option. A failure *inside* a machine is not an error but a
/// [`Verdict`](crate::verdict::Verdict).
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "{what}; --help shows the options"),
            Self::MissingTool { tool, package } => write!(
                f,
                "`{tool}` is not installed: it is in the Debian package `{package}`; \
                 .ci/install-tools machines installs all that is needed"
            ),
            Self::ToolFailed { task, command, stderr } => {
                write!(f, "could not {task}: {command}")?;
                if stderr.is_empty() {
                    return Ok(());
                }
                write!(f, "\n{stderr}")
            }
            Self::File { action, path, source } => {
                write!(f, "could not {action} {}: {source}", path.display())
            }
            Self::NoSuchKernel { kernel, suite, drop_in } => write!(
                f,
                "no kernel {kernel} in Debian's {suite}; a package of one (.deb) is also taken from {}",
                drop_in.display()
            ),
            Self::NoMirror { label } => write!(
                f,
                "this machine's package sources name no archive labelled {label}; \
                 is this Debian, and has `apt-get update` been run?"
            ),
            Self::BadImage { path, expected } => {
                write!(f, "{} is no usable kernel: expected {expected}", path.display())
            }
            Self::BadProgramList { line, expected } => {
                write!(f, "the guest's --list printed `{line}`; expected {expected}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
