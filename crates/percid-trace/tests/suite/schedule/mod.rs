//! Schedules made up from a seed, for tests of what stores and reads them.

#![allow(dead_code, reason = "not every test needs every kind of schedule")]

use percid_sim::random::Random;
use percid_trace::collector::{Collector, Tracepoint};
use percid_trace::counters::Counted;
use percid_trace::event::{Event, IDLE, Shares, Stage, State, UNKNOWN, What};
use percid_trace::interner::Text;
use percid_trace::trace::{Coverage, Origin, Sampling, Trace};

/// Returns the origin of the made-up schedules.
pub(crate) fn origin() -> Origin {
    Origin {
        release: Some("6.18.44-made+up".into()),
        clock: Some("boot".into()),
        possible_cpus: Some(64),
        online_cpus: Some(CPUS),
        lost: 3,
        command: Some("make -j8 \"it's ü\"".into()),
        subject: vec![4711, 4712],
        scan: None,
        nodes: Vec::new(),
        counters: Vec::new(),
        remarks: vec!["a remark".into(), "and another, \"quoted\"".into()],
        late_cpus: vec![1, 63],
        coverage: Coverage {
            sampling: Some(Sampling::Period(7)),
            away_only: true,
            not_inherited: true,
            some_cpus: true,
            filtered: true,
            cut_off: true,
            inferred: 5,
            unread: 4,
            no_states: true,
        },
    }
}

const CPUS: u32 = 8;

/// Names that programs give to their threads and that are hard to parse.
const NAMES: [&[u8]; 10] = [
    b"postgres",
    b"tokio-runtime-w",
    b"kworker/0:1H-ev",
    b"a b  c",
    b"==> next_comm=",
    b"\xc3\xbcmlaut",
    b"tab\tand\"quote",
    b"<idle>",
    b"0",
    b"swapper/1",
];

/// A schedule that a kernel could have made, of about this number of events: threads run, sleep,
/// wake each other, move, are born and die; every kind of event is there.
pub(crate) fn plausible(seed: u64, events: usize) -> Trace {
    let mut kernel = Kernel::new(seed, events);
    while kernel.out.len() < events {
        kernel.step();
    }
    kernel.out.finish(origin())
}

struct Kernel {
    random: Random,
    out: Collector,
    time: u64,
    running: [u32; CPUS as usize],
    /// Threads that run nowhere, and where each ran last.
    ready: Vec<(u32, u32)>,
    next_thread: u32,
}

impl Kernel {
    fn new(seed: u64, events: usize) -> Kernel {
        let mut out = Collector::with_capacity(events + 100);
        let time = 5_000_000_000_000;
        for thread in 100..124 {
            out.name(time, 0, thread, name(thread));
            out.member(time, 0, thread, 100 + (thread - 100) / 6 * 6);
        }
        out.affinity(time, 0, 101, "0-3,8,10-11");
        let ready = (100..124).map(|thread| (thread, thread % CPUS)).collect();
        let random = Random::new(seed);
        Kernel { random, out, time, running: [IDLE; CPUS as usize], ready, next_thread: 124 }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }

    fn hit(&mut self, cpu: u32, tracepoint: Tracepoint<'_>) {
        let pause = self.random.exponential(1500.0) as u64;
        self.time += pause;
        self.out.tracepoint(self.time, cpu, self.running[cpu as usize], tracepoint);
    }

    fn step(&mut self) {
        let cpu = self.random.below(u64::from(CPUS)) as u32;
        let current = self.running[cpu as usize];
        match self.below(100) {
            0 if current != IDLE => self.fork(cpu),
            1 if current != IDLE && current.is_multiple_of(6) => self.exec(cpu),
            2..=4 if current != IDLE => self.hit(cpu, Tracepoint::Tick),
            5 if current != IDLE => {
                let newcomm = name(current.wrapping_add(self.time as u32));
                self.hit(cpu, Tracepoint::TaskRename { pid: current, newcomm });
            }
            _ => self.switch(cpu),
        }
    }

    fn switch(&mut self, cpu: u32) {
        let prev = self.running[cpu as usize];
        let next = self.wake(cpu).unwrap_or(IDLE);
        if next == prev {
            return;
        }
        let dies = prev != IDLE && self.below(400) == 0;
        if dies {
            self.hit(cpu, Tracepoint::SchedProcessExit { comm: name(prev), pid: prev });
        }
        let state = [0, 0x100, 1, 1, 1, 2, 0x80][self.below(7)];
        self.hit(
            cpu,
            Tracepoint::SchedSwitch {
                prev_comm: name(prev),
                prev_pid: prev,
                prev_state: if dies { 0x10 } else { state },
                next_comm: name(next),
                next_pid: next,
            },
        );
        self.running[cpu as usize] = next;
        if prev != IDLE && !dies {
            self.ready.push((prev, cpu));
        }
        if next != IDLE {
            let mm_cid = (next % 6).min(cpu);
            self.hit(cpu, Tracepoint::RseqUpdate { node_id: cpu / 4, mm_cid });
        }
    }

    /// Wakes a thread that runs nowhere, and moves it here.
    fn wake(&mut self, cpu: u32) -> Option<u32> {
        if self.ready.is_empty() || self.below(4) == 0 {
            return None;
        }
        let nth = self.below(self.ready.len());
        let (pid, last) = self.ready.swap_remove(nth);
        let (comm, target_cpu) = (name(pid), cpu);
        self.hit(cpu, Tracepoint::SchedWaking { comm, pid, target_cpu: last });
        if last != cpu {
            let (orig_cpu, dest_cpu) = (last, cpu);
            self.hit(cpu, Tracepoint::SchedMigrateTask { comm, pid, orig_cpu, dest_cpu });
        }
        self.hit(cpu, Tracepoint::SchedWakeup { comm, pid, target_cpu });
        Some(pid)
    }

    fn fork(&mut self, cpu: u32) {
        let (parent_pid, pid) = (self.running[cpu as usize], self.next_thread);
        self.next_thread += 1;
        let comm = name(parent_pid);
        let clone_flags = [0, 0x4100, 0x10100][self.below(3)];
        self.hit(cpu, Tracepoint::TaskNewtask { comm, pid, clone_flags });
        self.hit(
            cpu,
            Tracepoint::SchedProcessFork { parent_pid, child_comm: comm, child_pid: pid },
        );
        self.hit(cpu, Tracepoint::SchedWakeupNew { comm, pid, target_cpu: cpu });
        self.ready.push((pid, cpu));
    }

    fn exec(&mut self, cpu: u32) {
        let pid = self.running[cpu as usize];
        self.hit(cpu, Tracepoint::SchedProcessExec { pid, old_pid: pid });
    }
}

fn name(thread: u32) -> &'static [u8] {
    match thread {
        IDLE => b"swapper/0",
        _ => NAMES[thread as usize % NAMES.len()],
    }
}

/// Turns with any counts that their types allow, of three counters, and their names.
pub(crate) fn counted(seed: u64, turns: u64) -> (Vec<String>, Vec<Counted>) {
    let mut random = Random::new(seed);
    let mut large = || random.below(1 << 32) << random.below(33) | random.below(2);
    let turn = |nr| Counted {
        time: 3000 * nr,
        cpu: (large() % 5) as u32,
        thread: large() as u32,
        ran: large(),
        uncounted: large(),
        counts: [large(), large(), large(), 0, 0, 0, 0, 0],
    };
    let names = ["cycles", "r1c2", "page-faults"].map(str::to_owned);
    (names.into(), (0..turns).map(turn).collect())
}

/// Events with any values that their types allow, in the order of a trace.
pub(crate) fn arbitrary(seed: u64, events: usize) -> Trace {
    let mut random = Random::new(seed);
    let mut trace = Trace { origin: Origin::default(), ..Trace::default() };
    let mut time = 0;
    let texts: Vec<Text> = NAMES.iter().map(|name| trace.texts.intern(name)).collect();
    let empty = trace.texts.intern(b"");
    let texts = [&texts[..], &[empty]].concat();
    for _ in 0..events {
        time += random.below(3) << random.below(40);
        let cpu = number(&mut random);
        let what = anything(&mut random, &texts);
        trace.events.push(Event { time, cpu, what });
    }
    trace.events.sort_by_key(|event| (event.time, event.cpu));
    trace
}

fn number(random: &mut Random) -> u32 {
    match random.below(8) {
        0 => UNKNOWN,
        1 => UNKNOWN - 1,
        2 => 1 << 31,
        _ => random.below(16) as u32,
    }
}

fn anything(random: &mut Random, texts: &[Text]) -> What {
    let text = texts[random.below(texts.len() as u64) as usize];
    let pick = random.below(3) as usize;
    let (thread, other, third) = (number(random), number(random), number(random));
    match random.below(11) {
        0 => What::Switch { prev: other, state: State(third), next: thread },
        1 => {
            let stage = [Stage::Waking, Stage::Woken, Stage::New][pick];
            What::Wakeup { thread, target: other, stage }
        }
        2 => What::Migrate { thread, from: other, to: third },
        3 => {
            let shares = [Shares::Unknown, Shares::Nothing, Shares::Memory, Shares::Process];
            What::Fork { parent: other, child: thread, shares: shares[third as usize % 4] }
        }
        4 => What::Exec { thread, old: other },
        5 => What::Exit { thread },
        6 => What::Affinity { thread, cpus: text },
        7 => What::Id { thread, node: other, id: third },
        8 => What::Tick { thread },
        9 => What::Member { thread, process: other },
        _ => What::Name { thread, name: text },
    }
}
