//! The source that is chosen is the one this kernel deserves.

use std::time::Duration;

use percid::Source;
use percid::machine::{self, Registration};

use crate::length::becomes;
use crate::options::Options;
use crate::verdict::Verdict;

pub(crate) fn run(_: &Options) -> Verdict {
    let machine = machine::read();
    let release = release(&machine.kernel_release).ok_or("a kernel release that cannot be read")?;
    let registration = machine.rseq.registration;
    let alone = matches!(registration, Registration::Libc | Registration::Percid);
    let registered = alone || registration == Registration::Shared;
    let (kernel, table) = (Source::Kernel.prepare(), Source::Table.prepare());
    let expected = match release {
        _ if !registered || release < (5, 10) => Source::Atomic,
        _ if aborts()? => Source::Table,
        _ => Source::Atomic,
    };
    // From the kernel's history, independent of the library's result: 6.3 introduced the IDs. In an
    // area that other libraries use, they cannot be distinguished from none.
    let has_ids = release >= (6, 3) && alone;
    let choice = percid::init();
    let figures = format!(
        "kernel={} chosen={} reason={:?} kernel_ids={} table={}",
        machine.kernel_release,
        choice.source,
        choice.reason.to_string(),
        kernel.is_ok(),
        table.is_ok(),
    );
    let usable = expected == Source::Table;
    let right = choice.source == expected && kernel.is_ok() == (has_ids && usable);
    if right { Ok(figures) } else { Err(format!("{figures}: expected {expected}")) }
}

/// Returns `true` if this kernel aborts critical sections, after a long probe: only 64-bit Arm ever
/// had kernels that do not. If other processes use the CPU, several probes may be necessary.
fn aborts() -> Result<bool, String> {
    let mut said = Err("no answer".to_owned());
    becomes(|| {
        said = match machine::probe(Duration::from_millis(200)) {
            Err(why) => Err(why.to_string()),
            Ok(probe) if probe.confirms_aborts() => Ok(true),
            Ok(probe) if probe.detected_ignored() && cfg!(target_arch = "aarch64") => Ok(false),
            Ok(probe) => Err(format!("{probe:?}")),
        };
        said.is_ok()
    });
    said
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
