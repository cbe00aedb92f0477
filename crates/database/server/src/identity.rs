//! Which server answers on a connection.
//!
//! Invariant: a target of one server has all its connections at that running server, and speaks to
//! it directly; behind a balancer or a proxy that answers itself it would measure one server and
//! set another.

use std::path::PathBuf;

use iostrata_change::ServerToken;
use iostrata_database::target::{TargetError, Trouble};
use mysql::Conn;

use crate::connect::{TextRows, texts};
use crate::failure;

/// The clock is read before and after the uptime. If more than so many seconds passed between, the
/// two do not belong together and are read again, so many times.
const CLOCK_APART_S: u64 = 1;
const CLOCK_TRIES: usize = 5;
/// The code of a connection that leads elsewhere.
const ELSEWHERE: &str = "elsewhere";
const NAME_ONE: &str = "name one server by an address of its own";

/// The server on a connection.
pub(crate) fn token(conn: &mut Conn, name: &str) -> Result<ServerToken, TargetError> {
    let mut ask = |sql: &str| texts(conn, sql).map_err(|error| failure::told(name, sql, &error));
    token_by(&mut ask, name)
}

/// Makes sure that it is the server itself that answers on a connection, and gives which it is.
pub(crate) fn direct(conn: &mut Conn, name: &str) -> Result<ServerToken, TargetError> {
    let sql = "SELECT CONNECTION_ID()";
    let rows = texts(conn, sql).map_err(|error| failure::told(name, sql, &error))?;
    // The greeting has the lower half of it.
    let (said, greeted) = (number(&rows, 0).map(|id| id as u32), conn.connection_id());
    if said != Some(greeted) {
        let said = said.map_or_else(|| "none".to_owned(), |said| said.to_string());
        let text = format!(
            "a proxy answers: it greeted as connection {greeted}, and the server behind it reports \
             {said}"
        );
        return Err(TargetError::not_ready(name, ELSEWHERE, text, NAME_ONE));
    }
    token(conn, name)
}

/// Makes sure that a connection leads to the one running server.
pub(crate) fn check(conn: &mut Conn, name: &str, one: &ServerToken) -> Result<(), TargetError> {
    same(name, one, &direct(conn, name)?)
}

/// Whether the server that was found is the one.
pub(crate) fn same(name: &str, one: &ServerToken, found: &ServerToken) -> Result<(), TargetError> {
    if found.is(one) {
        return Ok(());
    }
    let (text, fix) = match found.is_on_data_of(one) {
        true => ("the server was started again".to_owned(), "begin anew"),
        false => (format!("more than one server answers: {one}, and {found}"), NAME_ONE),
    };
    Err(TargetError::not_ready(name, ELSEWHERE, text, fix))
}

/// The server's identity, from its reported place and start time.
fn token_by(
    ask: &mut dyn FnMut(&str) -> Result<TextRows, TargetError>,
    name: &str,
) -> Result<ServerToken, TargetError> {
    for _ in 0..CLOCK_TRIES {
        let here = ask("SELECT @@datadir, @@hostname, @@port, UNIX_TIMESTAMP()")?;
        let uptime = ask("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
        let after = ask("SELECT UNIX_TIMESTAMP()")?;
        let told = token_of(&here, &uptime).zip(number(&after, 0));
        let (token, now_s, after_s) = told
            .and_then(|(token, after_s)| Some((token, number(&here, 3)?, after_s)))
            .ok_or_else(|| {
                let text = "it reports neither its data directory nor its uptime".to_owned();
                TargetError::not_ready(name, "unknown", text, "name a MySQL or MariaDB server")
            })?;
        // A pause in between would make another start of a server that has gone on running.
        if after_s.saturating_sub(now_s) <= CLOCK_APART_S {
            let uid = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid')";
            return Ok(ServerToken { uid: cell(&ask(uid)?, 1), ..token });
        }
    }
    Err(TargetError {
        trouble: Trouble::Gone,
        code: "slow".to_owned(),
        target: name.to_owned(),
        text: "it answers too slowly to determine its start time".to_owned(),
        fix: Some("try again".to_owned()),
    })
}

fn token_of(here: &TextRows, uptime: &TextRows) -> Option<ServerToken> {
    Some(ServerToken {
        data_dir: PathBuf::from(cell(here, 0)?),
        place: format!("{}:{}", cell(here, 1).unwrap_or_default(), cell(here, 2)?),
        started_s: number(here, 3)?.saturating_sub(number(uptime, 1)?),
        uid: None,
    })
}

fn cell(rows: &TextRows, at: usize) -> Option<String> {
    rows.first()?.get(at)?.clone()
}

fn number(rows: &TextRows, at: usize) -> Option<u64> {
    cell(rows, at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that started at 1,000 s and answers with a pause before each `Uptime`.
    fn told(pauses_s: &[u64]) -> Result<ServerToken, TargetError> {
        let (mut clock_s, mut pauses_s) = (5_000, pauses_s.iter());
        let row = |cells: &[String]| Ok(vec![cells.iter().cloned().map(Some).collect()]);
        let mut ask = |sql: &str| match sql {
            "SELECT UNIX_TIMESTAMP()" => row(&[format!("{clock_s}")]),
            sql if sql.contains("Uptime") => {
                clock_s += pauses_s.next().unwrap_or(&9);
                row(&["Uptime".to_owned(), format!("{}", clock_s - 1_000)])
            }
            sql if sql.contains("server_uid") => row(&["server_uid".to_owned(), "u".to_owned()]),
            _ => row(&["/data/".to_owned(), "h".to_owned(), "3306".into(), format!("{clock_s}")]),
        };
        token_by(&mut ask, "mysql://h")
    }

    #[test]
    fn a_pause_between_two_answers_makes_no_other_start() {
        assert_eq!(told(&[0]).unwrap().started_s, 1_000);
        assert_eq!(told(&[30, 2, 0]).unwrap().started_s, 1_000);
        assert!(told(&[1]).unwrap().started_s.abs_diff(1_000) <= 1);
        let error = told(&[]).unwrap_err();
        assert!(error.trouble == Trouble::Gone && error.text.contains("slowly"), "{error}");
    }

    #[test]
    fn a_clone_is_another_server_and_a_restart_none() {
        let one = told(&[0]).unwrap();
        let said = |found: ServerToken| same("mysql://h", &one, &found).map_err(|e| e.text);
        assert_eq!(said(one.clone()), Ok(()));
        let again = said(ServerToken { started_s: 2_000, ..one.clone() });
        assert_eq!(again, Err("the server was started again".to_owned()));
        let clone = said(ServerToken { uid: Some("v".to_owned()), ..one.clone() }).unwrap_err();
        assert!(clone.starts_with("more than one server answers: h:3306"), "{clone}");
        assert_eq!(said(ServerToken { uid: None, ..one.clone() }), Ok(()));
    }
}
