//! The fast paths as the compiler makes them, compared with what is written down.
//!
//! Registers are numbered in the order of their appearance and addresses have no value, so that
//! what is compared is the number of instructions, what they are and what kind of operands they
//! have. Another compiler may choose differently: with another major version of LLVM only the
//! length is compared, and what must never be in a fast path.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use iced_x86::{Code, Instruction, InstructionInfoFactory, MemorySize, OpAccess, OpKind, Register};

use crate::image::{Function, Image};
use crate::section::decode;

/// The functions that are compared.
pub const FUNCTIONS: [&str; 12] = [
    "percid_static_add",
    "percid_reference_add",
    "percid_histogram_record",
    "percid_buckets_record",
    "percid_local_with",
    "percid_stack_push",
    "percid_stack_pop",
    "percid_ring_append",
    "percid_mask_mark",
    "percid_word_add",
    "percid_link_push",
    "percid_link_pop",
];

/// The functions that are compared in a build without critical sections, where they use atomic
/// instructions.
pub const PORTABLE_FUNCTIONS: [&str; 2] = ["percid_static_add", "percid_histogram_record"];

/// The kind of build that a function is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With critical sections.
    Sections,
    /// Like on an architecture without critical sections.
    Portable,
}

/// Environment variable: if it is set, the present code is recorded as the expected one.
pub const BLESS: &str = "PERCID_BLESS";

/// The method of comparison of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Instruction by instruction.
    Exactly,
    /// Only the length, because the compiler is a different one.
    ByLength,
    /// Not compared: recorded as the expected code.
    Blessed,
}

/// Compares one function of the optimised program.
///
/// # Errors
///
/// Returns the changes, as lines with - and +, and by how much the function has become longer.
pub fn compare(
    image: &Image,
    kind: Kind,
    name: &str,
    toolchain: &(String, u32),
) -> Result<Compared, String> {
    let function = image.function(name).ok_or_else(|| format!("no function {name}"))?;
    let now = normalised(image, function)?;
    let code = decode(image, function.address, function.length).unwrap_or_default();
    must_not_be_there(image, name, &code)?;
    match kind {
        Kind::Sections => must_not_lock(name, &code)?,
        Kind::Portable => must_store_once(name, &code)?,
    }
    let path = folder(kind).join(format!("{name}.txt"));
    if std::env::var_os(BLESS).is_some() {
        write_down(&path, name, toolchain, &now)?;
        return Ok(Compared::Blessed);
    }
    let golden = std::fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}; {BLESS}=1 writes it", path.display()))?;
    judge(name, &golden, toolchain.1, &now)
}

fn folder(kind: Kind) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    match kind {
        Kind::Sections => golden,
        Kind::Portable => golden.join("portable"),
    }
}

fn write_down(
    path: &Path,
    name: &str,
    (release, llvm): &(String, u32),
    lines: &[String],
) -> Result<(), String> {
    let head = format!("# {name}\n# rustc {release}\n# llvm {llvm}\n");
    let text = head + &lines.join("\n") + "\n";
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Compares the lines of a golden file with those of now.
///
/// # Errors
///
/// The differences.
pub fn judge(name: &str, golden: &str, llvm: u32, now: &[String]) -> Result<Compared, String> {
    let known = golden.lines().find_map(|line| line.strip_prefix("# llvm "));
    let same_compiler = known.and_then(|known| known.trim().parse().ok()) == Some(llvm);
    let then: Vec<&str> = golden.lines().filter(|line| !line.starts_with('#')).collect();
    let length =
        |lines: &mut dyn Iterator<Item = &str>| lines.filter(|line| !line.ends_with(':')).count();
    let before = length(&mut then.iter().copied());
    let after = length(&mut now.iter().map(String::as_str));
    let same = then.iter().copied().eq(now.iter().map(String::as_str));
    if (same_compiler && same) || (!same_compiler && after <= before) {
        return Ok(if same_compiler { Compared::Exactly } else { Compared::ByLength });
    }
    let verdict = match after.cmp(&before) {
        std::cmp::Ordering::Greater => format!("longer by {}", after - before),
        std::cmp::Ordering::Less => format!("shorter by {}", before - after),
        std::cmp::Ordering::Equal => "as long as before".to_owned(),
    };
    let lines = difference(&then, now);
    Err(format!(
        "{name} has changed: {after} instructions, {verdict} (were {before})\n{lines}{BLESS}=1 accepts it"
    ))
}

/// Returns all lines, with - before those that were removed and + before those that were added: the
/// longest common subsequence stays.
fn difference(then: &[&str], now: &[String]) -> String {
    let mut common = vec![vec![0usize; now.len() + 1]; then.len() + 1];
    for i in (0..then.len()).rev() {
        for j in (0..now.len()).rev() {
            let skip = common[i + 1][j].max(common[i][j + 1]);
            common[i][j] = if then[i] == now[j] { common[i + 1][j + 1] + 1 } else { skip };
        }
    }
    let (mut i, mut j, mut text) = (0, 0, String::new());
    while i < then.len() || j < now.len() {
        let both = i < then.len() && j < now.len();
        let (mark, line) = if both && then[i] == now[j] {
            (i, j) = (i + 1, j + 1);
            (' ', then[i - 1])
        } else if j == now.len() || (i < then.len() && common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', then[i - 1])
        } else {
            j += 1;
            ('+', now[j - 1].as_str())
        };
        let _ = writeln!(text, "{mark} {line}");
    }
    text
}

/// Checks for code that no compiler may generate there: undefined instructions, and calls of
/// anything but a slow path.
fn must_not_be_there(image: &Image, name: &str, code: &[Instruction]) -> Result<(), String> {
    if let Some(one) = code.iter().find(|one| one.is_invalid()) {
        return Err(format!("{name}: {:?} in the fast path", one.mnemonic()));
    }
    let callees = code.iter().filter(|one| is_call(one)).map(|one| callee(image, one));
    let found: Vec<String> = callees.filter(|callee| !is_slow_path(callee)).collect();
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("{name}: calls of {found:?} in the fast path"))
    }
}

fn must_not_lock(name: &str, code: &[Instruction]) -> Result<(), String> {
    match code.iter().find(|one| one.has_lock_prefix()) {
        Some(one) => Err(format!("{name}: {:?} in the fast path", one.mnemonic())),
        None => Ok(()),
    }
}

/// Checks that there is one locked instruction and no other store: the locked one of the next
/// operation would wait for it.
fn must_store_once(name: &str, code: &[Instruction]) -> Result<(), String> {
    let mut factory = InstructionInfoFactory::new();
    let mut stores = |one: &Instruction| {
        let memory = factory.info(one).used_memory();
        memory.iter().any(|place| !matches!(place.access(), OpAccess::Read | OpAccess::NoMemAccess))
    };
    let storing: Vec<&Instruction> =
        code.iter().filter(|one| !is_call(one) && stores(one)).collect();
    match storing[..] {
        [one] if one.has_lock_prefix() => Ok(()),
        _ => {
            let mnemonics: Vec<_> = storing.iter().map(|one| one.mnemonic()).collect();
            Err(format!("{name}: {mnemonics:?} store, and one locked instruction shall"))
        }
    }
}

fn is_call(instruction: &Instruction) -> bool {
    instruction.is_call_near() || instruction.is_call_near_indirect()
}

/// Returns the last part of the name of the function that an instruction calls, directly or through
/// the global offset table.
fn callee(image: &Image, call: &Instruction) -> String {
    let target = match call.op0_kind() {
        OpKind::NearBranch64 => Some(call.near_branch_target()),
        OpKind::Memory if call.is_ip_rel_memory_operand() => {
            image.pointer(call.memory_displacement64())
        }
        _ => None,
    };
    let function = target.and_then(|target| image.function_at(target));
    let name = function.map_or("unknown".to_owned(), |function| {
        format!("{:#}", rustc_demangle::demangle(&function.name))
    });
    name.rsplit("::").next().unwrap_or_default().to_owned()
}

/// Returns `true` if the name belongs to a function that is out of line on purpose, or to a panic.
fn is_slow_path(callee: &str) -> bool {
    callee.ends_with("_slowly") || callee.starts_with("panic")
}

/// Returns the lines of a function: instructions, and labels at the targets of its jumps and at the
/// begin and end of its critical sections.
///
/// # Errors
///
/// Returns an error if it has no bytes.
pub fn normalised(image: &Image, function: &Function) -> Result<Vec<String>, String> {
    let code = decode(image, function.address, function.length);
    let code = code.ok_or_else(|| format!("{} has no bytes", function.name))?;
    let inside = |address: u64| address.wrapping_sub(function.address) < function.length;
    let mut labels: Vec<u64> = code
        .iter()
        .filter(|one| is_jump(one))
        .map(Instruction::near_branch_target)
        .filter(|&target| inside(target))
        .collect();
    labels.sort_unstable();
    labels.dedup();
    let mut names = Names { image, registers: Vec::new(), labels };
    let sections = image.descriptors();
    let mut lines = Vec::new();
    for one in code.iter().filter(|one| one.code() != Code::Int3) {
        let here = sections.iter().filter_map(|section| match one.ip() {
            ip if ip == section.start => Some("section:"),
            ip if ip == section.end() => Some("committed:"),
            _ => None,
        });
        lines.extend(here.map(str::to_owned));
        if let Some(label) = names.labels.iter().position(|&label| label == one.ip()) {
            lines.push(format!("L{}:", label + 1));
        }
        lines.push(names.line(one));
    }
    Ok(lines)
}

fn is_jump(instruction: &Instruction) -> bool {
    instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near()
}

/// The names that stand for registers and jump targets.
struct Names<'i> {
    image: &'i Image,
    registers: Vec<Register>,
    labels: Vec<u64>,
}

impl Names<'_> {
    fn line(&mut self, one: &Instruction) -> String {
        if is_call(one) {
            return format!("    call {}", callee(self.image, one));
        }
        let lock = if one.has_lock_prefix() { "lock " } else { "" };
        let mnemonic = format!("{:?}", one.mnemonic()).to_lowercase();
        let operands: Vec<String> = (0..one.op_count()).map(|n| self.operand(one, n)).collect();
        format!("    {lock}{mnemonic} {}", operands.join(", ")).trim_end().to_owned()
    }

    fn operand(&mut self, one: &Instruction, n: u32) -> String {
        match one.op_kind(n) {
            OpKind::Register => self.register(one.op_register(n)),
            OpKind::Memory => self.memory(one),
            OpKind::NearBranch64 => {
                let target = one.near_branch_target();
                let label = self.labels.iter().position(|&label| label == target);
                label.map_or("elsewhere".to_owned(), |label| format!("L{}", label + 1))
            }
            _ => format!("{:#x}", one.immediate(n)),
        }
    }

    fn register(&mut self, register: Register) -> String {
        let full = register.full_register();
        let known = self.registers.iter().position(|&known| known == full);
        let number = known.unwrap_or(self.registers.len());
        if known.is_none() {
            self.registers.push(full);
        }
        format!("r{number}.{}", register.size() * 8)
    }

    fn memory(&mut self, one: &Instruction) -> String {
        let size = match one.memory_size() {
            MemorySize::Unknown => String::new(),
            size => format!("m{}", size.size() * 8),
        };
        let thread = if one.memory_segment() == Register::FS { "thread:" } else { "" };
        if one.is_ip_rel_memory_operand() {
            return format!("{size}[{thread}static]");
        }
        let mut parts = Vec::new();
        if one.memory_base() != Register::None {
            parts.push(self.register(one.memory_base()));
        }
        if one.memory_index() != Register::None {
            parts.push(self.register(one.memory_index()));
            // An assembler may write the two summands in either order.
            match one.memory_index_scale() {
                1 => parts.sort(),
                scale => parts.last_mut().expect("the index").push_str(&format!("*{scale}")),
            }
        }
        let displacement = one.memory_displacement64() as i64;
        if displacement != 0 {
            parts.push(displacement.to_string());
        }
        format!("{size}[{thread}{}]", parts.join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: &str = "# f\n# llvm 22\n    inc r0.64\nL1:\n    ret\n";

    fn lines(text: &[&str]) -> Vec<String> {
        text.iter().map(|&line| line.to_owned()).collect()
    }

    /// `lock xadd [rdi], rax`, `mov [rdi], rax` and `ret`.
    const LOCKED: [u8; 5] = [0xf0, 0x48, 0x0f, 0xc1, 0x07];
    const STORE: [u8; 3] = [0x48, 0x89, 0x07];
    const RET: [u8; 1] = [0xc3];

    fn code(parts: &[&[u8]]) -> Vec<Instruction> {
        let bytes = parts.concat();
        iced_x86::Decoder::new(64, &bytes, 0).into_iter().collect()
    }

    #[test]
    fn a_store_beside_the_locked_instruction_is_noticed() {
        let judge = |parts: &[&[u8]]| must_store_once("f", &code(parts)).is_ok();
        assert!(judge(&[&LOCKED, &RET]));
        assert!(!judge(&[&LOCKED, &STORE, &RET]) && !judge(&[&STORE, &RET]));
        assert!(!judge(&[&LOCKED, &LOCKED, &RET]) && !judge(&[&RET]));
        assert!(must_not_lock("f", &code(&[&STORE, &RET])).is_ok());
        assert!(must_not_lock("f", &code(&[&LOCKED, &RET])).is_err());
    }

    #[test]
    fn what_is_written_down_passes() {
        let now = lines(&["    inc r0.64", "L1:", "    ret"]);
        assert_eq!(judge("f", GOLDEN, 22, &now), Ok(Compared::Exactly));
    }

    #[test]
    fn a_longer_function_is_named_and_shown() {
        let now = lines(&["    inc r0.64", "    nop", "L1:", "    ret"]);
        for llvm in [22, 23] {
            let error = judge("f", GOLDEN, llvm, &now).expect_err("it is longer");
            assert!(error.contains("longer by 1") && error.contains("+     nop"), "{error}");
        }
    }

    #[test]
    fn another_compiler_may_choose_differently_but_not_more() {
        let now = lines(&["    add r0.64, 0x1", "    ret"]);
        assert!(judge("f", GOLDEN, 22, &now).is_err());
        assert_eq!(judge("f", GOLDEN, 23, &now), Ok(Compared::ByLength));
    }
}
