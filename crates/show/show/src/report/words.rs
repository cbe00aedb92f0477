//! Figures as text, the same in every view, and the named figures of a finding or a method, whose
//! names end in their units.
//!
//! Invariant: rounds and names units, nothing else. `exact` is the number as the run directory has
//! it.

use std::collections::BTreeMap;

use iostrata_run::host::{PathSegment, QueueStep};
use iostrata_run::{AxisKind, Refusal, Risk, refusal};
use iostrata_stats::units::{bytes, count, microseconds, percent, rate, seconds};
pub(crate) use iostrata_stats::units::{capital, grouped};
use iostrata_stats::{Conclusion, Interval, Verdict, Verdicts};
use serde::Deserialize;
use serde_json::Value;

/// A value with its unit, three significant digits: `104 K reads/s`, `20.3 us`.
pub(crate) fn value(value: f64, unit: &str) -> String {
    scaled(value, unit).unwrap_or_else(|| format!("{} {unit}", count(value)))
}

/// A value whose unit, or its prefix, follows from its size: `990 us`, but `1.02 ms`; nothing where
/// the unit is a plain word, as `reads/s`.
pub(crate) fn scaled(value: f64, unit: &str) -> Option<String> {
    Some(match unit {
        "ns" => microseconds(value / 1e3),
        "us" => microseconds(value),
        "ms" => microseconds(value * 1e3),
        "s" => seconds(value),
        "bytes" => bytes(value),
        "MiB/s" => format!("{}/s", bytes(value * 1_048_576.0)),
        "bytes/s" => format!("{}/s", bytes(value)),
        "percent" | "%" => percent(value),
        "" => count(value),
        "/s" => rate(value),
        // As data sheets and old posts count: in powers of 1000.
        "B/s" => format!("{}B/s", rate(value).trim_end_matches("/s")),
        "times" => times(value),
        _ => return None,
    })
}

/// The ends of an interval with no more digits than the figure that it surrounds gives a meaning:
/// one that lies two decades lower or more is rounded to a thousandth of the figure's decade, and
/// may be 0. Where no figure is known, the end farther from zero stands for it.
///
/// Every text of an interval goes through here.
pub(crate) fn fitted(ends: Interval, figure: Option<f64>) -> Interval {
    let decade = |number: f64| number.abs().log10().floor();
    let figure = figure.unwrap_or_else(|| ends[0].abs().max(ends[1].abs()));
    let scale = decade(figure);
    let step = 10_f64.powf(scale - 3.0);
    ends.map(|end| match decade(end) <= scale - 2.0 && step.is_normal() {
        true => (end / step).round() * step,
        false => end,
    })
}

/// An interval around a figure, the unit once where both ends share it: `101 K to 107 K reads/s`.
pub(crate) fn interval(ends: Interval, figure: Option<f64>, unit: &str) -> String {
    let [low, high] = fitted(ends, figure).map(|end| split(end, unit));
    // Nothing is nothing in any unit.
    if low.1 == high.1 || low.0 == "0" {
        return format!("{} to {} {}", low.0, high.0, high.1).trim_end().to_owned();
    }
    format!("{} {} to {} {}", low.0, low.1, high.0, high.1)
}

/// An interval around a figure in brackets, without its unit: `[73, 75]`.
pub(crate) fn range(ends: Interval, figure: f64, unit: &str) -> String {
    let [low, high] = fitted(ends, Some(figure)).map(|end| split(end, unit).0);
    format!("[{low}, {high}]")
}

/// A value as its number and its unit: `104 K` and `reads/s`, `20.3` and `us`.
pub(crate) fn split(number: f64, unit: &str) -> (String, String) {
    let text = value(number, unit);
    let suffix = format!(" {unit}");
    let parts = match text.strip_suffix(&suffix) {
        Some(number) => Some((number, unit)),
        None => text.rsplit_once(' ').filter(|_| !unit.is_empty()),
    };
    match parts {
        Some((number, unit)) => (number.to_owned(), unit.to_owned()),
        None => (text, String::new()),
    }
}

/// A measured figure as every view shows it.
pub(crate) struct MeasuredText {
    /// The value with its unit, or `unknown`.
    pub(crate) text: String,
    /// Half the interval in percent behind its sign, where the figure is known and has one.
    pub(crate) half: Option<String>,
    /// Why it is unknown, with what it lies between.
    pub(crate) why: Option<String>,
}

impl MeasuredText {
    /// Words that are no measured figure.
    pub(crate) fn plain(text: String) -> Self {
        Self { text, half: None, why: None }
    }
}

/// A rate, time or cost with its interval: what cannot be, or is meaningless, is `unknown`.
pub(crate) fn shown(number: f64, ci95: Option<Interval>, unit: &str) -> MeasuredText {
    match refusal(number, ci95) {
        None => {
            MeasuredText { text: value(number, unit), half: half_width(number, ci95), why: None }
        }
        Some(why) => {
            let between = ci95.filter(|_| why == Refusal::WiderThanValue);
            MeasuredText {
                text: UNKNOWN.to_owned(),
                half: None,
                why: Some(because(why, between, Some(number), unit)),
            }
        }
    }
}

/// What stands where a figure is not known.
const UNKNOWN: &str = "unknown";

/// Why a figure is not known: `its interval is wider than its value, 12 K to 90 K reads/s`.
pub(crate) fn because(
    why: Refusal,
    between: Option<Interval>,
    figure: Option<f64>,
    unit: &str,
) -> String {
    let range = between.map(|ends| format!(", {}", interval(ends, figure, unit)));
    format!("{}{}", why.explain(), range.unwrap_or_default())
}

/// Half the interval in percent of the value: `+- 0.8 %`; nothing without an interval or at zero.
pub(crate) fn half_width(value: f64, ci95: Option<Interval>) -> Option<String> {
    let [low, high] = ci95?;
    let share = (high - low) / 2.0 / value.abs() * 100.0;
    match share {
        share if !share.is_finite() => None,
        share if share < 0.05 => Some("\u{b1} <0.1 %".to_owned()),
        share => Some(format!("\u{b1} {}", percent(share))),
    }
}

/// The number as the run directory has it, every digit.
pub(crate) fn exact(value: f64) -> String {
    Value::from(value).to_string()
}

/// The names of verdicts as the contract spells them, or `sound`.
pub(crate) fn verdicts(verdicts: &Verdicts) -> String {
    if verdicts.is_sound() {
        return "sound".to_owned();
    }
    verdicts.iter().map(verdict).collect::<Vec<_>>().join(", ")
}

/// The name of a verdict as the contract spells it.
pub(crate) fn verdict(verdict: Verdict) -> String {
    match serde_json::to_value(verdict) {
        Ok(Value::String(name)) => name,
        other => unreachable!("a verdict is a string, not {other:?}"),
    }
}

/// A risk class in words.
pub(crate) fn risk(risk: Risk) -> &'static str {
    match risk {
        Risk::None => "no risk",
        Risk::Durability => "durability: a crash may lose more",
        Risk::Wear => "wear: the device ages faster",
        Risk::Uncommitted => "uncommitted: what its client has not committed is rolled back",
        Risk::Rebuild => "rebuild: it needs a backup, time and room",
        Risk::Memory => "memory: too much of it ends in swap or the OOM killer",
    }
}

/// A ratio as how many times: `1.24x`, `0.311x`; small changes keep three decimals.
pub(crate) fn times(ratio: f64) -> String {
    if (0.9..1.1).contains(&ratio) { format!("{ratio:.3}x") } else { format!("{}x", count(ratio)) }
}

/// The interval of a ratio in brackets: `[1.21, 1.27]`.
pub(crate) fn times_range(ends: Interval, ratio: f64) -> String {
    let [low, high] = fitted(ends, Some(ratio)).map(times);
    format!("[{}, {}]", low.trim_end_matches('x'), high.trim_end_matches('x'))
}

/// A change with its sign: `-33 %`, `+4.2 %`, `+12 points`; hardly any is `0 %`.
pub(crate) fn change(change: f64, unit: &str) -> String {
    let unit = if unit == "percent" { "%" } else { unit };
    format!("{} {unit}", signed(change))
}

/// A number of a change with its sign, without its unit.
pub(crate) fn signed(change: f64) -> String {
    match change.abs() {
        size if size < 0.05 => "0".to_owned(),
        size if size < 9.95 => format!("{change:+.1}"),
        size if size < 999.5 => format!("{change:+.0}"),
        size => format!("{}{}", if change < 0.0 { "-" } else { "+" }, count(size)),
    }
}

/// A small number with three significant digits: `0.0123`, `4.5e-6`.
pub(crate) fn small(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-3 { format!("{number:.1e}") } else { count(number) }
}

/// A printed figure or range of figures with its unit.
pub(crate) fn printed(low: f64, high: Option<f64>, unit: &str) -> String {
    match high {
        Some(high) => interval([low, high], None, unit),
        None => value(low, unit),
    }
}

/// What becomes of throughput along an axis, in a word.
pub(crate) fn axis_kind(kind: AxisKind) -> &'static str {
    match kind {
        AxisKind::Flat => "flat",
        AxisKind::Scaling => "scales",
        AxisKind::Saturating => "saturates",
        AxisKind::Collapse => "collapses",
        AxisKind::NoMeasurableDifference => "no measurable difference",
        AxisKind::NotClear => "not clear",
    }
}

/// A part of a request's way.
pub(crate) fn segment(segment: PathSegment) -> &'static str {
    match segment {
        PathSegment::Limit => "limit",
        PathSegment::Filesystem => "file system",
        PathSegment::Queue => "queue",
        PathSegment::Device => "device",
        PathSegment::Completion => "completion",
    }
}

/// A part of the time in the queue.
pub(crate) fn queue_step(step: QueueStep) -> &'static str {
    match step {
        QueueStep::Request => "queue: waiting for a request",
        QueueStep::Plug => "queue: plugged, merged",
        QueueStep::Dispatch => "queue: scheduled, dispatched",
    }
}

/// A snake-case name as words, the first one capitalised: `sync_lab` is `Sync lab`.
pub(crate) fn title(name: &str) -> String {
    let short = |word: &str| match word {
        "api" | "cpu" | "ssd" | "iops" => word.to_uppercase(),
        "io" => "I/O".to_owned(),
        "iouring" => "io_uring".to_owned(),
        word => word.to_owned(),
    };
    let name = name.replace("io_uring", "iouring");
    let words = name.split(['_', '-', ' ']).map(short).collect::<Vec<_>>().join(" ");
    if words.starts_with("io_uring") { words } else { capital(&words) }
}

/// A verdict in a word that fits next to a figure.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ToolLimited => "meter",
        Verdict::CpuLimited => "CPU busy",
        Verdict::Cached => "cached",
        Verdict::DirectIgnored => "buffered",
        Verdict::Sparse => "sparse",
        Verdict::UnwrittenExtents => "unfilled",
        Verdict::NotSteady => "unsteady",
        Verdict::BurstLimited => "fell off",
        Verdict::TooFewSamples => "few runs",
        Verdict::DepthNotReached => "shallow",
        Verdict::LoopLimited => "loop",
        Verdict::Throttled => "limited",
        Verdict::ForeignIo => "others",
        Verdict::ClockFallback => "clock",
        Verdict::MemlockLimited => "buffers",
        Verdict::Steal => "stolen",
    }
}

/// What follows from a comparison, in words.
pub(crate) fn conclusion(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Higher => "more",
        Conclusion::Lower => "less",
        Conclusion::NoMeasurableDifference => "no measurable difference",
        Conclusion::TooFewPairs => "too few pairs",
    }
}

/// A count with its noun: `1 rung`, `39 rungs`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// What the intervals of a run do not cover, stated once: nothing in a window shows what is rarer.
pub(crate) fn intervals_hold_for(measured_s: f64) -> String {
    format!("Rarer events than the {} measured are in no interval.", value(measured_s, "s"))
}

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

/// Named figures, each in one line with its interval and its number of samples, which are stored
/// under its name with `_ci95` and `_n`.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_the_same_whatever_the_unit() {
        assert_eq!(value(104_321.0, "reads/s"), "104 K reads/s");
        assert_eq!(value(23.46, "us"), "23.5 us");
        assert_eq!(value(85.0, "ns"), "85 ns");
        assert_eq!(interval([101_000.0, 107_000.0], None, "reads/s"), "101 K to 107 K reads/s");
        assert_eq!(interval([20.0, 22.0], None, "us"), "20 to 22 us");
        assert_eq!(interval([990.0, 1_020.0], None, "us"), "990 us to 1.02 ms");
        assert_eq!(range([2.5, 4.0], 3.0, "percent"), "[2.5, 4.0]");
        assert_eq!(split(104_321.0, "reads/s"), ("104 K".into(), "reads/s".into()));
        assert_eq!(split(23.46, "us"), ("23.5".into(), "us".into()));
        assert_eq!(title("file_api"), "File API");
        assert_eq!(half_width(100.0, Some([98.0, 102.0])).as_deref(), Some("\u{b1} 2.0 %"));
        assert_eq!(half_width(0.0, Some([0.0, 1.0])), None);
        assert_eq!(times(0.31), "0.31x");
        assert_eq!(times(1.004), "1.004x");
        assert_eq!(times(1234.0), "1.23 Kx");
        assert_eq!(times_range([1.21, 1.27], 1.24), "[1.21, 1.27]");
        assert_eq!(value(5e8, "B/s"), "500 MB/s");
        assert_eq!(value(12.0, "B/s"), "12 B/s");
        assert_eq!(value(1_925.0, "MiB/s"), "1.88 GiB/s");
        assert_eq!(value(1.5, "times"), "1.5x");
        assert_eq!(printed(12_000.0, Some(14_000.0), "IOPS"), "12 K to 14 K IOPS");
        assert_eq!(exact(104_321.062_5), "104321.0625");
    }

    #[test]
    fn an_end_far_below_its_figure_has_no_digits_of_its_own() {
        let worst_second = [1.868e-7, 20_318.0];
        assert_eq!(interval(worst_second, Some(0.0616), ""), "0 to 20.3 K");
        assert_eq!(interval(worst_second, None, ""), "0 to 20.3 K", "no figure is known");
        assert_eq!(interval([0.002_31, 5.0], Some(0.467), ""), "0.0023 to 5");
        assert_eq!(interval([98_765.0, 103_000.0], Some(101_000.0), ""), "98.8 K to 103 K");
        assert_eq!(interval([0.5, 2_000.0], Some(30.0), "us"), "500 ns to 2 ms");
        assert_eq!(interval([1e-4, 2_000.0], Some(30.0), "us"), "0 to 2 ms", "no unit of its own");
        assert_eq!(interval([-1e-5, 4.0], Some(2.0), "reads/s"), "0 to 4 reads/s");
        assert_eq!(interval([0.0, 0.0], Some(0.0), "us"), "0 to 0 ns");
        assert_eq!(range(worst_second, 0.0616, ""), "[0, 20.3 K]");
        assert_eq!(times_range(worst_second, 0.0616), "[0, 20.3 K]");
        let why = shown(0.0616, Some(worst_second), "").why.unwrap();
        assert!(why.ends_with(", 0 to 20.3 K"), "{why}");
    }

    #[test]
    fn a_change_has_a_sign() {
        let all = [-33.4, -3.26, -0.04, 0.0, 4.21, 9.96, 12.0, 1_234_567.0];
        let shown = all.map(|pct| change(pct, "percent"));
        let expected = ["-33 %", "-3.3 %", "0 %", "0 %", "+4.2 %", "+10 %", "+12 %", "+1.23 M %"];
        assert_eq!(shown, expected);
        assert_eq!(change(70.0, "points"), "+70 points");
    }

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
