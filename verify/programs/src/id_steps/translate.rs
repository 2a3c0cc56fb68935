//! From the kernel's events and the process's own notes to the recording, one event a line:
//!
//! ```text
//! percid-steps RELEASE POSSIBLE-CPUS ALLOWED-CPUS
//! MICROSECONDS exec CPU THREAD
//! MICROSECONDS spawn THREAD PARENT
//! MICROSECONDS affinity THREAD ALLOWED-CPUS
//! MICROSECONDS migrate THREAD FROM TO
//! MICROSECONDS switch CPU PREVIOUS NEXT       (- is no thread of the process)
//! MICROSECONDS tick CPU THREAD [AGO]          (on its way back to user space; when it landed)
//! MICROSECONDS exit CPU THREAD
//! MICROSECONDS id THREAD ID
//! end
//! ```
//!
//! Threads are numbered in the order of their creation, the first is 0.
//!
//! A kernel has been seen (6.18 in a virtual machine) that at times traces no switch away from the
//! idle thread. Such a switch is inferred from the first event of the thread that runs then: with
//! `rseq_update` that is its way back to user space, 3 to 10 us later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Returns the recording of the process `child`: its part of `trace`, and its notes.
pub(super) fn translate(trace: &str, child: u32, notes: &str) -> Result<String, String> {
    let notes = Notes::read(notes)?;
    let mut process = Process { child, ..Process::default() };
    for line in trace.lines().filter(|line| !line.starts_with('#')) {
        if line.contains("[LOST ") {
            return Err(format!("the trace is not complete: {line}"));
        }
        if let Some(event) = Event::parse(line) {
            process.take(&event, &notes);
        }
    }
    process.add(&notes)?;
    let machine = percid::machine::read();
    let (release, lines) = (machine.kernel_release, process.lines());
    let (possible, allowed) = (machine.possible.len(), allowed().unwrap_or(machine.allowed.len()));
    Ok(format!("percid-steps {release} {possible} {allowed}\n{lines}end\n"))
}

/// Returns the number of CPUs that the process may use by the kernel's own count. It includes those
/// that are not plugged in, which `sched_getaffinity` omits.
fn allowed() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    weight_in_status(&status)
}

fn weight_in_status(status: &str) -> Option<usize> {
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
    let digits = mask.trim().chars().filter(|&digit| digit != ',');
    digits.map(|digit| Some(digit.to_digit(16)?.count_ones() as usize)).sum()
}

/// The notes of the process about itself.
struct Notes<'a> {
    /// Time, kind, the kernel's number of the thread, value.
    lines: Vec<(u64, &'a str, u32, &'a str)>,
    /// The times at which threads were in user space, by the kernel's numbers.
    in_user_space: BTreeSet<(u32, u64)>,
}

impl<'a> Notes<'a> {
    fn read(text: &'a str) -> Result<Notes<'a>, String> {
        let (mut lines, mut in_user_space) = (Vec::new(), BTreeSet::new());
        for note in text.lines() {
            let words: Vec<&str> = note.split_whitespace().collect();
            // The others are the summary line.
            if let [time, kind @ ("id" | "affinity" | "back"), thread, value] = words[..] {
                let bad = |error| format!("{note:?}: {error}");
                let time = time.parse().map_err(bad)?;
                let thread = thread.parse().map_err(bad)?;
                in_user_space.insert((thread, time));
                lines.push((time, kind, thread, value));
            }
        }
        Ok(Notes { lines, in_user_space })
    }

    /// Returns `true` if the thread was in user space between two times.
    fn was_in_user_space(&self, thread: u32, from: u64, to: u64) -> bool {
        self.in_user_space.range((thread, from + 1)..(thread, to.max(from + 1))).next().is_some()
    }
}

/// A line of the trace.
struct Event<'a> {
    time_us: u64,
    cpu: u32,
    /// The thread that was running.
    thread: u32,
    /// `true` if the kernel is about to switch away from it.
    needs_switch: bool,
    name: &'a str,
    fields: &'a str,
}

impl<'a> Event<'a> {
    /// Reads `COMMAND-THREAD [CPU] FLAGS SECONDS.MICROSECONDS: NAME: FIELDS`. A command may be of
    /// any form.
    fn parse(line: &'a str) -> Option<Event<'a>> {
        let (head, fields) = line.split_once(": ")?;
        let (name, fields) = fields.split_once(": ")?;
        let mut words = head.split_whitespace().rev();
        let (time, flags) = (words.next()?, words.next()?);
        let cpu = words.next()?.strip_prefix('[')?.strip_suffix(']')?;
        let (_, thread) = words.next()?.rsplit_once('-')?;
        let (seconds, microseconds) = time.split_once('.')?;
        Some(Event {
            time_us: seconds.parse::<u64>().ok()? * 1_000_000 + microseconds.parse::<u64>().ok()?,
            cpu: cpu.parse().ok()?,
            thread: thread.parse().ok()?,
            // Interrupts, need for a switch, context, preemption: a dot is no.
            needs_switch: flags.chars().nth(1)? != '.',
            name: name.trim(),
            fields,
        })
    }

    /// Returns the value of a field; the last of that name, as commands come before numbers.
    fn field(&self, name: &str) -> Option<u32> {
        let mut words = self.fields.split_whitespace().rev();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?.parse().ok()
    }
}

/// A tick that found a thread running. The kernel scans when that thread returns to user space. It
/// switches first if it must; and if the tick came during a system call, that may sleep first. Then
/// the thread's next turn begins with the scan.
struct Tick {
    time: u64,
    /// Its index among the events.
    place: usize,
    /// `true` if a switch was required when its interrupt ended.
    asks_for_switch: bool,
}

/// The state of the process while the trace is read.
#[derive(Default)]
struct Process {
    child: u32,
    /// The kernel's number of each thread, and ours.
    threads: BTreeMap<u32, u32>,
    /// For each CPU the kernel's number of the thread that runs there.
    current: BTreeMap<u32, u32>,
    /// For each thread its ticks since its last switch.
    ticks: BTreeMap<u32, Vec<Tick>>,
    /// The threads whose next turn begins with the effect of a tick, and when that landed.
    postponed: BTreeMap<u32, u64>,
    events: Vec<(u64, String)>,
}

impl Process {
    fn take(&mut self, event: &Event<'_>, notes: &Notes<'_>) {
        let next = if event.name == "sched_switch" { event.field("next_pid") } else { None };
        let before = self.current.insert(event.cpu, next.unwrap_or(event.thread));
        if before != Some(event.thread) {
            let prev = before.and_then(|before| self.number(before));
            self.switch(event, prev, Some(event.thread), notes);
        }
        match next {
            Some(next) => self.switch(event, self.number(event.thread), Some(next), notes),
            None => {
                if let Some(text) = self.describe(event) {
                    self.events.push((event.time_us, text));
                }
            }
        }
    }

    /// Returns the program's number of a thread.
    fn number(&self, thread: u32) -> Option<u32> {
        self.threads.get(&thread).copied()
    }

    fn switch(
        &mut self,
        event: &Event<'_>,
        prev: Option<u32>,
        next: Option<u32>,
        notes: &Notes<'_>,
    ) {
        let (time, cpu) = (event.time_us, event.cpu);
        let next = next.and_then(|next| self.number(next));
        if prev.or(next).is_none() {
            return;
        }
        let preempted = event.fields.contains(" prev_state=R");
        let ticks = prev.and_then(|prev| self.ticks.remove(&prev)).unwrap_or_default();
        self.events.push((time, format!("switch {cpu} {} {}", or_dash(prev), or_dash(next))));
        for tick in ticks {
            if (tick.asks_for_switch || !preempted)
                && !notes.was_in_user_space(event.thread, tick.time, time)
            {
                self.events[tick.place].1.clear();
                self.postponed.extend(prev.map(|prev| (prev, tick.time)));
            }
        }
        if let Some((next, landed)) = next.and_then(|next| self.postponed.remove_entry(&next)) {
            self.events.push((time, format!("tick {cpu} {next} {}", time - landed)));
        }
    }

    /// Returns the event in the recording's form; `None` if it is not about the process.
    fn describe(&mut self, event: &Event<'_>) -> Option<String> {
        let cpu = event.cpu;
        let running = self.number(event.thread);
        match event.name {
            "sched_process_exec" if event.thread == self.child => {
                self.threads.insert(self.child, 0);
                Some(format!("exec {cpu} 0"))
            }
            "sched_process_fork" => {
                let parent = running?;
                let thread = self.threads.len() as u32;
                self.threads.insert(event.field("child_pid")?, thread);
                Some(format!("spawn {thread} {parent}"))
            }
            "sched_process_exit" => Some(format!("exit {cpu} {}", running?)),
            "sched_migrate_task" => {
                let thread = self.threads.get(&event.field("pid")?)?;
                let (from, to) = (event.field("orig_cpu")?, event.field("dest_cpu")?);
                Some(format!("migrate {thread} {from} {to}"))
            }
            "local_timer_exit" => {
                let tick = self.ticks.get_mut(&running?)?.last_mut()?;
                tick.asks_for_switch |= event.needs_switch;
                None
            }
            // Before Linux 6.8 the function had another name.
            "hrtimer_expire_entry" => {
                let tick = ["function=tick_nohz_handler", "function=tick_sched_timer"];
                let is_tick = tick.iter().any(|tick| event.fields.contains(tick));
                let thread = running.filter(|_| is_tick)?;
                let place = self.events.len();
                let tick = Tick { time: event.time_us, place, asks_for_switch: false };
                self.ticks.entry(thread).or_default().push(tick);
                Some(format!("tick {cpu} {thread}"))
            }
            "rseq_update" => Some(format!("id {} {}", running?, event.field("mm_cid")?)),
            _ => None,
        }
    }

    /// Adds the notes that belong into the recording.
    fn add(&mut self, notes: &Notes<'_>) -> Result<(), String> {
        for &(time, kind, thread, value) in notes.lines.iter().filter(|line| line.1 != "back") {
            let thread = self.number(thread).ok_or("a note of a thread that was not traced")?;
            self.events.push((time, format!("{kind} {thread} {value}")));
        }
        Ok(())
    }

    /// Returns all events in their order, from the first on.
    fn lines(mut self) -> String {
        self.events.retain(|(_, text)| !text.is_empty());
        self.events.sort_by_key(|(time, _)| *time);
        let start = self.events.first().map_or(0, |(time, _)| *time);
        self.events.iter().fold(String::new(), |mut text, (time, event)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {event}", time - start);
            text
        })
    }
}

fn or_dash(thread: Option<u32>) -> String {
    thread.map_or("-".to_owned(), |thread| thread.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Process 7 starts on CPU 1, is ticked, preempted by thread 5, and comes back by way of the
    /// idle thread, whose switch is missing.
    fn trace(flags: &str) -> String {
        let switch = "sched_switch: prev_comm=a b prev_pid";
        format!(
            "# a comment\n\
             a b-7   [001] d..2.  3.000010: sched_process_exec: filename=/x pid=7 old_pid=7\n\
             a b-7   [001] d.h1.  3.000020: hrtimer_expire_entry: hrtimer=1 function=tick_nohz_handler now=3\n\
             a b-7   [001] {flags}  3.000025: local_timer_exit: vector=236\n\
             a b-7   [001] d..2.  3.000030: {switch}=7 prev_prio=1 prev_state=R ==> next_comm=k: 1 next_pid=5 next_prio=1\n\
             k: 1-5  [001] d..2.  3.000040: {switch}=5 prev_prio=1 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=1\n\
             a b-7   [001] .....  3.000050: rseq_update: cpu_id=1 node_id=0 mm_cid=4\n"
        )
    }

    fn lines(flags: &str, notes: &str) -> Vec<String> {
        let text = translate(&trace(flags), 7, notes).expect("a good trace");
        text.lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn a_tick_that_asks_for_a_switch_counts_in_the_next_turn() {
        let late = [
            "0 exec 1 0",
            "20 switch 1 0 -",
            "40 switch 1 - 0",
            "40 tick 1 0 30",
            "40 id 0 4",
            "end",
        ];
        assert_eq!(lines("dNh1.", ""), late);
        let at_once =
            ["0 exec 1 0", "10 tick 1 0", "20 switch 1 0 -", "40 switch 1 - 0", "40 id 0 4", "end"];
        assert_eq!(lines("d.h1.", ""), at_once);
    }

    #[test]
    fn a_thread_that_was_seen_in_user_space_has_acted_on_its_tick() {
        let lines = lines("dNh1.", "3000025 id 7 4");
        assert_eq!(lines[1..3], ["10 tick 1 0", "15 id 0 4"]);
    }

    #[test]
    fn allowed_cpus_are_counted_in_the_kernels_mask() {
        let status = "Name:\ta\nCpus_allowed:\tf1,000000ff\nCpus_allowed_list:\t0-7,32,36-39\n";
        assert_eq!(weight_in_status(status), Some(13));
        assert_eq!(weight_in_status("Cpus_allowed:\tx\n"), None);
        assert!(allowed() >= Some(1));
    }

    #[test]
    fn what_is_missing_is_noticed() {
        let lost = format!("{}CPU:1 [LOST 3 EVENTS]\n", trace("d.h1."));
        assert!(translate(&lost, 7, "").is_err_and(|error| error.contains("not complete")));
        let unknown = translate(&trace("d.h1."), 7, "3000025 id 8 0");
        assert!(unknown.is_err_and(|error| error.contains("not traced")));
    }
}
