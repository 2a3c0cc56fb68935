//! Tests of the documents themselves, and of documents with faults, which must be detected.
//! `.ci/run documents` checks the commands, since most of them take seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::commands;
use crate::document::{self, Document};
use crate::session::Place;
use crate::{STEPS, link, root};

/// Commands that end are not held to a time; this only ends what hangs.
const LIMIT: Duration = Duration::from_secs(600);

fn documents() -> Vec<Document> {
    let paths = document::all(&root()).expect("the documents");
    paths.iter().map(|path| Document::read(&root(), path).expect("a document")).collect()
}

#[test]
fn every_command_is_run_or_says_what_it_needs() {
    let documents = documents();
    let mut found = 0;
    for document in &documents {
        found += commands(document, STEPS).unwrap_or_else(|fault| panic!("{fault}")).len();
    }
    assert!(
        documents.len() > 10 && found > 20,
        "{found} commands in {} documents",
        documents.len()
    );
}

#[test]
fn every_package_that_is_named_exists() {
    let packages = packages();
    let named = |text: &str| -> Vec<String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let of_cargo = words.windows(2).filter(|pair| text.contains("cargo ") && pair[0] == "-p");
        of_cargo.map(|pair| pair[1].to_owned()).collect()
    };
    let mut found = 0;
    for document in documents() {
        let lines = document.blocks.iter().flat_map(|block| block.text.lines());
        for name in lines.chain(document.spans.iter().map(String::as_str)).flat_map(named) {
            assert!(packages.contains(&name), "{}: -p {name}", document.path.display());
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}

/// Returns the names of the workspace's packages.
fn packages() -> Vec<String> {
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["tree", "--workspace", "--depth", "0", "--prefix", "none", "--offline"]);
    let output = cargo.current_dir(root()).output().expect("cargo starts");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let faults: Vec<_> = documents().iter().flat_map(|it| link::faults(&root(), it)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let summary = Document::read(&root(), Path::new("docs/SUMMARY.md")).expect("the summary");
    let pages = documents().into_iter().map(|document| document.path);
    let pages = pages.filter_map(|path| path.strip_prefix("docs").map(Path::to_path_buf).ok());
    for page in pages.filter(|page| page != Path::new("SUMMARY.md")) {
        let listed = summary.links.iter().any(|link| Path::new(link) == page);
        assert!(listed, "docs/SUMMARY.md leaves out {}", page.display());
    }
}

#[test]
fn links_that_lead_nowhere_are_noticed() {
    let text = "[a](README.md) [b](no.md) [c](README.md#no) [d](#here)\n\n# Here\n";
    let document = Document { path: PathBuf::from("x.md"), ..Document::parse(text) };
    let faults = link::faults(&root(), &document);
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("no.md") && faults[1].contains("README.md#no"), "{faults:?}");
}

#[test]
fn a_command_that_fails_or_does_not_end_is_noticed() {
    let place = Place::empty(&scratch("faults")).expect("a folder");
    let lines = ["true", "cargo rum", "echo said; false", "f() { echo \"$1\"; }", "f here"];
    let endings = place.run(&lines, LIMIT).expect("a shell");
    let statuses: Vec<_> = endings.iter().map(|ending| ending.status).collect();
    assert_eq!(statuses, [Some(0), Some(101), Some(1), Some(0), Some(0)]);
    assert!(endings[2].output.contains("said") && endings[4].output.contains("here"));
    let endless = place.run(&["sleep 600", "true"], Duration::from_millis(100)).expect("a shell");
    assert_eq!(endless.iter().map(|it| it.status).collect::<Vec<_>>(), [None]);
}

/// The documented way to install for C once failed only in a fresh clone.
#[test]
fn commands_run_in_the_root_of_a_clone_with_a_home_of_their_own() {
    let origin = scratch("origin");
    let _ = fs::remove_dir_all(&origin);
    fs::create_dir_all(origin.join("target")).expect("a folder");
    fs::write(origin.join("kept"), "").expect("a file");
    let git = "git init -q . && git add kept && git -c user.name=a -c user.email=a@localhost commit -qm a";
    let status = std::process::Command::new("sh").args(["-c", git]).current_dir(&origin).status();
    assert!(status.expect("git").success());
    fs::write(origin.join("left"), "").expect("a file");
    let place = Place::clone_of(&origin, &scratch("cloned")).expect("a clone");
    let lines = ["test -e kept", "test -e left", "ls ~", "test -d target"];
    let endings = place.run(&lines, LIMIT).expect("a shell");
    let statuses: Vec<_> = endings.iter().map(|ending| ending.status).collect();
    assert_eq!(statuses, [Some(0), Some(1), Some(0), Some(0)]);
    assert_eq!(endings[2].output.trim(), "");
    place.run(&["touch new ~/new", "rm kept"], LIMIT).expect("a shell");
    place.tidy().expect("git");
    let lines = ["test -e new", "test -e kept", "ls ~", "test -d target"];
    let endings = place.run(&lines, LIMIT).expect("a shell");
    let statuses: Vec<_> = endings.iter().map(|ending| ending.status).collect();
    assert_eq!(statuses, [Some(1), Some(0), Some(0), Some(0)]);
    assert_eq!(endings[2].output.trim(), "");
}

fn scratch(name: &str) -> PathBuf {
    root().join("target/tmp").join(name)
}
