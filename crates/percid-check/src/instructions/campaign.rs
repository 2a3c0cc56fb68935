//! The first part, where there are critical sections.

use std::cell::{Cell, RefCell};
use std::thread;

use percid::Source;

use super::helper::{Cpus, Helper};
use super::interruption::Interruption;
use super::section::Section;
use super::traps::{Response, Traps};
use crate::failure::Finding;
use crate::guarded::guarded;
use crate::plan::Plan;
use crate::process;
use crate::random::Random;
use crate::report::{Counts, count};
use crate::structure::Structure;

/// Operations with different choices: each section is searched for in all of them.
const DRAWS: u64 = 16;

/// Draws after which a visit may make the structure empty, so that others start from that.
const DRAWS_OF_A_VISIT: u64 = 4;

/// Arrivals of an operation at an instruction that are interrupted, each in its turn: the first ones
/// of a loop, and the first tries.
const ARRIVALS: usize = 3;

/// Checks a structure: every interruption at every instruction of the sections that operations
/// reach. Returns the reason if there were none.
pub(crate) fn check(
    structure: &dyn Structure,
    source: Source,
    plan: Plan,
    counts: &Counts,
) -> Result<Option<String>, Finding> {
    if source == Source::Atomic {
        return Ok(Some("this source has no critical sections".to_owned()));
    }
    let Some(sections) = Section::all() else {
        return Ok(Some("the program has instructions that are unknown".to_owned()));
    };
    let allowed = process::allowed_cpus();
    let cpus = Cpus { own: allowed.first().copied().unwrap_or(0), other: allowed.get(1).copied() };
    let helper = Helper::default();
    thread::scope(|scope| {
        scope.spawn(|| helper.serve(structure, cpus, plan.seed, counts));
        // A thread of its own, since it changes its affinity.
        let checked = scope.spawn(|| {
            let campaign = Campaign {
                structure,
                source,
                plan,
                counts,
                cpus,
                helper: &helper,
                random: RefCell::new(Random::of_part(plan.seed, 1)),
                interruption: Cell::new(Interruption::Nothing),
                wrong: Cell::new(None),
            };
            let result = guarded(|| campaign.run(sections));
            helper.end();
            result.unwrap_or_else(|text| Err(finding("the check", text)))
        });
        checked.join().unwrap_or_else(|_| Err(finding("the check", "it has ended early")))
    })
}

fn finding(place: &str, message: impl Into<String>) -> Finding {
    Finding { place: place.to_owned(), message: message.into() }
}

struct Campaign<'c> {
    structure: &'c dyn Structure,
    source: Source,
    plan: Plan,
    counts: &'c Counts,
    cpus: Cpus,
    helper: &'c Helper,
    /// The choices of the handler's operations.
    random: RefCell<Random>,
    interruption: Cell<Interruption>,
    wrong: Cell<Option<String>>,
}

/// An instruction, and the arrivals at it before the one that is interrupted.
#[derive(Debug, Clone, Copy)]
struct Target {
    section: usize,
    address: usize,
    arrival: usize,
}

/// A way to reach a section.
#[derive(Debug, Clone)]
struct Way {
    draw: u64,
    /// The sections whose tries must be aborted before.
    aborted: Vec<usize>,
}

impl Campaign<'_> {
    fn run(&self, sections: &'static [Section]) -> Result<Option<String>, Finding> {
        process::move_to(process::thread(), &[self.cpus.own]);
        let interrupt = || self.interrupt();
        let traps = match Traps::new(sections, &interrupt, self.counts) {
            Ok(traps) => traps,
            Err(error) => {
                return Ok(Some(format!("cannot write to /proc/self/mem: {error}")));
            }
        };
        for draw in 0..DRAWS {
            self.operate(draw).map_err(|text| finding("without an interruption", text))?;
        }
        let ways = self.ways(&traps)?;
        for (section, ways) in ways.iter().enumerate().filter(|(_, ways)| !ways.is_empty()) {
            count(&self.counts.sections);
            for &address in &sections[section].instructions {
                self.interrupt_at(&traps, section, address, ways)?;
            }
        }
        if ways.iter().all(Vec::is_empty) {
            return Ok(Some("no operation reached a critical section".to_owned()));
        }
        Ok(None)
    }

    /// Returns the ways to each section, the easiest one first.
    fn ways(&self, traps: &Traps<'_>) -> Result<Vec<Vec<Way>>, Finding> {
        let sections = traps.sections;
        let starts = sections.iter().enumerate().map(|(index, section)| (index, section.start));
        let starts: Vec<(usize, usize)> = starts.collect();
        let mut ways = vec![Vec::new(); sections.len()];
        for response in [Response::Remove, Response::Leave] {
            for draw in 0..DRAWS {
                let place = || match response {
                    Response::Leave => "all tries of an operation were aborted".to_owned(),
                    _ => "the first try of each section was aborted".to_owned(),
                };
                let visited = if draw % DRAWS_OF_A_VISIT == 0 { self.visit() } else { Ok(()) };
                let hits =
                    visited.and_then(|()| traps.run(&starts, response, || self.operate(draw)));
                let hits = hits.and_then(|hits| self.audit().map(|()| hits));
                let hits = hits.map_err(|message| Finding { place: place(), message })?;
                for (index, &section) in hits.iter().enumerate() {
                    if !hits[..index].contains(&section) {
                        let aborted = distinct(&hits[..index]);
                        ways[section]
                            .extend([Way { draw, aborted: Vec::new() }, Way { draw, aborted }]);
                    }
                }
            }
        }
        for ways in &mut ways {
            ways.sort_by_key(|way: &Way| way.aborted.len());
            ways.dedup_by_key(|way| (way.draw, way.aborted.clone()));
        }
        Ok(ways)
    }

    /// Interrupts operations at an instruction, in every way and at several of its arrivals.
    fn interrupt_at(
        &self,
        traps: &Traps<'_>,
        section: usize,
        address: usize,
        ways: &[Way],
    ) -> Result<(), Finding> {
        for arrival in 0..ARRIVALS {
            for interruption in Interruption::all(self.source, self.cpus.other.is_some()) {
                self.interruption.set(interruption);
                let target = Target { section, address, arrival };
                let reached = self.interrupt_once(traps, target, ways).map_err(|message| {
                    let instruction = traps.sections[section].describe(address);
                    let place = format!("{instruction} was interrupted by {interruption}");
                    Finding { place, message }
                })?;
                // An instruction that a mere signal does not meet is met by no other interruption.
                if interruption == Interruption::Nothing {
                    match (arrival, reached) {
                        (0, true) => count(&self.counts.instructions),
                        (0, false) => count(&self.counts.unreached_instructions),
                        _ => (),
                    }
                    if !reached {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Interrupts an operation in the present way. Returns `false` if none came to the instruction.
    fn interrupt_once(
        &self,
        traps: &Traps<'_>,
        target: Target,
        ways: &[Way],
    ) -> Result<bool, String> {
        let response = Response::Interrupt { section: target.section, before: target.arrival };
        // After a visit the structure may be empty, which opens other ways.
        for (index, way) in ways.iter().chain(ways).enumerate() {
            if index == ways.len() {
                self.visit()?;
            }
            let aborted = way.aborted.iter().map(|&index| (index, traps.sections[index].start));
            let mut set: Vec<(usize, usize)> = aborted.collect();
            set.push((target.section, target.address));
            let run = traps.run(&set, response, || self.operate(way.draw));
            process::move_to(process::thread(), &[self.cpus.own]);
            run.and_then(|_| self.wrong.take().map_or(Ok(()), Err))?;
            self.audit()?;
            if traps.has_interrupted() {
                count(&self.counts.interruptions);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn operate(&self, draw: u64) -> Result<(), String> {
        count(&self.counts.operations);
        let mut random = Random::of_part(self.plan.seed, 2 + draw);
        guarded(|| self.structure.operate(&mut random))
    }

    fn visit(&self) -> Result<(), String> {
        count(&self.counts.visits);
        guarded(|| self.structure.visit())
    }

    fn audit(&self) -> Result<(), String> {
        guarded(|| self.structure.audit())?
    }

    /// Does the present interruption, in the handler of the interrupted thread.
    fn interrupt(&self) {
        let interruption = self.interruption.get();
        let done = match interruption {
            Interruption::Nothing => Ok(()),
            Interruption::Handler => {
                count(&self.counts.signals);
                guarded(|| self.structure.interrupt(&mut self.random.borrow_mut()))
            }
            _ => {
                let other = self.cpus.other.filter(|_| interruption == Interruption::Move);
                if other.is_some_and(|cpu| process::move_to(process::thread(), &[cpu])) {
                    count(&self.counts.moves);
                }
                self.helper.request(interruption)
            }
        };
        self.wrong.set(done.err());
    }
}

fn distinct(sections: &[usize]) -> Vec<usize> {
    let mut distinct = sections.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
