//! Recordings that have not ended: what a recorder has written by then, with any end and any damage.
//! What is read as a whole is what recovery makes a table of.
#![no_main]

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use libfuzzer_sys::{Corpus, fuzz_target};
use percid_fuzz::{files, traces};
use percid_trace::read::Format;
use percid_trace::{gaps, parquet, spool};

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if Format::detect(bytes) != Format::Spool {
        return Corpus::Reject;
    }
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
    let Some(mut trace) = trace.filter(|_| stored.is_ok()) else { return Corpus::Keep };
    // The recorder writes events in order; what is not is stored in parts as it comes.
    gaps::close(&mut trace);
    let again = parquet::read_bytes(table).expect("what was stored can be read");
    assert_eq!(again.events.len(), trace.events.len(), "events of the table and of the whole");
    assert_eq!(again.numa.len(), trace.numa.len());
    Corpus::Keep
});

/// A file with these bytes that has no name.
fn file(bytes: &[u8]) -> File {
    // SAFETY: the name is a text with an end.
    let file = unsafe { libc::memfd_create(c"spool".as_ptr(), 0) };
    assert!(file >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: nobody else has the new file.
    let mut file = unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(file) };
    file.write_all(bytes).expect("memory");
    file.seek(SeekFrom::Start(0)).expect("the beginning");
    file
}
