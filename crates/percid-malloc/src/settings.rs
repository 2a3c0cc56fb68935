//! Environment variables: the limit, and figures at the end of the program.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use crate::CACHES;

const LIMIT: &str = "PERCID_MALLOC_LIMIT";
const STATISTICS: &str = "PERCID_MALLOC_STATISTICS";

/// Standard error as it was at the start, if figures are asked for: many programs close it at their
/// end.
static TO: OnceLock<File> = OnceLock::new();

extern "C" fn at_start() {
    if env::var_os(STATISTICS).is_some_and(|value| !value.is_empty()) {
        if let Ok(same) = io::stderr().as_fd().try_clone_to_owned() {
            let _ = TO.set(File::from(same));
        }
    }
    let Some(text) = env::var_os(LIMIT) else { return };
    match text.to_str().and_then(bytes) {
        Some(limit) => CACHES.set_limit(limit),
        None => {
            let _ = writeln!(
                io::stderr(),
                "{LIMIT}={}: expected a number of bytes, as in 8388608, 8192K, 8M or 1G; it stays {}M",
                text.to_string_lossy(),
                CACHES.limit() >> 20
            );
        }
    }
}

extern "C" fn at_end() {
    let twice = if cfg!(feature = "checked") { CACHES.statistics().freed_twice } else { 0 };
    if twice > 0 {
        let _ = writeln!(io::stderr(), "percid-malloc: {twice} blocks were freed twice");
    }
    if let Some(mut to) = TO.get() {
        // There is nobody to tell if it fails.
        let _ = write_statistics(&mut to);
    }
}

fn write_statistics(to: &mut impl Write) -> io::Result<()> {
    let statistics = CACHES.statistics();
    writeln!(to, "percid-malloc: {} bytes are cached", statistics.cached_bytes())?;
    let heads = ["size", "obtained", "returned", "cached"];
    writeln!(to, "{:>10} {:>12} {:>12} {:>12}", heads[0], heads[1], heads[2], heads[3])?;
    for class in statistics.classes.iter().filter(|class| class.obtained > 0) {
        let (obtained, returned) = (class.obtained, class.returned);
        writeln!(to, "{:>10} {obtained:>12} {returned:>12} {:>12}", class.size, class.cached)?;
    }
    Ok(())
}

/// Returns the number of bytes that a text says.
fn bytes(text: &str) -> Option<usize> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_numbers_with_or_without_a_unit() {
        let right = [("0", 0), ("4096", 4096), ("8K", 8 << 10), ("3m", 3 << 20), ("1G", 1 << 30)];
        for (text, expected) in right {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for wrong in ["", "M", "-1", "1.5M", "8 M", "8T", "99999999999999999999"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        let too_much = "18446744073709551615K";
        assert_eq!(bytes(too_much), None);
    }
}
