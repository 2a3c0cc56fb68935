//! Other versions of the library than the tested one: the same code with different tables.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use percid_capi::interface::{CAPACITY, FUNCTIONS};

use crate::header::{declarations, table};
use crate::installation::only_static;
use crate::toolchain::{any_compiler, output_of, scratch};

/// The name by which the older table refers to the words.
const WORDS: &str = "percid_fast_path_words";

/// Returns the number of functions of the older version: those before the reports, whose results
/// have all types.
fn known() -> usize {
    let first = FUNCTIONS.iter().position(|&name| name == "percid_report_create");
    first.expect("reports")
}

/// Returns the options for the headers of a version that has more functions than the first release
/// of the interface. So their table may be too old for them.
pub(crate) fn later_headers() -> &'static str {
    static FOLDER: OnceLock<String> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = headers("later-headers", |name, text| match name {
            "percid_interface.h" => table(&declarations(), known()),
            _ => text,
        });
        format!("-I{}", folder.display())
    })
}

/// Returns the options for the headers of the next interface, which has another symbol.
pub(crate) fn next_headers() -> String {
    let folder =
        headers("next-headers", |_, text| text.replace("percid_interface_1", "percid_interface_2"));
    format!("-I{}", folder.display())
}

/// Writes the headers, each modified by `change`, to a folder with this name.
fn headers(name: &str, change: impl Fn(&str, String) -> String) -> PathBuf {
    let folder = scratch(name);
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for entry in std::fs::read_dir(ours).expect("headers") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let text = std::fs::read_to_string(&path).expect("a header");
        std::fs::write(folder.join(&file), change(&file, text)).expect("a writable folder");
    }
    folder
}

/// Returns an older version's static library: with another version text, and a table that ends
/// earlier.
pub(crate) fn older() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(make_older)
}

fn make_older() -> PathBuf {
    let known = known();
    let declared: Vec<_> = FUNCTIONS[..known]
        .iter()
        .enumerate()
        .map(|(index, name)| format!("extern void f{index}(void) __asm__(\"{name}\");"))
        .collect();
    let members: Vec<_> = (0..known).map(|index| format!("f{index},")).collect();
    let text = format!(
        "#include <stdint.h>
#include <stdio.h>
{declared}
extern const char words[] __asm__(\"{WORDS}\") __attribute__((visibility(\"hidden\")));
static int missing(const char *name) {{ fprintf(stderr, \"missing: %s\\n\", name); return -38; }}
extern const struct {{
    uint32_t size, number;
    const char *version_text;
    const void *fast_path;
    int (*missing)(const char *name);
    void (*functions[{CAPACITY}])(void);
}} percid_interface_1;
const __typeof__(percid_interface_1) percid_interface_1 = {{
    32 + 8 * {known}, 1, \"0.0.1\", words, missing, {{ {members} }},
}};
__asm__(\".type percid_interface_1, @gnu_unique_object\");
",
        declared = declared.join("\n"),
        members = members.join(" ")
    );
    let folder = scratch("older");
    std::fs::write(folder.join("table.c"), text).expect("a writable folder");
    let object = of_archive(&folder);
    let words = fast_path_words(&object);
    let table = "--redefine-sym=percid_interface_1=percid_newer_table";
    change(&object, &[&format!("--redefine-sym={words}={WORDS}"), table]);
    change(&object, &[&format!("--globalize-symbol={WORDS}")]);
    let table = compiled(&folder, "table.c");
    archived(&folder, &[&object, &table])
}

/// Returns the next interface's static library: the same table with another name.
pub(crate) fn next() -> PathBuf {
    let folder = scratch("next");
    let object = of_archive(&folder);
    change(&object, &["--redefine-sym=percid_interface_1=percid_interface_2"]);
    archived(&folder, &[&object])
}

/// Returns a copy of the static library's object.
fn of_archive(folder: &Path) -> PathBuf {
    let archive = only_static().library("libpercid.a");
    let [here, archive] = [folder, &archive].map(|path| path.to_str().expect("a path in UTF-8"));
    output_of("ar", &["x", "--output", here, archive]);
    folder.join("percid.o")
}

fn change(object: &Path, options: &[&str]) {
    output_of("objcopy", &[options, &[object.to_str().expect("a path in UTF-8")]].concat());
}

/// Returns the name of the words that critical sections read, in an object where no other can refer
/// to it.
fn fast_path_words(object: &Path) -> String {
    let text = output_of("nm", &["--defined-only", object.to_str().expect("a path in UTF-8")]);
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    let found: Vec<_> = names.filter(|name| name.contains("9FAST_PATH")).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].to_owned()
}

fn compiled(folder: &Path, source: &str) -> PathBuf {
    let object = folder.join(source).with_extension("o");
    let [from, to] =
        [&folder.join(source), &object].map(|path| path.to_str().expect("UTF-8").to_owned());
    output_of(any_compiler().c, &["-O2", "-fPIC", "-w", "-c", &from, "-o", &to]);
    object
}

fn archived(folder: &Path, objects: &[&Path]) -> PathBuf {
    let archive = folder.join("libpercid.a");
    // `ar` adds to an existing archive.
    let _ = std::fs::remove_file(&archive);
    let paths = [&[archive.as_path()], objects].concat();
    let paths: Vec<_> = paths.iter().map(|path| path.to_str().expect("a path in UTF-8")).collect();
    output_of("ar", &[&["rcs"][..], &paths].concat());
    archive
}
