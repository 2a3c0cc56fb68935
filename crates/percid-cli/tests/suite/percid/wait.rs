//! Waiting for a state, for as long as a busy machine needs to reach it.

use std::iter;
use std::process::{Child, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Time limit: a program that hangs is killed, and a state that is not reached by then is given up.
const LIMIT: Duration = Duration::from_secs(600);
/// The first time that a command is given, if more may be needed.
const FIRST: Duration = Duration::from_millis(100);

/// Repeats an attempt until it succeeds.
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

/// Repeats an attempt until it succeeds, each time with twice as much time.
pub(crate) fn until_enough<T>(what: &str, mut attempt: impl FnMut(Duration) -> Option<T>) -> T {
    let mut lengths = iter::successors(Some(FIRST), |length| length.checked_mul(2));
    until(what, || attempt(lengths.next().expect("time is given up before")))
}

/// Waits for the end, and returns the output.
pub(crate) fn ended(child: Child) -> Output {
    let pid = child.id();
    let (send, receive) = mpsc::channel();
    let waiting = thread::spawn(move || {
        // Nothing receives it after the limit.
        let _ = send.send(child.wait_with_output());
    });
    let Ok(output) = receive.recv_timeout(LIMIT) else {
        // SAFETY: the other thread still waits for the child, so its process ID is not reused.
        unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        panic!("the program has not ended within {LIMIT:?}: the limit of this test is reached");
    };
    waiting.join().expect("it does not panic");
    output.expect("it can be waited for")
}
