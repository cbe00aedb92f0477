//! Names of the files in a run directory and the version of their layout.
//!
//! Invariant: nothing else in the workspace spells these names.

/// The manifest: what was run, when, by which version.
pub const MANIFEST: &str = "run.json";
/// One line per finished thing.
pub const EVENTS: &str = "events.jsonl";
/// Latency histograms in HdrHistogram's interval-log format.
pub const HISTOGRAMS: &str = "histograms.hlog";
/// Series as compressed columns, one line per series.
pub const SERIES: &str = "series.jsonl";
/// The document that the command printed with `--json`.
pub const RESULT: &str = "result.json";
/// The report.
pub const REPORT: &str = "report.html";

/// Every file that a run directory may hold; an older run in the way is replaced by these names.
pub(crate) const ALL: [&str; 6] = [MANIFEST, EVENTS, HISTOGRAMS, SERIES, RESULT, REPORT];

/// Changes when older programs can no longer read what is written.
pub const FORMAT_MAJOR: u32 = 1;
/// Changes when something was added that older programs can leave out.
pub const FORMAT_MINOR: u32 = 4;
