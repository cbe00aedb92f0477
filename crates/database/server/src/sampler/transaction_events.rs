//! Transactions as performance_schema counts them, without those of the server's own threads.
//!
//! Invariant: asked only where it counts; which threads are the server's own is looked at once per
//! connection, whether it counts again after a while.

/// Samples until it is looked whether it counts.
const LOOK_AGAIN: u32 = 30;

/// Whether it counts, in the words of every version.
pub(crate) const LOOK_SQL: &str = "SELECT COUNT(*) FROM performance_schema.setup_instruments \
     WHERE NAME = 'transaction' AND ENABLED = 'YES' AND EXISTS (SELECT 1 FROM \
     performance_schema.setup_consumers WHERE NAME = 'global_instrumentation' AND ENABLED = 'YES') \
     AND EXISTS (SELECT 1 FROM performance_schema.setup_consumers WHERE NAME = \
     'thread_instrumentation' AND ENABLED = 'YES')";
/// Threads that write tables of the server itself: InnoDB's keep the transaction ids of the binlog.
pub(crate) const THREADS_SQL: &str = "SELECT THREAD_ID FROM performance_schema.threads WHERE NAME \
     LIKE 'thread/innodb/%' OR NAME = 'thread/sql/compress_gtid_table'";

/// What is asked next.
#[derive(Debug, Default)]
pub(crate) struct TransactionEvents {
    look_in: u32,
    counts: bool,
    own_threads: Option<Vec<u64>>,
}

type Rows = Vec<Vec<Option<String>>>;

fn numbers(rows: Rows) -> impl Iterator<Item = u64> {
    rows.into_iter().filter_map(|row| row.into_iter().next()??.parse().ok())
}

impl TransactionEvents {
    /// Whether it is time to look.
    pub(crate) fn is_look_due(&mut self) -> bool {
        let is_due = self.look_in == 0;
        self.look_in = self.look_in.checked_sub(1).unwrap_or(LOOK_AGAIN);
        is_due
    }

    /// The answer to [`LOOK_SQL`].
    pub(crate) fn take_look(&mut self, rows: Rows) {
        self.counts = numbers(rows).next().is_some_and(|count| count > 0);
    }

    /// Whether the server's own threads are to be asked for.
    pub(crate) fn needs_threads(&self) -> bool {
        self.counts && self.own_threads.is_none()
    }

    /// The answer to [`THREADS_SQL`].
    pub(crate) fn take_threads(&mut self, rows: Rows) {
        self.own_threads = Some(numbers(rows).collect());
    }

    /// The statement that asks for the count; none where nothing is counted.
    pub(crate) fn sql(&self) -> Option<String> {
        let table = "FROM performance_schema.events_transactions_summary";
        let all = format!("(SELECT SUM(COUNT_STAR) {table}_global_by_event_name)");
        let ids: Vec<String> = self.own_threads.iter().flatten().map(|id| id.to_string()).collect();
        let own = (!ids.is_empty()).then(|| {
            let ids = ids.join(", ");
            format!(
                " - (SELECT COALESCE(SUM(COUNT_STAR), 0) {table}_by_thread_by_event_name WHERE \
                 THREAD_ID IN ({ids}))"
            )
        });
        self.counts.then(|| format!("SELECT {all}{}", own.unwrap_or_default()))
    }

    /// Its answer.
    pub(crate) fn take(rows: Rows) -> Option<u64> {
        numbers(rows).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Rows {
        vec![vec![Some(text.to_owned())]]
    }

    #[test]
    fn threads_of_the_server_are_taken_off_and_what_is_off_is_not_asked_for() {
        let mut events = TransactionEvents::default();
        assert!(events.is_look_due());
        events.take_look(row("0"));
        assert_eq!((events.sql(), events.needs_threads()), (None, false));
        let looks = (0..2 * LOOK_AGAIN).filter(|_| events.is_look_due()).count();
        assert_eq!(looks, 1, "others may switch it on");
        events.take_look(row("1"));
        assert!(events.needs_threads());
        events.take_threads([row("33"), row("39")].concat());
        let sql = events.sql().unwrap();
        assert!(sql.contains("THREAD_ID IN (33, 39)") && !events.needs_threads(), "{sql}");
        events.take_threads(Vec::new());
        assert!(!events.sql().unwrap().contains("THREAD_ID"));
        assert_eq!(TransactionEvents::take(row("412")), Some(412));
        assert_eq!(TransactionEvents::take(vec![vec![None]]), None);
    }
}
