//! The parameters of the model: the machine, the program, and where each number comes from.

use serde::Serialize;

use super::policy::Cycles;
use crate::topology::{Place, Topology};

/// Which CPU gets the line next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// In the order of arrival, as a home agent with one queue for each line does it.
    InOrder,
    /// The CPU nearest to the last owner, the oldest request among equals: as if caches passed the
    /// line around among their own cores before they let it go.
    NearestFirst,
    /// All at once: each pays its own transfer and waits for no other. No hardware can do it; it
    /// takes the queue out of the model.
    Unqueued,
}

/// How the work between two switches varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Exponentially distributed.
    Exponential,
    /// Always the same.
    Constant,
}

/// The machine and the program. The default is the published run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// Sockets, each with one last-level cache.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores_per_socket: u32,
    /// Hardware threads of a core: 1 or 2.
    pub threads_per_core: u32,
    /// CPUs that run the program: first one of each core, socket by socket, then the siblings.
    pub cpus: u32,
    /// Clock rate in GHz, which turns nanoseconds into cycles.
    pub clock_ghz: f64,
    /// A load from the own core's cache, in cycles.
    pub l1_cycles: f64,
    /// A load from the socket's last-level cache, in nanoseconds.
    pub l3_ns: f64,
    /// Fetching a line that another core of the socket has modified, in nanoseconds.
    pub same_socket_ns: f64,
    /// Fetching a line from another socket or invalidating it there, in nanoseconds.
    pub remote_ns: f64,
    /// A locked instruction on a line that the core owns, in nanoseconds.
    pub locked_ns: f64,
    /// Which CPU gets the line next.
    pub arbitration: Arbitration,
    /// Mean work between two switches, in cycles of a hardware thread whose sibling is busy too.
    pub work_cycles: f64,
    /// How the work varies.
    pub work_spread: Spread,
    /// The scheduler's part of a switch without the mask, in the same cycles.
    pub scheduler_cycles: f64,
    /// How many times faster a hardware thread runs while its sibling waits. 1: no slowdown by
    /// sharing; 2: the core does no more with two threads than with one.
    pub alone_speed: f64,
    /// The share of switches that lead to the idle task or a kernel thread.
    pub idle_share: f64,
    /// The share of switches that lead to another process.
    pub foreign_share: f64,
    /// Mean time until the CPU comes back from there, in nanoseconds.
    pub away_ns: f64,
    /// Switches of the program for each flush of translations (an unmapping, a change of
    /// protection).
    pub switches_per_flush: f64,
    /// The shortest time between two trimmings, in nanoseconds; only
    /// [`LeaveLazily`](super::MaskPolicy::LeaveLazily) looks at it.
    pub trim_interval_ns: f64,
    /// Switches of each CPU that are measured, after a fifth as many that are not.
    pub switches_per_cpu: u32,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            sockets: 4,
            cores_per_socket: 15,
            threads_per_core: 2,
            cpus: 120,
            clock_ghz: 2.8,
            l1_cycles: 4.0,
            l3_ns: 15.5,
            same_socket_ns: 48.0,
            remote_ns: 197.0,
            locked_ns: 4.5,
            arbitration: Arbitration::InOrder,
            work_cycles: 48_350.0,
            work_spread: Spread::Exponential,
            scheduler_cycles: 2_810.0,
            alone_speed: 1.9,
            idle_share: 0.001,
            foreign_share: 0.0,
            away_ns: 100_000.0,
            switches_per_flush: 1000.0,
            trim_interval_ns: 1e9,
            switches_per_cpu: 1000,
        }
    }
}

/// A parameter for tables: its value and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
    /// Where the value comes from; for a fitted one, the figure it was fitted to.
    pub origin: &'static str,
    /// Whether it was chosen so that a published figure comes out.
    pub fitted: bool,
}

impl Parameters {
    /// The numbers of the default with their origins. The fitted ones come first.
    pub fn origins() -> Vec<Parameter> {
        let default = Parameters::default();
        let fitted =
            |name, value, unit, origin| Parameter { name, value, unit, origin, fitted: true };
        let given =
            |name, value, unit, origin| Parameter { name, value, unit, origin, fitted: false };
        vec![
            fitted(
                "work between two switches",
                default.work_cycles,
                "cycles",
                "fitted to the mean gain, from 133 to 144 GFlops",
            ),
            fitted(
                "scheduler without the mask",
                default.scheduler_cycles,
                "cycles",
                "fitted to the scheduler's share after, 5.5 %",
            ),
            fitted(
                "speed while the sibling waits",
                default.alone_speed,
                "times",
                "fitted to the scheduler's share before, 24 %; 2: linpack gains nothing from siblings",
            ),
            given(
                "sockets",
                default.sockets.into(),
                "",
                "60 cores are four of 15: Ivy Bridge-EX class",
            ),
            given("cores of a socket", default.cores_per_socket.into(), "", "as above"),
            given("CPUs", default.cpus.into(), "", "published: 60 cores, 120 threads"),
            given("clock", default.clock_ghz, "GHz", "Xeon E7-4890 v2, base clock"),
            given("hit in the core", default.l1_cycles, "cycles", "7-cpu.com, Ivy Bridge"),
            given(
                "hit in the last-level cache",
                default.l3_ns,
                "ns",
                "measured by others, Ivy Bridge-EX",
            ),
            given(
                "from another core of the socket",
                default.same_socket_ns,
                "ns",
                "Cascade Lake's 47 to 48; none found for this machine",
            ),
            given(
                "from another socket",
                default.remote_ns,
                "ns",
                "Intel's Memory Latency Checker, four Xeon E7-4800: mean of 12 pairs, 194 to 202",
            ),
            given(
                "locked instruction",
                default.locked_ns,
                "ns",
                "fetch_or on an owned line, our measurement on Zen 5; none found for this machine",
            ),
            given("switches to idle or kernel threads", default.idle_share, "share", "assumed"),
            given(
                "switches to other processes",
                default.foreign_share,
                "share",
                "assumed: a machine of its own",
            ),
            given("time away", default.away_ns, "ns", "assumed"),
            given("switches for each flush", default.switches_per_flush, "", "assumed"),
            given(
                "time between trimmings",
                default.trim_interval_ns,
                "ns",
                "Linux commit 6db2526c1d69: a second",
            ),
        ]
    }

    /// Nanoseconds in cycles, rounded.
    pub(super) fn cycles(&self, ns: f64) -> Cycles {
        (ns * self.clock_ghz).round() as Cycles
    }

    /// The CPUs in use.
    pub(super) fn topology(&self) -> Topology {
        let cores = self.sockets * self.cores_per_socket;
        let place = |cpu: u32| {
            let core = cpu % cores;
            let socket = core / self.cores_per_socket;
            Place { core, l3: socket, socket, node: socket }
        };
        Topology::new((0..self.cpus).map(place).collect())
    }

    /// What is wrong with these parameters, if anything.
    pub(super) fn check(&self) -> Result<(), String> {
        let most = u64::from(self.sockets)
            * u64::from(self.cores_per_socket)
            * u64::from(self.threads_per_core);
        if !(1..=2).contains(&self.threads_per_core) {
            return Err(format!(
                "expected 1 or 2 hardware threads in a core, got {}",
                self.threads_per_core
            ));
        }
        if self.cpus == 0 || u64::from(self.cpus) > most {
            return Err(format!("expected 1 to {most} CPUs, got {}", self.cpus));
        }
        if self.switches_per_cpu == 0 {
            return Err("expected at least one measured switch for each CPU".into());
        }
        self.check_numbers()
    }

    fn check_numbers(&self) -> Result<(), String> {
        let positive = [
            ("a clock rate", self.clock_ghz),
            ("work between two switches", self.work_cycles),
            ("a speed while the sibling waits", self.alone_speed),
            ("a number of switches for each flush", self.switches_per_flush),
        ];
        if let Some((name, value)) =
            positive.iter().find(|(_, value)| value.is_nan() || *value <= 0.0)
        {
            return Err(format!("expected {name} above 0, got {value}"));
        }
        let durations = [
            ("l1_cycles", self.l1_cycles),
            ("l3_ns", self.l3_ns),
            ("same_socket_ns", self.same_socket_ns),
            ("remote_ns", self.remote_ns),
            ("locked_ns", self.locked_ns),
            ("scheduler_cycles", self.scheduler_cycles),
            ("away_ns", self.away_ns),
            ("trim_interval_ns", self.trim_interval_ns),
        ];
        if let Some((name, value)) =
            durations.iter().find(|(_, value)| !(0.0..1e15).contains(value))
        {
            return Err(format!("expected a duration for {name}, got {value}"));
        }
        let shares = [self.idle_share, self.foreign_share, self.idle_share + self.foreign_share];
        match shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            Some(share) => {
                Err(format!("expected shares of switches from 0 to 1, also together, got {share}"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(change: fn(&mut Parameters)) -> String {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        parameters.check().expect_err("a fault")
    }

    #[test]
    fn bad_parameters_are_named() {
        assert_eq!(Parameters::default().check(), Ok(()));
        assert_eq!(fault(|it| it.cpus = 121), "expected 1 to 120 CPUs, got 121");
        assert_eq!(fault(|it| it.cpus = 0), "expected 1 to 120 CPUs, got 0");
        assert_eq!(
            fault(|it| it.threads_per_core = 4),
            "expected 1 or 2 hardware threads in a core, got 4"
        );
        assert_eq!(
            fault(|it| it.work_cycles = f64::NAN),
            "expected work between two switches above 0, got NaN"
        );
        assert_eq!(fault(|it| it.remote_ns = -1.0), "expected a duration for remote_ns, got -1");
        assert!(fault(|it| it.idle_share = 1.5).ends_with("got 1.5"));
        assert!(fault(|it| it.switches_per_cpu = 0).starts_with("expected at least one"));
    }

    #[test]
    fn cpus_fill_cores_before_they_share_them() {
        let topology = Parameters::default().topology();
        assert_eq!((topology.place(14).socket, topology.place(15).socket), (0, 1));
        assert_eq!(topology.place(59).core, 59);
        assert_eq!(topology.place(60), topology.place(0));
    }

    #[test]
    fn at_most_three_parameters_are_fitted() {
        assert!(Parameters::origins().iter().filter(|parameter| parameter.fitted).count() <= 3);
    }
}
