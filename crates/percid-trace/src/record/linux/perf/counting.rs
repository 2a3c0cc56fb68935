//! Counters of every CPU, read whenever it switches.
//!
//! On each CPU a group of events counts, whatever runs there. Every switch triggers its first
//! event, before the CPU goes on with the next thread. That event then writes the values of the
//! whole group into a ring. It is the kernel's own event of a switch and not the tracepoint
//! `sched_switch`. It needs no tracefs, and also counts the switches that the kernel does not
//! report. (With Linux 6.18 as a guest these are most switches away from the idle thread, by
//! tracepoint and by sample alike.) So it is known whether the time between two readings is one
//! turn.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_FLAG_FD_CLOEXEC, PERF_FORMAT_GROUP,
    PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_IOC_FLAG_GROUP,
    PERF_RECORD_EXIT, PERF_RECORD_LOST, PERF_RECORD_SAMPLE, PERF_SAMPLE_READ, PERF_SAMPLE_TID,
    PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use perf_event_open_sys::{ioctls, perf_event_open};

use super::event;
use super::ring::{HEADER, Ring};
use crate::counters::{Counter, MAX_COUNTERS, Reading, Readings};
use crate::event::{Cpu, Tid, UNKNOWN};
use crate::record::linux::clock::now;
use crate::record::linux::cpus;
use crate::record::linux::stream::Stream;
use crate::record::options::Options;

/// The counters of all CPUs; none if no counter is requested.
#[derive(Default)]
pub(in crate::record::linux) struct Counting {
    counters: Vec<Counter>,
    groups: Vec<Group>,
    readings: Readings,
    ending: Ending,
}

/// The counters of one CPU.
struct Group {
    cpu: Cpu,
    /// The event that is hit by switches, and its ring.
    ring: Ring,
    _members: Vec<OwnedFd>,
}

impl Counting {
    /// Prepares the requested counters. The error contains the reason, and the counters that work
    /// here.
    pub(in crate::record::linux) fn open(options: &Options) -> Result<Counting, String> {
        let mut counting = Counting { counters: options.counters.clone(), ..Counting::default() };
        let wanted = counting.counters.len();
        if wanted == 0 {
            return Ok(counting);
        }
        if wanted > MAX_COUNTERS {
            return Err(format!("{wanted} counters, expected at most {MAX_COUNTERS}"));
        }
        let size = options.kernel_buffer_kib as usize * 1024;
        for cpu in cpus::online() {
            counting.groups.extend(Group::open(cpu, &counting.counters, size)?);
        }
        Ok(counting)
    }

    /// Returns the number of counters.
    pub(in crate::record::linux) fn counters(&self) -> usize {
        self.counters.len()
    }

    /// Returns the names of the counters.
    pub(in crate::record::linux) fn names(&self) -> Vec<String> {
        self.counters.iter().map(Counter::to_string).collect()
    }

    /// Returns the descriptors to poll for rings that should be emptied.
    pub(in crate::record::linux) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.groups.iter().map(Group::leader)
    }

    /// Begins to count.
    pub(in crate::record::linux) fn begin(&mut self) -> Result<(), String> {
        self.groups.iter().try_for_each(|group| {
            // SAFETY: it is an event.
            event::told(unsafe { ioctls::ENABLE(group.leader(), PERF_IOC_FLAG_GROUP) })
        })
    }

    /// Takes what is there. Returns until when that is everything.
    pub(in crate::record::linux) fn drain(&mut self, stream: &mut Stream) -> Result<u64, String> {
        let until = now();
        let counters = self.counters.len();
        for Group { cpu, ring, .. } in &mut self.groups {
            ring.drain(|record| {
                match told(record, *cpu, counters)? {
                    Told::Reading(mut reading) => {
                        reading.prev = self.ending.named(*cpu, reading.prev);
                        self.readings
                            .take(reading)
                            .into_iter()
                            .for_each(|turn| stream.counted(turn));
                    }
                    Told::Exit(thread) => drop(self.ending.here.insert(*cpu, thread)),
                    Told::Lost => {
                        self.readings.lose(*cpu);
                        self.ending.here.remove(cpu);
                    }
                    Told::Nothing => {}
                }
                Ok(())
            })?;
        }
        Ok(until)
    }

    /// Ends it, and takes the rest.
    pub(in crate::record::linux) fn end(&mut self, stream: &mut Stream) -> Result<(), String> {
        for group in &self.groups {
            // SAFETY: it is an event.
            event::told(unsafe { ioctls::DISABLE(group.leader(), PERF_IOC_FLAG_GROUP) })?;
        }
        self.drain(stream).map(drop)
    }
}

/// Threads that have begun to end. The kernel's last word on a thread, the switch away from it for good,
/// names it no more.
#[derive(Debug, Default)]
struct Ending {
    /// On each CPU the one that ends there.
    here: HashMap<Cpu, Tid>,
    /// Threads that were preempted before they had ended.
    stopped: HashSet<Tid>,
}

impl Ending {
    /// Returns the thread that ran on a CPU that switches: `named` if it is known, else a thread
    /// that was ending.
    fn named(&mut self, cpu: Cpu, named: Tid) -> Tid {
        if named != UNKNOWN {
            let stopped = self.here.remove(&cpu).filter(|&thread| thread == named);
            self.stopped.extend(stopped);
            return named;
        }
        let only = || (self.stopped.len() == 1).then(|| self.stopped.drain().next()).flatten();
        self.here.remove(&cpu).or_else(only).unwrap_or(UNKNOWN)
    }
}

impl Group {
    /// Opens the group of a CPU, which does not count yet; `None` if the CPU no longer exists.
    fn open(cpu: Cpu, counters: &[Counter], size: usize) -> Result<Option<Group>, String> {
        let leader = match open(&mut leader(), cpu, None) {
            Ok(leader) => leader,
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
            Err(error) => return Err(format!("counters: {}", refused(&error))),
        };
        let mut members = Vec::new();
        for counter in counters {
            match open(&mut member(counter), cpu, Some(&leader)) {
                Ok(event) => members.push(event),
                Err(error) => return Err(unavailable(counter, &error, cpu)),
            }
        }
        let ring = Ring::new(leader, size).map_err(|error| event::missing_memory(&error))?;
        Ok(Some(Group { cpu, ring, _members: members }))
    }

    fn leader(&self) -> RawFd {
        self.ring.event().as_raw_fd()
    }
}

/// Returns the attributes that all events of a group share.
fn attributes(sort: u32, number: u64) -> perf_event_attr {
    let format =
        PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    let mut attributes = perf_event_attr {
        type_: sort,
        size: size_of::<perf_event_attr>() as u32,
        config: number,
        read_format: u64::from(format),
        clockid: libc::CLOCK_MONOTONIC,
        ..perf_event_attr::default()
    };
    attributes.set_use_clockid(1);
    attributes
}

/// Returns the attributes of the group leader, which counts every switch.
fn leader() -> perf_event_attr {
    let mut attributes = attributes(PERF_TYPE_SOFTWARE, u64::from(PERF_COUNT_SW_CONTEXT_SWITCHES));
    attributes.set_disabled(1);
    // Tells of threads that end.
    attributes.set_task(1);
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.sample_type = u64::from(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_READ);
    // The reader is woken when a ring is half full, which is what a mark of zero means.
    attributes.set_watermark(1);
    attributes
}

fn member(counter: &Counter) -> perf_event_attr {
    let (sort, number) = counter.for_kernel();
    attributes(sort, number)
}

fn open(
    attributes: &mut perf_event_attr,
    cpu: Cpu,
    group: Option<&OwnedFd>,
) -> io::Result<OwnedFd> {
    let group = group.map_or(-1, AsRawFd::as_raw_fd);
    let flags = u64::from(PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes live as long as the call, and what it returns has no other owner.
    unsafe {
        let fd = perf_event_open(attributes, -1, cpu as i32, group, flags as _);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

fn refused(error: &io::Error) -> String {
    event::missing(error.raw_os_error().unwrap_or_default(), error, true, event::paranoid())
}

/// Why a counter is not there, and which ones are.
fn unavailable(counter: &Counter, error: &io::Error, cpu: Cpu) -> String {
    let alone = open(&mut member(counter), cpu, None).is_ok();
    let why = reason(error, counter.is_hardware(), alone).unwrap_or_else(|| refused(error));
    let works = |counter: &Counter| open(&mut member(counter), cpu, None).is_ok();
    let working: Vec<String> =
        Counter::all().filter(works).map(|counter| counter.to_string()).collect();
    let working = match &working[..] {
        [] => "none is permitted here".to_owned(),
        working => format!("what can be counted here: {}", working.join(", ")),
    };
    format!("counter `{counter}`: {why}; {working}")
}

/// Why that is so, if it is not a matter of rights. `alone` is whether it would be there without the others.
fn reason(error: &io::Error, is_hardware: bool, alone: bool) -> Option<String> {
    if alone {
        return Some("the processor has not as many counters at once: ask for fewer".to_owned());
    }
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) if is_hardware => Some(
            "this machine has no such counter of the processor, as a virtual machine has none whose \
             host gives it no performance monitoring unit (PMU)"
                .to_owned(),
        ),
        Some(libc::EINVAL) if is_hardware => {
            Some("the processor does not know such a counter".to_owned())
        }
        _ => None,
    }
}

/// The content of a record.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Reading(Reading),
    /// The thread begins to end.
    Exit(Tid),
    Lost,
    Nothing,
}

/// Reads a record, with its header, of the ring of a CPU.
fn told(record: &[u8], cpu: Cpu, counters: usize) -> Result<Told, String> {
    let short = || "a record of counters is too short".to_owned();
    let words = |at: usize| {
        let word = record.get(at..)?.first_chunk::<8>()?;
        Some(u64::from_ne_bytes(*word))
    };
    let thread = |at: usize| {
        let thread = record.get(at..)?.first_chunk::<4>()?;
        Some(Tid::from_ne_bytes(*thread))
    };
    // Behind its process and the one of its creator.
    const EXITING: usize = HEADER + 8;
    let kind = record.first_chunk::<4>().map(|kind| u32::from_ne_bytes(*kind)).ok_or_else(short)?;
    match kind {
        PERF_RECORD_LOST => return Ok(Told::Lost),
        PERF_RECORD_EXIT => return thread(EXITING).map(Told::Exit).ok_or_else(short),
        PERF_RECORD_SAMPLE => {}
        _ => return Ok(Told::Nothing),
    }
    // Process and thread, the time; then the group: how many events, two times, and what each shows, the
    // first being the switches.
    const TIME: usize = HEADER + 8;
    const GROUP: usize = TIME + 8;
    let prev = thread(HEADER + 4).ok_or_else(short)?;
    let number = |at| words(at).ok_or_else(short);
    let events = number(GROUP)?;
    if events != counters as u64 + 1 {
        return Err(format!("a record of {events} counters where {counters} are"));
    }
    let mut shown = [0; MAX_COUNTERS];
    for (place, shown) in shown.iter_mut().take(counters).enumerate() {
        *shown = number(GROUP + 8 * (4 + place))?;
    }
    Ok(Told::Reading(Reading {
        time: number(TIME)?,
        cpu,
        prev,
        next: None,
        switches: Some(number(GROUP + 24)?),
        asked: number(GROUP + 8)?,
        running: number(GROUP + 16)?,
        shown,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let length = HEADER + 8 * words.len();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend((length as u16).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    /// Process 7, thread 8.
    fn threads() -> u64 {
        let both = [7u32.to_ne_bytes(), 8u32.to_ne_bytes()].concat();
        u64::from_ne_bytes(both.try_into().expect("eight bytes"))
    }

    #[test]
    fn a_record_says_what_the_counters_show() {
        let sample = record(PERF_RECORD_SAMPLE, &[threads(), 100, 3, 90, 80, 5, 1000, 7]);
        let switches = Some(5);
        let shown = [1000, 7, 0, 0, 0, 0, 0, 0];
        let reading = Reading {
            time: 100,
            cpu: 3,
            prev: 8,
            next: None,
            switches,
            asked: 90,
            running: 80,
            shown,
        };
        assert_eq!(told(&sample, 3, 2), Ok(Told::Reading(reading)));
        assert_eq!(told(&record(PERF_RECORD_LOST, &[1, 2]), 3, 2), Ok(Told::Lost));
        assert_eq!(told(&record(5, &[1, 2]), 3, 2), Ok(Told::Nothing));
        assert!(told(&sample, 3, 1).is_err_and(|said| said.contains("3 counters where 1")));
        for end in 0..sample.len() {
            assert!(told(&sample[..end], 3, 2).is_err(), "cut off at {end}");
        }
    }

    #[test]
    fn a_thread_that_ends_is_known_though_it_is_named_no_more() {
        let exit = record(PERF_RECORD_EXIT, &[threads(), threads(), 100]);
        let swapped = record(PERF_RECORD_EXIT, &[threads(), u64::from_ne_bytes([9; 8]), 100]);
        assert_eq!(told(&exit, 3, 2), Ok(Told::Exit(7)), "the numbers are process, parent, thread");
        assert_eq!(told(&swapped, 3, 2), Ok(Told::Exit(0x0909_0909)));
        let mut ending = Ending::default();
        assert_eq!(ending.named(0, UNKNOWN), UNKNOWN, "nobody ends");
        ending.here.extend([(0, 8), (1, 9)]);
        assert_eq!(ending.named(1, UNKNOWN), 9);
        assert_eq!(ending.named(0, 8), 8, "it had to stop");
        assert_eq!((ending.named(2, 7), ending.named(1, UNKNOWN)), (7, 8), "and ends elsewhere");
        ending.stopped.extend([5, 6]);
        assert_eq!(ending.named(0, UNKNOWN), UNKNOWN, "one of two");
    }

    #[test]
    fn why_a_counter_is_not_there_is_said_in_words() {
        let said = |code, is_hardware, alone| {
            reason(&io::Error::from_raw_os_error(code), is_hardware, alone).unwrap_or_default()
        };
        assert!(said(libc::ENOENT, true, false).contains("virtual machine"));
        assert!(said(libc::EOPNOTSUPP, true, false).contains("PMU"));
        assert!(said(libc::EINVAL, true, true).contains("fewer"));
        assert!(said(libc::EINVAL, true, false).contains("does not know"));
        assert_eq!(said(libc::EACCES, true, false), "", "a matter of rights");
        assert_eq!(said(libc::ENOENT, false, false), "", "what every kernel has");
    }
}
