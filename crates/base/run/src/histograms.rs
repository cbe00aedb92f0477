//! `histograms.hlog`: latency histograms in HdrHistogram's interval-log format.
//!
//! Each line is `Tag=point/replicate/stream/op,start,length,max,histogram`: times in seconds since
//! the run began (`BaseTime` in the head), the maximum in milliseconds, the histogram in
//! nanoseconds. Any HdrHistogram tool reads the file.
//! Invariant: a tag names one histogram; a later line with the same tag replaces the earlier one.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use iostrata_stats::LatencyHistogram;
use jiff::Timestamp;

use crate::lines::GrowingFile;
use crate::{Replicate, RunReadError, RunWriteError};

/// What stands behind the kind of operation where a latency counts from the scheduled start, or for
/// flushes from the first write that they cover.
const RESPONSE: &str = "_response";

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

/// The lines of a replicate's histograms.
pub(crate) fn lines(replicate: &Replicate) -> Result<String, RunWriteError> {
    let mut text = String::new();
    for stream in &replicate.streams {
        for (kind, op) in stream.ops.iter() {
            let tag = tag(replicate, &stream.name, kind.name());
            let service = Some(&op.latencies.service).filter(|service| !service.is_empty());
            let response =
                op.latencies.response.as_ref().map(|one| (format!("{tag}{RESPONSE}"), one));
            for (tag, histogram) in service.map(|one| (tag, one)).into_iter().chain(response) {
                check_name(&replicate.point.id).and_then(|()| check_name(&stream.name))?;
                text += &line(replicate, tag, histogram)?;
            }
        }
    }
    Ok(text)
}

fn line(
    replicate: &Replicate,
    tag: String,
    histogram: &LatencyHistogram,
) -> Result<String, RunWriteError> {
    let max_ms = histogram.summary().map_or(0.0, |latency| latency.max) / 1e3;
    let (started_s, duration_s) = (replicate.started_s, replicate.duration_s);
    match histogram.to_bytes() {
        Ok(bytes) => {
            let text = STANDARD.encode(bytes);
            Ok(format!("Tag={tag},{started_s:.6},{duration_s:.6},{max_ms:.6},{text}\n"))
        }
        Err(source) => Err(RunWriteError::Histogram { tag, source }),
    }
}

fn tag(replicate: &Replicate, stream: &str, kind: &str) -> String {
    format!("{}/{}/{stream}/{kind}", replicate.point.id, replicate.replicate)
}

/// Puts histograms back into their replicate.
pub(crate) fn put_back(replicate: &mut Replicate, histograms: &BTreeMap<String, LatencyHistogram>) {
    let mut streams = std::mem::take(&mut replicate.streams);
    for stream in &mut streams {
        for (kind, op) in stream.ops.iter_mut() {
            let tag = tag(replicate, &stream.name, kind.name());
            op.latencies.response = histograms.get(&format!("{tag}{RESPONSE}")).cloned();
            op.latencies.service = histograms.get(&tag).cloned().unwrap_or_default();
        }
    }
    replicate.streams = streams;
}

/// Whether a name can stand in a tag.
fn check_name(name: &str) -> Result<(), RunWriteError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match !name.is_empty() && name.chars().all(fits) {
        true => Ok(()),
        false => Err(RunWriteError::BadName { name: name.to_owned() }),
    }
}

/// Every histogram of a file by its tag; of equal tags the last.
pub(crate) fn read(
    file: &mut GrowingFile,
) -> Result<BTreeMap<String, LatencyHistogram>, RunReadError> {
    let path = file.path.clone();
    let kept = file.read(|line, text| {
        let damaged = |reason: String| RunReadError::Damaged { path: path.clone(), line, reason };
        let entry = match IntervalLogIterator::new(text.as_bytes()).next() {
            Some(Ok(LogEntry::Interval(interval))) => interval,
            Some(Err(_)) => return Err(damaged("it is not a line of an interval log".to_owned())),
            _ => return Ok(None),
        };
        let Some(tag) = entry.tag() else { return Ok(None) };
        let bytes = STANDARD
            .decode(entry.encoded_histogram())
            .map_err(|error| damaged(error.to_string()))?;
        let histogram =
            LatencyHistogram::from_bytes(&bytes).map_err(|error| damaged(error.to_string()))?;
        Ok(Some((tag.as_str().to_owned(), histogram)))
    })?;
    Ok(kept.into_iter().flatten().collect())
}
