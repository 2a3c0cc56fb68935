//! Trapped memory under everything that may go wrong: many threads at once, signal handlers that
//! use it, fork, system calls, memory that disappears, accesses that are crashes. On pretended
//! nodes, so anywhere.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use percid_numa::{AccessMethod, Balancer, Event, RegisterError};

use super::area::{Area, PAGE};
use super::armed::{
    BYTES, CROWD, UNHARMED, arm_again, arm_all, armed, balancer, by_default, ends_with, seen,
};
use super::follow::register;
use super::stages::Stages;
use super::{handler, hazards};
use crate::length::{Length, becomes};
use crate::options::Options;
use crate::random::{Random, seed};
use crate::verdict::Verdict;
use crate::{pinning, sandbox};

/// Pages of a grain.
const GRAIN: usize = 16;
/// Rounds of the stress to every region of the churn, which takes longer.
pub(super) const ROUNDS_PER_REGION: u64 = 5;
/// Exit status of a child in which the handler before percid's was called.
const HANDLED: i32 = 42;

pub(crate) fn run(options: &Options) -> Verdict {
    percid_numa::testing::pretend_nodes(2);
    // First, because the handler before the first trapped region matters.
    let mut stages = Stages::default();
    stages.run("crashes", crashes)?;
    let mut hazards = 0;
    for (name, hazard) in hazards::ALL {
        stages.silent(name, || hazards::in_child_of_its_own(hazard))?;
        hazards += 1;
    }
    stages.figures.push(format!("hazards={hazards}"));
    stages.run("system calls", system_calls)?;
    stages.silent("vanishing", vanishing)?;
    stages.silent("crowding", crowding)?;
    stages.silent("refusals", refusals)?;
    stages.run("cost", cost)?;
    stages.run("churn", || churn(options))?;
    stages.run("stress", || stress(options))?;
    Ok(stages.figures.join(" "))
}

/// Crashes stay crashes, with and without a handler of the program's own; faults at armed pages do
/// not.
fn crashes() -> Verdict {
    let read_only = || {
        let Ok(balancer) = balancer() else { return };
        let Ok(area) = Area::new(BYTES) else { return };
        (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
        area.protect(libc::PROT_READ);
        let Ok(_region) = register(&balancer, &area, AccessMethod::Trapped) else { return };
        if arm_all(&balancer, &area).is_err() || area.word(1).load(Relaxed) != 7 {
            return;
        }
        area.word(1).store(8, Relaxed);
    };
    let nothing = || {
        let Ok(balancer) = balancer() else { return };
        let Ok(area) = Area::new(BYTES) else { return };
        let Ok(_region) = armed(&balancer, &area, AccessMethod::Trapped) else { return };
        // SAFETY: none: this is meant to fault.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(16).write_volatile(1) };
    };
    let outside = || {
        let (Ok(balancer), Ok(other)) = (balancer(), Area::new(BYTES)) else { return };
        let Ok(area) = Area::new(BYTES) else { return };
        let Ok(_region) = armed(&balancer, &area, AccessMethod::Trapped) else { return };
        other.protect(libc::PROT_NONE);
        other.word(3).store(1, Relaxed);
    };
    let fine = || {
        let Ok(balancer) = balancer() else { pause_forever() };
        let Ok(area) = Area::new(BYTES) else { pause_forever() };
        let Ok(_region) = armed(&balancer, &area, AccessMethod::Trapped) else { pause_forever() };
        (0..area.pages()).for_each(|page| area.word(page).store(8, Relaxed));
    };
    let bodies: [(&str, &dyn Fn(), bool); 4] = [
        ("write to read-only memory", &read_only, true),
        ("write to nothing", &nothing, true),
        ("write to forbidden memory", &outside, true),
        ("write to armed memory", &fine, false),
    ];
    for (name, body, crash) in bodies {
        for (handler, expected) in [(None, -libc::SIGSEGV), (Some(()), HANDLED)] {
            let ended = ends_with(|| {
                match handler {
                    Some(()) => pinning::handle(libc::SIGSEGV, exit_handled),
                    None => by_default(),
                }
                body();
            })?;
            let expected = if crash { expected } else { UNHARMED };
            if ended != expected {
                return Err(format!("{name}: ended with {ended}, expected {expected}"));
            }
        }
    }
    Ok(format!("crashes={}", 2 * bodies.len()))
}

extern "C" fn exit_handled(_: i32) {
    // SAFETY: async-signal-safe.
    unsafe { libc::_exit(HANDLED) };
}

fn pause_forever() -> ! {
    // SAFETY: ends the child with a status that is none of a success.
    unsafe { libc::_exit(1) }
}

/// Checks that system calls fail at armed pages, and not if the part is excluded.
fn system_calls() -> Verdict {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let region = armed(&balancer, &area, AccessMethod::Trapped)?;
    let read = |page: usize| {
        let mut zero = std::fs::File::open("/dev/zero").expect("/dev/zero");
        // SAFETY: inside the area, of which there is no other reference.
        let buffer = unsafe {
            std::slice::from_raw_parts_mut((area.range().start + page * PAGE) as *mut u8, PAGE)
        };
        zero.read(buffer).map_err(|error| error.raw_os_error())
    };
    let refused = read(40);
    let part = 40 * PAGE..41 * PAGE;
    let exclusion = region.exclude(part.clone());
    let excluded = read(40);
    balancer.pass();
    balancer.pass();
    let still = read(40);
    drop(exclusion);
    let again = once_armed(&balancer, || read(40));
    let figures = format!("armed_read={refused:?} excluded={excluded:?},{still:?} after={again:?}");
    let right = refused == Err(Some(libc::EFAULT))
        && (excluded, still) == (Ok(PAGE), Ok(PAGE))
        && again == Err(Some(libc::EFAULT));
    if right { Ok("refused_calls=2".to_owned()) } else { Err(figures) }
}

/// Returns the result of a call that is refused, as it must be when its memory is armed again.
fn once_armed<T, E>(balancer: &Balancer, call: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let mut said = call();
    becomes(|| {
        balancer.pass();
        said = call();
        said.is_err()
    });
    said
}

/// Checks memory that disappears during balancing, and that bad ranges are refused.
fn vanishing() -> Result<(), String> {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let region = register(&balancer, &area, AccessMethod::Reported)?;
    let inner = area.start().wrapping_add(PAGE);
    let refused = [
        balancer.register(inner, PAGE).err(),
        balancer.register(inner.wrapping_add(1), PAGE).err(),
        balancer.register(inner, 0).err(),
        balancer.register(std::ptr::null(), PAGE).err(),
    ];
    let start = area.range().start;
    let expected = [
        RegisterError::Overlaps { region: start },
        RegisterError::NotAligned { page: PAGE },
        RegisterError::Empty,
        RegisterError::NotMapped { address: 0 },
    ];
    if refused != expected.map(Some) {
        return Err(format!("refused with {refused:?}"));
    }
    (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
    balancer.pass();
    balancer.take_events();
    drop(area);
    region.touch(0);
    balancer.pass();
    while balancer.move_batch().more {}
    let events = balancer.take_events();
    let gone = events.contains(&Event::Gone { region: start });
    if gone { Ok(()) } else { Err(format!("not noticed: {events:?}")) }
}

/// Checks a grain that cannot be disarmed alone because the process can have no more mappings: then
/// all of them are, and the next passes arm them again.
fn crowding() -> Result<(), String> {
    let ended = ends_with(|| {
        let Ok(balancer) = balancer() else { pause_forever() };
        let (Ok(area), Ok(crowd)) = (Area::new(BYTES), Area::new(CROWD)) else {
            eprintln!("no memory for the crowd");
            pause_forever()
        };
        let Ok(_region) = armed(&balancer, &area, AccessMethod::Trapped) else { pause_forever() };
        // Every other page with other rights, until the limit of mappings is reached.
        let crowded = (0..crowd.pages()).step_by(2).any(|page| !crowd.protect_page(page));
        let middle = area.pages() / 2;
        area.word(middle).store(8, Relaxed);
        area.word(middle + 64).store(8, Relaxed);
        drop(crowd);
        let report = balancer.report();
        let times = report.regions.first().map_or(0, |region| region.disarmed_whole);
        let again = arm_again(&balancer);
        if !crowded || times != 1 || again == 0 {
            eprintln!("crowded={crowded} disarmed_whole={times} armed_again={again}");
            pause_forever();
        }
    })?;
    if ended == UNHARMED { Ok(()) } else { Err(format!("too many mappings: ended with {ended}")) }
}

/// Checks that refusals of the kernel are counted, and nothing else happens.
fn refusals() -> Result<(), String> {
    for (call, errno) in [
        (libc::SYS_move_pages, libc::EPERM),
        (libc::SYS_move_pages, libc::ENOMEM),
        (libc::SYS_mprotect, libc::ENOMEM),
        (libc::SYS_get_mempolicy, libc::EPERM),
    ] {
        let ended = ends_with(|| {
            let (Ok(balancer), Ok(area)) = (balancer(), Area::new(BYTES)) else { pause_forever() };
            (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
            let Ok(_region) = register(&balancer, &area, AccessMethod::Trapped) else {
                pause_forever()
            };
            if sandbox::install(&[call], errno).is_err() {
                pause_forever();
            }
            let armed: u64 = (0..4).map(|_| balancer.pass().armed).sum();
            let matters = call != libc::SYS_get_mempolicy;
            let report = balancer.report();
            let failed = report.regions.first().map(|region| region.failed.clone());
            let counted = failed.unwrap_or_default().iter().any(|(number, _)| *number == errno);
            if (armed == 0, counted) != (matters, matters) {
                pause_forever();
            }
            if armed == 0 {
                // If anything was armed, it could not be disarmed.
                (0..area.pages()).for_each(|page| area.word(page).store(8, Relaxed));
            }
        })?;
        if ended != UNHARMED {
            return Err(format!("system call {call} refused with {errno}: ended with {ended}"));
        }
    }
    Ok(())
}

/// Measures the cost of arming a page, and of the first access to an armed grain.
fn cost() -> Verdict {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let _region = armed(&balancer, &area, AccessMethod::Trapped)?;
    let report = balancer.report();
    let of = report.regions.first().ok_or("no region")?;
    let arming = of.scan_time.as_secs_f64() * 1e9 / of.scanned.max(1) as f64;
    let began = Instant::now();
    let grains = area.pages() / GRAIN;
    (0..grains).for_each(|grain| area.word(grain * GRAIN).store(8, Relaxed));
    let fault = began.elapsed().as_secs_f64() * 1e9 / grains as f64;
    Ok(format!("ns_per_armed_page={arming:.0} ns_per_fault={fault:.0}"))
}

/// Regions are unregistered while threads fault in them: such a fault finds no region any more, and
/// is not a crash.
fn churn(options: &Options) -> Verdict {
    let area = Area::new(64 * GRAIN * PAGE)?;
    (0..area.pages()).for_each(|page| area.word(page).store(7, Relaxed));
    let (stop, mut regions) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        for thread in 0..options.threads as u64 {
            let (area, stop) = (&area, &stop);
            scope.spawn(move || {
                let mut random = Random::new(1, thread);
                // Half of them always at one address: see `trap.rs` of percid-numa on faults that
                // come again there.
                let place = |page| if thread % 2 == 0 { 0 } else { page };
                while !stop.load(Relaxed) {
                    area.word(place(random.below(area.pages()))).fetch_add(1, Relaxed);
                }
            });
        }
        let length = Length::begin(options, 0.5);
        let mut outcome = Ok(());
        while length.goes_on(ROUNDS_PER_REGION * regions) && outcome.is_ok() {
            // The first sequence of a balancer has no delay.
            outcome = balancer().and_then(|balancer| {
                let region = register(&balancer, &area, AccessMethod::Trapped)?;
                balancer.pass();
                drop(region);
                regions += 1;
                Ok(())
            });
        }
        stop.store(true, Relaxed);
        outcome
    })?;
    Ok(format!("regions={regions}"))
}

/// Threads use the region while it is armed again and again, are interrupted by handlers that use
/// it, and fork.
fn stress(options: &Options) -> Verdict {
    let balancer = balancer()?;
    let area = Area::new(BYTES)?;
    let mut region = Some(register(&balancer, &area, AccessMethod::Trapped)?);
    let last = area.pages() - 1;
    // SAFETY: the area outlives the threads.
    unsafe { handler::uses(area.word(last)) };
    let (stop, written, seed) = (AtomicBool::new(false), AtomicU64::new(0), seed());
    let (mut rounds, mut passes, mut children, mut trapped, mut registered) = (0, 0, 0, 0, 1);
    let result = std::thread::scope(|scope| {
        let mut numbers = Vec::new();
        for thread in 0..options.threads as u64 {
            let (area, stop, written) = (&area, &stop, &written);
            let (tell, told) = std::sync::mpsc::channel();
            scope.spawn(move || {
                let _ = tell.send(pinning::thread_id());
                let mut random = Random::new(seed, thread);
                while !stop.load(Relaxed) {
                    area.word(random.below(last)).fetch_add(1, Relaxed);
                    written.fetch_add(1, Relaxed);
                }
            });
            numbers.extend(told.recv());
        }
        balancer.start().map_err(|error| error.to_string())?;
        let length = Length::begin(options, 1.0);
        let mut outcome = Ok(());
        while length.goes_on(rounds) && outcome.is_ok() {
            passes += u64::from(balancer.pass().armed > 0);
            while balancer.move_batch().more {}
            for &thread in &numbers {
                pinning::signal(thread, libc::SIGUSR1);
            }
            drop(region.as_ref().map(|region| region.exclude(0..BYTES / 2)));
            rounds += 1;
            if rounds % 40 == 0 {
                // Unregistered while its pages are armed and used, and registered again.
                trapped += seen(&balancer);
                drop(region.take());
                registered += 1;
                match register(&balancer, &area, AccessMethod::Trapped) {
                    Ok(again) => region = Some(again),
                    Err(error) => outcome = Err(error),
                }
            }
            if rounds % 30 == 1 {
                children += 1;
                outcome = in_child(&area, &balancer);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Relaxed);
        outcome
    });
    result?;
    balancer.stop();
    handler::uses_nothing();
    trapped += seen(&balancer);
    let failed = balancer.report().regions.first().map(|region| region.failed.clone());
    drop(region);
    let total: u64 = (0..last).map(|page| area.word(page).load(Relaxed)).sum();
    let (written, signals) = (written.load(Relaxed), handler::uses_made());
    let in_handlers = area.word(last).load(Relaxed);
    let figures = format!(
        "written={written} lost={} signals={signals} passes={passes} children={children} \
         registered={registered} trapped={trapped} failed={:?}",
        written - total,
        failed.unwrap_or_default(),
    );
    let right = total == written && in_handlers == signals && trapped > 0 && children > 0;
    if right { Ok(figures) } else { Err(figures) }
}

/// Checks that a child can use all of the memory, whatever was armed in its parent, and that its
/// balancer leaves the memory alone.
fn in_child(area: &Area, balancer: &Balancer) -> Result<(), String> {
    let ended = ends_with(|| {
        let sum = |_: u32| (0..area.pages()).map(|page| area.word(page).load(Relaxed)).sum::<u64>();
        let before = sum(0);
        let pass = balancer.pass();
        if pass.armed != 0 || sum(1) != before || balancer.register(area.start(), PAGE).is_ok() {
            // SAFETY: ends the child.
            unsafe { libc::_exit(3) };
        }
    })?;
    if ended == UNHARMED { Ok(()) } else { Err(format!("a child ended with {ended}")) }
}
