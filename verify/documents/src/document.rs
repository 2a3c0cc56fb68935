//! Documents: which there are, and the code blocks and links in them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The checked parts of a document.
#[derive(Debug, Default)]
pub struct Document {
    /// Its path from the project's root.
    pub path: PathBuf,
    /// Its code blocks.
    pub blocks: Vec<Block>,
    /// The texts between backquotes.
    pub spans: Vec<String>,
    /// The targets of its links and pictures.
    pub links: Vec<String>,
    /// The names by which links reach its headings.
    pub anchors: Vec<String>,
}

/// A code block.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The line where it begins, from 1.
    pub line: usize,
    /// The language of a fenced block; empty if none is named, and for indented blocks.
    pub language: String,
    /// The text of the comment `<!-- needs: … -->` above it.
    pub needs: Option<String>,
    /// `true` if the comment `<!-- long -->` stands above it.
    pub is_long: bool,
    /// The text of the block.
    pub text: String,
}

impl Block {
    /// Returns `true` if its lines are commands.
    pub fn is_commands(&self) -> bool {
        ["", "sh", "console"].contains(&self.language.as_str())
    }
}

/// Returns every document of a tree: the root's, those of the book by kind, and the README files.
pub fn all(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let docs = root.join("docs");
    let kinds = inside(&docs)?.filter(|path| path.is_dir());
    for folder in [root.to_path_buf(), docs.clone()].into_iter().chain(kinds) {
        let files = inside(&folder)?.filter(|path| path.is_file());
        found.extend(files.filter(|path| path.extension().is_some_and(|it| it == "md")));
    }
    for folder in ["crates", "examples", "fuzz", "packaging", "verify"] {
        let below = root.join(folder);
        for part in inside(&below)?.chain([below]) {
            found.extend(Some(part.join("README.md")).filter(|path| path.exists()));
        }
    }
    let relative = found.iter().filter_map(|path| path.strip_prefix(root).ok());
    let mut relative: Vec<PathBuf> = relative.map(Path::to_path_buf).collect();
    relative.sort();
    Ok(relative)
}

fn inside(folder: &Path) -> io::Result<impl Iterator<Item = PathBuf> + use<>> {
    Ok(fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path()))
}

impl Document {
    /// Reads a document of the tree at `root`.
    pub fn read(root: &Path, path: &Path) -> io::Result<Document> {
        let text = fs::read_to_string(root.join(path))?;
        Ok(Document { path: path.to_path_buf(), ..Document::parse(&text) })
    }

    /// Parses a text.
    pub fn parse(text: &str) -> Document {
        let mut document = Document::default();
        let (mut needs, mut is_long, mut heading) = (None, false, None::<String>);
        let mut block = None::<Block>;
        let extensions = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
        for (event, place) in Parser::new_ext(text, extensions).into_offset_iter() {
            match event {
                Event::Html(html) | Event::InlineHtml(html) => {
                    needs = needed(&html).or(needs);
                    is_long |= html.trim() == "<!-- long -->";
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let line = 1 + text[..place.start].matches('\n').count();
                    let (language, text) = (language(&kind), String::new());
                    let (needs, is_long) = (needs.take(), std::mem::take(&mut is_long));
                    block = Some(Block { line, language, needs, is_long, text });
                }
                Event::End(TagEnd::CodeBlock) => document.blocks.extend(block.take()),
                Event::Start(Tag::Heading { .. }) => {
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(_)) => {
                    document.anchors.extend(heading.take().map(|heading| anchor(&heading)));
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Text(part) | Event::Code(part) => {
                    if text[place].starts_with('`') {
                        document.spans.push(part.to_string());
                    }
                    if let Some(text) =
                        block.as_mut().map(|block| &mut block.text).or(heading.as_mut())
                    {
                        text.push_str(&part);
                    }
                }
                // A comment applies only to the block that follows it immediately.
                Event::Start(Tag::Paragraph | Tag::List(_) | Tag::Table(_)) => {
                    (needs, is_long) = (None, false);
                }
                _ => {}
            }
        }
        document
    }
}

fn language(kind: &CodeBlockKind<'_>) -> String {
    match kind {
        CodeBlockKind::Indented => String::new(),
        CodeBlockKind::Fenced(info) => {
            let word = info.split([',', ' ']).next();
            word.unwrap_or_default().to_owned()
        }
    }
}

/// Returns the requirement in a comment above commands.
fn needed(html: &str) -> Option<String> {
    let comment = html.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    Some(comment.trim().strip_prefix("needs:")?.trim().to_owned())
}

/// Returns the name by which links reach a heading, as forges and mdBook make it.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    let kept = letters.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_and_indented_blocks_are_found_with_what_they_need() {
        let text = "# A `b`, c\n\n    one\n    two\n\n<!-- long -->\n<!-- needs: root -->\n\n```sh\nthree\n```\n\n\
                    <!-- needs: time -->\n\nText.\n\n```rust\nfour\n```\n";
        let document = Document::parse(text);
        let found = document.blocks.iter().map(|block| {
            let Block { line, language, needs, is_long, text } = block;
            (*line, language.as_str(), needs.as_deref(), *is_long, text.as_str())
        });
        let expected = [
            (3, "", None, false, "one\ntwo\n"),
            (9, "sh", Some("root"), true, "three\n"),
            (17, "rust", None, false, "four\n"),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(document.anchors, ["a-b-c"]);
    }

    #[test]
    fn links_and_pictures_are_found() {
        let document = Document::parse("[a](b.md#c) ![p](d.svg) <https://example.org>");
        assert_eq!(document.links, ["b.md#c", "d.svg", "https://example.org"]);
    }
}
