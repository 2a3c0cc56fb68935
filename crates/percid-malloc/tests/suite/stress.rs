//! Objects that threads hand to one another, while signals arrive, threads end, and children are made.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Relaxed};
use std::{env, ptr, thread};

use percid_malloc as c;

use crate::random::Random;

/// Number of operations of all threads together, if the environment says no other.
const OPERATIONS: usize = 2_000_000;

const THREADS: usize = 8;
const PLACES: usize = 4096;

/// A thread ends after so many operations, and another one begins.
const LIFE: usize = 50_000;

/// Objects that nobody uses: the address, and above its 48 bits the mark of its bytes.
static OBJECTS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// Objects whose bytes somebody else has changed.
static TORN: AtomicUsize = AtomicUsize::new(0);

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(_: i32) {
    SIGNALS.fetch_add(1, Relaxed);
}

/// Returns the first and last word of an object with this mark and number of words.
fn pattern(mark: u64, words: usize) -> u64 {
    mark << 48 | (words as u64) << 16 | mark
}

fn filled(mark: u64, words: usize) -> u64 {
    let block = c::malloc(words * 8).cast::<u64>();
    assert!(!block.is_null() && (block as u64) >> 48 == 0);
    // SAFETY: the block has that many words.
    unsafe {
        block.write(pattern(mark, words));
        if words <= 16 {
            (1..words).for_each(|at| block.add(at).write(pattern(mark, words)));
        }
        block.add(words - 1).write(pattern(mark, words));
    }
    mark << 48 | block as u64
}

/// Checks an object and frees it. One that is torn is kept: it may be somebody else's.
fn check_and_free(object: u64) {
    let (mark, block) = (object >> 48, (object << 16 >> 16) as *mut u64);
    if block.is_null() {
        return;
    }
    // SAFETY: an object has one word at least, and as many as the first one says.
    let is_whole = unsafe {
        let words = (block.read() >> 16) as usize & 0xffff_ffff;
        block.read() == pattern(mark, words)
            && block.add(words - 1).read() == pattern(mark, words)
            && (words > 16 || (1..words).all(|at| block.add(at).read() == pattern(mark, words)))
    };
    if is_whole {
        // SAFETY: whoever took the object from its place has it alone.
        unsafe { c::free(block.cast::<c_void>()) };
    } else {
        TORN.fetch_add(1, Relaxed);
    }
}

fn exchange(random: &mut Random, operations: usize) {
    for _ in 0..operations {
        let number = random.number();
        let words = match number % 64 {
            0 => 1 + (number >> 8) as usize % 6000,
            1..8 => 1 + (number >> 8) as usize % 500,
            _ => 1 + (number >> 8) as usize % 32,
        };
        let object = filled(number >> 24 & 0xffff, words);
        check_and_free(OBJECTS[(number >> 40) as usize % PLACES].swap(object, AcqRel));
    }
}

fn free_all() {
    OBJECTS.iter().for_each(|place| check_and_free(place.swap(0, AcqRel)));
}

/// Makes a child that goes on with the objects, and returns `true` if all of them were whole there.
fn child_is_right(seed: u64) -> bool {
    // SAFETY: the child uses this allocator, which works after a fork, and ends without a return.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a child");
    if child == 0 {
        exchange(&mut Random(seed), 2000);
        free_all();
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(TORN.load(Relaxed) > 0)) };
    }
    let mut status = 0;
    // SAFETY: waits for that child.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
    status == 0
}

/// Interrupts the process about every millisecond of its time.
fn interrupt() {
    let every = libc::timeval { tv_sec: 0, tv_usec: 997 };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the action and the timer are whole, and the handler only adds to an atomic number.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()), 0);
        assert_eq!(libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()), 0);
    }
}

/// In a process of its own: signals and children are the process's.
#[test]
#[ignore = "the child of objects_are_whole_under_stress"]
fn stress_in_a_process() {
    let operations = env::var("PERCID_STRESS_OPERATIONS").ok().and_then(|text| text.parse().ok());
    let operations: usize = operations.unwrap_or(OPERATIONS);
    let seed = u64::from(std::process::id());
    interrupt();
    let (is_over, left) = (AtomicBool::new(false), AtomicUsize::new(operations));
    let children = thread::scope(|scope| {
        let forks = scope.spawn(|| {
            let mut children = 0;
            while !is_over.load(Relaxed) || children < 10 {
                assert!(child_is_right(seed + children), "child {children}");
                children += 1;
            }
            children
        });
        let worker = |thread: usize| {
            let (mut random, left) = (Random(seed << 8 | thread as u64), &left);
            move || {
                let less = |left: usize| left.checked_sub(LIFE);
                while left.fetch_update(Relaxed, Relaxed, less).is_ok() {
                    thread::scope(|scope| drop(scope.spawn(|| exchange(&mut random, LIFE))));
                }
            }
        };
        let workers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(worker(thread))).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("a thread"));
        is_over.store(true, Relaxed);
        forks.join().expect("children")
    });
    free_all();
    let (torn, signals) = (TORN.load(Relaxed), SIGNALS.load(Relaxed));
    println!(
        "seed {seed}: {operations} operations, {children} children, {signals} signals, {torn} torn"
    );
    assert_eq!(torn, 0);
    assert!(signals > 0);
}

#[test]
fn objects_are_whole_under_stress() {
    let tests = env::current_exe().expect("a program");
    let arguments = ["--exact", "stress::stress_in_a_process", "--ignored", "--nocapture"];
    let output = std::process::Command::new(tests).args(arguments).output().expect("a test");
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Control: two objects in one block are noticed.
#[test]
fn an_object_in_the_block_of_another_one_is_noticed() {
    let first = filled(1, 4);
    let block = (first << 16 >> 16) as *mut u64;
    // SAFETY: the block has four words.
    unsafe { block.add(2).write(pattern(2, 4)) };
    let before = TORN.load(Relaxed);
    check_and_free(first);
    assert_eq!(TORN.load(Relaxed) - before, 1);
    // SAFETY: the block is this test's.
    unsafe { c::free(block.cast()) };
}
