//! Readers that count themselves by ID, and the sum of their words: for the models of the crate
//! `percid-sync`.
//!
//! Each CPU has a word with the numbers of entries and exits that were done there, and a buffer in
//! which its latest operations wait before others see them. A reader may move between its
//! operations; a move is a context switch, which empties the buffers of both CPUs.
//!
//! # Assumptions
//!
//! 1. Operations on one word become visible in their order. Those of two CPUs do so in any order,
//!    except if a move lies in between.
//! 2. The model is that of x86-64: an exit becomes visible after the loads before it. Elsewhere the
//!    release fence of the exit has this effect.
//! 3. Readers enter a bounded number of times, so that the state space is finite.

/// CPUs, and words.
pub const CPUS: usize = 2;
/// Operations that wait in the buffer of a CPU: those of one reader that has not moved.
const WAITING: usize = 2;

/// The number of a CPU.
pub type Cpu = u8;

/// The entries and exits in a word, or in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counts {
    /// Entries.
    pub entries: u8,
    /// Exits.
    pub exits: u8,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.entries += other.entries;
        self.exits += other.exits;
    }

    /// Returns the word's lower half: the readers inside.
    #[must_use]
    pub fn inside(self) -> i8 {
        self.entries as i8 - self.exits as i8
    }
}

/// The words of one number of readers, and the operations that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Words {
    visible: [Counts; CPUS],
    waiting: [[Option<bool>; WAITING]; CPUS],
}

impl Words {
    /// Returns `true` if a CPU can take another operation into its buffer.
    #[must_use]
    pub fn has_room(&self, cpu: Cpu) -> bool {
        self.waiting[usize::from(cpu)][WAITING - 1].is_none()
    }

    /// Counts an entry, or an exit, on a CPU.
    ///
    /// # Panics
    ///
    /// If there is no room.
    pub fn count(&mut self, cpu: Cpu, is_entry: bool) {
        let buffer = &mut self.waiting[usize::from(cpu)];
        let free = buffer.iter_mut().find(|place| place.is_none());
        *free.expect("the caller has looked for room") = Some(is_entry);
    }

    /// Returns `true` if an operation waits on a CPU.
    #[must_use]
    pub fn waits(&self, cpu: Cpu) -> bool {
        self.waiting[usize::from(cpu)][0].is_some()
    }

    /// Makes the oldest operation of a CPU visible.
    pub fn flush_one(&mut self, cpu: Cpu) {
        let buffer = &mut self.waiting[usize::from(cpu)];
        let visible = &mut self.visible[usize::from(cpu)];
        match buffer[0].take() {
            Some(true) => visible.entries += 1,
            Some(false) => visible.exits += 1,
            None => {}
        }
        buffer.rotate_left(1);
    }

    /// Performs a full barrier on a CPU.
    pub fn barrier(&mut self, cpu: Cpu) {
        while self.waits(cpu) {
            self.flush_one(cpu);
        }
    }

    /// Adds the visible counts of a CPU's word to a sum.
    pub fn read(&self, cpu: Cpu, sum: &mut Counts) {
        sum.add(self.visible[usize::from(cpu)]);
    }
}

/// The two passes over all words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Passes {
    sums: [Counts; 2],
    read: u8,
}

/// The result of both passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Words are left to read.
    Pending,
    /// No reader is inside.
    None,
    /// A reader may be inside.
    Some,
}

impl Passes {
    /// Reads the next word. Negative control: `one` has no second pass.
    pub fn step(&mut self, words: &Words, one: bool) -> Found {
        let (pass, cpu) = (self.read / CPUS as u8, self.read % CPUS as u8);
        words.read(cpu, &mut self.sums[usize::from(pass)]);
        self.read += 1;
        let all = if one { CPUS } else { 2 * CPUS };
        if usize::from(self.read) < all {
            return Found::Pending;
        }
        let [first, second] = if one { [self.sums[0]; 2] } else { self.sums };
        if first == second && second.inside() == 0 { Found::None } else { Found::Some }
    }
}
