//! Schedules that no kernel makes: events in any order, of threads that never began or ended long ago.

use arbitrary::Arbitrary;
use percid_trace::event::{Event, IDLE, Shares, Stage, State, UNKNOWN, What};
use percid_trace::{Origin, Trace};

/// A schedule, and one of the policies.
#[derive(Arbitrary, Debug)]
pub struct Schedule {
    release: Release,
    /// Any number.
    pub policy: u8,
    events: Vec<(u16, u8, Happened)>,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Release {
    None,
    FirstFree,
    CacheCold,
    CacheLocal,
    Owned,
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Happened {
    Switch(Thread, u8, Thread),
    Wakeup(Thread, u8, u8),
    Migrate(Thread, u8, u8),
    Fork(Thread, Thread, u8),
    Exec(Thread, Thread),
    Exit(Thread),
    Affinity(Thread, u8),
    Id(Thread, u8, u8),
    Tick(Thread),
    Member(Thread, Thread),
    Name(Thread, u8),
}

/// Few threads, so that events meet.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Thread(u8);

impl Thread {
    fn number(self) -> u32 {
        match self.0 % 16 {
            0 => IDLE,
            1 => UNKNOWN,
            other => 1000 + u32::from(other),
        }
    }
}

const AFFINITIES: [&[u8]; 5] = [b"0-3", b"5", b"0-15", b"", b"0-99999"];

impl Schedule {
    /// Returns the trace of the schedule.
    pub fn trace(&self) -> Trace {
        let mut trace = Trace { origin: origin(self.release), ..Trace::default() };
        let mut time = 0;
        for &(pause, cpu, happened) in &self.events {
            time += u64::from(pause) * 4096;
            let what = what(happened, &mut trace);
            trace.events.push(Event { time, cpu: u32::from(cpu % 16), what });
        }
        trace.events.sort_by_key(|event| (event.time, event.cpu));
        trace
    }
}

fn what(happened: Happened, trace: &mut Trace) -> What {
    let cpu = |cpu: u8| u32::from(cpu % 18);
    match happened {
        Happened::Switch(prev, state, next) => {
            let state = State(u32::from(state));
            What::Switch { prev: prev.number(), state, next: next.number() }
        }
        Happened::Wakeup(thread, target, stage) => {
            let stage = [Stage::Waking, Stage::Woken, Stage::New][usize::from(stage % 3)];
            What::Wakeup { thread: thread.number(), target: cpu(target), stage }
        }
        Happened::Migrate(thread, from, to) => {
            What::Migrate { thread: thread.number(), from: cpu(from), to: cpu(to) }
        }
        Happened::Fork(parent, child, shares) => {
            let all = [Shares::Unknown, Shares::Nothing, Shares::Memory, Shares::Process];
            let shares = all[usize::from(shares % 4)];
            What::Fork { parent: parent.number(), child: child.number(), shares }
        }
        Happened::Exec(thread, old) => What::Exec { thread: thread.number(), old: old.number() },
        Happened::Exit(thread) => What::Exit { thread: thread.number() },
        Happened::Affinity(thread, list) => {
            let cpus = AFFINITIES[usize::from(list) % AFFINITIES.len()];
            What::Affinity { thread: thread.number(), cpus: trace.texts.intern(cpus) }
        }
        Happened::Id(thread, node, id) => {
            What::Id { thread: thread.number(), node: node.into(), id: id.into() }
        }
        Happened::Tick(thread) => What::Tick { thread: thread.number() },
        Happened::Member(thread, process) => {
            What::Member { thread: thread.number(), process: process.number() }
        }
        Happened::Name(thread, name) => {
            let name = trace.texts.intern(&[b'a' + name % 4]);
            What::Name { thread: thread.number(), name }
        }
    }
}

fn origin(release: Release) -> Origin {
    let release = match release {
        Release::None => None,
        Release::FirstFree => Some("6.3.0"),
        Release::CacheCold => Some("6.12.1"),
        Release::CacheLocal => Some("6.18.44"),
        Release::Owned => Some("6.19.0"),
    };
    Origin { release: release.map(str::to_owned), possible_cpus: Some(16), ..Origin::default() }
}
