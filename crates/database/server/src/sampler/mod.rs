//! The state of a server, from its status, on a separate connection.
//!
//! Invariants: two to five statements per sample, which read what the server counts anyway, and
//! one more every few seconds for open transactions; nothing is switched on for it. Status comes
//! first, metrics and the monitor's text only for what it lacks. The names differ between flavours
//! and versions: docs/watch.md has the table. After a failure the next sample connects again.

mod file_event;
mod file_round;
mod files;
#[cfg(test)]
mod fixture_tests;
mod limits;
mod meaning;
mod metadata_locks;
mod missing;
mod monitor_text;
mod replication;
mod round;
mod sample_counts;
mod session_states;
mod source;
mod stall_questions;
mod status_reply;
mod transaction_count;
mod turn;

use std::sync::Arc;

use iostrata_change::ServerToken;
use iostrata_database::target::{
    Sampler, SessionWaits, StallSnapshot, StatementDigest, TableFacts, TargetError, TargetSample,
};
use mysql::{Conn, Error};

use crate::connect::{Connector, texts};
use crate::flavour::ServerVersion;
use round::StatusRound;
pub(crate) use round::counters_off_sql;
use sample_counts::SampleCounts;
pub(crate) use status_reply::COMMITS;
pub(crate) use transaction_count::LOOK_SQL as TRANSACTIONS_COUNTED_SQL;

/// Samples one server.
pub(crate) struct StatusSampler {
    connector: Connector,
    name: Arc<str>,
    version: ServerVersion,
    /// The only running server that may answer, if any.
    one: Option<Arc<ServerToken>>,
    /// Absent after a failure, until the next sample.
    round: Option<StatusRound>,
    counted: SampleCounts,
    last: Option<TargetSample>,
    missing: Vec<String>,
}

impl StatusSampler {
    /// Connects.
    ///
    /// # Errors
    /// As any connection.
    pub(crate) fn open(
        connector: Connector,
        name: Arc<str>,
        version: ServerVersion,
        one: Option<Arc<ServerToken>>,
    ) -> Result<Self, TargetError> {
        let round = Some(StatusRound::begin(&connector, &name, one.as_deref())?);
        let (counted, missing) = (SampleCounts::default(), Vec::new());
        Ok(Self { connector, name, version, one, round, counted, last: None, missing })
    }

    fn ask(&mut self) -> Result<TargetSample, TargetError> {
        let round = match &mut self.round {
            Some(round) => round,
            None => {
                let one = self.one.as_deref();
                self.round.insert(StatusRound::begin(&self.connector, &self.name, one)?)
            }
        };
        if let Some(last) = self.last.filter(|_| round.rests()) {
            return Ok(last);
        }
        let told = round.ask(&self.name)?;
        self.missing = missing::missing(&told, &self.version, &round.refused);
        let sample = self.counted.sample(&told, &self.version, round.own_commits);
        self.last = Some(sample);
        Ok(sample)
    }
}

impl Sampler for StatusSampler {
    fn sample(&mut self) -> Result<TargetSample, TargetError> {
        self.ask().inspect_err(|_| (self.round, self.last) = (None, None))
    }

    fn session_waits(&mut self) -> Option<SessionWaits> {
        self.round.as_mut()?.session_waits()
    }

    fn stall_snapshot(&mut self) -> Option<StallSnapshot> {
        Some(self.round.as_mut()?.stall_snapshot(&self.version))
    }

    fn statements_since(&mut self) -> Option<(Vec<StatementDigest>, f64)> {
        self.round.as_mut()?.statements_since(&self.version)
    }

    fn missing(&self) -> Vec<String> {
        self.missing.clone()
    }
}

/// Bytes of the files of the connection's database, from whichever table has them.
pub(crate) fn data_bytes(conn: &mut Conn) -> Option<u64> {
    file_bytes(conn, "SUBSTRING_INDEX(NAME, '/', 1) = DATABASE()")
}

/// How a table of the connection's database is kept, and how large it is.
///
/// # Errors
/// The server's error.
pub(crate) fn table_facts(conn: &mut Conn, table: &str) -> Result<TableFacts, Error> {
    // MySQL caches these statistics for a day unless this is 0. Others do not have the variable.
    let _unknown = texts(conn, "SET SESSION information_schema_stats_expiry = 0");
    let sql = format!(
        "SELECT ENGINE, DATA_LENGTH, INDEX_LENGTH FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{table}'"
    );
    let mut row = texts(conn, &sql)?.into_iter().next().unwrap_or_default().into_iter();
    let storage_engine = row.next().flatten();
    let mut bytes = || row.next().flatten().and_then(|bytes| bytes.parse::<u64>().ok());
    let (data, index_bytes) = (bytes(), bytes());
    // Its file is as large as it is now; InnoDB's count of its pages is an earlier estimate.
    let file = file_bytes(conn, &format!("NAME = CONCAT(DATABASE(), '/{table}')"));
    let table_bytes = file.or_else(|| Some(data? + index_bytes.unwrap_or(0)));
    Ok(TableFacts { storage_engine, table_bytes, index_bytes })
}

/// Bytes of the files of InnoDB's tables with such names.
fn file_bytes(conn: &mut Conn, which: &str) -> Option<u64> {
    let of = |conn: &mut Conn, table: &str| -> Result<Option<u64>, Error> {
        let sql = format!(
            "SELECT CAST(SUM(FILE_SIZE) AS UNSIGNED) FROM information_schema.{table} \
             WHERE {which}"
        );
        let answer = texts(conn, &sql)?.into_iter().next().unwrap_or_default();
        Ok(answer.into_iter().next().flatten().and_then(|bytes| bytes.parse().ok()))
    };
    let tables = ["INNODB_TABLESPACES", "INNODB_SYS_TABLESPACES"];
    tables.into_iter().find_map(|table| of(conn, table).ok().flatten())
}
