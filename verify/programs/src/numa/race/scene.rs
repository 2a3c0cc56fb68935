//! The access of the threads of a race to their memory: the pages that each uses, by stage.

use std::ops::Range;
use std::str::FromStr;

/// Work on memory of its own, in one or more stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Each thread was the first to use its slice: nothing must be moved.
    FirstTouch,
    /// All memory is on one node, and each thread uses a slice of its own; then they swap.
    Slices,
    /// Each thread uses a quarter of its slice, then half, then all.
    Growing,
    /// All threads use everything.
    Shared,
    /// All threads use the first half; of the other each uses a slice of its own.
    Mixed,
}

/// A part of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// It lasts until its memory is placed, or for the whole time.
    pub(super) ends_when_placed: bool,
}

impl Scene {
    pub(crate) const ALL: [Scene; 5] =
        [Scene::FirstTouch, Scene::Slices, Scene::Growing, Scene::Shared, Scene::Mixed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scene::FirstTouch => "first-touch",
            Scene::Slices => "slices",
            Scene::Growing => "growing",
            Scene::Shared => "shared",
            Scene::Mixed => "mixed",
        }
    }

    pub(super) fn stages(self) -> &'static [Stage] {
        const fn placing(name: &'static str) -> Stage {
            Stage { name, ends_when_placed: true }
        }
        const fn lasting(name: &'static str) -> Stage {
            Stage { name, ends_when_placed: false }
        }
        match self {
            Scene::FirstTouch => const { &[lasting("first-touch")] },
            Scene::Slices => const { &[placing("slices"), placing("swap")] },
            Scene::Growing => const { &[placing("quarter"), placing("half"), placing("whole")] },
            Scene::Shared => const { &[lasting("shared")] },
            Scene::Mixed => const { &[placing("mixed"), lasting("mixed-after")] },
        }
    }

    /// Returns the private pages of a thread that it uses in a stage.
    pub(super) fn own(
        self,
        stage: usize,
        thread: usize,
        threads: usize,
        pages: usize,
    ) -> Range<usize> {
        let slice = |whole: Range<usize>, number: usize| {
            let each = whole.len() / threads;
            whole.start + number * each..whole.start + (number + 1) * each
        };
        match self {
            Scene::FirstTouch => slice(0..pages, thread),
            Scene::Slices => slice(0..pages, (thread + stage * threads / 2) % threads),
            Scene::Growing => {
                let all = slice(0..pages, thread);
                all.start..all.start + (all.len() >> (2 - stage))
            }
            Scene::Shared => 0..0,
            Scene::Mixed => slice(pages / 2..pages, thread),
        }
    }

    /// Returns the pages that all threads use.
    pub(super) fn common(self, pages: usize) -> Range<usize> {
        match self {
            Scene::Shared => 0..pages,
            Scene::Mixed => 0..pages / 2,
            _ => 0..0,
        }
    }
}

impl FromStr for Scene {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Scene, &'static str> {
        let found = Scene::ALL.into_iter().find(|scene| scene.name() == text);
        found.ok_or("expected scenes of first-touch, slices, growing, shared, mixed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_disjoint_and_cover_everything_and_a_swap_leaves_nobody_in_place() {
        let of = |stage| -> Vec<_> {
            (0..8).map(|thread| Scene::Slices.own(stage, thread, 8, 4096)).collect()
        };
        let (before, after) = (of(0), of(1));
        assert!(before.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((before[0].start, before[7].end), (0, 4096));
        assert!(before.iter().zip(&after).all(|(one, other)| one != other));
    }

    #[test]
    fn growing_ends_with_the_whole_slice() {
        let sizes: Vec<_> =
            (0..3).map(|stage| Scene::Growing.own(stage, 1, 4, 4096).len()).collect();
        assert_eq!(sizes, [256, 512, 1024]);
    }

    #[test]
    fn mixed_memory_is_either_common_or_own() {
        let own = (0..4).map(|thread| Scene::Mixed.own(0, thread, 4, 4096));
        assert_eq!(
            own.map(|range| range.len()).sum::<usize>() + Scene::Mixed.common(4096).len(),
            4096
        );
    }
}
