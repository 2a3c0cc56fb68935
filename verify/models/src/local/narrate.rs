//! Steps and states in words.

use super::protocol::{Action, Local, Taking};
use super::state::{At, CpuNr, Hold, Id, Lock, Set, State, Step, Thief, Visit, Work};

/// Who takes `action` in `before`, and what it does.
pub(super) fn narrate(model: &Local, before: &State, action: Action) -> (String, String) {
    match action {
        Action::Run(nr, cpu) => (thread(before, nr), format!("is scheduled on cpu{cpu}")),
        Action::Preempt(nr) => {
            let aborted = aborted(model, before, nr);
            (thread(before, nr), format!("is preempted{aborted}"))
        }
        Action::Begin(nr, expects) => {
            (thread(before, nr), format!("wants a shard whose lock is {}", name(expects)))
        }
        Action::Thread(nr) => (thread(before, nr), thread_step(model, before, nr)),
        Action::Fail(nr) => (thread(before, nr), "makes no value; store lock = NONE".into()),
        Action::Flush(cpu, index) => {
            let write = before.buffers[usize::from(cpu)].iter().nth(index);
            let write = write.map_or(String::new(), |write| {
                format!("store of lock {} = {}", write.id, name(write.lock))
            });
            (format!("cpu{cpu}"), format!("its {write} becomes visible"))
        }
        Action::Visit(nr, drains) => {
            let what = if drains { "drain" } else { "visit" };
            (visitor(nr), format!("begins to {what}"))
        }
        Action::Visitor(nr) => (visitor(nr), visitor_step(model, before, nr)),
        Action::Choose(nr, id) => (visitor(nr), format!("goes for {id}")),
        Action::Reach(nr, cpu) => {
            (visitor(nr), format!("membarrier reaches {}", fenced(model, before, cpu)))
        }
        Action::Steal(cpu, id) => ("thief".into(), format!("{id}: store table[{cpu}] = UNSET")),
        Action::Thief => ("thief".into(), thief_step(model, before)),
        Action::Install(cpu, id) => ("thief".into(), format!("store table[{cpu}] = {id}")),
    }
}

fn thread(before: &State, nr: usize) -> String {
    match before.threads[nr].on {
        Some(cpu) => format!("T{nr} on cpu{cpu}"),
        None => format!("T{nr}"),
    }
}

fn visitor(nr: usize) -> String {
    format!("visitor{nr}")
}

fn name(lock: Lock) -> &'static str {
    match lock {
        Lock::None => "NONE",
        Lock::Ready => "READY",
        Lock::Held => "a token",
    }
}

fn aborted(model: &Local, before: &State, nr: usize) -> &'static str {
    let mut thread = before.threads[nr];
    super::thread::abort(model, &mut thread);
    if thread == before.threads[nr] { "" } else { ", section aborted" }
}

fn fenced(model: &Local, before: &State, cpu: CpuNr) -> String {
    let running = before.threads.iter().position(|thread| thread.on == Some(cpu));
    let aborted = running.map_or("", |nr| aborted(model, before, nr));
    format!("cpu{cpu}{aborted}")
}

fn thread_step(model: &Local, before: &State, nr: usize) -> String {
    let thread = before.threads[nr];
    let (Some(cpu), Some(Work { expects, at })) = (thread.on, thread.work) else {
        return String::new();
    };
    let closed = |id| if before.shard(id).closed { "yes" } else { "no" };
    match at {
        At::Start => {
            let kind = if model.taking == Taking::Section { "section: " } else { "" };
            match before.table[usize::from(cpu)] {
                Some(id) => format!("{kind}load the ID: {id}"),
                None => format!("{kind}load the ID: UNSET, leave"),
            }
        }
        At::Look(id) => format!("is {id} closed? {}", closed(id)),
        At::Load(id) => format!("load lock {id}: {}", name(before.lock_seen_on(cpu, id))),
        At::Commit(id) => format!("store lock {id} = its token: commit"),
        At::Exchange(id) => {
            let good = before.lock_seen_on(cpu, id) == expects;
            let outcome = if good { "yes" } else { "no" };
            format!("CAS lock {id} {} -> its token: {outcome}", name(expects))
        }
        At::LookAgain(id) => format!("full barrier; is {id} closed now? {}", closed(id)),
        At::PutBack(id) => format!("puts back: store lock {id} = {}", name(expects)),
        At::Make(id) => format!("makes a value for {id}"),
        At::Mark(id) => format!("fetch_or bit {id} of the mask"),
        At::Inside(id) => format!("is done; store lock {id} = READY"),
    }
}

fn visitor_step(model: &Local, before: &State, nr: usize) -> String {
    let visitor = before.visitors[nr];
    match visitor.at {
        Visit::Turn => "takes its turn".into(),
        Visit::Mask => format!("load the mask: {}", ids(before.mask)),
        Visit::Shard(hold) => shard_step(model, before, visitor.drains, hold),
        Visit::End => "is done; ends its turn".into(),
        Visit::Idle | Visit::Choose => String::new(),
    }
}

fn shard_step(model: &Local, before: &State, drains: bool, hold: Hold) -> String {
    let Hold { id, step, .. } = hold;
    match step {
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

fn thief_step(model: &Local, before: &State) -> String {
    match before.thief {
        Thief::Fence(cpu, _) => format!("fence {}", fenced(model, before, cpu)),
        Thief::Idle | Thief::Install(_) => String::new(),
    }
}

fn ids(members: Set) -> String {
    let members: Vec<String> =
        (0..Id::BITS).filter(|id| members & 1 << id != 0).map(|id| id.to_string()).collect();
    format!("{{{}}}", members.join(" "))
}

/// The state on one line: who runs where with which ID, the shards, the mask.
pub(super) fn picture(model: &Local, state: &State) -> String {
    let cpus = (0..model.cpus).map(|cpu| {
        let running = state.threads.iter().position(|thread| thread.on == Some(cpu));
        let running = running.map_or("-".into(), |nr| format!("T{nr}"));
        let id = state.table[usize::from(cpu)].map_or("-".into(), |id| id.to_string());
        format!("{running:2} {id}")
    });
    let shards = (0..model.ids).map(|id| {
        let shard = state.shard(id);
        let value = if shard.value { "value" } else { "-" };
        let closed = if shard.closed { "closed" } else { "open" };
        format!("{:7} {closed:6} {value:5}", name(shard.lock))
    });
    let parts: Vec<String> = cpus.chain(shards).collect();
    format!("| {} | mask {}", parts.join(" | "), ids(state.mask))
}
