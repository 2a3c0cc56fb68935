//! Rings: per-ID buffers of records for one consumer.
//!
//! # A shard's memory
//!
//! A shard has three cache lines, then the data. *Head* is the position behind the newest record,
//! *tail* the position of the oldest one. Positions are numbers of bytes that only grow; the offset
//! in the data is the position modulo its size. A record is a header word and its bytes, padded to
//! words. The header contains the record's length and its number among all records of this shard.
//! The previous record writes that number, so the word at the head always contains the number of
//! the next record. Zeroed memory is an empty ring.
//!
//! # Writers
//!
//! The section `append` writes into the free part, between head and tail, and commits the head. If
//! there is no room, the record is lost ([`Overflow::DropNewest`]), or the section `discard` moves
//! the tail over enough of the oldest records ([`Overflow::OverwriteOldest`]). It discards at least
//! an eighth of the ring, so that it is not needed for every record. A thread without an ID uses
//! the shared shard, under a lock that it only tries to take.
//!
//! # The consumer
//!
//! *Drop newest*: the consumer reads from the tail to the head and then moves the tail, so writers
//! never touch what it reads. *Overwrite oldest*: the tail belongs to the writers, and the consumer
//! has a position of its own. It copies a record and then checks whether the tail has passed the
//! record's position. If it has, the copy may be torn and is discarded: writers move the tail
//! before they write into the freed part, so a consumer that sees any of the new bytes sees the new
//! tail. Either way a gap in the numbers is the number of overwritten records.

mod append_error;
#[cfg(feature = "capi")]
mod capi;
mod consumer;
mod object;
mod shard;
mod slow;
#[cfg(feature = "testing")]
mod testing;
mod turn;

pub use append_error::AppendError;
#[cfg(feature = "capi")]
#[doc(hidden)]
pub use consumer::Poll;
pub use consumer::{Consumer, Event};
pub use object::{Overflow, Ring};

#[cfg(test)]
mod tests;
