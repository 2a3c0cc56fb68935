//! Every function of `percid.h`, called with all invalid arguments that it can check: NULL, handles
//! of other types and of destroyed objects, uninitialised memory, invalid sizes, alignments and
//! numbers; with available memory and without. It returns an error, or ends the process without a
//! message of Rust's.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::installation::shared;
use crate::pretended_nodes;
use crate::selection::is_whole;
use crate::toolchain::{Build, Program, compilers, scratch};

/// Texts of Rust's messages and source locations.
const OF_RUST: [&str; 6] =
    ["panicked at", "RUST_BACKTRACE", "unwrap", "src/", ".rs:", "memory allocation of"];

/// A function of the library's table.
struct Function {
    result: &'static str,
    name: &'static str,
    /// The types and names of the parameters.
    parameters: Vec<(&'static str, &'static str)>,
}

#[test]
pub(crate) fn every_function_answers_in_cs_words() {
    let functions: Vec<Function> = functions().collect();
    assert!(functions.len() > 120, "{}", functions.len());
    let inline = if is_whole() { "-O1" } else { "-O0" };
    for options in [inline, "-O0 -DPERCID_NO_INLINE"] {
        let program = program(&functions, options, |build| build.against(shared()).make());
        for source in ["kernel", "table", "atomic"] {
            for memory in ["memory", "no-memory"] {
                answers_in_cs_words(&program, source, &[memory]);
            }
        }
        // A function may use memory that another one has freed: also run each separately.
        answers_in_cs_words(&program, "table", &["no-memory", "each"]);
    }
}

/// With several nodes regions are armed and moved. That library is compiled with assertions.
#[test]
pub(crate) fn every_function_answers_in_cs_words_on_several_nodes() {
    let functions: Vec<Function> = functions().collect();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
    let options = format!("-O0 -DPERCID_NO_INLINE -DPRETENDED_NODES=2 {include}");
    let program = program(&functions, &options, pretended_nodes::linked);
    for memory in ["memory", "no-memory"] {
        answers_in_cs_words(&program, "table", &[memory]);
    }
}

fn answers_in_cs_words(program: &Program, source: &str, arguments: &[&str]) {
    let mut command = program.command();
    let (output, text) = program.outcome(command.args(arguments).env("PERCID_SOURCE", source));
    let what = format!("source {source}, {arguments:?}: {}", output.status);
    let found = OF_RUST.iter().find_map(|words| text.find(words));
    assert_eq!(found, None, "{what}\n{}", end_of(&text));
    assert!(output.status.success() && text.ends_with("ok\n"), "{what}\n{}", end_of(&text));
}

fn end_of(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

/// Builds the program that makes the calls of all functions, in one process or each in its own.
/// Before the calls of a function it prints the name on standard error.
fn program(functions: &[Function], options: &str, link: impl FnOnce(Build) -> Program) -> Program {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut text = "#include \"misuse.h\"\n\n".to_owned();
    for function in functions {
        text += &calls(function);
    }
    text += "static void (*const functions[])(void) = {\n";
    for Function { name, .. } in functions {
        text += &format!("    call_{name},\n");
    }
    text += "};\n\nint main(int count, char **words)\n{\n";
    text += "    run(functions, sizeof functions / sizeof *functions, count, words);\n}\n";
    let source = scratch("misuse").join(format!("misuse{}.c", NUMBER.fetch_add(1, Relaxed)));
    std::fs::write(&source, text).expect("writable");
    let options = format!("-std=gnu11 {options} -w -pthread");
    let source = source.to_str().expect("a path in UTF-8");
    // Clang, if it is there: it compiles the many calls in two fifths of GCC's time.
    let compiler = compilers().last().expect("a compiler");
    link(Build::new(compiler.c, &[source], &options))
}

/// Returns the functions in the table that percid.h includes.
fn functions() -> impl Iterator<Item = Function> {
    let header = include_str!("../../include/percid_interface.h");
    let table = header.lines().skip_while(|line| !line.starts_with("struct percid_interface"));
    let table = table.take_while(|line| !line.starts_with('}'));
    let members = table.filter_map(|line| line.trim().strip_suffix(");")?.split_once("(*"));
    let functions = members.map(|(result, rest)| {
        let (name, parameters) = rest.split_once(")(").expect("a function");
        Function { result: result.trim_end(), name, parameters: separated(parameters) }
    });
    // Members of the table that are not functions of `percid.h`.
    functions.filter(|function| function.name != "missing" && !function.name.contains('['))
}

/// Returns the types and names of parameters.
fn separated(parameters: &'static str) -> Vec<(&'static str, &'static str)> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in parameters.char_indices().chain([(parameters.len(), ',')]) {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(typed(parameters[start..at].trim()));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|&(of, _)| of != "void");
    found
}

fn typed(parameter: &'static str) -> (&'static str, &'static str) {
    if let Some((_, rest)) = parameter.split_once("(*") {
        return ("function", rest.split_once(')').map_or(rest, |(name, _)| name));
    }
    let at = parameter.rfind([' ', '*']).map_or(parameter.len(), |at| at + 1);
    match &parameter[..at.min(parameter.len())] {
        _ if parameter == "void" => ("void", ""),
        of => (of.trim(), &parameter[at..]),
    }
}

/// Returns a C function that makes all calls of one function.
fn calls(function: &Function) -> String {
    let Function { result, name, parameters } = function;
    let mut lines = format!("static void call_{name}(void)\n{{\n");
    lines += &format!("    fputs(\"percid_{name}\\n\", stderr);\n");
    let choices: Vec<Vec<String>> =
        parameters.iter().map(|&(of, parameter)| values(function, of, parameter)).collect();
    for chosen in product(&choices) {
        if is_wrong_by_contract(function, &chosen) {
            continue;
        }
        let call = format!("percid_{name}({})", chosen.join(", "));
        lines += &match *result {
            "void" => format!("    {call};\n"),
            _ if result.ends_with('*') => format!("    ANSWERS((intptr_t){call});\n"),
            "double" => format!("    ANSWERS({call} < 0);\n"),
            _ => format!("    ANSWERS({call});\n"),
        };
        lines += &after(name, &chosen);
    }
    lines + "}\n\n"
}

/// Returns the code that restores the objects that a call has created or destroyed.
fn after(name: &str, chosen: &[String]) -> String {
    let mut lines = String::new();
    for value in chosen {
        if let Some(of) = value.strip_prefix("&made_") {
            lines += &format!("    FORGET({of});\n");
        }
    }
    let ends = ["_destroy", "_free", "_close", "_unregister"].iter().any(|end| name.ends_with(end));
    if let Some(of) = chosen.first().and_then(|first| first.strip_prefix("good_")).filter(|_| ends)
    {
        lines += &format!("    USED_UP({of});\n");
    }
    lines += &unlocked(name, chosen.first().map_or("", String::as_str));
    if name == "local_acquire" && chosen[1] == "(void *)buffer" {
        lines += "    if (*(void **)(void *)buffer != NULL) {\n";
        lines += "        percid_local_release(*(void **)(void *)buffer);\n    }\n";
    }
    lines
}

/// Returns the code that unlocks what a call has locked.
fn unlocked(name: &str, object: &str) -> String {
    let (of, unlock) = match name.split_once('_') {
        Some((of @ ("rwlock" | "domain"), verb)) if verb.ends_with("read_lock") => (of, "read"),
        Some((of @ "rwlock", verb)) if verb.ends_with("write_lock") => (of, "write"),
        _ => return String::new(),
    };
    if object.strip_prefix("good_") != Some(of) {
        return String::new();
    }
    let token = if of == "domain" { ", (int)answered" } else { "" };
    format!("    percid_{of}_{unlock}_unlock({object}{token});\n")
}

/// Returns `true` if no function can detect the fault: the size exceeds the memory, or a reader
/// leaves that did not enter.
fn is_wrong_by_contract(function: &Function, chosen: &[String]) -> bool {
    let has_memory = chosen.iter().any(|value| value == "(void *)buffer");
    let mut named = function.parameters.iter().zip(chosen);
    let is_leaving = function.name.ends_with("_read_unlock") && chosen[0].starts_with("good_");
    let is_token = chosen.get(1).is_none_or(|token| ["0", "1"].contains(&token.as_str()));
    is_leaving && is_token
        || has_memory
            && named.any(|((of, name), value)| {
                *of == "size_t"
                    && ["size", "capacity"].contains(name)
                    && value.starts_with("SIZE_MAX")
            })
}

/// Returns the values to test for a parameter.
fn values(function: &Function, of: &str, name: &str) -> Vec<String> {
    let texts = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    let plain = of.trim_start_matches("const ");
    let object = plain.strip_prefix("struct percid_").map(|rest| rest.trim_end_matches([' ', '*']));
    if let (Some(object), true) = (object, plain.ends_with("**")) {
        if SERIES.contains(&object) {
            // These objects belong to their family.
            return texts(&["NULL", "(void *)buffer"]);
        }
        return texts(&["NULL", &format!("&made_{object}")]);
    }
    match (object, plain, name) {
        (Some("counter" | "histogram"), ..) => {
            texts(&["NULL", &format!("&good_{}", object.expect("an object"))])
        }
        (Some(object), ..) if SERIES.contains(&object) => {
            texts(&["NULL", &format!("good_{object}")])
        }
        // No function can detect a size of settings that exceeds the memory.
        (Some("family_settings"), ..) => texts(&["NULL", "&good_family_settings", "(void *)zeros"]),
        (_, "size_t", "size") if function.name == "family_create" => {
            texts(&["0", "1", "sizeof good_family_settings", "sizeof zeros", "SIZE_MAX"])
        }
        (_, "char *const *", "values") => texts(&["NULL", "label_values", "no_values"]),
        (_, "char *", "accept") => {
            texts(&["NULL", "\"\"", "\"\\xff\"", "\"application/openmetrics-text\""])
        }
        (Some("balancer_settings"), ..) if function.name != "balancer_settings_init" => {
            texts(&["NULL", "&settings", "&garbage", "(void *)zeros"])
        }
        // These are pointers to objects that C owns.
        (Some(object @ ("snapshot" | "report")), ..) => texts(&["NULL", &format!("good_{object}")]),
        (Some(object), _, _) if HANDLES.contains(&object) => {
            let other = if object == "mask" { "(void *)good_stack" } else { "(void *)good_mask" };
            let mut wrong = vec!["NULL", other, "(void *)(pages + 1)", "(void *)zeros"];
            let (good, gone) = (format!("good_{object}"), format!("gone_{object}"));
            wrong.extend([gone.as_str(), good.as_str()]);
            texts(&wrong)
        }
        (_, "function", "make") => texts(&["NULL", "make_nothing"]),
        (_, "function", "drop") => texts(&["NULL", "drop_value"]),
        (_, "function", _) => match function.name {
            "ring_poll" => texts(&["NULL", "visit_event"]),
            "mask_drain" => texts(&["NULL", "visit_id"]),
            "registry_write" => texts(&["NULL", "write_part"]),
            "domain_defer" | "domain_try_defer" => texts(&["NULL", "deferred"]),
            _ => texts(&["NULL", "visit_value"]),
        },
        (_, "char *", "name") => texts(&["NULL", "\"\"", "\"nonsense\""]),
        (_, "void *", "start") => texts(&[
            "NULL",
            "pages",
            "pages + 1",
            "(void *)(intptr_t)-4096",
            "__builtin_frame_address(0)",
            "(void *)good_mask",
            "&errno",
        ]),
        // The function cannot detect an address that belongs to no value.
        (_, "void *", "value") if function.name == "local_release" => texts(&["NULL"]),
        // The memory before it is readable.
        (_, "void *", "object") => texts(&["NULL", "(void *)(buffer + 128)"]),
        (_, "void *", "argument" | "context") => texts(&["NULL"]),
        (_, "int", _) => texts(&["INT_MIN", "-1", "0", "1", "3", "99"]),
        (_, "uint32_t", "milliseconds") => texts(&["0", "1"]),
        (_, "uint32_t", _) => texts(&["0", "1", "8", "4096", "UINT32_MAX"]),
        // The first word is never the head of a list: the function cannot detect wrong items.
        (_, "size_t", "head") => texts(&["1", "8", "16", "SIZE_MAX - 7"]),
        (_, "size_t", "field" | "first" | "second") => texts(&["0", "1", "16", "SIZE_MAX - 7"]),
        (_, "size_t", "to") => texts(&["0", "SIZE_MAX"]),
        (_, "uint64_t", "expected" | "expected_second") => texts(&["0"]),
        (_, "uint64_t", "desired" | "first_value") => texts(&["UINT64_MAX"]),
        (_, "size_t", "length") if function.name.starts_with("memory_") => {
            texts(&["0", "3", "SIZE_MAX"])
        }
        (_, "void *", "item") if function.name == "memory_push" => {
            texts(&["NULL", "(void *)(buffer + 1)", "(void *)buffer"])
        }
        (_, "size_t", "align") => texts(&["0", "3", "8", "8192", "(size_t)1 << 63"]),
        (_, "size_t", _) => texts(&["0", "1", "4096", "SIZE_MAX / 2", "SIZE_MAX"]),
        (_, "int64_t", _) => texts(&["INT64_MIN", "INT64_MAX"]),
        (_, "uint64_t", _) => texts(&["0", "UINT64_MAX"]),
        (_, "double", _) => texts(&["-1.0", "0.0", "2.0", "(double)NAN", "(double)INFINITY"]),
        (_, pointer, _) if pointer.ends_with('*') => texts(&["NULL", "(void *)buffer"]),
        other => panic!("{}: what is wrong for {other:?}?", function.name),
    }
}

/// Types whose handles identify the type, and destroyed objects.
const HANDLES: [&str; 16] = [
    "stack",
    "pool",
    "local",
    "ring",
    "consumer",
    "mask",
    "memory",
    "rwlock",
    "domain",
    "budget",
    "balancer",
    "region",
    "id_regions",
    "pool_regions",
    "registry",
    "family",
];

/// Objects of families, which live as long as their registry.
const SERIES: [&str; 4] = ["counter", "float_counter", "gauge", "buckets"];

/// Returns all combinations of one value each.
fn product(choices: &[Vec<String>]) -> Vec<Vec<String>> {
    choices.iter().fold(vec![Vec::new()], |chosen, choice| {
        let with = |before: &Vec<String>| -> Vec<Vec<String>> {
            choice.iter().map(|one| [&before[..], std::slice::from_ref(one)].concat()).collect()
        };
        chosen.iter().flat_map(with).collect()
    })
}
