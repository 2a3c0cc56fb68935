//! Balancers that have armed memory, and children that may end in any way.

use std::sync::atomic::Ordering::Relaxed;

use percid_numa::{AccessMethod, Balancer, Event, Region};

use super::area::{Area, PAGE};
use super::environment::quick;
use super::follow::register;
use crate::length::becomes;

/// The memory of a test.
pub(super) const BYTES: usize = 8 << 20;
/// More pages than a process can have mappings, which is 65530 by default; they are never written.
pub(super) const CROWD: usize = 66_000 * PAGE;
/// Exit status of a child to which nothing happened.
pub(super) const UNHARMED: i32 = 0;

pub(super) fn balancer() -> Result<Balancer, String> {
    Balancer::builder().settings(quick()).build().map_err(|error| error.to_string())
}

/// Returns an area whose pages all have memory and are armed.
pub(super) fn armed(
    balancer: &Balancer,
    area: &Area,
    access: AccessMethod,
) -> Result<Region, String> {
    (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
    let region = register(balancer, area, access)?;
    arm_all(balancer, area)?;
    Ok(region)
}

pub(super) fn arm_all(balancer: &Balancer, area: &Area) -> Result<(), String> {
    let mut armed = 0;
    for _ in 0..2 * area.bytes().div_ceil(quick().scan_size as usize) {
        armed += balancer.pass().armed;
    }
    let pages = area.pages() as u64;
    if armed >= pages { Ok(()) } else { Err(format!("{armed} of {pages} pages armed")) }
}

/// Removes handlers of SIGSEGV, as in a program without any. Rust's own one detects stack
/// overflows.
pub(super) fn by_default() {
    // SAFETY: the default action takes no function.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
}

/// Runs `body` in a child. Returns the status of the child, or minus the signal that killed it.
pub(super) fn ends_with(body: impl FnOnce()) -> Result<i32, String> {
    // SAFETY: the program has one thread here; the child ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A core file of a crash that is wanted is of no use.
        // SAFETY: plain values.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
        body();
        // SAFETY: ends the child without running what the parent registered.
        unsafe { libc::_exit(UNHARMED) };
    }
    let mut status = 0;
    // SAFETY: waits for the child above.
    if unsafe { libc::waitpid(child, &mut status, 0) } != child {
        return Err("the child cannot be waited for".to_owned());
    }
    Ok(if libc::WIFSIGNALED(status) { -libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) })
}

/// Passes until something was armed again, which the delay of new regions puts off. Returns how many
/// pages were.
pub(super) fn arm_again(balancer: &Balancer) -> u64 {
    let mut armed = 0;
    becomes(|| {
        armed = balancer.pass().armed;
        armed > 0
    });
    armed
}

/// Makes passes until the balancer reports that the region that begins here is gone.
pub(super) fn pass_until_gone(balancer: &Balancer, start: usize) -> Result<(), String> {
    let (gone, mut events) = (Event::Gone { region: start }, Vec::new());
    let noticed = becomes(|| {
        balancer.pass();
        events.extend(balancer.take_events());
        events.contains(&gone)
    });
    if noticed { Ok(()) } else { Err(format!("not noticed: {events:?}")) }
}

/// Accesses that the balancer has seen to the regions that it has now.
pub(super) fn seen(balancer: &Balancer) -> u64 {
    balancer.report().regions.iter().map(|region| region.local + region.remote).sum()
}
