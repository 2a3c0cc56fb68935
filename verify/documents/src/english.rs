//! Sentences that break the style sheet of CONTRIBUTING.md, in comments, string literals and Markdown.

use std::path::Path;

/// Words that open no sentence: its subject comes first, and a condition begins with "if" or "when".
const OPENINGS: [&str; 12] =
    ["What", "How", "Whether", "Of", "Who", "Whoever", "Which", "Where", "As", "By", "Else", "Had"];

/// Phrases that have a plainer form.
const PHRASES: [&str; 8] = [
    "in the mean",
    "of late",
    "by and by",
    "to be had",
    "at the most",
    "those who",
    "without further ado",
    "as if nothing had happened",
];

/// A sentence that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The line on which its paragraph begins, from 1.
    pub line: usize,
    /// Its first words, or the words around a phrase.
    pub text: String,
}

/// Returns the faults of a file; none if it is neither Rust nor Markdown.
pub fn faults(path: &Path, source: &str) -> Vec<Fault> {
    let paragraphs = match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => rust(source),
        Some("md") => markdown(source),
        _ => Vec::new(),
    };
    paragraphs.iter().flat_map(|(line, text)| faults_of(*line, text)).collect()
}

/// A paragraph with the line on which it begins.
type Paragraph = (usize, String);

fn faults_of(line: usize, text: &str) -> Vec<Fault> {
    let fault = |text: &str| Fault { line, text: text.chars().take(70).collect() };
    let opens = |sentence: &&str| {
        let first = sentence.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        OPENINGS.contains(&first) && sentence.contains(' ')
    };
    let mut found: Vec<Fault> = sentences(text).into_iter().filter(opens).map(fault).collect();
    for phrase in PHRASES {
        let bounded = |at: &usize| {
            let behind = text[at + phrase.len()..].chars().next();
            let before = text[..*at].chars().next_back();
            ![before, behind].into_iter().flatten().any(char::is_alphanumeric)
        };
        let places = text.match_indices(phrase).map(|(at, _)| at).filter(bounded);
        found.extend(places.map(|at| fault(&text[at..])));
    }
    found
}

/// Returns the sentences of a paragraph, each from its first letter on.
fn sentences(text: &str) -> Vec<&str> {
    let mut ends = vec![0];
    for (at, mark) in text.match_indices(['.', ':', ';', '!', '?', '|']) {
        let behind = at + mark.len();
        if text[behind..].starts_with(' ') {
            ends.push(behind);
        }
    }
    let starts =
        ends.into_iter().map(|end| text[end..].trim_start_matches([' ', '*', '-', '#', '_']));
    starts.collect()
}

/// Returns the paragraphs of comments, without code blocks, and the string literals.
fn rust(source: &str) -> Vec<Paragraph> {
    let mut paragraphs = Vec::new();
    let mut comment: Option<(usize, &str, String)> = None;
    let (mut rest, mut in_code, mut comment_line) = (source, false, 0);
    while let Some(at) = rest.find(['/', '"', '\'']) {
        let line = 1 + source[..source.len() - rest.len() + at].matches('\n').count();
        let (before, found) = rest.split_at(at);
        if found.starts_with("//") {
            let text = found.lines().next().unwrap_or_default();
            rest = &found[text.len()..];
            let kind = ["///", "//!", "//"].into_iter().find(|kind| text.starts_with(kind));
            let (kind, follows) = (kind.unwrap_or("//"), comment_line + 1 == line);
            comment_line = line;
            let words = text[kind.len()..].trim();
            let fence = words.starts_with("```");
            in_code = (in_code && follows) != fence;
            let joins = comment.as_ref().is_some_and(|(_, before, _)| follows && *before == kind);
            if !joins || words.is_empty() || fence || in_code || words.starts_with("- ") {
                paragraphs.extend(comment.take().map(|(line, _, text)| (line, text)));
            }
            if !(words.is_empty() || fence || in_code) {
                let (_, _, text) = comment.get_or_insert((line, kind, String::new()));
                *text = format!("{text} {words}").trim_start().to_owned();
            }
            continue;
        }
        let raw = found.starts_with('"').then(|| raw_hashes(before)).flatten();
        let length = match raw {
            Some(hashes) => 1 + found[1..].find(&format!("\"{hashes}")).unwrap_or(0) + 1,
            None if found.starts_with('"') => 1 + quoted(&found[1..], '"'),
            None if found.starts_with('\'') => character(found),
            None => 1,
        };
        if found.starts_with('"') {
            let text = found[1..length - 1].replace("\\n", " ");
            paragraphs.push((line, text.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        rest = &found[length..];
    }
    paragraphs.extend(comment.map(|(line, _, text)| (line, text)));
    paragraphs
}

/// Returns the hashes of a raw string literal, if `before` ends with its prefix.
fn raw_hashes(before: &str) -> Option<String> {
    let prefix = before.trim_end_matches('#');
    prefix.ends_with('r').then(|| before[prefix.len()..].to_owned())
}

/// Returns the length up to and with the closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character literal, or of the quote of a lifetime.
fn character(found: &str) -> usize {
    let mut chars = found.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => 1 + quoted(&found[1..], '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1,
    }
}

/// Returns the paragraphs and table cells of a document, without its code.
fn markdown(source: &str) -> Vec<Paragraph> {
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    let (mut open, mut in_code) = (false, false);
    for (line, text) in source.lines().enumerate() {
        let words = text.trim();
        if words.starts_with("```") {
            in_code = !in_code;
        }
        let is_code = in_code || words.starts_with("```") || text.starts_with("    ");
        let begins = ["#", "|", "- ", "* "].iter().any(|mark| words.starts_with(mark));
        if words.is_empty() || is_code {
            open = false;
            continue;
        }
        match paragraphs.last_mut().filter(|_| open && !begins) {
            Some((_, paragraph)) => *paragraph = format!("{paragraph} {words}"),
            None => paragraphs.push((line + 1, words.to_owned())),
        }
        open = !words.starts_with('#');
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::Command;

    use super::*;
    use crate::root;

    fn texts(path: &str, source: &str) -> Vec<(usize, String)> {
        let found = faults(Path::new(path), source);
        found.into_iter().map(|fault| (fault.line, fault.text)).collect()
    }

    fn found(line: usize, text: &str) -> (usize, String) {
        (line, text.to_owned())
    }

    #[test]
    fn sentences_of_comments_and_literals_are_found() {
        let source = concat!(
            "/// What it is. A count, of late;\n",
            "/// which counts.\n",
            "///\n",
            "/// ```\n",
            "/// // What code says is code.\n",
            "/// ```\n",
            "/// Returns a word. Where it lies: nobody\n",
            "/// knows. Of course.\n",
            "fn f<'a>(c: char) { c == '\"' || c == '\\''; \"Whether so\"; r#\"a \"b. Who says\"#; } // By hand\n",
            "// Somewhere. What? Nothing: which and what inside are well.\n",
        );
        let expected = [
            found(1, "What it is. A count, of late; which counts."),
            found(1, "of late; which counts."),
            found(7, "Where it lies: nobody knows. Of course."),
            found(7, "Of course."),
            found(9, "Whether so"),
            found(9, "Who says"),
            found(9, "By hand Somewhere. What? Nothing: which and what inside are well."),
        ];
        let mut all = texts("a.rs", source);
        all.sort();
        let mut expected = expected.to_vec();
        expected.push(found(9, "What? Nothing: which and what inside are well."));
        expected.sort();
        assert_eq!(all, expected);
    }

    #[test]
    fn sentences_of_documents_are_found() {
        let source = concat!(
            "# What it is\n\nWords that are well. Which one\nis said by and by.\n\n",
            "    What stands in code\n\n```\nHow so\n```\n\n| Who does | it |\n|---|---|\n| a | How much |\n",
        );
        let expected = [
            found(1, "What it is"),
            found(3, "Which one is said by and by."),
            found(3, "by and by."),
            found(12, "Who does | it |"),
            found(14, "How much |"),
        ];
        assert_eq!(texts("a.md", source), expected);
        assert_eq!(texts("a.py", source), []);
    }

    /// Returns the most faults that each area may have.
    fn baseline() -> BTreeMap<String, usize> {
        let entries = include_str!("../english.txt").lines().filter(|line| !line.starts_with('#'));
        let entry = |line: &str| {
            let (count, area) = line.split_once(' ').expect("a count and an area");
            (area.to_owned(), count.parse().expect("a count"))
        };
        entries.map(entry).collect()
    }

    /// The area of a file: a crate, a suite, or all other documents.
    fn area(path: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            ["crates" | "verify", name, _, ..] => format!("{}/{name}", parts[0]),
            ["docs" | "examples" | "fuzz" | "python", ..] => parts[0].to_owned(),
            _ => "others".to_owned(),
        }
    }

    #[test]
    fn no_area_has_more_faults_than_its_baseline() {
        let list =
            Command::new("git").args(["ls-files", "*.rs", "*.md"]).current_dir(root()).output();
        let list = String::from_utf8(list.expect("git").stdout).expect("names");
        let mut by_area: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // This file has the patterns themselves.
        for path in list.lines().filter(|path| !path.ends_with("/english.rs")) {
            let source = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            let of_file = faults(Path::new(path), &source);
            let shown =
                of_file.iter().map(|fault| format!("{path}:{}: {}", fault.line, fault.text));
            by_area.entry(area(path)).or_default().extend(shown);
        }
        assert!(by_area.len() > 30, "{} areas: not all files were listed", by_area.len());
        let most = baseline();
        let sum: usize = by_area.values().map(Vec::len).sum();
        println!("{sum} sentences break the style sheet");
        let mut above = Vec::new();
        for (area, faults) in &by_area {
            println!("{} {area}", faults.len());
            if faults.len() > most.get(area).copied().unwrap_or(0) {
                above.push(format!("{area}:\n  {}", faults.join("\n  ")));
            }
        }
        assert!(
            above.is_empty(),
            "more than verify/documents/english.txt permits:\n{}",
            above.join("\n")
        );
    }
}
