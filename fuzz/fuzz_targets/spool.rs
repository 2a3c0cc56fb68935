//! Recordings that have not ended: the output of a recorder up to some time, with any end and any
//! damage. The table that recovery makes must contain everything that the reader reads.
#![no_main]

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use flate2::Crc;
use libfuzzer_sys::{Corpus, fuzz_target};
use percid_fuzz::{files, traces};
use percid_trace::read::Format;
use percid_trace::{parquet, spool};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if Format::detect(bytes) != Format::Spool {
        return Corpus::Reject;
    }
    let bytes = &repaired(bytes)[..];
    let trace = files::read(bytes, Format::Spool);
    if let Some(trace) = &trace {
        traces::check(trace);
    }
    let Ok(spooled) = spool::Spooled::open(file(bytes)) else {
        assert!(trace.is_none(), "it was read as a whole");
        return Corpus::Keep;
    };
    let mut table = Vec::new();
    let stored = spool::store(&spooled, &mut table, &mut |_| {});
    let (Some(trace), Ok(stored)) = (trace, stored) else { return Corpus::Keep };
    let again = parquet::read_bytes(table).expect("what was stored can be read");
    // Switches that are missing were added.
    assert!(again.events.len() >= trace.events.len(), "events of the table and of the whole");
    assert_eq!(again.events.len() as u64, stored.events);
    assert_eq!(again.numa.len(), trace.numa.len());
    Corpus::Keep
});

/// Returns the bytes with correct checksums of the frames if the length is even, because random
/// checksums are never correct.
fn repaired(bytes: &[u8]) -> Vec<u8> {
    const HEAD: usize = 9;
    let mut bytes = bytes.to_vec();
    let mut at = spool::MAGIC.len();
    while bytes.len() % 2 == 0 && bytes.len() - at >= HEAD {
        let (head, rest) = bytes[at..].split_at_mut(HEAD);
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(content) = rest.get(..length) else { break };
        let mut crc = Crc::new();
        crc.update(&head[8..]);
        crc.update(content);
        head[4..8].copy_from_slice(&crc.sum().to_le_bytes());
        at += HEAD + length;
    }
    bytes
}

/// Makes an unnamed file with these bytes.
fn file(bytes: &[u8]) -> File {
    // SAFETY: the name is a text with an end.
    let file = unsafe { libc::memfd_create(c"spool".as_ptr(), 0) };
    assert!(file >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: nothing else owns the new descriptor.
    let mut file = unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(file) };
    file.write_all(bytes).expect("memory");
    file.seek(SeekFrom::Start(0)).expect("the beginning");
    file
}
