//! Mutants of the assembly: every instruction of every section omitted, and exchanged with the next
//! one.
//!
//! A source line that begins with a string is an instruction, a label or a directive; labels and
//! directives stay where they are. A line of anything else, such as the insertion of another
//! macro's instructions, separates neighbours. An instruction is omitted by making it a comment of
//! the assembler, so that its operands are still used.

use std::path::Path;

use serde::Deserialize;

use crate::catalogue::{Expectation, Mutant};
use crate::suite::Suite;

/// The file of the catalogue that lists the sections.
pub const FILE: &str = "instructions.toml";

/// A change of one macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The change and the instruction.
    pub name: String,
    /// The macro's text.
    pub before: String,
    /// The same with the change.
    pub after: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    section: Vec<Section>,
    #[serde(default)]
    equivalent: Vec<Equivalent>,
}

/// A macro with instructions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    /// A part of the names of its mutants.
    name: String,
    file: String,
    /// The beginning of the macro: a text that occurs in the file exactly once,
    begins: String,
    /// or whose first occurrence after this text is meant.
    behind: Option<String>,
    suites: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Equivalent {
    names: Vec<String>,
    because: String,
}

/// Returns all mutants of the sections in a file of the catalogue.
///
/// # Errors
///
/// Returns an error that names a section that is not found, or an equivalent mutant that does not
/// exist.
pub fn read(root: &Path, text: &str) -> Result<Vec<Mutant>, String> {
    let catalogue: Catalogue = toml::from_str(text).map_err(|error| format!("{FILE}: {error}"))?;
    let mut mutants = Vec::new();
    for section in &catalogue.section {
        let source = std::fs::read_to_string(root.join(&section.file))
            .map_err(|error| format!("{}: {error}", section.file))?;
        mutants.extend(of_section(section, &source)?);
    }
    for Equivalent { names, because } in catalogue.equivalent {
        for name in names {
            let mutant = mutants.iter_mut().find(|mutant| mutant.name == name);
            let mutant = mutant.ok_or_else(|| format!("{FILE}: there is no mutant {name}"))?;
            mutant.expectation = Expectation::Equivalent(because.clone());
        }
    }
    Ok(mutants)
}

fn of_section(section: &Section, source: &str) -> Result<Vec<Mutant>, String> {
    let place = format!("{}: {}", section.file, section.begins);
    let source = match &section.behind {
        None => Some(source),
        Some(behind) => source.split_once(behind.as_str()).map(|(_, behind)| {
            let end = behind.match_indices(&section.begins).nth(1);
            &behind[..end.map_or(behind.len(), |(end, _)| end)]
        }),
    };
    let text = source.and_then(|source| block(source, &section.begins));
    let text = text.ok_or_else(|| format!("{place} is not there once"))?;
    let suites: Result<Vec<Suite>, String> =
        section.suites.iter().map(|suite| Suite::parse(suite)).collect();
    let suites = suites.map_err(|error| format!("{place}: {error}"))?;
    let changes = changes(text);
    if changes.is_empty() {
        return Err(format!("{place} has no instructions"));
    }
    let mutant = |change: Change| Mutant {
        room: "instructions".to_owned(),
        name: format!("{}/{}", section.name, change.name),
        file: section.file.clone(),
        before: change.before,
        after: change.after,
        breaks: "The section does not do what its model says, or not at once.".to_owned(),
        expectation: Expectation::Noticed(suites.clone()),
    };
    Ok(changes.into_iter().map(mutant).collect())
}

/// Returns the text from a line that occurs in the source once to the end of the macro that it
/// begins: in Rust the brace in the first column, in C the first line that is not continued.
fn block<'a>(source: &'a str, begins: &str) -> Option<&'a str> {
    let mut found = source.match_indices(begins).map(|(place, _)| place);
    let (start, None) = (found.next()?, found.next()) else { return None };
    let mut length = 0;
    for line in source[start..].split_inclusive('\n') {
        length += line.len();
        let goes_on = if begins.starts_with('#') {
            line.trim_end().ends_with('\\')
        } else {
            line.trim_end() != "}"
        };
        if !goes_on {
            break;
        }
    }
    Some(&source[start..start + length])
}

/// Returns every change of a macro's instructions, one for each.
pub fn changes(text: &str) -> Vec<Change> {
    let parts = parts(text);
    let mut changes = Vec::new();
    let instructions: Vec<usize> =
        (0..parts.len()).filter(|&index| parts[index].kind == Kind::Instruction).collect();
    let change = |name: String, changed: &dyn Fn(usize) -> String| {
        let after: String = (0..parts.len()).map(changed).collect();
        Change { name, before: text.to_owned(), after }
    };
    for (number, &index) in instructions.iter().enumerate() {
        let number = number + 1;
        let this = parts[index].instruction();
        changes.push(change(format!("leave-out-{number} {this}"), &|at| {
            if at == index { parts[at].left_out() } else { parts[at].text.clone() }
        }));
        let next = instructions.get(number).copied();
        let Some(next) = next.filter(|&next| are_neighbours(&parts[index + 1..next])) else {
            continue;
        };
        let other = parts[next].instruction();
        // Nothing changes if they are the same.
        if this == other {
            continue;
        }
        changes.push(change(format!("exchange-{number} {this} | {other}"), &|at| {
            let from = match at {
                _ if at == index => next,
                _ if at == next => index,
                same => same,
            };
            // A line of C stays continued, or not.
            parts[from].body().to_owned() + parts[at].end()
        }));
    }
    changes
}

fn are_neighbours(between: &[Part]) -> bool {
    between.iter().all(|part| part.kind == Kind::StaysInPlace)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Instruction,
    /// A label, a directive, a comment.
    StaysInPlace,
    Separator,
}

/// One line, or the lines of an instruction that is put together from several strings.
#[derive(Debug)]
struct Part {
    kind: Kind,
    text: String,
}

impl Part {
    /// Returns the instruction for output: its strings, and the names between them.
    fn instruction(&self) -> String {
        let mut found = String::new();
        for (place, piece) in self.text.split('"').enumerate() {
            if place % 2 == 1 {
                found += piece;
            } else if let Some(code) = piece.split("//").next() {
                let is_name = |it: &char| it.is_alphanumeric() || *it == '_' || *it == '$';
                found.extend(code.split("/*").next().unwrap_or_default().chars().filter(is_name));
            }
            if found.contains("\\n") {
                break;
            }
        }
        format!("`{}`", found.split("\\n").next().unwrap_or_default().trim())
    }

    /// Returns the line without its end.
    fn body(&self) -> &str {
        let line = self.text.trim_end();
        line.strip_suffix('\\').unwrap_or(line).trim_end()
    }

    fn end(&self) -> &str {
        &self.text[self.body().len()..]
    }

    /// Returns the instruction as a comment of the assembler, up to the end of its line.
    fn left_out(&self) -> String {
        let opened = self.text.replacen('"', "\"/* ", 1);
        let end = match opened.rfind("\\n") {
            Some(end) => end,
            None => opened.rmatch_indices('"').next().map_or(opened.len(), |(end, _)| end),
        };
        let (before, behind) = opened.split_at(end);
        format!("{before} */{behind}")
    }
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut open = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if open && !trimmed.starts_with(')') {
            if let Some(part) = parts.last_mut() {
                part.text += line;
                open = !line.contains("\\n");
            }
            continue;
        }
        let kind = match string(trimmed).filter(|_| trimmed.starts_with('"')) {
            Some(string) if stays(string) => Kind::StaysInPlace,
            Some(string) => {
                open = string.ends_with(' ');
                Kind::Instruction
            }
            None if trimmed.starts_with("//") => Kind::StaysInPlace,
            None => Kind::Separator,
        };
        open &= kind == Kind::Instruction;
        parts.push(Part { kind, text: line.to_owned() });
    }
    parts
}

/// Returns the text between the first quotation marks of a line.
fn string(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('"')?;
    rest.split('"').next()
}

fn stays(string: &str) -> bool {
    let word = string.trim_end_matches("\\n\\t").trim_end_matches("\\n");
    word.starts_with('.') || word.ends_with(':') || word.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = r#"macro_rules! pop {
    (kernel, $exit:literal) => {
        section!(
            or zero "x", [
                "mov {a}, {b}",
                // Why.
                "jle ",
                $exit,
                "\n",
                "7:",
                "mov {a}, {b}", // again
                index!(),
                "jmp 7b",
                "jz ",
                $exit,
                "\n",
            )
    }
}
"#;

    #[test]
    fn every_instruction_of_a_macro() {
        let changes = changes(block(RUST, "macro_rules! pop {").expect("a macro"));
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "leave-out-1 `mov {a}, {b}`",
                "exchange-1 `mov {a}, {b}` | `jle $exit`",
                "leave-out-2 `jle $exit`",
                "exchange-2 `jle $exit` | `mov {a}, {b}`",
                "leave-out-3 `mov {a}, {b}`",
                "leave-out-4 `jmp 7b`",
                "exchange-4 `jmp 7b` | `jz $exit`",
                "leave-out-5 `jz $exit`",
            ]
        );
        let lines = |change: &Change| -> Vec<String> {
            change.after.lines().map(|line| line.trim().to_owned()).collect()
        };
        assert_eq!(
            lines(&changes[1])[4..9],
            [r#""jle ","#, "$exit,", r#""\n","#, "// Why.", r#""mov {a}, {b}","#]
        );
        assert_eq!(lines(&changes[2])[6..9], [r#""/* jle ","#, "$exit,", r#"" */\n","#]);
        assert!(changes.iter().all(|change| change.before == RUST && change.after != RUST));
    }

    const C: &str = "#define A \\\n    \"9:\\n\\t\" \\\n    \"incl -\" MARK \"(%%ecx)\\n\\t\" \\\n    \
                     \"jz %l[slow]\\n\" /* why */ \\\n    : \"rax\"\n\nint other;\n";

    #[test]
    fn c_macros_end_with_the_line_that_is_not_continued() {
        let text = block(C, "#define A ").expect("a macro");
        assert!(text.ends_with("\"rax\"\n"));
        let changes = changes(text);
        let names: Vec<&str> = changes.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "leave-out-1 `incl -MARK(%%ecx)`",
                "exchange-1 `incl -MARK(%%ecx)` | `jz %l[slow]`",
                "leave-out-2 `jz %l[slow]`"
            ]
        );
        let last = "    \"incl -\" MARK \"(%%ecx)\\n\\t\" \\\n";
        assert!(changes[1].after.contains(last), "{}", changes[1].after);
        assert!(changes[0].after.contains("\"/* incl -\" MARK \"(%%ecx) */\\n\\t\""));
    }
}
