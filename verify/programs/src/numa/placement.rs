//! The nodes of pages, as the kernel reports them, independent of a balancer.

use std::ops::Range;

use super::area::{Area, PAGE};

/// Returns the node of each of some pages; `None` for those that have no memory.
pub(super) fn of(area: &Area, pages: Range<usize>) -> Result<Vec<Option<u32>>, String> {
    let start = area.start().addr();
    let addresses: Vec<usize> = pages.map(|page| start + page * PAGE).collect();
    let mut nodes = vec![-1i32; addresses.len()];
    // SAFETY: both arrays have `addresses.len()` entries; without nodes nothing is moved.
    let result = unsafe {
        let none = std::ptr::null::<i32>();
        let (count, status) = (addresses.len(), nodes.as_mut_ptr());
        libc::syscall(libc::SYS_move_pages, 0, count, addresses.as_ptr(), none, status, 0)
    };
    match result {
        0 => Ok(nodes.into_iter().map(|node| u32::try_from(node).ok()).collect()),
        _ => Err(format!("move_pages: {}", std::io::Error::last_os_error())),
    }
}

/// Returns the share of some pages that is on one of some nodes.
pub(super) fn share(area: &Area, pages: Range<usize>, nodes: &[u32]) -> Result<f64, String> {
    let all = of(area, pages)?;
    let there = all.iter().filter(|node| node.is_some_and(|node| nodes.contains(&node))).count();
    Ok(there as f64 / all.len() as f64)
}

/// Has the kernel move all pages to a node.
pub(super) fn put(area: &Area, node: u32) -> Result<(), String> {
    const MOVE: libc::c_int = 2;
    let start = area.start().addr();
    let addresses: Vec<usize> = (0..area.pages()).map(|page| start + page * PAGE).collect();
    let (to, mut status) = (vec![node as i32; addresses.len()], vec![0i32; addresses.len()]);
    // SAFETY: all arrays have as many entries; what the pages contain does not change.
    let result = unsafe {
        let (from, to, status) = (addresses.as_ptr(), to.as_ptr(), status.as_mut_ptr());
        libc::syscall(libc::SYS_move_pages, 0, addresses.len(), from, to, status, MOVE)
    };
    let there = share(area, 0..area.pages(), &[node])?;
    match result == 0 && there == 1.0 {
        true => Ok(()),
        false => Err(format!("move_pages: {there:.2} of the pages came to node {node}")),
    }
}
