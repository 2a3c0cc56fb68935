//! Conversion of the kernel's records to events.

use std::collections::{HashMap, HashSet};

use linux_perf_event_reader::{
    AttrFlags, BranchSampleFormat, ClockId, CommonData, ContextSwitchRecord, Endianness,
    EventRecord, PerfClock, PerfEventAttr, PerfEventType, RawData, RawEventRecord, ReadFormat,
    RecordParseInfo, RecordType, SampleFormat, SamplingPolicy, SoftwareCounterType,
    TaskWasPreempted, WakeupPolicy,
};

use super::event::SAMPLE;
use super::ring::HEADER;
use crate::collector::Tracepoint;
use crate::event::{Cpu, IDLE, Shares, State, Tid, UNKNOWN};
use crate::record::linux::stream::Stream;

/// Reads records of the event that is attached. They come ring by ring, and are told in the order of
/// their times: a thread may begin on one CPU and end on another between two looks at the rings.
#[derive(Debug)]
pub(super) struct Records {
    info: RecordParseInfo,
    /// The records that were not told yet.
    waiting: Vec<Waiting>,
    /// State from earlier records, if the whole system is recorded.
    system: Option<System>,
}

/// A record of a CPU's ring.
#[derive(Debug)]
struct Waiting {
    time: u64,
    cpu: Cpu,
    record: Box<[u8]>,
}

/// All threads of a system. The kernel's last switches to and away from a thread that ends may name
/// it no more.
#[derive(Debug, Default)]
struct System {
    /// The thread that was last seen on each CPU.
    running: HashMap<Cpu, Tid>,
    /// The threads that began to end, and have not been switched away from for good.
    ending: HashSet<Tid>,
    /// Those of them that were preempted, and the CPUs where they were, in this order.
    preempted: Vec<(Tid, Cpu)>,
}

impl System {
    /// Takes a switch on a CPU, and returns the thread that runs next. One that is not named has
    /// ended except for a few microseconds: of those that were preempted in them it is taken to be
    /// the last, on this CPU if there is one. Others may be there for ever: the kernel leaves out
    /// some switches.
    fn switch(&mut self, cpu: Cpu, named: Tid) -> Tid {
        let place = match named {
            UNKNOWN => {
                let here = self.preempted.iter().rposition(|&(_, at)| at == cpu);
                here.or(self.preempted.len().checked_sub(1))
            }
            named => self.preempted.iter().position(|&(thread, _)| thread == named),
        };
        let next = place.map_or(named, |place| self.preempted.remove(place).0);
        self.running.insert(cpu, next);
        next
    }

    /// Takes the end of a turn, and returns `true` if it was the thread's last.
    fn ends(&mut self, thread: Tid, cpu: Cpu, is_preempted: bool) -> bool {
        if !is_preempted {
            return self.ending.remove(&thread);
        }
        if self.ending.contains(&thread) {
            self.preempted.push((thread, cpu));
        }
        false
    }

    /// Takes a new thread, whose number may have belonged to another one before.
    fn begins(&mut self, thread: Tid) {
        self.ending.remove(&thread);
        self.preempted.retain(|&(ending, _)| ending != thread);
    }

    /// The thread that runs on a CPU: the one that is named, or else the one that was seen there
    /// last.
    fn running(&mut self, cpu: Cpu, named: Tid) -> Tid {
        let seen = self.running.entry(cpu).or_insert(named);
        if named != UNKNOWN {
            *seen = named;
        }
        *seen
    }
}

/// Time and CPU of a record, and the thread that ran there.
#[derive(Debug, Clone, Copy)]
struct RecordMoment {
    time: u64,
    cpu: Cpu,
    current: Tid,
}

impl Records {
    /// Makes a reader for records of the whole system, or of some threads only.
    pub(super) fn new(is_of_system: bool) -> Records {
        let attributes = PerfEventAttr {
            type_: PerfEventType::Software(SoftwareCounterType::Dummy),
            sampling_policy: SamplingPolicy::NoSampling,
            sample_format: SampleFormat::from_bits_truncate(SAMPLE),
            read_format: ReadFormat::empty(),
            flags: AttrFlags::SAMPLE_ID_ALL,
            wakeup_policy: WakeupPolicy::Watermark(0),
            branch_sample_format: BranchSampleFormat::empty(),
            sample_regs_user: 0,
            sample_stack_user: 0,
            clock: PerfClock::ClockId(ClockId::Monotonic),
            sample_regs_intr: 0,
            aux_watermark: 0,
            sample_max_stack: 0,
            aux_sample_size: 0,
            sig_data: 0,
        };
        let order = if cfg!(target_endian = "big") {
            Endianness::BigEndian
        } else {
            Endianness::LittleEndian
        };
        let info = RecordParseInfo::new(&attributes, order);
        let system = is_of_system.then(System::default);
        Records { info, waiting: Vec::new(), system }
    }

    /// Takes in a record, with its header, of a CPU's ring.
    pub(super) fn take(
        &mut self,
        record: &[u8],
        cpu: Cpu,
        stream: &mut Stream,
    ) -> Result<(), String> {
        match parsed(record, self.info)? {
            None => {}
            Some((_, _, EventRecord::Lost(lost))) => stream.lost += lost.count,
            Some((time, ..)) => {
                self.waiting.push(Waiting { time, cpu, record: Box::from(record) });
            }
        }
        Ok(())
    }

    /// Tells the events before a time, if all records before it were taken.
    pub(super) fn tell(&mut self, until: u64, stream: &mut Stream) -> Result<(), String> {
        self.waiting.sort_by_key(|waiting| waiting.time);
        let count = self.waiting.partition_point(|waiting| waiting.time < until);
        for Waiting { time, cpu, record } in self.waiting.drain(..count) {
            let Some((_, mut current, event)) = parsed(&record, self.info)? else { continue };
            if let Some(system) = &mut self.system {
                current = system.running(cpu, current);
            }
            RecordMoment { time, cpu, current }.tell(&event, self.system.as_mut(), stream);
        }
        Ok(())
    }
}

/// A record's time, the thread that is named in it, and what it contains.
type Parsed<'a> = (u64, Tid, EventRecord<'a>);

/// Returns what a record contains; `None` if that is of no interest.
fn parsed(record: &[u8], info: RecordParseInfo) -> Result<Option<Parsed<'_>>, String> {
    let Some((header, body)) = record.split_at_checked(HEADER) else {
        return Err("a record without its header".to_owned());
    };
    let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
    let misc = u16::from_ne_bytes([header[4], header[5]]);
    if !ASKED_FOR.contains(&RecordType(kind)) {
        return Ok(None);
    }
    let raw = RawEventRecord::new(RecordType(kind), misc, RawData::Single(body), info);
    let wrong = |error| format!("a record of kind {kind}: {error}");
    let event = raw.parse().map_err(wrong)?;
    let CommonData { tid, timestamp, .. } = raw.common_data().map_err(wrong)?;
    match timestamp {
        Some(time) => Ok(Some((time, number(tid), event))),
        None => Err(format!("a record of kind {kind} without its time")),
    }
}

/// The others are of no interest.
const ASKED_FOR: [RecordType; 6] = [
    RecordType::LOST,
    RecordType::COMM,
    RecordType::EXIT,
    RecordType::FORK,
    RecordType::SWITCH,
    RecordType::SWITCH_CPU_WIDE,
];

/// The kernel has -1 for a thread that has ended.
fn number(tid: Option<i32>) -> Tid {
    tid.map_or(UNKNOWN, |tid| tid as Tid)
}

impl RecordMoment {
    fn tell(self, record: &EventRecord<'_>, system: Option<&mut System>, stream: &mut Stream) {
        match record {
            EventRecord::ContextSwitch(switch) => self.switch(*switch, system, stream),
            EventRecord::Fork(fork) => {
                let shares = match fork.pid == fork.ppid {
                    true => Shares::Process,
                    false => Shares::Nothing,
                };
                let child = fork.tid as Tid;
                if let Some(system) = system {
                    system.begins(child);
                }
                stream.fork(self.time, self.cpu, fork.ptid as Tid, child, shares);
            }
            EventRecord::Exit(exit) => {
                let pid = exit.tid as Tid;
                self.hit(Tracepoint::SchedProcessExit { comm: &[], pid }, stream);
                match system {
                    Some(system) => drop(system.ending.insert(pid)),
                    // No record follows of the switch away from it.
                    None if pid == self.current => {
                        stream.switch_from(self.time, self.cpu, pid, State::DEAD);
                    }
                    None => {}
                }
            }
            EventRecord::Comm(comm) => {
                let pid = comm.tid as Tid;
                if comm.is_execve {
                    self.hit(Tracepoint::SchedProcessExec { pid, old_pid: pid }, stream);
                }
                self.hit(Tracepoint::TaskRename { pid, newcomm: &comm.name.as_slice() }, stream);
            }
            _ => {}
        }
    }

    /// Takes a switch. If the whole system is recorded, the kernel reports each switch twice, and
    /// names both threads each time.
    fn switch(self, switch: ContextSwitchRecord, system: Option<&mut System>, stream: &mut Stream) {
        match switch {
            ContextSwitchRecord::In { prev_tid: None, .. } => {
                stream.switch_to(self.time, self.cpu, self.current);
            }
            ContextSwitchRecord::In { .. } => {}
            ContextSwitchRecord::Out { next_tid, preempted, .. } => {
                let mut next = next_tid.map_or(IDLE, |next| next as Tid);
                let is_preempted = preempted == TaskWasPreempted::Yes;
                let ends = system.is_some_and(|system| {
                    next = system.switch(self.cpu, next);
                    system.ends(self.current, self.cpu, is_preempted)
                });
                let state = match (is_preempted, ends) {
                    (true, _) => State::RUNNABLE,
                    (false, true) => State::DEAD,
                    (false, false) => State::SLEEPING,
                };
                match next_tid {
                    Some(_) => self.switched(self.current, state, next, stream),
                    None => stream.switch_from(self.time, self.cpu, self.current, state),
                }
            }
        }
    }

    fn switched(self, prev: Tid, state: State, next: Tid, stream: &mut Stream) {
        let switch = Tracepoint::SchedSwitch {
            prev_comm: &[],
            prev_pid: prev,
            prev_state: state.0,
            next_comm: &[],
            next_pid: next,
        };
        self.hit(switch, stream);
    }

    fn hit(self, event: Tracepoint<'_>, stream: &mut Stream) {
        stream.tracepoint(self.time, self.cpu, self.current, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::What;

    /// A record with a header and the trailer of all records.
    fn record(kind: u32, misc: u16, body: &[u32], tid: u32, time: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = body.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend([7, tid].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(time.to_ne_bytes());
        bytes.extend([3u32, 0].iter().flat_map(|word| word.to_ne_bytes()));
        let length = (HEADER + bytes.len()) as u16;
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &length.to_ne_bytes(), &bytes].concat()
    }

    /// The record of a thread of process 7 that ends.
    fn exit(thread: u32, time: u64) -> Vec<u8> {
        record(4, 0, &[7, 7, thread, 7, 0, 0], thread, time)
    }

    fn switch(prev: Tid, state: State, next: Tid) -> What {
        What::Switch { prev, state, next }
    }

    /// A number of 64 bits.
    fn words(number: u64) -> [u32; 2] {
        let [low, high] = [number as u32, (number >> 32) as u32];
        if cfg!(target_endian = "big") { [high, low] } else { [low, high] }
    }

    const SWITCH: u32 = 14;
    const SWITCH_CPU_WIDE: u32 = 15;
    const OUT: u16 = 1 << 13;
    const OUT_PREEMPTED: u16 = OUT | 1 << 14;

    fn events(records: &[Vec<u8>]) -> (Vec<What>, u64) {
        read(Records::new(false), records)
    }

    fn read(mut reader: Records, records: &[Vec<u8>]) -> (Vec<What>, u64) {
        let mut stream = Stream::default();
        for record in records {
            reader.take(record, 3, &mut stream).expect("a good record");
        }
        reader.tell(u64::MAX, &mut stream).expect("good records");
        let settled = stream.settle(u64::MAX);
        (settled.events.iter().map(|event| event.what).collect(), stream.lost)
    }

    #[test]
    fn a_threads_turns_begin_and_end_with_the_idle_thread() {
        let (events, _) = events(&[
            record(SWITCH, 0, &[], 8, 10),
            record(SWITCH, OUT_PREEMPTED, &[], 8, 20),
            record(SWITCH, OUT, &[], 9, 30),
        ]);
        let expected = [
            switch(IDLE, State::RUNNABLE, 8),
            switch(8, State::RUNNABLE, IDLE),
            switch(9, State::SLEEPING, IDLE),
        ];
        assert_eq!(events, expected);
    }

    /// The first two records are of one switch, from 8 to 9; before the fourth something else ran.
    #[test]
    fn two_threads_of_a_process_are_switched_between_once() {
        let (events, _) = events(&[
            record(SWITCH, OUT, &[], 8, 10_000),
            record(SWITCH, 0, &[], 9, 10_900),
            record(SWITCH, OUT, &[], 9, 20_000),
            record(SWITCH, 0, &[], 8, 29_000),
        ]);
        let expected = [
            switch(8, State::SLEEPING, 9),
            switch(9, State::SLEEPING, IDLE),
            switch(IDLE, State::RUNNABLE, 8),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_switch_that_is_told_of_twice_is_one() {
        let records = [
            record(SWITCH_CPU_WIDE, OUT, &[9, 9], 8, 10),
            record(SWITCH_CPU_WIDE, 0, &[8, 8], 9, 11),
        ];
        let (events, _) = read(Records::new(true), &records);
        assert_eq!(events, [What::Switch { prev: 8, state: State::SLEEPING, next: 9 }]);
    }

    #[test]
    fn a_thread_of_a_system_that_ended_is_left_once_though_its_number_is_gone() {
        let records = [
            record(SWITCH_CPU_WIDE, OUT, &[7, 8], 0, 10),
            exit(8, 12),
            record(SWITCH_CPU_WIDE, OUT_PREEMPTED, &[7, 9], 8, 13),
            record(SWITCH_CPU_WIDE, OUT, &[7, 8], 9, 14),
            record(SWITCH_CPU_WIDE, OUT, &[7, 9], u32::MAX, 15),
            record(SWITCH_CPU_WIDE, OUT, &[0, 0], 9, 16),
        ];
        let (events, _) = read(Records::new(true), &records);
        let expected = [
            switch(IDLE, State::SLEEPING, 8),
            What::Exit { thread: 8 },
            switch(8, State::RUNNABLE, 9),
            switch(9, State::SLEEPING, 8),
            switch(8, State::DEAD, 9),
            switch(9, State::SLEEPING, IDLE),
        ];
        assert_eq!(events, expected);
    }

    /// Threads 8 and 9 are preempted when their numbers are gone already. Nothing but what happened
    /// on their CPU tells who is switched to when they go on.
    #[test]
    fn threads_of_a_system_that_ended_go_on_though_their_numbers_are_gone() {
        let gone = u32::MAX;
        let records = [
            record(SWITCH_CPU_WIDE, OUT, &[7, 8], 0, 10),
            exit(8, 11),
            record(SWITCH_CPU_WIDE, OUT_PREEMPTED, &[7, 9], gone, 12),
            exit(9, 13),
            record(SWITCH_CPU_WIDE, OUT_PREEMPTED, &[gone, gone], gone, 14),
            record(SWITCH_CPU_WIDE, OUT, &[gone, gone], gone, 15),
            record(SWITCH_CPU_WIDE, OUT, &[7, 5], gone, 16),
            record(SWITCH_CPU_WIDE, OUT, &[gone, gone], 5, 17),
        ];
        let (events, _) = read(Records::new(true), &records);
        let expected = [
            switch(IDLE, State::SLEEPING, 8),
            What::Exit { thread: 8 },
            switch(8, State::RUNNABLE, 9),
            What::Exit { thread: 9 },
            switch(9, State::RUNNABLE, 8),
            switch(8, State::DEAD, 9),
            switch(9, State::DEAD, 5),
            switch(5, State::SLEEPING, UNKNOWN),
        ];
        assert_eq!(events, expected);
    }

    /// The kernel leaves out that thread 8 runs again, and later gives its number to another.
    #[test]
    fn a_thread_without_a_number_is_the_last_that_was_preempted_without_one() {
        let gone = u32::MAX;
        let records = [
            record(SWITCH_CPU_WIDE, OUT, &[7, 8], 0, 10),
            exit(8, 11),
            record(SWITCH_CPU_WIDE, OUT_PREEMPTED, &[7, 9], gone, 12),
            exit(9, 13),
            record(SWITCH_CPU_WIDE, OUT_PREEMPTED, &[7, 5], gone, 14),
            record(SWITCH_CPU_WIDE, OUT, &[gone, gone], 5, 15),
            record(SWITCH_CPU_WIDE, OUT, &[7, 5], gone, 16),
            record(7, 0, &[7, 7, 8, 5, 0, 0], 5, 17),
            record(SWITCH_CPU_WIDE, OUT, &[gone, gone], 5, 18),
        ];
        let (events, _) = read(Records::new(true), &records);
        let expected = [
            switch(5, State::SLEEPING, 9),
            switch(9, State::DEAD, 5),
            What::Fork { parent: 5, child: 8, shares: Shares::Process },
            switch(5, State::SLEEPING, UNKNOWN),
        ];
        assert_eq!(events[5..], expected);
    }

    /// The ring of CPU 1, where thread 8 begins to end, is read before it does; that of CPU 0, where
    /// it goes on, after that.
    #[test]
    fn a_record_waits_until_all_before_it_are_there() {
        let (mut reader, mut stream) = (Records::new(true), Stream::default());
        let gone = u32::MAX;
        let of_0 = [
            record(SWITCH_CPU_WIDE, OUT, &[gone, gone], 5, 14),
            record(SWITCH_CPU_WIDE, OUT, &[0, 0], gone, 15),
        ];
        let of_1 = [exit(8, 12), record(SWITCH_CPU_WIDE, OUT_PREEMPTED, &[0, 0], gone, 13)];
        for (cpu, records, until) in [(0, of_0, 11), (1, of_1, 20)] {
            for record in &records {
                reader.take(record, cpu, &mut stream).expect("a good record");
            }
            reader.tell(until, &mut stream).expect("good records");
        }
        let settled = stream.settle(u64::MAX);
        let ends = switch(8, State::DEAD, IDLE);
        assert!(settled.events.iter().any(|event| event.what == ends), "{:?}", settled.events);
    }

    /// The ring of the CPU where the thread ended is read first, and then that of the CPU where it
    /// began. The last record of the first waits, because one before it may still come.
    #[test]
    fn a_thread_may_begin_and_end_on_two_cpus_between_two_looks_at_the_rings() {
        let (mut reader, mut stream) = (Records::new(true), Stream::default());
        let fork = record(7, 0, &[7, 7, 8, 7, 0, 0], 7, 10);
        let last = record(SWITCH_CPU_WIDE, OUT, &[0, 0], u32::MAX, 13);
        for (record, cpu) in [(&exit(8, 12), 0), (&last, 0), (&fork, 1)] {
            reader.take(record, cpu, &mut stream).expect("a good record");
        }
        let mut told = |until| {
            reader.tell(until, &mut stream).expect("good records");
            let settled = stream.settle(until);
            settled.events.iter().map(|event| event.what).collect::<Vec<What>>()
        };
        let fork = What::Fork { parent: 7, child: 8, shares: Shares::Process };
        assert_eq!(told(13), [fork, What::Exit { thread: 8 }]);
        let dead = What::Switch { prev: 8, state: State::DEAD, next: IDLE };
        assert_eq!(told(u64::MAX), [dead]);
    }

    #[test]
    fn threads_processes_and_their_ends() {
        let (events, lost) = events(&[
            record(7, 0, &[7, 7, 9, 8, 10, 0], 8, 10),
            record(7, 0, &[11, 7, 11, 8, 11, 0], 8, 11),
            record(2, 0, &[words(1), words(5)].concat(), 8, 12),
            record(4, 0, &[7, 7, 9, 8, 13, 0], 9, 13),
        ]);
        let expected = [
            What::Fork { parent: 8, child: 9, shares: Shares::Process },
            What::Fork { parent: 8, child: 11, shares: Shares::Nothing },
            What::Exit { thread: 9 },
            What::Switch { prev: 9, state: State::DEAD, next: IDLE },
        ];
        assert_eq!((events, lost), (expected.to_vec(), 5));
    }

    #[test]
    fn a_record_of_any_bytes_is_taken_or_refused() {
        for seed in 0..200_000u64 {
            let mut reader = Records::new(seed % 2 == 0);
            let mut random = percid_sim::random::Random::new(seed);
            let mut bytes: Vec<u8> =
                (0..random.below(80)).map(|_| random.below(256) as u8).collect();
            if let Some(kind) = bytes.get_mut(..4) {
                kind.copy_from_slice(&(random.below(20) as u32).to_ne_bytes());
            }
            // Only termination matters, not the result.
            let _ = reader.take(&bytes, 0, &mut Stream::default());
            let _ = reader.tell(u64::MAX, &mut Stream::default());
        }
    }
}
