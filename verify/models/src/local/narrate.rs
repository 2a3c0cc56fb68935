//! Steps and states in words.

use super::state::{At, Lock, Step, Taking, Use, Write};
use super::{Local, State};
use crate::structure::state::{CpuNr, Hold, Id, Work};

pub(super) fn name(lock: Lock) -> &'static str {
    match lock {
        Lock::None => "NONE",
        Lock::Ready => "READY",
        Lock::Held => "a token",
    }
}

pub(super) fn write(write: Write) -> String {
    format!("lock {} = {}", write.id, name(write.lock))
}

pub(super) fn thread_step(model: &Local, before: &State, cpu: CpuNr, work: Work<Taking>) -> String {
    let At::Shard(id, at) = work.at else {
        let kind = if model.protocol == Taking::Section { "section: " } else { "" };
        return match before.table[usize::from(cpu)] {
            Some(id) => format!("{kind}load the ID: {id}"),
            None => format!("{kind}load the ID: UNSET, leave"),
        };
    };
    let (closed, seen) = (yes(before.shard(id).closed), before.lock_seen_on(cpu, id));
    let expected = name(work.op);
    match at {
        Use::Look => format!("is {id} closed? {closed}"),
        Use::Load => format!("load lock {id}: {}", name(seen)),
        Use::Commit => format!("store lock {id} = its token: commit"),
        Use::Exchange => {
            format!("CAS lock {id} {expected} -> its token: {}", yes(seen == work.op))
        }
        Use::LookAgain => format!("full barrier; is {id} closed now? {closed}"),
        Use::PutBack => format!("puts back: store lock {id} = {expected}"),
        Use::Make => format!("makes a value for {id}"),
        Use::Mark => format!("fetch_or bit {id} of the mask"),
        Use::Inside => format!("is done; store lock {id} = READY"),
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

pub(super) fn shard_step(
    model: &Local,
    before: &State,
    drains: bool,
    hold: Hold<Taking>,
) -> String {
    let id = hold.id;
    match hold.step {
        Step::Close => format!("closes {id}"),
        Step::Membarrier => String::new(),
        Step::Take => {
            let found = before.shard(id).lock;
            let how = if model.exchanges() { "CAS" } else { "load" };
            let outcome = if found == Lock::Ready { "its own" } else { "left alone" };
            format!("{how} lock {id}: {}: {outcome}", name(found))
        }
        Step::Use if drains => format!("takes the value of {id} out"),
        Step::Use => format!("uses the value of {id}"),
        Step::Clear => format!("fetch_and: clear bit {id} of the mask"),
        Step::Release if drains => format!("store lock {id} = NONE"),
        Step::Release => format!("store lock {id} = READY"),
        Step::Open => format!("opens {id}"),
    }
}

pub(super) fn picture(state: &State, id: Id) -> String {
    let shard = state.shard(id);
    let value = if shard.value { "value" } else { "-" };
    let closed = if shard.closed { "closed" } else { "open" };
    format!("{:7} {closed:6} {value:5}", name(shard.lock))
}
