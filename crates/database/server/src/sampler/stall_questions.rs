//! The queries to a server when it begins to stall: sessions by state, who waits for whom, the
//! monitor's text, and statements by digest.
//!
//! Invariants: nothing is queried while nothing stalls; all answers are bounded, and once they have
//! taken [`BUDGET`] together the rest is left out. No text of a statement and no value of a row is
//! queried or kept: statements are identified by digests, locks by table and index, and of the
//! monitor's text only lines that have a known beginning.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use iostrata_database::target::{Blocker, LockKind, LockWait, StallSnapshot, StatementDigest};
use mysql::Conn;

use super::metadata_locks::{self, MetadataLock};
use super::session_states::{self, LISTS};
use crate::connect::texts;
use crate::flavour::{Flavour, ServerVersion};

/// How long all questions may take together until those that are left are left out.
const BUDGET: Duration = Duration::from_secs(2);
/// The same for each, in milliseconds, on servers that end a statement that takes longer.
const EACH_MS: u64 = 1_000;
/// Most waits, blockers, statements and lines of the monitor that are kept.
const WAITS_MAX: usize = 50;
const BLOCKERS_MAX: usize = 10;
const STATEMENTS_MAX: usize = 10;
const LINES_MAX: usize = 40;
/// Letters of a digest's text and of a line of the monitor.
const TEXT_LETTERS: usize = 400;
const LINE_LETTERS: usize = 200;

/// From MySQL 8.0 on.
const ROW_LOCKS: &str = "rt.PROCESSLIST_ID, bt.PROCESSLIST_ID, CONCAT(l.OBJECT_SCHEMA, '.', \
     l.OBJECT_NAME), l.INDEX_NAME, l.LOCK_MODE FROM performance_schema.data_lock_waits w \
     JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
     JOIN performance_schema.threads rt ON rt.THREAD_ID = w.REQUESTING_THREAD_ID \
     JOIN performance_schema.threads bt ON bt.THREAD_ID = w.BLOCKING_THREAD_ID LIMIT 1000";
/// MariaDB, and MySQL before that.
const ROW_LOCKS_BEFORE: &str = "r.trx_mysql_thread_id, b.trx_mysql_thread_id, \
     REPLACE(l.lock_table, '`', ''), l.lock_index, l.lock_mode \
     FROM information_schema.INNODB_LOCK_WAITS w \
     JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
     JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
     JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id LIMIT 1000";
const MONITOR: &str = "SHOW ENGINE INNODB STATUS";
const DIGESTS: &str = "performance_schema.events_statements_summary_by_digest";
const RUNNING: &str = "DIGEST, COUNT(*), LEFT(MAX(DIGEST_TEXT), 400) FROM \
     performance_schema.events_statements_current WHERE END_EVENT_ID IS NULL AND \
     DIGEST IS NOT NULL AND THREAD_ID <> (SELECT THREAD_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()) \
     GROUP BY DIGEST ORDER BY 2 DESC LIMIT 10";

/// Beginnings of lines of the monitor's text, of which the first that has it is kept.
const LINES: [&str; 16] = [
    "OS WAIT ARRAY INFO:",
    "Trx id counter",
    "Purge done for",
    "History list length",
    "Pending normal aio reads",
    "Pending flushes (fsync)",
    "Log sequence number",
    "Log flushed up to",
    "Pages flushed up to",
    "Last checkpoint at",
    "Max checkpoint age",
    "Free buffers",
    "Database pages",
    "Modified db pages",
    "Pending reads",
    "Pending writes",
];
/// Beginnings of lines of which all are kept: threads that wait for a latch.
const LATCH_WAIT: &str = "--Thread ";

type AnswerRow = Vec<Option<String>>;
/// How often statements of a digest ended, and how long they took together, in picoseconds.
type StatementTimes = HashMap<(Option<String>, Option<String>), (u64, u64)>;

/// The queries, with the statements' counts when they ran.
#[derive(Debug, Default)]
pub(crate) struct StallQuestions {
    before: Option<(Instant, StatementTimes)>,
    statements: Vec<StatementDigest>,
}

/// The queries that run one after the other.
struct Questions<'a> {
    conn: &'a mut Conn,
    began: Instant,
    limited: [String; 2],
    missing: Vec<String>,
}

impl Questions<'_> {
    /// The answer to what stands behind SELECT; nothing where it is refused or time is over.
    fn select(&mut self, what: &str, rest: &str) -> Option<Vec<AnswerRow>> {
        let sql = format!("{}SELECT {}{rest}", self.limited[0], self.limited[1]);
        self.ask(what, &sql)
    }

    fn ask(&mut self, what: &str, sql: &str) -> Option<Vec<AnswerRow>> {
        if self.began.elapsed() > BUDGET {
            let text = "not queried, as the previous answers took too long";
            self.missing.push(format!("{what}: {text}"));
            return None;
        }
        match texts(self.conn, sql) {
            Ok(rows) => Some(rows),
            Err(error) => {
                let said = crate::failure::printable(&error.to_string()).into_owned();
                self.missing.push(format!("{what}: {}", cut(&said, LINE_LETTERS)));
                None
            }
        }
    }
}

/// What makes a server end a statement that takes too long, before and behind SELECT.
fn limits(version: &ServerVersion) -> [String; 2] {
    match version.flavour {
        Flavour::MariaDb => {
            let seconds = EACH_MS as f64 / 1e3;
            [format!("SET STATEMENT max_statement_time = {seconds} FOR "), String::new()]
        }
        // Those who do not know it take it for a comment.
        _ => [String::new(), format!("/*+ MAX_EXECUTION_TIME({EACH_MS}) */ ")],
    }
}

fn cut(text: &str, letters: usize) -> String {
    text.chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .take(letters)
        .collect()
}

fn number(cell: Option<String>) -> Option<u64> {
    // Sums may be reported as decimals.
    let text = cell?;
    text.split('.').next()?.parse().ok()
}

impl StallQuestions {
    /// Runs all of them.
    pub(crate) fn snapshot(&mut self, conn: &mut Conn, version: &ServerVersion) -> StallSnapshot {
        let began = Instant::now();
        let mut questions =
            Questions { conn, began, limited: limits(version), missing: Vec::new() };
        let sessions = session_states::ask(questions.conn).unwrap_or_default();
        let mut lock_waits = row_lock_waits(&mut questions, version);
        lock_waits.extend(metadata_lock_waits(&mut questions, version));
        let mut blockers = StallSnapshot::blockers_of(&lock_waits);
        blockers.truncate(BLOCKERS_MAX);
        describe_blockers(&mut questions, &mut blockers);
        lock_waits.truncate(WAITS_MAX);
        let monitor = questions.ask("monitor", MONITOR).unwrap_or_default();
        let monitor = monitor.into_iter().next().and_then(|row| row.into_iter().nth(2)?);
        let monitor = monitor_lines(&monitor.unwrap_or_default());
        self.before = ended(&mut questions).map(|ended| (Instant::now(), ended));
        self.statements =
            if self.before.is_some() { running(&mut questions) } else { Vec::default() };
        let statements = self.statements.clone();
        let Questions { missing, .. } = questions;
        StallSnapshot {
            sessions,
            lock_waits,
            blockers,
            monitor,
            statements,
            missing,
            ..StallSnapshot::default()
        }
    }

    /// The statements with what ended since they were read, and how many seconds that is.
    pub(crate) fn statements_since(
        &mut self,
        conn: &mut Conn,
        version: &ServerVersion,
    ) -> Option<(Vec<StatementDigest>, f64)> {
        let (at, before) = self.before.as_ref()?;
        let (began, seconds) = (Instant::now(), at.elapsed().as_secs_f64());
        let mut questions =
            Questions { conn, began, limited: limits(version), missing: Vec::new() };
        let after = ended(&mut questions)?;
        let mut all = grown(before, after, &self.statements);
        all.truncate(STATEMENTS_MAX);
        add_texts(&mut questions, &mut all);
        Some((all, seconds))
    }
}

fn row_lock_waits(questions: &mut Questions<'_>, version: &ServerVersion) -> Vec<LockWait> {
    let is_new = version.flavour != Flavour::MariaDb && version.numbers >= (8, 0, 0);
    let sql = if is_new { ROW_LOCKS } else { ROW_LOCKS_BEFORE };
    let wait = |row: AnswerRow| {
        let [waiting, blocking, object, index, mode] = <[_; 5]>::try_from(row).ok()?;
        Some(LockWait {
            kind: LockKind::Row,
            waiting: number(waiting)?,
            blocking: number(blocking)?,
            object: object.unwrap_or_default(),
            index,
            mode: mode.unwrap_or_default(),
        })
    };
    let rows = questions.select("row locks", sql).unwrap_or_default();
    rows.into_iter().filter_map(wait).collect()
}

fn metadata_lock_waits(questions: &mut Questions<'_>, version: &ServerVersion) -> Vec<LockWait> {
    let (is_mariadb, numbers) = (version.flavour == Flavour::MariaDb, version.numbers);
    if if is_mariadb { numbers < (10, 5, 2) } else { numbers < (5, 7, 3) } {
        questions
            .missing
            .push("metadata locks: this version does not list their holders".to_owned());
        return Vec::new();
    }
    let on = questions.select("metadata locks", metadata_locks::IS_ON).unwrap_or_default();
    let is_on = on.into_iter().next().and_then(|row| number(row.into_iter().next()?));
    if is_on != Some(1) {
        let text = "metadata locks: performance_schema or its instrument \
                    wait/lock/metadata/sql/mdl is off";
        questions.missing.push(text.to_owned());
        return Vec::new();
    }
    let rows = questions.select("metadata locks", metadata_locks::LOCKS).unwrap_or_default();
    let all: Vec<MetadataLock> = rows.into_iter().filter_map(MetadataLock::of).collect();
    metadata_locks::waits(&all)
}

/// Adds to each blocker its user, command, time and state.
fn describe_blockers(questions: &mut Questions<'_>, blockers: &mut [Blocker]) {
    if blockers.is_empty() || questions.began.elapsed() > BUDGET {
        return;
    }
    let ids: Vec<String> = blockers.iter().map(|one| one.connection.to_string()).collect();
    let rows = LISTS.iter().find_map(|list| {
        let sql = format!(
            "SELECT ID, USER, COMMAND, TIME, STATE FROM {list} WHERE ID IN ({})",
            ids.join(", ")
        );
        texts(questions.conn, &sql).ok()
    });
    for row in rows.unwrap_or_default() {
        let Ok([id, user, command, seconds, state]) = <[_; 5]>::try_from(row) else { continue };
        let id = number(id);
        if let Some(one) = blockers.iter_mut().find(|one| Some(one.connection) == id) {
            (one.user, one.command, one.seconds, one.state) =
                (user, command, number(seconds), state);
        }
    }
}

/// The lines that are kept.
fn monitor_lines(text: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let is_kept = |line: &&str| {
        if line.starts_with(LATCH_WAIT) && line.contains(" has waited at ") {
            return true;
        }
        // What a client sent may stand in lines of its own.
        let beginning = LINES.iter().find(|beginning| line.starts_with(**beginning));
        let is_first = beginning.is_some_and(|one| !seen.contains(one) && !line.contains('\''));
        seen.extend(beginning.filter(|_| is_first));
        is_first
    };
    let kept = text.lines().filter(is_kept).take(LINES_MAX);
    kept.map(|line| cut(line, LINE_LETTERS)).collect()
}

/// What statements of each digest came to since the server started.
fn ended(questions: &mut Questions<'_>) -> Option<StatementTimes> {
    let columns = "SCHEMA_NAME, DIGEST, COUNT_STAR, SUM_TIMER_WAIT";
    let rows = questions.select("statements", &format!("{columns} FROM {DIGESTS} LIMIT 20000"))?;
    if rows.is_empty() {
        let text = "statements: performance_schema or its digests are off";
        questions.missing.push(text.to_owned());
        return None;
    }
    let one = |row: AnswerRow| {
        let [schema, digest, count, took] = <[_; 4]>::try_from(row).ok()?;
        Some(((schema, digest), (number(count)?, number(took)?)))
    };
    Some(rows.into_iter().filter_map(one).collect())
}

/// What runs now.
fn running(questions: &mut Questions<'_>) -> Vec<StatementDigest> {
    let rows = questions.select("running statements", RUNNING).unwrap_or_default();
    let one = |row: AnswerRow| {
        let [digest, running, text] = <[_; 3]>::try_from(row).ok()?;
        let text = text.map(|text| cut(&text, TEXT_LETTERS));
        let running = number(running)?;
        Some(StatementDigest { digest, text, running, ..StatementDigest::default() })
    };
    rows.into_iter().filter_map(one).collect()
}

/// By how much statements grew, with those that ran; those first that took most.
fn grown(
    before: &StatementTimes,
    after: StatementTimes,
    running: &[StatementDigest],
) -> Vec<StatementDigest> {
    let mut all: Vec<StatementDigest> = running.to_vec();
    for (key, (count, took)) in after {
        let (count_before, took_before) = before.get(&key).copied().unwrap_or_default();
        let ended = count.saturating_sub(count_before);
        if ended == 0 {
            continue;
        }
        let ms = took.saturating_sub(took_before) as f64 / 1e9;
        let (_, digest) = key;
        match all.iter_mut().find(|one| one.digest == digest) {
            Some(one) => (one.ended, one.ended_ms) = (one.ended + ended, one.ended_ms + ms),
            None => all.push(StatementDigest {
                digest,
                ended,
                ended_ms: ms,
                ..StatementDigest::default()
            }),
        }
    }
    let rank = |one: &StatementDigest| (one.ended_ms, one.running as f64);
    all.sort_by(|a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(std::cmp::Ordering::Equal));
    all
}

/// Reads the texts of digests that have none yet.
fn add_texts(questions: &mut Questions<'_>, all: &mut [StatementDigest]) {
    let is_sound = |digest: &&str| digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wanted: Vec<String> = all
        .iter()
        .filter(|one| one.text.is_none())
        .filter_map(|one| one.digest.as_deref().filter(is_sound))
        .map(|digest| format!("'{digest}'"))
        .collect();
    if wanted.is_empty() {
        return;
    }
    let list = wanted.join(", ");
    let rest = format!(
        "DIGEST, LEFT(DIGEST_TEXT, {TEXT_LETTERS}) FROM {DIGESTS} WHERE DIGEST IN ({list})"
    );
    for row in questions.select("texts of statements", &rest).unwrap_or_default() {
        let Ok([digest, text]) = <[_; 2]>::try_from(row) else { continue };
        if let Some(one) = all.iter_mut().find(|one| one.digest == digest) {
            one.text = text.map(|text| cut(&text, TEXT_LETTERS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_monitor_no_line_is_kept_that_a_client_may_have_sent() {
        let text = "\
SEMAPHORES
OS WAIT ARRAY INFO: reservation count 5
--Thread 139 has waited at btr0sea.ic line 122 for 3 seconds the semaphore:
LATEST DETECTED DEADLOCK
UPDATE t SET secret = 'a
Log sequence number hidden in 'quotes'
--Thread hidden
Trx id counter 4711
---TRANSACTION 4710, ACTIVE 3 sec
SELECT 'secret'
Log sequence number 99
Log sequence number 100
Pending writes: LRU 0, flush list 7
";
        let lines = monitor_lines(text);
        assert_eq!(
            lines,
            [
                "OS WAIT ARRAY INFO: reservation count 5",
                "--Thread 139 has waited at btr0sea.ic line 122 for 3 seconds the semaphore:",
                "Trx id counter 4711",
                "Log sequence number 99",
                "Pending writes: LRU 0, flush list 7",
            ]
        );
    }

    #[test]
    fn statements_that_took_most_stand_first_and_running_ones_are_added_to_them() {
        let key = |digest: &str| (Some("shop".to_owned()), Some(digest.to_owned()));
        let before = [(key("a"), (10, 1_000_000_000)), (key("b"), (5, 5))].into();
        let after: StatementTimes =
            [(key("a"), (12, 5_000_000_000)), (key("b"), (5, 5)), (key("c"), (1, 9_000_000_000))]
                .into();
        let running =
            [StatementDigest { digest: Some("a".into()), running: 3, ..Default::default() }];
        let found = grown(&before, after, &running);
        let found: Vec<_> = found
            .iter()
            .map(|one| (one.digest.as_deref().unwrap(), one.running, one.ended, one.ended_ms))
            .collect();
        assert_eq!(found, [("c", 0, 1, 9.0), ("a", 3, 2, 4.0)]);
    }
}
