//! C and C++ have everything of Rust's public interface, or the list gives the reason.
//!
//! The three interfaces are read from their sources. Names that follow the rule (`Stack::push`,
//! `percid_stack_push`, `stack::push`) are matched automatically; `counterparts.txt` has the
//! others, and the reasons for missing counterparts. The result is a page of the documentation.

mod c;
mod counterparts;
mod cpp;
mod rust;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use c::Header;
use counterparts::{Counterparts, NUMA, Row, SYNC};
use cpp::Wrapper;
use rust::{Crate, Kind, Public};

/// Environment variable to write the page instead of comparing it.
const WRITE: &str = "PERCID_WRITE_PARITY";

/// The interfaces of the three languages.
#[derive(Debug, Clone)]
struct Faces {
    rust: Vec<Public>,
    c: Header,
    cpp: Wrapper,
}

impl Faces {
    fn read() -> Faces {
        static READ: OnceLock<Faces> = OnceLock::new();
        READ.get_or_init(Faces::read_now).clone()
    }

    fn read_now() -> Faces {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let rules = || Crate::read(&here.join("../percid-rules"), Vec::new());
        let library = Crate::read(&here.join("../percid"), vec![rules()]);
        let numa = Crate::read(&here.join("../percid-numa"), vec![rules()]);
        let sync = Crate::read(&here.join("../percid-sync"), Vec::new());
        let rust = [library.public(""), numa.public(NUMA), sync.public(SYNC)].concat();
        let header = |name| std::fs::read_to_string(here.join("include").join(name));
        let [c, inline, cpp] = ["percid.h", "percid_inline.h", "percid.hpp"].map(header);
        let (c, inline, cpp) = (c.expect("percid.h"), inline.expect("inline"), cpp.expect("hpp"));
        Faces { rust, c: Header::read(&c, &inline), cpp: Wrapper::read(&cpp) }
    }
}

#[test]
fn what_rust_offers_c_and_cpp_offer_too_or_it_is_said_why_not() {
    let table = Counterparts::written().table(&Faces::read());
    let faults = table.faults.join("\n");
    assert!(faults.is_empty(), "tests/c_interface/parity/counterparts.txt:\n{faults}");
}

#[test]
fn the_page_of_the_three_faces_is_what_the_sources_say() {
    let table = Counterparts::written().table(&Faces::read());
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/c-interface-parity.md");
    let page = page(&table.rows);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &page).expect("a writable page");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == written,
        "docs/reference/c-interface-parity.md is out of date: run with {WRITE}=1"
    );
}

/// Control: names that are removed from a header, or new in Rust, are reported.
#[test]
fn a_counterpart_that_is_not_there_is_missed() {
    let faults = |faces: &Faces| Counterparts::written().table(faces).faults;
    let mut faces = Faces::read();
    assert!(faces.c.functions.remove("percid_stack_capacity"));
    assert_eq!(faults(&faces), ["Stack::capacity: C has no percid_stack_capacity"]);

    let mut faces = Faces::read();
    let members = faces.c.types.get_mut("percid_cpu").expect("a type");
    assert!(members.remove("node"));
    let missing = "percid_cpu.node or percid_cpu.node_ns or percid_cpu_node";
    let expected = ["C", "C++"].map(|of| format!("machine::Cpu.node: {of} has no {missing}"));
    assert_eq!(faults(&faces), expected);

    let mut faces = Faces::read();
    assert!(faces.c.functions.insert("percid_stack_shuffle".to_owned()));
    assert_eq!(faults(&faces), ["percid_stack_shuffle is in no row"]);

    let mut faces = Faces::read();
    let stack = faces.rust.iter_mut().find(|item| item.path == "Stack").expect("a stack");
    let Kind::Type { methods, .. } = &mut stack.kind else { panic!("a type") };
    methods.push("shuffle".to_owned());
    let expected = ["C has no percid_stack_shuffle", "C++ has no stack::shuffle"];
    assert_eq!(faults(&faces), expected.map(|fault| format!("Stack::shuffle: {fault}")));

    let mut faces = Faces::read();
    faces.cpp.remove("stack::push");
    assert_eq!(faults(&faces), ["Stack::push: C++ has no stack::push"]);
}

/// Known public names, to detect a reader that overlooks some.
#[test]
fn the_faces_are_read() {
    let faces = Faces::read();
    let paths: BTreeSet<_> = faces.rust.iter().map(|item| item.path.as_str()).collect();
    for path in ["Counter", "init", "Source", "id::Generation", "machine::read", "pool::RawPool"] {
        assert!(paths.contains(path), "{path}");
    }
    for path in ["id::Source", "histogram::Histogram", "testing", "id::Fence", "testing::steal"] {
        assert!(!paths.contains(path), "{path}");
    }
    let counter = faces.rust.iter().find(|item| item.path == "Counter").expect("a counter");
    let Kind::Type { methods, .. } = &counter.kind else { panic!("a type") };
    let expected =
        ["add", "increment", "new", "per_id", "shared", "sum", "swap", "take", "with_source"];
    assert_eq!(*methods, expected);
    for name in ["percid_counter", "percid_counter_add", "PERCID_SOURCE_TABLE", "percid_event.id"] {
        assert!(faces.c.has(name), "{name}");
    }
    assert!(!faces.c.has("percid_event.ids") && !faces.c.has("percid_counter_add_"));
    for name in ["init", "source::table", "counter::add", "local::with", "pool::make"] {
        assert!(faces.cpp.has(name), "{name}");
    }
    assert!(!faces.cpp.has("detail::check_") && !faces.cpp.has("stack::stack_"));
}

/// Functions that concern the whole process have no type; and an ID is a number.
const WITHOUT_TYPE: [&str; 11] = [
    "percid_init",
    "percid_version",
    "percid_reason",
    "percid_current_id",
    "percid_compact_ids",
    "percid_set_id_limit",
    "percid_id_memory",
    "percid_fence_light",
    "percid_fence_all",
    "percid_fence_cpu",
    "percid_fence_is_asymmetric",
];

#[test]
fn functions_of_c_are_named_by_the_type_that_they_work_on() {
    let c = Faces::read().c;
    let is_of_a_type = |name: &str| {
        let of = |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.starts_with('_'));
        c.types.keys().any(|known| of(known))
    };
    let names = c.functions.iter().filter(|name| !WITHOUT_TYPE.contains(&name.as_str()));
    let others: Vec<_> = names.filter(|name| !is_of_a_type(name)).collect();
    assert!(others.is_empty(), "neither percid_<type>_<verb> nor of the whole process: {others:?}");
}

fn page(rows: &[Row]) -> String {
    let mut page = include_str!("page.md").to_owned();
    for row in rows {
        let [rust, c, cpp] = &row.cells;
        page += &format!("| {rust} | {c} | {cpp} |\n");
    }
    page
}
