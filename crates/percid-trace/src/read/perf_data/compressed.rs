//! Records that `perf record -z` compressed.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::limits::LARGEST_RATIO;

/// Decompresses what the compressed records of a file hold, one after the other: a single stream.
pub(super) struct Decompression {
    decoder: Decoder<'static>,
    compressed: usize,
    /// The records decompressed so far.
    pub(super) records: Vec<u8>,
}

impl Decompression {
    pub(super) fn new() -> Result<Decompression, String> {
        let decoder = Decoder::new().map_err(|error| error.to_string())?;
        Ok(Decompression { decoder, compressed: 0, records: Vec::new() })
    }

    /// Decompresses the next piece of the stream.
    pub(super) fn append(&mut self, piece: &[u8]) -> Result<(), String> {
        const STEP: usize = 1 << 17;
        self.compressed += piece.len();
        let mut input = InBuffer::around(piece);
        loop {
            let len = self.records.len();
            if len > LARGEST_RATIO * self.compressed + STEP {
                return Err(format!("records become more than {LARGEST_RATIO} times larger"));
            }
            self.records.resize(len + STEP, 0);
            let mut output = OutBuffer::around_pos(&mut self.records[..], len);
            let result = self.decoder.run(&mut input, &mut output);
            let end = output.pos();
            self.records.truncate(end);
            result
                .map_err(|error| format!("compressed records cannot be decompressed: {error}"))?;
            if end < len + STEP && input.pos() == piece.len() {
                return Ok(());
            }
        }
    }
}
