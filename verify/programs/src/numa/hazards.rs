//! Operations of programs on trapped memory, each in its own child: a child that ends unharmed was
//! neither killed nor refused anything.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use percid_numa::{AccessMethod, Balancer, Event, RegisterError, Settings};

use super::area::{Area, PAGE};
use super::armed::{BYTES, CROWD, UNHARMED, armed, balancer, by_default, ends_with};
use super::environment::quick;
use super::follow::register;

type Outcome = Result<(), String>;
type Hazard = (&'static str, fn() -> Outcome);

/// All of them, to be run while no handler of SIGSEGV is installed.
pub(super) const ALL: [Hazard; 14] = [
    ("a gone region is dropped", gone_region_is_dropped),
    ("two balancers have the same memory", two_balancers),
    ("a child excludes and drops", a_child_excludes),
    ("a child balances", a_child_balances),
    ("children of threads in the handler", children_of_handlers),
    ("the first regions of several threads", first_regions),
    ("memory that cannot be trapped", refusals),
    ("limited data", limited_data),
    ("mappings left for the program", || room_for_the_program(1)),
    ("mappings left, every other grain empty", || room_for_the_program(2)),
    ("an ignored signal", ignored_signal),
    ("a crash that is ignored", ignored_crash),
    ("a handler that is to be called once", handler_called_once),
    ("a part is excluded without mappings left", excluded_without_mappings),
];

/// A child that waits forever is ended after this many seconds: no machine is so slow.
const PATIENCE: u32 = 300;
/// A thread that waits for another one looks again after some sleep, a thousand times or more.
const FEW_SLEEPS: i64 = 20;

/// Runs one. Returns how it ended if it did not end well.
pub(super) fn in_child_of_its_own(body: impl FnOnce() -> Outcome) -> Outcome {
    let ended = ends_with(|| {
        by_default();
        // SAFETY: the signal's default effect is wanted.
        unsafe { libc::alarm(PATIENCE) };
        if let Err(why) = body() {
            eprint!(" {why}");
            // SAFETY: ends the child.
            unsafe { libc::_exit(1) };
        }
    })?;
    if ended == UNHARMED { Ok(()) } else { Err(format!("ended with {ended}")) }
}

fn check(what: &str, right: bool) -> Outcome {
    if right { Ok(()) } else { Err(what.to_owned()) }
}

/// Has the kernel write to a page. The `errno`, or 0.
fn system_call(area: &Area, page: usize) -> i32 {
    let place = area.word(page).as_ptr();
    // SAFETY: the place is inside the area and long enough; nothing relies on its contents. Not the
    // C library's function, which need not be a system call.
    let done = unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, place) };
    if done == 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(-1) }
}

fn use_all(area: &Area) {
    (0..area.pages()).for_each(|page| _ = area.word(page).fetch_add(1, Relaxed));
}

/// Checks that the rest of a region is not left without rights if half of it disappears, against
/// the contract.
fn gone_region_is_dropped() -> Outcome {
    let (balancer, mut area) = (balancer()?, Area::new(BYTES)?);
    let region = armed(&balancer, &area, AccessMethod::Trapped)?;
    let start = area.range().start;
    area.unmap_second_half();
    balancer.pass();
    check("not noticed", balancer.take_events().contains(&Event::Gone { region: start }))?;
    check("not armed any more", system_call(&area, 3) == libc::EFAULT)?;
    let exclusion = region.exclude(0..PAGE);
    check("excluded and refused", system_call(&area, 3) == 0)?;
    drop(exclusion);
    drop(region);
    use_all(&area);
    Ok(())
}

/// Checks that all of the region is disarmed if a part in the middle cannot become a separate
/// mapping.
fn excluded_without_mappings() -> Outcome {
    let (balancer, area, crowd) = (balancer()?, Area::new(BYTES)?, Area::new(CROWD)?);
    let region = armed(&balancer, &area, AccessMethod::Trapped)?;
    let middle = area.pages() / 2;
    check("no crowd", (0..crowd.pages()).step_by(2).any(|page| !crowd.protect_page(page)))?;
    let _exclusion = region.exclude(middle * PAGE..(middle + 1) * PAGE);
    check("excluded and refused", system_call(&area, middle) == 0)?;
    drop(crowd);
    let report = balancer.report();
    let counted = report.regions.first().is_some_and(|region| region.disarmed_whole == 1);
    check("not counted", counted)
}

/// Rights are restored to the memory that they were taken from, so memory without them cannot be
/// registered.
fn two_balancers() -> Outcome {
    let (one, other, area) = (balancer()?, balancer()?, Area::new(BYTES)?);
    let region = armed(&one, &area, AccessMethod::Trapped)?;
    // SAFETY: it is refused.
    let second = unsafe { other.register_trapped(area.start(), area.bytes()) };
    let overlaps = RegisterError::Overlaps { region: area.range().start };
    check(&format!("not refused: {second:?}"), second.err() == Some(overlaps))?;
    let bare = Area::new(BYTES)?;
    bare.protect(libc::PROT_NONE);
    // SAFETY: it is refused.
    let refused = unsafe { other.register_trapped(bare.start(), bare.bytes()) };
    let no_rights = RegisterError::NoRights { address: bare.range().start };
    check(&format!("not refused: {refused:?}"), refused.err() == Some(no_rights))?;
    drop(region);
    drop(register(&other, &area, AccessMethod::Trapped)?);
    use_all(&area);
    Ok(())
}

/// Checks that a child can use memory that was armed in its parent for system calls.
fn a_child_excludes() -> Outcome {
    // One balancer each: only its first region is armed without delay.
    let (one, two, area, other) = (balancer()?, balancer()?, Area::new(BYTES)?, Area::new(BYTES)?);
    let (region, second) =
        (armed(&one, &area, AccessMethod::Trapped)?, armed(&two, &other, AccessMethod::Trapped)?);
    in_child(|| {
        check("nothing armed", system_call(&area, 9) == libc::EFAULT)?;
        let exclusion = region.exclude(9 * PAGE..10 * PAGE);
        check("excluded and refused", system_call(&area, 9) == 0)?;
        drop(exclusion);
        drop(second);
        check("dropped and refused", system_call(&other, other.pages() - 1) == 0)?;
        use_all(&area);
        Ok(())
    })
}

/// Checks that a child balances, with another balancer, memory that is armed in its parent: all of
/// it, or one half.
fn a_child_balances() -> Outcome {
    let (old, first, area) = (balancer()?, Area::new(BYTES)?, Area::new(BYTES)?);
    let early = balancer()?;
    let before = register(&early, &first, AccessMethod::Trapped)?;
    let mut region = Some(armed(&old, &area, AccessMethod::Trapped)?);
    // A free place, which the child's region takes: it is found before the parent's.
    drop(before);
    for bytes in [BYTES, BYTES / 2] {
        in_child(|| {
            let new = balancer()?;
            // SAFETY: nothing gives the memory to the kernel while it is armed, or changes its
            // rights.
            let own =
                unsafe { new.register_trapped(area.start(), bytes) }.map_err(|e| e.to_string())?;
            let armed: u64 = (0..4).map(|_| new.pass().armed).sum();
            check(&format!("{armed} pages armed"), armed == (bytes / PAGE) as u64)?;
            drop(region.take());
            use_all(&area);
            drop(own);
            use_all(&area);
            Ok(())
        })?;
    }
    Ok(())
}

/// Checks that a child does not wait for threads of its parent that were in the handler.
fn children_of_handlers() -> Outcome {
    let (balancer, area) = (balancer()?, Area::new(BYTES)?);
    let _region = armed(&balancer, &area, AccessMethod::Trapped)?;
    use_all(&area);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for page in (0..area.pages()).cycle().take_while(|_| !stop.load(Relaxed)) {
                    pretend_fault(area.word(page).as_ptr() as usize);
                }
            });
        }
        let child = || {
            let own = Area::new(BYTES)?;
            let balancer = super::armed::balancer()?;
            let region = armed(&balancer, &own, AccessMethod::Trapped)?;
            let before = sleeps();
            drop(region);
            let slept = sleeps() - before;
            check(&format!("dropping sleeps {slept} times"), slept < FEW_SLEEPS)
        };
        let outcome = (0..20).try_for_each(|_| in_child(child));
        stop.store(true, Relaxed);
        outcome
    })
}

/// Returns the number of times that the calling thread gave up its CPU to wait.
fn sleeps() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure has room for the answer, and zero is a valid value of it.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nvcsw
    }
}

/// Sends the calling thread the signal of a fault at memory that may not be accessed.
fn pretend_fault(address: usize) {
    // Number, errno and code; from the 16th byte on the address (`asm-generic/siginfo.h`).
    let mut information = [0u64; 16];
    information[0] = libc::SIGSEGV as u64;
    information[1] = 2;
    information[2] = address as u64;
    // SAFETY: the information has the kernel's size; the signal is handled.
    unsafe {
        let (process, thread) = (libc::getpid(), crate::pinning::thread_id());
        let call = libc::SYS_rt_tgsigqueueinfo;
        libc::syscall(call, process, thread, libc::SIGSEGV, information.as_ptr());
    }
}

/// Threads that register their first regions at once get them all, time after time.
fn first_regions() -> Outcome {
    const THREADS: usize = 8;
    (0..50).try_for_each(|_| {
        in_child(|| {
            let barrier = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                let body = || {
                    let (balancer, area) = (balancer()?, Area::new(PAGE)?);
                    barrier.wait();
                    register(&balancer, &area, AccessMethod::Trapped).map(drop)
                };
                let threads = [0; THREADS].map(|_| scope.spawn(body));
                threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a panic")?)
            })
        })
    })
}

/// Checks that executable memory is refused, and the program's variables, among which are percid's
/// own.
fn refusals() -> Outcome {
    let (balancer, area) = (balancer()?, Area::new(BYTES)?);
    let why = |start: usize, bytes: usize| {
        // SAFETY: it is refused.
        let region = unsafe { balancer.register_trapped(start as *const u8, bytes) };
        region.map(std::mem::forget).err()
    };
    let start = area.range().start;
    area.protect(libc::PROT_READ | libc::PROT_EXEC);
    let refused = why(start, BYTES);
    let executable = RegisterError::Executable { address: start };
    check(&format!("executable: {refused:?}"), refused == Some(executable))?;
    let variable = &raw const CALLS as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
    let ranges = maps.lines().filter_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
    });
    let (start, end) = ranges
        .into_iter()
        .find(|(start, end)| (*start..*end).contains(&variable))
        .ok_or("nowhere")?;
    let refused = why(start, end - start);
    let own = matches!(refused, Some(RegisterError::HandlerData { .. }));
    check(&format!("percid's own: {refused:?}"), own)
}

fn limit_data(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: plain values.
    unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) };
}

/// Checks limited private memory: the rights could not be restored, so they are not removed, and
/// armed memory gets them back.
fn limited_data() -> Outcome {
    let (balancer, area, other) = (balancer()?, Area::new(BYTES)?, Area::new(BYTES)?);
    let _region = armed(&balancer, &area, AccessMethod::Trapped)?;
    // Much more than there is: only the existence of the limit matters.
    limit_data(1 << 40);
    let armed = balancer.pass().armed;
    check(&format!("{armed} pages armed"), armed == 0)?;
    check("still armed", (0..area.pages()).all(|page| system_call(&area, page) == 0))?;
    let refused = register(&balancer, &other, AccessMethod::Trapped).map(drop);
    let limited = RegisterError::DataLimited.to_string();
    check(&format!("registered: {refused:?}"), refused.is_err_and(|why| why.contains(&limited)))
}

/// Checks that the program can have three quarters of the mappings, however many grains are armed
/// or disarmed separately.
fn room_for_the_program(every: usize) -> Outcome {
    let settings = Settings { scan_size: 4 << 30, ..quick() };
    let balancer = Balancer::builder().settings(settings).build().map_err(|e| e.to_string())?;
    // More grains of 64 KiB than a quarter of the mappings that a process can have, by default.
    let area = Area::sparse(18 << 26)?;
    let grains = || (0..area.pages()).step_by(16 * every);
    grains().for_each(|page| area.word(page).store(7, Relaxed));
    let mappings =
        || std::fs::read_to_string("/proc/self/maps").map_or(0, |all| all.lines().count());
    let before = mappings();
    let _region = register(&balancer, &area, AccessMethod::Trapped)?;
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").map_err(|e| e.to_string())?;
    let most: usize = most.trim().parse().map_err(|_| "no number")?;
    let armed = balancer.pass().armed;
    let mut added = mappings() - before;
    for (number, page) in grains().step_by(2 / every).enumerate() {
        area.word(page).store(8, Relaxed);
        if number % 2048 == 0 {
            added = added.max(mappings() - before);
        }
    }
    // A pass restores the budget, and the next one uses it.
    balancer.pass();
    check(&format!("armed {armed}"), armed > 1000)?;
    check(&format!("{added} of {most} mappings"), (1000..=most / 4 + 8).contains(&added))
}

static CALLS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_calls(_: i32) {
    if CALLS.fetch_add(1, Relaxed) == 5 {
        // SAFETY: async-signal-safe.
        unsafe { libc::_exit(6) };
    }
}

/// Registers a region after `prepare`, and runs `body`; returns the ending of the child.
fn ends_after(prepare: fn(), body: fn()) -> Result<i32, String> {
    ends_with(|| {
        prepare();
        let (Ok(balancer), Ok(area)) = (balancer(), Area::new(BYTES)) else { return };
        let Ok(_region) = register(&balancer, &area, AccessMethod::Trapped) else { return };
        body();
    })
}

fn ignore() {
    // SAFETY: the action takes no function.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_IGN) };
}

fn crash() {
    // SAFETY: none: this is meant to fault.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(16).write_volatile(1) };
}

/// Checks that a signal that was sent may be ignored.
fn ignored_signal() -> Outcome {
    let ended = ends_after(ignore, || {
        _ = crate::pinning::signal(crate::pinning::thread_id(), libc::SIGSEGV)
    })?;
    check(&format!("ended with {ended}"), ended == UNHARMED)
}

/// Checks that a fault cannot be ignored.
fn ignored_crash() -> Outcome {
    let ended = ends_after(ignore, crash)?;
    check(&format!("ended with {ended}"), ended == -libc::SIGSEGV)
}

/// Checks a handler that returns, and expects the fault to repeat and to end the process.
fn handler_called_once() -> Outcome {
    let prepare = || {
        // SAFETY: zero is a valid value, and the function is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count_calls as *const () as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
        }
    };
    let ended = ends_after(prepare, crash)?;
    check(&format!("ended with {ended}"), ended == -libc::SIGSEGV)
}

/// Runs the body in a child.
fn in_child(body: impl FnOnce() -> Outcome) -> Outcome {
    let ended = ends_with(|| {
        if let Err(why) = body() {
            eprintln!("in a child: {why}");
            // SAFETY: ends the child.
            unsafe { libc::_exit(1) };
        }
    })?;
    check(&format!("a child ended with {ended}"), ended == UNHARMED)
}
