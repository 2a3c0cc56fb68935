//! Step-by-step tests of the table, on tables that no critical section uses: the state at each call
//! to the kernel, the result if it refuses, and the ID that a CPU gets.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

use super::super::layout::Header;
use super::super::places::KnownPlace;
use super::*;
use crate::sys::atomic::AtomicPtr;
use crate::sys::steps::{self, Answer, Fence, Step, Watching};
use crate::sys::topology::Place;
use percid_rules::space::{Distance, EXPIRY_MS};

/// Number of CPUs: enough for every kind of distance.
const CPUS: usize = 16;

/// The calling thread in requests.
const ME: u64 = 7;
const ANOTHER: u64 = 8;

const NOW: u64 = 1_000_000;

fn limits(allowed: u32, threads: u32) -> Limits {
    Limits { allowed, threads, most: 0 }
}

fn fresh() -> &'static Table {
    // SAFETY: the table is never unmapped.
    unsafe { Table::map(CPUS).expect("memory").as_ref() }
}

/// Records the steps of this thread; `answer` answers each.
fn watch(answer: impl Fn(Step) -> Answer + 'static) -> (Rc<RefCell<Vec<Step>>>, Watching) {
    let steps = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&steps);
    let watching = steps::watch(move |step| {
        if step == Step::BlockSignals {
            return None;
        }
        note.borrow_mut().push(step);
        answer(step)
    });
    (steps, watching)
}

/// Grants everything, including the memory of IDs that this machine does not have.
fn granted(_: Step) -> Answer {
    Some(Ok(()))
}

fn fences(steps: &RefCell<Vec<Step>>) -> Vec<Fence> {
    let fence = |step: &Step| match *step {
        Step::Membarrier(fence @ (Fence::OfCpu(_) | Fence::OfAll)) => Some(fence),
        _ => None,
    };
    steps.borrow().iter().filter_map(fence).collect()
}

fn request(cpu: u32, thread: u64, previous_cpu: Option<u32>) -> Request {
    Request { cpu, thread, previous_cpu }
}

/// The same as `ensure_id_of` after its checks.
fn enter(locked: &mut Locked, request: Request, limits: Limits, now: u64) -> Option<u32> {
    let id = assign::obtain(locked, request, limits, now).id?;
    locked.install(request.cpu, id, request.thread, now).then_some(id)
}

fn holders(space: &Space<'_>, cpu: u32) -> bool {
    space.held(cpu).is_some()
}

fn entries(table: &Table) -> Vec<Option<u32>> {
    (0..CPUS as u32).map(|cpu| table.entry(cpu).expect("an entry").id()).collect()
}

/// Returns a table in which CPUs 0 and 1 hold the IDs 0 and 1 since `NOW`; the limit is two IDs.
fn two_ids() -> (&'static Table, Locked) {
    let table = fresh();
    let (_, _watching) = watch(granted);
    let mut locked = table.try_lock().expect("nobody has it");
    assert!(locked.ready_to_fence());
    for cpu in [0, 1] {
        let since = NOW + u64::from(cpu);
        let thread = 100 + u64::from(cpu);
        assert_eq!(enter(&mut locked, request(cpu, thread, None), limits(2, 2), since), Some(cpu));
    }
    locked.space().scanned(NOW);
    (table, locked)
}

#[test]
fn an_id_is_given_when_its_memory_is_open_and_sums_visit_it() {
    let table = fresh();
    let (steps, _watching) = watch(move |step| {
        if let Step::OpenId(id) = step {
            assert!(!entries(table).contains(&Some(id)), "a section may use it already");
            assert!(table.seen.end() <= id, "sums visit it already");
        }
        granted(step)
    });
    let mut locked = table.try_lock().expect("nobody has it");
    assert_eq!(enter(&mut locked, request(3, ME, None), limits(8, 8), NOW), Some(0));
    assert_eq!(enter(&mut locked, request(5, ME, None), limits(8, 8), NOW), Some(1));
    assert_eq!(*steps.borrow(), [Step::OpenId(0), Step::OpenId(1)]);
    assert_eq!((entries(table)[3], entries(table)[5]), (Some(0), Some(1)));
    assert_eq!(table.seen.end(), 2);
    let activity = locked.stats_now();
    assert_eq!((activity.assigned, activity.ids_held, activity.id_bound), (2, 2, 2));
    // A smaller ID that comes later does not hide a larger one.
    let (_, _watching) = watch(granted);
    assert_eq!(assign::evict(&mut locked, |_, cpu| cpu == 3), 1);
    assert_eq!(enter(&mut locked, request(3, ME, None), limits(8, 8), NOW), Some(0));
    assert_eq!(table.seen.end(), 2);
}

#[test]
fn without_memory_no_id_is_given() {
    let table = fresh();
    let (_, _watching) = watch(|step| match step {
        Step::OpenId(_) => Some(Err(libc::ENOMEM)),
        other => granted(other),
    });
    remember(9);
    let mut locked = table.try_lock().expect("nobody has it");
    assert!(!locked.ensure_id_of(3, NOW, |_| limits(8, 8)));
    assert_eq!(entries(table), [None; CPUS]);
    assert_eq!((table.seen.end(), locked.space().held(3), previous_cpu()), (0, None, Some(9)));
    let activity = locked.stats_now();
    assert_eq!((activity.assigned, activity.ids_held, activity.id_bound), (0, 0, 0));
}

#[test]
fn a_thief_unsets_the_entry_fences_that_cpu_and_then_has_the_id() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(move |step| {
        assert_eq!(entries(table)[..2], [None, Some(1)], "unset before the fence");
        granted(step)
    });
    assert_eq!(assign::steal(&mut locked, 0), Some(0));
    assert_eq!(*steps.borrow(), [Step::Membarrier(Fence::OfCpu(0))]);
    assert_eq!(entries(table)[..2], [None, Some(1)]);
    // In transit: not free, and no longer held by the CPU.
    let activity = locked.stats_now();
    assert_eq!((activity.stolen, activity.ids_held, locked.space().held(0)), (1, 2, None));
}

#[test]
fn an_id_stays_where_the_fence_is_refused() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(|_| Some(Err(libc::EPERM)));
    assert_eq!(assign::steal(&mut locked, 0), None);
    assert_eq!(entries(table)[..2], [Some(0), Some(1)]);
    assert_eq!((locked.space().held(0), locked.stats_now().stolen), (Some(0), 0));
    assert_eq!(fences(&steps), [Fence::OfCpu(0)]);
    // No other CPU gets it either.
    assert!(!locked.ensure_id_of(4, NOW, |_| limits(2, 2)));
    assert_eq!(entries(table)[4], None);
}

#[test]
fn ids_are_freed_after_one_fence_for_all() {
    let (table, mut locked) = two_ids();
    {
        let (_, _watching) = watch(granted);
        assert_eq!(enter(&mut locked, request(2, ME, None), limits(8, 8), NOW), Some(2));
    }
    let (steps, _watching) = watch(move |step| {
        assert_eq!(entries(table)[..3], [None, None, Some(2)], "unset before the fence");
        granted(step)
    });
    assert_eq!(assign::evict(&mut locked, |_, cpu| cpu < 2), 2);
    assert_eq!(*steps.borrow(), [Step::Membarrier(Fence::OfAll)]);
    assert_eq!(entries(table)[..3], [None, None, Some(2)]);
    let activity = locked.stats_now();
    assert_eq!((activity.evicted, activity.eviction_fences, activity.ids_held), (2, 1, 1));
}

#[test]
fn ids_stay_where_the_fence_for_all_is_refused() {
    let (table, mut locked) = two_ids();
    let (_, _watching) = watch(|_| Some(Err(libc::ENOMEM)));
    assert_eq!(assign::evict(&mut locked, |_, cpu| cpu < 2), 0);
    assert_eq!(entries(table)[..2], [Some(0), Some(1)]);
    let activity = locked.stats_now();
    assert_eq!((activity.evicted, activity.eviction_fences, activity.ids_held), (0, 0, 2));
}

#[test]
fn nothing_is_fenced_for_nothing() {
    let (_, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    assert_eq!(assign::evict(&mut locked, |_, _| false), 0);
    assert!(steps.borrow().is_empty());
}

/// A new table is in the same state as the table in a child of a fork.
#[test]
fn a_process_registers_once_before_it_fences() {
    let table = fresh();
    let mut locked = table.try_lock().expect("nobody has it");
    {
        let (steps, _watching) = watch(|_| Some(Err(libc::EPERM)));
        assert!(!locked.ensure_id_of(0, NOW, |_| limits(2, 2)));
        assert_eq!(locked.compact(NOW), 0);
        assert_eq!(*steps.borrow(), [Step::Membarrier(Fence::Register); 2]);
        assert_eq!(entries(table), [None; CPUS]);
    }
    let (steps, _watching) = watch(granted);
    assert!(locked.ensure_id_of(0, NOW, |_| limits(2, 2)));
    assert!(locked.ensure_id_of(1, NOW, |_| limits(2, 2)));
    assert!(locked.ensure_id_of(1, NOW, |_| unreachable!("it has one")));
    let expected = [Step::Membarrier(Fence::Register), Step::OpenId(0), Step::OpenId(1)];
    assert_eq!(*steps.borrow(), expected);
}

#[test]
fn cpus_beyond_the_table_get_nothing() {
    let table = fresh();
    let (steps, _watching) = watch(granted);
    let mut locked = table.try_lock().expect("nobody has it");
    assert!(!locked.ensure_id_of(CPUS as u32, NOW, |_| limits(2, 2)));
    assert!(table.entry(CPUS as u32).is_none() && table.entry(u32::MAX).is_none());
    assert!(steps.borrow().is_empty());
}

#[test]
fn a_thread_that_moved_takes_its_id_along_and_disturbs_nobody() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    // Both IDs have expired, and a scan is due; the other CPU's ID is the older one.
    let later = NOW + 10 * EXPIRY_MS;
    assert_eq!(enter(&mut locked, request(5, 101, Some(1)), limits(2, 2), later), Some(1));
    assert_eq!(fences(&steps), [Fence::OfCpu(1)]);
    assert_eq!(entries(table)[..6], [Some(0), None, None, None, None, Some(1)]);
    assert_eq!((locked.table_stats().stolen, locked.table_stats().eviction_fences), (1, 0));
}

#[test]
fn a_thread_notes_where_it_took_an_id() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    remember(9);
    assert!(locked.ensure_id_of(4, NOW, |_| limits(2, 2)));
    assert_eq!((previous_cpu(), entries(table)[4]), (Some(4), Some(0)));
    // The thread steals the ID that it took on CPU 4 itself, although the ID of CPU 1 was taken
    // longer ago.
    assert!(locked.ensure_id_of(6, NOW, |_| limits(2, 2)));
    assert_eq!(fences(&steps), [Fence::OfCpu(0), Fence::OfCpu(4)]);
    assert_eq!((entries(table)[4], entries(table)[6]), (None, Some(0)));
    assert_eq!(previous_cpu(), Some(6));
    // An ID that another thread took on this thread's last CPU stays there.
    assign::evict(&mut locked, |_, cpu| cpu == 6);
    drop(locked);
    let address = ptr::from_ref(table).expose_provenance();
    let another = std::thread::spawn(move || {
        let (_, _watching) = watch(granted);
        // SAFETY: the table is never unmapped.
        let table: &'static Table = unsafe { &*ptr::with_exposed_provenance(address) };
        let mut locked = table.try_lock().expect("nobody has it");
        locked.ensure_id_of(6, NOW + 9, |_| limits(2, 2))
    });
    assert!(another.join().expect("no panic"));
    let mut locked = table.try_lock().expect("nobody has it");
    assert!(locked.ensure_id_of(8, NOW + 9, |_| limits(2, 2)));
    assert_eq!(fences(&steps).last(), Some(&Fence::OfCpu(1)));
}

#[test]
fn before_a_theft_what_expired_goes_back_once_in_a_while() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    // ID 0 has expired, ID 1 will expire a millisecond later.
    let later = NOW + EXPIRY_MS;
    assert_eq!(enter(&mut locked, request(4, ME, None), limits(2, 2), later), Some(0));
    assert_eq!(fences(&steps), [Fence::OfAll]);
    assert_eq!(entries(table)[..5], [None, Some(1), None, None, Some(0)]);
    let activity = *locked.table_stats();
    assert_eq!((activity.stolen, activity.evicted, activity.eviction_fences), (0, 1, 1));
    // That was a scan: within the time the next steal is a real one, although ID 1 has expired by
    // now.
    assert_eq!(enter(&mut locked, request(5, ANOTHER, None), limits(2, 2), later + 50), Some(1));
    assert_eq!(fences(&steps), [Fence::OfAll, Fence::OfCpu(1)]);
    assert_eq!(locked.table_stats().stolen, 1);
}

#[test]
fn else_the_id_that_was_taken_longest_ago_is_stolen() {
    let (_, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    assert_eq!(enter(&mut locked, request(4, ME, None), limits(2, 2), NOW + 2), Some(0));
    assert_eq!(enter(&mut locked, request(5, ME, None), limits(2, 2), NOW + 3), Some(1));
    assert_eq!(enter(&mut locked, request(6, ME, None), limits(2, 2), NOW + 4), Some(0));
    assert_eq!(fences(&steps), [Fence::OfCpu(0), Fence::OfCpu(1), Fence::OfCpu(4)]);
}

#[test]
fn a_cpu_comes_back_for_what_was_evicted_and_not_for_what_was_stolen() {
    let (table, mut locked) = two_ids();
    let (_, _watching) = watch(granted);
    // Evicted: CPU 1 remembers ID 1, although this thread left ID 0 behind on CPU 0.
    assert_eq!(assign::evict(&mut locked, holders), 2);
    assert_eq!(enter(&mut locked, request(1, ME, Some(0)), limits(2, 2), NOW), Some(1));
    assert_eq!(enter(&mut locked, request(0, ME, None), limits(2, 2), NOW), Some(0));
    // Stolen: CPU 1 does not remember it.
    let stolen = assign::steal(&mut locked, 1).expect("it has one");
    locked.space().free(stolen);
    assert_eq!(assign::evict(&mut locked, holders), 1);
    assert_eq!(entries(table), [None; CPUS]);
    assert_eq!(enter(&mut locked, request(1, ME, Some(0)), limits(2, 2), NOW), Some(0));
}

#[test]
fn steals_are_counted_as_steals() {
    let (_, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    // Twenty steals for two IDs are frequent; then there is an extra ID.
    let wandering = Limits { allowed: 16, threads: 2, most: 16 };
    for steal in 0..21u32 {
        let cpu = 2 + steal % 14;
        if locked.space().held(cpu).is_some() {
            assert_eq!(assign::evict(&mut locked, |_, other| other == cpu), 1);
        }
        let id = enter(&mut locked, request(cpu, ME, None), wandering, NOW + 2);
        assert!(id.is_some());
        if id == Some(2) {
            assert_eq!((steal, locked.table_stats().stolen), (20, 20));
            assert_eq!(fences(&steps).len(), 20);
            return;
        }
    }
    panic!("no extra ID");
}

#[test]
fn the_bound_is_kept_before_an_id_is_given() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    // One thread is left: ID 1 lies above the bound and is evicted before ID 0 is stolen.
    assert!(locked.ensure_id_of(4, NOW + 5, |_| limits(2, 1)));
    assert_eq!(fences(&steps), [Fence::OfAll, Fence::OfCpu(0)]);
    assert_eq!(entries(table)[..5], [None, None, None, None, Some(0)]);
    assert_eq!(locked.stats_now().id_bound, 1);
}

#[test]
fn compaction_takes_back_what_has_expired() {
    let (table, mut locked) = two_ids();
    let (steps, _watching) = watch(granted);
    // The limits are this process's; the ages are the test's.
    assert_eq!(locked.compact(NOW + 2 * EXPIRY_MS), 2);
    assert_eq!(fences(&steps), [Fence::OfAll]);
    assert_eq!(entries(table), [None; CPUS]);
}

#[test]
fn the_nearest_free_id_is_taken() {
    let table = fresh();
    let place = |core, l3, node| Place { core: Some(core), l3: Some(l3), node: Some(node) };
    // CPUs 0 and 1 on a core, 2 behind their cache, 3 on their node, 4 on another node; 5 and 6
    // unknown.
    let places = [place(0, 0, 0), place(0, 0, 0), place(2, 0, 0), place(3, 3, 0), place(4, 4, 1)];
    let unknown = [Place::default(); 2];
    for (cpu, &place) in places.iter().chain(&unknown).enumerate() {
        let known = KnownPlace { known: 1, place: MaybeUninit::new(place) };
        // SAFETY: inside the array, and no other thread uses this table.
        unsafe { table.places.add(cpu).write(known) };
    }
    let far = |a, b| Places(table.places).distance(a, b);
    assert_eq!((far(0, 1), far(0, 2)), (Distance::SameCore, Distance::SameL3));
    assert_eq!((far(0, 3), far(0, 4)), (Distance::SameNode, Distance::Far));
    assert_eq!((far(5, 6), far(0, 5)), (Distance::Far, Distance::Far), "unknown is far");
    let mut locked = table.try_lock().expect("nobody has it");
    let (_, _watching) = watch(granted);
    for cpu in [4, 3, 2, 1] {
        assert!(enter(&mut locked, request(cpu, ME, None), limits(4, 4), NOW).is_some());
    }
    assert_eq!(assign::evict(&mut locked, holders), 4);
    assert_eq!(enter(&mut locked, request(0, ME, None), limits(4, 4), NOW), Some(3), "CPU 1's");
    assert_eq!(enter(&mut locked, request(5, ME, Some(2)), limits(4, 4), NOW), Some(2), "its own");
}

#[test]
fn one_thread_at_a_time_holds_the_table() {
    let table = fresh();
    let held = table.try_lock().expect("nobody has it");
    assert!(table.try_lock().is_none());
    drop(held);
    assert!(table.try_lock().is_some());
}

fn blocked() -> u64 {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: reads this thread's mask into a place of its size, whose first word contains the
    // signals.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
        *set.as_ptr().cast::<u64>()
    }
}

/// The lock that the handler inspects, and the state that it found; 0 at first.
static LOCK: AtomicPtr<Header> = AtomicPtr::new(std::ptr::null_mut());
static SAW: AtomicU32 = AtomicU32::new(0);
const TAKEN: u32 = 1;
const FREE: u32 = 2;

extern "C" fn look(_: libc::c_int) {
    // SAFETY: the header is mapped forever.
    let taken = unsafe { (*LOCK.load(SeqCst)).lock.taken.load(Relaxed) };
    SAW.store(if taken == 0 { FREE } else { TAKEN }, SeqCst);
}

#[test]
fn no_handler_of_its_thread_finds_the_table_locked() {
    let table = fresh();
    LOCK.store(table.header.as_ptr(), SeqCst);
    let signal = libc::SIGRTMIN() + 9;
    // SAFETY: the handler does nothing but atomic accesses, and no other test uses this signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = look as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
    let before = blocked();
    let locked = {
        let _watching = steps::watch(|step| {
            assert_eq!(step, Step::BlockSignals);
            // SAFETY: the header is mapped forever.
            let taken = unsafe { (*LOCK.load(SeqCst)).lock.taken.load(Relaxed) };
            assert_eq!(taken, 0, "a handler could run here");
            None
        });
        table.try_lock().expect("nobody has it")
    };
    assert_ne!(blocked(), before);
    // SAFETY: the handler was installed above.
    unsafe { libc::raise(signal) };
    assert_eq!(SAW.load(SeqCst), 0, "not before the lock is released");
    assert!(table.try_lock().is_none());
    assert_eq!(SAW.load(SeqCst), 0, "nor because it was tried in vain");
    drop(locked);
    assert_eq!((SAW.load(SeqCst), blocked()), (FREE, before));
}

/// The child of a fork, which may do little, finds the initial state, except for the IDs that the
/// process has seen.
#[test]
fn a_child_starts_with_an_empty_table() {
    let (table, locked) = two_ids();
    // SAFETY: the child only reads memory, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the child has one thread, and the table stays mapped.
        let header = unsafe { table.header.as_ref() };
        let empty = entries_are_unset(table) && header.lock.taken.load(Relaxed) == 0;
        let wiped = empty && header.registered == 0 && header.stats.assigned == 0;
        // SAFETY: ends the child.
        unsafe { libc::_exit(if wiped && table.seen.end() == 2 { 0 } else { 1 }) };
    }
    drop(locked);
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "what the child found");
    assert_eq!(entries(table)[..2], [Some(0), Some(1)]);
}

fn entries_are_unset(table: &Table) -> bool {
    (0..CPUS as u32).all(|cpu| table.entry(cpu).is_some_and(|entry| entry.id().is_none()))
}
