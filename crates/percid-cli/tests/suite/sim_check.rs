//! `percid sim check`, and policies in WebAssembly modules.

use crate::percid;

use percid::{bounded, command, json, list};

#[test]
fn built_in_policies_keep_their_contract_and_the_seeds_are_named() {
    let checked = json("sim check all --runs 50 --seed 7 --json");
    let policies = list(&checked, "policies");
    assert_eq!(policies.len(), percid_sim::policies::ALL.len());
    for policy in policies {
        assert_eq!((&policy["runs"], &policy["finding"]), (&50.into(), &().into()), "{policy}");
    }
    let output = bounded(&mut command("sim check linux-6.6 --runs 50 --seed 7"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "linux-6.4: kept in 50 random schedules, seeds 7 to 56\n");
}

#[cfg(not(feature = "wasm"))]
#[test]
fn a_module_is_refused_where_the_interpreter_is_not_built_in() {
    for arguments in ["sim check x.wasm", "sim run --policy x.wasm"] {
        let output = bounded(&mut command(arguments));
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("--features wasm"), "{said}");
    }
}

#[cfg(feature = "wasm")]
mod modules {
    use std::path::Path;

    use super::*;

    /// A module whose `percid_id(cpu, thread)` returns `cpu / 2`.
    const HALVES: &[u8] = b"\0asm\x01\0\0\0\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f\x03\x02\x01\0\
        \x07\x0d\x01\x09percid_id\0\0\x0a\x09\x01\x07\0\x20\0\x41\x01\x76\x0b";

    /// Writes a file and returns its path.
    fn file(name: &str, bytes: &[u8]) -> String {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("a path in Unicode").to_owned()
    }

    #[test]
    fn a_broken_module_ends_check_with_the_steps_and_run_with_an_error() {
        let path = file("halves.wasm", HALVES);
        let output = bounded(&mut command(&format!("sim check {path}")));
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("in 5 steps of") && said.contains("gets ID 0, which"), "{said}");
        let output = bounded(&mut command(&format!("sim check {path} --json")));
        assert_eq!(output.status.code(), Some(1));
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("a document");
        let finding = &document["policies"][0]["finding"];
        assert_eq!(finding["violation"]["breach"]["rule"], "unique");
        assert_eq!(finding["steps"].as_array().map(Vec::len), Some(5));
        let run = format!("sim run --seeds 1 --policy per-cpu,{path}");
        let output = bounded(&mut command(&run));
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("halves.wasm breaks its contract at"), "{said}");
    }

    #[test]
    fn a_file_that_is_no_module_is_refused() {
        let path = file("text.wasm", b"text");
        for (path, expected) in
            [(&*path, "expected a WebAssembly module"), ("none.wasm", "cannot read the file")]
        {
            let output = bounded(&mut command(&format!("sim check {path}")));
            assert_eq!(output.status.code(), Some(2));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(expected), "{said}");
        }
    }
}
