//! Programs of this system, with the library before them and without it.

use std::borrow::BorrowMut;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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

fn ended(mut command: impl BorrowMut<Command>) -> Output {
    command.borrow_mut().output().expect("a shell")
}

#[test]
fn programs_say_what_they_say_without_the_library() {
    // Files of this repository: others may change meanwhile.
    let lines = [
        "ls -l ../percid/src | sort -k 5 -n | cksum",
        "seq 200000 | sort -r | uniq | tail -n 3",
        "find ../../docs ../../crates -name '*.rs' | sort | xargs -n 20 echo | cksum",
        "seq 3000 | awk '{ text[$1 % 77] = text[$1 % 77] $1 } END { for (i in text) n += length(text[i]); print n }'",
        "tar -c ../../docs | gzip -9 | gzip -d | tar -t | sort | cksum",
        "(exit 3); echo $?; sh -c 'kill -9 $$'; echo $?",
        "grep -r percid src tests | wc -l; ls /not/there",
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
        command.env("PERCID_MALLOC_STATISTICS", "1").stdin(Stdio::null());
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

/// Compiles C, and returns the program or library.
fn compiled(source: &str, options: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Relaxed);
    let made = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("made-{number}"));
    let source_file = made.with_extension("c");
    fs::write(&source_file, source).expect("a file");
    let line = format!("cc -w -O1 {options} -o {} {}", made.display(), source_file.display());
    let built = ended(shell(&line));
    assert!(built.status.success(), "{}", text(&built.stderr));
    made
}

const LOOP: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    long sum = 0;
    for (int i = 0; i < 10000; i++) {
        char *volatile text = malloc(i % 500 + 1);
        memset(text, 'x', i % 500);
        text[i % 500] = 0;
        sum += strlen(text);
        free(text);
    }
    printf("%ld\n", sum);
    return 0;
}
"#;

const MANY: &str = r#"
#include <stdlib.h>
int main(void) {
    static void *objects[500];
    for (size_t size = 2048; size <= 32768; size += 2048) {
        for (int i = 0; i < 500; i++) objects[i] = malloc(size);
        for (int i = 0; i < 500; i++) free(objects[i]);
    }
    // These reach the allocator behind often enough for a look at the limit.
    for (int i = 0; i < 20000; i++) objects[i % 500] = malloc(64);
    return objects[7] == NULL;
}
"#;

#[test]
fn the_limit_of_the_environment_is_kept() {
    let program = compiled(MANY, "");
    let cached = |limit: &str| cached_by(&program, limit);
    // So much may come between two looks, which 128 operations lie between.
    let batches = 128 * 32 * 64;
    assert!(cached("256K") <= (256 << 10) + batches);
    let without = cached("1G");
    assert!(without > (256 << 10) + batches, "control: {without}");
}

/// Runs a program, and returns the number of bytes that are cached at its end.
fn cached_by(program: &Path, limit: &str) -> usize {
    let mut command = preloaded(&format!("exec {}", path(program)));
    command.envs([("PERCID_MALLOC_LIMIT", limit), ("PERCID_MALLOC_STATISTICS", "1")]);
    let told = text(&ended(command).stderr);
    let bytes = told.strip_prefix("percid-malloc: ").and_then(|told| told.split(' ').next());
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{told}"))
}

const TRIMMED: &str = r#"
#include <malloc.h>
#include <stdlib.h>
int main(void) {
    static void *objects[200];
    for (int i = 0; i < 200; i++) objects[i] = malloc(300);
    for (int i = 0; i < 200; i++) free(objects[i]);
#ifdef TRIM
    malloc_trim(0);
#endif
    return 0;
}
"#;

#[test]
fn trimming_leaves_nothing_in_the_caches() {
    let [with, without] = ["-DTRIM", ""].map(|options| compiled(TRIMMED, options));
    let [with, without] = [with, without].map(|program| cached_by(&program, "16M"));
    assert!(with < 20_000 && without > 40_000, "{with} after trimming, {without} without");
}

/// Another allocator, which the loader finds after this library, is the one behind.
#[test]
fn the_next_allocator_in_line_is_the_one_behind() {
    let other = compiled(include_str!("other.c"), "-shared -fPIC");
    let program = compiled(LOOP, "");
    let blocks = |libraries: &str| {
        let mut command =
            shell(&format!("export LD_PRELOAD='{libraries}'; exec {}", path(&program)));
        let output = ended(command.env("LC_ALL", "C"));
        assert_eq!(text(&output.stdout), "2495000\n", "{output:?}");
        let told = text(&output.stderr);
        let blocks = told.strip_prefix("blocks ").and_then(|told| told.split(',').next());
        blocks.and_then(|blocks| blocks.parse::<u64>().ok()).unwrap_or_else(|| panic!("{told}"))
    };
    let alone = blocks(&path(&other));
    let behind = blocks(&format!("{} {}", path(&library()), path(&other)));
    assert!(alone > 10_000 && (1..1000).contains(&behind), "{alone} alone, {behind} behind");
}

fn path(file: &Path) -> String {
    file.display().to_string()
}

#[cfg(feature = "checked")]
const TWICE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    char *volatile p = malloc(99);
    free(p);
    free(p);
    char *a = malloc(99), *b = malloc(99);
    puts(a == b ? "same" : "two");
    return 0;
}
"#;

#[cfg(feature = "checked")]
#[test]
fn a_program_that_frees_twice_is_told_so_and_runs() {
    let program = compiled(TWICE, "");
    let run = format!("exec {}", path(&program));
    let (without, with) = (ended(shell(&run)), ended(preloaded(&run)));
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
