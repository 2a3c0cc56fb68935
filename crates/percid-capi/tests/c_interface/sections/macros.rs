//! Reader of the macros in `crates/percid/src/critical`.
//!
//! They are written in a form that this module parses: a critical section is a list of strings, one
//! instruction each, followed by operands; `concat!` joins strings and variables.

use std::collections::BTreeMap;

/// The macro around all operations on words.
const OF_WORDS: &str = "word_section_of";

/// The macros of an architecture.
#[derive(Debug)]
pub(super) struct Macros {
    text: String,
}

/// A critical section's operation.
#[derive(Debug)]
pub(super) struct Operation {
    /// Its instructions.
    pub(super) lines: Vec<String>,
    /// The operands that are numbers, as expressions.
    pub(super) constants: BTreeMap<String, String>,
    /// The register that is zero if nothing was done, for a critical section with a result.
    pub(super) zero: Option<String>,
}

/// A part of the frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Index,
    Operation,
}

impl Macros {
    pub(super) fn of(source: &str) -> Macros {
        let lines = source.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code));
        Macros { text: lines.map(|line| format!("{line}\n")).collect() }
    }

    /// Returns the body of a macro.
    fn body(&self, name: &str) -> &str {
        let start = between(&self.text, &format!("macro_rules! {name} {{"), "");
        start.split("\n}\n").next().expect("an end")
    }

    /// Returns the code by which a source finds the index.
    pub(super) fn index(&self, source: &str, exit: &str) -> String {
        let arm =
            between(self.body("index"), &format!("({source}, $exit:literal) => {{"), "\n    }");
        expressions(arm, &[("$exit", exit)]).concat()
    }

    /// Returns an operation's own part of its critical section. That of an operation on words
    /// begins and ends as all of them do.
    pub(super) fn operation(&self, name: &str) -> Operation {
        let operation = self.part(self.body(name));
        if !self.body(name).contains(&format!("{OF_WORDS}!(")) {
            return operation;
        }
        let Operation { lines, mut constants, zero } = self.part(self.body(OF_WORDS));
        let (last, before) = lines.split_last().expect("the operation's own lines");
        assert_eq!(last, "", "they come last");
        constants.extend(operation.constants);
        Operation { lines: [before, &operation.lines].concat(), constants, zero }
    }

    fn part(&self, body: &str) -> Operation {
        let zero = body
            .split_once("or zero \"")
            .map(|(_, rest)| rest.split('"').next().expect("a register").to_owned());
        let (lines, operands) = between(body, "[\n", "").split_once(" ],\n").expect("operands");
        let constants = operands.lines().filter_map(|line| {
            let (name, value) = line.trim().split_once(" = const ")?;
            Some((name.to_owned(), value.trim_end_matches(',').to_owned()))
        });
        Operation { lines: expressions(lines, &[]), constants: constants.collect(), zero }
    }

    /// Returns the parts around every operation, given its pad and the text after it.
    pub(super) fn frame(&self, pad: &str, behind: &str) -> Vec<Part> {
        let parts = between(self.body("section"), "std::arch::asm!(", "");
        let parts = items(parts).into_iter().take_while(|part| !part.contains(" = "));
        let text = |part: &str| Part::Text(text_of(part, &[("$pad", pad), ("$behind", behind)]));
        let parts = parts.flat_map(|part| match part.strip_prefix("$($line,)*") {
            // No comma follows this.
            Some(next) => vec![Part::Operation, text(next)],
            None if part.starts_with("index!") => vec![Part::Index],
            None => vec![text(part)],
        });
        parts.collect()
    }

    /// Returns the exit, the pad and the text after it, of a critical section with a result or
    /// without.
    pub(super) fn ends(&self, zero: Option<&str>) -> [String; 3] {
        let arm = if zero.is_some() { "(or zero" } else { "(or false" };
        let call = between(between(self.body("section"), arm, ""), "@ $source,", "$($operands)*");
        let parts = items(call);
        let variables = [("$zero", zero.unwrap_or_default())];
        let text = |index: usize| text_of(parts[index], &variables);
        [text(0), text(2), text(3)]
    }
}

/// Returns the text between two texts; up to the end if the second is empty.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("no {begin}"));
    if end.is_empty() { rest } else { rest.split_once(end).unwrap_or_else(|| panic!("no {end}")).0 }
}

/// Splits a list that is separated by commas.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let separates = |c: char| {
        match c {
            '"' if !escaped => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        c == ',' && depth == 0 && !quoted
    };
    let items = list.split(separates).map(str::trim);
    items.filter(|item| !item.is_empty()).collect()
}

fn expressions(list: &str, variables: &[(&str, &str)]) -> Vec<String> {
    items(list).into_iter().map(|item| text_of(item, variables)).collect()
}

/// Evaluates an expression of strings and variables.
fn text_of(expression: &str, variables: &[(&str, &str)]) -> String {
    let mut text = String::new();
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        if let Some((name, value)) = variables.iter().find(|(name, _)| rest.starts_with(name)) {
            text += value;
            rest = &rest[name.len()..];
        } else if c == '"' {
            let (string, behind) = string(&rest[1..]);
            text += &string;
            rest = behind;
        } else {
            rest = &rest[c.len_utf8()..];
        }
    }
    text
}

/// Returns a string up to its end, and the rest.
fn string(rest: &str) -> (String, &str) {
    let mut text = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (text, &rest[at + 1..]),
            '\\' => match characters.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, other)) => text.push(other),
                None => {}
            },
            other => text.push(other),
        }
    }
    panic!("a string without an end: {rest}");
}
