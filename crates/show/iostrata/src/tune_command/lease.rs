//! What the server does by itself when nothing is heard of its tuner any more.
//!
//! Method: an event of the server puts back all that is set. It is put off as long as the tuner
//! lives, and dropped with the last setting that went back. Invariant: it is there before anything
//! is set, wherever the server lets it be.

use std::time::{Duration, Instant};

use iostrata_change::EVENT;
use iostrata_database::target::TargetFacts;
use iostrata_database::tune::TuneConfig;
use iostrata_server::LEASE_SCHEMA;

/// The event within its schema.
const NAME: &str = "iostrata_tune";
/// It is put off so many times as often as it has to be.
const OFTEN: u32 = 4;

/// The event that a server may have.
pub struct Lease {
    /// As a setting of the group.
    pub setting: String,
    pub seconds: u32,
    /// When it was made or put off; absent where it is not there.
    pub held: Option<Instant>,
    /// Settings that are somebody else's.
    pub left: Vec<String>,
}

impl Lease {
    /// For a server.
    ///
    /// # Errors
    /// Why it can have none.
    pub fn of(config: &TuneConfig, facts: &TargetFacts) -> Result<Self, String> {
        let value = |wanted: &str| {
            let found = facts.settings.iter().find(|(name, _)| name == wanted);
            found.map_or("", |(_, value)| value.as_str())
        };
        match value("event_scheduler").to_ascii_uppercase().as_str() {
            _ if config.lease_s == 0 => return Err("lease_s is 0".to_owned()),
            // Events are made on every node.
            _ if value("wsrep_on").eq_ignore_ascii_case("ON") => {
                return Err("this is a node of a Galera cluster".to_owned());
            }
            "ON" | "1" => {}
            other => return Err(format!("event_scheduler is {other}")),
        }
        let schema = config.lease_schema.as_deref().unwrap_or(LEASE_SCHEMA);
        let setting = format!("{EVENT}{schema}.{NAME}");
        Ok(Self { setting, seconds: config.lease_s, held: None, left: Vec::new() })
    }

    /// As the server names it.
    pub fn event(&self) -> &str {
        self.setting.strip_prefix(EVENT).unwrap_or(&self.setting)
    }

    /// What it is set to, of the statements that put everything back.
    pub fn value(&self, by_hand: &[String]) -> String {
        let is_ours = |statement: &&String| {
            let name =
                statement.strip_prefix("SET GLOBAL ").and_then(|rest| rest.split(' ').next());
            name.is_some_and(|name| !self.left.iter().any(|left| left == name))
        };
        let statements: Vec<&str> = by_hand.iter().filter(is_ours).map(String::as_str).collect();
        format!("{} {}", self.seconds, statements.join(" "))
    }

    /// What is said when the event has run.
    pub fn ran_out(&self) -> String {
        format!(
            "the server has put itself back, as it had heard nothing of tune for {} s",
            self.seconds
        )
    }

    /// Whether it is time to put it off.
    pub fn is_due(&self) -> bool {
        let often = Duration::from_secs(self.seconds.into()) / OFTEN;
        self.held.is_none_or(|at| at.elapsed() >= often)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(text: &str, settings: &[(&str, &str)]) -> Result<Lease, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(owned).collect();
        let facts = TargetFacts { settings, ..TargetFacts::default() };
        Lease::of(&TuneConfig::parse(text).unwrap(), &facts)
    }

    #[test]
    fn a_server_without_events_has_none() {
        let on = [("event_scheduler", "ON")];
        assert_eq!(lease("", &on).unwrap().event(), "iostrata_lease.iostrata_tune");
        let named = lease("lease_schema = \"dba\"", &on).unwrap();
        assert_eq!(named.setting, "server_event.dba.iostrata_tune");
        for (text, settings, why) in [
            ("lease_s = 0", &on[..], "lease_s is 0"),
            ("", &[("event_scheduler", "OFF")], "event_scheduler is OFF"),
            ("", &[("event_scheduler", "DISABLED")], "event_scheduler is DISABLED"),
            ("", &[on[0], ("wsrep_on", "ON")], "this is a node of a Galera cluster"),
        ] {
            assert_eq!(lease(text, settings).err().as_deref(), Some(why), "{settings:?}");
        }
    }

    #[test]
    fn it_sets_what_is_not_somebody_elses() {
        let mut lease = lease("lease_s = 9", &[("event_scheduler", "1")]).unwrap();
        lease.left.push("b".to_owned());
        let by_hand = ["SET GLOBAL a = 1;", "SET GLOBAL b = 2;", "DROP EVENT IF EXISTS c.d;"];
        assert_eq!(lease.value(&by_hand.map(str::to_owned)), "9 SET GLOBAL a = 1;");
        assert!(lease.is_due());
        lease.held = Some(Instant::now());
        assert!(!lease.is_due());
    }
}
