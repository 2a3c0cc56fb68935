//! The columns: the tests of each structure.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::rows::of_row;
use super::{Column, Contract, Fences, sources};
use crate::arena;
use crate::critical::FAST_PATH;
use crate::id::{Source, table};
use crate::retry::RETRY_LIMIT;
use crate::sys::affinity::{self, Affinity};
use crate::sys::race_detector;
use crate::sys::steps::{self, Fence, Step};
use crate::sys::{MAX_CPUS, child, errno, holder, set_errno, thread};

macro_rules! columns {
    ($($name:literal: $cell:ident),* $(,)?) => {
        pub(super) const COLUMNS: &[Column] = &[
            $(Column { name: $name, run: |row| of_row!(row, $cell) }),*
        ];
    };
}

columns! {
    "lives": lives,
    "lost-races": lost_races,
    "errno": errno_is_kept,
    "work": work,
    "tries": tries,
    "announced": announced,
    "handler": handler,
    "fork": fork,
    "refusal": refusal,
    "ids-of-atomic": ids_of_atomic,
    "ids-of-table": ids_of_table,
    "visitor-adds": visitor_adds,
    "visitor-panics": visitor_panics,
}

/// IDs at the ends of words, of the words inside a set, and of all words.
const IDS: [u32; 6] = [0, 63, 64, 511, 512, MAX_CPUS as u32 - 1];

/// Number of puts at the beginning of a test: more than a shard holds.
const PUTS: u64 = 20;

/// Makes `times` puts that all succeed.
fn put<R: Contract>(object: &R, times: u64) {
    (0..times).for_each(|n| assert!(object.put(), "put {n} of {times}"));
}

/// Returns the resources of the process: bytes of memory, of address space, and of each ID's
/// memory; descriptors, threads.
fn holdings() -> [u64; 5] {
    let read = |of| std::fs::read_to_string(of).expect("/proc");
    // It does not use the counts of `statm`, which CPUs may cache for a while; and it excludes the
    // program's own pages.
    let rollup = read("/proc/self/smaps_rollup");
    let anonymous = rollup.lines().find_map(|line| line.strip_prefix("Anonymous:"));
    let statm = read("/proc/self/statm");
    let number = |of: &str| of.split_whitespace().next().and_then(|number| number.parse().ok());
    let memory: u64 = anonymous.and_then(number).expect("a number of KiB");
    let space: u64 = number(&statm).expect("a number of pages");
    let entries = |of| std::fs::read_dir(of).expect("/proc").count() as u64;
    // SAFETY: the call returns a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let entries = ["/proc/self/fd", "/proc/self/task"].map(entries);
    [memory << 10, space * page, arena::handed_out(), entries[0], entries[1]]
}

/// Runs `life` so many times that a leak of eight bytes per life would be noticed. Each life has
/// `objects` objects.
fn live_often<R: Contract>(what: &str, objects: u64, life: impl Fn()) {
    // The allocator and the stack keep less than this from twenty thousand lives.
    const SLACK: u64 = 96 << 10;
    let (memory, space) = (objects * R::LEAVES.0, objects * R::LEAVES.1);
    // Another CPU's ID would have memory of its own.
    Affinity::confine(affinity::current_cpu()).expect("it is allowed");
    // Structures that leave address space behind must not use it up.
    let lives = if space > 0 { 1000 } else { 20_000 };
    (0..lives / 10).for_each(|_| life());
    let before = holdings();
    (0..lives).for_each(|_| life());
    let after = holdings();
    let grown = |index: usize| after[index].saturating_sub(before[index]);
    let is_sanitized = option_env!("RUSTFLAGS").is_some_and(|flags| flags.contains("sanitizer"));
    // A sanitizer keeps freed memory; an emulator, which has no IDs, takes some for itself.
    if is_sanitized || Source::Table.prepare().is_err() {
        percid_skips::not_checked("memory after many lives", "it is not the program's alone");
    } else {
        assert!(grown(0) <= lives * memory + SLACK, "{what}: {} bytes of memory", grown(0));
        assert!(grown(1) <= lives * space + 10 * SLACK, "{what}: {} bytes of addresses", grown(1));
    }
    assert!(grown(2) <= lives * memory + SLACK, "{what}: {} bytes of each ID's", grown(2));
    assert_eq!(after[3..], before[3..], "{what}: descriptors and threads");
}

fn lives<R: Contract>() {
    for source in sources() {
        live_often::<R>(source.name(), 1, || R::with(source).expect("memory").live());
    }
    live_often::<R>("fresh", 1, || R::fresh().live());
    // Memory that was claimed for a use which then was refused.
    let _watching = steps::watch(|step| matches!(step, Step::Map(_)).then_some(Err(libc::ENOMEM)));
    live_often::<R>("without mappings", 0, || {
        let object = R::fresh();
        (0..3).for_each(|_| _ = object.put());
    });
}

/// Wherever memory is claimed, another use of the same object happens in between, like a use by
/// another thread.
fn lost_races<R: Contract>() {
    static OBJECT: AtomicUsize = AtomicUsize::new(0);
    static RACES: AtomicU64 = AtomicU64::new(0);
    // SAFETY: the object lives while its address is stored.
    let object = || unsafe {
        ptr::with_exposed_provenance::<R>(OBJECT.load(Relaxed)).as_ref().expect("an object")
    };
    let _watching = steps::watch(move |step| {
        if matches!(step, Step::Claim(_) | Step::Map(_)) && OBJECT.load(Relaxed) != 0 {
            RACES.fetch_add(1, Relaxed);
            object().put();
        }
        None
    });
    // The loser may have claimed as much as the winner.
    live_often::<R>("lost races", 2, || {
        let object = R::fresh();
        OBJECT.store(ptr::from_ref(&object).expose_provenance(), Relaxed);
        object.put();
        let first = object.count();
        assert!((1..=4).contains(&first), "{first}");
        OBJECT.store(0, Relaxed);
    });
    assert!(RACES.load(Relaxed) > 1000, "nothing came in between");
}

/// Returns `true` if the kernel may refuse the step.
fn is_refusable(step: Step) -> bool {
    use Step::{Acquire, BlockSignals, Insert, LookAtCompanion, Release, Remove, Try, Wait};
    let is_own = matches!(step, Insert(_) | Remove(_) | Wait | Try | Release(_) | Acquire(_));
    !is_own && !matches!(step, BlockSignals | LookAtCompanion)
}

fn errno_is_kept<R: Contract>() {
    const MINE: i32 = 4321;
    fn keeps<T>(what: &str, operation: impl FnOnce() -> T) -> T {
        set_errno(MINE);
        let result = operation();
        assert_eq!(errno(), MINE, "{what}");
        result
    }
    let whole_life = |when: &str, is_refused: bool, object: R| {
        keeps(&format!("{when}: put"), || object.put());
        keeps(&format!("{when}: put again"), || (0..PUTS).for_each(|_| _ = object.put()));
        _ = keeps(&format!("{when}: told"), || object.told());
        if let Ok((visit, ..)) = R::VISIT {
            keeps(&format!("{when}: visit"), || visit(&object, &mut || {}));
        }
        keeps(&format!("{when}: count"), || object.count());
        keeps(&format!("{when}: put at last"), || object.put());
        if !is_refused {
            keeps(&format!("{when}: live"), || object.live());
        }
        keeps(&format!("{when}: drop"), || drop(object));
    };
    let refused = || steps::watch(|step| is_refusable(step).then_some(Err(steps::REFUSED)));
    // Every step sets errno as if it failed.
    let noisy = || {
        steps::watch(|step| {
            if is_refusable(step) {
                set_errno(84);
            }
            None
        })
    };
    let watching = refused();
    whole_life("all is refused", true, R::fresh());
    drop(watching);
    let watching = noisy();
    whole_life("first use", false, R::fresh());
    drop(watching);
    for source in sources() {
        let object = keeps("with_source", || R::with(source)).expect("memory");
        let watching = noisy();
        whole_life(source.name(), false, object);
        drop(watching);
        let object = R::with(source).expect("memory");
        let _watching = refused();
        whole_life(&format!("{source}, all is refused"), true, object);
    }
}

/// Counts the costs of a use other than instructions, on one CPU without other threads.
fn work<R: Contract>() {
    static STEPS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
    const TIMES: u64 = 1000;
    Affinity::confine(affinity::current_cpu()).expect("it is allowed");
    // The process's number needs memory once.
    holder::me();
    // The kernel may change its own IDs at any time, and each needs memory.
    for source in sources().filter(|&source| source != Source::Kernel) {
        let object = R::with(source).expect("memory");
        let count = |what: &dyn Fn()| {
            STEPS.iter().for_each(|steps| steps.store(0, Relaxed));
            let _watching = steps::watch(|step| {
                let place = match step {
                    Step::Claim(_) | Step::Map(_) | Step::Open | Step::OpenId(_) => &STEPS[0],
                    Step::Wait => &STEPS[1],
                    Step::Membarrier(_) => &STEPS[2],
                    _ => return None,
                };
                place.fetch_add(1, Relaxed);
                None
            });
            what();
            STEPS.each_ref().map(|steps| steps.load(Relaxed))
        };
        let puts = || (0..TIMES).for_each(|_| _ = object.put());
        puts();
        let [memory, waits, fences] = count(&puts);
        assert!(memory <= R::TAKES_MEMORY, "{source}: {memory} times for memory");
        assert_eq!((waits, fences), (0, 0), "{source}: waits and fences of {TIMES} puts");
        let [memory, waits, fences] = count(&|| _ = object.count());
        assert_eq!((memory, waits), (0, 0), "{source}: memory and waits of a reading");
        assert!(fences <= 1, "{source}: {fences} fences of a reading");
        let place = Cell::new(Some(object));
        assert_eq!(count(&|| drop(place.take())), [0; 3], "{source}: a drop");
    }
}

/// All critical sections fail, as in a debugger that single-steps, although the thread has an ID.
fn tries<R: Contract>() {
    static TRIES: AtomicU64 = AtomicU64::new(0);
    if R::IDS.is_err() || Source::Table.prepare().is_err() {
        return;
    }
    let object = R::with(Source::Table).expect("memory");
    put(&object, 1);
    let of_table = FAST_PATH.table.load(Relaxed);
    let no_ids = Box::leak(vec![0u32; MAX_CPUS].into_boxed_slice());
    FAST_PATH.set_table(no_ids.as_mut_ptr().cast());
    let watching = steps::watch(|step| {
        TRIES.fetch_add(u64::from(step == Step::Try), Relaxed);
        None
    });
    for n in 1..=PUTS {
        put(&object, 1);
        assert_eq!(TRIES.load(Relaxed), n * RETRY_LIMIT as u64, "tries of {n} puts");
    }
    drop(watching);
    // Nothing can be made for an ID by a section.
    let unused = R::with(Source::Table).expect("memory");
    put(&unused, PUTS);
    FAST_PATH.set_table(of_table);
    check_count(&object, PUTS + 1, "those without a section");
    check_count(&unused, PUTS, "those of an object whose IDs have nothing");
}

/// A detector is told about each put before it happens, and about the same one when it is counted.
fn announced<R: Contract>() {
    race_detector::pretend();
    for source in sources() {
        let object = R::with(source).expect("memory");
        let acquired = Rc::new(Cell::new(0));
        let (count, mut released) = (Rc::clone(&acquired), HashSet::new());
        // The first to take a lock finds that nothing was released before.
        put(&object, 1);
        object.count();
        let watching = steps::watch(move |step| {
            match step {
                Step::Release(key) => _ = released.insert(key),
                Step::Acquire(key) if released.contains(&key) => count.set(count.get() + 1),
                _ => {}
            }
            None
        });
        put(&object, PUTS);
        object.count();
        drop(watching);
        let is_told = acquired.get() > 0;
        assert_eq!(is_told, R::HANDS_OVER.is_ok(), "{source}: {acquired:?}");
    }
}

/// The object that the handler uses; `PUT_IN_HANDLER` is the number of its puts that succeeded.
static IN_HANDLER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
static PUT_IN_HANDLER: AtomicU64 = AtomicU64::new(0);

extern "C" fn put_in_handler<R: Contract>(_: libc::c_int) {
    // SAFETY: null, or a living object of this type.
    if let Some(object) = unsafe { IN_HANDLER.load(Relaxed).cast::<R>().as_ref() } {
        set_errno(7);
        PUT_IN_HANDLER.fetch_add(u64::from(object.put()), Relaxed);
        assert_eq!(errno(), 7);
    }
}

/// The signal is raised at each step of a slow path, and is delivered there, or when signals are no
/// longer blocked.
fn handler<R: Contract>() {
    if R::HANDLER.is_err() {
        return;
    }
    let handler: extern "C" fn(libc::c_int) = put_in_handler::<R>;
    // SAFETY: the handler only calls async-signal-safe functions.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let interrupt = || {
        // SAFETY: the handler is installed.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    };
    for round in 0..20 {
        let object = R::fresh();
        PUT_IN_HANDLER.store(0, Relaxed);
        IN_HANDLER.store(ptr::from_ref(&object).cast_mut().cast(), Relaxed);
        let mut own = 0;
        if round % 2 == 0 {
            interrupt();
        }
        let watching = steps::watch(move |_| {
            interrupt();
            None
        });
        for _ in 0..PUTS {
            own += u64::from(object.put());
        }
        drop(watching);
        IN_HANDLER.store(ptr::null_mut(), Relaxed);
        let (count, all) = (object.count(), own + PUT_IN_HANDLER.load(Relaxed));
        // Both may have marked the same ID.
        assert!(count == all || R::IDS.is_err() && (own..all).contains(&count), "{count} of {all}");
        if round == 0 {
            assert!(PUT_IN_HANDLER.load(Relaxed) > 0 && own == PUTS, "{own}");
        }
    }
}

fn fork<R: Contract>() {
    for source in sources() {
        let object = R::with(source).expect("memory");
        put(&object, 5);
        let child = child::begin(|| {
            put(&object, 3);
            assert_eq!(object.count(), 8, "{source}");
            let other = R::fresh();
            put(&other, 2);
            assert_eq!(other.count(), 2);
        });
        put(&object, 1);
        child::assert_ends_well(child);
        assert_eq!(object.count(), 6, "{source}: what the child did is its own");
    }
}

/// A test for the steps that are refused.
type Wanted = fn(Step) -> bool;

/// Tests each kind of refusal in a process that has not used anything.
fn refusal<R: Contract>() {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let kinds: [(&str, Wanted); 7] = [
        ("all", is_refusable),
        ("address space", |step| matches!(step, Step::Claim(_))),
        ("mappings", |step| matches!(step, Step::Map(_))),
        ("memory", |step| step == Step::Open),
        // All except those of the shared slot, and of the bits of its blocks.
        ("slots", |step| step == Step::Open && OPENED.fetch_add(1, Relaxed) >= 2),
        ("memory of IDs", |step| matches!(step, Step::OpenId(_))),
        ("fences", |step| matches!(step, Step::Membarrier(Fence::OfAll | Fence::OfCpu(_)))),
    ];
    for (what, is_wanted) in kinds {
        child::run(|| {
            for source in [None, Some(Source::Table), Some(Source::Atomic)] {
                refused::<R>(what, is_wanted, source);
            }
        });
    }
}

fn refused<R: Contract>(what: &str, is_wanted: Wanted, source: Option<Source>) {
    let new = || match source {
        None => Ok(R::fresh()),
        Some(source) => R::with(source),
    };
    let puts = |object: &R| (0..PUTS).filter(|_| object.put()).count() as u64;
    let watching = steps::watch(move |step| is_wanted(step).then_some(Err(libc::ENOMEM)));
    let early = new().map(|object| (puts(&object), object));
    drop(watching);
    if let Ok((kept, object)) = early {
        if let Ok(told) = object.told() {
            assert_eq!(told, PUTS - kept, "{what}, {source:?}: told");
        }
        check_count(&object, kept, what);
        let later = puts(&object);
        check_count(&object, later + R::kept_by_count(kept), what);
    }
    // A new object works as if there had been no refusal.
    if let Ok(object) = new() {
        put(&object, PUTS);
        check_count(&object, PUTS, what);
    } else {
        assert!(source.is_some_and(|source| source.prepare().is_err()), "{what}");
    }
}

fn check_count<R: Contract>(object: &R, expected: u64, what: &str) {
    let count = object.count();
    match R::IDS {
        Ok(()) => assert_eq!(count, expected, "{what}"),
        // IDs that may be members are visited too.
        Err(_) => assert!(count >= expected, "{what}: {count} of {expected}"),
    }
}

fn ids_of_atomic<R: Contract>() {
    affinity::PRETENDED.store(MAX_CPUS, Relaxed);
    let object = R::with(Source::Atomic).expect("memory");
    let go_to = |id| {
        // SAFETY: the block is this thread's own.
        let block = unsafe { &mut *thread::own() };
        (block.hint, block.hint_left, block.copy) = (id, 64, 0);
    };
    for id in IDS {
        // The first try for each ID finds no memory, and the later ones do.
        let watching = steps::watch(|step| matches!(step, Step::OpenId(_)).then_some(Err(12)));
        go_to(id);
        put(&object, 1);
        drop(watching);
        go_to(id);
        put(&object, 2);
        assert!(R::IDS.is_err() || Source::Atomic.id_count() > id, "{id}");
    }
    check_count(&object, 3 * IDS.len() as u64, "each ID has two, the shared slot one");
}

/// Assigns one ID after the other to the CPU on which this thread stays.
fn ids_of_table<R: Contract>() {
    affinity::PRETENDED.store(MAX_CPUS, Relaxed);
    if R::IDS.is_err() || Source::Table.prepare().is_err() {
        return;
    }
    let cpu = affinity::current_cpu();
    Affinity::confine(cpu).expect("it is allowed");
    let object = R::with(Source::Table).expect("memory");
    assert!(Source::Table.ensure_id_hint().is_some());
    for id in IDS {
        assert!(table::hooks::give(cpu, id), "{id}");
        put(&object, 3);
        assert_eq!(Source::Table.current_id(), Some(id));
    }
    let puts = 3 * IDS.len() as u64;
    let Ok((visit, fences, takes_puts)) = R::VISIT else {
        return check_count(&object, puts, "all IDs");
    };
    static FENCES: AtomicU64 = AtomicU64::new(0);
    let watching = steps::watch(|step| {
        FENCES.fetch_add(u64::from(step == Step::Membarrier(Fence::OfAll)), Relaxed);
        None
    });
    let mut visits = 0;
    visit(&object, &mut || visits += 1);
    drop(watching);
    // The words of IDs 0 and 63, of 64, of 511, of 512, and of the last.
    let words = if fences == Fences::PerWord { 5 } else { 0 };
    assert_eq!(FENCES.load(Relaxed), words, "fences of all CPUs");
    assert_eq!(visits, if takes_puts { puts } else { IDS.len() as u64 });
    check_count(&object, 0, "all was taken");
}

/// Maximum number of calls of a visitor: one for each item at the start, and one for each item that
/// it added before the visit reached its shard.
const MOST_VISITS: u64 = 4 * PUTS + 64;

fn visitor_adds<R: Contract>() {
    let Ok((visit, _, takes_puts)) = R::VISIT else { return };
    for source in sources() {
        let object = R::with(source).expect("memory");
        put(&object, PUTS);
        let (mut visits, mut puts) = (0, PUTS);
        visit(&object, &mut || {
            visits += 1;
            // Otherwise it might never end.
            if visits <= 10 * MOST_VISITS {
                puts += u64::from(object.put());
            }
        });
        assert!(visits > 0 && visits <= MOST_VISITS, "{source}: {visits} visits");
        if takes_puts {
            assert_eq!(visits + object.count(), puts, "{source}");
        }
    }
}

fn visitor_panics<R: Contract>() {
    let Ok((visit, _, takes_puts)) = R::VISIT else { return };
    std::panic::set_hook(Box::new(|_| {}));
    for source in sources() {
        let object = R::with(source).expect("memory");
        put(&object, PUTS);
        let mut visits = 0;
        let panic = || {
            visit(&object, &mut || {
                visits += 1;
                panic!("in the visitor");
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(panic)).is_err() && visits == 1, "{source}");
        put(&object, 1);
        let left = object.count();
        if takes_puts {
            assert_eq!(left, PUTS, "{source}: all but one, and another");
        } else {
            assert!(left >= 1, "{source}");
        }
    }
}
