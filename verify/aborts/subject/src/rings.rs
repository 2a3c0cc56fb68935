//! The operations of percid's rings.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use percid::ring::{AppendError, Event};
use percid::testing::{self, Stolen};
use percid::{Overflow, Ring};
use percid_subject::board::{Answer, Board, COPIES};
use percid_subject::{Fault, Operation, Party};

use crate::findings;
use crate::ledger::{Item, LEDGER};
use crate::structure::Structure;

/// The bytes of a ring.
const BYTES: usize = 512;

/// The bytes that every record has besides, in the ring.
const HEADER: usize = 8;

/// A ring and the state of its consumer.
struct Log {
    ring: Ring,
    /// The number of the next record by ID; the last one is that of the shared copy.
    expected: [AtomicU64; COPIES + 1],
    /// The records of this round that are missing in the numbers.
    gaps: AtomicU64,
    /// The ring's count of lost records at the beginning of the round.
    lost_before: AtomicU64,
}

static KEEPING: Log = Log::new(Overflow::DropNewest);
static OVERWRITING: Log = Log::new(Overflow::OverwriteOldest);

pub(crate) struct Rings;

impl Structure for Rings {
    fn prepare(&self, operation: Operation, _: &Board) {
        let log = log(operation);
        LEDGER.begin();
        log.gaps.store(0, SeqCst);
        log.lost_before.store(log.ring.lost(), SeqCst);
        match operation {
            Operation::AppendWrapping => log.turn_to(BYTES - HEADER - 8),
            Operation::AppendFull => {
                // Records that no thread has read, so that discarding them makes a gap.
                (0..BYTES / 32).for_each(|_| _ = log.append(Party::Stock, 24));
                log.fill(24);
            }
            Operation::AppendLost => log.fill(24),
            // So that the part is in use.
            _ => _ = log.append(Party::Stock, HEADER),
        }
    }

    fn perform(&self, operation: Operation, _: i64) {
        act(operation, Party::Own);
    }

    fn interrupt(&self, operation: Operation) {
        act(operation, Party::Handler);
    }

    fn visit(&self, operation: Operation) -> Answer {
        log(operation).poll();
        Answer::Unfelt
    }

    fn rob(&self, operation: Operation, stolen: &Stolen) -> bool {
        let record = Record::issue(Party::Thief, length(operation, Party::Thief));
        let appended = stolen.append_unprotected(&log(operation).ring, record.bytes());
        if !appended {
            LEDGER.refuse(record.item);
            // The thief's failure is none of the ring's losses.
            log(operation).lost_before.fetch_sub(1, SeqCst);
        }
        appended
    }

    fn audit(&self, operation: Operation, board: &Board) {
        let log = log(operation);
        log.poll();
        let (missing, refused) = LEDGER.close();
        let (gaps, lost) = (log.gaps.load(SeqCst), log.ring.lost());
        if missing != gaps || lost.wrapping_sub(log.lost_before.load(SeqCst)) != gaps + refused {
            findings::fault(Fault::Uncounted);
        }
        findings::publish(board);
    }
}

fn log(operation: Operation) -> &'static Log {
    if operation == Operation::AppendFull { &OVERWRITING } else { &KEEPING }
}

/// Returns the length of a record. The handler's differs in its bits from those of the operations
/// that it interrupts, so that a header with parts of both is noticed.
fn length(operation: Operation, party: Party) -> usize {
    match (party, operation) {
        (Party::Handler, _) => 10,
        (Party::Thief, _) => 34,
        (_, Operation::AppendWrapping) => 61,
        (_, Operation::AppendShort) => 3,
        (_, Operation::AppendFull | Operation::AppendLost) => 24,
        _ => 16,
    }
}

fn act(operation: Operation, party: Party) {
    let log = log(operation);
    match (operation, party) {
        (Operation::Append, Party::Own) => {
            let record = Record::issue(party, 16);
            if record.whole().is_none_or(|bytes| percid_ring_append(&log.ring, bytes).is_err()) {
                LEDGER.refuse(record.item);
            }
        }
        (Operation::AppendLost, _) => {
            // The effect is the loss, if there was no room: whether it is counted the audit will
            // see.
            if !log.append(party, length(operation, party)) {
                findings::took_place(None, party.amount());
            }
        }
        _ => _ = log.append(party, length(operation, party)),
    }
}

impl Log {
    const fn new(overflow: Overflow) -> Log {
        Log {
            ring: Ring::new(BYTES, overflow),
            expected: [const { AtomicU64::new(0) }; COPIES + 1],
            gaps: AtomicU64::new(0),
            lost_before: AtomicU64::new(0),
        }
    }

    fn append(&self, party: Party, length: usize) -> bool {
        let record = Record::issue(party, length);
        let appended = append(&self.ring, record.bytes());
        if !appended {
            LEDGER.refuse(record.item);
        }
        appended
    }

    /// Appends and polls until the next record begins at this byte of the ring.
    fn turn_to(&self, byte: usize) {
        // Enough for any way, and an end if the ring is broken.
        for _ in 0..BYTES / 32 {
            let (_, head) = self.ends();
            let size = match (byte + BYTES - head as usize % BYTES) % BYTES {
                0 => return,
                // A record takes two words at least: once around.
                8 => 96,
                rest @ ..=104 => rest,
                _ => 96,
            };
            self.append(Party::Stock, size - HEADER);
            self.poll();
        }
    }

    /// Appends until there is no room for a record of this length.
    fn fill(&self, length: usize) {
        let needed = (length.next_multiple_of(8) + 2 * HEADER) as u64;
        // More than fit a ring, if the thread gets another ID during the loop.
        for _ in 0..BYTES / 16 {
            let (tail, head) = self.ends();
            if head - tail + needed > BYTES as u64 {
                break;
            }
            self.append(Party::Stock, length);
        }
    }

    fn ends(&self) -> (u64, u64) {
        let id = Rings.current_id();
        id.and_then(|id| testing::ends_of_id(&self.ring, id)).unwrap_or_default()
    }

    fn poll(&self) {
        if let Some(mut consumer) = self.ring.consumer() {
            consumer.poll(|event| self.check(event));
        }
    }

    /// Checks that a record is one that was appended, whole, and numbered.
    fn check(&self, event: Event<'_>) {
        let place = event.id.map_or(COPIES, |id| id as usize);
        let Some(expected) = self.expected.get(place) else { return };
        let expected = expected.swap(event.number + 1, SeqCst);
        if event.number < expected {
            return findings::fault(Fault::Doubled);
        }
        self.gaps.fetch_add(event.number - expected, SeqCst);
        let Some(item) = Record::decode(event.bytes) else { return findings::fault(Fault::Torn) };
        if let Some(id) = event.id {
            LEDGER.locate(item, id);
        }
        LEDGER.find(item);
    }
}

/// A record: three bytes name its item, and the rest follows from it.
struct Record {
    item: Item,
    bytes: [u8; BYTES],
    length: usize,
}

impl Record {
    fn issue(party: Party, length: usize) -> Record {
        let item = LEDGER.issue(party, length);
        Record { item, bytes: pattern(item), length }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn whole(&self) -> Option<&[u8; 16]> {
        self.bytes().try_into().ok()
    }

    /// Returns the item of a record that is unchanged.
    fn decode(bytes: &[u8]) -> Option<Item> {
        let &[a, b, c, ..] = bytes else { return None };
        let item = Item(u32::from_le_bytes([a, b, c, 0]));
        let whole = LEDGER.length(item)? == bytes.len() && pattern(item).starts_with(bytes);
        whole.then_some(item)
    }
}

fn pattern(item: Item) -> [u8; BYTES] {
    let [a, b, c, _] = item.0.to_le_bytes();
    std::array::from_fn(|index| match index {
        0 => a,
        1 => b,
        2 => c,
        _ => (index as u8).wrapping_mul(31).wrapping_add(a),
    })
}

#[inline(never)]
fn append(ring: &Ring, record: &[u8]) -> bool {
    ring.append(record).is_ok()
}

/// Appends a record of known length. For golden disassembly.
#[unsafe(no_mangle)]
#[inline(never)]
fn percid_ring_append(ring: &Ring, record: &[u8; 16]) -> Result<(), AppendError> {
    ring.append(record)
}
