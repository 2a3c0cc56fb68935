//! One machine, driven through its rounds.

use std::collections::VecDeque;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use percid_race_guest::{Line, Outcome, PREFIX, ROUNDS_PATH, Round, Way, answer};
use percid_vm::initramfs::Archive;

use crate::error::Error;
use crate::machine::{Machine, Spec};
use crate::place::{self, Function, Place};
use crate::stub::{Happening, Target};

/// Set in a slot that is marked: `LAZY(k)` is this and `k`.
const LAZY: u32 = 1 << 31;

/// The CPU of the guest's conductor, which spins while it waits for an answer.
const CONDUCTOR: u32 = 0;

/// Time for which the scanner stands, so that a timer of its CPU expires: the real-time thread's
/// has 2 ms.
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum time between two outputs of a machine.
const SILENCE: Duration = Duration::from_secs(90);

/// The results of a round.
#[derive(Debug, Clone)]
pub struct Report {
    /// The round.
    pub round: Round,
    /// The source that percid used, and its reason.
    pub source: String,
    /// The CPU that was caught at the place, and the ID that it was about to clear there.
    pub caught: Option<(u32, u32)>,
    /// The outcome, or the reason why there is none.
    pub outcome: Result<Outcome, String>,
    /// The last progress of an unaided round.
    pub progress: Option<Line>,
    /// The guest's notes, for output.
    pub notes: Vec<String>,
}

/// The results of a machine.
#[derive(Debug)]
pub struct Boot {
    /// The kernel's release.
    pub release: String,
    /// The kernel's preemption mode.
    pub preemption: String,
    /// The places at which CPUs were caught.
    pub places: Vec<(Way, String, Place)>,
    /// The rounds that came to an end.
    pub reports: Vec<Report>,
    /// The way in which it ended.
    pub end: End,
}

/// The way in which a machine ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// After its last round.
    Complete,
    /// The kernel does not preempt itself at a point where a round needs it.
    Cooperative,
    /// It stopped, is silent, or sends invalid data.
    Lost(String),
}

/// Boots `image` and drives it through `rounds`; passes each line of the guest to `watch`.
pub fn boot(
    image: &Path,
    program: &[u8],
    rounds: &[Round],
    append: &str,
    watch: &mut dyn FnMut(&Line),
) -> Result<Boot, Error> {
    let initramfs = root(program, rounds);
    let machine = Machine::start(&Spec { image, initramfs: &initramfs, append })?;
    let mut session = Session::new(Target::attach(machine)?, rounds);
    session.target.resume()?;
    session.drive(watch)
}

fn root(program: &[u8], rounds: &[Round]) -> Vec<u8> {
    let list: String = rounds.iter().map(|round| format!("{round}\n")).collect();
    let mut archive = Archive::new();
    for directory in ["/dev", "/proc", "/sys"] {
        archive.directory(directory);
    }
    archive
        .device("/dev/console", 5, 1)
        .executable("/init", program)
        .file(ROUNDS_PATH, list.as_bytes());
    archive.finish()
}

/// A thread that the guest requests to catch.
#[derive(Debug, Clone, Copy)]
struct Trap {
    cpu: u32,
    answer: u64,
    id: u64,
    place: Place,
}

struct Session {
    target: Target,
    needs_preemption: bool,
    symbols: Vec<(String, u64, u64)>,
    boot: Boot,
    current: Option<Report>,
    trap: Option<Trap>,
    /// The CPU that stands while the others go on.
    held: Option<u32>,
    /// The guest's last lines, for messages about its end.
    words: VecDeque<String>,
}

impl Session {
    fn new(target: Target, rounds: &[Round]) -> Self {
        let needs = |round: &Round| round.way == Way::Preempted;
        Self {
            target,
            needs_preemption: rounds.iter().any(needs),
            symbols: Vec::new(),
            boot: Boot {
                release: String::new(),
                preemption: String::new(),
                places: Vec::new(),
                reports: Vec::new(),
                end: End::Lost("nothing happened".to_owned()),
            },
            current: None,
            trap: None,
            held: None,
            words: VecDeque::new(),
        }
    }

    fn drive(mut self, watch: &mut dyn FnMut(&Line)) -> Result<Boot, Error> {
        let mut heard = Instant::now();
        self.boot.end = loop {
            match self.go_along(&mut heard, watch) {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                // A machine that breaks down during a request.
                Err(Error::Stub(what)) => break End::Lost(self.last_words(&what)),
                Err(error) => return Err(error),
            }
        };
        Ok(self.boot)
    }

    /// Does what the next happening demands. Answers how the machine ended, if it did.
    fn go_along(
        &mut self,
        heard: &mut Instant,
        watch: &mut dyn FnMut(&Line),
    ) -> Result<Option<End>, Error> {
        match self.target.next(Duration::from_millis(200))? {
            Some(Happening::Line(text)) => {
                *heard = Instant::now();
                return self.hear(&text, watch);
            }
            Some(Happening::Stopped(cpu)) => self.stopped(cpu)?,
            Some(Happening::Gone) => return Ok(Some(End::Lost(self.last_words("it is gone")))),
            None if heard.elapsed() > SILENCE => {
                return Ok(Some(End::Lost(self.last_words("it is silent"))));
            }
            None => {}
        }
        Ok(None)
    }

    fn last_words(&self, what: &str) -> String {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        format!("{what}; its last words: {}", words.join(" | "))
    }

    /// Takes a line of the console. Answers how the machine ended, if it did.
    fn hear(&mut self, text: &str, watch: &mut dyn FnMut(&Line)) -> Result<Option<End>, Error> {
        self.words.push_back(text.to_owned());
        if self.words.len() > 20 {
            self.words.pop_front();
        }
        if !text.starts_with(PREFIX) {
            return Ok(None);
        }
        let line: Line = match text.parse() {
            Ok(line) => line,
            Err(error) => return Ok(Some(End::Lost(format!("it speaks no sense: {error}")))),
        };
        watch(&line);
        self.obey(line)
    }

    fn obey(&mut self, line: Line) -> Result<Option<End>, Error> {
        match line {
            Line::Boot { release, preemption } => {
                self.boot.release = release;
                self.boot.preemption = preemption;
                let is_cooperative = matches!(&self.boot.preemption[..], "none" | "voluntary");
                return Ok((self.needs_preemption && is_cooperative).then_some(End::Cooperative));
            }
            Line::Symbol { name, start, end } => self.symbols.push((name, start, end)),
            Line::Begin(round) => self.begin(round),
            Line::Arm { cpu, answer, id } => self.arm(cpu, answer, id)?,
            Line::Release { answer } => self.release(answer)?,
            Line::Result(outcome) => self.finish(Ok(outcome))?,
            Line::Failed(why) => self.finish(Err(why))?,
            Line::End => return Ok(Some(End::Complete)),
            Line::Source(text) => self.note(|report| report.source = text),
            Line::Note(text) => self.note(|report| report.notes.push(text)),
            Line::Progress { .. } => self.note(|report| report.progress = Some(line)),
        }
        Ok(None)
    }

    fn note(&mut self, note: impl FnOnce(&mut Report)) {
        if let Some(report) = &mut self.current {
            note(report);
        }
    }

    fn begin(&mut self, round: Round) {
        self.current = Some(Report {
            round,
            source: String::new(),
            caught: None,
            outcome: Err("it did not end".to_owned()),
            progress: None,
            notes: Vec::new(),
        });
    }

    fn finish(&mut self, outcome: Result<Outcome, String>) -> Result<(), Error> {
        if let Some(trap) = self.trap.take() {
            self.target.stop()?;
            self.target.clear_breakpoint(trap.place.address)?;
            self.target.resume()?;
        }
        if let Some(mut report) = self.current.take() {
            report.outcome = outcome;
            self.boot.reports.push(report);
        }
        Ok(())
    }

    /// Sets the trap that the guest waits for. In a control there is none, and the guest gets the
    /// same answer.
    fn arm(&mut self, cpu: u32, answer: u64, id: u64) -> Result<(), Error> {
        self.target.stop()?;
        let round = self.current.as_ref().map(|report| report.round);
        if let Some(round) = round.filter(|round| !round.control) {
            let place = self.place(round.way)?;
            self.target.set_breakpoint(place.address)?;
            self.trap = Some(Trap { cpu, answer, id, place });
        }
        self.answer(answer, answer::ARMED)?;
        self.target.resume()
    }

    /// Lets the held CPU continue, if there is one, at the guest's request.
    fn release(&mut self, answer: u64) -> Result<(), Error> {
        self.target.stop()?;
        self.held = None;
        if let Some(trap) = self.trap.take() {
            self.target.clear_breakpoint(trap.place.address)?;
        }
        self.answer(answer, answer::DONE)?;
        self.target.resume()
    }

    /// Answers the conductor, which spins: unless an interrupt's work is being done on its CPU,
    /// what is mapped there is its process.
    fn answer(&mut self, address: u64, word: u32) -> Result<(), Error> {
        const TRIES: u32 = 50;
        for _ in 0..TRIES {
            if self.target.write_word(CONDUCTOR, address, word)? {
                return Ok(());
            }
            self.target.step(CONDUCTOR)?;
        }
        Err(Error::Stub(format!("nothing is mapped at {address:#x}, where the guest waits")))
    }

    /// Handles a stop of all CPUs because one reached a breakpoint.
    fn stopped(&mut self, cpu: u32) -> Result<(), Error> {
        let Some(trap) = self.trap else { return self.go_on() };
        let registers = self.target.registers(cpu)?;
        if registers.get(iced_x86::Register::RIP) != Some(trap.place.address) {
            return self.go_on();
        }
        let marked = registers.get(trap.place.id).map(|value| value as u32).unwrap_or_default();
        self.target.clear_breakpoint(trap.place.address)?;
        if !self.is_wanted(cpu, marked, &trap)? {
            self.target.step(cpu)?;
            self.target.set_breakpoint(trap.place.address)?;
            return self.target.resume();
        }
        self.trap = None;
        self.note(|report| report.caught = Some((cpu, marked & !LAZY)));
        match self.current.as_ref().map(|report| report.round.way) {
            Some(Way::Held) => {
                self.held = Some(cpu);
                self.target.resume_all_but(cpu)
            }
            _ => self.interrupt(cpu, &trap),
        }
    }

    fn go_on(&mut self) -> Result<(), Error> {
        match self.held {
            Some(cpu) => self.target.resume_all_but(cpu),
            None => self.target.resume(),
        }
    }

    fn is_wanted(&mut self, cpu: u32, marked: u32, trap: &Trap) -> Result<bool, Error> {
        if cpu != trap.cpu || marked & LAZY == 0 {
            return Ok(false);
        }
        if trap.id == 0 {
            return Ok(true);
        }
        // The scanner is a thread of the guest's process, so its CPU sees the process's memory.
        let wanted = self.target.read(cpu, trap.id, 4)?;
        Ok(wanted.is_some_and(|bytes| bytes == (marked & !LAZY).to_le_bytes()))
    }

    /// Lets the CPU stand until its timer has expired, and go on: the interrupt comes at this
    /// instruction. Tells the thread that the timer wakes up that this is the moment.
    fn interrupt(&mut self, cpu: u32, trap: &Trap) -> Result<(), Error> {
        if !self.target.write_word(cpu, trap.answer, answer::DONE)? {
            return Err(Error::Stub("the scanner's process is not mapped on its CPU".to_owned()));
        }
        self.target.resume_all_but(cpu)?;
        thread::sleep(PAUSE);
        self.target.stop()?;
        self.target.resume()
    }

    /// Returns the place at which to catch a CPU on this way: it is searched in the kernel's memory
    /// the first time.
    fn place(&mut self, way: Way) -> Result<Place, Error> {
        if let Some((.., place)) = self.boot.places.iter().find(|(known, ..)| *known == way) {
            return Ok(*place);
        }
        let found = match way {
            Way::Held => {
                let function = self.function("sched_mm_cid_migrate_to")?;
                place::second_exchange(&function).map(|place| (function.name, place))
            }
            Way::Preempted | Way::Unaided(_) => {
                let unlock = self.symbol("__rcu_read_unlock")?.1;
                let function = self.function("sched_mm_cid_remote_clear")?;
                let place = place::before_interrupts_are_off(&function, unlock);
                place.map(|place| (function.name, place))
            }
        };
        let (name, place) = found.map_err(|why| self.no_place(why))?;
        self.boot.places.push((way, name, place));
        Ok(place)
    }

    fn function(&mut self, name: &str) -> Result<Function, Error> {
        let (name, start, end) = self.symbol(name)?;
        // Longer than any of these functions by far.
        let length = end.saturating_sub(start).min(1 << 14) as usize;
        let code = self.target.read(CONDUCTOR, start, length)?;
        let code = code.ok_or_else(|| self.no_place(format!("nothing is mapped at {start:#x}")))?;
        Ok(Function { name, start, code })
    }

    fn symbol(&self, wanted: &str) -> Result<(String, u64, u64), Error> {
        let is_wanted = |name: &str| name.split('.').next() == Some(wanted);
        let found: Vec<_> = self.symbols.iter().filter(|(name, ..)| is_wanted(name)).collect();
        match found[..] {
            [symbol] => Ok(symbol.clone()),
            [] => Err(self.no_place(format!("it has no function {wanted}"))),
            _ => Err(self.no_place(format!("it has {} functions {wanted}", found.len()))),
        }
    }

    fn no_place(&self, why: String) -> Error {
        Error::NoPlace { release: self.boot.release.clone(), why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use percid_race_guest::Ids;

    #[test]
    fn the_root_file_system_has_the_program_and_its_rounds() {
        let round = Round { way: Way::Held, ids: Ids::Kernel, control: false };
        let bytes = root(b"program", &[round, Round { control: true, ..round }]);
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("held:kernel:treated\nheld:kernel:control\n"));
        assert!(text.contains("program"));
    }
}
