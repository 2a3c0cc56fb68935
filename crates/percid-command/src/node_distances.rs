//! The firmware's table of distances between NUMA nodes, from the kernel.

use std::fs;
use std::path::Path;

use percid_sim::distances::Distances;

/// The kernel's folder of nodes.
pub(crate) const NODES: &str = "/sys/devices/system/node";

/// Reads the distances between these nodes, in this order; `None` if the kernel does not report
/// them, or there are fewer than two nodes.
pub(crate) fn read(folder: &Path, nodes: &[Option<i64>]) -> Option<Distances> {
    let nodes: Vec<i64> = nodes.iter().copied().collect::<Option<_>>()?;
    if nodes.len() < 2 {
        return None;
    }
    // A file has a column for each existing node, including those that have no CPU.
    let columns = there_are(folder)?;
    let places: Vec<usize> = nodes
        .iter()
        .map(|node| columns.iter().position(|column| column == node))
        .collect::<Option<_>>()?;
    let row = |node: &i64| {
        let text = fs::read_to_string(folder.join(format!("node{node}/distance"))).ok()?;
        let distances: Vec<u32> =
            text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        places.iter().map(|&place| distances.get(place).copied()).collect::<Option<Vec<u32>>>()
    };
    let rows = nodes.iter().map(row).collect::<Option<_>>()?;
    Some(Distances { nodes: rows, origin: "the kernel, from the firmware's table".to_owned() })
}

/// Returns the numbers of all nodes, ascending.
fn there_are(folder: &Path) -> Option<Vec<i64>> {
    let names = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix("node")?.parse().ok();
    let mut nodes: Vec<i64> = names.filter_map(number).collect();
    nodes.sort_unstable();
    Some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_those_of_the_nodes_in_their_order() {
        let folder = std::env::temp_dir().join(format!("percid-nodes-{}", std::process::id()));
        for (node, text) in [(2, "10 20 30\n"), (5, "21 11 31\n"), (10, "40 41 10\n")] {
            let place = folder.join(format!("node{node}"));
            fs::create_dir_all(&place).expect("a folder");
            fs::write(place.join("distance"), text).expect("written");
        }
        fs::write(folder.join("online"), "2,5,10\n").expect("written");
        let found = |nodes: &[Option<i64>]| read(&folder, nodes).map(|distances| distances.nodes);
        assert_eq!(found(&[Some(5), Some(2)]), Some(vec![vec![11, 21], vec![20, 10]]));
        assert_eq!(found(&[Some(2), Some(10)]), Some(vec![vec![10, 30], vec![40, 10]]));
        assert_eq!(found(&[Some(2)]), None, "there is no other node");
        assert_eq!(found(&[Some(2), None]), None);
        assert_eq!(found(&[Some(2), Some(3)]), None, "a node that there is not");
        fs::write(folder.join("node5/distance"), "21\n").expect("written");
        assert_eq!(found(&[Some(5), Some(2)]), None, "a row that is too short");
        fs::remove_dir_all(&folder).expect("removed");
    }
}
