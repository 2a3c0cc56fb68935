//! The preparations and queries of the first process.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::ptr;

use percid_race_guest::Line;

/// The functions that have the two compare-exchanges, and the end of what lies between them.
const WANTED: [&str; 3] =
    ["sched_mm_cid_migrate_to", "sched_mm_cid_remote_clear", "__rcu_read_unlock"];

pub(crate) fn mount_all() {
    for (kind, place) in [(c"proc", "/proc"), (c"sysfs", "/sys"), (c"debugfs", "/sys/kernel/debug")]
    {
        // In sysfs the directory exists already. If a file system cannot be mounted, its values
        // appear as `unknown` or as missing symbols.
        let _ = fs::create_dir_all(place);
        let _ = mount(kind, place);
    }
}

fn mount(kind: &CStr, place: &str) -> io::Result<()> {
    let target = CString::new(place)?;
    // SAFETY: all strings end with a zero and live through the call; these file systems take no
    // data.
    let result =
        unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, ptr::null()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets real-time threads run. If they are busy for a second they are throttled, or, from 6.12 on,
/// ordinary threads are served in spite of them; their CPU would switch. Returns a note for each
/// setting that could not be made.
pub(crate) fn let_real_time_run() -> Vec<String> {
    let mut settings = vec![("/proc/sys/kernel/sched_rt_runtime_us".to_owned(), "-1")];
    for server in
        fs::read_dir("/sys/kernel/debug/sched/fair_server").into_iter().flatten().flatten()
    {
        settings.push((format!("{}/runtime", server.path().display()), "0"));
    }
    let failed = settings.into_iter().filter_map(|(path, value)| {
        let error = fs::write(&path, value).err()?;
        Some(format!("cannot write {value} to {path}: {error}"))
    });
    failed.collect()
}

/// Undoes the first process's pinning, for its children.
pub(crate) fn allow_all_cpus() -> io::Result<()> {
    // SAFETY: plain data, all ones, readable for its size.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        ptr::write_bytes(&mut set, 0xff, 1);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(crate) fn boot() -> Line {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let modes = fs::read_to_string("/sys/kernel/debug/sched/preempt").unwrap_or_default();
    Line::Boot { release: release.trim().to_owned(), preemption: chosen(&modes).to_owned() }
}

/// Returns the mode in parentheses.
fn chosen(modes: &str) -> &str {
    let mode = modes.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    mode.map_or("unknown", |(mode, _)| mode)
}

/// Returns the addresses of the wanted functions. Compilers may have made clones of them, with
/// names like `NAME.isra.0`.
pub(crate) fn symbols() -> Vec<Line> {
    let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    find(&text)
}

fn find(kallsyms: &str) -> Vec<Line> {
    let mut functions: Vec<(u64, &str)> = kallsyms.lines().filter_map(function).collect();
    functions.sort_by_key(|(start, _)| *start);
    let is_wanted = |name: &str| WANTED.contains(&name.split('.').next().unwrap_or(name));
    let found = functions.iter().filter(|(_, name)| is_wanted(name));
    found
        .map(|&(start, name)| {
            let after = functions.iter().map(|(next, _)| *next).find(|next| *next > start);
            Line::Symbol { name: name.to_owned(), start, end: after.unwrap_or(start) }
        })
        .collect()
}

/// Address and name, if the line is of a function of the kernel itself.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_text = matches!(words.next()?, "t" | "T");
    let name = words.next()?;
    let of_a_module = words.next().is_some();
    (is_text && !of_a_module).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_end_where_the_next_symbol_begins() {
        let text = "0000000000000300 t next\n0000000000000100 T __rcu_read_unlock\n\
                    0000000000000180 T __pfx_sched_mm_cid_remote_clear\n\
                    0000000000000200 t sched_mm_cid_remote_clear.isra.0\n\
                    0000000000000210 d sched_mm_cid_remote_clear\n\
                    0000000000000220 t sched_mm_cid_migrate_to\t[module]\n";
        let expected = [
            Line::Symbol { name: "__rcu_read_unlock".into(), start: 0x100, end: 0x180 },
            Line::Symbol {
                name: "sched_mm_cid_remote_clear.isra.0".into(),
                start: 0x200,
                end: 0x300,
            },
        ];
        assert_eq!(find(text), expected);
    }

    #[test]
    fn the_mode_of_preemption_is_the_one_in_parentheses() {
        assert_eq!(chosen("none voluntary full (lazy)\n"), "lazy");
        assert_eq!(chosen(""), "unknown");
    }
}
