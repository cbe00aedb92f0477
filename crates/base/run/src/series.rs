//! Series of a replicate: taken out of its event, kept as columns, put back on reading.
//!
//! Invariant: taking out and putting back gives the same replicate.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::columns::Column;
use crate::host::DeviceSeries;
use crate::{Replicate, Series};

/// Where a series belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct SeriesKey {
    point: String,
    replicate: u32,
    /// The stream; absent for the device's own series.
    stream: Option<String>,
}

/// One line of the series file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeriesLine {
    #[serde(flatten)]
    pub(crate) key: SeriesKey,
    /// Seconds per slice; absent when the columns have their own time.
    width_s: Option<f64>,
    columns: BTreeMap<String, Column>,
}

/// Series with their line numbers, by where they belong; a later line replaces an earlier one.
pub(crate) type SeriesMap = BTreeMap<SeriesKey, (usize, SeriesLine)>;

impl SeriesKey {
    /// The point and the replicate that it belongs to.
    pub(crate) fn replicate(&self) -> (&str, u32) {
        (&self.point, self.replicate)
    }
}

/// A series that cannot be unpacked.
#[derive(Debug)]
pub(crate) struct SeriesDamage {
    /// Its line in the file, from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) reason: String,
}

/// Takes every series out of a replicate.
pub(crate) fn take_out(replicate: &mut Replicate) -> Vec<SeriesLine> {
    let key = |stream: Option<&str>| SeriesKey {
        point: replicate.point.id.clone(),
        replicate: replicate.replicate,
        stream: stream.map(str::to_owned),
    };
    let keys: Vec<_> = replicate.streams.iter().map(|stream| key(Some(&stream.name))).collect();
    let device_key = key(None);
    let mut lines = Vec::new();
    for (stream, key) in replicate.streams.iter_mut().zip(keys) {
        let series = std::mem::take(&mut stream.series);
        if series != Series::default() {
            lines.push(SeriesLine { key, width_s: Some(series.width_s), columns: pack(&series) });
        }
    }
    let device = replicate.evidence.as_mut().and_then(|evidence| evidence.device_series.take());
    if let Some(series) = device {
        lines.push(SeriesLine { key: device_key, width_s: None, columns: pack(&series) });
    }
    lines
}

/// Puts the series back that belong to a replicate.
pub(crate) fn put_back(replicate: &mut Replicate, lines: &SeriesMap) -> Result<(), SeriesDamage> {
    let mut key = SeriesKey {
        point: replicate.point.id.clone(),
        replicate: replicate.replicate,
        stream: None,
    };
    if let (Some(evidence), Some(line)) = (replicate.evidence.as_mut(), lines.get(&key)) {
        evidence.device_series = Some(unpack::<DeviceSeries>(line)?);
    }
    for stream in &mut replicate.streams {
        key.stream = Some(stream.name.clone());
        if let Some(line) = lines.get(&key) {
            stream.series = unpack::<Series>(line)?;
        }
    }
    Ok(())
}

/// Every array of numbers in a series, by the name of its field.
fn pack(series: &impl Serialize) -> BTreeMap<String, Column> {
    let fields = match serde_json::to_value(series) {
        Ok(Value::Object(fields)) => fields,
        other => unreachable!("a series is an object of arrays of numbers, not {other:?}"),
    };
    fields
        .into_iter()
        .filter_map(|(name, value)| {
            let numbers: Vec<Option<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
            Some((name, Column::pack(&numbers)))
        })
        .collect()
}

/// A series whose fields are the columns of a line.
fn unpack<T: DeserializeOwned>((number, line): &(usize, SeriesLine)) -> Result<T, SeriesDamage> {
    let damage = |reason: String| SeriesDamage { line: *number, reason };
    let mut fields = Map::new();
    if let Some(width_s) = line.width_s {
        fields.insert("width_s".into(), width_s.into());
    }
    for (name, column) in &line.columns {
        let numbers =
            column.unpack().map_err(|reason| damage(format!("column {name}: {reason}")))?;
        fields.insert(name.clone(), numbers.into_iter().map(json_number).collect());
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| damage(error.to_string()))
}

/// Whole numbers as JSON integers, so that counts fit integer fields.
fn json_number(value: Option<f64>) -> Value {
    match value {
        Some(whole) if whole.fract() == 0.0 && (0.0..9e15).contains(&whole) => {
            Value::from(whole as u64)
        }
        other => Value::from(other),
    }
}
