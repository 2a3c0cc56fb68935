//! The suites: each does its work, prints nothing, and returns its summary line.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use percid::Source;
use percid_subject::Operation;

use crate::build::{self, PROBES, Product};
use crate::campaign::{self, Pairs};
use crate::elf::{self, Damage};
use crate::golden::{self, Compared, FUNCTIONS, Kind, PORTABLE_FUNCTIONS};
use crate::image::Image;
use crate::injection::Injection;
use crate::probe;
use crate::subject::Cpus;
use crate::tally::Tally;

/// A summary line if everything passed; otherwise the summary with the failures.
pub type Verdict = Result<String, String>;

/// Operations that must fail with these injections, which lack the fence.
const WITHOUT_FENCE: [(Operation, Injection); 11] = [
    (Operation::Reference, Injection::StealWithoutFence),
    (Operation::With, Injection::StealWithoutFence),
    (Operation::Push, Injection::StealWithoutFence),
    (Operation::Pop, Injection::StealWithoutFence),
    (Operation::Append, Injection::StealWithoutFence),
    (Operation::With, Injection::VisitWithoutFence),
    (Operation::Push, Injection::VisitWithoutFence),
    (Operation::Pop, Injection::VisitWithoutFence),
    (Operation::WordAdd, Injection::StealWithoutFence),
    (Operation::LinkPush, Injection::VisitWithoutFence),
    (Operation::LinkPop, Injection::VisitWithoutFence),
];

/// Functions that contain the checks of a debug build, of references: those builds have other code.
const CHECKED: [&str; 4] =
    ["percid_local_with", "percid_word_add", "percid_link_push", "percid_link_pop"];

/// Number of findings that are shown.
const SHOWN: usize = 10;

/// Interrupts every instruction that these operations of percid reach, with every source that this
/// machine has. If they are all operations, they must reach every instruction of every section.
pub fn instructions(program: &Path, cpus: Cpus, operations: &[Operation], pairs: Pairs) -> Verdict {
    let mut all = Tally::default();
    let mut sources = Vec::new();
    for source in [Source::Kernel, Source::Table] {
        if source.prepare().is_ok() {
            let source = source.to_string();
            all.add(campaign::run(program, cpus, &source, operations, pairs)?);
            sources.push(source);
        }
    }
    if sources.is_empty() {
        return Ok("skipped: this machine has no critical sections".to_owned());
    }
    // A source that is missing here leaves its sections unvisited.
    if sources.len() == 2 && operations == Operation::PERCID {
        let own = own_sections(program, cpus)?;
        for place in campaign::forgotten(program, &all, &own)? {
            all.violations.push(format!("no operation comes through {place}"));
        }
    }
    let line =
        format!("sources={} cpus={} {all}{}", sources.join("+"), cpus.count(), injections(&all));
    verdict(line, &all.violations)
}

/// Visits the sections of the subject's own: the suite of the controls tests them.
fn own_sections(program: &Path, cpus: Cpus) -> Result<Tally, String> {
    let operations: Vec<_> = Operation::SOUND.into_iter().chain(Operation::CONTROLS).collect();
    campaign::visit(program, cpus, "table", &operations)
}

fn injections(tally: &Tally) -> String {
    tally.by_injection.iter().fold(String::new(), |mut text, (injection, count)| {
        let _ = write!(text, " {injection:?}={count}");
        text
    })
}

fn verdict(line: String, violations: &[String]) -> Verdict {
    if violations.is_empty() {
        return Ok(line);
    }
    let shown = violations.iter().take(SHOWN).map(|violation| format!("\n  {violation}"));
    Err(line + &shown.collect::<String>())
}

/// Runs the harness on sections with one fault each, which it must find, and on one without, which
/// must pass.
pub fn controls(program: &Path, cpus: Cpus, pairs: Pairs) -> Verdict {
    // Any source: these operations use none.
    let run = |operation| campaign::run(program, cpus, "table", &[operation], pairs);
    for operation in Operation::SOUND {
        let sound = run(operation)?;
        if !sound.violations.is_empty() {
            return verdict(
                format!("{operation:?}, which has no fault: {sound}"),
                &sound.violations,
            );
        }
    }
    let mut found = BTreeMap::new();
    for operation in Operation::CONTROLS {
        // This fault shows itself only on a second CPU.
        if operation != Operation::IndexTooEarly || cpus.away.is_some() {
            found.insert(format!("{operation:?}"), run(operation)?.violations.len() as u64);
        }
    }
    let mut damaged = BTreeMap::new();
    if cpus.away.is_some() && Source::Table.prepare().is_ok() {
        for (operation, injection) in WITHOUT_FENCE {
            let tally = campaign::run_without_fence(program, cpus, operation, injection)?;
            damaged.insert(format!("{operation:?}/{injection:?}"), tally.wrong_effects);
        }
    }
    let figures = |found: &BTreeMap<String, u64>| {
        found.iter().map(|(name, count)| format!(" {name}={count}")).collect::<String>()
    };
    let (by_control, by_missing_fence) = (figures(&found), figures(&damaged));
    let line = format!(
        "violations found by control:{by_control}; damage without the fence:{by_missing_fence}"
    );
    if found.values().chain(damaged.values()).all(|&count| count > 0) {
        Ok(line)
    } else {
        Err(line)
    }
}

/// Checks the descriptors of every build, its program's sum, and spoiled copies.
pub fn descriptors() -> Verdict {
    let mut found = Descriptors::default();
    for build in PROBES {
        if !build.is_possible() {
            found.line += &format!(" {}=skipped(no target)", build.name);
            continue;
        }
        let run = match build.product {
            Product::Library => probe::run_library,
            _ => probe::run_program,
        };
        found.look_at(build.name, &build.make()?, run)?;
    }
    found.verdict()
}

/// Checks the descriptors of one program, its sum, and spoiled copies.
pub fn descriptors_of(program: &Path) -> Verdict {
    let mut found = Descriptors::default();
    found.look_at("program", program, probe::run_program)?;
    found.verdict()
}

/// Findings about descriptors.
#[derive(Default)]
struct Descriptors {
    line: String,
    damages: usize,
    faults: Vec<String>,
}

impl Descriptors {
    fn look_at(
        &mut self,
        name: &str,
        program: &Path,
        run: fn(&Path) -> Verdict,
    ) -> Result<(), String> {
        let image = &Image::read(program)?;
        self.line += &format!(" {name}={}", image.descriptors().len());
        let kinds = elf::kinds(image);
        if kinds != elf::KINDS {
            self.faults.push(format!("{name}: {kinds} kinds of sections, not {}", elf::KINDS));
        }
        self.faults.extend(elf::faults(image).iter().map(|fault| format!("{name}: {fault}")));
        self.faults.extend(run(program).err().map(|fault| format!("{name}: {fault}")));
        for damage in Damage::ALL {
            self.damages += 1;
            if elf::faults(&damage.inflict(image)?).is_empty() {
                self.faults.push(format!("{name}: {damage:?} was not noticed"));
            }
        }
        Ok(())
    }

    fn verdict(self) -> Verdict {
        let Descriptors { line, damages, faults, .. } = self;
        let figures = format!("damages_noticed={damages} faults={}", faults.len());
        verdict(format!("descriptors by build:{line} {figures}"), &faults)
    }
}

/// Compares the fast paths with the recorded ones: those of the subject, and those of the same
/// functions as on an architecture without critical sections.
pub fn fast_paths(program: &Path) -> Verdict {
    let images = [Image::read(program)?, Image::read(&build::PORTABLE.make()?)?];
    let sections = FUNCTIONS.into_iter().map(|name| (&images[0], Kind::Sections, name));
    let atomics = PORTABLE_FUNCTIONS.into_iter().map(|name| (&images[1], Kind::Portable, name));
    compare(sections.chain(atomics))
}

/// Compares the fast paths of a debug build, except for those in which the compiler checks more.
pub fn fast_paths_here(program: &Path) -> Verdict {
    let image = Image::read(program)?;
    let same = FUNCTIONS.into_iter().filter(|name| !CHECKED.contains(name));
    compare(same.map(|name| (&image, Kind::Sections, name)))
}

fn compare<'a>(functions: impl Iterator<Item = (&'a Image, Kind, &'a str)>) -> Verdict {
    let toolchain = build::toolchain()?;
    let mut line = format!("rustc={} llvm={}", toolchain.0, toolchain.1);
    let mut changed = Vec::new();
    for (image, kind, name) in functions {
        match golden::compare(image, kind, name, &toolchain) {
            Ok(Compared::Exactly) => line += &format!(" {name}=same"),
            Ok(Compared::ByLength) => line += &format!(" {name}=no-longer"),
            Ok(Compared::Blessed) => line += &format!(" {name}=written"),
            Err(difference) => changed.push(difference),
        }
    }
    verdict(line, &changed)
}
