//! A registry of metrics that writes pages, without another crate's interface.

mod description;
mod error;
mod labelled;
mod metric;
mod parts;
mod series;
mod values;

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, PoisonError, RwLock};

use description::Described;
pub use description::{DEFAULT_LIMIT, Description};
pub use error::{LabelError, RegisterError};
pub use labelled::Labelled;
use metric::Any;
pub use metric::Metric;
pub use parts::Parts;

pub use crate::entries::NoMemory;
use crate::page::Format;
use series::Series;

/// Metrics that go onto one page. Clones are the same registry.
///
/// ```
/// use percid_metrics::{Counter, Description, Format, Histogram, Registry};
///
/// let registry = Registry::new();
/// let requests = registry.register::<Counter>(Description::new("requests").labels(["status"]))?;
/// let seconds = Description::new("request").unit("seconds").buckets([0.1, 1.0]);
/// let seconds = registry.register::<Histogram>(seconds)?;
/// requests.get(["200"])?.inc();
/// seconds.get::<&str>([])?.observe(0.25);
/// let expected = "\
/// ## TYPE request_seconds histogram
/// request_seconds_bucket{le=\"0.1\"} 0
/// request_seconds_bucket{le=\"1\"} 1
/// request_seconds_bucket{le=\"+Inf\"} 1
/// request_seconds_sum 0.25
/// request_seconds_count 1
/// ## TYPE requests_total counter
/// requests_total{status=\"200\"} 1
/// ";
/// assert_eq!(registry.render(Format::Text), expected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Contract
///
/// * **Threads**: any number of threads may call every method at once. Updates continue while a
///   page is made. A thread with new labels waits while at most 3584 references are copied.
/// * **Values on a page**: each value contains every update that happened before the page was
///   begun. It may contain later ones, because each value is read at its own time. Count and sum of
///   a histogram are consistent. A series that exists when its metric's list is made is on the page
///   once. Later series may be missing.
/// * **Memory**: metrics exist for as long as the registry.
/// * **Signals, fork**: like [`Family`](crate::Family).
#[derive(Clone, Default)]
pub struct Registry {
    /// The metrics, sorted by name.
    metrics: Arc<RwLock<Vec<Series>>>,
}

impl Registry {
    /// Creates a registry without metrics.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a metric. If its description has no labels, its only series is on the page from now on.
    ///
    /// # Errors
    ///
    /// If the description does not conform to the formats, its name is taken, or there is no
    /// memory.
    pub fn register<M: Metric>(
        &self,
        description: Description,
    ) -> Result<Labelled<M>, RegisterError> {
        self.add(description.checked(M::KIND)?, M::make).map(Labelled::new)
    }

    fn add(
        &self,
        described: Described,
        new: fn(&Described) -> Any,
    ) -> Result<Series, RegisterError> {
        let mut metrics = self.metrics.write().unwrap_or_else(PoisonError::into_inner);
        if metrics.iter().any(|there| there.described().collides(&described)) {
            return Err(RegisterError::NameTaken(described.name));
        }
        // #[gamma::skip(relational.lt_to_le, reason = "no two names are the same")]
        let place = metrics.partition_point(|there| there.described().name < described.name);
        // #[gamma::skip(literal.int_increment, reason = "more room does no harm")]
        metrics.try_reserve(1).map_err(|_| RegisterError::NoMemory)?;
        let series = Series::new(described, new)?;
        metrics.insert(place, series.clone());
        Ok(series)
    }

    /// Returns the page.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub fn render(&self, format: Format) -> String {
        let mut page = Vec::new();
        match self.render_to(format, &mut page) {
            Ok(()) => String::from_utf8_lossy(&page).into_owned(),
            Err(error) => panic!("percid-metrics: {error}"),
        }
    }

    /// Writes the page while it is made. No lock is held during calls of the writer.
    ///
    /// # Errors
    ///
    /// The error of the writer, or [`ErrorKind::OutOfMemory`] if there is no memory.
    pub fn render_to(&self, format: Format, out: &mut impl Write) -> io::Result<()> {
        let no_memory = |NoMemory| ErrorKind::OutOfMemory;
        let mut parts = self.parts(format).map_err(no_memory)?;
        while let Some(part) = parts.next().map_err(no_memory)? {
            out.write_all(part)?;
        }
        Ok(())
    }

    /// Returns the page as parts that are made one by one.
    ///
    /// # Errors
    ///
    /// [`NoMemory`] if there is no memory.
    pub fn parts(&self, format: Format) -> Result<Parts, NoMemory> {
        let metrics = self.metrics.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        all.try_reserve_exact(metrics.len()).map_err(|_| NoMemory)?;
        all.extend(metrics.iter().cloned());
        Ok(Parts::new(format, all))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = self.metrics.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(metrics.iter().map(|metric| &metric.described().name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::description::Described;
    use super::metric::Typed;
    use super::*;
    use crate::page::Kind;
    use crate::refusals::{refuse, refuse_each};
    use crate::{Counter, FloatCounter, Gauge};

    #[test]
    fn without_memory_it_is_told_and_later_all_is_there() {
        let registry = Registry::new();
        let described = || -> Described {
            let description = Description::new("a").constant_label("b", "c").labels(["d", "e"]);
            description.checked(Kind::Counter).expect("it is good")
        };
        let (refused, first) = (described(), described());
        let result = refuse(0, || registry.add(refused, Counter::make).map(drop));
        assert_eq!(result, Some(Err(RegisterError::NoMemory)));
        let counters = registry.add(first, Counter::make).map(Labelled::<Counter>::new);
        let counters = counters.expect("memory");
        // The values of the labels, the list of tables, and the first one.
        for number in 0..3 {
            let result = refuse(number, || counters.get(["f", "g"]).map(drop));
            assert_eq!(result, Some(Err(LabelError::NoMemory)), "{number}");
        }
        for n in 0..200 {
            counters.get(["\"".repeat(100), "\"".repeat(n + 1)]).expect("memory").inc();
        }
        let register = |name| Description::new(name).help("help").unit("seconds");
        registry
            .register::<Gauge>(register("f"))
            .expect("memory")
            .get::<&str>([])
            .expect("")
            .set(0.5);
        registry.register::<FloatCounter>(register("g")).expect("memory");

        let page = registry.render(Format::OpenMetrics);
        assert_eq!(page.lines().filter(|line| line.ends_with(" 1")).count(), 200);
        let render = || registry.render_to(Format::OpenMetrics, &mut io::sink());
        let refusals = refuse_each(render, |result| {
            assert_eq!(result.expect_err("no memory").kind(), ErrorKind::OutOfMemory);
        });
        // The list of metrics, that of each one's series twice, a part, and the labels.
        assert!(refusals > 8, "{refusals}");
        assert_eq!(registry.render(Format::OpenMetrics), page);
    }
}
