//! `percid completions`: prints a script that makes a shell complete the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use percid_command::exit::{Exit, Failure};
use percid_command::output;

pub(crate) fn run(shell: Shell) -> Result<Exit, Failure> {
    output::print_text(&script(shell)).map(|()| Exit::Complete)
}

fn script(shell: Shell) -> String {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8(script).expect("arguments are named in UTF-8")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::{Command as Program, Output};

    use clap::Command;

    use super::*;
    use crate::help::built;

    /// The line typed into a shell, and the completions that it must offer, from clap's own list.
    struct Case {
        typed: String,
        expected: BTreeSet<String>,
    }

    /// Returns the completions of each command: subcommands, and options after two hyphens.
    fn cases(command: &Command) -> Vec<Case> {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        let below = command.get_subcommands().map(|below| below.get_name().to_owned());
        let options = command.get_arguments().filter_map(|option| option.get_long());
        let own = [
            Case { typed: format!("{name} "), expected: below.collect() },
            Case {
                typed: format!("{name} --"),
                expected: options.map(|long| format!("--{long}")).collect(),
            },
        ];
        own.into_iter().chain(command.get_subcommands().flat_map(cases)).collect()
    }

    /// Returns the shell's output; `None` if it is not installed.
    fn said_by(shell: &mut Program) -> Option<Output> {
        match shell.output() {
            Ok(output) => Some(output),
            Err(missing) => {
                let required =
                    std::env::var_os("PERCID_TOOLS").is_some_and(|wish| wish == "require");
                assert!(!required, "{shell:?}: {missing}");
                let name = shell.get_program().to_string_lossy();
                percid_skips::not_checked(&format!("completion by {name}"), "it is not installed");
                None
            }
        }
    }

    /// Requests all cases from one process. `ask` prints a line of words for a typed line.
    fn each_is_completed(shell: &str, ask: &str, completions: &str) {
        let cases = cases(&built());
        assert!(cases.len() > 40, "{} cases", cases.len());
        let asked: String = cases.iter().map(|case| format!("ask '{}'\n", case.typed)).collect();
        let Some(output) =
            said_by(Program::new(shell).args(["-c", &format!("{completions}\n{ask}\n{asked}")]))
        else {
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{shell}: {errors}");
        let answers = String::from_utf8(output.stdout).expect("words");
        assert_eq!(answers.lines().count(), cases.len());
        for (case, answer) in cases.iter().zip(answers.lines()) {
            let answer: BTreeSet<String> = answer.split_whitespace().map(str::to_owned).collect();
            let missing: Vec<_> = case.expected.difference(&answer).collect();
            assert!(missing.is_empty(), "{shell}, {:?}: {missing:?} are missing", case.typed);
        }
    }

    const BASH: &str = r#"
complete -p percid >/dev/null || exit 1
ask() {
    read -ra COMP_WORDS <<<"$1"
    [[ $1 != *' ' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _percid percid "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[@]}"
}"#;

    const FISH: &str = r#"
function ask
    complete --do-complete $argv[1] | string replace --regex '\t.*' '' | string join ' '
end"#;

    #[test]
    fn bash_completes_every_subcommand_and_option() {
        each_is_completed("bash", BASH, &script(Shell::Bash));
    }

    #[test]
    #[should_panic(expected = "are missing")]
    fn a_script_without_an_option_is_noticed() {
        each_is_completed("bash", BASH, &script(Shell::Bash).replace("--prefault", ""));
    }

    #[test]
    fn fish_completes_every_subcommand_and_option() {
        each_is_completed("fish", FISH, &script(Shell::Fish));
    }

    #[test]
    fn zsh_reads_the_script_which_has_every_subcommand_and_option() {
        let script = script(Shell::Zsh);
        for case in cases(&built()) {
            let missing: Vec<_> =
                case.expected.iter().filter(|word| !script.contains(*word)).collect();
            assert!(missing.is_empty(), "{:?}: {missing:?} are missing", case.typed);
        }
        if let Some(output) = said_by(Program::new("zsh").args(["-n", "-c", &script])) {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "{errors}");
        }
        let broken = format!("{script}\nif\n");
        let refused = said_by(Program::new("zsh").args(["-n", "-c", &broken]));
        assert!(refused.is_none_or(|output| !output.status.success()));
    }
}
