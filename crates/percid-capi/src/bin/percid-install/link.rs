//! The C toolchain's step: one object with percid's symbols, and the libraries made of it.
//!
//! The static library from rustc contains the Rust standard library as well, with its symbols, and
//! in a form that C linkers of another LLVM version cannot optimise. So the code that the exported
//! functions need is linked into one object, in which everything else becomes local. Two Rust
//! libraries in a C program then do not conflict, and the archive shrinks from 22 MB to 1.7 MB.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compile::Compiled;
use crate::failure::Failure;
use crate::options::Options;
use crate::parts::LibraryType;
use crate::product_names::{SHARED, SONAME, STATIC};
use crate::symbols::{MAP, exported};
use crate::visibility::{self, Functions};

/// Creates libraries in a folder, under their final names.
pub(crate) fn libraries(
    tools: Tools,
    compiled: &Compiled,
    options: &Options,
    folder: &Path,
) -> Result<(), Failure> {
    let workplace = Workplace { tools, folder: folder.to_owned() };
    let object = workplace.object(compiled, options.strips())?;
    for library in options.built().libraries {
        match library {
            LibraryType::Staticlib => {
                workplace.archive(&workplace.adjusted(
                    &object,
                    "percid.o",
                    Functions::Hidden,
                )?)?;
            }
            LibraryType::Cdylib => {
                let object = workplace.adjusted(&object, "exporting.o", Functions::Exported)?;
                workplace.shared(&object, &compiled.native_libraries)?;
            }
        }
    }
    Ok(())
}

/// The programs of the C toolchain.
#[derive(Debug)]
pub(crate) struct Tools {
    compiler: OsString,
    archiver: OsString,
    objcopy: OsString,
    /// `true` if the linker can remove unneeded sections from a relocatable object.
    collects_garbage: bool,
}

impl Tools {
    /// Finds the tools that the environment names, or that the compiler uses.
    pub(crate) fn find(options: &Options) -> Result<Tools, Failure> {
        let compiler = match (variable("CC"), &options.target) {
            (Some(compiler), _) => compiler,
            (None, None) => "cc".into(),
            (None, Some(target)) => {
                return Err(format!("--target {target}: expected CC to name a C compiler for it"));
            }
        };
        Ok(Tools {
            archiver: variable("AR").unwrap_or_else(|| program_of(&compiler, "ar")),
            objcopy: variable("OBJCOPY").unwrap_or_else(|| program_of(&compiler, "objcopy")),
            collects_garbage: collects_garbage(options.target.as_deref()),
            compiler,
        })
    }
}

/// Returns `true` on architectures where the linker's result was verified. GNU ld (2.40) for
/// RISC-V, when it removes unneeded sections, moves relocations of the unwind tables in a
/// relocatable object to the places of others, or past the end: if it finds a table that it cannot
/// shorten, it adds the table's size to each place. On other architectures a statically linked
/// program removes its unneeded sections by `--gc-sections`; the shared library always does.
fn collects_garbage(target: Option<&str>) -> bool {
    let architecture = target
        .map_or(std::env::consts::ARCH, |target| target.split('-').next().unwrap_or_default());
    matches!(architecture, "x86_64" | "aarch64")
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the program that the compiler itself would run.
fn program_of(compiler: &OsStr, name: &str) -> OsString {
    let output = Command::new(compiler).arg(format!("-print-prog-name={name}")).output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    path.ok().filter(|path| !path.is_empty()).unwrap_or_else(|| name.to_owned()).into()
}

/// A section that is never loaded and refers to the table. `strip --strip-unneeded` keeps symbols
/// with a relocation, and would remove a unique symbol without one.
const KEEP: &str = "\
.section .percid.keep, \"R\", %progbits
.quad percid_interface_1
.section .note.GNU-stack, \"\", %progbits
";

struct Workplace {
    tools: Tools,
    folder: PathBuf,
}

impl Workplace {
    /// Links one relocatable object of everything that the exported functions need. It uses GNU ld,
    /// because other linkers cannot remove unneeded sections in such an object; GNU ld does so on
    /// some architectures only, see [`collects_garbage`].
    fn object(&self, compiled: &Compiled, strip: bool) -> Result<PathBuf, Failure> {
        let linked = self.folder.join("linked.o");
        let wanted =
            exported(MAP).into_iter().map(|symbol| format!("-Wl,--require-defined={symbol}"));
        let mut compiler = Command::new(&self.tools.compiler);
        compiler.args(["-r", "-nostdlib", "-fuse-ld=bfd"]);
        compiler.args(self.tools.collects_garbage.then_some("-Wl,--gc-sections"));
        compiler.arg("-Wl,--force-group-allocation").args(wanted);
        compiler.arg("-o").arg(&linked).arg(self.write("keep.s", KEEP)?);
        run(compiler.arg(&compiled.archive).args(&compiled.unwinder))?;

        let names = self.write("exported.txt", exported(MAP).join("\n") + "\n")?;
        let object = self.folder.join("global.o");
        let mut objcopy = Command::new(&self.tools.objcopy);
        let mut keep = OsString::from("--keep-global-symbols=");
        keep.push(names);
        objcopy.arg(keep).args(strip.then_some("--strip-unneeded"));
        objcopy.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
        run(objcopy.arg(&linked).arg(&object))?;
        Ok(object)
    }

    /// Copies the object, makes the table unique and sets the visibility of the functions.
    fn adjusted(
        &self,
        object: &Path,
        name: &str,
        functions: Functions,
    ) -> Result<PathBuf, Failure> {
        let mut bytes = fs::read(object)
            .map_err(|error| format!("cannot read {}: {error}", object.display()))?;
        visibility::adjust(&mut bytes, functions)?;
        self.write(name, bytes)
    }

    fn archive(&self, object: &Path) -> Result<(), Failure> {
        let archive = self.folder.join(STATIC);
        // `ar` adds to an existing archive.
        let _ = fs::remove_file(&archive);
        run(Command::new(&self.tools.archiver).arg("rcsD").arg(&archive).arg(object))
    }

    /// Links the shared library. It stays loaded for the life of the process, because threads keep
    /// pointers into it, and it binds its own symbols to itself.
    fn shared(&self, object: &Path, native_libraries: &[String]) -> Result<(), Failure> {
        let shared = self.folder.join(SHARED);
        let map = self.write("percid.map", MAP)?;
        let mut compiler = Command::new(&self.tools.compiler);
        compiler.args(["-shared", "-fuse-ld=bfd"]).arg("-o").arg(&shared).arg(object);
        let mut script = OsString::from("-Wl,--version-script=");
        script.push(map);
        compiler.arg(format!("-Wl,-soname,{SONAME}")).arg(script);
        compiler.args([
            "-Wl,--gc-sections",
            "-Wl,-Bsymbolic",
            "-Wl,--no-undefined",
            "-Wl,--build-id",
        ]);
        compiler.args(["-Wl,-z,nodelete", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]);
        run(compiler.arg("-Wl,--as-needed").args(native_libraries))
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, Failure> {
        let path = self.folder.join(name);
        fs::write(&path, content)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name} failed ({}):\n{}", output.status, messages.trim_end()))
}
