//! The one table of the figures of watched targets: how each is got, and where it is shown.
//!
//! Invariant: a figure is declared here and nowhere else. Lines, the screen, metrics, charts of the
//! report, `tune`, `simulate --from` and documents read its row; the row makes the field of
//! [`WatchSample`] too. Fields may be added, never renamed: the order is that of the columns. What
//! a target does not report is null, never 0. Rates are of the time since the sample before; the
//! first sample has none. Metrics have base units, named last: bytes, seconds, ratio; counters end
//! in `_total`.

use serde::{Deserialize, Serialize};

use super::span::{SampleField, SampleSpan, WatchDevice};
use crate::file_io::{FileClass, FileIo};
use crate::host::{PressureShares, ThrottleEvidence};
use crate::transaction_course::StallCause;

/// How a figure is got from a span of two samples.
#[derive(Clone, Copy, Debug)]
pub enum FigureKind {
    /// A counter of the target: its growth per second. Prometheus gets the counter.
    Counter(SampleField),
    /// A counter of the target of which every step matters: its growth since watching began.
    Total(SampleField),
    /// A gauge of the target, as it is.
    Gauge(SampleField),
    /// Computed from several fields.
    Derived(fn(&SampleSpan<'_>) -> Option<f64>),
    /// Not reported by the target: seen on its host, or about its files, its stalls, or the cost of
    /// querying it.
    Beside,
}

/// A column of lines of samples.
#[derive(Clone, Copy, Debug)]
pub struct FigureColumn {
    /// Its header.
    pub name: &'static str,
    /// Letters.
    pub width: usize,
    /// By what the figure is divided.
    pub divisor: f64,
}

/// A chart of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureChart {
    /// Its name within the page.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
}

/// A row of figures on a target's page of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureRow {
    /// The redo, behind the checkpoint age.
    Redo,
    /// The buffer pool, and the cost of writing it.
    Pool,
    /// File requests in flight.
    Requests,
}

/// A metric of Prometheus: a counter where the figure is one, else a gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureMetric {
    /// Its name. Figures of one name are one family and have one help.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Its name in documents.
    pub name: &'static str,
    /// How it is got.
    pub kind: FigureKind,
    /// Its value in a document.
    pub of: fn(&WatchSample) -> Option<f64>,
    /// Its unit.
    pub unit: &'static str,
    /// Its column, where it has one.
    pub column: Option<FigureColumn>,
    /// What a target without such a column does not report; empty where it always stands.
    pub told_with: &'static str,
    /// The chart on which it is a line, and how that line is called.
    pub chart: Option<(&'static FigureChart, &'static str)>,
    /// The row of the screen it is in, with its name there and the words after its value.
    pub row: Option<(FigureRow, &'static str, &'static str)>,
    /// What is exported.
    pub metric: Option<FigureMetric>,
    /// The label that identifies it within its family.
    pub label: Option<(&'static str, &'static str)>,
    /// The figure's divisor for Prometheus, which requires base units.
    pub metric_divisor: f64,
    /// Its place and header in the table of several targets, worst by the first.
    pub compared: Option<(u8, &'static str)>,
}

impl Figure {
    /// A figure that is shown nowhere yet.
    pub(super) const fn new(unit: &'static str, kind: FigureKind) -> Self {
        Self {
            name: "",
            kind,
            of: |_| None,
            unit,
            column: None,
            told_with: "",
            chart: None,
            row: None,
            metric: None,
            label: None,
            metric_divisor: 1.0,
            compared: None,
        }
    }

    /// A figure that the target does not report itself.
    pub(super) const fn beside(
        name: &'static str,
        unit: &'static str,
        of: fn(&WatchSample) -> Option<f64>,
    ) -> Self {
        Self { name, of, ..Self::new(unit, FigureKind::Beside) }
    }

    pub(super) const fn named(
        self,
        name: &'static str,
        of: fn(&WatchSample) -> Option<f64>,
    ) -> Self {
        Self { name, of, ..self }
    }

    pub(super) const fn column(self, name: &'static str, width: usize) -> Self {
        self.column_of(name, width, 1.0)
    }

    /// A column in units of so many.
    pub(super) const fn column_of(self, name: &'static str, width: usize, divisor: f64) -> Self {
        Self { column: Some(FigureColumn { name, width, divisor }), ..self }
    }

    /// The column stands where a target reports this.
    pub(super) const fn told_with(self, what: &'static str) -> Self {
        Self { told_with: what, ..self }
    }

    pub(super) const fn chart(self, chart: &'static FigureChart, line: &'static str) -> Self {
        Self { chart: Some((chart, line)), ..self }
    }

    const fn row(self, row: FigureRow, name: &'static str, after: &'static str) -> Self {
        Self { row: Some((row, name, after)), ..self }
    }

    pub(super) const fn metric(self, name: &'static str, help: &'static str) -> Self {
        Self { metric: Some(FigureMetric { name, help }), ..self }
    }

    /// One of a family.
    pub(super) const fn metric_of(
        self,
        metric: FigureMetric,
        label: (&'static str, &'static str),
    ) -> Self {
        Self { metric: Some(metric), label: Some(label), ..self }
    }

    pub(super) const fn metric_divided(self, divisor: f64) -> Self {
        Self { metric_divisor: divisor, ..self }
    }

    const fn compared(self, place: u8, name: &'static str) -> Self {
        Self { compared: Some((place, name)), ..self }
    }

    /// Whether it is a whole number that is shown as such.
    pub fn is_whole(&self) -> bool {
        matches!(self.kind, FigureKind::Gauge(_) | FigureKind::Total(_))
    }

    /// Those that several targets are compared by, in the order of their places.
    pub fn all_compared() -> impl Iterator<Item = &'static Self> {
        let at = |place| FIGURES.iter().find(|one| one.compared.is_some_and(|of| of.0 == place));
        (0..).map_while(at)
    }

    /// The counter of the target that it is made of.
    pub fn counter(&self) -> Option<SampleField> {
        match self.kind {
            FigureKind::Counter(field) | FigureKind::Total(field) => Some(field),
            _ => None,
        }
    }

    /// Its value over a span, where the target reports it; `total` is by how much its counter grew
    /// since watching began.
    pub fn value(&self, span: &SampleSpan<'_>, total: Option<u64>) -> Option<f64> {
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        match self.kind {
            FigureKind::Counter(field) => span.per_s(field),
            FigureKind::Total(_) => whole(total),
            FigureKind::Gauge(field) => whole(field(span.now)),
            FigureKind::Derived(of) => of(span),
            FigureKind::Beside => None,
        }
    }
}

/// Declares the fields of a sample that the target reports, each with its row, the fields of what
/// is seen besides, and the rows of these.
macro_rules! figures {
    (
        fields { $($(#[$meta:meta])* $field:ident: $type:ty = $row:expr;)* }
        seen { $($(#[$seen_meta:meta])* $seen:ident: $seen_type:ty,)* }
        beside { $($beside:expr;)* }
    ) => {
        /// A target at one moment, and what it did since the moment before.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct WatchSample {
            /// Which target, where several are watched.
            #[serde(default)]
            pub target: Option<String>,
            /// Seconds since watching began.
            pub t_s: f64,
            $($(#[$meta])* pub $field: Option<$type>,)*
            $($(#[$seen_meta])* pub $seen: $seen_type,)*
        }

        impl WatchSample {
            /// Sets what the target reports; `value` returns the figure at each place.
            pub fn fill(&mut self, value: impl Fn(usize, &Figure) -> Option<f64>) {
                let mut places = FIGURES.iter().enumerate();
                let mut next = || places.next().and_then(|(at, figure)| value(at, figure));
                $(self.$field = next().map(|value| value as $type);)*
            }
        }

        /// Every figure, in the order of the columns.
        pub static FIGURES: &[Figure] = &[
            $($row.named(stringify!($field), |one| Some(one.$field? as f64)),)*
            $($beside,)*
        ];
    };
}

const MIB: f64 = 1_048_576.0;

const fn chart_of(name: &'static str, title: &'static str) -> FigureChart {
    FigureChart { name, title }
}

static THROUGHPUT: FigureChart = chart_of("tps", "Throughput");
static AGE: FigureChart = chart_of("age", "Checkpoint age, of its max");
static FLUSH: FigureChart = chart_of("flush", "Pages written, by reason");
static DIRTY: FigureChart = chart_of("dirty", "Dirty pages");
static HISTORY: FigureChart = chart_of("history", "History list");
static OPEN: FigureChart = chart_of("open", "Age of the oldest open transaction");
static DEVICE: FigureChart = chart_of("device", "The device");
static LATENCY: FigureChart = chart_of("latency", "The device's mean time of a request");
static PRESSURE: FigureChart =
    chart_of("pressure", "Time in which tasks waited (some of them, all of them)");
static STOLEN: FigureChart =
    chart_of("stolen", "Processor time that the hypervisor gave to others");
static LIMIT: FigureChart =
    chart_of("limit", "Use of the tightest I/O limit of its control groups");
static QUOTA: FigureChart = chart_of("quota", "Time held back by a processor quota, each sample");
static WRITTEN: FigureChart = chart_of("files-written", "Written to files, by what they hold");
static STATEMENTS: FigureChart = chart_of("statements", "Statements, by kind");
static MISSES: FigureChart = chart_of("pool-misses", "Requested pages that had to be read");
static CONNECTIONS: FigureChart = chart_of("connections", "Open connections");
static TEMPORARY: FigureChart = chart_of("temporary-tables", "Temporary tables on disk");
static GROUPS: FigureChart = chart_of("commit-groups", "Commits in a group of the binlog");
static LAG: FigureChart = chart_of("replica-lag", "How far replication is behind");
static APPLIED: FigureChart = chart_of("replica-applied", "Transactions applied by replication");
static FLOW: FigureChart = chart_of("flow-control", "Time paused by flow control of the cluster");
static FREE: FigureChart = chart_of("disk-free", "Free space of the file system below the data");
static SYNCED: FigureChart = chart_of("files-sync", "Mean time of a sync, by what the files hold");

/// Every chart, in the order of the report.
pub static CHARTS: &[&FigureChart] = &[
    &THROUGHPUT,
    &AGE,
    &FLUSH,
    &DIRTY,
    &HISTORY,
    &OPEN,
    &DEVICE,
    &LATENCY,
    &PRESSURE,
    &STOLEN,
    &LIMIT,
    &QUOTA,
    &WRITTEN,
    &SYNCED,
    &STATEMENTS,
    &MISSES,
    &CONNECTIONS,
    &TEMPORARY,
    &GROUPS,
    &LAG,
    &APPLIED,
    &FLOW,
    &FREE,
];

/// What the sentences on what a target does not report name before their colon.
const MORE_FILES: &str = "files of undo";

const fn device(
    name: &'static str,
    unit: &'static str,
    of: fn(&WatchSample) -> Option<f64>,
) -> Figure {
    Figure::beside(name, unit, of).told_with("device")
}

const fn pressure(name: &'static str, of: fn(&WatchSample) -> Option<f64>) -> Figure {
    Figure::beside(name, "percent", of).told_with("pressure")
}

const fn throttle(
    name: &'static str,
    unit: &'static str,
    of: fn(&WatchSample) -> Option<f64>,
) -> Figure {
    Figure::beside(name, unit, of).told_with("throttle")
}

/// What is written to the files of a class.
macro_rules! written {
    ($class:ident, $word:literal) => {
        Figure::beside(concat!("files.", $word), "bytes/s", |one| {
            one.files.as_ref()?.class(FileClass::$class)?.write_bytes_per_s
        })
        .chart(&WRITTEN, $word)
    };
}

/// How long a sync of the files of a class takes.
macro_rules! synced {
    ($class:ident, $word:literal) => {
        Figure::beside(concat!("files.", $word, ".sync_ms"), "ms", |one| {
            one.files.as_ref()?.class(FileClass::$class)?.sync_ms
        })
        .chart(&SYNCED, $word)
    };
}

const BY_KIND: FigureMetric = FigureMetric {
    name: "iostrata_flushed_pages_by_kind_total",
    help: "Pages flushed, by reason; reasons that a target does not count are missing.",
};
const PENDING: FigureMetric =
    FigureMetric { name: "iostrata_pending_requests", help: "File requests in flight." };

const STATEMENTS_BY_KIND: FigureMetric = FigureMetric {
    name: "iostrata_statements_total",
    help: "Client statements, by kind; REPLACE and LOAD DATA count as inserts.",
};

const fn counter(unit: &'static str, field: SampleField) -> Figure {
    Figure::new(unit, FigureKind::Counter(field))
}

const fn total(unit: &'static str, field: SampleField) -> Figure {
    Figure::new(unit, FigureKind::Total(field))
}

const fn gauge(unit: &'static str, field: SampleField) -> Figure {
    Figure::new(unit, FigureKind::Gauge(field))
}

const fn derived(unit: &'static str, of: fn(&SampleSpan<'_>) -> Option<f64>) -> Figure {
    Figure::new(unit, FigureKind::Derived(of))
}

figures! {
fields {
    /// Transactions that ended, per second.
    tps: f64 = counter("transactions/s", |one| one.transactions)
        .column("tps", 6).chart(&THROUGHPUT, "transactions").compared(1, "tps")
        .metric("iostrata_transactions_total", "Transactions, committed or rolled back.");
    /// Checkpoint age in percent of the limit.
    checkpoint_age_pct: f64 = derived("percent", |span| span.checkpoint_age_pct())
        .column("age%", 5).chart(&AGE, "checkpoint age").compared(0, "age")
        .metric("iostrata_checkpoint_age_ratio", "Checkpoint age as a share of its limit.")
        .metric_divided(100.0);
    /// Redo that recovery would read, in bytes.
    checkpoint_age_bytes: u64 = gauge("bytes", |one| one.checkpoint_age_bytes)
        .column_of("ageM", 6, MIB)
        .metric("iostrata_checkpoint_age_bytes", "Redo that recovery would read.");
    /// The max checkpoint age, at which writers wait for a checkpoint, in bytes.
    checkpoint_age_limit_bytes: u64 = gauge("bytes", |one| one.checkpoint_age_limit_bytes)
        .metric(
            "iostrata_checkpoint_age_limit_bytes",
            "Max checkpoint age: writers wait for a checkpoint.",
        );
    /// The checkpoint age from which pages are flushed as fast as possible, in bytes.
    checkpoint_age_async_bytes: u64 = gauge("bytes", |one| one.checkpoint_age_async_bytes)
        .metric(
            "iostrata_checkpoint_age_async_bytes",
            "Async flush age: pages are flushed as fast as possible.",
        );
    /// The checkpoint age from which flushing takes precedence over everything else, in bytes.
    checkpoint_age_sync_bytes: u64 = gauge("bytes", |one| one.checkpoint_age_sync_bytes)
        .metric(
            "iostrata_checkpoint_age_sync_bytes",
            "Sync flush age: sync flushing begins.",
        );
    /// Seconds until the limit is reached if redo is made as now and no checkpoint follows.
    redo_seconds_left: f64 = derived("s", |span| span.redo_seconds_left())
        .column("left", 5).compared(2, "full in").row(FigureRow::Redo, "full in", "")
        .metric(
            "iostrata_redo_left_seconds",
            "Time until the limit at the present redo rate, without a checkpoint.",
        );
    /// Redo made per second, in bytes.
    redo_bytes_per_s: f64 = counter("bytes/s", |one| one.redo_end_bytes)
        .column_of("redoM/s", 7, MIB).row(FigureRow::Redo, "redo", "")
        .metric("iostrata_redo_bytes_total", "Redo generated.");
    /// Pages of the pool that are newer than on disk.
    dirty_pages: u64 = gauge("pages", |one| one.dirty_pages)
        .row(FigureRow::Pool, "dirty", " pages")
        .metric("iostrata_dirty_pages", "Dirty pages in the buffer pool.");
    /// Their share of the pool, in percent.
    dirty_pct: f64 = derived("percent", |span| {
            span.pct(|one| one.dirty_pages, |one| one.pool_pages)
        })
        .column("dirty%", 6).chart(&DIRTY, "dirty pages").compared(5, "dirty")
        .row(FigureRow::Pool, "", "")
        .metric("iostrata_dirty_ratio", "Dirty pages as a share of the buffer pool.")
        .metric_divided(100.0);
    /// Pages written per second, for whatever reason.
    flushed_pages_per_s: f64 = counter("pages/s", |one| one.pages_flushed)
        .column("flush/s", 7).chart(&FLUSH, "all").compared(3, "pages/s")
        .metric("iostrata_flushed_pages_total", "Pages flushed, for any reason.");
    /// Those written ahead, so that redo does not run out.
    flush_adaptive_pages_per_s: f64 = counter("pages/s", |one| one.pages_flushed_adaptive)
        .column("adapt", 6).chart(&FLUSH, "adaptive").metric_of(BY_KIND, ("kind", "adaptive"));
    /// Those written to free their frames.
    flush_lru_pages_per_s: f64 = counter("pages/s", |one| one.pages_flushed_lru)
        .column("lru", 5).chart(&FLUSH, "LRU").metric_of(BY_KIND, ("kind", "lru"));
    /// Those written because nothing else was to be done.
    flush_background_pages_per_s: f64 = counter("pages/s", |one| one.pages_flushed_background)
        .column("bgrd", 5).chart(&FLUSH, "background").metric_of(BY_KIND, ("kind", "background"));
    /// Those written because redo was about to run out.
    flush_sync_pages_per_s: f64 = counter("pages/s", |one| one.pages_flushed_for_redo)
        .column("sync", 5).chart(&FLUSH, "sync").metric_of(BY_KIND, ("kind", "sync"));
    /// Pages written per transaction.
    pages_written_per_txn: f64 = derived("pages", |span| {
            span.per(|one| one.pages_flushed, |one| one.transactions)
        })
        .row(FigureRow::Pool, "pages per transaction", "");
    /// Furious flushes since watching began.
    furious_flushes: u64 = total("flushes", |one| one.furious_flushes)
        .row(FigureRow::Pool, "furious flushes", "")
        .metric(
            "iostrata_furious_flushes_total",
            "Furious flushes (sync flushing) that began.",
        );
    /// Commits whose old row versions are not purged yet.
    history_list_length: u64 = gauge("commits", |one| one.history_list_length)
        .column("hist", 6).chart(&HISTORY, "history list").compared(4, "history")
        .metric(
            "iostrata_history_list_length",
            "Transactions whose old row versions are not purged yet.",
        );
    /// Commits whose old row versions were purged, per second.
    purge_per_s: f64 = counter("commits/s", |one| one.purged)
        .column("purge", 6)
        .metric(
            "iostrata_purged_commits_total",
            "Transactions whose old row versions were purged.",
        );
    /// Reads of files in flight.
    pending_reads: u64 = gauge("requests", |one| one.pending_reads)
        .row(FigureRow::Requests, "pending reads", "")
        .column("rd", 3).metric_of(PENDING, ("op", "read"));
    /// Writes of files in flight.
    pending_writes: u64 = gauge("requests", |one| one.pending_writes)
        .row(FigureRow::Requests, "writes", "")
        .column("wr", 3).metric_of(PENDING, ("op", "write"));
    /// Syncs of files in flight.
    pending_syncs: u64 = gauge("requests", |one| one.pending_syncs)
        .row(FigureRow::Requests, "syncs", "")
        .column("sy", 3).metric_of(PENDING, ("op", "sync"));
    /// Sessions that wait for an answer, without the watcher's own.
    #[serde(default)]
    sessions_running: u64 = gauge("sessions", |one| one.sessions_running)
        .column("run", 4);
    /// Row locks that are waited for.
    row_locks_waiting: u64 = gauge("locks", |one| one.row_locks_waiting)
        .column("lock", 4)
        .metric("iostrata_row_locks_waiting", "Row lock waits at present.");
    /// The age of the oldest open transaction, in seconds; 0 where none is open. Servers are
    /// queried for it every five seconds.
    #[serde(default)]
    oldest_transaction_s: f64 = derived("s", |span| {
            Some(span.now.oldest_transaction?.age_s as f64)
        })
        .column("open", 5).chart(&OPEN, "oldest transaction")
        .metric(
            "iostrata_oldest_transaction_seconds",
            "Age of the oldest open transaction; 0 if none is open.",
        );
    /// How the target names it: by the connection of a server, by the transaction of an engine.
    #[serde(default)]
    oldest_transaction_id: u64 = gauge("", |one| one.oldest_transaction?.id);
    /// SELECT statements per second.
    #[serde(default)]
    selects_per_s: f64 = counter("statements/s", |one| one.selects)
        .chart(&STATEMENTS, "SELECT").metric_of(STATEMENTS_BY_KIND, ("kind", "select"));
    /// INSERT, REPLACE and LOAD DATA statements per second.
    #[serde(default)]
    inserts_per_s: f64 = counter("statements/s", |one| one.inserts)
        .chart(&STATEMENTS, "INSERT").metric_of(STATEMENTS_BY_KIND, ("kind", "insert"));
    /// UPDATE statements per second.
    #[serde(default)]
    updates_per_s: f64 = counter("statements/s", |one| one.updates)
        .chart(&STATEMENTS, "UPDATE").metric_of(STATEMENTS_BY_KIND, ("kind", "update"));
    /// DELETE statements per second.
    #[serde(default)]
    deletes_per_s: f64 = counter("statements/s", |one| one.deletes)
        .chart(&STATEMENTS, "DELETE").metric_of(STATEMENTS_BY_KIND, ("kind", "delete"));
    /// Pages per second that were requested, were not in the pool and had to be read.
    #[serde(default)]
    pool_reads_per_s: f64 = counter("pages/s", |one| one.pool_reads)
        .metric("iostrata_pool_reads_total", "Buffer pool misses.");
    /// Their share of all pages that were requested, in percent.
    #[serde(default)]
    pool_miss_pct: f64 = derived("percent", |span| {
            Some(100.0 * span.per(|one| one.pool_reads, |one| one.pool_requests)?)
        })
        .chart(&MISSES, "misses")
        .metric("iostrata_pool_miss_ratio", "Buffer pool misses as a share of all read requests.")
        .metric_divided(100.0);
    /// Times per second that a page waited for a free frame.
    #[serde(default)]
    free_page_waits_per_s: f64 = counter("waits/s", |one| one.free_page_waits)
        .metric("iostrata_free_page_waits_total", "Waits for a free frame.");
    /// Sessions that are connected.
    #[serde(default)]
    connections: u64 = gauge("sessions", |one| one.connections)
        .chart(&CONNECTIONS, "connected")
        .metric("iostrata_connections", "Open connections.");
    /// How many may be.
    #[serde(default)]
    connections_limit: u64 = gauge("sessions", |one| one.connections_limit)
        .chart(&CONNECTIONS, "limit")
        .metric("iostrata_connections_limit", "Limit of open connections.");
    /// Internal temporary tables per second that were made on disk.
    #[serde(default)]
    temporary_tables_on_disk_per_s: f64 = counter("tables/s", |one| one.temporary_tables_on_disk)
        .chart(&TEMPORARY, "tables")
        .metric(
            "iostrata_temporary_tables_on_disk_total",
            "Internal temporary tables created on disk.",
        );
    /// Deadlocks of row locks since watching began.
    #[serde(default)]
    deadlocks: u64 = total("deadlocks", |one| one.deadlocks)
        .metric("iostrata_deadlocks_total", "Row lock deadlocks.");
    /// Commits that went to the binlog together, on average.
    #[serde(default)]
    commits_per_group: f64 = derived("commits", |span| {
            span.per(|one| one.binlog_commits, |one| one.binlog_groups)
        })
        .chart(&GROUPS, "commits")
        .metric("iostrata_commits_per_group", "Commits per binlog group commit.");
    /// How far replication is behind its source, in seconds; of several sources the farthest.
    #[serde(default)]
    replica_lag_s: u64 = gauge("s", |one| one.replica_lag_s)
        .chart(&LAG, "behind")
        .metric("iostrata_replica_lag_seconds", "Replication lag.");
    /// Transactions of the source that were applied per second, by their GTIDs.
    #[serde(default)]
    replica_transactions_per_s: f64 = counter("transactions/s", |one| one.replica_transactions)
        .chart(&APPLIED, "applied")
        .metric("iostrata_replica_transactions_total", "Replicated transactions applied.");
    /// Share of the time in which flow control of the cluster held writers back, in percent.
    #[serde(default)]
    flow_control_paused_pct: f64 = derived("percent", |span| {
            Some(span.per_s(|one| one.flow_control_paused_ns)? / 1e7)
        })
        .chart(&FLOW, "paused")
        .metric(
            "iostrata_flow_control_paused_ratio",
            "Share of the time in which flow control paused writers.",
        )
        .metric_divided(100.0);
}
seen {
    /// The device below the data, where it is on this host.
    device: Option<WatchDevice>,
    /// How long tasks of the target's control group waited for I/O, processors and memory, where it
    /// is on this host.
    #[serde(default)]
    pressure: Option<PressureShares>,
    /// The control group whose pressure it is; null where it is the whole machine's.
    #[serde(default)]
    pressure_group: Option<String>,
    /// What control groups held back of the target, where it is on this host and in such a group.
    #[serde(default)]
    throttle: Option<ThrottleEvidence>,
    /// Share of the processor time of the target's host that its hypervisor gave to others, where
    /// that is this host.
    #[serde(default)]
    cpu_stolen_pct: Option<f64>,
    /// Room on the file system below the data, in bytes, where that is on this host.
    #[serde(default)]
    disk_free_bytes: Option<u64>,
    /// What the target did with its files, by what they hold.
    #[serde(default)]
    files: Option<FileIo>,
    /// Whether the target was started again since the sample before.
    #[serde(default)]
    restarted: bool,
    /// Whether the last second had less than half of the last minute's median rate.
    stalled: bool,
    /// What the target waits for; null where nothing stalls.
    stall_cause: Option<StallCause>,
    /// What speaks for the cause.
    stall_evidence: Option<String>,
    /// How long the target took to answer, in microseconds.
    sample_us: f64,
    /// Why this sample has no figures, where the target did not answer.
    error: Option<String>,
}
beside {
    written!(Data, "data").column_of("datM", 5, MIB);
    written!(Redo, "redo").column_of("logM", 5, MIB);
    written!(Doublewrite, "doublewrite").column_of("dblM", 5, MIB);
    device("device.reads_per_s", "requests/s", |one| Some(one.device.as_ref()?.reads_per_s))
        .column("r/s", 6).chart(&DEVICE, "reads");
    device("device.writes_per_s", "requests/s", |one| Some(one.device.as_ref()?.writes_per_s))
        .column("w/s", 6).chart(&DEVICE, "writes");
    device("device.flushes_per_s", "requests/s", |one| one.device.as_ref()?.flushes_per_s)
        .column("fl/s", 5);
    device("device.read_ms", "ms", |one| one.device.as_ref()?.read_ms)
        .column("r ms", 5).chart(&LATENCY, "reads");
    device("device.write_ms", "ms", |one| one.device.as_ref()?.write_ms)
        .column("w ms", 5).chart(&LATENCY, "writes");
    device("device.in_flight", "requests", |one| Some(one.device.as_ref()?.in_flight))
        .column("qd", 5);
    device("cpu_stolen_pct", "percent", |one| one.cpu_stolen_pct)
        .column("stl%", 4).chart(&STOLEN, "stolen");
    pressure("pressure.io.some_pct", |one| Some(one.pressure?.io?.some_pct))
        .column("io%", 4).chart(&PRESSURE, "I/O, some");
    pressure("pressure.io.full_pct", |one| one.pressure?.io?.full_pct)
        .column("ioF%", 4).chart(&PRESSURE, "I/O, all");
    pressure("pressure.cpu.some_pct", |one| Some(one.pressure?.cpu?.some_pct))
        .column("cpu%", 4).chart(&PRESSURE, "processors, some");
    pressure("pressure.memory.some_pct", |one| Some(one.pressure?.memory?.some_pct))
        .column("mem%", 4).chart(&PRESSURE, "memory, some");
    throttle("throttle.io_limit_used_pct", "percent", |one| {
            one.throttle.as_ref()?.io_limit_used_pct
        })
        .column("lim%", 4).chart(&LIMIT, "limit")
        .metric(
            "iostrata_io_limit_used_ratio",
            "Utilization of the tightest I/O limit of the target's control groups.",
        )
        .metric_divided(100.0);
    throttle("throttle.cpu_throttled_us", "ms", |one| {
            Some(one.throttle.as_ref()?.cpu_throttled_us? as f64 / 1e3)
        })
        .column("held", 5).chart(&QUOTA, "held back");
    written!(Undo, "undo");
    written!(Temporary, "temporary").column_of("tmpM", 5, MIB).told_with(MORE_FILES);
    written!(Binlog, "binlog").column_of("binM", 5, MIB).told_with(MORE_FILES);
    written!(Other, "other").column_of("othM", 5, MIB).told_with(MORE_FILES);
    synced!(Data, "data");
    synced!(Redo, "redo");
    synced!(Binlog, "binlog");
    device("disk_free_bytes", "bytes", |one| Some(one.disk_free_bytes? as f64))
        .chart(&FREE, "free")
        .metric("iostrata_disk_free_bytes", "Free space of the file system below the data.");
    Figure::beside("stalled", "", |one| Some(f64::from(u8::from(one.stalled))))
        .metric("iostrata_stalled", "Whether the target is stalled.");
    Figure::beside("sample_us", "us", |one| Some(one.sample_us))
        .metric("iostrata_sample_duration_seconds", "Duration of the last sample.")
        .metric_divided(1e6);
}
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::watched::TargetSample;

    fn document(name: &str) -> String {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/");
        fs::read_to_string(format!("{path}{name}")).unwrap()
    }

    #[test]
    fn the_document_has_every_column_with_its_field() {
        let text = document("watch.md");
        let table = text.split("## The columns").nth(1).unwrap().split("\n## ").next().unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
        for figure in FIGURES {
            let Some(column) = figure.column else { continue };
            // Columns of the device are recognised by the first and the last of them.
            let is_between = figure.name.starts_with("device.") && column.name != "r/s";
            let name = if is_between { "r/s" } else { column.name };
            let row = rows.iter().find(|row| row.contains(&format!("`{name}`")));
            let row = row.unwrap_or_else(|| panic!("`{}` is not in docs/watch.md", column.name));
            let fields = row.split('|').nth(2).unwrap().split('`');
            let says = |field: &str| match field.split_once('*') {
                Some((from, to)) => figure.name.starts_with(from) && figure.name.ends_with(to),
                None => figure.name == field || figure.name.starts_with(&format!("{field}.")),
            };
            assert!(fields.skip(1).step_by(2).any(says), "{}: {row}", figure.name);
        }
    }

    #[test]
    fn names_of_columns_and_metrics_are_unique() {
        let columns: Vec<&str> = FIGURES.iter().filter_map(|one| Some(one.column?.name)).collect();
        assert_eq!(columns.iter().collect::<BTreeSet<_>>().len(), columns.len());
        let metrics: Vec<_> =
            FIGURES.iter().filter_map(|one| Some((one.metric?.name, one.label))).collect();
        assert_eq!(metrics.iter().collect::<BTreeSet<_>>().len(), metrics.len());
        for figure in FIGURES {
            let Some(metric) = figure.metric else { continue };
            let is_counter = figure.counter().is_some();
            assert_eq!(metric.name.ends_with("_total"), is_counter, "{}", figure.name);
        }
    }

    #[test]
    fn every_line_of_a_chart_is_on_one_that_is_drawn_and_all_have_one_unit() {
        for chart in CHARTS {
            let lines = || FIGURES.iter().filter(|one| one.chart.is_some_and(|of| of.0 == *chart));
            let units: BTreeSet<&str> = lines().map(|one| one.unit).collect();
            assert_eq!(units.len(), 1, "{}: {units:?}", chart.name);
        }
        let is_drawn = |one: &Figure| one.chart.is_none_or(|of| CHARTS.contains(&of.0));
        assert!(FIGURES.iter().all(is_drawn));
    }

    #[test]
    fn a_sample_takes_its_figures_from_a_span() {
        let before = TargetSample {
            transactions: Some(100),
            pages_flushed: Some(10),
            ..TargetSample::default()
        };
        let now = TargetSample {
            transactions: Some(300),
            pages_flushed: Some(610),
            furious_flushes: Some(40),
            deadlocks: Some(9),
            dirty_pages: Some(7),
            pool_pages: Some(28),
            ..TargetSample::default()
        };
        let span = SampleSpan::between(&before, &now, 2.0);
        let mut sample = WatchSample::default();
        sample.fill(|_, figure| figure.value(&span, Some(3)));
        let expected = WatchSample {
            tps: Some(100.0),
            flushed_pages_per_s: Some(300.0),
            pages_written_per_txn: Some(3.0),
            furious_flushes: Some(3),
            deadlocks: Some(3),
            dirty_pages: Some(7),
            dirty_pct: Some(25.0),
            ..WatchSample::default()
        };
        assert_eq!(sample, expected);
        let tps = FIGURES.iter().find(|one| one.name == "tps").unwrap();
        assert_eq!((tps.of)(&sample), Some(100.0));
    }
}
