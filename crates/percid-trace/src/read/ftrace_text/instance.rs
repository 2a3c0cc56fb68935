//! Lines of several buffers: `trace-cmd report` writes the name of the instance in front of each, and
//! blanks in front of those of the whole system.

use super::head::Head;

/// How much of a text is looked at.
const BEGINNING: usize = 1 << 20;

/// How wide the names of instances are, with the colon and the blank behind them; 0 if there are none.
pub(super) fn width(text: &[u8]) -> usize {
    let beginning = &text[..text.len().min(BEGINNING)];
    beginning.split(|&byte| byte == b'\n').find_map(width_in).unwrap_or(0)
}

/// The same by one line, if that is one of an instance.
fn width_in(line: &[u8]) -> Option<usize> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    // Most lines have the colon behind their time.
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
