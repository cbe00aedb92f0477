//! A load of transactions: how many sessions, on which schedule, for how long.
//!
//! Invariants: it holds everything that a driver needs apart from what the transactions do; it
//! names its target without secrets. It has no statements and no tables.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::check::{SpecError, refuse};
use crate::io::RateProcess;

/// Sessions at most: each may need a thread.
const THREADS_MAX: u32 = 10_000;
/// Arrivals per second at most.
const RATE_MAX: f64 = 1e9;
/// Terminals at most: a hundred thousand warehouses of ten.
const HOMES_MAX: u32 = 1_000_000;
/// Arrivals at most that may wait.
const QUEUE_MAX: u32 = 10_000_000;

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
    /// The window ends early after so many transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_max: Option<u64>,
    /// Codes of failures that end no window and speak against none; `all` for every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_errors: Vec<String>,
    /// The percentile that is shown while it runs.
    #[serde(default = "live_percentile", skip_serializing_if = "is_live_percentile")]
    pub live_percentile: f64,
}

fn live_percentile() -> f64 {
    95.0
}

fn is_live_percentile(percentile: &f64) -> bool {
    *percentile == live_percentile()
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
            events_max: None,
            ignored_errors: Vec::new(),
            live_percentile: live_percentile(),
        }
    }

    /// Checks what can be judged without looking at the target.
    ///
    /// # Errors
    /// The first thing that cannot be run.
    pub fn check(&self) -> Result<(), SpecError> {
        let within = |option, found: u32, most: u32| match found {
            found if (1..=most).contains(&found) => Ok(()),
            found => refuse(option, found, "out of range", format!("use 1 to {most}")),
        };
        within("threads", self.threads, THREADS_MAX)?;
        match self.pacing {
            TransactionPacing::Closed => {}
            TransactionPacing::Open { rate_per_s, queue_max, .. } => {
                if !(rate_per_s > 0.0 && rate_per_s <= RATE_MAX) {
                    return refuse("rate", rate_per_s, "out of range", "use above 0, such as 100");
                }
                within("max-queue", queue_max, QUEUE_MAX)?;
            }
            TransactionPacing::Terminals { homes } => within("wait", homes, HOMES_MAX)?,
        }
        if self.runtime.is_some_and(|time| time.is_zero()) {
            return refuse("time", "0 s", "no time", "use 1 s or more");
        }
        if let (Some(warm_up), None) = (self.warm_up, self.runtime) {
            let found = format!("{} s", warm_up.as_secs_f64());
            let why = "a window that ends when it is precise finds its own warm-up";
            return refuse("warmup-time", found, why, "leave it out, or set --time");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_run_is_refused_with_its_option() {
        assert_eq!(TransactionSpec::new("tpcc", "engine:/data").check(), Ok(()));
        let open = |rate_per_s, queue_max| {
            let (process, overload) = (RateProcess::Poisson, Overload::Drop);
            TransactionPacing::Open { rate_per_s, process, queue_max, overload }
        };
        type Change<'a> = &'a dyn Fn(&mut TransactionSpec);
        let changes: [(&str, Change<'_>); 8] = [
            ("threads", &|spec| spec.threads = 0),
            ("threads", &|spec| spec.threads = THREADS_MAX + 1),
            ("rate", &|spec| spec.pacing = open(0.0, 10)),
            ("rate", &|spec| spec.pacing = open(f64::NAN, 10)),
            ("max-queue", &|spec| spec.pacing = open(10.0, 0)),
            ("wait", &|spec| spec.pacing = TransactionPacing::Terminals { homes: 0 }),
            ("time", &|spec| spec.runtime = Some(Duration::ZERO)),
            ("warmup-time", &|spec| {
                (spec.runtime, spec.warm_up) = (None, Some(Duration::from_secs(1)));
            }),
        ];
        for (option, change) in changes {
            let mut spec = TransactionSpec::new("tpcc", "engine:/data");
            change(&mut spec);
            assert_eq!(spec.check().unwrap_err().option, option);
        }
    }
}
