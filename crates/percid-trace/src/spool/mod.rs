//! Recordings on their way to a file: a spool takes events as they come, in a few bytes each, and
//! becomes a Parquet file when the recording is over.
//!
//! A Parquet file can be read only when its last bytes have been written. A spool can be read at any
//! time, also when its recorder was killed: it is a sequence of frames, each whole or not there, which
//! are appended and never changed.
//!
//! | bytes | of a frame                                                        |
//! |-------|-------------------------------------------------------------------|
//! | 4     | how many bytes of content it has, little-endian like all numbers  |
//! | 4     | CRC-32 of what follows                                            |
//! | 1     | what the content is: 1 the origin, 2 events that are compressed by Zstandard, 3 events as they are, 4 the end |
//! | ...   | the content                                                       |
//!
//! The file begins with `PERCIDSP` and the frame of the origin: lines of a key, a tab and a value, the
//! keys being those of the Parquet file's metadata. Events are encoded as small integers (LEB128):
//! first how many were lost since the beginning, how many events of the schedule follow, and how many of
//! NUMA balancing; each event has its kind, the distance in time to the one before, its CPU, and what
//! belongs to its kind. A text stands where it is used first in a frame. Reading ends with the first
//! frame that is not whole; if that was not the end, the spool was cut off.
//!
//! A [`Ring`] keeps frames in memory, and only the last of them. [`store`] makes a Parquet file of both.
//!
//! [`Intervals`] writes nothing: it makes a trace of each second, say, while the recording goes on.

mod decode;
mod encode;
mod frame;
mod intervals;
mod layout;
#[cfg_attr(not(target_os = "linux"), path = "no_lock.rs")]
mod lock;
mod numbers;
mod population;
mod read;
mod ring;
mod situation;
mod source;
mod store;
mod write;

pub use frame::MAGIC;
pub use intervals::{Interval, Intervals};
pub use read::{Spooled, read_bytes};
pub use ring::{Ring, RingSnapshot};
pub use source::{Source, Tail};
pub use store::{Stored, store};
pub use write::Spool;
