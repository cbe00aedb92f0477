//! What goes on in a server, from its status, on a connection of its own.
//!
//! Invariants: one or two statements per sample, which read what the server counts anyway; nothing
//! is switched on for it. A name that a server lacks is absent. The names differ between flavours
//! and versions: docs/servers.md has the table.

use std::collections::HashMap;
use std::sync::Arc;

use iostrata_target::{Sampler, TargetError, TargetSample, Trouble};
use mysql::{Conn, Error};

use crate::connect::{Connector, Patience, texts};
use crate::failure;
use crate::flavour::Flavour;

/// The status of all flavours; each gives what it has.
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN (\
    'Innodb_checkpoint_age', 'Innodb_checkpoint_max_age', 'Innodb_lsn_current', \
    'Innodb_lsn_flushed', 'Innodb_redo_log_current_lsn', 'Innodb_redo_log_checkpoint_lsn', \
    'Innodb_redo_log_flushed_to_disk_lsn', 'Innodb_redo_log_capacity_resized', \
    'Innodb_log_waits', 'Innodb_buffer_pool_wait_free', 'Innodb_buffer_pool_pages_dirty', \
    'Innodb_buffer_pool_pages_flushed', 'Innodb_buffer_pool_pages_total', \
    'Innodb_history_list_length', 'Innodb_data_pending_reads', \
    'Innodb_data_pending_writes', 'Innodb_data_pending_fsyncs', \
    'Innodb_os_log_pending_fsyncs', 'Innodb_row_lock_current_waits')";
/// MySQL's history, which its status lacks.
const HISTORY: &str = "SELECT 'history', COUNT FROM information_schema.INNODB_METRICS \
    WHERE NAME = 'trx_rseg_history_len'";
/// From when on writers are held back for purge.
const PURGE_LAG: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
    ('innodb_max_purge_lag', 'innodb_max_purge_lag_delay')";
/// MySQL does not tell the checkpoint age at which writers wait; it is this share of the capacity,
/// in percent (87,086,592 of 104,857,600 bytes).
const AGE_LIMIT_PCT: u64 = 83;

/// Asks one server.
pub(crate) struct StatusSampler {
    connector: Connector,
    name: Arc<str>,
    /// Absent after a failure, until the next sample.
    conn: Option<Conn>,
    asks_history: bool,
    history_limit: Option<u64>,
}

/// Numbers by name.
type Numbers = HashMap<String, u64>;

impl StatusSampler {
    /// Connects.
    ///
    /// # Errors
    /// As any connection.
    pub(crate) fn open(
        connector: Connector,
        name: Arc<str>,
        flavour: Flavour,
    ) -> Result<Self, TargetError> {
        let asks_history = matches!(flavour, Flavour::MySql | Flavour::Percona);
        let mut sampler = Self { connector, name, conn: None, asks_history, history_limit: None };
        let lag = sampler.ask(PURGE_LAG)?;
        let of = |name: &str| lag.get(name).copied().unwrap_or(0);
        let limit = of("innodb_max_purge_lag");
        // A delay of 0 leaves the limit without effect.
        let holds_back = limit > 0 && of("innodb_max_purge_lag_delay") > 0;
        sampler.history_limit = holds_back.then_some(limit);
        Ok(sampler)
    }

    fn ask(&mut self, sql: &str) -> Result<Numbers, TargetError> {
        let conn = match &mut self.conn {
            Some(conn) => conn,
            None => self.conn.insert(self.connector.connect(Patience::Short)?),
        };
        let rows = texts(conn, sql).map_err(|error| {
            self.conn = None;
            failure::told(&self.name, "read status and variables", &error)
        })?;
        let number = |row: Vec<Option<String>>| {
            let mut row = row.into_iter();
            Some((row.next()??, row.next()??.parse().ok()?))
        };
        Ok(rows.into_iter().filter_map(number).collect())
    }
}

impl Sampler for StatusSampler {
    fn sample(&mut self) -> Result<TargetSample, TargetError> {
        let mut numbers = self.ask(STATUS)?;
        if self.asks_history {
            match self.ask(HISTORY) {
                Ok(history) => numbers.extend(history),
                Err(error) if error.trouble == Trouble::Gone => return Err(error),
                // Whoever may not read it does without.
                Err(_) => self.asks_history = false,
            }
        }
        Ok(sample_of(&numbers, self.history_limit))
    }
}

/// The sample of what a server told.
fn sample_of(numbers: &Numbers, history_limit: Option<u64>) -> TargetSample {
    let of = |name: &str| numbers.get(name).copied();
    let innodb = |name: &str| of(&format!("Innodb_{name}"));
    let age = || innodb("redo_log_current_lsn")?.checked_sub(innodb("redo_log_checkpoint_lsn")?);
    let limit = || Some(innodb("redo_log_capacity_resized")? / 100 * AGE_LIMIT_PCT);
    let syncs = innodb("data_pending_fsyncs");
    TargetSample {
        checkpoint_age_bytes: innodb("checkpoint_age").or_else(age),
        checkpoint_age_limit_bytes: innodb("checkpoint_max_age").or_else(limit),
        redo_end_bytes: innodb("lsn_current").or_else(|| innodb("redo_log_current_lsn")),
        redo_durable_bytes: innodb("lsn_flushed")
            .or_else(|| innodb("redo_log_flushed_to_disk_lsn")),
        redo_flushes: None,
        redo_flush_us: None,
        redo_waits: None,
        log_buffer_waits: innodb("log_waits"),
        free_page_waits: innodb("buffer_pool_wait_free"),
        dirty_pages: innodb("buffer_pool_pages_dirty"),
        pages_flushed: innodb("buffer_pool_pages_flushed"),
        pages_flushed_for_redo: None,
        furious_flushes: None,
        pool_pages: innodb("buffer_pool_pages_total"),
        history_list_length: innodb("history_list_length").or_else(|| of("history")),
        history_list_limit: history_limit,
        pending_reads: innodb("data_pending_reads"),
        pending_writes: innodb("data_pending_writes"),
        pending_syncs: syncs.map(|data| data + innodb("os_log_pending_fsyncs").unwrap_or(0)),
        row_locks_waiting: innodb("row_lock_current_waits"),
        ..TargetSample::default()
    }
}

/// Bytes of the files of the connection's database, from whichever table has them.
pub(crate) fn data_bytes(conn: &mut Conn) -> Option<u64> {
    let of = |conn: &mut Conn, table: &str| -> Result<Option<u64>, Error> {
        let sql = format!(
            "SELECT CAST(SUM(FILE_SIZE) AS UNSIGNED) FROM information_schema.{table} \
             WHERE SUBSTRING_INDEX(NAME, '/', 1) = DATABASE()"
        );
        let answer = texts(conn, &sql)?.into_iter().next().unwrap_or_default();
        Ok(answer.into_iter().next().flatten().and_then(|bytes| bytes.parse().ok()))
    };
    let tables = ["INNODB_TABLESPACES", "INNODB_SYS_TABLESPACES"];
    tables.into_iter().find_map(|table| of(conn, table).ok().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: &[(&str, u64)]) -> TargetSample {
        let numbers = status.iter().map(|(name, number)| (format!("Innodb_{name}"), *number));
        sample_of(&numbers.collect(), None)
    }

    #[test]
    fn mariadb_tells_age_and_limit_itself() {
        let found = of(&[
            ("checkpoint_age", 21_939_692),
            ("checkpoint_max_age", 84_216_915),
            ("lsn_current", 50_438_218),
            ("lsn_flushed", 50_435_847),
            ("history_list_length", 1_622),
            ("data_pending_reads", 0),
            ("data_pending_writes", 2),
            ("data_pending_fsyncs", 1),
        ]);
        assert_eq!(found.checkpoint_age_bytes, Some(21_939_692));
        assert_eq!(found.checkpoint_age_limit_bytes, Some(84_216_915));
        assert_eq!(
            (found.redo_end_bytes, found.redo_durable_bytes),
            (Some(50_438_218), Some(50_435_847))
        );
        assert_eq!((found.history_list_length, found.pending_ios()), (Some(1_622), Some(3)));
    }

    #[test]
    fn mysql_tells_positions_and_capacity() {
        let found = of(&[
            ("redo_log_current_lsn", 72_792_654),
            ("redo_log_checkpoint_lsn", 54_242_766),
            ("redo_log_flushed_to_disk_lsn", 72_789_657),
            ("redo_log_capacity_resized", 104_857_600),
        ]);
        assert_eq!(found.checkpoint_age_bytes, Some(18_549_888));
        let limit = found.checkpoint_age_limit_bytes.unwrap();
        assert!(limit.abs_diff(87_086_592) < 100_000, "{limit}");
        assert_eq!(found.redo_durable_bytes, Some(72_789_657));
    }

    #[test]
    fn everything_that_is_read_is_asked_for() {
        let asked = STATUS.split('\'').skip(1).step_by(2).map(|name| (name.to_owned(), 7));
        let found = sample_of(&asked.collect(), None);
        let all = [found.pages_flushed, found.dirty_pages, found.pool_pages, found.redo_end_bytes];
        assert_eq!(all, [Some(7); 4]);
        assert!(found.checkpoint_age_bytes.is_some() && found.log_buffer_waits.is_some());
        assert!(found.history_list_length.is_some() && found.row_locks_waiting.is_some());
    }

    #[test]
    fn what_a_server_lacks_is_absent() {
        assert_eq!(of(&[]), TargetSample::default());
        let old = of(&[("log_waits", 3), ("buffer_pool_wait_free", 0)]);
        assert_eq!((old.log_buffer_waits, old.free_page_waits), (Some(3), Some(0)));
        assert_eq!((old.checkpoint_age_bytes, old.pending_ios()), (None, None));
    }
}
