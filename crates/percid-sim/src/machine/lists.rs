//! Irregular topologies: lists of the CPUs of each core, cache, node and socket.

use crate::cpu_list;
use crate::topology::{Cpu, Place, Topology};

/// An error: the field, the index of the entry if it concerns one, and the expected contents.
pub(super) type Fault = (&'static str, Option<usize>, String);

/// Fields of a file that contain lists.
pub(super) const FIELDS: [&str; 4] =
    ["cpus_of_cores", "cpus_of_l3s", "cpus_of_nodes", "cpus_of_sockets"];

const CORES: &str = FIELDS[0];
const L3S: &str = FIELDS[1];
const NODES: &str = FIELDS[2];
const SOCKETS: &str = FIELDS[3];

/// The lists of each of [`FIELDS`]; a list's index is the number of its core, cache, node or
/// socket.
pub(super) type Lists = [Vec<String>; 4];

/// Returns the topology that these lists describe.
pub(super) fn topology(lists: &Lists, most_cpus: u64) -> Result<Topology, Fault> {
    let mut parsed = FIELDS.iter().zip(lists).map(|(field, lists)| ranges(field, lists, most_cpus));
    let mut next = || parsed.next().expect("as many as fields");
    let cores = next()?;
    let cpus = cores.iter().flatten().map(|cpu| cpu + 1).max().unwrap_or(0);
    if cpus == 0 {
        return Err((CORES, None, "expected at least one core".to_owned()));
    }
    let number = |field, lists: &[Vec<Cpu>]| numbers(field, lists, cpus);
    let core = number(CORES, &cores)?;
    let [l3, node, socket] = [next()?, next()?, next()?];
    let [l3, node, socket] = [number(L3S, &l3)?, number(NODES, &node)?, number(SOCKETS, &socket)?];
    nested(CORES, &core, "behind one cache", &l3)?;
    nested(L3S, &l3, "in one socket", &socket)?;
    let place =
        |cpu: usize| Place { core: core[cpu], l3: l3[cpu], node: node[cpu], socket: socket[cpu] };
    Ok(Topology::new((0..cpus as usize).map(place).collect()))
}

/// Returns the CPUs of each entry.
fn ranges(field: &'static str, lists: &[String], most_cpus: u64) -> Result<Vec<Vec<Cpu>>, Fault> {
    let entry = |(at, text): (usize, &String)| {
        let expected = |what: String| (field, Some(at), what);
        let ranges = cpu_list::parse(text)
            .filter(|ranges| !ranges.is_empty())
            .ok_or_else(|| expected(format!("expected CPUs such as \"0-3,8\", found {text:?}")))?;
        if ranges.iter().any(|range| u64::from(*range.end()) >= most_cpus) {
            let last = most_cpus - 1;
            return Err(expected(format!("expected CPUs from 0 to {last}, found {text:?}")));
        }
        Ok(ranges.into_iter().flatten().collect())
    };
    lists.iter().enumerate().map(entry).collect()
}

/// Returns, for each CPU, the index of its entry.
fn numbers(field: &'static str, lists: &[Vec<Cpu>], cpus: u32) -> Result<Vec<u32>, Fault> {
    let mut numbers = vec![None; cpus as usize];
    for (at, list) in lists.iter().enumerate() {
        for &cpu in list {
            let number = numbers.get_mut(cpu as usize).ok_or_else(|| {
                (field, Some(at), format!("CPU {cpu} is in none of the entries of {CORES}"))
            })?;
            if let Some(other) = number.replace(at as u32) {
                let expected = format!("CPU {cpu} is in two places: entries {other} and {at}");
                return Err((field, Some(at), expected));
            }
        }
    }
    let number = |(cpu, number): (usize, Option<u32>)| {
        number.ok_or_else(|| (field, None, format!("CPU {cpu} is in none of the entries")))
    };
    numbers.into_iter().enumerate().map(number).collect()
}

/// Checks that each smaller unit lies within one larger unit.
fn nested(field: &'static str, small: &[u32], within: &str, large: &[u32]) -> Result<(), Fault> {
    let mut first_of = vec![None; small.len()];
    for (cpu, &number) in small.iter().enumerate() {
        let first = *first_of[number as usize].get_or_insert(cpu);
        if large[first] != large[cpu] {
            let expected = format!("expected CPUs {first} and {cpu} {within}");
            return Err((field, Some(number as usize), expected));
        }
    }
    Ok(())
}

/// Returns the lists of a topology.
pub(super) fn from_topology(topology: &Topology) -> Lists {
    let numbers: [fn(&Place) -> u32; 4] =
        [|place| place.core, |place| place.l3, |place| place.node, |place| place.socket];
    numbers.map(|number| {
        let mut lists: Vec<Vec<Cpu>> = Vec::new();
        for (cpu, place) in (0..).zip(topology.places()) {
            let at = number(place) as usize;
            if lists.len() <= at {
                lists.resize(at + 1, Vec::new());
            }
            lists[at].push(cpu);
        }
        lists.into_iter().map(cpu_list::write).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(lists: [&[&str]; 4]) -> Lists {
        lists.map(|lists| lists.iter().map(|&list| list.to_owned()).collect())
    }

    #[test]
    fn lists_are_written_as_they_are_read() {
        let irregular = lists([&["0,4", "1,5", "2", "3"], &["0-1,4-5", "2-3"], &["0-5"], &["0-5"]]);
        let topology = topology(&irregular, 8192).expect("a topology");
        assert_eq!((topology.cpus(), topology.cores(), topology.l3s()), (6, 4, 2));
        assert_eq!(topology.place(5), topology.place(1));
        assert_eq!(from_topology(&topology), irregular);
    }

    #[test]
    fn lists_that_contradict_each_other_are_refused() {
        let cases: [([&[&str]; 4], &str); 8] = [
            ([&[], &["0"], &["0"], &["0"]], "cpus_of_cores expected at least one core"),
            ([&["0", ""], &["0"], &["0"], &["0"]], "cpus_of_cores 1 expected CPUs such as"),
            ([&["0", "8192"], &["0"], &["0"], &["0"]], "cpus_of_cores 1 expected CPUs from 0 to"),
            ([&["0", "2"], &["0,2"], &["0,2"], &["0,2"]], "cpus_of_cores CPU 1 is in none"),
            ([&["0", "1"], &["0", "0-1"], &["0-1"], &["0-1"]], "cpus_of_l3s 1 CPU 0 is in two"),
            ([&["0", "1"], &["0-1"], &["0-2"], &["0-1"]], "cpus_of_nodes 0 CPU 2 is in none"),
            ([&["0-1"], &["0", "1"], &["0-1"], &["0-1"]], "cpus_of_cores 0 expected CPUs 0 and 1"),
            ([&["0", "1"], &["0-1"], &["0-1"], &["0", "1"]], "cpus_of_l3s 0 expected CPUs 0 and 1"),
        ];
        for (given, expected) in cases {
            let (field, entry, message) = topology(&lists(given), 8192).expect_err("no topology");
            let entry = entry.map(|at| format!("{at} ")).unwrap_or_default();
            let said = format!("{field} {entry}{message}");
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
