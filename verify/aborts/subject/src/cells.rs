//! Operations on cells of the subject's own, indexed by the CPU number: one that is right, and
//! controls that each have one fault which a proof of critical sections must find.

use std::arch::asm;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use percid_subject::board::{Board, COPIES};
use percid_subject::{Operation, Party};

use crate::structure::Structure;

/// Number of tries of a section before the shared cell is used.
pub(crate) const TRIES: usize = 8;

/// One cell per CPU, on a line of its own.
#[repr(align(64))]
struct Cell(AtomicI64);

static CELLS: [Cell; COPIES] = [const { Cell(AtomicI64::new(0)) }; COPIES];
static SHARED: AtomicI64 = AtomicI64::new(0);

static OFFSET: OnceLock<Option<isize>> = OnceLock::new();

/// Returns the offset from the thread pointer to the C library's rseq area; `None` if it has none.
pub(crate) fn offset() -> Option<isize> {
    // SAFETY: the names are terminated strings, and the variables have the documented types.
    *OFFSET.get_or_init(|| unsafe {
        let find = |name: *const libc::c_char| libc::dlsym(libc::RTLD_DEFAULT, name);
        let (offset, size): (*mut c_void, *mut c_void) =
            (find(c"__rseq_offset".as_ptr()), find(c"__rseq_size".as_ptr()));
        let registered = !offset.is_null() && !size.is_null() && *size.cast::<u32>() > 0;
        registered.then(|| *offset.cast::<isize>())
    })
}

fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the ABI stores the thread pointer at its own address.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(nostack, readonly)) };
    pointer
}

/// Returns the address of the calling thread's rseq area; 0 if there is none.
pub(crate) fn area() -> u64 {
    offset().map_or(0, |offset| thread_pointer().wrapping_add_signed(offset) as u64)
}

/// A section that adds `n` to its CPU's cell. The parts that a fault can be in are parameters.
macro_rules! section {
    (
        $name:ident
        declare { $($declare:literal),* }
        index { $($index:literal),* }
        commit { $($commit:literal),* }
        pad { $pad:literal }
    ) => {
        #[inline(always)]
        fn $name(area: isize, n: i64) -> bool {
            // SAFETY: none is claimed for the controls, whose faults are what they are for; they
            // write to nothing but `CELLS`.
            unsafe {
                asm!(
                    ".pushsection __rseq_cs, \"aw\", @progbits",
                    ".balign 32",
                    "9:",
                    ".long 0, 0",
                    ".quad 2f, 3f - 2f, 4f",
                    ".popsection",
                    $($declare,)*
                    "2:",
                    $($index,)*
                    "cmp {index:e}, {copies}",
                    "jae {restart}",
                    "shl {index}, 6",
                    "add {index}, {cells}",
                    $($commit,)*
                    "3:",
                    ".pushsection .text.rseq_abort, \"ax\", @progbits",
                    ".byte 0x0f, 0xb9, 0x3d",
                    ".long 0x53053053",
                    "4:",
                    $pad,
                    ".popsection",
                    index = out(reg) _,
                    work = out(reg) _,
                    area = in(reg) area,
                    cells = in(reg) &raw const CELLS,
                    n = in(reg) n,
                    copies = const COPIES,
                    restart = label { return false },
                    options(nostack)
                );
            }
            true
        }
    };
}

section! {
    sound
    declare { "lea {work}, [rip + 9b]", "mov qword ptr fs:[{area} + 8], {work}" }
    index { "mov {index:e}, dword ptr fs:[{area} + 4]" }
    commit { "mov {work}, {n}", "add {work}, qword ptr [{index}]", "mov qword ptr [{index}], {work}" }
    pad { "jmp {restart}" }
}

section! {
    commit_not_last
    declare { "lea {work}, [rip + 9b]", "mov qword ptr fs:[{area} + 8], {work}" }
    index { "mov {index:e}, dword ptr fs:[{area} + 4]" }
    commit {
        "mov {work}, {n}",
        "add {work}, qword ptr [{index}]",
        "mov qword ptr [{index}], {work}",
        "xor {work:e}, {work:e}"
    }
    pad { "jmp {restart}" }
}

section! {
    pad_behind_commit
    declare { "lea {work}, [rip + 9b]", "mov qword ptr fs:[{area} + 8], {work}" }
    index { "mov {index:e}, dword ptr fs:[{area} + 4]" }
    commit { "mov {work}, {n}", "add {work}, qword ptr [{index}]", "mov qword ptr [{index}], {work}" }
    pad { "jmp 3b" }
}

section! {
    input_overwritten
    declare { "lea {work}, [rip + 9b]", "mov qword ptr fs:[{area} + 8], {work}" }
    index { "mov {index:e}, dword ptr fs:[{area} + 4]" }
    commit { "add {n}, {n}", "add {n}, qword ptr [{index}]", "mov qword ptr [{index}], {n}" }
    pad { "jmp {restart}" }
}

section! {
    gap_before_start
    declare {
        "lea {work}, [rip + 9b]",
        "mov qword ptr fs:[{area} + 8], {work}",
        "xor {work:e}, {work:e}"
    }
    index { "mov {index:e}, dword ptr fs:[{area} + 4]" }
    commit { "mov {work}, {n}", "add {work}, qword ptr [{index}]", "mov qword ptr [{index}], {work}" }
    pad { "jmp {restart}" }
}

section! {
    index_too_early
    declare {
        "mov {index:e}, dword ptr fs:[{area} + 4]",
        "lea {work}, [rip + 9b]",
        "mov qword ptr fs:[{area} + 8], {work}"
    }
    index {}
    commit { "mov {work}, {n}", "add {work}, qword ptr [{index}]", "mov qword ptr [{index}], {work}" }
    pad { "jmp {restart}" }
}

/// Tries a section, then uses the shared cell. The black box keeps the loop from being unrolled.
macro_rules! operation {
    ($name:ident, $section:ident) => {
        #[inline(never)]
        fn $name(n: i64) {
            if let Some(area) = offset() {
                for _ in 0..black_box(TRIES) {
                    if $section(area, n) {
                        return;
                    }
                }
            }
            SHARED.fetch_add(n, SeqCst);
        }
    };
}

operation!(own_sound, sound);
operation!(control_commit_not_last, commit_not_last);
operation!(control_pad_behind_commit, pad_behind_commit);
operation!(control_input_overwritten, input_overwritten);
operation!(control_gap_before_start, gap_before_start);
operation!(control_index_too_early, index_too_early);

pub(crate) struct Cells;

impl Structure for Cells {
    fn perform(&self, operation: Operation, amount: i64) {
        let run = match operation {
            Operation::CommitNotLast => control_commit_not_last,
            Operation::PadBehindCommit => control_pad_behind_commit,
            Operation::InputOverwritten => control_input_overwritten,
            Operation::GapBeforeStart => control_gap_before_start,
            Operation::IndexTooEarly => control_index_too_early,
            _ => own_sound,
        };
        run(amount);
    }

    /// Adds without a section, which would prove nothing here.
    fn interrupt(&self, _: Operation) {
        SHARED.fetch_add(Party::Handler.amount(), SeqCst);
    }

    fn audit(&self, _: Operation, board: &Board) {
        for (place, cell) in board.copies.iter().zip(&CELLS) {
            place.store(cell.0.load(SeqCst), SeqCst);
        }
        board.shared.store(SHARED.load(SeqCst), SeqCst);
    }

    fn current_id(&self) -> Option<u32> {
        Some(cpu())
    }
}

/// Returns the CPU that the thread is on at this moment.
pub(crate) fn cpu() -> u32 {
    // SAFETY: the call has no arguments. It does not fail on systems with rseq.
    unsafe { libc::sched_getcpu() as u32 }
}
