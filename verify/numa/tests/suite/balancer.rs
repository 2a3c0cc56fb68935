//! A whole balancer, driven by a random script of registrations, accesses and passes: the pure walk
//! of `percid_rules`, fed with the same script, must make the same decisions, and count the same
//! reasons for every region.
//!
//! On two pretended nodes. Time plays no role: the scan delay is a nanosecond, so every visit finds
//! it over.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use percid_numa::{Balancer, Event, Region, Rules, Settings};
use percid_rules::scan;
use percid_rules::scan::SkipReason;
use percid_sim::random::Random;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;
const STEPS: usize = 600;

/// A registered region with the memory behind it.
struct Owned {
    region: Region,
    memory: Vec<u8>,
    /// `true` if a page of it is armed.
    armed: bool,
}

impl Owned {
    fn new(balancer: &Balancer, bytes: usize) -> Owned {
        let memory = vec![1u8; bytes + PAGE];
        let start = memory.as_ptr().map_addr(|address| address.next_multiple_of(PAGE));
        let region = balancer.register(start, bytes).expect("private memory");
        Owned { region, memory, armed: false }
    }

    /// Uses all pages in the calling thread. Returns `true` if that is detected.
    fn use_all(&mut self) -> bool {
        (0..self.memory.len() - PAGE).step_by(PAGE).for_each(|offset| self.region.touch(offset));
        std::mem::take(&mut self.armed)
    }
}

/// Effects of the pure scan; as many pages change as the balancer reported.
struct Log {
    changed: VecDeque<u64>,
    done: Vec<(usize, String)>,
    noted: Vec<(u64, &'static str)>,
}

impl scan::Effects for Log {
    fn arm(&mut self, region: u64, part: Range<u64>) -> u64 {
        self.done.push((region as usize, format!("{part:?}")));
        self.changed.pop_front().unwrap_or(0)
    }

    fn note(&mut self, region: u64, reason: SkipReason) {
        self.done.push((region as usize, reason.name().to_owned()));
        self.noted.push((region, reason.name()));
    }
}

/// The balancer and the pure walk.
struct Pair {
    balancer: Balancer,
    settings: Settings,
    owned: Vec<Owned>,
    scan: scan::Scan,
    rules: Rules,
    /// The counts of reasons by region, for regions that are registered; and for all regions ever.
    reasons: BTreeMap<(u64, &'static str), u64>,
    all_reasons: BTreeMap<&'static str, u64>,
    passes: u64,
}

impl Pair {
    fn new(ours: Rules, pure: Rules) -> Pair {
        let scan_size = MIB as u64;
        let settings =
            Settings { scan_delay: Duration::from_nanos(1), scan_size, ..Settings::default() };
        Pair {
            balancer: Balancer::builder()
                .settings(settings)
                .rules(ours)
                .build()
                .expect("good settings"),
            settings,
            owned: Vec::new(),
            scan: scan::Scan::new(),
            rules: pure,
            reasons: BTreeMap::new(),
            all_reasons: BTreeMap::new(),
            passes: 0,
        }
    }

    fn map(&mut self, bytes: usize) {
        let owned = Owned::new(&self.balancer, bytes);
        let Range { start, end } = owned.region.range();
        assert!(self.scan.add(start as u64..end as u64, scan::Traits::ANONYMOUS));
        // The delay of a balancer's region begins when it is registered.
        self.scan.visit(start as u64, Duration::from_secs(self.passes), &self.settings);
        self.owned.push(owned);
    }

    fn unmap(&mut self, place: usize) {
        let owned = self.owned.swap_remove(place);
        let start = owned.region.range().start as u64;
        assert!(self.scan.remove(start));
        self.reasons.retain(|(region, _), _| *region != start);
        drop(owned.region);
    }

    fn use_region(&mut self, place: usize, thread: u32) {
        let owned = &mut self.owned[place];
        let start = owned.region.range().start as u64;
        if owned.use_all() {
            self.scan.used_by(start, 1 << self.rules.width.bit(thread));
        }
    }

    /// Makes a pass of both. The error contains the difference.
    fn pass(&mut self, thread: u32) -> Result<(), String> {
        self.balancer.take_events();
        self.balancer.pass();
        let (mut ours, mut changed) = (Vec::new(), VecDeque::new());
        for event in self.balancer.take_events() {
            match event {
                Event::Skipped { region, reason } => ours.push((region, reason.name().to_owned())),
                Event::Armed { region, part, pages } => {
                    changed.push_back(pages);
                    ours.push((region, format!("{part:?}")));
                    let owned =
                        self.owned.iter_mut().find(|own| own.region.range().start == region);
                    owned.expect("registered").armed |= pages > 0;
                }
                _ => {}
            }
        }
        self.passes += 1;
        let scanner = scan::Scanner { thread, balances: true, threads: threads() };
        let now = Duration::from_secs(self.passes);
        let mut log = Log { changed, done: Vec::new(), noted: Vec::new() };
        self.scan.pass(scanner, now, &self.settings, &self.rules, &mut log);
        for (region, reason) in log.noted {
            *self.reasons.entry((region, reason)).or_default() += 1;
            *self.all_reasons.entry(reason).or_default() += 1;
        }
        let theirs = log.done;
        if ours == theirs { Ok(()) } else { Err(format!("{ours:x?} is not {theirs:x?}")) }
    }

    /// Checks that the report counts every reason for every region as the pure walk does.
    fn counts_agree(&self) -> bool {
        let report = self.balancer.report();
        report.regions.iter().all(|region| {
            SkipReason::ALL.iter().all(|reason| {
                let theirs = self.reasons.get(&(region.range.start as u64, reason.name()));
                region.skipped_for(*reason) == theirs.copied().unwrap_or(0)
            })
        })
    }
}

fn threads() -> u32 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    tasks.count() as u32
}

fn thread_id() -> u32 {
    let link = std::fs::read_link("/proc/thread-self").expect("/proc");
    let number = link.file_name().and_then(|name| name.to_str()?.parse().ok());
    number.expect("a number")
}

/// Waits until the kernel does not count a joined thread any more: the join ends when its memory is
/// released, before it leaves the process. The balancer and the script must count the same threads.
fn await_end(thread: u32) {
    let task = std::path::PathBuf::from(format!("/proc/self/task/{thread}"));
    let patience = std::time::Instant::now() + Duration::from_secs(600);
    while task.exists() {
        assert!(std::time::Instant::now() < patience, "thread {thread} was joined and is there");
        std::thread::yield_now();
    }
}

/// Returns the seed: the same scripts in each run, unless `PERCID_SEED` is set.
fn seed() -> u64 {
    let given = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or(1)
}

/// Runs a script. Returns the reasons that were given, or the first difference.
fn run(seed: u64, ours: Rules, pure: Rules) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut random = Random::new(seed);
    let mut pair = Pair::new(ours, pure);
    pair.map(MIB);
    let me = thread_id();
    for step in 0..STEPS {
        let place = random.below(pair.owned.len() as u64) as usize;
        match random.below(20) {
            0 if pair.owned.len() < 6 => pair.map((1 + random.below(6 * 256) as usize) * PAGE),
            1 if pair.owned.len() > 1 => pair.unmap(place),
            2..6 => pair.use_region(place, me),
            // Another thread uses the region; a thread that has gone does not count as one.
            6 => {
                let other = |pair: &mut Pair| {
                    let number = thread_id();
                    pair.use_region(place, number);
                    number
                };
                let gone = std::thread::scope(|scope| scope.spawn(|| other(&mut pair)).join());
                await_end(gone.expect("no panic"));
            }
            _ => pair.pass(me).map_err(|error| format!("step {step}: {error}"))?,
        }
    }
    if !pair.counts_agree() {
        return Err("the reasons are counted otherwise".to_owned());
    }
    Ok(pair.all_reasons)
}

/// One test: the number of threads of the process is part of the script.
#[test]
fn a_balancer_decides_and_counts_as_the_pure_walk() {
    percid_numa::testing::pretend_nodes(2);
    let seed = seed();
    for rules in [Rules::BASE, Rules::SELECTIVE, Rules::LINUX_6_12] {
        let total = (0..8).try_fold(BTreeMap::new(), |mut total, script| {
            for (name, count) in run(seed.wrapping_add(script), rules, rules)? {
                *total.entry(name).or_insert(0) += count;
            }
            Ok::<_, String>(total)
        });
        let total = total.unwrap_or_else(|error| panic!("{rules:?}: {error}"));
        println!("{total:?}");
        assert!(total["pid_inactive"] > 0);
        assert_eq!(total.contains_key("ignore_pid_inactive"), rules.complete_partial);
    }
    // Negative controls.
    let forgetful = Rules { complete_partial: false, ..Rules::SELECTIVE };
    for pure in [Rules::BASE, forgetful] {
        let noticed =
            (0..8).find_map(|script| run(seed.wrapping_add(script), Rules::SELECTIVE, pure).err());
        println!("{pure:?}: {:.200}", noticed.expect("a difference"));
    }
}
