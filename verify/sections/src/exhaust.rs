//! An operation, stopped at every instruction in every way.

use crate::arena::SHIFT;
use crate::descriptors::{self, Descriptor};
use crate::kernel::{self, Resumed};
use crate::operation::Operation;
use crate::stepping;
use crate::world::{ELSEWHERE, HERE, Place, Shard, Shards, Source, WITHOUT, World};

/// More instructions than any call takes.
const MANY: usize = 5_000;

/// The results of one run.
#[derive(Debug)]
struct Ran {
    result: Option<u64>,
    /// The memory at the stop.
    then: Box<Shards>,
    /// The memory at the end.
    now: Box<Shards>,
    resumed: Resumed,
    /// At the stop: whether the thread was in a section, and had declared that one.
    inside: bool,
    declared: bool,
}

/// Tries everything with either source, and returns the number of runs.
pub(crate) fn all(operation: &dyn Operation) -> usize {
    [Source::Kernel, Source::Table].into_iter().map(|source| with(operation, source)).sum()
}

/// Tries only the uninterrupted run, and the one without an index.
pub(crate) fn briefly(operation: &dyn Operation) {
    for source in [Source::Kernel, Source::Table] {
        let world = World::new();
        Case::new(operation, &world, source).uninterrupted();
    }
}

fn with(operation: &dyn Operation, source: Source) -> usize {
    let world = World::new();
    let case = Case::new(operation, &world, source);
    case.uninterrupted();
    let same = case.at_every_instruction(HERE, false);
    let moved = case.at_every_instruction(ELSEWHERE, false);
    let handled = case.at_every_instruction(HERE, true);
    same + moved + handled
}

struct Case<'a> {
    operation: &'a dyn Operation,
    world: &'a World,
    source: Source,
    section: &'static Descriptor,
}

/// Returns the section that an operation visits.
pub(crate) fn section_of(
    operation: &dyn Operation,
    world: &World,
    source: Source,
) -> &'static Descriptor {
    for slot in 0..world.read().len() {
        world.write(slot, &operation.shard(slot));
    }
    world.put(HERE, source);
    operation.call(world.word(source));
    descriptors::of(world.take_declaration()).expect("the operation declares its section")
}

impl<'a> Case<'a> {
    fn new(operation: &'a dyn Operation, world: &'a World, source: Source) -> Case<'a> {
        let section = section_of(operation, world, source);
        Case { operation, world, source, section }
    }
    fn call(&self) -> Option<u64> {
        self.operation.call(self.world.word(self.source))
    }

    fn prepare(&self) -> Box<Shards> {
        for slot in 0..self.world.read().len() {
            self.world.write(slot, &self.operation.shard(slot));
        }
        self.world.put(HERE, self.source);
        self.world.take_declaration();
        self.world.read()
    }

    fn uninterrupted(&self) {
        self.undisturbed();
        for place in WITHOUT {
            self.without_an_index(place);
        }
    }

    /// Tries the operation without an interruption: it must have its effect here and nowhere else.
    fn undisturbed(&self) {
        let before = self.prepare();
        let mut result = None;
        // Stepped anyway, so that an endless loop ends the test.
        let endless = stepping::run(self.section, &mut || result = self.call(), MANY, &mut |_| {
            std::process::abort();
        });
        assert!(!endless);
        let mut expected = before;
        let modelled = self.model(&mut expected, HERE.slot);
        assert_eq!(result, modelled, "{:?}: the result", self.source);
        self.assert_same(&self.world.read(), &expected, "undisturbed");
    }

    fn without_an_index(&self, place: Place) {
        let before = self.prepare();
        self.world.put(place, self.source);
        assert_eq!(self.call(), None, "{:?} at {place:?}", self.source);
        assert_eq!(self.world.read(), before, "{:?} at {place:?}", self.source);
    }

    /// Preempts the thread before each instruction, and resumes it on `to`; with a handler that
    /// performs the same operation there before the thread continues. Returns the number of
    /// instructions.
    fn at_every_instruction(&self, to: Place, handled: bool) -> usize {
        let before = self.prepare();
        let done = self.done_at(&before, HERE);
        let changes = !self.is_same(&before, &done);
        let (mut behind, mut refused) = (0, 0);
        for number in 0..MANY {
            let Some(ran) = self.run(number, to, handled) else {
                assert!(refused >= 3, "the section has {refused} instructions");
                assert!(behind >= 1 || !changes, "nothing is behind the commit");
                return number;
            };
            let what = format!("{:?} {to:?} handled={handled} instruction {number}", self.source);
            let committed = self.is_same(&ran.then, &done);
            assert!(
                committed || self.is_same(&ran.then, &before),
                "{what}: changed before the commit"
            );
            assert!(ran.declared || !ran.inside, "{what}: in a section that is not declared");
            assert_eq!(ran.inside, ran.resumed == Resumed::AtThePad, "{what}: {:?}", ran.resumed);
            if changes {
                assert!(!(committed && ran.inside), "{what}: the section goes on");
                self.judge(&ran, &before, (to, handled, committed), &what);
            } else {
                self.assert_same(&ran.now, &before, &what);
            }
            refused += usize::from(ran.inside);
            behind += usize::from(committed);
        }
        panic!("no end after {MANY} instructions");
    }

    /// Performs one run, and after a refusal another try.
    fn run(&self, number: usize, to: Place, handled: bool) -> Option<Ran> {
        let mut then = self.prepare();
        let (mut result, mut resumed) = (None, Resumed::There);
        let (mut inside, mut declared) = (false, false);
        let stopped =
            stepping::run(self.section, &mut || result = self.call(), number, &mut |stop| {
                then = self.world.read();
                let section = descriptors::at(stop.place());
                inside = section.is_some();
                declared = section
                    .is_some_and(|it| std::ptr::from_ref(it).addr() == self.world.declaration());
                self.world.put(to, self.source);
                resumed = kernel::preempt(stop, self.world);
                if handled {
                    self.call();
                }
            });
        let now = self.world.read();
        stopped.then_some(Ran { result, then, now, resumed, inside, declared })
    }

    /// Checks a run. A thread that was resumed at the pad has done nothing, and does everything
    /// when it tries again; any other has done it, on the CPU where it was at the commit.
    fn judge(
        &self,
        ran: &Ran,
        before: &Shards,
        (to, handled, committed): (Place, bool, bool),
        what: &str,
    ) {
        let mut expected = Box::new(*before);
        let mut result = None;
        if committed {
            result = self.model(&mut expected, HERE.slot);
        }
        if handled {
            self.model(&mut expected, to.slot);
        }
        if !committed && !ran.inside {
            result = self.model(&mut expected, to.slot);
        }
        assert_eq!(ran.result, result, "{what}: the result");
        self.assert_same(&ran.now, &expected, what);
        if ran.inside {
            let again = self.call();
            assert_eq!(again, self.model(&mut expected, to.slot), "{what}: the next try");
            self.assert_same(&self.world.read(), &expected, what);
        }
    }

    fn done_at(&self, before: &Shards, place: Place) -> Box<Shards> {
        let mut done = Box::new(*before);
        self.model(&mut done, place.slot);
        done
    }

    fn model(&self, shards: &mut Shards, slot: usize) -> Option<u64> {
        let result = self.operation.model(&mut shards[slot]);
        let address = self.world.shard(0).addr() + (slot << SHIFT);
        self.operation.result_in(result, address)
    }

    fn meaning(&self, shards: &Shards) -> Box<Shards> {
        let mut shards = Box::new(*shards);
        shards.iter_mut().for_each(|shard: &mut Shard| self.operation.forget_free_parts(shard));
        shards
    }

    fn is_same(&self, one: &Shards, other: &Shards) -> bool {
        self.meaning(one) == self.meaning(other)
    }

    fn assert_same(&self, found: &Shards, expected: &Shards, what: &str) {
        let (found, expected) = (self.meaning(found), self.meaning(expected));
        for (slot, (found, expected)) in found.iter().zip(expected.iter()).enumerate() {
            for (word, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert_eq!(found, expected, "{what}: slot {slot}, word {word}");
            }
        }
    }
}
