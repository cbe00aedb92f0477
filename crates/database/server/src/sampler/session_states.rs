//! Sessions at work by their state, in one look at all of them.
//!
//! Invariant: queried only while a server stalls. States are sentences of the server, which differ
//! by flavour and version; one that is not known is ignored.

use iostrata_database::target::{SessionState, SessionWaits};
use mysql::Conn;

use crate::connect::{TextRows, texts};

/// Where the list of sessions is: MySQL from 8.0.22 has one that takes no lock, others one that
/// holds a lock for as long as it takes.
pub(crate) const LISTS: [&str; 2] =
    ["performance_schema.processlist", "information_schema.PROCESSLIST"];
/// What sessions do whose commit another one of their group does.
const COMMITTING: [&str; 4] = [
    "waiting for handler commit",
    "waiting for prior transaction to commit",
    "waiting for prior transaction to start commit",
    "commit",
];
/// It is tried again after a minute, and logged every ten.
const DISK_FULL: &str = "SELECT COUNT(*) FROM performance_schema.error_log WHERE LOGGED > \
     NOW(6) - INTERVAL 90 SECOND AND DATA LIKE 'Disk is full writing%'";
/// The longest queues of the members of a replication group, of what is to be certified and to be
/// applied, each with its bound. Only where flow control is on and there are members.
pub(crate) const GROUP_QUEUE: &str = "SELECT MAX(COUNT_TRANSACTIONS_IN_QUEUE), \
     @@global.group_replication_flow_control_certifier_threshold, \
     MAX(COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE), \
     @@global.group_replication_flow_control_applier_threshold \
     FROM performance_schema.replication_group_member_stats \
     WHERE @@global.group_replication_flow_control_mode = 'QUOTA' HAVING COUNT(*) > 0";
/// Sessions that flow control of their group holds back at the moment, where the component
/// `group_replication_flow_control_stats` is installed: no state shows them.
pub(crate) const GROUP_HELD: &str =
    "SHOW GLOBAL STATUS LIKE 'Gr_flow_control_throttle_active_count'";
/// Most states that are kept.
const STATES_MAX: usize = 30;

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

/// The same with those whom flow control of the group holds back, by the answer to [`GROUP_HELD`],
/// and the queue of the group that is the fullest, by that to [`GROUP_QUEUE`].
pub(crate) fn with_group(waits: SessionWaits, held: TextRows, queues: TextRows) -> SessionWaits {
    let held = held.into_iter().flatten().nth(1).flatten().and_then(|count| count.parse().ok());
    let waits = SessionWaits { flow_control: waits.flow_control + held.unwrap_or(0), ..waits };
    let numbers = queues.into_iter().next().and_then(|row| {
        let numbers: Option<Vec<u64>> = row.into_iter().map(|cell| cell?.parse().ok()).collect();
        <[u64; 4]>::try_from(numbers?).ok()
    });
    let Some([certify, certify_limit, apply, apply_limit]) = numbers else { return waits };
    let share = |(queue, limit): (u64, u64)| queue as f64 / limit.max(1) as f64;
    let queues = [(certify, certify_limit), (apply, apply_limit)];
    let fullest = queues.into_iter().max_by(|a, b| share(*a).total_cmp(&share(*b)));
    let (group_queue, group_queue_limit) = fullest.unwrap_or_default();
    SessionWaits { group_queue, group_queue_limit, ..waits }
}

/// Whether a file could not be written for lack of space a moment ago, by the log of errors, which
/// MySQL has as a table from 8.0.22 on: from 8.0 on it shows no state of sessions that wait for
/// space.
pub(crate) fn is_disk_full(conn: &mut Conn) -> bool {
    let rows = texts(conn, DISK_FULL).unwrap_or_default();
    rows.into_iter().flatten().flatten().any(|count| count != "0")
}

/// What they wait for, where those that commit wait for room on a disk.
pub(crate) fn waits_for_room(states: &[SessionState]) -> SessionWaits {
    SessionWaits { disk_space: committing(states), ..waits(states) }
}

fn committing(states: &[SessionState]) -> u64 {
    let commits =
        |one: &&SessionState| COMMITTING.contains(&one.state.to_ascii_lowercase().as_str());
    states.iter().filter(commits).map(|one| one.sessions).sum()
}

/// What they wait for.
pub(crate) fn waits(states: &[SessionState]) -> SessionWaits {
    let mut waits = SessionWaits::default();
    let committing = committing(states);
    for SessionState { state, sessions } in states {
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
        assert_eq!(waits_for_room(&group[..1]).disk_space, 5);
        let queues = ["12", "25000", "31000", "25000"].map(|text| Some(text.to_owned()));
        let held = vec![vec![Some("Gr_".to_owned()), Some("6".to_owned())]];
        let found = with_group(SessionWaits::default(), held, vec![queues.into()]);
        assert_eq!((found.group_queue, found.group_queue_limit), (31_000, 25_000));
        assert_eq!(found.flow_control, 6);
        assert_eq!(with_group(found, Vec::new(), Vec::new()), found, "no group");
    }
}
