//! Recordings of machines with the other byte order. Real files are swapped number by number.

use crate::fixture;
use crate::swapped;

use fixture::{assert_same, bytes, events, trace};
use percid_trace::read::read_bytes;
use swapped::perf_data::perf_data;

#[test]
fn perf_data_of_the_other_byte_order_says_the_same() {
    let files = [
        "sched.data",
        "forks.data",
        "pipe.data",
        "switches.data",
        "switches-all.data",
        "counters.data",
    ];
    for name in files {
        let swapped = perf_data(&bytes(name));
        assert!(swapped.starts_with(b"2ELIFREP"), "{name}");
        let read = read_bytes(&swapped).unwrap_or_else(|error| panic!("{name}: {error}"));
        let whole = trace(name);
        assert!(!whole.events.is_empty(), "{name}");
        assert_same(&read, &whole);
        assert_eq!(read.origin, whole.origin, "{name}");
        assert_eq!(read.counted, whole.counted, "{name}");
    }
}

/// The control: what is swapped and said not to be is refused, or something else.
#[test]
fn what_says_that_it_has_another_byte_order_than_it_has_is_not_read_as_if_it_had() {
    for name in ["sched.data", "switches.data", "pipe.data"] {
        let (file, mut swapped) = (bytes(name), perf_data(&bytes(name)));
        swapped[..8].copy_from_slice(&file[..8]);
        assert!(read_bytes(&swapped).is_err(), "{name}");
    }
    // Swapped but for the tracepoints' own byte order, which stands with their descriptions.
    let mut swapped = perf_data(&bytes("sched.data"));
    let magic = b"\x17\x08\x44tracing";
    let at = swapped.windows(magic.len()).position(|some| some == magic).expect("tracing data");
    let order = at + magic.len() + b"0.6\0".len();
    assert_eq!(swapped[order], 1);
    swapped[order] = 0;
    let same = |read: percid_trace::Trace| events(&read) == events(&trace("sched.data"));
    assert!(!read_bytes(&swapped).is_ok_and(same));
}
