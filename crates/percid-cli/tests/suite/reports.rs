//! Reports of commands whose other tests do not write one: they open with a verdict, and can be read.

use std::path::Path;
use std::process;

use crate::percid::page::{check_layout, check_results, look_at, report};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn thread_hashes_have_reports() {
    for (name, arguments, charts) in [
        ("thread-hash", "--threads 8,34,64", 2),
        ("thread-hash-ranges", "--threads 8,34 --range 4350-4357 --range 1-128", 2),
        ("thread-hash-find", "--find iter0/8-thread", 1),
    ] {
        let html = report(name, &format!("sim thread-hash {arguments} --html"));
        look_at(folder(), name, &html, charts);
    }
}

/// The charts depend on the kernel and on other load.
#[test]
fn commands_about_this_machine_have_reports() {
    let check = format!("numa check-kernel --pid {} --seconds 0.2 --html", process::id());
    for (name, command_line) in [
        ("kernel-ids", "kernel-ids --html"),
        ("numa-demo", "numa demo --pairs 1 --seconds 0.2 --threads 2 --memory 4M --html"),
        ("check-kernel", check.as_str()),
    ] {
        let html = report(name, command_line);
        assert!(html.contains("<summary><h2>All that was found</h2>"), "{name}");
        check_layout(folder(), name, &html);
    }
}

#[test]
fn a_published_part_has_a_report() {
    let html = report("published-hash", "sim published hash --html");
    check_results(&html);
    look_at(folder(), "published-hash", &html, 1);
}
