//! Charts and the chart library inside the page.
//!
//! Invariants: the library is there once; no text from outside can end a script element.

use serde_json::{Map, Value};

use super::Chart;

/// Every chart of a page, collected while the page is written.
#[derive(Default)]
pub(crate) struct Charts {
    specs: Map<String, Value>,
}

impl Charts {
    /// Adds a chart to be drawn when the page opens.
    pub(crate) fn add(&mut self, chart: &Chart) {
        let known = self.specs.insert(chart.name.clone(), spec(chart));
        assert!(known.is_none(), "two charts are named {}", chart.name);
    }

    /// Adds several charts that take turns in one place; the first is drawn when the page opens.
    pub(crate) fn add_choice(&mut self, name: &str, charts: &[Chart]) {
        let choice: Vec<Value> = charts.iter().map(spec).collect();
        self.specs.insert(name.to_owned(), serde_json::json!({ "choice": choice }));
    }

    /// All of them as JSON that can stand in a script element.
    pub(crate) fn json(self) -> String {
        for_script(&Value::Object(self.specs).to_string())
    }
}

fn spec(chart: &Chart) -> Value {
    match serde_json::to_value(chart) {
        Ok(spec) => spec,
        Err(error) => unreachable!("charts hold numbers, texts and lists only: {error}"),
    }
}

/// JSON whose text cannot end or open a script element or a comment. The escapes mean the same
/// characters to every JSON parser.
pub(crate) fn for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// The chart library's script without its element. It comes with a library for formulas behind it,
/// which is left out: no chart has one.
pub(crate) fn plotly_script() -> String {
    const OPEN: &str = "<script type=\"text/javascript\">";
    const CLOSE: &str = "</script>";
    let both = plotly::Plot::offline_js_sources();
    let from = both.find(OPEN).map(|at| at + OPEN.len());
    let to = both.find(CLOSE);
    match (from, to) {
        (Some(from), Some(to)) if from < to => both[from..to].to_owned(),
        _ => unreachable!("the chart library's script stands in a script element"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_the_script_element() {
        let hostile = "</script><script>alert(1)</script><!-- ]]> \u{2028} &";
        let json = for_script(&Value::from(hostile).to_string());
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }

    #[test]
    fn the_library_comes_alone() {
        let script = plotly_script();
        assert!(script.contains("plotly.js v3") && !script.contains("MathJax.js"));
        assert!(!script.contains("</script"), "it would end its element");
        assert!(script.len() < 6_000_000, "{}", script.len());
    }
}
