//! The current and the last turns of each CPU.

use super::turn::{Turn, Who};
use crate::event::Cpu;

/// The last turns of each CPU: so many that a wait which saw more is rare, and so few that what looks
/// at them is not slow, however long a wait was.
#[derive(Debug, Default)]
pub(super) struct RecentTurns {
    rings: Vec<Ring>,
}

/// Number of turns that are kept for each CPU.
pub(super) const MAX_TURNS: usize = 64;

/// The current turn of a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Current {
    pub(super) who: Who,
    /// Time at which it began.
    pub(super) since: u64,
}

#[derive(Debug, Default)]
struct Ring {
    /// The current turn, if it is known.
    current: Option<Current>,
    turns: Vec<Turn>,
    /// Index at which the next turn is stored, once the buffer is full.
    next: usize,
}

impl RecentTurns {
    /// Returns what a CPU runs; `None` if that is not known yet.
    pub(super) fn current(&self, cpu: Cpu) -> Option<Current> {
        self.rings.get(cpu as usize)?.current
    }

    /// Returns the number of CPUs seen so far.
    pub(super) fn cpus(&self) -> Cpu {
        self.rings.len() as Cpu
    }

    /// Notes that a CPU begins to run something else; `before` is the ended turn, if it is known.
    pub(super) fn switch(&mut self, cpu: Cpu, before: Option<Turn>, current: Current) {
        let place = cpu as usize;
        if place >= self.rings.len() {
            self.rings.resize_with(place + 1, Ring::default);
        }
        let ring = &mut self.rings[place];
        ring.current = Some(current);
        let Some(turn) = before else { return };
        if ring.turns.len() < MAX_TURNS {
            ring.turns.push(turn);
        } else {
            ring.turns[ring.next] = turn;
            ring.next = (ring.next + 1) % MAX_TURNS;
        }
    }

    /// Returns what ran on a CPU between two times, and for how long in that period, the last turn
    /// first.
    pub(super) fn during(
        &self,
        cpu: Cpu,
        since: u64,
        until: u64,
    ) -> impl Iterator<Item = (Who, u64)> + '_ {
        let ring = self.rings.get(cpu as usize);
        let turns = ring.into_iter().flat_map(|ring| {
            let (newer, older) = ring.turns.split_at(ring.next.min(ring.turns.len()));
            newer.iter().rev().chain(older.iter().rev())
        });
        let current = self.current(cpu).map(|now| (now.who, now.since, u64::MAX));
        let before = turns.map(|turn| (turn.who, turn.since, turn.until));
        let all = current.into_iter().chain(before);
        all.take_while(move |turn| turn.2 > since).filter_map(move |(who, from, to)| {
            let ran = to.min(until).saturating_sub(from.max(since));
            (ran > 0).then_some((who, ran))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(number: u64) -> RecentTurns {
        let mut recent = RecentTurns::default();
        for n in 0..number {
            let who = Who::Thread(n as u32);
            let turn = Turn { who, cpu: 2, since: 10 * n, until: 10 * n + 10 };
            recent.switch(2, Some(turn), Current { who: Who::Idle, since: turn.until });
        }
        recent
    }

    #[test]
    fn who_ran_in_a_span_is_told_from_the_end() {
        let recent = turns(200);
        let found: Vec<(Who, u64)> = recent.during(2, 1973, 1995).collect();
        let expected = [(199, 5), (198, 10), (197, 7)].map(|(n, ns)| (Who::Thread(n), ns));
        assert_eq!(found, expected);
        assert_eq!(recent.during(3, 0, 2000).count(), 0, "another CPU");
        assert_eq!(recent.during(2, 0, 2000).count(), MAX_TURNS, "the older ones are forgotten");
        let five: Vec<(Who, u64)> = turns(5).during(2, 25, 2000).collect();
        let expected = [(Who::Idle, 1950), (Who::Thread(4), 10), (Who::Thread(3), 10)];
        assert_eq!(five[..3], expected, "what runs now goes on");
        assert_eq!(five.len(), 4);
    }
}
