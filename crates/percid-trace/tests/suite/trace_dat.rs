//! Files of `trace-cmd record`, in both versions, agree with the output of `trace-cmd report`.

use crate::fixture;
use crate::swapped;

use std::collections::BTreeMap;
use std::io::Read;

use fixture::{assert_same, bytes, names, trace, without_names};
use percid_trace::event::What;
use percid_trace::{Trace, read};

fn kinds(trace: &Trace) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for event in &trace.events {
        *kinds.entry(event.what.name()).or_default() += 1;
    }
    kinds
}

fn error(file: &[u8]) -> String {
    read::read_bytes(file).expect_err("it was read").to_string()
}

/// A file with all of one text in place of another one of the same length.
fn replaced(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let windows = file.windows(from.len()).enumerate();
    let places: Vec<usize> = windows.filter(|(_, text)| *text == from).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        file[at..][..to.len()].copy_from_slice(to);
    }
    file
}

#[test]
fn compressed_sections_say_what_the_report_says() {
    let (data, report) = (trace("trace-cmd.zstd.dat"), trace("trace-cmd.zstd.txt.gz"));
    assert_eq!(names(&data), names(&report));
    let kinds = kinds(&data);
    assert_same(&without_names(data), &without_names(report));
    for kind in ["switch", "waking", "wakeup", "wakeup_new", "fork", "exec", "exit", "id"] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
}

#[test]
fn buffers_are_merged_and_what_several_of_them_hold_is_told_once() {
    for name in ["instances.6", "instances.7"] {
        let (data, report) = (trace(&format!("{name}.dat")), trace(&format!("{name}.txt")));
        assert_same(&without_names(data.clone()), &without_names(report));
        // Each switch is in both buffers, wake-ups in one of them.
        let lines = String::from_utf8(bytes(&format!("{name}.txt"))).expect("text");
        let of = |event: &str| lines.lines().filter(|line| line.contains(event)).count();
        let (switches, wakeups) = (kinds(&data)["switch"], kinds(&data)["wakeup"]);
        assert!(switches > 20 && wakeups > 5, "{name}");
        assert!(of("sched_switch:") > 2 * switches - 4 && of("sched_switch:") <= 2 * switches);
        assert_eq!(of("sched_wakeup:"), wakeups);
    }
}

#[test]
fn the_origin_is_told() {
    for name in ["trace-cmd.zstd.dat", "instances.6.dat", "instances.7.dat"] {
        let origin = trace(name).origin;
        assert_eq!(origin.release.as_deref(), Some("6.18.44-fc-v657"), "{name}");
        assert_eq!(origin.clock.as_deref(), Some("local"), "{name}");
        assert_eq!((origin.possible_cpus, origin.lost), (Some(2), 0), "{name}");
    }
}

#[test]
fn files_of_the_other_byte_order_say_the_same() {
    for name in ["instances.6.dat", "instances.7.dat"] {
        let swapped = swapped::trace_dat(&bytes(name));
        let read = read::read_bytes(&swapped).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same(&read, &trace(name));
        // The control: what is swapped and said not to be is refused or something else.
        let order = bytes(name).iter().position(|&byte| byte == 0).expect("the version's end") + 1;
        let mut wrong = swapped;
        assert_eq!(wrong[order], 1);
        wrong[order] = 0;
        assert!(read::read_bytes(&wrong).is_err());
    }
}

/// trace-cmd may be built with zlib in place of zstd.
#[test]
fn sections_that_zlib_compressed_are_read() {
    let zlib = swapped::with_zlib(&bytes("trace-cmd.zstd.dat"));
    assert!(read::read_bytes(&zlib).expect("it is read").same_events(&trace("trace-cmd.zstd.dat")));
    let damaged = swapped::with_zlib_and(&bytes("trace-cmd.zstd.dat"), |piece| piece[10] ^= 0xff);
    assert!(error(&damaged).contains("decompressed"), "{}", error(&damaged));
}

#[test]
fn clocks_that_do_not_count_nanoseconds_are_refused() {
    let six = replaced(bytes("instances.6.dat"), b"[local]", b"[uptim]");
    assert!(error(&six).contains("\"uptim\", which does not count nanoseconds"), "{}", error(&six));
    let six = replaced(bytes("instances.6.dat"), b"[local]", b"[bootx]");
    assert!(error(&six).contains("mono_raw"), "{}", error(&six));
    let seven = replaced(bytes("instances.7.dat"), b"wakes\0local\0", b"wakes\0perfx\0");
    assert!(error(&seven).contains("\"perfx\""), "{}", error(&seven));
    let other = replaced(bytes("instances.7.dat"), b"wakes\0local\0", b"wakes\0mono\0\0");
    assert!(read::read_bytes(&other).is_err(), "the sizes do not fit any more");
}

#[test]
fn what_is_no_recording_is_named() {
    let nine = replaced(bytes("instances.6.dat"), b"tracing6\0", b"tracing9\0");
    assert_eq!(error(&nine), "byte 10: version 9 of trace-cmd's files: expected 6 or 7");
    let lzma = replaced(bytes("trace-cmd.zstd.dat"), b"zstd\0", b"lzma\0");
    assert!(error(&lzma).contains("compressed by \"lzma\": expected none, zlib or zstd"));
    let whole = bytes("instances.7.dat");
    assert!(error(&whole[..whole.len() / 2]).contains("byte "), "{}", error(&whole[..40]));
}

/// Data of CPUs that share bytes would make much of a short file.
#[test]
fn cpus_that_share_their_data_are_refused() {
    let mut file = bytes("instances.6.dat");
    let table = file.windows(10).position(|text| text == b"flyrecord\0").expect("records") + 10;
    let whole = (file.len() as u64).to_le_bytes();
    for cpu in 0..2 {
        file[table + 16 * cpu..][..8].copy_from_slice(&[0; 8]);
        file[table + 16 * cpu + 8..][..8].copy_from_slice(&whole);
    }
    assert!(error(&file).contains("belong to others too"), "{}", error(&file));
}

#[test]
fn losses_are_those_that_the_kernel_counted() {
    let lost = replaced(bytes("instances.7.dat"), b"\noverrun: 0\n", b"\noverrun: 7\n");
    assert_eq!(read::read_bytes(&lost).expect("it is read").origin.lost, 4 * 7);
}

#[test]
fn compressed_files_say_what_was_compressed() {
    let text = trace("trace-cmd.zstd.txt.gz");
    let mut plain = String::new();
    flate2::read::GzDecoder::new(&bytes("trace-cmd.zstd.txt.gz")[..])
        .read_to_string(&mut plain)
        .expect("text");
    assert_same(&text, &fixture::from_text(&plain));
    let zstd = zstd::bulk::compress(plain.as_bytes(), 3).expect("it is compressed");
    assert_same(&text, &read::read_bytes(&zstd).expect("it is read"));
    // In two parts, as `zstd` and `gzip` append them.
    let (one, other) = plain.as_bytes().split_at(plain.len() / 2);
    let part = |part: &[u8]| zstd::bulk::compress(part, 3).expect("it is compressed");
    let both = [part(one), part(other)].concat();
    assert_same(&text, &read::read_bytes(&both).expect("it is read"));
    let cut_off = error(&zstd[..zstd.len() - 9]);
    assert!(cut_off.contains("damaged or not whole"), "{cut_off}");
    let twice = error(&zstd::bulk::compress(&zstd, 3).expect("it is compressed"));
    assert!(twice.contains("compressed twice"), "{twice}");
    assert!(error(b"\xfd7zXZ\0").contains("compressed by xz: expected was gzip or zstd"));
    let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 19).expect("zeros are compressed");
    assert!(error(&zeros).contains("decompress it first"), "{}", error(&zeros));
    let data = zstd::bulk::compress(&bytes("sched.data"), 3).expect("it is compressed");
    let switches = read::read_bytes(&data).expect("it is read").events;
    assert!(switches.iter().any(|event| matches!(event.what, What::Switch { .. })));
}
