//! The space that the operations need on an alternate signal stack.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use percid::{Counter, Source};

use crate::options::Options;
use crate::verdict::Verdict;

/// The promise in the contract of `Counter`, in bytes.
const PROMISED: usize = 2048;

/// Room for the handler, far more than it needs.
const STACK: usize = 256 * 1024;

const PAINT: u8 = 0xa5;

static COUNTER: Counter = Counter::new();

/// The task of the handler: 0 nothing, 1 an increment.
static TASK: AtomicUsize = AtomicUsize::new(0);

extern "C" fn handler(_: i32) {
    if TASK.load(Relaxed) == 1 {
        COUNTER.add(1);
    }
}

pub(crate) fn run(_: &Options) -> Verdict {
    let mut stack = vec![PAINT; STACK];
    install(&mut stack)?;
    // A first signal resolves what the dynamic linker resolves lazily.
    let frame = depth(&mut stack, 0).max(depth(&mut stack, 0));
    let first = depth(&mut stack, 1) - frame;
    let later = depth(&mut stack, 1).saturating_sub(frame);
    let source = percid::init().source;
    let figures = format!(
        "source={source} signal_frame={frame} first_increment={first} later_increment={later} \
         promised={PROMISED}"
    );
    let counted = COUNTER.sum() == 2 || source == Source::Atomic;
    if first <= PROMISED && counted { Ok(figures) } else { Err(figures) }
}

fn install(stack: &mut [u8]) -> Result<(), String> {
    let alternate =
        libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack outlives every signal of this program; the structures are valid.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaltstack(&alternate, std::ptr::null_mut()) == 0
            && libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) == 0
    };
    if installed { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
}

/// Runs the handler once and finds how far down it painted over.
fn depth(stack: &mut [u8], task: usize) -> usize {
    stack.fill(PAINT);
    TASK.store(task, Relaxed);
    // SAFETY: sends a signal to this thread, whose handler runs before the call returns.
    unsafe { libc::raise(libc::SIGUSR1) };
    let untouched = stack.iter().position(|&byte| byte != PAINT).unwrap_or(stack.len());
    stack.len() - untouched
}
