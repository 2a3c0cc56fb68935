//! Packages of Debian for any architecture, by apt with a configuration of its own: the machine's
//! own lists, sources and packages are not changed, and no privileges are needed. The machine's
//! sources contain the address of Debian's mirror.

use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::pins::{Package, Pin};
use crate::platform::Platform;
use crate::tool::{self, Tool};

/// Debian's keys: what they did not sign is not taken.
const KEYRING: Tool = Tool {
    name: "/usr/share/keyrings/debian-archive-keyring.gpg",
    package: "debian-archive-keyring",
};

/// The lists of one suite for one architecture.
#[derive(Debug)]
pub struct Lists {
    config: PathBuf,
    platform: Platform,
}

impl Lists {
    /// Downloads the lists of the suite that `pin` lies in; everything of theirs is kept in `root`.
    pub fn of(pin: &Pin, root: &Path) -> Result<Self> {
        if !Path::new(KEYRING.name).is_file() {
            return Err(KEYRING.missing());
        }
        let mirror = mirror(&pin.suite)?;
        for directory in ["lists/partial", "archives/partial"] {
            let path = root.join(directory);
            fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        }
        let arch = pin.platform.arch.debian();
        let source = format!(
            "deb [arch={arch} target=Packages signed-by={}] {mirror} {} main\n",
            KEYRING.name, pin.suite
        );
        let config = root.join("apt.conf");
        for (path, text) in [
            (root.join("sources.list"), source),
            (root.join("status"), String::new()),
            (config.clone(), configuration(root, arch)),
        ] {
            fs::write(&path, text).map_err(Error::file("write", &path))?;
        }
        let lists = Self { config, platform: pin.platform };
        let mut update = lists.command(tool::APT_GET);
        update.args(["update", "--error-on=any"]);
        let task = format!("get the package lists of {}", pin.suite);
        tool::APT_GET.output(&mut update, &task)?;
        Ok(lists)
    }

    /// Returns all images of the series, the newest first. Lists may name some that the archive no
    /// longer has.
    pub fn images(&self) -> Result<Vec<Package>> {
        tool::DPKG.demand()?;
        let mut images = self.unordered()?;
        images.sort_by(|a, b| by_version(&b.version, &a.version));
        Ok(images)
    }

    /// Downloads `package` into `directory`.
    pub fn download(&self, package: &Package, directory: &Path) -> Result<PathBuf> {
        let Package { name, version } = package;
        let mut command = self.command(tool::APT_GET);
        let wanted = format!("{name}:{}={version}", self.platform.arch.debian());
        command.args(["download", &wanted]).current_dir(directory);
        let task = format!("download {name} {version}");
        tool::APT_GET.output(&mut command, &task)?;
        let entries = fs::read_dir(directory).map_err(Error::file("read", directory))?;
        let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let file = paths.find(|path| path.extension().is_some_and(|extension| extension == "deb"));
        file.ok_or_else(|| Error::ToolFailed {
            task,
            command: tool::words(&command),
            stderr: "expected a .deb file, found none".to_owned(),
        })
    }

    /// Returns all images of the series. If several packages contain the image or seem to, those
    /// that contain it come first.
    fn unordered(&self) -> Result<Vec<Package>> {
        let mut images = Vec::new();
        for prefix in ["linux-binary-", "linux-image-"] {
            let mut command = self.command(tool::APT_CACHE);
            let names = self.ask(command.args(["pkgnames", prefix]))?;
            let names = names.lines().filter(|name| self.platform.is_image(name));
            for name in names {
                images.extend(self.version(name)?);
            }
        }
        images.sort_by_key(|package| package.name.contains("unsigned"));
        images.sort_by_key(|package| !package.name.starts_with("linux-binary-"));
        Ok(images)
    }

    fn version(&self, name: &str) -> Result<Option<Package>> {
        let mut command = self.command(tool::APT_CACHE);
        let package = format!("{name}:{}", self.platform.arch.debian());
        let answer = self.ask(command.args(["madison", &package]))?;
        let version = answer.lines().next().and_then(|line| line.split('|').nth(1));
        Ok(version
            .map(|version| Package { name: name.to_owned(), version: version.trim().to_owned() }))
    }

    fn ask(&self, command: &mut Command) -> Result<String> {
        let answer = tool::APT_CACHE.output(command, "read the package lists")?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn command(&self, tool: Tool) -> Command {
        let mut command = tool.command();
        command.arg("-q").arg("-c").arg(&self.config).env("LC_ALL", "C");
        command
    }
}

fn configuration(root: &Path, arch: &str) -> String {
    let root = root.display();
    // A suite that is no longer cared for has an old signature, and it is still its signature.
    format!(
        "Dir::Etc::sourcelist \"{root}/sources.list\";\n\
         Dir::Etc::sourceparts \"/dev/null\";\n\
         Dir::State::lists \"{root}/lists\";\n\
         Dir::State::status \"{root}/status\";\n\
         Dir::Cache \"{root}\";\n\
         APT::Architecture \"{arch}\";\n\
         #clear APT::Architectures;\n\
         APT::Architectures {{ \"{arch}\"; }};\n\
         #clear APT::Update;\n\
         Acquire::Check-Valid-Until \"false\";\n"
    )
}

/// Returns the address of the mirror with `suite`, by the machine's own sources. The archive of
/// security updates is another one.
fn mirror(suite: &str) -> Result<String> {
    let label = if suite.ends_with("-security") { "Debian-Security" } else { "Debian" };
    let mut command = tool::APT_GET.command();
    command.args(["indextargets", "--format", "$(LABEL)\t$(REPO_URI)", "Created-By: Packages"]);
    let answer = tool::APT_GET.output(&mut command, "read this machine's package sources")?;
    let answer = String::from_utf8_lossy(&answer);
    let mut targets = answer.lines().filter_map(|line| line.split_once('\t'));
    let found = targets.find(|(found, _)| *found == label);
    found.map(|(_, uri)| uri.to_owned()).ok_or(Error::NoMirror { label })
}

/// Compares two versions, by Debian's rules.
fn by_version(a: &str, b: &str) -> Ordering {
    let is = |relation: &str| {
        let status = tool::DPKG.command().args(["--compare-versions", a, relation, b]).status();
        status.is_ok_and(|status| status.success())
    };
    match () {
        () if is("lt") => Ordering::Less,
        () if is("gt") => Ordering::Greater,
        () => Ordering::Equal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_debian_does() {
        if !tool::DPKG.is_installed() {
            return percid_skips::not_checked("versions as dpkg has them", "it is not installed");
        }
        assert_eq!(by_version("6.12.107-1", "6.12.90-2"), Ordering::Greater);
        assert_eq!(by_version("7.3.4-1~bpo13+1", "7.3.4-1"), Ordering::Less);
        assert_eq!(by_version("6.12.107-1", "6.12.107-1"), Ordering::Equal);
    }
}
