//! The shipped rules and the dashboard name what the program exports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use iostrata_show::metrics::metrics;
use serde_json::Value;

fn shipped(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Words of a text that begin as metrics do.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("iostrata_")).collect()
}

fn exported() -> BTreeSet<&'static str> {
    metrics().map(|(name, ..)| name).collect()
}

fn assert_exported(file: &str, text: &str) {
    let (found, exported) = (names(text), exported());
    let unknown: Vec<&&str> = found.difference(&exported).collect();
    assert!(unknown.is_empty(), "{file} names what is not exported: {unknown:?}");
    assert!(found.len() > 3, "{file} names nothing");
}

#[test]
fn rules_name_exported_metrics_only() {
    for file in ["iostrata-alerts.yml", "iostrata-alerts-test.yml"] {
        let path = format!("contrib/prometheus/{file}");
        assert_exported(file, &shipped(&path));
    }
}

#[test]
fn the_dashboard_names_exported_metrics_only() {
    let text = shipped("contrib/grafana/iostrata-dashboard.json");
    assert_exported("the dashboard", &text);
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut cells = BTreeSet::new();
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let expr = target["expr"].as_str().unwrap();
            assert!(!names(expr).is_empty(), "{expr}");
        }
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(cells.insert((x, y)), "panels lie over each other at {x}, {y}");
            }
        }
    }
}

#[test]
fn the_document_has_every_metric() {
    let document = shipped("docs/watch-screen.md");
    assert_exported("docs/watch-screen.md", &document);
    for (name, _, help) in metrics() {
        let row = document.lines().find(|line| line.starts_with(&format!("| `{name}`")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in docs/watch-screen.md"));
        let help = help.trim_end_matches('.').to_lowercase();
        assert!(row.to_lowercase().contains(&help), "{row}\nmeans: {help}");
    }
}
