//! The declarations of the C++ header.

use std::collections::{BTreeMap, BTreeSet};

use super::c::{is_of_name, without_comments, without_directives, words};

/// The names below `percid`, such as `counter`, `counter::add`, `init`.
#[derive(Debug, Default, Clone)]
pub(super) struct Wrapper {
    names: BTreeSet<String>,
    /// The base classes of each class.
    bases: BTreeMap<String, Vec<String>>,
}

/// Words before a parenthesis that are not names of functions.
const NO_FUNCTIONS: [&str; 12] = [
    "decltype",
    "noexcept",
    "alignas",
    "static_assert",
    "explicit",
    "requires",
    "sizeof",
    "operator",
    "if",
    "for",
    "while",
    "switch",
];

impl Wrapper {
    pub(super) fn read(text: &str) -> Wrapper {
        let words = words(&without_directives(&without_comments(text)));
        let mut wrapper = Wrapper::default();
        let mut at = 0;
        while at < words.len() {
            at = wrapper.declaration(&words, at, "");
        }
        wrapper
    }

    /// Removes a name from a class or from its bases.
    pub(super) fn remove(&mut self, name: &str) {
        self.names.remove(name);
        let Some((class, member)) = name.rsplit_once("::") else { return };
        for base in self.bases.get(class).cloned().unwrap_or_default() {
            self.remove(&format!("{base}::{member}"));
        }
    }

    /// Returns `true` if something has this name. The members of a class include those of its
    /// bases.
    pub(super) fn has(&self, name: &str) -> bool {
        if self.names.contains(name) {
            return true;
        }
        let Some((class, member)) = name.rsplit_once("::") else { return false };
        let bases = self.bases.get(class).into_iter().flatten();
        bases.into_iter().any(|base| self.has(&format!("{base}::{member}")))
    }

    /// Reads the declaration that begins at a word, in a scope. Returns the start of the next one.
    fn declaration(&mut self, words: &[String], start: usize, scope: &str) -> usize {
        let end = (start..words.len()).find(|&at| {
            let word = &words[at];
            matches!(word.as_str(), ";" | "{" | "}") || (word == ":" && is_access(words, at))
        });
        let Some(end) = end else { return words.len() };
        let head = &words[start..end];
        if words[end] != "{" {
            self.note(head, scope);
            return end + 1;
        }
        let close = closing(words, end);
        match scope_of(head) {
            Some(Scope { name, kind }) => {
                let inner = join(scope, &name);
                if kind != "namespace" {
                    self.names.insert(inner.clone());
                    self.bases.insert(inner.clone(), bases_of(head, scope));
                }
                let inner = if name == "percid" { String::new() } else { inner };
                self.inside(kind, &words[end + 1..close], &inner);
            }
            None => self.note(head, scope),
        }
        close + 1
    }

    fn inside(&mut self, kind: &str, words: &[String], scope: &str) {
        if kind == "enum" {
            let first = |list: &[String]| list.first().cloned();
            let enumerators = words.split(|word| word == ",").filter_map(first);
            self.names.extend(enumerators.map(|name| join(scope, &name)));
            return;
        }
        let mut is_public = kind != "class";
        let mut at = 0;
        while at < words.len() {
            if words.get(at + 1).is_some_and(|word| word == ":") && is_access(words, at + 1) {
                is_public = words[at] == "public";
                at += 2;
            } else if is_public {
                at = self.declaration(words, at, scope);
            } else {
                at = Wrapper::default().declaration(words, at, scope);
            }
        }
    }

    /// Records the name of a function, an alias or a constant.
    fn note(&mut self, head: &[String], scope: &str) {
        let head = without_templates(head);
        let name = match head.first().map(String::as_str) {
            Some("using") => head.get(1),
            _ => {
                let is_function = |at: &usize| {
                    let name = &head[*at];
                    head[at + 1] == "("
                        && name.chars().all(is_of_name)
                        && name.contains(|c: char| c.is_ascii_lowercase())
                        && !NO_FUNCTIONS.contains(&name.as_str())
                };
                let function = (0..head.len().saturating_sub(1)).find(is_function);
                let equals = head.iter().position(|word| word == "=");
                function.or(equals.and_then(|at| at.checked_sub(1))).map(|at| &head[at])
            }
        };
        self.names.extend(name.map(|name| join(scope, name)));
    }
}

struct Scope {
    name: String,
    kind: &'static str,
}

/// Returns the scope that a brace after these words opens.
fn scope_of(head: &[String]) -> Option<Scope> {
    let head = without_templates(head);
    // Words after a parenthesis belong to the parameters of a function.
    let end = head.iter().position(|word| word == "(").unwrap_or(head.len());
    let kinds = ["namespace", "enum", "class", "struct"];
    let kind = kinds.into_iter().find(|kind| head[..end].iter().any(|word| word == kind))?;
    let at = head.iter().position(|word| word == kind)?;
    let is_name = |word: &&String| {
        word.contains(|c: char| c.is_ascii_lowercase()) && *word != "class" && *word != "struct"
    };
    let name = head[at + 1..].iter().find(is_name)?;
    Some(Scope { name: name.clone(), kind })
}

/// Returns the names after the `:` of a class.
fn bases_of(head: &[String], scope: &str) -> Vec<String> {
    let head = without_templates(head);
    let Some(colon) = head.iter().position(|word| word == ":") else { return Vec::new() };
    let plain =
        |word: &&String| !["public", ","].contains(&word.as_str()) && word.chars().all(is_of_name);
    head[colon + 1..].iter().filter(plain).map(|name| join(scope, name)).collect()
}

/// Returns `true` if the `:` at a place ends `public:` and the like.
fn is_access(words: &[String], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| &words[before]);
    matches!(before, "public" | "private" | "protected")
        && words.get(at + 1).is_none_or(|after| after != ":")
}

/// Returns the position of the brace that closes the one at `open`.
fn closing(words: &[String], open: usize) -> usize {
    let mut depth = 0;
    let end = (open..words.len()).find(|&at| {
        depth += i32::from(words[at] == "{") - i32::from(words[at] == "}");
        depth == 0
    });
    end.unwrap_or(words.len())
}

/// Removes `template <…>` and attributes.
fn without_templates(head: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < head.len() {
        let (skipped, open, close) = match head[at].as_str() {
            "template" => (1, "<", ">"),
            "[" => (0, "[", "]"),
            _ => {
                kept.push(head[at].clone());
                at += 1;
                continue;
            }
        };
        let mut depth = 0;
        at += skipped;
        while at < head.len() {
            depth += i32::from(head[at] == open) - i32::from(head[at] == close);
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    kept
}

fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
}
