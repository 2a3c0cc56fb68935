//! The events of a schedule that all trace formats have in common.

use crate::interner::Text;

/// A CPU, numbered as the kernel numbers it.
pub type Cpu = u32;

/// A thread, numbered as the kernel numbers it (`gettid`). 0 is the idle thread of every CPU.
pub type Tid = u32;

/// The number of the idle thread, which every CPU has.
pub const IDLE: Tid = 0;

/// The number of the kernel thread that creates all other kernel threads.
pub const KTHREADD: Tid = 2;

/// The number of a thread that the trace does not identify.
pub const UNKNOWN: Tid = Tid::MAX;

/// An event of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// Time of the event, in nanoseconds on the trace's clock.
    pub time: u64,
    /// The CPU on which it happened.
    pub cpu: Cpu,
    /// Kind of the event, with its values.
    pub what: What,
}

impl Event {
    /// Returns `true` if it happened on its CPU. Recorders add other events, which contain what is
    /// known about threads.
    pub(crate) fn was_recorded(&self) -> bool {
        !matches!(self.what, What::Member { .. } | What::Name { .. } | What::Affinity { .. })
    }
}

/// A kind of event, with its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum What {
    /// The CPU switched from one thread to another.
    Switch {
        /// The thread that ran until now; [`UNKNOWN`] if the trace does not say.
        prev: Tid,
        /// The reason why it stopped.
        state: State,
        /// The thread that runs from now on.
        next: Tid,
    },
    /// A thread was, or is about to be, made ready to run on a CPU.
    Wakeup {
        /// The thread that is woken.
        thread: Tid,
        /// The CPU in whose queue it is put.
        target: Cpu,
        /// The kernel's event.
        stage: Stage,
    },
    /// A thread that does not run was moved to another CPU's queue.
    Migrate {
        /// The thread that was moved.
        thread: Tid,
        /// The CPU in whose queue it was.
        from: Cpu,
        /// The CPU in whose queue it is.
        to: Cpu,
    },
    /// A thread was created.
    Fork {
        /// The thread that created it.
        parent: Tid,
        /// The new thread.
        child: Tid,
        /// The resources that the two share.
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
        /// The thread that ends.
        thread: Tid,
    },
    /// A thread may run on these CPUs.
    Affinity {
        /// The thread.
        thread: Tid,
        /// The CPUs, as the kernel writes lists of them: `0-3,8`.
        cpus: Text,
    },
    /// A thread goes back to user space with this concurrency ID (`rseq:rseq_update`).
    Id {
        /// The thread, which runs on the event's CPU.
        thread: Tid,
        /// The NUMA node that the kernel reports to it.
        node: u32,
        /// Its concurrency ID (`mm_cid`).
        id: u32,
    },
    /// The timer tick found a thread running.
    Tick {
        /// The thread that runs.
        thread: Tid,
    },
    /// A thread belongs to a process since a time that the trace does not contain.
    Member {
        /// The thread.
        thread: Tid,
        /// The process (`getpid`).
        process: Tid,
    },
    /// A thread has this name (`comm`) from now on, according to the trace.
    Name {
        /// The thread.
        thread: Tid,
        /// The name.
        name: Text,
    },
}

impl What {
    /// Returns the name of the kind of event, which tables contain too.
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

/// The reason why a thread stopped running: the kernel's bits, as `sched_switch` reports them. 0
/// means that it could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct State(pub u32);

impl State {
    /// The thread could go on, and was not preempted.
    pub const RUNNABLE: State = State(0);
    /// The thread sleeps until something wakes it (`S`).
    pub const SLEEPING: State = State(1);
    /// The thread has ended (`X`).
    pub const DEAD: State = State(0x10);
    /// The thread was preempted (`R+`).
    pub const PREEMPTED: State = State(0x100);

    /// Returns the state in a `prev_state` of a kernel since 4.14. Bits without a name in the
    /// kernel are left out.
    pub fn from_kernel(prev_state: u64) -> State {
        State((prev_state & 0x1ff) as u32)
    }

    /// Returns `true` if the thread has ended and will not run again: it is dead (`X`), or dead
    /// until its parent waits for it (`Z`).
    pub fn is_dead(self) -> bool {
        self.0 & 0x30 != 0
    }

    /// Returns `true` if the thread could go on.
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

/// The resources that a new thread shares with the one that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shares {
    /// The trace does not contain it.
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
    /// Returns what a thread shares if it was created with these flags of `clone`.
    pub fn from_clone_flags(flags: u64) -> Shares {
        match () {
            () if flags & CLONE_THREAD != 0 => Shares::Process,
            () if flags & CLONE_VM != 0 => Shares::Memory,
            () => Shares::Nothing,
        }
    }

    /// Returns the flags of `clone` for a thread that shares this; `None` if it is not known.
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
