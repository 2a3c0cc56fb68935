//! A stack and a log of the subject's own for every CPU, as percid's are made: sections that are
//! right, and controls that each have one fault which a proof of critical sections must find.

use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use percid_subject::board::{Board, COPIES};
use percid_subject::{Fault, Operation, Party};

use crate::cells::{TRIES, cpu, offset};
use crate::findings;
use crate::ledger::{Item, LEDGER};
use crate::structure::Structure;

/// The words of a copy.
const WORDS: usize = 32;

/// The items of a stack. Word 0 is the room, one more than the free slots; the slots follow, filled
/// from the last to the first.
const CAPACITY: u64 = 8;

/// The bits of a log's header below the number: the record's length.
const LENGTH_BITS: u32 = 16;

/// A stack, or a log: word 0 is the index of the word behind the newest record, which has the
/// number of the next one already; a record is its header and its item.
#[repr(align(256))]
struct List([AtomicU64; WORDS]);

static STACKS: [List; COPIES] = [const { List([const { AtomicU64::new(0) }; WORDS]) }; COPIES];
static LOGS: [List; COPIES] = [const { List([const { AtomicU64::new(0) }; WORDS]) }; COPIES];

/// Defines a section on this CPU's copy in `lists`. It returns the operation's `value`; 0 if the
/// operation jumped to the exit or was aborted.
macro_rules! section {
    ($name:ident: $($operation:literal),*) => {
        #[inline(always)]
        fn $name(area: isize, lists: &[List; COPIES], item: u64, length: u64) -> u64 {
            let answer: u64;
            // SAFETY: the controls are unsound on purpose; they write to copies of this module
            // only. The index is compared with their number.
            unsafe {
                asm!(
                    ".pushsection __rseq_cs, \"aw\", @progbits",
                    ".balign 32",
                    "9:",
                    ".long 0, 0",
                    ".quad 2f, 3f - 2f, 4f",
                    ".popsection",
                    "/* {item}, {length}: not every operation uses both */",
                    "lea {work}, [rip + 9b]",
                    "mov qword ptr fs:[{area} + 8], {work}",
                    "2:",
                    "mov {index:e}, dword ptr fs:[{area} + 4]",
                    "cmp {index:e}, {copies}",
                    "jae 6f",
                    "shl {index}, 8",
                    "add {index}, {lists}",
                    $($operation,)*
                    "3:",
                    ".pushsection .text.rseq_abort, \"ax\", @progbits",
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "4:",
                    "jmp 6f",
                    "6:",
                    "xor {value:e}, {value:e}",
                    "jmp 5f",
                    ".popsection",
                    "5:",
                    index = out(reg) _,
                    work = out(reg) _,
                    value = out(reg) answer,
                    area = in(reg) area,
                    lists = in(reg) lists,
                    item = in(reg) item,
                    length = in(reg) length,
                    copies = const COPIES,
                    options(nostack)
                );
            }
            answer
        }
    };
}

section! {
    push:
    "mov {value}, {item}",
    "mov {work}, qword ptr [{index}]",
    "cmp {work}, 1",
    "jle 6f",
    "mov qword ptr [{index} + {work} * 8 - 8], {item}",
    "dec {work}",
    "mov qword ptr [{index}], {work}"
}

section! {
    push_before_item:
    "mov {value}, {item}",
    "mov {work}, qword ptr [{index}]",
    "cmp {work}, 1",
    "jle 6f",
    "dec {work}",
    "mov qword ptr [{index}], {work}",
    "mov qword ptr [{index} + {work} * 8], {item}"
}

section! {
    pop:
    "mov {work}, qword ptr [{index}]",
    "lea {value}, [{work} - 1]",
    "cmp {value}, 8",
    "jae 6f",
    "mov {value}, qword ptr [{index} + {work} * 8]",
    "inc {work}",
    "mov qword ptr [{index}], {work}"
}

section! {
    pop_before_item:
    "mov {work}, qword ptr [{index}]",
    "lea {value}, [{work} - 1]",
    "cmp {value}, 8",
    "jae 6f",
    "inc {work}",
    "mov qword ptr [{index}], {work}",
    "mov {value}, qword ptr [{index} + {work} * 8 - 8]"
}

section! {
    append:
    "mov {work}, qword ptr [{index}]",
    "mov {value}, qword ptr [{index} + {work} * 8]",
    "and {value}, -65536",
    "or {value}, {length}",
    "mov qword ptr [{index} + {work} * 8], {value}",
    "mov qword ptr [{index} + {work} * 8 + 8], {item}",
    "and {value}, -65536",
    "add {value}, 65536",
    "mov qword ptr [{index} + {work} * 8 + 16], {value}",
    "add {work}, 2",
    "mov qword ptr [{index}], {work}"
}

section! {
    append_to_header_as_left:
    "mov {work}, qword ptr [{index}]",
    "mov {value}, qword ptr [{index} + {work} * 8]",
    "or {value}, {length}",
    "mov qword ptr [{index} + {work} * 8], {value}",
    "mov qword ptr [{index} + {work} * 8 + 8], {item}",
    "and {value}, -65536",
    "add {value}, 65536",
    "mov qword ptr [{index} + {work} * 8 + 16], {value}",
    "add {work}, 2",
    "mov qword ptr [{index}], {work}"
}

/// Tries a section; 0 if it never worked. The black box keeps the loop from being unrolled.
macro_rules! operation {
    ($name:ident, $section:ident, $lists:ident) => {
        #[inline(never)]
        fn $name(item: u64, length: u64) -> u64 {
            let Some(area) = offset() else { return 0 };
            let tries = 0..black_box(TRIES);
            tries.map(|_| $section(area, &$lists, item, length)).find(|&it| it != 0).unwrap_or(0)
        }
    };
}

operation!(own_push, push, STACKS);
operation!(own_pop, pop, STACKS);
operation!(own_append, append, LOGS);
operation!(control_push_before_item, push_before_item, STACKS);
operation!(control_pop_before_item, pop_before_item, STACKS);
operation!(control_header_as_left, append_to_header_as_left, LOGS);

pub(crate) struct Lists;

impl Structure for Lists {
    fn prepare(&self, _: Operation, board: &Board) {
        LEDGER.begin();
        for list in STACKS.iter().chain(&LOGS) {
            list.0.iter().for_each(|word| word.store(0, SeqCst));
        }
        for list in &STACKS {
            list.0[0].store(CAPACITY + 1, SeqCst);
        }
        for list in &LOGS {
            list.0[0].store(1, SeqCst);
        }
        // On both CPUs, so that a pop finds something wherever it is moved.
        let (home, away) = (cpu(), board.accomplice_cpu.load(SeqCst));
        stock(home);
        if away != home {
            stock(away);
        }
    }

    fn perform(&self, operation: Operation, _: i64) {
        act(operation, Party::Own);
    }

    fn interrupt(&self, operation: Operation) {
        act(operation, Party::Handler);
    }

    fn audit(&self, _: Operation, board: &Board) {
        for cpu in 0..COPIES as u32 {
            for item in items(cpu) {
                LEDGER.locate(item, cpu);
                LEDGER.find(item);
            }
            records(cpu);
        }
        let (missing, _) = LEDGER.close();
        (0..missing).for_each(|_| findings::fault(Fault::Lost));
        findings::publish(board);
    }

    fn current_id(&self) -> Option<u32> {
        Some(cpu())
    }
}

/// Puts three items on a CPU's stack.
fn stock(cpu: u32) {
    let Some(List(words)) = STACKS.get(cpu as usize) else { return };
    for _ in 0..3 {
        let item = LEDGER.issue(Party::Stock, 0);
        let room = words[0].fetch_sub(1, SeqCst) - 1;
        words[room as usize % WORDS].store(item.0.into(), SeqCst);
        LEDGER.locate(item, cpu);
    }
}

fn act(operation: Operation, party: Party) {
    let issue = || LEDGER.issue(party, length(party));
    match operation {
        Operation::SoundPush => give(issue(), own_push),
        Operation::PushBeforeItem => give(issue(), control_push_before_item),
        Operation::SoundAppend => give(issue(), own_append),
        Operation::HeaderAsLeft => give(issue(), control_header_as_left),
        Operation::PopBeforeItem => take(party, control_pop_before_item),
        _ => take(party, own_pop),
    }
}

/// Returns the length of a party's records; the lengths only have to differ.
fn length(party: Party) -> usize {
    if party == Party::Handler { 10 } else { 16 }
}

fn give(item: Item, operation: fn(u64, u64) -> u64) {
    let length = LEDGER.length(item).unwrap_or(0) as u64;
    if operation(item.0.into(), length) == 0 {
        // The shared list of a structure is not tested here.
        LEDGER.find(item);
    }
}

fn take(party: Party, operation: fn(u64, u64) -> u64) {
    let word = operation(0, 0);
    let item = if word == 0 { LEDGER.issue(Party::Stock, 0) } else { Item(word as u32) };
    LEDGER.take(item, party);
}

/// Returns the items on a CPU's stack.
fn items(cpu: u32) -> impl Iterator<Item = Item> {
    let List(words) = &STACKS[cpu as usize];
    let room = words[0].load(SeqCst) as usize;
    words.iter().take(CAPACITY as usize + 1).skip(room).map(|word| Item(word.load(SeqCst) as u32))
}

/// Looks through the records of a CPU's log.
fn records(cpu: u32) {
    let List(words) = &LOGS[cpu as usize];
    let end = (words[0].load(SeqCst) as usize).min(WORDS);
    for (number, at) in (1..end).step_by(2).enumerate() {
        let (header, item) = (words[at].load(SeqCst), Item(words[at + 1].load(SeqCst) as u32));
        let length = LEDGER.length(item).unwrap_or(0) as u64;
        if header != (number as u64) << LENGTH_BITS | length {
            findings::fault(Fault::Torn);
        }
        LEDGER.locate(item, cpu);
        LEDGER.find(item);
    }
}
