//! `histograms.hlog`: latency histograms in HdrHistogram's interval-log format.
//!
//! Each line is `Tag=point/replicate/stream/op,start,length,max,histogram`: times in seconds since
//! the run began (`BaseTime` in the head), the maximum in milliseconds, the histogram in
//! nanoseconds. Any HdrHistogram tool reads the file.
//! Invariant: a tag names one histogram; a later line with the same tag replaces the earlier one.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use iostrata_spec::OpKind;
use iostrata_stats::LatencyHistogram;
use jiff::Timestamp;

use crate::{Replicate, RunReadError, RunWriteError};

/// From where to where a latency is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LatencyKind {
    /// From the start of the request.
    Service,
    /// From its scheduled start; for flushes from the first write that they cover.
    Response,
}

/// A histogram of one replicate, on its way into the run directory.
#[derive(Clone, Copy, Debug)]
pub struct StreamHistogram<'a> {
    /// Name of the stream.
    pub stream: &'a str,
    /// The kind of request.
    pub op: OpKind,
    /// From where it is counted.
    pub kind: LatencyKind,
    /// The latencies.
    pub histogram: &'a LatencyHistogram,
}

/// Which latencies a histogram holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HistogramKey {
    /// Id of the point.
    pub point: String,
    /// Number of the replicate.
    pub replicate: u32,
    /// Name of the stream.
    pub stream: String,
    /// The kind of request.
    pub op: OpKind,
    /// From where it is counted.
    pub kind: LatencyKind,
}

/// A histogram as it was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptHistogram {
    /// Which latencies it holds.
    pub key: HistogramKey,
    /// Start of the measured window, in seconds since the run began.
    pub started_s: f64,
    /// Length of the window, in seconds.
    pub duration_s: f64,
    /// The latencies.
    pub histogram: LatencyHistogram,
}

const OPS: [(OpKind, LatencyKind, &str); 6] = [
    (OpKind::Read, LatencyKind::Service, "read"),
    (OpKind::Write, LatencyKind::Service, "write"),
    (OpKind::Sync, LatencyKind::Service, "sync"),
    (OpKind::Read, LatencyKind::Response, "read_response"),
    (OpKind::Write, LatencyKind::Response, "write_response"),
    (OpKind::Sync, LatencyKind::Response, "sync_response"),
];

impl fmt::Display for HistogramKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = OPS.iter().find(|(op, kind, _)| (*op, *kind) == (self.op, self.kind));
        let op = op.map_or("", |(_, _, name)| name);
        write!(f, "{}/{}/{}/{op}", self.point, self.replicate, self.stream)
    }
}

impl HistogramKey {
    fn parse(tag: &str) -> Option<Self> {
        let mut parts = tag.split('/');
        let mut next = || parts.next();
        let (point, replicate, stream, op) = (next()?, next()?, next()?, next()?);
        let (op, kind, _) = OPS.iter().find(|(_, _, name)| *name == op)?;
        Some(Self {
            point: point.to_owned(),
            replicate: replicate.parse().ok()?,
            stream: stream.to_owned(),
            op: *op,
            kind: *kind,
        })
    }
}

/// The head of a new file.
pub(crate) fn head(started_at: Timestamp) -> String {
    let seconds = started_at.as_millisecond() as f64 / 1e3;
    format!(
        "#[Histogram log format version 1.3]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         #[MaxValueDivisor: 1000000.0]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// The line of one histogram.
pub(crate) fn line(
    replicate: &Replicate,
    part: &StreamHistogram<'_>,
) -> Result<String, RunWriteError> {
    let key = HistogramKey {
        point: plain(&replicate.point.id)?,
        replicate: replicate.replicate,
        stream: plain(part.stream)?,
        op: part.op,
        kind: part.kind,
    };
    let tag = key.to_string();
    let bytes = part
        .histogram
        .to_bytes()
        .map_err(|source| RunWriteError::Histogram { tag: tag.clone(), source })?;
    let max_ms = part.histogram.summary().map_or(0.0, |latency| latency.max) / 1e3;
    Ok(format!(
        "Tag={tag},{:.6},{:.6},{max_ms:.6},{}\n",
        replicate.started_s,
        replicate.duration_s,
        STANDARD.encode(bytes)
    ))
}

/// A name that can stand in a tag.
fn plain(name: &str) -> Result<String, RunWriteError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(RunWriteError::BadName { name: name.to_owned() });
    }
    Ok(name.to_owned())
}

/// Every histogram of a file's text; the last of each tag, in order of first appearance. Tags of
/// other forms are left out.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<KeptHistogram>, RunReadError> {
    let mut kept: Vec<KeptHistogram> = Vec::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let damaged = |reason: String| RunReadError::Damaged {
            path: path.to_owned(),
            line: number + 1,
            reason,
        };
        let Some(entry) = IntervalLogIterator::new(line.as_bytes()).next() else { continue };
        let Ok(entry) = entry else {
            return Err(damaged("it is not a line of an interval log".to_owned()));
        };
        let LogEntry::Interval(interval) = entry else { continue };
        let Some(key) = interval.tag().and_then(|tag| HistogramKey::parse(tag.as_str())) else {
            continue;
        };
        let bytes = STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|error| damaged(error.to_string()))?;
        let histogram =
            LatencyHistogram::from_bytes(&bytes).map_err(|error| damaged(error.to_string()))?;
        let started_s = interval.start_timestamp().as_secs_f64();
        let duration_s = interval.duration().as_secs_f64();
        let new = KeptHistogram { key, started_s, duration_s, histogram };
        match kept.iter_mut().find(|old| old.key == new.key) {
            Some(old) => *old = new,
            None => kept.push(new),
        }
    }
    Ok(kept)
}
