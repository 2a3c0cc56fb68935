//! Finds the places in the kernel's code between whose compare-exchanges an agent can be late.
//!
//! The code is that of the running kernel, so nothing here depends on a version or an address. Both
//! functions in question take an ID away from another CPU's slot by two compare-exchanges on 32
//! bits: `VALID(k) -> LAZY(k)`, and then `LAZY(k) -> UNSET`. `UNSET` is all ones, which identifies
//! the second; its expected value is in `eax`, by definition of the instruction.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// Maximum number of instructions between the load of a new value and the exchange.
const REACH: usize = 12;

/// A function of the running kernel.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The address of its first byte.
    pub start: u64,
    /// Its bytes.
    pub code: Vec<u8>,
}

/// An instruction at which to catch a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub address: u64,
    /// The register that holds the ID there, with the mark: the one that it is part of, 64 bits
    /// wide.
    pub id: Register,
}

/// Returns the place of the second compare-exchange itself.
pub fn second_exchange(function: &Function) -> Result<Place, String> {
    let instructions = decode(function);
    let at = find_second(function, &instructions)?;
    Ok(Place { address: instructions[at].ip(), id: Register::RAX })
}

/// Returns the last place before the second compare-exchange at which interrupts are on: the end of
/// the section under RCU's protection in which the other CPU's current thread was checked, a call
/// of `rcu_read_unlock`.
pub fn before_interrupts_are_off(
    function: &Function,
    rcu_read_unlock: u64,
) -> Result<Place, String> {
    let instructions = decode(function);
    let second = find_second(function, &instructions)?;
    let place = instructions[..second]
        .iter()
        .rposition(|i| i.is_call_near() && i.near_branch_target() == rcu_read_unlock)
        .ok_or_else(|| format!("{} calls no __rcu_read_unlock", function.name))?;
    let between = &instructions[place..second];
    if between.iter().any(leaves) {
        return Err(format!(
            "in {} the way from __rcu_read_unlock to the second exchange is not straight",
            function.name
        ));
    }
    let id = between.iter().rev().find(|i| writes(i, Register::EAX)).and_then(copied_register);
    let id = id.ok_or_else(|| format!("in {} no register holds the ID", function.name))?;
    Ok(Place { address: instructions[place].ip(), id: id.full_register() })
}

fn decode(function: &Function) -> Vec<Instruction> {
    Decoder::with_ip(64, &function.code, function.start, DecoderOptions::NONE).into_iter().collect()
}

/// Returns the index of the exchange whose new value is all ones, the only one of its kind, with
/// another before it.
fn find_second(function: &Function, instructions: &[Instruction]) -> Result<usize, String> {
    let exchanges: Vec<usize> =
        (0..instructions.len()).filter(|&at| is_exchange(&instructions[at])).collect();
    let unset: Vec<usize> =
        exchanges.iter().copied().filter(|&at| stores_all_ones(instructions, at)).collect();
    match (exchanges.len(), unset[..].first()) {
        (2, Some(&second)) if unset.len() == 1 => Ok(second),
        _ => Err(format!(
            "{} has {} locked compare-exchanges of 32 bits, {} of which store all ones; expected 2 and 1",
            function.name,
            exchanges.len(),
            unset.len()
        )),
    }
}

fn is_exchange(instruction: &Instruction) -> bool {
    instruction.code() == Code::Cmpxchg_rm32_r32 && instruction.has_lock_prefix()
}

fn stores_all_ones(instructions: &[Instruction], at: usize) -> bool {
    let new_value = instructions[at].op1_register();
    let before = &instructions[at.saturating_sub(REACH)..at];
    let load = before.iter().rev().find(|i| writes(i, new_value));
    // `or` with all ones is the shorter way to write it.
    let loads = |load: &Instruction| matches!(load.mnemonic(), Mnemonic::Mov | Mnemonic::Or);
    load.is_some_and(|load| {
        loads(load) && is_immediate(load) && load.immediate(1) as u32 == u32::MAX
    })
}

fn is_immediate(instruction: &Instruction) -> bool {
    instruction.op_count() == 2
        && !matches!(instruction.op1_kind(), OpKind::Register | OpKind::Memory)
}

/// Returns `true` if the first operand is this register, or a part of it. Sufficient for loads;
/// calls, which may change any register, are checked by [`leaves`] or between the places.
fn writes(instruction: &Instruction, register: Register) -> bool {
    let compares =
        matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    !compares
        && instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == register.full_register()
}

/// Returns the register that a `mov` between registers copies.
fn copied_register(load: &Instruction) -> Option<Register> {
    let is_copy = load.mnemonic() == Mnemonic::Mov && load.op1_kind() == OpKind::Register;
    is_copy.then(|| load.op1_register())
}

/// Returns `true` if the next executed instruction may be another than the following one.
fn leaves(instruction: &Instruction) -> bool {
    !matches!(
        instruction.flow_control(),
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0xffff_ffff_8100_1000;
    const UNLOCK: u64 = 0xffff_ffff_8110_0000;

    fn function(code: &[u8]) -> Function {
        Function { name: "take_id".into(), start: START, code: code.to_vec() }
    }

    /// The function as compilers write it: the mark, a look at the other CPU, the second exchange.
    #[rustfmt::skip]
    const GOOD: [u8; 52] = [
        0x44, 0x89, 0xe5, // mov ebp, r12d
        0x44, 0x89, 0xe0, // mov eax, r12d
        0x81, 0xcd, 0x00, 0x00, 0x00, 0x80, // or ebp, 0x80000000
        0xf0, 0x0f, 0xb1, 0x6e, 0x08, // lock cmpxchg [rsi+0x8], ebp
        0x75, 0x1b, // jne to the ret
        0x4c, 0x3b, 0xa8, 0x10, 0x0a, 0x00, 0x00, // cmp r13, [rax+0xa10]
        0x74, 0x13, // je to the jmp
        0xe8, 0xdf, 0xef, 0x0f, 0x00, // call UNLOCK
        0xfa, // cli
        0xba, 0xff, 0xff, 0xff, 0xff, // mov edx, -1
        0x89, 0xe8, // mov eax, ebp
        0xf0, 0x0f, 0xb1, 0x53, 0x08, // lock cmpxchg [rbx+0x8], edx
        0xc3, // ret
        0xe9, 0xcc, 0xef, 0x0f, 0x00, // jmp UNLOCK
    ];

    #[test]
    fn the_second_exchange_is_the_one_that_stores_all_ones() {
        let function = function(&GOOD);
        let place = second_exchange(&function).expect("it is there");
        let bytes = &function.code[(place.address - START) as usize..];
        // lock cmpxchg [rbx+8], edx
        assert_eq!(bytes[..5], [0xf0, 0x0f, 0xb1, 0x53, 0x08]);
        assert_eq!(place.id, Register::RAX);
    }

    #[test]
    fn the_place_for_an_interrupt_is_the_end_of_the_look() {
        let function = function(&GOOD);
        let place = before_interrupts_are_off(&function, UNLOCK).expect("it is there");
        assert_eq!(function.code[(place.address - START) as usize], 0xe8, "a call");
        assert_eq!(place.id, Register::RBP);
        let error = before_interrupts_are_off(&function, UNLOCK + 16).expect_err("no such call");
        assert!(error.contains("calls no __rcu_read_unlock"), "{error}");
    }

    #[test]
    fn the_order_of_the_code_does_not_matter() {
        #[rustfmt::skip]
        let function = function(&[
            0xeb, 0x0d, // jmp to the exchange that stores ecx
            0x83, 0xca, 0xff, // or edx, -1
            0x8b, 0x44, 0x24, 0x0c, // mov eax, [rsp+0xc]
            0xf0, 0x0f, 0xb1, 0x53, 0x08, // lock cmpxchg [rbx+0x8], edx
            0xc3, // ret
            0xf0, 0x0f, 0xb1, 0x4b, 0x08, // lock cmpxchg [rbx+0x8], ecx
            0xeb, 0xec, // jmp to the or
        ]);
        let place = second_exchange(&function).expect("it is there");
        assert!(place.address < START + 16, "{:x}", place.address);
    }

    #[test]
    fn other_functions_are_refused() {
        #[rustfmt::skip]
        let one = function(&[
            0xba, 0xff, 0xff, 0xff, 0xff, // mov edx, -1
            0xf0, 0x0f, 0xb1, 0x53, 0x08, // lock cmpxchg [rbx+0x8], edx
            0xc3, // ret
        ]);
        let error = second_exchange(&one).expect_err("one exchange only");
        assert!(error.contains("has 1 locked compare-exchanges of 32 bits, 1 of which"), "{error}");
        #[rustfmt::skip]
        let wide = function(&[
            0xf0, 0x48, 0x0f, 0xb1, 0x4b, 0x08, // lock cmpxchg [rbx+0x8], rcx
            0x48, 0xc7, 0xc2, 0xff, 0xff, 0xff, 0xff, // mov rdx, -1
            0xf0, 0x48, 0x0f, 0xb1, 0x53, 0x08, // lock cmpxchg [rbx+0x8], rdx
            0xc3, // ret
        ]);
        assert!(second_exchange(&wide).is_err());
        #[rustfmt::skip]
        let unlocked = function(&[
            0xf0, 0x0f, 0xb1, 0x4b, 0x08, // lock cmpxchg [rbx+0x8], ecx
            0xba, 0xff, 0xff, 0xff, 0xff, // mov edx, -1
            0x0f, 0xb1, 0x53, 0x08, // cmpxchg [rbx+0x8], edx
            0xc3, // ret
        ]);
        assert!(second_exchange(&unlocked).is_err());
        #[rustfmt::skip]
        let overwritten = function(&[
            0xf0, 0x0f, 0xb1, 0x4b, 0x08, // lock cmpxchg [rbx+0x8], ecx
            0xba, 0xff, 0xff, 0xff, 0xff, // mov edx, -1
            0x89, 0xf2, // mov edx, esi
            0xf0, 0x0f, 0xb1, 0x53, 0x08, // lock cmpxchg [rbx+0x8], edx
            0xc3, // ret
        ]);
        assert!(second_exchange(&overwritten).is_err());
        let empty = Function { name: "empty".into(), start: START, code: Vec::new() };
        assert!(second_exchange(&empty).is_err());
    }
}
