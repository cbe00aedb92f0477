//! The statements of docs/studies.md hold.

use super::setting::{SETTINGS, Setting, SettingKind};
use super::*;

const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/studies.md"));

fn row(setting: &Setting) -> String {
    let names: Vec<String> = std::iter::once(&*setting.name)
        .chain(setting.aliases.iter().copied())
        .map(|name| format!("`{name}`"))
        .collect();
    let default = setting.default.map_or(String::new(), |text| format!("`{text}`"));
    let names = names.join(", ");
    format!("| {names} | {} | {default} | {} |", setting.values(), setting.doc)
}

fn table(kind: SettingKind) -> String {
    let rows: Vec<String> =
        SETTINGS.iter().filter(|setting| setting.kind == kind).map(row).collect();
    format!("| setting | value | default | meaning |\n|---|---|---|---|\n{}\n", rows.join("\n"))
}

#[test]
fn the_tables_of_settings_are_those_of_the_catalogue() {
    let kinds = [
        SettingKind::Volume,
        SettingKind::Conditions,
        SettingKind::Workload,
        SettingKind::Transactions,
    ];
    for kind in kinds {
        let table = table(kind);
        let name = kind.name();
        assert!(DOCUMENT.contains(&table), "docs/studies.md lacks the table of {name}:\n{table}");
    }
}

#[test]
fn every_key_of_measure_is_documented() {
    for key in text::measure::KEYS {
        assert!(DOCUMENT.contains(&format!("| `{key}` |")), "docs/studies.md lacks `{key}`");
    }
}

#[test]
fn every_metric_of_printed_figures_is_documented_and_has_a_unit() {
    for (name, metric, unit) in ThenMetric::NAMED {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "docs/studies.md lacks `{name}`");
        assert_eq!((metric.unit(), unit.is_empty()), (unit, false));
    }
}

/// Every block of TOML that names a study is one.
#[test]
fn the_examples_can_be_run() {
    let mut studies = 0;
    for block in DOCUMENT.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        if !text.starts_with("name =") {
            continue;
        }
        studies += 1;
        if let Err(error) = StudySpec::parse(text, "docs/studies.md") {
            panic!("{error}\n{text}");
        }
    }
    assert!(studies >= 1);
}

#[test]
fn the_first_example_has_the_points_it_says() {
    let text = DOCUMENT.split("```toml\n").nth(1).and_then(|it| it.split("```").next()).unwrap();
    let spec = StudySpec::parse(text, "docs/studies.md").unwrap();
    let points =
        |extent| spec.plan(extent, None, &MeasuringOverrides::default()).unwrap().cells.len();
    let said = format!("{} points, {} in full", points(Extent::Quick), points(Extent::Full));
    assert!(DOCUMENT.contains(&said), "docs/studies.md should say: {said}");
}
