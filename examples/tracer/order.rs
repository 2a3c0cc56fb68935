//! Puts the events of every thread in order.
//!
//! A thread that moves to another CPU goes on in another ID's ring, so a poll may deliver the newer
//! events of a thread and leave the older ones to the next poll. An event must be held back until
//! nothing older of its thread can come. A thread reads the clock for an event after it has
//! appended the one before. So if the time of an event lies before the begin of a poll, everything
//! older of its thread had been appended by then, and that poll delivers it at the latest. Hence:
//! **events older than the begin of a poll may be written when that poll has ended.** We use the
//! poll before, since the clocks of two CPUs, and their views of each other's memory, may differ by
//! some nanoseconds.
//!
//! Between threads that is not strict: one that is preempted between its look at the clock and the
//! append delivers its event late. Viewers sort.

use crate::event::Event;

/// Events that were delivered and not written.
#[derive(Debug, Default)]
pub(crate) struct Order {
    held: Vec<Event>,
    /// Time at which the poll before began.
    before: u64,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order::default()
    }

    /// Takes in what a poll delivers.
    pub(crate) fn add(&mut self, event: Event) {
        self.held.push(event);
    }

    /// Ends a poll that began at this time: appends the events that may be written now.
    pub(crate) fn complete(&mut self, poll_began: u64, out: &mut Vec<Event>) {
        let before = std::mem::replace(&mut self.before, poll_began);
        self.sort();
        let count = self.held.partition_point(|event| event.time < before);
        out.extend(self.held.drain(..count));
    }

    /// Appends the rest, after the last thread has ended.
    pub(crate) fn finish(&mut self, out: &mut Vec<Event>) {
        self.sort();
        out.append(&mut self.held);
    }

    fn sort(&mut self) {
        self.held.sort_unstable_by_key(|event| (event.time, event.thread, event.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Name, Phase};

    const THREADS: usize = 3;
    const IDS: usize = 3;

    /// Threads that look at the clock, append and move between IDs, and a consumer that goes round
    /// the IDs, one step of one of them at a time.
    #[derive(Default)]
    struct Simulation {
        random: u64,
        now: u64,
        rings: [Vec<Event>; IDS],
        /// For each thread: its ID, its number of events, and the time of the one that it will
        /// append.
        threads: [(usize, u64, Option<u64>); THREADS],
        /// The begin of the poll and the next ID that it comes to.
        poll: (u64, usize),
        order: Order,
        out: Vec<Event>,
    }

    impl Simulation {
        /// Returns `true` if all events of every thread were written in order. With `hold`, events
        /// are held back.
        fn run(seed: u64, hold: bool) -> bool {
            let mut it = Simulation { random: seed, ..Simulation::default() };
            for _ in 0..400 {
                it.now += 1;
                match it.below(2) {
                    0 => it.consumer_step(hold),
                    _ => it.thread_step(),
                }
            }
            it.rings
                .iter_mut()
                .flat_map(|ring| ring.drain(..))
                .for_each(|event| it.order.add(event));
            it.order.finish(&mut it.out);
            (0..THREADS).all(|thread| {
                let own = it.out.iter().filter(|event| usize::from(event.thread) == thread);
                own.map(|event| event.number).eq(0..it.threads[thread].1)
            })
        }

        fn thread_step(&mut self) {
            let thread = self.below(THREADS);
            let step = self.below(3);
            let other = self.below(IDS);
            let (id, number, time) = &mut self.threads[thread];
            match (step, *time) {
                (0, _) => *id = other,
                (_, None) => *time = Some(self.now),
                (_, Some(begun)) => {
                    self.rings[*id].push(event(begun, *number, thread));
                    (*number, *time) = (*number + 1, None);
                }
            }
        }

        fn consumer_step(&mut self, hold: bool) {
            let (began, id) = &mut self.poll;
            if *id == 0 {
                *began = self.now;
            }
            self.rings[*id].drain(..).for_each(|event| self.order.add(event));
            *id = (*id + 1) % IDS;
            match (*id, hold) {
                (0, true) => self.order.complete(*began, &mut self.out),
                (0, false) => self.order.finish(&mut self.out),
                _ => {}
            }
        }

        fn below(&mut self, bound: usize) -> usize {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            (self.random >> 11) as usize % bound
        }
    }

    fn event(time: u64, number: u64, thread: usize) -> Event {
        let (thread, name, phase) = (thread as u16, Name::Task, Phase::Begin);
        Event { time, number, age: 0, task: 0, thread, depth: 0, name, phase }
    }

    #[test]
    fn the_events_of_every_thread_are_in_order() {
        assert!((1..2000).all(|seed| Simulation::run(seed, true)));
    }

    /// The negative control: without holding back they are not.
    #[test]
    fn events_that_are_not_held_back_are_not_in_order() {
        assert!((1..2000).any(|seed| !Simulation::run(seed, false)));
    }

    #[test]
    fn events_do_not_wait_longer_than_a_poll() {
        let mut order = Order::new();
        let mut out = Vec::new();
        order.add(event(5, 0, 0));
        order.complete(10, &mut out);
        order.add(event(12, 1, 0));
        order.complete(20, &mut out);
        assert_eq!(out.iter().map(|event| event.time).collect::<Vec<_>>(), [5]);
        order.complete(30, &mut out);
        assert_eq!(out.iter().map(|event| event.time).collect::<Vec<_>>(), [5, 12]);
    }
}
