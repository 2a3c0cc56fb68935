//! Selection of the address spaces of a replay that are kept. A trace of a large build has
//! millions, nearly all with few turns.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::outcome::SpaceReplay;
use super::space::SpaceNumber;

/// The address spaces with most turns. The selection does not depend on the policy.
pub(super) struct TopSpaces {
    most: usize,
    /// The one with fewest turns on top.
    spaces: BinaryHeap<Reverse<ByTurns>>,
    pub(super) left_out: u64,
}

impl TopSpaces {
    /// Keeps `most` of them.
    pub(super) fn new(most: usize) -> TopSpaces {
        TopSpaces { most, spaces: BinaryHeap::new(), left_out: 0 }
    }

    /// Takes in one; costs the logarithm of those that are kept.
    pub(super) fn take(&mut self, space: SpaceReplay) {
        self.spaces.push(Reverse(ByTurns(space)));
        if self.spaces.len() > self.most {
            self.spaces.pop();
            self.left_out += 1;
        }
    }

    /// Returns the spaces that were kept, in the order of their numbers.
    pub(super) fn into_spaces(self) -> Vec<SpaceReplay> {
        let mut spaces: Vec<SpaceReplay> =
            self.spaces.into_iter().map(|Reverse(ByTurns(space))| space).collect();
        spaces.sort_by_key(|space| space.number);
        spaces
    }
}

/// An address space in the order of its turns; of two with the same number the earlier one is the
/// larger.
struct ByTurns(SpaceReplay);

impl ByTurns {
    fn key(&self) -> (u64, Reverse<SpaceNumber>) {
        (self.0.summary.turns, Reverse(self.0.number))
    }
}

impl PartialEq for ByTurns {
    fn eq(&self, other: &ByTurns) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ByTurns {}

impl PartialOrd for ByTurns {
    fn partial_cmp(&self, other: &ByTurns) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByTurns {
    fn cmp(&self, other: &ByTurns) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::SpaceSummary;
    use super::*;

    #[test]
    fn those_with_most_turns_are_kept_and_the_earlier_of_equals() {
        let mut spaces = TopSpaces::new(3);
        for (number, turns) in [(0, 5), (1, 9), (2, 5), (3, 5), (4, 7), (5, 1)] {
            let summary = SpaceSummary { turns, ..SpaceSummary::default() };
            spaces.take(SpaceReplay { number, summary, ..SpaceReplay::default() });
        }
        assert_eq!(spaces.left_out, 3);
        let numbers: Vec<_> = spaces.into_spaces().iter().map(|space| space.number).collect();
        assert_eq!(numbers, [0, 1, 4]);
    }
}
