//! The options that the programs share.

use std::num::NonZeroUsize;

use percid::Source;
use percid::testing::SpoiltProbe;
use percid_numa::AccessMethod;

use crate::numa::{Contender, Scene};

/// The list of options.
pub(crate) const HELP: &str = "--structure counter|buckets|histogram|local|stack|pool|ring|mask --source kernel|table|atomic --seconds N --events N --threads N --cpus N --possible N --skip-fence --evict --unregister --watch --clobber \
                               --deny rseq|membarrier|both --errno EPERM|EACCES|ENOMEM|ENOSYS --confined --access reported|trapped|written --huge --idle --owners --relaxed --starts N --expect good|bad \
                               --probe skipped|always|wrong-descriptor --scenes first-touch+slices+growing+shared+mixed --contender kernel|percid|both|nobody --runs N --per-node N --lasting --percid PATH --json";

/// The options, each with its default.
#[derive(Debug)]
pub(crate) struct Options {
    /// The structure under stress.
    pub(crate) structure: String,
    /// The source that the program's counters use; the process's choice if not given.
    pub(crate) source: Option<Source>,
    /// Duration of the run.
    pub(crate) seconds: f64,
    /// Number of events that must have happened before a run ends, whatever the time.
    pub(crate) events: u64,
    /// Number of threads, if it can be chosen.
    pub(crate) threads: usize,
    /// Number of allowed CPUs to use; all if not given.
    pub(crate) cpus: Option<usize>,
    /// The pretended maximum number of CPUs of the machine.
    pub(crate) possible: usize,
    /// The negative control: steal without a fence.
    pub(crate) skip_fence: bool,
    /// The thief takes IDs by compaction.
    pub(crate) evict: bool,
    /// The negative control of the kernel source: workers without rseq.
    pub(crate) unregister: bool,
    /// Counts the writes of workers to their rseq areas.
    pub(crate) watch: bool,
    /// The negative control of that: workers write to a field of the kernel.
    pub(crate) clobber: bool,
    /// System calls to deny before starting over in the sandbox.
    pub(crate) deny: Vec<libc::c_long>,
    /// The error that denied calls return.
    pub(crate) errno: i32,
    /// The method by which a balancer detects accesses.
    pub(crate) access: AccessMethod,
    /// `true` if memory must consist of huge pages.
    pub(crate) huge: bool,
    /// The negative control: the balancer is not started.
    pub(crate) idle: bool,
    /// The table may assign extra IDs while threads wander, as it does by default.
    pub(crate) relaxed: bool,
    /// Number of processes to start.
    pub(crate) starts: usize,
    /// The required result of the probe of the kernel; if not given, the one for the kernel's
    /// release.
    pub(crate) expect: Option<Kernel>,
    /// The way in which the probe of the kernel is spoilt.
    pub(crate) probe: SpoiltProbe,
    /// Threads start and end, and are more than CPUs, instead of one thread that stays on each CPU.
    pub(crate) owners: bool,
    /// The scenes of a race.
    pub(crate) scenes: Vec<Scene>,
    /// Number of runs of each contender of a race.
    pub(crate) runs: NonZeroUsize,
    /// Number of threads of a race on each node.
    pub(crate) per_node: NonZeroUsize,
    /// The stages of a race last the whole time, even if memory is placed earlier.
    pub(crate) lasting: bool,
    /// The command `percid`.
    pub(crate) percid: Option<std::path::PathBuf>,
    /// Set in the process of one contender of a race.
    pub(crate) contender: Option<Contender>,
    /// Print a JSON document as well.
    pub(crate) json: bool,
    /// Set in the process that already runs in the sandbox; or requests one.
    pub(crate) confined: bool,
    /// Set in the process that is being traced.
    pub(crate) traced: bool,
    /// The arguments as given, for a process that starts itself again.
    pub(crate) given: Vec<std::ffi::OsString>,
}

/// A kernel that aborts critical sections, or one that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Good,
    Bad,
}

/// Reads the command line: the program's name and its options.
pub(crate) fn read() -> Result<(String, Options), String> {
    let mut options = Options {
        structure: "counter".to_owned(),
        source: None,
        seconds: 2.0,
        events: 1,
        threads: 8,
        cpus: None,
        possible: 1024,
        skip_fence: false,
        evict: false,
        unregister: false,
        watch: false,
        clobber: false,
        deny: Vec::new(),
        errno: libc::EPERM,
        access: AccessMethod::Reported,
        huge: false,
        idle: false,
        relaxed: false,
        starts: 200,
        expect: None,
        probe: SpoiltProbe::No,
        owners: false,
        scenes: Scene::ALL.to_vec(),
        runs: NonZeroUsize::MIN,
        per_node: const { NonZeroUsize::new(2).unwrap() },
        lasting: false,
        percid: None,
        contender: None,
        json: false,
        confined: false,
        traced: false,
        given: std::env::args_os().skip(1).collect(),
    };
    let name = parse(&mut options).map_err(|error| error.to_string())?;
    Ok((name.ok_or("which program?")?, options))
}

fn parse(options: &mut Options) -> Result<Option<String>, lexopt::Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_env();
    let mut name = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Value(value) if name.is_none() => name = Some(value.string()?),
            Long("structure") => options.structure = parser.value()?.string()?,
            Long("source") => options.source = Some(parser.value()?.parse()?),
            Long("seconds") => options.seconds = parser.value()?.parse()?,
            Long("events") => {
                (options.seconds, options.events) = (0.0, parser.value()?.parse()?);
            }
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("cpus") => options.cpus = Some(parser.value()?.parse()?),
            Long("possible") => options.possible = parser.value()?.parse()?,
            Long("skip-fence") => options.skip_fence = true,
            Long("evict") => options.evict = true,
            Long("unregister") => options.unregister = true,
            Long("watch") => options.watch = true,
            Long("clobber") => options.clobber = true,
            Long("access") => options.access = parser.value()?.parse_with(access)?,
            Long("huge") => options.huge = true,
            Long("idle") => options.idle = true,
            Long("relaxed") => options.relaxed = true,
            Long("starts") => options.starts = parser.value()?.parse()?,
            Long("expect") => options.expect = Some(parser.value()?.parse_with(kernel)?),
            Long("probe") => options.probe = parser.value()?.parse_with(probe)?,
            Long("owners") => options.owners = true,
            Long("scenes") => options.scenes = parser.value()?.parse_with(scenes)?,
            Long("contender") => options.contender = Some(parser.value()?.parse()?),
            Long("lasting") => options.lasting = true,
            Long("percid") => options.percid = Some(parser.value()?.into()),
            Long("runs") => options.runs = parser.value()?.parse()?,
            Long("per-node") => options.per_node = parser.value()?.parse()?,
            Long("json") => options.json = true,
            Long("confined") => options.confined = true,
            Long("traced") => options.traced = true,
            Long("deny") => options.deny = parser.value()?.parse_with(calls)?,
            Long("errno") => options.errno = parser.value()?.parse_with(errno)?,
            other => return Err(other.unexpected()),
        }
    }
    Ok(name)
}

fn calls(text: &str) -> Result<Vec<libc::c_long>, &'static str> {
    match text {
        "rseq" => Ok(vec![libc::SYS_rseq]),
        "membarrier" => Ok(vec![libc::SYS_membarrier]),
        "both" => Ok(vec![libc::SYS_rseq, libc::SYS_membarrier]),
        _ => Err("expected rseq, membarrier or both"),
    }
}

fn access(text: &str) -> Result<AccessMethod, &'static str> {
    match text {
        "reported" => Ok(AccessMethod::Reported),
        "trapped" => Ok(AccessMethod::Trapped),
        "written" => Ok(AccessMethod::Written),
        _ => Err("expected reported, trapped or written"),
    }
}

fn scenes(text: &str) -> Result<Vec<Scene>, &'static str> {
    text.split('+').map(str::parse).collect()
}

fn kernel(text: &str) -> Result<Kernel, &'static str> {
    match text {
        "good" => Ok(Kernel::Good),
        "bad" => Ok(Kernel::Bad),
        _ => Err("expected good or bad"),
    }
}

fn probe(text: &str) -> Result<SpoiltProbe, &'static str> {
    match text {
        "skipped" => Ok(SpoiltProbe::Skipped),
        "always" => Ok(SpoiltProbe::Always),
        "wrong-descriptor" => Ok(SpoiltProbe::WrongDescriptor),
        _ => Err("expected skipped, always or wrong-descriptor"),
    }
}

fn errno(text: &str) -> Result<i32, &'static str> {
    match text {
        "EPERM" => Ok(libc::EPERM),
        "EACCES" => Ok(libc::EACCES),
        "ENOMEM" => Ok(libc::ENOMEM),
        "ENOSYS" => Ok(libc::ENOSYS),
        _ => Err("expected EPERM, EACCES, ENOMEM or ENOSYS"),
    }
}
