//! Machine models from the output of other programs.

mod fault;
mod hwloc;
mod imported;
mod lscpu;
#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use imported::Imported;

/// Maximum number of simulated CPUs.
const MOST_CPUS: usize = 8192;

/// Reads the output of `lscpu -p`, `lscpu --json --extended` or hwloc's `lstopo --of xml`. The
/// format is detected from its beginning.
///
/// # Errors
///
/// Returns the line of the fault, if there is one, and the expected text.
pub fn read(text: &str) -> Result<Imported, Fault> {
    let imported = match text.trim_start().as_bytes().first() {
        Some(b'<') => hwloc::read(text),
        Some(b'{') => lscpu::read_json(text),
        Some(b'#' | b'0'..=b'9') => lscpu::read_table(text),
        _ => Err(Fault::of_all(
            "expected the output of `lscpu -p`, `lscpu --json --extended` or `lstopo --of xml`",
        )),
    }?;
    match imported.topology.cpus() as usize {
        0 => Err(Fault::of_all("expected CPUs with their cores, found none")),
        1..=MOST_CPUS => Ok(imported),
        cpus => Err(Fault::of_all(format!("expected at most {MOST_CPUS} CPUs, found {cpus}"))),
    }
}
