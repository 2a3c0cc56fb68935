//! One boot from beginning to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::{Cache, Scratch};
use crate::clock;
use crate::error::{Error, Result};
use crate::guest::{self, Source};
use crate::initramfs::Archive;
use crate::kernel::Kernel;
use crate::machine::{self, Logs};
use crate::platform::Arch;
use crate::protocol::{JOBS_PATH, Job, PROGRAMS_PATH, write_jobs};
use crate::qemu::{NODE_MIB, Spec, Threads};
use crate::shape::Shape;
use crate::verdict::{Expectation, ProgramResult, Verdict};

/// All that boots have in common.
#[derive(Debug, Clone)]
pub struct Harness {
    arch: Arch,
    init: Vec<u8>,
    programs: Vec<u8>,
    /// Path in the machine and contents.
    companions: Vec<(String, Vec<u8>)>,
    tsc_khz: Option<u64>,
    threads: Threads,
    keep_logs: Option<PathBuf>,
}

/// One boot.
#[derive(Debug, Clone)]
pub struct Boot {
    /// The kernel that was booted.
    pub kernel: Kernel,
    /// CPUs and nodes.
    pub shape: Shape,
    /// The kind of emulation of the CPUs.
    pub threads: Threads,
    /// The jobs that it had to run.
    pub jobs: Vec<Job>,
    /// The duration of the machine by the host's clock.
    pub wall: Duration,
    /// The verdict.
    pub verdict: Verdict,
}

impl Boot {
    /// Returns its jobs that failed or have no result; all of them if only the machine was faulty.
    pub fn jobs_to_repeat(&self) -> Vec<Job> {
        let results = &self.verdict.results;
        let failed = |index: usize| results.get(index).is_none_or(ProgramResult::failed);
        let numbered = (0..).zip(&self.jobs).filter(|(index, _)| failed(*index));
        let repeat: Vec<Job> = numbered.map(|(_, job)| job.clone()).collect();
        if repeat.is_empty() { self.jobs.clone() } else { repeat }
    }
}

impl Harness {
    /// Makes a harness that runs the programs in the static binary `programs`.
    pub fn new(cache: &Cache, programs: &Path) -> Result<Self> {
        let arch = guest::demand_static(programs)?;
        arch.emulator().demand()?;
        let init = Source::init().build(cache, arch)?;
        Ok(Self {
            arch,
            init: read(&init)?,
            programs: read(programs)?,
            companions: Vec::new(),
            tsc_khz: clock::tsc_khz(),
            threads: Threads::Single,
            keep_logs: None,
        })
    }

    /// Sets the kind of emulation of the CPUs.
    #[must_use]
    pub fn threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Puts a further static binary into the machines, below `/percid` under its own name.
    pub fn with(mut self, binary: &Path) -> Result<Self> {
        let expected = "a binary for the machines' architecture";
        let name = binary.file_name().unwrap_or_default().to_string_lossy();
        if guest::demand_static(binary)? != self.arch {
            return Err(Error::BadImage { path: binary.to_path_buf(), expected });
        }
        self.companions.push((format!("/percid/{name}"), read(binary)?));
        Ok(self)
    }

    /// Keeps every machine's logs in `dir`.
    #[must_use]
    pub fn keep_logs(mut self, dir: &Path) -> Self {
        self.keep_logs = Some(dir.to_path_buf());
        self
    }

    /// Boots a machine, runs `jobs` in it and judges what comes back. `limit`
    /// replaces [`boot_limit`].
    pub fn boot(
        &self,
        kernel: &Kernel,
        shape: Shape,
        jobs: &[Job],
        limit: Option<Duration>,
    ) -> Result<Boot> {
        let scratch = Scratch::new()?;
        let dir = scratch.path();
        let initramfs = dir.join("init.cpio");
        fs::write(&initramfs, self.initramfs(jobs)).map_err(Error::file("write", &initramfs))?;
        let logs = [CONSOLE, REPORT, EMULATOR].map(|name| dir.join(name));
        assert_eq!(
            kernel.platform.arch, self.arch,
            "the programs are for the kernel's architecture"
        );
        let spec = Spec {
            arch: self.arch,
            threads: self.threads,
            shape,
            node_mib: NODE_MIB,
            kernel: kernel.image.clone(),
            initramfs,
            console: logs[0].clone(),
            report: logs[1].clone(),
            tsc_khz: self.tsc_khz,
        };
        let logs = Logs { console: &logs[0], report: &logs[1], emulator: &logs[2] };
        let limit = limit.unwrap_or_else(|| boot_limit(shape, jobs));
        let remains = machine::run(spec.command(), logs, limit)?;
        self.save(kernel, shape, logs)?;
        let expected = Expectation { platform: kernel.platform, shape, jobs };
        Ok(Boot {
            kernel: kernel.clone(),
            shape,
            threads: self.threads,
            jobs: jobs.to_vec(),
            wall: remains.wall,
            verdict: Verdict::on(&remains, expected),
        })
    }

    fn initramfs(&self, jobs: &[Job]) -> Vec<u8> {
        let mut archive = Archive::new();
        for directory in ["/dev", "/percid", "/proc", "/run", "/sys", "/tmp"] {
            archive.directory(directory);
        }
        archive
            .device("/dev/console", 5, 1)
            .executable("/init", &self.init)
            .executable(PROGRAMS_PATH, &self.programs)
            .file(JOBS_PATH, write_jobs(jobs).as_bytes());
        for (path, contents) in &self.companions {
            archive.executable(path, contents);
        }
        archive.finish()
    }

    fn save(&self, kernel: &Kernel, shape: Shape, logs: Logs<'_>) -> Result<()> {
        let Some(dir) = &self.keep_logs else {
            return Ok(());
        };
        fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
        for log in [logs.console, logs.report, logs.emulator] {
            let name = log.file_name().unwrap_or_default().to_string_lossy();
            let shape = shape.to_string().replace('/', "-");
            let target = dir.join(format!("{}-{shape}.{name}", kernel.platform));
            // A machine that failed early has not written all of them.
            let bytes = fs::read(log).unwrap_or_default();
            fs::write(&target, bytes).map_err(Error::file("write", &target))?;
        }
        Ok(())
    }
}

/// Names of the logs.
const CONSOLE: &str = "console.log";
const REPORT: &str = "report.log";
const EMULATOR: &str = "qemu.log";

/// Returns the time limit of a boot: many times the time that it takes on an idle host, and the
/// limits of its programs. It is for machines that hang, not for slow ones.
pub fn boot_limit(shape: Shape, jobs: &[Job]) -> Duration {
    let boot = Duration::from_secs(60 + u64::from(shape.possible()));
    boot + jobs.iter().map(Job::limit).sum::<Duration>()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(Error::file("read", path))
}
