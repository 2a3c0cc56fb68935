//! A handler that allocates and frees while the thread that it interrupts does the same.
#![cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::{mem, ptr, thread};

use percid_alloc::PerCpu;

/// Memory that is handed out once. It may be called in a handler, which few allocators permit.
struct Once {
    memory: AtomicUsize,
    taken: AtomicUsize,
}

const BYTES: usize = 1 << 30;

// SAFETY: no two blocks overlap, and none is handed out again.
unsafe impl GlobalAlloc for Once {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size().next_multiple_of(16);
        let taken = self.taken.fetch_add(size, Relaxed);
        if taken + size > BYTES {
            return ptr::null_mut();
        }
        ptr::with_exposed_provenance_mut(self.memory.load(Relaxed) + taken)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

static ALLOCATOR: PerCpu<Once> =
    PerCpu::new(Once { memory: AtomicUsize::new(0), taken: AtomicUsize::new(0) });

/// Objects in which a handler or a thread found what it had not written.
static TORN: AtomicU32 = AtomicU32::new(0);

static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// Allocates some objects of each of these sizes, fills them, checks them and frees them.
fn use_it(mark: u8, sizes: &[usize]) {
    let mut objects = [ptr::null_mut::<u8>(); 5];
    for &size in sizes {
        let layout = Layout::from_size_align(size, 8).expect("a layout");
        for object in &mut objects {
            // SAFETY: the layout has a size, and the block that many bytes.
            unsafe {
                *object = ALLOCATOR.alloc(layout);
                assert!(!object.is_null(), "there is memory");
                object.write_bytes(mark, size);
            }
        }
        for object in objects {
            // SAFETY: the object has that many bytes, and is freed once.
            unsafe {
                let is_whole = object.read() == mark && object.add(size - 1).read() == mark;
                TORN.fetch_add(u32::from(!is_whole), Relaxed);
                ALLOCATOR.dealloc(object, layout);
            }
        }
    }
}

extern "C" fn on_signal(_: i32) {
    let before = SIGNALS.fetch_add(1, Relaxed);
    use_it(before as u8 | 0x80, &[24, 64, 8192, 32_768]);
}

/// Lets the handler come to the calling thread whenever another one sends a signal.
fn watch() {
    // SAFETY: the action is whole. The handler uses atomic numbers and the allocator.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);
    }
}

/// The handler shares every class with the threads that it interrupts, while they obtain blocks, give
/// some back, or empty the caches.
#[test]
fn a_handler_allocates_inside_every_operation() {
    // SAFETY: maps new memory, which is used only when something is written to it.
    let memory = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(ptr::null_mut(), BYTES, access, kind, -1, 0)
    };
    assert_ne!(memory, libc::MAP_FAILED);
    ALLOCATOR.behind().memory.store(memory.expose_provenance(), Relaxed);
    watch();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (send, threads) = mpsc::channel();
        for mark in 1..4u8 {
            let (send, is_over) = (send.clone(), &is_over);
            scope.spawn(move || {
                // SAFETY: has no conditions.
                send.send(unsafe { libc::pthread_self() }).expect("a receiver");
                let mut trims = 0;
                while !is_over.load(Relaxed) {
                    use_it(mark, &[8, 64, 1000, 8192, 32_768]);
                    // Blocks that are given back are lost, so it is done seldom.
                    if mark == 1 && SIGNALS.load(Relaxed) / 10 > trims {
                        ALLOCATOR.trim();
                        trims += 1;
                    }
                }
            });
        }
        let threads: Vec<_> = threads.iter().take(3).collect();
        for thread in threads.iter().cycle().take(300) {
            let before = SIGNALS.load(Relaxed);
            // SAFETY: the thread runs until `is_over`.
            assert_eq!(unsafe { libc::pthread_kill(*thread, libc::SIGUSR1) }, 0);
            while SIGNALS.load(Relaxed) == before {
                thread::yield_now();
            }
        }
        is_over.store(true, Relaxed);
    });
    assert_eq!(TORN.load(Relaxed), 0);
    // Control: a byte of somebody else is noticed.
    // SAFETY: the layout has a size, and the block is never freed.
    let object = unsafe { ALLOCATOR.alloc(Layout::new::<[u8; 64]>()) };
    // SAFETY: the block has 64 bytes.
    unsafe {
        object.write_bytes(5, 64);
        object.add(63).write(6);
        assert!(!(0..64).all(|at| object.add(at).read() == 5));
    }
}
