//! A strict parser of OpenMetrics 1.0 for the types of metrics on these pages, written from the
//! specification alone.

use std::collections::HashSet;

/// A label set as text, without the labels that a type adds.
type Labels = Vec<(String, String)>;

/// The part of the current family that was read so far.
#[derive(Default)]
struct Family {
    name: String,
    kind: Option<String>,
    metadata: HashSet<&'static str>,
    has_samples: bool,
    metrics: HashSet<Labels>,
    metric: Option<Metric>,
}

/// A metric of a histogram or summary.
#[derive(Default)]
struct Metric {
    labels: Labels,
    /// Limit and count of each bucket.
    buckets: Vec<(f64, u64)>,
    sum: Option<f64>,
    count: Option<u64>,
}

/// Returns the first rule that a page breaks.
pub(crate) fn check(page: &str) -> Result<(), String> {
    let body = page.strip_suffix('\n').unwrap_or(page);
    let Some(body) = body.strip_suffix("# EOF") else {
        return Err("does not end with # EOF".into());
    };
    let (mut names, mut series, mut family) = (HashSet::new(), HashSet::new(), Family::default());
    for line in body.strip_suffix('\n').unwrap_or(body).split('\n').filter(|_| !body.is_empty()) {
        if line == "# EOF" {
            return Err("a line behind # EOF".into());
        }
        if let Some(metadata) = line.strip_prefix("# ") {
            let (word, rest) = metadata.split_once(' ').unwrap_or((metadata, ""));
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let word = ["TYPE", "UNIT", "HELP"].into_iter().find(|it| *it == word);
            let word = word.ok_or("neither metadata nor a sample")?;
            if !is_name(name, ":") {
                return Err(format!("no name: {name}"));
            }
            if family.name != name {
                family.end()?;
                if !names.insert(name.to_owned()) {
                    return Err(format!("family {name} comes again"));
                }
                family = Family { name: name.to_owned(), ..Family::default() };
            }
            family.metadata(word, text)?;
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').ok_or("neither metadata nor a sample")?;
        let (name, labels) = match sample.find('{') {
            Some(at) => (&sample[..at], read_labels(&sample[at..])?),
            None => (sample, Labels::new()),
        };
        if !is_name(name, ":") {
            return Err(format!("no name: {name}"));
        }
        if !series.insert((name.to_owned(), labels.clone())) {
            return Err(format!("twice: {sample}"));
        }
        family.sample(name, labels, value)?;
    }
    family.end()
}

impl Family {
    fn metadata(&mut self, word: &'static str, text: &str) -> Result<(), String> {
        if self.has_samples {
            return Err(format!("metadata of {} behind its samples", self.name));
        }
        if !self.metadata.insert(word) {
            return Err(format!("{word} twice"));
        }
        match word {
            "TYPE" => self.kind = Some(text.to_owned()),
            "UNIT" if !self.name.strip_suffix(text).is_some_and(|rest| rest.ends_with('_')) => {
                return Err(format!("unit {text} is not the end of {}", self.name));
            }
            "HELP" => _ = unescaped(text)?,
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, name: &str, mut labels: Labels, value: &str) -> Result<(), String> {
        self.has_samples = true;
        let number: f64 = value.parse().map_err(|_| format!("no number: {value}"))?;
        let kind = self.kind.clone().unwrap_or_else(|| "unknown".to_owned());
        let suffix = name.strip_prefix(self.name.as_str());
        let no_sample = || format!("{name} is no sample of {kind} {}", self.name);
        let suffix = suffix.ok_or_else(no_sample)?.to_owned();
        let counts = || match number >= 0.0 {
            true => Ok(()),
            false => Err(format!("NaN or negative: {name}")),
        };
        let integer = || value.parse::<u64>().map_err(|_| format!("no integer: {value}"));
        match (kind.as_str(), suffix.as_str()) {
            ("gauge" | "unknown", "") => return self.metric_of(labels).map(drop),
            ("counter", "_total") => {
                counts()?;
                return self.metric_of(labels).map(drop);
            }
            ("histogram", "_bucket") => {
                let limit = canonical(take(&mut labels, "le").ok_or("a bucket without limit")?)?;
                let count = integer()?;
                self.metric_of(labels)?.buckets.push((limit, count));
            }
            ("summary", "") => {
                let quantile = take(&mut labels, "quantile").ok_or("no label quantile")?;
                let value = canonical(quantile.clone())?;
                if !(0.0..=1.0).contains(&value) {
                    return Err(format!("no quantile: {quantile}"));
                }
                if !number.is_nan() {
                    counts()?;
                }
                self.metric_of(labels)?;
            }
            ("histogram" | "summary", "_sum") => {
                counts()?;
                self.metric_of(labels)?.sum = Some(number);
            }
            ("histogram" | "summary", "_count") => {
                let count = integer()?;
                self.metric_of(labels)?.count = Some(count);
            }
            _ => return Err(no_sample()),
        }
        Ok(())
    }

    /// Returns the metric with these labels, which is the current one or a new one.
    fn metric_of(&mut self, labels: Labels) -> Result<&mut Metric, String> {
        if self.metric.as_ref().is_none_or(|metric| metric.labels != labels) {
            self.end()?;
            if !self.metrics.insert(labels.clone()) {
                let names: Vec<_> =
                    labels.iter().map(|(name, of)| format!("{name}={of:?}")).collect();
                return Err(format!("metric {{{}}} comes again", names.join(",")));
            }
        }
        Ok(self.metric.get_or_insert_with(|| Metric { labels, ..Metric::default() }))
    }

    /// Checks the metric that ends.
    fn end(&mut self) -> Result<(), String> {
        let Some(metric) = self.metric.take().filter(|_| self.kind.as_deref() == Some("histogram"))
        else {
            return Ok(());
        };
        let Metric { buckets, sum, count, .. } = metric;
        let last = buckets.last().filter(|(limit, _)| *limit == f64::INFINITY);
        let (_, all) = last.ok_or("no bucket +Inf")?;
        let pairs = || buckets.iter().zip(buckets.iter().skip(1));
        if pairs().any(|(low, high)| low.0 >= high.0) {
            return Err("limits do not ascend".into());
        }
        if let Some((_, high)) = pairs().find(|(low, high)| low.1 > high.1) {
            let limit =
                if high.0 == f64::INFINITY { "+Inf".to_owned() } else { high.0.to_string() };
            return Err(format!("fewer in {limit} than below"));
        }
        if sum.is_some() != count.is_some() {
            return Err("sum without count or count without sum".into());
        }
        if count.is_some_and(|count| count != *all) {
            return Err("count is not that of +Inf".into());
        }
        if sum.is_some() && buckets[0].0 < 0.0 {
            return Err("a sum with negative limits".into());
        }
        Ok(())
    }
}

fn is_name(name: &str, others: &str) -> bool {
    let may_begin = |char: char| char.is_ascii_alphabetic() || char == '_' || others.contains(char);
    name.starts_with(may_begin) && name.chars().all(|char| may_begin(char) || char.is_ascii_digit())
}

fn take(labels: &mut Labels, name: &str) -> Option<String> {
    let place = labels.iter().position(|(there, _)| there == name)?;
    Some(labels.remove(place).1)
}

/// Parses a number as Go's `%g` writes it, with `.0` if there is neither point nor exponent.
fn canonical(text: String) -> Result<f64, String> {
    let wrong = || format!("not canonical: {text}");
    let value: f64 = text.parse().map_err(|_| wrong())?;
    let digits = text.trim_start_matches('-');
    let is_special = matches!(text.as_str(), "+Inf" | "-Inf");
    let has_point = digits.contains('.') && !digits.contains('e');
    let has_exponent = digits.split_once('e').is_some_and(|(_, exponent)| {
        let number = exponent.strip_prefix(['+', '-']);
        number.is_some_and(|number| number.len() >= 2)
    });
    let is_large_or_small = value != 0.0 && !(1e-4..1e6).contains(&value.abs());
    let is_right = is_special || if is_large_or_small { has_exponent } else { has_point };
    if is_right { Ok(value) } else { Err(wrong()) }
}

/// Parses labels in braces.
fn read_labels(text: &str) -> Result<Labels, String> {
    let inside = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')).ok_or("bad labels")?;
    let (mut labels, mut rest) = (Labels::new(), inside);
    while !rest.is_empty() {
        let (name, behind) = rest.split_once("=\"").ok_or("bad labels")?;
        if !is_name(name, "") {
            return Err(format!("no label: {name}"));
        }
        let mut is_escaped = false;
        let end = behind.find(|char| {
            let is_end = char == '"' && !is_escaped;
            is_escaped = char == '\\' && !is_escaped;
            is_end
        });
        let end = end.ok_or("bad labels")?;
        if labels.iter().any(|(there, _)| there == name) {
            return Err(format!("label {name} twice"));
        }
        labels.push((name.to_owned(), unescaped(&behind[..end])?));
        rest = &behind[end + 1..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').ok_or("bad labels")?;
        }
    }
    Ok(labels)
}

/// Returns a text without its escapes.
fn unescaped(text: &str) -> Result<String, String> {
    let (mut plain, mut chars) = (String::new(), text.chars());
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some(other @ ('"' | '\\')) => other,
                _ => return Err("an undefined escape".into()),
            },
            '"' | '\n' => return Err("an unescaped character".into()),
            other => other,
        });
    }
    Ok(plain)
}
