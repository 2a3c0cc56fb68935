//! The numbers of CPUs and nodes of a machine.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// The largest machine that booted reliably; larger ones crashed the guest.
const MAX_CPUS: u32 = 128;
/// Maximum number of nodes of the distance table below.
const MAX_NODES: u32 = 16;

/// CPUs and nodes of a machine, written `CPUS/NODES` as in `16/4`, or
/// `CPUS+SPARE/NODES` as in `8+56/2` for a machine in which `SPARE` more CPUs
/// are there but not up until a program brings them up, or `CPUS/NODES+MEMORY`
/// as in `4/2+1` for one in which `MEMORY` more nodes have memory and no CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    cpus: u32,
    spare: u32,
    /// With CPUs.
    nodes: u32,
    /// Without.
    memory_only: u32,
}

impl Shape {
    /// Makes a machine of `cpus` CPUs in `nodes` equal nodes, with `spare` more CPUs that are not
    /// up.
    pub fn new(cpus: u32, spare: u32, nodes: u32) -> Result<Self, Error> {
        let refuse =
            |why: String| Err(Error::Usage(format!("shape {cpus}+{spare}/{nodes}: {why}")));
        if cpus == 0 || nodes == 0 {
            return refuse("a machine needs a CPU and a node".to_owned());
        }
        if nodes > MAX_NODES {
            return refuse(format!("expected at most {MAX_NODES} nodes"));
        }
        if !cpus.is_multiple_of(nodes) || !spare.is_multiple_of(nodes) {
            return refuse("expected the same number of CPUs on every node".to_owned());
        }
        if cpus.saturating_add(spare) > MAX_CPUS {
            return refuse(format!("expected at most {MAX_CPUS} CPUs"));
        }
        Ok(Self { cpus, spare, nodes, memory_only: 0 })
    }

    /// Returns the same machine with `memory_only` more nodes that have no CPUs.
    pub fn with_memory_only(self, memory_only: u32) -> Result<Self, Error> {
        if self.nodes.saturating_add(memory_only) > MAX_NODES {
            let shape = format!("{self}+{memory_only}");
            return Err(Error::Usage(format!("shape {shape}: expected at most {MAX_NODES} nodes")));
        }
        Ok(Self { memory_only, ..self })
    }

    /// Returns the number of CPUs that are up when programs start.
    pub fn cpus(self) -> u32 {
        self.cpus
    }

    /// Returns the number of CPUs that the kernel must expect.
    pub fn possible(self) -> u32 {
        self.cpus + self.spare
    }

    /// Returns the number of NUMA nodes: first those with CPUs, then those without.
    pub fn nodes(self) -> u32 {
        self.nodes + self.memory_only
    }

    /// Returns the number of nodes with CPUs.
    pub fn nodes_with_cpus(self) -> u32 {
        self.nodes
    }

    /// Returns `true` if some nodes have no CPUs.
    pub fn has_memory_only(self) -> bool {
        self.memory_only > 0
    }

    /// Returns the CPU numbers of `node`, inclusive ranges: first its share of the CPUs that come
    /// up, then its share of the spare ones. So a machine with spare CPUs also has running ones on
    /// every node with CPUs.
    pub fn cpus_of(self, node: u32) -> Vec<(u32, u32)> {
        if node >= self.nodes {
            return Vec::new();
        }
        let range = |base: u32, count: u32| {
            let share = count / self.nodes;
            let first = base + node * share;
            (share > 0).then(|| (first, first + share - 1))
        };
        let ranges = [range(0, self.cpus), range(self.cpus, self.spare)];
        ranges.into_iter().flatten().collect()
    }

    /// Returns the distance between two nodes as the firmware reports it: pairs of nodes are near,
    /// as on one package, all others further. Two kinds of remote nodes make "nearest" meaningful.
    /// Nodes without CPUs are further than any with some, each from its share of these less than
    /// from the others.
    pub fn distance(self, from: u32, to: u32) -> u32 {
        let (near, far) = (from.min(to), from.max(to));
        match far - near {
            0 => 10,
            _ if near >= self.nodes => 60,
            _ if far >= self.nodes && near % self.memory_only == far - self.nodes => 40,
            _ if far >= self.nodes => 50,
            _ if from / 2 == to / 2 => 20,
            _ => 30,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.spare {
            0 => format!("{}/{}", self.cpus, self.nodes),
            spare => format!("{}+{spare}/{}", self.cpus, self.nodes),
        };
        let text = match self.memory_only {
            0 => text,
            more => format!("{text}+{more}"),
        };
        f.pad(&text)
    }
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let malformed = || {
            Error::Usage(format!(
                "shape `{text}`: expected CPUS/NODES as in 16/4, CPUS+SPARE/NODES as in 8+56/2 or \
                 CPUS/NODES+MEMORY as in 4/2+1"
            ))
        };
        let (cpus, nodes) = text.split_once('/').ok_or_else(malformed)?;
        let (cpus, spare) = cpus.split_once('+').unwrap_or((cpus, "0"));
        let (nodes, memory_only) = nodes.split_once('+').unwrap_or((nodes, "0"));
        let number = |digits: &str| digits.parse().map_err(|_| malformed());
        let shape = Self::new(number(cpus)?, number(spare)?, number(nodes)?)?;
        shape.with_memory_only(number(memory_only)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        text.parse().expect("a good shape")
    }

    #[test]
    fn shapes_survive_a_round_trip() {
        for text in ["8/2", "16/4", "64/8", "1/1", "8+56/2", "4/2+1", "8+8/2+3"] {
            assert_eq!(shape(text).to_string(), text);
        }
    }

    #[test]
    fn bad_shapes_say_what_was_expected() {
        for (text, expected) in [
            ("8", "CPUS/NODES"),
            ("8/two", "CPUS/NODES"),
            ("-8/2", "CPUS/NODES"),
            ("0/1", "needs a CPU"),
            ("9/2", "same number of CPUs"),
            ("8+3/2", "same number of CPUs"),
            ("256/8", "at most 128 CPUs"),
            ("4294967295+4294967295/1", "at most 128 CPUs"),
            ("32/32", "at most 16 nodes"),
            ("8/2+15", "at most 16 nodes"),
            ("8/2+one", "CPUS/NODES+MEMORY"),
        ] {
            let error = text.parse::<Shape>().expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn every_cpu_is_on_exactly_one_node() {
        for text in ["8/2", "64/8", "8+56/2", "4+8/4", "4/2+2"] {
            let shape = shape(text);
            let mut cpus: Vec<u32> = (0..shape.nodes())
                .flat_map(|node| shape.cpus_of(node))
                .flat_map(|(first, last)| first..=last)
                .collect();
            cpus.sort_unstable();
            assert_eq!(cpus, (0..shape.possible()).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn running_cpus_are_on_every_node_even_with_spare_ones() {
        let shape = shape("8+56/2");
        assert_eq!(shape.cpus_of(0), [(0, 3), (8, 35)]);
        assert_eq!(shape.cpus_of(1), [(4, 7), (36, 63)]);
    }

    #[test]
    fn nodes_without_cpus_come_last_and_are_far() {
        let shape = shape("4/2+2");
        assert_eq!((shape.nodes(), shape.nodes_with_cpus()), (4, 2));
        assert_eq!(shape.cpus_of(1), [(2, 3)]);
        assert_eq!(shape.cpus_of(2), []);
        let from_each = |to| [0, 1, 2, 3].map(|from| shape.distance(from, to));
        assert_eq!(from_each(2), [40, 50, 10, 60]);
        assert_eq!(from_each(3), [50, 40, 60, 10]);
    }

    #[test]
    fn distances_are_symmetric_and_nearest_is_here() {
        let shape = shape("64/8");
        for a in 0..8 {
            assert_eq!(shape.distance(a, a), 10);
            for b in 0..8 {
                assert_eq!(shape.distance(a, b), shape.distance(b, a));
            }
        }
        assert_eq!(shape.distance(2, 3), 20);
        assert_eq!(shape.distance(1, 2), 30);
    }
}
