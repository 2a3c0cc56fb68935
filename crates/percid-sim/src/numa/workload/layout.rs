//! The regions of a process, which scans go through.

use std::ops::Range;

use percid_rules::scan::{HUGE_PAGE, Traits};

use super::{MIB, Workload};
use crate::numa::parameters::Parameters;

/// Traits of a read-only file segment.
const FILE: Traits = Traits { file: true, writable: false, ..Traits::ANONYMOUS };
/// Traits of memory without any access rights.
const GUARD: Traits = Traits { readable: false, writable: false, ..Traits::ANONYMOUS };
/// Traits of memory that the kernel maps for its own use, like the data of its clocks.
const SPECIAL: Traits = Traits { movable: false, writable: false, ..Traits::ANONYMOUS };

/// Size of a page in bytes.
pub(in crate::numa) const PAGE: u64 = 4096;

/// The threads that touch the pages of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::numa) enum Used {
    /// No thread touches them.
    Never,
    /// A stack: this thread touches it all the time.
    Stack(u32),
    /// A memory of the workload, by its index: the phases define its users.
    Memory(usize),
}

/// A region of a process.
#[derive(Debug, Clone)]
pub(in crate::numa) struct Part {
    pub(in crate::numa) range: Range<u64>,
    pub(in crate::numa) traits: Traits,
    pub(in crate::numa) used: Used,
    /// Number of resident pages.
    pub(in crate::numa) resident: u64,
}

/// Number of a process's first thread; workers count from 1.
pub(in crate::numa) const MAIN: u32 = 0;
/// Number of resident pages of a small region.
const FEW: u64 = 2;
/// Size of every region except the memory of the workload.
const SMALL: u64 = 8 * MIB;
/// Number of read-only segments of the program, and of the loader: header, code, constants, and
/// data that is read-only after relocation.
const SEGMENTS: u32 = 4;
/// Number of small writable regions with known places: data of the program and of the loader, the
/// heap, and the main thread's stack.
const PLACED: u32 = 4;

/// Returns the regions of a process by ascending address. First come the program and its heap, a
/// guard and a stack per worker, and the memory of the workload. Libraries, the kernel's mappings,
/// the loader, and the main thread's stack follow. `skew` shifts the memory relative to huge pages,
/// in pages.
pub(in crate::numa) fn regions(
    parameters: &Parameters,
    workload: &Workload,
    skew: u64,
) -> Vec<Part> {
    let mut list = List { parts: Vec::new(), end: HUGE_PAGE };
    let first_files = SEGMENTS.min(parameters.file_regions);
    let last_files = SEGMENTS.min(parameters.file_regions - first_files);
    list.add(first_files, FILE, Used::Never);
    list.add(2, Traits::ANONYMOUS, Used::Never);
    for worker in 1..=workload.threads {
        list.add(1, GUARD, Used::Never);
        list.add(1, Traits::ANONYMOUS, Used::Stack(worker));
    }
    for (index, memory) in workload.memory.iter().enumerate() {
        list.memory(index, memory.mib * MIB, skew % (HUGE_PAGE / PAGE));
    }
    list.add(parameters.file_regions - first_files - last_files, FILE, Used::Never);
    list.add(parameters.data_regions.saturating_sub(PLACED), Traits::ANONYMOUS, Used::Never);
    list.add(1, SPECIAL, Used::Never);
    list.add(last_files, FILE, Used::Never);
    list.add(1, Traits::ANONYMOUS, Used::Never);
    list.add(1, Traits::ANONYMOUS, Used::Stack(MAIN));
    list.parts
}

struct List {
    parts: Vec<Part>,
    end: u64,
}

impl List {
    fn add(&mut self, count: u32, traits: Traits, used: Used) {
        for _ in 0..count {
            let range = self.end..self.end + SMALL;
            let resident = if traits == Traits::ANONYMOUS { FEW } else { 0 };
            self.parts.push(Part { range, traits, used, resident });
            self.end += SMALL;
        }
    }

    fn memory(&mut self, index: usize, size: u64, skew: u64) {
        let start = self.end.next_multiple_of(HUGE_PAGE) + skew * PAGE;
        let (range, traits) = (start..start + size, Traits::ANONYMOUS);
        self.parts.push(Part { range, traits, used: Used::Memory(index), resident: size / PAGE });
        self.end = start + size;
    }
}
