//! The model of cache displacement by other data.
//!
//! Each core's own cache and each last-level cache counts the bytes that were brought into it. A
//! CPU that goes through some data notes these counts. Bytes that are brought in later may displace
//! the data. A cache with random replacement keeps each of its n lines with probability 1 - 1/n
//! when another line arrives. So the share of the data that remains is exp(-brought in / capacity).
//! Real caches replace the least recently used line, or nearly so, and lose little until they are
//! full. `docs/measurements/2026-11.md` compares the model with a measured cache.

use crate::exponentials::decay;
use crate::machine::Machine;
use crate::time::{Ns, SECOND};
use crate::topology::{Cpu, Topology};

/// The core and last-level cache that last went through some data, and the bytes brought into each
/// by then.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    core: u32,
    l3: u32,
    into_core: u64,
    into_l3: u64,
}

impl Seen {
    /// Returns the bytes brought in since an earlier state; `u64::MAX` for other caches.
    #[inline]
    fn since(&self, before: Option<Seen>) -> BroughtIn {
        let since = |there: Option<u64>, here: u64| there.map_or(u64::MAX, |there| here - there);
        let in_core = before.filter(|seen| seen.core == self.core).map(|seen| seen.into_core);
        let in_l3 = before.filter(|seen| seen.l3 == self.l3).map(|seen| seen.into_l3);
        BroughtIn { core: since(in_core, self.into_core), l3: since(in_l3, self.into_l3) }
    }
}

/// The bytes brought in since some data was gone through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BroughtIn {
    /// Bytes brought into the core's own cache; `u64::MAX` if the data was in another core's cache.
    pub core: u64,
    /// Bytes brought into the last-level cache; `u64::MAX` if the data was in another one.
    pub l3: u64,
}

/// The shares of some data that its caches no longer hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lost {
    /// Share that is no longer in the core's own cache.
    pub core: f64,
    /// Share that is no longer in the last-level cache.
    pub l3: f64,
}

/// The state of the caches when a CPU begins to go through some data.
#[derive(Debug, Clone, Copy)]
pub struct Passage {
    /// The bytes brought in since the data was gone through before.
    pub brought_in: BroughtIn,
    /// The shares of the data that must be brought in again.
    pub lost: Lost,
    /// The state to note for the next time.
    pub seen: Seen,
}

/// The cache capacities of a machine, as their reciprocals in bytes: multiplications are faster than
/// divisions.
#[derive(Debug, Clone, Copy)]
pub struct Capacities {
    per_core: f64,
    per_l3: f64,
}

impl Capacities {
    /// Returns the capacities of a machine.
    pub fn from_machine(machine: &Machine) -> Capacities {
        let per_byte = |kb: f64| 1.0 / (kb * 1024.0);
        let costs = &machine.costs;
        Capacities {
            per_core: per_byte(costs.core_cache_kb.value),
            per_l3: per_byte(costs.l3_cache_kb.value),
        }
    }

    /// Returns the shares of the data that the caches no longer hold.
    #[inline]
    pub fn lost(&self, brought_in: &BroughtIn) -> Lost {
        Lost { core: lost(brought_in.core, self.per_core), l3: lost(brought_in.l3, self.per_l3) }
    }
}

#[inline]
fn lost(brought_in: u64, per_byte: f64) -> f64 {
    // Signed integers convert faster. More bytes than they hold have displaced all of any cache.
    i64::try_from(brought_in).map_or(1.0, |bytes| 1.0 - decay(bytes as f64 * per_byte))
}

/// The caches of a machine.
#[derive(Debug)]
pub struct Caches {
    capacities: Capacities,
    /// Bytes per nanosecond that other programs, and other virtual machines on the same host, bring
    /// into each cache.
    background: f64,
    cores: Vec<u64>,
    l3s: Vec<u64>,
}

impl Caches {
    /// Creates caches into which nothing has been brought.
    pub fn new(machine: &Machine) -> Caches {
        let background = machine.costs.background_mb_s.value * 1e6 / SECOND as f64;
        Caches {
            capacities: Capacities::from_machine(machine),
            background,
            cores: vec![0; machine.topology.cores() as usize],
            l3s: vec![0; machine.topology.l3s() as usize],
        }
    }

    /// Returns the bytes brought in since a CPU's caches last held some data; `u64::MAX` if they
    /// never did.
    pub fn since(&self, topology: &Topology, cpu: Cpu, seen: Option<Seen>, now: Ns) -> BroughtIn {
        self.seen(topology, cpu, now).since(seen)
    }

    /// Goes through `bytes` of data on a CPU, whose caches last held it at `seen`, or never. The
    /// part that the caches have lost is brought in again. Each part of the data competes with all
    /// other parts, so data that does not fit displaces itself.
    pub fn go_through(
        &mut self,
        topology: &Topology,
        cpu: Cpu,
        seen: Option<Seen>,
        bytes: u64,
        now: Ns,
    ) -> Passage {
        let here = self.seen(topology, cpu, now);
        let brought_in = here.since(seen);
        let lost = self.capacities.lost(&brought_in);
        let part = |share: f64| (bytes as i64 as f64 * share) as i64 as u64;
        self.cores[here.core as usize] += part(lost.core);
        self.l3s[here.l3 as usize] += part(lost.l3);
        Passage { brought_in, lost, seen: here }
    }

    /// Returns the state of a CPU's caches at this time.
    pub fn seen(&self, topology: &Topology, cpu: Cpu, now: Ns) -> Seen {
        let place = topology.place(cpu);
        let background = (self.background * now as i64 as f64) as i64 as u64;
        Seen {
            core: place.core,
            l3: place.l3,
            into_core: self.cores[place.core as usize] + background,
            into_l3: self.l3s[place.l3 as usize] + background,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: u64 = 1024;

    fn machine(background_mb_s: f64) -> Machine {
        let mut machine = Machine::preset("epyc-9654").expect("a preset");
        for (name, value) in [("core_cache_kb", 1024.0), ("l3_cache_kb", 32768.0)] {
            machine.set(name, value).expect("a number of machines");
        }
        machine.set("background_mb_s", background_mb_s).expect("a number of machines");
        machine
    }

    #[test]
    fn data_is_displaced_by_other_data() {
        let machine = machine(0.0);
        let topology = &machine.topology;
        let mut caches = Caches::new(&machine);
        let data = caches.seen(topology, 0, 0);
        assert_eq!(caches.since(topology, 0, Some(data), 0), BroughtIn { core: 0, l3: 0 });
        caches.go_through(topology, 0, None, 1024 * KB, 0);
        let since = caches.since(topology, 0, Some(data), 0);
        assert_eq!(since, BroughtIn { core: 1024 * KB, l3: 1024 * KB });
        let capacities = Capacities::from_machine(&machine);
        assert!((capacities.lost(&since).core - 0.632).abs() < 0.001);
        assert!((capacities.lost(&since).l3 - 0.031).abs() < 0.001);
    }

    #[test]
    fn what_fits_stays_and_what_does_not_fit_displaces_itself() {
        let machine = machine(0.0);
        let topology = &machine.topology;
        // The lost share is x with x = 1 - exp(-bytes / capacity * x).
        for (bytes, expected) in [(512 * KB, 0.0), (2048 * KB, 0.797)] {
            let mut caches = Caches::new(&machine);
            let mut data = caches.go_through(topology, 0, None, bytes, 0).seen;
            for _ in 0..30 {
                data = caches.go_through(topology, 0, Some(data), bytes, 0).seen;
            }
            let lost = caches.go_through(topology, 0, Some(data), bytes, 0).lost.core;
            assert!((lost - expected).abs() < 0.001, "{bytes}: {lost}");
        }
    }

    #[test]
    fn another_core_of_the_cache_finds_it_there_and_one_elsewhere_does_not() {
        let machine = machine(0.0);
        let topology = &machine.topology;
        let mut caches = Caches::new(&machine);
        let data = caches.go_through(topology, 0, None, 16 * KB, 0).seen;
        let near = caches.since(topology, 1, Some(data), 0);
        assert_eq!(near, BroughtIn { core: u64::MAX, l3: 16 * KB });
        let far = caches.since(topology, 8, Some(data), 0);
        assert_eq!(far, BroughtIn { core: u64::MAX, l3: u64::MAX });
        assert_eq!(Capacities::from_machine(&machine).lost(&far).l3, 1.0);
    }

    #[test]
    fn others_displace_it_as_time_goes_by() {
        let machine = machine(1000.0);
        let topology = &machine.topology;
        let caches = Caches::new(&machine);
        let data = caches.seen(topology, 0, 0);
        let since = caches.since(topology, 0, Some(data), SECOND / 1000);
        assert_eq!(since, BroughtIn { core: 1_000_000, l3: 1_000_000 });
    }
}
