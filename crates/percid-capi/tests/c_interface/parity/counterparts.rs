//! Corresponding names in the three languages: by the rule, or from the list.

use std::collections::{BTreeMap, BTreeSet};

use super::Faces;
use super::rust::{Kind, Public};

/// Mark of a cell for which the rule applies.
const BY_RULE: &str = "=";

/// The prefix of items in a separate crate, and namespace.
pub(super) const NUMA: &str = "numa::";

/// The prefix of items in a separate crate, without a namespace.
pub(super) const SYNC: &str = "sync::";

/// Beginning of a cell without a counterpart.
const DASH: char = '\u{2014}';

/// The list: for an item of Rust (or a text, if Rust has none) the counterparts in C and C++.
#[derive(Debug)]
pub(super) struct Counterparts {
    rows: Vec<[String; 3]>,
}

/// A row of the table: cells whose names are in backticks.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) cells: [String; 3],
}

/// The combination of the interfaces and the list.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Row>,
    pub(super) faults: Vec<String>,
}

/// A Rust item that must have a counterpart.
struct Wanted {
    /// Its name in the list.
    name: String,
    /// The names by the rule in C and in C++: one of them must exist.
    by_rule: [Vec<String>; 2],
    /// `true` if it has a separate row when it follows the rule.
    is_listed: bool,
}

impl Counterparts {
    pub(super) fn written() -> Counterparts {
        let lines = include_str!("counterparts.txt").lines().map(str::trim);
        let rows = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
            let cells: Vec<_> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
            cells.try_into().unwrap_or_else(|cells| panic!("three cells: {cells:?}"))
        });
        Counterparts { rows: rows.collect() }
    }

    pub(super) fn table(&self, faces: &Faces) -> Table {
        let listed: BTreeMap<_, _> = self.rows.iter().map(|row| (row[0].as_str(), row)).collect();
        let mut table = Table::default();
        let mut used = BTreeSet::new();
        for item in &faces.rust {
            for wanted in self.wanted(item) {
                used.insert(wanted.name.clone());
                table.add(faces, &wanted, listed.get(wanted.name.as_str()).copied());
            }
        }
        for row in self.rows.iter().filter(|row| !used.contains(&row[0])) {
            table.add_without_rust(faces, row);
        }
        table.miss_names_of_c(faces);
        table
    }

    /// Returns the wanted counterparts of an item and its members.
    fn wanted(&self, item: &Public) -> Vec<Wanted> {
        let path = &item.path;
        let last = path.rsplit("::").next().unwrap_or(path);
        let within = if path.starts_with(NUMA) { NUMA } else { "" };
        let (c, cpp) = (format!("percid_{}", snake(last)), format!("{within}{}", snake(last)));
        let Kind::Type { variants, fields, methods } = &item.kind else {
            let by_rule = [vec![c], vec![cpp]];
            return vec![Wanted { name: path.clone(), by_rule, is_listed: true }];
        };
        let by_rule = [vec![c], vec![cpp]];
        let names = self.names_of(path, &by_rule);
        let of = |name: String, is_listed, member: &dyn Fn(&str) -> String| {
            let by_rule = names.each_ref().map(|of| of.iter().map(|of| member(of)).collect());
            Wanted { name, by_rule, is_listed }
        };
        let methods = methods.iter().map(|name| {
            let is_constant = name.starts_with(|c: char| c.is_ascii_uppercase());
            let member = |of: &str| match (is_c(of), is_constant) {
                (true, true) => format!("{of}_{name}").to_uppercase(),
                (true, false) => format!("{of}_{name}"),
                (false, _) => format!("{of}::{}", name.to_lowercase()),
            };
            of(format!("{path}::{name}"), true, &member)
        });
        let variants = variants.iter().map(|name| {
            let member = |of: &str| match is_c(of) {
                true => format!("{of}_{}", snake(name)).to_uppercase(),
                false => format!("{of}::{}", snake(name)),
            };
            of(format!("{path}::{name}"), false, &member)
        });
        // C++ has C's structures, under different names. Fields that are not members are read by
        // functions.
        let fields = fields.iter().map(|name| {
            let of = |of: &String| {
                [format!("{of}.{name}"), format!("{of}.{name}_ns"), format!("{of}_{name}")]
            };
            let by_rule = names[0].iter().flat_map(of).collect::<Vec<_>>();
            let by_rule = [by_rule.clone(), by_rule];
            Wanted { name: format!("{path}.{name}"), by_rule, is_listed: false }
        });
        let itself = Wanted { name: path.clone(), by_rule, is_listed: true };
        std::iter::once(itself).chain(methods).chain(variants).chain(fields).collect()
    }

    /// Returns the names of a type in C and in C++.
    fn names_of(&self, path: &str, by_rule: &[Vec<String>; 2]) -> [Vec<String>; 2] {
        let row = self.rows.iter().find(|row| row[0] == path);
        let names = |language: usize| match row.map(|row| row[language + 1].as_str()) {
            None | Some(BY_RULE) => by_rule[language].clone(),
            Some(cell) if cell.starts_with(DASH) => Vec::new(),
            Some(cell) => quoted(cell).map(str::to_owned).collect(),
        };
        [names(0), names(1)]
    }
}

impl Table {
    fn add(&mut self, faces: &Faces, wanted: &Wanted, listed: Option<&[String; 3]>) {
        let Wanted { name, by_rule, .. } = wanted;
        let mut cells = [format!("`{name}`"), String::new(), String::new()];
        let mut is_listed = wanted.is_listed && by_rule.iter().any(|names| !names.is_empty());
        for (language, by_rule) in by_rule.iter().enumerate() {
            let cell = listed.map_or(BY_RULE, |row| row[language + 1].as_str());
            is_listed |= cell != BY_RULE;
            cells[language + 1] = match cell {
                BY_RULE => self.by_rule(faces, name, language, by_rule),
                said => {
                    self.check(faces, name, language, said);
                    said.to_owned()
                }
            };
        }
        if is_listed {
            self.rows.push(Row { cells });
        }
    }

    fn by_rule(
        &mut self,
        faces: &Faces,
        name: &str,
        language: usize,
        by_rule: &[String],
    ) -> String {
        let found = by_rule.iter().filter(|name| has(faces, language, name));
        let found: Vec<_> = found.map(|name| format!("`{name}`")).collect();
        // Members of a type without a counterpart need none.
        if found.is_empty() && !by_rule.is_empty() {
            let missing = by_rule.join(" or ");
            self.faults.push(format!("{name}: {} has no {missing}", LANGUAGES[language]));
        }
        found.join(", ")
    }

    /// Checks that the listed names exist. If the list has no name, it must give the reason.
    fn check(&mut self, faces: &Faces, name: &str, language: usize, said: &str) {
        if said.is_empty() {
            self.faults.push(format!("{name}: nothing is said of {}", LANGUAGES[language]));
        }
        for missing in quoted(said).filter(|named| !has(faces, language, named)) {
            self.faults.push(format!("{name}: {} has no {missing}", LANGUAGES[language]));
        }
    }

    /// Adds a row without a Rust item.
    fn add_without_rust(&mut self, faces: &Faces, row: &[String; 3]) {
        let [rust, c, cpp] = row;
        if !rust.starts_with(DASH) {
            self.faults.push(format!("{rust}: Rust has no such item"));
        }
        for (language, cell) in [c, cpp].into_iter().enumerate() {
            self.check(faces, rust, language, cell);
        }
        self.rows.push(Row { cells: row.clone() });
    }

    /// Reports the functions and types of C that are in no row.
    fn miss_names_of_c(&mut self, faces: &Faces) {
        let named: BTreeSet<_> = self.rows.iter().flat_map(|row| quoted(&row.cells[1])).collect();
        let all = faces.c.functions.iter().chain(faces.c.types.keys());
        let missing = all.filter(|name| !named.contains(name.as_str()));
        let missing: Vec<_> = missing.map(|name| format!("{name} is in no row")).collect();
        self.faults.extend(missing);
    }
}

const LANGUAGES: [&str; 2] = ["C", "C++"];

/// Returns `true` if the name exists. C++ may use C's names.
fn has(faces: &Faces, language: usize, name: &str) -> bool {
    if language == 0 || is_c(name) { faces.c.has(name) } else { faces.cpp.has(name) }
}

fn is_c(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("percid_")
}

/// Returns the names in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Converts `ActiveMask` to the form of C: `active_mask`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut before = 'A';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
        before = c;
    }
    snake
}
