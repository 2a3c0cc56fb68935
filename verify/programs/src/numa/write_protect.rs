//! Memory whose writes are seen, under everything that may go wrong: system calls that write there,
//! many threads at once, signal handlers, fork, memory that disappears or is replaced, regions and
//! balancers that end while threads wait, a heap that is armed itself. On pretended nodes, so
//! anywhere. No thread may wait forever: an alarm ends that.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Region, RegionReport, RegisterError};

use super::area::{Area, HUGE, PAGE, Pages};
use super::armed::{UNHARMED, arm_again, armed, balancer, ends_with, pass_until_gone, seen};
use super::environment::{blind, nodes};
use super::follow::register;
use super::handler;
use super::stages::Stages;
use super::trap::ROUNDS_PER_REGION;
use crate::length::{self, Length, becomes};
use crate::options::Options;
use crate::random::{Random, seed};
use crate::verdict::Verdict;
use crate::{pinning, sandbox};

const BYTES: usize = 8 << 20;
/// Pages of a grain.
const GRAIN: usize = 16;
/// A program that waits forever is ended by a signal this many seconds after it should have ended;
/// no machine is so slow.
const PATIENCE: u32 = 600;
/// The number of children that have a descriptor each.
const CHILDREN: usize = 8;
/// The status of a child that found something wrong.
const HARMED: i32 = 3;

pub(crate) fn run(options: &Options) -> Verdict {
    percid_numa::testing::pretend_nodes(2);
    // Before any thread gets one of its own.
    one_heap();
    // SAFETY: takes a number; the signal's default effect is wanted.
    unsafe { libc::alarm(PATIENCE + 4 * options.seconds as u32) };
    if let Some(skipped) = blind(AccessMethod::Written) {
        return Ok(skipped);
    }
    let mut stages = Stages::default();
    stages.silent("refusals", refusals)?;
    stages.run("calls", || calls(options))?;
    stages.silent("seen_are_first_writes", seen_are_first_writes)?;
    stages.silent("vanishing", vanishing)?;
    stages.run("replaced", || replaced(options))?;
    stages.silent("discarded", discarded)?;
    stages.silent("identity", identity)?;
    stages.run("heap", || heap(options))?;
    stages.run("huge", huge)?;
    stages.run("migrated", migrated)?;
    stages.run("cost", cost)?;
    stages.run("churn", || churn(options))?;
    stages.run("stress", || stress(options))?;
    Ok(stages.figures.join(" "))
}

fn failed<T>(result: Result<T, RegisterError>) -> Option<RegisterError> {
    result.err()
}

/// Registers a page for its writes. Returns why that is refused.
fn refusal(area: &Area) -> Option<RegisterError> {
    let Ok(balancer) = balancer() else { return None };
    failed(balancer.register_written(area.start(), area.bytes()))
}

/// Checks that memory of other kinds is refused, and all memory if userfaultfd is not permitted.
fn refusals() -> Result<(), String> {
    let balancer = balancer()?;
    let area = Area::new(4 * PAGE)?;
    let shared = Area::shared(PAGE)?;
    let read_only = Area::new(PAGE)?;
    read_only.protect(libc::PROT_READ);
    let here = 0u8;
    // Down to where the frame of the call will be.
    let stack = ((&raw const here as usize & !(PAGE - 1)) - 3 * PAGE) as *const u8;
    let _region = register(&balancer, &area, AccessMethod::Written)?;
    let refused = [
        refusal(&shared),
        refusal(&read_only),
        failed(balancer.register_written(stack, 4 * PAGE)),
        refusal(&area),
    ];
    let not_private = |area: &Area| RegisterError::NotPrivate { address: area.range().start };
    let expected = [
        not_private(&shared),
        not_private(&read_only),
        RegisterError::ThreadMemory { address: stack.addr() },
        RegisterError::OtherMonitor,
    ];
    if refused != expected.map(Some) {
        return Err(format!("refused with {refused:?}"));
    }
    own_mappings_are_refused(&balancer)?;
    let device = File::options().read(true).write(true).open("/dev/userfaultfd").is_ok();
    let open_to_all = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd")
        .is_ok_and(|value| value.trim() == "1");
    // SAFETY: takes nothing.
    let root = unsafe { libc::geteuid() } == 0;
    let no_permission = Some(RegisterError::NotPermitted);
    let cases = [
        ("call refused", libc::EPERM, false, if device { None } else { no_permission }),
        ("nobody", 0, root && !open_to_all, no_permission),
        ("call missing", libc::ENOSYS, root, Some(RegisterError::NotSupported)),
    ];
    for (name, errno, renounce, expected) in cases {
        if renounce || errno == libc::EPERM {
            let ended = ends_with(|| {
                let area = Area::new(PAGE);
                if renounce {
                    become_nobody();
                }
                let filtered =
                    errno == 0 || sandbox::install(&[libc::SYS_userfaultfd], errno).is_ok();
                let refused = area.as_ref().map(refusal);
                if !filtered || refused != Ok(expected) {
                    eprintln!("{name}: refused with {refused:?}, expected {expected:?}");
                    give_up();
                }
            })?;
            if ended != UNHARMED {
                return Err(format!("{name}: ended with {ended}"));
            }
        }
    }
    Ok(())
}

/// Checks that memory that the monitor writes to cannot be registered: its stack with its state,
/// and the state of a region's pages.
fn own_mappings_are_refused(balancer: &Balancer) -> Result<(), String> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
    let own: Vec<_> =
        maps.lines().filter(|line| line.ends_with("/dev/zero")).filter_map(addresses).collect();
    let refused = own.iter().all(|range| {
        let start = std::ptr::with_exposed_provenance(range.start);
        let refused = failed(balancer.register_written(start, range.len()));
        refused == Some(RegisterError::NotPrivate { address: range.start })
    });
    // The stack's guard is a mapping by itself.
    if own.len() >= 3 && refused { Ok(()) } else { Err(format!("own mappings: {own:x?}")) }
}

fn become_nobody() {
    // SAFETY: plain numbers; afterwards the process may look at itself again.
    unsafe {
        libc::setuid(65534);
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
    }
}

fn give_up() -> ! {
    // SAFETY: ends the child.
    unsafe { libc::_exit(HARMED) };
}

/// The results of system calls that wrote to armed memory.
#[derive(Debug, Default)]
struct Calls {
    right: u64,
    wrong: u64,
    refused: u64,
}

/// Checks that system calls that write to armed memory succeed, with the right contents, while
/// threads write beside them. The negative control is trapped memory, where they fail.
fn calls(options: &Options) -> Verdict {
    let written = calls_at(options, AccessMethod::Written)?;
    let trapped = calls_at(options, AccessMethod::Trapped)?;
    let right = written.right > 0 && written.wrong + written.refused == 0 && trapped.refused > 0;
    if !right {
        return Err(format!("system calls: written {written:?}, trapped {trapped:?}"));
    }
    let (calls, control) = (written.right, trapped.refused);
    Ok(format!("system_calls={calls} refused_where_trapped={control}"))
}

fn calls_at(options: &Options, access: AccessMethod) -> Result<Calls, String> {
    const CHUNK: usize = 3 * PAGE;
    let file = File::open("/proc/self/exe").map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len() as usize;
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let region = armed(&balancer, &area, access)?;
    let (stop, half) = (AtomicBool::new(false), area.pages() / 2);
    let calls = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(1, 1);
            while !stop.load(Relaxed) {
                area.word(half + random.below(half)).fetch_add(1, Relaxed);
            }
        });
        let (mut calls, mut random) = (Calls::default(), Random::new(1, 2));
        let mut right = vec![0; CHUNK];
        let run = Length::begin(options, 0.4);
        while run.goes_on(calls.right + calls.wrong + calls.refused) {
            let from = random.below(length - CHUNK) as u64;
            let page = random.below(half - CHUNK / PAGE);
            // SAFETY: inside the area, of which no other thread uses this half.
            let buffer = unsafe {
                let start = (area.range().start + page * PAGE) as *mut u8;
                std::slice::from_raw_parts_mut(start, CHUNK)
            };
            match file.read_exact_at(buffer, from) {
                Err(_) => calls.refused += 1,
                Ok(()) => {
                    let known = file.read_exact_at(&mut right, from).is_ok();
                    let same = known && buffer == right.as_slice();
                    *if same { &mut calls.right } else { &mut calls.wrong } += 1;
                }
            }
            balancer.pass();
        }
        stop.store(true, Relaxed);
        calls
    });
    drop(region);
    Ok(calls)
}

/// Reads count for nothing, and the first write to each grain once: for the thread that wrote.
fn seen_are_first_writes() -> Result<(), String> {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let _region = armed(&balancer, &area, AccessMethod::Written)?;
    let sum: u64 = (0..area.pages()).map(|page| area.word(page).load(Relaxed)).sum();
    let after_reads = seen(&balancer);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..area.pages()).for_each(|page| area.word(page).store(8, Relaxed)));
    });
    let report = balancer.report();
    let of = report.regions.first().ok_or("no region")?;
    let found = (sum, after_reads, of.local + of.remote, of.active, of.unattributed);
    let grains = (area.pages() / GRAIN) as u64;
    if (found.0, found.1, found.2, found.4) != (7 * area.pages() as u64, 0, grains, 0) {
        return Err(format!(
            "sum, seen after reads, after writes, active, unattributed: {found:?}"
        ));
    }
    Ok(())
}

/// Checks that memory that is unmapped, replaced or moved away is detected, and that writers there
/// are not delayed.
fn vanishing() -> Result<(), String> {
    type Change = fn(&Area);
    let changes: [(&str, Change); 4] = [
        ("unmapped", |area| area.unmap(0..area.pages())),
        ("unmapped in part", |area| area.unmap(100..200)),
        ("replaced", |area| area.replace(0..area.pages())),
        ("replaced in part", |area| area.replace(100..200)),
    ];
    for (name, change) in changes {
        let balancer = balancer()?;
        let area = Area::new(BYTES)?;
        let region = armed(&balancer, &area, AccessMethod::Written)?;
        balancer.take_events();
        change(&area);
        if !name.starts_with("unmapped") {
            (0..area.pages()).for_each(|page| area.word(page).store(9, Relaxed));
        }
        pass_until_gone(&balancer, area.range().start).map_err(|why| format!("{name}: {why}"))?;
        drop(region);
        if name == "unmapped in part" {
            (0..100).for_each(|page| area.word(page).store(9, Relaxed));
        }
    }
    let (balancer, area) = (balancer()?, Area::new(BYTES)?);
    let region = armed(&balancer, &area, AccessMethod::Written)?;
    let start = area.range().start;
    let moved = area.moved()?;
    (0..moved.pages()).for_each(|page| _ = moved.word(page).fetch_add(1, Relaxed));
    pass_until_gone(&balancer, start)?;
    drop(region);
    let intact = (0..moved.pages()).all(|page| moved.word(page).load(Relaxed) == 8);
    if intact { Ok(()) } else { Err("moved memory has lost its contents".to_owned()) }
}

/// Replaces memory while threads wait there: they must continue, although the region is still
/// registered. Closing the descriptor would free no thread, see [`churn`].
fn replaced(options: &Options) -> Verdict {
    const WRITERS: usize = 4;
    let area = Area::new(64 * GRAIN * PAGE)?;
    (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
    let (stop, mut times, mut idle) = (AtomicBool::new(false), 0, Vec::new());
    let writes = [const { AtomicU64::new(0) }; WRITERS];
    std::thread::scope(|scope| {
        for (thread, writes) in (0..).zip(&writes) {
            let (area, stop) = (&area, &stop);
            scope.spawn(move || write_anywhere(area, stop, thread, writes));
        }
        let length = Length::begin(options, 0.5);
        let mut outcome = Ok(());
        while length.goes_on(ROUNDS_PER_REGION * times) && outcome.is_ok() {
            outcome = balancer().and_then(|balancer| {
                let region = register(&balancer, &area, AccessMethod::Written)?;
                if idle.len() < CHILDREN {
                    idle.push(Idle::start()?);
                }
                balancer.pass();
                area.replace(0..area.pages());
                times += 1;
                go_on(&writes)?;
                drop(region);
                Ok(())
            });
        }
        stop.store(true, Relaxed);
        outcome
    })?;
    Ok(format!("replaced={times}"))
}

/// Writes to random words of the area, and counts the writes.
fn write_anywhere(area: &Area, stop: &AtomicBool, thread: u64, writes: &AtomicU64) {
    let mut random = Random::new(1, thread);
    while !stop.load(Relaxed) {
        area.word(random.below(area.pages())).fetch_add(1, Relaxed);
        writes.fetch_add(1, Relaxed);
    }
}

/// Waits until every thread has written again.
fn go_on(writes: &[AtomicU64]) -> Result<(), String> {
    let before: Vec<u64> = writes.iter().map(|count| count.load(Relaxed)).collect();
    let end = Instant::now() + length::PATIENCE;
    for (count, before) in writes.iter().zip(before) {
        while count.load(Relaxed) == before {
            if Instant::now() > end {
                return Err("a thread waits forever".to_owned());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}

/// Pages whose contents the program has discarded are seen again once they are used again.
fn discarded() -> Result<(), String> {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let _region = armed(&balancer, &area, AccessMethod::Written)?;
    area.discard();
    (0..area.pages()).for_each(|page| area.word(page).store(9, Relaxed));
    let grains = (area.pages() / GRAIN) as u64;
    let before = seen(&balancer);
    let is_seen = becomes(|| {
        balancer.pass();
        (0..area.pages()).for_each(|page| area.word(page).store(9, Relaxed));
        seen(&balancer) >= grains
    });
    let right = before < grains && is_seen;
    if right { Ok(()) } else { Err(format!("discarded: seen {before}, then fewer than {grains}")) }
}

/// Checks that the monitor does not delay `setgid`, in which every thread of the process takes
/// part.
fn identity() -> Result<(), String> {
    let balancer = balancer()?;
    let area = Area::new(PAGE)?;
    let _region = register(&balancer, &area, AccessMethod::Written)?;
    // SAFETY: the group is the process's own.
    let done = unsafe { libc::setgid(libc::getgid()) };
    if done == 0 { Ok(()) } else { Err("setgid failed".to_owned()) }
}

/// Arms the allocator's own memory while threads allocate: the monitor must not need it.
fn heap(options: &Options) -> Verdict {
    // Allocate as much as the threads will need, so that it is mapped when the heap is registered.
    drop((0..512).map(|_| vec![1u8; 64 << 10]).collect::<Vec<_>>());
    // Allocators other than glibc's may have several heaps.
    let range = heap_range().filter(|_| cfg!(target_env = "gnu"));
    let Some(range) = range else { return Ok("heap_seen=skipped".to_owned()) };
    let balancer = balancer()?;
    let region = register_without_thread_memory(&balancer, range.clone())?;
    balancer.start().map_err(|error| error.to_string())?;
    let (stop, wrong) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..options.threads as u64 {
            let (stop, wrong) = (&stop, &wrong);
            scope.spawn(move || {
                let mut random = Random::new(2, thread);
                let mut kept: Vec<Vec<usize>> = Vec::new();
                while !stop.load(Relaxed) {
                    let length = 1 + random.below(3000);
                    kept.push(vec![length; length]);
                    if kept.len() > 50 {
                        let one = kept.swap_remove(random.below(50));
                        let intact = one.iter().all(|word| *word == one.len());
                        wrong.fetch_add(u64::from(!intact), Relaxed);
                    }
                }
            });
        }
        let length = Length::begin(options, 0.5);
        while length.goes_on(seen(&balancer)) {
            balancer.pass();
            while balancer.move_batch().more {}
        }
        stop.store(true, Relaxed);
    });
    let seen = seen(&balancer);
    drop(region);
    let figures = format!("heap_mib={} heap_seen={seen}", range.len() >> 20);
    if seen > 0 && wrong.load(Relaxed) == 0 { Ok(figures) } else { Err(figures) }
}

/// Registers the heap without thread memory: the heap of a static program begins with its first
/// thread's thread-local storage, which is refused.
fn register_without_thread_memory(
    balancer: &Balancer,
    mut range: std::ops::Range<usize>,
) -> Result<Region, String> {
    loop {
        let start = std::ptr::with_exposed_provenance(range.start);
        match balancer.register_written(start, range.len()) {
            Err(RegisterError::ThreadMemory { address }) if range.contains(&(address + 4096)) => {
                range.start = (address + 1).next_multiple_of(4096);
            }
            registered => return registered.map_err(|error| error.to_string()),
        }
    }
}

/// Makes all threads allocate from the one heap that `/proc/self/maps` names, and keeps it large.
#[cfg(target_env = "gnu")]
fn one_heap() {
    // SAFETY: numbers only.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_MMAP_THRESHOLD, i32::MAX);
    }
}

#[cfg(not(target_env = "gnu"))]
fn one_heap() {}

fn heap_range() -> Option<std::ops::Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    addresses(maps.lines().find(|line| line.ends_with("[heap]"))?)
}

/// Returns the addresses of a mapping, by its line.
fn addresses(line: &str) -> Option<std::ops::Range<usize>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// Checks that huge pages are armed whole and stay whole, by each access method.
fn huge() -> Verdict {
    let (written, trapped) = (huge_by(AccessMethod::Written)?, huge_by(AccessMethod::Trapped)?);
    Ok(format!("{written} {trapped}"))
}

fn huge_by(access: AccessMethod) -> Verdict {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    area.prefer_huge_pages();
    (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
    // Before it is armed: Linux 6.1 does not count memory without rights.
    let before = huge_kib()?;
    let _region = armed(&balancer, &area, access)?;
    (0..area.pages()).for_each(|page| _ = area.word(page).fetch_add(1, Relaxed));
    let intact = (0..area.pages()).all(|page| area.word(page).load(Relaxed) == 8);
    let (seen, after) = (seen(&balancer), huge_kib()?);
    let range = area.range();
    let huge = (range.end - 1) / HUGE - range.start / HUGE + 1;
    let grains = if before > 0 { huge } else { area.pages() / GRAIN } as u64;
    let figures = format!("huge_kib_{access}={before} afterwards={after}");
    let right = intact && seen == grains && after == before;
    if right { Ok(figures) } else { Err(format!("{figures}: seen {seen} of {grains}, {intact}")) }
}

/// Returns how much memory of the process consists of huge pages.
fn huge_kib() -> Result<u64, String> {
    let file = "/proc/self/smaps_rollup";
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("{file}: no AnonHugePages"))
}

/// Pages that are moved while they are armed stay armed. Takes real nodes. Few pages: Linux 6.1
/// interrupts the other CPUs for every one, which takes emulated ones 10 ms.
fn migrated() -> Verdict {
    const BYTES: usize = 1 << 20;
    /// `MPOL_MF_MOVE` of `linux/mempolicy.h`.
    const MOVE: libc::c_int = 2;
    let real = nodes();
    let [(_, cpus), .., (target, _)] = real.as_slice() else {
        return Ok("moved_while_armed=skipped".to_owned());
    };
    let balancer = balancer()?;
    let area = Area::on(cpus, BYTES, Pages::Small)?;
    let _region = armed(&balancer, &area, AccessMethod::Written)?;
    let pages: Vec<usize> = area.range().step_by(PAGE).collect();
    let (targets, mut outcomes) = (vec![*target as i32; pages.len()], vec![-1; pages.len()]);
    // SAFETY: all arrays have as many elements; the pages are the area's own.
    let done = unsafe {
        let (from, to, result) = (pages.as_ptr(), targets.as_ptr(), outcomes.as_mut_ptr());
        libc::syscall(libc::SYS_move_pages, 0, pages.len(), from, to, result, MOVE)
    };
    (0..area.pages()).for_each(|page| _ = area.word(page).fetch_add(1, Relaxed));
    let intact = (0..area.pages()).all(|page| area.word(page).load(Relaxed) == 8);
    let (seen, grains) = (seen(&balancer), (area.pages() / GRAIN) as u64);
    let figures = format!("moved_while_armed={} seen_then={seen} of {grains}", pages.len());
    let right = done == 0 && outcomes == targets && intact && seen == grains;
    if right { Ok(figures) } else { Err(format!("{figures}: {done}, intact={intact}")) }
}

/// Measures the cost of arming a page, and of a detected write.
fn cost() -> Verdict {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let _region = armed(&balancer, &area, AccessMethod::Written)?;
    let report = balancer.report();
    let of = report.regions.first().ok_or("no region")?;
    let arming = of.scan_time.as_secs_f64() * 1e9 / of.scanned.max(1) as f64;
    let grains = area.pages() / GRAIN;
    // The better of two rounds, since others use the machine too.
    let rounds = (0..2).map(|_| {
        let (before, began) = (seen(&balancer), Instant::now());
        (0..grains).for_each(|grain| area.word(grain * GRAIN).store(8, Relaxed));
        let took = began.elapsed().as_secs_f64() * 1e9;
        let caught = seen(&balancer) - before;
        arm_again(&balancer);
        // Not all of them may have been armed again.
        took / caught.max(1) as f64
    });
    let write = rounds.fold(f64::MAX, f64::min);
    Ok(format!("ns_per_armed_page={arming:.0} ns_per_caught_write={write:.0}"))
}

/// Regions are unregistered, and balancers end, while threads wait for them. Some children of
/// `fork` have descriptors too, so that closing these frees no thread.
fn churn(options: &Options) -> Verdict {
    let area = Area::new(64 * GRAIN * PAGE)?;
    (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
    let (stop, mut regions, mut idle) = (AtomicBool::new(false), 0, Vec::new());
    let writes: Vec<AtomicU64> = (0..options.threads).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for (thread, writes) in (0..).zip(&writes) {
            let (area, stop) = (&area, &stop);
            scope.spawn(move || write_anywhere(area, stop, thread, writes));
        }
        let length = Length::begin(options, 0.5);
        let mut outcome = Ok(());
        while length.goes_on(ROUNDS_PER_REGION * regions) && outcome.is_ok() {
            // The first sequence of a balancer has no delay.
            outcome = balancer().and_then(|balancer| {
                let region = register(&balancer, &area, AccessMethod::Written)?;
                if idle.len() < CHILDREN {
                    idle.push(Idle::start()?);
                }
                balancer.pass();
                if regions % 2 == 0 {
                    drop(balancer);
                    drop(region);
                } else {
                    drop(region);
                    drop(balancer);
                }
                regions += 1;
                go_on(&writes)
            });
        }
        stop.store(true, Relaxed);
        outcome
    })?;
    Ok(format!("regions={regions}"))
}

/// A child that does nothing; killed when dropped.
struct Idle(libc::pid_t);

impl Idle {
    fn start() -> Result<Idle, String> {
        // SAFETY: the child does nothing but wait.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: takes nothing.
                unsafe { libc::pause() };
            },
            child if child > 0 => Ok(Idle(child)),
            _ => Err("no child".to_owned()),
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        // SAFETY: the child is this value's own and was not waited for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// Threads use the region while it is armed again and again, are interrupted by handlers that use
/// it, end, fork, and share it with children of `vfork`.
fn stress(options: &Options) -> Verdict {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let mut region = Some(register(&balancer, &area, AccessMethod::Written)?);
    let last = area.pages() - 1;
    // SAFETY: the area outlives the threads.
    unsafe { handler::uses(area.word(last)) };
    let (stop, written, seed) = (AtomicBool::new(false), AtomicU64::new(0), seed());
    let (mut rounds, mut children, mut sharers, mut caught, mut registered) = (0, 0, 0, 0, 1);
    let write = |random: &mut Random| {
        area.word(random.below(last)).fetch_add(1, Relaxed);
        written.fetch_add(1, Relaxed);
    };
    let result = std::thread::scope(|scope| {
        let mut numbers = Vec::new();
        for thread in 0..options.threads as u64 {
            let (stop, write) = (&stop, &write);
            let (tell, told) = std::sync::mpsc::channel();
            scope.spawn(move || {
                let _ = tell.send(pinning::thread_id());
                let mut random = Random::new(seed, thread);
                while !stop.load(Relaxed) {
                    write(&mut random);
                }
            });
            numbers.extend(told.recv());
        }
        balancer.start().map_err(|error| error.to_string())?;
        let length = Length::begin(options, 1.0);
        let mut outcome = Ok(());
        while length.goes_on(rounds) && outcome.is_ok() {
            balancer.pass();
            while balancer.move_batch().more {}
            for &thread in &numbers {
                pinning::signal(thread, libc::SIGUSR1);
            }
            // Threads that write once and are gone when they are looked up.
            let (round, write) = (rounds, &write);
            scope.spawn(move || write(&mut Random::new(seed, round)));
            rounds += 1;
            if rounds % 40 == 0 {
                // Unregistered while its pages are armed and used, and registered again.
                caught += seen(&balancer);
                drop(region.take());
                registered += 1;
                match register(&balancer, &area, AccessMethod::Written) {
                    Ok(again) => region = Some(again),
                    Err(error) => outcome = Err(error),
                }
            }
            if rounds % 30 == 1 {
                children += 1;
                outcome = outcome.and(in_child(&area, &balancer));
                sharers += 1;
                outcome = outcome.and(share(&area, &written));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Relaxed);
        outcome
    });
    result?;
    balancer.stop();
    handler::uses_nothing();
    caught += seen(&balancer);
    let of = balancer.report().regions.into_iter().next().ok_or("no region")?;
    let RegionReport { failed, unattributed, gone, .. } = of;
    drop(region);
    let total: u64 = (0..last).map(|page| area.word(page).load(Relaxed)).sum();
    let (written, signals) = (written.load(Relaxed), handler::uses_made());
    let in_handlers = area.word(last).load(Relaxed);
    let figures = format!(
        "written={written} lost={} signals={signals} rounds={rounds} children={children} \
         sharers={sharers} registered={registered} caught={caught} unattributed={unattributed} \
         gone={gone} failed={failed:?}",
        written as i64 - total as i64,
    );
    let unharmed = total == written && in_handlers == signals && !gone;
    if unharmed && caught > 0 && children > 0 { Ok(figures) } else { Err(figures) }
}

/// Checks that a child can use and write all of the memory, whatever was armed in its parent, and
/// that its balancer leaves the memory alone; a balancer of its own works.
fn in_child(area: &Area, balancer: &Balancer) -> Result<(), String> {
    let ended = ends_with(|| {
        let all = 0..area.pages();
        let before: u64 = all.clone().map(|page| area.word(page).load(Relaxed)).sum();
        all.clone().for_each(|page| _ = area.word(page).fetch_add(1, Relaxed));
        let after: u64 = all.map(|page| area.word(page).load(Relaxed)).sum();
        let pass = balancer.pass();
        let of_the_parent = balancer.register_written(area.start(), PAGE);
        if pass.armed != 0 || after != before + area.pages() as u64 || of_the_parent.is_ok() {
            give_up();
        }
        let Ok(own) = self::balancer() else { give_up() };
        let Ok(region) = armed(&own, area, AccessMethod::Written) else { give_up() };
        (0..area.pages()).for_each(|page| _ = area.word(page).fetch_add(1, Relaxed));
        if seen(&own) != (area.pages() / GRAIN) as u64 {
            give_up();
        }
        drop((region, own));
    })?;
    if ended == UNHARMED { Ok(()) } else { Err(format!("a child ended with {ended}")) }
}

/// Writes to the memory from a process that shares it, as children of `vfork` do.
fn share(area: &Area, written: &AtomicU64) -> Result<(), String> {
    extern "C" fn write(word: *mut libc::c_void) -> i32 {
        // SAFETY: the word of a page, which outlives this process.
        unsafe { &*word.cast::<AtomicU64>() }.fetch_add(1, Relaxed);
        UNHARMED
    }
    let mut stack = vec![0u128; 1 << 12];
    let place = area.word(area.pages() / 2);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack and the word stay until the process, for which this thread waits, has
    // ended.
    let child = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        libc::clone(write, top, flags, std::ptr::from_ref(place).cast_mut().cast())
    };
    let mut status = 0;
    // SAFETY: waits for the child above.
    if child < 0 || unsafe { libc::waitpid(child, &mut status, 0) } != child || status != UNHARMED {
        return Err(format!("a process that shares the memory ended with {status}"));
    }
    written.fetch_add(1, Relaxed);
    Ok(())
}
