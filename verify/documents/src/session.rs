//! A session: the commands of one document, one after the other, in one shell, in the root of a
//! fresh clone.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// The place where a newcomer stands.
#[derive(Debug)]
pub struct Place {
    /// The root of the clone.
    pub root: PathBuf,
    home: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub struct Ending {
    /// Its exit status, or `None` if it did not end in time.
    pub status: Option<i32>,
    /// Its duration.
    pub took: Duration,
    /// Its output.
    pub output: String,
}

impl Ending {
    /// Returns `true` if the command succeeded.
    pub fn is_success(&self) -> bool {
        self.status == Some(0)
    }
}

/// The line that the shell prints behind each command, with its exit status.
const MARK: &str = "@@ percid-documents";

impl Place {
    /// Clones what is committed at `origin`. The clone compiles into a folder of its own, which
    /// the next clone in `folder` finds again: in the folder of `origin`, Cargo would take the
    /// clone's libraries for those of `origin`. A folder that is new gets the crates of other
    /// people from there.
    pub fn clone_of(origin: &Path, folder: &Path) -> io::Result<Place> {
        let place = Place::empty(folder)?;
        let target = folder.join("target");
        if !target.exists() {
            copy_compiled(&origin.join("target"), &target)?;
        }
        fs::remove_dir(&place.root)?;
        let mut git = Process::new("git");
        git.args(["clone", "--quiet"]).arg(origin).arg(&place.root);
        if !git.status()?.success() {
            return Err(io::Error::other(format!("cannot clone {}", origin.display())));
        }
        std::os::unix::fs::symlink(target, place.root.join("target"))?;
        Ok(place)
    }

    /// Removes files that commands have left in a clone, and restores those that they have changed.
    /// All others keep their age, so that Cargo does not build them again.
    pub fn tidy(&self) -> io::Result<()> {
        for arguments in [&["checkout", "--quiet", "."][..], &["clean", "-dfxq", "-e", "/target"]] {
            let status = Process::new("git").args(arguments).current_dir(&self.root).status()?;
            if !status.success() {
                return Err(io::Error::other(format!("cannot tidy {}", self.root.display())));
            }
        }
        fs::remove_dir_all(&self.home)?;
        fs::create_dir_all(&self.home)
    }

    /// Makes a place with an empty root and an empty home in `folder`.
    pub fn empty(folder: &Path) -> io::Result<Place> {
        let place = Place { root: folder.join("clone"), home: folder.join("home") };
        for path in [&place.root, &place.home] {
            let _ = fs::remove_dir_all(path);
            fs::create_dir_all(path)?;
        }
        Ok(place)
    }

    /// Runs commands, each for `limit` at most. It ends at the first that does not end in time.
    pub fn run(&self, commands: &[&str], limit: Duration) -> io::Result<Vec<Ending>> {
        let mut shell = self.shell(&script(commands))?;
        let lines = lines_of(&mut shell);
        let mut endings = Vec::new();
        for _ in commands {
            let ending = one(&lines, limit);
            let ended = ending.status.is_some();
            endings.push(ending);
            if !ended {
                break;
            }
        }
        // Kill a command that did not end in time, with all of its children: the shell leads a
        // process group.
        let group = format!("-{}", shell.id());
        Process::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status()?;
        shell.wait()?;
        Ok(endings)
    }

    fn shell(&self, script: &str) -> io::Result<Child> {
        let mut shell = Process::new("bash");
        shell.args(["-c", script]).current_dir(&self.root).process_group(0);
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        self.prepare(&mut shell);
        shell.spawn()
    }

    /// Sets the environment of a reader who has opened a terminal: nothing of the Cargo that runs
    /// this, and a separate home, with the existing Cargo and rustup.
    fn prepare(&self, shell: &mut Process) {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none() {
                shell.env(name, home.join(folder));
            }
        }
        let of_cargo = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "PERCID_"];
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let exact = ["CARGO", "CARGO_TARGET_DIR", "CARGO_TARGET_TMPDIR", "LD_LIBRARY_PATH"];
            if exact.contains(&&*text) || of_cargo.iter().any(|prefix| text.starts_with(prefix)) {
                shell.env_remove(&name);
            }
        }
        shell.env("HOME", &self.home);
    }
}

/// Copies compiled libraries from `$0` to `$1` with the notes by which Cargo recognizes them.
/// Programs are left out: they are large, and linked anew.
const COPY_COMPILED: &str = r#"
for profile in debug release; do
    mkdir -p "$1/$profile/deps"
    [ -d "$0/$profile/deps" ] || continue
    cp --archive "$0/$profile/.fingerprint" "$0/$profile/build" "$1/$profile"
    find "$0/$profile/deps" \( -name '*.r*' -o -name '*.so' -o -name '*.d' \) \
        -exec cp --archive --target-directory "$1/$profile/deps" {} +
done"#;

fn copy_compiled(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = Process::new("sh");
    copy.args(["-euc", COPY_COMPILED]).args([from, to]);
    if copy.status()?.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("cannot copy {}", from.display())))
}

/// Returns a script that runs every command, also if one fails, and prints how each ended.
fn script(commands: &[&str]) -> String {
    let tell = format!("percid_status=$?; echo; echo \"{MARK} $percid_status\"");
    let parts = commands.iter().map(|command| format!("{command}\n{tell}\n"));
    format!("exec 2>&1\n{}", parts.collect::<String>())
}

fn lines_of(shell: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let output = BufReader::new(shell.stdout.take().expect("a pipe"));
    std::thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Reads what one command prints.
fn one(lines: &Receiver<String>, limit: Duration) -> Ending {
    let (start, mut output) = (Instant::now(), String::new());
    let ending = |status, output| Ending { status, took: start.elapsed(), output };
    while let Ok(line) = lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
        if let Some(status) = line.strip_prefix(MARK) {
            return ending(status.trim().parse().ok(), output);
        }
        output += &(line + "\n");
    }
    ending(None, output)
}
