//! Lookup of the grains of a region that have memory, and of their nodes.
//!
//! A query of every page (`move_pages`) takes longer than the rest of a pass. For private memory,
//! `mincore` reports in less than a hundredth of that time which pages have memory; and pages of a
//! block of 64 KiB are mostly on one node. So a pass queries one page of each block, or two if
//! nothing is known of it, and another page each time. All pages of the block are looked up only if
//! the answer contradicts the stored node. A stale node is corrected by later samples, and causes
//! no wrong migration: each page is looked up before it moves.

use std::ops::Range;

use crate::access::pages::Pages;
use crate::kernel::Kernel;
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
    /// The node of its first page, if known.
    pub(super) node: u32,
    pub(super) pages: u64,
}

/// The `errno` of the kernel, with the number of pages of the call.
pub(super) type Refused = (i32, u64);

/// Returns the grains (of `grains`, ascending) that have memory, with their nodes. Another `turn`
/// queries other pages.
pub(super) fn look_up(
    kernel: &impl Kernel,
    pages: &Pages,
    grains: &[usize],
    turn: u64,
) -> Result<Vec<Resident>, Refused> {
    let (Some(&first), Some(&last)) = (grains.first(), grains.last()) else {
        return Ok(Vec::new());
    };
    let whole = pages.layout.grain(first).start..pages.layout.grain(last).end;
    let resident = if pages.layout.anonymous { kernel.resident(&whole) } else { None };
    let Some(resident) = resident else { return ask_all(kernel, pages, grains) };
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
    let doubtful = ask_samples(kernel, pages, &samples, &mut found)?;
    for part in doubtful {
        let grains: Vec<usize> = found[part.clone()].iter().map(|there| there.grain).collect();
        for now in ask_all(kernel, pages, &grains)? {
            let place = found[part.clone()].iter_mut().find(|there| there.grain == now.grain);
            place.into_iter().for_each(|there| there.node = now.node);
        }
    }
    // Their memory was released in the meantime.
    found.retain(|there| there.node != UNKNOWN);
    Ok(found)
}

/// The value for the node of a grain without a known node.
const UNKNOWN: u32 = u32::MAX;

/// The sampled pages of a block.
struct Sample {
    /// The block's grains, as indices into the grains with memory.
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
        // Not half of the block further: memory that alternates between nodes would give the same
        // node.
        let second = (first + with_memory.len() / 2 + 1) % with_memory.len();
        let places = if is_known { vec![first] } else { vec![first, second] };
        Sample { part, addresses: places.into_iter().map(|place| with_memory[place]).collect() }
    }
}

/// Queries the samples, and assigns their nodes to all of their blocks. Returns the parts of
/// `found` for which the samples contradict each other or the stored node.
fn ask_samples(
    kernel: &impl Kernel,
    pages: &Pages,
    samples: &[Sample],
    found: &mut [Resident],
) -> Result<Vec<Range<usize>>, Refused> {
    let addresses: Vec<usize> =
        samples.iter().flat_map(|sample| sample.addresses.iter().copied()).collect();
    let mut answers = query(kernel, &addresses)?.into_iter();
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

/// Queries every page of some grains.
fn ask_all(
    kernel: &impl Kernel,
    pages: &Pages,
    grains: &[usize],
) -> Result<Vec<Resident>, Refused> {
    let page = memory::page_size();
    let of_grain = |&grain: &usize| {
        pages.layout.grain(grain).step_by(page).map(move |address| (grain, address))
    };
    let asked: Vec<(usize, usize)> = grains.iter().flat_map(of_grain).collect();
    let addresses: Vec<usize> = asked.iter().map(|(_, address)| *address).collect();
    let mut found: Vec<Resident> = Vec::new();
    for ((grain, _), node) in asked.into_iter().zip(query(kernel, &addresses)?) {
        let Ok(node) = u32::try_from(node) else { continue };
        match found.last_mut().filter(|there| there.grain == grain) {
            Some(there) => there.pages += 1,
            None => found.push(Resident { grain, node, pages: 1 }),
        }
    }
    Ok(found)
}

fn query(kernel: &impl Kernel, addresses: &[usize]) -> Result<Vec<i32>, Refused> {
    let mut nodes = vec![nodes::UNTOUCHED; addresses.len()];
    if !addresses.is_empty() {
        kernel.query(addresses, &mut nodes).map_err(|errno| (errno, addresses.len() as u64))?;
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use percid_rules::scan::Width;

    use super::*;
    use crate::access::pages::Layout;
    use crate::kernel::Linux;
    use crate::kernel::pretended::Pretended;

    fn pages(start: usize, bytes: usize, shift: u32, anonymous: bool) -> Pages {
        let layout = Layout {
            start,
            bytes,
            shift,
            nodes: 2,
            rights: libc::PROT_READ | libc::PROT_WRITE,
            width: Width::Bits64,
            backoff: true,
            anonymous,
        };
        Pages::new(layout, &[0, 1], memory::map).expect("memory")
    }

    /// Returns the correct result, from a query of every page.
    fn truth(machine: &Pretended, pages: &Pages) -> Vec<Resident> {
        let of_grain = |grain: usize| {
            let homes = machine.homes.borrow();
            let there: Vec<u32> = pages
                .layout
                .grain(grain)
                .step_by(memory::page_size())
                .filter_map(|page| homes.get(&page).copied())
                .collect();
            there.first().map(|&node| Resident { grain, node, pages: there.len() as u64 })
        };
        (0..pages.layout.grains()).filter_map(of_grain).collect()
    }

    const START: usize = 1 << 30;

    /// The blocks are on one node each and have holes; the grains are pages or blocks.
    #[test]
    fn two_questions_about_a_block_say_where_all_of_it_is() {
        let page = memory::page_size();
        let (block, blocks) = ((1 << BLOCK_SHIFT) / page, 8);
        for shift in [page.trailing_zeros(), BLOCK_SHIFT] {
            let pages = pages(START, blocks * block * page, shift, true);
            let machine = Pretended::default();
            let with_memory =
                (0..blocks * block).filter(|place| place % 5 != 0 && place / block != 6);
            let home = |place: usize| (START + place * page, (place / block % 2) as u32);
            machine.homes.borrow_mut().extend(with_memory.map(home));
            let grains: Vec<usize> = (0..pages.layout.grains()).collect();
            let expected = truth(&machine, &pages);
            assert_eq!(look_up(&machine, &pages, &grains, 3), Ok(expected.clone()));
            assert_eq!(machine.asked.take(), 2 * (blocks - 1), "nothing is asked about the hole");
            // One query is enough if a grain's node is known already.
            expected.iter().for_each(|there| pages.set_home(there.grain, there.node));
            assert_eq!(look_up(&machine, &pages, &grains, 4), Ok(expected.clone()));
            assert_eq!(machine.asked.take(), blocks - 1);
            // All pages are queried if the kernel does not report which have memory.
            let secretive = Pretended { hides_residents: true, ..machine };
            assert_eq!(look_up(&secretive, &pages, &grains, 5), Ok(expected));
            assert_eq!(secretive.asked.take(), blocks * block);
        }
    }

    #[test]
    fn shared_memory_is_asked_about_page_by_page() {
        let page = memory::page_size();
        let pages = pages(START, 32 * page, page.trailing_zeros(), false);
        let machine = Pretended::default();
        machine.homes.borrow_mut().insert(START + 7 * page, 1);
        let found = look_up(&machine, &pages, &(0..32).collect::<Vec<_>>(), 0);
        assert_eq!(found, Ok(vec![Resident { grain: 7, node: 1, pages: 1 }]));
        assert_eq!(machine.asked.get(), 32);
    }

    /// Four blocks; of one nothing is left, and of another one page.
    #[test]
    fn memory_that_is_discarded_meanwhile_is_not_found() {
        let page = memory::page_size();
        let pages = pages(START, 64 * page, page.trailing_zeros(), true);
        let grains: Vec<usize> = (0..64).collect();
        let address = |place: usize| START + place * page;
        let left = |place: &usize| !(16..32).contains(place) && !(48..63).contains(place);
        for known in [false, true] {
            let machine = Pretended {
                discarded: (0..64).filter(|place| !left(place)).map(address).collect(),
                ..Pretended::default()
            };
            machine.homes.borrow_mut().extend((0..64).map(|place| (address(place), 1)));
            grains.iter().filter(|_| known).for_each(|&grain| pages.set_home(grain, 1));
            for turn in 0..16 {
                let found = look_up(&machine, &pages, &grains, turn).expect("answers");
                let of_blocks = |blocks: Range<usize>| {
                    found.iter().filter(|there| blocks.contains(&there.grain)).count()
                };
                let counts = [0..16, 16..32, 32..48].map(of_blocks);
                // A block whose nodes are known is not asked about page by page.
                let gone = if known { [16, 16, 16] } else { [16, 0, 16] };
                assert!(counts == gone || counts == [16, 0, 16], "{known}, {turn}: {counts:?}");
                assert!(found.iter().all(|there| there.node == 1), "{known}, {turn}");
            }
        }
    }

    #[test]
    fn what_is_refused_is_told_with_the_number_of_pages() {
        let page = memory::page_size();
        let pages = pages(START, 32 * page, page.trailing_zeros(), true);
        for (hides_residents, count) in [(false, 4), (true, 32)] {
            let machine =
                Pretended { mute: Some(libc::EPERM), hides_residents, ..Pretended::default() };
            machine.homes.borrow_mut().extend((0..32).map(|place| (START + place * page, 0)));
            let found = look_up(&machine, &pages, &(0..32).collect::<Vec<_>>(), 0);
            assert_eq!(found, Err((libc::EPERM, count)));
        }
        assert_eq!(look_up(&Pretended::default(), &pages, &[], 0), Ok(Vec::new()));
    }

    /// A page of a block has moved. Each turn queries another page, so a later turn finds it; then
    /// the whole block is looked up.
    #[test]
    fn a_home_that_is_wrong_is_found_by_and_by() {
        let page = memory::page_size();
        let pages = pages(START, 16 * page, page.trailing_zeros(), true);
        let grains: Vec<usize> = (0..16).collect();
        for wrong in 0..16 {
            let machine = Pretended::default();
            machine.homes.borrow_mut().extend((0..16).map(|place| (START + place * page, 0)));
            let right = truth(&machine, &pages);
            (0..16).for_each(|grain| pages.set_home(grain, u32::from(grain == wrong)));
            let finds = |turn: &u64| {
                let before = machine.asked.get();
                let found = look_up(&machine, &pages, &grains, *turn) == Ok(right.clone());
                assert_eq!(machine.asked.get() - before, if found { 1 + 16 } else { 1 }, "{turn}");
                found
            };
            let turns = (0..64).filter(finds).count();
            assert!((1..12).contains(&turns), "grain {wrong}: {turns} of 64 turns");
        }
    }

    /// No node of the block is known, and its pages are on two nodes alternately.
    #[test]
    fn a_block_of_which_two_pages_contradict_each_other_is_looked_up_whole() {
        let page = memory::page_size();
        let pages = pages(START, 16 * page, page.trailing_zeros(), true);
        let grains: Vec<usize> = (0..16).collect();
        let machine = Pretended::default();
        let in_turn = |place: usize| (START + place * page, (place % 2) as u32);
        *machine.homes.borrow_mut() = BTreeMap::from_iter((0..16).map(in_turn));
        for turn in 0..64 {
            assert_eq!(look_up(&machine, &pages, &grains, turn), Ok(truth(&machine, &pages)));
            assert_eq!(machine.asked.take(), 2 + 16, "{turn}");
        }
    }

    /// Uses a region of new memory, in which every fifth page has some.
    #[test]
    fn the_running_kernel_answers_as_the_pretended_one() {
        let (page, count) = (memory::page_size(), 64);
        let start = memory::map(count * page).expect("memory");
        if Linux.query(&[start.as_ptr().expose_provenance()], &mut [0]).is_err() {
            println!("the kernel refuses move_pages");
            return;
        }
        for place in (0..count).step_by(5) {
            // SAFETY: inside the new mapping.
            unsafe { start.add(place * page).write(1) };
        }
        for shift in [page.trailing_zeros(), 16] {
            let pages = pages(start.as_ptr().expose_provenance(), count * page, shift, true);
            let grains: Vec<usize> = (0..pages.layout.grains()).collect();
            let all = ask_all(&Linux, &pages, &grains).expect("answers");
            assert!(!all.is_empty());
            for turn in 0..20 {
                assert_eq!(look_up(&Linux, &pages, &grains, turn), Ok(all.clone()), "{turn}");
            }
        }
    }
}
