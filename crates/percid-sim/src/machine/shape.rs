//! Regular topologies, which counts describe completely.

use serde::{Deserialize, Serialize};

use crate::topology::{Place, Topology};

/// A regular topology; all counts are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) sockets: u32,
    /// Number of nodes per socket; it divides the number of last-level caches per socket.
    pub(super) nodes_per_socket: u32,
    pub(super) l3s_per_socket: u32,
    pub(super) cores_per_l3: u32,
    pub(super) threads_per_core: u32,
    pub(super) numbering: Numbering,
}

/// The order in which CPUs are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Numbering {
    /// One hardware thread of every core first, then the next one of every core.
    CoresFirst,
    /// The hardware threads of a core have adjacent numbers.
    SiblingsAdjacent,
}

impl Shape {
    fn cores(&self) -> u32 {
        self.sockets * self.l3s_per_socket * self.cores_per_l3
    }

    fn cpus(&self) -> u32 {
        self.cores() * self.threads_per_core
    }

    /// Returns the topology with the place of each CPU.
    pub(super) fn topology(&self) -> Topology {
        let core_of = |cpu: u32| match self.numbering {
            Numbering::CoresFirst => cpu % self.cores(),
            Numbering::SiblingsAdjacent => cpu / self.threads_per_core,
        };
        let place = |cpu: u32| {
            let core = core_of(cpu);
            let l3 = core / self.cores_per_l3;
            let l3s_per_node = self.l3s_per_socket / self.nodes_per_socket;
            Place { core, l3, socket: l3 / self.l3s_per_socket, node: l3 / l3s_per_node }
        };
        Topology::new((0..self.cpus()).map(place).collect())
    }

    /// Returns the first error of the shape: the field, and the expected value.
    pub(super) fn fault(&self, most_cpus: u64) -> Option<(&'static str, String)> {
        let counts = [
            ("sockets", self.sockets),
            ("l3s_per_socket", self.l3s_per_socket),
            ("cores_per_l3", self.cores_per_l3),
            ("threads_per_core", self.threads_per_core),
            ("nodes_per_socket", self.nodes_per_socket),
        ];
        if let Some((field, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Some((field, "expected at least 1".to_owned()));
        }
        let cpus = counts[..4]
            .iter()
            .fold(1u64, |cpus, (_, count)| cpus.saturating_mul(u64::from(*count)));
        if cpus > most_cpus {
            return Some(("sockets", format!("expected at most {most_cpus} CPUs in all")));
        }
        let is_even = self.l3s_per_socket.is_multiple_of(self.nodes_per_socket);
        let expected = || "expected a divisor of l3s_per_socket".to_owned();
        (!is_even).then(|| ("nodes_per_socket", expected()))
    }

    /// Returns the shape of a topology, if the topology and its numbering are regular.
    pub(super) fn from_topology(topology: &Topology) -> Option<Shape> {
        let share = |many: u32, few: u32| {
            (few > 0 && many > 0 && many.is_multiple_of(few)).then(|| many / few)
        };
        let sockets = topology.sockets();
        let shape = Shape {
            sockets,
            nodes_per_socket: share(topology.nodes(), sockets)?,
            l3s_per_socket: share(topology.l3s(), sockets)?,
            cores_per_l3: share(topology.cores(), topology.l3s())?,
            threads_per_core: share(topology.cpus(), topology.cores())?,
            numbering: Numbering::CoresFirst,
        };
        let numberings = [Numbering::CoresFirst, Numbering::SiblingsAdjacent];
        let shapes = numberings.map(|numbering| Shape { numbering, ..shape });
        let fits = |shape: &Shape| {
            // Rejects node counts that do not divide the cache counts.
            shape.fault(u64::from(u32::MAX)).is_none()
                && shape.topology().places() == topology.places()
        };
        shapes.into_iter().find(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_topology_has_its_shape_and_an_irregular_one_none() {
        for numbering in [Numbering::CoresFirst, Numbering::SiblingsAdjacent] {
            let shape = Shape {
                sockets: 2,
                nodes_per_socket: 2,
                l3s_per_socket: 4,
                cores_per_l3: 3,
                threads_per_core: 2,
                numbering,
            };
            let topology = shape.topology();
            assert_eq!(Shape::from_topology(&topology), Some(shape));
            let mut places = topology.places().to_vec();
            places.pop();
            assert_eq!(Shape::from_topology(&Topology::new(places)), None);
            let mut places = topology.places().to_vec();
            places.swap(0, 5);
            assert_eq!(Shape::from_topology(&Topology::new(places)), None, "numbered like none");
        }
        assert_eq!(Shape::from_topology(&Topology::new(Vec::new())), None);
    }
}
