//! Pages in a real browser: what is drawn, what can be read, what goes wrong, and what is fetched.
//!
//! The browser is Chromium without a window. `PERCID_BROWSER=require` fails where it is missing.
//! The pages are left in the target folder's `tmp/`, for a look at them.

mod sample;
mod server;

use percid_browser::{Browser, Findings, Frame, Scheme};
use percid_report::Page;
use server::Server;

const WIDE: u32 = 1200;
const NARROW: u32 = 400;

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
fn every_kind_of_plot_is_drawn_and_read_in_light_and_dark_and_on_narrow_screens() {
    let Some(browser) = browser() else { return };
    let html = sample::page().render();
    for (scheme, width) in [
        (Scheme::Light, WIDE),
        (Scheme::Dark, WIDE),
        (Scheme::Light, NARROW),
        (Scheme::Dark, NARROW),
    ] {
        let name = format!("sample-{scheme:?}-{width}").to_lowercase();
        let found = inspect(&browser, &name, &html, scheme, width);
        println!("{name}: {} texts, lowest contrast {:.2}", found.texts, found.lowest_contrast);
        assert_eq!(found.problems(&sample::MARKS), [] as [String; 0], "{name}");
        assert_eq!((found.dark, found.width), (scheme == Scheme::Dark, width), "{name}");
        assert!(found.texts > 100, "{name}: only {} texts were looked at", found.texts);
        assert!(found.image.starts_with("data:image/svg+xml"), "a plot cannot be saved");
        let lowest = found.charts.iter().filter_map(|chart| chart.lowest_bar).reduce(f64::min);
        assert!(lowest.is_some_and(|height| height >= 14.0), "{name}: a bar is {lowest:?} high");
        for hostile in sample::HOSTILE {
            let shown =
                found.charts.iter().any(|chart| chart.words.iter().any(|word| word == hostile));
            assert!(shown, "{name}: {hostile:?} is not shown as it is");
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
fn twenty_thousand_spans_on_384_cpus_are_drawn() {
    let Some(browser) = browser() else { return };
    let page = sample::large_timeline();
    let found = inspect(&browser, "large-timeline", &page.render(), Scheme::Light, WIDE);
    assert_eq!(found.problems(&[sample::LARGE]), [] as [String; 0]);
}

#[test]
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
    assert!(has(&problems("error", &error, Scheme::Light, WIDE), "thereIsNoSuchFunction"));

    let broken = html.replacen(
        "<script type=\"application/json\">{",
        "<script type=\"application/json\">",
        1,
    );
    let broken = problems("broken", &broken, Scheme::Light, WIDE);
    assert!(has(&broken, "chart-1: failed") && has(&broken, "SyntaxError"));

    let invisible = with(&html, ".plot text { fill: var(--text) !important; }", "");
    assert!(has(&problems("invisible", &invisible, Scheme::Dark, WIDE), "contrast"));

    let wide = before_the_end(&html, "<div style=\"width: 500px\">wide</div>");
    assert!(has(&problems("too-wide", &wide, Scheme::Light, NARROW), "wider than the window"));

    let crowded = with(&html, "</style>", ".plot text { font-size: 30px !important; }</style>");
    assert!(has(&problems("crowded", &crowded, Scheme::Light, WIDE), "overlaps"));
}

#[test]
fn empty_charts_are_found_and_break_nothing() {
    let Some(browser) = browser() else { return };
    let found = inspect(&browser, "control-empty", &sample::empty().render(), Scheme::Light, WIDE);
    let expected = [1, 2, 3, 4].map(|at| format!("chart-{at}: 0 marks, expected 1"));
    assert_eq!(found.problems(&[1; 4]), expected);
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
    for forbidden in ["img-src", "style-src", "connect-src"] {
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
fn pages_name_no_address_outside_of_the_library_that_draws() {
    let html = sample::page().render();
    let library =
        html.split("<script>").find(|script| script.starts_with("/**")).expect("plotly.js");
    let (library, _) = library.split_once("</script>").expect("its end");
    assert!(library.len() > 4_000_000);
    let own = html.replacen(library, "", 1);
    assert!(!own.contains("http:") && !own.contains("https:"), "an address");
    assert!(!own.contains(" src=") && !own.contains("url(") && !own.contains("@import"));
}

#[test]
fn pages_without_plots_are_small_and_have_no_script() {
    let mut page = Page::new("Text <only>", "One paragraph.\n\nAnother.");
    page.section("A & B", "");
    let html = page.render();
    assert!(html.len() < 10_000 && !html.contains("<script"), "{} bytes", html.len());
    assert!(html.contains("<title>Text &lt;only&gt;</title>"));
    assert!(html.contains("<p>One paragraph.</p>\n<p>Another.</p>"));
    assert!(html.contains("<h2 id=\"section-1\">A &amp; B</h2>"));
}
