//! The properties of the machine and the kernel, for users and reports.

use std::time::Duration;

use crate::id::{SourceError, probe};
use crate::sys::{affinity, file, membarrier as fence, preserving_errno, process, rseq, topology};

pub use crate::id::aborts::{ProbeCounts, ProbeReport};
pub use crate::sys::cpuset::CpuSet;
pub use crate::sys::registration::{Registration, RseqMode};

/// A snapshot of all properties that percid's choices depend on.
///
/// ```
/// let machine = percid::machine::read();
/// println!("Linux {} on {}", machine.kernel_release, machine.arch);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Machine {
    /// The kernel's release, such as `6.18.44`; empty if it does not report one.
    pub kernel_release: String,
    /// The processor's name, from `/proc/cpuinfo`.
    pub cpu_model: Option<String>,
    /// The architecture this program was built for.
    pub arch: &'static str,
    /// Restartable sequences.
    pub rseq: Rseq,
    /// The fence.
    pub membarrier: Membarrier,
    /// The CPUs that can ever exist.
    pub possible: CpuSet,
    /// The CPUs the calling thread may run on.
    pub allowed: CpuSet,
    /// The CPUs that the kernel describes, in ascending order; unplugged ones lack their place.
    pub cpus: Vec<Cpu>,
}

/// Restartable sequences: registration and the kernel's area.
///
/// ```
/// let rseq = percid::machine::read().rseq;
/// println!("registered {}: {:?}", rseq.registration, rseq.fields);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rseq {
    /// The way in which threads are registered.
    pub registration: Registration,
    /// Number of bytes registered for the calling thread; 0 if none.
    pub registered_size: u32,
    /// The way in which the kernel updates them; `None` if none are registered.
    pub mode: Option<RseqMode>,
    /// The largest size and the largest alignment, in bytes, of an area that percid registers
    /// itself.
    pub max_own_size: u32,
    /// The size of the fields that this kernel fills, in bytes; 0 on kernels that do not report it.
    pub feature_size: u32,
    /// The alignment that this kernel requires of larger areas, in bytes; 0 on kernels that do not
    /// report it.
    pub align: u32,
    /// The fields that the kernel fills in the registered area, by their names in its interface.
    pub fields: Vec<&'static str>,
}

/// The system call `membarrier`.
///
/// ```
/// if !percid::machine::read().membarrier.rseq {
///     println!("the kernel cannot fence critical sections");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Membarrier {
    /// The bit mask of commands the kernel reports; 0 if it has none.
    pub commands: u32,
    /// The `errno` if the query for the commands was refused: by a sandbox, or by a kernel built
    /// without the call.
    pub refused: Option<i32>,
    /// `true` if the kernel supports the private expedited rseq flavour, which aborts critical
    /// sections.
    pub rseq: bool,
    /// `true` if the kernel can fence a single CPU.
    pub per_cpu: bool,
}

/// A CPU and the CPUs that share its caches.
///
/// ```
/// for cpu in percid::machine::read().cpus {
///     println!("CPU {} on node {:?}", cpu.number, cpu.node);
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Cpu {
    /// The kernel's number of the CPU.
    pub number: u32,
    /// The smallest CPU of its core.
    pub core: Option<u32>,
    /// The smallest CPU behind its last-level cache.
    pub l3: Option<u32>,
    /// The number of its NUMA node.
    pub node: Option<u32>,
    /// `true` if the calling thread may run on it.
    pub allowed: bool,
}

/// Takes the snapshot. On systems other than 64-bit Linux it contains only the number of CPUs that
/// the process may use, numbered from 0. It reads about ten small files for every possible CPU. It
/// registers the calling thread for rseq if the C library has not, and the process for the fence
/// (20 ms if it has several threads). It allocates, so it is not async-signal-safe.
///
/// ```
/// let machine = percid::machine::read();
/// assert!(!machine.allowed.is_empty());
/// ```
#[must_use]
pub fn read() -> Machine {
    let mut allowed = CpuSet::new();
    affinity::read_allowed(&mut allowed);
    let possible = possible().unwrap_or_else(|| allowed.clone());
    let cpus = possible.iter().map(|cpu| describe(cpu, &allowed)).collect();
    Machine {
        kernel_release: process::with_uname(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        cpu_model: cpu_model(),
        arch: std::env::consts::ARCH,
        rseq: read_rseq(),
        membarrier: read_membarrier(),
        possible,
        allowed,
        cpus,
    }
}

/// Tests for the time `limit` whether the running kernel aborts critical sections when it must.
///
/// percid does this by itself if architecture and release leave doubt; this function does it on
/// request. A child process (`clone` with `CLONE_VM`, gone at the end) fences or preempts a section
/// of the calling thread about a hundred to ten thousand times per second. During that time all
/// signals that can be blocked are blocked for the calling thread.
///
/// ```
/// use std::time::Duration;
///
/// match percid::machine::probe(Duration::from_millis(20)) {
///     Ok(probe) if probe.detected_ignored() => println!("this kernel loses updates"),
///     Ok(_) => println!("nothing wrong was seen"),
///     Err(why) => println!("it cannot be tried: {why}"),
/// }
/// ```
///
/// # Errors
///
/// The reason why it cannot be tested: no rseq, no fence, or no child process (as under
/// ThreadSanitizer).
pub fn probe(limit: Duration) -> Result<ProbeReport, SourceError> {
    preserving_errno(|| probe::run(limit, false))
}

/// Returns the CPUs that can ever exist, from sysfs.
fn possible() -> Option<CpuSet> {
    let list = file::find_line(c"/sys/devices/system/cpu/possible", |_| true)?;
    CpuSet::parse(&list).filter(|set| !set.is_empty())
}

fn describe(number: u32, allowed: &CpuSet) -> Cpu {
    let topology::Place { core, l3, node } = topology::place(number);
    Cpu { number, core, l3, node, allowed: allowed.contains(number) }
}

fn read_rseq() -> Rseq {
    let registration = rseq::registration();
    let fields = [
        ("cpu_id_start", 4),
        ("cpu_id", 8),
        ("rseq_cs", 16),
        ("flags", 20),
        ("node_id", 24),
        ("mm_cid", 28),
    ];
    let usable = rseq::usable_size(registration);
    // Another thread may have decided the registration.
    rseq::register_thread();
    let registered_size = rseq::registered_size(registration);
    Rseq {
        registration,
        registered_size,
        mode: RseqMode::of(registered_size, rseq::feature_size()),
        max_own_size: rseq::MAX_OWN_SIZE,
        feature_size: rseq::feature_size(),
        align: rseq::alignment(),
        fields: fields.iter().filter(|field| field.1 <= usable).map(|field| field.0).collect(),
    }
}

fn read_membarrier() -> Membarrier {
    let answer = fence::commands();
    let commands = answer.unwrap_or(0);
    let rseq = fence::has_rseq_flavour(commands);
    let per_cpu = rseq && fence::register().is_ok() && fence::fence_cpu(0).is_ok();
    Membarrier { commands, refused: answer.err(), rseq, per_cpu }
}

/// Returns the CPU model. x86 calls the line `model name`; other architectures have none or a
/// different one.
fn cpu_model() -> Option<String> {
    let line = file::find_line(c"/proc/cpuinfo", |line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", not(percid_elsewhere)))]
mod tests {
    use super::*;
    use crate::sys::described;
    use crate::sys::steps::{self, Fence, Step};

    #[test]
    fn a_described_machine_is_read() {
        described::with(described::MACHINE, || {
            assert_eq!(possible(), Some(CpuSet::from_iter(0..4)));
            assert_eq!(cpu_model().as_deref(), Some("Described CPU @ 1.00GHz"));
            let allowed = CpuSet::from_iter([2]);
            let Cpu { number, core, l3, node, .. } = describe(2, &allowed);
            assert_eq!((number, core, l3, node), (2, Some(0), Some(2), Some(0)));
            assert_eq!([1, 2, 3].map(|cpu| describe(cpu, &allowed).allowed), [false, true, false]);
        });
    }

    #[test]
    fn a_machine_that_says_nothing_is_read() {
        described::with(&[("/sys/devices/system/cpu/possible", "\n")], || {
            assert_eq!((possible(), cpu_model()), (None, None));
        });
        described::with(&[("/proc/cpuinfo", "model name\nprocessor : 1\n")], || {
            assert_eq!((possible(), cpu_model()), (None, None));
        });
    }

    #[test]
    fn this_machine_is_consistent() {
        let machine = read();
        assert!(machine.cpus.iter().any(|cpu| cpu.allowed));
        assert_eq!(machine.cpus.len(), machine.possible.len());
        let Rseq { registration, registered_size, mode, .. } = machine.rseq;
        let is_registered = registration.succeeded();
        assert_eq!((registered_size >= 32, mode.is_some()), (is_registered, is_registered));
        // The four fields of the original interface have 20 bytes.
        assert_eq!(machine.rseq.fields.len() >= 4, is_registered);
        let names = ["cpu_id_start", "cpu_id", "rseq_cs", "flags", "node_id", "mm_cid"];
        assert!(names.starts_with(&machine.rseq.fields), "{:?}", machine.rseq.fields);
        assert_eq!(machine.rseq.fields.contains(&"mm_cid"), rseq::has_mm_cid(registration));
        let Membarrier { commands, rseq, per_cpu, .. } = machine.membarrier;
        assert_eq!(rseq, commands >> 7 & 3 == 3, "the command and its registration");
        assert!(rseq || !per_cpu);
        // Linux 5.10 introduced the flavour and the fence of one CPU together.
        assert_eq!(rseq, per_cpu);
    }

    #[test]
    fn what_the_kernel_refuses_is_not_offered() {
        // A query that is answered without the kernel reports no commands.
        for refused in [Fence::Query, Fence::Register, Fence::OfCpu(0)] {
            let _watching = steps::watch(move |step| match step {
                Step::Membarrier(Fence::Query) if refused == Fence::Query => Some(Ok(())),
                Step::Membarrier(Fence::Query) => None,
                Step::Membarrier(fence) if fence == refused => Some(Err(libc::EINVAL)),
                _ => Some(Ok(())),
            });
            assert!(!read_membarrier().per_cpu, "{refused:?}");
        }
    }

    #[test]
    fn a_probe_tries_something() {
        // On a busy machine the time may be over before the first try.
        let tried = || match probe(Duration::from_millis(20)) {
            Ok(probe) => probe != ProbeReport::default(),
            Err(_) => true,
        };
        let end = std::time::Instant::now() + Duration::from_secs(600);
        while !tried() {
            assert!(std::time::Instant::now() < end);
        }
    }
}
