//! A job's options for reports and logs.

use std::time::Duration;

use super::error::Why;
use super::plan::{FioLogs, FioPercentiles, FioReporting};
use super::settings::Settings;
use super::value;

const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
const PERCENTILES_MAX: usize = 20;

/// The percentiles of `percentile_list`, rising; fio's own where it is not set.
pub(super) fn percentiles(settings: &Settings) -> Vec<f64> {
    let given = settings.value("percentile_list", |text| {
        let mut list = Vec::new();
        for part in text.split(':') {
            match value::decimal(part)? {
                percentile if percentile > 0.0 && percentile <= 100.0 => list.push(percentile),
                _ => return Err(Why::new("a percentile is above 0 and at most 100")),
            }
        }
        list.sort_by(f64::total_cmp);
        if list.len() > PERCENTILES_MAX {
            return Err(Why::new(format!("at most {PERCENTILES_MAX} percentiles are reported")));
        }
        Ok(list)
    });
    given.unwrap_or_else(|| PERCENTILES.to_vec())
}

/// Whether directions are reported as one.
pub(super) fn unified(settings: &Settings) -> FioReporting {
    let unified = settings.value("unified_rw_reporting", |text| match text {
        "none" | "0" => Ok(FioReporting::None),
        "mixed" | "1" => Ok(FioReporting::Mixed),
        "both" | "2" => Ok(FioReporting::Both),
        _ => Err(Why::new("use none, mixed or both")),
    });
    unified.unwrap_or_default()
}

/// The latencies that percentiles are reported of.
pub(super) fn percentiles_of(settings: &Settings) -> FioPercentiles {
    FioPercentiles {
        slat: settings.switch("slat_percentiles").unwrap_or(false),
        clat: settings.switch("clat_percentiles").unwrap_or(true),
        lat: settings.switch("lat_percentiles").unwrap_or(false),
    }
}

/// The logs that a job writes: without a name of their own under that of the job.
pub(super) fn logs(settings: &Settings, job: &str) -> FioLogs {
    let prefix = |name| {
        let given = settings.get(name)?;
        Some(if given.value.is_empty() { job } else { &given.value }.to_owned())
    };
    let logs = FioLogs {
        bandwidth: prefix("write_bw_log"),
        iops: prefix("write_iops_log"),
        latency: prefix("write_lat_log"),
        per_job: true,
        ..FioLogs::default()
    };
    if logs.bandwidth.is_none() && logs.iops.is_none() && logs.latency.is_none() {
        return logs;
    }
    let milliseconds = |text: &str| value::time(text, Duration::from_millis(1));
    FioLogs {
        every: settings.value("log_avg_msec", milliseconds).filter(|every| !every.is_zero()),
        per_job: settings.switch("per_job_logs").unwrap_or(true),
        unix_epoch: settings.switch("log_unix_epoch").unwrap_or(false),
        offset: settings.switch("log_offset").unwrap_or(false),
        priority: settings.switch("log_prio").unwrap_or(false),
        ..logs
    }
}
