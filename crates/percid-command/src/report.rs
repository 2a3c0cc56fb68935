//! The file of `--html`: checked early, written last.

use std::path::{Path, PathBuf};

use percid_report::Page;

use crate::exit::{Exit, Failure, complain};

/// The destination of the report, if one was requested.
#[derive(Debug)]
pub struct Report {
    path: Option<PathBuf>,
}

impl Report {
    /// Refuses a path that cannot be written to, before the simulation takes minutes.
    pub fn to(path: Option<&Path>) -> Result<Report, Failure> {
        path.map_or(Ok(()), |path| expect_file("--html", path))?;
        Ok(Report { path: path.map(Path::to_owned) })
    }

    /// Returns `true` if a report was requested.
    pub fn is_wanted(&self) -> bool {
        self.path.is_some()
    }

    /// Writes the page after the result was printed, even if printing failed.
    pub fn write(
        &self,
        printed: Result<(), Failure>,
        page: impl FnOnce() -> Page,
        exit: Exit,
    ) -> Result<Exit, Failure> {
        if let Some(path) = &self.path {
            let written = page().write(path);
            written.map_err(|cause| Failure::new("cannot write the report", cause))?;
            complain(format_args!("report written to {}", path.display()));
        }
        printed.map(|()| exit)
    }
}

/// Refuses a path that cannot be written to, before anything is measured or simulated.
pub fn expect_file(option: &str, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let missing = folder.is_some_and(|folder| !folder.is_dir());
    if missing || path.is_dir() || path.file_name().is_none() {
        let expected = "expected a file in a folder that exists";
        return Err(Failure::Usage(format!("{option} {}: {expected}", path.display())));
    }
    Ok(())
}

/// Returns a report that opens with its verdict: one sentence with a number. `what` describes the
/// work; the command that made the report follows it. There is no date, so that the same command
/// yields the same report.
pub fn page(title: &str, verdict: impl Into<String>, what: &str, interrupted: bool) -> Page {
    let mut words = std::env::args_os();
    let command = words.next().map(|program| named(Path::new(&program))).unwrap_or_default();
    let arguments = words.map(|word| format!(" {}", word.to_string_lossy()));
    let command: String = [command].into_iter().chain(arguments).collect();
    let version = env!("CARGO_PKG_VERSION");
    let mut page = Page::new(title, verdict);
    if interrupted {
        page.notice("Interrupted: what was finished by then.");
    }
    page.about(format!("{what}\n\npercid {version}, made by: {command}"));
    page
}

/// Returns the words of a program of percid: `percid trace` runs `percid-trace`.
fn named(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().replace('-', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_as_they_are_run() {
        let named = ["/usr/bin/percid", "percid-trace"].map(|program| named(Path::new(program)));
        assert_eq!(named, ["percid", "percid trace"]);
    }
}
