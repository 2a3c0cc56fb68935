//! Discovery of the sections that an operation visits: by running it, independent of its source.

use percid_subject::Operation;

use crate::process::{Event, Registers};
use crate::subject::Subject;
use crate::text::Patch;

/// The sections of an operation, as indices, in the order of their first visit.
#[derive(Debug, Default, Clone)]
pub struct Visits {
    /// If nothing interrupts it.
    pub calm: Vec<usize>,
    /// If every section is aborted at its first instruction, with repetitions: all the tries.
    pub aborted: Vec<usize>,
}

impl Visits {
    /// Runs the operation both ways.
    ///
    /// # Errors
    ///
    /// Failures of the harness, or an operation that does not end.
    pub fn of(subject: &mut Subject, operation: Operation) -> Result<Visits, String> {
        subject.select(operation)?;
        // A preemption by chance makes a calm run longer: the shortest one had none.
        let mut calm = Vec::new();
        for _ in 0..5 {
            calm.push(run(subject, false)?);
        }
        let calm = calm.into_iter().min_by_key(Vec::len).unwrap_or_default();
        Ok(Visits { calm, aborted: run(subject, true)? })
    }

    /// Returns the sections that must be aborted before a section is reached; `None` if it never
    /// is.
    pub fn way_to(&self, section: usize) -> Option<&[usize]> {
        if self.calm.contains(&section) {
            return Some(&[]);
        }
        let index = self.aborted.iter().position(|&visited| visited == section)?;
        Some(&self.aborted[..index])
    }

    /// Returns all visited sections, without repetitions.
    pub fn sections(&self) -> Vec<usize> {
        let mut all = self.calm.clone();
        for &section in &self.aborted {
            if !all.contains(&section) {
                all.push(section);
            }
        }
        all
    }
}

/// Runs once with traps on the first instruction of every section, which abort it, or on the last
/// one before every section, which do not.
fn run(subject: &mut Subject, abort: bool) -> Result<Vec<usize>, String> {
    let text = |error: std::io::Error| error.to_string();
    let place = |subject: &Subject, index: usize| {
        let section = &subject.sections[index];
        let front = section.in_front.last().copied().unwrap_or(section.descriptor.start);
        subject.live(if abort { section.descriptor.start } else { front })
    };
    let mut traps = Vec::new();
    for index in 0..subject.sections.len() {
        traps.push(Some(Patch::trap(&subject.process, place(subject, index)).map_err(text)?));
    }
    let mut visited = Vec::new();
    loop {
        subject.process.go_on(0).map_err(text)?;
        let event = subject.process.wait_for(crate::subject::PATIENCE).map_err(text)?;
        if event != Some(Event::Stopped(libc::SIGTRAP)) {
            return Err(format!("an operation ended in {event:?} while its sections were listed"));
        }
        let registers = subject.process.registers().map_err(text)?;
        if subject.is_resting(&registers) {
            break;
        }
        let at = registers.rip - 1;
        let mut rip = at;
        if let Some(&section) = subject.pads.get(&at) {
            rip = subject.live(subject.sections[section].pad_target);
            if abort && traps[section].is_none() {
                let trap = Patch::trap(&subject.process, place(subject, section)).map_err(text)?;
                traps[section] = Some(trap);
            }
        } else if let Some(section) = (0..traps.len()).find(|&index| place(subject, index) == at) {
            visited.push(section);
            if let Some(trap) = traps[section].take() {
                trap.remove(&subject.process).map_err(text)?;
            }
        }
        subject.process.set_registers(&Registers { rip, ..registers }).map_err(text)?;
    }
    for trap in traps.into_iter().flatten() {
        trap.remove(&subject.process).map_err(text)?;
    }
    subject.settle()?;
    Ok(visited)
}
