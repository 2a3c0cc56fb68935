//! Pages in a real browser: the drawing, the text, the errors, and the requests.
//!
//! The browser is Chromium without a window. With `PERCID_BROWSER=require` the tests fail if it is
//! missing. The pages are kept in the target folder's `tmp/`, for inspection.

mod sample;
mod server;

use percid_browser::{Browser, Findings, Frame, Scheme};
use percid_report::Page;
use server::Server;

const WIDE: u32 = 1300;
const NARROW: u32 = 390;

fn browser() -> Option<Browser> {
    Browser::find(env!("CARGO_TARGET_TMPDIR"))
}

fn inspect(browser: &Browser, name: &str, html: &str, scheme: Scheme, width: u32) -> Findings {
    browser.inspect(name, html, Frame { scheme, width })
}

/// Replaces exactly one occurrence, so that a control that changes nothing cannot pass.
fn with(html: &str, old: &str, new: &str) -> String {
    assert_eq!(html.matches(old).count(), 1, "{old:?} is not there once");
    html.replacen(old, new, 1)
}

fn before_the_end(html: &str, addition: &str) -> String {
    with(html, "</main>", &format!("{addition}</main>"))
}

#[test]
fn every_kind_of_plot_is_drawn_and_read_in_light_and_dark_and_on_phones() {
    let Some(browser) = browser() else { return };
    let html = sample::page().render();
    for (frame, found) in browser.look_at("sample", &html) {
        println!("{frame:?}: {} texts, lowest contrast {:.2}", found.texts, found.lowest_contrast);
        assert_eq!(found.problems(&sample::MARKS), [] as [String; 0], "{frame:?}");
        assert_eq!((found.dark, found.width), (frame.scheme == Scheme::Dark, frame.width));
        assert!(found.texts > 100, "{frame:?}: only {} texts were looked at", found.texts);
        for hostile in sample::HOSTILE {
            let shown =
                found.charts.iter().any(|chart| chart.words.iter().any(|word| word == hostile));
            assert!(shown, "{frame:?}: {hostile:?} is not shown as it is");
        }
    }
}

#[test]
fn pointing_at_a_mark_shows_its_numbers() {
    let Some(browser) = browser() else { return };
    let found = inspect(&browser, "hover", &sample::page().render(), Scheme::Dark, WIDE);
    let hover: Vec<&str> = found.charts.iter().map(|chart| chart.hover.as_str()).collect();
    assert_eq!(hover, sample::HOVER);
}

#[test]
fn fifteen_thousand_spans_on_384_cpus_are_drawn_on_one_page() {
    let Some(browser) = browser() else { return };
    let page = sample::large_timeline();
    let found = inspect(&browser, "large-timeline", &page.render(), Scheme::Light, WIDE);
    assert_eq!(found.problems(&[sample::LARGE]), [] as [String; 0]);
}

#[test]
fn tracks_are_drawn_read_and_zoomed_into_together() {
    let Some(browser) = browser() else { return };
    for (frame, found) in browser.look_at("tracks", &sample::tracks().render()) {
        let marks: Vec<usize> = found.charts.iter().map(|chart| chart.marks).collect();
        assert_eq!(found.problems(&marks), [] as [String; 0], "{frame:?}");
        assert_eq!(marks, [14; 2], "two things with seven numbers");
        assert_eq!(found.zooms.len(), 7, "{frame:?}");
        let lengths: Vec<f64> =
            found.zooms.iter().map(|zoom| (zoom.length() / 1e6).round()).collect();
        assert_eq!(lengths, [1000.0, 500.0, 250.0, 250.0, 250.0, 500.0, 1000.0]);
        for zoom in &found.zooms {
            assert_eq!(zoom.views[0], zoom.views[1], "one is not linked");
            assert!(zoom.marks.iter().all(|&marks| marks > 0));
        }
        assert_ne!(found.zooms[2].views, found.zooms[3].views, "later is another time");
    }
}

/// The overview needs no script, and no other script than the page's own may run.
#[test]
fn without_its_script_a_page_shows_the_overview() {
    let Some(browser) = browser() else { return };
    let html = sample::tracks().render();
    let changed = with(&html, "\"use strict\";", "\"use strict\"; ");
    let found = inspect(&browser, "changed-script", &changed, Scheme::Light, WIDE);
    assert!(found.errors.iter().any(|error| error.contains("script-src")), "{:?}", found.errors);
    let [overview] = &found.zooms[..] else { panic!("{:?}", found.zooms) };
    assert_eq!((&overview.marks[..], &overview.views[0][..]), (&[14, 14][..], ""));
}

/// Negative controls: each page has one fault, and all are shown by one start of the browser.
#[test]
fn what_is_wrong_is_found() {
    let Some(browser) = browser() else { return };
    let html = sample::page().render();
    let faults = faults(&html);
    let frames = faults
        .iter()
        .map(|(_, html, scheme, width)| (html.as_str(), Frame { scheme: *scheme, width: *width }));
    let found = browser.inspect_each("controls", &frames.collect::<Vec<_>>());
    for (found, (expected, _, scheme, width)) in found.iter().zip(&faults) {
        let problems = found.problems(&sample::MARKS);
        println!("{expected}: {problems:#?}");
        let has = problems.iter().any(|problem| problem.contains(expected));
        assert!(has, "{expected:?} in {scheme:?} at {width}: {problems:?}");
    }
}

type Fault = (&'static str, String, Scheme, u32);

/// Returns pages with faults, and the words by which each is reported.
fn faults(html: &str) -> Vec<Fault> {
    let (light, dark) = (Scheme::Light, Scheme::Dark);
    let at_the_end = |addition: &str| before_the_end(html, addition);
    let styled = |style: &str| with(html, "</style>", &format!("{style}</style>"));
    let error = at_the_end("<script>thereIsNoSuchFunction()</script>");
    let error = with(&error, "default-src 'none'", "script-src 'unsafe-inline'");
    let mut faults = vec![
        ("thereIsNoSuchFunction", error, light, WIDE),
        ("forbidden: script-src", at_the_end("<script>1</script>"), light, WIDE),
        ("contrast", styled(".note { color: #333 }"), dark, WIDE),
        ("contrast", styled(".i0 { color: #fff !important }"), light, WIDE),
        ("overlaps", styled(".ticks span { font-size: 40px }"), light, WIDE),
        (
            "overlaps",
            styled("main .name { margin-right: -8rem; white-space: nowrap }"),
            light,
            WIDE,
        ),
        ("is cut off", styled(".caption { transform: translateX(60%) }"), light, WIDE),
        ("is broken", styled(".name { width: 2rem; overflow-wrap: anywhere }"), light, WIDE),
        ("0 marks, expected 11", styled(".mark { display: none }"), light, WIDE),
        ("bytes, expected", at_the_end(&format!("<!--{}-->", "x".repeat(1_000_000))), light, WIDE),
    ];
    faults.extend(faults_of_tables(html));
    faults.extend(faults_of_charts(html));
    faults.extend(faults_of_openings(html));
    faults
}

fn faults_of_tables(html: &str) -> Vec<Fault> {
    let styled = |style: &str| with(html, "</style>", &format!("{style}</style>"));
    let cut = "table { table-layout: fixed; width: 12rem } td, th { white-space: nowrap }";
    let mut faults = vec![("is cut off", styled(cut), Scheme::Light, NARROW)];
    for width in [NARROW, 768, WIDE, 1920] {
        let block = format!("<div style=\"width: {width}px\">wide</div>");
        let table = format!("<div class=\"table\"><table style=\"width: {width}px\"><tr><td>1");
        let wide = [
            ("wider than the window", before_the_end(html, &block)),
            ("scrolls sideways", before_the_end(html, &table)),
        ];
        faults.extend(wide.map(|(expected, html)| (expected, html, Scheme::Light, width)));
    }
    // On paper nothing can be scrolled.
    let printed = with(html, "@media print {", "@media print { main { width: 800px }");
    faults.push(("wider than the window", printed, Scheme::Paper, 703));
    faults
}

fn faults_of_charts(html: &str) -> Vec<Fault> {
    let label = |at: usize| format!("<text x=\"{at}\" y=\"15\">label</text>");
    let labels = format!("<svg class=\"area\" height=\"20\">{}{}</svg>", label(0), label(9));
    let in_a_chart =
        html.replacen("<div class=\"plane\"", &format!("{labels}<div class=\"plane\""), 1);
    let alike = " .series, .mark { stroke-width: 2px !important; stroke-dasharray: none !important; transform: none !important }";
    vec![
        ("overlaps", in_a_chart, Scheme::Light, NARROW),
        (
            "hidden by other lines: \"policy A\"",
            with(html, "</style>", &format!("{alike}</style>")),
            Scheme::Light,
            WIDE,
        ),
        (
            "no name or not reached: chart-1",
            html.replacen(" role=\"img\"", "", 1),
            Scheme::Light,
            WIDE,
        ),
        (
            "no name or not reached: chart-1",
            html.replacen(" tabindex=\"0\" aria-label=\"Dots", " aria-label=\"Dots", 1),
            Scheme::Light,
            WIDE,
        ),
    ]
}

fn faults_of_openings(html: &str) -> Vec<Fault> {
    let (before, rest) = html.split_once("<p class=\"verdict\">").expect("a verdict");
    let (verdict, after) = rest.split_once("</p>").expect("its end");
    let opening = |begin: &str, text: &str| format!("{before}{begin}{text}</p>{after}");
    let begin = "<p class=\"verdict\">";
    let faults = [
        ("no number", opening(begin, "Everything is well.")),
        ("no end", opening(begin, "The error is 3")),
        ("several sentences", opening(begin, "The error is 3. Others are larger.")),
        ("no number", opening("<p>", verdict)),
        ("no chart", opening(begin, &format!("{verdict}</p><p>Another."))),
    ];
    faults.map(|(expected, html)| (expected, html, Scheme::Light, WIDE)).into()
}

#[test]
fn empty_charts_are_found_and_break_nothing() {
    let Some(browser) = browser() else { return };
    let found = inspect(&browser, "control-empty", &sample::empty().render(), Scheme::Light, WIDE);
    let expected = [1, 2, 3, 4, 5, 6].map(|at| format!("chart-{at}: 0 marks, expected 1"));
    assert_eq!(found.problems(&[1; 6]), expected);
}

#[test]
fn nothing_is_fetched_and_the_policy_is_what_forbids_it() {
    let Some(browser) = browser() else { return };
    let server = Server::start();
    let html = sample::page().render();
    let address = format!("http://{}", server.address);
    let ways = format!(
        "<img src=\"{address}/picture\"><link rel=\"stylesheet\" href=\"{address}/style\">\
         <script>fetch(\"{address}/data\").catch(() => {{}})</script>"
    );
    let fetching = before_the_end(&html, &ways);

    let found = inspect(&browser, "fetching", &fetching, Scheme::Light, WIDE);
    assert_eq!(server.requests(), [] as [String; 0], "the page has fetched something");
    for forbidden in ["img-src", "style-src", "script-src"] {
        let noted = found.errors.iter().any(|error| error.contains(forbidden));
        assert!(noted, "{forbidden}: {:?}", found.errors);
    }

    let policy =
        html.lines().find(|line| line.contains("Content-Security-Policy")).expect("a policy");
    let allowed = with(&fetching, policy, "");
    inspect(&browser, "control-fetching", &allowed, Scheme::Light, WIDE);
    assert_eq!(
        server.requests(),
        ["GET /data HTTP/1.1", "GET /picture HTTP/1.1", "GET /style HTTP/1.1"]
    );
}

#[test]
fn pages_name_no_address_and_have_no_script() {
    let html = sample::page().render();
    assert!(!html.contains("http:") && !html.contains("https:"), "an address");
    assert!(!html.contains(" src=") && !html.contains("url(") && !html.contains("@import"));
    assert!(!html.contains("<script") && !html.contains("javascript:"), "a script");
}

#[test]
fn pages_without_plots_are_small() {
    let mut page = Page::new("Text <only>", "It has 0 charts.");
    page.section("A & B", "Result.\n\nOne paragraph.\n\nAnother.");
    let html = page.render();
    assert!(html.len() < 15_000 && !html.contains("<svg"), "{} bytes", html.len());
    assert!(html.contains("<title>Text &lt;only&gt;</title>"));
    assert!(html.contains("<p>One paragraph.</p>\n<p>Another.</p>"));
    let result = "<summary><h2>A &amp; B</h2><span class=\"result\">Result.</span></summary>";
    assert!(html.contains(result), "{html}");
}
