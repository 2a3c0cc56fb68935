//! Links: whether what they lead to exists.

use std::path::Path;

use crate::document::Document;

/// Returns the faults in the links of a document of the tree at `root`. Links to other sites are
/// not followed. Links to Rust items are checked by rustdoc.
pub fn faults(root: &Path, document: &Document) -> Vec<String> {
    let is_item =
        |link: &str| link.chars().all(|letter| letter.is_alphanumeric() || ":_".contains(letter));
    let local = document.links.iter().filter(|link| !link.contains("://") && !is_item(link));
    let faults = local.filter_map(|link| fault(root, document, link));
    faults.map(|fault| format!("{}: {fault}", document.path.display())).collect()
}

fn fault(root: &Path, document: &Document, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = document.path.parent().unwrap_or(Path::new(""));
    let target = folder.join(path);
    if path.is_empty() {
        return missing(link, anchor, &document.anchors);
    }
    if !root.join(&target).exists() {
        return Some(format!("{link}: there is no such file"));
    }
    if anchor.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let target = Document::read(root, &target).unwrap_or_default();
    missing(link, anchor, &target.anchors)
}

fn missing(link: &str, anchor: &str, anchors: &[String]) -> Option<String> {
    let reached = anchors.iter().any(|one| one == anchor);
    (!reached).then(|| format!("{link}: there is no such heading"))
}
