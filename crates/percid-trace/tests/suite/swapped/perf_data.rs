//! A `perf.data` file as a machine writes it that puts the highest byte first.
//!
//! All data that describes the schedule is swapped: the header, the events, the records with the
//! tracepoints in them, the tracing data, and the sections of texts and numbers. Sections that no
//! reader of schedules needs (caches, memory, build IDs) stay as they are.

use std::collections::HashMap;

use super::{Records, Swap};

/// Bits of `sample_type`.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// The parts in the records of an event.
#[derive(Clone, Copy)]
struct Layout {
    sample_type: u64,
    read_format: u64,
    has_trailer: bool,
}

/// Returns the same file as written by a machine of the other byte order.
pub(crate) fn perf_data(file: &[u8]) -> Vec<u8> {
    let mut swap = Swap { file: file.to_vec(), at: 0 };
    swap.number(8);
    match swap.number(8) {
        16 => pipe(&mut swap),
        _ => whole(&mut swap),
    }
    swap.file
}

fn whole(swap: &mut Swap) {
    let attr_size = swap.number(8) as usize;
    let [attrs, data, _] = [0; 3].map(|_| (swap.number(8) as usize, swap.number(8) as usize));
    let mut features = Vec::new();
    for word in 0..4 {
        let bits = swap.number(8);
        features.extend((0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| word * 64 + bit));
    }
    let mut layouts = Layouts::default();
    for attr in (attrs.0..attrs.0 + attrs.1).step_by(attr_size) {
        let layout = attributes(swap, attr);
        let place = attr + attr_size - 16;
        let (ids, size) =
            (swap.number_at(place, 8) as usize, swap.number_at(place + 8, 8) as usize);
        layouts.add(layout, (ids..ids + size).step_by(8).map(|id| swap.number_at(id, 8)));
    }
    let mut sections = Vec::new();
    swap.at = data.0 + data.1;
    for feature in features {
        sections.push((feature, swap.number(8) as usize, swap.number(8) as usize));
    }
    // The records of tracepoints are as the tracing data says.
    let mut formats = Records::default();
    for (feature, at, _) in sections {
        swap.at = at;
        match feature {
            1 => formats = tracing_data(swap),
            feature => section(swap, feature),
        }
    }
    swap.at = data.0;
    while swap.at < data.0 + data.1 {
        record(swap, &layouts, &formats);
    }
}

/// Swaps the data that was written into a pipe: everything comes as records.
fn pipe(swap: &mut Swap) {
    let (mut layouts, mut formats) = (Layouts::default(), Records::default());
    while swap.at < swap.file.len() {
        let start = swap.at;
        match u32::from_le_bytes(swap.file[start..start + 4].try_into().expect("four bytes")) {
            64 => {
                let end = start + head(swap).1;
                let attr = swap.at;
                let size =
                    u32::from_le_bytes(swap.file[attr + 4..attr + 8].try_into().expect("four"));
                let layout = attributes(swap, attr);
                let ids = (attr + size as usize..end).step_by(8);
                layouts.add(layout, ids.map(|id| swap.number_at(id, 8)));
                swap.at = end;
            }
            66 => {
                let end = start + head(swap).1;
                let size = swap.number(4) as usize;
                swap.at = end;
                formats = tracing_data(swap);
                swap.at = end + size;
            }
            80 => {
                let end = start + head(swap).1;
                let feature = swap.number(8);
                section(swap, feature);
                swap.at = end;
            }
            _ => record(swap, &layouts, &formats),
        }
    }
}

/// The kind and the size of a record.
fn head(swap: &mut Swap) -> (u64, usize) {
    let kind = swap.number(4);
    swap.number(2);
    (kind, swap.number(2) as usize)
}

/// Those of a `perf_event_attr`. Its bit fields begin with the highest bit where bytes do.
fn attributes(swap: &mut Swap, at: usize) -> Layout {
    swap.at = at;
    swap.number(4);
    let size = swap.number(4) as usize;
    let [_, _, sample_type, read_format] = [0; 4].map(|_| swap.number(8));
    let flags = u64::from_le_bytes(swap.file[at + 40..at + 48].try_into().expect("eight bytes"));
    for byte in &mut swap.file[at + 40..at + 48] {
        *byte = byte.reverse_bits();
    }
    swap.at = at + 48;
    let rest = [4, 4, 8, 8, 8, 8, 4, 4, 8, 4, 2, 2, 4, 4, 8];
    for part in rest {
        if swap.at + part <= at + size {
            swap.number(part);
        }
    }
    Layout { sample_type, read_format, has_trailer: flags >> 18 & 1 != 0 }
}

fn tracing_data(swap: &mut Swap) -> Records {
    swap.at += 10;
    swap.text();
    swap.file[swap.at] = 1;
    swap.at += 2;
    swap.number(4);
    swap.headers();
    swap.ftrace();
    let records = swap.systems();
    // Symbols, formats of printk, and names of threads.
    swap.sized(4);
    swap.sized(4);
    swap.sized(8);
    records
}

/// Swaps one of the sections with texts and numbers.
fn section(swap: &mut Swap, feature: u64) {
    match feature {
        3..=6 | 8 | 9 => drop(swap.sized(4)),
        7 => drop([swap.number(4), swap.number(4)]),
        10 => drop(swap.number(8)),
        11 => (0..swap.number(4)).for_each(|_| drop(swap.sized(4))),
        12 => {
            let (events, size) = (swap.number(4), swap.number(4) as usize);
            for _ in 0..events {
                let attr = swap.at;
                attributes(swap, attr);
                swap.at = attr + size;
                let ids = swap.number(4);
                swap.sized(4);
                swap.numbers(ids);
            }
        }
        _ => {}
    }
}

/// The layout of each event, by its numbers.
#[derive(Default)]
struct Layouts {
    first: Option<Layout>,
    by_id: HashMap<u64, Layout>,
}

impl Layouts {
    fn add(&mut self, layout: Layout, ids: impl Iterator<Item = u64>) {
        self.first.get_or_insert(layout);
        self.by_id.extend(ids.map(|id| (id, layout)));
    }

    /// That of a record that has not been swapped yet: its number stands first, or at the end.
    fn get(&self, swap: &Swap, body: usize, end: usize, is_sample: bool) -> Layout {
        let first = self.first.expect("an event");
        if first.sample_type & IDENTIFIER == 0 {
            return first;
        }
        let at = if is_sample { body } else { end - 8 };
        let id = u64::from_le_bytes(swap.file[at..at + 8].try_into().expect("eight bytes"));
        self.by_id.get(&id).copied().unwrap_or(first)
    }
}

fn record(swap: &mut Swap, layouts: &Layouts, formats: &Records) {
    let start = swap.at;
    let (kind, size) = head(swap);
    let (body, end) = (swap.at, start + size);
    if kind == 9 {
        let layout = layouts.get(swap, body, end, true);
        sample(swap, layout, formats);
    } else if kind < 64 {
        let layout = layouts.get(swap, body, end, false);
        let fields: &[usize] = match kind {
            1 => &[4, 4, 8, 8, 8],
            2 => &[8, 8],
            3 => &[4, 4],
            4 | 7 => &[4, 4, 4, 4, 8],
            5 | 6 => &[8, 8, 8],
            10 => &[4, 4, 8, 8, 8, 4, 4, 8, 8, 4, 4],
            13 => &[8],
            15 => &[4, 4],
            _ => &[],
        };
        for &field in fields {
            swap.number(field);
        }
        if layout.has_trailer {
            trailer(swap, end, layout.sample_type);
        }
    }
    swap.at = end;
}

/// Swaps the fields at the end of a record that is no sample.
fn trailer(swap: &mut Swap, end: usize, sample_type: u64) {
    let parts = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
    let parts = parts.into_iter().filter(|part| sample_type & part != 0);
    swap.at = end - 8 * parts.clone().count();
    parts.for_each(|part| one(swap, part));
}

/// A part of eight bytes.
fn one(swap: &mut Swap, part: u64) {
    match part {
        TID | CPU => drop([swap.number(4), swap.number(4)]),
        _ => drop(swap.number(8)),
    }
}

fn sample(swap: &mut Swap, layout: Layout, formats: &Records) {
    let has = |part: u64| layout.sample_type & part != 0;
    let fixed = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD];
    fixed.into_iter().filter(|&part| has(part)).for_each(|part| one(swap, part));
    if has(READ) {
        let [times, id, lost] =
            [0b11, 0b100, 0b1_0000].map(|bits| u64::from((layout.read_format & bits).count_ones()));
        assert!(layout.read_format & 0b1000 != 0, "a group");
        let events = swap.number(8);
        swap.numbers(times + events * (1 + id + lost));
    }
    if has(CALLCHAIN) {
        let addresses = swap.number(8);
        swap.numbers(addresses);
    }
    // An event that is no tracepoint has none, though it is asked for.
    if has(RAW) {
        let size = swap.number(4);
        let data = swap.at;
        if size > 4 {
            formats.swap(swap, data);
        }
    }
}
