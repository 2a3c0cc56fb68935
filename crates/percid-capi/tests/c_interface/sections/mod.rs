//! The critical sections that C programs have inline: `percid_sections.h` is generated from the
//! macros of the library's own critical sections, so that each is described once.
//!
//! `percid_inline.h` is written by hand. It contains the differences between the languages: the
//! operands, and the code before and after.

mod architecture;
mod att;
mod macros;

use architecture::{Architecture, Section};
use macros::Macros;

use crate::header::must_be;

const INTRODUCTION: &str = "\
/*
 * percid_sections.h: the critical sections of percid_inline.h. Part of percid.h, which includes it.
 *
 * This file is generated from the sections of the library itself (crates/percid/src/critical, which
 * says what each does, and proves it): changes belong there.
 */
#ifndef PERCID_SECTIONS_H
#define PERCID_SECTIONS_H

#ifndef PERCID_H
#error \"include percid.h, not this file\"
#endif
";

/// The operations of C; the others are on slow paths only.
const OPERATIONS: [&str; 5] = ["add", "acquire", "push", "pop", "append"];

/// The operations on words, which C has inline on the first architecture only.
const OF_WORDS: [&str; 8] = [
    "add_word",
    "swap",
    "store_if",
    "store_both_if",
    "store_if_both",
    "copy_then_store_if",
    "push_link",
    "pop_link",
];

/// The sources that have critical sections, and the marks of their words.
const SOURCES: [(&str, i64); 2] = [("kernel", 2), ("table", 1)];

#[test]
fn the_sections_of_c_are_those_of_the_library() {
    must_be("include/percid_sections.h", &sections());
}

fn sections() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (index, architecture) in Architecture::ALL.iter().enumerate() {
        let condition = if index == 0 { "#if" } else { "#elif" };
        text += &format!("\n{condition} defined({})\n", architecture.symbol());
        let macros = Macros::of(architecture.source());
        let of_words = if index == 0 { &OF_WORDS[..] } else { &[] };
        for &operation in OPERATIONS.iter().chain(of_words) {
            text += &format!(
                "\n#define PERCID_{}_CLOBBERS {}\n",
                operation.to_uppercase(),
                architecture.clobbers(operation)
            );
            for (source, mark) in SOURCES {
                let section = Section { operation, source, mark };
                text += &define(&section, &architecture.lines(&macros, &section));
            }
        }
    }
    text + "\n#endif\n\n#endif\n"
}

/// Returns a macro with the text of a critical section.
fn define(section: &Section, lines: &[String]) -> String {
    let name = format!("PERCID_{}_{}", section.operation, section.source).to_uppercase();
    let (last, others) = lines.split_last().expect("a section");
    let mut text = format!("\n#define {name} \\\n");
    for line in others {
        text += &format!("    \"{}\\n\\t\" \\\n", quoted(line));
    }
    text + &format!("    \"{}\"\n", quoted(last))
}

fn quoted(line: &str) -> String {
    line.replace('"', "\\\"")
}
