//! The value passed from turn to turn: the right to run, and the memory to run on.

use std::io;

use crate::bench::areas::Areas;

/// The only baton: the thread that holds it has the turn.
#[derive(Debug)]
pub(crate) struct Baton {
    /// Separate areas for each index, so that they can be measured in the same turn.
    pub(crate) pools: Vec<Areas>,
}

impl Baton {
    pub(crate) fn new(pools: usize, areas: usize, prefault: bool) -> io::Result<Self> {
        let mut pools = (0..pools).map(|_| Areas::map(areas)).collect::<io::Result<Vec<_>>>()?;
        if prefault {
            pools.iter_mut().for_each(Areas::prefault);
        }
        Ok(Baton { pools })
    }
}
