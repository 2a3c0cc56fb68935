//! The probe that tests whether this kernel aborts critical sections when it must.
//!
//! 64-bit Arm kernels from 6.19 to 7.0.13 do not: a thread that is preempted or fenced inside a
//! section continues and commits. Mainline commit 411c1cf43039 fixed this in 7.1, and stable 7.0.14
//! has the fix; distributions fix their 7.0 without a new number, so the release is not conclusive.
//! Signals still abort on these kernels, so a probe with signals would give the wrong result.
//!
//! The bug was in Arm's own entry code, which did not record that user space had been interrupted.
//! x86-64 and RISC-V use the generic entry code, which does. That follows from the source. Tests
//! confirmed that x86-64 kernels of these releases abort, and RISC-V kernels 6.12 and 7.2. No
//! RISC-V kernel of the range could be tested, so RISC-V is probed as well.
//!
//! # The probe
//!
//! This thread enters a section that publishes its CPU, and waits in it for a flag ([`waiting`]). A
//! [`Companion`] process with the same memory reads that CPU, does one of three things, and only
//! then sets the flag:
//!
//! * it fences all CPUs, or that CPU (`membarrier`);
//! * it moves itself to that CPU and checks that it runs there: so this thread was preempted, or
//!   had moved.
//!
//! Each of them must abort the section, and each happens after the section has begun and before the
//! flag is set. So: **a section that sees the flag was not aborted when it had to be**. One such
//! result proves the kernel faulty, whatever else happens on the machine. The opposite takes
//! several rounds: a section may also have been aborted because its thread was moved to another
//! CPU, which even the faulty kernels notice. A round does not count if its thread is on another
//! CPU afterwards. The kernel is good only after [`ENOUGH`](super::aborts::ENOUGH) rounds of each
//! kind. If the time expires before that, there is no result.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::aborts::{ProbeCounts, ProbeReport};
use super::area;
use super::fence;
use super::source_error::SourceError;
use super::spoilt::Spoilt;
use crate::critical::FAST_PATH;
use crate::critical::waiting::{self, Ending, NOWHERE, Rendezvous};
use crate::sys::affinity::Affinity;
use crate::sys::companion::{self, Companion, End, Mapped, NotGone};
use crate::sys::{clock, membarrier, process, rseq, signals};

/// Number of times that a section polls the flag per millisecond that is left. The section must not
/// end long before the deadline, or the companion would not run in time on a busy machine, nor long
/// after it. A poll takes one or two nanoseconds, and about ten under emulation.
const LOOKS_PER_MS: u64 = 500_000;

/// Time limit of the first probe in milliseconds. Each further limit is twice as long, up to
/// `LAST_LIMIT_MS`.
const FIRST_LIMIT_MS: u64 = 40;
const LAST_LIMIT_MS: u64 = 320;

/// The companion's action in a round.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Fence,
    FenceOfOneCpu,
    Preemption,
}

impl Kind {
    fn of(round: u32) -> Kind {
        match round % 3 {
            0 => Kind::Fence,
            1 => Kind::FenceOfOneCpu,
            _ => Kind::Preemption,
        }
    }

    /// Performs the action on the thread in a section on `cpu`.
    ///
    /// # Errors
    ///
    /// The `errno`; `EAGAIN` if the action was not done although nothing was refused.
    fn act_on(self, cpu: u32) -> Result<(), i32> {
        match self {
            Kind::Fence => membarrier::fence_all(),
            Kind::FenceOfOneCpu => membarrier::fence_cpu(cpu),
            Kind::Preemption => {
                Affinity::confine(cpu)?;
                // The proof is that this process was observed on the CPU after the section
                // published it, not the return value of the call.
                if companion::cpu() == Some(cpu) { Ok(()) } else { Err(libc::EAGAIN) }
            }
        }
    }
}

impl ProbeReport {
    fn of(&mut self, kind: Kind) -> &mut ProbeCounts {
        match kind {
            Kind::Fence => &mut self.fences,
            Kind::FenceOfOneCpu => &mut self.fences_of_one_cpu,
            Kind::Preemption => &mut self.preemptions,
        }
    }
}

impl Spoilt {
    #[cfg(any(test, feature = "testing"))]
    fn now() -> Spoilt {
        let all = [Spoilt::Skipped, Spoilt::Always, Spoilt::WrongDescriptor];
        let wanted = super::spoilt::SPOILT.load(Relaxed);
        all.into_iter().find(|&spoilt| spoilt as u32 == wanted).unwrap_or(Spoilt::No)
    }

    #[cfg(not(any(test, feature = "testing")))]
    fn now() -> Spoilt {
        Spoilt::No
    }
}

/// Returns `Ok` if critical sections can be trusted here. It costs one system call if architecture
/// and release leave no doubt. Otherwise the kernel is probed, once per process unless the time was
/// too short. Async-signal-safe.
///
/// # Errors
///
/// [`SourceError::SectionsNotAborted`], or the reason why it is not known.
pub(crate) fn sections_can_be_trusted() -> Result<(), SourceError> {
    match KNOWN.load(Relaxed) {
        GOOD => return Ok(()),
        BAD => return Err(SourceError::SectionsNotAborted),
        _ => {}
    }
    let spoilt = Spoilt::now();
    if spoilt == Spoilt::Skipped || (spoilt == Spoilt::No && !is_in_doubt()) {
        KNOWN.fetch_max(GOOD, Relaxed);
        return Ok(());
    }
    if is_resting() {
        return Err(SourceError::SectionsNotProbed);
    }
    let tries = TRIES.fetch_add(1, Relaxed);
    let limit = limit_ms(tries);
    // Stored before the probe: during the probe, other threads and a child of a fork do not probe
    // the kernel.
    NEXT_TRY_MS.store(clock::now_ms() + limit + pause_ms(tries), Relaxed);
    let probe = run(Duration::from_millis(limit), true)?;
    let answer = judge(&probe).ok_or(SourceError::SectionsNotProbed)?;
    KNOWN.fetch_max(answer, Relaxed);
    sections_can_be_trusted()
}

/// Returns the value of `KNOWN` for a probe; `None` if the probe has no result.
fn judge(probe: &ProbeReport) -> Option<u32> {
    match () {
        () if probe.detected_ignored() => Some(BAD),
        () if probe.confirms_aborts() => Some(GOOD),
        () => None,
    }
}

/// The result; 0 for none yet. The highest of several results wins: `BAD` stays, whatever another
/// thread found. Relaxed: the value does not refer to other memory.
static KNOWN: AtomicU32 = AtomicU32::new(0);
const GOOD: u32 = 1;
const BAD: u32 = 2;

/// Number of probes that have begun.
static TRIES: AtomicU32 = AtomicU32::new(0);

/// The time at which the next probe may begin, in milliseconds; 0 before the first.
static NEXT_TRY_MS: AtomicU64 = AtomicU64::new(0);

pub(crate) use companion::reap_left;

/// Returns `true` if a probe had no result, or is in progress, and it is too early for the next.
pub(crate) fn is_resting() -> bool {
    is_unanswered() && clock::now_ms() < NEXT_TRY_MS.load(Relaxed)
}

/// Returns `true` if a probe has begun and there is no result yet.
pub(crate) fn is_unanswered() -> bool {
    KNOWN.load(Relaxed) == 0 && NEXT_TRY_MS.load(Relaxed) != 0
}

/// Returns the time limit of the probe after `tries` others, in milliseconds.
fn limit_ms(tries: u32) -> u64 {
    (FIRST_LIMIT_MS << tries.min(8)).min(LAST_LIMIT_MS)
}

/// Returns the pause after that probe, in milliseconds. It is ten times the limit, so that a
/// program without a result spends a tenth of one thread's time on probes. It doubles each time if
/// there is never a result, up to a quarter of an hour.
fn pause_ms(tries: u32) -> u64 {
    (10 * limit_ms(tries)) << tries.saturating_sub(5).min(8)
}

/// Returns `true` if this kernel may be one that does not abort: the faulty range, whose end
/// distributions move, and the candidates of 7.1. Not inlined: the release takes 400 bytes of a
/// stack that the probe may need.
// #[gamma::skip(reason = "of other processors")]
#[inline(never)]
fn is_in_doubt() -> bool {
    cfg!(not(target_arch = "x86_64")) && process::Release::running().is_none_or(may_be_faulty)
}

fn may_be_faulty(release: process::Release) -> bool {
    let first = process::Release { major: 6, minor: 19 };
    let behind = process::Release { major: 7, minor: 2 };
    (first..behind).contains(&release)
}

/// Probes the kernel until `limit` is over, or, if `brief`, until the result is known.
/// Async-signal-safe.
///
/// # Errors
///
/// The reason why it cannot be probed: no rseq, no fence, no child process, or a child process that
/// may not do what is needed.
pub(crate) fn run(limit: Duration, brief: bool) -> Result<ProbeReport, SourceError> {
    let registration = area::find();
    if !registration.succeeded() {
        return Err(SourceError::NoRseq(registration));
    }
    if rseq::cpu_id(FAST_PATH.area()).is_none() && !rseq::register_thread() {
        return Err(SourceError::SectionsNotProbed);
    }
    fence::prepare()?;
    // A companion that has not ended has not had a CPU: another would not get one either.
    if !companion::reap_left() {
        return Err(SourceError::SectionsNotProbed);
    }
    let board = Mapped::new(size_of::<Board>()).ok_or(SourceError::SectionsNotProbed)?;
    run_on(board, limit, brief)
}

/// Memory shared by this thread and the companion. All zero at first. The accesses are relaxed:
/// each word is meaningful by itself, and the rendezvous orders what must be seen in order.
#[repr(C)]
#[derive(Debug)]
struct Board {
    rendezvous: Rendezvous,
    /// The time at which the companion gives up by itself, in milliseconds.
    deadline_ms: u64,
    /// The CPUs on which both may run. Not on the stack, which may be a signal handler's.
    home: Affinity,
    /// The CPU of this thread before the first round, as a hint.
    first_cpu: u32,
    /// The round that the companion is ready for. It is then on another CPU, if there is one: on
    /// the same CPU it would run only after the next tick of the scheduler, some milliseconds
    /// later.
    ready: AtomicU32,
    /// Nonzero when there are no further rounds.
    over: AtomicU32,
    /// The `errno` by which the kernel, or a sandbox, refuses what a round needs.
    refused: AtomicU32,
}

/// Runs the probe on fresh memory.
fn run_on(memory: Mapped, limit: Duration, brief: bool) -> Result<ProbeReport, SourceError> {
    // A handler that runs during the probe would abort sections, and might call this function
    // itself.
    let _signals = signals::block_all();
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    let deadline_ms = clock::now_ms().saturating_add(limit_ms);
    let place = memory.start().cast::<Board>();
    // SAFETY: the memory is fresh and all zero, which is a valid value, and no other thread has
    // access to it yet. From here on both sides only read these three fields.
    let fresh = unsafe { &mut *place.as_ptr() };
    fresh.deadline_ms = deadline_ms;
    fresh.first_cpu = rseq::cpu_id(FAST_PATH.area()).unwrap_or(NOWHERE);
    if !fresh.home.read() {
        return Err(SourceError::SectionsNotProbed);
    }
    // SAFETY: the companion uses only the board.
    let companion = match unsafe { Companion::start(companion, memory) } {
        Ok(companion) => companion,
        // A temporary failure: a later try may find room.
        Err(libc::EAGAIN | libc::ENOMEM) => return Err(SourceError::SectionsNotProbed),
        Err(why) => return Err(SourceError::ProbeRefused(why)),
    };
    // SAFETY: the memory stays until the companion's end is known. Everything that both sides
    // change is atomic; the rest is changed by this thread alone, if at all.
    let board = unsafe { place.as_ref() };
    let probe = board.play_all(brief);
    board.over.store(1, Relaxed);
    companion.set_free(board.home.words());
    // If the companion is gone, the board is mapped as long as this value exists.
    let end = companion.end();
    answer(end.as_ref().map(|&(end, _)| end).map_err(|&why| why), || board.told(probe))
}

/// Returns the result after the companion's end; `told` returns the result on the board.
fn answer(
    end: Result<End, NotGone>,
    told: impl FnOnce() -> Result<ProbeReport, SourceError>,
) -> Result<ProbeReport, SourceError> {
    match end {
        // Late or not, the companion has done what the board records.
        Ok(End::Exited | End::Late) => told(),
        // Something prevents the companion from doing what the probe needs, and will do so the next
        // time.
        Ok(End::Killed) => Err(SourceError::ProbeRefused(libc::EPERM)),
        Err(NotGone::Refused(why)) => Err(SourceError::ProbeRefused(why)),
        // The companion may still write to the board. The next probe waits for the companion first.
        Err(NotGone::Left) => Err(SourceError::SectionsNotProbed),
    }
}

/// Returns `true` if the section of a round was aborted. It began on CPU `there`, and its thread is
/// on CPU `here` afterwards. `None` if the round does not count, for example if what had to abort
/// the section was not `done`.
fn was_aborted(done: bool, ending: Ending, here: Option<u32>, there: Option<u32>) -> Option<bool> {
    match ending {
        _ if !done => None,
        Ending::SawFlag => Some(false),
        Ending::Aborted if here == there => Some(true),
        Ending::Aborted | Ending::TimedOut => None,
    }
}

impl Board {
    /// Returns the results of a probe, unless something that it needs was refused.
    fn told(&self, probe: ProbeReport) -> Result<ProbeReport, SourceError> {
        match self.refused.load(Relaxed) as i32 {
            0 => Ok(probe),
            _ if probe.detected_ignored() => Ok(probe),
            errno => Err(SourceError::ProbeRefused(errno)),
        }
    }

    fn play_all(&self, brief: bool) -> ProbeReport {
        let spoilt = Spoilt::now() == Spoilt::WrongDescriptor;
        let mut probe = ProbeReport::default();
        for round in 1..u32::MAX {
            let known = brief && (probe.detected_ignored() || probe.confirms_aborts());
            let refused = self.refused.load(Relaxed) != 0;
            if known || refused || clock::now_ms() >= self.deadline_ms {
                break;
            }
            match self.play(round, spoilt) {
                Some(true) => probe.of(Kind::of(round)).aborted += 1,
                Some(false) => probe.of(Kind::of(round)).ignored += 1,
                None => probe.of(Kind::of(round)).undecided += 1,
            }
        }
        probe
    }

    /// Plays one round. Returns `true` if the section was aborted; `None` if the round does not
    /// count.
    fn play(&self, round: u32, spoilt: bool) -> Option<bool> {
        self.wait_until(|| self.ready.load(Relaxed) == round)?;
        let left_ms = self.deadline_ms.saturating_sub(clock::now_ms()).max(1);
        // SAFETY: `run` has made sure of the registration and of its location.
        let ending = unsafe {
            waiting::enter(&self.rendezvous, round, left_ms.saturating_mul(LOOKS_PER_MS), spoilt)
        };
        let here = rseq::cpu_id(FAST_PATH.area());
        if self.rendezvous.cpu(round).is_none() {
            // Aborted before it could publish its CPU: the companion waits for that.
            self.rendezvous.give_up(round);
        }
        // The companion must have finished this round before the next begins.
        self.wait_until(|| self.rendezvous.was_done(round).is_some())?;
        let done = self.rendezvous.was_done(round)?;
        was_aborted(done, ending, here, self.rendezvous.cpu(round))
    }

    /// Yields to other threads until `done`; `None` if the time is over, or if there are no further
    /// rounds.
    fn wait_until(&self, done: impl Fn() -> bool) -> Option<()> {
        while !done() {
            if self.over.load(Relaxed) != 0 || clock::now_ms() >= self.deadline_ms {
                return None;
            }
            companion::give_way();
        }
        Some(())
    }

    /// Waits until the section of `round` has begun, and returns its CPU; `None` if the companion
    /// must exit.
    fn wait_for_section(&self, round: u32) -> Option<u32> {
        self.wait_until(|| self.rendezvous.cpu(round).is_some())?;
        self.rendezvous.cpu(round)
    }

    /// Moves the companion to another CPU than `cpu`. It stays if there is none, or if none is
    /// allowed.
    fn leave(&self, cpu: u32) {
        if companion::cpu() == Some(cpu) {
            let _ = self.home.iter().find(|&other| other != cpu).map(Affinity::confine);
        }
    }

    /// The companion's side of a round.
    fn answer(&self, round: u32, cpu: u32) {
        let done = match cpu {
            NOWHERE => Err(libc::EAGAIN),
            cpu => Kind::of(round).act_on(cpu),
        };
        if let Err(errno) = done {
            // Other errors are temporary, for example if a CPU was taken offline.
            if matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSYS) {
                self.refused.store(errno as u32, Relaxed);
            }
        }
        self.rendezvous.set_flag(round, done.is_ok());
        self.leave(cpu);
        self.ready.store(round + 1, Relaxed);
    }
}

/// The companion: another process that shares the memory.
extern "C" fn companion(board: *mut c_void) -> c_int {
    companion::end_with_parent();
    // SAFETY: the parent keeps the memory until this process has ended.
    let board = unsafe { &*board.cast::<Board>() };
    companion::ask_for_short_slice();
    board.leave(board.first_cpu);
    board.ready.store(1, Relaxed);
    for round in 1..u32::MAX {
        let Some(cpu) = board.wait_for_section(round) else { break };
        board.answer(round, cpu);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{memory, steps};

    #[test]
    fn a_good_answer_takes_enough_of_each_kind() {
        let enough = ProbeCounts { aborted: crate::id::aborts::ENOUGH, ignored: 0, undecided: 9 };
        let good = ProbeReport { fences: enough, fences_of_one_cpu: enough, preemptions: enough };
        assert!(good.confirms_aborts() && !good.detected_ignored());
        let few = ProbeCounts { aborted: 1, ..enough };
        assert!(!ProbeReport { preemptions: few, ..good }.confirms_aborts());
        let ignored = ProbeCounts { ignored: 1, ..enough };
        let bad = ProbeReport { fences: ignored, ..good };
        assert!(bad.detected_ignored() && !bad.confirms_aborts());
    }

    #[test]
    fn a_round_that_can_have_other_reasons_says_nothing() {
        use Ending::{Aborted, SawFlag, TimedOut};
        let (here, elsewhere) = (Some(1), Some(2));
        assert_eq!(was_aborted(true, SawFlag, here, here), Some(false));
        assert_eq!(
            was_aborted(true, SawFlag, elsewhere, here),
            Some(false),
            "it was there all the time"
        );
        assert_eq!(was_aborted(true, Aborted, here, here), Some(true));
        assert_eq!(was_aborted(true, Aborted, elsewhere, here), None);
        assert_eq!(was_aborted(true, Aborted, here, Some(NOWHERE)), None);
        assert_eq!(was_aborted(true, TimedOut, here, here), None);
        assert_eq!(was_aborted(false, SawFlag, here, here), None);
        assert_eq!(was_aborted(false, Aborted, here, here), None);
    }

    fn board() -> &'static Board {
        let place = memory::map(size_of::<Board>()).expect("memory").cast::<Board>();
        // SAFETY: fresh memory that stays forever; all zero is a valid value.
        unsafe { place.as_ref() }
    }

    /// Returns the board after the companion's part of a round whose fence the kernel answers with
    /// `answer`.
    fn answered(round: u32, cpu: u32, answer: Result<(), i32>) -> &'static Board {
        let board = board();
        let _watching = steps::watch(move |_| {
            assert_eq!(board.rendezvous.was_done(round), None, "the flag before the fence");
            Some(answer)
        });
        board.answer(round, cpu);
        assert_eq!(board.ready.load(Relaxed), round + 1);
        board
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn the_flag_is_set_when_the_fence_is_done() {
        // Rounds 3 and 4 fence all CPUs, and one. No CPU has this number, so this thread is not
        // moved.
        for round in [3, 4] {
            let done = |result| {
                let board = answered(round, 9999, result);
                (board.rendezvous.was_done(round), board.refused.load(Relaxed) as i32)
            };
            assert_eq!(done(Ok(())), (Some(true), 0));
            assert_eq!(done(Err(libc::EINVAL)), (Some(false), 0), "a CPU that has gone away");
            for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
                assert_eq!(done(Err(errno)), (Some(false), errno));
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_section_that_was_given_up_is_not_answered() {
        let board = board();
        board.rendezvous.give_up(3);
        assert_eq!(board.rendezvous.cpu(3), Some(NOWHERE));
        let _watching = steps::watch(|step| panic!("{step:?}"));
        board.answer(3, NOWHERE);
        assert_eq!(board.rendezvous.was_done(3), Some(false));
    }

    /// A kernel that only pretends to move a thread has preempted no thread.
    #[test]
    #[cfg_attr(miri, ignore = "it asks the kernel")]
    fn a_preemption_is_seen_and_not_believed() {
        const NOT_HERE: u32 = 9999;
        let act = |answer| {
            let _watching = steps::watch(move |step| {
                assert_eq!(step, steps::Step::Confine(NOT_HERE));
                Some(answer)
            });
            Kind::Preemption.act_on(NOT_HERE)
        };
        assert_eq!(act(Ok(())), Err(libc::EAGAIN));
        assert_eq!(act(Err(libc::EPERM)), Err(libc::EPERM));
    }

    #[test]
    fn one_answer_condemns_and_some_of_each_kind_acquit() {
        let ignored = ProbeCounts { ignored: 1, ..ProbeCounts::default() };
        let enough = ProbeCounts { aborted: crate::id::aborts::ENOUGH, ..ProbeCounts::default() };
        let good = ProbeReport { fences: enough, fences_of_one_cpu: enough, preemptions: enough };
        assert_eq!(judge(&good), Some(GOOD));
        assert_eq!(judge(&ProbeReport { preemptions: ignored, ..good }), Some(BAD));
        assert_eq!(judge(&ProbeReport { preemptions: ProbeCounts::default(), ..good }), None);
        assert_eq!(GOOD.max(BAD), BAD, "whatever another thread found");
    }

    #[test]
    fn a_companion_that_is_not_gone_yet_leaves_the_question_open() {
        let probe = ProbeReport::default();
        let answer = |end| answer(end, || Ok(probe));
        assert_eq!([End::Exited, End::Late].map(|end| answer(Ok(end))), [Ok(probe); 2]);
        assert_eq!(answer(Err(NotGone::Left)), Err(SourceError::SectionsNotProbed));
        let refused = |errno| Err(SourceError::ProbeRefused(errno));
        assert_eq!(answer(Ok(End::Killed)), refused(libc::EPERM));
        assert_eq!(answer(Err(NotGone::Refused(libc::ENOSYS))), refused(libc::ENOSYS));
    }

    #[test]
    fn what_is_refused_is_told_unless_the_kernel_was_caught() {
        let (board, fair) = (board(), ProbeReport::default());
        assert_eq!(board.told(fair), Ok(fair));
        board.refused.store(libc::EPERM as u32, Relaxed);
        assert_eq!(board.told(fair), Err(SourceError::ProbeRefused(libc::EPERM)));
        let caught = ProbeReport { fences: ProbeCounts { ignored: 1, ..fair.fences }, ..fair };
        assert_eq!(board.told(caught), Ok(caught));
    }

    #[test]
    fn there_are_rounds_of_every_kind() {
        assert!(matches!(Kind::of(3), Kind::Fence));
        assert!(matches!(Kind::of(4), Kind::FenceOfOneCpu));
        assert!(matches!(Kind::of(5), Kind::Preemption));
    }

    #[test]
    fn an_unanswered_probe_takes_longer_and_rests_longer() {
        assert_eq!([0, 1, 2, 3, 4, 99].map(limit_ms), [40, 80, 160, 320, 320, 320]);
        assert_eq!([0, 3, 5, 6, 7].map(pause_ms), [400, 3200, 3200, 6400, 12_800]);
        assert_eq!(pause_ms(u32::MAX), 256 * 3200);
    }

    #[test]
    fn no_handler_runs_in_the_middle_of_a_probe() {
        static BLOCKED: AtomicU32 = AtomicU32::new(0);
        let _watching = steps::watch(|step| {
            if step == steps::Step::BlockSignals {
                BLOCKED.fetch_add(1, Relaxed);
            }
            None
        });
        if run(Duration::from_millis(1), true).is_ok() {
            assert_eq!(BLOCKED.load(Relaxed), 1);
        }
    }

    /// Asks in a child, which has not probed this kernel, after the state and the override were
    /// stored. A probe without a result is repeated.
    #[cfg(not(any(miri, percid_portable)))]
    fn asked(spoilt: Spoilt, known: u32, next_try_ms: u64, check: fn(Result<(), SourceError>)) {
        crate::sys::child::run(|| {
            super::super::spoilt::SPOILT.store(spoilt as u32, Relaxed);
            KNOWN.store(known, Relaxed);
            TRIES.store(0, Relaxed);
            NEXT_TRY_MS.store(next_try_ms, Relaxed);
            assert_eq!(is_unanswered(), known == 0 && next_try_ms != 0);
            let mut probes = 0;
            check(loop {
                let before = clock::now_ms();
                match sections_can_be_trusted() {
                    Err(SourceError::SectionsNotProbed) if TRIES.load(Relaxed) > probes => {
                        let wait = NEXT_TRY_MS.load(Relaxed) - before;
                        assert!(wait >= limit_ms(probes) + pause_ms(probes), "{wait}");
                        assert!(is_resting() && is_unanswered());
                        probes += 1;
                        assert_eq!(TRIES.load(Relaxed), probes);
                        NEXT_TRY_MS.store(before, Relaxed);
                    }
                    answer => break answer,
                }
            });
        });
    }

    #[test]
    #[cfg(not(any(miri, percid_portable)))]
    fn the_answer_is_kept_and_the_question_is_not_asked_too_often() {
        if matches!(run(Duration::from_millis(1), true), Err(why) if why != SourceError::SectionsNotProbed)
        {
            return percid_skips::not_checked("answers of probes", "it cannot be probed here");
        }
        asked(Spoilt::Skipped, 0, 0, |answer| {
            assert_eq!((answer, KNOWN.load(Relaxed), TRIES.load(Relaxed)), (Ok(()), GOOD, 0));
        });
        asked(Spoilt::Always, GOOD, 0, |answer| assert_eq!(answer, Ok(())));
        asked(Spoilt::Skipped, BAD, 0, |answer| {
            assert_eq!(answer, Err(SourceError::SectionsNotAborted));
        });
        asked(Spoilt::Always, 0, u64::MAX, |answer| {
            assert_eq!((answer, TRIES.load(Relaxed)), (Err(SourceError::SectionsNotProbed), 0));
        });
        asked(Spoilt::Always, 0, 0, |answer| {
            assert_eq!((answer, KNOWN.load(Relaxed)), (Ok(()), GOOD));
            assert!(TRIES.load(Relaxed) > 0 && !is_unanswered() && !is_resting());
        });
        asked(Spoilt::WrongDescriptor, 0, 0, |answer| {
            assert_eq!(answer, Err(SourceError::SectionsNotAborted));
            assert_eq!(KNOWN.load(Relaxed), BAD);
        });
    }

    #[test]
    fn releases_in_doubt() {
        let doubt = |major, minor| may_be_faulty(process::Release { major, minor });
        assert!(doubt(6, 19) && doubt(7, 0) && doubt(7, 1));
        assert!(!doubt(6, 18) && !doubt(7, 2) && !doubt(5, 10));
    }

    #[test]
    fn this_kernel_aborts() {
        // Not while another test's companion is still running.
        let answer = || match run(Duration::from_secs(20), true) {
            Err(SourceError::SectionsNotProbed) => None,
            answer => Some(answer),
        };
        match (0..100).find_map(|_| answer()).unwrap_or(Err(SourceError::SectionsNotProbed)) {
            Ok(probe) => assert!(probe.confirms_aborts(), "{probe:?}"),
            Err(why) => percid_skips::not_checked("aborts by this kernel", &why.to_string()),
        }
    }
}
