//! The active mask on a kernel that refuses the fence, from the first mark on or from the first
//! drain on, as a sandbox that is entered late does. No member may be missed that the markers' own
//! barriers protect, none visited that nothing protects, and none lost; and the program's `errno`
//! must not change.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use percid::ActiveMask;

use crate::errno;
use crate::options::Options;
use crate::sandbox;
use crate::verdict::Verdict;

/// An ID that is tested before it is marked, and one that never is.
const NEAR: u32 = 5;
const FAR: u32 = 600;

/// A step of a child that has gone wrong.
type Checked = Result<(), i32>;

pub(crate) fn run(_options: &Options) -> Verdict {
    in_a_child("refused from the first mark on", refused_to_all)?;
    in_a_child("refused from the first drain on", refused_to_drains)?;
    Ok("marks and drains do without the fence".to_owned())
}

/// Runs `body` in a child, whose filter ends with it. No other thread runs.
fn in_a_child(what: &str, body: fn() -> Checked) -> Result<(), String> {
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", std::io::Error::last_os_error())),
        // SAFETY: ends the child at once.
        0 => unsafe { libc::_exit(body().err().unwrap_or(0)) },
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, &mut status, 0) };
            let wrong = || format!("{what}: step {} is wrong ({status:#x})", status >> 8 & 0xff);
            if status == 0 { Ok(()) } else { Err(wrong()) }
        }
    }
}

fn refused_to_all() -> Checked {
    let mask = ActiveMask::new();
    refuse_fences(1)?;
    for round in 0..2 {
        errno::kept(|| [NEAR, FAR].map(|id| mask.mark(id))).ok_or(2)?;
        check(3 + round, drained(&mask)? == (1 << NEAR, 1))?;
        check(5, !mask.is_marked(NEAR) && !mask.is_marked(FAR))?;
    }
    Ok(())
}

fn refused_to_drains() -> Checked {
    let mask = ActiveMask::new();
    mask.mark(NEAR);
    refuse_fences(11)?;
    mask.mark(FAR);
    for round in 0..2 {
        check(12 + round, drained(&mask)? == (0, 1 - u64::from(round == 1)))?;
        check(14, mask.is_marked(NEAR))?;
    }
    Ok(())
}

/// Drains; returns the near members as bits, and the number of far ones.
fn drained(mask: &ActiveMask) -> Result<(u64, u64), i32> {
    let (near, far) = (AtomicU64::new(0), AtomicU64::new(0));
    let visit = |id| match id {
        0..64 => _ = near.fetch_or(1 << id, Relaxed),
        _ => _ = far.fetch_add(1, Relaxed),
    };
    errno::kept(|| mask.drain(visit)).ok_or(20)?;
    Ok((near.into_inner(), far.into_inner()))
}

fn refuse_fences(step: i32) -> Checked {
    check(step, sandbox::install(&[libc::SYS_membarrier], libc::EPERM).is_ok())
}

fn check(step: i32, right: bool) -> Checked {
    if right { Ok(()) } else { Err(step) }
}
