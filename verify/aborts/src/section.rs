//! A critical section of a real program, taken apart into its instructions.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use crate::image::{Descriptor, Image};

/// Number of instructions before a section that are interrupted too: those that declare it.
const IN_FRONT: usize = 3;

/// One section. Addresses are the file's own, as if it were loaded at zero.
#[derive(Debug, Clone)]
pub struct Section {
    /// The section's descriptor, as the kernel reads it.
    pub descriptor: Descriptor,
    /// The function it was compiled into.
    pub function: String,
    /// The addresses of its instructions, the commit last.
    pub instructions: Vec<u64>,
    /// The addresses of the instructions right in front of it, in order.
    pub in_front: Vec<u64>,
    /// The address that the abort pad jumps to.
    pub pad_target: u64,
}

impl Section {
    /// Returns all sections of a program.
    ///
    /// # Errors
    ///
    /// Returns an error that identifies a section that cannot be decoded.
    pub fn all(image: &Image) -> Result<Vec<Section>, String> {
        image.descriptors().into_iter().map(|descriptor| Section::read(image, descriptor)).collect()
    }

    fn read(image: &Image, descriptor: Descriptor) -> Result<Section, String> {
        let broken = |what: &str| format!("section at {:#x}: {what}", descriptor.start);
        let function = image
            .function_at(descriptor.start)
            .ok_or_else(|| broken("in no function of the symbol table"))?;
        let all = decode(image, function.address, function.length)
            .ok_or_else(|| broken("its function has no bytes"))?;
        let first = all.iter().position(|one| one.ip() == descriptor.start);
        let first = first.ok_or_else(|| broken("does not start with an instruction"))?;
        let inside = all[first..].iter().take_while(|one| one.ip() < descriptor.end());
        let instructions: Vec<u64> = inside.clone().map(Instruction::ip).collect();
        if inside.last().map(Instruction::next_ip) != Some(descriptor.end()) {
            return Err(broken("does not end with an instruction"));
        }
        let pad = decode(image, descriptor.abort, 5).unwrap_or_default();
        let pad = pad.first().filter(|one| one.flow_control() == FlowControl::UnconditionalBranch);
        let straight = |one: &&Instruction| one.flow_control() == FlowControl::Next;
        let mut in_front: Vec<u64> = all[..first]
            .iter()
            .rev()
            .take(IN_FRONT)
            .take_while(straight)
            .map(Instruction::ip)
            .collect();
        in_front.reverse();
        Ok(Section {
            descriptor,
            function: function.name.clone(),
            instructions,
            in_front,
            pad_target: pad.ok_or_else(|| broken("its pad is no jump"))?.near_branch_target(),
        })
    }

    /// Returns the name of one of its addresses, for output.
    pub fn describe(&self, address: u64) -> String {
        let function = short(&self.function);
        let place = match self.instructions.iter().position(|&one| one == address) {
            Some(index) => format!("instruction {} of {}", index + 1, self.instructions.len()),
            None if address == self.descriptor.end() => "behind the commit".to_owned(),
            None => "in front".to_owned(),
        };
        format!("{function} {address:#x} ({place})")
    }
}

/// Returns the instructions of a range.
pub fn decode(image: &Image, start: u64, length: u64) -> Option<Vec<Instruction>> {
    let bytes = image.bytes(start, length as usize)?;
    Some(Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).iter().collect())
}

/// Returns a mangled name in its readable form, without its hash.
fn short(mangled: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(mangled))
}
