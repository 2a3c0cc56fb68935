//! Programs of this system, with the library before them and without it.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The shared library, which Cargo builds with these tests.
fn library() -> PathBuf {
    let tests = std::env::current_exe().expect("a program");
    let library = tests.with_file_name("libpercid_malloc.so");
    assert!(library.is_file(), "{}", library.display());
    library
}

fn shell(line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env_remove("LD_PRELOAD");
    shell
}

fn preloaded(line: &str) -> Command {
    let mut shell = shell(line);
    shell.env("LD_PRELOAD", library());
    shell
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ended(mut command: Command) -> Output {
    command.output().expect("a shell")
}

#[test]
fn programs_say_what_they_say_without_the_library() {
    let lines = [
        "ls -l /usr/bin | sort -k 5 -n | cksum",
        "seq 200000 | sort -r | uniq | tail -n 3",
        "find /usr/share/doc -name 'c*' | xargs -n 20 echo | cksum",
        "seq 3000 | awk '{ text[$1 % 77] = text[$1 % 77] $1 } END { for (i in text) n += length(text[i]); print n }'",
        "tar -c /usr/share/common-licenses 2>&1 | gzip -9 | gzip -d | tar -t | sort | cksum",
        "(exit 3); echo $?; sh -c 'kill -9 $$'; echo $?",
        "grep -r percid . | wc -l; ls /not/there",
    ];
    for line in lines {
        let (without, with) = (ended(shell(line)), ended(preloaded(line)));
        assert_eq!(text(&with.stdout), text(&without.stdout), "{line}");
        assert_eq!(text(&with.stderr), text(&without.stderr), "{line}");
        assert_eq!(with.status, without.status, "{line}");
    }
}

#[test]
fn figures_at_the_end_are_those_of_a_program_that_was_served() {
    let mut command = preloaded("exec sort");
    let output = ended({
        command.env("PERCID_MALLOC_STATISTICS", "1").stdin(std::process::Stdio::null());
        command
    });
    let told = text(&output.stderr);
    assert!(told.starts_with("percid-malloc: ") && told.contains(" cached\n"), "{told}");
    let served = told.lines().skip(2).map(|line| {
        let numbers: Vec<u64> = line.split_whitespace().map_while(|n| n.parse().ok()).collect();
        assert_eq!(numbers.len(), 4, "{line}");
        numbers[1]
    });
    assert!(served.sum::<u64>() > 0, "{told}");
    assert!(ended(preloaded("exec true")).stderr.is_empty());
}

#[test]
fn a_limit_that_is_no_number_is_told_and_the_program_runs() {
    let mut command = preloaded("exec true");
    command.env("PERCID_MALLOC_LIMIT", "much");
    let output = ended(command);
    let told = text(&output.stderr);
    assert!(told.contains("PERCID_MALLOC_LIMIT=much: expected a number of bytes"), "{told}");
    assert!(output.status.success());
}

#[cfg(feature = "checked")]
#[test]
fn a_program_that_frees_twice_is_told_so_and_runs() {
    let compiled = std::env::temp_dir().join(format!("percid-malloc-{}", std::process::id()));
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *volatile p = malloc(99); free(p); free(p); \
                  char *a = malloc(99), *b = malloc(99); puts(a == b ? \"same\" : \"two\"); return 0; }";
    let line = format!("printf '%s\\n' '{source}' | cc -w -x c -o {} -", compiled.display());
    let built = ended(shell(&line));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let run = format!("exec {}", compiled.display());
    let (without, with) = (ended(shell(&run)), ended(preloaded(&run)));
    let _ = std::fs::remove_file(&compiled);
    assert!(!without.status.success(), "control: the program frees twice");
    assert_eq!((text(&with.stdout), with.status.success()), ("two\n".to_owned(), true));
    assert_eq!(text(&with.stderr), "percid-malloc: 1 blocks were freed twice\n");
}

/// The limit holds for a program that frees much more: what is cached stays below it.
#[test]
fn memory_that_is_limited_is_refused_and_nobody_aborts() {
    let line =
        "ulimit -v 300000; exec awk 'BEGIN { while (1) text = text \"0123456789abcdef\" text }'";
    let output = ended(preloaded(line));
    let told = text(&output.stderr);
    assert!(!output.status.success() && output.status.code().is_some(), "{output:?}");
    assert!(told.contains("awk"), "{told}");
}
