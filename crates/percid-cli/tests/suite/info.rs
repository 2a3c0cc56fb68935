//! `percid info`.

use crate::percid;

use percid::wait::until_enough;
use percid::{bounded, command, json, list};
use serde_json::Value;

#[test]
fn names_every_source_and_a_choice_among_the_available() {
    let document = json("info --json");
    let machine = &document["machine"];
    let sources = list(machine, "sources");
    assert_eq!(
        sources.iter().map(|source| &source["source"]).collect::<Vec<_>>(),
        ["kernel", "table", "atomic"]
    );
    for source in sources {
        assert_eq!(source["available"] == true, source["reason"].is_null(), "{source}");
    }
    let chosen = sources.iter().find(|source| source["source"] == machine["chosen"]["source"]);
    assert!(chosen.is_some_and(|source| source["available"] == true));
    assert!(machine["chosen"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
}

#[test]
fn describes_the_cpus() {
    let document = json("info --json");
    let machine = &document["machine"];
    let cpus = list(machine, "cpus");
    let allowed = cpus.iter().filter(|cpu| cpu["allowed"] == true).count() as u64;
    assert_eq!(machine["allowed_count"], allowed);
    assert!(allowed >= 1);
    for key in [
        "kernel_release",
        "arch",
        "rseq",
        "membarrier",
        "possible_cpus",
        "allowed_cpus",
        "cores",
        "l3s",
        "nodes",
    ] {
        assert!(!machine[key].is_null(), "{key}");
    }
}

#[test]
fn text_names_the_choice() {
    let output = bounded(&mut command("info"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for word in ["kernel", "rseq", "membarrier", "possible", "allowed", "topology", "chosen"] {
        assert!(text.lines().any(|line| line.starts_with(word)), "{word}:\n{text}");
    }
}

/// Nothing is lost in a check of any length. Some counts need time on a busy machine.
#[test]
fn a_check_counts_aborts_and_what_every_source_lost() {
    until_enough("every kind of abort, and a move for every source", |length| {
        let length = length.as_secs_f64();
        let output = bounded(&mut command(&format!("info --check --seconds {length} --json")));
        let document = percid::document(&output);
        let check = &document["check"];
        // The machine was too busy: try a longer check.
        if !check["not_checked"].as_array().expect("a list").is_empty() {
            assert_eq!((output.status.code(), &check["as_promised"]), (Some(3), &Value::Null));
            return None;
        }
        assert_eq!([&check["as_promised"], &check["kernel_as_promised"]], [true, true]);
        assert_eq!(output.status.code(), Some(0));
        let mut counts = Vec::new();
        if check["aborts"]["not_tried"].is_null() {
            for kind in list(&check["aborts"], "kinds") {
                assert_eq!(kind["ignored"], 0, "{kind}");
                counts.push(kind["aborted"].as_u64().expect("a count"));
            }
        }
        let sources = list(&check["stress"], "sources");
        assert!(sources.iter().any(|source| source["chosen"] == true));
        for source in sources {
            assert_eq!(source["lost"], 0, "{source}");
            counts.push(source["added"].as_u64().expect("a count"));
        }
        counts.iter().all(|&count| count > 0).then_some(())
    });
    assert!(json("info --json").get("check").is_none());
}

#[test]
fn obeys_the_override() {
    let output = bounded(command("info --json").env("PERCID_SOURCE", "atomic"));
    assert!(output.status.success());
    assert_eq!(percid::document(&output)["machine"]["chosen"]["source"], "atomic");
}

#[test]
fn machines_have_pages_that_can_be_read() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(browser) = percid_browser::Browser::find(folder) else { return };
    for (name, arguments) in [("info", "info --html"), ("numa-report", "numa report --html")] {
        let file = folder.join(format!("{name}-{}.html", std::process::id()));
        let output = bounded(&mut command(&format!("{arguments} {}", file.display())));
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let html = std::fs::read_to_string(&file).expect("the page is written");
        let _ = std::fs::remove_file(file);
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let shown = line.trim().replace('\'', "&#39;");
            assert!(html.contains(&shown), "{name}: {line:?} is not on the page");
        }
        for (frame, found) in browser.look_at(name, &html) {
            let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
            assert_eq!(found.problems(&marks), [] as [String; 0], "{name} {frame:?}");
        }
    }
}
