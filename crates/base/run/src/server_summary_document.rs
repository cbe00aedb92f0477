//! What `iostrata watch --summary` prints of a server.
//!
//! Invariant: what the server does not report is null. Counters are exact; a rate has the seconds
//! over which it was counted.

use serde::{Deserialize, Serialize};

use crate::transaction_document::TransactionDurability;

/// A server on one page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSummaryDocument {
    /// Its address without secrets.
    pub name: String,
    /// `mysql`, `mariadb`, `percona`.
    pub flavour: String,
    /// As it calls its version.
    pub version: String,
    /// The managed service that runs it, by its name; null for a server of one's own.
    #[serde(default)]
    pub service: Option<String>,
    /// Since it was started, in seconds.
    pub uptime_s: Option<u64>,
    /// Why it is not written to, where it is a replica or read-only.
    pub replica: Option<String>,
    /// Whether the user may not see if it replicates; it may be a replica then.
    #[serde(default)]
    pub replication_is_hidden: bool,
    /// The group of which it is a member.
    pub member: Option<String>,
    /// What a commit survives, in words.
    pub commit_survives: Option<String>,
    /// The settings that decide it.
    pub durability: TransactionDurability,
    /// Seconds over which the rates were counted.
    pub window_s: f64,
    /// Samples in them.
    pub samples: u64,
    /// Transactions per second in the window.
    pub tps: Option<f64>,
    /// Its redo.
    pub redo: RedoSummary,
    /// Its buffer pool.
    pub pool: PoolSummary,
    /// Its connections.
    pub connections: ConnectionSummary,
    /// Temporary tables that went to disk since the start, in percent of all.
    pub temporary_tables_on_disk_pct: Option<f64>,
    /// Deadlocks since the start.
    pub deadlocks: Option<u64>,
    /// Settings that are not defaults, with where they come from; null where the server does not
    /// report it.
    pub settings: Option<Vec<SettingOrigin>>,
}

/// The redo of a server, and how long it lasts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RedoSummary {
    /// Its size.
    pub capacity_bytes: Option<u64>,
    /// The max checkpoint age: writers wait there.
    pub limit_bytes: Option<u64>,
    /// The checkpoint age at the end of the window.
    pub checkpoint_age_bytes: Option<u64>,
    /// The busiest interval of the window.
    pub peak_bytes_per_s: Option<f64>,
    /// Over the window.
    pub mean_bytes_per_s: Option<f64>,
    /// Over the time since the server was started.
    pub mean_bytes_per_s_since_start: Option<f64>,
    /// Minutes that the limit lasts at the busiest interval.
    pub minutes_at_peak: Option<f64>,
    /// Minutes that it lasts at the mean since the start.
    pub minutes_at_mean_since_start: Option<f64>,
}

/// The buffer pool of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolSummary {
    /// Its size.
    pub bytes: Option<u64>,
    /// Dirty pages, in percent of all.
    pub dirty_pct: Option<f64>,
    /// Free pages, in percent of all.
    pub free_pct: Option<f64>,
    /// Reads since the start that went to disk, in percent of all.
    pub misses_pct: Option<f64>,
    /// Times since the start that a page waited for a free one.
    pub free_page_waits: Option<u64>,
}

/// The connections of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionSummary {
    /// Now, the querying one included.
    pub now: Option<u64>,
    /// The most at a time since the start.
    pub most: Option<u64>,
    /// `max_connections`.
    pub limit: Option<u64>,
}

/// A setting that is not the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingOrigin {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where it comes from.
    pub source: SettingSource,
    /// The file, where the server names it.
    pub path: Option<String>,
    /// The user who changed it.
    pub set_by: Option<String>,
    /// When, in the server's time zone.
    pub set_at: Option<String>,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    /// Changed while the server ran; gone at its next start.
    Changed,
    /// `SET PERSIST`.
    Persisted,
    /// The command line.
    CommandLine,
    /// An option file.
    OptionFile,
}
