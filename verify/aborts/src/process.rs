//! A traced process: its registers, its memory, its stops.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use std::{io, ptr};

/// The registers of a stopped thread.
pub type Registers = libc::user_regs_struct;

/// Why the process gave control to its tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A signal, which is not delivered unless the tracer passes it on.
    Stopped(i32),
    /// It has ended: exit status or signal, as `waitpid` returns it.
    Gone(i32),
}

/// A process whose main thread is traced by the thread that started it. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    memory: File,
}

impl Process {
    /// Starts a program, stopped before its first instruction, with one inherited file.
    ///
    /// # Errors
    ///
    /// Those of starting a process and of `ptrace`, which sandboxes may forbid.
    pub fn start(program: &Path, source: &str, inherited: RawFd) -> io::Result<Process> {
        let mut command = Command::new(program);
        command.arg(inherited.to_string()).env("PERCID_SOURCE", source);
        // SAFETY: both calls are async-signal-safe.
        unsafe {
            command.pre_exec(move || {
                check(libc::fcntl(inherited, libc::F_SETFD, 0).into())?;
                check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))
            });
        }
        let child = command.spawn()?;
        let memory =
            File::options().read(true).write(true).open(format!("/proc/{}/mem", child.id()))?;
        let mut process = Process { child, memory };
        process.wait()?;
        process.request(libc::PTRACE_SETOPTIONS, 0, libc::PTRACE_O_EXITKILL as usize)?;
        Ok(process)
    }

    /// Returns the process's number, which is its main thread's.
    pub fn number(&self) -> i32 {
        self.child.id() as i32
    }

    /// Waits for the next event.
    ///
    /// # Errors
    ///
    /// Those of `waitpid`.
    pub fn wait(&mut self) -> io::Result<Event> {
        self.poll(0).map(|event| event.unwrap_or(Event::Gone(0)))
    }

    /// Waits for the next event, at most for some time.
    ///
    /// # Errors
    ///
    /// Those of `waitpid`.
    pub fn wait_for(&mut self, limit: Duration) -> io::Result<Option<Event>> {
        let end = Instant::now() + limit;
        loop {
            // In this order: this process may be stopped in between, for longer than the limit.
            let over = Instant::now() > end;
            let event = self.poll(libc::WNOHANG)?;
            if event.is_some() || over {
                return Ok(event);
            }
            std::thread::yield_now();
        }
    }

    fn poll(&mut self, flags: i32) -> io::Result<Option<Event>> {
        let mut status = 0;
        // SAFETY: the status is writable.
        match unsafe { libc::waitpid(self.number(), &mut status, flags | libc::__WALL) } {
            0 => Ok(None),
            -1 => Err(io::Error::last_os_error()),
            _ if libc::WIFSTOPPED(status) => Ok(Some(Event::Stopped(libc::WSTOPSIG(status)))),
            _ => Ok(Some(Event::Gone(status))),
        }
    }

    /// Lets the stopped process run on, delivering a signal (0: none).
    ///
    /// # Errors
    ///
    /// Those of `ptrace`.
    pub fn go_on(&mut self, signal: i32) -> io::Result<()> {
        self.request(libc::PTRACE_CONT, 0, signal as usize)
    }

    /// Asks the running main thread to stop, which is an event ([`libc::SIGSTOP`]).
    ///
    /// # Errors
    ///
    /// If it is gone.
    pub fn stop(&self) -> io::Result<()> {
        let number = self.number();
        // SAFETY: a signal to a thread of a child that has not been waited for to its end. (One to
        // the process might reach the accomplice, which is not traced, and stop all threads.)
        check(unsafe { libc::syscall(libc::SYS_tgkill, number, number, libc::SIGSTOP) })
    }

    /// Returns the registers of the stopped process.
    ///
    /// # Errors
    ///
    /// Those of `ptrace`.
    pub fn registers(&self) -> io::Result<Registers> {
        // SAFETY: plain integers, for which zero is valid.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, &raw mut registers as usize)?;
        Ok(registers)
    }

    /// Sets the registers of the stopped process.
    ///
    /// # Errors
    ///
    /// Those of `ptrace`.
    pub fn set_registers(&mut self, registers: &Registers) -> io::Result<()> {
        self.request(libc::PTRACE_SETREGS, 0, ptr::from_ref(registers) as usize)
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> io::Result<()> {
        // SAFETY: the callers pass valid arguments of the request.
        check(unsafe { libc::ptrace(request, self.number(), address, data) })
    }

    /// Reads memory, whether the process runs or not.
    ///
    /// # Errors
    ///
    /// If there is none at this address.
    pub fn read<const N: usize>(&self, address: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    /// Writes memory, even read-only memory, whether the process runs or not.
    ///
    /// # Errors
    ///
    /// If there is none at this address.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, address)
    }

    /// Returns the address of the program's first byte.
    ///
    /// # Errors
    ///
    /// Returns an error if `/proc` does not contain it.
    pub fn base(&self, program: &Path) -> io::Result<u64> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.number()))?;
        let name = program.to_string_lossy();
        let line = maps.lines().find(|line| line.ends_with(name.as_ref()));
        let start = line.and_then(|line| line.split('-').next());
        let start = start.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        start.ok_or_else(|| io::Error::other("the program is not in its own memory map"))
    }

    /// Returns the number of times that the main thread left its CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if `/proc` does not contain it.
    pub fn switches(&self) -> io::Result<Switches> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.number()))?;
        let count = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|digits| digits.trim().parse().ok())
                .ok_or_else(|| io::Error::other("no count of context switches in /proc"))
        };
        Ok(Switches {
            waits: count("voluntary_ctxt_switches:")?,
            preemptions: count("nonvoluntary_ctxt_switches:")?,
        })
    }
}

/// Number of times that a thread left its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// Voluntarily: it waited for a page, or for its tracer.
    pub waits: u64,
    /// Involuntarily.
    pub preemptions: u64,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Failures mean that it is gone already.
        let _ = self.child.kill();
        let _ = self.poll(0);
    }
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Anonymous memory that can be inherited as a file.
///
/// # Errors
///
/// Those of `memfd_create`.
pub fn shared_memory(bytes: u64) -> io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: the name is a terminated string.
    let number = unsafe { libc::memfd_create(c"board".as_ptr(), libc::MFD_CLOEXEC) };
    check(number.into())?;
    // SAFETY: the descriptor is new and no other's.
    let file = unsafe { File::from_raw_fd(number) };
    file.set_len(bytes)?;
    debug_assert_eq!(file.as_raw_fd(), number);
    Ok(file)
}
