//! Properties of the machine and the kernel, for users and reports.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use percid::machine::{self as known, CpuSet};

use crate::barrier::uncancelled;
use crate::errno;
use crate::headroom;
use crate::sized;
use crate::text;

/// The component that registers the threads of this process for restartable sequences (rseq).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The C library registers every thread when it starts.
    Libc = 1,
    /// percid registers each thread at its first need, because the C library does not.
    Percid = 2,
    /// A library of the program defines the thread-local area __rseq_abi, and percid shares it.
    /// Only PERCID_SOURCE_TABLE works then.
    Shared = 3,
    /// Another library has registered its own area, which cannot be found, and a thread has only
    /// one.
    Occupied = 4,
    /// The kernel refuses.
    Refused = 5,
    /// percid has no critical sections for this architecture.
    Unsupported = 6,
    /// A value for which this version of the interface has no number.
    Other = 7,
}

/// The way in which the kernel updates a registered rseq area.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RseqMode {
    /// No area is registered.
    None = 0,
    /// The only mode of a kernel that announces at most 32 bytes.
    Single = 1,
    /// 32 bytes are registered with a kernel that announces more: it rewrites all IDs at every
    /// switch, for libraries that rely on it.
    Compatible = 2,
    /// More than 32 bytes are registered: IDs are written when they change, and a process that
    /// writes to one of the kernel's fields is killed.
    Fast = 3,
    /// A value for which this version of the interface has no number.
    Other = 4,
}

/// The fields of an rseq area, as bits.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RseqField {
    /// cpu_id_start
    CpuIdStart = 1,
    /// cpu_id
    CpuId = 2,
    /// rseq_cs
    RseqCs = 4,
    /// flags
    Flags = 8,
    /// node_id (Linux 6.3)
    NodeId = 16,
    /// mm_cid (Linux 6.3)
    MmCid = 32,
}

/// The behaviour of a kernel's own IDs, PERCID_SOURCE_KERNEL.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// The kernel has none.
    None = 0,
    /// Linux 6.3: the first free ID at every switch into the process; nothing is remembered.
    FirstFree = 1,
    /// Linux 6.4 to 6.12: a CPU keeps its ID for a while, but gets another one after every pause.
    CacheCold = 2,
    /// Linux 6.13: cache-local, but not dense any more after the number of threads or allowed CPUs
    /// has decreased.
    NotCompacting = 3,
    /// Linux 6.14 to 6.18: cache-local and dense.
    CacheLocal = 4,
    /// Linux 6.19 and later: an ID belongs to a thread or to a CPU, and may exceed the density
    /// bound.
    Owned = 5,
    /// A value for which this version of the interface has no number.
    Other = 6,
}

/// All properties that percid's choices depend on. The structure may grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// The kernel's release, such as "6.18.44"; empty if unknown.
    pub kernel_release: [c_char; 72],
    /// The processor's name from /proc/cpuinfo; empty if it has none.
    pub cpu_model: [c_char; 128],
    /// The architecture that the library was built for, such as "x86_64".
    pub arch: [c_char; 16],
    /// The component that registers the threads: one of enum percid_registration.
    pub registration: c_int,
    /// The kernel's errno if `registration` is PERCID_REGISTRATION_REFUSED, otherwise 0.
    pub registration_error: c_int,
    /// Number of bytes that are registered for the calling thread; 0 if none.
    pub rseq_registered_size: u32,
    /// The kernel's way to update them: one of enum percid_rseq_mode.
    pub rseq_mode: c_int,
    /// The fields that are live in the registered area: bits of enum percid_rseq_field.
    pub rseq_fields: u32,
    /// The size of the fields that this kernel fills, in bytes; 0 on kernels that do not report it.
    pub rseq_feature_size: u32,
    /// The alignment that this kernel requires for larger areas, in bytes; 0 on kernels that do not
    /// report it.
    pub rseq_align: u32,
    /// The largest size and alignment, in bytes, of an area that percid registers itself.
    pub rseq_max_own_size: u32,
    /// The bit mask of commands that membarrier() reports; 0 if the kernel has none.
    pub membarrier_commands: u32,
    /// 1 if the commands include the private expedited rseq flavour, which aborts critical
    /// sections.
    pub membarrier_rseq: c_int,
    /// 1 if that flavour can fence a single CPU.
    pub membarrier_per_cpu: c_int,
    /// The expected behaviour of the kernel's own IDs for its release: one of enum
    /// percid_generation. It is a hint: distributions backport scheduler changes to older releases.
    pub generation: c_int,
    /// Number of CPUs that may ever exist.
    pub possible_cpus: u32,
    /// The largest number of a CPU that may ever exist.
    pub last_possible_cpu: u32,
    /// Number of CPUs on which the calling thread may run.
    pub allowed_cpus: u32,
}

/// One CPU and its position in the topology. The structure may grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Cpu {
    /// The kernel's number of the CPU.
    pub number: u32,
    /// 1 if the calling thread may run on it.
    pub allowed: c_int,
    /// The smallest CPU of its core; -1 if the kernel does not report it, for instance if the CPU
    /// is unplugged.
    pub core: i32,
    /// The smallest CPU that shares its last-level cache, or -1.
    pub l3: i32,
    /// The number of its NUMA node, or -1.
    pub node: i32,
}

/// Outcomes of the rounds of one kind.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ProbeCounts {
    /// Rounds in which the critical section was aborted, as required.
    pub aborted: u64,
    /// Rounds in which the critical section continued without an abort: a kernel bug.
    pub ignored: u64,
    /// Undecided rounds: the thread was moved, or nothing happened in time.
    pub undecided: u64,
}

/// Verdict on the kernel's aborts of critical sections.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There were too few decided rounds.
    Undecided = 0,
    /// The kernel aborted critical sections often enough, in each kind of round.
    Good = 1,
    /// The kernel ignored an event that must abort a critical section, so updates would be lost.
    Bad = 2,
}

/// Result of a probe of the kernel. The structure may grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ProbeReport {
    /// Fences of all CPUs.
    pub fences: ProbeCounts,
    /// Fences of the critical section's CPU only.
    pub fences_of_one_cpu: ProbeCounts,
    /// Preemptions on the critical section's CPU.
    pub preemptions: ProbeCounts,
    /// The verdict: one of enum percid_verdict.
    pub verdict: c_int,
    /// Always 0.
    pub reserved: c_int,
}

/// Stores the current properties of the machine and the kernel in `machine`, of `size` bytes.
///
/// Returns 0, -EINVAL for NULL or no bytes, or -ENOMEM. Reads about ten small files for every
/// possible CPU; registers the calling thread for rseq if the C library has not, and the process
/// for the fence (20 ms if it has several threads); allocates, so it is not async-signal-safe.
///
/// # Safety
///
/// `machine` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_machine_read(machine: *mut Machine, size: usize) -> c_int {
    if machine.is_null() || size == 0 {
        return -libc::EINVAL;
    }
    uncancelled(-libc::EFAULT, || match errno::preserved(headroom::ask) {
        // SAFETY: the caller guarantees memory of this size, or NULL.
        Ok(()) => unsafe { sized::store(machine, size, &Machine::from_percid(&read())) },
        Err(error) => error,
    })
}

/// Returns the number of CPUs that may ever exist, and writes the first `capacity` of them,
/// ascending, to `cpus`, each in `size` bytes (that is sizeof(percid_cpu)). Returns 0 without
/// memory. With `capacity` 0 nothing is written and `cpus` may be NULL. Costs the same as
/// percid_machine_read().
///
/// # Safety
///
/// `cpus` is [memory](crate#safety) for `capacity` times `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_machine_cpus(
    cpus: *mut Cpu,
    size: usize,
    capacity: usize,
) -> usize {
    let capacity = if cpus.is_null() { 0 } else { capacity };
    uncancelled(0, || {
        if errno::preserved(headroom::ask).is_err() {
            return 0;
        }
        let found = read().cpus;
        for (index, cpu) in found.iter().take(capacity).enumerate() {
            // SAFETY: the caller guarantees memory for `capacity` structures of `size` bytes.
            unsafe { sized::store(cpus.byte_add(index * size), size, &Cpu::from_percid(cpu)) };
        }
        found.len()
    })
}

/// Determines if the running kernel aborts critical sections when it must. Tests it for at most
/// this number of milliseconds, and stores the result in `probe`, of `size` bytes.
///
/// percid does this by itself if architecture and release leave doubt; this function does it on
/// request. A child process (clone() with CLONE_VM, gone at the end) fences or preempts a critical
/// section of the calling thread, a few hundred to a few ten thousand times a second. All signals
/// that can be blocked are blocked for the calling thread during the test.
///
/// Returns 0; -EINVAL for NULL or no bytes; or the reason why it cannot be tested, as
/// percid_source_prepare() does.
///
/// # Safety
///
/// `probe` is [memory](crate#safety) for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn percid_machine_probe(
    milliseconds: u32,
    probe: *mut ProbeReport,
    size: usize,
) -> c_int {
    if probe.is_null() || size == 0 {
        return -libc::EINVAL;
    }
    uncancelled(-libc::EFAULT, || match known::probe(Duration::from_millis(milliseconds.into())) {
        // SAFETY: the caller guarantees memory of this size, or NULL.
        Ok(seen) => unsafe { sized::store(probe, size, &ProbeReport::from_percid(seen)) },
        Err(why) => errno::of_source_error(why),
    })
}

/// Reads files, and preserves `errno`.
fn read() -> known::Machine {
    errno::preserved(known::read)
}

impl Machine {
    fn from_percid(machine: &known::Machine) -> Machine {
        let known::Machine { kernel_release, cpu_model, arch, rseq, membarrier, .. } = machine;
        let count = |set: &CpuSet| u32::try_from(set.len()).unwrap_or(u32::MAX);
        let (registration, registration_error) = Registration::from_percid(rseq.registration);
        let generation = percid::id::Generation::hinted_by(kernel_release);
        Machine {
            kernel_release: text::array(kernel_release),
            cpu_model: text::array(cpu_model.as_deref().unwrap_or_default()),
            arch: text::array(arch),
            registration: registration as c_int,
            registration_error,
            rseq_registered_size: rseq.registered_size,
            rseq_mode: RseqMode::from_percid(rseq.mode) as c_int,
            rseq_fields: rseq.fields.iter().map(|name| RseqField::bit(name)).sum(),
            rseq_feature_size: rseq.feature_size,
            rseq_align: rseq.align,
            rseq_max_own_size: rseq.max_own_size,
            membarrier_commands: membarrier.commands,
            membarrier_rseq: membarrier.rseq.into(),
            membarrier_per_cpu: membarrier.per_cpu.into(),
            generation: Generation::from_percid(generation) as c_int,
            possible_cpus: count(&machine.possible),
            last_possible_cpu: machine.possible.last().unwrap_or(0),
            allowed_cpus: count(&machine.allowed),
        }
    }
}

impl Registration {
    /// Returns the number, and the errno that belongs to it.
    fn from_percid(registration: known::Registration) -> (Registration, c_int) {
        match registration {
            known::Registration::Libc => (Registration::Libc, 0),
            known::Registration::Percid => (Registration::Percid, 0),
            known::Registration::Shared => (Registration::Shared, 0),
            known::Registration::Occupied => (Registration::Occupied, 0),
            known::Registration::Refused(errno) => (Registration::Refused, errno),
            known::Registration::Unsupported => (Registration::Unsupported, 0),
            _ => (Registration::Other, 0),
        }
    }
}

impl RseqMode {
    fn from_percid(mode: Option<known::RseqMode>) -> RseqMode {
        match mode {
            None => RseqMode::None,
            Some(known::RseqMode::Single) => RseqMode::Single,
            Some(known::RseqMode::Compatible) => RseqMode::Compatible,
            Some(known::RseqMode::Fast) => RseqMode::Fast,
            Some(_) => RseqMode::Other,
        }
    }
}

impl RseqField {
    fn bit(name: &str) -> u32 {
        match name {
            "cpu_id_start" => RseqField::CpuIdStart as u32,
            "cpu_id" => RseqField::CpuId as u32,
            "rseq_cs" => RseqField::RseqCs as u32,
            "flags" => RseqField::Flags as u32,
            "node_id" => RseqField::NodeId as u32,
            "mm_cid" => RseqField::MmCid as u32,
            _ => 0,
        }
    }
}

impl Generation {
    fn from_percid(generation: Option<percid::id::Generation>) -> Generation {
        use percid::id::Generation as Known;
        match generation {
            None => Generation::None,
            Some(Known::FirstFree) => Generation::FirstFree,
            Some(Known::CacheCold) => Generation::CacheCold,
            Some(Known::NotCompacting) => Generation::NotCompacting,
            Some(Known::CacheLocal) => Generation::CacheLocal,
            Some(Known::Owned) => Generation::Owned,
            Some(_) => Generation::Other,
        }
    }
}

impl Cpu {
    fn from_percid(cpu: &known::Cpu) -> Cpu {
        let number =
            |known: Option<u32>| known.and_then(|known| known.try_into().ok()).unwrap_or(-1);
        Cpu {
            number: cpu.number,
            allowed: cpu.allowed.into(),
            core: number(cpu.core),
            l3: number(cpu.l3),
            node: number(cpu.node),
        }
    }
}

impl ProbeReport {
    fn from_percid(seen: known::ProbeReport) -> ProbeReport {
        let verdict = match (seen.confirms_aborts(), seen.detected_ignored()) {
            (true, _) => Verdict::Good,
            (_, true) => Verdict::Bad,
            _ => Verdict::Undecided,
        };
        ProbeReport {
            fences: ProbeCounts::from_percid(seen.fences),
            fences_of_one_cpu: ProbeCounts::from_percid(seen.fences_of_one_cpu),
            preemptions: ProbeCounts::from_percid(seen.preemptions),
            verdict: verdict as c_int,
            reserved: 0,
        }
    }
}

impl ProbeCounts {
    fn from_percid(tries: known::ProbeCounts) -> ProbeCounts {
        let known::ProbeCounts { aborted, ignored, undecided, .. } = tries;
        ProbeCounts { aborted, ignored, undecided }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_and_generation_has_a_number() {
        let fields = known::read().rseq.fields;
        let bits: u32 = fields.iter().map(|name| RseqField::bit(name)).sum();
        assert_eq!(bits.count_ones() as usize, fields.len());
        for (number, generation) in (1..).zip(percid::id::Generation::ALL) {
            assert_eq!(Generation::from_percid(Some(generation)) as c_int, number);
        }
    }

    #[test]
    fn a_verdict_is_what_the_probe_says() {
        let verdict = |aborted, ignored| {
            let mut seen = known::ProbeReport::default();
            for kind in [&mut seen.fences, &mut seen.fences_of_one_cpu, &mut seen.preemptions] {
                kind.aborted = aborted;
            }
            seen.preemptions.ignored = ignored;
            ProbeReport::from_percid(seen).verdict
        };
        assert_eq!(verdict(0, 0), Verdict::Undecided as c_int);
        assert_eq!(verdict(100, 0), Verdict::Good as c_int);
        assert_eq!(verdict(100, 1), Verdict::Bad as c_int);
    }
}
