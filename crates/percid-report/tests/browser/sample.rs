//! Sample pages: every kind of plot, very awkward names, and a large one. No value in them was
//! measured or published.

use percid_report::{
    Align, Axis, Bars, Cell, Dot, Dots, Lines, Page, Span, Strips, Table, Timeline, TrackSpan,
    Tracks,
};

/// The marks of [`page`]'s charts. A range is a mark too.
pub(crate) const MARKS: [usize; 8] = [11, 11, 24, 4, 3 * (1 + 6), 4 * (1 + 6), 2 + 3 + 4, 8 * 12];
/// The text that appears when the pointer is on the first mark of each chart.
pub(crate) const HOVER: [&str; 8] = [
    "384 threads, policy A | simulated: 6,004.2 ns",
    "large machine, 384 threads, pauses of 10 ms | simulated: 6,004.2 ns",
    "policy A, 10 ms | hot: 61 %",
    "a <b>bold</b> & \"quoted\" one | %{y} </script>: 3",
    "policy A",
    "policy A",
    "computed | bit 0-3: 1",
    "ID 0",
];
/// Names that would be markup if they were not escaped. They appear in the plots unchanged.
pub(crate) const HOSTILE: [&str; 2] = ["%{y} </script>", "$x$ &amp; {z}"];

/// Returns a page with every kind of plot.
pub(crate) fn page() -> Page {
    let mut page = Page::new(
        "Sample: coming back to per-CPU memory after a pause",
        "The mean error of four invented figures is 9.2 %, of which one is out of bounds.",
    );
    page.about(
        "Figures of a test, not of a machine.\n\n\
         Each thread adds to 256 cache lines, pauses, and comes back.",
    );
    page.section("Against the published figures", "Bounds: 10 % beside the published figure.");
    page.table(against_published());
    page.chart("By policy", "One scale for both policies.", multiples());
    page.chart("Time per burst", "Shorter is better. One figure was never published.", grouped());
    page.section("Where the memory was", "");
    page.chart("Shares of bursts", "How far away the lines were that a burst touched.", stacked());
    page.chart("Awkward <i>names</i>", "Texts that must not be taken for markup.", awkward());
    page.section("Sources", "Six columns, and rows that are named by two of them.");
    page.table(sources());
    page.section("Sweep and time line", "");
    page.chart("Time over pause", "All three grow with the pause, one much more.", lines());
    page.chart("The same, closer", "All but the last coincide.", coinciding());
    page.subsection("Bits", "One of 64 bits differs.");
    page.chart("Threads by bit", "Two of the bits have several.", strips());
    page.chart("IDs over CPUs", "Eight CPUs that hand IDs to each other.", timeline());
    page
}

fn against_published() -> Table {
    let mut table = Table::new([
        ("machine", Align::Left),
        ("published, ns", Align::Right),
        ("simulated, ns", Align::Right),
        ("difference", Align::Right),
    ]);
    table.row(["large machine, pauses of 10 ms", "6120.5", "6004.2", "-1.9 %"]);
    table.row([
        Cell::from("small machine, pauses of 200 ms"),
        Cell::from("14300"),
        Cell::from("17100"),
        Cell::outside("+19.6 %"),
    ]);
    table
}

/// A table so wide that its rows become columns, with long texts among the numbers.
fn sources() -> Table {
    let names = ["machine", "load", "published, ns", "simulated, ns", "bound", "source and reason"];
    let aligned = |at: usize| if (2..=3).contains(&at) { Align::Right } else { Align::Left };
    let mut table = Table::new(names.into_iter().enumerate().map(|(at, name)| (name, aligned(at))));
    for row in 0..12 {
        table.row([
            format!("machine number {row} of a family with a long name"),
            "pauses of 200 ms on every CPU".to_owned(),
            (6120 + row).to_string(),
            (6004 + row).to_string(),
            "the deviation between five runs, twice".to_owned(),
            "discussion of the commit, in words: the scan costs less than a millisecond".to_owned(),
        ]);
    }
    table
}

fn multiples() -> Dots {
    let time = Axis::new("time per burst").unit("ns").logarithmic();
    let dots = Dots::new(Axis::new("machine"), time, ["published", "simulated"]).reference();
    let mut dots = dots.panels(["policy A", "policy B"]).notes(["error"]);
    dots.group("pauses of 10 ms");
    let near = Dot::new([6_120.5, 6_004.2]).note("-1.9 %");
    let far = Dot::new([14_300.0, 17_100.0]).note(Cell::outside("+19.6 %"));
    dots.row("384 threads", [near, far.clone()]);
    dots.group("pauses of 200 ms");
    dots.row("384 threads", [far, Dot::new([None, Some(123_456.0)])]);
    let range = Dot::new([None, Some(11_000.0)]).range(10_000.0, 15_000.0);
    // A value is missing, and so is a panel.
    dots.row("one L3 cache", [range.note("+0.0 %"), Dot::new([1_000.0, 1_003.0])]);
    dots.row("never run", []);
    dots
}

fn grouped() -> Bars {
    let time = Axis::new("time per burst").unit("ns").logarithmic();
    let mut bars = Bars::grouped(Axis::new("machine and load"), time, ["published", "simulated"]);
    bars.category("large machine, 384 threads, pauses of 10 ms", [6_120.5, 6_004.2]);
    bars.category("large machine, 384 threads, pauses of 200 ms", [12_800.0, 13_111.0]);
    bars.category("large machine, one L3, pauses of 10 ms", [4_100.0, 4_022.0]);
    bars.category("small machine, 10 ms", [8_730.0, 9_120.0]);
    bars.category("small machine, 200 ms", [14_300.0, 17_100.0]);
    bars.category("Never published", [None, Some(123_456.0)]);
    bars
}

fn stacked() -> Bars {
    let shares = Axis::new("share of bursts").unit("%");
    let distances = ["hot", "own L2", "same L3", "same node", "other node", "first touch"];
    let mut bars = Bars::stacked(Axis::new("policy"), shares, distances);
    bars.category("policy A, 10 ms", [61.0, 18.0, 11.0, 5.0, 3.0, 2.0]);
    bars.category("policy B, 10 ms", [48.0, 22.0, 14.0, 7.0, 5.0, 4.0]);
    bars.category("policy C, 10 ms", [5.0, 8.0, 21.0, 24.0, 38.0, 4.0]);
    bars.category("policy D, 10 ms", [64.0, 19.0, 1.0, 1.0, 1.0, 14.0]);
    bars
}

fn awkward() -> Bars {
    let mut bars = Bars::grouped(Axis::new("<name>"), Axis::new("count"), HOSTILE);
    bars.category("a <b>bold</b> & \"quoted\" one", [3.0, 2.0]);
    // Neither name is treated as a number or a date, and both rows are drawn.
    bars.category("2024-01-01", [1.0, f64::NAN]);
    bars.category("2024-01-01", [Some(4.0)]);
    bars
}

fn lines() -> Lines {
    let pause = Axis::new("pause").unit("ms").logarithmic();
    let mut lines = Lines::new(pause, Axis::new("time per burst").unit("ns"));
    let pauses = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];
    lines.series("policy A", pauses.map(|ms| (ms, 4_000.0 + 2.0 * ms)));
    lines.series("policy B", pauses.map(|ms| (ms, 4_100.0 + 3.0 * ms)));
    lines.series("policy C", pauses.map(|ms| (ms, 9_000.0 + 55.0 * ms)));
    lines
}

fn coinciding() -> Lines {
    let mut lines = Lines::new(Axis::new("pause").unit("ms"), Axis::new("local").unit("%"));
    let times = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (name, last) in [("policy A", 0.1), ("policy B", 0.2), ("policy C", 0.3)] {
        lines.series(name, times.map(|ms| (ms, 100.0 - 10.0 / ms + last)));
    }
    lines.series("policy D", times.map(|ms| (ms, 5.0 * ms)));
    lines
}

fn strips() -> Strips {
    let mut strips = Strips::new(Axis::new("run"), Axis::new("bit"), "threads");
    strips.group("one").row("computed", (0..64).map(|bit| u32::from(!(4..=60).contains(&bit))));
    strips.row("published", (0..64).map(|bit| [0, 1, 2][(bit / 13) % 3]));
    strips.group(HOSTILE[0]).row("published", (0..64).map(|bit| (bit / 20) as u32 * 2 + 1));
    strips
}

fn timeline() -> Timeline {
    let mut timeline = Timeline::new(Axis::new("time").unit("ms"), "CPU", "ID");
    for row in 0..8 {
        for turn in 0..12 {
            let from = f64::from(turn) * 10.0 + f64::from(row) * 0.5;
            let id = (row + turn / 4) % 8;
            timeline.span(Span { row, id, from, to: from + 8.5 });
        }
    }
    timeline
}

/// Number of spans of [`large_timeline`].
pub(crate) const LARGE: usize = 384 * 40;

/// Returns a page with the CPUs and spans of a large machine in a few hundred milliseconds.
pub(crate) fn large_timeline() -> Page {
    let mut timeline = Timeline::new(Axis::new("time").unit("ms"), "CPU", "ID");
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    for row in 0..384 {
        let mut from = 0.0;
        for _ in 0..LARGE / 384 {
            let to = from + 0.5 + f64::from(random()) / 32_768.0;
            timeline.span(Span { row, id: random() % 400, from, to });
            from = to + f64::from(random()) / 262_144.0;
        }
    }
    let mut page = Page::new("A large time line", "384 CPUs used 400 IDs.");
    page.chart("IDs over CPUs", "", timeline);
    page
}

/// Returns a page with two linked pictures of a long time.
pub(crate) fn tracks() -> Page {
    let tracks = |shift: u64| {
        let mut table = Table::new([("process", Align::Left), ("on CPUs, ms", Align::Right)]);
        table.row(["first", "600"]);
        let mut tracks = Tracks::new("CPU", 0, 1_000_000_000, table).numbered("ID");
        let first = tracks.kind("first (1): 600.000 ms");
        let second = tracks.kind(HOSTILE[0]);
        let one = tracks.thing("first (1), thread one", first);
        let two = tracks.thing(HOSTILE[0], second);
        for row in 0..4_usize {
            tracks.row(row.to_string());
            for turn in 0..2000_u64 {
                let from = turn * 500_000 + shift;
                let thing = if turn % 3 == 0 { two } else { one };
                let number = (turn / 300) as u32;
                tracks.span(TrackSpan { row, thing, number, from, to: from + 400_000 });
            }
        }
        tracks
    };
    let mut page = Page::new("Tracks", "The first process ran 600 ms.");
    page.section("Two of them", "");
    page.chart("One", "", tracks(0)).chart("Another", "", tracks(50_000));
    page
}

/// Returns a page with charts of every kind, without a single mark.
pub(crate) fn empty() -> Page {
    let mut page = Page::new("Nothing", "There are 0 figures.");
    let (name, count, time) = (|| Axis::new("name"), || Axis::new("count"), || Axis::new("time"));
    page.chart("Dots", "", Dots::new(name(), count().logarithmic(), ["one"]));
    page.chart("Bars", "", Bars::grouped(name(), count(), ["one"]));
    page.chart("Stacks", "", Bars::stacked(name(), count(), ["one"]));
    page.chart("Lines", "", Lines::new(time().logarithmic(), count()));
    page.chart("Strips", "", Strips::new(name(), time(), "count"));
    page.chart("Time line", "", Timeline::new(time(), "CPU", "ID"));
    page
}
