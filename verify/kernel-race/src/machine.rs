//! A machine that can be stopped at an instruction, one CPU at a time.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use percid_vm::cache::Scratch;
use percid_vm::protocol::EXIT_PORT;
use percid_vm::tool;

use crate::error::Error;
use crate::packet::{Found, Parser};

/// Number of CPUs that the guest's rounds need: more than threads.
pub const CPUS: u32 = 10;

/// The configuration of a machine.
#[derive(Debug, Clone)]
pub struct Spec<'a> {
    /// The kernel, as the emulator takes it.
    pub image: &'a Path,
    /// The root file system.
    pub initramfs: &'a [u8],
    /// Added to the kernel's command line.
    pub append: &'a str,
}

/// An event of a machine.
#[derive(Debug)]
pub enum Event {
    /// It wrote a line to its console.
    Line(String),
    /// Its stub sent a packet.
    Packet(Vec<u8>),
    /// Its stub is gone, and so is it.
    Gone,
}

/// A machine that has not begun to run. It ends with the value.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    events: Receiver<Event>,
    stub: UnixStream,
    _files: Scratch,
}

impl Machine {
    /// Starts the emulator, which waits for the stub's first order.
    pub fn start(spec: &Spec<'_>) -> Result<Self, Error> {
        let files = Scratch::new()?;
        let path = |name: &str| files.path().join(name);
        let (console, stub, root) = (path("console"), path("stub"), path("root.cpio"));
        std::fs::write(&root, spec.initramfs).map_err(percid_vm::Error::file("write", &root))?;
        let mut command = command(spec, &root, &console, &stub);
        let child = command.spawn().map_err(|error| not_started(&command, &error))?;
        let mut child = Guard(Some(child));
        let (sender, events) = mpsc::channel();
        read_console(connect(&console)?, sender.clone());
        let stub = connect(&stub)?;
        let reader = stub.try_clone().map_err(|error| Error::Stub(error.to_string()))?;
        read_stub(reader, sender);
        let child = child.0.take().expect("nobody has taken it");
        Ok(Self { child, events, stub, _files: files })
    }

    /// Sends bytes to the stub.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stub.write_all(bytes).map_err(|error| Error::Stub(error.to_string()))
    }

    /// Returns the next event, if there is one within `time`.
    pub fn next(&self, time: Duration) -> Option<Event> {
        match self.events.recv_timeout(time) {
            Ok(event) => Some(event),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(Event::Gone),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Ends the emulator if the way to a whole machine is left early.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    // Both do nothing for a child that has been waited for.
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the command, with one emulation thread for each CPU: the others must continue while one
/// is held. With QEMU 7.2, guests of that kind died while they booted, after a `cmpxchg16b` whose
/// flags held bits of an address. Without that instruction fewer do.
fn command(spec: &Spec<'_>, root: &Path, console: &Path, stub: &Path) -> Command {
    let socket = |path: &Path| format!("unix:{},server=on,wait=off", path.display());
    let mut command = tool::QEMU.command();
    command
        .args(["-M", "q35", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-cx16"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-S"])
        .args(["-m", "512", "-smp", &format!("{CPUS},sockets=1,cores={CPUS}")])
        .args(["-device", &format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4")])
        .args(["-serial", &socket(console), "-gdb", &socket(stub)])
        .arg("-kernel")
        .arg(spec.image)
        .arg("-initrd")
        .arg(root)
        .args(["-append", &kernel_arguments(spec.append)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    die_with_parent(&mut command);
    command
}

/// Returns the kernel's arguments. `nokaslr`, so that addresses are those of the image, for people;
/// nothing here needs it. Lines of the kernel between those of the guest would cut them, so only
/// those of a panic are enabled.
fn kernel_arguments(append: &str) -> String {
    let arguments = "console=ttyS0 quiet loglevel=2 panic=-1 nokaslr mitigations=off nowatchdog tsc=reliable \
                     no_timer_check rcupdate.rcu_cpu_stall_suppress=1";
    format!("{arguments} {append}").trim_end().to_owned()
}

/// Makes the machine die with this process, even if it is killed: a stopped machine waits forever.
fn die_with_parent(command: &mut Command) {
    let hook = || {
        // SAFETY: a system call on integers, allowed between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the hook neither allocates nor takes a lock.
    unsafe { command.pre_exec(hook) };
}

fn not_started(command: &Command, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::Harness(tool::QEMU.missing());
    }
    Error::Machine(format!("{}: {error}", tool::words(command)))
}

fn connect(path: &PathBuf) -> Result<UnixStream, Error> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match UnixStream::connect(path) {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
            Err(error) => {
                return Err(Error::Machine(format!(
                    "the emulator does not open {}: {error}",
                    path.display()
                )));
            }
        }
    }
}

fn read_console(stream: UnixStream, sender: Sender<Event>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(Event::Line(text)).is_err() {
                return;
            }
            line.clear();
        }
    });
}

/// Packets are acknowledged here, so that the stub never waits for us.
fn read_stub(mut stream: UnixStream, sender: Sender<Event>) {
    thread::spawn(move || {
        let mut parser = Parser::default();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            for found in buffer[..count].iter().filter_map(|byte| parser.take(*byte)) {
                let (acknowledgement, packet) = match found {
                    Found::Packet(packet) => (b"+", Some(packet)),
                    // It comes again.
                    Found::Damaged => (b"-", None),
                };
                let told = packet.is_none_or(|packet| sender.send(Event::Packet(packet)).is_ok());
                if stream.write_all(acknowledgement).is_err() || !told {
                    return;
                }
            }
        }
        let _ = sender.send(Event::Gone);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_an_emulation_thread_and_nobody_asks_for_the_hardwares_help() {
        let spec = Spec { image: Path::new("/k/image"), initramfs: &[], append: "preempt=full" };
        let command = command(&spec, Path::new("/r"), Path::new("/c"), Path::new("/s"));
        let line = tool::words(&command);
        assert!(line.contains("-accel tcg,thread=multi"), "{line}");
        assert!(!line.contains("kvm"), "{line}");
        assert!(line.contains("-gdb unix:/s,server=on,wait=off"), "{line}");
        assert!(line.ends_with(" preempt=full"), "{line}");
    }
}
