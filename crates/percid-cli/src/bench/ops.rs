//! `percid bench ops`: the cost of one addition, by plain memory, atomics, a thread-local and percid's counters.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use percid::{Counter, Source};
use serde::Serialize;

use super::loops::Op;
use super::samples::Samples;
use super::shuffle::Shuffler;
use super::team::{Batch, Placement, Team};
use crate::interrupt::Interrupt;
use crate::outcome::{Failure, complain};
use crate::progress::Progress;
use crate::table::{Align, Table};

/// The time that a batch costs each thread: short enough to escape most ticks, long against starting it.
const BATCH: Duration = Duration::from_millis(1);
/// How often a batch is repeated because the kernel took a CPU away meanwhile.
const RETRIES: u32 = 5;
/// Threads per allowed CPU of the team that competes for the CPUs.
const CROWD: usize = 4;

/// The keys of `bench ops` in the JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct OpsReport {
    /// How long the measurement took, in seconds.
    seconds: f64,
    /// Every counter's sum was the number of additions made to it.
    pub(crate) sums_exact: bool,
    sums: Vec<SumReport>,
    results: Vec<OpResult>,
}

/// One counter's sum after all its additions.
#[derive(Debug, Serialize)]
struct SumReport {
    source: String,
    added: i64,
    sum: i64,
}

/// One operation with one team. Times in nanoseconds per operation.
#[derive(Debug, Serialize)]
struct OpResult {
    op: &'static str,
    source: String,
    threads: usize,
    pinned: bool,
    rounds: usize,
    ns_min: f64,
    ns_median: f64,
    ratio_to_plain_add: Option<f64>,
    /// Batches discarded because the kernel took a CPU away.
    discarded: u64,
}

/// Measures until `length` is over or Ctrl-C is pressed.
pub(crate) fn measure(
    cpus: &[u32],
    length: Duration,
    interrupt: &Interrupt,
) -> Result<OpsReport, Failure> {
    let began = Instant::now();
    let mut contenders = contenders();
    let mut courses = courses(cpus, &contenders)?;
    let progress = Progress::new("bench ops", length);
    let mut shuffler = Shuffler::new(1);
    // A first round always, so that even the shortest length shows every figure.
    while !interrupt.pressed() {
        shuffler.shuffle(&mut courses);
        for course in &mut courses {
            course.round(&mut contenders, &mut shuffler, interrupt);
        }
        let elapsed = began.elapsed();
        progress.at(elapsed.div_duration_f64(length), length.saturating_sub(elapsed));
        if elapsed >= length {
            break;
        }
    }
    drop(progress);
    courses.sort_by_key(|course| (course.placement.threads(), course.placement.pinned()));
    Ok(report(&contenders, &courses, began.elapsed()))
}

fn report(contenders: &[Contender], courses: &[Course], took: Duration) -> OpsReport {
    let sums: Vec<SumReport> = contenders.iter().filter_map(Contender::sum).collect();
    for wrong in sums.iter().filter(|sum| sum.sum != sum.added) {
        complain(format_args!(
            "error: the counter of source {} was given {} and says {}",
            wrong.source, wrong.added, wrong.sum
        ));
    }
    OpsReport {
        seconds: took.as_secs_f64(),
        sums_exact: sums.iter().all(|sum| sum.sum == sum.added),
        sums,
        results: courses.iter().flat_map(|course| course.results(contenders)).collect(),
    }
}

/// An operation that takes part.
struct Contender {
    name: &'static str,
    source: Option<Source>,
    op: Op,
    /// Additions made so far by all teams.
    added: i64,
}

/// Where `plain_add`, the measure of the others, stands among the contenders.
const PLAIN: usize = 0;

fn contenders() -> Vec<Contender> {
    #[cfg_attr(not(feature = "peers"), expect(unused_mut, reason = "only peers are added"))]
    let mut others = vec![
        ("plain_add", Op::PlainAdd),
        ("atomic_private", Op::AtomicPrivate),
        ("atomic_shared", Op::AtomicShared),
        ("thread_local", Op::ThreadLocal),
    ];
    #[cfg(feature = "peers")]
    others.extend(super::peers::OPS);
    let others =
        others.into_iter().map(|(name, op)| Contender { name, source: None, op, added: 0 });
    let counters = Source::ALL.into_iter().filter_map(|source| {
        let op = Op::CounterAdd(counter(source)?);
        Some(Contender { name: "counter_add", source: Some(source), op, added: 0 })
    });
    others.chain(counters).collect()
}

/// A static counter that uses `source`, unless this machine lacks it.
///
/// The chosen source's is the one that every program writes.
fn counter(source: Source) -> Option<&'static Counter> {
    static CHOSEN: Counter = Counter::new();
    static KERNEL: OnceLock<Option<Counter>> = OnceLock::new();
    static TABLE: OnceLock<Option<Counter>> = OnceLock::new();
    static ATOMIC: OnceLock<Option<Counter>> = OnceLock::new();
    if source == percid::init().source {
        return Some(&CHOSEN);
    }
    let home = match source {
        Source::Kernel => &KERNEL,
        Source::Table => &TABLE,
        Source::Atomic => &ATOMIC,
    };
    home.get_or_init(|| Counter::with_source(source).ok()).as_ref()
}

impl Contender {
    fn sum(&self) -> Option<SumReport> {
        let Op::CounterAdd(counter) = self.op else {
            return None;
        };
        Some(SumReport { source: self.source_name(), added: self.added, sum: counter.sum() })
    }

    fn source_name(&self) -> String {
        self.source.map_or("none".to_owned(), |source| source.to_string())
    }
}

/// One team and what it measured.
struct Course {
    placement: Placement,
    team: Team,
    cpus: usize,
    lanes: Vec<Lane>,
}

/// One contender's figures on one course.
#[derive(Clone, Default)]
struct Lane {
    /// Operations per thread and batch; 0 until calibrated.
    times: u64,
    ns: Samples,
    ratios: Samples,
    discarded: u64,
}

fn courses(cpus: &[u32], contenders: &[Contender]) -> Result<Vec<Course>, Failure> {
    let placements = [
        Placement::Anywhere(1),
        Placement::OneOn(cpus.to_vec()),
        Placement::Anywhere(CROWD * cpus.len()),
    ];
    placements
        .into_iter()
        .map(|placement| {
            let team = Team::gather(&placement)?;
            Ok(Course {
                placement,
                team,
                cpus: cpus.len(),
                lanes: vec![Lane::default(); contenders.len()],
            })
        })
        .collect()
}

impl Course {
    /// Visits every contender once, in a new order, and compares each with this round's `plain_add`.
    fn round(
        &mut self,
        contenders: &mut [Contender],
        shuffler: &mut Shuffler,
        interrupt: &Interrupt,
    ) {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        shuffler.shuffle(&mut order);
        let mut ns = vec![None; contenders.len()];
        for lane in order {
            if interrupt.pressed() {
                break;
            }
            ns[lane] = Some(self.sample(lane, &mut contenders[lane]));
        }
        for (lane, ns_here) in self.lanes.iter_mut().zip(&ns) {
            let Some(ns_here) = *ns_here else { continue };
            lane.ns.push(ns_here);
            if let Some(plain) = ns[PLAIN] {
                lane.ratios.push(ns_here / plain);
            }
        }
    }

    /// One batch, repeated while the kernel disturbs it, in nanoseconds per operation.
    fn sample(&mut self, lane: usize, contender: &mut Contender) -> f64 {
        if self.lanes[lane].times == 0 {
            self.lanes[lane].times = self.calibrate(contender);
        }
        let times = self.lanes[lane].times;
        let mut batch = self.batch(contender, times);
        for _ in 0..RETRIES {
            if !batch.preempted || self.is_crowded() {
                break;
            }
            self.lanes[lane].discarded += 1;
            batch = self.batch(contender, times);
        }
        batch.wall.as_nanos() as f64 * self.running() as f64 / (times * self.threads()) as f64
    }

    /// Finds how many operations make a batch of the wanted length.
    fn calibrate(&mut self, contender: &mut Contender) -> u64 {
        let rounds_of_threads = self.threads() as f64 / self.running() as f64;
        let wanted = BATCH.mul_f64(rounds_of_threads);
        let mut times = 1000;
        loop {
            let wall = self.batch(contender, times).wall;
            if wall >= wanted / 4 {
                return ((times as f64 * wanted.div_duration_f64(wall)) as u64).max(1);
            }
            times *= 4;
        }
    }

    /// Every batch goes through here, so that no addition is left out of the expected sum.
    fn batch(&mut self, contender: &mut Contender, times: u64) -> Batch {
        contender.added += (times * self.threads()) as i64;
        self.team.run(contender.op, times)
    }

    fn threads(&self) -> u64 {
        self.placement.threads() as u64
    }

    /// Threads that run at the same time.
    fn running(&self) -> usize {
        self.placement.threads().min(self.cpus)
    }

    /// More threads than CPUs: the kernel has to take CPUs away.
    fn is_crowded(&self) -> bool {
        self.placement.threads() > self.cpus
    }

    fn results(&self, contenders: &[Contender]) -> Vec<OpResult> {
        contenders
            .iter()
            .zip(&self.lanes)
            .filter_map(|(contender, lane)| self.result(contender, lane))
            .collect()
    }

    /// `None` where Ctrl-C came before the first sample.
    fn result(&self, contender: &Contender, lane: &Lane) -> Option<OpResult> {
        Some(OpResult {
            op: contender.name,
            source: contender.source_name(),
            threads: self.placement.threads(),
            pinned: self.placement.pinned(),
            rounds: lane.ns.len(),
            ns_min: lane.ns.min()?,
            ns_median: lane.ns.median()?,
            ratio_to_plain_add: lane.ratios.median(),
            discarded: lane.discarded,
        })
    }
}

impl fmt::Display for OpsReport {
    /// One line per operation, three columns per team.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "One addition, in nanoseconds; x: how many times plain_add with the same threads"
        )?;
        let mut teams: Vec<(usize, bool)> = Vec::new();
        let mut ops: Vec<(&str, &str)> = Vec::new();
        for result in &self.results {
            push_new(&mut teams, (result.threads, result.pinned));
            push_new(&mut ops, (result.op, &result.source));
        }
        let mut table = Table::new(columns(&teams));
        for (op, source) in ops {
            let mut cells = vec![op.to_owned(), source.to_owned()];
            cells.extend(teams.iter().flat_map(|&team| self.cells(op, source, team)));
            table.row(cells);
        }
        write!(f, "{table}")?;
        let verdict = if self.sums_exact {
            "every counter's sum is exact"
        } else {
            "A COUNTER'S SUM IS WRONG"
        };
        let added: i64 = self.sums.iter().map(|sum| sum.added).sum();
        writeln!(f, "  {verdict}: {added} additions")
    }
}

fn push_new<T: PartialEq>(seen: &mut Vec<T>, item: T) {
    if !seen.contains(&item) {
        seen.push(item);
    }
}

fn columns(teams: &[(usize, bool)]) -> Vec<(String, Align)> {
    let mut columns = vec![("op".to_owned(), Align::Left), ("source".to_owned(), Align::Left)];
    for &(threads, pinned) in teams {
        let kind = match (threads, pinned) {
            (1, false) => "1 thread".to_owned(),
            (_, true) => format!("{threads} pinned"),
            (_, false) => format!("{threads} unpinned"),
        };
        columns.extend([
            (format!("{kind}: min"), Align::Right),
            ("median".into(), Align::Right),
            ("x".into(), Align::Right),
        ]);
    }
    columns
}

impl OpsReport {
    fn cells(&self, op: &str, source: &str, (threads, pinned): (usize, bool)) -> [String; 3] {
        let result = self.results.iter().find(|result| {
            result.op == op
                && result.source == source
                && result.threads == threads
                && result.pinned == pinned
        });
        let Some(result) = result else {
            return ["-", "-", "-"].map(str::to_owned);
        };
        let ratio = result.ratio_to_plain_add.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        [format!("{:.3}", result.ns_min), format!("{:.3}", result.ns_median), ratio]
    }
}
