//! The statements of a sample, on one connection.
//!
//! Invariant: what a user may not query is tried once per connection, and is missing from then on.
//! Which metrics are on is checked again after a while: others may switch them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use iostrata_change::ServerToken;
use iostrata_database::target::{
    OldestTransaction, SessionWaits, StallSnapshot, StatementDigest, TargetError, Trouble,
};
use mysql::Conn;

use super::file_round::FileRound;
use super::missing::MissingRights;
use super::monitor_text::MonitorText;
use super::replication::ReplicationQuestions;
use super::session_states;
use super::source::{FieldSource, status_names, with_metrics};
use super::stall_questions::StallQuestions;
use super::status_reply::{EVENT_SCHEDULER, Numbers, StatusReply, VARIABLES};
use super::transaction_count::{LOOK_SQL, THREADS_SQL, TransactionEvents};
use super::turn::Turn;
use crate::connect::{Connector, Patience, TextRows, texts};
use crate::failure;
use crate::flavour::ServerVersion;
use crate::identity;

/// Samples until the metrics are queried although none that is needed was on.
const METRICS_AGAIN: u32 = 30;
/// The condition of a metric that is on, in MySQL and in MariaDB. A number is compared with a
/// number: a word would be 0.
const IS_ON: [&str; 2] = ["STATUS = 'enabled'", "ENABLED = 1"];
const UNKNOWN_COLUMN: &str = "1054";
/// Seconds until open transactions are read again: the server lists all of them for it. The more
/// there are, the longer it takes.
const TRANSACTIONS_AGAIN_S: u64 = 5;
const TRANSACTIONS_AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// One part in so many of the time may pass with them.
const TRANSACTIONS_REST: u32 = 250;
/// The same of a sample that needs the monitor's text, which lists all transactions: the more there
/// are, the fewer samples are taken, but one in five seconds.
const TEXT_REST: u32 = 100;
const TEXT_AT_ONCE: u32 = 5;
const TEXT_AGAIN: [Duration; 2] = [Duration::ZERO, Duration::from_secs(5)];
/// When the oldest began, by the clock of the server's system, and who holds it.
const OLDEST_SQL: &str = "SELECT CAST(UNIX_TIMESTAMP(trx_started) AS UNSIGNED), \
                          trx_mysql_thread_id FROM information_schema.INNODB_TRX WHERE \
                          trx_mysql_thread_id <> CONNECTION_ID() ORDER BY trx_started LIMIT 1";
/// Times of transactions are in it, whatever other times are in.
const SYSTEM_TIME_SQL: &str = "SET SESSION time_zone = 'SYSTEM'";
const MONITOR: &str = "SHOW ENGINE INNODB STATUS";

/// An open transaction.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// In seconds since 1970.
    began_s: u64,
    connection: Option<u64>,
}

impl Open {
    /// Its age now, where transactions were read at `asked_s`. One that was young then has most
    /// likely ended, and another one is the oldest: its age stays as it was.
    fn age_s(&self, asked_s: u64, now_s: u64) -> u64 {
        let was_s = asked_s.saturating_sub(self.began_s);
        if was_s < TRANSACTIONS_AGAIN_S { was_s } else { now_s.saturating_sub(self.began_s) }
    }
}

/// A connection with the queries on it.
pub(crate) struct StatusRound {
    conn: Conn,
    status_sql: String,
    variables: Vec<String>,
    variables_sql: String,
    /// By the names that this server has for their state.
    metrics_sql: String,
    /// Samples until the metrics are queried.
    metrics_in: u32,
    /// When transactions were read, and the oldest that was open.
    transactions: Option<(u64, Option<Open>)>,
    transactions_turn: Turn,
    text_turn: Turn,
    files: FileRound,
    events: TransactionEvents,
    replication: ReplicationQuestions,
    stall: StallQuestions,
    /// What a sample adds to `Handler_commit`.
    pub(crate) own_commits: u64,
    pub(crate) refused: MissingRights,
}

fn list(names: impl IntoIterator<Item = &'static str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
    quoted.join(", ")
}

fn numbers(rows: TextRows) -> Numbers {
    let number = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        Some((row.next()??, row.next()??.parse().ok()?))
    };
    rows.into_iter().filter_map(number).collect()
}

fn metrics_sql(is_on: &str) -> String {
    let names = list(with_metrics().flat_map(|source| source.metrics).copied());
    format!(
        "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE {is_on} AND NAME IN \
         ({names})"
    )
}

/// Queries for the disabled counters that would add a figure, for MySQL and for MariaDB, given the
/// status variables that this server has. Counters of figures that are in the status stay off.
pub(crate) fn counters_off_sql(is_shown: impl Fn(&str) -> bool) -> [String; 2] {
    let only_metrics = with_metrics().filter(|source| source.is_only_metric(&is_shown));
    let names = list(only_metrics.flat_map(|source| source.metrics).copied());
    IS_ON.map(|is_on| {
        format!(
            "SELECT NAME FROM information_schema.INNODB_METRICS WHERE NOT ({is_on}) AND NAME IN \
             ({names})"
        )
    })
}

impl StatusRound {
    /// Connects, and finds out what this server has.
    ///
    /// # Errors
    /// As for any connection; a server other than the allowed one.
    pub(crate) fn begin(
        connector: &Connector,
        name: &str,
        one: Option<&ServerToken>,
    ) -> Result<Self, TargetError> {
        let mut conn = connector.connect(Patience::Short)?;
        one.map_or(Ok(()), |one| identity::check(&mut conn, name, one))?;
        let mut round = Self {
            conn,
            status_sql: format!(
                "SHOW GLOBAL STATUS WHERE Variable_name IN ({})",
                list(status_names())
            ),
            variables: Vec::new(),
            variables_sql: "SELECT UNIX_TIMESTAMP()".to_owned(),
            metrics_sql: metrics_sql(IS_ON[0]),
            metrics_in: 0,
            transactions: None,
            transactions_turn: Turn::new(TRANSACTIONS_REST, 0)
                .within(TRANSACTIONS_AGAIN[0], TRANSACTIONS_AGAIN[1]),
            text_turn: Turn::new(TEXT_REST, TEXT_AT_ONCE).within(TEXT_AGAIN[0], TEXT_AGAIN[1]),
            files: FileRound::default(),
            events: TransactionEvents::default(),
            replication: ReplicationQuestions::default(),
            stall: StallQuestions::default(),
            own_commits: 0,
            refused: MissingRights::default(),
        };
        round.rows(name, SYSTEM_TIME_SQL)?;
        let sql = format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})",
            list(VARIABLES.iter().copied())
        );
        let rows = round.rows(name, &sql)?.into_iter();
        let there: Vec<String> = rows.filter_map(|row| row.into_iter().next().flatten()).collect();
        for variable in VARIABLES.iter().filter(|name| there.iter().any(|one| one == *name)) {
            round.variables.push((*variable).to_owned());
            // A word becomes a number.
            let word = if *variable == EVENT_SCHEDULER { " = 'ON'" } else { "" };
            round.variables_sql += &format!(", @@global.{variable}{word}");
        }
        // What a sample commits itself, apart from what reading the counter does.
        let before = round.commits(name)?;
        let asking = round.commits(name)?.saturating_sub(before);
        let before = before + asking;
        round.ask(name)?;
        round.own_commits = round.commits(name)?.saturating_sub(before + asking);
        Ok(round)
    }

    fn commits(&mut self, name: &str) -> Result<u64, TargetError> {
        let rows = self.rows(name, "SHOW SESSION STATUS LIKE 'Handler_commit'")?;
        Ok(numbers(rows).into_values().next().unwrap_or(0))
    }

    fn rows(&mut self, name: &str, sql: &str) -> Result<TextRows, TargetError> {
        let attempt = "reading status and variables";
        texts(&mut self.conn, sql).map_err(|error| failure::told(name, attempt, &error))
    }

    /// Runs every query once.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn ask(&mut self, name: &str) -> Result<StatusReply, TargetError> {
        let status = self.status_sql.clone();
        let began = Instant::now();
        let mut told =
            StatusReply { status: numbers(self.rows(name, &status)?), ..StatusReply::default() };
        self.ask_variables(name, &mut told)?;
        told.took_s = began.elapsed().as_secs_f64().ceil() as u64;
        self.ask_metrics(name, &mut told)?;
        // Rates are worked out of status and text together: they are of one moment, nearly.
        self.ask_text(name, &mut told)?;
        self.ask_transaction_events(name, &mut told)?;
        self.ask_transactions(name, &mut told)?;
        let replication = self.replication.ask(&mut self.conn);
        told.replication =
            replication.map_err(|error| failure::told(name, "reading replication", &error))?;
        self.ask_files(name, &mut told)?;
        Ok(told)
    }

    /// Whether the previous sample is reused for the next one: it rests on the monitor's text,
    /// which takes this server long.
    pub(crate) fn rests(&self) -> bool {
        !self.text_turn.is_due(Instant::now())
    }

    fn ask_text(&mut self, name: &str, told: &mut StatusReply) -> Result<(), TargetError> {
        if !told.needs_text() || self.refused.text.is_some() {
            return Ok(());
        }
        let began = Instant::now();
        told.taken_us = SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| {
            // Long after the year 500,000.
            since.as_micros() as u64
        });
        match self.rows(name, MONITOR) {
            Ok(rows) => {
                let text = rows.into_iter().next().and_then(|row| row.into_iter().nth(2)?);
                told.text = MonitorText::parse(&text.unwrap_or_default());
                self.text_turn.answered(began, began.elapsed());
            }
            Err(error) if error.trouble == Trouble::Gone => return Err(error),
            Err(error) => self.refused.text = Some(error.text),
        }
        Ok(())
    }

    /// What sessions wait for, where this server reports it.
    pub(crate) fn session_waits(&mut self) -> Option<SessionWaits> {
        let states = session_states::ask(&mut self.conn)?;
        let waits = session_states::waits(&states);
        if waits == SessionWaits::default() && session_states::is_disk_full(&mut self.conn) {
            return Some(session_states::waits_for_room(&states));
        }
        let mut ask = |sql| texts(&mut self.conn, sql).unwrap_or_default();
        let held = ask(session_states::GROUP_HELD);
        Some(session_states::with_group(waits, held, ask(session_states::GROUP_QUEUE)))
    }

    /// The activity of a server that begins to stall.
    pub(crate) fn stall_snapshot(&mut self, version: &ServerVersion) -> StallSnapshot {
        self.stall.snapshot(&mut self.conn, version)
    }

    /// What ended since.
    pub(crate) fn statements_since(
        &mut self,
        version: &ServerVersion,
    ) -> Option<(Vec<StatementDigest>, f64)> {
        self.stall.statements_since(&mut self.conn, version)
    }

    fn ask_variables(&mut self, name: &str, told: &mut StatusReply) -> Result<(), TargetError> {
        let sql = self.variables_sql.clone();
        let row = self.rows(name, &sql)?.into_iter().next().unwrap_or_default();
        let mut values = row.into_iter().map(|value| value?.parse::<u64>().ok());
        told.now_s = values.next().flatten();
        let named = self.variables.iter().cloned().zip(values);
        told.variables = named.filter_map(|(name, value)| Some((name, value?))).collect();
        Ok(())
    }

    fn ask_transactions(&mut self, name: &str, told: &mut StatusReply) -> Result<(), TargetError> {
        let Some(now_s) = told.now_s.filter(|_| self.refused.transactions.is_none()) else {
            return Ok(());
        };
        let began = Instant::now();
        let known = self.transactions.filter(|_| !self.transactions_turn.is_due(began));
        let oldest = match known {
            Some((_, oldest)) => oldest,
            None => match self.rows(name, OLDEST_SQL) {
                Ok(rows) => rows.into_iter().next().and_then(|row| {
                    let mut numbers = row.into_iter().map(|cell| cell?.parse::<u64>().ok());
                    let began_s = numbers.next().flatten()?;
                    // One that was prepared before a restart is of connection 0, which is none.
                    let connection = numbers.next().flatten().filter(|id| *id > 0);
                    Some(Open { began_s, connection })
                }),
                Err(error) if error.trouble == Trouble::Gone => return Err(error),
                Err(error) => {
                    self.refused.transactions = Some(error.text);
                    return Ok(());
                }
            },
        };
        if known.is_none() {
            self.transactions_turn.answered(began, began.elapsed());
        }
        let asked_s = known.map_or(now_s, |(at_s, _)| at_s);
        self.transactions = Some((asked_s, oldest));
        told.oldest_transaction = Some(oldest.map_or_else(OldestTransaction::default, |open| {
            OldestTransaction { age_s: open.age_s(asked_s, now_s), id: open.connection }
        }));
        Ok(())
    }

    fn ask_transaction_events(
        &mut self,
        name: &str,
        told: &mut StatusReply,
    ) -> Result<(), TargetError> {
        if !told.has_performance_schema() || self.refused.transaction_events.is_some() {
            return Ok(());
        }
        match self.transaction_events(name) {
            Ok(count) => told.transaction_events = count,
            Err(error) if error.trouble == Trouble::Gone => return Err(error),
            // Versions before 5.7 have no such table.
            Err(error) => self.refused.transaction_events = Some(error.text),
        }
        Ok(())
    }

    fn transaction_events(&mut self, name: &str) -> Result<Option<u64>, TargetError> {
        if self.events.is_look_due() {
            let rows = self.rows(name, LOOK_SQL)?;
            self.events.take_look(rows);
        }
        if self.events.needs_threads() {
            let rows = self.rows(name, THREADS_SQL)?;
            self.events.take_threads(rows);
        }
        let Some(sql) = self.events.sql() else { return Ok(None) };
        Ok(TransactionEvents::take(self.rows(name, &sql)?))
    }

    fn ask_files(&mut self, name: &str, told: &mut StatusReply) -> Result<(), TargetError> {
        let began = Instant::now();
        let is_told = told.has_performance_schema() && self.refused.files.is_none();
        if is_told && self.files.is_due(began) {
            match self.file_rows(name) {
                Ok(rows) => {
                    let events = self.files.take_events(rows, began, began.elapsed());
                    told.file_events = Some(events);
                }
                Err(error) if error.trouble == Trouble::Gone => return Err(error),
                Err(error) => self.refused.files = Some(error.text),
            }
        }
        told.are_files_refused = self.refused.files.is_some();
        Ok(())
    }

    fn file_rows(&mut self, name: &str) -> Result<TextRows, TargetError> {
        if let Some(sql) = self.files.instruments_sql() {
            let rows = self.rows(name, &sql)?;
            self.files.take_instruments(rows);
        }
        let sql = self.files.events_sql();
        sql.map_or_else(|| Ok(Vec::new()), |sql| self.rows(name, &sql))
    }

    fn ask_metrics(&mut self, name: &str, told: &mut StatusReply) -> Result<(), TargetError> {
        if self.refused.metrics.is_some() {
            return Ok(());
        }
        self.metrics_in = self.metrics_in.saturating_sub(1);
        if self.metrics_in > 0 {
            return Ok(());
        }
        let sql = self.metrics_sql.clone();
        match self.rows(name, &sql) {
            Ok(rows) => told.metrics = numbers(rows),
            Err(error) if error.trouble == Trouble::Gone => return Err(error),
            Err(error) if error.code == UNKNOWN_COLUMN && sql == metrics_sql(IS_ON[0]) => {
                self.metrics_sql = metrics_sql(IS_ON[1]);
                return self.ask_metrics(name, told);
            }
            Err(error) => self.refused.metrics = Some(error.text),
        }
        let is_needed =
            |source: &FieldSource| !source.is_in_status(told) && source.is_in_metrics(told);
        if !with_metrics().any(is_needed) {
            self.metrics_in = METRICS_AGAIN;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_transaction_is_not_taken_for_open_until_the_next_look() {
        let open = Open { began_s: 1000, connection: Some(12) };
        assert_eq!((open.age_s(1001, 1001), open.age_s(1001, 1004)), (1, 1));
        assert_eq!((open.age_s(1005, 1005), open.age_s(1005, 1009)), (5, 9));
    }
}
