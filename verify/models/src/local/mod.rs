//! The lock of percid's `Local`: one value per ID, used by one thread at a time, without locked
//! instructions.
//!
//! Every ID has a shard: a lock, a word that is set if the shard is closed, and a value. A thread
//! that runs with the ID takes the lock in a critical section: if the shard is open and the lock as
//! expected, it stores its token, which is the commit. It uses the value, or makes one if there was
//! none, and releases the lock by a plain store, from any CPU that it is on by then. If the thread
//! finds the shard closed or its lock held, it uses another place.
//!
//! A visitor closes the shard, makes the kernel abort the sections in flight (membarrier), and
//! takes the lock by an exchange as soon as the present holder has released it. The visitor uses
//! the value, or removes it, releases the lock and opens the shard.
//!
//! [`Taking::Exchange`]: shards on which no sections work. A thread checks whether the shard is
//! closed, exchanges the lock for its token, and after a full barrier checks again: if the shard
//! was closed in between, it restores the previous lock word.
//!
//! # Progress
//!
//! Only visitors wait ([`SOLO`]); and a visitor waits for the present holder only, however many
//! other threads come. After its fence no thread gets the shard any more ([`OVERTAKEN`]). Without
//! sections a thread may still take the lock briefly and restore it, but only once while the
//! visitor waits ([`STARVED`]).
//!
//! # Assumptions
//!
//! Those of [`crate::structure`], and:
//!
//! 1. Without sections all CPUs have the same shard, as extra shards are for all threads.
//! 2. An atomic read-modify-write empties the store buffer on x86-64; elsewhere it follows its
//!    CPU's own stores to the same lock only. Not left open are these: the loads of a section are
//!    performed in program order (the first is an acquire load); a value is written before READY
//!    is, and read after it was found; so is its bit set. Closing is followed by a full barrier.
//! 3. The use of a value is one step, and so is taking it out. A value that is there or not is seen
//!    by all threads at once: no step depends on it.
//! 4. A visit must have the values whose bits are set when it begins.

mod narrate;
mod properties;
pub mod state;
mod thread;
mod visitor;

use crate::structure::state::{CpuNr, Due, Hold, IDS, Id, Set, Visitor, Work};
use crate::structure::{Protocol, Renaming, Structure};
use state::{At, Fault, Lock, Shard, Shards, Step, Use, Write};

pub use crate::structure::SOLO;
pub use properties::{LOST, OVERTAKEN, OWED, REVIVED, SHARED, STARVED, UNMARKED};
pub use state::{Flaw, Taking};

/// One configuration of the model.
pub type Local = Structure<Taking>;
/// The global state.
pub type State = crate::structure::state::State<Taking>;

impl Local {
    /// Returns a configuration with sections, on one CPU with one ID: two threads, two visitors.
    #[must_use]
    pub const fn with_sections() -> Self {
        Structure::of(Taking::Section)
    }

    /// Returns the same on two CPUs, between which the ID moves.
    #[must_use]
    pub const fn with_theft() -> Self {
        Self { cpus: 2, theft: true, ..Self::with_sections() }
    }

    /// Returns a configuration without sections, on two CPUs that share a shard.
    #[must_use]
    pub const fn with_exchange() -> Self {
        Self { cpus: 2, ..Structure::of(Taking::Exchange) }
    }
}

impl Protocol for Taking {
    type Flaw = Flaw;
    /// Rules that the lock must keep.
    type Op = Lock;
    type At = At;
    type Write = Write;
    type Data = Shards;
    type Step = Step;
    /// `true` if the visitor has taken the lock.
    type Known = bool;
    type Fault = Fault;

    const START: At = At::Start;
    const DRAINS: &'static [bool] = &[false, true];
    const NOTHING: bool = false;
    const MEMBARRIER: Step = Step::Membarrier;
    const PLAIN_MEMBARRIER: Flaw = Flaw::PlainMembarrier;
    const NO_TURNS: Flaw = Flaw::NoTurns;
    const UNFENCED_THEFT: Flaw = Flaw::UnfencedTheft;
    const OWING: Fault = Fault::Owing;

    fn data(_: &Local) -> Shards {
        [Shard { lock: Lock::None, closed: false, value: false }; IDS]
    }

    fn first_id(model: &Local, cpu: CpuNr) -> Option<Id> {
        match model.protocol {
            Taking::Section => (cpu < model.ids).then_some(cpu),
            Taking::Exchange => Some(0),
        }
    }

    fn operations(_: &Local, _: &State) -> impl Iterator<Item = Lock> + use<> {
        [Lock::None, Lock::Ready].into_iter()
    }

    fn stores(work: Work<Self>) -> bool {
        matches!(work.at, At::Shard(_, Use::Commit | Use::PutBack | Use::Inside))
    }

    fn waits(model: &Local, state: &State, _: CpuNr, at: At) -> bool {
        let closed = matches!(at, At::Shard(id, Use::Look) if state.shard(id).closed);
        closed && model.flaw == Some(Flaw::Waits)
    }

    fn step(model: &Local, state: &mut State, due: Due<Self>) -> Option<At> {
        thread::step(model, state, due)
    }

    fn failure(at: At) -> Option<Write> {
        let At::Shard(id, Use::Make) = at else { return None };
        Some(Write { id, lock: Lock::None })
    }

    fn aborted(model: &Local, at: At) -> At {
        let in_section = matches!(at, At::Shard(_, Use::Look | Use::Load | Use::Commit));
        if in_section && model.protocol == Taking::Section { At::Start } else { at }
    }

    fn perform(_: &Local, state: &mut State, write: Write) {
        state.shard_mut(write.id).lock = write.lock;
    }

    fn steps(model: &Local) -> &'static [Step] {
        visitor::steps(model)
    }

    fn owed(model: &Local, state: &State) -> Set {
        visitor::owed(model, state)
    }

    fn visitor_waits(model: &Local, state: &State, hold: Hold<Self>) -> bool {
        hold.step == Step::Take
            && state.shard(hold.id).lock == Lock::Held
            && model.flaw != Some(Flaw::SkipsHeld)
    }

    fn act(model: &Local, state: &mut State, nr: usize, hold: Hold<Self>) -> Option<Hold<Self>> {
        visitor::act(model, state, nr, hold)
    }

    /// Omits the clearing of the bit, unless a drain took a value out.
    fn passes_over(hold: &mut Hold<Self>, drains: bool) -> bool {
        hold.step == Step::Clear && !(hold.known && drains)
    }

    fn broken(model: &Local, state: &State) -> Option<&'static str> {
        properties::broken(model, state)
    }

    fn rename_data(names: &Renaming<'_>, data: Shards) -> Shards {
        names.by_id(data)
    }

    fn rename_write(names: &Renaming<'_>, write: Write) -> Write {
        Write { id: names.id(write.id), ..write }
    }

    fn rename_work(names: &Renaming<'_>, work: Work<Self>) -> Work<Self> {
        let At::Shard(id, at) = work.at else { return work };
        Work { at: At::Shard(names.id(id), at), ..work }
    }

    fn rename_owed(names: &Renaming<'_>, owed: Set) -> Set {
        names.ids(owed)
    }

    fn say_op(expects: Lock) -> String {
        format!("wants a shard whose lock is {}", narrate::name(expects))
    }

    fn say_step(model: &Local, before: &State, cpu: CpuNr, work: Work<Self>) -> String {
        narrate::thread_step(model, before, cpu, work)
    }

    fn say_write(write: Write) -> String {
        narrate::write(write)
    }

    fn say_visit(
        model: &Local,
        before: &State,
        visitor: Visitor<Self>,
        hold: Hold<Self>,
    ) -> String {
        narrate::shard_step(model, before, visitor.drains, hold)
    }

    fn picture(state: &State, id: Id) -> String {
        narrate::picture(state, id)
    }
}
