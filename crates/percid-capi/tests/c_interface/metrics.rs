//! The pages of C programs, read by Prometheus' own tools.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::installation::{only_static, shared};
use crate::toolchain::{Build, Program, WARNINGS, any_compiler, is_installed};

/// Builds the example's server, which requests its own page and prints it.
fn server() -> Program {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/c/metrics.c");
    let options = format!("-std=c11 -O2 {WARNINGS} -pthread");
    Build::new(any_compiler().c, &[source], &options).against(shared()).make()
}

fn page() -> String {
    let server = server();
    let output = server.command().output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns `true` if promtool is installed; otherwise reports it. With `PERCID_PROMETHEUS=require`
/// it must be.
fn has_promtool() -> bool {
    let is_there = is_installed("promtool");
    let is_required = std::env::var_os("PERCID_PROMETHEUS").is_some_and(|wish| wish == "require");
    assert!(is_there || !is_required, "promtool is missing: .ci/install-tools metrics");
    if !is_there {
        percid_skips::not_checked("pages of C programs", "promtool is not installed");
    }
    is_there
}

/// Returns promtool's messages on a page: none if it is valid.
fn promtool(page: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    promtool.stdin.take().expect("piped").write_all(page.as_bytes()).expect("read");
    let output = promtool.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    format!("{}{}", output.status, String::from_utf8_lossy(&said))
}

const GOOD: &str = "exit status: 0";

#[test]
fn promtool_finds_no_fault_with_the_page_of_a_server_in_c() {
    let page = page();
    assert!(page.contains("http_requests_total{method=\"GET\",status=\"200\"} 600\n"), "{page}");
    assert!(page.contains("http_requests_total{method=\"other\",status=\"other\"}"), "{page}");
    if has_promtool() {
        assert_eq!(promtool(&page), GOOD, "{page}");
        // Control: a page that was truncated within a line.
        let half = page.rsplit_once(' ').expect("a value").0;
        assert_ne!(promtool(half), GOOD);
    }
}

/// Labels that would end a line, or begin another sample.
#[test]
fn promtool_reads_hostile_labels_as_they_are() {
    let options = format!("-std=c11 -O2 {WARNINGS}");
    let build = Build::new(any_compiler().c, &["hostile_labels.c"], &options);
    let program = build.against(only_static()).make();
    let output = program.command().output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).expect("text");
    assert_eq!(page.lines().count(), 2 + 6, "{page}");
    if has_promtool() {
        assert_eq!(promtool(&page), GOOD, "{page}");
        // Control: without the escapes it is another page.
        assert_ne!(promtool(&page.replace("\\\"", "\"")), GOOD);
    }
}
