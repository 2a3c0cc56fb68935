//! Programs that allocate, written after published descriptions.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::time::Duration;
use std::{ptr, thread};

use crate::memory;
use crate::random::Random;

/// The name of a workload, and the function that runs it on a number of threads for a time. Returns the number of objects
/// that were freed, after everything was freed that the workload frees at all.
pub(crate) type Workload = (&'static str, fn(usize, Duration) -> u64);

/// All workloads.
pub(crate) const ALL: [Workload; 6] = [
    ("larson", larson),
    ("xmalloc", xmalloc),
    ("mstress", mstress),
    ("rptest", rptest),
    ("web", web),
    ("idle", idle),
];

/// An object of which the first and last byte were written.
struct Object(*mut c_void);

// SAFETY: any thread may free an object.
unsafe impl Send for Object {}

impl Object {
    fn new(size: usize) -> Object {
        // SAFETY: any size is right, and the block has that many bytes.
        unsafe {
            let block = libc::malloc(size);
            assert!(!block.is_null(), "there is memory for {size} bytes");
            block.cast::<u8>().write_volatile(1);
            block.cast::<u8>().add(size - 1).write_volatile(1);
            Object(block)
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object is this value's.
        unsafe { libc::free(self.0) };
    }
}

/// Lets threads work until the time is over, and returns the sum of their numbers.
fn until(threads: usize, time: Duration, work: impl Fn(usize, &AtomicBool) -> u64 + Sync) -> u64 {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (work, is_over) = (&work, &is_over);
        let all: Vec<_> = (0..threads).map(|nr| scope.spawn(move || work(nr, is_over))).collect();
        thread::sleep(time);
        is_over.store(true, Relaxed);
        all.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    })
}

/// A server whose threads end and leave their objects to the next ones: Larson and Krishnan, Memory Allocation for
/// Long-Running Server Applications (ISMM 1998). 1,000 objects of 10 to 500 bytes for each thread.
fn larson(threads: usize, time: Duration) -> u64 {
    until(threads, time, |nr, is_over| {
        let mut random = Random(nr as u64);
        let mut objects: Vec<Object> =
            (0..1000).map(|_| Object::new(10 + random.below(490))).collect();
        let mut freed = 0;
        while !is_over.load(Relaxed) {
            // The next thread goes on with the objects of this one.
            thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let place = random.below(objects.len());
                        objects[place] = Object::new(10 + random.below(490));
                    }
                });
            });
            freed += 50_000;
        }
        freed
    })
}

/// Producers and consumers: half of the threads allocate, the others free. Lever and Boreham, malloc() Performance in a
/// Multithreaded Linux Environment (USENIX 2000). A single thread does both.
fn xmalloc(threads: usize, time: Duration) -> u64 {
    const BATCH: usize = 256;
    let queue: Mutex<Vec<Vec<Object>>> = Mutex::default();
    let batch =
        |random: &mut Random| (0..BATCH).map(|_| Object::new(16 + random.below(240))).collect();
    let freed = until(threads, time, |nr, is_over| {
        let (mut random, mut freed) = (Random(nr as u64), 0);
        while !is_over.load(Relaxed) {
            if nr % 2 == 0 || threads == 1 {
                let full: Vec<Object> = batch(&mut random);
                while queue.lock().expect("a queue").len() >= 64 && !is_over.load(Relaxed) {
                    thread::yield_now();
                }
                queue.lock().expect("a queue").push(full);
            }
            if nr % 2 == 1 || threads == 1 {
                let batch = queue.lock().expect("a queue").pop();
                match batch {
                    Some(batch) => freed += batch.len() as u64,
                    None => thread::yield_now(),
                }
            }
        }
        freed
    });
    drop(queue);
    freed
}

/// Threads that allocate objects of many sizes, keep some, and exchange some with others, in rounds that end with all
/// that was kept: after the description of mstress in the suite mimalloc-bench.
fn mstress(threads: usize, time: Duration) -> u64 {
    let transfer: Vec<AtomicPtr<c_void>> =
        (0..1000).map(|_| AtomicPtr::new(ptr::null_mut())).collect();
    let freed = until(threads, time, |nr, is_over| {
        let (mut random, mut freed) = (Random(nr as u64), 0);
        while !is_over.load(Relaxed) {
            let mut kept = Vec::new();
            for _ in 0..20_000 {
                let size = 8 << random.below(8).min(random.below(8));
                let size = if random.below(1000) == 0 { size * 100 } else { size };
                kept.push(Object::new(size + random.below(size)));
                let way = random.below(12);
                if way < 7 && kept.len() > 1 {
                    let one = kept.swap_remove(random.below(kept.len()));
                    if way < 4 {
                        let place = &transfer[random.below(transfer.len())];
                        drop(Object::swapped(place, one));
                    }
                    freed += 1;
                }
            }
            freed += kept.len() as u64;
        }
        freed
    });
    transfer.iter().for_each(|place| drop(Object::swapped(place, Object(ptr::null_mut()))));
    freed
}

impl Object {
    /// Leaves an object in a place, and returns the one that was there.
    fn swapped(place: &AtomicPtr<c_void>, object: Object) -> Object {
        let block = object.0;
        std::mem::forget(object);
        Object(place.swap(block, AcqRel))
    }
}

/// Loops over objects of 16 to 16,000 bytes, small ones more often, of which a tenth is freed by the next thread: after
/// the description of rpmalloc-benchmark.
fn rptest(threads: usize, time: Duration) -> u64 {
    let left: Vec<Mutex<Vec<Object>>> = (0..threads).map(|_| Mutex::default()).collect();
    let freed = until(threads, time, |nr, is_over| {
        let (mut random, mut freed) = (Random(nr as u64), 0);
        let mut objects: Vec<Option<Object>> = (0..4000).map(|_| None).collect();
        while !is_over.load(Relaxed) {
            for _ in 0..4000 {
                let place = random.below(objects.len());
                let size = 16
                    + random.below(16_000) * random.below(1000) / 1000 * random.below(1000) / 1000;
                let Some(old) = objects[place].replace(Object::new(size)) else { continue };
                freed += 1;
                if random.below(10) == 0 {
                    left[(nr + 1) % threads].lock().expect("objects").push(old);
                }
            }
            let others = std::mem::take(&mut *left[nr].lock().expect("objects"));
            drop(others);
        }
        freed
    });
    drop(left);
    freed
}

/// Requests of a web server: some dozens of objects, from headers to a buffer of the answer, in the order in which
/// they are made; all are freed at its end, but for a line of the log, which another thread writes.
fn web(threads: usize, time: Duration) -> u64 {
    const SIZES: [usize; 16] =
        [1024, 24, 40, 32, 64, 24, 96, 200, 48, 16, 512, 72, 4096, 128, 32, 56];
    let log: Mutex<Vec<Object>> = Mutex::default();
    let freed = until(threads, time, |nr, is_over| {
        let (mut random, mut freed) = (Random(nr as u64), 0);
        let mut request = Vec::with_capacity(64);
        while !is_over.load(Relaxed) {
            for _ in 0..100 {
                let count = 20 + random.below(40);
                request.extend((0..count).map(|at| Object::new(SIZES[at % 16] + random.below(16))));
                freed += count as u64;
                request.clear();
            }
            let lines: Vec<Object> =
                (0..100).map(|_| Object::new(100 + random.below(100))).collect();
            let others = std::mem::replace(&mut *log.lock().expect("a log"), lines);
            freed += others.len() as u64;
        }
        freed
    });
    drop(log);
    freed
}

/// Threads, two at a time, that use 1 MiB of small objects each and wait then: a hundred for each one that is asked
/// for. The time does not matter.
fn idle(threads: usize, _: Duration) -> u64 {
    let count = 100 * threads;
    let (turns, over) = ([Mutex::new(()), Mutex::new(())], Barrier::new(count + 1));
    let freed = AtomicU64::new(0);
    thread::scope(|scope| {
        for nr in 0..count {
            let (turns, over, freed) = (&turns, &over, &freed);
            let small = thread::Builder::new().stack_size(64 << 10);
            let work = move || {
                let turn = turns[nr % 2].lock().expect("a turn");
                let mut random = Random(nr as u64);
                let mut objects = Vec::new();
                let mut bytes = 0;
                while bytes < 1 << 20 {
                    let size = 16 + random.below(496);
                    bytes += size;
                    objects.push(Object::new(size));
                }
                freed.fetch_add(objects.len() as u64, Relaxed);
                drop(objects);
                drop(turn);
                over.wait();
                over.wait();
            };
            small.spawn_scoped(scope, work).expect("a thread");
        }
        over.wait();
        memory::note_idle();
        over.wait();
    });
    freed.into_inner()
}
