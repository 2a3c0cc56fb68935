//! What `lscpu` prints.

use serde_json::{Map, Value};

use super::{Fault, Imported};
use crate::placing::{Described, without_gaps};

/// The columns of one CPU, by their names in small letters.
type Columns<'a> = Vec<(String, &'a str)>;

/// The table of `lscpu -p`: comments, the last of which names the columns, and a line for each CPU.
pub(super) fn read_table(text: &str) -> Result<Imported, Fault> {
    let mut names: Vec<String> = Vec::new();
    let mut cpus = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            names = cells(comment).map(str::to_lowercase).collect();
        } else if !line.is_empty() {
            let values: Vec<&str> = cells(line).collect();
            if values.len() != names.len() {
                let (columns, found) = (names.len(), values.len());
                let expected = format!("expected the {columns} columns of the comment above");
                return Err(Fault::in_line(number, format!("{expected}, found {found}")));
            }
            let columns = names.iter().cloned().zip(values).collect();
            cpus.extend(cpu(&columns).map_err(|expected| Fault::in_line(number, expected))?);
        }
    }
    imported(&cpus)
}

/// Columns are separated by commas, and those of caches by colons as well.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split([',', ':']).map(str::trim)
}

/// The document of `lscpu --json --extended`.
pub(super) fn read_json(text: &str) -> Result<Imported, Fault> {
    let document: Value = serde_json::from_str(text).map_err(|fault| {
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

/// Names and values; older versions write numbers as texts.
fn texts(entry: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    entry.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

/// None if the CPU is not online: such ones have no core.
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
    for needed in ["cpu", "core", "socket"] {
        if columns.iter().all(|(column, _)| column != needed) {
            return Err(format!("expected a column named {needed}"));
        }
    }
    let Some(cpu) = number("cpu")? else {
        return Err("expected a number in column cpu, found none".to_owned());
    };
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
    Ok(Imported { name: None, topology: without_gaps(cpus).0 })
}
