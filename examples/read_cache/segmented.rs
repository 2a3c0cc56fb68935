//! The order of eviction: LRU lists one above the other (S4LRU; Huang and others: "An analysis of
//! Facebook photo caching", 2013).
//!
//! A new entry is in the lowest list, and a hit moves it to the next higher one. A list that is too
//! long gives its last entry to the next lower one. The last entry of the lowest list is evicted.

const LISTS: usize = 4;

/// The place of an entry in a list.
struct Node {
    /// Its hash, by which the shard finds the entry.
    hash: u64,
    before: u32,
    after: u32,
    /// `None` if the place is free.
    list: Option<usize>,
}

/// The lists, each with the most recently used entry first.
pub(crate) struct Segmented {
    /// The first are the ends of the lists, which are rings.
    nodes: Vec<Node>,
    free: Vec<u32>,
    lengths: [usize; LISTS],
    max_length: usize,
}

impl Segmented {
    /// Creates the lists for so many entries.
    pub(crate) fn new(entries: usize) -> Segmented {
        let end = |place| Node { hash: 0, before: place, after: place, list: None };
        let nodes = (0..LISTS as u32).map(end).collect();
        let max_length = entries.div_ceil(LISTS);
        Segmented { nodes, free: Vec::new(), lengths: [0; LISTS], max_length }
    }

    /// Adds an entry. Returns its place.
    pub(crate) fn add(&mut self, hash: u64) -> u32 {
        let place = self.free.pop().unwrap_or(self.nodes.len() as u32);
        if place as usize == self.nodes.len() {
            self.nodes.push(Node { hash, before: place, after: place, list: None });
        }
        self.nodes[place as usize].hash = hash;
        self.link(place, 0);
        place
    }

    /// Applies a hit. Ignores a place that is free: its entry was evicted after the hit.
    pub(crate) fn hit(&mut self, place: u32) {
        let Some(list) = self.nodes.get(place as usize).and_then(|node| node.list) else { return };
        let higher = (list + 1).min(LISTS - 1);
        self.unlink(place);
        self.link(place, higher);
        for list in (1..=higher).rev() {
            if self.lengths[list] > self.max_length {
                let last = self.nodes[list].before;
                self.unlink(last);
                self.link(last, list - 1);
            }
        }
    }

    /// Removes the entry that is evicted next. Returns its place and hash.
    pub(crate) fn evict(&mut self) -> Option<(u32, u64)> {
        let list = self.lengths.iter().position(|&length| length > 0)?;
        let place = self.nodes[list].before;
        self.unlink(place);
        self.free.push(place);
        Some((place, self.nodes[place as usize].hash))
    }

    /// Puts an entry at the beginning of a list.
    fn link(&mut self, place: u32, list: usize) {
        let first = std::mem::replace(&mut self.nodes[list].after, place);
        self.nodes[first as usize].before = place;
        let node = &mut self.nodes[place as usize];
        (node.before, node.after, node.list) = (list as u32, first, Some(list));
        self.lengths[list] += 1;
    }

    fn unlink(&mut self, place: u32) {
        let node = &mut self.nodes[place as usize];
        let (before, after, list) = (node.before, node.after, node.list.take());
        self.nodes[before as usize].after = after;
        self.nodes[after as usize].before = before;
        list.into_iter().for_each(|list| self.lengths[list] -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evict_all(mut order: Segmented) -> Vec<u64> {
        std::iter::from_fn(|| order.evict()).map(|(_, hash)| hash).collect()
    }

    #[test]
    fn fewer_hits_are_evicted_first_and_then_older_ones() {
        let mut order = Segmented::new(20);
        let places: Vec<u32> = (10..15).map(|hash| order.add(hash)).collect();
        [0, 2, 0, 3].into_iter().for_each(|index| order.hit(places[index]));
        assert_eq!(order.evict(), Some((places[1], 11)));
        order.hit(places[1]);
        assert_eq!(evict_all(order), [14, 12, 13, 10], "a hit of a free place has no effect");
    }

    #[test]
    fn a_list_that_is_too_long_gives_its_last_entry_to_the_next_lower_one() {
        let mut order = Segmented::new(4);
        let places: Vec<u32> = (0..4).map(|hash| order.add(hash)).collect();
        (0..9).for_each(|hit| order.hit(places[hit / 3]));
        assert_eq!(order.lengths, [1, 1, 1, 1]);
        assert_eq!(evict_all(order), [3, 0, 1, 2]);
    }
}
