//! Lines of several buffers: `trace-cmd report` writes the name of the instance in front of each, and
//! blanks in front of those of the whole system.
//!
//! For several files (`-i host.dat -i guest.dat`), it writes the name of the file in place of the
//! blanks, and then both look alike. Only the buffers of one file form one schedule. The line with
//! the number of CPUs, with which each file begins, distinguishes the two: `cpus=2` and
//! `host.dat: cpus=2`.

use super::fields::number;
use super::head::Head;
use crate::error::Error;

/// Number of bytes at the beginning of a text that are examined.
const BEGINNING: usize = 1 << 20;

/// Returns the width of the names of instances, with the colon and the blank after them; 0 if there
/// are none.
pub(super) fn width(text: &[u8]) -> usize {
    let beginning = &text[..text.len().min(BEGINNING)];
    beginning.split(|&byte| byte == b'\n').find_map(width_in).unwrap_or(0)
}

/// Refuses the text of several files.
pub(super) fn check(text: &[u8], width: usize) -> Result<(), Error> {
    let beginning = &text[..text.len().min(BEGINNING)];
    let (mut files, mut names) = (Names::default(), Names::default());
    let mut is_one = false;
    for (line, nr) in beginning.split(|&byte| byte == b'\n').zip(1..) {
        if let Some(name) = before_cpus(line.strip_suffix(b"\r").unwrap_or(line)) {
            is_one |= name.is_empty();
            files.add(nr, name);
        } else if width > 0 && line.get(width..).is_some_and(|line| Head::read(line).is_some()) {
            let (name, _) = split(line, width);
            is_one |= name.is_empty();
            names.add(nr, name.strip_suffix(b":").unwrap_or(name));
        }
    }
    if let Some((line, files)) = files.told() {
        let what = format!(
            "this is what trace-cmd report writes of several files at once ({files}): expected was the text of \
             one recording, so let it write each file by itself"
        );
        return Err(Error::at_line(line, what));
    }
    match names.told() {
        Some((line, told)) if !is_one && names.0.len() > 1 => {
            let what = format!(
                "lines begin with names ({told}), and no line `cpus=NUMBER` says whether these are buffers of one \
                 recording or several files: expected was the whole text of one recording"
            );
            Err(Error::at_line(line, what))
        }
        _ => Ok(()),
    }
}

/// Returns the text before the number of CPUs, if the line contains that: nothing, or a name.
fn before_cpus(line: &[u8]) -> Option<&[u8]> {
    let at = line.windows(5).rposition(|word| word == b"cpus=")?;
    number(&line[at + 5..])?;
    match &line[..at] {
        [] => Some(b""),
        name => name.trim_ascii_end().strip_suffix(b":").filter(|name| !name.is_empty()),
    }
}

/// Different names, with the first line of each.
#[derive(Default)]
struct Names<'a>(Vec<(u64, &'a [u8])>);

/// Maximum number of names in the error.
const TOLD: usize = 4;

impl<'a> Names<'a> {
    fn add(&mut self, line: u64, name: &'a [u8]) {
        let is_new = self.0.iter().all(|&(_, known)| known != name);
        if is_new && !name.is_empty() && self.0.len() <= TOLD {
            self.0.push((line, name));
        }
    }

    /// The first line, and the names.
    fn told(&self) -> Option<(u64, String)> {
        let &(first, _) = self.0.first()?;
        let names = self.0.iter().take(TOLD).map(|(_, name)| String::from_utf8_lossy(name));
        let more = if self.0.len() > TOLD { ", ..." } else { "" };
        Some((first, names.collect::<Vec<_>>().join(", ") + more))
    }
}

/// Returns the width by one line, if that is one of an instance.
fn width_in(line: &[u8]) -> Option<usize> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    // Most lines have the colon after their time.
    if line[..colon].contains(&b'[') || line.get(colon + 1) != Some(&b' ') {
        return None;
    }
    let width = colon + 2;
    (Head::read(line).is_none() && Head::read(&line[width..]).is_some()).then_some(width)
}

/// The name in front of a line, without blanks, and the line.
pub(super) fn split(line: &[u8], width: usize) -> (&[u8], &[u8]) {
    match line.split_at_checked(width) {
        Some((name, line)) if name.ends_with(b" ") => (name.trim_ascii(), line),
        _ => (b"", line),
    }
}
