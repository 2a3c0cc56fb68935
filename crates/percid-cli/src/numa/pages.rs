//! The nodes of this program's own pages, and a check that the kernel moves pages.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::ptr;

/// Number of pages that one system call looks up.
const LOOK_UP: usize = 4096;

/// The flag of `move_pages` for pages that only this process maps (`linux/mempolicy.h`).
const MPOL_MF_MOVE: libc::c_int = 2;

pub(crate) fn page_size() -> usize {
    // SAFETY: the call only reads the auxiliary vector.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Returns the number of pages of a range of addresses on each node, without pages that have no
/// memory.
///
/// # Errors
///
/// Fails if the kernel does not report the nodes.
pub(crate) fn by_node(range: Range<usize>) -> io::Result<BTreeMap<u32, u64>> {
    let mut by_node = BTreeMap::new();
    for start in range.clone().step_by(LOOK_UP * page_size()) {
        let end = range.end.min(start + LOOK_UP * page_size());
        let pages: Vec<usize> = (start..end).step_by(page_size()).collect();
        let none = ptr::null::<i32>();
        for node in move_pages(&pages, none, 0)? {
            if let Ok(node) = u32::try_from(node) {
                *by_node.entry(node).or_insert(0) += 1;
            }
        }
    }
    Ok(by_node)
}

/// Checks that the kernel lets this program move pages, with one page that stays where it is.
///
/// # Errors
///
/// Returns the error of the kernel.
pub(crate) fn try_to_move() -> io::Result<()> {
    let page = page_size();
    let mut memory = vec![1u8; 2 * page];
    let address = memory.as_mut_ptr().map_addr(|address| address.next_multiple_of(page));
    let pages = [address.expose_provenance()];
    let at = |node: i32| if node < 0 { Err(io::Error::from_raw_os_error(-node)) } else { Ok(node) };
    let node = at(move_pages(&pages, ptr::null(), 0)?[0])?;
    at(move_pages(&pages, &raw const node, MPOL_MF_MOVE)?[0]).map(|_| ())
}

/// Returns the nodes of pages, or negative `errno`s.
fn move_pages(pages: &[usize], to: *const i32, flags: libc::c_int) -> io::Result<Vec<i32>> {
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: the arrays have as many elements as `pages` (`to` has one, for one page, or is null);
    // the contents of the pages do not change.
    let done = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            to,
            status.as_mut_ptr(),
            flags,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}
