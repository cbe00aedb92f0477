//! The only interface through which a database server is queried and altered, so that a stand-in
//! can take its place. A client library lies behind it, elsewhere.
//!
//! Of some settings one bounds another. At no moment between two steps is a lower one above its
//! bound: MySQL cuts the value that is set, MariaDB moves the other variable; in this order neither
//! has a reason to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What stands before `SCHEMA.NAME` of an event of a server, which is made and dropped as a
/// variable is set. Its value is the seconds until it runs, unless it is put off, and what it does.
pub const EVENT: &str = "server_event.";
/// The value of an event that is not there.
pub const NO_EVENT: &str = "0";

/// Global variables of a server, by name.
pub type ServerValues = BTreeMap<String, String>;

/// A global variable of a server with a value, in the server's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSetting {
    /// Which, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl ServerSetting {
    /// A variable with a value.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// By what a server is known: one that was restarted, or another at the same address, differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToken {
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Name of its host and its port, as it reports them.
    pub place: String,
    /// When it started, in seconds since 1970, as the server's own clock has it.
    pub started_s: u64,
    /// Its `server_uuid` or `server_uid`; none where it has neither, and in journals of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl ServerToken {
    /// Whether both are one running server. Start times are computed from an uptime in whole
    /// seconds, so they may be one apart.
    pub fn is(&self, other: &Self) -> bool {
        self.is_on_data_of(other) && self.started_s.abs_diff(other.started_s) <= 1
    }

    /// Whether both run on the same data, restarted or not. Cloned containers agree in everything
    /// but the identifier.
    pub fn is_on_data_of(&self, other: &Self) -> bool {
        let is_cloned = self.uid.as_ref().zip(other.uid.as_ref()).is_some_and(|(a, b)| a != b);
        self.data_dir == other.data_dir && self.place == other.place && !is_cloned
    }
}

impl fmt::Display for ServerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (data in {}", self.place, self.data_dir.display())?;
        self.uid.iter().try_for_each(|uid| write!(f, ", {uid}"))?;
        f.write_str(")")
    }
}

/// Why a server was not queried or altered.
#[derive(Debug, Error)]
pub enum ServerError {
    /// It does not answer, or lets this user not in.
    #[error("{0}")]
    NoAnswer(String),
    /// It answers and refuses; its message.
    #[error("{0}")]
    Refused(String),
}

/// Database servers. An address names one as the user does, without secrets: where credentials are
/// needed, the implementation finds them in the user's usual places.
pub trait Servers {
    /// Which server answers at an address now, and the global values of these variables; those
    /// that it does not have are left out.
    ///
    /// # Errors
    /// When none answers.
    fn look(
        &self,
        address: &str,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError>;

    /// Sets the global value until the server ends; it may take another one.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError>;
}

impl<S: Servers> Servers for Arc<S> {
    fn look(
        &self,
        address: &str,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError> {
        S::look(self, address, names)
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        S::set_variable(self, address, name, value)
    }
}

/// No client for any server.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServers;

impl NoServers {
    fn none<T>() -> Result<T, ServerError> {
        Err(ServerError::NoAnswer("this program was given no client for servers".to_owned()))
    }
}

impl Servers for NoServers {
    fn look(&self, _: &str, _: &[&str]) -> Result<(ServerToken, ServerValues), ServerError> {
        Self::none()
    }

    fn set_variable(&self, _: &str, _: &str, _: &str) -> Result<(), ServerError> {
        Self::none()
    }
}

/// The lower one, and what bounds it from above.
pub(crate) const BOUNDED: [(&str, &str); 2] = [
    ("innodb_io_capacity", "innodb_io_capacity_max"),
    ("innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct"),
];

/// The other one of a pair.
fn partner(name: &str) -> Option<&'static str> {
    BOUNDED.into_iter().find_map(|(low, high)| match name {
        _ if name == low => Some(high),
        _ if name == high => Some(low),
        _ => None,
    })
}

/// These names and those that setting them may move.
pub(crate) fn with_partners<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.into_iter().flat_map(|name| [Some(name), partner(name)]).flatten().collect()
}

/// What of `wanted` has to be set, and in which order: bounds that rise, what they bound, bounds
/// that fall; then the rest as it is given.
pub(crate) fn steps(now: &ServerValues, wanted: &[ServerSetting]) -> Vec<ServerSetting> {
    let is_new =
        |one: &&ServerSetting| now.get(&one.name).is_none_or(|value| !is_same(value, &one.value));
    let mut steps: Vec<ServerSetting> = wanted.iter().filter(is_new).cloned().collect();
    steps.sort_by_key(|one| {
        let rises = || now.get(&one.name).is_some_and(|value| is_below(value, &one.value));
        match BOUNDED.into_iter().find(|(low, high)| one.name == *low || one.name == *high) {
            None => 3,
            Some((low, _)) if one.name == low => 1,
            Some(_) if rises() => 0,
            Some(_) => 2,
        }
    });
    steps
}

/// Whether two texts are one value: `0.001` is `0.001000`.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let whole = |text: &str| text.parse::<i128>().ok();
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        _ => match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => one == other,
        },
    }
}

/// Whether both are numbers and the first is less.
pub(crate) fn is_below(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one < other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(now: [&str; 4], wanted: [&str; 4]) -> Vec<String> {
        let names = BOUNDED.map(|(low, high)| [low, high]).concat();
        let now = names.iter().zip(now).map(|(name, value)| ((*name).into(), value.into()));
        let wanted: Vec<ServerSetting> = names
            .iter()
            .zip(wanted)
            .map(|(name, value)| ServerSetting::new(*name, value))
            .collect();
        let steps = steps(&now.collect(), &wanted);
        steps.iter().map(|one| format!("{}={}", &one.name["innodb_".len()..], one.value)).collect()
    }

    #[test]
    fn bounds_rise_first_and_fall_last() {
        assert_eq!(
            steps_of(["200", "2000", "0", "90"], ["5000", "9000", "0.000", "5"]),
            ["io_capacity_max=9000", "io_capacity=5000", "max_dirty_pages_pct=5"]
        );
        assert_eq!(
            steps_of(["5000", "9000", "10", "90"], ["200", "2000", "0.001", "5.000000"]),
            [
                "io_capacity=200",
                "max_dirty_pages_pct_lwm=0.001",
                "io_capacity_max=2000",
                "max_dirty_pages_pct=5.000000"
            ]
        );
        assert!(
            steps_of(
                ["1", "18446744073709551615", "0", "9"],
                ["1", "18446744073709551615", "0.0", "9.0"]
            )
            .is_empty()
        );
    }

    #[test]
    fn large_numbers_are_told_apart() {
        assert!(!is_same("18446744073709551615", "18446744073709551614"));
        assert!(is_same("0.001", "0.001000") && !is_same("ON", "OFF") && is_same("ON", "ON"));
        assert!(is_below("200", "1000") && !is_below("ON", "1000"));
    }

    #[test]
    fn what_may_move_is_named() {
        let names = with_partners(["innodb_io_capacity", "innodb_flush_neighbors"]);
        let all = ["innodb_flush_neighbors", "innodb_io_capacity", "innodb_io_capacity_max"];
        assert_eq!(names, BTreeSet::from(all));
    }
}
