//! Lists of what `percid-install` has put somewhere: `percid-install uninstall` removes what stands
//! there.
#![no_main]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;

use failure::Failure;
use libfuzzer_sys::{Corpus, fuzz_target};
use manifest::Manifest;

/// The installer's own files: they are private there.
#[path = "../../crates/percid-capi/src/bin/percid-install/destination.rs"]
#[allow(dead_code, reason = "the installer uses all of it")]
mod destination;
#[path = "../../crates/percid-capi/src/bin/percid-install/failure.rs"]
mod failure;
#[path = "../../crates/percid-capi/src/bin/percid-install/fingerprint.rs"]
mod fingerprint;
#[path = "../../crates/percid-capi/src/bin/percid-install/manifest.rs"]
#[allow(dead_code, reason = "the installer uses all of it")]
mod manifest;

fuzz_target!(|text: &[u8]| -> Corpus {
    let Ok(Some(manifest)) = read(text) else { return Corpus::Keep };
    let paths = manifest.files.iter().map(|file| &file.path).chain(&manifest.folders);
    for path in paths {
        assert!(path.is_absolute(), "{path:?} depends on where the installer was called");
        let hidden = |part: &str| path.to_str().is_some_and(|path| path.contains(part));
        assert!(!hidden("\n"), "{path:?} is two lines");
    }
    let again = read(manifest.text().as_bytes());
    // A manifest without a prefix was not written by the installer.
    if manifest.prefix != Path::new("") {
        assert_eq!(again, Ok(Some(manifest)), "what was read is written as something else");
    }
    Corpus::Keep
});

fn read(text: &[u8]) -> Result<Option<Manifest>, Failure> {
    // SAFETY: the name is a terminated string.
    let file = unsafe { libc::memfd_create(c"manifest".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(file >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptor is new and owned here.
    let mut file = unsafe { File::from_raw_fd(file) };
    file.write_all(text).expect("memory");
    Manifest::read(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
}
