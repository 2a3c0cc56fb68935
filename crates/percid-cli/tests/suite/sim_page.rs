//! `percid sim page`: the simulator in a browser.

use std::fs;
use std::path::{Path, PathBuf};

use crate::percid;

use percid::{command, json};
use percid_browser::Browser;

const STUB: &[u8] = b"\0asm\x01\0\0\0";

/// The published benchmark on eight CPUs, as fragment and as arguments.
const FRAGMENT: &str = "machine=epyc-9654&workload=intermittent&policies=linux-6.4,percid-table,per-cpu\
                        &seeds=2&seed=7&set.l3s=1&set.cores_per_l3=8&set.threads_per_core=1";
const ARGUMENTS: &str = "sim run --machine epyc-9654 --workload intermittent --policy linux-6.4,percid-table,per-cpu \
                         --seeds 2 --seed 7 --set l3s=1 --set cores_per_l3=8 --set threads_per_core=1 --json";
/// The document once all policies are done, or the error.
const RESULT: &str = "document.body?.dataset.over !== undefined ? document.getElementById('document').textContent \
                      : document.querySelector('#verdict.error')?.textContent ?? null";

/// Stops as soon as there is progress, and returns what the page says then.
const STOPPED: &str = "(() => { \
    const said = document.getElementById('verdict')?.textContent ?? ''; \
    if (said.startsWith('Stopped') || document.body?.dataset.over !== undefined) return said; \
    if (document.getElementById('progress')?.value > 0) document.getElementById('stop').click(); \
    return null; })()";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sim-page-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn the_page_can_be_read_before_anything_is_simulated() {
    let folder = folder("form");
    let module = folder.join("stub.wasm");
    fs::write(&module, STUB).expect("a stub");
    let (out, module) = (folder.join("new/lab"), module.display());
    let written = json(&format!("sim page --out {} --module {module} --json", out.display()));
    let html = fs::read_to_string(out.join("index.html")).expect("the page");
    assert_eq!(written["bytes"], html.len());
    let Some(browser) = Browser::find(&folder) else { return };
    for (frame, found) in browser.look_at("form", &html) {
        assert_eq!(found.layout(), [] as [String; 0], "{frame:?}");
    }
}

#[test]
fn what_is_no_module_is_refused() {
    let folder = folder("refused");
    let other = folder.join("other.wasm");
    fs::write(&other, "text").expect("a file");
    for (name, expected) in
        [("other.wasm", "expected a WebAssembly module"), ("none.wasm", "No such file")]
    {
        let arguments = format!("sim page --out {0} --module {0}/{name}", folder.display());
        let output = command(&arguments).output().expect("percid runs");
        assert!(!output.status.success());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(expected), "{stderr}");
        assert!(!folder.join("index.html").exists());
    }
}

#[test]
#[ignore = "documents: needs PERCID_MODULE, the path of the module"]
fn a_browser_computes_what_the_command_computes() {
    let folder = folder("same");
    let module = std::env::var("PERCID_MODULE").expect("PERCID_MODULE");
    json(&format!("sim page --out {} --module {module} --json", folder.display()));
    let html = fs::read_to_string(folder.join("index.html")).expect("the page");
    assert!(html.len() <= 3_000_000, "{} bytes", html.len());
    let Some(browser) = Browser::find(folder.join("browser")) else { return };

    let computed = browser.result_of("computed", &html, FRAGMENT, RESULT);
    let output = command(ARGUMENTS).output().expect("percid runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    // Not assert_eq, which would print both documents.
    assert!(computed == printed.trim_end(), "{}", &computed[..computed.len().min(200)]);

    let other_seed =
        browser.result_of("other", &html, &FRAGMENT.replace("seed=7", "seed=8"), RESULT);
    assert!(computed != other_seed, "a page that computes nothing would show the same");
    let long = FRAGMENT.replace("seeds=2", "seeds=1000");
    let stopped = browser.result_of("stopped", &html, &long, STOPPED);
    assert_eq!(stopped, "Stopped before a policy was done.");
    let unknown = FRAGMENT.replace("epyc-9654", "abacus");
    let refused = browser.result_of("refused", &html, &unknown, RESULT);
    assert!(refused.starts_with("Cannot open this address"), "{refused}");
    let wrong = FRAGMENT.replace("set.l3s=1", "set.l3s=-1");
    let refused = browser.result_of("wrong", &html, &wrong, RESULT);
    assert!(refused.contains("l3s"), "{refused}");
}
