//! The emulator's command line for a machine.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::platform::Arch;
use crate::protocol::EXIT_PORT;
use crate::shape::Shape;

/// The timer frequency the kernels were built for; `lpj` counts per tick.
const TICKS_PER_SECOND: u64 = 250;

/// Default memory of each node in MiB.
pub const NODE_MIB: u32 = 256;

/// The kind of emulation of the CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One thread, for one CPU at a time: deterministic enough for large machines. It changes CPUs
    /// between blocks of instructions only, so races are rare.
    Single,
    /// A thread for each CPU: they really run at the same time. Guests of x86-64 panic sometimes.
    Multi,
}

impl Threads {
    /// Returns the name, as in `--threads`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Multi => "multi",
        }
    }
}

/// The description of a machine for QEMU.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The architecture.
    pub arch: Arch,
    /// The kind of emulation of the CPUs.
    pub threads: Threads,
    /// CPUs and nodes.
    pub shape: Shape,
    /// Memory of each node in MiB.
    pub node_mib: u32,
    /// The kernel image.
    pub kernel: PathBuf,
    /// The root file system.
    pub initramfs: PathBuf,
    /// The output of the first serial port, the kernel's console.
    pub console: PathBuf,
    /// The output of the second serial port, the guest's report.
    pub report: PathBuf,
    /// The speed of the host's time-stamp counter.
    pub tsc_khz: Option<u64>,
}

impl Spec {
    /// Returns the command that runs the machine until it ends itself.
    pub fn command(&self) -> Command {
        let mut command = self.arch.emulator().command();
        let accelerator = format!("tcg,thread={},tb-size=512", self.threads.name());
        command
            .args(self.board())
            .args(["-accel", &accelerator, "-nodefaults", "-no-user-config"])
            .args(["-display", "none", "-no-reboot"])
            .arg("-serial")
            .arg(file_port(&self.console))
            .args(self.report_port())
            .args(["-m", &(self.node_mib * self.shape.nodes()).to_string()])
            .args(["-smp", &self.smp()])
            .args(self.numa())
            .arg("-kernel")
            .arg(&self.kernel)
            .arg("-initrd")
            .arg(&self.initramfs)
            .args(["-append", &self.kernel_arguments()]);
        command
    }

    fn board(&self) -> [&str; 4] {
        match self.arch {
            // `max` has every feature that emulation offers. With cmpxchg16b kernels (6.12.107)
            // sometimes panicked while they booted: a double fault, emulated.
            Arch::X86_64 => ["-M", "q35", "-cpu", "max,cx16=off"],
            // A server's processor with the instructions of LSE; an interrupt controller for more
            // than 8 CPUs.
            Arch::Aarch64 => ["-M", "virt,gic-version=3", "-cpu", "neoverse-n1"],
            Arch::Riscv64 => ["-M", "virt", "-cpu", "rv64"],
        }
    }

    /// Returns the arguments for the second serial port, and for the device that ends the machine.
    fn report_port(&self) -> Vec<String> {
        let report = file_port(&self.report);
        match self.arch {
            Arch::X86_64 => {
                let end = format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4");
                vec!["-serial".into(), report, "-device".into(), end]
            }
            Arch::Aarch64 | Arch::Riscv64 => {
                let report = report.replacen("file:", "file,id=report,path=", 1);
                vec![
                    "-chardev".into(),
                    report,
                    "-device".into(),
                    "pci-serial,chardev=report".into(),
                    "-semihosting-config".into(),
                    "enable=on,userspace=on,target=native".into(),
                ]
            }
        }
    }

    /// Returns the topology: one socket per node, as on most machines. With spare CPUs each has a
    /// socket of its own: a node's numbers are then not contiguous, and a socket must not span
    /// nodes.
    fn smp(&self) -> String {
        let (cpus, possible) = (self.shape.cpus(), self.shape.possible());
        let sockets = if possible > cpus { possible } else { self.shape.nodes_with_cpus() };
        format!("{possible},sockets={sockets},cores={},threads=1", possible / sockets)
    }

    fn numa(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let nodes = self.shape.nodes();
        for node in 0..nodes {
            let mib = self.node_mib;
            arguments.push("-object".into());
            arguments.push(format!("memory-backend-ram,id=m{node},size={mib}M"));
            arguments.push("-numa".into());
            arguments.push(self.numa_node(node));
        }
        // One direction suffices: QEMU takes the other for the same.
        for (from, to) in (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))) {
            let distance = self.shape.distance(from, to);
            arguments.push("-numa".into());
            arguments.push(format!("dist,src={from},dst={to},val={distance}"));
        }
        arguments
    }

    fn numa_node(&self, node: u32) -> String {
        let mut argument = format!("node,nodeid={node},memdev=m{node}");
        for (first, last) in self.shape.cpus_of(node) {
            let _ = write!(argument, ",cpus={first}-{last}");
        }
        argument
    }

    fn kernel_arguments(&self) -> String {
        // Whatever goes wrong ends the machine at once.
        let mut arguments = String::from(
            "quiet panic=-1 oops=panic mitigations=off cryptomgr.notests audit=0 \
             rcupdate.rcu_expedited=1 nowatchdog",
        );
        arguments += match self.arch {
            Arch::X86_64 => " console=ttyS0 tsc=reliable no_timer_check",
            Arch::Aarch64 => " console=ttyAMA0",
            Arch::Riscv64 => " console=ttyS0",
        };
        if self.shape.possible() > self.shape.cpus() {
            // All CPUs exist, and the kernel starts only these. CPUs that do not exist (QEMU's own
            // `maxcpus`) are not even counted as possible by 6.12 on a hypervisor that it does not
            // support.
            let _ = write!(arguments, " maxcpus={}", self.shape.cpus());
        }
        if let (Arch::X86_64, Some(khz)) = (self.arch, self.tsc_khz) {
            // Given, the loop calibration is skipped, once per CPU: half the
            // boot of 64 CPUs.
            let lpj = khz * 1000 / TICKS_PER_SECOND;
            let _ = write!(arguments, " lpj={lpj} tsc_early_khz={khz}");
        }
        arguments
    }
}

fn file_port(path: &std::path::Path) -> String {
    // QEMU takes a comma for the end of the name unless it is doubled.
    format!("file:{}", path.display().to_string().replace(',', ",,"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;

    fn spec(shape: &str) -> Spec {
        Spec {
            arch: Arch::X86_64,
            threads: Threads::Single,
            shape: shape.parse().expect("a good shape"),
            node_mib: NODE_MIB,
            kernel: "/k/vmlinux".into(),
            initramfs: "/k/init.cpio".into(),
            console: "/k/console".into(),
            report: "/k/report".into(),
            tsc_khz: Some(2_000_000),
        }
    }

    fn line(spec: &Spec) -> String {
        tool::words(&spec.command())
    }

    #[test]
    fn the_command_line_is_the_proven_one() {
        assert_eq!(
            line(&spec("4/2")),
            "qemu-system-x86_64 -M q35 -cpu max,cx16=off -accel tcg,thread=single,tb-size=512 -nodefaults \
             -no-user-config -display none -no-reboot -serial file:/k/console \
             -serial file:/k/report -device isa-debug-exit,iobase=0xf4,iosize=4 \
             -m 512 -smp 4,sockets=2,cores=2,threads=1 \
             -object memory-backend-ram,id=m0,size=256M -numa node,nodeid=0,memdev=m0,cpus=0-1 \
             -object memory-backend-ram,id=m1,size=256M -numa node,nodeid=1,memdev=m1,cpus=2-3 \
             -numa dist,src=0,dst=1,val=20 \
             -kernel /k/vmlinux -initrd /k/init.cpio -append quiet panic=-1 oops=panic \
             mitigations=off cryptomgr.notests audit=0 rcupdate.rcu_expedited=1 nowatchdog \
             console=ttyS0 tsc=reliable no_timer_check lpj=8000000 tsc_early_khz=2000000"
        );
    }

    #[test]
    fn arm_has_its_own_board_and_ports() {
        let arm = Spec { arch: Arch::Aarch64, threads: Threads::Multi, ..spec("4/2") };
        let line = line(&Spec { report: "/k/a,b".into(), ..arm });
        for part in [
            "qemu-system-aarch64 -M virt,gic-version=3 -cpu neoverse-n1 -accel tcg,thread=multi,",
            "-serial file:/k/console -chardev file,id=report,path=/k/a,,b -device pci-serial,",
            "nowatchdog console=ttyAMA0",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
        for part in ["isa-debug-exit", "ttyS", "lpj", "tsc"] {
            assert!(!line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn riscv_has_its_own_board_and_console() {
        let riscv = Spec { arch: Arch::Riscv64, threads: Threads::Multi, ..spec("4/1") };
        let line = line(&riscv);
        for part in [
            "qemu-system-riscv64 -M virt -cpu rv64 -accel tcg,thread=multi,",
            "-device pci-serial,chardev=report -semihosting-config enable=on,userspace=on,",
            "nowatchdog console=ttyS0",
        ] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    #[test]
    fn all_pairs_of_nodes_have_a_distance() {
        let line = line(&spec("64/8"));
        assert_eq!(line.matches("-numa dist").count(), 8 * 7 / 2);
        assert!(line.contains("dist,src=6,dst=7,val=20"));
        assert!(line.contains("dist,src=0,dst=7,val=30"));
    }

    #[test]
    fn one_node_needs_no_distance() {
        assert!(!line(&spec("2/1")).contains("dist"));
    }

    #[test]
    fn spare_cpus_are_possible_and_on_nodes() {
        let line = line(&spec("8+56/2"));
        assert!(line.contains("-smp 64,sockets=64,cores=1,threads=1"));
        assert!(line.contains("no_timer_check maxcpus=8 lpj"));
        assert!(line.contains("nodeid=1,memdev=m1,cpus=4-7,cpus=36-63"));
    }

    #[test]
    fn nodes_without_cpus_have_memory_and_no_socket() {
        let line = line(&spec("4/2+1"));
        assert!(line.contains("-m 768 -smp 4,sockets=2,cores=2,threads=1 "));
        assert!(line.contains("id=m2,size=256M -numa node,nodeid=2,memdev=m2 -numa dist"));
        assert!(line.contains("dist,src=0,dst=2,val=40"));
    }

    #[test]
    fn without_a_counter_the_guest_calibrates_itself() {
        let line = line(&Spec { tsc_khz: None, ..spec("4/2") });
        assert!(!line.contains("lpj") && !line.contains("tsc_early_khz"));
    }

    #[test]
    fn commas_in_file_names_are_doubled() {
        let line = line(&Spec { report: "/k/a,b".into(), ..spec("4/2") });
        assert!(line.contains("-serial file:/k/a,,b"));
    }
}
