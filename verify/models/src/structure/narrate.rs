//! Steps and states in words.

use super::state::{CpuNr, Id, Set, State, Thief, Visit};
use super::thread::next_step;
use super::{Action, Protocol, Structure};

/// Returns the actor of `action` in `before`, and its effect.
pub(super) fn narrate<P: Protocol>(
    model: &Structure<P>,
    before: &State<P>,
    action: Action<P>,
) -> (String, String) {
    match action {
        Action::Run(nr, cpu) => (thread(before, nr), format!("is scheduled on cpu{cpu}")),
        Action::Preempt(nr) => {
            (thread(before, nr), format!("is preempted{}", aborted(model, before, nr)))
        }
        Action::Begin(nr, op) => (thread(before, nr), P::say_op(op)),
        Action::Thread(nr) => {
            let step = next_step(before, nr).map(|at| P::say_step(model, before, at.cpu, at.work));
            (thread(before, nr), step.unwrap_or_default())
        }
        Action::Fail(nr) => {
            let write = next_step(before, nr).and_then(|at| P::failure(at.work.at));
            let write = write.map(P::say_write).unwrap_or_default();
            (thread(before, nr), format!("cannot; store of {write}"))
        }
        Action::Flush(cpu, index) => {
            let write = before.buffers[usize::from(cpu)].iter().nth(index);
            let write = write.map(|&write| P::say_write(write)).unwrap_or_default();
            (format!("cpu{cpu}"), format!("its store of {write} becomes visible"))
        }
        Action::Visit(nr, drains) => {
            (visitor(nr), format!("begins to {}", if drains { "drain" } else { "visit" }))
        }
        Action::Visitor(nr) => (visitor(nr), visitor_step(model, before, nr)),
        Action::Choose(nr, id) => (visitor(nr), format!("goes for {id}")),
        Action::Reach(nr, cpu) => {
            (visitor(nr), format!("membarrier reaches {}", fenced(model, before, cpu)))
        }
        Action::Steal(cpu, id) => ("thief".into(), format!("{id}: store table[{cpu}] = UNSET")),
        Action::Thief => {
            let Thief::Fence(cpu, _) = before.thief else { unreachable!("nothing to fence") };
            ("thief".into(), format!("fence {}", fenced(model, before, cpu)))
        }
        Action::Install(cpu, id) => ("thief".into(), format!("store table[{cpu}] = {id}")),
    }
}

fn thread<P: Protocol>(before: &State<P>, nr: usize) -> String {
    match before.threads[nr].on {
        Some(cpu) => format!("T{nr} on cpu{cpu}"),
        None => format!("T{nr}"),
    }
}

fn visitor(nr: usize) -> String {
    format!("visitor{nr}")
}

fn aborted<P: Protocol>(model: &Structure<P>, before: &State<P>, nr: usize) -> &'static str {
    let mut thread = before.threads[nr];
    model.abort(&mut thread);
    if thread == before.threads[nr] { "" } else { ", section aborted" }
}

fn fenced<P: Protocol>(model: &Structure<P>, before: &State<P>, cpu: CpuNr) -> String {
    let running = before.threads.iter().position(|thread| thread.on == Some(cpu));
    let aborted = running.map_or("", |nr| aborted(model, before, nr));
    format!("cpu{cpu}{aborted}")
}

fn visitor_step<P: Protocol>(model: &Structure<P>, before: &State<P>, nr: usize) -> String {
    let visitor = before.visitors[nr];
    match visitor.at {
        Visit::Turn => "takes its turn".into(),
        Visit::Mask => format!("load the mask: {}", ids(before.mask)),
        Visit::At(hold) => P::say_visit(model, before, visitor, hold),
        Visit::End => "is done; ends its turn".into(),
        Visit::Idle | Visit::Choose => String::new(),
    }
}

fn ids(members: Set) -> String {
    let members: Vec<String> =
        (0..Id::BITS).filter(|id| members & 1 << id != 0).map(|id| id.to_string()).collect();
    format!("{{{}}}", members.join(" "))
}

/// Returns the state on one line: the running threads with CPUs and IDs, the memory of the IDs, the
/// mask.
pub(super) fn picture<P: Protocol>(model: &Structure<P>, state: &State<P>) -> String {
    let cpus = (0..model.cpus).map(|cpu| {
        let running = state.threads.iter().position(|thread| thread.on == Some(cpu));
        let running = running.map_or("-".into(), |nr| format!("T{nr}"));
        let id = state.table[usize::from(cpu)].map_or("-".into(), |id| id.to_string());
        format!("{running:2} {id}")
    });
    let memory = (0..model.ids).map(|id| P::picture(state, id));
    let parts: Vec<String> = cpus.chain(memory).collect();
    let rest = P::picture_of_rest(model, state);
    format!("| {} | mask {:5}{rest}", parts.join(" | "), ids(state.mask))
}
