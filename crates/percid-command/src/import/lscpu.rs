//! Parser for the output of `lscpu`.

use serde_json::{Map, Value};

use super::fault::Fault;
use super::imported::{Imported, remark_on_no_node};
use crate::placing::{Described, without_gaps};

/// The columns of one CPU, by their names in lower case.
type Columns<'a> = Vec<(String, &'a str)>;

/// Parses the table of `lscpu -p`: comments, the last of which names the columns, and a line for
/// each CPU.
pub(super) fn read_table(text: &str) -> Result<Imported, Fault> {
    let mut names: Vec<String> = Vec::new();
    let mut cpus = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            names = split(comment, ',').map(str::to_lowercase).collect();
        } else if !line.is_empty() {
            let values = row(line, &names).map_err(|expected| Fault::in_line(number, expected))?;
            let names = names.iter().flat_map(|name| split(name, ':')).map(str::to_owned);
            let columns = names.zip(values).collect();
            cpus.extend(cpu(&columns).map_err(|expected| Fault::in_line(number, expected))?);
        }
    }
    imported(&cpus)
}

/// Returns the values of a CPU. Columns are separated by commas; those of caches may be separated
/// by colons within one column. If CPUs differ, lscpu leaves out the last caches of those that have
/// fewer.
fn row<'a>(line: &'a str, names: &[String]) -> Result<Vec<&'a str>, String> {
    let mut cells: Vec<&str> = split(line, ',').collect();
    let (columns, found) = (names.len(), cells.len());
    let first_cache = names.iter().position(|name| is_cache(name)).unwrap_or(columns);
    let are_last = names[first_cache..].iter().all(|name| is_cache(name));
    if (first_cache..columns).contains(&found) && are_last {
        cells.resize(columns, "");
    }
    if cells.len() != columns {
        return Err(format!("expected the {columns} columns of the comment above, found {found}"));
    }
    let mut values = Vec::new();
    for (cell, name) in cells.into_iter().zip(names) {
        let (columns, found) = (split(name, ':').count(), split(cell, ':').count());
        if found > columns {
            return Err(format!("expected {name} as in the comment above, found {cell}"));
        }
        values.extend(split(cell, ':').chain(std::iter::repeat("")).take(columns));
    }
    Ok(values)
}

/// Returns `true` for a column of a cache: `l3`, `l1d`, or all of them: `l1d:l1i:l2:l3`.
fn is_cache(name: &str) -> bool {
    let level = name.strip_prefix('l').unwrap_or("");
    level.starts_with(|first: char| first.is_ascii_digit())
}

fn split(line: &str, between: char) -> impl Iterator<Item = &str> {
    line.split(between).map(str::trim)
}

/// Parses the document of `lscpu --json --extended`.
pub(super) fn read_json(text: &str) -> Result<Imported, Fault> {
    let document: Value = serde_json::from_str(&without_dashes(text)).map_err(|fault| {
        Fault::in_line(fault.line(), format!("expected JSON as lscpu prints it: {fault}"))
    })?;
    let Some(entries) = document.get("cpus").and_then(Value::as_array) else {
        return Err(Fault::of_all(match document.get("lscpu") {
            Some(_) => {
                "expected `lscpu --json --extended`, or `lscpu -p`: this summary does not say \
                 where each CPU sits"
            }
            None => "expected the key `cpus`, as `lscpu --json --extended` prints it",
        }));
    };
    let mut cpus = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let fault = |expected: String| Fault::of_all(format!("cpus.{at}: {expected}"));
        let Some(entry) = entry.as_object() else {
            return Err(fault("expected an object".to_owned()));
        };
        let texts = texts(entry);
        let columns = texts.iter().flat_map(|(name, value)| {
            name.split(':').map(str::to_lowercase).zip(value.split(':').map(str::trim))
        });
        cpus.extend(cpu(&columns.collect()).map_err(fault)?);
    }
    imported(&cpus)
}

/// Returns the text with `null` in place of the dash that util-linux writes for a number that an
/// offline CPU does not have.
fn without_dashes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let (mut is_inside, mut is_escaped) = (false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if !is_escaped => is_inside = !is_inside,
            '-' if !is_inside && !letters.peek().is_some_and(char::is_ascii_digit) => {
                plain.push_str("null");
                continue;
            }
            _ => {}
        }
        is_escaped = is_inside && letter == '\\' && !is_escaped;
        plain.push(letter);
    }
    plain
}

/// Returns names and values; older versions write numbers as strings.
fn texts(entry: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    entry.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Returns the CPU; `None` if it is offline: such CPUs have no core.
fn cpu(columns: &Columns<'_>) -> Result<Option<Described>, String> {
    let number = |name: &str| -> Result<Option<i64>, String> {
        match columns.iter().find(|(column, _)| column == name) {
            None | Some((_, "" | "-")) => Ok(None),
            Some((_, value)) => match value.parse() {
                Ok(number @ 0..=0xffff_ffff) => Ok(Some(number)),
                _ => Err(format!("expected a number in column {name}, found {value:?}")),
            },
        }
    };
    let has = |needed: &str| columns.iter().any(|(column, _)| column == needed);
    let Some(cpu) = number("cpu")? else {
        return Err(match has("cpu") {
            true => "expected a number in column cpu, found none: this system does not tell its CPUs apart",
            false => "expected a column named cpu",
        }
        .to_owned());
    };
    for needed in ["core", "socket"] {
        if !has(needed) {
            return Err(format!(
                "expected a column named {needed}: this system does not say where its CPUs sit"
            ));
        }
    }
    let Some(core) = number("core")? else { return Ok(None) };
    Ok(Some(Described {
        cpu: cpu as u32,
        core,
        l3: number("l3")?,
        socket: number("socket")?,
        node: number("node")?,
    }))
}

fn imported(cpus: &[Described]) -> Result<Imported, Fault> {
    let mut numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.cpu).collect();
    numbers.sort_unstable();
    if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Fault::of_all(format!("expected each CPU once, found {} twice", pair[0])));
    }
    let remarks = remark_on_no_node(cpus);
    Ok(Imported {
        name: None,
        topology: without_gaps(cpus).0,
        remarks: remarks.into_iter().collect(),
    })
}
