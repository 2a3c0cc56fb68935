//! Runs what the documents print: `percid-documents [--long] [DOCUMENT...]`, all of them if none is named.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use percid_documents::command::{Check, Command, commands, with_help};
use percid_documents::document::{self, Document};
use percid_documents::session::Place;
use percid_documents::{STEPS, root};

/// Time limit of a command: one that takes longer hangs, on a slow machine too.
const LIMIT: Duration = Duration::from_secs(3600);

const HELP: &str = "\
Runs what the documents print, in a clone of the last commit, and says what fails.

usage: percid-documents [--long] [DOCUMENT...]

Without a DOCUMENT all of them are checked. With --long also the commands below a
comment <!-- long -->, which take minutes. Exit status: 0 if every command does
what the documents promise, 1 if one does not, 2 if there is no result.
";

fn main() -> ExitCode {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    // A document may print this program's own command: it must not replace the clone it runs in.
    if named.iter().any(|argument| argument.as_os_str() == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let (options, named): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|argument| argument.as_os_str() == "--long");
    match check(&named, !options.is_empty()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("percid-documents: {failed} commands do not do what the documents promise");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("percid-documents: {error}");
            ExitCode::from(2)
        }
    }
}

/// Checks the documents, all if none is named; how many commands failed.
fn check(named: &[PathBuf], is_long: bool) -> Result<usize, Box<dyn std::error::Error>> {
    let mut failed = 0;
    let all = document::all(&root())?;
    let place = Place::clone_of(&root(), &root().join("target/documents"))?;
    for path in if named.is_empty() { &all } else { named } {
        place.tidy()?;
        let document = Document::read(&place.root, path)?;
        let commands = commands(&document, STEPS)?.into_iter();
        let (chosen, long): (Vec<_>, Vec<_>) = commands.partition(|it| is_long || !it.is_long);
        for Command { line, text, .. } in long {
            println!("long  {}:{line}: {text}", path.display());
        }
        failed += run(&place, path, &chosen)?;
        if path == Path::new("README.md") {
            failed += newcomer(&place, &document)?;
        }
    }
    Ok(failed)
}

/// Follows the first page, outside of the workspace: a new crate, percid, and the program of the
/// page.
fn newcomer(place: &Place, page: &Document) -> std::io::Result<usize> {
    let program = page.blocks.iter().find(|block| block.language == "rust");
    let program = program.ok_or_else(|| std::io::Error::other("the first page has no program"))?;
    let folder = std::env::temp_dir().join(format!("percid-newcomer-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("program.rs"), &program.text)?;
    let root = place.root.display();
    let commands = [
        format!("cd {}", folder.display()),
        "cargo new --quiet --vcs none newcomer".to_owned(),
        "cd newcomer".to_owned(),
        format!("cargo add --quiet percid --path {root}/crates/percid"),
        "cp ../program.rs src/main.rs".to_owned(),
        format!("cargo run --quiet --target-dir {root}/target/newcomer | grep -x 800000"),
    ];
    let line = |text| Command { line: program.line, text, check: Check::Run, is_long: false };
    let failed = run(place, &page.path, &commands.map(line));
    std::fs::remove_dir_all(folder)?;
    failed
}

/// Runs the commands of one document; how many failed.
fn run(place: &Place, path: &Path, commands: &[Command]) -> std::io::Result<usize> {
    let mut lines = Vec::new();
    for command in commands {
        let place = format!("{}:{}", path.display(), command.line);
        match &command.check {
            Check::Run => lines.push((place, command.text.clone())),
            Check::Step => println!("step  {place}: {}", command.text),
            Check::Help(needs) => match with_help(&command.text) {
                Some(help) => lines.push((place, help)),
                None => println!("needs {place}: {} ({needs})", command.text),
            },
        }
    }
    let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
    let endings = place.run(&texts, LIMIT)?;
    let mut failed = lines.len() - endings.len();
    for ((place, text), ending) in lines.iter().zip(endings) {
        let seconds = ending.took.as_secs_f64();
        if ending.is_success() {
            println!("{seconds:5.1} {place}: {text}");
            continue;
        }
        failed += 1;
        let status = ending
            .status
            .map_or("no end in time".to_owned(), |status| format!("exit status {status}"));
        println!("{seconds:5.1} {place}: {text}\nFAILED with {status}:\n{}", ending.output);
    }
    Ok(failed)
}
