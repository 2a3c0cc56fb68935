//! The indices that select the area of a burst.

use std::fmt;

use percid::Source;

use crate::bench::cpu;
use crate::cli::IndexChoice;

/// The indices compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    Cpu,
    Kernel,
    Table,
    Thread,
    ForcedRemote,
}

/// The current turn, for the indices that depend on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// The thread's number and the number of threads.
    pub(crate) thread: u32,
    pub(crate) threads: u32,
    /// The number of the thread's turn, from 0.
    pub(crate) burst: u64,
}

impl Index {
    pub(crate) const ALL: [Index; 5] =
        [Index::Cpu, Index::Kernel, Index::Table, Index::Thread, Index::ForcedRemote];

    /// Returns the requested indices, or all.
    pub(crate) fn asked(choices: &[IndexChoice]) -> Vec<Index> {
        let is_asked = |index: &Index| choices.is_empty() || choices.contains(&index.choice());
        Index::ALL.into_iter().filter(is_asked).collect()
    }

    fn choice(self) -> IndexChoice {
        match self {
            Index::Cpu => IndexChoice::Cpu,
            Index::Kernel => IndexChoice::Kernel,
            Index::Table => IndexChoice::Table,
            Index::Thread => IndexChoice::Thread,
            Index::ForcedRemote => IndexChoice::ForcedRemote,
        }
    }

    /// Returns the source that it needs.
    pub(crate) fn source(self) -> Option<Source> {
        match self {
            Index::Kernel => Some(Source::Kernel),
            Index::Table => Some(Source::Table),
            Index::Cpu | Index::Thread | Index::ForcedRemote => None,
        }
    }

    /// Returns the current index of the calling thread.
    pub(crate) fn select(self, turn: Turn) -> Option<u32> {
        match self {
            Index::Cpu => cpu::this_cpu(),
            Index::Kernel | Index::Table => self.source()?.current_id(),
            Index::Thread => Some(turn.thread),
            // Another thread, on another CPU, used this area last, unless there is only one thread.
            Index::ForcedRemote => {
                Some(((u64::from(turn.thread) + turn.burst) % u64::from(turn.threads)) as u32)
            }
        }
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Index::Cpu => "cpu",
            Index::Kernel => "kernel",
            Index::Table => "table",
            Index::Thread => "thread",
            Index::ForcedRemote => "forced-remote",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forced_remote_moves_to_anothers_area_with_every_burst() {
        let select = |thread, burst| Index::ForcedRemote.select(Turn { thread, threads: 3, burst });
        assert_eq!(
            [0, 1, 2, 3].map(|burst| select(1, burst)),
            [Some(1), Some(2), Some(0), Some(1)]
        );
    }
}
