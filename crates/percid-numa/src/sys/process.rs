//! The threads of this process.

pub(crate) use std::process::id;

use super::file;

/// Returns the calling thread's number, unique among the machine's threads until it ends.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Returns the numbers of all threads of the process; empty without `/proc`. Allocates: not
/// async-signal-safe.
pub(crate) fn thread_ids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the CPU that runs a thread of this process, or ran it last; `None` without `/proc`, or
/// if there is no such thread. Three system calls, no allocation.
pub(crate) fn last_cpu(thread: u32) -> Option<u32> {
    // The fields up to that one are numbers but for the name, which has 15 bytes or, of a kernel's
    // thread, 63.
    let mut text = [0u8; 1024];
    cpu_in_stat(file::read_start(format_args!("/proc/self/task/{thread}/stat"), &mut text)?)
}

/// The field `processor` (the thirty-ninth). The second field is the program's name in parentheses
/// and may hold anything, even spaces and parentheses: fields are counted from the last closing
/// one.
fn cpu_in_stat(text: &[u8]) -> Option<u32> {
    let name_ends = text.iter().rposition(|&byte| byte == b')')?;
    // Behind the name's end comes a space, then the third field.
    let field = text[name_ends + 1..].split(|&byte| byte == b' ').nth(39 - 2)?;
    std::str::from_utf8(field).ok()?.trim_ascii_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cpu_of_a_thread() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("12 (a) name (b) {}\n", fields.join(" "));
        assert_eq!(cpu_in_stat(stat.as_bytes()), Some(39));
        assert_eq!(cpu_in_stat(b"12 (name) S 1 2"), None);
        // Beyond the largest number that Linux gives to a thread, 2^22.
        assert_eq!(last_cpu(1 << 23), None);
        let allowed = percid::machine::read().allowed;
        assert!(allowed.contains(last_cpu(thread_id()).expect("this thread")));
    }
}
