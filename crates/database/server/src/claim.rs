//! One of a kind at a server: a named lock that lives as long as its connection.
//!
//! Invariant: its holder is the only one, on whichever host it runs; the server itself lets
//! go of it when the connection ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use iostrata_database::target::TargetError;
use mysql::Conn;

use crate::connect::texts;
use crate::facts::named;
use crate::failure;
use crate::role::{self, ServerRole};

/// How long commits took.
const COMMIT_TIMES: &str = "SELECT h.BUCKET_TIMER_HIGH, SUM(h.COUNT_BUCKET) FROM \
    performance_schema.events_statements_summary_by_digest d JOIN \
    performance_schema.events_statements_histogram_by_digest h ON h.DIGEST = d.DIGEST AND \
    h.SCHEMA_NAME <=> d.SCHEMA_NAME WHERE d.DIGEST_TEXT = 'COMMIT' AND h.COUNT_BUCKET > 0 GROUP BY \
    h.BUCKET_TIMER_HIGH";
const PS_PER_US: u64 = 1_000_000;

/// A claim that is held.
#[derive(Debug)]
pub struct Claim {
    conn: Conn,
    target: Arc<str>,
    name: &'static str,
}

impl Claim {
    /// Claims a name, a word, on a connection of its own; nothing when another one holds it.
    pub(crate) fn take(
        conn: Conn,
        target: Arc<str>,
        name: &'static str,
    ) -> Result<Option<Self>, TargetError> {
        let mut claim = Self { conn, target, name };
        let is_ours = claim.says(&format!("SELECT GET_LOCK('{name}', 0)"))?;
        Ok(is_ours.then_some(claim))
    }

    /// Whether it is held still. Keeps the connection from being idle for too long.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn holds(&mut self) -> Result<bool, TargetError> {
        self.says(&format!("SELECT IS_USED_LOCK('{}') = CONNECTION_ID()", self.name))
    }

    /// The global variables of the server's storage engine, by name. No connection is made for it:
    /// a server that has none left answers, too.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn engine_variables(&mut self) -> Result<BTreeMap<String, String>, TargetError> {
        let sql = "SHOW GLOBAL VARIABLES LIKE 'innodb%'";
        let answer = texts(&mut self.conn, sql);
        answer.map(named).map_err(|error| failure::told(&self.target, sql, &error))
    }

    /// The server's role among others, queried in the same way.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn role(&mut self) -> Result<ServerRole, TargetError> {
        role::role(&mut self.conn, &self.target)
    }

    /// Commits since the start, by the upper bound of the time that they took, in microseconds;
    /// nothing where the server does not count them (MySQL does from 8.0 on). Only the statement
    /// COMMIT counts; an autocommit is part of its statement.
    pub fn commit_times(&mut self) -> Option<BTreeMap<u64, u64>> {
        let rows = texts(&mut self.conn, COMMIT_TIMES).ok()?;
        let mut times = BTreeMap::new();
        for row in rows {
            let number = |at: usize| row.get(at)?.as_ref()?.parse::<u64>().ok();
            *times.entry(number(0)?.div_ceil(PS_PER_US)).or_default() += number(1)?;
        }
        Some(times)
    }

    fn says(&mut self, sql: &str) -> Result<bool, TargetError> {
        let answer = texts(&mut self.conn, sql);
        let answer = answer.map_err(|error| failure::told(&self.target, sql, &error))?;
        let cell = answer.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        Ok(cell.as_deref() == Some("1"))
    }
}
