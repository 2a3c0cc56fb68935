//! One round: an operation, interrupted as a script specifies, and the checks of its effect.

use std::time::{Duration, Instant};

use percid_subject::Operation;
use percid_subject::board::Answer;

use crate::effect::Effect;
use crate::injection::Injection;
use crate::process::{Event, Registers, Switches};
use crate::step::Step;
use crate::subject::{Change, PATIENCE, Subject};
use crate::text::Patch;

/// Time for which a spinning thread is observed after an event that need not interrupt it.
const GRACE: Duration = Duration::from_millis(2);

/// The same after an event that must interrupt it: a host may suspend a virtual CPU during that,
/// but not for as long.
const LONG_GRACE: Duration = PATIENCE;

/// Duration of an instruction that is merely slow.
const DELAY: Duration = Duration::from_micros(60);

/// Time for which a thread stays off its CPU.
const SLEEP: Duration = Duration::from_micros(300);

/// Time from the declaration of a section to the instruction at which its thread spins.
const ARRIVAL: Duration = Duration::from_micros(5);

/// Result of a round.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `true` if every step took place.
    pub complete: bool,
    /// Arrivals at an abort pad because of a step.
    pub aborts: u64,
    /// Arrivals at an abort pad because the kernel preempted the thread for reasons of its own.
    pub chance_aborts: u64,
    /// Arrivals at an abort pad of a thread that is not known to have been interrupted.
    pub unexplained_aborts: u64,
    /// Violations of the requirements.
    pub violations: Vec<String>,
    /// `true` if the effect of the operation is wrong: something was lost, doubled or torn.
    pub wrong_effect: bool,
    /// `true` if a step was never reached, without a disturbance.
    pub unreached: bool,
    /// `true` if the process cannot be used any more.
    pub ruined: bool,
    /// `true` if it cannot be used because nothing happened for too long.
    pub late: bool,
    /// The changes by the operation.
    pub change: Option<Change>,
    /// The registers at the end.
    pub registers: Option<Registers>,
}

/// A section that was interrupted and whose pad must come next.
#[derive(Debug)]
struct Pending {
    section: usize,
    /// The registers inside the section; unknown for a thread that spun.
    registers: Option<Registers>,
    cpu: u32,
}

impl Pending {
    /// Returns `true` if an arrival at the pad of a section is the expected one. The handler may
    /// run the same section, and be preempted in it, but its stack frame is another one.
    fn is_left_by(&self, section: usize, registers: &Registers) -> bool {
        let same_frame = self.registers.is_none_or(|inside| inside.rsp == registers.rsp);
        self.section == section && same_frame
    }
}

/// A step that waits for its thread.
#[derive(Debug)]
struct Planted {
    step: Step,
    patch: Patch,
}

/// A round in progress.
struct Round<'a> {
    subject: &'a mut Subject,
    steps: std::slice::Iter<'a, Step>,
    planted: Option<Planted>,
    pending: Vec<Pending>,
    outcome: Outcome,
    cpu: u32,
    switches: Switches,
    /// `true` if the script cannot be followed any more, by chance: a preemption came first.
    spoiled: bool,
    /// Address at which a spinning thread was released without being stopped.
    let_go: Option<u64>,
    /// `true` if a stop has been sent that was not observed yet.
    stop_sent: bool,
}

/// Runs an operation under a script.
///
/// # Errors
///
/// Failures of the harness itself.
pub fn run(
    subject: &mut Subject,
    operation: Operation,
    script: &[Step],
) -> Result<Outcome, String> {
    subject.select(operation)?;
    let before = subject.state();
    let cpu = subject.cpus.home;
    let mut round = Round {
        subject,
        steps: script.iter(),
        planted: None,
        pending: Vec::new(),
        outcome: Outcome::default(),
        cpu,
        switches: Switches::default(),
        spoiled: false,
        let_go: None,
        stop_sent: false,
    };
    round.plant_next()?;
    round.go_on(0)?;
    while round.event()? {}
    let mut outcome = round.finish()?;
    if outcome.ruined {
        return Ok(outcome);
    }
    subject.move_worker(cpu)?;
    if let Err(error) = subject.settle() {
        outcome.violations.push(format!("the structure cannot be used any more: {error}"));
        outcome.ruined = true;
        return Ok(outcome);
    }
    let change = subject.change_since(&before);
    let wrong = Effect { subject, operation, script, change: &change }.wrong(outcome.complete);
    outcome.wrong_effect = !wrong.is_empty();
    outcome.violations.extend(wrong);
    outcome.change = Some(change);
    Ok(outcome)
}

impl Round<'_> {
    fn violation(&mut self, what: String) {
        self.outcome.violations.push(what);
    }

    fn plant_next(&mut self) -> Result<(), String> {
        let Some(&step) = self.steps.next() else { return Ok(()) };
        let address = self.subject.live(step.address);
        let place = if step.injection.spins() { Patch::spin } else { Patch::trap };
        if step.injection.spins() {
            self.subject.forget_declaration().map_err(text)?;
        }
        let patch = place(&self.subject.process, address).map_err(text)?;
        self.planted = Some(Planted { step, patch });
        Ok(())
    }

    fn next_is_nested(&self) -> bool {
        self.steps.as_slice().first().is_some_and(|step| step.nested)
    }

    fn go_on(&mut self, signal: i32) -> Result<(), String> {
        self.switches = self.subject.process.switches().map_err(text)?;
        self.subject.process.go_on(signal).map_err(text)
    }

    /// Returns `true` if the worker has left its CPU since it was released, except for its present
    /// stop: it was preempted, or waited for a page.
    fn was_preempted(&self) -> Result<bool, String> {
        let now = self.subject.process.switches().map_err(text)?;
        let waits = now.waits - self.switches.waits;
        Ok(now.preemptions != self.switches.preemptions || waits > 1)
    }

    /// Handles what happens next; `false` ends the round.
    fn event(&mut self) -> Result<bool, String> {
        let spins = self.planted.as_ref().is_some_and(|planted| planted.step.injection.spins());
        let event = if spins { self.interrupt_spinning()? } else { self.wait(PATIENCE)? };
        match event {
            Some(Event::Stopped(libc::SIGTRAP)) => self.stopped(),
            // Another event had stopped it first.
            Some(Event::Stopped(libc::SIGSTOP)) if std::mem::take(&mut self.stop_sent) => {
                self.go_on(0).map(|()| true)
            }
            Some(Event::Stopped(libc::SIGILL | libc::SIGSEGV))
                if self.let_go.is_some() && self.let_go == self.rip() =>
            {
                // Not every processor copes with code that another one changes under its feet: it
                // may see one byte of the loop and one of the instruction, which is another
                // instruction or none.
                self.spoiled = true;
                self.outcome.ruined = true;
                Ok(false)
            }
            Some(other) => {
                let place = self.whereabouts();
                self.ruin(format!("the subject ended or faulted: {other:?}{place}"))
            }
            None => {
                self.outcome.late = true;
                self.ruin("the operation does not end".to_owned())
            }
        }
    }

    fn rip(&self) -> Option<u64> {
        self.subject.process.registers().ok().map(|registers| registers.rip)
    }

    /// Describes the address of a fault, for output.
    fn whereabouts(&self) -> String {
        let Ok(registers) = self.subject.process.registers() else { return String::new() };
        let bytes =
            self.subject.process.read::<16>(registers.rip.wrapping_sub(8)).unwrap_or_default();
        let base = self.subject.live(0);
        format!(
            " at {:#x}, eight bytes before and after: {bytes:02x?}",
            registers.rip.wrapping_sub(base)
        )
    }

    fn ruin(&mut self, what: String) -> Result<bool, String> {
        self.violation(what);
        self.outcome.ruined = true;
        Ok(false)
    }

    fn wait(&mut self, limit: Duration) -> Result<Option<Event>, String> {
        self.subject.process.wait_for(limit).map_err(text)
    }

    fn stopped(&mut self) -> Result<bool, String> {
        let registers = self.subject.process.registers().map_err(text)?;
        if self.subject.is_resting(&registers) {
            self.outcome.registers = Some(registers);
            return Ok(false);
        }
        let at = registers.rip - 1;
        if let Some(&section) = self.subject.pads.get(&at) {
            return self.at_pad(section, registers).map(|()| true);
        }
        match self.planted.take() {
            Some(planted) if self.subject.live(planted.step.address) == at => {
                self.at_step(planted, Registers { rip: at, ..registers }).map(|()| true)
            }
            _ => self.ruin(format!("an unexpected trap at {at:#x}")),
        }
    }

    /// Handles a thread that is off its CPU at the instruction of a step.
    fn at_step(&mut self, planted: Planted, registers: Registers) -> Result<(), String> {
        let Planted { step, patch } = planted;
        patch.remove(&self.subject.process).map_err(text)?;
        self.subject.process.set_registers(&registers).map_err(text)?;
        self.act_on_stopped(&step)?;
        self.expect_abort(&step, registers)?;
        self.go_on(if step.injection.signals() { libc::SIGUSR1 } else { 0 })
    }

    fn act_on_stopped(&mut self, step: &Step) -> Result<(), String> {
        if step.injection == Injection::Sleep {
            std::thread::sleep(SLEEP);
        }
        if let Some(request) = step.injection.request() {
            self.subject.ask(request, self.cpu);
        }
        if step.injection.moves() {
            self.move_away()?;
        }
        Ok(())
    }

    /// Records the expected abort of a thread that is about to continue from the instruction of a
    /// step at which it was off its CPU.
    fn expect_abort(&mut self, step: &Step, registers: Registers) -> Result<(), String> {
        let inside = self.is_inside(step);
        if inside {
            let registers = Some(registers);
            self.pending.push(Pending { section: step.section, registers, cpu: self.cpu });
        }
        if !inside || self.next_is_nested() {
            self.plant_next()?;
        }
        Ok(())
    }

    fn is_inside(&self, step: &Step) -> bool {
        self.subject.sections[step.section].descriptor.contains(step.address)
    }

    fn move_away(&mut self) -> Result<(), String> {
        let Some(away) = self.subject.cpus.away else { return Ok(()) };
        self.cpu = if self.cpu == away { self.subject.cpus.home } else { away };
        self.subject.move_worker(self.cpu)
    }

    /// Interrupts a thread that runs, at the instruction of a step or before it. Performs the
    /// step's injection and waits for the thread to stop, normally at the pad.
    fn interrupt_spinning(&mut self) -> Result<Option<Event>, String> {
        let Some(Planted { step, patch }) = self.planted.take() else { return Ok(None) };
        let mut event = self.await_arrival(step.section)?;
        let mut answer = Answer::Unfelt;
        if event.is_none() {
            answer = self.act_on_running(&step)?;
            event = self.wait(match answer {
                Answer::Unfelt => DELAY,
                Answer::Felt if !step.injection.lacks_the_fence() => LONG_GRACE,
                _ => GRACE,
            })?;
            if event.is_none() && (self.was_preempted()? || step.injection.takes_the_cpu()) {
                event = self.wait(PATIENCE)?;
            }
        }
        if event.is_some() {
            patch.remove(&self.subject.process).map_err(text)?;
            return self.classify_abort(event, step, answer);
        }
        self.spoiled |= answer == Answer::Refused;
        if answer == Answer::Felt && self.is_inside(&step) {
            self.violation(format!("{:?} did not abort the section", step.injection));
        }
        if step.injection.lacks_the_fence() {
            self.let_go(&step, patch)?;
        } else if let Some(event) = self.stop_spinning(Planted { step, patch })? {
            return Ok(Some(event));
        }
        self.wait(PATIENCE)
    }

    /// Lets a thread go that spins, without stopping it: a section that is not aborted must
    /// commit, so that the control finds what that damages.
    fn let_go(&mut self, step: &Step, patch: Patch) -> Result<(), String> {
        patch.remove(&self.subject.process).map_err(text)?;
        self.let_go = Some(self.subject.live(step.address));
        self.plant_next()
    }

    /// Stops a thread that spins and that nothing has aborted, which aborts it. (A processor whose
    /// code another one changes may execute the first byte of one instruction with the second of
    /// another, so only a thread that stands still is let go.) Answers with what happened instead,
    /// if it had stopped already.
    fn stop_spinning(&mut self, planted: Planted) -> Result<Option<Event>, String> {
        self.subject.process.stop().map_err(text)?;
        let event = self.wait(PATIENCE)?;
        self.stop_sent = event != Some(Event::Stopped(libc::SIGSTOP));
        planted.patch.remove(&self.subject.process).map_err(text)?;
        if self.stop_sent {
            self.spoiled = true;
            return Ok(event);
        }
        let registers = self.subject.process.registers().map_err(text)?;
        if registers.rip == self.subject.live(planted.step.address) {
            self.expect_abort(&planted.step, registers)?;
        } else {
            self.spoiled = true;
        }
        self.go_on(0).map(|()| None)
    }

    /// Waits until the thread has declared the section, after which it is a few instructions from
    /// where it will spin. An event means that it took another way.
    fn await_arrival(&mut self, section: usize) -> Result<Option<Event>, String> {
        let descriptor = self.subject.live(self.subject.sections[section].descriptor.address);
        let end = Instant::now() + PATIENCE;
        while self.subject.declared().is_some_and(|declared| declared != descriptor) {
            let event = self.wait(Duration::ZERO)?;
            if event.is_some() || Instant::now() > end {
                return Ok(event);
            }
        }
        self.wait(ARRIVAL)
    }

    fn act_on_running(&mut self, step: &Step) -> Result<Answer, String> {
        if step.injection == Injection::Delay {
            return Ok(Answer::Unfelt);
        }
        if let Some(request) = step.injection.request() {
            return Ok(self.subject.ask(request, self.cpu));
        }
        self.move_away().map(|()| Answer::Felt)
    }

    /// Classifies the stop of a thread that spun: because of the step, or because the kernel
    /// preempted it first.
    fn classify_abort(
        &mut self,
        event: Option<Event>,
        step: Step,
        answer: Answer,
    ) -> Result<Option<Event>, String> {
        if !matches!(event, Some(Event::Stopped(_))) {
            return Ok(event);
        }
        let registers = self.subject.process.registers().map_err(text)?;
        let there = self.subject.pads.get(&(registers.rip.wrapping_sub(1))) == Some(&step.section);
        let by_step = match step.injection {
            _ if answer == Answer::Unfelt => false,
            Injection::Preempt => true,
            // The kernel preempts it in order to move it; if it has not been moved, that was
            // chance.
            Injection::MoveRunning => self.subject.known_cpu().is_none_or(|cpu| cpu == self.cpu),
            _ => !self.was_preempted()?,
        };
        if there && by_step && !self.spoiled {
            self.pending.push(Pending { section: step.section, registers: None, cpu: self.cpu });
        } else {
            self.spoiled = true;
        }
        Ok(event)
    }

    fn at_pad(&mut self, section: usize, registers: Registers) -> Result<(), String> {
        if let Some(pending) = self.pending.pop_if(|top| top.is_left_by(section, &registers)) {
            self.outcome.aborts += 1;
            self.compare(&pending, &registers);
        } else if self.spoiled || self.was_preempted()? {
            self.outcome.chance_aborts += 1;
        } else {
            // The kernel may abort whenever it likes, but not every time: the round is repeated.
            self.outcome.unexplained_aborts += 1;
            self.spoiled = true;
        }
        let target = self.subject.live(self.subject.sections[section].pad_target);
        let registers = Registers { rip: target, ..registers };
        self.subject.process.set_registers(&registers).map_err(text)?;
        if self.planted.is_none() && self.pending.is_empty() {
            self.plant_next()?;
        }
        self.go_on(0)
    }

    /// Compares the state at a pad: it must be as inside, except for the CPU number that the kernel
    /// wrote.
    fn compare(&mut self, pending: &Pending, now: &Registers) {
        if pending.registers.is_some_and(|before| general(&before) != general(now)) {
            self.violation("registers changed on the way to the pad".to_owned());
        }
        if self.subject.known_cpu().is_some_and(|cpu| cpu != pending.cpu) {
            self.violation(format!("the kernel does not say CPU {} at the pad", pending.cpu));
        }
    }

    fn finish(mut self) -> Result<Outcome, String> {
        let left = self.planted.take();
        self.outcome.complete = left.is_none() && self.steps.len() == 0 && !self.spoiled;
        self.outcome.unreached = left.is_some() && !self.spoiled && self.pending.is_empty();
        if let Some(Planted { patch, .. }) = left.filter(|_| !self.outcome.ruined) {
            patch.remove(&self.subject.process).map_err(text)?;
        }
        for pending in std::mem::take(&mut self.pending) {
            let place = self.subject.sections[pending.section].describe(0);
            self.violation(format!("the kernel did not redirect to the pad of {place}"));
        }
        Ok(self.outcome)
    }
}

/// Returns the registers that a section may use.
fn general(registers: &Registers) -> [u64; 16] {
    [
        registers.rax,
        registers.rbx,
        registers.rcx,
        registers.rdx,
        registers.rsi,
        registers.rdi,
        registers.rbp,
        registers.rsp,
        registers.r8,
        registers.r9,
        registers.r10,
        registers.r11,
        registers.r12,
        registers.r13,
        registers.r14,
        registers.r15,
    ]
}

/// Returns the registers that a function must preserve.
pub fn preserved(registers: &Registers) -> [u64; 7] {
    [
        registers.rbx,
        registers.rsp,
        registers.rbp,
        registers.r12,
        registers.r13,
        registers.r14,
        registers.r15,
    ]
}

/// Describes the preserved registers that differ, if any.
pub fn changed(calm: &[u64; 7], found: &[u64; 7]) -> Option<String> {
    const NAMES: [&str; 7] = ["rbx", "rsp", "rbp", "r12", "r13", "r14", "r15"];
    let differ =
        NAMES.iter().zip(calm.iter().zip(found)).filter(|(_, (calm, found))| calm != found);
    let words: Vec<String> =
        differ.map(|(name, (calm, found))| format!("{name} {calm:#x} -> {found:#x}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}
