//! From samples of counters to columns over time.

use iostrata_run::host::{DeviceSeries, Iostat};

use crate::host::diskstats::delta;
use crate::host::sampler::CounterSample;

/// One row per pair of neighbouring samples; absent with fewer than two samples.
pub(crate) fn series(samples: &[CounterSample]) -> Option<DeviceSeries> {
    let mut series = DeviceSeries::default();
    for pair in samples.windows(2) {
        if let [before, after] = pair {
            add_row(&mut series, before, after);
        }
    }
    (!series.t_s.is_empty()).then_some(series)
}

fn add_row(series: &mut DeviceSeries, before: &CounterSample, after: &CounterSample) {
    let seconds = after.t_s - before.t_s;
    if seconds <= 0.0 {
        return;
    }
    series.t_s.push(after.t_s);
    let io = before
        .device
        .zip(after.device)
        .and_then(|(before, after)| delta(&before, &after, seconds))
        .map(|delta| Iostat::of(&delta));
    series.reads_per_s.push(io.map(|io| io.reads_per_s));
    series.read_bytes_per_s.push(io.map(|io| io.read_kib_per_s * 1024.0));
    series.read_await_ms.push(io.and_then(|io| io.read_await_ms));
    series.writes_per_s.push(io.map(|io| io.writes_per_s));
    series.write_bytes_per_s.push(io.map(|io| io.write_kib_per_s * 1024.0));
    series.write_await_ms.push(io.and_then(|io| io.write_await_ms));
    series.flushes_per_s.push(io.and_then(|io| io.flushes_per_s));
    series.flush_await_ms.push(io.and_then(|io| io.flush_await_ms));
    series.queue_size.push(io.map(|io| io.queue_size));
    series.util_pct.push(io.map(|io| io.util_pct));
    let cpu = before.cpu.zip(after.cpu).and_then(|(before, after)| after.shares_since(&before));
    series.cpu_busy_pct.push(cpu.map(|cpu| cpu.busy_pct()));
    series.cpu_iowait_pct.push(cpu.map(|cpu| cpu.iowait_pct));
    series.cpu_steal_pct.push(cpu.map(|cpu| cpu.steal_pct));
    let stalled = before
        .io_stall_us
        .zip(after.io_stall_us)
        .map(|(before, after)| after.saturating_sub(before) as f64 / seconds / 10_000.0);
    series.io_pressure_pct.push(stalled);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::cpu::CpuTimes;
    use iostrata_run::host::DeviceCounters;

    #[test]
    fn rows_are_differences() {
        let sample = |t_s: f64, reads: u64, user: u64, stall: u64| CounterSample {
            t_s,
            device: Some(DeviceCounters {
                reads,
                sectors_read: reads * 8,
                read_ms: reads / 2,
                ..DeviceCounters::default()
            }),
            cpu: Some(CpuTimes([user, 0, 0, 100 - user, 0, 0, 0, 0])),
            io_stall_us: Some(stall),
        };
        let samples =
            [sample(0.0, 0, 0, 0), sample(0.5, 100, 10, 50_000), sample(1.0, 100, 10, 50_000)];
        let series = series(&samples).unwrap();
        assert_eq!(series.t_s, [0.5, 1.0]);
        assert_eq!(series.reads_per_s, [Some(200.0), Some(0.0)]);
        assert_eq!(series.read_bytes_per_s, [Some(819_200.0), Some(0.0)]);
        assert_eq!(series.read_await_ms, [Some(0.5), None]);
        assert_eq!(series.io_pressure_pct, [Some(10.0), Some(0.0)]);
        assert_eq!(series.cpu_busy_pct, [Some(100.0), None]);
        assert_eq!(series.flushes_per_s, [None, None]);
    }

    #[test]
    fn one_sample_is_no_series() {
        assert_eq!(series(&[CounterSample::default()]), None);
        assert_eq!(series(&[CounterSample::default(), CounterSample::default()]), None);
    }
}
