//! What hwloc writes: `lstopo --of xml`, of versions 1 to 3.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};

use percid_sim::distances::Distances;

use super::{Fault, Imported};
use crate::placing::{Described, without_gaps};

/// Reads the objects of the tree. Which CPUs an object has stands in its attribute `cpuset`, in all
/// versions; where a NUMA node stands in the tree differs.
pub(super) fn read(text: &str) -> Result<Imported, Fault> {
    // hwloc's files name a document type, which is not looked at.
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|fault| {
        // The character that was found instead may be the end of a line.
        let found = fault.to_string().replace('\n', "\\n").replace('\r', "\\r");
        Fault::in_line(fault.pos().row as usize, format!("expected XML: {found}"))
    })?;
    if document.root_element().tag_name().name() != "topology" {
        return Err(Fault::of_all("expected the element `topology`, as hwloc writes it"));
    }
    let mut cpus = BTreeMap::new();
    for object in objects(&document).filter(|object| object.attribute("type") == Some("PU")) {
        let cpu = number(&object, "os_index")?;
        // Where no cores are told each CPU is one: no core that is told has a number below 0.
        let core = -1 - i64::from(cpu);
        let described = Described { cpu, core, l3: None, socket: None, node: None };
        if cpus.insert(cpu, described).is_some() {
            return Err(fault(&object, format!("expected each PU once, found {cpu} twice")));
        }
    }
    let mut seen = 0;
    let mut nodes = BTreeMap::new();
    for object in objects(&document) {
        let Some(part) = Part::of(&object) else { continue };
        seen += 1;
        if let Part::Node = part {
            nodes.insert(number(&object, "os_index")?, seen);
        }
        for cpu in cpu_set(&object)? {
            // Those that the kernel does not let this program use have no PU.
            if let Some(described) = cpus.get_mut(&cpu) {
                part.note(described, seen);
            }
        }
    }
    let cpus: Vec<Described> = cpus.into_values().collect();
    let model = document.descendants().find(|node| node.attribute("name") == Some("CPUModel"));
    let (mut topology, placing) = without_gaps(&cpus);
    if let Some(table) = latencies(&document) {
        let order: Vec<u32> = placing
            .nodes()
            .iter()
            .filter_map(|node| nodes.iter().find(|(_, seen)| Some(**seen) == *node))
            .map(|(os_index, _)| *os_index)
            .collect();
        let distances = distances(&table, &order)?;
        topology = topology
            .with_distances(distances)
            .map_err(|expected| fault(&table, format!("distances of nodes: {expected}")))?;
    }
    Ok(Imported {
        name: model.and_then(|model| model.attribute("value")).map(|name| name.trim().to_owned()),
        topology,
    })
}

/// The flag of a table of latencies, among those of what it says.
const MEANS_LATENCY: u32 = 4;

/// The table of latencies between nodes, numbered as the kernel does, if there is one.
fn latencies<'a>(document: &'a Document<'_>) -> Option<Node<'a, 'a>> {
    document.descendants().find(|node| {
        let kind = node.attribute("kind").and_then(|kind| kind.parse().ok()).unwrap_or(0);
        node.has_tag_name("distances2")
            && node.attribute("type") == Some("NUMANode")
            && node.attribute("indexing") == Some("os")
            && kind & MEANS_LATENCY != 0
    })
}

/// The rows and columns of these nodes, in this order.
fn distances(table: &Node<'_, '_>, order: &[u32]) -> Result<Distances, Fault> {
    let [indexes, values] = ["indexes", "u64values"].map(|name| numbers(table, name));
    let (indexes, values) = (indexes?, values?);
    if values.len() != indexes.len() * indexes.len() {
        let (nodes, found) = (indexes.len(), values.len());
        let expected = format!("expected {nodes} x {nodes} distances, found {found}");
        return Err(fault(table, expected));
    }
    let place = |node: &u32| {
        let found = indexes.iter().position(|index| index == node);
        found.ok_or_else(|| fault(table, format!("expected distances of node {node}, found none")))
    };
    let places = order.iter().map(place).collect::<Result<Vec<usize>, Fault>>()?;
    let row = |from: &usize| places.iter().map(|to| values[from * indexes.len() + to]).collect();
    let origin = "as hwloc read it from the firmware's table".to_owned();
    Ok(Distances { nodes: places.iter().map(row).collect(), origin })
}

/// The numbers in elements of this name; a long table is in several.
fn numbers(table: &Node<'_, '_>, name: &str) -> Result<Vec<u32>, Fault> {
    let elements = table.children().filter(|child| child.has_tag_name(name));
    let words = elements.filter_map(|element| element.text()).flat_map(str::split_whitespace);
    words
        .map(|word| {
            let expected = || fault(table, format!("expected numbers in {name}, found {word:?}"));
            word.parse().map_err(|_| expected())
        })
        .collect()
}

fn objects<'a>(document: &'a Document<'_>) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_tag_name("object"))
}

/// What a CPU is part of.
#[derive(Clone, Copy)]
enum Part {
    Core,
    L3,
    Socket,
    Node,
}

impl Part {
    fn of(object: &Node<'_, '_>) -> Option<Part> {
        match object.attribute("type")? {
            "Core" => Some(Part::Core),
            "L3Cache" => Some(Part::L3),
            // Version 1 calls all caches by one name, and packages sockets in its oldest files.
            "Cache" if object.attribute("depth") == Some("3") => Some(Part::L3),
            "Package" | "Socket" => Some(Part::Socket),
            "NUMANode" => Some(Part::Node),
            _ => None,
        }
    }

    fn note(self, cpu: &mut Described, number: i64) {
        match self {
            Part::Core => cpu.core = number,
            Part::L3 => cpu.l3 = Some(number),
            Part::Socket => cpu.socket = Some(number),
            Part::Node => cpu.node = Some(number),
        }
    }
}

fn fault(node: &Node<'_, '_>, expected: impl Into<String>) -> Fault {
    let at = node.document().text_pos_at(node.range().start);
    Fault::in_line(at.row as usize, expected)
}

fn number(object: &Node<'_, '_>, name: &str) -> Result<u32, Fault> {
    let text = object.attribute(name).unwrap_or_default();
    text.parse().map_err(|_| fault(object, format!("expected a number in {name}, found {text:?}")))
}

/// The CPUs of an object. A set is written in groups of 32 bits, the last CPUs first:
/// `0x00000001,0x0000ffff`; a group in the middle that is 0 may be empty.
fn cpu_set(object: &Node<'_, '_>) -> Result<Vec<u32>, Fault> {
    let set = object.attribute("cpuset").unwrap_or_default();
    let wrong = || fault(object, format!("expected a cpuset such as 0x0000ffff, found {set:?}"));
    let mut cpus = Vec::new();
    for (at, group) in (0..).zip(set.split(',').rev()) {
        let bits = match group.trim().trim_start_matches("0x") {
            "" if set.contains(',') => 0,
            digits => u32::from_str_radix(digits, 16).map_err(|_| wrong())?,
        };
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| 32 * at + bit));
    }
    Ok(cpus)
}
