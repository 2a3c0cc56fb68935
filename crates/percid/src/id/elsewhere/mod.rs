//! Stubs for systems that are not 64-bit Linux: no IDs, no fence, no probe.

pub(crate) mod absent;
pub(crate) mod fence;
pub(crate) mod probe;

pub(crate) use absent::{self as area, self as kernel, self as table};

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use crate::id::{SelectionReason, Source, SourceError, compact_ids, selection, table_stats};
    use crate::{Counter, Local, Overflow, Ring, machine};

    #[test]
    fn there_is_one_source_and_the_others_say_why_not() {
        for source in [Source::Kernel, Source::Table] {
            let refused = Err(SourceError::UnsupportedPlatform);
            assert_eq!(source.prepare(), refused, "{source}");
            assert_eq!(Counter::with_source(source).map(drop), refused, "{source}");
            assert_eq!(Local::with_source(source, || 0).map(drop), refused, "{source}");
            assert_eq!((source.current_id(), source.id_count()), (None, 0), "{source}");
        }
        assert_eq!(Source::Atomic.prepare(), Ok(()));
        assert!(Source::Atomic.current_id().is_some());
        assert_eq!((compact_ids(), table_stats()), (0, None));
    }

    #[test]
    fn what_a_process_gets_is_the_atomic_source() {
        // Another thread may be choosing at this moment.
        let choice = loop {
            match selection::get() {
                Some(choice) => break choice,
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(choice.source, Source::Atomic);
        if choice.reason != SelectionReason::Requested {
            assert_eq!(
                choice.reason,
                SelectionReason::TableUnavailable(SourceError::UnsupportedPlatform)
            );
            assert!(choice.reason.to_string().ends_with("it needs 64-bit Linux"));
        }
    }

    #[test]
    fn the_machine_has_nothing_that_sections_need() {
        let machine = machine::read();
        assert_eq!(machine.rseq.registration, machine::Registration::Unsupported);
        assert_eq!((machine.rseq.registered_size, machine.rseq.fields.len()), (0, 0));
        assert!(machine.membarrier.commands == 0 && !machine.membarrier.rseq);
        assert!(!machine.cpus.is_empty() && machine.cpus.iter().all(|cpu| cpu.allowed));
        let probed = machine::probe(Duration::from_millis(1));
        assert_eq!(probed, Err(SourceError::UnsupportedPlatform));
    }

    /// Tests the largest objects of their kind.
    #[test]
    fn objects_that_fill_a_copy_have_memory() {
        let ring = Ring::new(Ring::MAX_BYTES, Overflow::DropNewest);
        ring.append(b"record").expect("room");
        let mut consumer = ring.consumer().expect("no other one");
        assert_eq!(consumer.poll(|event| println!("{event:?}")), 1);
    }
}
