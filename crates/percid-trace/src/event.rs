//! What happens in a schedule: the events that all formats have in common.

use crate::interner::Text;

/// A CPU, numbered as the kernel numbers it.
pub type Cpu = u32;

/// A thread by the kernel's number (`gettid`). 0 is the idle thread of every CPU.
pub type Tid = u32;

/// The idle thread, which every CPU has.
pub const IDLE: Tid = 0;

/// The kernel's thread that creates all other threads of the kernel.
pub const KTHREADD: Tid = 2;

/// A thread of which the trace does not say which one it was.
pub const UNKNOWN: Tid = Tid::MAX;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// When, in nanoseconds on the trace's clock.
    pub time: u64,
    /// The CPU on which it happened.
    pub cpu: Cpu,
    /// What happened.
    pub what: What,
}

impl Event {
    /// `true` if it happened on its CPU; recorders add what is known of threads.
    pub(crate) fn was_recorded(&self) -> bool {
        !matches!(self.what, What::Member { .. } | What::Name { .. } | What::Affinity { .. })
    }
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// The CPU switched from one thread to another.
    Switch {
        /// The thread that ran until now; [`UNKNOWN`] if the trace does not say.
        prev: Tid,
        /// Why it stopped.
        state: State,
        /// The thread that runs from now on.
        next: Tid,
    },
    /// A thread was, or is about to be, made ready to run on a CPU.
    Wakeup {
        /// Which one.
        thread: Tid,
        /// Where it is queued.
        target: Cpu,
        /// Which of the kernel's three events this was.
        stage: Stage,
    },
    /// A thread that does not run was moved to another CPU's queue.
    Migrate {
        /// Which one.
        thread: Tid,
        /// From where.
        from: Cpu,
        /// To where.
        to: Cpu,
    },
    /// A thread was created.
    Fork {
        /// By this one.
        parent: Tid,
        /// The new one.
        child: Tid,
        /// What the two have in common.
        shares: Shares,
    },
    /// A thread replaced its program: from now on it is alone in a new address space.
    Exec {
        /// The thread's number from now on: that of its process.
        thread: Tid,
        /// Its number until now.
        old: Tid,
    },
    /// A thread began to end.
    Exit {
        /// Which one.
        thread: Tid,
    },
    /// A thread may run on these CPUs.
    Affinity {
        /// Which one.
        thread: Tid,
        /// The CPUs, as the kernel writes lists of them: `0-3,8`.
        cpus: Text,
    },
    /// A thread goes back to user space with this concurrency ID (`rseq:rseq_update`).
    Id {
        /// Which one; it runs.
        thread: Tid,
        /// The NUMA node that the kernel reports to it.
        node: u32,
        /// Its concurrency ID (`mm_cid`).
        id: u32,
    },
    /// The timer tick found a thread running.
    Tick {
        /// Which one.
        thread: Tid,
    },
    /// A thread belongs to a process, which was so before the trace could show it.
    Member {
        /// Which one.
        thread: Tid,
        /// The process (`getpid`).
        process: Tid,
    },
    /// A thread has this name (`comm`) from now on, as far as the trace shows.
    Name {
        /// Which one.
        thread: Tid,
        /// The name.
        name: Text,
    },
}

impl What {
    /// What kind of event it is, by the name that it has in tables too.
    pub fn name(&self) -> &'static str {
        match self {
            What::Switch { .. } => "switch",
            What::Wakeup { stage: Stage::Waking, .. } => "waking",
            What::Wakeup { stage: Stage::Woken, .. } => "wakeup",
            What::Wakeup { stage: Stage::New, .. } => "wakeup_new",
            What::Migrate { .. } => "migrate",
            What::Fork { .. } => "fork",
            What::Exec { .. } => "exec",
            What::Exit { .. } => "exit",
            What::Affinity { .. } => "affinity",
            What::Id { .. } => "id",
            What::Tick { .. } => "tick",
            What::Member { .. } => "member",
            What::Name { .. } => "name",
        }
    }
}

/// Why a thread stopped running: the kernel's bits, as `sched_switch` reports them. 0 is that it
/// could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct State(pub u32);

impl State {
    /// It could go on, and was not asked to make room.
    pub const RUNNABLE: State = State(0);
    /// It sleeps until something wakes it (`S`).
    pub const SLEEPING: State = State(1);
    /// It has ended (`X`).
    pub const DEAD: State = State(0x10);
    /// It was preempted (`R+`).
    pub const PREEMPTED: State = State(0x100);

    /// The state that a kernel since 4.14 writes into `prev_state`, of which it gives no more bits
    /// a name.
    pub fn from_kernel(prev_state: u64) -> State {
        State((prev_state & 0x1ff) as u32)
    }

    /// Whether it has ended, and will not run again: dead (`X`), or dead until its parent waits for
    /// it (`Z`).
    pub fn is_dead(self) -> bool {
        self.0 & 0x30 != 0
    }

    /// Whether it could go on.
    pub fn is_runnable(self) -> bool {
        self.0 & 0xff == 0
    }
}

/// One of the kernel's three events of waking a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// `sched_waking`: another thread begins to wake it.
    Waking,
    /// `sched_wakeup`: it is ready.
    Woken,
    /// `sched_wakeup_new`: it is ready for the first time.
    New,
}

/// What a new thread has in common with the one that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shares {
    /// The trace does not say.
    Unknown,
    /// Nothing: a new process with memory of its own.
    Nothing,
    /// The memory, as after `vfork`: a new process in the same address space until one of them
    /// replaces its program.
    Memory,
    /// The process: a thread beside it.
    Process,
}

impl Shares {
    /// What a thread shares that was created with these flags of `clone`.
    pub fn from_clone_flags(flags: u64) -> Shares {
        match () {
            () if flags & CLONE_THREAD != 0 => Shares::Process,
            () if flags & CLONE_VM != 0 => Shares::Memory,
            () => Shares::Nothing,
        }
    }

    /// Flags of `clone` for a thread that shares this; `None` if it is not known.
    pub fn clone_flags(self) -> Option<u64> {
        match self {
            Shares::Unknown => None,
            Shares::Nothing => Some(0),
            Shares::Memory => Some(CLONE_VM | CLONE_VFORK),
            Shares::Process => Some(CLONE_VM | CLONE_THREAD),
        }
    }
}

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;
