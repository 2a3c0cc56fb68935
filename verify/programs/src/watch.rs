//! Hardware watchpoints on a thread's rseq area: how often user space writes to which of its words.
//!
//! The processor sees every store, by whichever address it is made; what the kernel writes is left
//! out. There are four watchpoints, so a thread watches `rseq_cs`, which must be seen written, and
//! three of the other words; which ones differs among the threads.

use std::fs::File;
use std::io::{Error, Read};
use std::os::fd::FromRawFd;

use percid::testing;

/// The start of the kernel's `perf_event_attr`, in its second version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    watched: u32,
    address: u64,
    length: u64,
}

const PERF_TYPE_BREAKPOINT: u32 = 5;
const HW_BREAKPOINT_W: u32 = 2;
/// Always on the processor while the thread is, without the kernel's writes and a hypervisor's.
const PINNED_FOR_USER_SPACE: u64 = 1 << 2 | 1 << 5 | 1 << 6;

const WORD: usize = 8;
/// The word of the area that holds `rseq_cs`.
const RSEQ_CS: usize = 1;
/// The words that a thread watches besides.
const OTHERS: usize = 3;

/// The watchpoints of a thread.
#[derive(Debug)]
pub(crate) struct Watch {
    rseq_cs: File,
    others: Vec<File>,
}

/// The counts of writes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Writes {
    /// To `rseq_cs`.
    pub(crate) rseq_cs: u64,
    /// To all other fields.
    pub(crate) others: u64,
}

impl Watch {
    /// Watches the calling thread's area. Threads with different `number`s watch different words.
    pub(crate) fn start(number: usize) -> Result<Watch, String> {
        let (area, size) = testing::rseq_area().ok_or("the thread has no rseq area")?;
        let others: Vec<usize> = (0..size.div_ceil(WORD)).filter(|&word| word != RSEQ_CS).collect();
        let shares: Vec<_> = others.chunks(OTHERS).collect();
        let watch = |word: usize| watch(area as usize + word * WORD);
        let mine = shares[number % shares.len()];
        Ok(Watch {
            rseq_cs: watch(RSEQ_CS)?,
            others: mine.iter().map(|&word| watch(word)).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the number of writes of the thread.
    pub(crate) fn writes(&self) -> Result<Writes, String> {
        let others = self.others.iter().map(count).sum::<Result<u64, String>>()?;
        Ok(Writes { rseq_cs: count(&self.rseq_cs)?, others })
    }
}

fn watch(address: usize) -> Result<File, String> {
    let attributes = Attributes {
        kind: PERF_TYPE_BREAKPOINT,
        size: size_of::<Attributes>() as u32,
        flags: PINNED_FOR_USER_SPACE,
        watched: HW_BREAKPOINT_W,
        address: address as u64,
        length: WORD as u64,
        ..Attributes::default()
    };
    // SAFETY: the structure has the size in its field, and the other arguments are plain integers:
    // the calling thread, on any CPU, no group, no flags.
    let file = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, 0) };
    if file < 0 {
        return Err(format!("no watchpoint: {}", Error::last_os_error()));
    }
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { File::from_raw_fd(file as i32) })
}

fn count(mut event: &File) -> Result<u64, String> {
    let mut value = [0; 8];
    // An event that could not be kept on the processor has nothing to read.
    event.read_exact(&mut value).map_err(|error| format!("a watchpoint was lost: {error}"))?;
    Ok(u64::from_ne_bytes(value))
}

/// Writes a field of the calling thread's area that is the kernel's, with its present value: the
/// negative control.
pub(crate) fn clobber() {
    const NODE_ID: usize = 20;
    if let Some((area, _)) = testing::rseq_area() {
        let field = area.wrapping_add(NODE_ID).cast::<u32>();
        // SAFETY: the field lies in the thread's own area, and its value stays the same.
        unsafe { field.write_volatile(field.read_volatile()) };
    }
}
