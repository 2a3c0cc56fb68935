//! Decodes the kernel's trace records by the kernel's own descriptions of them.
//!
//! The description of an event is the text of `events/SYSTEM/NAME/format` in tracefs; `perf` puts
//! the same text into its files. Records of the same event differ from kernel to kernel and from
//! machine to machine, so nothing is assumed about where a field lies: each description is resolved
//! once into the places of the fields that are needed.

use std::sync::atomic::{AtomicU64, Ordering};

use percid_rules::scan::SkipReason;
use tracepoint_decode::{PerfFieldArray, PerfFieldFormat};

use crate::collector::Tracepoint;
use crate::event::{State, Tid};
use crate::kernel_states::KernelStates;
use crate::numa;
#[cfg(feature = "files")]
use crate::trace::Origin;

/// The order of the bytes in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
}

impl ByteOrder {
    /// The byte order of the machine that runs this program.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// The number that these bytes are.
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The number that these bytes are.
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The number that these bytes are.
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// The descriptions of the events that a trace is made of, resolved.
#[derive(Debug)]
pub struct Formats {
    order: ByteOrder,
    long_is_64_bits: bool,
    /// Position of the event's number in every record.
    common_type: Option<Number>,
    /// Layouts by event number: small, and dense enough for a table.
    layouts: Vec<Option<Layout>>,
    names: Vec<&'static str>,
    /// Addresses of the functions that are the timer tick.
    ticks: Vec<u64>,
    left_out: Vec<LeftOut>,
    /// The state for a number, if no description explains it.
    otherwise: fn(u64) -> State,
}

/// An event that is left out, because its description is not understood.
#[derive(Debug)]
#[cfg_attr(not(feature = "files"), allow(dead_code, reason = "only files have such"))]
struct LeftOut {
    event: &'static str,
    id: Option<u64>,
    why: String,
    /// Number of its records.
    records: AtomicU64,
}

/// The events without which a schedule lacks something.
#[cfg(feature = "files")]
const NEEDED: [&str; 9] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exec",
    "sched_process_exit",
    "task_newtask",
];

impl Default for Formats {
    /// No descriptions, for records of this machine.
    fn default() -> Formats {
        Formats::new(ByteOrder::NATIVE, cfg!(target_pointer_width = "64"))
    }
}

/// No kernel numbers its events beyond what fits into the 16 bits of `common_type`.
const EVENTS: usize = 1 << 16;

/// Maximum number of functions that are the timer tick. Kernels have one; a file could claim any
/// number.
const TICKS: usize = 4;

/// A description has a few kilobytes.
const LONGEST_DESCRIPTION: usize = 1 << 20;

impl Formats {
    /// No descriptions, for records of a machine with this order of bytes and this size of `long`.
    pub fn new(order: ByteOrder, long_is_64_bits: bool) -> Formats {
        Formats {
            order,
            long_is_64_bits,
            common_type: None,
            layouts: Vec::new(),
            names: Vec::new(),
            ticks: Vec::new(),
            left_out: Vec::new(),
            otherwise: State::from_kernel,
        }
    }

    /// Prepares for a file, whose kernel may be any: states that no description explains are
    /// settled at its end.
    #[cfg(feature = "files")]
    pub(crate) fn of_any_kernel(self) -> Formats {
        Formats { otherwise: crate::kernel_states::raw, ..self }
    }

    /// Takes in the description of an event of a system (`sched`, `task`, …). One that no trace
    /// needs is ignored.
    ///
    /// # Errors
    /// What the description lacks.
    pub fn add(&mut self, system: &str, description: &str) -> Result<(), String> {
        let name = property(description, "name:").unwrap_or("");
        let known = KNOWN.iter().find(|&&(within, event, _)| within == system && event == name);
        let Some(&(_, event, resolve)) = known else { return Ok(()) };
        if !description.is_ascii() || description.len() > LONGEST_DESCRIPTION {
            return Err(format!("the description of {system}:{event} is not plain text"));
        }
        let id = property(description, "ID:").and_then(|id| id.parse().ok());
        let id: usize = id.filter(|&id| id < EVENTS).ok_or_else(|| {
            format!("the description of {system}:{event} has no number below {EVENTS}")
        })?;
        let fields = Fields::read(system, event, description, self.long_is_64_bits);
        let common_type = fields.number("common_type")?;
        if self.common_type.is_some_and(|known| known != common_type) {
            return Err(format!("{system}:{event} has its common_type at another place"));
        }
        self.common_type = Some(common_type);
        let Some(what) = resolve(&fields)? else { return Ok(()) };
        if id >= self.layouts.len() {
            self.layouts.resize_with(id + 1, || None);
        }
        self.layouts[id] = Some(Layout { event, common_pid: fields.number("common_pid")?, what });
        self.names.push(event);
        Ok(())
    }

    /// Takes in the description of an event like [`add`](Formats::add). One that is not understood
    /// is left out, and so are the records of its event.
    #[cfg(feature = "files")]
    pub(crate) fn add_or_leave_out(&mut self, system: &str, description: &str) {
        let Err(why) = self.add(system, description) else { return };
        let name = property(description, "name:").unwrap_or("");
        let known = KNOWN.iter().find(|&&(within, event, _)| within == system && event == name);
        let Some(&(_, event, _)) = known else { return };
        let id = property(description, "ID:").and_then(|id| id.parse().ok());
        if self.left_out.len() < KNOWN.len() {
            self.left_out.push(LeftOut { event, id, why, records: AtomicU64::new(0) });
        }
    }

    /// Adds to where a trace comes from which events were left out.
    #[cfg(feature = "files")]
    pub(crate) fn tell_left_out(&self, origin: &mut Origin) {
        for LeftOut { event, why, records, .. } in &self.left_out {
            let records = records.load(Ordering::Relaxed);
            let is_needed = NEEDED.contains(event);
            if records > 0 || is_needed {
                origin.remark(format!("{records} records of {event} were left out: {why}"));
            }
            if is_needed {
                let unread = &mut origin.coverage.unread;
                *unread = unread.saturating_add(records);
            }
        }
    }

    /// Counts a record of an event that is left out.
    #[cold]
    fn leave_out(&self, id: u64) {
        if let Some(event) = self.left_out.iter().find(|event| event.id == Some(id)) {
            event.records.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns `true` if an event of this name is described, such as `sched_switch`.
    pub fn has(&self, event: &str) -> bool {
        self.names.contains(&event)
    }

    /// Returns `true` if the event with this number is the one of this name.
    #[cfg(feature = "files")]
    pub(crate) fn is(&self, id: u64, event: &str) -> bool {
        let layout = usize::try_from(id).ok().and_then(|id| self.layouts.get(id)?.as_ref());
        layout.is_some_and(|layout| layout.event == event)
    }

    /// Takes in the kernel's symbols (text of `/proc/kallsyms`), by which the timer tick is
    /// distinguished from other timers. Without them, or where the kernel hides the addresses,
    /// there are no ticks.
    pub fn add_symbols(&mut self, kallsyms: &[u8]) {
        let addresses = kallsyms.split(|&byte| byte == b'\n').filter_map(tick_address);
        let room = TICKS - self.ticks.len();
        self.ticks.extend(addresses.take(room));
    }

    /// Decodes a record. Returns the tracepoint, and the thread that ran when it was made; `None`
    /// if it is an event that no trace needs.
    ///
    /// # Errors
    /// The expected length of the record, if it is shorter.
    #[inline]
    pub fn decode<'a>(&self, record: &'a [u8]) -> Result<Option<(Tid, Tracepoint<'a>)>, String> {
        let Some(common_type) = self.common_type else { return Ok(None) };
        let record = Record { bytes: record, order: self.order };
        let decoded = record.number(common_type).and_then(|id| {
            let Some(Some(layout)) = self.layouts.get(id as usize) else {
                if !self.left_out.is_empty() {
                    self.leave_out(id);
                }
                return Ok(None);
            };
            let tracepoint = layout.what.decode(record, &self.ticks, self.otherwise)?;
            let Some(tracepoint) = tracepoint else { return Ok(None) };
            Ok(Some((record.number(layout.common_pid)? as Tid, tracepoint)))
        });
        decoded.map_err(|missing| self.too_short(record, missing))
    }

    /// The thread that ran when a record was made, if its event is one that a trace needs.
    #[cfg(feature = "files")]
    pub(crate) fn current(&self, record: &[u8]) -> Option<Tid> {
        let record = Record { bytes: record, order: self.order };
        let id = record.number(self.common_type?).ok()?;
        let layout = self.layouts.get(usize::try_from(id).ok()?)?.as_ref()?;
        record.number(layout.common_pid).ok().map(|number| number as Tid)
    }

    #[cold]
    fn too_short(&self, record: Record<'_>, missing: Missing) -> String {
        let id = self.common_type.and_then(|place| record.number(place).ok());
        let layout = id.and_then(|id| self.layouts.get(id as usize)).and_then(Option::as_ref);
        let event = layout.map_or("an event", |layout| layout.event);
        let Missing { end } = missing;
        let len = record.bytes.len();
        format!("{event} has {len} bytes where its description needs {end}")
    }
}

/// The address in a line on the timer tick: `ffffffff81433060 t tick_nohz_handler`.
fn tick_address(line: &[u8]) -> Option<u64> {
    let mut words = line.split(|&byte| byte == b' ' || byte == b'\t');
    let (address, _, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    (is_tick(name) && address != 0).then_some(address)
}

/// Returns `true` if a function of the kernel is the timer tick: the first since Linux 6.8, the
/// second before.
pub(crate) fn is_tick(function: &[u8]) -> bool {
    matches!(function, b"tick_nohz_handler" | b"tick_sched_timer")
}

#[derive(Debug)]
struct Layout {
    event: &'static str,
    common_pid: Number,
    what: What,
}

/// Position of a number in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number {
    offset: u16,
    size: u8,
    signed: bool,
}

/// Position of a text in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chars {
    /// A text in an array of fixed length.
    Fixed { offset: u16, size: u16 },
    /// A text after the fields; the field contains its offset from the record's start.
    Dynamic(Number),
    /// A text after the fields; the field contains its offset from its own end.
    Relative(Number),
}

/// The needed fields of an event.
#[derive(Debug, Clone, Copy)]
enum What {
    Switch {
        prev_comm: Chars,
        prev_pid: Number,
        prev_state: Number,
        /// `None` if the description does not contain the meanings of state numbers.
        states: Option<KernelStates>,
        next_comm: Chars,
        next_pid: Number,
    },
    Waking(Wakeup),
    Wakeup(Wakeup),
    WakeupNew(Wakeup),
    Migrate {
        comm: Chars,
        pid: Number,
        orig_cpu: Number,
        dest_cpu: Number,
    },
    Fork {
        parent_pid: Number,
        child_comm: Chars,
        child_pid: Number,
    },
    Newtask {
        comm: Chars,
        pid: Number,
        clone_flags: Number,
    },
    Rename {
        pid: Number,
        newcomm: Chars,
    },
    Exec {
        pid: Number,
        old_pid: Number,
    },
    Exit {
        comm: Chars,
        pid: Number,
    },
    Rseq {
        node_id: Number,
        mm_cid: Number,
    },
    Timer {
        function: Number,
    },
    Numa(Numa),
}

/// The needed fields of an event of NUMA balancing.
#[derive(Debug, Clone, Copy)]
enum Numa {
    SkipVma {
        offset: Number,
        start: Number,
        end: Number,
        reason: Number,
        reasons: Words<SkipReason>,
    },
    Moved {
        pid: Number,
        place: MoveFields,
    },
    PolicyFailure {
        pid: Number,
        place: MoveFields,
    },
    Swapped {
        pid: Number,
        place: MoveFields,
        other: Number,
    },
    MigrateStart {
        reason: MigrateReason,
    },
    MigratePages {
        succeeded: Number,
        failed: Number,
        reason: MigrateReason,
    },
    Pass {
        ticks: Number,
    },
    Passed,
    Arm {
        start: Number,
        end: Number,
    },
    Armed {
        changed: Number,
    },
    Fault {
        address: Number,
    },
    Hint {
        node: Option<Number>,
    },
}

#[derive(Debug, Clone, Copy)]
struct Wakeup {
    comm: Chars,
    pid: Number,
    target_cpu: Number,
}

/// From where to where a thread goes.
#[derive(Debug, Clone, Copy)]
struct MoveFields {
    src_cpu: Number,
    src_nid: Number,
    dst_cpu: Number,
    dst_nid: Number,
}

/// Why pages are moved.
#[derive(Debug, Clone, Copy)]
struct MigrateReason {
    reason: Number,
    reasons: Words<numa::MigrateReason>,
}

/// Meanings of the small numbers of a field.
type Words<T> = [Option<T>; 16];

type Resolve = fn(&Fields<'_>) -> Result<Option<What>, String>;

/// The events that a trace is made of, and how each is resolved.
const KNOWN: [(&str, &str, Resolve); 24] = [
    ("sched", "sched_switch", |fields| {
        Ok(Some(What::Switch {
            prev_comm: fields.chars("prev_comm")?,
            prev_pid: fields.number("prev_pid")?,
            prev_state: fields.number("prev_state")?,
            states: KernelStates::of_description(fields.description),
            next_comm: fields.chars("next_comm")?,
            next_pid: fields.number("next_pid")?,
        }))
    }),
    ("sched", "sched_waking", |fields| fields.wakeup().map(What::Waking).map(Some)),
    ("sched", "sched_wakeup", |fields| fields.wakeup().map(What::Wakeup).map(Some)),
    ("sched", "sched_wakeup_new", |fields| fields.wakeup().map(What::WakeupNew).map(Some)),
    ("sched", "sched_migrate_task", |fields| {
        Ok(Some(What::Migrate {
            comm: fields.chars("comm")?,
            pid: fields.number("pid")?,
            orig_cpu: fields.number("orig_cpu")?,
            dest_cpu: fields.number("dest_cpu")?,
        }))
    }),
    ("sched", "sched_process_fork", |fields| {
        Ok(Some(What::Fork {
            parent_pid: fields.number("parent_pid")?,
            child_comm: fields.chars("child_comm")?,
            child_pid: fields.number("child_pid")?,
        }))
    }),
    ("sched", "sched_process_exec", |fields| {
        Ok(Some(What::Exec { pid: fields.number("pid")?, old_pid: fields.number("old_pid")? }))
    }),
    ("sched", "sched_process_exit", |fields| {
        Ok(Some(What::Exit { comm: fields.chars("comm")?, pid: fields.number("pid")? }))
    }),
    ("task", "task_newtask", |fields| {
        Ok(Some(What::Newtask {
            comm: fields.chars("comm")?,
            pid: fields.number("pid")?,
            clone_flags: fields.number("clone_flags")?,
        }))
    }),
    ("task", "task_rename", |fields| {
        Ok(Some(What::Rename { pid: fields.number("pid")?, newcomm: fields.chars("newcomm")? }))
    }),
    // Before Linux 6.3 it contains only the CPU, which a trace does not need.
    ("rseq", "rseq_update", |fields| match fields.find("mm_cid") {
        None => Ok(None),
        Some(_) => Ok(Some(What::Rseq {
            node_id: fields.number("node_id")?,
            mm_cid: fields.number("mm_cid")?,
        })),
    }),
    ("timer", "hrtimer_expire_entry", |fields| {
        Ok(Some(What::Timer { function: fields.number("function")? }))
    }),
    ("sched", "sched_skip_vma_numa", |fields| {
        Ok(Some(What::Numa(Numa::SkipVma {
            offset: fields.number("numa_scan_offset")?,
            start: fields.number("vm_start")?,
            end: fields.number("vm_end")?,
            reason: fields.number("reason")?,
            reasons: fields.words("reason", numa::skip_reason),
        })))
    }),
    ("sched", "sched_move_numa", |fields| {
        Ok(Some(What::Numa(Numa::Moved { pid: fields.number("pid")?, place: fields.place()? })))
    }),
    ("sched", "sched_stick_numa", |fields| {
        // Before Linux 5.7 it reported one thread, as sched_move_numa does.
        let pid = fields.number("src_pid").or_else(|_| fields.number("pid"))?;
        Ok(Some(What::Numa(Numa::PolicyFailure { pid, place: fields.place()? })))
    }),
    ("sched", "sched_swap_numa", |fields| {
        Ok(Some(What::Numa(Numa::Swapped {
            pid: fields.number("src_pid")?,
            place: fields.place()?,
            other: fields.number("dst_pid")?,
        })))
    }),
    ("migrate", "mm_migrate_pages_start", |fields| {
        Ok(Some(What::Numa(Numa::MigrateStart { reason: fields.migrate_reason()? })))
    }),
    ("migrate", "mm_migrate_pages", |fields| {
        Ok(Some(What::Numa(Numa::MigratePages {
            succeeded: fields.number("succeeded")?,
            failed: fields.number("failed")?,
            reason: fields.migrate_reason()?,
        })))
    }),
    (numa::PROBES, "pass", |fields| {
        Ok(Some(What::Numa(Numa::Pass { ticks: fields.number("ticks")? })))
    }),
    (numa::PROBES, "passed", |_| Ok(Some(What::Numa(Numa::Passed)))),
    (numa::PROBES, "arm", |fields| {
        Ok(Some(What::Numa(Numa::Arm {
            start: fields.number("start")?,
            end: fields.number("end")?,
        })))
    }),
    (numa::PROBES, "armed", |fields| {
        Ok(Some(What::Numa(Numa::Armed { changed: fields.number("changed")? })))
    }),
    (numa::PROBES, "fault", |fields| {
        Ok(Some(What::Numa(Numa::Fault { address: fields.number("address")? })))
    }),
    (numa::PROBES, "hint", |fields| {
        // Recordings of before have no node.
        Ok(Some(What::Numa(Numa::Hint { node: fields.number("node").ok() })))
    }),
];

/// Returns the rest of the line of a description that begins with this word.
fn property<'a>(description: &'a str, word: &str) -> Option<&'a str> {
    description.lines().find_map(|line| line.strip_prefix(word)).map(str::trim)
}

/// The fields of a description.
struct Fields<'a> {
    system: &'a str,
    event: &'a str,
    description: &'a str,
    all: Vec<PerfFieldFormat>,
}

impl<'a> Fields<'a> {
    /// The lines of fields are read one by one: at a description that begins twice, the crate ends
    /// the program.
    fn read(system: &'a str, event: &'a str, description: &'a str, long_is_64_bits: bool) -> Self {
        let lines = description.lines().filter(|line| line.trim_start().starts_with("field"));
        let all = lines.filter_map(|line| PerfFieldFormat::parse(long_is_64_bits, line)).collect();
        Fields { system, event, description, all }
    }

    fn find(&self, name: &str) -> Option<&PerfFieldFormat> {
        self.all.iter().find(|field| field.name() == name)
    }

    fn field(&self, name: &str) -> Result<&PerfFieldFormat, String> {
        let Fields { system, event, .. } = self;
        let missing = || format!("the description of {system}:{event} has no field {name}");
        self.find(name).ok_or_else(missing)
    }

    fn wrong_type(&self, field: &PerfFieldFormat, expected: &str) -> String {
        let Fields { system, event, .. } = self;
        let (name, declared) = (field.name(), field.field());
        format!(
            "{system}:{event} has {declared:?} as its field {name}, where {expected} was expected"
        )
    }

    fn number(&self, name: &str) -> Result<Number, String> {
        let field = self.field(name)?;
        match (field.size(), field.array()) {
            (size @ (1 | 2 | 4 | 8), PerfFieldArray::None) => Ok(Number {
                offset: field.offset(),
                size: size as u8,
                signed: field.signed().unwrap_or(false),
            }),
            _ => Err(self.wrong_type(field, "a number of 1, 2, 4 or 8 bytes")),
        }
    }

    fn chars(&self, name: &str) -> Result<Chars, String> {
        let field = self.field(name)?;
        let (offset, size) = (field.offset(), field.size());
        let place = Number { offset, size: 4, signed: false };
        match field.array() {
            PerfFieldArray::Fixed => Ok(Chars::Fixed { offset, size }),
            PerfFieldArray::DataLoc4 => Ok(Chars::Dynamic(place)),
            PerfFieldArray::RelLoc4 => Ok(Chars::Relative(place)),
            _ => Err(self.wrong_type(field, "an array of char")),
        }
    }

    /// Returns the meanings of a field's numbers, by the words that the kernel itself prints for
    /// them: `__print_symbolic(REC->NAME, { 0, "word" }, …)`.
    fn words<T: Copy>(&self, name: &str, meaning: impl Fn(&str) -> Option<T>) -> Words<T> {
        let mut words = [None; 16];
        let intro = format!("__print_symbolic(REC->{name},");
        let list = self.description.split_once(&intro).map_or("", |(_, list)| list);
        let list = list.split_once(')').map_or("", |(list, _)| list);
        for pair in list.split('{').skip(1) {
            let pair = pair.split_once('}').map_or("", |(pair, _)| pair);
            let Some((number, word)) = pair.split_once(',') else { continue };
            let place = number.trim().parse().ok().and_then(|nr: usize| words.get_mut(nr));
            if let Some(place) = place {
                *place = meaning(word.trim().trim_matches('"'));
            }
        }
        words
    }

    fn place(&self) -> Result<MoveFields, String> {
        Ok(MoveFields {
            src_cpu: self.number("src_cpu")?,
            src_nid: self.number("src_nid")?,
            dst_cpu: self.number("dst_cpu")?,
            dst_nid: self.number("dst_nid")?,
        })
    }

    fn migrate_reason(&self) -> Result<MigrateReason, String> {
        let reasons = self.words("reason", |word| Some(numa::MigrateReason::from_word(word)));
        Ok(MigrateReason { reason: self.number("reason")?, reasons })
    }

    fn wakeup(&self) -> Result<Wakeup, String> {
        Ok(Wakeup {
            comm: self.chars("comm")?,
            pid: self.number("pid")?,
            target_cpu: self.number("target_cpu")?,
        })
    }
}

/// A record that ends before a field does.
#[derive(Debug, Clone, Copy)]
struct Missing {
    /// Offset at which the field ends.
    end: usize,
}

#[derive(Clone, Copy)]
struct Record<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Record<'a> {
    fn bytes(self, offset: usize, size: usize) -> Result<&'a [u8], Missing> {
        let end = offset + size;
        self.bytes.get(offset..end).ok_or(Missing { end })
    }

    fn array<const N: usize>(self, offset: usize) -> Result<[u8; N], Missing> {
        let bytes = self.bytes.get(offset..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or(Missing { end: offset + N })
    }

    /// A number, which is negative where its highest bit is set and its field is signed.
    #[inline]
    fn number(self, place: Number) -> Result<u64, Missing> {
        let offset = usize::from(place.offset);
        let (order, signed) = (self.order, place.signed);
        Ok(match place.size {
            1 => self.array(offset).map(|[byte]| widened(byte.into(), 8, signed))?,
            2 => widened(order.u16(self.array(offset)?).into(), 16, signed),
            4 => widened(order.u32(self.array(offset)?).into(), 32, signed),
            _ => order.u64(self.array(offset)?),
        })
    }

    #[inline]
    fn chars(self, place: Chars) -> Result<&'a [u8], Missing> {
        match place {
            Chars::Fixed { offset, size } => self.bytes(offset.into(), size.into()),
            Chars::Dynamic(place) => self.dynamic(place, 0),
            Chars::Relative(place) => self.dynamic(place, usize::from(place.offset) + 4),
        }
    }

    /// The high half of the field is the length, the low half the offset from `base`.
    fn dynamic(self, place: Number, base: usize) -> Result<&'a [u8], Missing> {
        let place = self.number(place)? as usize;
        self.bytes(base + (place & 0xffff), place >> 16)
    }
}

fn widened(number: u64, bits: u32, signed: bool) -> u64 {
    match signed {
        true => ((number << (64 - bits)) as i64 >> (64 - bits)) as u64,
        false => number,
    }
}

impl What {
    #[inline]
    fn decode<'a>(
        self,
        record: Record<'a>,
        ticks: &[u64],
        otherwise: fn(u64) -> State,
    ) -> Result<Option<Tracepoint<'a>>, Missing> {
        let tid = |place| record.number(place).map(|number| number as Tid);
        Ok(Some(match self {
            What::Switch { prev_comm, prev_pid, prev_state, states, next_comm, next_pid } => {
                let number = record.number(prev_state)?;
                let state = match states {
                    Some(states) => states.state(number),
                    None => otherwise(number),
                };
                Tracepoint::SchedSwitch {
                    prev_comm: record.chars(prev_comm)?,
                    prev_pid: tid(prev_pid)?,
                    prev_state: state.0,
                    next_comm: record.chars(next_comm)?,
                    next_pid: tid(next_pid)?,
                }
            }
            What::Waking(wakeup) => {
                let (comm, pid, target_cpu) = wakeup.decode(record)?;
                Tracepoint::SchedWaking { comm, pid, target_cpu }
            }
            What::Wakeup(wakeup) => {
                let (comm, pid, target_cpu) = wakeup.decode(record)?;
                Tracepoint::SchedWakeup { comm, pid, target_cpu }
            }
            What::WakeupNew(wakeup) => {
                let (comm, pid, target_cpu) = wakeup.decode(record)?;
                Tracepoint::SchedWakeupNew { comm, pid, target_cpu }
            }
            What::Migrate { comm, pid, orig_cpu, dest_cpu } => Tracepoint::SchedMigrateTask {
                comm: record.chars(comm)?,
                pid: tid(pid)?,
                orig_cpu: tid(orig_cpu)?,
                dest_cpu: tid(dest_cpu)?,
            },
            What::Fork { parent_pid, child_comm, child_pid } => Tracepoint::SchedProcessFork {
                parent_pid: tid(parent_pid)?,
                child_comm: record.chars(child_comm)?,
                child_pid: tid(child_pid)?,
            },
            What::Newtask { comm, pid, clone_flags } => Tracepoint::TaskNewtask {
                comm: record.chars(comm)?,
                pid: tid(pid)?,
                clone_flags: record.number(clone_flags)?,
            },
            What::Rename { pid, newcomm } => {
                Tracepoint::TaskRename { pid: tid(pid)?, newcomm: record.chars(newcomm)? }
            }
            What::Exec { pid, old_pid } => {
                Tracepoint::SchedProcessExec { pid: tid(pid)?, old_pid: tid(old_pid)? }
            }
            What::Exit { comm, pid } => {
                Tracepoint::SchedProcessExit { comm: record.chars(comm)?, pid: tid(pid)? }
            }
            What::Rseq { node_id, mm_cid } => {
                Tracepoint::RseqUpdate { node_id: tid(node_id)?, mm_cid: tid(mm_cid)? }
            }
            What::Timer { function } => match ticks.contains(&record.number(function)?) {
                true => Tracepoint::Tick,
                false => return Ok(None),
            },
            What::Numa(numa) => Tracepoint::Numa(numa.decode(record)?),
        }))
    }
}

impl Numa {
    fn decode(self, record: Record<'_>) -> Result<numa::Tracepoint, Missing> {
        let number = |place| record.number(place);
        let tid = |place| record.number(place).map(|number| number as Tid);
        Ok(match self {
            Numa::SkipVma { offset, start, end, reason, reasons } => numa::Tracepoint::SkipVma {
                offset: number(offset)?,
                start: number(start)?,
                end: number(end)?,
                reason: meaning(number(reason)?, &reasons),
            },
            Numa::Moved { pid, place } => {
                numa::Tracepoint::MoveNuma { pid: tid(pid)?, place: place.decode(record)? }
            }
            Numa::PolicyFailure { pid, place } => {
                numa::Tracepoint::StickNuma { pid: tid(pid)?, place: place.decode(record)? }
            }
            Numa::Swapped { pid, place, other } => numa::Tracepoint::SwapNuma {
                pid: tid(pid)?,
                place: place.decode(record)?,
                other: tid(other)?,
            },
            Numa::MigrateStart { reason } => {
                numa::Tracepoint::MigrateStart { reason: reason.decode(record)? }
            }
            Numa::MigratePages { succeeded, failed, reason } => numa::Tracepoint::MigratePages {
                succeeded: number(succeeded)?,
                failed: number(failed)?,
                reason: reason.decode(record)?,
            },
            Numa::Pass { ticks } => numa::Tracepoint::Pass { ticks: number(ticks)? },
            Numa::Passed => numa::Tracepoint::Passed,
            Numa::Arm { start, end } => {
                numa::Tracepoint::Arm { start: number(start)?, end: number(end)? }
            }
            Numa::Armed { changed } => numa::Tracepoint::Armed { changed: number(changed)? },
            Numa::Fault { address } => numa::Tracepoint::Fault { address: number(address)? },
            Numa::Hint { node } => {
                let node = node.map(number).transpose()?;
                numa::Tracepoint::Hint { node: node.and_then(|node| u32::try_from(node).ok()) }
            }
        })
    }
}

fn meaning<T: Copy>(number: u64, words: &Words<T>) -> Option<T> {
    usize::try_from(number).ok().and_then(|number| *words.get(number)?)
}

impl MoveFields {
    fn decode(self, record: Record<'_>) -> Result<numa::ThreadMove, Missing> {
        let number = |place| record.number(place).map(|number| number as u32);
        Ok(numa::ThreadMove {
            from_cpu: number(self.src_cpu)?,
            from_node: number(self.src_nid)?,
            to_cpu: number(self.dst_cpu)?,
            to_node: number(self.dst_nid)?,
        })
    }
}

impl MigrateReason {
    fn decode(self, record: Record<'_>) -> Result<numa::MigrateReason, Missing> {
        let reason = meaning(record.number(self.reason)?, &self.reasons);
        Ok(reason.unwrap_or(numa::MigrateReason::OTHER))
    }
}

impl Wakeup {
    fn decode(self, record: Record<'_>) -> Result<(&[u8], Tid, u32), Missing> {
        let pid = record.number(self.pid)? as Tid;
        Ok((record.chars(self.comm)?, pid, record.number(self.target_cpu)? as u32))
    }
}
