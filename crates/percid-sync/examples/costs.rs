//! The costs of the frequent operations of percid-sync, beside `Counter::add` of the same source and
//! beside what programs use today.
//!
//! Usage: `costs [THREADS [ROUNDS]]`. Each round measures every operation once, one after the other,
//! on all threads at the same time; the ratios are medians over the rounds of the time to that of
//! the addition in the same round. So noise that lasts longer than a round cancels out.

use std::hint::black_box;
use std::sync::atomic::{
    AtomicI64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc as StdArc, Barrier, Mutex, RwLock as StdRwLock};
use std::thread;
use std::time::Instant;

use arc_swap::ArcSwap;
use crossbeam_utils::sync::ShardedLock;
use parking_lot::RwLock as ParkingLotRwLock;
use percid::{Counter, Source};
use percid_sync::{Budget, Domain, Owner, RcuCell, ReadBuffer, RwLock};

/// Operations in a run.
const OPERATIONS: u32 = 50_000;
const DEFAULT_ROUNDS: usize = 300;

/// A name, and a function that does so many operations.
type Subject = (String, Box<dyn Fn(u32) + Sync>);

fn subject(name: impl Into<String>, operation: impl Fn() + Sync + 'static) -> Subject {
    let run = move |operations| (0..operations).for_each(|_| operation());
    (name.into(), Box::new(run))
}

/// Returns the operations of a source, the addition first.
fn own(source: Source) -> Option<Vec<Subject>> {
    let counter = Counter::with_source(source).ok()?;
    let lock = RwLock::with_source(source, 5).ok()?;
    let domain: &'static Domain = Box::leak(Box::new(Domain::with_source(source).ok()?));
    let cell = RcuCell::new(domain, 5);
    let owner = Owner::with_source(source, 5).ok()?;
    let shared = owner.share();
    let budget = Budget::with_source(source, 1 << 40, 1 << 20).ok()?;
    let charged = Budget::with_source(source, 1 << 50, 1 << 30).ok()?;
    let approximate = Budget::with_source(source, 1 << 40, 1 << 20).ok()?;
    let buffer = ReadBuffer::<u64>::with_source(source).ok()?;
    let name = |operation: &str| format!("{source}: {operation}");
    let drained = move |operations: u32| {
        for record in 0..operations {
            black_box(buffer.record(record.into()));
            if record % 1024 == 0 {
                buffer.drain(|record| _ = black_box(record));
            }
        }
    };
    Some(vec![
        subject(name("Counter::add"), move || counter.add(1)),
        subject(name("RwLock read"), move || _ = black_box(*lock.read().expect("not poisoned"))),
        subject(name("Domain::read"), move || drop(domain.read())),
        subject(name("RcuCell load"), move || _ = black_box(*cell.load(&domain.read()))),
        subject(name("Arc clone and drop"), move || {
            // The owner lives, so that references are counted by ID.
            _ = (&owner, shared.clone());
        }),
        subject(name("Budget::try_charge"), move || _ = black_box(charged.try_charge(1))),
        subject(name("try_charge and release"), move || {
            budget.try_charge(1).expect("there is room");
            budget.release(1);
        }),
        subject(name("approximate"), move || _ = black_box(approximate.approximate())),
        (name("ReadBuffer::record"), Box::new(drained)),
    ])
}

/// Returns the operations that programs use today.
fn others() -> Vec<Subject> {
    let (std, parking_lot) = (StdRwLock::new(5), ParkingLotRwLock::new(5));
    let (sharded, swap) = (ShardedLock::new(5), ArcSwap::from_pointee(5));
    let (arc, budget, atomic) = (StdArc::new(5), AtomicI64::new(1 << 40), AtomicI64::new(0));
    vec![
        subject("std RwLock read", move || _ = black_box(*std.read().expect("not poisoned"))),
        subject("parking_lot RwLock read", move || _ = black_box(*parking_lot.read())),
        subject("ShardedLock read", move || _ = black_box(*sharded.read().expect("not poisoned"))),
        subject("crossbeam-epoch pin", || drop(black_box(crossbeam_epoch::pin()))),
        subject("ArcSwap load", move || _ = black_box(**swap.load())),
        subject("std Arc clone and drop", move || drop(black_box(StdArc::clone(&arc)))),
        subject("shared atomic budget", move || {
            let charge = |left| (left > 0).then(|| left - 1);
            _ = black_box(budget.fetch_update(Relaxed, Relaxed, charge));
        }),
        subject("plain load", move || _ = black_box(atomic.load(Relaxed))),
    ]
}

/// Measures all operations. Returns the times of the rounds for each, in nanoseconds.
fn measure(subjects: &[Subject], threads: usize, rounds: usize) -> Vec<Vec<f64>> {
    let times = Mutex::new(vec![vec![0.0; rounds]; subjects.len()]);
    let (barrier, met) = (Barrier::new(threads), AtomicI64::new(0));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for round in 0..rounds {
                    for (index, (_, run)) in subjects.iter().enumerate() {
                        barrier.wait();
                        // Threads wake one after the other.
                        met.fetch_add(1, SeqCst);
                        while met.load(SeqCst) % threads as i64 != 0 {
                            std::hint::spin_loop();
                        }
                        let begun = Instant::now();
                        run(OPERATIONS);
                        let time = begun.elapsed().as_secs_f64() * 1e9 / f64::from(OPERATIONS);
                        let mut times = times.lock().expect("no panic");
                        times[index][round] += time / threads as f64;
                    }
                }
            });
        }
    });
    times.into_inner().expect("no panic")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|it| it.parse().expect("a number"));
    let (threads, rounds) =
        (arguments.next().unwrap_or(1), arguments.next().unwrap_or(DEFAULT_ROUNDS));
    let mut subjects: Vec<Subject> = Vec::new();
    let mut sources = Vec::new();
    for source in Source::ALL {
        let Some(own) = own(*source) else { continue };
        sources.push((*source, subjects.len()));
        subjects.extend(own);
    }
    subjects.extend(others());
    let times = measure(&subjects, threads, rounds);
    print!("{:32} {:>8}", format!("{threads} threads, {rounds} rounds"), "ns");
    sources.iter().for_each(|(source, _)| print!(" {:>10}", format!("/ {source}")));
    println!();
    for ((name, _), own) in subjects.iter().zip(&times) {
        print!("{name:32} {:8.2}", median(own.clone()));
        for (_, addition) in &sources {
            let ratios = own.iter().zip(&times[*addition]).map(|(time, base)| time / base);
            print!(" {:10.2}", median(ratios.collect()));
        }
        println!();
    }
    let sizes = [size_of::<RwLock<()>>(), size_of::<Domain>(), size_of::<Budget>()];
    println!(
        "bytes without those of IDs: RwLock {}, Domain {}, Budget {}",
        sizes[0], sizes[1], sizes[2]
    );
}
