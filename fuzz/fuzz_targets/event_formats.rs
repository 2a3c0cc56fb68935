//! The kernel's descriptions of its tracepoints, and records that follow them or do not.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid_fuzz::traces;
use percid_trace::Origin;
use percid_trace::collector::Collector;
use percid_trace::formats::{ByteOrder, Formats};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    big: bool,
    wide: bool,
    descriptions: Vec<Description<'a>>,
    symbols: &'a [u8],
    records: Vec<(u32, &'a [u8])>,
}

#[derive(Arbitrary, Debug)]
enum Description<'a> {
    /// The description of any event of a system.
    Any(u8, &'a str),
    /// A complete description of a known event, with fields.
    Of { event: u8, number: u8, fields: Vec<Field> },
}

#[derive(Arbitrary, Debug)]
struct Field {
    kind: u8,
    name: u8,
    offset: u8,
    size: u8,
    signed: bool,
}

const SYSTEMS: [&str; 4] = ["sched", "task", "rseq", "timer"];
const EVENTS: [(&str, &str); 12] = [
    ("sched", "sched_switch"),
    ("sched", "sched_waking"),
    ("sched", "sched_wakeup"),
    ("sched", "sched_wakeup_new"),
    ("sched", "sched_migrate_task"),
    ("sched", "sched_process_fork"),
    ("sched", "sched_process_exec"),
    ("sched", "sched_process_exit"),
    ("task", "task_newtask"),
    ("task", "task_rename"),
    ("rseq", "rseq_update"),
    ("timer", "hrtimer_expire_entry"),
];
const KINDS: [(&str, &str); 6] = [
    ("int", ""),
    ("unsigned long", ""),
    ("char", "[16]"),
    ("__data_loc char[]", ""),
    ("__rel_loc char[]", ""),
    ("unsigned short", ""),
];
const NAMES: [&str; 22] = [
    "common_type",
    "common_pid",
    "prev_comm",
    "prev_pid",
    "prev_state",
    "next_comm",
    "next_pid",
    "comm",
    "pid",
    "target_cpu",
    "orig_cpu",
    "dest_cpu",
    "parent_pid",
    "child_comm",
    "child_pid",
    "clone_flags",
    "newcomm",
    "old_pid",
    "node_id",
    "mm_cid",
    "function",
    "filename",
];

fuzz_target!(|input: Input<'_>| {
    let order = if input.big { ByteOrder::Big } else { ByteOrder::Little };
    let mut formats = Formats::new(order, input.wide);
    for description in &input.descriptions {
        let (system, text) = spelled(description);
        if let Err(error) = formats.add(system, &text) {
            assert!(error.contains(system), "{error}");
        }
    }
    formats.add_symbols(input.symbols);
    let mut collector = Collector::default();
    for (time, &(cpu, record)) in (0..).zip(&input.records) {
        // CPUs are the readers' to check.
        let cpu = cpu % 8192;
        match formats.decode(record) {
            Ok(Some((current, tracepoint))) => collector.tracepoint(time, cpu, current, tracepoint),
            Ok(None) => {}
            Err(error) => assert!(!error.is_empty()),
        }
    }
    traces::check(&collector.finish(Origin::default()));
});

fn spelled<'a>(description: &Description<'a>) -> (&'static str, String) {
    match description {
        Description::Any(system, text) => {
            (SYSTEMS[usize::from(*system) % SYSTEMS.len()], (*text).to_owned())
        }
        Description::Of { event, number, fields } => {
            let (system, event) = EVENTS[usize::from(*event) % EVENTS.len()];
            // The offsets of most kernels.
            let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                          \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
            let fields: String = fields.iter().map(line).collect();
            (
                system,
                format!(
                    "name: {event}\nID: {number}\nformat:\n{common}{fields}\nprint fmt: \"\"\n"
                ),
            )
        }
    }
}

fn line(field: &Field) -> String {
    let Field { kind, name, offset, size, signed } = field;
    let (kind, array) = KINDS[usize::from(*kind) % KINDS.len()];
    let name = NAMES[usize::from(*name) % NAMES.len()];
    let signed = u8::from(*signed);
    format!("\tfield:{kind} {name}{array};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
}
