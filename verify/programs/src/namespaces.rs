//! A child in a PID namespace of its own, whose threads have the numbers of its parent's threads,
//! while one of those visits a structure: the child does not take that visit for its own, and does
//! not wait for its end.
//!
//! Parent and child are both the first process of a namespace, as in a container whose first
//! process makes another container: their threads have the numbers 1, 2, 3.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use percid::{Source, Stack};

use crate::options::Options;
use crate::verdict::Verdict;

/// Exit statuses of a child: success, and the failures.
const WELL: i32 = 0;
const TOOK_IT_FOR_ITS_OWN: i32 = 1;
const WAITED: i32 = 2;
const OTHER_NUMBERS: i32 = 3;
const NOT_PERMITTED: i32 = 4;

/// The seconds after which a child gives up: no machine is so slow.
const PATIENCE: u32 = 100;

/// Whom the child must not take the visitor of its parent for: itself, or a thread of its own.
#[derive(Debug, Clone, Copy)]
enum Lookalike {
    Itself,
    Another,
}

pub(crate) fn run(options: &Options) -> Verdict {
    let source = options.source.unwrap_or(percid::init().source);
    for lookalike in [Lookalike::Itself, Lookalike::Another] {
        let what = match in_child(|| in_next_namespace(|| parent(source, lookalike))) {
            WELL => continue,
            NOT_PERMITTED => return Ok("skipped: no PID namespaces for this user".to_owned()),
            TOOK_IT_FOR_ITS_OWN => "took a visit of its parent for its own",
            WAITED => "waited for a thread of its parent",
            OTHER_NUMBERS => "has other thread numbers than intended",
            _ => "did not end as it should",
        };
        return Err(format!("source={source}: a child that looks like {lookalike:?} {what}"));
    }
    Ok(format!("source={source} children=2"))
}

/// Runs the first process of a namespace: its first thread visits, or its second; the third one
/// makes the child at that time.
fn parent(source: Source, lookalike: Lookalike) -> i32 {
    let Ok(stack) = Stack::with_source(source, 4) else { return -1 };
    // Far more than its part holds: the others are in the shared list.
    (0..100).for_each(|item| stack.push(item).expect("room"));
    let (started, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let visit = |outcome: &mut dyn FnMut()| {
        let mut outcome = Some(outcome);
        stack.drain(|_| outcome.take().into_iter().for_each(|outcome| outcome()));
    };
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            if matches!(lookalike, Lookalike::Another) {
                visit(&mut || {
                    started.store(true, SeqCst);
                    wait_for(&over);
                });
            } else {
                wait_for(&over);
            }
        });
        let third = scope.spawn(|| {
            wait_for(&started);
            let outcome = in_next_namespace(|| child(&stack, lookalike));
            over.store(true, SeqCst);
            outcome
        });
        if matches!(lookalike, Lookalike::Itself) {
            visit(&mut || {
                started.store(true, SeqCst);
                wait_for(&over);
            });
        }
        second.join().expect("no panic");
        third.join().expect("no panic")
    })
}

/// Runs the first process of the next namespace.
fn child(stack: &Stack<u64>, lookalike: Lookalike) -> i32 {
    give_up_in_time();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if matches!(lookalike, Lookalike::Another) {
            scope.spawn(|| wait_for(&over));
        }
        let own = std::process::id();
        let drained = stack.drain(drop);
        over.store(true, SeqCst);
        match (own, drained) {
            (1, 1..) => WELL,
            (1, 0) => TOOK_IT_FOR_ITS_OWN,
            _ => OTHER_NUMBERS,
        }
    })
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the process in time by a handler: the first process of a namespace ignores signals without
/// one.
fn give_up_in_time() {
    extern "C" fn give_up(_: i32) {
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(WAITED) };
    }
    // SAFETY: plain numbers, and a handler that is async-signal-safe.
    unsafe {
        libc::signal(libc::SIGALRM, give_up as *const () as libc::sighandler_t);
        libc::alarm(PATIENCE);
    }
}

/// Returns the exit status of a child of `fork` that runs `body`.
fn in_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child has one thread, and what it calls is allowed or goes on from a state that
    // no other thread was changing.
    match unsafe { libc::fork() } {
        // SAFETY: ends the child at once.
        0 => unsafe { libc::_exit(body()) },
        child => {
            let mut status = 0;
            // SAFETY: the status has a valid place.
            unsafe { libc::waitpid(child, &mut status, 0) };
            if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
        }
    }
}

/// Does the same as [`in_child`], but the child is the first process of another PID namespace.
fn in_next_namespace(body: impl FnOnce() -> i32) -> i32 {
    let entered = [libc::CLONE_NEWPID, libc::CLONE_NEWPID | libc::CLONE_NEWUSER]
        .into_iter()
        // SAFETY: the calling thread expects nothing of its namespaces.
        .any(|spaces| unsafe { libc::unshare(spaces) } == 0);
    if entered { in_child(body) } else { NOT_PERMITTED }
}
