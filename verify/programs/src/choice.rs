//! The source that is chosen is the one this kernel deserves.

use percid::Source;
use percid::machine::{self, Registration};

use crate::Verdict;
use crate::options::Options;

pub(crate) fn run(_: &Options) -> Verdict {
    let machine = machine::read();
    let release = release(&machine.kernel_release).ok_or("a kernel release that cannot be read")?;
    let registered = matches!(machine.rseq.registration, Registration::Libc | Registration::Own);
    let (kernel, table) = (Source::Kernel.available(), Source::Table.available());
    let expected = match release {
        _ if !registered => Source::Atomic,
        (6, 14..=18) => Source::Kernel,
        (5, ..10) | (..5, _) => Source::Atomic,
        _ => Source::Table,
    };
    // Read off the kernel's history, not from what the library found out: 6.3 brought the IDs.
    let has_ids = release >= (6, 3);
    let choice = percid::init();
    let figures = format!(
        "kernel={} chosen={} reason={:?} kernel_ids={} table={}",
        machine.kernel_release,
        choice.source,
        choice.reason.to_string(),
        kernel.is_ok(),
        table.is_ok(),
    );
    let right = choice.source == expected && (!registered || kernel.is_ok() == has_ids);
    if right { Ok(figures) } else { Err(format!("{figures}: expected {expected}")) }
}

fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
