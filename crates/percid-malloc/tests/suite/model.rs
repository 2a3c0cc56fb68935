//! The functions beside a model of what the standard says of them.

use std::ffi::c_void;
use std::sync::Mutex;
use std::{ptr, slice, thread};

use percid_malloc as c;

use crate::random::Random;

/// An object: its block, and what the program wrote to it.
struct Object {
    block: *mut c_void,
    size: usize,
    mark: u8,
}

// SAFETY: any thread may free an object.
unsafe impl Send for Object {}

impl Object {
    /// Fills a block that was asked for with this size.
    fn new(block: *mut c_void, size: usize, mark: u8) -> Object {
        assert!(!block.is_null() && (block as usize).is_multiple_of(16), "{size}");
        // SAFETY: the block is an object's.
        let usable = unsafe { c::malloc_usable_size(block) };
        assert!(usable >= size, "{usable} of {size}");
        // SAFETY: an object may use all of its block.
        unsafe { block.write_bytes(mark, usable) };
        Object { block, size: usable, mark }
    }

    /// Returns `true` if the first bytes are what was written.
    fn has(&self, bytes: usize) -> bool {
        // SAFETY: the block has that many bytes.
        let bytes = unsafe { slice::from_raw_parts(self.block.cast::<u8>(), bytes) };
        bytes.iter().all(|&byte| byte == self.mark)
    }
}

/// Mostly small sizes, and some of each magnitude.
fn size(random: &mut Random) -> usize {
    let magnitude = [4, 6, 8, 10, 13, 16, 19][random.below(7).min(random.below(7))];
    random.below(1 << magnitude)
}

/// Does something to the objects, and returns the number of those that somebody else wrote to.
fn step(random: &mut Random, objects: &Mutex<Vec<Object>>) -> usize {
    let old = {
        let mut objects = objects.lock().expect("objects");
        let count = objects.len();
        (count > 0 && random.below(1000) < count).then(|| objects.swap_remove(random.below(count)))
    };
    let (size, mark) = (size(random), random.below(256) as u8);
    let Some(old) = old else {
        objects.lock().expect("objects").push(allocated(random, size, mark));
        return 0;
    };
    if random.below(3) > 0 {
        let torn = usize::from(!old.has(old.size));
        // SAFETY: the object is not used any more.
        unsafe {
            match random.below(4) {
                0 => c::free_sized(old.block, old.size),
                _ => c::free(old.block),
            }
        }
        return torn;
    }
    let size = size.max(1);
    // SAFETY: the object is not used any more.
    let block = unsafe {
        if random.below(2) == 0 {
            c::realloc(old.block, size)
        } else {
            c::reallocarray(old.block, size, 1)
        }
    };
    let moved = Object { block, ..old };
    let torn = usize::from(!moved.has(size.min(old.size)));
    objects.lock().expect("objects").push(Object::new(block, size, mark));
    torn
}

fn allocated(random: &mut Random, size: usize, mark: u8) -> Object {
    let block = match random.below(8) {
        0 => {
            let block = c::calloc(1, size);
            // SAFETY: the block has that many bytes.
            let bytes = unsafe { slice::from_raw_parts(block.cast::<u8>(), size) };
            assert!(bytes.iter().all(|&byte| byte == 0), "calloc({size})");
            block
        }
        way @ 1..=3 => {
            let align = 8 << random.below(10);
            let mut block = ptr::null_mut();
            match way {
                1 => block = c::aligned_alloc(align, size),
                2 => block = c::memalign(align, size),
                // SAFETY: the place is valid.
                _ => assert_eq!(unsafe { c::posix_memalign(&raw mut block, align, size) }, 0),
            }
            assert!((block as usize).is_multiple_of(align), "{block:?} for {align}");
            block
        }
        _ => c::malloc(size),
    };
    Object::new(block, size, mark)
}

/// Threads that free and move what others allocated.
#[test]
fn objects_have_what_was_written_to_them_and_overlap_no_others() {
    let seed = std::process::id();
    println!("seed {seed}");
    let objects = Mutex::new(Vec::new());
    let torn: usize = thread::scope(|scope| {
        let run = |thread: u64| {
            let mut random = Random(u64::from(seed) << 8 | thread);
            (0..100_000).map(|_| step(&mut random, &objects)).sum::<usize>()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).sum()
    });
    assert_eq!(torn, 0);
    for object in objects.into_inner().expect("objects") {
        assert!(object.has(object.size));
        // SAFETY: the object is not used any more.
        unsafe { c::free(object.block) };
    }
}

/// Control: an object that another one overlaps is noticed.
#[test]
fn bytes_of_another_object_are_noticed() {
    let block = c::malloc(100);
    let first = Object::new(block, 100, 7);
    assert!(first.has(first.size));
    // SAFETY: the block has 100 bytes.
    unsafe { block.cast::<u8>().add(80).write(8) };
    assert!(!first.has(first.size));
    // SAFETY: the object is not used any more.
    unsafe { c::free(block) };
}

fn errno_after<R>(call: impl FnOnce() -> R) -> (R, i32) {
    // SAFETY: the address is that of this thread's `errno`.
    unsafe { libc::__errno_location().write(0) };
    let result = call();
    // SAFETY: as above.
    (result, unsafe { libc::__errno_location().read() })
}

#[test]
fn what_there_is_no_memory_for_is_refused_with_the_standards_error() {
    let huge = usize::MAX / 2 + 1;
    let small = c::malloc(10);
    // SAFETY: a refused request leaves the object as it was.
    let requests: [(&str, &dyn Fn() -> *mut c_void); 7] = unsafe {
        [
            ("malloc", &|| c::malloc(huge)),
            ("calloc", &|| c::calloc(huge, 2)),
            ("realloc", &|| c::realloc(small, huge)),
            ("reallocarray", &|| c::reallocarray(small, huge, 2)),
            ("aligned_alloc", &|| c::aligned_alloc(64, huge)),
            ("valloc", &|| c::valloc(huge)),
            ("pvalloc", &|| c::pvalloc(usize::MAX)),
        ]
    };
    for (name, request) in requests {
        assert_eq!(errno_after(request), (ptr::null_mut(), libc::ENOMEM), "{name}");
    }
    assert_eq!(errno_after(|| c::aligned_alloc(3, 10)), (ptr::null_mut(), libc::EINVAL));
    let mut block = ptr::dangling_mut::<c_void>();
    for (align, size, error) in
        [(3, 10, libc::EINVAL), (4, 10, libc::EINVAL), (64, huge, libc::ENOMEM)]
    {
        // SAFETY: the place is valid.
        let told = errno_after(|| unsafe { c::posix_memalign(&raw mut block, align, size) });
        assert_eq!(told, (error, 0), "{align} {size}: the error is the result, and `errno` stays");
    }
    assert_eq!(block, ptr::dangling_mut(), "the pointer stays");
    // SAFETY: the object is not used any more.
    assert!(unsafe { c::realloc(small, 0) }.is_null());
    // SAFETY: null is no object.
    unsafe { c::free(ptr::null_mut()) };
    // SAFETY: null is no object.
    assert_eq!(unsafe { c::malloc_usable_size(ptr::null_mut()) }, 0);
}

#[test]
fn a_request_of_no_bytes_has_a_block_of_its_own() {
    let [first, second] = [c::malloc(0), c::calloc(0, 8)];
    assert!(!first.is_null() && !second.is_null() && first != second);
    // SAFETY: the objects are not used any more.
    unsafe {
        c::free(first);
        c::free(second);
    }
    let pages = [c::valloc(1), c::pvalloc(0)];
    for page in pages {
        assert!(!page.is_null() && (page as usize).is_multiple_of(4096));
        // SAFETY: the object is not used any more.
        unsafe { c::free(page) };
    }
}

#[test]
fn an_object_of_no_bytes_is_freed() {
    // Between the calls the thread may move to another CPU, which has blocks of its own.
    let is_next = (0..1000).any(|_| {
        let block = c::malloc(500);
        // SAFETY: the objects are not used any more.
        unsafe {
            assert!(c::realloc(block, 0).is_null());
            let next = c::malloc(500);
            c::free(next);
            next == block
        }
    });
    assert!(is_next);
}

#[test]
fn an_object_that_fills_half_of_its_block_keeps_it() {
    let block = c::malloc(1000);
    // SAFETY: each object is used no more after it was moved.
    unsafe {
        let same = c::realloc(block, 600);
        assert_eq!(same, block);
        let less = c::realloc(same, 100);
        assert_ne!(less, block);
        c::free(less);
    }
}
