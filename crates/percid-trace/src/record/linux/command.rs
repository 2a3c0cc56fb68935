//! A command that waits until it is recorded, and only then begins.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::{self, JoinHandle};

use crate::event::Tid;
use crate::record::refusal::Refusal;

/// A process that has not replaced its program yet. If this value is dropped, it never does.
#[derive(Debug)]
pub(super) struct PausedCommand {
    /// Its number.
    pub(super) pid: Tid,
    name: OsString,
    begin: PipeWriter,
    /// Starting a command ends when the program has been replaced, so another thread waits for
    /// that.
    starter: JoinHandle<io::Result<Child>>,
}

impl PausedCommand {
    /// Prepares the command: a program and its arguments. `aside` is whether its output goes to the
    /// standard error.
    pub(super) fn new(words: &[OsString], aside: bool) -> Result<PausedCommand, Refusal> {
        let name = words.first().cloned().unwrap_or_default();
        PausedCommand::prepare(&name, words, aside)
            .map_err(|error| Refusal::Unstartable(name, error))
    }

    fn prepare(name: &OsStr, words: &[OsString], aside: bool) -> io::Result<PausedCommand> {
        let (mut told, tell) = io::pipe()?;
        let (ask, begin) = io::pipe()?;
        let mut command = Command::new(name);
        command.args(words.iter().skip(1));
        if aside {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        // The end to write into would keep the other one from seeing that its owner is gone.
        let (unused, tell_fd, ask_fd) = (begin.as_raw_fd(), tell.as_raw_fd(), ask.as_raw_fd());
        // SAFETY: between `fork` and `exec` it makes system calls only, on descriptors that
        // `starter` keeps open.
        unsafe { command.pre_exec(move || wait(unused, tell_fd, ask_fd)) };
        let starter = thread::spawn(move || start(command, tell, ask));
        let mut pid = [0; 4];
        match told.read_exact(&mut pid) {
            Ok(()) => {}
            Err(_) => return Err(join(starter).err().unwrap_or(io::ErrorKind::Other.into())),
        }
        Ok(PausedCommand { pid: Tid::from_ne_bytes(pid), name: name.to_owned(), begin, starter })
    }

    /// Lets it begin.
    pub(super) fn begin(mut self) -> Result<Child, Refusal> {
        let told = self.begin.write_all(&[1]);
        drop(self.begin);
        let name = self.name;
        told.and_then(|()| join(self.starter)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Refusal::NoCommand(name),
            _ => Refusal::Unstartable(name, error),
        })
    }
}

fn start(mut command: Command, tell: PipeWriter, ask: PipeReader) -> io::Result<Child> {
    let child = command.spawn();
    drop((tell, ask));
    child
}

fn join(starter: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    starter.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it failed")))
}

/// In the new process: writes its number, and waits for a byte. If there is none, the recorder has
/// ended.
fn wait(unused: RawFd, tell: RawFd, ask: RawFd) -> io::Result<()> {
    // SAFETY: system calls on descriptors and on variables that live as long as they take.
    let begun = unsafe {
        libc::close(unused);
        let pid = libc::getpid();
        libc::write(tell, (&raw const pid).cast(), size_of_val(&pid));
        let mut byte = 0u8;
        loop {
            let read = libc::read(ask, (&raw mut byte).cast(), 1);
            if read >= 0 || *libc::__errno_location() != libc::EINTR {
                break read == 1;
            }
        }
    };
    if begun { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ECANCELED)) }
}
