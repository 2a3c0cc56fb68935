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

#[test]
#[ignore = "slow: a browser for each of fourteen faults"]
fn what_is_wrong_is_found() {
    let Some(browser) = browser() else { return };
    let html = sample::page().render();
    let problems = |name: &str, html: &str, scheme, width| {
        let found = inspect(&browser, &format!("control-{name}"), html, scheme, width);
        let problems = found.problems(&sample::MARKS);
        println!("{name}: {problems:#?}");
        problems
    };
    let has =
        |problems: &[String], what: &str| problems.iter().any(|problem| problem.contains(what));

    let error = before_the_end(&html, "<script>thereIsNoSuchFunction()</script>");
    let error = with(&error, "default-src 'none'", "script-src 'unsafe-inline'");
    assert!(has(&problems("error", &error, Scheme::Light, WIDE), "thereIsNoSuchFunction"));

    let script = before_the_end(&html, "<script>1</script>");
    assert!(has(&problems("script", &script, Scheme::Light, WIDE), "forbidden: script-src"));

    let styled = |style: &str| with(&html, "</style>", &format!("{style}</style>"));
    let invisible = styled(".note { color: #333 }");
    assert!(has(&problems("invisible", &invisible, Scheme::Dark, WIDE), "contrast"));
    let unread = styled(".i0 { color: #fff !important }");
    assert!(has(&problems("unread", &unread, Scheme::Light, WIDE), "contrast"));

    for width in [WIDE, NARROW] {
        let wide = before_the_end(&html, &format!("<div style=\"width: {width}px\">wide</div>"));
        let found = problems("too-wide", &wide, Scheme::Light, width);
        assert!(has(&found, "wider than the window"), "{found:?}");
    }
    let scrolls = styled("td, th { min-width: 26rem }");
    assert!(has(&problems("scrolls", &scrolls, Scheme::Light, WIDE), "scrolls sideways"));
    let crowded = styled(".ticks span { font-size: 40px }");
    assert!(has(&problems("crowded", &crowded, Scheme::Light, WIDE), "overlaps"));
    let columns = styled("main .name { margin-right: -8rem; white-space: nowrap }");
    assert!(has(&problems("columns", &columns, Scheme::Light, WIDE), "overlaps"));
    let cut = styled("table { table-layout: fixed; width: 12rem } td, th { white-space: nowrap }");
    assert!(has(&problems("cut", &cut, Scheme::Light, NARROW), "is cut off"));
    let beyond = styled(".caption { transform: translateX(60%) }");
    assert!(has(&problems("beyond", &beyond, Scheme::Light, WIDE), "is cut off"));
    let broken = styled(".name { width: 2rem; overflow-wrap: anywhere }");
    assert!(has(&problems("broken", &broken, Scheme::Light, WIDE), "is broken"));
    let large = before_the_end(&html, &format!("<!--{}-->", "x".repeat(1_000_000)));
    assert!(has(&problems("large", &large, Scheme::Light, WIDE), "bytes, expected"));
    let hidden = styled(".mark { display: none }");
    assert!(has(&problems("hidden", &hidden, Scheme::Light, WIDE), "0 marks, expected 11"));
}

#[test]
fn empty_charts_are_found_and_break_nothing() {
    let Some(browser) = browser() else { return };
    let found = inspect(&browser, "control-empty", &sample::empty().render(), Scheme::Light, WIDE);
    let expected = [1, 2, 3, 4, 5].map(|at| format!("chart-{at}: 0 marks, expected 1"));
    assert_eq!(found.problems(&[1; 5]), expected);
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
    let mut page = Page::new("Text <only>", "One paragraph.\n\nAnother.");
    page.section("A & B", "");
    let html = page.render();
    assert!(html.len() < 15_000 && !html.contains("<svg"), "{} bytes", html.len());
    assert!(html.contains("<title>Text &lt;only&gt;</title>"));
    assert!(html.contains("<p>One paragraph.</p>\n<p>Another.</p>"));
    assert!(html.contains("<h2 id=\"section-1\">A &amp; B</h2>"));
}
