//! The retry loop of operations whose critical section was aborted or found nothing to do.

use std::ops::ControlFlow;

/// Number of times an operation is tried before it uses what all threads share. It is large enough
/// for a thread that is occasionally moved or interrupted. It is bounded, so that a debugger that
/// single-steps (which aborts every section) makes progress.
pub(crate) const RETRY_LIMIT: usize = 8;

/// Tries `section` until it returns a result, at most [`RETRY_LIMIT`] times.
///
/// After each failed try `recover` removes the cause, which includes an ID for the thread, or ends
/// the operation with its result. Returns `None` if `recover` returns `None`, because the thread
/// cannot have an ID or its shard now, and after the last try. Then the caller must use what all
/// threads share.
pub(crate) fn retry<R>(
    section: impl Fn() -> Option<R>,
    recover: impl Fn() -> Option<ControlFlow<R>>,
) -> Option<R> {
    for _ in 0..RETRY_LIMIT {
        #[cfg(test)]
        crate::sys::steps::at(crate::sys::steps::Step::Try);
        let result = section();
        if result.is_some() {
            return result;
        }
        if let ControlFlow::Break(result) = recover()? {
            return Some(result);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn next(count: &Cell<usize>) -> usize {
        count.set(count.get() + 1);
        count.get()
    }

    #[test]
    fn tries_end_with_the_first_result_or_break() {
        let tries = Cell::new(0);
        let third = || (next(&tries) == 3).then_some("section");
        assert_eq!(retry(third, || Some(ControlFlow::Continue(()))), Some("section"));
        assert_eq!(retry(|| None, || Some(ControlFlow::Break("recover"))), Some("recover"));
        assert_eq!(retry(|| None::<()>, || None), None);
    }

    #[test]
    fn tries_are_bounded() {
        let tries = Cell::new(0);
        let never = || {
            next(&tries);
            None::<()>
        };
        assert_eq!(retry(never, || Some(ControlFlow::Continue(()))), None);
        assert_eq!(tries.get(), RETRY_LIMIT);
    }
}
