//! The serial port of the report.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use percid_vm::protocol::{Line, REPORT_PORT};

/// The opened port.
#[derive(Debug)]
pub(crate) struct Port(File);

impl Port {
    /// Opens the port and turns off all processing of terminals.
    pub(crate) fn open() -> io::Result<Self> {
        // A port waits for a modem by default; opening it without waiting lets us change that. The
        // setting lasts while it is open.
        let first = open(libc::O_NONBLOCK)?;
        make_raw(&first)?;
        open(0).map(Self)
    }

    /// Writes one line, on a line of its own wherever the last program stopped.
    pub(crate) fn say(&mut self, line: &Line) {
        let text = format!("\n{line}\n");
        // If this fails, the host misses the line and reports that.
        let _ = self.0.write_all(text.as_bytes());
    }

    /// Returns the port as a program's output.
    pub(crate) fn as_output(&self) -> io::Result<Stdio> {
        self.0.try_clone().map(Stdio::from)
    }

    /// Waits until everything has left.
    pub(crate) fn drain(&self) {
        // SAFETY: the descriptor is open as long as `self` lives.
        unsafe { libc::tcdrain(self.0.as_raw_fd()) };
    }
}

fn open(flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(libc::O_NOCTTY | flags).open(REPORT_PORT)
}

fn make_raw(port: &File) -> io::Result<()> {
    let fd = port.as_raw_fd();
    // SAFETY: `termios` is plain data, for which zeroes are valid; the calls
    // get a descriptor that is open and a pointer to a live local.
    let result = unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(fd, &mut settings) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::cfmakeraw(&mut settings);
        settings.c_cflag |= libc::CLOCAL;
        libc::tcsetattr(fd, libc::TCSANOW, &settings)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
