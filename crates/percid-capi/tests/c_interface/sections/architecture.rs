//! The differences between the architectures.

use percid::capi::SECTION_NUMBERS;

use super::att;
use super::macros::{Macros, Part};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    X86_64,
    Aarch64,
    Riscv64,
}

/// A critical section for one source.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) operation: &'static str,
    pub(super) source: &'static str,
    pub(super) mark: i64,
}

/// The scratch registers of critical sections without a result, with the names of their 32-bit
/// parts. The registers are fixed because older compilers allow no outputs in such sections.
const X86_64_SCRATCH: [(&str, &str, &str); 7] = [
    ("index", "rcx", "ecx"),
    ("work", "rax", "eax"),
    ("items", "rdx", "edx"),
    ("place", "rdx", "edx"),
    ("value", "rsi", "esi"),
    ("number", "rdi", "edi"),
    ("source", "r8", "r8d"),
];

const AARCH64_SCRATCH: [(&str, &str, &str); 11] = [
    ("area", "x9", "w9"),
    ("index", "x10", "w10"),
    ("work", "x11", "w11"),
    ("items", "x12", "w12"),
    ("place", "x12", "w12"),
    ("value", "x13", "w13"),
    ("number", "x14", "w14"),
    ("source", "x15", "w15"),
    ("mask", "x8", "w8"),
    ("data", "x7", "w7"),
    ("end", "x6", "w6"),
];

/// RISC-V has no names for the 32-bit parts.
const RISCV64_SCRATCH: [(&str, &str, &str); 12] = [
    ("area", "t0", ""),
    ("index", "t1", ""),
    ("work", "t2", ""),
    ("place", "t3", ""),
    ("value", "t4", ""),
    ("number", "t5", ""),
    ("source", "t6", ""),
    ("mask", "a7", ""),
    ("data", "a6", ""),
    ("end", "a5", ""),
    ("upper", "a4", ""),
    ("bits", "a3", ""),
];

/// Instructions before Arm's critical sections: the address of the rseq area, which Rust passes in.
/// C computes it inside, because a compiler may move code outside the section to another thread.
const AARCH64_AREA: [&str; 3] =
    ["ldr {index}, [{fast_path}]", "mrs {area}, tpidr_el0", "add {area}, {area}, {index}"];

/// The same for RISC-V.
const RISCV64_AREA: [&str; 2] = ["ld {index}, 0({fast_path})", "add {area}, {index}, tp"];

impl Architecture {
    pub(super) const ALL: [Architecture; 3] =
        [Architecture::X86_64, Architecture::Aarch64, Architecture::Riscv64];

    /// Returns the macro that compilers define for it.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Architecture::X86_64 => "__x86_64__",
            Architecture::Aarch64 => "__aarch64__",
            Architecture::Riscv64 => "__riscv",
        }
    }

    pub(super) fn source(self) -> &'static str {
        macro_rules! files {
            ($name:literal) => {
                concat!(
                    include_str!(concat!("../../../../percid/src/critical/", $name)),
                    include_str!(concat!("../../../../percid/src/critical/words/", $name)),
                )
            };
        }
        match self {
            Architecture::X86_64 => files!("x86_64.rs"),
            Architecture::Aarch64 => files!("aarch64.rs"),
            Architecture::Riscv64 => files!("riscv64.rs"),
        }
    }

    fn scratch(self) -> &'static [(&'static str, &'static str, &'static str)] {
        match self {
            Architecture::X86_64 => &X86_64_SCRATCH,
            Architecture::Aarch64 => &AARCH64_SCRATCH,
            Architecture::Riscv64 => &RISCV64_SCRATCH,
        }
    }

    fn area(self) -> &'static [&'static str] {
        match self {
            Architecture::X86_64 => &[],
            Architecture::Aarch64 => &AARCH64_AREA,
            Architecture::Riscv64 => &RISCV64_AREA,
        }
    }

    /// Returns the registers that a critical section without a result destroys, or one with a
    /// result in addition to its outputs. On Arm a branch from the abort pad that is too far for
    /// one instruction uses a veneer, which destroys two registers.
    pub(super) fn clobbers(self, operation: &str) -> String {
        let macros = Macros::of(self.source());
        let found = macros.operation(operation);
        let lines = found.lines.join("\n");
        let used = |name: &str| match name {
            "area" => true,
            "index" | "work" => found.zero.is_none(),
            name => {
                let is_input = found.constants.contains_key(name);
                found.zero.is_none() && !is_input && lines.contains(&format!("{{{name}"))
            }
        };
        let scratch = self.scratch().iter().filter(|(name, ..)| used(name));
        let mut names: Vec<_> = scratch.map(|(_, register, _)| *register).collect();
        names.dedup();
        if self == Architecture::Aarch64 {
            names.extend(["x16", "x17"]);
        }
        names.extend(["cc", "memory"]);
        names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }

    /// Returns a critical section's text, line by line.
    pub(super) fn lines(self, macros: &Macros, section: &Section) -> Vec<String> {
        let operation = macros.operation(section.operation);
        let [exit, pad, behind] = macros.ends(operation.zero.as_deref());
        let mut text: Vec<String> = Vec::new();
        for part in macros.frame(&pad, &behind) {
            match part {
                Part::Text(line) => text.push(line),
                Part::Index => text.push(macros.index(section.source, &exit)),
                Part::Operation => text.extend(operation.lines.iter().cloned()),
            }
        }
        let number = |name: &str| match name {
            "field" => {
                Some(number_of(if section.source == "kernel" { "kernel_limit" } else { "table" }))
            }
            "area" if self == Architecture::X86_64 => Some(number_of("area")),
            "shift" => Some(number_of("SHIFT")),
            name => operation.constants.get(name).map(|value| evaluate(value, section.mark)),
        };
        let register = |name: &str, bits: u32| self.register(name, bits, operation.zero.is_some());
        let lines: Vec<String> = text
            .iter()
            .flat_map(|line| line.split('\n'))
            .map(|line| line.trim().to_owned())
            .collect();
        let mut lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        let start = lines.iter().position(|line| line == ".popsection").map_or(0, |at| at + 1);
        lines.splice(start..start, self.area().iter().map(|&line| line.to_owned()));
        lines.iter().map(|line| self.line(&with_numbers(line, &number), &register)).collect()
    }

    fn line(self, line: &str, register: &impl Fn(&str, u32) -> String) -> String {
        if line.starts_with('.') {
            // The "?" puts it into the group of the function that contains the critical section.
            return line.replace("\"aw\"", "\"aw?\"").replace("\"ax\"", "\"ax?\"");
        }
        let line = line.replace("{restart}", "%l[percid_slow]");
        if line.ends_with(':') {
            return line;
        }
        match self {
            Architecture::X86_64 => att::instruction(&line, register),
            Architecture::Aarch64 | Architecture::Riscv64 => with_registers(&line, register),
        }
    }

    /// Returns the text of a register of the critical section. The compiler chooses the inputs, and
    /// all registers of a section with a result.
    fn register(self, name: &str, bits: u32, has_result: bool) -> String {
        let fixed = self.scratch().iter().find(|(known, ..)| *known == name);
        match fixed.filter(|_| !has_result || name == "area") {
            Some((_, whole, half)) => {
                let register = if bits == 64 { whole } else { half };
                if self == Architecture::X86_64 {
                    format!("%%{register}")
                } else {
                    (*register).to_owned()
                }
            }
            None if bits == 64 => format!("%[{name}]"),
            None if bits == 8 => format!("%b[{name}]"),
            None if self == Architecture::X86_64 => format!("%k[{name}]"),
            None => format!("%w[{name}]"),
        }
    }
}

/// Replaces the names of constants by numbers.
fn with_numbers(line: &str, number: &impl Fn(&str) -> Option<i64>) -> String {
    replaced(line, &|name| number(name).map(|number| number.to_string()))
}

fn with_registers(line: &str, register: &impl Fn(&str, u32) -> String) -> String {
    replaced(line, &|name| {
        Some(match name.strip_suffix(":w") {
            Some(name) => register(name, 32),
            None => register(name, 64),
        })
    })
}

/// Replaces the text between braces if `find` returns a replacement.
fn replaced(line: &str, find: &impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}').expect("a closing brace");
        text += before;
        text += &find(name).unwrap_or_else(|| format!("{{{name}}}"));
        rest = behind;
    }
    text + rest
}

/// Returns the value of a constant operand for a word with this mark.
fn evaluate(expression: &str, mark: i64) -> i64 {
    if let Some((value, shift)) = expression.split_once(" >> ") {
        return evaluate(value, mark) >> shift.parse::<u32>().expect("a number of bits");
    }
    let term = |term: &str| match term.trim().trim_end_matches(" as isize") {
        "$displacement" => -mark,
        "$closed" => number_of("CLOSED"),
        other => {
            let name = other.trim_end_matches(')');
            number_of(name.rsplit([':', ' ']).next().unwrap_or(name))
        }
    };
    expression.split(" + ").map(term).sum()
}

fn number_of(name: &str) -> i64 {
    let found = SECTION_NUMBERS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("the library does not tell what {name} is")).1
}
