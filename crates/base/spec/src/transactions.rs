//! A load of transactions: how many sessions, on which schedule, for how long.
//!
//! Invariants: it says everything that a driver needs beside what the transactions do; it names its
//! target without secrets. It knows no statement and no table.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::io::RateProcess;

/// What happens to an arrival that finds the queue full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Overload {
    /// The queue grows without bound, and response times with it.
    #[default]
    Queue,
    /// It is dropped and counted.
    Drop,
    /// It ends the window with an error.
    Abort,
}

/// When transactions start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TransactionPacing {
    /// As soon as the session's last one is done.
    #[default]
    Closed,
    /// On a schedule that does not wait for anything to be done.
    Open {
        /// Arrivals per second of all sessions together.
        rate_per_s: f64,
        /// How they are spaced.
        process: RateProcess,
        /// Arrivals that may wait for a session, where `overload` bounds them.
        queue_max: u32,
        /// What happens to one that finds so many waiting.
        overload: Overload,
    },
    /// As people at terminals make them: keying, waiting for the answer, thinking.
    Terminals {
        /// How many terminals share the sessions.
        homes: u32,
    },
}

impl TransactionPacing {
    /// Whether a transaction has a moment at which it should start.
    pub fn is_scheduled(self) -> bool {
        self != Self::Closed
    }
}

/// A load of transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransactionSpec {
    /// Which workload: `tpcc`, `oltp_read_write`.
    pub workload: String,
    /// What it runs on, without secrets.
    pub target: String,
    /// Its own settings by name, such as `warehouses`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Sessions.
    pub threads: u32,
    /// When transactions start.
    pub pacing: TransactionPacing,
    /// Time before the measured window; absent: found, within a quarter of it.
    pub warm_up: Option<Duration>,
    /// Exact length of the measured window; absent: until it is precise enough.
    pub runtime: Option<Duration>,
    /// Longest time without `runtime`.
    pub point_time: Duration,
    /// Relative half-width of the 95 % interval at which a window without `runtime` may stop.
    pub precision: f64,
    /// Seed of every random choice.
    pub seed: u64,
    /// The window ends early when every session has been gone for so long.
    pub gone_max: Duration,
}

impl TransactionSpec {
    /// One session in a closed loop for half a minute.
    pub fn new(workload: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            workload: workload.into(),
            target: target.into(),
            settings: BTreeMap::new(),
            threads: 1,
            pacing: TransactionPacing::Closed,
            warm_up: None,
            runtime: Some(Duration::from_secs(30)),
            point_time: Duration::from_secs(30),
            precision: 0.03,
            seed: 1,
            gone_max: Duration::from_secs(10),
        }
    }
}
