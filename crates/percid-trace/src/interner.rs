//! The texts of a trace, each stored once: names of threads, lists of CPUs.

use std::collections::HashMap;

/// A text of a trace, by its number in [`Interner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(pub u32);

/// All texts of a trace.
#[derive(Debug, Clone, Default)]
pub struct Interner {
    all: Vec<Box<str>>,
    bytes: usize,
    numbers: HashMap<Box<[u8]>, Text>,
}

impl Interner {
    /// Returns the number of a text, and stores the text if it is new. Bytes that are not UTF-8 are
    /// replaced by U+FFFD.
    pub fn intern(&mut self, text: &[u8]) -> Text {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = Text(self.all.len() as u32);
        self.all.push(String::from_utf8_lossy(text).into());
        self.numbers.insert(text.into(), number);
        self.bytes += text.len();
        number
    }

    /// The text with this number; empty if there is none.
    pub fn get(&self, text: Text) -> &str {
        self.all.get(text.0 as usize).map_or("", |text| text)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the length of all texts together, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns `true` if there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
