//! Publications of processes that mean no good: a memfd with any header, whose owner answers with
//! anything at any time.
#![no_main]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use numa::process::Process;
use numa::publication;
use percid_command::interrupt::Interrupt;

mod numa;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    magic: Option<[u8; 8]>,
    version: Option<u32>,
    process: Option<u32>,
    answers: u32,
    length: Length,
    sealed: bool,
    /// The values that the owner stores while the reader waits.
    later: Option<(u8, Length)>,
    text: &'a [u8],
}

#[derive(Arbitrary, Debug, Clone, Copy)]
enum Length {
    True,
    Any(u64),
    Near(i8),
}

impl Length {
    fn bytes(self, text: &[u8]) -> u64 {
        let length = text.len() as u64;
        match self {
            Length::True => length,
            Length::Any(bytes) => bytes,
            Length::Near(distance) => length.wrapping_add_signed(distance.into()),
        }
    }
}

/// The offset of the count of answers; the length follows it.
const ANSWERS_AT: u64 = 20;

fuzz_target!(|input: Input<'_>| {
    let file = publish(&input);
    let me = Process { number: std::process::id() };
    let found = publication::list(&me).expect("this process's own");
    std::thread::scope(|scope| {
        if let Some((more, length)) = input.later {
            let (file, text) = (&file, input.text);
            scope.spawn(move || {
                let answers = input.answers.wrapping_add(more.into());
                // The file may be shorter than that: then it grows.
                let _ = file.write_all_at(&answer(answers, length.bytes(text)), ANSWERS_AT);
            });
        }
        for publication in found {
            let _ = publication.ask(&me, Duration::from_millis(1), &Interrupt);
        }
    });
});

fn publish(input: &Input<'_>) -> File {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a terminated string.
    let file = unsafe { libc::memfd_create(c"percid-numa".as_ptr(), flags) };
    assert!(file >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor is new and owned here.
    let mut file = unsafe { File::from_raw_fd(file) };
    let mut bytes = input.magic.unwrap_or(*b"percidnb").to_vec();
    bytes.extend(input.version.unwrap_or(1).to_ne_bytes());
    bytes.extend(input.process.unwrap_or(std::process::id()).to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(answer(input.answers, input.length.bytes(input.text)));
    bytes.resize(64, 0);
    bytes.extend(input.text);
    file.write_all(&bytes).expect("memory");
    if input.sealed {
        // SAFETY: the call takes a descriptor and numbers.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
    }
    file
}

fn answer(answers: u32, length: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&answers.to_ne_bytes());
    bytes[4..].copy_from_slice(&length.to_ne_bytes());
    bytes
}
