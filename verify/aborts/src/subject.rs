//! The subject as its tracer holds it: process, board, sections at their run-time addresses.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use percid_subject::board::{Answer, Board, COPIES, Request};
use percid_subject::party::AMOUNT;
use percid_subject::{Fault, Operation};

use crate::affinity;
use crate::image::{DESCRIPTOR_BYTES, Image};
use crate::process::{Event, Process, Registers};
use crate::section::Section;
use crate::text::Patch;

/// Limit for anything that must happen: no machine is so slow.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The CPUs that a run uses.
#[derive(Debug, Clone, Copy)]
pub struct Cpus {
    /// The worker's, where every round starts.
    pub home: u32,
    /// The tracer's and the accomplice's, to which the worker is moved; `None` on one CPU.
    pub away: Option<u32>,
}

impl Cpus {
    /// Returns the number of CPUs that a run uses.
    pub fn count(self) -> usize {
        1 + usize::from(self.away.is_some())
    }

    /// Chooses among those the process may use, and takes the calling thread out of the worker's
    /// way.
    ///
    /// # Errors
    ///
    /// Those of asking and changing the affinity.
    pub fn choose() -> Result<Cpus, String> {
        let wrong = |error| format!("affinity: {error}");
        let allowed = affinity::allowed().map_err(wrong)?;
        let home = *allowed.last().ok_or("no CPU is allowed")?;
        let away = allowed.first().copied().filter(|&first| first != home);
        affinity::restrict(0, &[away.unwrap_or(home)]).map_err(wrong)?;
        affinity::be_urgent();
        Ok(Cpus { home, away })
    }
}

/// The values on the board between two operations.
#[derive(Debug, Clone, Copy)]
pub struct State {
    copies: [i64; COPIES],
    shared: i64,
    handled: i64,
    stolen: i64,
    faults: i64,
}

/// The changes by one operation.
#[derive(Debug, Clone)]
pub struct Change {
    /// Changes by ID; IDs without a change are omitted.
    pub copies: Vec<(usize, i64)>,
    /// The change in the shared slot.
    pub shared: i64,
    /// Number of times that the handler ran.
    pub handled: i64,
    /// Number of times that the thief wrote.
    pub stolen: i64,
    /// Number of cases of damage that the subject detected in its structure, and the last kind.
    pub faults: (i64, Option<Fault>),
}

/// A running subject, stopped between two operations unless a round is on.
#[derive(Debug)]
pub struct Subject {
    /// The traced process.
    pub process: Process,
    /// The board that it shares with this process.
    pub board: &'static Board,
    /// All its critical sections.
    pub sections: Vec<Section>,
    /// The CPUs that it uses.
    pub cpus: Cpus,
    /// The source of its structures.
    pub source: String,
    /// The traps at the abort pads: index of the section by run-time address.
    pub pads: HashMap<u64, usize>,
    /// The offset from the file's addresses to those in the process.
    base: u64,
    /// The address at which it stops before and after an operation: after the trap.
    resting_at: u64,
    operation: Option<Operation>,
    program: PathBuf,
}

impl Subject {
    /// Starts the program with one source of IDs, up to its first stop between operations.
    ///
    /// # Errors
    ///
    /// Returns a description of the failure.
    pub fn start(program: &Path, source: &str, cpus: Cpus) -> Result<Subject, String> {
        let program = program.canonicalize().map_err(|error| format!("{program:?}: {error}"))?;
        let sections = Section::all(&Image::read(&program)?)?;
        let wrong = |error: std::io::Error| format!("tracing {}: {error}", program.display());
        let file = crate::process::shared_memory(size_of::<Board>() as u64).map_err(wrong)?;
        let board = Board::map(file.as_raw_fd()).ok_or("the board cannot be mapped")?;
        board.accomplice_cpu.store(cpus.away.unwrap_or(cpus.home), SeqCst);
        board.operation.store(u32::MAX, SeqCst);
        let mut process = Process::start(&program, source, file.as_raw_fd()).map_err(wrong)?;
        affinity::restrict(process.number(), &[cpus.home]).map_err(wrong)?;
        let base = process.base(&program).map_err(wrong)?;
        process.go_on(0).map_err(wrong)?;
        if process.wait().map_err(wrong)? != Event::Stopped(libc::SIGTRAP) {
            return Err("the subject did not come to its first stop".to_owned());
        }
        let resting_at = process.registers().map_err(wrong)?.rip;
        let mut subject = Subject {
            process,
            board,
            sections,
            cpus,
            source: source.to_owned(),
            pads: HashMap::new(),
            base,
            resting_at,
            operation: None,
            program: program.clone(),
        };
        subject.compare_descriptors()?;
        subject.plant_pads().map_err(wrong)?;
        Ok(subject)
    }

    /// Replaces a process that is in an unknown state by a new one of the same kind.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Subject::start`].
    pub fn start_over(&mut self) -> Result<(), String> {
        *self = Subject::start(&self.program, &self.source, self.cpus)?;
        Ok(())
    }

    /// Checks that the descriptors in the loaded program are those in its file.
    fn compare_descriptors(&self) -> Result<(), String> {
        for section in &self.sections {
            let known = section.descriptor;
            let bytes =
                self.process.read::<{ DESCRIPTOR_BYTES as usize }>(self.live(known.address));
            let bytes =
                bytes.map_err(|error| format!("descriptor {:#x}: {error}", known.address))?;
            let word = |at: usize| {
                bytes[at..at + 8].iter().rev().fold(0, |word, &b| word << 8 | u64::from(b))
            };
            let live = [word(0), word(8), word(16), word(24)];
            if live != [0, self.live(known.start), known.length, self.live(known.abort)] {
                return Err(format!("descriptor {:#x} is loaded as {live:x?}", known.address));
            }
        }
        Ok(())
    }

    /// Sets a trap at every abort pad, permanently: the tracer performs its jump.
    fn plant_pads(&mut self) -> std::io::Result<()> {
        for (index, section) in self.sections.iter().enumerate() {
            let pad = self.live(section.descriptor.abort);
            Patch::trap(&self.process, pad)?;
            self.pads.insert(pad, index);
        }
        Ok(())
    }

    /// Returns the run-time address of an address of the file.
    pub fn live(&self, address: u64) -> u64 {
        self.base + address
    }

    /// Returns `true` if the worker is at the stop before or after an operation.
    pub fn is_resting(&self, registers: &Registers) -> bool {
        registers.rip == self.resting_at
    }

    /// Makes an operation the present one; the board then shows its structure.
    ///
    /// # Errors
    ///
    /// If the worker does not come back.
    pub fn select(&mut self, operation: Operation) -> Result<(), String> {
        if self.operation == Some(operation) {
            return Ok(());
        }
        // Once for the state in which the operation starts, once to publish that.
        for _ in 0..2 {
            self.board.operation.store(operation as u32, SeqCst);
            self.board.amount.store(AMOUNT, SeqCst);
            self.board.look_only.store(1, SeqCst);
            self.come_to_rest()?;
            self.board.look_only.store(0, SeqCst);
            self.settle()?;
        }
        self.operation = Some(operation);
        Ok(())
    }

    /// Runs from the stop after an operation to the one before the next: the worker examines the
    /// effect of the operation, and prepares the next one.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not come back.
    pub fn settle(&mut self) -> Result<(), String> {
        self.come_to_rest()
    }

    /// Lets the worker run to its next stop. If the kernel preempts it in a section, it leaves that
    /// through the pad, as always.
    fn come_to_rest(&mut self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        loop {
            self.process.go_on(0).map_err(text)?;
            let event = self.process.wait_for(PATIENCE).map_err(text)?;
            if event != Some(Event::Stopped(libc::SIGTRAP)) {
                return Err(format!("{event:?} between two operations"));
            }
            let registers = self.process.registers().map_err(text)?;
            if self.is_resting(&registers) {
                return Ok(());
            }
            let pad = self.pads.get(&(registers.rip - 1));
            let &pad = pad.ok_or_else(|| format!("a trap at {:#x}", registers.rip))?;
            let rip = self.live(self.sections[pad].pad_target);
            self.process.set_registers(&Registers { rip, ..registers }).map_err(text)?;
        }
    }

    /// Returns the present values on the board.
    pub fn state(&self) -> State {
        State {
            copies: self.board.copies(),
            shared: self.board.shared.load(SeqCst),
            handled: self.board.handled.load(SeqCst),
            stolen: self.board.stolen.load(SeqCst),
            faults: self.board.faults.load(SeqCst),
        }
    }

    /// Returns the changes on the board since a state.
    pub fn change_since(&self, before: &State) -> Change {
        let now = self.state();
        let copies =
            now.copies.iter().zip(&before.copies).map(|(now, before)| now.wrapping_sub(*before));
        Change {
            copies: copies.enumerate().filter(|&(_, change)| change != 0).collect(),
            shared: now.shared.wrapping_sub(before.shared),
            handled: now.handled - before.handled,
            stolen: now.stolen - before.stolen,
            faults: (now.faults - before.faults, self.last_fault()),
        }
    }

    fn last_fault(&self) -> Option<Fault> {
        let number = self.board.last_fault.load(SeqCst);
        Fault::ALL.into_iter().find(|&fault| fault as u32 == number)
    }

    /// Returns the CPU number that the kernel wrote for the worker; `None` if its area is unknown.
    pub fn known_cpu(&self) -> Option<u32> {
        let area = self.board.area.load(SeqCst);
        let bytes = (area != 0).then(|| self.process.read::<4>(area + 4).ok()).flatten();
        bytes.map(u32::from_le_bytes)
    }

    /// Returns the last descriptor that the worker has declared; `None` if its area is unknown.
    pub fn declared(&self) -> Option<u64> {
        let area = self.board.area.load(SeqCst);
        let bytes = (area != 0).then(|| self.process.read::<8>(area + 8).ok()).flatten();
        bytes.map(u64::from_le_bytes)
    }

    /// Takes the worker's declaration back, as the kernel does when it finds a thread outside of
    /// its section. The worker must stand still, outside.
    ///
    /// # Errors
    ///
    /// If its area cannot be written.
    pub fn forget_declaration(&self) -> std::io::Result<()> {
        let area = self.board.area.load(SeqCst);
        if area == 0 { Ok(()) } else { self.process.write(area + 8, &[0; 8]) }
    }

    /// Has the accomplice do something to a CPU and waits for it.
    pub fn ask(&self, request: Request, cpu: u32) -> Answer {
        let done = self.board.done.count();
        self.board.request.store(request as u32, SeqCst);
        self.board.request_cpu.store(cpu, SeqCst);
        self.board.asked.ring();
        let end = Instant::now() + PATIENCE;
        while self.board.done.count() == done && Instant::now() < end {
            self.board.done.wait_beyond(done);
        }
        if self.board.done.count() == done {
            return Answer::Refused;
        }
        Answer::from_number(self.board.answer.load(SeqCst))
    }

    /// Restricts the worker to a CPU.
    ///
    /// # Errors
    ///
    /// Those of changing the affinity.
    pub fn move_worker(&self, cpu: u32) -> Result<(), String> {
        affinity::restrict(self.process.number(), &[cpu]).map_err(|error| error.to_string())
    }
}
