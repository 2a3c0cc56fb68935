//! The machines to boot.

use crate::pins;
use crate::platform::{Arch, Platform, Series};
use crate::qemu::Threads;
use crate::shape::Shape;

/// A machine to boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Its kernel.
    pub platform: Platform,
    /// CPUs and nodes.
    pub shape: Shape,
    /// The kind of emulation of the CPUs.
    pub threads: Threads,
}

/// The quick plan: concurrency IDs of the old and of the new protocol, a kernel without any and
/// without the write protection of faults, and one that does not abort critical sections.
const QUICK: [(Platform, (u32, u32)); 4] = [
    (Platform::x86_64(Series::V6_18), (16, 4)),
    (Platform::x86_64(Series::new(7, 3)), (8, 2)),
    (Platform::aarch64(Series::new(5, 10)), ARM),
    (Platform::aarch64(Series::new(7, 0)), ARM),
];

/// Shapes for every kernel of the long plan.
const X86: (u32, u32) = (8, 2);
const ARM: (u32, u32) = (4, 2);
/// With a second node the emulated board has a second interrupt controller, whose interrupts never
/// come, the report's among them (QEMU 7.2, Linux 6.12).
const RISCV: (u32, u32) = (4, 1);

/// Larger machines of the long plan; the last takes as long as all of one kernel's others.
const LARGE: [(Platform, (u32, u32)); 3] = [
    (Platform::x86_64(Series::V6_1), (16, 4)),
    (Platform::x86_64(Series::V6_12), (16, 4)),
    (Platform::x86_64(Series::V6_12), (64, 8)),
];

/// A machine with a node that has memory and no CPUs, with the long plan.
const TIERED: (Platform, (u32, u32), u32) = (Platform::x86_64(Series::new(7, 3)), (4, 2), 1);

/// The requested machines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wish<'a> {
    /// Kernels; empty for those of the plan.
    pub kernels: &'a [Platform],
    /// Shapes instead of those of the plan.
    pub shapes: &'a [Shape],
    /// The long plan.
    pub long: bool,
    /// The kind of emulation of the CPUs, instead of the plan's.
    pub threads: Option<Threads>,
}

/// Returns the requested machines. Kernels that the quick plan does not contain are taken from the
/// long one.
pub fn plan(wish: Wish<'_>) -> Vec<Machine> {
    let mut machines = if wish.long || !wish.kernels.is_empty() { long() } else { quick() };
    if !wish.kernels.is_empty() {
        machines.retain(|machine| wish.kernels.contains(&machine.platform));
    }
    if !wish.shapes.is_empty() {
        machines.dedup_by_key(|machine| machine.platform);
        let shaped = |machine: &Machine| {
            let machine = *machine;
            wish.shapes.iter().map(move |&shape| Machine { shape, ..machine })
        };
        machines = machines.iter().flat_map(shaped).collect();
    }
    for machine in &mut machines {
        machine.threads = wish.threads.unwrap_or(machine.threads);
    }
    machines
}

fn quick() -> Vec<Machine> {
    QUICK.into_iter().map(machine).collect()
}

fn long() -> Vec<Machine> {
    let usual = pins::all().iter().map(|pin| match pin.platform.arch {
        Arch::X86_64 => (pin.platform, X86),
        Arch::Aarch64 => (pin.platform, ARM),
        Arch::Riscv64 => (pin.platform, RISCV),
    });
    let mut machines: Vec<Machine> = usual.chain(LARGE).map(machine).collect();
    machines.push(tiered());
    machines.sort_by_key(|machine| (machine.platform.arch, machine.platform.series));
    machines
}

/// Guests of Arm and RISC-V bear CPUs that really run at the same time.
fn machine((platform, (cpus, nodes)): (Platform, (u32, u32))) -> Machine {
    let threads = match platform.arch {
        Arch::X86_64 => Threads::Single,
        Arch::Aarch64 | Arch::Riscv64 => Threads::Multi,
    };
    Machine { platform, shape: Shape::new(cpus, 0, nodes).expect("the plan is sound"), threads }
}

fn tiered() -> Machine {
    let (platform, shape, memory_only) = TIERED;
    let machine = machine((platform, shape));
    let shape = machine.shape.with_memory_only(memory_only).expect("the plan is sound");
    Machine { shape, ..machine }
}

impl Machine {
    /// Returns `true` if the machine has a trait that a program requires.
    pub fn is(&self, wanted: &str) -> bool {
        let aborts = pins::of(self.platform).is_ok_and(|pin| pin.aborts);
        match wanted {
            "aborts" => aborts,
            "no-aborts" => !aborts,
            "memory-only" => self.shape.has_memory_only(),
            "arm64" | "amd64" | "riscv64" => self.platform.arch.debian() == wanted,
            threads => self.threads.name() == threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(wish: Wish<'_>) -> Vec<String> {
        let name = |m: &Machine| format!("{} {} {}", m.platform, m.shape, m.threads.name());
        plan(wish).iter().map(name).collect()
    }

    #[test]
    fn the_quick_plan_has_four_machines_two_of_arm_and_one_of_them_bad() {
        let machines = plan(Wish::default());
        assert_eq!(machines.len(), 4);
        let arm: Vec<_> = machines.iter().filter(|machine| machine.is("arm64")).collect();
        assert_eq!(arm.len(), 2);
        assert_eq!(arm.iter().filter(|machine| machine.is("no-aborts")).count(), 1);
        assert!(arm.iter().all(|machine| machine.is("multi")));
    }

    #[test]
    fn the_long_plan_has_every_kernel() {
        let machines = plan(Wish { long: true, ..Wish::default() });
        for pin in pins::all() {
            assert!(machines.iter().any(|machine| machine.platform == pin.platform));
        }
        assert!(named(Wish { long: true, ..Wish::default() }).contains(&"6.12 64/8 single".into()));
    }

    #[test]
    fn the_long_plan_has_a_machine_with_memory_without_cpus() {
        let machines = plan(Wish { long: true, ..Wish::default() });
        let tiered: Vec<_> = machines.iter().filter(|machine| machine.is("memory-only")).collect();
        assert_eq!(tiered.len(), 1);
        assert_eq!(tiered[0].shape.to_string(), "4/2+1");
    }

    #[test]
    fn kernels_shapes_and_threads_select() {
        let kernels = ["6.1", "7.3-arm64"].map(|name| name.parse().expect("a kernel"));
        let shapes = ["4/2", "2/1"].map(|shape| shape.parse().expect("a shape"));
        let wish = Wish { kernels: &kernels, ..Wish::default() };
        assert_eq!(named(wish), ["6.1 8/2 single", "6.1 16/4 single", "7.3-arm64 4/2 multi"]);
        let wish = Wish { shapes: &shapes, threads: Some(Threads::Multi), ..wish };
        let expected =
            ["6.1 4/2 multi", "6.1 2/1 multi", "7.3-arm64 4/2 multi", "7.3-arm64 2/1 multi"];
        assert_eq!(named(wish), expected);
        let wish = Wish { shapes: &shapes[..1], ..Wish::default() };
        assert_eq!(named(wish).len(), 4);
    }
}
