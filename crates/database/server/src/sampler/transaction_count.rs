//! Transactions that a server has ended, by whichever of its counters show them.
//!
//! Exact where it counts them itself: performance_schema (MySQL from 8.0 by default), or the three
//! counters of commits in `INNODB_METRICS`, which are off by default. Elsewhere they are put
//! together: what clients ended by a statement, and statements that were transactions of their own.
//! Transaction ids show which of these wrote: one goes to each transaction that writes (in MySQL
//! before 5.7 to each that reads, too), a second one to its commit, which MySQL spares where rows
//! were only inserted. Reads outside of transactions show nowhere; they are counted where nearly
//! all transactions are such reads. Invariant: pure; the count never goes back.

use super::status_reply::StatusReply;
use crate::connect::TextRows;

/// How much of what was counted before still speaks at the next sample.
const MEMORY: f64 = 0.95;
/// So many reads are in no usual transaction: beyond it they are transactions themselves.
const READS_MAX: f64 = 100.0;
/// Ids that may be given out before the transactions that they belong to end, besides one per
/// session.
const SLACK: i64 = 2;
/// One in so many ids may be given out between reading what ended and reading them.
const LATE: u64 = 8;
/// Statements that write.
pub(crate) const WRITES: [&str; 9] = [
    "Com_insert",
    "Com_insert_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_replace",
    "Com_replace_select",
    "Com_load",
];
/// Those of them that leave old row versions.
const CHANGES: [&str; 6] = [
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_replace",
    "Com_replace_select",
];

/// A server's counters at one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransactionCounters {
    /// What performance_schema counted.
    pub(crate) events: Option<u64>,
    /// What InnoDB's counters of commits counted.
    pub(crate) commits: Option<u64>,
    /// What clients ended by a statement.
    pub(crate) ended: Option<u64>,
    /// Transaction ids given out.
    pub(crate) ids: Option<u64>,
    /// Statements that wrote.
    pub(crate) writes: u64,
    /// Those that left old row versions, where commits of others take no id.
    pub(crate) changes: Option<u64>,
    /// Statements and transactions that the storage engine committed.
    pub(crate) handled: Option<u64>,
    /// Sessions at work, whose transactions have not ended yet.
    pub(crate) running: u64,
}

impl TransactionCounters {
    /// The counters that were reported.
    pub(crate) fn of(told: &StatusReply) -> Self {
        let sum = |names: &[&str]| names.iter().filter_map(|name| told.status(name)).sum::<u64>();
        let rows = ["Innodb_rows_updated", "Innodb_rows_deleted"]
            .map(|name| told.status(name).unwrap_or(0));
        let rows = rows.iter().sum::<u64>();
        // Replicas change rows without statements of clients.
        let changes =
            Some(sum(&CHANGES)).filter(|count| *count > 0).map_or(rows, |sum| sum.min(rows));
        let max_id = told.status("Innodb_max_trx_id");
        // The binlog takes part in each commit that writes, and prepares it as InnoDB does.
        let twice = told.status("Handler_prepare").unwrap_or(0) / 2;
        Self {
            events: told.transaction_events,
            commits: told.transaction_commits(),
            ended: told.ended(),
            ids: max_id.or(told.text.transaction_id),
            writes: sum(&WRITES),
            changes: max_id.is_none().then_some(changes),
            handled: told.status("Handler_commit").map(|count| count.saturating_sub(twice)),
            running: told.sessions_running().unwrap_or(0),
        }
    }

    /// Whether each transaction is counted, whatever it did.
    pub(crate) fn is_exact(&self) -> bool {
        self.events.or(self.commits).is_some()
    }
}

/// Counts transactions from one sample to the next.
#[derive(Debug, Default)]
pub(crate) struct TransactionCount {
    last: Option<TransactionCounters>,
    total: u64,
    /// By how many transactions ids are behind what ended: those were counted when they began.
    behind: i64,
    /// What ids showed at the sample before, beyond what ended.
    ahead: i64,
    /// By how many there were more changes than ids for their commits at the sample before.
    balance: i64,
    /// What was counted lately, and statements that were not taken for any of it.
    counted: f64,
    others: f64,
    left: u64,
}

impl TransactionCount {
    /// The transactions so far. `own` is how many of `handled` were the sampler's own since the
    /// sample before.
    pub(crate) fn count(&mut self, now: TransactionCounters, own: u64) -> Option<u64> {
        let known = now.ended.or(now.events).or(now.commits)?;
        let Some(last) = self.last.replace(now) else {
            self.total = known;
            return Some(self.total);
        };
        // Counters that went back are of another start.
        let grown = |of: fn(&TransactionCounters) -> Option<u64>| {
            Some(of(&now)?.saturating_sub(of(&last)?))
        };
        let exact = grown(|one| one.events).or_else(|| grown(|one| one.commits));
        self.total += exact.unwrap_or_else(|| {
            let ended = grown(|one| one.ended).unwrap_or(0);
            let alone = grown(|one| one.ids).map(|ids| {
                let changes = grown(|one| one.changes).unwrap_or(u64::MAX);
                self.alone(ids, changes, ended, now.running)
            });
            let more = ended.saturating_add_signed(alone.unwrap_or(0));
            // Where ids show which transactions write, only reads are left.
            let written = alone.map_or(0, |_| now.writes.saturating_sub(last.writes));
            let handled = grown(|one| one.handled).unwrap_or(0);
            more + self.others(handled.saturating_sub(own + ended + written), more, now.running)
        });
        Some(self.total)
    }

    /// Statements that were transactions of their own, by the ids that were given out meanwhile.
    /// Below zero are those that were counted too early.
    fn alone(&mut self, ids: u64, changes: u64, ended: u64, running: u64) -> i64 {
        let slack = i64::try_from(running).unwrap_or(i64::MAX).saturating_add(SLACK);
        let late = slack.saturating_add((ids / LATE).cast_signed());
        let begun = ids.saturating_sub(self.numbered(ids, changes, late));
        let more = begun.cast_signed().saturating_sub(ended.cast_signed()) + self.behind;
        if more >= 0 {
            (self.ahead, self.behind) = (more, 0);
            return more;
        }
        let early = self.ahead.min(-more).min(late);
        // Transactions that only read end without an id; more than are open cannot be behind.
        (self.ahead, self.behind) = (0, (more + early).max(-slack));
        -early
    }

    /// How many of the ids went to commits: one for each that left old row versions, of which there
    /// are no more than `changes`.
    fn numbered(&mut self, ids: u64, changes: u64, late: i64) -> u64 {
        let half = (ids / 2).cast_signed();
        let balance = i64::try_from(changes).unwrap_or(i64::MAX) - half;
        // What is too much at one sample may be what was too little at the one before, or the other
        // way round.
        let opposite = if (balance < 0) == (self.balance < 0) { 0 } else { self.balance.abs() };
        let settled = opposite.min(balance.abs()).min(late);
        self.balance = balance - settled * balance.signum();
        u64::try_from(half + balance.min(0) + settled).unwrap_or(0)
    }

    /// Statements that are in no transaction that was counted, if there are too many for that: for
    /// those that ended or may be open now, or for those that ended lately.
    fn others(&mut self, others: u64, counted: u64, running: u64) -> u64 {
        self.counted = self.counted * MEMORY + counted as f64;
        self.others = self.others * MEMORY + others as f64;
        let open = (counted + running.max(1)) as f64;
        // That nothing ended since the sample before proves nothing: in a stall nothing does.
        let is_known = self.counted * READS_MAX < self.others || open * READS_MAX < others as f64;
        let left = std::mem::take(&mut self.left);
        if is_known {
            return others + left;
        }
        // Where nothing ended meanwhile, it may be known at the next sample.
        self.left = if counted == 0 { left + others } else { 0 };
        0
    }
}

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

/// What is queried next.
#[derive(Debug, Default)]
pub(crate) struct TransactionEvents {
    look_in: u32,
    counts: bool,
    own_threads: Option<Vec<u64>>,
}

fn numbers(rows: TextRows) -> impl Iterator<Item = u64> {
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
    pub(crate) fn take_look(&mut self, rows: TextRows) {
        self.counts = numbers(rows).next().is_some_and(|count| count > 0);
    }

    /// Whether the server's own threads are to be queried.
    pub(crate) fn needs_threads(&self) -> bool {
        self.counts && self.own_threads.is_none()
    }

    /// The answer to [`THREADS_SQL`].
    pub(crate) fn take_threads(&mut self, rows: TextRows) {
        self.own_threads = Some(numbers(rows).collect());
    }

    /// The statement that reads the count; none where nothing is counted.
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
    pub(crate) fn take(rows: TextRows) -> Option<u64> {
        numbers(rows).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a load adds: `ended`, `ids`, `writes`, `changes` (MySQL), `handled`.
    type Load = (u64, u64, u64, Option<u64>, u64);

    fn rates(all: &[Load]) -> Vec<u64> {
        let mut now = TransactionCounters {
            ended: Some(1_000),
            ids: Some(7_000),
            changes: all[0].3.map(|_| 50),
            handled: Some(9_000),
            running: 4,
            ..TransactionCounters::default()
        };
        let mut count = TransactionCount::default();
        let mut last = count.count(now, 2).unwrap();
        let mut rates = Vec::new();
        for (ended, ids, writes, changes, handled) in all {
            let add = |to: &mut Option<u64>, more: u64| *to = to.map(|to| to + more);
            add(&mut now.ended, *ended);
            add(&mut now.ids, *ids);
            add(&mut now.changes, changes.unwrap_or(0));
            add(&mut now.handled, *handled + 2);
            now.writes += writes;
            let total = count.count(now, 2).unwrap();
            rates.push(total - last);
            last = total;
        }
        rates
    }

    // What 1,000 of each did to the counters of MariaDB 10.11, 11.4 and 11.8.
    const BOTH: Load = (1_000, 2_000, 2_000, None, 3_000);
    const UPDATE: Load = (0, 2_000, 1_000, None, 1_000);
    const SELECT: Load = (0, 0, 0, None, 1_000);

    fn beside(one: Load, other: Load) -> Load {
        let changes = one.3.zip(other.3).map(|(one, other)| one + other);
        (one.0 + other.0, one.1 + other.1, one.2 + other.2, changes, one.4 + other.4)
    }

    #[test]
    fn explicit_transactions_and_writes_outside_of_them_both_count() {
        assert_eq!(rates(&[BOTH]), [1_000]);
        assert_eq!(rates(&[UPDATE]), [1_000]);
        assert_eq!(rates(&[BOTH, UPDATE, BOTH]), [1_000; 3]);
        assert_eq!(rates(&[beside(BOTH, UPDATE)]), [2_000]);
        // 200 updates and one COMMIT.
        assert_eq!(rates(&[(1, 402, 202, None, 203)]), [201]);
    }

    #[test]
    fn reads_count_where_they_are_nearly_all_there_is() {
        assert_eq!(rates(&[SELECT, SELECT]), [1_000, 1_000]);
        // Soon after another load as well.
        assert_eq!(rates(&[BOTH, SELECT, BOTH]), [1_000; 3]);
        assert_eq!(rates(&[BOTH, (0, 0, 0, None, 20), SELECT, BOTH]), [1_000, 0, 1_020, 1_000]);
        // With some transactions too, but twenty in each are of these.
        assert_eq!(rates(&[beside(SELECT, (1, 2, 2, None, 3))]), [1_001]);
        assert_eq!(rates(&[(100, 200, 200, None, 2_300)]), [100]);
        // A load of many rows in one transaction is one transaction.
        assert_eq!(rates(&[(1, 2, 5_000, None, 5_001)]), [1]);
    }

    #[test]
    fn mysql_5_6_gives_ids_to_reads_and_one_less_to_inserts() {
        for (load, transactions) in [
            ((1_000, 2_000, 2_000, Some(2_000), 3_000), 1_000),
            ((1_000, 1_000, 0, Some(0), 2_000), 1_000),
            ((0, 2_000, 1_000, Some(1_000), 1_000), 1_000),
            ((0, 1_000, 1_000, Some(0), 1_000), 1_000),
            ((0, 1_000, 0, Some(0), 1_000), 1_000),
            // BEGIN, SELECT, UPDATE, COMMIT, and the same with either outside of the transaction.
            ((1_000, 2_000, 1_000, Some(1_000), 3_000), 1_000),
            ((1_000, 3_000, 1_000, Some(1_000), 3_000), 2_000),
        ] {
            assert_eq!(rates(&[load]), [transactions], "{load:?}");
        }
    }

    #[test]
    fn ids_that_are_read_later_than_changes_count_once() {
        let late = (0, 2_080, 1_000, Some(1_000), 1_000);
        let early = (0, 1_920, 1_000, Some(1_000), 1_000);
        let counts = rates(&[late, early, late, early]);
        assert_eq!(counts.iter().sum::<u64>(), 4_000, "{counts:?}");
        let late = (1_000, 2_080, 2_000, Some(2_000), 3_000);
        let early = (1_000, 1_920, 2_000, Some(2_000), 3_000);
        let counts = rates(&[late, early, late, early]);
        assert_eq!(counts.iter().sum::<u64>(), 4_000, "{counts:?}");
    }

    #[test]
    fn a_transaction_that_is_open_at_a_sample_counts_once() {
        // Four sessions have begun when the first sample is taken, and end before the next.
        let open = (1_000, 2_004, 2_000, None, 3_000);
        let closed = (1_000, 1_996, 2_000, None, 3_000);
        let counts = rates(&[open, closed, open, closed, open, closed]);
        assert_eq!(counts.iter().sum::<u64>(), 6_000);
        // Those that only read take no ids, and do not hide what writes later.
        assert_eq!(rates(&[(1_000, 0, 0, None, 2_000), UPDATE]), [1_000, 1_000 - 6]);
        // In a stall statements still end, and no transaction does.
        assert_eq!(rates(&[BOTH, (0, 0, 90, None, 98), (0, 0, 0, None, 2)]), [1_000, 0, 0]);
    }

    #[test]
    fn what_the_server_counts_itself_goes_first() {
        let mut count = TransactionCount::default();
        let of = |events, commits, ended| TransactionCounters {
            events,
            commits,
            ended: Some(ended),
            ..TransactionCounters::default()
        };
        assert_eq!(count.count(of(Some(70), Some(60), 50), 0), Some(50));
        assert_eq!(count.count(of(Some(75), Some(66), 51), 0), Some(55));
        // The first is switched off, then the others too.
        assert_eq!(count.count(of(None, Some(68), 52), 0), Some(57));
        assert_eq!(count.count(of(None, None, 53), 0), Some(58));
        assert!(of(Some(1), None, 1).is_exact() && !of(None, None, 1).is_exact());
    }

    #[test]
    fn a_restart_does_not_go_back() {
        let mut count = TransactionCount::default();
        let of = |ended| TransactionCounters { ended, ..TransactionCounters::default() };
        assert_eq!(count.count(of(Some(500)), 0), Some(500));
        assert_eq!(count.count(of(Some(3)), 0), Some(500));
        assert_eq!(count.count(of(Some(13)), 0), Some(510));
        assert_eq!(count.count(of(None), 0), None);
    }

    fn row(text: &str) -> TextRows {
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
