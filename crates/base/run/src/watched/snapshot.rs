//! The activity of a target when it began to stall: sessions by state, who blocks whom, an excerpt
//! of InnoDB's monitor, and statements by digest.
//!
//! Invariant: bounded, however many sessions there are, and free of what users keep in tables:
//! statements are known by their digests, in which no literal stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Letters of a statement that a sentence quotes.
const STATEMENT_LETTERS: usize = 120;
/// Statements that took less of the time, all of a digest together, are not worth a sentence: those
/// of the watcher are among them.
const STATEMENT_SHARE_MIN: f64 = 0.1;
/// States, blockers and statements that sentences name.
const NAMED: usize = 3;

/// Sessions in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionState {
    /// In the words of the server; empty where it reports none.
    pub state: String,
    /// How many do so.
    pub sessions: u64,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// A row of InnoDB, or a gap between rows.
    #[default]
    Row,
    /// The definition of a table, or all of them.
    Metadata,
}

/// A session that waits for a lock of another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockWait {
    /// What kind of lock.
    pub kind: LockKind,
    /// The connection that waits.
    pub waiting: u64,
    /// The connection that it waits for.
    pub blocking: u64,
    /// Of which table, or of what else.
    pub object: String,
    /// The index; null where it is no row.
    pub index: Option<String>,
    /// The mode that is waited for.
    pub mode: String,
}

/// A session that others wait for and that waits for no lock itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Blocker {
    /// Its connection.
    pub connection: u64,
    /// How many sessions wait for it, those that wait for these among them.
    pub blocks: u64,
    /// Its user; null where it is gone.
    pub user: Option<String>,
    /// What it does: `Query`, `Sleep` and the like.
    pub command: Option<String>,
    /// For how long, in seconds.
    pub seconds: Option<u64>,
    /// In the words of the server.
    pub state: Option<String>,
}

/// Statements that differ in nothing but their literals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementDigest {
    /// As the server names it; null for those that it has no room for.
    pub digest: Option<String>,
    /// Its text, without literals, cut off where it is long.
    pub text: Option<String>,
    /// How many ran when the snapshot was taken.
    pub running: u64,
    /// How many ended since then.
    pub ended: u64,
    /// How long these took together, in milliseconds.
    pub ended_ms: f64,
}

/// A target when it began to stall.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StallSnapshot {
    /// When that stall began, in seconds since watching began. A later snapshot of the same stall
    /// replaces it.
    pub stall_t_s: f64,
    /// When it was taken.
    pub t_s: f64,
    /// How long that took, in microseconds.
    pub took_us: f64,
    /// Sessions by their state, the most first.
    pub sessions: Vec<SessionState>,
    /// Who waits for whom.
    pub lock_waits: Vec<LockWait>,
    /// Who is waited for, the one first that most wait for.
    pub blockers: Vec<Blocker>,
    /// Lines of InnoDB's monitor: waits for semaphores, the log, the pool, requests in flight.
    pub monitor: Vec<String>,
    /// Statements by digest, those first that took most.
    pub statements: Vec<StatementDigest>,
    /// For how long statements were counted since, in seconds; null until that was done.
    pub statements_s: Option<f64>,
    /// What could not be queried, and why.
    pub missing: Vec<String>,
}

/// The first letters of a text that is longer, on one line.
fn shortened(text: &str, letters: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(letters) {
        line.truncate(end);
        line += "...";
    }
    line
}

impl StallSnapshot {
    /// Who blocks whom in the end, by who waits for whom.
    pub fn blockers_of(waits: &[LockWait]) -> Vec<Blocker> {
        let mut on: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for wait in waits {
            on.entry(wait.waiting).or_default().push(wait.blocking);
        }
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for waiting in on.keys() {
            let (mut seen, mut next) = (vec![*waiting], vec![*waiting]);
            while let Some(one) = next.pop() {
                for blocking in on.get(&one).into_iter().flatten() {
                    if !seen.contains(blocking) {
                        seen.push(*blocking);
                        next.push(*blocking);
                    }
                }
            }
            for root in seen.iter().filter(|one| !on.contains_key(one)) {
                *counts.entry(*root).or_default() += 1;
            }
        }
        let blocker = |(connection, blocks)| Blocker { connection, blocks, ..Blocker::default() };
        let mut all: Vec<Blocker> = counts.into_iter().map(blocker).collect();
        all.sort_by_key(|one| (u64::MAX - one.blocks, one.connection));
        all
    }

    /// What it shows, in a few sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut out = Vec::new();
        let state = |one: &SessionState| {
            let words = if one.state.is_empty() { "without a state" } else { &one.state };
            format!("{} {words}", one.sessions)
        };
        let states: Vec<String> = self.sessions.iter().take(NAMED).map(state).collect();
        if !states.is_empty() {
            out.push(format!("sessions: {}", states.join(", ")));
        }
        out.extend(self.blockers.iter().take(NAMED).map(|one| self.blocker_sentence(one)));
        let is_large = |one: &&StatementDigest| {
            let span_ms = self.statements_s.map_or(f64::INFINITY, |seconds| 1e3 * seconds);
            one.running > 0 || one.ended_ms >= STATEMENT_SHARE_MIN * span_ms
        };
        let statements = self.statements.iter().filter(is_large).take(NAMED);
        out.extend(statements.map(|one| self.statement_sentence(one)));
        out
    }

    fn blocker_sentence(&self, one: &Blocker) -> String {
        let told = [&one.user, &one.command, &one.state];
        let mut told: Vec<String> = told
            .into_iter()
            .flatten()
            .filter(|words| !words.is_empty())
            .map(|words| shortened(words, STATEMENT_LETTERS))
            .collect();
        told.extend(one.seconds.map(|seconds| format!("{seconds} s")));
        let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
        let first = self.lock_waits.iter().find(|wait| wait.blocking == one.connection);
        let what = first.map_or(String::new(), |wait| match wait.kind {
            LockKind::Row => format!(" by row locks of {}", wait.object),
            LockKind::Metadata => format!(" by a metadata lock of {}", wait.object),
        });
        let sessions = if one.blocks == 1 { "session" } else { "sessions" };
        format!("connection {}{told} blocks {} {sessions}{what}", one.connection, one.blocks)
    }

    fn statement_sentence(&self, one: &StatementDigest) -> String {
        let text = one.text.as_deref().unwrap_or("statements without a digest");
        let text = shortened(text, STATEMENT_LETTERS);
        let mut counts = Vec::new();
        if one.running > 0 {
            counts.push(format!("{} running", one.running));
        }
        if let Some(seconds) = self.statements_s.filter(|_| one.ended > 0) {
            let took = iostrata_stats::units::seconds(one.ended_ms / 1e3);
            let within = iostrata_stats::units::seconds(seconds);
            counts.push(format!("{} ended in {within}, {took} together", one.ended));
        }
        format!("statement: {}: {text}", counts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(waiting: u64, blocking: u64) -> LockWait {
        let object = "shop.t".to_owned();
        LockWait { waiting, blocking, object, mode: "X".to_owned(), ..LockWait::default() }
    }

    #[test]
    fn the_blocker_is_a_session_that_waits_for_none() {
        // 3 waits for 2 and for 1, 2 for 1, 9 for 8; 5 and 6 wait for each other.
        let waits = [wait(3, 2), wait(3, 1), wait(2, 1), wait(9, 8), wait(5, 6), wait(6, 5)];
        let found = StallSnapshot::blockers_of(&waits);
        let found: Vec<(u64, u64)> = found.iter().map(|one| (one.connection, one.blocks)).collect();
        assert_eq!(found, [(1, 2), (8, 1)]);
        assert_eq!(StallSnapshot::blockers_of(&[]), []);
    }

    #[test]
    fn sentences_name_the_states_the_blocker_and_the_statements() {
        let lock_waits = vec![wait(3, 1), wait(2, 1)];
        let mut blockers = StallSnapshot::blockers_of(&lock_waits);
        (blockers[0].user, blockers[0].command) = (Some("app".into()), Some("Sleep".into()));
        (blockers[0].seconds, blockers[0].state) = (Some(35), Some(String::new()));
        let text = Some(format!("UPDATE `t` SET `v` = ? {}", "x".repeat(200)));
        let snapshot = StallSnapshot {
            sessions: vec![SessionState { state: "updating".into(), sessions: 2 }],
            lock_waits,
            blockers,
            statements: vec![StatementDigest {
                text,
                running: 2,
                ended: 7,
                ended_ms: 12_000.0,
                ..StatementDigest::default()
            }],
            statements_s: Some(9.0),
            ..StallSnapshot::default()
        };
        let [sessions, blocker, statement] = &snapshot.sentences()[..] else { panic!() };
        assert_eq!(sessions, "sessions: 2 updating");
        let said = "connection 1 (app, Sleep, 35 s) blocks 2 sessions by row locks of shop.t";
        assert_eq!(blocker, said);
        let said = "statement: 2 running, 7 ended in 9 s, 12 s together: UPDATE `t` SET `v` = ? x";
        assert!(statement.starts_with(said) && statement.len() < 220, "{statement}");
        let small = StatementDigest { ended: 11, ended_ms: 10.0, ..StatementDigest::default() };
        let snapshot = StallSnapshot { statements: vec![small], ..snapshot };
        assert_eq!(snapshot.sentences().len(), 2, "10 ms of 9 s");
        assert_eq!(StallSnapshot::default().sentences(), Vec::<String>::new());
    }
}
