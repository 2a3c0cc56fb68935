//! CMake projects that find percid.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::installation::{all, only_static, shared};
use crate::toolchain::{has_tools, output_of, programs, scratch};

const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.10)
project(consumer C CXX)
find_package(Threads REQUIRED)
find_package(percid WISH REQUIRED CONFIG)
# Twice: a project may find it in two of its folders.
find_package(percid REQUIRED CONFIG)
message(STATUS \"percid ${percid_VERSION}\")
add_executable(program \"PROGRAMS/counters.c\")
target_compile_definitions(program PRIVATE EXPECTED_VERSION=\"${percid_VERSION}\")
target_link_libraries(program TARGET Threads::Threads)
add_executable(classes \"PROGRAMS/wrapper.cpp\")
target_compile_definitions(classes PRIVATE EXPECTED_VERSION=\"${percid_VERSION}\")
target_compile_features(classes PRIVATE cxx_std_17)
target_link_libraries(classes TARGET Threads::Threads)
add_executable(one \"PROGRAMS/counters.c\")
target_compile_definitions(one PRIVATE EXPECTED_VERSION=\"${percid_VERSION}\")
target_link_libraries(one percid::static Threads::Threads)
add_library(module MODULE \"PROGRAMS/plugin.c\")
target_link_libraries(module TARGET)
";

/// Writes and configures a project in a folder of this name.
fn configure(name: &str, prefix: &Path, wish: &str, target: &str) -> Result<String, String> {
    let folder = scratch(name);
    let programs = programs();
    let programs = programs.to_str().expect("a path in UTF-8");
    let text = PROJECT.replace("PROGRAMS", programs).replace("WISH", wish);
    fs::write(folder.join("CMakeLists.txt"), text.replace("TARGET", target)).expect("writable");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&folder).arg("-B").arg(folder.join("build"));
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    let output = cmake.env_remove("MAKEFLAGS").output().expect("CMake starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(text) } else { Err(format!("{text}{errors}")) }
}

/// Builds the project and runs its programs.
fn build_and_run(name: &str, programs: &[&str]) {
    let folder = scratch(name).join("build");
    let mut cmake = Command::new("cmake");
    cmake.arg("--build").arg(&folder).args(["--target", "module"]).args(programs);
    // Do not pass on the jobs of the Cargo that runs this test.
    let output = cmake.env_remove("MAKEFLAGS").output().expect("CMake starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The module must stay loaded: threads keep pointers to its critical sections.
    let module = folder.join("libmodule.so");
    let flags = output_of("readelf", &["-d", module.to_str().expect("a path in UTF-8")]);
    assert!(flags.contains("NODELETE"), "{flags}");
    for program in programs {
        let output = Command::new(folder.join(program)).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.ends_with("ok\n"), "{program}: {text}");
    }
}

/// Returns `true` if a program of a project needs the shared library.
fn is_shared(name: &str, program: &str) -> bool {
    let program = scratch(name).join("build").join(program);
    let program = program.to_str().expect("a path in UTF-8");
    output_of("readelf", &["-d", program]).contains("[libpercid.so.1]")
}

#[test]
#[ignore = "slow: builds six programs"]
fn projects_find_percid() {
    if !has_tools(&["cmake", "make"]) {
        return;
    }
    let version = env!("CARGO_PKG_VERSION");
    for (word, installation) in all() {
        let name = format!("cmake-{word}");
        let text = configure(&name, &installation.prefix, version, "percid::percid");
        let text = text.unwrap_or_else(|text| panic!("{text}"));
        assert!(text.contains(&format!("percid {version}\n")), "{text}");
        build_and_run(&name, &["program", "classes", "one"]);
        assert_eq!(is_shared(&name, "program"), word == "shared");
        assert!(!is_shared(&name, "one"));
    }
}

#[test]
fn a_tree_that_was_moved_is_found() {
    if !has_tools(&["cmake", "make"]) {
        return;
    }
    let moved = scratch("cmake-moved-tree").join("elsewhere");
    let copied = Command::new("cp").arg("-a").arg(&shared().prefix).arg(&moved).status();
    assert!(copied.expect("cp starts").success());
    configure("cmake-moved", &moved, "", "percid::percid").expect("a target");
    let flags = scratch("cmake-moved").join("build/CMakeFiles/program.dir/flags.make");
    let flags = fs::read_to_string(flags).expect("the flags");
    let include = format!("-isystem {}", moved.join("include").display());
    assert!(flags.contains(&include), "{flags}");
    build_and_run("cmake-moved", &["program"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    if !has_tools(&["cmake"]) {
        return;
    }
    let prefix = &only_static().prefix;
    let refused = |wish, target, expected| {
        let text = configure("cmake-refused", prefix, wish, target);
        let text = text.expect_err(wish);
        // CMake wraps lines at arbitrary places.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{wish}: {text}");
    };
    for fits in ["0", "0.1", "0.1.0", "0.1...<0.2", "0.1.0 EXACT"] {
        configure("cmake-fits", prefix, fits, "percid::percid").expect(fits);
    }
    let version = "compatible with requested version";
    for newer in ["0.0.5", "0.2", "1", "0.2...1", "99"] {
        refused(newer, "percid::percid", version);
    }
    refused("", "percid::shared", "percid::shared");
}
