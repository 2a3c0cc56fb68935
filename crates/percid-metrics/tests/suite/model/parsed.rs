//! Parses a page into its values, in any order and with escaped texts.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Labels = BTreeMap<String, String>;

/// The samples of a page, and its metadata: word, name and text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parsed {
    pub(crate) samples: BTreeMap<(String, Labels), String>,
    pub(crate) metadata: BTreeSet<(String, String, String)>,
}

impl Parsed {
    /// # Panics
    ///
    /// If it is not a page, or contains something twice.
    pub(crate) fn of(page: &str) -> Parsed {
        let mut all = Parsed::default();
        for line in page.split_terminator('\n').filter(|line| *line != "# EOF") {
            if let Some(metadata) = line.strip_prefix("# ") {
                let parts: Vec<&str> = metadata.splitn(3, ' ').collect();
                let [word, name, text] = parts[..] else { panic!("{line}") };
                assert!(all.metadata.insert((word.into(), name.into(), unescaped(text))), "{line}");
            } else {
                let (sample, value) = line.rsplit_once(' ').expect("a value");
                let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
                let labels = read_labels(labels.strip_suffix('}').expect("an end"));
                let is_quantile = labels.contains_key("quantile");
                let value = if is_quantile { "any".to_owned() } else { number(value) };
                assert!(all.samples.insert((name.into(), labels), value).is_none(), "{line}");
            }
        }
        all
    }

    /// Adds the sample with the number of metrics that were left out.
    pub(crate) fn leave_out(&mut self, metrics: u32) {
        let name = "percid_metrics_dropped";
        let text = "Metrics that are left out: their names and labels are those of others";
        self.samples.insert((name.into(), Labels::new()), metrics.to_string());
        let metadata = [("TYPE", "gauge"), ("HELP", text)];
        self.metadata.extend(metadata.map(|(word, text)| (word.into(), name.into(), text.into())));
    }
}

/// Returns a number in one of the ways to write it.
fn number(text: &str) -> String {
    let is_whole = text.parse::<u64>().is_ok();
    if is_whole { text.into() } else { text.parse::<f64>().expect("a number").to_string() }
}

fn read_labels(mut rest: &str) -> Labels {
    let mut all = Labels::new();
    while let Some((name, behind)) = rest.split_once("=\"") {
        let is_end = |at: &usize| {
            let before = behind[..*at].bytes().rev();
            before.take_while(|&byte| byte == b'\\').count() % 2 == 0
        };
        let end = behind.match_indices('"').map(|(at, _)| at).find(is_end).expect("an end");
        let value = unescaped(&behind[..end]);
        let value = if matches!(name, "le" | "quantile") { number(&value) } else { value };
        assert!(all.insert(name.into(), value).is_none(), "{name} is there twice");
        rest = behind[end + 1..].strip_prefix(',').unwrap_or(&behind[end + 1..]);
    }
    assert_eq!(rest, "");
    all
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut chars) = (String::new(), text.chars());
    while let Some(char) = chars.next() {
        plain.push(match (char, char == '\\') {
            (_, true) => match chars.next() {
                Some('n') => '\n',
                Some(escaped) => escaped,
                None => panic!("nothing is escaped: {text}"),
            },
            (plain, false) => plain,
        });
    }
    plain
}
