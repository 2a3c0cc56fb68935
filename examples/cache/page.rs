//! The objects: pages of 4 KiB.

use percid::Counter;

/// A page holds this many words.
const WORDS: usize = 512;

/// The size of a page in bytes.
pub(crate) const BYTES: usize = WORDS * size_of::<u64>();

/// Pages made so far, by any thread: what the accounts are checked against.
static MADE: Counter = Counter::new();

/// Number of pages whose memory was freed so far.
static FREED: Counter = Counter::new();

/// Returns the number of pages that were made.
pub(crate) fn made() -> i64 {
    MADE.sum()
}

/// Returns the number of pages that were freed.
pub(crate) fn freed() -> i64 {
    FREED.sum()
}

/// A page of the backing store, or a blank one.
pub(crate) struct Page {
    words: [u64; WORDS],
}

impl Page {
    /// Makes a blank page: the pool calls this if it has none.
    pub(crate) fn blank() -> Page {
        MADE.add(1);
        Page { words: [0; WORDS] }
    }

    /// Reads the page of a key from the backing store. There is none in this example: every word is
    /// computed.
    pub(crate) fn load(&mut self, key: u64) {
        for (word, index) in self.words.iter_mut().zip(0..) {
            *word = content(key, index);
        }
    }

    /// Returns `true` if this is the page of a key, judged by two of its words.
    pub(crate) fn is_of(&self, key: u64) -> bool {
        let last = WORDS - 1;
        self.words[0] == content(key, 0) && self.words[last] == content(key, last as u64)
    }

    /// Makes the page blank again.
    pub(crate) fn wipe(&mut self) {
        self.words.fill(0);
    }

    /// Returns `true` if the page is blank, judged by two of its words.
    pub(crate) fn is_blank(&self) -> bool {
        self.words[0] == 0 && self.words[WORDS - 1] == 0
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        FREED.add(1);
    }
}

/// Returns a word of a key's page; never zero, unlike those of a blank page.
fn content(key: u64, index: u64) -> u64 {
    (key ^ index << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}
