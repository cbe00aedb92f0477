//! Servers as studies and tuning query and alter them: by address, one query at a time.

use iostrata_change::{EVENT, ServerError, ServerToken, ServerValues, Servers, variable_literal};
use iostrata_database::target::{TargetError, Trouble};
use mysql::Conn;

use crate::address::ServerAddress;
use crate::connect::TextRows;
use crate::connect::{Connector, Patience, texts};
use crate::credentials::Credentials;
use crate::event::{self, Asks};
use crate::failure;
use crate::identity;

/// Servers of MySQL's family. Each call is a connection of its own, so that a server that was
/// restarted meanwhile is found again.
#[derive(Clone, Debug, Default)]
pub struct MySqlServers {
    /// Where the user's name and password are when the address does not hold them.
    pub credentials: Credentials,
    /// Addresses with their secrets: one counts for every address of the same hosts or socket.
    pub known: Vec<ServerAddress>,
}

impl MySqlServers {
    /// The server of this address, with its secrets, and others by the user's usual places.
    pub fn knowing(address: ServerAddress) -> Self {
        Self { known: vec![address], ..Self::default() }
    }

    /// The address with its secrets.
    fn complete(&self, address: ServerAddress) -> Result<ServerAddress, ServerError> {
        let place = |address: &ServerAddress| {
            let hosts: Vec<String> = address.hosts.iter().map(ToString::to_string).collect();
            (hosts, address.socket.clone())
        };
        if let Some(known) = self.known.iter().find(|known| place(known) == place(&address)) {
            return Ok(known.clone());
        }
        let completed = self.credentials.complete(address);
        completed.map_err(|error| ServerError::NoAnswer(error.to_string()))
    }

    /// Connects to the server that has the settings of an address.
    pub(crate) fn asked(&self, address: &str) -> Result<AskedServer, ServerError> {
        let address: ServerAddress =
            address.parse().map_err(|error| ServerError::NoAnswer(format!("{error}")))?;
        // A server that lacks the database of its target still has its settings.
        let address = ServerAddress { database: None, ..self.complete(address)? };
        let connector = Connector::new(address).lasting();
        let conn = connector.connect(Patience::Short).map_err(meaning)?;
        Ok(AskedServer { name: connector.name, conn })
    }
}

/// A server on one connection.
#[derive(Debug)]
pub(crate) struct AskedServer {
    name: String,
    conn: Conn,
}

/// What stands before the name of a counter of InnoDB, which is switched on and off like a
/// variable.
pub const COUNTER: &str = "innodb_metrics.";
/// A counter that counts.
pub const ON: &str = "on";
const OFF: &str = "off";

/// The states of counters, by the names that they are queried by.
fn counters(ask: &mut Asks<'_>, names: &[&str]) -> Result<ServerValues, ServerError> {
    let words = names.iter().map(|name| Ok(format!("'{}'", counter_of(checked(name)?))));
    let words = words.collect::<Result<Vec<String>, ServerError>>()?.join(", ");
    // The column of the state has another name in each flavour.
    let mut of = |state: &str| {
        ask(&format!(
            "SELECT NAME, {state} FROM information_schema.INNODB_METRICS WHERE NAME IN ({words})"
        ))
    };
    let rows = of("STATUS").or_else(|_| of("ENABLED"))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        let (name, state) = (cells.next()??, cells.next()??);
        let is_on = ["enabled", "1"].contains(&state.as_str());
        Some((format!("{COUNTER}{name}"), if is_on { ON } else { OFF }.to_owned()))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

fn counter_of(name: &str) -> &str {
    name.strip_prefix(COUNTER).unwrap_or(name)
}

fn meaning(error: TargetError) -> ServerError {
    match error.trouble {
        Trouble::Gone => ServerError::NoAnswer(error.to_string()),
        // Who is not let in has no answer.
        Trouble::NotReady
            if matches!(
                error.code.as_str(),
                "1045" | "1040" | "1130" | "1203" | "1226" | "3159" | "auth" | "tls"
            ) =>
        {
            ServerError::NoAnswer(error.to_string())
        }
        _ => ServerError::Refused(error.to_string()),
    }
}

/// Names of variables are put into statements as they are, so they are words.
fn checked(name: &str) -> Result<&str, ServerError> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    if !name.is_empty() && name.bytes().all(is_word) {
        return Ok(name);
    }
    Err(ServerError::Refused(format!("`{name}` is no name of a variable")))
}

impl Servers for MySqlServers {
    fn look(
        &self,
        address: &str,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError> {
        self.asked(address)?.look(names)
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        self.asked(address)?.set_variable(name, value)
    }
}

impl AskedServer {
    /// Makes sure that it is this running server, with no proxy between.
    pub(crate) fn check(&mut self, one: &ServerToken) -> Result<(), ServerError> {
        identity::check(&mut self.conn, &self.name, one).map_err(meaning)
    }

    /// As [`Servers::look`].
    pub(crate) fn look(
        &mut self,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError> {
        let token = identity::token(&mut self.conn, &self.name).map_err(meaning)?;
        let mut ask = self.asks();
        let begins = |with: &'static str| move |name: &&str| name.starts_with(with);
        let (events, rest): (Vec<&str>, Vec<&str>) = names.iter().copied().partition(begins(EVENT));
        let (counted, named): (Vec<&str>, Vec<&str>) = rest.into_iter().partition(begins(COUNTER));
        let mut values = ServerValues::new();
        if !named.is_empty() {
            let quoted = named.iter().map(|name| Ok(format!("'{}'", checked(name)?)));
            let quoted = quoted.collect::<Result<Vec<_>, ServerError>>()?.join(", ");
            let rows = ask(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({quoted})"))?;
            let pair = |row: Vec<Option<String>>| {
                let mut cells = row.into_iter();
                Some((cells.next()??, cells.next()??))
            };
            values.extend(rows.into_iter().filter_map(pair));
        }
        if !counted.is_empty() {
            values.extend(counters(&mut ask, &counted)?);
        }
        for name in &events {
            checked(name)?;
        }
        values.extend(event::read(&mut ask, &events)?);
        Ok((token, values))
    }

    fn asks(&mut self) -> impl FnMut(&str) -> Result<TextRows, ServerError> {
        let Self { name, conn } = self;
        |sql: &str| {
            let answer = texts(conn, sql);
            answer.map_err(|error| meaning(failure::told(name, sql, &error)))
        }
    }

    /// Puts off an event for as long as it was made for; whether it is still there.
    pub(crate) fn put_off(&mut self, name: &str) -> Result<bool, ServerError> {
        event::put_off(&mut self.asks(), checked(name)?)
    }

    /// As [`Servers::set_variable`].
    pub(crate) fn set_variable(&mut self, name: &str, value: &str) -> Result<(), ServerError> {
        if name.starts_with(EVENT) {
            return event::set(&mut self.asks(), checked(name)?, value);
        }
        let sql = match (checked(name)?.strip_prefix(COUNTER), value) {
            (None, _) => format!("SET GLOBAL {name} = {}", variable_literal(value)),
            (Some(counter), ON) => format!("SET GLOBAL innodb_monitor_enable = '{counter}'"),
            (Some(counter), _) => format!("SET GLOBAL innodb_monitor_disable = '{counter}'"),
        };
        self.asks()(&sql).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_address_lends_its_secrets_to_the_same_place() {
        let known = MySqlServers::knowing("mysql://b:secret@db/tpcc".parse().unwrap());
        let complete = |text: &str| known.complete(text.parse().unwrap()).unwrap();
        assert!(complete("mysql://b@db:3306").password.is_some());
        assert!(complete("mysql://other@db:3306/x").user.as_deref() == Some("b"));
        assert_eq!(complete("mysql://b@db:3307").hosts[0].port, Some(3307));
        assert!(!format!("{known:?}").contains("secret"));
    }

    #[test]
    fn names_are_words() {
        assert!(checked("innodb_io_capacity").is_ok() && checked("hot.key_buffer_size").is_ok());
        for name in ["", "a = 1, b", "x;y", "`a`"] {
            assert!(checked(name).is_err(), "{name}");
        }
    }
}
