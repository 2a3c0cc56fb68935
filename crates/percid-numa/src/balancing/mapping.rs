//! The mappings in a range of addresses: the checks for registration, and the traits for the scan.

use std::ops::Range;

use percid_rules::scan::{Policy, Traits};

use crate::access::trap;
use crate::access_method::AccessMethod;
use crate::error::RegisterError;
use crate::sys::maps::{self, Mapping};
use crate::sys::{memory, nodes, thread_memory};

/// The properties of a range that may become a region.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) traits: Traits,
    /// The access rights, as `mprotect` takes them.
    pub(crate) rights: i32,
}

impl Behind {
    /// Checks that accesses to the range can be detected by this method.
    pub(crate) fn check(
        &self,
        range: &Range<usize>,
        method: AccessMethod,
    ) -> Result<(), RegisterError> {
        match method {
            AccessMethod::Reported => return Ok(()),
            AccessMethod::Trapped => self.check_trapped(range)?,
            AccessMethod::Written if self.traits.file || !self.traits.writable => {
                return Err(RegisterError::NotPrivate { address: range.start });
            }
            AccessMethod::Written => {}
        }
        if let Some(address) = percid::own_memory_in(range) {
            return Err(RegisterError::PercidMemory { address });
        }
        // Last, because it takes longest.
        match thread_memory::place_in(range) {
            Some(address) => Err(RegisterError::ThreadMemory { address }),
            None => Ok(()),
        }
    }

    /// Checks that the range can be trapped: disarming must be able to restore its present rights.
    fn check_trapped(&self, range: &Range<usize>) -> Result<(), RegisterError> {
        match self.rights {
            libc::PROT_NONE => Err(RegisterError::NoRights { address: range.start }),
            rights if rights & libc::PROT_EXEC != 0 => {
                Err(RegisterError::Executable { address: range.start })
            }
            _ if memory::data_is_limited() => Err(RegisterError::DataLimited),
            _ => match trap::own_place_in(range) {
                Some(address) => Err(RegisterError::HandlerData { address }),
                None => Ok(()),
            },
        }
    }
}

/// Checks that a range consists of whole pages.
pub(crate) fn check_shape(range: &Range<usize>) -> Result<(), RegisterError> {
    let page = memory::page_size();
    if !range.start.is_multiple_of(page) || !range.end.is_multiple_of(page) {
        return Err(RegisterError::NotAligned { page });
    }
    if range.is_empty() {
        return Err(RegisterError::Empty);
    }
    Ok(())
}

/// Looks up a range that will become a region.
pub(crate) fn look_up(range: &Range<usize>) -> Result<Behind, RegisterError> {
    let all = maps::all().ok_or(RegisterError::NoProc)?;
    let mappings = maps::overlapping(&all, range);
    if let Some(address) = first_gap(range, mappings) {
        return Err(RegisterError::NotMapped { address });
    }
    let Some(first) = mappings.first() else {
        return Err(RegisterError::NotMapped { address: range.start });
    };
    if let Some(fixed) = mappings.iter().find(|mapping| mapping.fixed) {
        return Err(RegisterError::NotMovable { address: fixed.range.start });
    }
    let differs = |mapping: &&Mapping| mapping.rights != first.rights || mapping.file != first.file;
    if let Some(other) = mappings.iter().find(differs) {
        return Err(RegisterError::Mixed { address: other.range.start });
    }
    Ok(Behind { traits: traits(mappings, first.rights, first.file), rights: bits(first.rights) })
}

/// Returns the present traits of a region. Returns `None` if a part is not mapped any more, or was
/// replaced. A part without rights is an armed one of a trapped region.
pub(crate) fn look_again(
    all: &[Mapping],
    range: &Range<usize>,
    rights: i32,
    trapped: bool,
) -> Option<Traits> {
    let mappings = maps::overlapping(all, range);
    let first = mappings.first()?;
    if first_gap(range, mappings).is_some() {
        return None;
    }
    if !trapped {
        // A right counts if all parts have it.
        let all = |right: usize| mappings.iter().all(|mapping| mapping.rights[right]);
        return Some(traits(mappings, [all(0), all(1), all(2)], first.file));
    }
    let as_before = |mapping: &Mapping| {
        mapping.file == first.file
            && (mapping.rights == [false; 3] || bits(mapping.rights) == rights)
    };
    let rights = [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC].map(|bit| rights & bit != 0);
    mappings.iter().all(as_before).then(|| traits(mappings, rights, first.file))
}

/// Returns the first address of the range at which nothing is mapped.
fn first_gap(range: &Range<usize>, mappings: &[Mapping]) -> Option<usize> {
    let mut mapped = range.start;
    for mapping in mappings {
        if mapping.range.start > mapped {
            break;
        }
        mapped = mapping.range.end;
    }
    (mapped < range.end).then_some(mapped)
}

fn traits(mappings: &[Mapping], [readable, writable, executable]: [bool; 3], file: bool) -> Traits {
    let movable = mappings.iter().all(|mapping| !mapping.fixed);
    Traits { movable, policy: policy(mappings), file, readable, writable, executable }
}

/// Returns the strictest policy of all parts; `None` also if the kernel refuses the query.
fn policy(mappings: &[Mapping]) -> Option<Policy> {
    let own = mappings.iter().filter_map(|mapping| {
        let mode = nodes::policy_at(mapping.range.start).filter(|mode| !mode.is_default())?;
        Some(if mode.balances() { Policy::Balancing } else { Policy::Fixed })
    });
    own.reduce(|one, other| if one == Policy::Fixed { one } else { other })
}

fn bits([read, write, execute]: [bool; 3]) -> i32 {
    let bit = |right: bool, bit: i32| if right { bit } else { libc::PROT_NONE };
    bit(read, libc::PROT_READ) | bit(write, libc::PROT_WRITE) | bit(execute, libc::PROT_EXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(range: Range<usize>) -> Mapping {
        Mapping { range, rights: [true, true, false], file: false, fixed: false, stack: false }
    }

    #[test]
    fn gaps() {
        let range = 10..50;
        assert_eq!(first_gap(&range, &[]), Some(10));
        assert_eq!(first_gap(&range, &[mapping(0..20), mapping(20..60)]), None);
        assert_eq!(first_gap(&range, &[mapping(0..20), mapping(30..60)]), Some(20));
        assert_eq!(first_gap(&range, &[mapping(20..60)]), Some(10));
        assert_eq!(first_gap(&range, &[mapping(0..40)]), Some(40));
    }
}
