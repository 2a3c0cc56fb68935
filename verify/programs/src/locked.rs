//! A program whose memory is locked. With `--confined`, a user who may lock 8 MiB locks all future
//! mappings before the first use, and every count must be right. Without it, a user who may lock
//! everything locks the present mappings after the first use, and they must not be large.

use percid::{Counter, Histogram, Overflow, Ring, Source, Stack};

use crate::count::{ERRNO, errno, set_errno};
use crate::memory::count_on_every_cpu;
use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;

const ROUNDS: i64 = 60_000;

/// The default limit of a user for locked memory, since Linux 5.16.
const LIMIT: u64 = 8 << 20;

/// A user without rights.
const NOBODY: u32 = 65534;

/// Bytes of an ID in an extent of the arena.
const SLOT: usize = 16 << 20;

pub(crate) fn run(options: &Options) -> Verdict {
    if options.confined { with_a_limit() } else { after_the_first_use() }
}

fn with_a_limit() -> Verdict {
    give_rights_up()?;
    lock(libc::MCL_FUTURE)?;
    // The control: what the library needs most cannot be mapped the usual way.
    let refused = try_to_map(2 * SLOT) == Err(libc::EAGAIN);
    let (counter, histogram) = (Counter::new(), Histogram::new());
    let (stack, ring) = (Stack::new(1 << 20), Ring::new(1 << 16, Overflow::OverwriteOldest));
    let (mut refusals, mut changed) = (0, 0);
    for n in 0..ROUNDS {
        // The `errno` of system calls inside the library must not be visible.
        set_errno(ERRNO);
        counter.add(1);
        histogram.record(n as u64);
        changed += u32::from(errno() != ERRNO);
        refusals += u32::from(stack.push(n).is_err());
        refusals += u32::from(ring.append(&n.to_ne_bytes()).is_err());
    }
    let mut popped = 0;
    while stack.pop().is_some() {
        popped += 1;
    }
    let recorded = histogram.snapshot().count() as i64;
    let choice = percid::init();
    let figures = format!(
        "source={} limit={LIMIT} B, mapping refused otherwise={refused} refusals={refusals} changed_errno={changed} sum={} of_ids={} \
         recorded={recorded} popped={popped}, locked {} KiB",
        choice.source,
        counter.sum(),
        counter.per_id().sum::<i64>(),
        of_status("VmLck:")?,
    );
    let unrestricted = Source::Table.prepare().is_ok() == (choice.source == Source::Table);
    let counted = [counter.sum(), counter.per_id().sum(), recorded, popped] == [ROUNDS; 4];
    let right = refused && refusals == 0 && changed == 0 && counted && unrestricted;
    if right { Ok(figures) } else { Err(figures) }
}

fn after_the_first_use() -> Verdict {
    let source = percid::init().source;
    let counters: Vec<Counter> = (0..100).map(|_| Counter::new()).collect();
    counters.iter().for_each(|counter| counter.add(1));
    let before = of_status("VmRSS:")?;
    if let Err(why) = lock(libc::MCL_CURRENT) {
        return Ok(format!("skipped: {why}"));
    }
    // Every CPU gets an ID, whose memory is opened, and locked, from now on.
    let cpus = pinning::allowed();
    count_on_every_cpu(&counters, &cpus);
    let after = of_status("VmRSS:")?;
    let ids = source.id_count();
    let arena = arena_resident_kib(ids)?;
    let sum: i64 = counters.iter().map(Counter::sum).sum();
    let allowed = 64 * (ids as usize + 1);
    let figures = format!(
        "source={source} ids={ids} sum={sum} resident {before} KiB before and {after} KiB after, of the arena {arena} \
         KiB of {allowed} KiB allowed",
    );
    let counted = sum == 100 * (1 + cpus.len() as i64);
    if counted && arena > 0 && arena <= allowed { Ok(figures) } else { Err(figures) }
}

/// Becomes a user without rights who may lock 8 MiB.
fn give_rights_up() -> Result<(), String> {
    let limits = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: the structure is valid; the other calls take numbers.
    let done = unsafe {
        libc::setrlimit(libc::RLIMIT_MEMLOCK, &limits) == 0
            && (libc::geteuid() != 0 || libc::setresuid(NOBODY, NOBODY, NOBODY) == 0)
    };
    if done { Ok(()) } else { Err("cannot become a user who may lock 8 MiB".to_owned()) }
}

fn lock(what: i32) -> Result<(), String> {
    // SAFETY: the call takes flags and changes no contents.
    match unsafe { libc::mlockall(what) } {
        0 => Ok(()),
        _ => Err(format!("mlockall: {}", std::io::Error::last_os_error())),
    }
}

/// Maps and unmaps address space; the `errno` if that fails.
fn try_to_map(bytes: usize) -> Result<(), i32> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, which nothing uses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0));
    }
    // SAFETY: the mapping is this function's own, and nothing uses it any more.
    unsafe { libc::munmap(start, bytes) };
    Ok(())
}

/// Returns a line of `/proc/self/status`, in KiB.
fn of_status(name: &str) -> Result<usize, String> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    text.lines().find_map(|line| kib(line.strip_prefix(name)?)).ok_or(format!("no {name}"))
}

fn kib(text: &str) -> Option<usize> {
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the resident size of the slots of the first `ids` IDs, and of the shared one before
/// them.
fn arena_resident_kib(ids: u32) -> Result<usize, String> {
    let text = std::fs::read_to_string("/proc/self/smaps").map_err(|error| error.to_string())?;
    let first: Vec<_> = percid::id::memory_of(0).collect();
    let slots = SLOT * ids as usize;
    let of_arena =
        |at: usize| first.iter().any(|id| (id.start - SLOT..id.start + slots).contains(&at));
    let (mut inside, mut resident) = (false, 0);
    for line in text.lines() {
        let start =
            line.split_once('-').and_then(|(start, _)| usize::from_str_radix(start, 16).ok());
        inside = start.map_or(inside, of_arena);
        resident += line.strip_prefix("Rss:").filter(|_| inside).and_then(kib).unwrap_or(0);
    }
    Ok(resident)
}
