//! The files that CMake's `find_package(percid)` reads.

use std::path::Path;

use crate::parts::LibraryType;
use crate::product_names::{SHARED, SONAME, STATIC};
use crate::setting::Setting;

/// Linker option of every module that uses percid: threads keep pointers to its critical sections,
/// so it has to stay loaded. It has no effect on a program.
pub(crate) const STAYS: &str = "-Wl,-z,nodelete";

/// Returns the text of `percidConfig.cmake`: the targets percid::shared and percid::static, and
/// percid::percid, which is the shared library if there is one.
pub(crate) fn config(setting: &Setting<'_>) -> String {
    let prefix = &setting.directories.prefix;
    let mut text = "\
# find_package(percid), then target_link_libraries(PROGRAM percid::percid): the shared library if it is
# installed, else the static one. percid::shared and percid::static name one of them.
"
    .to_owned();
    text += &root(setting);
    text += &format!("set(_percid_lib \"{}\")\n", quoted(&setting.directories.lib, prefix));
    text += &format!("set(_percid_include \"{}\")\n", quoted(&setting.directories.include, prefix));
    let first = match setting.has(LibraryType::Cdylib) {
        true => "shared",
        false => "static",
    };
    for library in &setting.parts.libraries {
        text += &match library {
            LibraryType::Cdylib => {
                let property = format!("IMPORTED_SONAME \"{SONAME}\"");
                target("shared", SHARED, &format!("{property}\n    {}", needs(STAYS)))
            }
            LibraryType::Staticlib => {
                let needed = setting.native_libraries.join(";");
                target("static", STATIC, &needs(&format!("{STAYS};{needed}")))
            }
        };
    }
    text += &format!(
        "\
if(NOT TARGET percid::percid)
  add_library(percid::percid INTERFACE IMPORTED)
  set_target_properties(percid::percid PROPERTIES INTERFACE_LINK_LIBRARIES percid::{first})
endif()
unset(_percid_lib)
unset(_percid_include)
unset(_percid_prefix)
"
    );
    text
}

/// Returns the code that computes the prefix from the location of the file, so that the
/// installation can be moved. It resolves links, because /lib may be a link to /usr/lib.
fn root(setting: &Setting<'_>) -> String {
    let directories = setting.directories;
    let Ok(below) = directories.cmake.strip_prefix(&directories.prefix) else {
        return format!("set(_percid_prefix \"{}\")\n", directories.prefix.display());
    };
    let up = below.components().map(|_| "/..").collect::<String>();
    format!(
        "\
get_filename_component(_percid_prefix \"${{CMAKE_CURRENT_LIST_FILE}}\" REALPATH)
get_filename_component(_percid_prefix \"${{_percid_prefix}}/..{up}\" ABSOLUTE)
"
    )
}

fn quoted(directory: &Path, prefix: &Path) -> String {
    match directory.strip_prefix(prefix) {
        Ok(rest) => format!("${{_percid_prefix}}/{}", rest.display()),
        Err(_) => directory.display().to_string(),
    }
}

fn needs(items: &str) -> String {
    format!("INTERFACE_LINK_LIBRARIES \"{}\"", items.trim_end_matches(';'))
}

fn target(name: &str, file: &str, property: &str) -> String {
    let kind = name.to_uppercase();
    format!(
        "\
if(NOT EXISTS \"${{_percid_lib}}/{file}\")
  set(percid_FOUND FALSE)
  set(percid_NOT_FOUND_MESSAGE \"expected ${{_percid_lib}}/{file}: install percid again\")
  return()
endif()
if(NOT TARGET percid::{name})
  add_library(percid::{name} {kind} IMPORTED)
  set_target_properties(percid::{name} PROPERTIES
    IMPORTED_LOCATION \"${{_percid_lib}}/{file}\"
    INTERFACE_INCLUDE_DIRECTORIES \"${{_percid_include}}\"
    {property})
endif()
"
    )
}

/// Returns the text of `percidConfigVersion.cmake`. Until version 1, the minor version decides
/// compatibility.
pub(crate) fn version(_: &Setting<'_>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let major = env!("CARGO_PKG_VERSION_MAJOR");
    let minor = env!("CARGO_PKG_VERSION_MINOR");
    let fits = match major {
        "0" => format!("0\\\\.({minor}\\\\.|$)"),
        _ => format!("{major}\\\\."),
    };
    format!(
        "\
set(PACKAGE_VERSION \"{version}\")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
if(PACKAGE_FIND_VERSION_RANGE)
  if(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION_MIN
      AND (PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION_MAX
        OR (PACKAGE_FIND_VERSION_RANGE_MAX STREQUAL \"INCLUDE\"
          AND PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION_MAX)))
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
  endif()
elseif(PACKAGE_VERSION VERSION_GREATER_EQUAL PACKAGE_FIND_VERSION
    AND \"${{PACKAGE_FIND_VERSION}}.\" MATCHES \"^{fits}\")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
if(CMAKE_SIZEOF_VOID_P AND NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(PACKAGE_VERSION_UNSUITABLE TRUE)
endif()
"
    )
}
