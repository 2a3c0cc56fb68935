//! Who is waited for, and who is not.

use crate::sys::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sys::holder;
use crate::visit_lock::VisitLock;

#[test]
fn it_is_waited_for_while_the_visitor_lives_and_not_longer() {
    let lock = VisitLock { visitor: AtomicU64::new(0) };
    let visit = lock.lock();
    assert!(visit.is_some() && lock.lock().is_none(), "by this thread, further up its stack");
    drop(visit);
    // A visitor that ended, or that is a thread of the parent: both have no such thread here.
    for gone in [holder::me() & !0xffff_ffff | 1 << 23, holder::me() ^ 1 << 63] {
        lock.visitor.store(gone, Relaxed);
        assert!(lock.lock().is_some(), "{gone:x}");
    }
}
