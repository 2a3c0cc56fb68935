//! The terminal on which screens follow each other: a second page beside what stood there, which comes
//! back whatever happens.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::Mutex;

/// Escape sequences that save the screen, hide the cursor and cut off long lines.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";

/// Escape sequences that undo that.
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Escape sequence that moves the cursor to the upper left corner.
const HOME: &str = "\x1b[H";

/// The rest of a line is empty.
const CLEAR_LINE: &str = "\x1b[K";

/// Escape sequence that clears the lines below.
const CLEAR_BELOW: &str = "\x1b[J";

/// State of the second page. It is global: there is one terminal, and a panic hook has no access to
/// values.
static PAGE: Mutex<ScreenState> = Mutex::new(ScreenState::NotYet);

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScreenState {
    NotYet,
    Shown,
    /// It is over: nothing is drawn any more.
    Left,
}

/// The second page. When this value goes, what stood there before is back.
pub(super) struct Terminal(());

impl Terminal {
    /// Begins to show it, if standard output is a terminal that has one. Called once.
    pub(super) fn enter() -> Option<Terminal> {
        if !io::stdout().is_terminal() || env::var_os("TERM").is_some_and(|name| name == "dumb") {
            return None;
        }
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            // The panic message must stay visible.
            leave();
            tell(what);
        }));
        let mut page = lock();
        // Ctrl-C may have come already.
        if *page == ScreenState::NotYet {
            *page = ScreenState::Shown;
            let _ = put(ENTER);
        }
        Some(Terminal(()))
    }

    /// Draws a screen over the one before, unless the page has been left.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(super) fn draw(&self, screen: &dyn fmt::Display) -> io::Result<()> {
        let mut text = HOME.to_owned();
        // Format before taking the lock, as a panic in `fmt` takes it too.
        let lines = screen.to_string();
        // The last line has no end, so that nothing scrolls.
        for (nr, line) in lines.lines().enumerate() {
            text.push_str(if nr == 0 { "" } else { "\r\n" });
            text.push_str(line);
            text.push_str(CLEAR_LINE);
        }
        text.push_str(CLEAR_BELOW);
        let page = lock();
        if *page == ScreenState::Shown { put(&text) } else { Ok(()) }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
    }
}

/// Shows again what stood there before; from any thread, and as often as one likes.
pub(super) fn leave() {
    let mut page = lock();
    if *page == ScreenState::Shown {
        let _ = put(LEAVE);
    }
    *page = ScreenState::Left;
}

fn lock() -> std::sync::MutexGuard<'static, ScreenState> {
    PAGE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// Returns the current number of lines and columns of the terminal.
#[cfg(unix)]
pub(super) fn size() -> (usize, usize) {
    // SAFETY: a `winsize` of zeros is valid, and the call writes into the one that it is given.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    };
    match size {
        Some(size) if size.ws_row > 0 && size.ws_col > 0 => {
            (usize::from(size.ws_row), usize::from(size.ws_col))
        }
        _ => USUAL,
    }
}

#[cfg(not(unix))]
pub(super) fn size() -> (usize, usize) {
    USUAL
}

/// Size of a terminal that does not report it.
const USUAL: (usize, usize) = (24, 80);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::process::Command;

    use super::*;

    /// Is run by the one below, on a terminal.
    #[test]
    #[ignore = "it panics"]
    fn panics_while_it_draws() {
        let terminal = Terminal::enter().expect("a terminal");
        struct Panics;
        impl fmt::Display for Panics {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic!("in the middle")
            }
        }
        let _ = terminal.draw(&Panics);
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let (mut ours, mut theirs) = (-1, -1);
        let none = std::ptr::null_mut();
        // SAFETY: the call writes two descriptors, which have no other owner then.
        let (mut ours, theirs) = unsafe {
            assert_eq!(libc::openpty(&mut ours, &mut theirs, none, none.cast(), none.cast()), 0);
            (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
        };
        let name = "top::terminal::tests::panics_while_it_draws";
        let mut test = Command::new(std::env::current_exe().expect("a program"));
        test.args(["--ignored", "--exact", name, "--nocapture", "--test-threads=1"]);
        test.stderr(theirs.try_clone().expect("a descriptor")).stdout(theirs);
        test.env("TERM", "xterm");
        let status = test.status().expect("it starts");
        drop(test);
        assert!(!status.success());
        let mut drawn = Vec::new();
        // The read returns an error once no process writes any more.
        let _ = ours.read_to_end(&mut drawn);
        let drawn = String::from_utf8_lossy(&drawn);
        let (before, after) = drawn.split_once(LEAVE).expect("it is given back");
        assert!(before.contains(ENTER) && !before.contains("in the middle"), "{drawn}");
        assert!(after.contains("in the middle") && !after.contains(LEAVE), "{drawn}");
    }
}
