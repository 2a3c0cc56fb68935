//! Tells what a test does not check on this machine, because a tool or a right is missing.

use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that gets a line for everything that was not checked.
pub const FILE: &str = "PERCID_NOT_CHECKED";

/// Tells that `what` is not checked, and `why`: in one line on the standard error of the process,
/// and in the file that [`FILE`] names.
///
/// # Panics
///
/// If the file cannot be written: a run that keeps the list shall not lose a line of it.
pub fn not_checked(what: &str, why: &str) {
    let line = line(what, why);
    // The macros for printing write into what the test harness captures; this does not.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os(FILE) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write at the end of the file: lines of several processes do not mix.
        let told = file.and_then(|mut file| file.write_all(line.as_bytes()));
        told.expect("a place for what is not checked");
    }
}

/// Reasons of other programs may have several lines.
fn line(what: &str, why: &str) -> String {
    let words: Vec<&str> = why.split_whitespace().collect();
    format!("{what} is not checked: {}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    #[test]
    #[ignore = "the other tests run it in a process of its own"]
    fn child() {
        println!("this is captured");
        not_checked("the sea", "no ship:\n  none is here");
        not_checked("the moon", "no rocket");
    }

    /// Runs [`child`], whose output the harness captures.
    fn run(file: Option<&std::path::Path>) -> Output {
        let this = std::env::current_exe().expect("this program");
        let mut command = Command::new(this);
        command.args(["tests::child", "--exact", "--ignored"]).env_remove(FILE);
        if let Some(file) = file {
            command.env(FILE, file);
        }
        command.output().expect("this program")
    }

    const LINES: &str =
        "the sea is not checked: no ship: none is here\nthe moon is not checked: no rocket\n";

    #[test]
    fn it_is_told_past_the_harness_and_in_the_file() {
        let name = format!("percid-skips-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, "before\n").expect("a file");
        let output = run(Some(&file));
        let listed = std::fs::read_to_string(&file).expect("the file");
        std::fs::remove_file(&file).expect("the file");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), LINES);
        assert_eq!(listed, format!("before\n{LINES}"));
        // The control: what is printed is not seen.
        assert!(!String::from_utf8_lossy(&output.stdout).contains("this is captured"));
    }

    #[test]
    fn a_file_that_cannot_be_written_fails_the_test() {
        let output = run(Some(std::path::Path::new("/no/such/folder/list")));
        assert!(!output.status.success());
    }

    #[test]
    fn without_a_file_it_is_told_all_the_same() {
        let output = run(None);
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), LINES);
    }
}
