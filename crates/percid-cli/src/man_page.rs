//! A command's manual as a page for man(1): clap's data, by its own generator, and the texts of
//! `--help`, whose tables keep their lines.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// Returns the file name, such as percid-bench-ops.1 for `percid bench ops`.
pub(crate) fn file_name(command: &Command) -> String {
    format!("{}.1", name(command))
}

/// Returns the page of a built command. It contains no date, so that the same source yields the
/// same page.
pub(crate) fn text(command: &Command) -> String {
    let mut page = Vec::new();
    render(command, &mut page).expect("memory takes all that is written");
    String::from_utf8(page).expect("manuals are UTF-8")
}

fn render(command: &Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let man = Man::new(command.clone().subcommand_value_name("command"));
    title(command).to_writer(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    description(&about(command)).to_writer(page)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    let end = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    sections(&end).to_writer(page)?;
    see_also(command).to_writer(page)
}

/// Returns the title. The generator's own title loses the empty date.
fn title(command: &Command) -> Roff {
    let (name, version) = (name(command).to_uppercase(), env!("CARGO_PKG_VERSION"));
    let mut page = Roff::new();
    page.control("TH", [&name, "1", "\"\"", &format!("percid {version}"), "\"percid\""]);
    page
}

fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

/// Returns the text before the first heading, as paragraphs.
fn description(text: &str) -> Roff {
    let mut page = Roff::new();
    page.control("SH", ["DESCRIPTION"]);
    blocks(&mut page, text, false);
    page
}

/// Returns a section for each heading: a line at the margin that ends in a colon, as `Exit
/// status:`.
fn sections(text: &str) -> Roff {
    let mut page = Roff::new();
    let mut rest = text;
    while let Some((heading, below)) = rest.split_once(":\n") {
        let end = below
            .match_indices("\n\n")
            .map(|(place, _)| place)
            .find(|place| !below[place + 2..].starts_with(' '));
        let (body, after) = below.split_at(end.unwrap_or(below.len()));
        page.control("SH", [heading.to_uppercase().as_str()]);
        let body: Vec<&str> =
            body.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        blocks(&mut page, &body.join("\n"), heading == "Examples");
        rest = after.trim_start_matches('\n');
    }
    page
}

/// Adds paragraphs. Text is filled; columns, and lines to be typed, keep their lines.
fn blocks(page: &mut Roff, text: &str, keep_lines: bool) {
    for (index, paragraph) in text.split("\n\n").enumerate() {
        if index > 0 {
            page.control("PP", []);
        }
        let lines: Vec<&str> = paragraph.lines().collect();
        for block in lines.chunk_by(|one, next| is_indented(one) == is_indented(next)) {
            let kept =
                keep_lines || block.iter().any(|line| line.contains("  ") || is_indented(line));
            if kept {
                page.control("nf", []);
            }
            for line in block {
                page.text([roman(*line)]);
            }
            if kept {
                page.control("fi", []);
            }
        }
    }
}

fn is_indented(line: &str) -> bool {
    line.starts_with(' ')
}

/// Returns references to the pages of the parent commands.
fn see_also(command: &Command) -> Roff {
    let words: Vec<&str> = command.get_bin_name().unwrap_or_default().split(' ').collect();
    let mut page = Roff::new();
    if words.len() > 1 {
        page.control("SH", ["SEE ALSO"]);
    }
    for count in 1..words.len() {
        let end = if count + 1 < words.len() { "(1), " } else { "(1)" };
        page.text([bold(words[..count].join("-")), roman(end)]);
    }
    page
}

#[cfg(test)]
mod tests {
    use std::process::{Command as Program, Stdio};

    use super::*;
    use crate::help::built;

    /// Returns the command and all below it.
    fn all(command: &Command) -> Vec<Command> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command.clone()).chain(below).collect()
    }

    /// Escapes a text as the page does.
    fn escaped(text: &str) -> String {
        text.replace('-', "\\-").replace('\'', "\\*(Aq")
    }

    #[test]
    fn a_page_has_every_subcommand_option_and_word_of_its_manual() {
        for command in all(&built()) {
            let page = text(&command);
            for below in command.get_subcommands() {
                let entry = escaped(&format!("{}(1)", name(below)));
                assert!(page.contains(&entry), "{entry} is missing:\n{page}");
            }
            for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
                let long = option.get_long().map(|long| format!("--{long}"));
                let shown = long.or_else(|| Some(option.get_value_names()?.first()?.to_string()));
                let shown = escaped(&shown.expect("it has a name"));
                assert!(page.contains(&shown), "{shown} is missing:\n{page}");
            }
            let end = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            for line in
                about(&command).lines().chain(end.lines().filter(|line| line.starts_with("  ")))
            {
                let line = escaped(line.strip_prefix("  ").unwrap_or(line).trim());
                assert!(page.contains(&line), "{line:?} is missing:\n{page}");
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_with_examples_and_exit_status() {
        for command in all(&built()) {
            let page = text(&command);
            for section in [
                ".SH NAME",
                ".SH SYNOPSIS",
                ".SH DESCRIPTION",
                ".SH EXAMPLES",
                ".SH \"EXIT STATUS\"",
            ] {
                assert!(page.contains(section), "{}: {section} is missing", name(&command));
            }
        }
    }

    /// Returns the errors of `program` when it reads the page; `None` if it is not installed.
    fn complaints(program: &mut Program, page: &str) -> Option<String> {
        use std::io::Write;
        let pipes = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = match pipes.spawn() {
            Ok(running) => running,
            Err(missing) => {
                let required =
                    std::env::var_os("PERCID_TOOLS").is_some_and(|wish| wish == "require");
                assert!(!required, "{program:?}: {missing}");
                return None;
            }
        };
        running.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("it reads");
        let output = running.wait_with_output().expect("it ends");
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn groff_has_nothing_against_the_pages() {
        let read = |page: &str| {
            let mut man = Program::new("man");
            complaints(
                man.args(["--warnings", "--encoding=UTF-8", "--local-file", "-"])
                    .env("MANWIDTH", "80"),
                page,
            )
        };
        let control = text(&built()).replace(".SH NAME", ".SH NAME\n.nonsense\n\\*[nonsense]");
        match read(&control) {
            None => return percid_skips::not_checked("manual pages by man", "it is not installed"),
            Some(said) => assert!(said.contains("nonsense"), "man does not warn: {said}"),
        }
        for command in all(&built()) {
            let said = read(&text(&command));
            assert_eq!(said.as_deref(), Some(""), "{}", name(&command));
        }
    }
}
