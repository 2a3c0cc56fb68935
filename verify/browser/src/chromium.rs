//! Runs Chromium on a page and reads what the probe in it has found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::findings::Findings;

/// The colour scheme that the reader prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light page.
    Light,
    /// Light text on a dark page.
    Dark,
    /// The style for printing, on a screen.
    Paper,
}

/// The circumstances in which the page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The preferred colour scheme.
    pub scheme: Scheme,
    /// The width of the window in CSS pixels. Chromium's own windows are never narrower than 500.
    pub width: u32,
}

impl Frame {
    /// The frames in which every page must be readable: a phone, a tablet, two screens, and the
    /// width of A4 paper between margins of 12 mm.
    pub const ALL: [Frame; 7] = [
        Frame { scheme: Scheme::Light, width: 390 },
        Frame { scheme: Scheme::Light, width: 768 },
        Frame { scheme: Scheme::Light, width: 1300 },
        Frame { scheme: Scheme::Light, width: 1920 },
        Frame { scheme: Scheme::Dark, width: 390 },
        Frame { scheme: Scheme::Dark, width: 1300 },
        Frame { scheme: Scheme::Paper, width: 703 },
    ];

    /// Returns the frame as a part of file names.
    fn name(self) -> String {
        format!("{:?}-{}", self.scheme, self.width).to_lowercase()
    }
}

/// A browser, and the folder in which it leaves what it was shown.
#[derive(Debug)]
pub struct Browser {
    program: &'static str,
    folder: PathBuf,
}

/// The height of the window in which a page is shown, in CSS pixels.
const HEIGHT: u32 = 900;
/// The maximum height of pictures, in CSS pixels.
const TALLEST: u32 = 16_000;

/// Time limit for a page, which takes some seconds on a machine without other load.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns the name of a program that starts, if one does.
fn program() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    let starts = |program: &&str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let names = ["chromium", "chromium-browser", "google-chrome"];
    *FOUND.get_or_init(|| names.into_iter().find(starts))
}

impl Browser {
    /// Finds the browser; pages will be left in `folder` for inspection. Returns `None`, which the
    /// output reports, if there is no browser and none is required.
    ///
    /// # Panics
    ///
    /// Panics if one is required and there is none.
    pub fn find(folder: impl Into<PathBuf>) -> Option<Browser> {
        let found = program();
        if found.is_none() {
            let required = std::env::var_os("PERCID_BROWSER").is_some_and(|wish| wish == "require");
            assert!(!required, "chromium is required and not installed");
            percid_skips::not_checked("pages in a browser", "chromium is not installed");
        }
        found.map(|program| Browser { program, folder: folder.into() })
    }

    /// Shows the page in all frames at once. If `PERCID_PICTURES` names a folder, it gets a picture
    /// of each: `NAME-SCHEME-WIDTH.png`. Takes a second or two.
    ///
    /// # Panics
    ///
    /// Panics like [`Browser::inspect`].
    pub fn look_at(&self, name: &str, html: &str) -> Vec<(Frame, Findings)> {
        let found = self.inspect_each(name, &Frame::ALL.map(|frame| (html, frame)));
        let found: Vec<_> = Frame::ALL.into_iter().zip(found).collect();
        if let Some(pictures) = std::env::var_os("PERCID_PICTURES").map(PathBuf::from) {
            for (at, (frame, found)) in found.iter().enumerate() {
                self.picture(name, at, *frame, found.height, &pictures);
            }
        }
        found
    }

    /// Shows a copy of the page that has the probe in it. Takes a second or two.
    ///
    /// # Panics
    ///
    /// If the page cannot be written or shown, or the probe does not report: that is a failed test.
    pub fn inspect(&self, name: &str, html: &str, frame: Frame) -> Findings {
        self.inspect_each(name, &[(html, frame)]).remove(0)
    }

    /// Inspects each page in its frame. The browser starts once: that takes longer than showing a
    /// page.
    ///
    /// # Panics
    ///
    /// Panics like [`Browser::inspect`].
    pub fn inspect_each(&self, name: &str, pages: &[(&str, Frame)]) -> Vec<Findings> {
        let folder = self.emptied(name);
        for (at, (html, frame)) in pages.iter().enumerate() {
            let html = match frame.scheme {
                Scheme::Paper => html.replace("@media print", "@media all"),
                _ => (*html).to_owned(),
            };
            fs::write(folder.join(format!("page-{at}.html")), &html).expect("the page is written");
            let probed = probed(&html);
            fs::write(folder.join(format!("probed-{at}.html")), probed)
                .expect("its copy is written");
        }
        let window = folder.join("window.html");
        let shown = pages.iter().enumerate();
        let shown = shown.map(|(at, (_, frame))| (format!("probed-{at}.html"), *frame));
        fs::write(&window, window_around(shown, HEIGHT)).expect("the window is written");
        let dom = self.dom(&folder, &window);
        let mut found = Findings::read(&dom, pages.len())
            .unwrap_or_else(|| panic!("{name}: the probe has not reported:\n{dom}"));
        for (found, (html, frame)) in found.iter_mut().zip(pages) {
            found.size = html.len();
            // The page must have been shown in this scheme.
            assert_eq!(found.dark, frame.scheme == Scheme::Dark, "{name}: shown as {frame:?}");
        }
        found
    }

    /// Returns the folder of a page, without the results of an earlier run.
    pub(crate) fn emptied(&self, name: &str) -> PathBuf {
        let folder = self.folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// Returns the document after all its scripts have run, as HTML.
    fn dom(&self, folder: &Path, page: &Path) -> String {
        let out = folder.join("dom.html");
        let mut command = self.command(folder);
        // Virtual time, which passes only while there is nothing left to do.
        command.args(["--virtual-time-budget=30000", "--dump-dom"]);
        command.arg(format!("file://{}", page.display()));
        command.stdout(File::create(&out).expect("a file for the document"));
        finish(command);
        let _ = fs::remove_dir_all(folder.join("profile"));
        fs::read_to_string(out).expect("the document is text")
    }

    /// Takes a picture of the page that [`Browser::inspect`] has left in the folder of this name.
    fn picture(&self, name: &str, at: usize, frame: Frame, height: u32, pictures: &Path) {
        let folder = self.folder.join(name);
        fs::create_dir_all(pictures).expect("a folder for pictures");
        let (window, height) = (folder.join("picture.html"), height.min(TALLEST));
        let page = [(format!("page-{at}.html"), frame)];
        fs::write(&window, window_around(page.into_iter(), height)).expect("the window is written");
        let mut command = self.command(&folder);
        let picture = pictures.join(format!("{name}-{}.png", frame.name()));
        let _ = fs::remove_file(&picture);
        command.arg(format!("--window-size={},{height}", frame.width.max(500)));
        command.args(["--hide-scrollbars", "--virtual-time-budget=5000"]);
        command.arg(format!("--screenshot={}", picture.display()));
        command.arg(format!("file://{}", window.display()));
        command.stdout(Stdio::null());
        finish(command);
        let _ = fs::remove_dir_all(folder.join("profile"));
        assert!(picture.is_file(), "{}: there is no picture", picture.display());
    }

    /// Returns the command with the arguments of every run of the browser.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(self.program);
        // Chromium refuses to be root with its sandbox, and containers often do not permit one; the
        // pages here are our own.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.arg(format!("--user-data-dir={}", folder.join("profile").display()));
        command.stderr(Stdio::null());
        command
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
            panic!("chromium has not ended after {PATIENCE:?}: the limit is reached");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Inserts the probe before everything else, so that it receives every error.
fn probed(html: &str) -> String {
    let probe = format!("<head>\n<script>\n{}</script>", include_str!("probe.js"));
    assert_eq!(html.matches("<head>\n").count(), 1);
    html.replacen("<head>\n", &probe, 1)
}

/// Returns a page with windows of any width on the inspected pages, and the place for their
/// findings. A window's own colour scheme is the preference that is reported to the page in it. All
/// windows overlap: pages out of view would be drawn later, or never.
fn window_around(pages: impl Iterator<Item = (String, Frame)>, height: u32) -> String {
    let window = |(page, frame): (String, Frame)| {
        let scheme = if frame.scheme == Scheme::Dark { "dark" } else { "light" };
        format!(
            "<iframe src=\"{page}\" style=\"border: 0; position: absolute; color-scheme: {scheme}; \
             top: 0; left: 0; width: {width}px; height: {height}px\"></iframe>\n",
            width = frame.width
        )
    };
    let windows: String = pages.map(window).collect();
    format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <style>body {{ margin: 0; }}</style>\n\
         <pre id=\"findings\"></pre>\n\
         <script>const found = [];\naddEventListener('message', (message) => {{\n\
         const windows = [...document.querySelectorAll('iframe')];\n\
         found[windows.findIndex((of) => of.contentWindow === message.source)] = message.data;\n\
         document.getElementById('findings').textContent = JSON.stringify(found);\n\
         }});</script>\n{windows}"
    )
}
