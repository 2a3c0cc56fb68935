//! A list that grows: every reader observes complete nodes, and none is lost.

use std::ptr;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use loom::thread;

use crate::{explore, push_list};

struct Node {
    /// The next node; loom checks that it is not written while it is read.
    next: UnsafeCell<*mut Node>,
}

/// A list of up to two nodes.
struct List {
    first: AtomicPtr<Node>,
    nodes: [Node; 2],
}

// SAFETY: nodes live as long as the list.
unsafe impl Send for List {}
// SAFETY: exclusive use of nodes is the property under test.
unsafe impl Sync for List {}

impl List {
    fn new() -> Arc<List> {
        let node = |_| Node { next: UnsafeCell::new(ptr::null_mut()) };
        Arc::new(List { first: AtomicPtr::new(ptr::null_mut()), nodes: std::array::from_fn(node) })
    }

    fn push(&self, index: usize) {
        let node = &self.nodes[index];
        // SAFETY: no other thread has the node yet.
        let link = |next| node.next.with_mut(|place| unsafe { *place = next });
        push_list::push(&self.first, ptr::from_ref(node).cast_mut(), link);
    }

    fn len(&self) -> usize {
        let (mut next, mut len) = (push_list::first(&self.first), 0);
        // SAFETY: nodes live as long as the list.
        while let Some(node) = unsafe { next.as_ref() } {
            // SAFETY: that no other thread writes it is what is checked.
            next = node.next.with(|place| unsafe { *place });
            len += 1;
        }
        len
    }
}

#[test]
fn two_push_and_a_third_looks() {
    explore::bounded(3, "push list, 2 threads push and another looks", || {
        let list = List::new();
        let others = [0, 1].map(|index| {
            let list = Arc::clone(&list);
            thread::spawn(move || list.push(index))
        });
        assert!(list.len() <= 2);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(list.len(), 2, "a node is lost");
    });
}

#[test]
fn who_waits_for_nodes_sees_them_whole() {
    explore::all("push list, a thread pushes and another waits", || {
        let list = List::new();
        let theirs = Arc::clone(&list);
        let other = thread::spawn(move || [0, 1].map(|index| theirs.push(index)));
        while list.len() < 2 {
            thread::yield_now();
        }
        other.join().unwrap();
    });
}

#[test]
fn pushing_without_an_exchange_is_caught() {
    explore::expect_failure("push list, a store", || {
        let list = List::new();
        let theirs = Arc::clone(&list);
        let other = thread::spawn(move || theirs.push(0));
        // SAFETY: no other thread has the node yet.
        list.nodes[1].next.with_mut(|place| unsafe { *place = list.first.load(Relaxed) });
        list.first.store(ptr::from_ref(&list.nodes[1]).cast_mut(), Relaxed);
        other.join().unwrap();
        assert_eq!(list.len(), 2);
    });
}
