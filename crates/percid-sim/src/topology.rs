//! Where the CPUs of a machine sit, and how far one is from another.

use percid::id::space::Distance;

/// A CPU (hardware thread), numbered from 0 as the kernel numbers them.
pub type Cpu = u32;

/// Where a CPU sits. Numbers count over the whole machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The core, which hardware threads share.
    pub core: u32,
    /// The last-level cache.
    pub l3: u32,
    /// The socket.
    pub socket: u32,
    /// The NUMA node.
    pub node: u32,
}

/// How far the cache of one CPU is from another CPU. The order is from near to far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The same core.
    Core,
    /// Another core behind the same last-level cache.
    L3,
    /// Another last-level cache in the same socket.
    Socket,
    /// Another socket.
    Machine,
}

/// The CPUs of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    places: Vec<Place>,
}

impl Topology {
    /// The CPU with number `n` sits at `places[n]`.
    pub fn new(places: Vec<Place>) -> Topology {
        Topology { places }
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.places.len() as u32
    }

    /// Where `cpu` sits.
    pub fn place(&self, cpu: Cpu) -> Place {
        self.places[cpu as usize]
    }

    /// How far `b` is from `a`.
    pub fn reach(&self, a: Cpu, b: Cpu) -> Reach {
        let (a, b) = (self.place(a), self.place(b));
        match () {
            () if a.core == b.core => Reach::Core,
            () if a.l3 == b.l3 => Reach::L3,
            () if a.socket == b.socket => Reach::Socket,
            () => Reach::Machine,
        }
    }

    /// The same in the terms of the library's ID space.
    pub fn distance(&self, a: Cpu, b: Cpu) -> Distance {
        let (a, b) = (self.place(a), self.place(b));
        match () {
            () if a.core == b.core => Distance::SameCore,
            () if a.l3 == b.l3 => Distance::SameL3,
            () if a.node == b.node => Distance::SameNode,
            () => Distance::Far,
        }
    }
}
