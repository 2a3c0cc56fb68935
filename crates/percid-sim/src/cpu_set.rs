//! Sets of CPUs, stored as words of bits.

use crate::topology::Cpu;

/// A set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuSet {
    words: Vec<u64>,
}

impl CpuSet {
    /// Creates an empty set for a machine that has `cpus` CPUs.
    pub fn empty(cpus: u32) -> CpuSet {
        CpuSet { words: vec![0; cpus.div_ceil(64) as usize] }
    }

    /// Creates a set of these CPUs for a machine that has `cpus` CPUs.
    pub fn from_cpus(cpus: u32, members: impl IntoIterator<Item = Cpu>) -> CpuSet {
        let mut set = CpuSet::empty(cpus);
        members.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: Cpu) {
        self.words[cpu as usize / 64] |= 1 << (cpu % 64);
    }

    /// Removes a CPU.
    pub fn remove(&mut self, cpu: Cpu) {
        self.words[cpu as usize / 64] &= !(1 << (cpu % 64));
    }

    /// Returns `true` if a CPU is in the set.
    pub fn contains(&self, cpu: Cpu) -> bool {
        self.words[cpu as usize / 64] >> (cpu % 64) & 1 == 1
    }

    /// Returns the number of CPUs in the set.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns `true` if no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Returns the CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.common(self)
    }

    /// Returns the CPUs that are in this set and in the other one.
    pub fn common<'s>(&'s self, other: &'s CpuSet) -> impl Iterator<Item = Cpu> + 's {
        let words = self.words.iter().zip(&other.words);
        (0..).zip(words).flat_map(|(at, (word, other))| members(at, word & other))
    }

    /// Adds all members of another set.
    pub fn add_all(&mut self, other: &CpuSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }

    /// Returns the first CPU that is in this set and in both others.
    pub fn first_in_all(&self, a: &CpuSet, b: &CpuSet) -> Option<Cpu> {
        let words = self.words.iter().zip(&a.words).zip(&b.words);
        let mut common = words.map(|((word, a), b)| word & a & b).enumerate();
        let (at, word) = common.find(|(_, word)| *word != 0)?;
        Some(at as u32 * 64 + word.trailing_zeros())
    }

    /// Returns the first CPU that is in this set and in the other one.
    pub fn first_in_both(&self, other: &CpuSet) -> Option<Cpu> {
        self.first_in_all(other, other)
    }
}

/// A set that does not change, such as the CPUs of one cache. It stores only the words with
/// members, so lookups skip the rest of a large machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    words: Vec<(u32, u64)>,
}

impl Part {
    /// Creates a part with the members of a set.
    pub fn from_set(set: &CpuSet) -> Part {
        let words = (0..).zip(&set.words).filter(|(_, word)| **word != 0);
        Part { words: words.map(|(at, &word)| (at, word)).collect() }
    }

    /// Returns the first CPU that is in this part and in a set.
    pub fn first_in(&self, set: &CpuSet) -> Option<Cpu> {
        self.first(|at| set.words[at])
    }

    /// Returns the first CPU that is in this part and in both sets.
    pub fn first_in_both(&self, a: &CpuSet, b: &CpuSet) -> Option<Cpu> {
        self.first(|at| a.words[at] & b.words[at])
    }

    fn first(&self, others: impl Fn(usize) -> u64) -> Option<Cpu> {
        let mut common = self.words.iter().map(|&(at, word)| (at, word & others(at as usize)));
        let (at, word) = common.find(|(_, word)| *word != 0)?;
        Some(at * 64 + word.trailing_zeros())
    }

    /// Returns the CPUs that are in this part and in a set, in ascending order.
    pub fn common<'s>(&'s self, set: &'s CpuSet) -> impl Iterator<Item = Cpu> + 's {
        let words = self.words.iter().map(|&(at, word)| (at, word & set.words[at as usize]));
        words.flat_map(|(at, word)| members(at, word))
    }
}

/// Returns the CPUs of the word at index `at`.
fn members(at: u32, word: u64) -> impl Iterator<Item = Cpu> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = (left != 0).then(|| left.trailing_zeros())?;
        left &= left - 1;
        Some(at * 64 + bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_common_cpu_may_be_in_any_word() {
        let a = CpuSet::from_cpus(200, [3, 64, 199]);
        let b = CpuSet::from_cpus(200, [4, 64, 199]);
        let c = CpuSet::from_cpus(200, [3, 4, 199]);
        assert_eq!(a.first_in_both(&b), Some(64));
        assert_eq!(a.first_in_all(&b, &c), Some(199));
        assert_eq!(a.first_in_both(&CpuSet::empty(200)), None);
        assert_eq!(a.iter().collect::<Vec<_>>(), [3, 64, 199]);
        assert_eq!(a.len(), 3);
    }

    #[test]
    fn a_part_answers_as_the_set_that_it_was_made_of() {
        let set = CpuSet::from_cpus(1000, [70, 71, 600, 999]);
        let part = Part::from_set(&set);
        assert_eq!(part.words.len(), 3);
        for other in [CpuSet::from_cpus(1000, [3, 71, 600]), CpuSet::from_cpus(1000, 72..600)] {
            assert_eq!(part.first_in(&other), set.first_in_both(&other));
            assert_eq!(
                part.common(&other).collect::<Vec<_>>(),
                set.common(&other).collect::<Vec<_>>()
            );
            let both = CpuSet::from_cpus(1000, 100..700);
            assert_eq!(part.first_in_both(&other, &both), set.first_in_all(&other, &both));
        }
    }
}
