//! All the rounds of a subject: every instruction of every section, in every way.

use std::collections::HashMap;
use std::path::Path;

use percid_subject::Operation;

use crate::discovery::Visits;
use crate::effect::own;
use crate::injection::Injection;
use crate::references::References;
use crate::round::{self, Outcome};
use crate::section::Section;
use crate::step::Step;
use crate::subject::{Cpus, Subject};
use crate::tally::Tally;

/// Maximum number of repetitions of a round that is disturbed by chance.
const REPETITIONS: usize = 300;

/// Number of violations after which the search ends.
const ENOUGH: usize = 1000;

/// Maximum number of repetitions of a round whose operation does not come to a step.
const DETOURS: usize = 3;

/// Maximum number of tries that still counts as bounded.
const BOUND: usize = 64;

/// Selection of pairs of instructions that are tried: of two tries, or of an operation and a
/// handler. Single instructions are always tried, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// All.
    All,
    /// A sample, which depends on the seed.
    Sample {
        /// Seed of the selection.
        seed: u64,
        /// Number of pairs of which one is tried.
        of: u64,
    },
}

impl Pairs {
    /// Returns `true` if the next pair is tried.
    fn next(&mut self) -> bool {
        match self {
            Pairs::All => true,
            Pairs::Sample { seed, of } => {
                // Knuth's generator; its upper bits are the good ones.
                *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (*seed >> 33).is_multiple_of(*of)
            }
        }
    }
}

/// The instructions of each section, by its index, to which an operation comes.
type Reached = HashMap<usize, Vec<u64>>;

/// A subject under examination.
#[derive(Debug)]
pub struct Campaign {
    subject: Subject,
    pairs: Pairs,
    tally: Tally,
    /// The registers that a function preserves, after an operation that was not interrupted.
    calm: Option<(Operation, [u64; 7])>,
}

/// Interrupts everything that `operations` come through, with one source of IDs.
///
/// # Errors
///
/// Failures of the harness itself; violations are in the tally.
pub fn run(
    program: &Path,
    cpus: Cpus,
    source: &str,
    operations: &[Operation],
    pairs: Pairs,
) -> Result<Tally, String> {
    let mut campaign = Campaign::start(program, cpus, source)?;
    campaign.pairs = pairs;
    for &operation in operations {
        campaign.examine(operation)?;
    }
    Ok(campaign.tally)
}

/// Finds out which sections `operations` come through, and does nothing to them.
///
/// # Errors
///
/// Failures of the harness itself.
pub fn visit(
    program: &Path,
    cpus: Cpus,
    source: &str,
    operations: &[Operation],
) -> Result<Tally, String> {
    let mut campaign = Campaign::start(program, cpus, source)?;
    for &operation in operations {
        for section in Visits::of(&mut campaign.subject, operation)?.sections() {
            let descriptor = campaign.subject.sections[section].descriptor;
            campaign.tally.sections.insert(descriptor.address);
        }
    }
    Ok(campaign.tally)
}

/// Rounds of a negative control. On a busy machine a preemption may abort the section at the only
/// instruction where a missing fence does damage; then another round is needed.
const CONTROL_ROUNDS: usize = 50;

/// Runs the negative control of thefts and visits: without their fence, while the worker is inside
/// a section. Ends with the first round that does damage.
///
/// # Errors
///
/// Failures of the harness itself.
pub fn run_without_fence(
    program: &Path,
    cpus: Cpus,
    operation: Operation,
    injection: Injection,
) -> Result<Tally, String> {
    let mut campaign = Campaign::start(program, cpus, "table")?;
    let visits = Visits::of(&mut campaign.subject, operation)?;
    let &section = visits.calm.first().ok_or("the operation has no section")?;
    for _ in 0..CONTROL_ROUNDS {
        for address in campaign.reached(operation, section, &[])? {
            campaign.attempt(operation, &[Step { section, address, injection, nested: false }])?;
        }
        if campaign.tally.wrong_effects > 0 {
            break;
        }
    }
    Ok(campaign.tally)
}

/// Returns the sections of a program that can run but that no operation visited, and the
/// instructions in percid's sections that none reached.
///
/// # Errors
///
/// Returns an error if the program cannot be read.
pub fn forgotten(program: &Path, percid: &Tally, own: &Tally) -> Result<Vec<String>, String> {
    let image = crate::image::Image::read(program)?;
    let references = References::of(&image);
    let can_run = |section: &Section| {
        image.function_at(section.descriptor.start).is_some_and(|it| references.lead_to(it))
    };
    let mut places = Vec::new();
    for section in Section::all(&image)? {
        let address = section.descriptor.address;
        if percid.sections.contains(&address) {
            let reached = |address: &&u64| !percid.instructions.contains(*address);
            places.extend(
                section.instructions.iter().filter(reached).map(|&at| (section.clone(), at)),
            );
        } else if !own.sections.contains(&address) && can_run(&section) {
            let start = section.descriptor.start;
            places.push((section, start));
        }
    }
    Ok(places.iter().map(|(section, address)| section.describe(*address)).collect())
}

impl Campaign {
    fn start(program: &Path, cpus: Cpus, source: &str) -> Result<Campaign, String> {
        let subject = Subject::start(program, source, cpus)?;
        Ok(Campaign { subject, pairs: Pairs::All, tally: Tally::default(), calm: None })
    }

    fn examine(&mut self, operation: Operation) -> Result<(), String> {
        let visits = Visits::of(&mut self.subject, operation)?;
        let mut all_reached = Reached::new();
        for section in visits.sections() {
            let way = visits.way_to(section).unwrap_or_default().to_vec();
            let descriptor = self.subject.sections[section].descriptor.address;
            self.tally.sections.insert(descriptor);
            let reached = self.reached(operation, section, &way)?;
            self.every_instruction(operation, section, &way, &reached)?;
            self.outside(operation, section, &way, &reached)?;
            all_reached.insert(section, reached);
        }
        self.retries(operation, &visits, &all_reached)?;
        self.inside_the_handler(operation, &visits, &all_reached)?;
        self.all_tries(operation, &visits, &all_reached)
    }

    /// Returns the instructions of a section that an operation reaches, at any of its visits: each
    /// is interrupted by a stop.
    fn reached(
        &mut self,
        operation: Operation,
        section: usize,
        way: &[usize],
    ) -> Result<Vec<u64>, String> {
        let mut reached = Vec::new();
        for address in self.subject.sections[section].instructions.clone() {
            let mut script = self.lead(way);
            script.push(Step { section, address, injection: Injection::Stop, nested: false });
            if !self.attempt(operation, &script)?.unreached {
                self.tally.instructions.insert(address);
                reached.push(address);
            }
        }
        Ok(reached)
    }

    /// Returns the steps that lead to a section: everything before it is aborted at its first
    /// instruction.
    fn lead(&self, way: &[usize]) -> Vec<Step> {
        let step = |&section: &usize| {
            let address = self.subject.sections[section].descriptor.start;
            Step { section, address, injection: Injection::Stop, nested: false }
        };
        way.iter().map(step).collect()
    }

    fn injections(&self, operation: Operation) -> Vec<Injection> {
        let two = self.subject.cpus.away.is_some();
        let thefts = self.subject.source == "table" && !operation.is_own();
        let thefts = Injection::THEFTS.into_iter().filter(|_| thefts);
        let visits = Injection::VISITS.into_iter().filter(|_| operation.has_visitors());
        let all = Injection::GENERAL.into_iter().chain(thefts).chain(visits);
        all.filter(|injection| two || !injection.needs_two_cpus()).collect()
    }

    fn every_instruction(
        &mut self,
        operation: Operation,
        section: usize,
        way: &[usize],
        reached: &[u64],
    ) -> Result<(), String> {
        for &address in reached {
            // The stops have been.
            let others = self.injections(operation).into_iter().filter(|&it| it != Injection::Stop);
            for injection in others {
                let mut script = self.lead(way);
                script.push(Step { section, address, injection, nested: false });
                self.attempt(operation, &script)?;
            }
        }
        Ok(())
    }

    /// Interrupts before the section and after the commit, where nothing may be aborted; and after
    /// an interruption before it, the section must still be protected.
    fn outside(
        &mut self,
        operation: Operation,
        section: usize,
        way: &[usize],
        reached: &[u64],
    ) -> Result<(), String> {
        let this = self.subject.sections[section].clone();
        let injections = self.injections(operation);
        for &address in this.in_front.iter().chain([&this.descriptor.end()]) {
            self.tally.outside.insert(address);
            for injection in Injection::OUTSIDE.into_iter().filter(|one| injections.contains(one)) {
                let mut script = self.lead(way);
                script.push(Step { section, address, injection, nested: false });
                self.attempt(operation, &script)?;
            }
        }
        for &front in &this.in_front {
            for &inside in reached {
                let mut script = self.lead(way);
                for address in [front, inside] {
                    let injection = Injection::Stop;
                    script.push(Step { section, address, injection, nested: false });
                }
                self.attempt(operation, &script)?;
            }
        }
        Ok(())
    }

    /// Tries all pairs: the first try aborted at one instruction, the second at another.
    fn retries(
        &mut self,
        operation: Operation,
        visits: &Visits,
        reached: &Reached,
    ) -> Result<(), String> {
        let &[first, second, ..] = &visits.aborted[..] else { return Ok(()) };
        use Injection::{Move, Signal, Stop};
        let kinds = [(Stop, Stop), (Signal, Signal), (Stop, Signal), (Move, Move), (Signal, Move)];
        let two = self.subject.cpus.away.is_some();
        for (one, other) in kinds {
            if !two && (one == Move || other == Move) {
                continue;
            }
            for &address in &reached[&first] {
                let step = Step { section: first, address, injection: one, nested: false };
                self.pairs(operation, step, (second, other, false), &reached[&second])?;
            }
        }
        Ok(())
    }

    /// Tries all pairs: an instruction of the operation, and one of the handler that interrupted it
    /// there.
    fn inside_the_handler(
        &mut self,
        operation: Operation,
        visits: &Visits,
        reached: &Reached,
    ) -> Result<(), String> {
        let Some(handler) = handler_of(operation) else { return Ok(()) };
        let handler = Visits::of(&mut self.subject, handler)?;
        let (Some(&first), Some(&second)) = (visits.calm.first(), handler.calm.first()) else {
            return Ok(());
        };
        let others = match reached.get(&second) {
            Some(reached) => reached.clone(),
            None => self.subject.sections[second].instructions.clone(),
        };
        for &address in &reached[&first] {
            let injection = Injection::Signal;
            let step = Step { section: first, address, injection, nested: false };
            self.pairs(operation, step, (second, Injection::Stop, true), &others)?;
        }
        Ok(())
    }

    fn pairs(
        &mut self,
        operation: Operation,
        first: Step,
        (section, injection, nested): (usize, Injection, bool),
        addresses: &[u64],
    ) -> Result<(), String> {
        for &address in addresses {
            if !self.pairs.next() {
                continue;
            }
            let second = Step { section, address, injection, nested };
            self.attempt(operation, &[first, second])?;
        }
        Ok(())
    }

    /// Aborts every try, each time at the same instruction (counted from the start): the operation
    /// must end, with its effect where no ID is needed, once.
    fn all_tries(
        &mut self,
        operation: Operation,
        visits: &Visits,
        reached: &Reached,
    ) -> Result<(), String> {
        let tries = &visits.aborted;
        self.tally.most_tries = self.tally.most_tries.max(tries.len());
        if tries.len() > BOUND * visits.calm.len().max(1) {
            self.tally.violations.push(format!("{operation:?} tries {} times", tries.len()));
            return Ok(());
        }
        if tries.iter().any(|try_| reached[try_].is_empty()) {
            self.tally.violations.push(format!("{operation:?} goes another way each time"));
            return Ok(());
        }
        let longest = tries.iter().map(|try_| reached[try_].len()).max();
        let two = self.subject.cpus.away.is_some();
        for injection in Injection::OUTSIDE.into_iter().filter(|one| two || !one.needs_two_cpus()) {
            for index in 0..longest.unwrap_or(0) {
                let step = |&section: &usize| {
                    let reached = &reached[&section];
                    let address = reached[index.min(reached.len() - 1)];
                    Step { section, address, injection, nested: false }
                };
                let script: Vec<Step> = tries.iter().map(step).collect();
                let outcome = self.attempt(operation, &script)?;
                self.must_be_shared(operation, &outcome);
            }
        }
        Ok(())
    }

    fn must_be_shared(&mut self, operation: Operation, outcome: &Outcome) {
        let Some(change) = outcome.change.as_ref().filter(|_| outcome.complete) else { return };
        let mine = change.copies.iter().any(|&(_, value)| own(value) != 0);
        if mine || (own(change.shared) == 0 && operation != Operation::Handler) {
            let found =
                format!("{operation:?}: all tries aborted, not in the shared slot: {change:?}");
            self.tally.violations.push(found);
        }
    }

    /// Runs a round until chance leaves it alone, and books it.
    fn attempt(&mut self, operation: Operation, script: &[Step]) -> Result<Outcome, String> {
        if self.tally.violations.len() >= ENOUGH {
            return Ok(Outcome { unreached: true, ..Outcome::default() });
        }
        let mut outcome = Outcome::default();
        let mut detours = 0;
        let mut was_late = false;
        for _ in 0..REPETITIONS {
            // Each time: a subject that had to start over has other addresses.
            let calm = self.calm_registers(operation)?;
            outcome = round::run(&mut self.subject, operation, script)?;
            let preserved = outcome.registers.as_ref().map(round::preserved);
            if let Some(changed) = preserved.and_then(|registers| round::changed(&calm, &registers))
            {
                outcome.violations.push(format!("preserved registers have changed: {changed}"));
            }
            // On a busy machine a process may wait for long; an operation that hangs does so again.
            if outcome.late && !was_late {
                was_late = true;
                outcome.violations.clear();
                self.tally.late += 1;
            }
            self.tally.rounds += 1;
            self.tally.aborts += outcome.aborts;
            self.tally.unexplained += outcome.unexplained_aborts;
            self.tally.wrong_effects += u64::from(outcome.wrong_effect);
            let damaged = outcome.change.as_ref().is_some_and(|change| change.faults.0 != 0);
            // A structure that is damaged once would be found wrong ever after.
            if outcome.ruined || damaged || (outcome.wrong_effect && !operation.is_own()) {
                self.calm = None;
                self.subject.start_over()?;
            }
            // A step that was not reached by chance is reached some other time.
            detours += usize::from(outcome.unreached);
            if outcome.complete || !outcome.violations.is_empty() || detours == DETOURS {
                break;
            }
            self.tally.repeated += u64::from(!outcome.unreached);
        }
        self.tally.unreached += u64::from(outcome.unreached);
        if !outcome.complete && !outcome.unreached && outcome.violations.is_empty() {
            let what = match outcome.unexplained_aborts {
                0 => "never took place",
                _ => "aborted every time though it was not interrupted",
            };
            outcome.violations.push(what.to_owned());
        }
        self.book(operation, script, &outcome);
        Ok(outcome)
    }

    fn book(&mut self, operation: Operation, script: &[Step], outcome: &Outcome) {
        if !outcome.unreached {
            self.tally.points += script.len() as u64;
            for step in script {
                *self.tally.by_injection.entry(step.injection).or_default() += 1;
            }
        }
        let place = |step: &Step| {
            let section = &self.subject.sections[step.section];
            format!("{:?} at {}", step.injection, section.describe(step.address))
        };
        for violation in &outcome.violations {
            let places: Vec<String> = script.iter().map(place).collect();
            let source = &self.subject.source;
            let found =
                format!("{operation:?} ({source}), {}: {violation}", places.join(", then "));
            self.tally.violations.push(found);
        }
    }

    fn calm_registers(&mut self, operation: Operation) -> Result<[u64; 7], String> {
        if let Some((_, registers)) = self.calm.filter(|&(known, _)| known == operation) {
            return Ok(registers);
        }
        let outcome = round::run(&mut self.subject, operation, &[])?;
        let registers = outcome.registers.as_ref().map(round::preserved);
        let registers = registers.ok_or_else(|| {
            format!("{operation:?} does not end by itself: {:?}", outcome.violations)
        })?;
        self.calm = Some((operation, registers));
        Ok(registers)
    }
}

/// Returns the operation whose first section is the first one of the handler that interrupts
/// `operation`.
fn handler_of(operation: Operation) -> Option<Operation> {
    match operation {
        Operation::Static | Operation::Reference | Operation::Twice => Some(Operation::Handler),
        Operation::Handler => None,
        Operation::Record => Some(Operation::RecordMany),
        Operation::Tally => Some(Operation::TallyMany),
        // The handler appends a short record by the function that is not for a known length.
        Operation::Append => Some(Operation::AppendShort),
        own if own.is_own() => None,
        same => Some(same),
    }
}
