//! Numbers of the kinds of events, and the limits of a frame.

use crate::event::{Shares, Stage};

pub(super) const SWITCH: u8 = 0;
pub(super) const WAKEUP: u8 = 1;
pub(super) const MIGRATE: u8 = 2;
pub(super) const FORK: u8 = 3;
pub(super) const EXEC: u8 = 4;
pub(super) const EXIT: u8 = 5;
pub(super) const AFFINITY: u8 = 6;
pub(super) const ID: u8 = 7;
pub(super) const TICK: u8 = 8;
pub(super) const MEMBER: u8 = 9;
pub(super) const NAME: u8 = 10;

/// The stages of a wakeup, by number.
pub(super) const STAGES: [Stage; 3] = [Stage::Waking, Stage::Woken, Stage::New];

/// The values of [`Shares`] by number.
pub(super) const SHARES: [Shares; 4] =
    [Shares::Unknown, Shares::Nothing, Shares::Memory, Shares::Process];

/// No frame gets further events when its content is as long as this, before it is compressed.
pub(super) const MIN_FULL_FRAME_BYTES: usize = 1 << 20;

/// The longest content, before it is compressed: the last event may have a long text.
pub(super) const MAX_FRAME_BYTES: usize = 2 << 20;

/// Largest ratio of content to compressed bytes. So a short file cannot claim to have more events
/// than fit in memory.
pub(super) const TIMES: usize = 64;

/// The longest text of an event, in bytes: that of a list of every other CPU of 16384.
pub(super) const LONGEST_TEXT: usize = 1 << 16;
