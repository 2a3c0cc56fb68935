//! The course of a recording, whichever way the events come.

use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::buffers::Buffers;
use super::clock::now;
use super::command::PausedCommand;
use super::perf::Counting;
use super::regions::Regions;
use super::snapshot::{self, ThreadSnapshot};
use super::stream::{Settled, Stream};
use super::{cpus, numa_balancing, perf, tracefs};
use crate::event::Tid;
use crate::record::options::{Backend, Options, Target};
use crate::record::recorded::{Ended, Progress};
use crate::record::refusal::Refusal;
use crate::record::sink::{Piece, Sink};
use crate::trace::{Coverage, Origin};

/// The longest time between two emptyings of the buffers.
const INTERVAL: Duration = Duration::from_millis(100);

/// Pause after a buffer was reported ready but had no events.
const IN_VAIN: Duration = Duration::from_millis(20);

/// Longest time that the kernel may take to write an event, during which later ones can already be
/// read.
const HELD: u64 = 50_000_000;

/// Records until the target ends, the limit is reached, `stop` is true or the sink wants no more.
/// The sink gets all events as they come. `progress` is called, and `stop` checked, several times a
/// second. A command that has not ended by then goes on.
///
/// # Errors
///
/// Nothing could be recorded: see [`Refusal`]. A failure after the beginning is no error: see
/// [`Ended::broken`].
pub fn record_to(
    options: &Options,
    stop: &AtomicBool,
    sink: &mut dyn Sink,
    progress: impl FnMut(Progress),
) -> Result<Ended, Refusal> {
    let counting = Counting::open(options).map_err(Refusal::NoCounters)?;
    let subject = Subject::new(options)?;
    let backends = match &options.backend {
        Some(backend) => std::slice::from_ref(backend),
        None => &[Backend::Tracefs, Backend::PerfEvents][..],
    };
    let scopes = match (subject.pid(), options.only) {
        (Some(_), false) => &[Scope::Machine, Scope::Subject][..],
        (Some(_), true) => &[Scope::Subject][..],
        (None, _) => &[Scope::Machine][..],
    };
    let mut missing = Vec::new();
    for (&scope, &backend) in
        scopes.iter().flat_map(|scope| backends.iter().map(move |backend| (scope, backend)))
    {
        let filter = subject.pid().filter(|_| scope == Scope::Subject);
        let opened: Result<Box<dyn Buffers>, String> = match backend {
            Backend::Tracefs => {
                tracefs::open(options, filter).map(|backend| Box::new(backend) as _)
            }
            Backend::PerfEvents => {
                perf::open(options, filter).map(|backend| Box::new(backend) as _)
            }
        };
        match opened {
            Ok(buffers) => {
                let mut session = Session::new(backend, scope, buffers, sink);
                session.counting = counting;
                return session.run(options, subject, stop, progress);
            }
            // Report only what is missing for the smallest scope.
            Err(why) if Some(&scope) == scopes.last() => missing.push((backend, why)),
            Err(_) => {}
        }
    }
    Err(Refusal::NotPermitted(missing))
}

/// Whose threads are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of them.
    Machine,
    /// Those of the subject only.
    Subject,
}

/// The subject of the recording: everything, or one process and its descendants.
enum Subject {
    System,
    Process(Tid),
    Command(PausedCommand),
}

impl Subject {
    fn new(options: &Options) -> Result<Subject, Refusal> {
        match &options.target {
            Target::System => Ok(Subject::System),
            &Target::Process(pid) if Path::new("/proc").join(pid.to_string()).is_dir() => {
                Ok(Subject::Process(pid))
            }
            &Target::Process(pid) => Err(Refusal::NoProcess(pid)),
            Target::Command(words) => {
                PausedCommand::new(words, options.output_aside).map(Subject::Command)
            }
        }
    }

    fn pid(&self) -> Option<Tid> {
        match self {
            Subject::System => None,
            Subject::Process(pid) => Some(*pid),
            Subject::Command(waiting) => Some(waiting.pid),
        }
    }

    /// The threads that are recorded and are there.
    fn snapshot(&self, scope: Scope) -> Vec<snapshot::Thread> {
        match self.pid().filter(|_| scope == Scope::Subject) {
            Some(process) => snapshot::of_process(process),
            None => snapshot::of_system(),
        }
    }

    /// Lets a command begin.
    fn begin(self) -> Result<Option<Child>, Refusal> {
        match self {
            Subject::Command(waiting) => waiting.begin().map(Some),
            Subject::System | Subject::Process(_) => Ok(None),
        }
    }
}

struct Session<'a> {
    backend: Backend,
    scope: Scope,
    buffers: Box<dyn Buffers>,
    stream: Stream,
    sink: &'a mut dyn Sink,
    /// `true` if the sink wants no more events, or cannot take more.
    is_over: bool,
    /// The regions of processes, if the NUMA scan is recorded.
    regions: Option<Regions>,
    counting: Counting,
}

impl<'a> Session<'a> {
    fn new(
        backend: Backend,
        scope: Scope,
        buffers: Box<dyn Buffers>,
        sink: &'a mut dyn Sink,
    ) -> Session<'a> {
        let (stream, counting) = (Stream::default(), Counting::default());
        Session { backend, scope, buffers, stream, sink, is_over: false, regions: None, counting }
    }

    fn run(
        mut self,
        options: &Options,
        subject: Subject,
        stop: &AtomicBool,
        progress: impl FnMut(Progress),
    ) -> Result<Ended, Refusal> {
        let end = subject.pid().map(End::open);
        self.prepare_scan(options, subject.pid());
        self.sink.begin(&self.origin(options, subject.pid())).map_err(|why| self.failed(why))?;
        let began = now();
        let begun = self.buffers.begin().and_then(|()| self.counting.begin());
        begun.map_err(|why| self.failed(why))?;
        let threads = subject.snapshot(self.scope);
        if let Some(process) = subject.pid() {
            let own = threads.iter().filter(|found| found.process == process);
            self.stream.keep_counted_of(own.map(|found| found.thread));
        }
        self.stream.begin(ThreadSnapshot { began, taken: now(), threads });
        let mut child = subject.begin()?;
        let followed = self.follow(end, options.limit, stop, progress);
        let counted = self.counting.end(&mut self.stream);
        let ended = self.buffers.end(&mut self.stream).and(counted);
        let has_some = self.stream.len() > 0;
        let rest = self.pass_on(now(), u64::MAX);
        let broken = followed.and(ended).and(rest).err();
        if let Some(why) = broken.as_ref().filter(|_| !has_some) {
            return Err(self.failed(why.clone()));
        }
        Ok(Ended {
            status: child.as_mut().and_then(|child| child.try_wait().ok().flatten()),
            backend: self.backend,
            without: self.buffers.without(),
            no_scan: if options.extra.numa { numa_balancing::missing() } else { None },
            broken,
        })
    }

    fn origin(&self, options: &Options, process: Option<Tid>) -> Origin {
        let scan = self.regions.as_ref().and_then(|_| numa_balancing::settings());
        let nodes = self.regions.as_ref().map(|_| numa_balancing::nodes()).unwrap_or_default();
        let is_filtered = self.scope == Scope::Subject;
        Origin {
            scan,
            nodes,
            counters: self.counting.names(),
            coverage: Coverage { filtered: is_filtered, ..Coverage::default() },
            subject: process.filter(|_| !is_filtered).into_iter().collect(),
            ..origin(&options.target)
        }
    }

    /// Gives the sink what is settled of what was taken until a time.
    fn pass_on(&mut self, asked: u64, until: u64) -> Result<(), String> {
        if self.is_over {
            return Ok(());
        }
        let Settled { events, numa, counted } = self.stream.settle(until);
        let (texts, lost) = (self.stream.texts(), self.stream.lost);
        let counters = self.counting.counters();
        let (events, numa, counted) = (&events[..], &numa[..], &counted[..]);
        let piece = Piece { events, numa, counted, counters, texts, lost, asked, until };
        let flow = self.sink.take(&piece);
        self.is_over = !matches!(flow, Ok(ControlFlow::Continue(())));
        self.stream.forget();
        flow.map(drop)
    }

    fn prepare_scan(&mut self, options: &Options, process: Option<Tid>) {
        if options.extra.numa && self.backend == Backend::Tracefs {
            let mut regions = Regions::default();
            process.into_iter().for_each(|process| regions.watch(process));
            self.regions = Some(regions);
        }
    }

    fn failed(&self, why: String) -> Refusal {
        Refusal::Failed(self.backend, why)
    }

    fn follow(
        &mut self,
        end: Option<End>,
        limit: Option<Duration>,
        stop: &AtomicBool,
        mut progress: impl FnMut(Progress),
    ) -> Result<(), String> {
        let began = Instant::now();
        let mut polled = self.buffers.descriptors();
        polled.extend(self.counting.descriptors());
        polled.extend(end.as_ref().and_then(End::descriptor));
        loop {
            let elapsed = began.elapsed();
            let remaining = limit.map_or(INTERVAL, |limit| limit.saturating_sub(elapsed));
            let over = remaining.is_zero() || self.is_over || stop.load(Ordering::Relaxed);
            if over || end.as_ref().is_some_and(End::has_come) {
                return Ok(());
            }
            let waited = Instant::now();
            wait(&polled, remaining.min(INTERVAL));
            let before = self.stream.len();
            let asked = now();
            let until = self.buffers.drain(&mut self.stream)?;
            let until = until.min(self.counting.drain(&mut self.stream)?).saturating_sub(HELD);
            if let Some(regions) = &mut self.regions {
                regions.look(&mut self.stream);
            }
            let (events, lost) = (self.stream.len(), self.stream.lost);
            self.pass_on(asked, until)?;
            if events == before && waited.elapsed() < IN_VAIN {
                thread::sleep(IN_VAIN);
            }
            progress(Progress { events, lost, elapsed: began.elapsed() });
        }
    }
}

/// The end of a process.
struct End {
    pid: Tid,
    /// Kernels before 5.3 have none.
    pidfd: Option<OwnedFd>,
}

impl End {
    fn open(pid: Tid) -> End {
        // SAFETY: the call takes no pointers, and what it returns has no other owner.
        let pidfd = unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0) as RawFd;
            (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
        };
        End { pid, pidfd }
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.pidfd.as_ref().map(AsRawFd::as_raw_fd)
    }

    fn has_come(&self) -> bool {
        match self.descriptor() {
            Some(fd) => wait(&[fd], Duration::ZERO),
            None => is_gone(self.pid),
        }
    }
}

/// Returns `true` if there is no such process, or only a zombie.
fn is_gone(pid: Tid) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let state = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().next());
    matches!(state, None | Some("Z" | "X"))
}

/// Waits until one of the descriptors can be read. Returns whether that is so.
fn wait(descriptors: &[RawFd], timeout: Duration) -> bool {
    let poll = |&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = descriptors.iter().map(poll).collect();
    let timeout = timeout.as_micros().div_ceil(1000) as libc::c_int;
    // SAFETY: the array is as long as said.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) > 0 }
}

fn origin(target: &Target) -> Origin {
    let command = |words: &[OsString]| {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    };
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    Origin {
        release: release.map(|release| release.trim().to_owned()),
        clock: Some("mono".to_owned()),
        possible_cpus: cpus::count_of("possible"),
        online_cpus: cpus::count_of("online"),
        command: match target {
            Target::Command(words) => Some(command(words)),
            Target::System | Target::Process(_) => None,
        },
        ..Origin::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::Tracepoint;
    use crate::event::What;

    /// Buffers that give this number of events, one at a time, and fail then.
    struct Failing(u64);

    impl Buffers for Failing {
        fn begin(&mut self) -> Result<(), String> {
            Ok(())
        }

        fn descriptors(&self) -> Vec<RawFd> {
            Vec::new()
        }

        fn drain(&mut self, stream: &mut Stream) -> Result<u64, String> {
            self.0 = self.0.checked_sub(1).ok_or("the buffer is gone")?;
            let exit = Tracepoint::SchedProcessExit { pid: 7, comm: b"seven" };
            stream.tracepoint(now(), 0, 7, exit);
            Ok(now())
        }

        fn end(&mut self, _: &mut Stream) -> Result<(), String> {
            Ok(())
        }

        fn without(&self) -> Vec<&'static str> {
            Vec::new()
        }
    }

    /// Takes this number of pieces, and the exits in them.
    struct Few {
        pieces: usize,
        /// The result of `take` after that.
        answer: Result<ControlFlow<()>, String>,
        exits: usize,
    }

    impl Sink for Few {
        fn begin(&mut self, _: &Origin) -> Result<(), String> {
            Ok(())
        }

        fn take(&mut self, piece: &Piece<'_>) -> Result<ControlFlow<()>, String> {
            let Some(left) = self.pieces.checked_sub(1) else { return self.answer.clone() };
            self.pieces = left;
            let exits = piece.events.iter().filter(|e| e.what == What::Exit { thread: 7 });
            self.exits += exits.count();
            Ok(ControlFlow::Continue(()))
        }
    }

    fn record_until_failure(events: u64, sink: &mut Few) -> Result<Ended, Refusal> {
        let session =
            Session::new(Backend::Tracefs, Scope::Machine, Box::new(Failing(events)), sink);
        let options = Options::new(Target::System);
        session.run(&options, Subject::System, &AtomicBool::new(false), |_| {})
    }

    fn patient() -> Few {
        Few { pieces: usize::MAX, answer: Ok(ControlFlow::Break(())), exits: 0 }
    }

    #[test]
    fn what_was_recorded_before_a_failure_is_kept() {
        let mut sink = patient();
        let ended = record_until_failure(3, &mut sink).expect("three events");
        assert_eq!(sink.exits, 3);
        assert_eq!(ended.broken.as_deref(), Some("the buffer is gone"));
    }

    #[test]
    fn a_failure_before_any_event_is_an_error() {
        let refusal = record_until_failure(0, &mut patient()).expect_err("nothing");
        assert_eq!(refusal.to_string(), "tracefs: the buffer is gone");
    }

    #[test]
    fn a_sink_that_has_enough_or_fails_ends_the_recording_and_gets_no_more() {
        for (answer, broken) in [
            (Ok(ControlFlow::Break(())), None),
            (Err("no room".to_owned()), Some("no room".to_owned())),
        ] {
            let mut sink = Few { pieces: 30, answer, exits: 0 };
            let ended = record_until_failure(1000, &mut sink).expect("some events");
            assert!(sink.exits > 0 && sink.exits < 30, "{} of those that waited", sink.exits);
            assert_eq!(ended.broken, broken);
        }
    }
}
