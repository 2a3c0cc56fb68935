//! Distances between NUMA nodes, from a table that firmware or a user provides.

use serde::{Deserialize, Serialize};

use crate::place::Place;

/// Distances between nodes, in any unit: only their ratios count.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Distances {
    /// One row per node, with the distance to each node. ACPI's table (SLIT, as in `numactl
    /// --hardware`) has 10 for the node itself. Nanoseconds are possible as well.
    pub nodes: Vec<Vec<u32>>,
    /// The source of the table in words: a publication, a measurement or an assumption.
    pub origin: String,
}

/// The value of [`Found::detour`](crate::cost::Found) for a transfer without a detour.
pub const DIRECT: u32 = 1000;

/// Lengths of the paths between nodes, relative to the shortest path of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Detours {
    nodes: usize,
    thousandths: Vec<u32>,
}

impl Distances {
    /// Returns the first error in the table for a machine with this number of nodes: the row, if it
    /// is in one row, and the expected contents.
    pub(crate) fn fault(&self, nodes: u32) -> Option<(Option<usize>, String)> {
        let (rows, nodes) = (self.nodes.len(), nodes as usize);
        if rows != nodes {
            let expected = format!("expected a row for each of the {nodes} nodes, found {rows}");
            return Some((None, expected));
        }
        for (at, row) in self.nodes.iter().enumerate() {
            if row.len() != nodes {
                let found = row.len();
                let expected = format!("expected a distance to each of the {nodes} nodes");
                return Some((Some(at), format!("{expected}, found {found}")));
            }
            if row.iter().any(|distance| !(1..=MAX_DISTANCE).contains(distance)) {
                return Some((Some(at), format!("expected numbers from 1 to {MAX_DISTANCE}")));
            }
            if row.iter().any(|&distance| distance < row[at]) {
                let expected = format!("expected nothing nearer to node {at} than itself");
                return Some((Some(at), expected));
            }
        }
        None
    }

    /// Returns the detours of a machine whose CPUs have these places.
    pub(crate) fn detours(&self, places: &[Place]) -> Detours {
        let nodes = self.nodes.len();
        let share_a_socket = sharing(places, nodes);
        // Nodes without CPUs have no caches that a line can come from.
        let has_cpus = |node: usize| places.iter().any(|place| place.node as usize == node);
        let has_cpus: Vec<bool> = (0..nodes).map(has_cpus).collect();
        let mut shortest = [u32::MAX; 2];
        let pairs = || (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let are_apart =
            |(from, to): &(usize, usize)| from != to && has_cpus[*from] && has_cpus[*to];
        for (from, to) in pairs().filter(are_apart) {
            let kind = &mut shortest[usize::from(share_a_socket[from * nodes + to])];
            *kind = (*kind).min(self.nodes[from][to]);
        }
        let detour = |(from, to): (usize, usize)| {
            if !are_apart(&(from, to)) {
                return DIRECT;
            }
            let shortest = shortest[usize::from(share_a_socket[from * nodes + to])];
            let thousandths =
                u64::from(self.nodes[from][to]) * u64::from(DIRECT) / u64::from(shortest);
            thousandths as u32
        };
        Detours { nodes, thousandths: pairs().map(detour).collect() }
    }
}

/// The largest distance: a millisecond, if the unit is nanoseconds.
const MAX_DISTANCE: u32 = 1_000_000;

/// Returns, for each pair of nodes, `true` if both have CPUs in one socket.
fn sharing(places: &[Place], nodes: usize) -> Vec<bool> {
    let mut sockets_of: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for place in places {
        let sockets = &mut sockets_of[place.node as usize];
        if !sockets.contains(&place.socket) {
            sockets.push(place.socket);
        }
    }
    let share = |from: usize, to: usize| {
        sockets_of[from].iter().any(|socket| sockets_of[to].contains(socket))
    };
    (0..nodes * nodes).map(|pair| share(pair / nodes, pair % nodes)).collect()
}

impl Detours {
    /// Returns the length of the path between two nodes, in thousandths of the shortest path of its
    /// kind. The kinds are paths between nodes of one socket, and between nodes of different
    /// sockets.
    pub(crate) fn between(&self, from: u32, to: u32) -> u32 {
        self.thousandths[from as usize * self.nodes + to as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(nodes: &[&[u32]]) -> Distances {
        let nodes = nodes.iter().map(|row| row.to_vec()).collect();
        Distances { nodes, origin: "a test".to_owned() }
    }

    /// Two sockets with two nodes each. Nodes of a socket are at 12 or 18, nodes of different
    /// sockets at 21 and 32.
    #[test]
    fn the_shortest_way_of_its_kind_is_direct() {
        let at = |node| Place { core: node, l3: node, socket: node / 2, node };
        let places: Vec<Place> = (0..4).map(at).collect();
        let table = distances(&[
            &[10, 12, 21, 32],
            &[12, 10, 32, 21],
            &[21, 32, 10, 18],
            &[32, 21, 12, 10],
        ]);
        assert_eq!(table.fault(4), None);
        let detours = table.detours(&places);
        let found = [(0, 0), (0, 1), (0, 2), (0, 3), (2, 3), (3, 2)]
            .map(|(from, to)| detours.between(from, to));
        assert_eq!(found, [1000, 1000, 1000, 1523, 1500, 1000]);
    }

    #[test]
    fn a_node_without_cpus_makes_no_way_longer() {
        let at = |node| Place { core: node, l3: node, socket: node, node };
        let places: Vec<Place> = (0..2).map(at).collect();
        let table = distances(&[&[10, 21, 17], &[21, 10, 28], &[17, 28, 10]]);
        let detours = table.detours(&places);
        assert_eq!(
            [(0, 1), (0, 2), (1, 2)].map(|(from, to)| detours.between(from, to)),
            [DIRECT; 3]
        );
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        for (table, expected) in [
            (distances(&[&[10]]), "expected a row for each of the 2 nodes, found 1"),
            (distances(&[&[10, 20], &[20]]), "expected a distance to each of the 2 nodes, found 1"),
            (distances(&[&[10, 20], &[20, 0]]), "expected numbers from 1 to 1000000"),
            (distances(&[&[10, 9], &[20, 10]]), "expected nothing nearer to node 0 than itself"),
        ] {
            let (_, said) = table.fault(2).expect("a fault");
            assert_eq!(said, expected);
        }
    }
}
