//! Loops in disassembled functions.

use std::path::Path;

use crate::toolchain::output_of;

/// One line of a disassembly.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    address: u64,
    mnemonic: String,
    operands: String,
}

/// Returns the instructions of a function.
pub(crate) fn function(program: &Path, name: &str) -> Vec<Instruction> {
    let path = program.to_str().expect("a path in UTF-8");
    let only = format!("--disassemble={name}");
    let text = output_of("objdump", &[&only, "--no-show-raw-insn", path]);
    let start = format!("<{name}>:");
    let lines = text.lines().skip_while(|line| !line.ends_with(&start)).skip(1);
    let code: Vec<_> = lines.take_while(|line| !line.is_empty()).filter_map(instruction).collect();
    assert!(!code.is_empty(), "no function {name} in {path}");
    code
}

/// Parses a line such as `   17ea0:\tmov    0x8(%rax),%rbx`.
fn instruction(line: &str) -> Option<Instruction> {
    let (address, code) = line.trim().split_once(':')?;
    let code = code.trim().split('#').next()?.trim();
    let (mnemonic, operands) = code.split_once(' ').unwrap_or((code, ""));
    Some(Instruction {
        address: u64::from_str_radix(address, 16).ok()?,
        mnemonic: mnemonic.to_owned(),
        operands: operands.trim().to_owned(),
    })
}

impl Instruction {
    /// Returns the target of the jump.
    fn target(&self) -> Option<u64> {
        let jumps = self.mnemonic.starts_with('j');
        let address = self.operands.split_whitespace().next().filter(|_| jumps)?;
        u64::from_str_radix(address, 16).ok()
    }

    fn is_conditional(&self) -> bool {
        self.mnemonic != "jmp"
    }

    /// Returns `true` if it calls, returns, or locks the bus: an increment must contain none of
    /// these.
    pub(crate) fn is_costly(&self) -> bool {
        let words = ["call", "ret", "lock", "xchg", "fence", "syscall"];
        words.iter().any(|word| self.mnemonic.contains(word))
    }

    /// Returns `true` if it tests a bit of a counter's word.
    fn tests(&self, mark: u32) -> bool {
        self.mnemonic.starts_with("test") && self.operands.starts_with(&format!("$0x{mark:x},"))
    }

    /// Returns `true` if it declares a critical section.
    fn declares(&self) -> bool {
        self.operands.contains(",%fs:0x8(")
    }

    /// Returns `true` if it is the commit of a critical section for counters with this mark.
    fn commits(&self, mark: u32) -> bool {
        self.mnemonic == "mov" && self.operands.starts_with(&format!("%rax,-0x{mark:x}("))
    }
}

/// Returns the instructions that a function repeats when its counters have this mark (2: the
/// kernel's IDs, 1: the table's) and every critical section commits. If it has none, returns those
/// of any loop.
pub(crate) fn repeated(code: &[Instruction], mark: u32) -> Vec<Instruction> {
    let has_sections = code.iter().any(|one| one.commits(mark));
    let wanted =
        |cycle: &[usize]| !has_sections || cycle.iter().any(|&index| code[index].commits(mark));
    let cycle = cycle(code, mark, &mut Vec::new(), 0, &wanted).expect("a loop");
    cycle.into_iter().map(|index| code[index].clone()).collect()
}

/// Follows the code from `at`, both ways if a jump depends on the program, until it returns to an
/// earlier instruction and the cycle is wanted.
fn cycle(
    code: &[Instruction],
    mark: u32,
    way: &mut Vec<usize>,
    at: usize,
    wanted: &impl Fn(&[usize]) -> bool,
) -> Option<Vec<usize>> {
    if let Some(first) = way.iter().position(|&visited| visited == at) {
        return Some(way[first..].to_vec()).filter(|cycle| wanted(cycle));
    }
    way.push(at);
    let found = next(code, mark, way).into_iter().find_map(|at| cycle(code, mark, way, at, wanted));
    way.pop();
    found
}

/// Returns the possible next instructions.
fn next(code: &[Instruction], mark: u32, way: &[usize]) -> Vec<usize> {
    let Some((&at, before)) = way.split_last() else { return Vec::new() };
    let here = &code[at];
    let behind = Some(at + 1).filter(|&index| index < code.len() && here.mnemonic != "ret");
    let Some(target) = here.target() else { return behind.into_iter().collect() };
    let target = code.iter().position(|one| one.address == target);
    if !here.is_conditional() {
        return target.into_iter().collect();
    }
    // Jumps leave critical sections only when they fail.
    let in_section = way.iter().rev().map(|&index| &code[index]);
    let in_section =
        in_section.take_while(|one| !one.commits(1) && !one.commits(2)).any(Instruction::declares);
    let tested =
        before.last().and_then(|&index| [1, 2].into_iter().find(|&bit| code[index].tests(bit)));
    let taken = match (in_section, tested) {
        (true, _) => Some(false),
        (false, Some(bit)) => Some((bit == mark) == (here.mnemonic == "jne")),
        (false, None) => None,
    };
    let ways = [behind.filter(|_| taken != Some(true)), target.filter(|_| taken != Some(false))];
    ways.into_iter().flatten().collect()
}
