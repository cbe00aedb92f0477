//! What stands beside a finding or a method: named figures, whose names end in their units.

use std::collections::BTreeMap;

use iostrata_stats::Interval;
use serde::Deserialize;
use serde_json::Value;

use crate::report::words::{half_width, title, value};

/// A named piece of evidence as name and text; the unit is taken from the end of the name.
pub(crate) fn evidence(name: &str, what: &Value) -> (String, String) {
    const UNITS: [(&str, &str); 11] = [
        ("_bytes_per_s", "bytes/s"),
        ("_per_s", "/s"),
        ("_iops", "/s"),
        ("_us", "us"),
        ("_ns", "ns"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_bytes", "bytes"),
        ("_kib", "KiB"),
        ("_pct", "percent"),
        ("_percent", "percent"),
    ];
    let base = name.strip_suffix("_ci95").unwrap_or(name);
    let interval_of = if base.len() < name.len() { ", 95 %" } else { "" };
    let known = UNITS.iter().find_map(|(end, unit)| Some((base.strip_suffix(end)?, *unit)));
    // `response_us_at_50_pct` ends in the share at which it was taken: two units are none.
    let inside = ["_us_", "_ns_", "_ms_", "_s_", "_bytes_", "_iops_"];
    let is_one = |stem: &str| !inside.iter().any(|unit| stem.contains(unit));
    let (stem, unit) = known.filter(|(stem, _)| is_one(stem)).unwrap_or((base, ""));
    (title(stem) + interval_of, json(what, unit))
}

/// Named figures, each in one line with its interval and its number of samples, which stand beside
/// it under its name with `_ci95` and `_n`.
pub(crate) fn measured(all: &BTreeMap<String, Value>) -> Vec<(String, String)> {
    let belongs = |name: &str, end: &str| {
        name.strip_suffix(end).is_some_and(|figure| all.contains_key(figure))
    };
    let own = all.iter().filter(|(name, _)| !belongs(name, "_ci95") && !belongs(name, "_n"));
    own.map(|(name, what)| {
        let (title, mut text) = evidence(name, what);
        let beside = |end: &str| all.get(&format!("{name}{end}"));
        let ends = beside("_ci95").and_then(|ends| Interval::deserialize(ends).ok());
        let half = what.as_f64().and_then(|value| half_width(value, ends));
        text.extend(half.map(|half| format!(" {half}")));
        text.extend(beside("_n").and_then(Value::as_u64).map(|n| format!(", n = {n}")));
        (title, text)
    })
    .collect()
}

fn json(what: &Value, unit: &str) -> String {
    match what {
        Value::Null => "not known".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(number) => value(number, unit),
            None => number.to_string(),
        },
        Value::Array(all) => {
            let between =
                if all.len() == 2 && all.iter().all(Value::is_number) { " to " } else { ", " };
            all.iter().map(|one| json(one, unit)).collect::<Vec<_>>().join(between)
        }
        Value::Object(fields) => {
            let parts = fields.iter().map(|(name, what)| {
                let (name, text) = evidence(name, what);
                format!("{name} {text}")
            });
            parts.collect::<Vec<_>>().join("; ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn evidence_takes_its_unit_from_its_name() {
        let shown = |name: &str, what: Value| evidence(name, &what);
        assert_eq!(shown("flush_mean_us", json!(812.0)), ("Flush mean".into(), "812 us".into()));
        assert_eq!(shown("redo_bytes_per_s", json!(2048)), ("Redo".into(), "2 KiB/s".into()));
        assert_eq!(
            shown("loss_pct_ci95", json!([2.0, 4.0])),
            ("Loss, 95 %".into(), "2.0 % to 4.0 %".into())
        );
        let two_units = shown("response_us_p99_at_50_pct", json!(15_898.0));
        assert_eq!(two_units.1, "15.9 K", "microseconds are no share");
        assert_eq!(
            shown("response_p99_at_50_percent_of_limit_us", json!(15_898.0)),
            ("Response p99 at 50 percent of limit".into(), "15.9 ms".into())
        );
        assert_eq!(shown("scheduler", json!("bfq")), ("Scheduler".into(), "bfq".into()));
        assert_eq!(shown("x", json!(null)).1, "not known");
    }
}
