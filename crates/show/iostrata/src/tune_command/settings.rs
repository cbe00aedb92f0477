//! Settings of one server while it is tuned: moved as the controller requests, journalled, put
//! back.

use std::time::{Duration, Instant};

use iostrata_change::{EVENT, Left, NO_EVENT, ServerSetting, ServerToken, ServerValues};
use iostrata_database::target::TargetFacts;
use iostrata_database::tune::{Lever, LeverValues, Move, TuneConfig};
use iostrata_server::LEASE_SCHEMA;

use super::plan::TunePlan;
use super::record::Narrator;
use crate::exit_error::ExitError;
use crate::grants::Grants;
use crate::server_group::{GroupSet, ServerGroup};

/// Sets a server's settings and puts them back.
pub struct TuneSettings {
    group: ServerGroup,
    /// Its address, without secrets.
    server: String,
    is_dry: bool,
    lease: Option<Lease>,
}

/// What came of setting.
pub enum Set {
    /// What the server made of it, with the settings that moved along.
    Took(LeverValues),
    /// Nothing was set: another user has changed one of them.
    Others,
    /// Nothing was set: it is not the same running server any more.
    Restarted,
    /// It does not answer, or another one does, as the text states; some may be set.
    NoAnswer(String),
}

impl Set {
    fn of(set: GroupSet) -> Self {
        match set {
            GroupSet::Took(took) => Self::Took(levers(&took)),
            GroupSet::Others => Self::Others,
            GroupSet::Restarted => Self::Restarted,
            GroupSet::NoAnswer(why) => Self::NoAnswer(why),
        }
    }
}

impl TuneSettings {
    /// Nothing is controlled yet.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(plan: &TunePlan) -> Result<Self, ExitError> {
        let (group, server) = (ServerGroup::new(&plan.address)?, plan.address.to_string());
        Ok(Self { group, server, is_dry: plan.is_dry, lease: None })
    }

    /// Takes a lease where the server can have one and its user may make it, and prints what
    /// becomes of it without.
    pub fn lease(
        &mut self,
        plan: &TunePlan,
        (facts, grants): (&TargetFacts, &Grants),
        narrator: &Narrator<'_>,
    ) {
        let lease = Lease::of(&plan.config, facts, grants);
        narrator.lease(lease.as_ref().map(|lease| (lease.event(), lease.seconds)));
        self.lease = lease.ok();
    }

    /// Begins the group at the one server: the present settings are recorded from here on, and how
    /// a person puts them back is printed.
    ///
    /// # Errors
    /// When another server answers, another process holds them, or they cannot be journaled.
    pub fn begin(
        &mut self,
        present: &LeverValues,
        one: &ServerToken,
        narrator: &Narrator<'_>,
    ) -> Result<(), ExitError> {
        if self.is_dry {
            return Ok(());
        }
        let names = present.iter().map(|(lever, _)| lever.name().to_owned());
        let event = self.lease.as_ref().map(|lease| lease.setting.clone());
        let found = self.group.begin(names.chain(event).collect(), one)?;
        if let Some(lease) = &self.lease
            && found.get(&lease.setting).is_some_and(|now| now != NO_EVENT)
        {
            let event = lease.event().to_owned();
            self.group.put_back()?;
            return Err(ExitError::Busy(format!(
                "{}: the event {event} of another tune is to put the server back first; try again \
                 once it has run",
                self.server
            )));
        }
        narrator.by_hand(&self.server, &self.group.by_hand());
        Ok(())
    }

    /// Makes the server restore its own settings once its lease is no longer renewed.
    ///
    /// # Errors
    /// When what was set cannot be read back.
    pub fn hold(&mut self, narrator: &Narrator<'_>) -> Result<Set, ExitError> {
        let took = Ok(Set::Took(LeverValues::default()));
        let Some(lease) = self.lease.as_mut().filter(|lease| !self.is_dry && lease.is_due()) else {
            return took;
        };
        if lease.held.is_some() {
            match self.group.put_off(&lease.setting) {
                Ok(true) => lease.held = Some(Instant::now()),
                Ok(false) => return Ok(Set::NoAnswer(lease.ran_out())),
                Err(ExitError::NoAnswer(why)) => return Ok(Set::NoAnswer(why)),
                Err(error) => return Err(error),
            }
            return took;
        }
        let value = lease.value(&self.group.by_hand());
        let made = self.group.set(&[ServerSetting::new(&lease.setting, value)]);
        match made {
            Ok(GroupSet::Took(_)) => {
                lease.held = Some(Instant::now());
                took
            }
            Ok(other) => Ok(Set::of(other)),
            Err(error) => {
                narrator.lease(Err(&error.to_string()));
                self.lease = None;
                took
            }
        }
    }

    /// Whether the server restores its own settings once its lease is no longer renewed.
    pub fn has_lease(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.held.is_some())
    }

    /// Ends the lease of a server that has its own settings again.
    ///
    /// # Errors
    /// When the event cannot be dropped.
    pub fn release(&mut self) -> Result<Set, ExitError> {
        let Some(lease) = self.lease.as_mut().filter(|lease| lease.held.is_some()) else {
            return Ok(Set::Took(LeverValues::default()));
        };
        lease.held = None;
        Ok(Set::of(self.group.set(&[ServerSetting::new(&lease.setting, NO_EVENT)])?))
    }

    /// Whether the server has restored its own settings already; the text about it.
    pub fn ran_out(&mut self) -> Option<String> {
        let lease = self.lease.as_ref().filter(|lease| lease.held.is_some())?;
        let is_gone = matches!(self.group.put_off(&lease.setting), Ok(false));
        is_gone.then(|| lease.ran_out())
    }

    /// A setting that another user has set, and that is not put back.
    pub fn leave(&mut self, lever: Lever) {
        if let Some(lease) = &mut self.lease {
            lease.left.push(lever.name().to_owned());
            lease.held = None;
        }
    }

    /// Sets what is wanted; nothing in a dry run, which holds nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set(&mut self, moves: &[Move]) -> Result<Set, ExitError> {
        let setting = |one: &Move| ServerSetting::new(one.lever.name(), one.lever.text(one.to));
        let wanted: Vec<ServerSetting> = moves.iter().map(setting).collect();
        self.group.set(&wanted).map(Set::of)
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the journal.
    pub fn put_back(&mut self, narrator: &Narrator<'_>) -> Result<(), ExitError> {
        let left = self.give_up()?;
        left.iter().for_each(|left| narrator.say(&left.to_string()));
        Ok(())
    }

    /// The same; gives what another user has set meanwhile, which is left.
    ///
    /// # Errors
    /// As [`Self::put_back`].
    pub fn give_up(&mut self) -> Result<Vec<Left>, ExitError> {
        self.lease.iter_mut().for_each(|lease| lease.held = None);
        self.group.put_back()
    }

    /// Prints whether the settings that were changed are as before.
    pub fn say_settled(&self, narrator: &Narrator<'_>) {
        self.group.settled().iter().for_each(|text| narrator.say(text));
    }
}

fn levers(took: &ServerValues) -> LeverValues {
    LeverValues::of(took.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

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
    /// Settings that another user has set.
    pub left: Vec<String>,
}

impl Lease {
    /// For a server, made by a user with these rights.
    ///
    /// # Errors
    /// Why it can have none.
    pub fn of(config: &TuneConfig, facts: &TargetFacts, grants: &Grants) -> Result<Self, String> {
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
        let is_logged = matches!(value("log_bin").to_ascii_uppercase().as_str(), "ON" | "1");
        grants.make_event(schema, schema == LEASE_SCHEMA, is_logged)?;
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

    /// The text for when the event has run.
    pub fn ran_out(&self) -> String {
        format!(
            "the server has restored its settings, since tune was silent for {} s",
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
        lease_of("ALL PRIVILEGES", text, settings)
    }

    fn lease_of(rights: &str, text: &str, settings: &[(&str, &str)]) -> Result<Lease, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(owned).collect();
        let facts = TargetFacts { settings, ..TargetFacts::default() };
        let grant = format!("GRANT {rights} ON *.* TO `b`@`%`");
        let grants = Grants::testing(&[&grant], "10.11.19-MariaDB");
        Lease::of(&TuneConfig::parse(text).unwrap(), &facts, &grants)
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
        let lacks = lease_of("SUPER, EVENT, CREATE", "", &on).err().unwrap();
        assert!(lacks.ends_with("GRANT DROP ON iostrata_lease.* TO `b`@`%`"), "{lacks}");
        // A schema that is there needs no more.
        assert!(lease_of("SUPER, EVENT", "lease_schema = \"dba\"", &on).is_ok());
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
