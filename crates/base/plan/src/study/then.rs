//! Figures that the original of a replicated study printed.
//!
//! Invariant: only what is printed there; what can only be read off a graph is left out.

use serde::{Deserialize, Serialize};

use super::LevelAt;

/// Which of several matching points stands for a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Exactly one point matches.
    #[default]
    Only,
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
}

/// What is taken from the matching point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThenMetric {
    /// Reads and writes per second.
    #[default]
    Iops,
    /// Bytes per second.
    BytesPerS,
    /// Mean latency in microseconds.
    LatencyMeanUs,
    /// 95th percentile of the latency in microseconds.
    LatencyP95Us,
    /// Mean response time in microseconds: from the scheduled start of a request.
    ResponseMeanUs,
    /// 99th percentile of the response time in microseconds.
    ResponseP99Us,
    /// Requests that the device completed per second: iostat's r/s and w/s.
    DeviceIops,
    /// Requests per second that were merged into others: rrqm/s and wrqm/s.
    DeviceMergedPerS,
    /// MiB per second that the device moved: rMB/s and wMB/s.
    DeviceMibPerS,
    /// Mean size of a request in sectors of 512 bytes: avgrq-sz.
    DeviceRequestSectors,
    /// Mean number of requests in flight: avgqu-sz, today aqu-sz.
    DeviceQueueSize,
    /// Mean time of a request in milliseconds: await.
    DeviceAwaitMs,
    /// Transactions per second.
    Tps,
    /// New orders of TPC-C per minute.
    NewOrdersPerMin,
    /// The worst second over the mean.
    MinOverMean1s,
    /// 99.9th percentile of the latency in microseconds.
    LatencyP999Us,
    /// Share of the time in which the rate was below half its mean, percent.
    StalledPct,
    /// Times per minute that the rate fell below half its mean.
    StallsPerMin,
    /// Share of the written pages that were written because redo was about to run out, percent.
    FlushedForRedoPct,
    /// Furious flushes per minute.
    FuriousFlushesPerMin,
    /// Pages of 16 KiB written in place for each transaction.
    PagesPerTransaction,
    /// Syncs of the logs for each transaction, by the database's own counters.
    SyncsPerTransaction,
    /// Flushes that reached the volume's devices for each transaction.
    FlushesPerTransaction,
    /// Writes that the volume's devices completed for each transaction.
    DeviceWritesPerTransaction,
    /// Bytes that they wrote for each transaction.
    DeviceWriteBytesPerTransaction,
    /// Reads that they completed for each transaction.
    DeviceReadsPerTransaction,
    /// Bytes of redo for each transaction.
    RedoBytesPerTransaction,
    /// Pages of 16 KiB written to doublewrite files for each transaction.
    DoublewritePagesPerTransaction,
    /// Processor time of the database and of what drives it for each transaction, in microseconds.
    CpuUsPerTransaction,
    /// Writes per second on a volume of the redo's own.
    RedoDeviceWritesPerS,
    /// KiB per second that they wrote.
    RedoDeviceKibPerS,
    /// Flushes per second there.
    RedoDeviceFlushesPerS,
    /// Redo made per second.
    RedoBytesPerS,
    /// Pages that became dirty per second.
    PagesDirtiedPerS,
    /// Mean checkpoint age in percent of the max checkpoint age.
    CheckpointAgePct,
    /// The highest one.
    CheckpointAgeMaxPct,
    /// The most commits whose old row versions were not purged.
    HistoryLength,
    /// Transactions per second of a second engine on the same volume.
    SecondTps,
    /// Pages of 16 KiB that it wrote in place per second.
    SecondPagesPerS,
    /// Its share of the pages that both engines wrote in place, percent.
    SecondPagesPct,
    /// Reads per second of readers on the same volume.
    ReaderIops,
    /// Their mean latency in microseconds.
    ReaderLatencyMeanUs,
    /// The 99th percentile of it.
    ReaderLatencyP99Us,
}

impl ThenMetric {
    /// Whether it is the least or the most of a window, so that longer windows have others.
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::MinOverMean1s | Self::HistoryLength)
    }

    /// Every metric with its name in a study's text and the unit of its figures.
    pub const NAMED: [(&'static str, ThenMetric, &'static str); 43] = [
        ("iops", ThenMetric::Iops, "IOPS"),
        ("bytes_per_s", ThenMetric::BytesPerS, "B/s"),
        ("latency_mean_us", ThenMetric::LatencyMeanUs, "us"),
        ("latency_p95_us", ThenMetric::LatencyP95Us, "us"),
        ("response_mean_us", ThenMetric::ResponseMeanUs, "us"),
        ("response_p99_us", ThenMetric::ResponseP99Us, "us"),
        ("device_iops", ThenMetric::DeviceIops, "IOPS"),
        ("device_merged_per_s", ThenMetric::DeviceMergedPerS, "/s"),
        ("device_mib_per_s", ThenMetric::DeviceMibPerS, "MiB/s"),
        ("device_request_sectors", ThenMetric::DeviceRequestSectors, "sectors"),
        ("device_queue_size", ThenMetric::DeviceQueueSize, "requests"),
        ("device_await_ms", ThenMetric::DeviceAwaitMs, "ms"),
        ("tps", ThenMetric::Tps, "transactions/s"),
        ("new_orders_per_min", ThenMetric::NewOrdersPerMin, "/min"),
        ("min_over_mean_1s", ThenMetric::MinOverMean1s, "of the mean"),
        ("latency_p99_9_us", ThenMetric::LatencyP999Us, "us"),
        ("stalled_pct", ThenMetric::StalledPct, "percent"),
        ("stalls_per_min", ThenMetric::StallsPerMin, "/min"),
        ("flushed_for_redo_pct", ThenMetric::FlushedForRedoPct, "percent"),
        ("furious_flushes_per_min", ThenMetric::FuriousFlushesPerMin, "/min"),
        ("pages_per_transaction", ThenMetric::PagesPerTransaction, "pages"),
        ("syncs_per_transaction", ThenMetric::SyncsPerTransaction, "syncs"),
        ("flushes_per_transaction", ThenMetric::FlushesPerTransaction, "flushes"),
        ("device_writes_per_transaction", ThenMetric::DeviceWritesPerTransaction, "writes"),
        ("device_write_bytes_per_transaction", ThenMetric::DeviceWriteBytesPerTransaction, "B"),
        ("device_reads_per_transaction", ThenMetric::DeviceReadsPerTransaction, "reads"),
        ("redo_bytes_per_transaction", ThenMetric::RedoBytesPerTransaction, "B"),
        ("doublewrite_pages_per_transaction", ThenMetric::DoublewritePagesPerTransaction, "pages"),
        ("cpu_us_per_transaction", ThenMetric::CpuUsPerTransaction, "us"),
        ("redo_device_writes_per_s", ThenMetric::RedoDeviceWritesPerS, "/s"),
        ("redo_device_kib_per_s", ThenMetric::RedoDeviceKibPerS, "KiB/s"),
        ("redo_device_flushes_per_s", ThenMetric::RedoDeviceFlushesPerS, "/s"),
        ("redo_bytes_per_s", ThenMetric::RedoBytesPerS, "B/s"),
        ("pages_dirtied_per_s", ThenMetric::PagesDirtiedPerS, "/s"),
        ("checkpoint_age_pct", ThenMetric::CheckpointAgePct, "percent"),
        ("checkpoint_age_max_pct", ThenMetric::CheckpointAgeMaxPct, "percent"),
        ("history_length", ThenMetric::HistoryLength, "commits"),
        ("second_tps", ThenMetric::SecondTps, "transactions/s"),
        ("second_pages_per_s", ThenMetric::SecondPagesPerS, "/s"),
        ("second_pages_pct", ThenMetric::SecondPagesPct, "percent"),
        ("reader_iops", ThenMetric::ReaderIops, "/s"),
        ("reader_latency_mean_us", ThenMetric::ReaderLatencyMeanUs, "us"),
        ("reader_latency_p99_us", ThenMetric::ReaderLatencyP99Us, "us"),
    ];

    /// Whether its figures are often 0, so that two of them are compared by their difference.
    pub fn is_by_difference(self) -> bool {
        matches!(self, Self::MinOverMean1s | Self::StalledPct | Self::StallsPerMin)
    }

    /// Its name in a study's text.
    pub fn name(self) -> &'static str {
        let found = Self::NAMED.iter().find(|(_, metric, _)| *metric == self);
        found.map_or("", |(name, _, _)| name)
    }

    /// The unit of its figures.
    pub fn unit(self) -> &'static str {
        let found = Self::NAMED.iter().find(|(_, metric, _)| *metric == self);
        found.map_or("", |(_, _, unit)| unit)
    }
}

/// One printed figure, and today's points that it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThenFigure {
    /// Its text, in one line: `random write, one file, ext4, O_DIRECT, 4K`.
    pub text: String,
    /// The printed figure; lower end, where a range is printed.
    pub value: f64,
    /// The upper end, where a range is printed.
    pub value_high: Option<f64>,
    /// Its unit, as points print it.
    pub unit: String,
    /// What is taken from today's points.
    pub metric: ThenMetric,
    /// The levels that today's points must have.
    pub at: Vec<LevelAt>,
    /// Which of them stands for it.
    pub take: Take,
    /// For a ratio: the levels of the points below the line; `value` is then the ratio.
    pub over: Option<Vec<LevelAt>>,
}

/// The original of a replicated study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Then {
    /// Author, title and date, in words.
    pub source: String,
    /// The machine it was made on, in words.
    pub machine: String,
    /// The figures.
    pub figures: Vec<ThenFigure>,
}
