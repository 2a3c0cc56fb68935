//! The work of the kernel on a thread that it has preempted, before the thread continues.

use crate::descriptors::Descriptor;
use crate::stepping::Stop;
use crate::world::World;

/// The bytes before every abort pad.
#[cfg(target_arch = "x86_64")]
const SIGNATURE: u32 = 0x5305_3053;
#[cfg(target_arch = "aarch64")]
const SIGNATURE: u32 = 0xd428_bc00;
#[cfg(target_arch = "riscv64")]
const SIGNATURE: u32 = 0xf140_1073;

/// The way in which a preempted thread continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// At the interrupted instruction.
    There,
    /// At the pad of the section in which it was.
    AtThePad,
    /// The kernel would have killed it: the declared section is invalid.
    Ended,
}

/// Preempts the thread at its present instruction.
pub(crate) fn preempt(stop: &mut Stop<'_>, world: &World) -> Resumed {
    let declared = world.take_declaration();
    if declared == 0 {
        return Resumed::There;
    }
    // SAFETY: a section declares a descriptor of this program; a mutant that declares something
    // else ends here, which is detected as well.
    let section = unsafe { *std::ptr::with_exposed_provenance::<Descriptor>(declared) };
    if !section.contains(stop.place()) {
        return Resumed::There;
    }
    // SAFETY: the descriptor is of this program, so its abort pad and the bytes before it are
    // mapped.
    let signature =
        unsafe { std::ptr::with_exposed_provenance::<u32>(section.abort - 4).read_unaligned() };
    if signature != SIGNATURE || section.version_and_flags != [0; 2] {
        return Resumed::Ended;
    }
    stop.go_to(section.abort);
    Resumed::AtThePad
}
