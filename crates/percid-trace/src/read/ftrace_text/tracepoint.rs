//! The events in lines of text: in the kernel's format, or in the shorter one of `trace-cmd`'s
//! plugins.

use super::fields::{Body, hex};
use crate::collector::Tracepoint;
use crate::event::{Cpu, State, Tid};
use crate::formats::is_tick;
use crate::kernel_states;
use crate::numa;

/// Kernels keep 15 bytes of a thread's name.
const LONGEST_NAME: usize = 15;

/// The events that a trace has a use for.
pub(super) const KNOWN: [&[u8]; 18] = [
    b"sched_switch",
    b"sched_waking",
    b"sched_wakeup",
    b"sched_wakeup_new",
    b"sched_migrate_task",
    b"sched_process_fork",
    b"sched_process_exec",
    b"sched_process_exit",
    b"task_newtask",
    b"task_rename",
    b"rseq_update",
    b"sched_skip_vma_numa",
    b"sched_move_numa",
    b"sched_stick_numa",
    b"sched_swap_numa",
    b"mm_migrate_pages_start",
    b"mm_migrate_pages",
    b"hrtimer_expire_entry",
];

/// Reads the fields of an event. Returns `None` if no trace needs the event.
///
/// # Errors
///
/// The expected format.
pub(super) fn read<'a>(event: &[u8], body: &'a [u8]) -> Result<Option<Tracepoint<'a>>, String> {
    let body = Body(body);
    let (read, expected) = match event {
        b"sched_switch" => (
            switch(body),
            "prev_comm=NAME prev_pid=NUMBER prev_prio=NUMBER prev_state=LETTERS ==> \
             next_comm=NAME next_pid=NUMBER next_prio=NUMBER",
        ),
        b"sched_waking" => {
            let waking =
                |(comm, pid, target_cpu)| Tracepoint::SchedWaking { comm, pid, target_cpu };
            (wakeup(body).map(waking), WAKEUP)
        }
        b"sched_wakeup" => {
            let woken = |(comm, pid, target_cpu)| Tracepoint::SchedWakeup { comm, pid, target_cpu };
            (wakeup(body).map(woken), WAKEUP)
        }
        b"sched_wakeup_new" => {
            let new =
                |(comm, pid, target_cpu)| Tracepoint::SchedWakeupNew { comm, pid, target_cpu };
            (wakeup(body).map(new), WAKEUP)
        }
        b"sched_migrate_task" => {
            (migrate(body), "comm=NAME pid=NUMBER prio=NUMBER orig_cpu=NUMBER dest_cpu=NUMBER")
        }
        b"sched_process_fork" => {
            (fork(body), "comm=NAME pid=NUMBER child_comm=NAME child_pid=NUMBER")
        }
        b"sched_process_exec" => (exec(body), "filename=PATH pid=NUMBER old_pid=NUMBER"),
        b"sched_process_exit" => (exit(body), "comm=NAME pid=NUMBER prio=NUMBER"),
        b"task_newtask" => {
            (newtask(body), "pid=NUMBER comm=NAME clone_flags=HEX oom_score_adj=NUMBER")
        }
        b"task_rename" => {
            (rename(body), "pid=NUMBER oldcomm=NAME newcomm=NAME oom_score_adj=NUMBER")
        }
        // Before Linux 6.3 it contains the CPU only.
        b"rseq_update" if !body.0.windows(7).any(|word| word == b"mm_cid=") => return Ok(None),
        b"rseq_update" => (rseq(body), "cpu_id=NUMBER node_id=NUMBER mm_cid=NUMBER"),
        b"sched_skip_vma_numa" => {
            (skip_vma(body), "numa_scan_offset=HEX vm_start=HEX vm_end=HEX reason=WORD")
        }
        b"sched_move_numa" => (move_numa(body), MOVE_NUMA),
        b"sched_stick_numa" => (swap_numa(body, false).or_else(|| stick_numa(body)), SWAP_NUMA),
        b"sched_swap_numa" => (swap_numa(body, true), SWAP_NUMA),
        b"mm_migrate_pages_start" => (migrate_start(body), "mode=WORD reason=WORD"),
        b"mm_migrate_pages" => {
            (migrate_pages(body), "nr_succeeded=NUMBER nr_failed=NUMBER … mode=WORD reason=WORD")
        }
        b"hrtimer_expire_entry" => return Ok(is_timer_tick(body).then_some(Tracepoint::Tick)),
        _ => return Ok(None),
    };
    let expected = || format!("{} should say {expected}", String::from_utf8_lossy(event));
    read.map(Some).ok_or_else(expected)
}

const MOVE_NUMA: &str = "pid=NUMBER tgid=NUMBER ngid=NUMBER src_cpu=NUMBER src_nid=NUMBER \
                         dst_cpu=NUMBER dst_nid=NUMBER";
const SWAP_NUMA: &str = "src_pid=NUMBER src_tgid=NUMBER src_ngid=NUMBER src_cpu=NUMBER \
                         src_nid=NUMBER dst_pid=NUMBER dst_tgid=NUMBER dst_ngid=NUMBER \
                         dst_cpu=NUMBER dst_nid=NUMBER";
const WAKEUP: &str = "comm=NAME pid=NUMBER prio=NUMBER target_cpu=NUMBER";

fn switch(body: Body<'_>) -> Option<Tracepoint<'_>> {
    switch_in_full(body).or_else(|| switch_in_short(body)).or_else(|| switch_in_numbers(body))
}

/// Reads the format of `trace-cmd report -R`: `prev_comm=sh prev_pid=12 … prev_state=1
/// next_comm=cat …`
fn switch_in_numbers(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    body.last_id(b" next_prio=")?;
    let next_pid = body.id(b" next_pid=")?;
    let prev = |mut prev: Body<'_>| {
        let state = super::fields::number(prev.last(b" prev_state=")?)?;
        prev.id(b" prev_prio=")?;
        let prev_pid = prev.id(b" prev_pid=")?;
        Some((prev.0.len(), prev_pid, kernel_states::raw(state).0))
    };
    let ((end, prev_pid, prev_state), next_comm) =
        body.split(b" next_comm=", LONGEST_NAME, prev)?;
    let prev_comm = Body(&body.0[..end]).first(b"prev_comm=")?;
    Some(Tracepoint::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid })
}

fn switch_in_full(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    body.last_id(b" next_prio=")?;
    let next_pid = body.id(b" next_pid=")?;
    let prev = |mut prev: Body<'_>| {
        let prev_state = state_in_full(prev.last_word(b" prev_state=")?)?;
        prev.id(b" prev_prio=")?;
        let prev_pid = prev.id(b" prev_pid=")?;
        Some((prev.0.len(), prev_pid, prev_state))
    };
    let ((end, prev_pid, prev_state), next_comm) =
        body.split(b" ==> next_comm=", LONGEST_NAME, prev)?;
    let prev_comm = Body(&body.0[..end]).first(b"prev_comm=")?;
    Some(Tracepoint::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid })
}

/// `sh:12 [120] S ==> cat:13 [120]`
fn switch_in_short(body: Body<'_>) -> Option<Tracepoint<'_>> {
    let (body, next_pid) = thread_in_short(body)?;
    let prev = |mut prev: Body<'_>| {
        let prev_state = state_in_short(prev.last(b" ")?)?;
        let (name, pid) = thread_in_short(prev)?;
        Some((name.0.len(), pid, prev_state))
    };
    let ((end, prev_pid, prev_state), next_comm) = body.split(b" ==> ", LONGEST_NAME, prev)?;
    let prev_comm = &body.0[..end];
    Some(Tracepoint::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid })
}

/// Returns the text before a thread's number and priority, and its number: `sh:12 [120]`
fn thread_in_short(mut body: Body<'_>) -> Option<(Body<'_>, u32)> {
    let priority = body.last(b" [")?.strip_suffix(b"]")?;
    super::fields::id(priority)?;
    let pid = body.id(b":")?;
    Some((body, pid))
}

/// Returns the state of a thread that stops running, by the kernel's own letters, which mean the
/// same in all kernels: `S`, `R+`, `D|K`. Numbers are bits for which the writer had no letter.
fn state_in_full(text: &[u8]) -> Option<u32> {
    let (text, preempted) = match text.strip_suffix(b"+") {
        Some(text) => (text, State::PREEMPTED.0),
        None => (text, 0),
    };
    let (mut letters, mut bits) = (Vec::new(), 0);
    for part in text.split(|&byte| byte == b'|') {
        match part {
            b"R" => {}
            [letter] if b"SDTtXZPIxKWNn".contains(letter) => letters.push(*letter),
            number => bits |= State::from_kernel(hex(number.strip_prefix(b"0x")?)?).0,
        }
    }
    let told = kernel_states::of_letters(letters.into_iter()).map_or(0, |state| state.0);
    Some(told | bits | preempted)
}

/// Returns the state by libtraceevent's letters, which it uses if it does not take the kernel's.
/// They represent bits, whose meaning depends on the kernel.
fn state_in_short(text: &[u8]) -> Option<u32> {
    const LETTERS: &[u8; 8] = b"SDTtZXxW";
    let bits = text.split(|&byte| byte == b'|').map(|part| match part {
        b"R" => Some(0),
        [letter] => LETTERS.iter().position(|known| known == letter).map(|bit| 1 << bit),
        _ => None,
    });
    let bits = bits.reduce(|some, more| Some(some? | more?)).flatten();
    bits.map(|bits| kernel_states::raw(bits).0).or_else(|| state_in_full(text))
}

/// The name, number and target of a thread that wakes.
type Wakeup<'a> = (&'a [u8], Tid, Cpu);

fn wakeup(body: Body<'_>) -> Option<Wakeup<'_>> {
    wakeup_in_full(body).or_else(|| wakeup_in_short(body))
}

fn wakeup_in_full(mut body: Body<'_>) -> Option<Wakeup<'_>> {
    let target_cpu = body.last_id(b" target_cpu=")?;
    body.optional(b" success=");
    body.id(b" prio=")?;
    let pid = body.id(b" pid=")?;
    Some((body.first(b"comm=")?, pid, target_cpu))
}

/// `sh:12 [120] CPU:001`
fn wakeup_in_short(mut body: Body<'_>) -> Option<Wakeup<'_>> {
    let target_cpu = body.id(b" CPU:")?;
    let (comm, pid) = thread_in_short(body)?;
    Some((comm.0, pid, target_cpu))
}

fn migrate(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let dest_cpu = body.last_id(b" dest_cpu=")?;
    let orig_cpu = body.id(b" orig_cpu=")?;
    body.id(b" prio=")?;
    let pid = body.id(b" pid=")?;
    Some(Tracepoint::SchedMigrateTask { comm: body.first(b"comm=")?, pid, orig_cpu, dest_cpu })
}

fn fork(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let child_pid = body.last_id(b" child_pid=")?;
    let parent = |mut parent: Body<'_>| {
        let pid = parent.id(b" pid=").or_else(|| parent.id(b" parent_pid="))?;
        parent.first(b"comm=").or_else(|| parent.first(b"parent_comm="))?;
        Some(pid)
    };
    let (parent_pid, child_comm) = body.split(b" child_comm=", LONGEST_NAME, parent)?;
    Some(Tracepoint::SchedProcessFork { parent_pid, child_comm, child_pid })
}

fn exec(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let old_pid = body.last_id(b" old_pid=")?;
    let pid = body.id(b" pid=")?;
    body.first(b"filename=")?;
    Some(Tracepoint::SchedProcessExec { pid, old_pid })
}

fn exit(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    // Since Linux 6.16.
    for group_dead in [b" group_dead=true".as_slice(), b" group_dead=false", b" group_dead=1"] {
        body.0 = body.0.strip_suffix(group_dead).unwrap_or(body.0);
    }
    body.optional(b" group_dead=");
    body.last_id(b" prio=")?;
    let pid = body.id(b" pid=")?;
    Some(Tracepoint::SchedProcessExit { comm: body.first(b"comm=")?, pid })
}

fn newtask(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    body.last_id(b" oom_score_adj=")?;
    let clone_flags = hex(body.last(b" clone_flags=")?)?;
    let (pid, comm) = body.split(b" comm=", LONGEST_NAME, |mut pid| pid.id(b"pid="))?;
    Some(Tracepoint::TaskNewtask { comm, pid, clone_flags })
}

fn rename(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    body.last_id(b" oom_score_adj=")?;
    let both = LONGEST_NAME + b" newcomm=".len() + LONGEST_NAME;
    let (pid, names) = body.split(b" oldcomm=", both, |mut pid| pid.id(b"pid="))?;
    // Only their lengths distinguish two names.
    let old = |old: Body<'_>| (old.0.len() <= LONGEST_NAME).then_some(());
    let (_, newcomm) = Body(names).split(b" newcomm=", LONGEST_NAME, old)?;
    Some(Tracepoint::TaskRename { pid, newcomm })
}

fn rseq(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let mm_cid = body.id(b" mm_cid=")?;
    let node_id = body.id(b" node_id=")?;
    body.id(b"cpu_id=")?;
    Some(Tracepoint::RseqUpdate { node_id, mm_cid })
}

fn skip_vma(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let reason = body.last(b" reason=")?;
    let end = hex(body.last(b" vm_end=")?)?;
    let start = hex(body.last(b" vm_start=")?)?;
    let offset = hex(body.first(b"numa_scan_offset=")?)?;
    let reason = numa::skip_reason(std::str::from_utf8(reason).ok()?);
    Some(Tracepoint::Numa(numa::Tracepoint::SkipVma { offset, start, end, reason }))
}

fn move_numa(body: Body<'_>) -> Option<Tracepoint<'_>> {
    let (pid, place) = numa_place(body)?;
    Some(Tracepoint::Numa(numa::Tracepoint::MoveNuma { pid, place }))
}

/// Before Linux 5.7 it reported one thread.
fn stick_numa(body: Body<'_>) -> Option<Tracepoint<'_>> {
    let (pid, place) = numa_place(body)?;
    Some(Tracepoint::Numa(numa::Tracepoint::StickNuma { pid, place }))
}

/// A thread, and from where to where it should go.
fn numa_place(mut body: Body<'_>) -> Option<(Tid, numa::ThreadMove)> {
    let (to_node, to_cpu) = (body.id(b" dst_nid=")?, body.id(b" dst_cpu=")?);
    let (from_node, from_cpu) = (body.id(b" src_nid=")?, body.id(b" src_cpu=")?);
    body.id(b" ngid=")?;
    body.id(b" tgid=")?;
    let pid = super::fields::id(body.first(b"pid=")?)?;
    Some((pid, numa::ThreadMove { from_cpu, from_node, to_cpu, to_node }))
}

/// Two threads, which change places or do not.
fn swap_numa(mut body: Body<'_>, done: bool) -> Option<Tracepoint<'_>> {
    let (to_node, to_cpu) = (body.id(b" dst_nid=")?, body.id(b" dst_cpu=")?);
    body.id(b" dst_ngid=")?;
    body.id(b" dst_tgid=")?;
    let other = body.id(b" dst_pid=")?;
    let (from_node, from_cpu) = (body.id(b" src_nid=")?, body.id(b" src_cpu=")?);
    body.id(b" src_ngid=")?;
    body.id(b" src_tgid=")?;
    let pid = super::fields::id(body.first(b"src_pid=")?)?;
    let place = numa::ThreadMove { from_cpu, from_node, to_cpu, to_node };
    Some(Tracepoint::Numa(match done {
        true => numa::Tracepoint::SwapNuma { pid, place, other },
        false => numa::Tracepoint::StickNuma { pid, place },
    }))
}

fn migrate_reason(body: &mut Body<'_>) -> Option<numa::MigrateReason> {
    let word = std::str::from_utf8(body.last(b" reason=")?).ok()?;
    Some(numa::MigrateReason::from_word(word))
}

fn migrate_start(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let reason = migrate_reason(&mut body)?;
    body.first(b"mode=")?;
    Some(Tracepoint::Numa(numa::Tracepoint::MigrateStart { reason }))
}

/// There are more fields between the numbers and the reason, by release.
fn migrate_pages(mut body: Body<'_>) -> Option<Tracepoint<'_>> {
    let reason = migrate_reason(&mut body)?;
    let mut words = super::fields::Words(body.0);
    let number = |word: &[u8], name: &[u8]| super::fields::number(word.strip_prefix(name)?);
    let succeeded = number(words.next(), b"nr_succeeded=")?;
    let failed = number(words.next(), b"nr_failed=")?;
    Some(Tracepoint::Numa(numa::Tracepoint::MigratePages { succeeded, failed, reason }))
}

/// Returns `true` if the timer that expired is the tick: `… function=tick_nohz_handler now=…`
fn is_timer_tick(mut body: Body<'_>) -> bool {
    let function = body.last(b" function=").unwrap_or(b"");
    let end = function.iter().position(|&byte| byte == b' ' || byte == b'/');
    is_tick(&function[..end.unwrap_or(function.len())])
}
