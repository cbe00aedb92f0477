//! What a server is among others: a replica, a member of a group, or by itself.
//!
//! Invariant: a replica that may be written to is still a replica. What a user may not see is
//! looked up elsewhere, and reported as hidden where it can be seen nowhere.

use iostrata_database::target::{TargetError, Trouble};
use mysql::Conn;

use crate::connect::TextRows;
use crate::connect::texts;
use crate::facts::{Variables, named};
use crate::failure;

/// What a server is among others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRole {
    /// Why it is not written to, or by another server only; its redo is not its own doing then.
    pub replica: Option<String>,
    /// The group of which it is a member that is written to.
    pub member: Option<String>,
    /// Whether this user may not see if it replicates from another server.
    pub is_hidden: bool,
}

const VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_read_only', \
                         'read_only', 'super_read_only', 'wsrep_on')";
const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Slave_running', \
                      'Slaves_running', 'wsrep_cluster_size', 'wsrep_local_state_comment')";
const GROUP: &str = "SELECT MEMBER_STATE, MEMBER_ROLE FROM \
                     performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid";
/// Newer words first. Threads of replication run as this user, which needs another right to see.
const REPLICATION: [&str; 2] = ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];
const THREADS: &str =
    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'system user'";
/// Answered to those only who may see the threads of others.
const SEES_THREADS: &str =
    "SELECT COUNT(*) FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'";
/// The places of the states of both threads among those columns.
const RUNNING: [usize; 2] = [10, 11];

/// Queries a server's role.
pub(crate) fn role(conn: &mut Conn, name: &str) -> Result<ServerRole, TargetError> {
    role_by(&mut |sql| texts(conn, sql).map_err(|error| failure::told(name, sql, &error)))
}

/// Queries a server for rows of texts.
type Asks<'a> = dyn FnMut(&str) -> Result<TextRows, TargetError> + 'a;

fn role_by(ask: &mut Asks<'_>) -> Result<ServerRole, TargetError> {
    let (variables, status) = (named(ask(VARIABLES)?), named(ask(STATUS)?));
    let mut role = ServerRole { replica: read_only(&variables), ..ServerRole::default() };
    let is_mariadb = status.contains_key("Slaves_running");
    if variables.get("wsrep_on").is_some_and(|value| is_on(value)) {
        let value = |name: &str| status.get(name).map_or("unknown", String::as_str);
        let (state, size) = (value("wsrep_local_state_comment"), value("wsrep_cluster_size"));
        let node = format!("a Galera node of {size}, {state}");
        match state {
            "Synced" => role.member = Some(node),
            _ => drop(role.replica.get_or_insert(node)),
        }
    }
    if role.replica.is_none() && runs(&status) {
        role.replica = Some("it replicates from another server".to_owned());
    }
    if role.replica.is_none() && !is_mariadb {
        group_and_replication(ask, &mut role)?;
    }
    Ok(role)
}

/// MariaDB 12 has more values than ON and OFF, and each of them except OFF is read-only.
fn is_on(value: &str) -> bool {
    !matches!(value.to_ascii_uppercase().as_str(), "OFF" | "0" | "")
}

fn read_only(variables: &Variables) -> Option<String> {
    let on = variables.iter().filter(|(name, _)| name.ends_with("read_only"));
    let mut on = on.filter(|(_, value)| is_on(value));
    on.next().map(|(name, value)| format!("{name} is {value}"))
}

fn runs(status: &Variables) -> bool {
    ["Slave_running", "Slaves_running"]
        .iter()
        .any(|name| status.get(*name).is_some_and(|value| is_on(value)))
}

/// Group membership and replication, for which MySQL has statements and no variables.
fn group_and_replication(ask: &mut Asks<'_>, role: &mut ServerRole) -> Result<(), TargetError> {
    let group =
        if_answered(ask(GROUP))?.and_then(|rows| rows.into_iter().next()).unwrap_or_default();
    let mut group = group.into_iter().flatten();
    if let Some((state, word)) = group.next().zip(group.next()) {
        let member = format!("a member of a replication group, {word} and {state}");
        match (state.as_str(), word.as_str()) {
            ("OFFLINE", _) => {}
            ("ONLINE", "PRIMARY") => role.member = Some(member),
            _ => role.replica = Some(member),
        }
    }
    if role.replica.is_some() {
        return Ok(());
    }
    for sql in REPLICATION {
        let Some(rows) = if_answered(ask(sql))? else { continue };
        let runs = |row: &Vec<Option<String>>| {
            let state = |at: usize| row.get(at).cloned().flatten();
            RUNNING.iter().any(|at| state(*at).is_some_and(|state| state != "No"))
        };
        role.replica = rows.iter().find(|row| runs(row)).map(|row| {
            let from = row.get(1).cloned().flatten().unwrap_or_default();
            format!("it replicates from {from}")
        });
        return Ok(());
    }
    // The threads of a group run as the same user.
    let count = if_answered(ask(THREADS))?.and_then(|rows| rows.first()?.first()?.clone());
    if role.member.is_none() && count.is_some_and(|count| count != "0") {
        role.replica = Some("threads of replication run on it".to_owned());
    }
    role.is_hidden = role.replica.is_none() && if_answered(ask(SEES_THREADS))?.is_none();
    Ok(())
}

/// None where the server does not support the statement, or refuses it to this user.
fn if_answered(answer: Result<TextRows, TargetError>) -> Result<Option<TextRows>, TargetError> {
    match answer {
        Err(error) if error.trouble == Trouble::Gone => Err(error),
        answer => Ok(answer.ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers such statements with such rows, and refuses others.
    fn role_of(answers: &[(&str, &[&[&str]])]) -> ServerRole {
        let rows = |rows: &[&[&str]]| {
            let cells = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
            rows.iter().map(cells).collect()
        };
        role_by(&mut |sql| {
            let known = answers.iter().find(|(known, _)| sql == *known);
            known.map(|(_, found)| rows(found)).ok_or_else(|| {
                TargetError::not_ready("mysql://h", "1227", "denied".to_owned(), "grant it")
            })
        })
        .unwrap()
    }

    fn replica(text: &str) -> ServerRole {
        ServerRole { replica: Some(text.to_owned()), ..ServerRole::default() }
    }

    #[test]
    fn every_value_of_read_only_but_off_is_read_only() {
        let plain: &[&[&str]] = &[&["Slaves_running", "0"]];
        for value in ["ON", "1", "NO_LOCK", "NO_LOCK_NO_ADMIN"] {
            let on: &[&[&str]] = &[&["read_only", value], &["innodb_read_only", "OFF"]];
            let role = role_of(&[(VARIABLES, on), (STATUS, plain)]);
            assert_eq!(role, replica(&format!("read_only is {value}")));
        }
        let off: &[&[&str]] = &[&["read_only", "OFF"]];
        assert_eq!(role_of(&[(VARIABLES, off), (STATUS, plain)]), ServerRole::default());
    }

    #[test]
    fn what_replicates_is_a_replica_though_it_may_be_written_to() {
        let off: &[&[&str]] = &[&["read_only", "OFF"]];
        let one: &[&[&str]] = &[&["Slaves_running", "1"]];
        let said = "it replicates from another server";
        assert_eq!(role_of(&[(VARIABLES, off), (STATUS, one)]), replica(said));
        let row = |io: &'static str, sql: &'static str| {
            let mut row = vec!["", "db1", "", "", "", "", "", "", "", "", io, sql];
            row.push("");
            row
        };
        for (io, sql, is_one) in
            [("Yes", "Yes", true), ("Connecting", "No", true), ("No", "No", false)]
        {
            let row = row(io, sql);
            let role = role_of(&[(VARIABLES, off), (STATUS, &[]), (REPLICATION[1], &[&row])]);
            let expected =
                if is_one { replica("it replicates from db1") } else { Default::default() };
            assert_eq!(role, expected, "{io} {sql}");
        }
        let threads = role_of(&[(VARIABLES, off), (STATUS, &[]), (THREADS, &[&["2"]])]);
        assert_eq!(threads, replica("threads of replication run on it"));
        let none: [(&str, &[&[&str]]); 3] = [(VARIABLES, off), (STATUS, &[]), (THREADS, &[&["0"]])];
        let seen: [(&str, &[&[&str]]); 1] = [(SEES_THREADS, &[])];
        assert_eq!(role_of(&[&none[..], &seen].concat()), ServerRole::default());
        let hidden = ServerRole { is_hidden: true, ..ServerRole::default() };
        assert_eq!(role_of(&none), hidden, "the threads of others are not shown to this user");
    }

    #[test]
    fn members_of_groups_are_told_by_what_they_do() {
        let on: &[&[&str]] = &[&["wsrep_on", "ON"]];
        let node = |state| {
            let status: &[&[&str]] = &[
                &["Slaves_running", "0"],
                &["wsrep_cluster_size", "3"],
                &["wsrep_local_state_comment", state],
            ];
            role_of(&[(VARIABLES, on), (STATUS, status)])
        };
        assert_eq!(node("Synced").member.as_deref(), Some("a Galera node of 3, Synced"));
        assert_eq!(node("Donor/Desynced"), replica("a Galera node of 3, Donor/Desynced"));
        let group = |state, word| {
            role_of(&[
                (VARIABLES, &[]),
                (STATUS, &[]),
                (GROUP, &[&[state, word]]),
                (THREADS, &[&["4"]]),
            ])
        };
        assert_eq!(group("ONLINE", "PRIMARY").replica, None);
        assert!(group("ONLINE", "PRIMARY").member.is_some());
        assert!(group("ONLINE", "SECONDARY").replica.is_some());
        assert!(group("RECOVERING", "PRIMARY").replica.is_some());
    }
}
