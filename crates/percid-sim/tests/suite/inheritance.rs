//! Machines that inherit from another one, and give only the differences.

use std::fs;
use std::path::{Path, PathBuf};

use percid_sim::machine::Machine;

/// Creates a folder with these files and returns its path.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("inheritance-{name}"));
    for (file, text) in files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    folder
}

fn fault(folder: &Path, file: &str) -> String {
    Machine::read(&folder.join(file)).expect_err("this is no machine").to_string()
}

const MINE: &str = "base = \"../site.toml\"\nname = \"mine\"\n[topology]\nsockets = 1\n";
const SITE: &str =
    "base = \"epyc-9654\"\nname = \"site\"\n[costs.hot_ns]\nvalue = 250\norigin = \"measured\"\n";

#[test]
fn a_file_has_what_its_bases_have_but_for_what_it_gives() {
    let folder = folder("chain", &[("site.toml", SITE), ("racks/mine.toml", MINE)]);
    let mine = Machine::read(&folder.join("racks/mine.toml")).expect("a machine");
    let epyc = Machine::preset("epyc-9654").expect("a preset");
    assert_eq!((mine.name.as_str(), mine.topology.cpus()), ("mine", 192));
    assert_eq!(mine.topology.l3s(), 12, "what of the topology is not given is the base's");
    assert_eq!(mine.costs.hot_ns.value, 250.0);
    assert_eq!(mine.costs.hot_ns.origin, "assumption: as for site (measured)");
    let own = &mine.costs.cold_ns;
    assert_eq!((own.value, own.fitted), (epyc.costs.cold_ns.value, false));
    assert_eq!(
        own.origin,
        format!(
            "assumption: as for site (assumption: as for {} ({}))",
            epyc.name, epyc.costs.cold_ns.origin
        )
    );
    assert_eq!(mine.kernel.hz.value, epyc.kernel.hz.value);
}

#[test]
fn what_a_file_gives_is_its_own_and_not_an_assumption() {
    let folder = folder("own", &[("site.toml", SITE)]);
    let site = Machine::read(&folder.join("site.toml")).expect("a machine");
    assert_eq!(site.costs.hot_ns.origin, "measured");
    assert!(!site.costs.cold_ns.fitted);
}

#[test]
fn bases_that_go_round_in_a_circle_are_refused() {
    let files = [
        ("self.toml", "base = \"./self.toml\"\nname = \"self\"\n"),
        ("a.toml", "name = \"a\"\nbase = \"sub/b.toml\"\n"),
        ("sub/b.toml", "base = \"../a.toml\"\nname = \"b\"\n"),
    ];
    let folder = folder("circle", &files);
    let own = fault(&folder, "self.toml");
    assert!(own.starts_with("line 1: base: expected a base that is another machine"), "{own}");
    let two = fault(&folder, "a.toml");
    assert!(two.starts_with("line 2: base: ") && two.contains("b.toml: line 1: base: "), "{two}");
    assert!(two.contains("a circle: ") && two.contains("a.toml -> "), "{two}");
    assert!(!two.contains('\n'), "{two}");
}

#[test]
fn bases_that_there_are_not_are_answered_with_those_that_there_are() {
    let files = [
        ("unknown.toml", "name = \"x\"\nbase = \"pdp-11\"\n"),
        ("absent.toml", "base = \"no/such.toml\"\nname = \"x\"\n"),
        ("heir.toml", "base = \"wrong.toml\"\nname = \"x\"\n"),
        ("wrong.toml", "base = \"epyc-9654\"\nname = \"x\"\n[topology]\nsockets = 0\n"),
    ];
    let folder = folder("unknown", &files);
    let unknown = fault(&folder, "unknown.toml");
    let expected =
        "line 2: base: expected one of epyc-9654, cascade-lake, ivy-bridge-ex, or a file";
    assert!(unknown.starts_with(expected) && unknown.contains("pdp-11"), "{unknown}");
    let absent = fault(&folder, "absent.toml");
    assert!(
        absent.starts_with("line 1: base: ") && absent.contains("such.toml: No such"),
        "{absent}"
    );
    let heir = fault(&folder, "heir.toml");
    assert!(heir.contains("wrong.toml: line 4: topology.sockets: expected at least 1"), "{heir}");
    let nowhere = Machine::parse(MINE).expect_err("a text lies nowhere").to_string();
    assert!(nowhere.contains("line 1: base: ") && nowhere.contains("in no file"), "{nowhere}");
    assert!(fault(&folder, "nothing.toml").starts_with("No such file"));
}

#[test]
fn what_neither_has_is_named() {
    let text = |head: &str| format!("name = \"x\"\n{head}");
    let fault = |head: &str| Machine::parse(&text(head)).expect_err("no machine").to_string();
    assert_eq!(
        fault("[topology]\nsockets = 1\n"),
        "line 2: topology.nodes_per_socket: expected here, or a regular `base` that has it"
    );
    assert!(fault("").starts_with("topology.sockets: expected here"), "{}", fault(""));
    let epyc = Machine::preset_text("epyc-9654").expect("a preset");
    let without = epyc.replace("[costs.overlap]\nvalue = 24\norigin", "[costs.hot2]\norigin");
    assert!(Machine::parse(&without).is_err());
    let (before, after) = epyc.split_once("[costs.overlap]").expect("a cost");
    let (_, after) = after.split_once("\n\n").expect("another cost");
    let said = Machine::parse(&format!("{before}{after}")).expect_err("no overlap").to_string();
    assert!(said.ends_with("costs.overlap: expected here, or a `base` that has it"), "{said}");
}

/// Counts of a file do not extend a base's lists, and lists of a file must be complete.
#[test]
fn a_base_may_be_irregular() {
    let lists = "[topology]\ncpus_of_cores = [\"0,3\", \"1\", \"2\"]\ncpus_of_l3s = [\"0-3\"]\ncpus_of_nodes = [\"0-3\"]\ncpus_of_sockets = [\"0-3\"]\n";
    let base = format!("base = \"epyc-9654\"\nname = \"base\"\n{lists}");
    let heir = "base = \"base.toml\"\nname = \"heir\"\n";
    let files = [
        ("base.toml", base.as_str()),
        ("heir.toml", heir),
        ("counts.toml", &format!("{heir}[topology]\nsockets = 2\n")),
        ("both.toml", &format!("{heir}{lists}sockets = 2\n")),
        ("part.toml", &format!("{heir}[topology]\ncpus_of_cores = [\"0\"]\n")),
        ("twice.toml", &format!("{heir}{}", lists.replace("\"1\"", "\"1,0\""))),
    ];
    let folder = folder("irregular", &files);
    let machine = Machine::read(&folder.join("heir.toml")).expect("a machine");
    assert_eq!((machine.topology.cpus(), machine.topology.cores()), (4, 3));
    let said = fault(&folder, "counts.toml");
    assert!(
        said.contains("line 3: topology.nodes_per_socket: expected here, or a regular"),
        "{said}"
    );
    let said = fault(&folder, "both.toml");
    assert!(
        said.starts_with("line 8: topology.sockets: expected either counts or lists"),
        "{said}"
    );
    let said = fault(&folder, "part.toml");
    assert!(said.starts_with("line 3: topology.cpus_of_l3s: expected here"), "{said}");
    let said = fault(&folder, "twice.toml");
    assert!(said.starts_with("line 4: topology.cpus_of_cores.1: CPU 0 is in two places"), "{said}");
}

#[test]
fn distances_are_inherited_with_as_many_nodes_and_checked() {
    let rows = "[[10, 21], [21, 10]]";
    let table = |rows: &str| format!("[distances]\nnodes = {rows}\norigin = \"firmware\"\n");
    let base = format!("base = \"epyc-9654\"\nname = \"base\"\n{}", table(rows));
    let heir = "base = \"base.toml\"\nname = \"heir\"\n";
    let files = [
        ("base.toml", base.as_str()),
        ("heir.toml", &format!("{heir}[topology]\ncores_per_l3 = 4\n")),
        ("one.toml", &format!("{heir}[topology]\nsockets = 1\n")),
        ("short.toml", &format!("{heir}{}", table("[[10, 21]]"))),
        ("narrow.toml", &format!("{heir}{}", table("[[10, 21], [21]]"))),
        ("near.toml", &format!("{heir}{}", table("[[10, 21],\n[9, 10]]"))),
        ("bare.toml", &format!("{heir}[distances]\nnodes = {rows}\n")),
    ];
    let folder = folder("distances", &files);
    let machine = Machine::read(&folder.join("heir.toml")).expect("a machine");
    let inherited = machine.topology.distances().expect("the base's");
    assert_eq!((inherited.nodes.len(), inherited.origin.as_str()), (2, "firmware"));
    assert_eq!(Machine::parse(&machine.to_toml()).as_ref(), Ok(&machine));
    let one = Machine::read(&folder.join("one.toml")).expect("a machine");
    assert_eq!(one.topology.distances(), None, "another number of nodes");
    for (file, expected) in [
        ("short.toml", "line 4: distances.nodes: expected a row for each of the 2 nodes, found 1"),
        ("narrow.toml", "line 4: distances.nodes.1: expected a distance to each of the 2 nodes"),
        ("near.toml", "line 5: distances.nodes.1: expected nothing nearer to node 1 than itself"),
        ("bare.toml", "missing field `origin`"),
    ] {
        let said = fault(&folder, file);
        assert!(said.contains(expected), "{said}");
    }
}
