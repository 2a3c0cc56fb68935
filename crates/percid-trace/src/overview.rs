//! A schedule in as much detail as a picture can show: what each row held over time. The columns
//! become wider as the schedule becomes longer, so that memory is bounded by the picture and not by
//! the schedule.

use crate::event::Cpu;

/// Spans of time on rows, such as CPUs, as they end.
#[derive(Debug, Clone)]
pub struct Overview<K> {
    /// Maximum number of spans, and their current number.
    room: usize,
    spans: usize,
    /// The width of a column, in nanoseconds.
    width: u64,
    rows: Vec<OverviewRow<K>>,
}

/// An interval in which a row held one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<K> {
    /// The row.
    pub row: Cpu,
    /// The thing that the row held, longer than anything else in each column.
    pub what: K,
    /// Start time, in nanoseconds since the first event: the beginning of a column.
    pub from: u64,
    /// End time: the end of a column.
    pub to: u64,
    /// The part of that time in which the row held it, in nanoseconds.
    pub ns: u64,
}

#[derive(Debug, Clone)]
struct OverviewRow<K> {
    number: Cpu,
    done: Vec<Span<K>>,
    /// The column that may still get more: its number, and what was in it for how long.
    column: u64,
    held: Vec<(K, u64)>,
}

impl<K: Copy + PartialEq> Overview<K> {
    /// Nothing yet; of what comes, about this number of spans are kept at most, but one for each row.
    pub fn new(room: usize) -> Overview<K> {
        Overview { room, spans: 0, width: 1, rows: Vec::new() }
    }

    /// The width of a column, in nanoseconds: what is shorter may not be seen.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// A row has held something. Those of one row come in the order of time.
    pub fn note(&mut self, row: Cpu, what: K, from: u64, to: u64) {
        if from >= to || self.room == 0 {
            return;
        }
        let at = row as usize;
        if at >= self.rows.len() {
            let rows = self.rows.len() as Cpu..=row;
            let empty =
                |number| OverviewRow { number, done: Vec::new(), column: 0, held: Vec::new() };
            self.rows.extend(rows.map(empty));
        }
        let span = Span { row, what, from, to, ns: to - from };
        self.spans += self.rows[at].take(span, self.width);
        while self.spans > self.room.max(2 * self.rows.len()) {
            self.widen();
        }
    }

    /// All of it, row by row.
    pub fn into_spans(mut self) -> Vec<Span<K>> {
        let width = self.width;
        for row in &mut self.rows {
            row.close(width);
        }
        self.rows.into_iter().flat_map(|row| row.done).collect()
    }

    fn widen(&mut self) {
        let before = self.width;
        self.width = before.saturating_mul(2);
        self.spans = 0;
        for row in &mut self.rows {
            row.close(before);
            let done = std::mem::take(&mut row.done);
            row.column = 0;
            self.spans += done.into_iter().map(|span| row.take(span, self.width)).sum::<usize>();
        }
    }
}

impl<K: Copy + PartialEq> OverviewRow<K> {
    /// Adds a span to the row. Returns the number of spans that this created.
    fn take(&mut self, span: Span<K>, width: u64) -> usize {
        let from = span.from.max(self.column * width);
        let (first, last) = (from / width, span.to.saturating_sub(1) / width);
        if last < first {
            return 0;
        }
        // It may have held this for a part of the time only.
        let share = |ns: u64| {
            (u128::from(ns) * u128::from(span.ns) / u128::from(span.to - span.from)) as u64
        };
        let mut made = self.open(first, width);
        if first == last {
            self.hold(span.what, share(span.to - from));
            return made;
        }
        self.hold(span.what, share((first + 1) * width - from));
        made += self.close(width);
        let (begin, end) = ((first + 1) * width, last * width);
        if begin < end {
            made += self.push(Span { from: begin, to: end, ns: share(end - begin), ..span });
        }
        made += self.open(last, width);
        self.hold(span.what, share(span.to - end));
        made
    }

    fn open(&mut self, column: u64, width: u64) -> usize {
        let made = if column > self.column { self.close(width) } else { 0 };
        self.column = column;
        made
    }

    fn hold(&mut self, what: K, ns: u64) {
        match self.held.iter_mut().find(|(held, _)| *held == what) {
            Some((_, sum)) => *sum += ns,
            None => self.held.push((what, ns)),
        }
    }

    /// The column gets nothing more: it shows what was there longest.
    fn close(&mut self, width: u64) -> usize {
        let longest = self.held.iter().copied().reduce(
            |one, other| {
                if other.1 > one.1 { other } else { one }
            },
        );
        self.held.clear();
        let Some((what, ns)) = longest else { return 0 };
        let row = self.number;
        let (from, to) = (self.column * width, (self.column + 1) * width);
        self.push(Span { row, what, from, to, ns })
    }

    fn push(&mut self, span: Span<K>) -> usize {
        match self.done.last_mut() {
            Some(last) if last.what == span.what && last.to == span.from => {
                last.to = span.to;
                last.ns += span.ns;
                0
            }
            _ => {
                self.done.push(span);
                1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview(room: usize, turns: &[(Cpu, char, u64, u64)]) -> Overview<char> {
        let mut overview = Overview::new(room);
        turns.iter().for_each(|&(row, what, from, to)| overview.note(row, what, from, to));
        overview
    }

    fn told(overview: Overview<char>) -> Vec<(Cpu, char, u64, u64, u64)> {
        let spans = overview.into_spans();
        spans.iter().map(|span| (span.row, span.what, span.from, span.to, span.ns)).collect()
    }

    #[test]
    fn what_there_is_room_for_is_as_it_was() {
        let turns = [(1, 'a', 5, 10), (0, 'b', 3, 12), (1, 'c', 10, 11), (1, 'c', 11, 20)];
        let expected = [(0, 'b', 3, 12, 9), (1, 'a', 5, 10, 5), (1, 'c', 10, 20, 10)];
        assert_eq!(told(overview(100, &turns)), expected);
        assert_eq!(told(overview(0, &turns)), [], "no picture is wanted");
    }

    #[test]
    fn a_column_shows_what_was_there_longest() {
        // Nine of ten nanoseconds are a's, and each has a turn of its own.
        let turns: Vec<_> = (0..1000)
            .flat_map(|n| [(0, 'a', 10 * n, 10 * n + 9), (0, 'b', 10 * n + 9, 10 * n + 10)])
            .collect();
        let overview = overview(50, &turns);
        assert!(overview.width() > 1, "{}", overview.width());
        let spans = told(overview);
        assert_eq!(spans.len(), 1, "{spans:?}");
        assert!(spans[0].1 == 'a' && spans[0].4 > 8000 && spans[0].4 <= 9000, "{spans:?}");
    }

    #[test]
    fn it_is_bounded_and_covers_all_the_time() {
        let turns: Vec<_> = (0..100_000_u64)
            .map(|n| {
                ((n % 4) as Cpu, char::from(b'a' + (n * n % 7) as u8), 1000 * n, 1000 * n + 700)
            })
            .collect();
        let mut overview = Overview::new(500);
        for &(row, what, from, to) in &turns {
            overview.note(row, what, from, to);
            assert!(overview.spans <= 500);
        }
        let width = overview.width();
        let spans = overview.into_spans();
        assert!(spans.len() > 100 && spans.len() <= 504, "{}", spans.len());
        for row in 0..4 {
            let of_row: Vec<_> = spans.iter().filter(|span| span.row == row).collect();
            assert!(of_row.windows(2).all(|pair| pair[0].to <= pair[1].from));
            assert!(of_row.first().is_some_and(|span| span.from <= 4 * width));
            assert!(of_row.last().is_some_and(|span| span.to + 4 * width >= 100_000_000));
        }
    }
}
