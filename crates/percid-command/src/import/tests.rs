//! Machines from the output of `lscpu` and hwloc: one with two sockets, each with two caches of two
//! cores of two hardware threads; and a virtual machine with real output.

use crate::import::{self, Imported};
use percid_sim::machine::Machine;
use percid_sim::random::Random;

const TABLE: &str = include_str!("../../tests/fixtures/two-sockets.lscpu");
const JSON: &str = include_str!("../../tests/fixtures/two-sockets.json");
const XML: &str = include_str!("../../tests/fixtures/two-sockets.xml");
const XML_1: &str = include_str!("../../tests/fixtures/two-sockets-version-1.xml");
const VIRTUAL: [&str; 3] = [
    include_str!("../../tests/fixtures/virtual-machine.lscpu"),
    include_str!("../../tests/fixtures/virtual-machine.json"),
    include_str!("../../tests/fixtures/virtual-machine.xml"),
];

fn read(text: &str) -> Imported {
    import::read(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

fn fault(text: &str) -> String {
    let said = import::read(text).expect_err("no machine").to_string();
    assert!(!said.is_empty() && !said.contains('\n'), "{said:?}");
    said
}

/// Parses the file that `percid sim import` would print.
fn as_file(imported: &Imported) -> Machine {
    let text = Machine::places_to_toml("imported", &imported.topology, "epyc-9654");
    Machine::parse(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

#[test]
fn all_programs_describe_one_machine_alike() {
    let imported = read(TABLE);
    let topology = &imported.topology;
    assert_eq!((topology.cpus(), topology.cores(), topology.l3s()), (16, 8, 4));
    assert_eq!((topology.sockets(), topology.nodes()), (2, 2));
    assert_eq!(topology.place(1).core, topology.place(9).core, "hardware threads of a core");
    assert_ne!(topology.place(1).l3, topology.place(2).l3);
    for text in [JSON, XML, XML_1] {
        assert_eq!(read(text).topology.places(), topology.places());
    }
    let distances = read(XML).topology.distances().cloned().expect("a table");
    assert_eq!(distances.nodes, [[10, 21], [21, 10]]);
    let machine = as_file(&read(XML));
    assert_eq!(machine.topology.distances(), Some(&distances));
    assert_eq!((machine.topology.detour(0, 4), machine.topology.detour(0, 1)), (1000, 1000));
    assert_eq!(read(XML).name.as_deref(), Some("Example 4-Core Processor"));
    assert_eq!(as_file(&imported).topology.places(), topology.places());
}

#[test]
fn a_virtual_machine_is_read_as_its_programs_describe_it() {
    for text in VIRTUAL {
        let topology = read(text).topology;
        assert_eq!((topology.cpus(), topology.cores(), topology.l3s()), (2, 2, 1));
    }
}

/// Leaves out the second thread of core 3, and switches CPU 5 off.
#[test]
fn machines_need_not_be_regular_and_offline_cpus_leave_no_gap() {
    let table = TABLE.replace("11,3,0,0,,3,3,3,1\n", "").replace("5,5,1,1,,5,5,5,2", "5,,,,,,,,");
    let imported = read(&table);
    assert_eq!((imported.topology.cpus(), imported.topology.cores()), (14, 8));
    assert_eq!(as_file(&imported).topology.places(), imported.topology.places());
    let regular = as_file(&read(TABLE)).to_toml();
    assert!(regular.contains("sockets = 2") && !regular.contains("cpus_of"), "{regular}");
    assert!(as_file(&imported).to_toml().contains("cpus_of_cores"));
}

#[test]
fn columns_may_come_in_any_order_and_some_may_lack() {
    let imported = read("# socket,CPU,core\n0,1,7\n0,0,7\n1,2,7\n");
    let topology = imported.topology;
    assert_eq!((topology.cpus(), topology.cores(), topology.l3s()), (3, 2, 2));
    assert_eq!(topology.nodes(), 1);
    let older = JSON.replace("\"cpu\": 3,", "\"cpu\": \"3\",").replace("true", "\"yes\"");
    assert_eq!(read(&older), read(JSON));
}

/// Two of four CPUs are in a node, and the file has the distances of that one only.
#[test]
fn cpus_in_no_node_are_one_of_their_own() {
    let imported = read(include_str!("../../tests/fixtures/cpus-in-no-node.xml"));
    let topology = &imported.topology;
    assert_eq!((topology.cpus(), topology.cores(), topology.nodes()), (4, 4, 2));
    assert_eq!((topology.place(0).node, topology.place(1).node), (0, 0));
    assert_eq!((topology.place(2).node, topology.place(3).node), (1, 1));
    assert_eq!((topology.distances(), topology.memory_only()), (None, 0));
    let [cpus, distances] = &imported.remarks[..] else { panic!("{:?}", imported.remarks) };
    assert_eq!(cpus, "CPUs 0-1 are in no NUMA node: they count as one of their own");
    assert!(distances.starts_with("the distances of nodes were left out"), "{distances}");
    assert_eq!(read(XML).remarks, [""; 0], "the control");
    let odd = read(&XML.replace("10 21 21 10", "10 21 9 10"));
    assert_eq!((odd.topology.distances(), odd.topology.nodes()), (None, 2));
    assert!(odd.remarks[0].ends_with("expected nothing nearer to node 1 than itself"), "{odd:?}");
    let another = read(&XML.replace(">0 1 </indexes>", ">0 2 </indexes>"));
    assert!(another.remarks[0].contains("none for some of them"), "{another:?}");
}

/// Two nodes of usual memory, and two of fast memory for the same CPUs, in each kind of file.
#[test]
fn a_second_node_over_the_same_cpus_has_memory_only() {
    let cpus =
        |cpu: u32| format!("<object type=\"PU\" os_index=\"{cpu}\" cpuset=\"{:#x}\"/>", 1 << cpu);
    let node = |node: u32, subtype: &str, set: u32| {
        format!("<object type=\"NUMANode\" os_index=\"{node}\"{subtype} cpuset=\"{set:#x}\"/>")
    };
    let table = "<distances2 type=\"NUMANode\" nbobjs=\"4\" kind=\"5\" indexing=\"os\"><indexes>0 1 2 3</indexes>\
                 <u64values>10 21 13 23 21 10 23 13 13 23 10 23 23 13 23 10</u64values></distances2>";
    let pus = [0, 1, 2, 3].map(cpus).concat();
    let of =
        |nodes: [String; 4]| read(&format!("<topology>{}{pus}{table}</topology>", nodes.concat()));
    let hbm = " subtype=\"HBM\"";
    // Later in the file, earlier, and with smaller sets than the usual memory.
    for nodes in [
        [node(0, "", 3), node(2, "", 3), node(1, "", 12), node(3, "", 12)],
        [node(3, hbm, 12), node(2, hbm, 3), node(1, "", 12), node(0, "", 3)],
        [node(0, " subtype=\"DRAM\"", 3), node(2, hbm, 1), node(3, hbm, 2), node(1, "", 12)],
    ] {
        let imported = of(nodes);
        let topology = &imported.topology;
        let placed: Vec<u32> = (0..4).map(|cpu| topology.place(cpu).node).collect();
        assert_eq!((placed, topology.memory_only()), (vec![0, 0, 1, 1], 2));
        let found = topology.distances().expect("a table");
        assert_eq!((found.nodes[0][0], found.nodes[0][1]), (10, 21));
        assert_eq!(found.nodes[2], [13, 23, 10, 23]);
        let machine = as_file(&imported);
        assert_eq!(machine.topology.memory_only(), 2);
        assert_eq!(machine.topology.distances(), Some(found));
    }
    // If the kernel numbers the fast memory first, the kind of memory decides.
    let swapped = of([node(0, hbm, 3), node(1, hbm, 12), node(2, "", 3), node(3, "", 12)]);
    let found = swapped.topology.distances().expect("a table").nodes.clone();
    assert_eq!((found[0][0], found[0][1]), (10, 23));
}

/// util-linux writes a dash, which is not valid JSON, for a number that an offline CPU does not
/// have.
#[test]
fn a_bare_dash_is_no_number() {
    let dash = include_str!("../../tests/fixtures/bare-dash.json");
    let topology = read(dash).topology;
    assert_eq!((topology.cpus(), topology.cores(), topology.nodes()), (2, 1, 1));
    assert!(fault(&dash.replace("\"cpu\": 0", "\"cpu\": -1")).contains("found \"-1\""));
    let quoted = dash.replace("\"0:0:0:0\"", "\"0:0:0:0\", \"a \\\" - b\": \"-, -\"");
    assert_eq!(read(&quoted), read(dash), "texts keep their dashes");
}

/// The cores of hybrid machines have different caches, which lscpu leaves out.
#[test]
fn rows_without_the_last_caches_are_read() {
    let ragged = include_str!("../../tests/fixtures/ragged.lscpu");
    let topology = read(ragged).topology;
    assert_eq!((topology.cpus(), topology.cores(), topology.l3s(), topology.nodes()), (2, 2, 2, 1));
    let offline = read(&format!("{ragged}2,-,-,-,,-\n3,,,,\n"));
    assert_eq!(offline.topology.places(), topology.places(), "offline CPUs");
    let within = "# CPU,Core,Socket,Node,L1d:L1i:L2:L3,Online\n0,0,0,0,0:0:0:0,Y\n1,1,0,0,1:1:1,Y\n2,,,,:,N\n";
    let topology = read(within).topology;
    assert_eq!((topology.cpus(), topology.l3s(), topology.nodes()), (2, 2, 1));
    assert!(fault(&within.replace("1:1:1,", "1:1:1:1:1,")).contains("found 1:1:1:1:1"));
    assert!(fault("# CPU,Core,Socket,L1d,Node\n0,0,0,0\n").contains("found 4"));
    assert!(fault("# CPU,Core,Socket,Node,,L1d\n0,0,0\n").contains("found 3"));
    assert!(fault(&format!("{ragged}2,2,0,,,2,2,2,2,2\n")).contains("found 10"));
}

/// The sample machines of hwloc and util-linux, or any others. Their source packages contain them:
/// those of hwloc in tests/hwloc/xml, the others as directories for `lscpu --sysroot`.
#[test]
#[ignore = "long: the sample machines of other projects, in the directory PERCID_SAMPLE_MACHINES"]
fn sample_machines_are_read_or_refused_for_what_they_are() {
    let Some(directory) = std::env::var_os("PERCID_SAMPLE_MACHINES") else {
        percid_skips::not_checked("sample machines", "PERCID_SAMPLE_MACHINES names no directory");
        return;
    };
    let (mut read, mut refused) = (0, Vec::new());
    for entry in std::fs::read_dir(directory).expect("the directory") {
        let path = entry.expect("a file").path();
        let bytes = std::fs::read(&path).expect("a file");
        match import::read(&String::from_utf8_lossy(&bytes)) {
            Ok(imported) => {
                let topology = &imported.topology;
                let machine = as_file(&imported).topology;
                assert_eq!(machine.places(), topology.places(), "{}", path.display());
                assert_eq!(machine.memory_only(), topology.memory_only(), "{}", path.display());
                read += 1;
            }
            Err(fault) => refused.push(format!("{}: {fault}", path.display())),
        }
    }
    assert!(read > 0, "{refused:#?}");
    println!("{read} read, {} refused: {refused:#?}", refused.len());
}

/// Nodes are renumbered in the order of their CPUs, and so are rows and columns.
#[test]
fn distances_follow_their_nodes() {
    let node = |node: u32, cpu: u32| {
        let set = 1 << cpu;
        format!(
            "<object type=\"NUMANode\" os_index=\"{node}\" cpuset=\"0x{set:x}\"/>\
             <object type=\"PU\" os_index=\"{cpu}\" cpuset=\"0x{set:x}\"/>"
        )
    };
    // Node 7 has memory and no CPU.
    let table = |kind: u32| {
        format!(
            "<distances2 type=\"NUMANode\" nbobjs=\"3\" kind=\"{kind}\" indexing=\"os\">\
             <indexes>2 5 7</indexes><u64values>10 20 30 21 </u64values>\
             <u64values>11 31 40 41 10</u64values></distances2>"
        )
    };
    let memory = "<object type=\"NUMANode\" os_index=\"7\" cpuset=\"0x0\"/>";
    let nodes = [node(5, 0), node(2, 1)].concat();
    let found = read(&format!("<topology>{nodes}{}</topology>", table(5))).topology;
    assert_eq!(found.distances().expect("a table").nodes, [[11, 21], [20, 10]]);
    let found = read(&format!("<topology>{nodes}{memory}{}</topology>", table(5))).topology;
    assert_eq!((found.nodes(), found.memory_only()), (2, 1));
    let expected = [[11, 21, 31], [20, 10, 30], [41, 40, 10]];
    assert_eq!(found.distances().expect("a table").nodes, expected);
    let bandwidths = read(&format!("<topology>{nodes}{}</topology>", table(9))).topology;
    assert_eq!(bandwidths.distances(), None);
}

/// Sets of more than 32 CPUs have several groups; those without a CPU may be empty.
#[test]
fn sets_of_many_cpus_are_read() {
    let pu =
        |cpu: u32, set: &str| format!("<object type=\"PU\" os_index=\"{cpu}\" cpuset=\"{set}\"/>");
    let core =
        |set: &str, inner: &str| format!("<object type=\"Core\" cpuset=\"{set}\">{inner}</object>");
    let both = [pu(0, "0x1"), pu(64, "0x1,,0x0")].concat();
    let text = format!("<topology>{}{}</topology>", core("0x1,,0x1", &both), pu(33, "0x2,0x0"));
    let topology = read(&text).topology;
    assert_eq!((topology.cpus(), topology.cores()), (3, 2));
    assert_eq!(topology.place(0).core, topology.place(2).core);
}

#[test]
fn what_describes_no_machine_is_answered_with_what_was_expected() {
    let cases = [
        (String::new(), "expected the output of `lscpu -p`"),
        ("Architecture: x86_64\n".to_owned(), "expected the output of `lscpu -p`"),
        ("# CPU,Core\n0,0\n".to_owned(), "line 2: expected a column named socket"),
        (
            "# CPU,Core,Socket\n0,0\n".to_owned(),
            "line 2: expected the 3 columns of the comment above, found 2",
        ),
        ("0,0,0\n".to_owned(), "line 1: expected the 0 columns"),
        (
            "# CPU,Core,Socket\n0,x,0\n".to_owned(),
            "line 2: expected a number in column core, found \"x\"",
        ),
        ("# CPU,Core,Socket\n0,-5,0\n".to_owned(), "expected a number in column core"),
        ("# CPU,Core,Socket\n,0,0\n".to_owned(), "expected a number in column cpu, found none"),
        ("# CPU,Core,Socket\n4,0,0\n4,1,0\n".to_owned(), "expected each CPU once, found 4 twice"),
        ("# CPU,Core,Socket\n".to_owned(), "expected CPUs with their cores, found none"),
        ("{\"cpus\": [".to_owned(), "line 1: expected JSON"),
        ("{\"lscpu\": []}".to_owned(), "this summary does not say where each CPU sits"),
        ("{}".to_owned(), "expected the key `cpus`"),
        ("{\"cpus\": [3]}".to_owned(), "cpus.0: expected an object"),
        ("{\"cpus\": [{\"cpu\": 0}]}".to_owned(), "cpus.0: expected a column named core"),
        (XML.replace("</topology>", ""), "expected XML"),
        ("<html></html>".to_owned(), "expected the element `topology`"),
        (
            XML.replace("os_index=\"8\"", "os_index=\"eight\""),
            "expected a number in os_index, found \"eight\"",
        ),
        (XML.replace("os_index=\"8\"", "os_index=\"9\""), "expected each PU once, found 9 twice"),
        (XML.replace("cpuset=\"0x00000101\"", "cpuset=\"0xf...f\""), "expected a cpuset such as"),
        (XML.replace("10 21 21 10", "10 21 21"), "expected 2 x 2 distances, found 3"),
        (XML.replace("10 21 21 10", "10 21 x 10"), "expected numbers in u64values, found \"x\""),
        (
            "# CPU,Core,Socket,Node\n,,,\n".to_owned(),
            "line 2: expected a number in column cpu, found none: this system does not tell its CPUs apart",
        ),
        ("<topology/>".to_owned(), "expected CPUs with their cores, found none"),
    ];
    for (text, expected) in cases {
        let said = fault(&text);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let line = XML.lines().position(|line| line.contains("os_index=\"8\"")).expect("a line") + 1;
    let said = fault(&XML.replace("os_index=\"8\"", "os_index=\"eight\""));
    assert!(said.starts_with(&format!("line {line}: ")), "{said}");
    let many: String = (0..8193).map(|cpu| format!("{cpu},{cpu},0\n")).collect();
    assert!(fault(&format!("# CPU,Core,Socket\n{many}")).contains("at most 8192 CPUs, found 8193"));
}

/// Texts with random damage are read or refused in one line, and never cause a panic.
#[test]
fn damaged_texts_are_read_or_refused() {
    let mut random = Random::new(20_261_123);
    let (mut read, mut refused) = (0, 0);
    for text in [TABLE, JSON, XML, XML_1] {
        for _ in 0..500 {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = b"0917,:\"<>/{}x \n-"[random.below(16) as usize];
            }
            match import::read(&String::from_utf8_lossy(&bytes)) {
                Ok(imported) => {
                    as_file(&imported);
                    read += 1;
                }
                Err(fault) => {
                    assert!(!fault.to_string().contains('\n'), "{fault}");
                    refused += 1;
                }
            }
        }
    }
    assert!(read > 100 && refused > 500, "{read} read, {refused} refused");
}
