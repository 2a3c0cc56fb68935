//! Messages of the command if something is missing on the host.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use percid_vm::cache::{Cache, Scratch};
use percid_vm::guest::Source;
use percid_vm::platform::Arch;

/// A host with an empty kernel cache and these scripts as its only programs.
struct Host(Scratch);

impl Host {
    fn with(scripts: &[(&str, &str)]) -> Self {
        let host = Self(Scratch::new().expect("temporary directory"));
        let bin = host.0.path().join("bin");
        fs::create_dir_all(&bin).expect("temporary directory");
        for (name, body) in scripts {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("write");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        host
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_percid-vm"))
            .args(arguments)
            .env("PATH", self.0.path().join("bin"))
            .env("XDG_CACHE_HOME", self.0.path().join("cache"))
            .output()
            .expect("the command starts")
    }
}

/// Returns the harness's own programs.
fn fixtures() -> String {
    let path = Source::fixtures()
        .build(&Cache::find(), Arch::X86_64)
        .expect("the harness's own programs build");
    path.to_str().expect("a plain path").to_owned()
}

fn assert_no_result(output: &Output, expected: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(output.stdout.is_empty(), "there is no result to print");
    for part in expected {
        assert!(stderr.contains(part), "expected {part} in: {stderr}");
    }
}

#[test]
fn help_needs_nothing() {
    let output = Host::with(&[]).run(&["--help"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("--self-check"));
}

#[test]
fn a_bad_option_and_a_missing_binary_are_named() {
    let host = Host::with(&[]);
    assert_no_result(&host.run(&["--shape", "eight"]), &["CPUS/NODES", "--help"]);
    let output = host.run(&["--binary", "/percid/none"]);
    assert_no_result(&output, &["could not read /percid/none"]);
}

#[test]
fn a_missing_emulator_names_its_package() {
    let binary = fixtures();
    let output = Host::with(&[]).run(&["--binary", &binary]);
    assert_no_result(&output, &["`qemu-system-x86_64`", "`qemu-system-x86`", "install-tools"]);
}

/// Returns a script of a machine whose sources name Debian, and on which downloading executes
/// `rest`.
fn apt_get(rest: &str) -> String {
    let targets = r"'Debian\tmirror/\nDebian-Security\tmirror-security/\n'";
    format!("if [ \"$1\" = indextargets ]; then printf {targets}; else {rest}; fi")
}

#[test]
fn a_missing_network_is_named() {
    let binary = fixtures();
    let apt_get = apt_get("echo 'E: Failed to fetch it' >&2; exit 100");
    let host = Host::with(&[("qemu-system-x86_64", "exit 1"), ("apt-get", &apt_get)]);
    let output = host.run(&["--binary", &binary, "--kernel", "6.1"]);
    let expected =
        ["could not get the package lists of bookworm-security", "E: Failed to fetch it"];
    assert_no_result(&output, &expected);
}

#[test]
fn a_machine_whose_sources_do_not_name_debian_is_told_so() {
    let binary = fixtures();
    let host = Host::with(&[("qemu-system-x86_64", "exit 1"), ("apt-get", "echo other there/")]);
    let output = host.run(&["--binary", &binary, "--kernel", "6.1"]);
    assert_no_result(&output, &["no archive labelled Debian-Security", "apt-get update"]);
}

/// A kernel that is gone is left out, and the directory that the message names is the one that is
/// looked into.
#[test]
fn kernels_that_are_gone_are_named() {
    let binary = fixtures();
    let (apt_get, qemu) = (apt_get("true"), ("qemu-system-x86_64", "exit 1"));
    let (apt_cache, dpkg) = (("apt-cache", "true"), ("dpkg", "exit 1"));
    let host = Host::with(&[qemu, apt_cache, dpkg, ("apt-get", &apt_get)]);
    let cache = host.0.path().join("cache/percid-vm");
    let gone = "no kernel 6.12 in Debian's bookworm-security";
    let expected = [gone, ".deb", cache.to_str().expect("a plain path")];
    let arguments = ["--binary", &binary, "--kernel", "6.12"];
    let output = host.run(&arguments);
    assert_no_result(&output, &[&expected[..], &["left out", "no kernel to boot"]].concat());
    let output = host.run(&[&arguments[..], &["--long"]].concat());
    assert_no_result(&output, &expected);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("left out"));
    assert!(Path::new(&cache).is_dir());
}
