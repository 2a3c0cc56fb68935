//! Waiting for a state, however long a busy machine takes to come to it.

use std::iter;
use std::process::{Child, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The last resort: a program that hangs is ended, and a state that never comes is given up.
const LIMIT: Duration = Duration::from_secs(600);
/// The time that a command is given first, where more may be needed.
const FIRST: Duration = Duration::from_millis(100);

/// Repeats until there is something.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        let is_over = began.elapsed() > LIMIT;
        assert!(!is_over, "{what}: not within {LIMIT:?}, the limit of this test is reached");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Repeats with twice as much time each, until there is something.
pub(crate) fn until_enough<T>(what: &str, mut attempt: impl FnMut(Duration) -> Option<T>) -> T {
    let mut lengths = iter::successors(Some(FIRST), |length| length.checked_mul(2));
    until(what, || attempt(lengths.next().expect("time is given up before")))
}

/// Waits for the end, and reads what was printed.
pub(crate) fn ended(child: Child) -> Output {
    let pid = child.id();
    let (send, receive) = mpsc::channel();
    let waiting = thread::spawn(move || {
        // Nobody receives it after the limit.
        let _ = send.send(child.wait_with_output());
    });
    let Ok(output) = receive.recv_timeout(LIMIT) else {
        // SAFETY: sends a signal to a child for which the other thread waits still.
        unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        panic!("the program has not ended within {LIMIT:?}: the limit of this test is reached");
    };
    waiting.join().expect("it does not panic");
    output.expect("it can be waited for")
}
