//! Commands: the lines of code blocks, and how each is checked.

use crate::document::Document;

/// A line that a document tells its reader to type.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// The line number in the document.
    pub line: usize,
    /// The command, without the comment behind it, for the shell. It may be several lines.
    pub text: String,
    /// The method of its check.
    pub check: Check,
    /// `true` if that takes minutes.
    pub is_long: bool,
}

/// The method of checking a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Check {
    /// It runs, and must succeed.
    Run,
    /// A step of `.ci/run` runs it.
    Step,
    /// It needs something that a check does not have. The program must accept its options.
    Help(String),
}

/// The beginnings of commands that a newcomer would type; in a block that is no list of commands,
/// this is a fault.
const PROGRAMS: [&str; 5] = ["cargo ", "percid ", "target/release/", "target/debug/", ".ci/"];

/// Returns the commands of a document, in their order.
///
/// # Errors
///
/// Returns a line that looks like a command in a block that is not a list of commands, so that it
/// would not be run.
pub fn commands(document: &Document, steps: &str) -> Result<Vec<Command>, String> {
    let mut found = Vec::new();
    for block in &document.blocks {
        if !block.is_commands() {
            if let Some(line) = stray(&block.language, &block.text) {
                let place = format!("{}:{}", document.path.display(), block.line);
                return Err(format!(
                    "{place}: a command in a block of {:?}: {line}",
                    block.language
                ));
            }
            continue;
        }
        // A fence takes a line.
        let first = block.line;
        for (number, text) in joined(&block.text) {
            let check = match &block.needs {
                _ if is_step(&text, steps) => Check::Step,
                Some(needs) => Check::Help(needs.clone()),
                None => Check::Run,
            };
            found.push(Command { line: first + number, text, check, is_long: block.is_long });
        }
    }
    Ok(found)
}

/// Returns `true` if the steps contain the command, or if it is one of them.
fn is_step(command: &str, steps: &str) -> bool {
    let function = command.strip_prefix(".ci/run ").map(|step| format!("run_{step}() {{"));
    steps.lines().any(|line| {
        line.trim() == command || function.as_ref().is_some_and(|name| line.starts_with(name))
    })
}

/// Returns a line of a block of text that a reader would take for a command. Programs in other
/// languages may contain such words.
fn stray<'t>(language: &str, text: &'t str) -> Option<&'t str> {
    let is_command = |line: &&str| PROGRAMS.iter().any(|program| line.starts_with(program));
    text.lines().map(str::trim).find(is_command).filter(|_| language == "text")
}

/// Returns the lines, with those joined that end in a backslash, without comments and empty lines.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line).trim_end();
        match found.last_mut().filter(|_| goes_on) {
            Some((_, command)) => *command = format!("{command}\n{line}"),
            None if line.trim().is_empty() => continue,
            None => found.push((number, line.trim_start().to_owned())),
        }
        goes_on = line.ends_with('\\');
    }
    found
}

/// Returns a line without its comment, which begins with ` #` outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (place, letter) in line.char_indices() {
        match quote {
            Some(open) if open == letter => quote = None,
            Some(_) => {}
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if letter == '#' && before.is_whitespace() => return &line[..place],
            None => {}
        }
        before = letter;
    }
    line
}

/// Returns the command that shows whether a program accepts a command's options: the same with
/// `--help` after them, and without the processing of its output. `None` for programs that are not
/// percid's.
pub fn with_help(command: &str) -> Option<String> {
    let one_line = command.replace("\\\n", " ");
    // Options behind a comment would belong to it, and the command would be run.
    let line = one_line.split(" #").next().unwrap_or_default();
    let line = line.split([';', '|', '&', '>']).next().unwrap_or_default().trim();
    // Variables, or a program that starts another one, may stand before it.
    let starts = line.split(' ').scan(0, |end, word| {
        let start = *end;
        *end += word.len() + 1;
        Some(start)
    });
    let is_own = |start: &usize| PROGRAMS.iter().any(|program| line[*start..].starts_with(program));
    let start = starts.into_iter().find(is_own)?;
    let (before, line) = line.split_at(start);
    if line.starts_with(".ci/install-tools") {
        return None;
    }
    // Behind the first `--` are the options of the program that Cargo runs, behind another one a
    // command that this program runs.
    let through_cargo = usize::from(line.starts_with("cargo run "));
    let parts: Vec<&str> = line.split(" -- ").collect();
    if through_cargo == 1 && parts.len() == 1 {
        return Some(format!("{before}{line} -- --help"));
    }
    let own = parts[..=through_cargo.min(parts.len() - 1)].join(" -- ");
    Some(format!("{before}{own} --help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Vec<(usize, String, Check)> {
        let document = Document::parse(text);
        let found = commands(&document, "run_package() {\n    cargo test --workspace\n}\n")
            .expect("no fault");
        found.into_iter().map(|command| (command.line, command.text, command.check)).collect()
    }

    #[test]
    fn lines_are_run_or_need_something_or_are_in_a_step() {
        let text = "    echo '# a' # comment\n\n    cargo test --workspace   # all\n    .ci/run package\n\n\
                    <!-- needs: root -->\n\n    reboot \\\n      now\n";
        let expected = [
            (1, "echo '# a'".to_owned(), Check::Run),
            (3, "cargo test --workspace".to_owned(), Check::Step),
            (4, ".ci/run package".to_owned(), Check::Step),
            (8, "reboot \\\n  now".to_owned(), Check::Help("root".to_owned())),
        ];
        assert_eq!(checked(text), expected);
    }

    #[test]
    fn a_command_in_a_block_of_text_is_noticed() {
        let document = Document::parse("```text\n  cargo run\n```\n");
        assert!(commands(&document, "").expect_err("a fault").contains("cargo run"));
        assert_eq!(commands(&Document::parse("```text\nx = 1\n```\n"), ""), Ok(Vec::new()));
    }

    #[test]
    fn help_is_asked_of_the_program_that_gets_the_options() {
        let asked = |command| with_help(command).expect("one of ours");
        assert_eq!(asked("cargo build --release"), "cargo build --release --help");
        assert_eq!(asked("cargo run -p a"), "cargo run -p a -- --help");
        assert_eq!(asked("cargo run -p a -- --b c"), "cargo run -p a -- --b c --help");
        assert_eq!(asked("percid trace record -- make -j8"), "percid trace record --help");
        assert_eq!(asked("percid sim run --seed 1 > out"), "percid sim run --seed 1 --help");
        assert_eq!(asked("A=b cargo test -p c -- d"), "A=b cargo test -p c --help");
        assert_eq!(asked("taskset -c 1 percid bench"), "taskset -c 1 percid bench --help");
        assert_eq!(asked(".ci/run --long    # a night"), ".ci/run --long --help");
        assert_eq!(with_help("make"), None);
    }
}
