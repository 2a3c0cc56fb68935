//! The functions of a program that anything refers to.
//!
//! A compiler that puts a function into the code of its only caller may leave the original behind,
//! and the linker keeps it if it has a critical section: sections of data with such a name as the
//! descriptors' are never dropped, nor what they refer to. No thread can run such a function, so no
//! thread can interrupt it.

use std::collections::HashSet;

use iced_x86::{Instruction, OpKind};

use crate::image::{Function, Image};
use crate::section::decode;

/// The addresses that the program's code and data lead to.
#[derive(Debug)]
pub struct References {
    addresses: HashSet<u64>,
}

impl References {
    /// Reads all functions of a program, and all its relocated words.
    pub fn of(image: &Image) -> References {
        let from_code = image.functions().iter().flat_map(|function| from(image, function));
        let from_data = image.relocated_words();
        References { addresses: from_code.chain(from_data).collect() }
    }

    /// Returns `true` if anything except the function itself refers to its beginning.
    pub fn lead_to(&self, function: &Function) -> bool {
        self.addresses.contains(&function.address)
    }
}

/// Returns the addresses outside of a function that it calls, jumps to, or takes.
fn from<'a>(image: &'a Image, function: &'a Function) -> impl Iterator<Item = u64> + 'a {
    let code = decode(image, function.address, function.length).unwrap_or_default();
    let targets = code.into_iter().filter_map(|instruction| target(&instruction));
    targets.filter(|target| target.wrapping_sub(function.address) >= function.length)
}

fn target(instruction: &Instruction) -> Option<u64> {
    match instruction.op0_kind() {
        OpKind::NearBranch64 => Some(instruction.near_branch_target()),
        _ if instruction.is_ip_rel_memory_operand() => Some(instruction.ip_rel_memory_address()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test program itself has functions of both kinds.
    #[test]
    fn what_is_called_is_led_to_and_other_addresses_are_not() {
        let path = std::env::current_exe().expect("the test's own file");
        let image = Image::read(&path).expect("an ELF file");
        let references = References::of(&image);
        let called = image.functions().iter().filter(|function| references.lead_to(function));
        assert!(called.count() > 100);
        let inside =
            |function: &Function| Function { address: function.address + 1, ..function.clone() };
        let middles = image.functions().iter().map(inside);
        let led_to = middles.filter(|middle| references.lead_to(middle)).count();
        assert!(
            led_to * 100 < image.functions().len(),
            "{led_to} functions have a reference to byte 1"
        );
    }
}
