//! Runs Chromium on a page and reads what the probe in it has found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::findings::Findings;

/// What the reader prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light page.
    Light,
    /// Light text on a dark page.
    Dark,
}

/// How the page is shown.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// What the reader prefers.
    pub scheme: Scheme,
    /// In CSS pixels. Chromium's own windows are never narrower than 500.
    pub width: u32,
}

/// A browser, and the folder in which it leaves what it was shown.
#[derive(Debug)]
pub struct Browser {
    program: &'static str,
    folder: PathBuf,
}

/// A page takes some seconds, a busy machine several times that.
const PATIENCE: Duration = Duration::from_secs(180);

impl Browser {
    /// Pages will be left in `folder`, for a look at them. `None`, which the output says, if there
    /// is no browser and none is required.
    ///
    /// # Panics
    ///
    /// If one is required and there is none.
    pub fn find(folder: impl Into<PathBuf>) -> Option<Browser> {
        let starts = |program: &&str| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(starts);
        if found.is_none() {
            let required = std::env::var_os("PERCID_BROWSER").is_some_and(|wish| wish == "require");
            assert!(!required, "chromium is required and not installed");
            println!("chromium is not installed: nothing was checked");
        }
        found.map(|program| Browser { program, folder: folder.into() })
    }

    /// Shows a copy of the page that has the probe in it. Takes seconds.
    ///
    /// # Panics
    ///
    /// If the page cannot be written or shown, or the probe does not report: that is a failed test.
    pub fn inspect(&self, name: &str, html: &str, frame: Frame) -> Findings {
        let folder = self.folder.join(name);
        // Of an earlier run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("page.html"), html).expect("the page is written");
        fs::write(folder.join("probed.html"), probed(html)).expect("its copy is written");
        let window = folder.join("window.html");
        fs::write(&window, window_around("probed.html", frame.width))
            .expect("the window is written");
        let dom = self.dom(&folder, &window, frame.scheme);
        Findings::read(&dom).unwrap_or_else(|| panic!("{name}: the probe has not reported:\n{dom}"))
    }

    /// The document after all its scripts have run, as HTML.
    fn dom(&self, folder: &Path, page: &Path, scheme: Scheme) -> String {
        let scheme = match scheme {
            Scheme::Dark => 0,
            Scheme::Light => 1,
        };
        let out = folder.join("dom.html");
        let mut command = Command::new(self.program);
        // Chromium refuses to be root with its sandbox, and containers often cannot give it one;
        // what it shows here are pages of our own.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        // Time that passes only while there is nothing left to do.
        command.args(["--virtual-time-budget=30000", "--dump-dom"]);
        command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
        command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
        command.arg(format!("file://{}", page.display()));
        command.stdout(File::create(&out).expect("a file for the document")).stderr(Stdio::null());
        finish(command);
        let _ = fs::remove_dir_all(folder.join("profile"));
        fs::read_to_string(out).expect("the document is text")
    }
}

fn finish(mut command: Command) {
    let mut child = command.spawn().expect("chromium starts");
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("chromium can be waited for") {
            assert!(status.success(), "chromium: {status}");
            return;
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("chromium has not ended after {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The probe comes before everything else, so that it hears of every error.
fn probed(html: &str) -> String {
    let probe = format!("<head>\n<script>\n{}</script>", include_str!("probe.js"));
    assert_eq!(html.matches("<head>\n").count(), 1);
    html.replacen("<head>\n", &probe, 1)
}

/// A page with a window of any width on the page that is looked at, and the place for its findings.
fn window_around(page: &str, width: u32) -> String {
    format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <iframe src=\"{page}\" style=\"border: 0; width: {width}px; height: 900px\"></iframe>\n\
         <pre id=\"findings\"></pre>\n\
         <script>addEventListener('message', (message) => {{\n\
         document.getElementById('findings').textContent = JSON.stringify(message.data);\n\
         }});</script>\n"
    )
}
