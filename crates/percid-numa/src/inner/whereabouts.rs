//! Which grains of a region have memory, and on which nodes.
//!
//! To ask the kernel about every page (`move_pages`) takes longer than all else in a pass. Where
//! memory is the process's own, `mincore` says for less than a hundredth of that which pages have
//! memory; and pages of a block of 64 KiB are mostly on one node. So a pass asks about one page of
//! each block, two where nothing is known of it yet, another one each time. Only where the answer
//! contradicts what is known, all pages of the block are looked up. A node that is not right any
//! more is found by and by, and does no harm: before pages move, each is looked up.

use std::ops::Range;

use crate::access::pages::Pages;
use crate::sys::{memory, nodes};

/// log2 of the bytes of a block.
const BLOCK_SHIFT: u32 = 16;

/// 2^64 divided by the golden ratio: its multiples are spread evenly (Knuth, "The Art of Computer
/// Programming", volume 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A grain with memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Resident {
    pub(super) grain: usize,
    /// The node of its first page, as far as is known.
    pub(super) node: u32,
    pub(super) pages: u64,
}

/// The error of the kernel, with the number of pages that it was about.
pub(super) type Refused = (i32, u64);

/// Finds out which of some grains, ascending, have memory, and on which nodes. Another `turn` asks
/// about other pages.
pub(super) fn look_up(
    pages: &Pages,
    grains: &[usize],
    turn: u64,
) -> Result<Vec<Resident>, Refused> {
    let (Some(&first), Some(&last)) = (grains.first(), grains.last()) else {
        return Ok(Vec::new());
    };
    let whole = pages.layout.grain(first).start..pages.layout.grain(last).end;
    let resident = if pages.layout.anonymous { memory::resident(&whole) } else { None };
    let Some(resident) = resident else { return ask_all(pages, grains) };
    let page = memory::page_size();
    let has_memory = |address: usize| resident[(address - whole.start) / page];
    let mut found = Vec::new();
    let mut samples = Vec::new();
    let shift = BLOCK_SHIFT.max(pages.layout.shift);
    let block = |grain: &usize| pages.layout.grain(*grain).start >> shift;
    for of_block in grains.chunk_by(|one, other| block(one) == block(other)) {
        let start = found.len();
        let mut with_memory = Vec::new();
        for &grain in of_block {
            let before = with_memory.len();
            let addresses = pages.layout.grain(grain).step_by(page);
            with_memory.extend(addresses.filter(|&address| has_memory(address)));
            let count = (with_memory.len() - before) as u64;
            let node = pages.home(grain).unwrap_or(UNKNOWN);
            found.extend((count > 0).then_some(Resident { grain, node, pages: count }));
        }
        if !with_memory.is_empty() {
            samples.push(Sample::new(pages, start..found.len(), &with_memory, &found, turn));
        }
    }
    let doubtful = ask_samples(pages, &samples, &mut found)?;
    for part in doubtful {
        let grains: Vec<usize> = found[part.clone()].iter().map(|there| there.grain).collect();
        for now in ask_all(pages, &grains)? {
            let place = found[part.clone()].iter_mut().find(|there| there.grain == now.grain);
            place.into_iter().for_each(|there| there.node = now.node);
        }
    }
    // Given back meanwhile.
    found.retain(|there| there.node != UNKNOWN);
    Ok(found)
}

/// The node of a grain that nothing is known of.
const UNKNOWN: u32 = u32::MAX;

/// Pages that stand for a block.
struct Sample {
    /// The block's grains, by their places among those that have memory.
    part: Range<usize>,
    addresses: Vec<usize>,
}

impl Sample {
    fn new(
        pages: &Pages,
        part: Range<usize>,
        with_memory: &[usize],
        found: &[Resident],
        turn: u64,
    ) -> Sample {
        let is_known = found[part.clone()].iter().all(|there| pages.home(there.grain).is_some());
        let first = (turn.wrapping_mul(GOLDEN) >> 32) as usize % with_memory.len();
        // Not half of the block further, where memory that alternates between nodes is on the same
        // one.
        let second = (first + with_memory.len() / 2 + 1) % with_memory.len();
        let places = if is_known { vec![first] } else { vec![first, second] };
        Sample { part, addresses: places.into_iter().map(|place| with_memory[place]).collect() }
    }
}

/// Asks about the samples, and takes their blocks to be where they are. Returns the parts of `found`
/// that this does not go for.
fn ask_samples(
    pages: &Pages,
    samples: &[Sample],
    found: &mut [Resident],
) -> Result<Vec<Range<usize>>, Refused> {
    let addresses: Vec<usize> =
        samples.iter().flat_map(|sample| sample.addresses.iter().copied()).collect();
    let mut answers = query(&addresses)?.into_iter();
    let mut doubtful = Vec::new();
    for sample in samples {
        let of_sample: Vec<i32> = answers.by_ref().take(sample.addresses.len()).collect();
        let known = |address: &usize| pages.home(pages.layout.grain_at(*address));
        let mut stands = of_sample.iter().all(|node| *node == of_sample[0] && *node >= 0);
        for (address, node) in sample.addresses.iter().zip(&of_sample) {
            stands &= known(address).is_none_or(|home| home as i32 == *node);
        }
        if !stands {
            doubtful.push(sample.part.clone());
            continue;
        }
        let unknown = found[sample.part.clone()].iter_mut().filter(|there| there.node == UNKNOWN);
        unknown.for_each(|there| there.node = of_sample[0] as u32);
    }
    Ok(doubtful)
}

/// Asks the kernel about every page of some grains.
fn ask_all(pages: &Pages, grains: &[usize]) -> Result<Vec<Resident>, Refused> {
    let page = memory::page_size();
    let of_grain = |&grain: &usize| {
        pages.layout.grain(grain).step_by(page).map(move |address| (grain, address))
    };
    let asked: Vec<(usize, usize)> = grains.iter().flat_map(of_grain).collect();
    let addresses: Vec<usize> = asked.iter().map(|(_, address)| *address).collect();
    let mut found: Vec<Resident> = Vec::new();
    for ((grain, _), node) in asked.into_iter().zip(query(&addresses)?) {
        let Ok(node) = u32::try_from(node) else { continue };
        match found.last_mut().filter(|there| there.grain == grain) {
            Some(there) => there.pages += 1,
            None => found.push(Resident { grain, node, pages: 1 }),
        }
    }
    Ok(found)
}

fn query(addresses: &[usize]) -> Result<Vec<i32>, Refused> {
    let mut nodes = vec![nodes::UNTOUCHED; addresses.len()];
    if !addresses.is_empty() {
        nodes::query(addresses, &mut nodes).map_err(|errno| (errno, addresses.len() as u64))?;
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use percid_rules::scan::Width;

    use super::*;
    use crate::access::pages::Layout;

    /// A region of `bytes` of new memory, of which the pages in `touched` have some.
    fn region(bytes: usize, shift: u32, touched: impl Iterator<Item = usize>) -> Pages {
        let start = memory::map(bytes).expect("memory");
        for page in touched {
            // SAFETY: inside the new mapping.
            unsafe { start.add(page * memory::page_size()).write(1) };
        }
        let layout = Layout {
            start: start.as_ptr().expose_provenance(),
            bytes,
            shift,
            nodes: 2,
            rights: libc::PROT_READ | libc::PROT_WRITE,
            width: Width::Bits64,
            backoff: true,
            anonymous: true,
        };
        Pages::new(layout, &[0, 1], memory::map).expect("memory")
    }

    /// As far as the kernel answers questions about places at all.
    fn can_ask() -> bool {
        let page = [memory::map(1).expect("memory").as_ptr().addr()];
        nodes::query(&page, &mut [0]).is_ok()
    }

    #[test]
    fn what_has_memory_is_found_as_by_asking_about_every_page() {
        if !can_ask() {
            return;
        }
        let page = memory::page_size();
        for shift in [page.trailing_zeros(), 16] {
            let pages =
                region(64 * page, shift, (0..64).filter(|page| page % 5 == 0 && *page != 30));
            let grains: Vec<usize> = (0..pages.layout.grains()).collect();
            let all = ask_all(&pages, &grains).expect("answers");
            assert!(!all.is_empty());
            for turn in 0..20 {
                assert_eq!(look_up(&pages, &grains, turn).expect("answers"), all, "{turn}");
            }
        }
    }

    #[test]
    fn a_home_that_is_wrong_is_found_by_and_by() {
        if !can_ask() {
            return;
        }
        let page = memory::page_size();
        let pages = region(16 * page, page.trailing_zeros(), 0..16);
        let grains: Vec<usize> = (0..pages.layout.grains()).collect();
        let right = ask_all(&pages, &grains).expect("answers");
        right.iter().for_each(|there| pages.set_home(there.grain, there.node));
        pages.set_home(5, right[5].node + 1);
        let finds = |turn: &u64| look_up(&pages, &grains, *turn).expect("answers") == right;
        let turns: Vec<u64> = (0..64).filter(finds).collect();
        assert!(!turns.is_empty() && turns.len() < 32, "{turns:?}");
    }
}
