//! Parser for the output of hwloc: `lstopo --of xml`, of versions 1 to 3.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};

use percid_sim::distances::Distances;

use super::fault::Fault;
use super::imported::{Imported, remark_on_no_node};
use crate::placing::{Described, without_gaps};

/// Reads the objects of the tree. All versions store the CPUs of an object in its attribute
/// `cpuset`; the position of a NUMA node in the tree differs.
pub(super) fn read(text: &str) -> Result<Imported, Fault> {
    // hwloc's files name a document type, which is ignored.
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|fault| {
        // The unexpected character may be the end of a line.
        let found = fault.to_string().replace('\n', "\\n").replace('\r', "\\r");
        Fault::in_line(fault.pos().row as usize, format!("expected XML: {found}"))
    })?;
    if document.root_element().tag_name().name() != "topology" {
        return Err(Fault::of_all("expected the element `topology`, as hwloc writes it"));
    }
    let mut cpus = BTreeMap::new();
    for object in objects(&document).filter(|object| object.attribute("type") == Some("PU")) {
        let cpu = number(&object, "os_index")?;
        // Without described cores each CPU is a core. No described core has a number below 0.
        let core = -1 - i64::from(cpu);
        let described = Described { cpu, core, l3: None, socket: None, node: None };
        if cpus.insert(cpu, described).is_some() {
            return Err(fault(&object, format!("expected each PU once, found {cpu} twice")));
        }
    }
    let mut nodes = Vec::new();
    for (seen, object) in objects(&document).enumerate() {
        if object.attribute("type") == Some("NUMANode") {
            nodes.push(Memory {
                os_index: number(&object, "os_index")?,
                is_special: object.attribute("subtype").is_some_and(|kind| kind != "DRAM"),
                cpus: cpu_set(&object)?,
            });
        }
        let Some(part) = Part::from_object(&object) else { continue };
        for cpu in cpu_set(&object)? {
            // CPUs that the kernel does not let this program use have no PU.
            if let Some(described) = cpus.get_mut(&cpu) {
                part.note(described, seen as i64);
            }
        }
    }
    nodes.sort_by_key(|node| (node.is_special, node.os_index));
    for node in &nodes {
        for cpu in &node.cpus {
            if let Some(described) = cpus.get_mut(cpu) {
                described.node.get_or_insert(node.os_index.into());
            }
        }
    }
    let cpus: Vec<Described> = cpus.into_values().collect();
    let model = document.descendants().find(|node| node.attribute("name") == Some("CPUModel"));
    let (topology, placing) = without_gaps(&cpus);
    let owners = placing.nodes();
    let mut without_cpus: Vec<u32> = nodes.iter().map(|node| node.os_index).collect();
    without_cpus.retain(|&node| !owners.contains(&Some(node.into())));
    without_cpus.sort_unstable();
    without_cpus.dedup();
    if without_cpus.len() > MOST_MEMORY_ONLY {
        let found = without_cpus.len();
        let expected =
            format!("expected at most {MOST_MEMORY_ONLY} nodes without CPUs, found {found}");
        return Err(Fault::of_all(expected));
    }
    let mut topology = topology.with_memory_only(without_cpus.len() as u32);
    let mut remarks: Vec<String> = remark_on_no_node(&cpus).into_iter().collect();
    if let Some(table) = latencies(&document) {
        let with_cpus = owners.iter().map(|node| node.and_then(|node| u32::try_from(node).ok()));
        let order: Option<Vec<u32>> = with_cpus.chain(without_cpus.into_iter().map(Some)).collect();
        match order.map(|order| distances(&table, &order)).transpose()?.flatten() {
            Some(distances) => match topology.clone().with_distances(distances) {
                Ok(distant) => topology = distant,
                Err(expected) => remarks.push(format!(
                    "the distances of nodes were left out, because the firmware's table contradicts itself: {expected}"
                )),
            },
            None => remarks.push(
                "the distances of nodes were left out, because the file has none for some of them"
                    .into(),
            ),
        }
    }
    Ok(Imported {
        name: model.and_then(|model| model.attribute("value")).map(|name| name.trim().to_owned()),
        topology,
        remarks,
    })
}

/// A node, and the CPUs that are near it. Several nodes may be near the same CPUs, such as fast or
/// slow memory beside the usual one. The kernel lets CPUs belong to one of them: the usual memory,
/// which it numbers first.
struct Memory {
    os_index: u32,
    /// `true` if it is another kind of memory than the usual one.
    is_special: bool,
    cpus: Vec<u32>,
}

/// Maximum number of simulated nodes with memory and without CPUs.
const MOST_MEMORY_ONLY: usize = 1024;

/// The flag of a latency table, among those of its attribute `kind`.
const MEANS_LATENCY: u32 = 4;

/// Returns the table of latencies between nodes, with the kernel's numbers, if there is one.
fn latencies<'a>(document: &'a Document<'_>) -> Option<Node<'a, 'a>> {
    document.descendants().find(|node| {
        let kind = node.attribute("kind").and_then(|kind| kind.parse().ok()).unwrap_or(0);
        node.has_tag_name("distances2")
            && node.attribute("type") == Some("NUMANode")
            && node.attribute("indexing") == Some("os")
            && kind & MEANS_LATENCY != 0
    })
}

/// Returns the rows and columns of these nodes, in this order; `None` if the table lacks one of
/// them.
fn distances(table: &Node<'_, '_>, order: &[u32]) -> Result<Option<Distances>, Fault> {
    let [indexes, values] = ["indexes", "u64values"].map(|name| numbers(table, name));
    let (indexes, values) = (indexes?, values?);
    if values.len() != indexes.len() * indexes.len() {
        let (nodes, found) = (indexes.len(), values.len());
        let expected = format!("expected {nodes} x {nodes} distances, found {found}");
        return Err(fault(table, expected));
    }
    let place = |node: &u32| indexes.iter().position(|index| index == node);
    let places: Option<Vec<usize>> = order.iter().map(place).collect();
    let Some(places) = places else { return Ok(None) };
    let row = |from: &usize| places.iter().map(|to| values[from * indexes.len() + to]).collect();
    let origin = "as hwloc read it from the firmware's table".to_owned();
    Ok(Some(Distances { nodes: places.iter().map(row).collect(), origin }))
}

/// Returns the numbers in elements of this name; a long table is split into several.
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

/// A part of the machine that contains the CPU, except its node.
#[derive(Clone, Copy)]
enum Part {
    Core,
    L3,
    Socket,
}

impl Part {
    fn from_object(object: &Node<'_, '_>) -> Option<Part> {
        match object.attribute("type")? {
            "Core" => Some(Part::Core),
            "L3Cache" => Some(Part::L3),
            // Version 1 uses one name for all caches, and its oldest files call packages sockets.
            "Cache" if object.attribute("depth") == Some("3") => Some(Part::L3),
            "Package" | "Socket" => Some(Part::Socket),
            _ => None,
        }
    }

    fn note(self, cpu: &mut Described, number: i64) {
        match self {
            Part::Core => cpu.core = number,
            Part::L3 => cpu.l3 = Some(number),
            Part::Socket => cpu.socket = Some(number),
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

/// Parses the CPUs of an object. A set is written in groups of 32 bits, the last CPUs first:
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
