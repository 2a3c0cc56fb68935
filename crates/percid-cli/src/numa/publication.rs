//! Reports that balancers of other processes publish: finding and requesting them, according to the
//! library's `publish/mod.rs`.
//!
//! Data of another process is never trusted. Only a memfd is opened, not another file with the same
//! name, so opening and reading never wait for another process. It cannot shrink under the mapping
//! of its header, and a report has at most [`MAX_REPORT_BYTES`] bytes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst, fence};
use std::time::{Duration, Instant};

use super::process::Process;
use super::published_report::PublishedReport;
use percid_command::interrupt::Interrupt;

/// The target of the link to a publication.
const LINK: &[u8] = b"/memfd:percid-numa (deleted)";
const MAGIC: u64 = u64::from_ne_bytes(*b"percidnb");
const VERSION: u32 = 1;
/// Offset of the report, after the header.
const REPORT_AT: u64 = 64;

/// The largest report that is read: one of about 30 000 regions.
const MAX_REPORT_BYTES: u64 = 16 << 20;

/// Interval at which a reader checks for its answer.
const LOOK: Duration = Duration::from_millis(2);

/// The header; all of it may change at any time.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    process: AtomicU32,
    requests: AtomicU32,
    answers: AtomicU32,
    length: AtomicU64,
}

/// The reason why there is no report.
#[derive(Debug)]
pub(crate) enum Silence {
    /// Ctrl-C was pressed.
    Interrupted,
    /// The process has ended.
    Ended,
    /// Any other reason, as text.
    Because(String),
}

impl From<String> for Silence {
    fn from(why: String) -> Silence {
        Silence::Because(why)
    }
}

/// A published memfd of a balancer.
#[derive(Debug)]
pub(crate) struct Publication {
    /// Distinguishes it from all others of the machine while it exists.
    pub(crate) inode: u64,
    file: File,
}

/// Returns the publications of a process, in the order of their descriptors, without those that it
/// inherited by `fork`.
///
/// # Errors
///
/// Fails if there is no such process, or this user may not read it.
pub(crate) fn list(process: &Process) -> io::Result<Vec<Publication>> {
    let mut descriptors = Vec::new();
    for entry in fs::read_dir(process.path("fd"))? {
        // Skip a descriptor that was closed since the directory was read.
        let Ok(entry) = entry else { continue };
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if let (Some(number), Ok(target)) = (number, fs::read_link(entry.path())) {
            if target.as_os_str().as_bytes() == LINK {
                descriptors.push(number);
            }
        }
    }
    descriptors.sort_unstable();
    let mut seen = BTreeSet::new();
    let opened = descriptors.into_iter().filter_map(|number| open(process, number).ok().flatten());
    let own = opened.filter(|publication| publication.is_of(process));
    Ok(own.filter(|publication| seen.insert(publication.inode)).collect())
}

/// Opens a descriptor of a process if it is a memfd.
fn open(process: &Process, descriptor: u32) -> io::Result<Option<Publication>> {
    let path = process.path(&format!("fd/{descriptor}"));
    // `O_PATH` only references the file: this neither blocks nor triggers anything, whatever the
    // file is.
    let held = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    let (device, inode) = device_and_inode(&held)?;
    if device != device_of_memfds()? {
        return Ok(None);
    }
    let path = format!("/proc/self/fd/{}", held.as_raw_fd());
    let file = File::options().read(true).write(true).open(path)?;
    Ok(Some(Publication { inode, file }))
}

/// Returns the device and the inode without a request to the file system, which any user's process
/// could serve.
fn device_and_inode(file: &File) -> io::Result<((u32, u32), u64)> {
    let mut status = std::mem::MaybeUninit::<libc::statx>::zeroed();
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    // SAFETY: the path is a NUL-terminated string, and `status` has room for the result.
    let done = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_INO, status.as_mut_ptr())
    };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, and zeros are valid in the fields that it did not fill.
    let status = unsafe { status.assume_init() };
    Ok(((status.stx_dev_major, status.stx_dev_minor), status.stx_ino))
}

/// Returns the device of memfds: all are in one internal file system of the kernel, which has no
/// other files.
fn device_of_memfds() -> io::Result<(u32, u32)> {
    // SAFETY: the name is a terminated string.
    let file = unsafe { libc::memfd_create(c"percid-probe".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned here.
    device_and_inode(&unsafe { File::from_raw_fd(file) }).map(|(device, _)| device)
}

impl Publication {
    /// Requests a report and waits for it.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no report.
    pub(crate) fn ask(
        &self,
        process: &Process,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<PublishedReport, Silence> {
        let header = self.header()?;
        let before = header.answers.load(SeqCst);
        header.requests.fetch_add(1, SeqCst);
        wake(&header.requests);
        // The first answer that was started after the request.
        let wanted = before.wrapping_add(2 + before % 2);
        let deadline = Instant::now() + patience;
        loop {
            if let Some(text) = self.answer(&header, wanted) {
                return Ok(PublishedReport::parse(&text?)?);
            }
            if interrupt.pressed() {
                return Err(Silence::Interrupted);
            }
            if !process.exists() {
                return Err(Silence::Ended);
            }
            if Instant::now() >= deadline {
                let waited = patience.as_secs_f64();
                return Err(Silence::Because(format!(
                    "no answer within {waited} s: the process may be stopped or busy (--timeout waits longer)"
                )));
            }
            interrupt.sleep(LOOK);
        }
    }

    /// Returns the report, if this answer or a later one is there; the error describes an invalid
    /// one.
    fn answer(&self, header: &Header, wanted: u32) -> Option<Result<Vec<u8>, String>> {
        let count = header.answers.load(SeqCst);
        let is_late_enough = count.wrapping_sub(wanted) < u32::MAX / 2;
        if count % 2 == 1 || !is_late_enough {
            return None;
        }
        let text = self.read(header.length.load(SeqCst));
        fence(SeqCst);
        // Otherwise the answer to another reader has replaced it during the copy.
        (header.answers.load(SeqCst) == count).then_some(text)
    }

    /// Returns `true` if it is a publication of this process, not one that it has inherited.
    fn is_of(&self, process: &Process) -> bool {
        match self.header() {
            Ok(header) => process.inner_number() == Some(header.process.load(SeqCst)),
            // Not a publication: a later request for its report returns the error.
            Err(_) => true,
        }
    }

    /// Maps the header, if the file is one that cannot shrink.
    fn header(&self) -> Result<Mapped, String> {
        // SAFETY: the call takes a descriptor and returns a number.
        let seals = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_GET_SEALS) };
        let length = self.file.metadata().map_err(|error| error.to_string())?.size();
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 || length < REPORT_AT {
            return Err("it publishes something that is not a report, or not finished".to_owned());
        }
        let header = Mapped::new(&self.file).map_err(|error| format!("cannot be read: {error}"))?;
        if header.magic.load(SeqCst) != MAGIC {
            return Err("it publishes something that is not a report".to_owned());
        }
        match header.version.load(SeqCst) {
            VERSION => Ok(header),
            other => Err(format!("its header has version {other}: expected {VERSION}")),
        }
    }

    fn read(&self, length: u64) -> Result<Vec<u8>, String> {
        match length {
            0 => return Err("it could not write its report".to_owned()),
            1..=MAX_REPORT_BYTES => {}
            _ => {
                return Err(format!(
                    "its report has {length} bytes: expected {MAX_REPORT_BYTES} at most"
                ));
            }
        }
        let mut text = vec![0; length as usize];
        let done = self.file.read_exact_at(&mut text, REPORT_AT);
        done.map_err(|_| format!("its report ends before the {length} bytes that it says"))?;
        Ok(text)
    }
}

/// A mapped header.
struct Mapped(NonNull<Header>);

impl Mapped {
    fn new(file: &File) -> io::Result<Mapped> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Header>(),
                rights,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        NonNull::new(start.cast::<Header>())
            .filter(|_| start != libc::MAP_FAILED)
            .map(Mapped)
            .ok_or_else(io::Error::last_os_error)
    }
}

impl std::ops::Deref for Mapped {
    type Target = Header;

    fn deref(&self) -> &Header {
        // SAFETY: mapped until this value is dropped, from a file that is this large and cannot
        // shrink; all of it is atomic, and any bytes are valid.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Header>()) };
    }
}

/// Wakes the threads that wait for a word, of all processes.
fn wake(word: &AtomicU32) {
    // SAFETY: the call only looks the address up.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memfds_are_opened() {
        let me = Process { number: std::process::id() };
        let opened = |file: i32| open(&me, file as u32).expect("a descriptor of this process");
        // Opened for reading, this one would wait for a writer.
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        assert!(opened(reader.as_raw_fd()).is_none());
        let file = File::open("/proc/self/status").expect("/proc");
        assert!(opened(file.as_raw_fd()).is_none());
        // SAFETY: the name is a terminated string.
        let memory = unsafe { libc::memfd_create(c"any".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(opened(memory).is_some());
        // SAFETY: the descriptor is this test's own.
        unsafe { libc::close(memory) };
    }
}
