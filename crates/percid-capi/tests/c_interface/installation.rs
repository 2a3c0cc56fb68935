//! Installations of percid that the tests share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::toolchain::{has_rust_target, has_tools, output_of, scratch};

/// An installation of percid below a prefix.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) prefix: PathBuf,
    compile_options: OnceLock<Vec<String>>,
}

/// Returns an installation with both libraries: programs are linked with the shared one.
pub(crate) fn shared() -> &'static Installation {
    static INSTALLED: OnceLock<Installation> = OnceLock::new();
    INSTALLED.get_or_init(|| Installation::made_by(&mut second_step(), "shared", &[]))
}

/// Returns an installation with the static library only.
pub(crate) fn only_static() -> &'static Installation {
    static INSTALLED: OnceLock<Installation> = OnceLock::new();
    let options = ["--library-type=staticlib"];
    INSTALLED.get_or_init(|| Installation::made_by(&mut second_step(), "static", &options))
}

/// The compiler for musl.
pub(crate) const MUSL: &str = "musl-gcc";

/// Returns the static library for musl on this architecture; `None` if it cannot be built here.
pub(crate) fn musl() -> Option<&'static Installation> {
    static INSTALLED: OnceLock<Option<Installation>> = OnceLock::new();
    let options = ["--library-type=staticlib"];
    INSTALLED.get_or_init(|| Installation::for_musl("musl", &options)).as_ref()
}

/// Returns both libraries for musl.
pub(crate) fn musl_shared() -> Option<&'static Installation> {
    static INSTALLED: OnceLock<Option<Installation>> = OnceLock::new();
    INSTALLED.get_or_init(|| Installation::for_musl("musl-shared", &[])).as_ref()
}

/// Returns both installations with their names.
pub(crate) fn all() -> [(&'static str, &'static Installation); 2] {
    [("shared", shared()), ("static", only_static())]
}

impl Installation {
    fn made_by(installer: &mut Command, name: &str, options: &[&str]) -> Installation {
        let prefix = scratch(name);
        let output = installer.arg("--prefix").arg(&prefix).args(options).output();
        let output = output.expect("the installer starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "percid-install {options:?}: {errors}");
        Installation::at(prefix)
    }

    pub(crate) fn at(prefix: PathBuf) -> Installation {
        Installation { prefix, compile_options: OnceLock::new() }
    }

    fn for_musl(name: &str, options: &[&str]) -> Option<Installation> {
        let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        if !has_tools(&[MUSL]) || !has_rust_target(&target) {
            return None;
        }
        let mut command = installer();
        command.env("CC", MUSL).args(["--target", &target]);
        Some(Installation::made_by(&mut command, name, options))
    }

    pub(crate) fn libraries(&self) -> PathBuf {
        self.prefix.join("lib")
    }

    pub(crate) fn library(&self, name: &str) -> PathBuf {
        self.libraries().join(name)
    }

    /// Checks that the unwind tables can be read. A panic below the C interface ends there, and
    /// debuggers unwind, by these tables alone.
    pub(crate) fn can_be_unwound(&self) {
        for name in ["libpercid.a", "libpercid.so"] {
            let library = self.library(name);
            if library.exists() {
                let mut readelf = Command::new("readelf");
                let output = readelf.arg("--debug-dump=frames").arg(&library).output();
                let output = output.expect("binutils are installed");
                let (read, errors) = (output.stdout, String::from_utf8_lossy(&output.stderr));
                let entries = String::from_utf8_lossy(&read).matches(" FDE ").count();
                assert!(output.status.success() && entries > 500, "{library:?}: {entries}");
                assert!(errors.is_empty(), "{library:?}: {errors}");
            }
        }
    }

    /// Returns pkg-config's compile options. If they name a folder with the headers of [`shared`],
    /// it is replaced by that folder, so that objects can be linked with any library.
    pub(crate) fn compile_options(&self) -> &[String] {
        self.compile_options.get_or_init(|| {
            let include = |installation: &Installation| installation.prefix.join("include");
            let option = |folder: &Path| vec![format!("-I{}", folder.display())];
            let (own, common) = (include(self), include(shared()));
            let said = self.pkg_config(&["--cflags"]);
            let is_same = said == option(&own) && texts(&own) == texts(&common);
            if is_same { option(&common) } else { said }
        })
    }

    /// Returns the output of pkg-config.
    pub(crate) fn pkg_config(&self, options: &[&str]) -> Vec<String> {
        let path = self.libraries().join("pkgconfig");
        let path = path.to_str().expect("a path in UTF-8");
        let variable = format!("PKG_CONFIG_PATH={path}");
        let arguments = [&[&variable, "pkg-config"], options, &["percid"]].concat();
        output_of("env", &arguments).split_whitespace().map(str::to_owned).collect()
    }
}

/// Returns the files of a folder, with their names.
fn texts(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").into();
        (name, std::fs::read(path).expect("a file"))
    };
    paths.map(read).collect()
}

/// Returns a command that builds and installs with the flags of the tests, in Cargo's target
/// folder.
pub(crate) fn installer() -> Command {
    let mut command = percid_install();
    command.arg("--target-dir").arg(target_folder());
    command
}

/// Returns a command that installs both libraries, which are built once. It does not build: Cargo
/// and the compiler are unavailable to it.
pub(crate) fn second_step() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let products = BUILT.get_or_init(|| {
        let products = scratch("products");
        let output = installer().arg("build").arg("--products").arg(&products).output();
        let output = output.expect("the installer starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        products
    });
    let mut command = percid_install();
    command.envs([("CARGO", "false"), ("CC", "false"), ("RUSTC", "false")]);
    command.arg("install").arg("--products").arg(products);
    command
}

/// Returns a command without options.
pub(crate) fn percid_install() -> Command {
    Command::new(env!("CARGO_BIN_EXE_percid-install"))
}

/// Returns Cargo's target folder, which contains Cargo's marker file.
pub(crate) fn target_folder() -> &'static Path {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    folder.ancestors().find(|folder| folder.join(".rustc_info.json").exists()).unwrap_or(folder)
}
