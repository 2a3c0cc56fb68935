//! The check: both parts, with every source.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::{env, mem, thread};

use percid::Source;
use percid::id::SourceError;

use crate::failure::{Failure, Finding, Part};
use crate::instructions;
use crate::plan::Plan;
use crate::report::{Counts, Report, SourceReport};
use crate::stress;
use crate::structure::Structure;

/// One check at a time in a process: its traps and handlers are the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The seed of a check that is given none. The same for every run: a test that passes goes on
/// passing, as far as the schedule allows.
const SEED: u64 = 1;
const ROUNDS: u64 = 20;

/// A check of a structure: build it, then [`run`](Check::run) it.
///
/// `make` makes the structure with a source, as the `with_source` of percid's structures does: one
/// for each part of the check.
///
/// ```
/// use percid::{PerId, Source, per_id::{Field, Word}};
/// use percid_check::{Check, Random, Structure};
/// use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
///
/// struct Sum {
///     words: PerId<Word>,
///     expected: AtomicI64,
/// }
///
/// impl Structure for Sum {
///     fn operate(&self, random: &mut Random) {
///         let n = random.below(10) as i64;
///         self.words.add(Field::whole(), n).expect("memory");
///         self.expected.fetch_add(n, Relaxed);
///     }
///
///     fn visit(&self) {
///         for word in self.words.visit() {
///             self.expected.fetch_sub(word.load(), Relaxed);
///             word.store(0);
///         }
///     }
///
///     fn audit(&self) -> Result<(), String> {
///         let sum: i64 = self.words.iter().map(|(_, word)| word.load()).sum();
///         let expected = self.expected.load(Relaxed);
///         if sum == expected { Ok(()) } else { Err(format!("{sum} instead of {expected}")) }
///     }
/// }
///
/// let check = Check::new(|source| {
///     let words = PerId::with_source(source, (|| Word::new(0)) as fn() -> Word)?;
///     Ok(Sum { words, expected: AtomicI64::new(0) })
/// });
/// let report = check.rounds(2).run()?;
/// assert!(report.work(Source::Atomic).is_some_and(|work| work.operations > 0));
/// # Ok::<(), percid_check::Failure>(())
/// ```
///
/// # Contract
///
/// * **Threads**: one check runs at a time in a process; others wait for it. Other threads should
///   not use percid during a check.
/// * **Signals**: a check handles `SIGTRAP` and the last real-time signal, and restores the earlier
///   handlers. It changes instructions of the program for a moment.
/// * **Fork**: a check forks the process while its threads rest.
/// * **Cost**: a few operations for each instruction and interruption, then for each round at least
///   1000 operations of each thread and 200 disturbances.
pub struct Check<S> {
    make: Box<dyn Fn(Source) -> Result<S, SourceError>>,
    sources: Vec<Source>,
    seed: Option<u64>,
    rounds: u64,
    threads: usize,
}

impl<S: Structure> Check<S> {
    /// Creates a check of the structures that `make` makes.
    ///
    /// ```
    /// # use percid_check::{Check, Structure};
    /// # fn check<S: Structure + 'static>(make: fn(percid::Source) -> Result<S, percid::id::SourceError>) {
    /// println!("{:?}", Check::new(make).run());
    /// # }
    /// ```
    pub fn new(make: impl Fn(Source) -> Result<S, SourceError> + 'static) -> Check<S> {
        Check {
            make: Box::new(make),
            sources: Source::ALL.to_vec(),
            seed: None,
            rounds: ROUNDS,
            threads: thread::available_parallelism().map_or(2, |cpus| cpus.get().max(2)),
        }
    }

    /// Sets the seed of all choices; 1 if it is not set. The environment variable
    /// `PERCID_CHECK_SEED` overrides it.
    ///
    /// ```
    /// # fn check<S: percid_check::Structure>(check: percid_check::Check<S>) {
    /// println!("{:?}", check.seed(42).run());
    /// # }
    /// ```
    #[must_use]
    pub fn seed(self, seed: u64) -> Check<S> {
        Check { seed: Some(seed), ..self }
    }

    /// Sets the number of rounds of the random part; 20 if it is not set.
    ///
    /// ```
    /// # fn check<S: percid_check::Structure>(check: percid_check::Check<S>) {
    /// println!("{:?}", check.rounds(1000).run());
    /// # }
    /// ```
    #[must_use]
    pub fn rounds(self, rounds: u64) -> Check<S> {
        Check { rounds, ..self }
    }

    /// Sets the number of operating threads of the random part; that of the CPUs, at least 2, if it
    /// is not set. Two more disturb them.
    ///
    /// ```
    /// # fn check<S: percid_check::Structure>(check: percid_check::Check<S>) {
    /// println!("{:?}", check.threads(8).run());
    /// # }
    /// ```
    #[must_use]
    pub fn threads(self, threads: usize) -> Check<S> {
        Check { threads, ..self }
    }

    /// Sets the sources; all if they are not set.
    ///
    /// ```
    /// # fn check<S: percid_check::Structure>(check: percid_check::Check<S>) {
    /// println!("{:?}", check.sources(&[percid::Source::Table]).run());
    /// # }
    /// ```
    #[must_use]
    pub fn sources(self, sources: &[Source]) -> Check<S> {
        Check { sources: sources.to_vec(), ..self }
    }

    /// Checks a structure with each source that is available. The structure of a failure is not
    /// dropped, since that might damage the process.
    ///
    /// ```
    /// # fn check<S: percid_check::Structure>(check: percid_check::Check<S>) -> Result<(), percid_check::Failure> {
    /// let report = check.run()?;
    /// println!("{report}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The first failure.
    pub fn run(&self) -> Result<Report, Failure> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let given = env::var("PERCID_CHECK_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.or(self.seed).unwrap_or(SEED);
        let plan = Plan { seed, rounds: self.rounds, threads: self.threads };
        let mut report = Report { seed, sources: Vec::new(), unavailable: Vec::new() };
        for &source in &self.sources {
            match self.with_source(source, plan) {
                Ok(checked) => report.sources.push(checked),
                Err(Stop::Unavailable(why)) => report.unavailable.push((source, why)),
                Err(Stop::Found(failure)) => return Err(failure),
            }
        }
        Ok(report)
    }

    fn with_source(&self, source: Source, plan: Plan) -> Result<SourceReport, Stop> {
        source.prepare().map_err(Stop::Unavailable)?;
        let counts = Counts::default();
        let failure =
            |part| move |finding| Stop::Found(Failure { source, part, seed: plan.seed, finding });
        let interrupted = |structure: &S| instructions::check(structure, source, plan, &counts);
        let no_instructions =
            self.part(source, interrupted)?.map_err(failure(Part::EveryInstruction))?;
        let stressed = |structure: &S| stress::check(structure, source, plan, &counts);
        self.part(source, stressed)?.map_err(failure(Part::AtRandom))?;
        Ok(SourceReport { source, work: counts.work(), no_instructions })
    }

    /// Runs a part with a new structure, which is dropped only if nothing was found.
    fn part<R>(
        &self,
        source: Source,
        part: impl FnOnce(&S) -> Result<R, Finding>,
    ) -> Result<Result<R, Finding>, Stop> {
        let structure = (self.make)(source).map_err(Stop::Unavailable)?;
        let result = part(&structure);
        if result.is_err() {
            mem::forget(structure);
        }
        Ok(result)
    }
}

/// The reason why a source is not checked to the end.
enum Stop {
    Unavailable(SourceError),
    Found(Failure),
}

impl<S> fmt::Debug for Check<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("sources", &self.sources)
            .field("seed", &self.seed)
            .field("rounds", &self.rounds)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
