//! Tests of the texts of everything that can be printed.

use std::fmt::{Debug, Display};

use crate::id::{SelectionReason, SourceError};
use crate::machine::Registration;
use crate::per_id::{Bytes, Field, NoMemory, Pointer, Unchanged, Word};
use crate::pool::{PutError, RawPool};
use crate::ring::AppendError;
use crate::{
    ActiveMask, Buckets, Counter, FloatCounter, Histogram, Local, Overflow, PerId, Pool, Ring,
    Source, SourceSelection, Stack,
};

/// Compares each value's text, whole or from its start to its end around an ellipsis.
#[track_caller]
fn check(texts: &[(&dyn Display, &str)]) {
    for (value, expected) in texts {
        let text = value.to_string();
        let (start, end) = expected.split_once('…').unwrap_or((expected, ""));
        let fits = text.starts_with(start) && text.ends_with(end);
        assert!(fits && (expected.contains('…') || text == *expected), "{text}: {expected}");
    }
}

#[test]
fn reasons_and_errors() {
    let refused = SourceError::MembarrierRefused;
    check(&[
        (
            &format!("{:>7}|{:<7}|{}", Source::Table, Source::Kernel, Source::Atomic),
            "  table|kernel |atomic",
        ),
        (
            &"percpu".parse::<Source>().expect_err("unknown"),
            "no such source: expected kernel, table or atomic",
        ),
        (&Registration::Libc, "by the C library"),
        (&Registration::Percid, "by percid, thread by thread"),
        (&Registration::Shared, "shared with another library (__rseq_abi)"),
        (&Registration::Occupied, "taken: another library…"),
        (
            &Registration::Refused(libc::EINVAL),
            "refused: EINVAL (the kernel does not know this use of the call)",
        ),
        (&Registration::Unsupported, "not supported on this architecture"),
        (&SourceError::NoRseq(Registration::Libc), "no rseq: registration by the C library"),
        (&SourceError::NoKernelIds, "the kernel keeps no mm_cid (before Linux 6.3)"),
        (&SourceError::SharedArea, "the rseq area is another library's…not registered"),
        (&SourceError::NoMembarrier, "the kernel's membarrier has no rseq flavour…"),
        (
            &refused(libc::ENOSYS),
            "membarrier refused: ENOSYS (the kernel has no such call, or a sandbox hides it)",
        ),
        (&refused(libc::EPERM), "membarrier refused: EPERM (a sandbox forbids the call)"),
        (&refused(libc::EACCES), "membarrier refused: EACCES (a sandbox forbids the call)"),
        (&refused(libc::ENOMEM), "membarrier refused: ENOMEM (out of memory)"),
        (&refused(7), "membarrier refused: errno 7"),
        (&SourceError::SectionsNotAborted, "this kernel does not abort critical sections…7.1)"),
        (&SourceError::SectionsNotProbed, "it could not be determined in time…tries again"),
        (&SourceError::ProbeRefused(7), "whether this kernel aborts…clone refused, errno 7"),
        (&SourceError::UnsupportedPlatform, "it needs 64-bit Linux"),
        (&SourceError::NoMemory, "no address space…(MADV_WIPEONFORK)"),
        (&SelectionReason::Requested, "PERCID_SOURCE asks for it"),
        (&SelectionReason::TableAvailable, "the kernel can fence critical sections…"),
        (
            &SelectionReason::TableUnavailable(refused(7)),
            "percid's table cannot be used: membarrier refused: errno 7",
        ),
        (&SelectionReason::Selecting, "the source is being chosen at this moment"),
        (&SelectionReason::ProbeInconclusive, "it could not be determined in time…tries again"),
        (
            &SourceSelection { source: Source::Atomic, reason: SelectionReason::Requested },
            "atomic, because PERCID_SOURCE asks for it",
        ),
        (
            &format!("{:>12}|{}", Overflow::DropNewest, Overflow::OverwriteOldest),
            " drop-newest|overwrite-oldest",
        ),
        (&AppendError::TooLong, "the record is longer than the ring takes"),
        (&AppendError::Full, "the ring is full"),
        (&AppendError::Busy, "the thread has no ID, and the shared shard is in use"),
        (&AppendError::NoMemory, "no memory for the ring"),
        (&PutError::DoublePut, "the object is in the pool already: it was put back twice"),
        (&PutError::WrongPool, "the object belongs to another pool"),
        (&NoMemory, "no memory for the value of an ID"),
        (&Unchanged::<i64>::NoMemory, "no memory for the value of an ID"),
        (&Unchanged::<i64>::Differs(7), "the field has the value 7"),
        (&Unchanged::<i64>::OtherDiffers(7), "the other field has the value 7"),
        (&Unchanged::<i64>::TooLong, "the bytes reach beyond the end of their field"),
        (&PutError::Gone, "the object's memory is gone…before a drain"),
    ]);
}

fn shown(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[test]
fn objects_show_their_values() {
    let (counter, floats, buckets) = (Counter::new(), FloatCounter::new(), Buckets::new(2));
    counter.increment();
    floats.add(0.5);
    buckets.record(7, 3.5);
    let histogram: Histogram = Histogram::new();
    (1..=3).for_each(|value| histogram.record(value));
    let mask = ActiveMask::new();
    [3, 64, 600].into_iter().for_each(|id| mask.mark(id));
    let ring = Ring::new(4096, Overflow::DropNewest);
    assert_eq!(ring.append(&[0; 5000]), Err(AppendError::TooLong));
    let stack = Stack::new(1);
    (0..100).for_each(|item: u8| stack.push(item).expect("room"));
    let pool = Pool::new(|| 7, 4);
    let of_ring = "Ring { bytes: 4096, overflow: DropNewest, lost: 1, .. }";
    for (text, expected) in [
        (shown(&counter), "Counter(1)"),
        (shown(&floats), "FloatCounter(0.5)"),
        (shown(&buckets), "Buckets { counts: [0, 1], sum: 3.5 }"),
        (
            shown(&histogram),
            "Histogram(Snapshot { count: 3, min: Some(1), median: Some(2), p99: Some(3), max: Some(3) })",
        ),
        (shown(&mask), "{3, 64, 600}"),
        (shown(&ring), of_ring),
        (shown(&ring.consumer()), &format!("Some(Consumer {{ ring: {of_ring}, .. }})")),
        (shown(&pool), "Pool { idle: Stack { capacity: 4, in_shared_list: 0, .. }, .. }"),
        (shown(&pool.get()), "7"),
    ] {
        assert_eq!(text, expected);
    }
    let text = shown(&stack);
    assert!(text.starts_with("Stack { capacity: 1, in_shared_list: "), "{text}");
    assert!(!text.contains("list: 0"), "not all have room in parts of one: {text}");
    let words = PerId::new(|| Word::new(5));
    assert_eq!(shown(&words), "{}");
    words.add(Field::whole(), 2).expect("memory");
    assert!(shown(&words).ends_with(": 7}"), "{words:?}");
    assert!(shown(&words.visit()).starts_with("Visit { ids: Some(Ids {"));
    let held = words.visit().next().expect("a value");
    assert_eq!(shown(&held), format!("Held {{ id: {:?}, value: 7 }}", held.id()));
    assert_eq!(
        shown(&crate::field!((u32, [u8; 4]), 1).at(2)).split_once(" { offset: ").map(|it| it.0),
        Some("Field")
    );
    assert_eq!(shown(&Bytes::<4>::new()), "4 bytes");
    assert_eq!(shown(&Pointer::<u8>::null()), "0x0");
    let local = Local::new(|| 0);
    assert_eq!(shown(&local), "Local { ids: [], extra: 0, .. }");
    let raw = RawPool::new(std::alloc::Layout::new::<u64>(), 4);
    assert!(shown(&raw).starts_with("RawPool { object: Layout { size: 8,"), "{raw:?}");
}
