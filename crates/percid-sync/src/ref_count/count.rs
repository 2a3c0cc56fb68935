//! The number of references.
//!
//! # Protocol and proof
//!
//! Each ID has a word: the lowest bit says that it is *open*, the others count references, and may
//! be negative. A change stores the new count if the word still has the value that was read, in one
//! section. A word is made closed, with count zero. A thread that meets a closed word changes the
//! shared number instead, and opens the word if the object is alive, under the mutex.
//!
//! While the object is alive the shared number contains a bias that no number of references
//! outweighs. [`RefCount::kill`] marks the object as dead under the mutex, takes each word from its
//! ID ([`PerId::visit`]), adds its count to the shared number and closes it, until none is open. Then
//! it subtracts the bias and the first reference.
//!
//! *No change is lost or counted twice.* A change of a word is done before the visit takes the word
//! away, and counted by it; or it is refused, since the word is closed, and done on the shared number.
//! Nothing opens a word of a dead object. The visit may miss a word that another thread holds; it is
//! repeated until no word is open.
//!
//! *Exactly one is last.* After the bias was subtracted, the shared number is the number of
//! references, and all changes are atomic. It becomes zero by one of them. A thread that adds a
//! reference has one, so it is not zero before.
//!
//! *Nothing is used after it was freed.* The last step of a [`put`](RefCount::put) is its section, or
//! the atomic subtraction. A word that the thread holds meanwhile is not missed by the visits of
//! `kill`, since it is open; so the shared number does not become zero before it was released.
//!
//! *Memory order*: a section that stores releases, and a visit acquires; the subtractions of the
//! shared number do both. So whatever was done with a reference happens before the last one is
//! noticed.
//!
//! The model `sync_count` of percid's verification fails without the bias, if words are opened without
//! the mutex or closed in two steps, and if a thread looks at the object after its last section.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use percid::id::SourceError;
use percid::per_id::{Field, Unchanged, Word};
use percid::{PerId, Source};

use crate::fence;
use crate::guess::{Try, with_guess};

/// The bit of a word that may be changed. A closed word has no other bits.
const OPEN: i64 = 1;
const CLOSED: i64 = 0;
/// One reference in a word.
const ONE: i64 = 2;
/// Added to the shared number while the object is alive.
const BIAS: i64 = 1 << 62;

thread_local! {
    /// The value that an open word probably has.
    static GUESS: Cell<i64> = const { Cell::new(OPEN) };
}

/// The number of references to something, counted by ID while it lives: the kernel's `percpu_ref`.
///
/// It begins alive, with one reference. [`kill`](RefCount::kill) gives that back; from then on
/// changes are atomic, and exactly one [`put`](RefCount::put) or `kill` returns that it was the last.
///
/// ```
/// use percid_sync::RefCount;
///
/// let references = RefCount::new();
/// references.get();
/// assert_eq!(references.kill(), Ok(false), "one is left");
/// assert!(references.put(), "that was the last");
/// ```
///
/// # Contract
///
/// * **Threads**: every method may be called by any number of threads at once. A reference may be
///   given back by another thread than the one that took it.
/// * **Values**: counts of single IDs have no meaning, since threads move; only their sum has.
/// * **Waiting**: `kill` waits for other threads that kill or revive, and for those that are just
///   changing a word. [`get`](RefCount::get) and `put` take a mutex at the first use of an ID.
/// * **Signals**: not in a signal handler, because of this mutex.
/// * **Fork**: the child has a copy of all counts, also of references of threads that it lacks.
/// * **Memory**: the size of the object, plus 16 bytes for every ID that used it. If there is none
///   for an ID, the shared number is changed.
/// * **Cost**: while alive, `get` and `put` are one conditional store in a section, and a second one if
///   the thread used another number in between; afterwards one atomic addition. `kill` and
///   [`revive`](RefCount::revive) take a mutex; `kill` runs a fence of all CPUs, about 10 us, for
///   every 64 IDs.
pub struct RefCount {
    words: PerId<Word>,
    shared: AtomicI64,
    dead: AtomicBool,
    /// Held while the object is killed or revived, and while a word is opened.
    change: Mutex<()>,
}

/// The reason why something was not killed.
///
/// ```
/// use percid_sync::{KillError, RefCount};
///
/// let references = RefCount::new();
/// references.get();
/// references.kill()?;
/// assert_eq!(references.kill(), Err(KillError::Dead));
/// # Ok::<(), KillError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KillError {
    /// It is dead.
    Dead,
    /// The process may not fence any more: it has entered a sandbox that refuses `membarrier` since
    /// percid was first used. It is alive.
    FenceRefused,
}

impl fmt::Display for KillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KillError::Dead => "cannot kill: it is dead",
            KillError::FenceRefused => {
                "cannot kill: membarrier is refused; enter the sandbox earlier"
            }
        })
    }
}

impl std::error::Error for KillError {}

impl RefCount {
    /// Creates a live object's number of references: one.
    ///
    /// ```
    /// static REFERENCES: percid_sync::RefCount = percid_sync::RefCount::new();
    /// ```
    #[must_use]
    pub const fn new() -> RefCount {
        RefCount::with_words(PerId::new(closed))
    }

    /// Creates a number that is counted by `source`, whatever the process has chosen.
    ///
    /// ```
    /// use percid_sync::RefCount;
    ///
    /// let references = RefCount::with_source(percid::Source::Atomic)?;
    /// references.get();
    /// # Ok::<(), percid::id::SourceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The reason why the source cannot be used.
    pub fn with_source(source: Source) -> Result<RefCount, SourceError> {
        Ok(RefCount::with_words(PerId::with_source(source, closed as fn() -> Word)?))
    }

    const fn with_words(words: PerId<Word>) -> RefCount {
        let (shared, dead) = (AtomicI64::new(BIAS + 1), AtomicBool::new(false));
        RefCount { words, shared, dead, change: Mutex::new(()) }
    }

    /// Adds a reference. The caller must have one, or know that it is alive.
    ///
    /// ```
    /// let references = percid_sync::RefCount::new();
    /// references.get();
    /// assert!(!references.put());
    /// ```
    #[inline]
    pub fn get(&self) {
        if !self.change_word(ONE) {
            self.open_word();
            self.shared.fetch_add(1, Relaxed);
        }
    }

    /// Adds a reference if it is alive: for callers that have none. Returns `true` if it did.
    ///
    /// ```
    /// let references = percid_sync::RefCount::new();
    /// assert!(references.try_get());
    /// assert_eq!(references.kill(), Ok(false));
    /// assert!(!references.try_get());
    /// ```
    #[inline]
    pub fn try_get(&self) -> bool {
        self.change_word(ONE) || self.try_get_shared()
    }

    #[cold]
    fn try_get_shared(&self) -> bool {
        let _changing = self.lock();
        let alive = !self.dead.load(Relaxed);
        if alive {
            self.try_open();
            self.shared.fetch_add(1, Relaxed);
        }
        alive
    }

    /// Gives a reference back. Returns `true` if it was the last one.
    ///
    /// Unless it returns `true`, the caller must not use the object afterwards: another thread may
    /// free it.
    ///
    /// ```
    /// let references = percid_sync::RefCount::new();
    /// references.get();
    /// assert!(!references.put());
    /// assert_eq!(references.kill(), Ok(true));
    /// ```
    #[inline]
    #[must_use = "if it was the last reference, the object must be freed"]
    pub fn put(&self) -> bool {
        !self.change_word(-ONE) && self.put_shared(1)
    }

    #[cold]
    fn put_shared(&self, number: i64) -> bool {
        self.open_word();
        // Release: the last one sees what was done with this reference. Acquire: it is the last.
        self.shared.fetch_sub(number, AcqRel) == number
    }

    /// Changes the word of the running thread's ID, if it is open. Returns `true` if it did.
    #[inline(always)]
    fn change_word(&self, change: i64) -> bool {
        let done = with_guess(&GUESS, |seen| {
            if seen & OPEN == 0 {
                return Try::Done(false, OPEN);
            }
            let after = seen.wrapping_add(change);
            match self.words.store_if(Field::whole(), seen, after) {
                Ok(_) => Try::Done(true, after),
                Err(Unchanged::Differs(found)) => Try::Differs(found),
                Err(_) => Try::Done(false, seen),
            }
        });
        done == Some(true)
    }

    /// Opens the word of the running thread's ID, if the object is alive.
    #[cold]
    fn open_word(&self) {
        // Acquire: pairs with the store of `kill`. A dead object needs no mutex; if it is revived at
        // the same time, another change opens the word.
        if !self.dead.load(Acquire) {
            let _changing = self.lock();
            self.try_open();
        }
    }

    /// Opens a word, as the holder of the mutex.
    fn try_open(&self) {
        if !self.dead.load(Relaxed) {
            // A word that is open, or that cannot be made, is left as it is.
            _ = self.words.store_if(Field::whole(), CLOSED, OPEN);
        }
    }

    /// Ends the life of the object and gives its first reference back. Returns `true` if that was
    /// the last one. Unless it returns `true`, another thread may free the object.
    ///
    /// ```
    /// assert_eq!(percid_sync::RefCount::new().kill(), Ok(true));
    /// ```
    ///
    /// # Errors
    ///
    /// It is dead, or the process may not fence. The first reference was not given back.
    pub fn kill(&self) -> Result<bool, KillError> {
        let changing = self.lock();
        if self.dead.load(Relaxed) {
            return Err(KillError::Dead);
        }
        self.dead.store(true, Release);
        while self.words.iter().any(|(_, word)| word.load() != CLOSED) {
            if fence::all().is_err() {
                self.dead.store(false, Release);
                return Err(KillError::FenceRefused);
            }
            self.close_words();
        }
        drop(changing);
        Ok(self.shared.fetch_sub(BIAS + 1, AcqRel) == BIAS + 1)
    }

    /// Closes the words that no thread holds, and adds their counts to the shared number.
    fn close_words(&self) {
        for word in self.words.visit() {
            let count = word.load() >> 1;
            word.store(CLOSED);
            self.shared.fetch_add(count, Relaxed);
        }
        thread::yield_now();
    }

    /// Makes a dead object live again, with a new first reference. The caller must have a
    /// reference.
    ///
    /// Returns `false` without effect if it is alive.
    ///
    /// ```
    /// let references = percid_sync::RefCount::new();
    /// references.get();
    /// references.kill()?;
    /// assert!(references.revive());
    /// assert!(!references.put(), "the first reference is there again");
    /// assert_eq!(references.kill(), Ok(true));
    /// # Ok::<(), percid_sync::KillError>(())
    /// ```
    pub fn revive(&self) -> bool {
        let _changing = self.lock();
        let dead = self.dead.load(Relaxed);
        if dead {
            self.shared.fetch_add(BIAS + 1, Relaxed);
            self.dead.store(false, Release);
        }
        dead
    }

    /// Returns `true` if it was killed.
    ///
    /// ```
    /// assert!(!percid_sync::RefCount::new().is_dead());
    /// ```
    pub fn is_dead(&self) -> bool {
        self.dead.load(Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a word.
fn closed() -> Word {
    Word::new(CLOSED)
}

impl Default for RefCount {
    fn default() -> RefCount {
        RefCount::new()
    }
}

impl fmt::Debug for RefCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefCount").field("dead", &self.is_dead()).finish_non_exhaustive()
    }
}
