//! The program that draws: plotly.js, as the crate `plotly` brings it.

use plotly::Plot;

/// The source of plotly.js, about 4.7 MB. It holds no `</script`.
pub(crate) fn source() -> String {
    // The crate gives two script elements: plotly.js, and MathJax for formulas, which no report
    // has.
    let scripts = Plot::offline_js_sources();
    let first = scripts.split("</script").next().unwrap_or_default();
    first.split_once('>').map(|(_, source)| source.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_plotly_and_nothing_else() {
        let source = source();
        let start = source.get(..200).unwrap_or_default();
        assert!(start.contains("plotly.js v3.") && start.contains("MIT license"), "{start}");
        assert!(!source.contains("mathjax@"), "MathJax is included");
        assert!((4_000_000..5_500_000).contains(&source.len()), "{} bytes", source.len());
    }
}
