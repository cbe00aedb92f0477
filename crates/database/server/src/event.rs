//! An event that puts a server's settings back when it is not put off any more.
//!
//! It is made and dropped as a variable is set, so that it is journaled as variables are.
//! Invariant: nothing of it reaches a binary log, and so no replica; its own schema is dropped with
//! it only while nothing else is in it.

use iostrata_change::{EVENT, NO_EVENT, ServerError, ServerValues};

use crate::connect::TextRows;

/// Queries a server for rows of texts.
pub(crate) type Asks<'a> = dyn FnMut(&str) -> Result<TextRows, ServerError> + 'a;

/// The schema that is made for events, and dropped with them. All others are the user's.
pub const LEASE_SCHEMA: &str = "iostrata_lease";

/// The schema and the name.
type EventName<'a> = (&'a str, &'a str);

fn event_of(name: &str) -> Result<EventName<'_>, ServerError> {
    let event = name.strip_prefix(EVENT).and_then(|event| event.split_once('.'));
    event.ok_or_else(|| ServerError::Refused(format!("`{name}` is no name of an event")))
}

/// The values of these events.
pub(crate) fn read(ask: &mut Asks<'_>, names: &[&str]) -> Result<ServerValues, ServerError> {
    let mut value = |name: &&str| {
        let (schema, event) = event_of(name)?;
        let rows = ask(&format!(
            "SELECT EVENT_COMMENT, EVENT_DEFINITION FROM information_schema.EVENTS WHERE \
             EVENT_SCHEMA = '{schema}' AND EVENT_NAME = '{event}'"
        ))?;
        let words = |row: &Vec<Option<String>>| {
            row.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let value = rows.first().map_or_else(|| NO_EVENT.to_owned(), words);
        Ok(((*name).to_owned(), value))
    };
    names.iter().map(&mut value).collect()
}

/// Makes an event, in the place of one that is there, or drops it.
pub(crate) fn set(ask: &mut Asks<'_>, name: &str, value: &str) -> Result<(), ServerError> {
    let (schema, event) = event_of(name)?;
    unlogged(ask)?;
    let is_there = read(ask, &[name])?.get(name).is_some_and(|now| now != NO_EVENT);
    if is_there {
        ask(&format!("DROP EVENT IF EXISTS {schema}.{event}"))?;
    }
    let is_own = schema == LEASE_SCHEMA;
    let Some((seconds, statements)) = value.split_once(' ') else {
        if is_own && is_empty(ask)? {
            // An empty schema that stays does no harm.
            let _stays = ask(&format!("DROP SCHEMA IF EXISTS {schema}"));
        }
        return Ok(());
    };
    let seconds: u32 = seconds
        .parse()
        .map_err(|_| ServerError::Refused(format!("`{seconds}` are no seconds of an event")))?;
    if is_own {
        ask(&format!("CREATE SCHEMA IF NOT EXISTS {schema}"))?;
    }
    let last = match is_own {
        true => format!(" IF ({TABLES}) = 0 THEN DROP SCHEMA IF EXISTS {schema}; END IF;"),
        false => String::new(),
    };
    ask(&format!(
        "CREATE EVENT {schema}.{event} ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL {seconds} SECOND \
         COMMENT '{seconds}' DO BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; \
         SET SESSION sql_log_bin = 0; {statements}{last} END"
    ))
    .map(drop)
}

/// Puts off an event for as long as it was made for; whether it is still there.
pub(crate) fn put_off(ask: &mut Asks<'_>, name: &str) -> Result<bool, ServerError> {
    let (schema, event) = event_of(name)?;
    let is_there = |ask: &mut Asks<'_>| Ok(read(ask, &[name])?.remove(name));
    let value = is_there(ask)?.filter(|value| value != NO_EVENT);
    let Some(seconds) = value.as_deref().and_then(|value| value.split(' ').next()) else {
        return Ok(false);
    };
    unlogged(ask)?;
    let put_off = ask(&format!(
        "ALTER EVENT {schema}.{event} ON SCHEDULE AT CURRENT_TIMESTAMP + INTERVAL {seconds} SECOND"
    ));
    match put_off {
        // It ran just now.
        Err(ServerError::Refused(_)) if is_there(ask)?.is_some_and(|now| now == NO_EVENT) => {
            Ok(false)
        }
        answer => answer.map(|_| true),
    }
}

const TABLES: &str =
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'iostrata_lease'";

fn is_empty(ask: &mut Asks<'_>) -> Result<bool, ServerError> {
    let rows = ask(&format!(
        "SELECT ({TABLES}) + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE \
         ROUTINE_SCHEMA = '{LEASE_SCHEMA}') + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE \
         EVENT_SCHEMA = '{LEASE_SCHEMA}')"
    ))?;
    Ok(rows.first().and_then(|row| row.first()?.as_deref()) == Some("0"))
}

/// Keeps what this connection does out of the binary log.
fn unlogged(ask: &mut Asks<'_>) -> Result<(), ServerError> {
    match ask("SET SESSION sql_log_bin = 0") {
        Err(ServerError::Refused(why)) => {
            let rows = ask("SELECT @@GLOBAL.log_bin")?;
            let is_off = rows.first().and_then(|row| row.first()?.as_deref()) == Some("0");
            if is_off { Ok(()) } else { Err(ServerError::Refused(why)) }
        }
        answer => answer.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets an event on a server on which it exists or not, and returns the statements sent.
    fn asked(name: &str, value: &str, is_there: bool) -> Vec<String> {
        let mut all = Vec::new();
        let mut ask = |sql: &str| {
            all.push(sql.to_owned());
            let row = |cells: &[&str]| vec![cells.iter().map(|one| Some((*one).into())).collect()];
            Ok(match sql {
                _ if sql.starts_with("SELECT EVENT_COMMENT") && is_there => row(&["9", "BEGIN"]),
                _ if sql.starts_with("SELECT (") => row(&["0"]),
                _ => Vec::new(),
            })
        };
        set(&mut ask, name, value).unwrap();
        all.retain(|sql| !sql.starts_with("SELECT"));
        all
    }

    #[test]
    fn nothing_is_logged_and_only_a_schema_of_our_own_comes_and_goes() {
        let made = asked("server_event.iostrata_lease.a", "60 SET GLOBAL b = 1;", false);
        assert_eq!(
            made[..2],
            ["SET SESSION sql_log_bin = 0", "CREATE SCHEMA IF NOT EXISTS iostrata_lease"]
        );
        assert!(made[2].contains("INTERVAL 60 SECOND") && made[2].contains("SET GLOBAL b = 1;"));
        assert!(made[2].contains("DROP SCHEMA"), "{made:?}");
        let dropped = asked("server_event.iostrata_lease.a", NO_EVENT, true);
        let expected =
            ["DROP EVENT IF EXISTS iostrata_lease.a", "DROP SCHEMA IF EXISTS iostrata_lease"];
        assert_eq!(dropped[1..], expected);
        let of_others = asked("server_event.dba.a", "60 SET GLOBAL b = 1;", true);
        assert_eq!(of_others.len(), 3, "{of_others:?}");
        assert!(!of_others.concat().contains("SCHEMA"), "{of_others:?}");
    }
}
