//! Counters, by the names that `perf` has for them.

use std::fmt;

/// Something that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    name: Box<str>,
    /// The kernel's number of the sort of counter (`perf_event_attr.type`).
    sort: u32,
    /// Its number among those (`perf_event_attr.config`).
    number: u64,
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// A cache, what is done to it, and whether that finds what it looks for.
const fn cache(which: u64, operation: u64, misses: bool) -> u64 {
    which | operation << 8 | (misses as u64) << 16
}

const L1D: u64 = 0;
const LLC: u64 = 2;
const DTLB: u64 = 3;
const NODE: u64 = 6;
const LOADS: u64 = 0;
const STORES: u64 = 1;

/// Names, sorts and numbers. The numbers are the kernel's (`perf_event_open(2)`), on whatever system they
/// are read.
const KNOWN: [(&str, u32, u64); 28] = [
    ("cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branches", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("stalled-cycles-frontend", HARDWARE, 7),
    ("stalled-cycles-backend", HARDWARE, 8),
    ("ref-cycles", HARDWARE, 9),
    ("L1-dcache-loads", CACHE, cache(L1D, LOADS, false)),
    ("L1-dcache-load-misses", CACHE, cache(L1D, LOADS, true)),
    ("LLC-loads", CACHE, cache(LLC, LOADS, false)),
    ("LLC-load-misses", CACHE, cache(LLC, LOADS, true)),
    ("LLC-stores", CACHE, cache(LLC, STORES, false)),
    ("LLC-store-misses", CACHE, cache(LLC, STORES, true)),
    ("dTLB-loads", CACHE, cache(DTLB, LOADS, false)),
    ("dTLB-load-misses", CACHE, cache(DTLB, LOADS, true)),
    ("node-loads", CACHE, cache(NODE, LOADS, false)),
    ("node-load-misses", CACHE, cache(NODE, LOADS, true)),
    ("task-clock", SOFTWARE, 1),
    ("page-faults", SOFTWARE, 2),
    ("context-switches", SOFTWARE, 3),
    ("cpu-migrations", SOFTWARE, 4),
    ("minor-faults", SOFTWARE, 5),
    ("major-faults", SOFTWARE, 6),
    ("alignment-faults", SOFTWARE, 7),
    ("emulation-faults", SOFTWARE, 8),
];

impl Counter {
    /// The counter with this name: one that is [known](Counter::all), or `r` and a hexadecimal number, the
    /// processor's own (`r01c2`).
    ///
    /// # Errors
    ///
    /// In words, what was expected.
    pub fn parse(name: &str) -> Result<Counter, String> {
        let known = KNOWN.iter().find(|(known, ..)| *known == name);
        let raw = || {
            let digits = name.strip_prefix('r')?;
            // A sign would be taken for part of the number.
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let number = u64::from_str_radix(digits, 16).ok().filter(|_| is_number)?;
            Some(Counter { name: name.into(), sort: RAW, number })
        };
        known.map(of_known).or_else(raw).ok_or_else(|| {
            let names: Vec<&str> = KNOWN.iter().map(|(known, ..)| *known).collect();
            format!(
                "unknown counter `{name}`: expected {} or r and a hexadecimal number",
                names.join(", ")
            )
        })
    }

    /// All that have a name, those of the processor first.
    pub fn all() -> impl Iterator<Item = Counter> {
        KNOWN.iter().map(of_known)
    }

    /// The one with the kernel's numbers, if it has a name here or is the processor's own.
    pub fn of_kernel(sort: u32, number: u64) -> Option<Counter> {
        let known = KNOWN.iter().find(|&&(_, of, known)| (of, known) == (sort, number));
        let raw = || Counter { name: format!("r{number:x}").into(), sort, number };
        known.map(of_known).or_else(|| (sort == RAW).then(raw))
    }

    /// Returns the name that `perf` has for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's numbers: `perf_event_attr.type` and `perf_event_attr.config`.
    pub fn for_kernel(&self) -> (u32, u64) {
        (self.sort, self.number)
    }

    /// Returns `true` if the processor counts it; otherwise the kernel does, on every machine.
    pub fn is_hardware(&self) -> bool {
        self.sort != SOFTWARE
    }
}

fn of_known(&(name, sort, number): &(&str, u32, u64)) -> Counter {
    Counter { name: name.into(), sort, number }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_and_numbers_of_its_own() {
        for counter in Counter::all() {
            assert_eq!(Counter::parse(counter.name()).as_ref(), Ok(&counter));
            let (sort, number) = counter.for_kernel();
            assert_eq!(Counter::of_kernel(sort, number), Some(counter));
        }
    }

    #[test]
    fn the_processors_own_are_hexadecimal_and_nothing_else_is_known() {
        let raw = Counter::parse("r01C2").expect("a number");
        assert_eq!((raw.for_kernel(), raw.is_hardware()), ((RAW, 0x1c2), true));
        assert_eq!(Counter::of_kernel(RAW, 0x1c2).map(|raw| raw.for_kernel()), Some((RAW, 0x1c2)));
        for wrong in ["", "r", "r+1", "r-1", "rg", "cycle", "Cycles", "r11112222333344445"] {
            let said = Counter::parse(wrong).expect_err(wrong);
            assert!(said.contains("cache-misses") && said.contains("task-clock"), "{said}");
        }
    }
}
