//! A published report: a reader that finds the same even count before and after has read one whole.

use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, SeqCst},
    fence,
};
use loom::thread;

use crate::exchange::Exchange;
use crate::explore;

/// A report of two words, both of which are its length.
struct Report {
    exchange: Exchange,
    words: [AtomicU64; 2],
}

impl Report {
    fn new() -> Arc<Report> {
        let exchange = Exchange {
            requests: AtomicU32::new(0),
            answers: AtomicU32::new(0),
            length: AtomicU64::new(0),
        };
        Arc::new(Report { exchange, words: [AtomicU64::new(0), AtomicU64::new(0)] })
    }

    fn answer(&self, answers: &mut u32) {
        let length = u64::from(*answers) + 10;
        self.exchange.answer(answers, || {
            self.words.iter().for_each(|word| word.store(length, Relaxed));
            length
        });
    }

    /// Returns the length that belongs to a count and the words that were read, unless they may be
    /// torn.
    fn read(&self, checks: bool) -> Option<(u32, [u64; 3])> {
        let before = self.exchange.answers.load(Acquire);
        let [one, other] = [0, 1].map(|index: usize| self.words[index].load(Relaxed));
        let length = self.exchange.length.load(Relaxed);
        fence(Acquire);
        let after = self.exchange.answers.load(Relaxed);
        let is_whole = before.is_multiple_of(2) && before == after;
        (is_whole || !checks).then_some((before, [length, one, other]))
    }
}

/// Explores a reader while another report is made.
fn a_reader_and_a_report(checks: bool) {
    let report = Report::new();
    let mut answers = 0;
    report.answer(&mut answers);
    let theirs = Arc::clone(&report);
    let reader = thread::spawn(move || theirs.read(checks));
    report.answer(&mut answers);
    if let Some((count, read)) = reader.join().unwrap() {
        assert_eq!(read, [u64::from(count) - 2 + 10; 3], "report {count} is torn");
    }
    assert_eq!(report.read(true), Some((4, [12; 3])));
}

#[test]
fn what_is_read_at_one_even_count_is_a_whole_report() {
    explore::all("exchange, a reader and a report", || a_reader_and_a_report(true));
    explore::expect_failure("exchange, a reader that does not compare the counts", || {
        a_reader_and_a_report(false);
    });
}

/// Explores an end, and the thread that answers: it may take the last request for a reader's, and
/// checks the end after its answer. If it is not set, the thread falls asleep.
fn an_end(end: fn(&Exchange, &AtomicU32)) {
    let report = Report::new();
    let over = Arc::new(AtomicU32::new(0));
    let (theirs, over_there) = (Arc::clone(&report), Arc::clone(&over));
    let thread = thread::spawn(move || {
        let is_asked = theirs.exchange.requests.load(SeqCst) == 1;
        is_asked && over_there.load(SeqCst) == 0
    });
    end(&report.exchange, &over);
    assert!(!thread.join().unwrap(), "it sleeps forever");
}

#[test]
fn whoever_sees_the_last_request_sees_that_it_is_over() {
    explore::all("exchange, an end", || an_end(Exchange::end));
    explore::expect_failure("exchange, an end that requests first", || {
        an_end(|exchange, over| {
            exchange.requests.fetch_add(1, SeqCst);
            over.store(1, SeqCst);
        });
    });
}
