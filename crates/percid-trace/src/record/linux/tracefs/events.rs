//! The events that are recorded, and the selection from those of the whole system.

use std::fs::File;
use std::io::{BufRead, BufReader};

use tracepoint_decode::PerfEventFormat;

use super::instance::Instance;
use crate::event::Tid;
use crate::formats::{Formats, is_tick};
use crate::numa::PROBES;
use crate::record::options::Extra;

/// Events without which there is no trace.
const ALWAYS: [(&str, &str); 4] = [
    ("sched", "sched_switch"),
    ("sched", "sched_process_fork"),
    ("sched", "sched_process_exec"),
    ("sched", "sched_process_exit"),
];

/// Events that some kernels are built without.
const WHERE_OFFERED: [(&str, &str); 2] = [("task", "task_newtask"), ("task", "task_rename")];

const WAKEUPS: [(&str, &str); 3] =
    [("sched", "sched_waking"), ("sched", "sched_wakeup"), ("sched", "sched_wakeup_new")];

const MIGRATIONS: (&str, &str) = ("sched", "sched_migrate_task");
/// Events of NUMA balancing, and the effect of their absence on a recording.
const NUMA: [((&str, &str), &str); 12] = [
    (("sched", "sched_skip_vma_numa"), SKIPS),
    (("sched", "sched_move_numa"), MOVES),
    (("sched", "sched_stick_numa"), MOVES),
    (("sched", "sched_swap_numa"), MOVES),
    (
        ("migrate", "mm_migrate_pages_start"),
        "the beginnings of migrations (mm_migrate_pages_start)",
    ),
    (("migrate", "mm_migrate_pages"), "migrated pages (mm_migrate_pages)"),
    ((PROBES, "pass"), PASSES),
    ((PROBES, "passed"), PASSES),
    ((PROBES, "arm"), PASSES),
    ((PROBES, "armed"), PASSES),
    ((PROBES, "fault"), HINTS),
    ((PROBES, "hint"), HINTS),
];

const SKIPS: &str = "what the NUMA scan leaves out (sched_skip_vma_numa: Linux 6.7 or later)";
const MOVES: &str = "threads that change nodes (sched_move_numa, CONFIG_NUMA_BALANCING)";
const PASSES: &str = "passes and armed memory of the NUMA scan (kprobes)";
const HINTS: &str = "NUMA hint faults (kprobes)";

const IDS: (&str, &str) = ("rseq", "rseq_update");
const TIMERS: (&str, &str) = ("timer", "hrtimer_expire_entry");
const AFFINITY: (&str, &str) = ("syscalls", "sys_enter_sched_setaffinity");

/// The events of one instance.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) formats: Formats,
    /// The event of a call that changes an affinity.
    affinity: Option<Call>,
    /// The requested events that are not available.
    pub(super) without: Vec<&'static str>,
}

impl Events {
    /// Enables the requested events. Migrations are left to [`Events::of_others`] if an instance
    /// receives only events of the target's threads, because others migrate them.
    pub(super) fn of_target(
        instance: &Instance,
        extra: Extra,
        whole_system: bool,
    ) -> Result<Events, String> {
        let mut events = Events::default();
        for event in ALWAYS {
            events.enable(instance, event)?;
        }
        for event in WHERE_OFFERED {
            events.enable_if_offered(instance, event);
        }
        if whole_system {
            events.enable(instance, MIGRATIONS)?;
        }
        let mut wanted: Vec<((&str, &str), &'static str)> = Vec::new();
        wanted
            .extend(WAKEUPS.map(|event| (event, "wakeups")).into_iter().filter(|_| extra.wakeups));
        wanted.extend(extra.ids.then_some((IDS, "concurrency IDs")));
        for (event, what) in wanted {
            if !events.enable_if_offered(instance, event) {
                events.without.push(what);
            }
        }
        if extra.numa {
            events.enable_numa(instance);
        }
        if extra.ticks && events.enable_ticks(instance).is_none() {
            events.without.push("timer ticks");
        }
        if extra.affinity && events.enable_affinity(instance).is_none() {
            events.without.push("changes of affinity");
        }
        Ok(events)
    }

    /// Enables migrations.
    pub(super) fn of_others(instance: &Instance) -> Result<Events, String> {
        let mut events = Events::default();
        events.enable(instance, MIGRATIONS)?;
        Ok(events)
    }

    fn enable(&mut self, instance: &Instance, (system, event): (&str, &str)) -> Result<(), String> {
        let description = instance.read(&format!("events/{system}/{event}/format"))?;
        self.formats.add(system, &description)?;
        instance.write(&format!("events/{system}/{event}/enable"), "1")
    }

    fn enable_if_offered(&mut self, instance: &Instance, event: (&str, &str)) -> bool {
        self.enable(instance, event).is_ok() && self.formats.has(event.1)
    }

    fn enable_numa(&mut self, instance: &Instance) {
        for (event, what) in NUMA {
            if !self.enable_if_offered(instance, event) && !self.without.contains(&what) {
                self.without.push(what);
            }
        }
    }

    /// The kernel itself keeps only the timers that are ticks.
    fn enable_ticks(&mut self, instance: &Instance) -> Option<()> {
        let symbol = tick_symbols()?;
        let address = symbol.split(' ').next()?;
        self.formats.add_symbols(symbol.as_bytes());
        let (system, event) = TIMERS;
        let filter = format!("function == 0x{address}");
        instance.write(&format!("events/{system}/{event}/filter"), &filter).ok()?;
        self.enable_if_offered(instance, TIMERS).then_some(())
    }

    fn enable_affinity(&mut self, instance: &Instance) -> Option<()> {
        let (system, event) = AFFINITY;
        let description = instance.read(&format!("events/{system}/{event}/format")).ok()?;
        self.affinity = Some(Call::new(system, &description)?);
        instance.write(&format!("events/{system}/{event}/enable"), "1").ok()
    }

    /// Returns the thread whose affinity changes, if a record is a call that changes an affinity.
    pub(super) fn affinity_call(&self, record: &[u8]) -> Option<Tid> {
        self.affinity.as_ref()?.thread(record)
    }
}

/// The line of `/proc/kallsyms` with the timer tick; `None` where the kernel hides addresses.
fn tick_symbols() -> Option<String> {
    let symbols = BufReader::new(File::open("/proc/kallsyms").ok()?);
    let is_tick =
        |line: &String| line.split(' ').nth(2).is_some_and(|name| is_tick(name.as_bytes()));
    let line = symbols.lines().map_while(Result::ok).find(is_tick)?;
    (!line.starts_with("0000000000000000")).then_some(line)
}

/// A system call that changes an affinity, by its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    id: u16,
    caller: usize,
    pid: usize,
}

impl Call {
    fn new(system: &str, description: &str) -> Option<Call> {
        let long_is_64_bits = cfg!(target_pointer_width = "64");
        let format = PerfEventFormat::parse(long_is_64_bits, system, description)?;
        let offset = |name: &str| {
            let field = format.fields().iter().find(|field| field.name() == name)?;
            (field.size() >= 4).then_some(usize::from(field.offset()))
        };
        // The number of the event is where no kernel has ever put anything else.
        let id = u16::try_from(format.id()).ok()?;
        Some(Call { id, caller: offset("common_pid")?, pid: offset("pid")? })
    }

    fn thread(self, record: &[u8]) -> Option<Tid> {
        let Call { id, caller, pid } = self;
        let is_this = record.first_chunk().is_some_and(|&found| u16::from_ne_bytes(found) == id);
        let number = |at: usize| Some(Tid::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        match number(pid).filter(|_| is_this)? {
            0 => number(caller),
            other => Some(other),
        }
    }
}
