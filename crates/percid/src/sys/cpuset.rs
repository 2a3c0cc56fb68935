//! Sets of CPU numbers, and the kernel's notation for them.

use std::fmt;

use super::MAX_CPUS;

const WORDS: usize = MAX_CPUS / 64;

/// A set of CPU numbers below 8192. One kibibyte, no allocation.
///
/// ```
/// use percid::machine::CpuSet;
///
/// let cpus: CpuSet = [0, 1, 2, 8].into_iter().collect();
/// assert_eq!(cpus.to_string(), "0-2,8");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CpuSet {
    words: [u64; WORDS],
}

impl CpuSet {
    /// Creates an empty set.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// assert!(CpuSet::new().is_empty());
    /// ```
    #[must_use]
    pub const fn new() -> CpuSet {
        CpuSet { words: [0; WORDS] }
    }

    /// Returns the number of CPUs in the set.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// assert_eq!(CpuSet::from_iter([3, 5, 5]).len(), 2);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns `true` if the set is empty.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// assert!(!CpuSet::from_iter([3]).is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Returns `true` if the set contains `cpu`; `false` for numbers beyond its range.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// let cpus = CpuSet::from_iter([3]);
    /// assert!(cpus.contains(3) && !cpus.contains(4));
    /// ```
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Returns the members in ascending order.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// assert_eq!(CpuSet::from_iter([5, 3]).iter().collect::<Vec<_>>(), [3, 5]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MAX_CPUS as u32).filter(|&cpu| self.contains(cpu))
    }

    /// Returns the largest member.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// assert_eq!(CpuSet::from_iter([3, 700]).last(), Some(700));
    /// ```
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        let word = self.words.iter().rposition(|&word| word != 0)?;
        Some(word as u32 * 64 + 63 - self.words[word].leading_zeros())
    }

    /// Adds `cpu`. Numbers beyond the range are ignored; no kernel has them.
    ///
    /// ```
    /// use percid::machine::CpuSet;
    ///
    /// let mut cpus = CpuSet::new();
    /// cpus.insert(9);
    /// assert!(cpus.contains(9));
    /// ```
    pub fn insert(&mut self, cpu: u32) {
        if let Some(word) = self.words.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// Reads the kernel's list notation, such as `0-3,8`; `None` if the text is anything else.
    pub(crate) fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        for range in list.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if last as usize >= MAX_CPUS || first > last {
                return None;
            }
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Some(set)
    }
}

/// The accesses for the words that the kernel reads and writes.
#[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
impl CpuSet {
    /// Returns the set as the words that the kernel uses: bit `b` of word `w` is CPU `64 w + b`.
    pub(crate) fn words_mut(&mut self) -> &mut [u64; WORDS] {
        &mut self.words
    }

    /// Adds every member of `other`.
    pub(crate) fn add_all(&mut self, other: &CpuSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }
}

impl Default for CpuSet {
    fn default() -> Self {
        CpuSet::new()
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        cpus.into_iter().for_each(|cpu| self.insert(cpu));
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::new();
        set.extend(cpus);
        set
    }
}

impl fmt::Display for CpuSet {
    /// Writes the kernel's list notation, such as `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.peek() == Some(&(last + 1)) {
                last = cpus.next().unwrap_or(last);
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::CpuSet;

    #[test]
    fn notation_survives_a_round_trip() {
        for list in ["", "0", "0-3", "0-3,8", "1,3,5", "63-64", "8191"] {
            let set = CpuSet::parse(list).expect(list);
            assert_eq!(set.to_string(), list);
        }
        assert_eq!(CpuSet::parse("0-3,8\n").map(|set| set.len()), Some(5));
    }

    #[test]
    fn nonsense_is_refused() {
        for list in ["x", "3-1", "0-8192", "1-", "-", "1 2"] {
            assert_eq!(CpuSet::parse(list), None, "{list:?}");
        }
    }

    #[test]
    fn empty_parts_of_a_list_say_nothing() {
        assert_eq!(CpuSet::parse("0,,3,").map(|set| set.to_string()).as_deref(), Some("0,3"));
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
    #[test]
    fn sets_are_joined_and_counted() {
        let mut set = CpuSet::from_iter([1, 70]);
        set.add_all(&CpuSet::from_iter([1, 8191]));
        assert_eq!(set, CpuSet::from_iter([1, 70, 8191]));
        assert_eq!((set.len(), set.is_empty()), (3, false));
        set.extend([2, 8192, u32::MAX]);
        assert_eq!(format!("{set:?}"), "CpuSet(1-2,70,8191)");
        assert_eq!((CpuSet::default().len(), CpuSet::default().is_empty()), (0, true));
    }

    #[cfg(all(target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
    #[test]
    fn words_are_the_kernels() {
        let mut set = CpuSet::new();
        (set.words_mut()[0], set.words_mut()[2]) = (0b101, 1 << 63);
        assert_eq!(set, CpuSet::from_iter([0, 2, 191]));
    }

    #[test]
    fn members() {
        let set: CpuSet = [0, 64, 200].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 200]);
        assert_eq!(set.last(), Some(200));
        assert!(!set.contains(1) && !set.contains(u32::MAX));
        assert_eq!(CpuSet::new().last(), None);
    }
}
