//! The declarations of the C headers.

use std::collections::{BTreeMap, BTreeSet};

/// The names of the C interface.
#[derive(Debug, Default, Clone)]
pub(super) struct Header {
    pub(super) functions: BTreeSet<String>,
    /// Inline functions, which can be called too.
    inline: BTreeSet<String>,
    /// Types, and the members of those that are no handles.
    pub(super) types: BTreeMap<String, BTreeSet<String>>,
    /// Enumerators and macros.
    pub(super) constants: BTreeSet<String>,
}

impl Header {
    /// Reads the header, and the one that it includes. Other definitions of the latter are
    /// internal.
    pub(super) fn read(text: &str, inline: &str) -> Header {
        let mut header = Header::of(text);
        header.inline = Header::of(inline).functions;
        header
    }

    fn of(text: &str) -> Header {
        let mut header = Header::default();
        let code = without_comments(text);
        header.read_macros(&code);
        header.read_code(&words(&without_directives(&code)));
        header
    }

    /// Returns `true` if something has this name: `percid_f` or `percid_t.member`.
    pub(super) fn has(&self, name: &str) -> bool {
        match name.split_once('.') {
            Some((of, member)) => self.types.get(of).is_some_and(|known| known.contains(member)),
            None => {
                let of = |names: &BTreeSet<String>| names.contains(name);
                let called = of(&self.functions) || of(&self.inline);
                called || of(&self.constants) || self.types.contains_key(name)
            }
        }
    }

    fn read_macros(&mut self, code: &str) {
        let defined = code.lines().filter_map(|line| line.trim().strip_prefix("#define "));
        let name = |line: &str| line.split(|c: char| !is_of_name(c)).next().map(str::to_owned);
        self.constants.extend(defined.filter_map(name).filter(|name| name.starts_with("PERCID_")));
    }

    fn read_code(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).map_or("", |before| &words[before]);
            let after = words.get(at + 1).map_or("", String::as_str);
            if word.starts_with("PERCID_") {
                self.constants.insert(word.clone());
            }
            if !word.starts_with("percid_") {
                continue;
            }
            match (before, after) {
                ("struct" | "enum", _) => {
                    let members = self.types.entry(word.clone()).or_default();
                    if before == "struct" && after == "{" {
                        members.extend(members_of(&words[at + 2..]));
                    }
                }
                (_, "(") => _ = self.functions.insert(word.clone()),
                _ => {}
            }
        }
    }
}

/// Returns the names before a `;`, a `[` or a `,` up to the closing brace.
fn members_of(words: &[String]) -> impl Iterator<Item = String> + '_ {
    let mut depth = 1;
    let inside = words.iter().take_while(move |word| {
        depth += i32::from(*word == "{") - i32::from(*word == "}");
        depth > 0
    });
    let inside: Vec<_> = inside.collect();
    let ends = |at: &usize| matches!(inside[at + 1].as_str(), ";" | "[" | ",");
    let last = inside.len().saturating_sub(1);
    let members: Vec<_> = (0..last).filter(ends).map(|at| inside[at].clone()).collect();
    members.into_iter().filter(|name| name.chars().all(is_of_name))
}

pub(super) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits code into names, and all other characters one by one.
pub(super) fn words(code: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut in_name = false;
    for c in code.chars() {
        match words.last_mut() {
            Some(word) if in_name && is_of_name(c) => word.push(c),
            _ if !c.is_whitespace() => words.push(c.to_string()),
            _ => {}
        }
        in_name = is_of_name(c);
    }
    words
}

pub(super) fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    loop {
        let (block, line) = (rest.find("/*"), rest.find("//"));
        let Some(start) = [block, line].into_iter().flatten().min() else { return code + rest };
        code += &rest[..start];
        let end = if Some(start) == block { "*/" } else { "\n" };
        rest = rest[start..].find(end).map_or("", |length| &rest[start + length..]);
        rest = rest.strip_prefix("*/").unwrap_or(rest);
    }
}

/// Removes directives.
pub(super) fn without_directives(code: &str) -> String {
    let mut kept = String::new();
    let mut continued = false;
    for line in code.lines() {
        let is_directive = continued || line.trim_start().starts_with('#');
        continued = is_directive && line.ends_with('\\');
        if !is_directive {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
