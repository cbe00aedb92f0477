//! Servers as studies and tuning ask and alter them: by address, one question at a time.

use std::path::PathBuf;

use iostrata_change::{ServerError, ServerToken, Servers};
use iostrata_target::{TargetError, Trouble};
use mysql::Conn;

use crate::address::ServerAddress;
use crate::connect::{Connector, Patience, texts};
use crate::credentials::Credentials;
use crate::failure;

/// Servers of MySQL's family. Each call is a connection of its own, so that a server that was
/// restarted meanwhile is found again.
#[derive(Clone, Debug, Default)]
pub struct MySqlServers {
    /// Where the user's name and password are when the address does not say them.
    pub credentials: Credentials,
    /// Addresses that are complete: one of them is used in place of an address that is printed
    /// like it, because what is printed holds no password.
    pub known: Vec<ServerAddress>,
}

impl MySqlServers {
    fn connect(&self, address: &str) -> Result<(String, Conn), ServerError> {
        let no_answer = |text: String| ServerError::NoAnswer(text);
        let known = self.known.iter().find(|known| known.to_string() == address).cloned();
        let complete = || {
            let address: ServerAddress = address.parse().map_err(|e| no_answer(format!("{e}")))?;
            self.credentials.complete(address).map_err(|error| no_answer(error.to_string()))
        };
        let address = known.map_or_else(complete, Ok)?;
        let connector = Connector::new(address);
        let conn = connector.connect(Patience::Short).map_err(meaning)?;
        Ok((connector.name, conn))
    }

    fn ask(&self, address: &str, sql: &str) -> Result<Vec<Vec<Option<String>>>, ServerError> {
        let (name, mut conn) = self.connect(address)?;
        texts(&mut conn, sql).map_err(|error| meaning(failure::told(&name, sql, &error)))
    }
}

/// What stands before the name of a counter of InnoDB, which is switched on and off like a
/// variable.
pub const COUNTER: &str = "innodb_metrics.";
/// A counter that counts.
pub const ON: &str = "on";
const OFF: &str = "off";

impl MySqlServers {
    /// Whether a counter counts.
    fn counter(&self, address: &str, counter: &str) -> Result<String, ServerError> {
        let table = "information_schema.INNODB_METRICS";
        // The column of its state has another name in each flavour.
        let of = |state: &str| {
            let sql = format!("SELECT {state} FROM {table} WHERE NAME = '{counter}'");
            self.ask(address, &sql)
        };
        let answer = of("STATUS").or_else(|_| of("ENABLED"))?;
        let state = answer.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        let none = || ServerError::Refused(format!("the server has no counter {counter}"));
        let is_on = ["enabled", "1"].contains(&state.ok_or_else(none)?.as_str());
        Ok(if is_on { ON } else { OFF }.to_owned())
    }
}

fn meaning(error: TargetError) -> ServerError {
    match error.trouble {
        Trouble::Gone => ServerError::NoAnswer(error.to_string()),
        // Who is not let in has no answer.
        Trouble::NotReady if matches!(error.code.as_str(), "1045" | "1040" | "1130" | "tls") => {
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

/// A value as SET takes it: numbers as they are, words in quotes.
fn value_text(value: &str) -> String {
    if value.parse::<i128>().is_ok() || value.parse::<f64>().is_ok_and(f64::is_finite) {
        return value.to_owned();
    }
    let mut out = Vec::new();
    crate::kind::literal(value.into(), crate::kind::ValueKind::Text, true, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

impl Servers for MySqlServers {
    fn identify(&self, address: &str) -> Result<ServerToken, ServerError> {
        let (name, mut conn) = self.connect(address)?;
        let mut ask = |sql: &str| {
            let answer = texts(&mut conn, sql);
            let answer = answer.map_err(|error| meaning(failure::told(&name, sql, &error)))?;
            Ok(answer.into_iter().next().unwrap_or_default())
        };
        let here = ask("SELECT @@datadir, UNIX_TIMESTAMP()")?;
        let uptime = ask("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
        let number = |row: &[Option<String>]| row.get(1)?.as_ref()?.parse::<u64>().ok();
        let odd = || {
            let text = format!("{name}: says neither its data directory nor its uptime");
            ServerError::Refused(text)
        };
        let data_dir = here.first().cloned().flatten().ok_or_else(odd)?;
        let started_s = number(&here).zip(number(&uptime)).ok_or_else(odd)?;
        let started_s = started_s.0.saturating_sub(started_s.1);
        Ok(ServerToken { data_dir: PathBuf::from(data_dir), started_s })
    }

    fn variable(&self, address: &str, name: &str) -> Result<String, ServerError> {
        let name = checked(name)?;
        if let Some(counter) = name.strip_prefix(COUNTER) {
            return self.counter(address, counter);
        }
        let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{name}'");
        let answer = self.ask(address, &sql)?;
        let value = answer.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten());
        value.ok_or_else(|| ServerError::Refused(format!("the server has no variable {name}")))
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        let sql = match (checked(name)?.strip_prefix(COUNTER), value) {
            (None, _) => format!("SET GLOBAL {name} = {}", value_text(value)),
            (Some(counter), ON) => format!("SET GLOBAL innodb_monitor_enable = '{counter}'"),
            (Some(counter), _) => format!("SET GLOBAL innodb_monitor_disable = '{counter}'"),
        };
        self.ask(address, &sql).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_set_as_numbers_and_words_as_words() {
        for (value, text) in [
            ("2000", "2000"),
            ("0.001", "0.001"),
            ("18446744073709551615", "18446744073709551615"),
            ("ON", "'ON'"),
            ("a'b", "'a''b'"),
            ("inf", "'inf'"),
        ] {
            assert_eq!(value_text(value), text);
        }
    }

    #[test]
    fn names_are_words() {
        assert!(checked("innodb_io_capacity").is_ok() && checked("hot.key_buffer_size").is_ok());
        for name in ["", "a = 1, b", "x;y", "`a`"] {
            assert!(checked(name).is_err(), "{name}");
        }
    }
}
