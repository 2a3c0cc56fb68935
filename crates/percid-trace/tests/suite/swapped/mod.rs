//! Files of `trace-cmd` and `perf` as other machines and other builds of it write them.
#![allow(dead_code, reason = "every test uses some of it")]

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

pub(crate) mod perf_data;

/// A file that is changed in place, from one place to the next.
pub(super) struct Swap {
    pub(super) file: Vec<u8>,
    pub(super) at: usize,
}

impl Swap {
    /// Swaps a number here and goes on; what it was.
    pub(super) fn number(&mut self, size: usize) -> u64 {
        let number = self.number_at(self.at, size);
        self.at += size;
        number
    }

    pub(super) fn number_at(&mut self, at: usize, size: usize) -> u64 {
        let bytes = &mut self.file[at..at + size];
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        bytes.reverse();
        number
    }

    /// So many of eight bytes each.
    pub(super) fn numbers(&mut self, count: u64) {
        for _ in 0..count {
            self.number(8);
        }
    }

    pub(super) fn text(&mut self) -> String {
        let end = self.file[self.at..].iter().position(|&byte| byte == 0).expect("an end");
        let text = String::from_utf8_lossy(&self.file[self.at..self.at + end]).into_owned();
        self.at += end + 1;
        text
    }

    /// A text whose size stands before it.
    pub(super) fn sized(&mut self, size: usize) -> String {
        let len = self.number(size) as usize;
        self.at += len;
        String::from_utf8_lossy(&self.file[self.at - len..self.at]).into_owned()
    }

    pub(super) fn headers(&mut self) {
        for _ in 0..2 {
            self.text();
            self.sized(8);
        }
    }

    pub(super) fn ftrace(&mut self) {
        for _ in 0..self.number(4) {
            self.sized(8);
        }
    }

    pub(super) fn systems(&mut self) -> Records {
        let mut records = Records::default();
        for _ in 0..self.number(4) {
            self.text();
            for _ in 0..self.number(4) {
                records.add(&self.sized(8));
            }
        }
        records
    }

    /// The value of an option; what is swapped where in the file, if it is one of a buffer.
    fn option(&mut self, option: u64, value: usize, seven: bool) -> Option<usize> {
        match option {
            0 | 11 | 16..=21 => drop(self.number_at(value, 8)),
            8 => drop(self.number_at(value, 4)),
            3 => {
                let buffer = self.number_at(value, 8) as usize;
                if seven {
                    self.at = value + 8;
                    self.text();
                    self.text();
                }
                return Some(buffer);
            }
            _ => {}
        }
        None
    }

    fn pages(&mut self, records: &Records, at: usize, size: usize) {
        for page in (at..at + size).step_by(4096) {
            self.number_at(page, 8);
            let end = page + 16 + (self.number_at(page + 8, 8) & 0x7ff_ffff) as usize;
            self.at = page + 16;
            while self.at < end {
                self.record(records);
            }
        }
    }

    /// A record of the kernel: its head, whose parts big-endian machines have the other way round.
    fn record(&mut self, records: &Records) {
        let head = self.at;
        let both = self.number(4) as u32;
        let (kind, distance) = (both & 31, both >> 5);
        self.file[head..head + 4].copy_from_slice(&(kind << 27 | distance).to_be_bytes());
        let (data, len) = match kind {
            29 => (0, self.number(4) as usize - 4),
            30 | 31 => {
                self.number(4);
                (0, 0)
            }
            0 => {
                let len = self.number(4) as usize - 4;
                (self.at, len)
            }
            words => (self.at, 4 * words as usize),
        };
        self.at += len;
        if data > 0 {
            records.swap(self, data);
        }
    }
}

/// Positions of the numbers in the records of each event.
#[derive(Default)]
pub(super) struct Records(HashMap<u64, Vec<(usize, usize)>>);

impl Records {
    fn add(&mut self, format: &str) {
        let id = format.lines().find_map(|line| line.strip_prefix("ID: ")).expect("a number");
        let fields = format.lines().filter_map(|line| {
            let line = line.trim().strip_prefix("field:")?;
            let number = |key: &str| -> usize {
                let value = line.split(';').find_map(|part| part.trim().strip_prefix(key));
                value.and_then(|value| value.parse().ok()).expect("a number")
            };
            let is_text =
                line.contains("char ") && line.contains('[') && !line.contains("__data_loc");
            (!is_text).then(|| (number("offset:"), number("size:")))
        });
        self.0.insert(id.trim().parse().expect("a number"), fields.collect());
    }

    pub(super) fn swap(&self, file: &mut Swap, data: usize) {
        let id = u64::from(u16::from_le_bytes([file.file[data], file.file[data + 1]]));
        for &(offset, size) in &self.0[&id] {
            file.number_at(data + offset, size);
        }
    }
}

/// Returns the same file as written by a big-endian machine.
pub(crate) fn trace_dat(file: &[u8]) -> Vec<u8> {
    let mut swap = Swap { file: file.to_vec(), at: 10 };
    let version = swap.text();
    swap.file[swap.at] = 1;
    swap.at += 2;
    swap.number(4);
    match version.as_str() {
        "6" => version_6(&mut swap),
        _ => version_7(&mut swap),
    }
    swap.file
}

fn version_6(swap: &mut Swap) {
    swap.headers();
    swap.ftrace();
    let records = swap.systems();
    swap.sized(4);
    swap.sized(4);
    swap.sized(8);
    let cpus = swap.number(4);
    swap.at += 10;
    let mut buffers = Vec::new();
    loop {
        let option = swap.number(2);
        if option == 0 {
            break;
        }
        let size = swap.number(4) as usize;
        let value = swap.at;
        buffers.extend(swap.option(option, value, false));
        swap.at = value + size;
    }
    buffers.insert(0, swap.at);
    for buffer in buffers {
        swap.at = buffer + 10;
        let table: Vec<_> =
            (0..cpus).map(|_| (swap.number(8) as usize, swap.number(8) as usize)).collect();
        swap.sized(8);
        for (at, size) in table {
            swap.pages(&records, at, size);
        }
    }
}

fn version_7(swap: &mut Swap) {
    swap.text();
    swap.text();
    let mut offset = swap.number(8) as usize;
    let (mut sections, mut buffers) = (HashMap::new(), Vec::new());
    while offset != 0 {
        sections.insert(0, offset);
        swap.at = offset + 16;
        section(swap, offset);
        loop {
            let (option, size) = (swap.number(2), swap.number(4) as usize);
            let value = swap.at;
            if matches!(option, 16..=21) {
                let mut place = [0; 8];
                place.copy_from_slice(&swap.file[value..value + 8]);
                sections.insert(option, u64::from_le_bytes(place) as usize);
            }
            if option == 0 {
                let mut next = [0; 8];
                next.copy_from_slice(&swap.file[value..value + 8]);
                offset = u64::from_le_bytes(next) as usize;
            }
            if let Some(buffer) = swap.option(option, value, true) {
                swap.number(4);
                let cpus = swap.number(4);
                let table = (0..cpus).map(|_| {
                    swap.number(4);
                    (swap.number(8) as usize, swap.number(8) as usize)
                });
                buffers.push((buffer, table.collect::<Vec<_>>()));
            }
            swap.at = value + size;
            if option == 0 {
                break;
            }
        }
    }
    sections.remove(&0);
    let mut records = Records::default();
    for (option, offset) in sections {
        section(swap, offset);
        swap.at = offset + 16;
        match option {
            16 => swap.headers(),
            17 => swap.ftrace(),
            18 => records = swap.systems(),
            19 | 20 => drop(swap.sized(4)),
            _ => drop(swap.sized(8)),
        }
    }
    for (offset, table) in buffers {
        section(swap, offset);
        for (at, size) in table {
            swap.pages(&records, at, size);
        }
    }
}

/// The head of a section.
fn section(swap: &mut Swap, offset: usize) {
    for (at, size) in [(0, 2), (2, 2), (4, 4), (8, 8)] {
        swap.number_at(offset + at, size);
    }
}

/// A file of version 7 whose sections zstd compressed, with the same ones compressed by zlib at its end.
pub(crate) fn with_zlib(file: &[u8]) -> Vec<u8> {
    with_zlib_and(file, |_| {})
}

/// The same, where something is done to the first piece of the data of a CPU.
pub(crate) fn with_zlib_and(file: &[u8], damage: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut file = file.to_vec();
    let name = file.windows(5).position(|name| name == b"zstd\0").expect("the name");
    file[name..name + 4].copy_from_slice(b"zlib");
    let mut offset = u64_at(&file, name + 11);
    while offset != 0 {
        let mut at = offset + 16;
        loop {
            let (option, size) = (u16_at(&file, at), u32_at(&file, at + 2));
            let value = at + 6;
            at = value + size;
            match option {
                0 => {
                    offset = u64_at(&file, value);
                    break;
                }
                16 | 18 | 19 => {
                    let section = u64_at(&file, value);
                    let mut moved = file[section..section + 16].to_vec();
                    let (piece, _) = piece(&file, section + 16);
                    moved[8..].copy_from_slice(&(piece.len() as u64).to_le_bytes());
                    moved.extend(piece);
                    point(&mut file, value, &moved);
                }
                3 => {
                    // A short name, the clock `local`, the size of pages, and the number of CPUs.
                    let cpus = value + 8 + 1 + 6 + 4;
                    for cpu in 0..u32_at(&file, cpus) {
                        let entry = cpus + 4 + 20 * cpu + 4;
                        let data = u64_at(&file, entry);
                        let pieces = u32_at(&file, data);
                        let mut moved = file[data..data + 4].to_vec();
                        let mut from = data + 4;
                        for _ in 0..pieces {
                            let (mut piece, end) = piece(&file, from);
                            damage(&mut piece);
                            moved.extend(piece);
                            from = end;
                        }
                        point(&mut file, entry, &moved);
                        let size = (moved.len() as u64 - 4).to_le_bytes();
                        file[entry + 8..entry + 16].copy_from_slice(&size);
                    }
                }
                _ => {}
            }
        }
    }
    file
}

/// Appends bytes and lets a place say where they are.
fn point(file: &mut Vec<u8>, place: usize, bytes: &[u8]) {
    let at = (file.len() as u64).to_le_bytes();
    file[place..place + 8].copy_from_slice(&at);
    file.extend(bytes);
}

/// A compressed piece, compressed by zlib, and where the next one is.
fn piece(file: &[u8], at: usize) -> (Vec<u8>, usize) {
    let (size, becomes) = (u32_at(file, at), u32_at(file, at + 4));
    let end = at + 8 + size;
    let plain = zstd::bulk::decompress(&file[at + 8..end], becomes).expect("it is compressed");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&plain).expect("memory");
    let compressed = encoder.finish().expect("memory");
    let sizes = [compressed.len() as u32, becomes as u32];
    let head = sizes.iter().flat_map(|size| size.to_le_bytes());
    (head.chain(compressed.iter().copied()).collect(), end)
}

fn u16_at(file: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([file[at], file[at + 1]]))
}

fn u32_at(file: &[u8], at: usize) -> usize {
    u16_at(file, at) | u16_at(file, at + 2) << 16
}

fn u64_at(file: &[u8], at: usize) -> usize {
    u32_at(file, at) | u32_at(file, at + 4) << 32
}
