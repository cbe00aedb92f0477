//! How far replication is behind on a replica, and what it has applied.
//!
//! Invariant: queried at each sample only on a replica; whether a server is one is checked again
//! after a while. What a user may not query is not queried again.

use mysql::Conn;

use crate::connect::{TextRows, texts};

/// Newer words first; a server has one of them.
const STATUS: [&str; 2] = ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];
/// What was applied, by GTIDs: of MariaDB the last number of each domain, of MySQL all of them.
const APPLIED: [&str; 2] = ["SELECT @@global.gtid_slave_pos", "SELECT @@global.gtid_executed"];
/// The place of the seconds among the columns of both.
const SECONDS_BEHIND: usize = 32;
/// Samples until a server that was no replica is checked again.
const LOOK_AGAIN: u32 = 30;

/// What a replica reports about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replication {
    /// Seconds behind the source that is farthest ahead; absent where it does not run.
    pub(crate) lag_s: Option<u64>,
    /// Transactions that were applied.
    pub(crate) transactions: Option<u64>,
}

/// The queries to it.
#[derive(Debug, Default)]
pub(crate) struct ReplicationQuestions {
    look_in: u32,
    /// The statement that this server supports, once one was answered.
    status: Option<&'static str>,
    applied: Option<&'static str>,
    is_refused: bool,
}

impl ReplicationQuestions {
    /// Queries where it is due. Where the user lacks the privilege, nothing is known.
    pub(crate) fn ask(&mut self, conn: &mut Conn) -> Result<Replication, mysql::Error> {
        if self.is_refused || self.look_in > 0 {
            self.look_in = self.look_in.saturating_sub(1);
            return Ok(Replication::default());
        }
        let Some(rows) = one_of(conn, &STATUS, &mut self.status)? else {
            self.is_refused = true;
            return Ok(Replication::default());
        };
        if rows.is_empty() {
            self.look_in = LOOK_AGAIN;
            return Ok(Replication::default());
        }
        let applied = one_of(conn, &APPLIED, &mut self.applied)?;
        let applied = applied.and_then(|rows| rows.into_iter().next()?.into_iter().next()?);
        let transactions = applied.as_deref().and_then(transactions);
        Ok(Replication { lag_s: lag_s(&rows), transactions })
    }
}

/// The answer to the statement that this server supports; nothing where it answers none.
fn one_of(
    conn: &mut Conn,
    all: &[&'static str],
    known: &mut Option<&'static str>,
) -> Result<Option<TextRows>, mysql::Error> {
    let words: Vec<&'static str> = known.map_or_else(|| all.to_vec(), |known| vec![known]);
    for sql in words {
        match texts(conn, sql) {
            Ok(rows) => {
                *known = Some(sql);
                return Ok(Some(rows));
            }
            Err(mysql::Error::MySqlError(_)) => {}
            Err(gone) => return Err(gone),
        }
    }
    Ok(None)
}

/// Seconds behind the source that is farthest ahead.
fn lag_s(rows: &TextRows) -> Option<u64> {
    let seconds = rows.iter().map(|row| row.get(SECONDS_BEHIND)?.as_ref()?.parse::<u64>().ok());
    seconds.flatten().max()
}

/// How many transactions a set of GTIDs holds: `uuid[:tag]:1-5:7,...` of MySQL, and of MariaDB
/// `domain-server-last,...`, where each domain counts by itself.
fn transactions(set: &str) -> Option<u64> {
    let of = |one: &str| -> Option<u64> {
        let mut parts = one.trim().split(':');
        let first = parts.next()?;
        if one.contains(':') {
            let span = |part: &str| match part.split_once('-') {
                Some((from, to)) => {
                    Some(to.parse::<u64>().ok()?.checked_sub(from.parse::<u64>().ok()?)? + 1)
                }
                // A tag is no number.
                None => Some(u64::from(part.parse::<u64>().is_ok())),
            };
            return parts.map(|part| span(part.trim())).sum();
        }
        first.rsplit('-').next()?.parse().ok()
    };
    (!set.trim().is_empty()).then(|| set.split(',').map(of).sum::<Option<u64>>())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_gtids_are_counted() {
        for (set, count) in [
            ("0-1-123", Some(123)),
            ("0-1-123,7-2-5", Some(128)),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", Some(5)),
            (
                "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:11-12,\n\
              4e11fa47-71ca-11e1-9e33-c80aa9429562:tag:1-2",
                Some(10),
            ),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(transactions(set), count, "{set}");
        }
    }

    #[test]
    fn of_several_sources_the_farthest_counts_and_one_that_stands_still_tells_nothing() {
        let row = |seconds: Option<&str>| {
            let mut row = vec![None; 40];
            row[SECONDS_BEHIND] = seconds.map(str::to_owned);
            row
        };
        assert_eq!(lag_s(&vec![row(Some("3")), row(Some("40")), row(None)]), Some(40));
        assert_eq!(lag_s(&vec![row(None)]), None);
    }
}
