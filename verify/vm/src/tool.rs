//! Programs of the host, run with errors that name the missing package.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::error::{Error, Result};

/// Number of lines of a failed program's standard error that are passed on.
const STDERR_LINES: usize = 20;

/// A program of the host and the Debian package that brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// The program's name.
    pub name: &'static str,
    /// The Debian package that brings it.
    pub package: &'static str,
}

/// The emulator.
pub const QEMU: Tool = Tool { name: "qemu-system-x86_64", package: "qemu-system-x86" };
/// The emulator of 64-bit Arm.
pub const QEMU_ARM: Tool = Tool { name: "qemu-system-aarch64", package: "qemu-system-arm" };
/// The emulator of 64-bit RISC-V.
pub const QEMU_RISCV: Tool = Tool { name: "qemu-system-riscv64", package: "qemu-system-misc" };
/// Downloads packages; needs no privileges for that.
pub const APT_GET: Tool = Tool { name: "apt-get", package: "apt" };
/// Reads the package lists.
pub const APT_CACHE: Tool = Tool { name: "apt-cache", package: "apt" };
/// Unpacks packages without installing them.
pub const DPKG: Tool = Tool { name: "dpkg", package: "dpkg" };
/// Unpacks 6.12's image.
pub const ZSTD: Tool = Tool { name: "zstd", package: "zstd" };
/// Unpacks 6.1's image.
pub const LZ4: Tool = Tool { name: "lz4", package: "lz4" };
/// Unpacks images of older builds.
pub const XZ: Tool = Tool { name: "xz", package: "xz-utils" };
/// Unpacks images of older builds.
pub const GZIP: Tool = Tool { name: "gzip", package: "gzip" };

/// Links programs for x86-64.
pub const X86_64_LINKER: Tool =
    Tool { name: "x86_64-linux-gnu-gcc", package: "gcc-x86-64-linux-gnu" };
/// Links programs for 64-bit Arm.
pub const AARCH64_LINKER: Tool =
    Tool { name: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" };
/// Links programs for 64-bit RISC-V.
pub const RISCV64_LINKER: Tool =
    Tool { name: "riscv64-linux-gnu-gcc", package: "gcc-riscv64-linux-gnu" };

impl Tool {
    /// Returns a command that runs this tool.
    pub fn command(self) -> Command {
        Command::new(self.name)
    }

    /// Returns `true` if the tool can be started.
    pub fn is_installed(self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(self.name).is_file())
    }

    /// Returns an error unless the tool is installed.
    pub fn demand(self) -> Result<()> {
        if self.is_installed() { Ok(()) } else { Err(self.missing()) }
    }

    /// Returns the error of this tool's absence.
    pub fn missing(self) -> Error {
        Error::MissingTool { tool: self.name.to_owned(), package: self.package }
    }

    /// Runs `command`, which must be one of this tool, and returns its standard
    /// output; `task` completes the sentence "could not …".
    pub fn output(self, command: &mut Command, task: &str) -> Result<Vec<u8>> {
        self.demand()?;
        output_of(command, task)
    }

    /// Does the same, with `input` on the tool's standard input.
    pub fn filter(self, command: &mut Command, input: &[u8], task: &str) -> Result<Vec<u8>> {
        self.demand()?;
        let result = pipe_through(command, input);
        demand_success(command, task, result)
    }
}

/// Runs any command and returns its standard output; `task` completes the
/// sentence "could not …".
pub fn output_of(command: &mut Command, task: &str) -> Result<Vec<u8>> {
    let result = command.stdin(Stdio::null()).output();
    demand_success(command, task, result)
}

fn demand_success(
    command: &Command,
    task: &str,
    result: std::io::Result<Output>,
) -> Result<Vec<u8>> {
    let failed = |how: String, stderr| {
        Err(Error::ToolFailed {
            task: task.to_owned(),
            command: format!("{} {how}", words(command)),
            stderr,
        })
    };
    match result {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => failed(format!("ended with {}", output.status), last_lines(&output.stderr)),
        Err(error) => failed(format!("did not start: {error}"), String::new()),
    }
}

/// Feeds `input` from a second thread: a filter that starts writing before it
/// has read everything would otherwise wait for us while we wait for it.
fn pipe_through(command: &mut Command, input: &[u8]) -> std::io::Result<Output> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut stdin) = stdin {
                // A tool that stops reading early reports the reason by its exit status.
                let _ = stdin.write_all(input);
            }
        });
        child.wait_with_output()
    })
}

/// Returns the command as a person would type it, for messages.
pub fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.display().to_string();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(STDERR_LINES);
    lines[from..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAT: Tool = Tool { name: "cat", package: "coreutils" };

    #[test]
    fn a_missing_tool_names_its_package() {
        let tool = Tool { name: "percid-no-such-tool", package: "percid-no-such-package" };
        let error = tool.output(&mut tool.command(), "try").expect_err("the tool does not exist");
        assert!(matches!(error, Error::MissingTool { .. }));
        assert!(error.to_string().contains("percid-no-such-package"));
        assert!(!tool.is_installed());
    }

    #[test]
    fn a_filter_larger_than_any_pipe_does_not_hang() {
        let input = vec![7; 4 << 20];
        let output = CAT.filter(&mut CAT.command(), &input, "copy").expect("cat copies");
        assert_eq!(output, input);
    }

    #[test]
    fn a_failed_tool_tells_what_it_said() {
        let error = CAT
            .output(CAT.command().arg("/percid/no/such/file"), "read a file")
            .expect_err("there is no such file");
        let message = error.to_string();
        assert!(message.starts_with("could not read a file: cat /percid"));
        assert!(message.contains("No such file"), "{message}");
    }
}
