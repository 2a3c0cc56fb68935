//! The CPUs of the machine, those that a thread may use, and those that are unplugged.

use std::fs;

use percid_trace::event::Cpu;

const FOLDER: &str = "/sys/devices/system/cpu";

/// Returns the CPUs of a class: `online`, `possible`.
pub(crate) fn of_class(class: &str) -> Result<Vec<Cpu>, String> {
    let path = format!("{FOLDER}/{class}");
    let list = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let ranges = percid_sim::cpu_list::parse(&list);
    Ok(ranges.ok_or(format!("{path}: {list:?} is no list"))?.into_iter().flatten().collect())
}

/// Restricts the calling thread to some CPUs.
pub(crate) fn restrict(cpus: &[Cpu]) -> Result<(), String> {
    // SAFETY: all zero is an empty set, and the calls stay within it.
    let refused = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|&cpu| libc::CPU_SET(cpu as usize, &mut set));
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set) != 0
    };
    if refused {
        return Err(format!("CPUs {cpus:?}: {}", std::io::Error::last_os_error()));
    }
    Ok(())
}

/// Returns the CPU that runs the calling thread.
pub(crate) fn current() -> Cpu {
    // SAFETY: the call takes nothing.
    unsafe { libc::sched_getcpu() as Cpu }
}

/// A CPU that is unplugged as long as this value lives.
#[derive(Debug)]
pub(crate) struct Unplugged(Cpu);

impl Unplugged {
    pub(crate) fn new(cpu: Cpu) -> Result<Unplugged, String> {
        plug(cpu, "0")?;
        Ok(Unplugged(cpu))
    }
}

impl Drop for Unplugged {
    fn drop(&mut self) {
        if let Err(error) = plug(self.0, "1") {
            eprintln!("{error}");
        }
    }
}

fn plug(cpu: Cpu, state: &str) -> Result<(), String> {
    let path = format!("{FOLDER}/cpu{cpu}/online");
    fs::write(&path, state).map_err(|error| format!("{path}: {error}"))
}
