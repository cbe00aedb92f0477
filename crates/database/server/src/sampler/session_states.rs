//! Sessions at work by their state, in one look at all of them.
//!
//! Invariant: asked only while a server stalls. States are sentences of the server, which differ by
//! flavour and version; one that is not known says nothing.

use iostrata_target::SessionWaits;
use mysql::Conn;

use crate::connect::texts;

/// Where the list of sessions is: MySQL from 8.0.22 has one that stops nobody, others one that
/// holds a lock for as long as it takes.
const LISTS: [&str; 2] = ["performance_schema.processlist", "information_schema.PROCESSLIST"];
/// What sessions do whose commit another one of their group does.
const COMMITTING: [&str; 4] = [
    "waiting for handler commit",
    "waiting for prior transaction to commit",
    "waiting for prior transaction to start commit",
    "commit",
];
/// Most states that are kept.
const STATES_MAX: usize = 30;

/// Sessions in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionState {
    pub(crate) state: String,
    pub(crate) sessions: u64,
}

fn sql(list: &str) -> String {
    format!(
        "SELECT STATE, COUNT(*) FROM {list} WHERE COMMAND NOT IN ('Sleep', 'Daemon', 'Binlog \
         Dump', 'Binlog Dump GTID') AND ID <> CONNECTION_ID() GROUP BY STATE ORDER BY 2 DESC \
         LIMIT {STATES_MAX}"
    )
}

/// Sessions that do not sleep, by their state; nothing where no list may be read.
pub(crate) fn ask(conn: &mut Conn) -> Option<Vec<SessionState>> {
    let rows = LISTS.iter().find_map(|list| texts(conn, &sql(list)).ok())?;
    let state = |row: Vec<Option<String>>| {
        let mut row = row.into_iter();
        let state = row.next()?.unwrap_or_default();
        Some(SessionState { state, sessions: row.next()??.parse().ok()? })
    };
    Some(rows.into_iter().filter_map(state).collect())
}

/// What they wait for.
pub(crate) fn waits(states: &[SessionState]) -> SessionWaits {
    let mut waits = SessionWaits::default();
    let mut committing = 0;
    for SessionState { state, sessions } in states {
        committing +=
            if COMMITTING.contains(&state.to_ascii_lowercase().as_str()) { *sessions } else { 0 };
        if let Some(kind) = kind(&mut waits, state) {
            *kind += sessions;
        }
    }
    // Of a group that commits one waits for a replica or for room, and the others for it.
    for leads in [&mut waits.semi_sync, &mut waits.disk_space] {
        *leads += if *leads > 0 { committing } else { 0 };
    }
    waits
}

fn kind<'a>(waits: &'a mut SessionWaits, state: &str) -> Option<&'a mut u64> {
    let state = state.to_ascii_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| state.contains(word));
    // MariaDB calls the lock of FLUSH TABLES WITH READ LOCK that of a backup.
    if is(&["waiting for global read lock", "waiting for commit lock", "waiting for backup lock"]) {
        Some(&mut waits.global_lock)
    } else if is(&["metadata lock", "waiting for table flush"]) {
        Some(&mut waits.metadata_lock)
    } else if is(&["waiting for flow control"]) {
        Some(&mut waits.flow_control)
    } else if is(&["waiting for semi-sync ack"]) {
        Some(&mut waits.semi_sync)
    } else if is(&["waiting for disk space", "waiting for someone to free space"]) {
        Some(&mut waits.disk_space)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_every_flavour_are_known_and_others_say_nothing() {
        let states = [
            ("Waiting for global read lock", 1),
            ("Waiting for commit lock", 2),
            ("Waiting for backup lock", 4),
            ("Waiting for table metadata lock", 8),
            ("Waiting for table flush", 16),
            ("Waiting for flow control", 32),
            ("Waiting for semi-sync ACK from slave", 64),
            ("Waiting for semi-sync ACK from replica", 128),
            ("Waiting for disk space", 256),
            ("Waiting for someone to free space", 512),
            ("Sending data", 1_024),
            ("", 2_048),
        ];
        let of =
            |(state, sessions): (&str, u64)| SessionState { state: state.to_owned(), sessions };
        let states = states.map(of);
        let waits = waits(&states);
        let found = [waits.global_lock, waits.metadata_lock, waits.flow_control];
        assert_eq!(found, [7, 24, 32]);
        assert_eq!([waits.semi_sync, waits.disk_space], [192, 768]);
        let group =
            [("waiting for handler commit", 5), ("Waiting for semi-sync ACK from replica", 1)];
        let group = group.map(of);
        assert_eq!(super::waits(&group).semi_sync, 6);
        assert_eq!(super::waits(&group[..1]), SessionWaits::default(), "all of them just commit");
    }
}
