//! Files that are cut off or damaged are refused, or read as far as they make sense; they never end
//! the program, and never take much more memory than they are long.

use crate::allocator;
use crate::fixture;

use std::sync::Mutex;

use fixture::bytes;
use percid_trace::read::read_bytes;

/// Tests that count memory run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Reads a file and fails if that took more memory than a file of this size may.
/// `what` is the file's name and more.
fn read_within_bounds(file: &[u8], what: impl Fn() -> String) -> bool {
    let what_it_is = what();
    let is_table = what_it_is.contains(".parquet");
    let compressed = is_table
        || what_it_is.contains(".gz")
        || what_it_is.contains("perfetto/")
        || what_it_is.contains(".pftrace")
        || ["compressed", "trace-cmd.zstd"].iter().any(|name| what_it_is.starts_with(name));
    let (read, taken) = allocator::measured(|| read_bytes(file).is_ok());
    // A record of 24 bytes becomes an event of 32 and an entry of 16, both in lists that grow by
    // doubling; the numbers of events need a table of a few megabytes. Compressed records may
    // become 256 times larger before.
    let times = if compressed { 2000 } else { 16 };
    // A table may have a million rows and more however short it is, and each of its columns a page.
    let least = if is_table { 1 << 30 } else { 12 << 20 };
    let bound = times * file.len() + least;
    assert!(taken <= bound, "{taken} bytes for {} bytes: {}", file.len(), what());
    read
}

const DATA: [&str; 6] = [
    "sched.data",
    "compressed.data",
    "pipe.data",
    "switches.data",
    "switches-all.data",
    "counters.data",
];
const TRACE_DAT: [&str; 3] = ["trace-cmd.zstd.dat", "instances.6.dat", "instances.7.dat"];
const TEXT: [&str; 6] = [
    "sched.script.txt",
    "trace-cmd.txt",
    "trace-cmd.short.txt",
    "tracefs.txt",
    "instances.7.txt",
    "timehist.txt",
];

#[test]
fn a_file_that_is_cut_off_is_refused() {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let files =
        ["sched.data", "compressed.data", "switches.data", "counters.data", "instances.6.dat"];
    for name in files {
        let file = bytes(name);
        assert!(read_within_bounds(&file, || name.into()));
        for len in (0..file.len()).step_by(file.len() / 1500 + 1) {
            let read = read_within_bounds(&file[..len], || format!("{name} cut off at {len}"));
            assert!(!read, "{name} cut off at {len} was read");
        }
    }
}

#[test]
fn a_pipe_that_is_cut_off_is_read_only_between_records() {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let file = bytes("pipe.data");
    let read = |len: &usize| read_within_bounds(&file[..*len], || format!("cut off at {len}"));
    let whole = (0..file.len()).step_by(8).filter(read).count();
    // Records are longer than 16 bytes, so most places are within one.
    assert!(whole > 0 && whole < file.len() / 16, "{whole} of {}", file.len() / 8);
}

#[test]
fn events_that_share_their_numbers_are_refused() {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    const EVENTS: u64 = 2000;
    const EVENT: u64 = 64 + 16;
    let header = 8 * 13;
    let len = header + EVENTS * EVENT + 8;
    // The header: its size, the size of an event, and where events, records and types of events
    // are; no sections.
    let mut words = vec![header, EVENT, header, EVENTS * EVENT, len - 8, 8, 0, 0, 0, 0, 0, 0];
    for _ in 0..EVENTS {
        // The attributes say that they are of the first version; then where the numbers are:
        // everywhere.
        words.extend([64 << 32, 0, 0, 0, 0, 0, 0, 0, 0, len]);
    }
    // A record of eight bytes.
    words.push(8 << 48 | 68);
    let mut file = b"PERFILE2".to_vec();
    file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    assert_eq!(file.len() as u64, len);
    assert!(!read_within_bounds(&file, || "shared numbers".into()));
    let error = read_bytes(&file).expect_err("it was read").to_string();
    assert!(error.contains("more numbers than there is room for"), "{error}");
}

#[test]
fn a_file_that_would_not_end_is_refused() {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let zeros = zstd::bulk::compress(&vec![0; 256 << 20], 19).expect("zeros are compressed");
    let mut file = bytes("pipe.data");
    // A record of type 81 holds compressed ones.
    let size = u16::try_from(8 + zeros.len()).expect("a record");
    file.extend([81, 0, 0, 0, 0, 0]);
    file.extend(size.to_le_bytes());
    file.extend(&zeros);
    assert!(!read_within_bounds(&file, || "compressed zeros".into()));
    let error = read_bytes(&file).expect_err("it was read").to_string();
    assert!(error.contains("records become more than 256 times larger"), "{error}");
}

/// A sequence of numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Numbers that sizes and counts must not be.
const BAD: [u64; 10] = [
    0,
    1,
    7,
    0xff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0xffff_ffff_fff0,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Damages a file at one place.
fn damage(file: &mut Vec<u8>, random: &mut Random) {
    // Headers, and the lists at the end, are short and decide most.
    let at = match random.below(4) {
        0 => random.below(file.len().min(256)),
        1 => file.len() - 1 - random.below(file.len().min(16 << 10)),
        _ => random.below(file.len()),
    };
    let len = 1 << random.below(4);
    match random.below(6) {
        0 => file[at] ^= 1 << random.below(8),
        1 => file[at] = random.next() as u8,
        2 | 3 => {
            let bad = match random.below(2) {
                0 => BAD[random.below(BAD.len())],
                _ => random.next() % (2 * file.len() as u64),
            };
            let end = (at + len).min(file.len());
            file[at..end].copy_from_slice(&bad.to_le_bytes()[..end - at]);
        }
        4 => {
            let end = (at + random.below(64)).min(file.len());
            file.drain(at..end);
        }
        _ => {
            let end = (at + random.below(64)).min(file.len());
            let piece = file[at..end].to_vec();
            let to = random.below(file.len());
            file.splice(to..to, piece);
        }
    }
}

/// Damages files in as many ways and reads them; says how many were read in spite of it.
fn damaged(names: &[&str], ways: u64) -> u64 {
    let _alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let seed = std::env::var("PERCID_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("PERCID_SEED={seed}");
    let mut read = 0;
    for name in names {
        let whole = bytes(name);
        for way in 0..ways {
            let mut random = Random(seed ^ way << 20);
            let mut file = whole.clone();
            for _ in 0..=random.below(3) {
                damage(&mut file, &mut random);
            }
            // If the program ends, this shows which input caused it.
            let what = || format!("{name}, way {way}");
            let outcome = std::panic::catch_unwind(|| read_within_bounds(&file, what));
            read += u64::from(outcome.unwrap_or_else(|_| panic!("{}", what())));
        }
    }
    read
}

#[test]
fn damaged_perf_data_is_refused_or_read() {
    let ways = 400;
    let read = damaged(&DATA, ways);
    assert!(read > 0 && read < ways * DATA.len() as u64, "{read}");
}

#[test]
fn damaged_trace_dat_is_refused_or_read() {
    let ways = 400;
    let read = damaged(&TRACE_DAT, ways);
    assert!(read > 0 && read < ways * TRACE_DAT.len() as u64, "{read}");
}

#[test]
fn damaged_text_is_refused_or_read() {
    let ways = 400;
    let read = damaged(&TEXT, ways);
    assert!(read > 0 && read < ways * TEXT.len() as u64, "{read}");
}

/// Files of old kernels and those of vendors, and packets that were compressed.
#[test]
fn damaged_files_of_other_kernels_are_refused_or_read() {
    let files = [
        "reported/old_dead_64.txt",
        "reported/old_stick_numa.txt",
        "reported/long_names.txt",
        "reported/wake_state.txt",
        "reported/zlib50.pftrace",
        "reported/zstd133.pftrace",
    ];
    let ways = 1000;
    let read = damaged(&files, ways);
    assert!(read > 0 && read < ways * files.len() as u64, "{read}");
}

#[test]
#[ignore = "takes minutes; PERCID_WAYS says how many ways for each file, PERCID_SEED which"]
fn many_ways_of_damage() {
    let ways = std::env::var("PERCID_WAYS").ok().and_then(|ways| ways.parse().ok());
    let ways = ways.unwrap_or(10_000);
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        // These become errors.
        if !percid_trace::parquet::catches_panics() {
            tell(what);
        }
    }));
    let files = all_files();
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    println!("{} of {} were read", damaged(&names, ways), names.len() as u64 * ways);
}

/// Every recorded file, of whatever format.
fn all_files() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", "perfetto/", "reported/", "threads/"] {
        for entry in std::fs::read_dir(fixture::path(folder)).expect("the fixtures") {
            let name = entry.expect("the fixtures").file_name().into_string().expect("a name");
            let ends = [".data", ".dat", ".txt", ".parquet", ".gz", ".pftrace"];
            if ends.iter().any(|end| name.ends_with(end)) || folder == "threads/" {
                names.push(format!("{folder}{name}"));
            }
        }
    }
    names.sort_unstable();
    assert!(names.len() > 30, "{names:?}");
    names
}
