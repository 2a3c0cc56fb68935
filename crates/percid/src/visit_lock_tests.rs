//! Tests of the holders that a visitor waits for.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::sys::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sys::holder;
use crate::visit_lock::VisitLock;

/// Far longer than anything here takes, on any machine.
const FOREVER: Duration = Duration::from_secs(600);

#[test]
fn a_visitor_is_waited_for_while_it_lives_and_not_longer() {
    let (done, end) = mpsc::channel();
    thread::spawn(move || {
        visit_after_others();
        let _ = done.send(());
    });
    end.recv_timeout(FOREVER).expect("it ends, and well");
}

fn visit_after_others() {
    let lock = VisitLock { visitor: AtomicU64::new(0) };
    let visit = lock.lock();
    assert!(visit.is_some() && lock.lock().is_none(), "by this thread, further up its stack");
    drop(visit);
    // The child's view of the visit in which it was forked: the end of that visit releases only its
    // own lock.
    let outer = lock.lock().expect("free again");
    lock.visitor.store(holder::me() ^ 1 << 63, Relaxed);
    let inner = lock.lock().expect("the parent's");
    lock.visitor.store(holder::me() ^ 1 << 62, Relaxed);
    drop(outer);
    assert_eq!(lock.visitor.load(Relaxed), holder::me() ^ 1 << 62);
    lock.visitor.store(holder::me(), Relaxed);
    drop(inner);
    assert_eq!(lock.visitor.load(Relaxed), 0);
    // A visitor that is a thread of the parent.
    lock.visitor.store(holder::me() ^ 1 << 63, Relaxed);
    assert!(lock.lock().is_some());
    // A visitor that has ended, if the kernel can be asked about threads.
    let ended = holder::me() & !0xffff_ffff | 1 << 23;
    if !holder::exists(ended) {
        lock.visitor.store(ended, Relaxed);
        assert!(lock.lock().is_some());
    }
}
