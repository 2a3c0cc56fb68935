//! The allocator as the program's own: before `main`, at the end of threads, after `fork`.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use percid_alloc::PerCpu;

/// The allocator, with a look at calls that come from inside it.
struct Watched(PerCpu<System>);

#[global_allocator]
static ALLOCATOR: Watched = Watched(PerCpu::new(System));

/// Number of calls from inside the allocator.
static INSIDE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl Watched {
    fn watch<R>(&self, call: impl FnOnce(&PerCpu<System>) -> R) -> R {
        let depth = DEPTH.get();
        if depth > 0 {
            INSIDE.fetch_add(1, Relaxed);
        }
        DEPTH.set(depth + 1);
        let result = call(&self.0);
        DEPTH.set(depth);
        result
    }
}

// SAFETY: the caller's obligations are the same.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are the same.
        self.watch(|allocator| unsafe { allocator.alloc(layout) })
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the same.
        self.watch(|allocator| unsafe { allocator.dealloc(object, layout) });
    }
}

/// Allocates and frees enough for batches, lists that are full, and blocks that come back.
fn use_it() -> usize {
    let mut sum = 0;
    for size in [1, 50, 500, 5000, 50_000] {
        let objects: Vec<Vec<u8>> = (0..700).map(|at| vec![at as u8; size]).collect();
        let is_whole = |(at, object): (usize, &Vec<u8>)| object.last() == Some(&(at as u8));
        sum += objects.iter().enumerate().filter(|&one| is_whole(one)).count();
    }
    sum
}

const USED: usize = 5 * 700;

/// The result of the function before `main`.
static BEFORE_MAIN: AtomicU32 = AtomicU32::new(0);

extern "C" fn before_main() {
    BEFORE_MAIN.store(use_it() as u32, Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = before_main;

#[test]
fn it_works_before_main_and_its_own_slow_paths_do_not_allocate() {
    assert_eq!(BEFORE_MAIN.load(Relaxed), USED as u32);
    thread::scope(|scope| {
        (0..8).for_each(|_| {
            scope.spawn(|| assert_eq!(use_it(), USED));
        });
    });
    ALLOCATOR.watch(|allocator| {
        allocator.trim();
        assert!(allocator.statistics().cached_bytes() <= 64 << 20);
    });
    assert_eq!(INSIDE.load(Relaxed), 0);
    // Control: a call from inside is noticed.
    ALLOCATOR.watch(|_| drop(Box::new(5)));
    assert_eq!(INSIDE.swap(0, Relaxed), 2);
}

/// Allocates when its thread ends.
struct Last(&'static AtomicU32);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.store(use_it() as u32, Relaxed);
    }
}

#[test]
fn it_works_in_destructors_of_thread_local_data() {
    static AT_END: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let thread = thread::spawn(|| LAST.set(Some(Last(&AT_END))));
    thread.join().expect("the thread ends");
    assert_eq!(AT_END.load(Relaxed), USED as u32);
}

#[test]
fn a_forked_child_allocates() {
    let before: Vec<Box<u64>> = (0..1000).map(Box::new).collect();
    // SAFETY: the child allocates, which glibc permits after a fork, and ends without a return.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a child");
    if child == 0 {
        let kept = before.iter().map(|number| **number).sum::<u64>() == 499_500;
        drop(before);
        let used = use_it() == USED;
        // SAFETY: ends this process.
        unsafe { libc::_exit(if kept && used { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child of this test.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's exit");
}

/// Blocks that ended threads had freed are cached once for the CPUs, not once for each thread: each
/// class has no more than the parts of all CPUs, twice as much in its shared list, and batches that
/// other tests' threads move.
#[test]
fn threads_that_have_ended_leave_what_cpus_keep() {
    // SAFETY: reads a number.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) } as usize;
    for _ in 0..64 {
        let thread = thread::spawn(|| assert_eq!(use_it(), USED));
        thread.join().expect("a thread");
    }
    let classes = ALLOCATOR.0.statistics().classes;
    let used: Vec<_> = classes.iter().filter(|class| class.cached > 0).collect();
    assert!(!used.is_empty());
    for class in used {
        assert!(class.cached <= (cpus + 4) * class.capacity as usize, "{class:?}");
    }
}
