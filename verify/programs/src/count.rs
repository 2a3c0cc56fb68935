//! Counts to a million with several threads and says with which source, if need be in a sandbox that
//! denies system calls.

use percid::Counter;

use crate::options::Options;
use crate::{Verdict, sandbox};

static COUNTER: Counter = Counter::new();

pub(crate) fn run(options: &Options) -> Verdict {
    if !options.deny.is_empty() && !options.confined {
        // The sandbox must be there before the C library starts, so the program starts over in it.
        return Err(sandbox::start_over(options));
    }
    // The first use happens in a thread, then in the main thread.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250_000).for_each(|_| COUNTER.add(1)));
        }
    });
    let choice = percid::init();
    let sum = COUNTER.sum();
    if sum != 1_000_000 {
        return Err(format!("source={} sum={sum} instead of 1000000", choice.source));
    }
    Ok(format!("source={} reason={:?} sum={sum}", choice.source, choice.reason.to_string()))
}
