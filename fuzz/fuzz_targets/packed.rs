//! Files that were compressed: damaged ones, and ones that must be read like what was compressed.
#![no_main]

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use percid_fuzz::{files, traces};
use percid_trace::read::{Format, read_bytes};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// Bytes that may be a compressed file.
    File(&'a [u8]),
    /// The same behind the first bytes of one.
    Begun(bool, &'a [u8]),
    /// The plain content, and `true` for zstd.
    Content(bool, &'a [u8]),
}

const GZIP: &[u8] = &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

fuzz_target!(|input: Input<'_>| {
    match input {
        Input::File(bytes) => read(bytes),
        Input::Begun(zstd, rest) => read(&[if zstd { ZSTD } else { GZIP }, rest].concat()),
        Input::Content(zstd, plain) => check(zstd, plain),
    }
});

fn read(bytes: &[u8]) {
    if let Some(trace) = files::read(bytes, Format::Compressed) {
        traces::check(&trace);
    }
}

/// Checks that compressed content is read or refused like the plain content.
fn check(zstd: bool, plain: &[u8]) {
    let packed = match zstd {
        true => zstd::bulk::compress(plain, 1).expect("memory"),
        false => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory")
        }
    };
    if Format::detect(plain) == Format::Compressed {
        assert!(read_bytes(&packed).is_err(), "it is compressed twice");
        return;
    }
    match (read_bytes(plain), read_bytes(&packed)) {
        (Ok(plain), Ok(unpacked)) => assert!(plain.same_events(&unpacked)),
        (Err(_), Err(_)) => {}
        (plain, unpacked) => panic!("{:?} and {:?}", plain.err(), unpacked.err()),
    }
}
