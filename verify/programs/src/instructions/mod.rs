//! Every instruction of every critical section interrupted, on 64-bit Arm and RISC-V: what
//! `verify/aborts` does on x86-64, with fewer kinds of interruptions, and small enough for a machine
//! of such an architecture.
//!
//! A child uses every structure, round after round; its parent traces it. In each round one
//! instruction of one section is a trap. The stop takes the child off its CPU inside the section;
//! the parent brings the instruction back, adds a signal or another CPU, and lets it run on. It
//! must then leave the section by its abort pad, which is a trap too, and in the end everything
//! must have happened once. Sections are found by their descriptors, which both have at the same
//! addresses.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(target_arch = "riscv64")]
#[path = "riscv64.rs"]
mod arch;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use percid::{Counter, Histogram, Local, Overflow, Ring, Source, Stack};

use crate::options::Options;
use crate::pinning;
use crate::verdict::Verdict;
use arch::Registers;

/// Number of rounds in which a section may be reached.
const ROUNDS: usize = 4;
/// Exit status of a child in which something was lost or doubled.
const HARMED: i32 = 3;

/// The interruption of the child at its stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Injection {
    Stop,
    Signal,
    Move,
}

/// `struct rseq_cs`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Descriptor {
    version_and_flags: [u32; 2],
    start: u64,
    length: u64,
    abort: u64,
}

unsafe extern "C" {
    /// The first descriptor, and behind the last: the linker defines them for sections with such
    /// names.
    static __start___rseq_cs: Descriptor;
    static __stop___rseq_cs: Descriptor;
}

fn descriptors() -> &'static [Descriptor] {
    // SAFETY: the section holds descriptors and nothing else, and is never written.
    unsafe {
        let (first, end) = (&raw const __start___rseq_cs, &raw const __stop___rseq_cs);
        std::slice::from_raw_parts(first, end.offset_from(first) as usize)
    }
}

pub(crate) fn run(options: &Options) -> Verdict {
    let sources = [Source::Table, Source::Kernel]
        .into_iter()
        .filter(|source| options.source.unwrap_or(*source) == *source && source.prepare().is_ok());
    let mut figures = Vec::new();
    for source in sources {
        figures.push(with(source)?);
    }
    if figures.is_empty() {
        Err("no source has sections here".to_owned())
    } else {
        Ok(figures.join(" "))
    }
}

fn with(source: Source) -> Verdict {
    let mut child = Child::start(source)?;
    let reached = child.reached()?;
    child.plant_pads(&reached)?;
    let (mut stops, mut aborts) = (0u64, 0u64);
    let mut inside_reached = BTreeSet::new();
    let mut instructions = 0;
    for section in &reached {
        let end = section.start + section.length;
        let own = arch::instructions(section.start..end);
        instructions += own.len();
        for address in arch::in_front(section.start).into_iter().chain(own).chain([end]) {
            for injection in [Injection::Stop, Injection::Signal, Injection::Move] {
                let Some(aborted) = child.interrupt(&reached, section, address, injection)? else {
                    continue;
                };
                let inside = (section.start..end).contains(&address);
                if inside && !aborted {
                    return Err(format!(
                        "source={source} section={:#x} byte={} injection={injection:?} aborted={aborted}",
                        section.start,
                        address - section.start,
                    ));
                }
                if inside {
                    inside_reached.insert(address);
                }
                stops += 1;
                aborts += u64::from(aborted);
            }
        }
    }
    child.finish()?;
    let figures = format!(
        "source={source} sections={} instructions={} of {instructions} interruptions={stops} aborted={aborts}",
        reached.len(),
        inside_reached.len(),
    );
    // But for branches that no round takes.
    let right = inside_reached.len() * 10 >= instructions * 8 && reached.len() >= 6;
    if right { Ok(figures) } else { Err(figures) }
}

/// A traced process.
struct Child {
    number: libc::pid_t,
    /// The traps at pads: the jump's target.
    pads: BTreeMap<u64, u64>,
    cpus: Vec<u32>,
}

/// Why the child stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Between two rounds.
    Rest,
    /// At a trap.
    At(u64),
}

impl Child {
    fn start(source: Source) -> Result<Child, String> {
        // SAFETY: the program has one thread here.
        let number = unsafe { libc::fork() };
        if number == 0 {
            // SAFETY: takes numbers; the parent waits for what follows.
            unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            be_interrupted(source);
        }
        let child = Child { number, pads: BTreeMap::new(), cpus: pinning::allowed() };
        if number < 0 || child.wait()? != Stop::Rest {
            return Err("the child does not come to rest".to_owned());
        }
        pinning::restrict(number, &child.cpus[..1]);
        Ok(child)
    }

    /// Returns the sections that a few rounds reach.
    fn reached(&mut self) -> Result<Vec<Descriptor>, String> {
        let mut planted: BTreeMap<u64, (Descriptor, arch::Trap)> = BTreeMap::new();
        for section in descriptors() {
            let original = self.plant(section.start, arch::TRAP)?;
            planted.insert(section.start, (*section, original));
        }
        let mut reached = Vec::new();
        for _ in 0..ROUNDS {
            while let Stop::At(place) = self.go_on(0)? {
                let (section, original) =
                    planted.remove(&place).ok_or_else(|| format!("a trap at {place:#x}"))?;
                self.plant(place, original)?;
                reached.push(section);
            }
        }
        for (place, (_, original)) in planted {
            self.plant(place, original)?;
        }
        Ok(reached)
    }

    /// Sets a trap at every pad, permanently: its jump is performed here.
    fn plant_pads(&mut self, sections: &[Descriptor]) -> Result<(), String> {
        for section in sections {
            // Read here: the child has the same program at the same addresses.
            let target = arch::target_of_jump(section.abort)
                .ok_or_else(|| format!("the pad at {:#x} is no jump", section.abort))?;
            self.plant(section.abort, arch::TRAP)?;
            self.pads.insert(section.abort, target);
        }
        Ok(())
    }

    /// Interrupts one instruction in the next rounds, once. Returns `true` if the section was left
    /// by its pad then; `None` if no thread reached the instruction. Sections of slow paths are
    /// reached when those before have been aborted.
    fn interrupt(
        &mut self,
        all: &[Descriptor],
        section: &Descriptor,
        address: u64,
        injection: Injection,
    ) -> Result<Option<bool>, String> {
        let original = self.plant(address, arch::TRAP)?;
        let mut hit = self.run_to_trap_or_rest()? == Stop::At(address);
        if !hit {
            hit = self.come_to(address, all.iter().filter(|other| other.start != section.start))?;
        }
        self.plant(address, original)?;
        if !hit {
            return Ok(None);
        }
        if injection == Injection::Move {
            self.cpus.rotate_left(1);
            pinning::restrict(self.number, &self.cpus[..1]);
        }
        let signal = if injection == Injection::Signal { libc::SIGUSR1 } else { 0 };
        let aborted = match self.go_on(signal)? {
            Stop::At(pad) => {
                self.jump(pad)?;
                pad == section.abort
            }
            Stop::Rest => return Ok(Some(false)),
        };
        while self.run_to_trap_or_rest()? != Stop::Rest {}
        Ok(Some(aborted))
    }

    /// Runs to the trap at `address`, aborting the other sections once on the way; `false` if no
    /// thread came there.
    fn come_to<'a>(
        &mut self,
        address: u64,
        others: impl Iterator<Item = &'a Descriptor>,
    ) -> Result<bool, String> {
        let mut planted = BTreeMap::new();
        for other in others.filter(|other| other.start != address) {
            planted.insert(other.start, self.plant(other.start, arch::TRAP)?);
        }
        let mut rests = 0;
        let hit = loop {
            match self.run_to_trap_or_rest()? {
                Stop::At(place) if place == address => break true,
                Stop::At(place) => {
                    let original = planted.remove(&place);
                    self.plant(place, original.ok_or_else(|| format!("a trap at {place:#x}"))?)?;
                }
                Stop::Rest if rests == ROUNDS => break false,
                Stop::Rest => rests += 1,
            }
        };
        for (place, original) in planted {
            self.plant(place, original)?;
        }
        Ok(hit)
    }

    /// Runs on, through pads, to another trap or the end of the round.
    fn run_to_trap_or_rest(&mut self) -> Result<Stop, String> {
        loop {
            match self.go_on(0)? {
                Stop::At(place) if self.pads.contains_key(&place) => self.jump(place)?,
                other => return Ok(other),
            }
        }
    }

    /// Does the jump of a pad.
    fn jump(&self, pad: u64) -> Result<(), String> {
        let target = *self.pads.get(&pad).ok_or_else(|| format!("a trap at {pad:#x}"))?;
        let registers = Registers { place: target, ..self.registers()? };
        self.set(libc::PTRACE_SETREGSET, registers).map(drop)
    }

    fn go_on(&self, signal: i32) -> Result<Stop, String> {
        // SAFETY: the child is stopped, and its own.
        unsafe { libc::ptrace(libc::PTRACE_CONT, self.number, 0, signal) };
        self.wait()
    }

    fn wait(&self) -> Result<Stop, String> {
        let mut status = 0;
        // SAFETY: waits for the child.
        let waited = unsafe { libc::waitpid(self.number, &mut status, libc::__WALL) };
        match (waited == self.number && libc::WIFSTOPPED(status)).then(|| libc::WSTOPSIG(status)) {
            Some(libc::SIGSTOP) => Ok(Stop::Rest),
            Some(libc::SIGTRAP) => Ok(Stop::At(self.registers()?.place)),
            _ => Err(format!("the child ended with status={status:#x}")),
        }
    }

    fn registers(&self) -> Result<Registers, String> {
        self.set(libc::PTRACE_GETREGSET, Registers::default())
    }

    /// Reads or writes the registers.
    fn set(&self, request: libc::c_uint, mut registers: Registers) -> Result<Registers, String> {
        /// `NT_PRSTATUS`.
        const GENERAL: usize = 1;
        let mut vector =
            libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size_of::<Registers>() };
        // SAFETY: the vector has room for all of them; the child is stopped.
        let done = unsafe { libc::ptrace(request, self.number, GENERAL, &raw mut vector) };
        if done == 0 { Ok(registers) } else { Err(wrong("registers")) }
    }

    /// Puts an instruction, or as much of one as a trap takes, at a place, and answers which was
    /// there.
    fn plant(&self, place: u64, instruction: arch::Trap) -> Result<arch::Trap, String> {
        const BITS: u32 = arch::Trap::BITS;
        let word = place & !7;
        let shift = (place & 7) as u32 * 8;
        let mask = (u64::MAX >> (64 - BITS)) << shift;
        // SAFETY: reads a word of the child's text.
        let old = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.number, word, 0) } as u64;
        let new = old & !mask | u64::from(instruction) << shift;
        // SAFETY: writes a word of the child's text, which is its own copy from then on.
        let done = unsafe { libc::ptrace(libc::PTRACE_POKETEXT, self.number, word, new) };
        if done == 0 { Ok((old >> shift) as arch::Trap) } else { Err(wrong("text")) }
    }

    fn finish(self) -> Result<(), String> {
        // SAFETY: plain numbers; the child is this value's own.
        unsafe {
            libc::kill(self.number, libc::SIGKILL);
            libc::waitpid(self.number, std::ptr::null_mut(), 0);
        }
        Ok(())
    }
}

fn wrong(what: &str) -> String {
    format!("{what} of the child: {}", io::Error::last_os_error())
}

/// The structures that the child uses, and the number of uses.
struct Structures {
    counter: Counter,
    histogram: Histogram,
    local: Local<u64>,
    stack: Stack<u64>,
    ring: Ring,
    used: AtomicU64,
    /// Items pushed and not popped.
    inside: AtomicI64,
    /// Records that did not fit, of all rounds.
    overflowed: AtomicU64,
}

static STRUCTURES: std::sync::OnceLock<Structures> = std::sync::OnceLock::new();

/// Runs the child: rounds forever, each of which ends at rest.
fn be_interrupted(source: Source) -> ! {
    let made = (|| {
        Ok::<_, percid::id::SourceError>(Structures {
            counter: Counter::with_source(source)?,
            histogram: Histogram::with_source(source)?,
            local: <Local<_>>::with_source(source, || 0)?,
            stack: Stack::with_source(source, 8)?,
            ring: Ring::with_source(source, 4096, Overflow::DropNewest)?,
            used: AtomicU64::new(0),
            inside: AtomicI64::new(0),
            overflowed: AtomicU64::new(0),
        })
    })();
    let structures = STRUCTURES.get_or_init(|| made.expect("an available source"));
    pinning::handle(libc::SIGUSR1, handler);
    loop {
        // SAFETY: stops this process until its tracer lets it go on.
        unsafe { libc::raise(libc::SIGSTOP) };
        structures.use_all();
        if !structures.are_right() {
            // SAFETY: ends the child.
            unsafe { libc::_exit(HARMED) };
        }
    }
}

extern "C" fn handler(_: i32) {
    if let Some(structures) = STRUCTURES.get() {
        structures.use_all();
    }
}

impl Structures {
    /// Uses all structures. Async-signal-safe. The value that the interrupted thread holds is not
    /// available: then another one is made.
    fn use_all(&self) {
        self.counter.add(1);
        self.histogram.record(7);
        self.local.with(|value| *value += 1);
        let pushed = i64::from(self.stack.push(7).is_ok());
        // On another CPU by now there may be nothing to pop.
        let popped = i64::from(self.stack.pop().is_some());
        self.inside.fetch_add(pushed - popped, Relaxed);
        let _ = self.ring.append(b"a record");
        self.used.fetch_add(1, Relaxed);
    }

    /// Returns `true` if every structure counted each use since the last call.
    fn are_right(&self) -> bool {
        let (mut local, mut records) = (0, 0);
        self.local.for_each(|value| local += std::mem::take(value));
        if let Some(mut consumer) = self.ring.consumer() {
            consumer.poll(|event| records += u64::from(event.bytes == b"a record"));
        }
        let overflowed = self.ring.lost();
        records += overflowed - self.overflowed.swap(overflowed, Relaxed);
        let (items, inside) = (self.stack.drain(|_| {}) as i64, self.inside.swap(0, Relaxed));
        let used = self.used.swap(0, Relaxed);
        let found = [self.counter.take() as u64, self.histogram.take().count(), local, records];
        let right = found.iter().all(|&count| count == used) && items == inside;
        if !right {
            eprintln!("used {used} times, found {found:?}; {items} items instead of {inside}");
        }
        right
    }
}
