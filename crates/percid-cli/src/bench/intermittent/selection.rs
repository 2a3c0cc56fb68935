//! Selection of the CPUs to measure, by this machine's topology and the process's affinity.

use std::collections::BTreeSet;
use std::fmt;

use percid::machine::Cpu;
use percid_command::exit::Failure;
use serde::Serialize;

use crate::cli::CpusChoice;

/// The selected CPUs: the object `selection` of the JSON document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Selection {
    /// The requested name; `all` by default.
    pub(crate) name: String,
    /// Number of cores or hardware threads, and of the L3 caches that they use, in the form of
    /// published tables: `8-core/1-L3`.
    pub(crate) shape: String,
    /// The kernel's CPU numbers, in ascending order.
    pub(crate) cpus: Vec<u32>,
    /// A description of what this machine lacks for it.
    pub(crate) lacks: Option<String>,
    /// The first published part that selects the same CPUs here, if it is another one.
    pub(crate) same_as: Option<String>,
}

impl Selection {
    /// Selects the requested CPUs among the allowed ones of `machine`.
    pub(crate) fn new(choice: Option<&CpusChoice>, machine: &[Cpu]) -> Result<Self, Failure> {
        let allowed: Vec<&Cpu> = machine.iter().filter(|cpu| cpu.allowed).collect();
        let Some(choice) = choice else {
            let all = allowed.iter().map(|cpu| cpu.number).collect();
            return Ok(Selection::of("all", all, &allowed, None));
        };
        if let CpusChoice::List(list) = choice {
            expect_allowed(list, &allowed)?;
        }
        Ok(Selection::named(choice, &allowed))
    }

    /// Returns the four parts with published results, as far as this machine has them.
    pub(crate) fn published(machine: &[Cpu]) -> Vec<Selection> {
        let allowed: Vec<&Cpu> = machine.iter().filter(|cpu| cpu.allowed).collect();
        CpusChoice::PUBLISHED.iter().map(|choice| Selection::named(choice, &allowed)).collect()
    }

    fn named(choice: &CpusChoice, allowed: &[&Cpu]) -> Selection {
        let cpus = chosen(choice, allowed);
        let mut earlier = CpusChoice::PUBLISHED.iter().take_while(|one| *one != choice);
        let same_as = earlier.find(|one| chosen(one, allowed) == cpus);
        Selection::of(&choice.to_string(), cpus, allowed, same_as)
    }

    fn of(name: &str, cpus: Vec<u32>, allowed: &[&Cpu], same_as: Option<&CpusChoice>) -> Self {
        let is_in = |cpu: &&&Cpu| cpus.contains(&cpu.number);
        let chosen: Vec<&Cpu> = allowed.iter().filter(is_in).copied().collect();
        let is_named = matches!(name, "one-l3" | "one-per-l3" | "cores" | "threads");
        Selection {
            name: name.to_owned(),
            shape: shape(&chosen),
            lacks: (is_named && cpus.len() < 2).then(|| lacking(name, allowed)),
            same_as: same_as.map(ToString::to_string),
            cpus,
        }
    }

    /// Returns the CPUs in the kernel's list format.
    pub(crate) fn list(&self) -> String {
        self.cpus.iter().copied().collect::<percid::machine::CpuSet>().to_string()
    }
}

/// Formats the selection as one line.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selection { name, shape, lacks, same_as, .. } = self;
        write!(f, "{name}: {shape}, CPUs {}", self.list())?;
        if let Some(same_as) = same_as {
            write!(f, ", the same as {same_as}")?;
        }
        lacks.as_ref().map_or(Ok(()), |lacks| write!(f, "; {lacks}"))
    }
}

fn expect_allowed(list: &[u32], allowed: &[&Cpu]) -> Result<(), Failure> {
    let set: percid::machine::CpuSet = allowed.iter().map(|cpu| cpu.number).collect();
    match list.iter().find(|&&cpu| !set.contains(cpu)) {
        Some(cpu) => Err(Failure::Usage(format!(
            "--cpus: CPU {cpu} is none of those that this process may use: {set}"
        ))),
        None => Ok(()),
    }
}

/// Returns the selected CPUs, in ascending order.
fn chosen(choice: &CpusChoice, allowed: &[&Cpu]) -> Vec<u32> {
    match choice {
        CpusChoice::OneL3 => one_of_each(&behind(fullest(allowed), allowed), core),
        CpusChoice::OnePerL3 => one_of_each(allowed, l3),
        CpusChoice::Cores => one_of_each(allowed, core),
        CpusChoice::Threads => allowed.iter().map(|cpu| cpu.number).collect(),
        CpusChoice::List(list) => list.clone(),
    }
}

/// Returns the CPU's core. A CPU without a known core counts as a separate core.
fn core(cpu: &Cpu) -> u32 {
    cpu.core.unwrap_or(cpu.number)
}

/// Returns the CPU's last-level cache. If the kernel reports none, there is one for all.
fn l3(cpu: &Cpu) -> u32 {
    cpu.l3.unwrap_or(0)
}

/// Returns the last-level cache with the most allowed cores; the first one on a tie.
fn fullest(allowed: &[&Cpu]) -> u32 {
    let caches: BTreeSet<u32> = allowed.iter().map(|cpu| l3(cpu)).collect();
    let cores = |cache: &u32| one_of_each(&behind(*cache, allowed), core).len();
    caches.into_iter().rev().max_by_key(cores).unwrap_or(0)
}

fn behind<'a>(cache: u32, allowed: &[&'a Cpu]) -> Vec<&'a Cpu> {
    allowed.iter().filter(|cpu| l3(cpu) == cache).copied().collect()
}

/// Returns the first CPU of each group.
fn one_of_each(cpus: &[&Cpu], of: fn(&Cpu) -> u32) -> Vec<u32> {
    let mut met = BTreeSet::new();
    cpus.iter().filter(|cpu| met.insert(of(cpu))).map(|cpu| cpu.number).collect()
}

fn shape(chosen: &[&Cpu]) -> String {
    let cores = one_of_each(chosen, core).len();
    let l3s = one_of_each(chosen, l3).len();
    let unit = if cores == chosen.len() { "core" } else { "thread" };
    format!("{}-{unit}/{l3s}-L3", chosen.len())
}

/// Returns the reason why there is a single CPU.
fn lacking(name: &str, allowed: &[&Cpu]) -> String {
    let has = match (name, allowed.len()) {
        (_, 1) => "one CPU is allowed",
        ("one-per-l3", _) if allowed.iter().all(|cpu| cpu.l3.is_none()) => {
            "the kernel names no L3 cache, so all CPUs count as behind one"
        }
        ("one-per-l3", _) => "one L3 cache among the allowed CPUs",
        ("one-l3", _) => "one core behind each L3 cache among the allowed CPUs",
        _ => "one core among the allowed CPUs",
    };
    format!("{has}: {name} is one CPU, whose thread takes turns with no other")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns CPUs with their cores and last-level caches; all except `forbidden` are allowed.
    fn machine(places: &[(u32, u32)], forbidden: &[u32]) -> Vec<Cpu> {
        let cpu = |(number, &(core, l3)): (usize, &(u32, u32))| {
            let mut cpu = percid::machine::read().cpus[0];
            cpu.number = number as u32;
            (cpu.core, cpu.l3) = (Some(core), Some(l3));
            cpu.allowed = !forbidden.contains(&cpu.number);
            cpu
        };
        places.iter().enumerate().map(cpu).collect()
    }

    /// Two last-level caches of two cores with two threads each, numbered cores first.
    const SMALL: [(u32, u32); 8] = [(0, 0), (1, 0), (2, 2), (3, 2), (0, 0), (1, 0), (2, 2), (3, 2)];

    fn cpus(machine: &[Cpu]) -> Vec<Vec<u32>> {
        Selection::published(machine).into_iter().map(|part| part.cpus).collect()
    }

    #[test]
    fn the_published_parts_follow_the_topology() {
        let machine = machine(&SMALL, &[]);
        let all = (0..8).collect();
        assert_eq!(cpus(&machine), [vec![0, 1], vec![0, 2], vec![0, 1, 2, 3], all]);
        let parts = Selection::published(&machine);
        let shapes: Vec<&str> = parts.iter().map(|part| part.shape.as_str()).collect();
        assert_eq!(shapes, ["2-core/1-L3", "2-core/2-L3", "4-core/2-L3", "8-thread/2-L3"]);
        assert!(parts.iter().all(|part| part.lacks.is_none() && part.same_as.is_none()));
    }

    #[test]
    fn the_affinity_counts() {
        // The first cache has lost a core, and of CPU 2's core only its sibling is allowed.
        let machine = machine(&SMALL, &[0, 4, 2]);
        assert_eq!(cpus(&machine), [vec![3, 6], vec![1, 3], vec![1, 3, 6], vec![1, 3, 5, 6, 7]]);
    }

    #[test]
    fn what_is_lacking_and_what_is_the_same_is_said() {
        let parts = Selection::published(&machine(&[(0, 0), (1, 0)], &[]));
        let same: Vec<Option<&str>> = parts.iter().map(|part| part.same_as.as_deref()).collect();
        assert_eq!(same, [None, None, Some("one-l3"), Some("one-l3")]);
        assert!(parts[1].lacks.as_ref().is_some_and(|lacks| lacks.contains("one L3 cache")));
        assert!(parts[0].lacks.is_none());
        assert_eq!(parts[2].to_string(), "cores: 2-core/1-L3, CPUs 0-1, the same as one-l3");
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_refused() {
        let machine = machine(&SMALL, &[5]);
        let select =
            |list: &[u32]| Selection::new(Some(&CpusChoice::List(list.to_vec())), &machine);
        assert_eq!(select(&[4, 6]).expect("both are allowed").shape, "2-core/2-L3");
        for wrong in [[4, 5], [4, 8]] {
            let refused = select(&wrong).expect_err("it is not allowed").to_string();
            assert!(refused.contains(&format!("CPU {}", wrong[1])), "{refused}");
        }
    }
}
