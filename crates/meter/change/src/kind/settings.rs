//! Settings of a database server, as a group.
//!
//! Invariant: only the very server that was changed is set back, known by its data directory, its
//! place, its identifier and its start. On the same data with another start it was restarted and
//! has its own values again; any other server settles nothing. Settings that bound each other are
//! noted together, also where only one of them is set. An event of the server, which outlives a
//! restart, is dropped there too. A value is ours when it is what the server made of what we set
//! last; only while that is not noted, any value of what is being set counts as ours.

use std::collections::BTreeSet;
use std::io;

use serde::{Deserialize, Serialize};

use super::{Change, Entry, JournalEntry, Kind, Site};
use crate::error::{ChangeError, system_on};
use crate::platform::Platform;
use crate::undone::{How, Left, Undone};
use crate::variables;
use crate::variables::{EVENT, ServerError, ServerSetting, ServerToken, ServerValues};

/// Sets global variables of a database server, until the server ends, and lets
/// [`crate::Session::adjust`] change them later. Undone: the values before, on the same running
/// server, in an order in which none cuts another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSettings {
    /// Address of the server, without secrets.
    pub server: String,
    /// What is set at once; the server may take other values. Settings that bound each other
    /// are set in an order of their own, the others in this one.
    pub settings: Vec<ServerSetting>,
    /// What else may be adjusted later, by name.
    pub adjustable: Vec<String>,
}

/// Which server, and the values of all settings that may change, with those that they move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettingsPrior {
    pub(crate) server: ServerToken,
    pub(crate) values: ServerValues,
}

/// Settings of a server were set or adjusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsEffect {
    /// The requested settings.
    pub asked: Vec<ServerSetting>,
    /// What the server made of it: every setting of the group, and those that they move.
    pub took: ServerValues,
}

impl ServerSettings {
    /// The settings that it names.
    pub(crate) fn names(&self) -> Vec<&str> {
        let set = self.settings.iter().map(|one| one.name.as_str());
        set.chain(self.adjustable.iter().map(String::as_str)).collect()
    }
}

impl Kind for ServerSettings {
    type Prior = SettingsPrior;
    type Effect = SettingsEffect;
    const MAY_GO_UNNOTED: bool = true;
    /// A server may run on another machine, and reports itself whether it was restarted.
    const OUTLIVES_BOOT: bool = true;

    fn describe(&self) -> String {
        let set = self.settings.iter().map(|one| format!("set {} to {}", one.name, one.value));
        let named = |name: &String| match name.strip_prefix(EVENT) {
            Some(event) => format!("the event {event}"),
            None => name.clone(),
        };
        let adjusted: Vec<String> = self.adjustable.iter().map(named).collect();
        let adjust = (!adjusted.is_empty()).then(|| format!("adjust {}", adjusted.join(", ")));
        let words = set.chain(adjust).collect::<Vec<_>>().join(", ");
        format!("{words} of {}", self.server)
    }

    /// The present values, each with its name where there are several.
    fn present(&self, platform: &dyn Platform) -> Option<String> {
        let names = self.names();
        let at = At { platform, server: &self.server };
        let (_, values) = at.look(&names.iter().copied().collect()).ok()?;
        match names.as_slice() {
            [name] => values.get(*name).cloned(),
            _ => {
                let value = |name: &&str| Some(format!("{name} {}", values.get(*name)?));
                Some(names.iter().filter_map(value).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn carries(&self, later: &Change) -> bool {
        // One group may set what another noted as before, so they go back in reverse order.
        matches!(later, Change::ServerSettings(other) if other.server == self.server)
    }

    fn prior(&self, site: &Site<'_>) -> Result<SettingsPrior, ChangeError> {
        let (named, at) = (self.names(), At { platform: site.platform, server: &self.server });
        if holds_secret(at.server) {
            let why = "its address holds a password, which no journal may";
            return Err(ChangeError::unavailable("a server", why, "name it without the password"));
        }
        let (server, values) = at.look(&variables::with_partners(named.iter().copied()))?;
        if let Some(name) = named.iter().find(|name| !values.contains_key(**name)) {
            let why = "the server has no such variable";
            let fix = "choose a variable that it has";
            return Err(ChangeError::unavailable(format!("{name} of {}", at.server), why, fix));
        }
        Ok(SettingsPrior { server, values })
    }

    fn apply(&self, site: &Site<'_>, prior: &SettingsPrior) -> Result<SettingsEffect, ChangeError> {
        let SettingsPrior { server: token, values: prior } = prior;
        let at = At { platform: site.platform, server: &self.server };
        let settings = &self.settings;
        let names = prior.keys().map(String::as_str).collect();
        let before = at.values_on(token, &names)?;
        at.set_all(&variables::steps(&before, settings), refused)?;
        let after = at.values_on(token, &names)?;
        let took = merged(prior, &before, &after, &touched(settings));
        Ok(SettingsEffect { asked: settings.clone(), took })
    }

    fn undo(entry: &Entry<'_, Self>, platform: &dyn Platform) -> Result<Undone, ChangeError> {
        PlacedGroup::by(platform, entry).undo()
    }

    fn asked_and_took(effect: &SettingsEffect) -> Option<(&str, &str)> {
        match effect.asked.as_slice() {
            [one] => Some((&one.value, effect.took.get(&one.name)?)),
            _ => None,
        }
    }
}

/// The server at an address.
#[derive(Clone, Copy)]
struct At<'a> {
    platform: &'a dyn Platform,
    server: &'a str,
}

impl At<'_> {
    fn look(&self, names: &BTreeSet<&str>) -> Result<(ServerToken, ServerValues), ChangeError> {
        let names: Vec<&str> = names.iter().copied().collect();
        let found = self.platform.servers_at().look(self.server, &names);
        found.map_err(|error| failed(format!("settings of {}", self.server), error, not_read))
    }

    /// The values on this very server, and on no other.
    fn values_on(
        &self,
        token: &ServerToken,
        names: &BTreeSet<&str>,
    ) -> Result<ServerValues, ChangeError> {
        let (found, values) = self.look(names)?;
        let server = self.server.to_owned();
        if found.is(token) {
            Ok(values)
        } else if found.is_on_data_of(token) {
            Err(ChangeError::Restarted { server })
        } else {
            let (found, noted) = (found.to_string(), token.to_string());
            Err(ChangeError::OtherServer { server, found, noted })
        }
    }

    /// Sets one after the other; `refused` is the error of a setting that the server refuses.
    fn set_all(&self, steps: &[ServerSetting], refused: Refused) -> Result<(), ChangeError> {
        for ServerSetting { name, value } in steps {
            let set = self.platform.servers_at().set_variable(self.server, name, value);
            set.map_err(|error| failed(format!("{name} of {}", self.server), error, refused))?;
        }
        Ok(())
    }
}

/// The error of what a server refuses, and why it does.
type Refused = fn(String, String) -> ChangeError;

fn failed(what: String, error: ServerError, refused: Refused) -> ChangeError {
    match error {
        ServerError::NoAnswer(why) => ChangeError::NoAnswer { what, why },
        ServerError::Refused(why) => refused(what, why),
    }
}

fn not_read(what: String, why: String) -> ChangeError {
    ChangeError::unavailable(what, why, "see that its user may read its variables")
}

/// A setting that somebody chose.
fn refused(what: String, why: String) -> ChangeError {
    let fix = "use a variable and a value that this server takes, as a user who may set it";
    ChangeError::unavailable(what, why, fix)
}

/// A setting that goes back: the value was the server's own, so what is missing is a right.
fn not_restored(what: String, why: String) -> ChangeError {
    let said = format!("{why}; restore it as a user who may set it");
    system_on("restore", what, io::Error::other(said))
}

/// Whether an address holds a password.
fn holds_secret(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let login = place.rsplit_once('@').map_or("", |(login, _)| login);
    login.contains(':') || parameters.split('&').any(|one| one.starts_with("password="))
}

/// The names that setting these may move.
fn touched(settings: &[ServerSetting]) -> BTreeSet<&str> {
    variables::with_partners(settings.iter().map(|one| one.name.as_str()))
}

/// What is ours after setting: what was touched as it is now, and what moved with it; the rest as
/// we last knew it, whatever others have made of it since.
fn merged(
    held: &ServerValues,
    before: &ServerValues,
    after: &ServerValues,
    touched: &BTreeSet<&str>,
) -> ServerValues {
    let value = |(name, held): (&String, &String)| {
        let moved = touched.contains(name.as_str()) && before.get(name) != after.get(name);
        let value = if moved { after.get(name).unwrap_or(held) } else { held };
        (name.clone(), value.clone())
    };
    held.iter().map(value).collect()
}

/// A group that is in place, as its entry records it.
pub(crate) struct PlacedGroup<'a> {
    at: At<'a>,
    token: &'a ServerToken,
    prior: &'a ServerValues,
    /// What the server was last known to have made of what we set.
    held: &'a ServerValues,
    /// Names for which it is not noted what the server made of them.
    unknown: BTreeSet<&'a str>,
}

impl<'a> PlacedGroup<'a> {
    /// `None` where the entry is no group of settings.
    pub(crate) fn of(platform: &'a dyn Platform, entry: &'a JournalEntry) -> Option<Self> {
        Some(Self::by(platform, &entry.of()?))
    }

    fn by(platform: &'a dyn Platform, entry: &Entry<'a, ServerSettings>) -> Self {
        let (ServerSettings { server, settings, .. }, prior) = (entry.change, entry.prior);
        let mut unknown = touched(entry.adjusting);
        let held = match entry.effect {
            Some(SettingsEffect { took, .. }) => took,
            None => {
                unknown.extend(touched(settings));
                &prior.values
            }
        };
        let (token, prior) = (&prior.server, &prior.values);
        Self { at: At { platform, server }, token, prior, held, unknown }
    }

    fn names(&self) -> BTreeSet<&'a str> {
        self.prior.keys().map(String::as_str).collect()
    }

    fn thing(&self, name: &str) -> String {
        format!("{name} of {}", self.at.server)
    }

    fn is_ours(&self, name: &str, found: &str) -> bool {
        let is_held = || self.held.get(name).is_some_and(|held| variables::is_same(held, found));
        self.unknown.contains(name) || is_held()
    }

    /// The values before an adjustment, and what of it has to be set.
    pub(crate) fn before(
        &self,
        wanted: &[ServerSetting],
    ) -> Result<(ServerValues, Vec<ServerSetting>), ChangeError> {
        if let Some(other) = wanted.iter().find(|one| !self.prior.contains_key(&one.name)) {
            let what = self.thing(&other.name);
            let why = "it was not named when the group was applied";
            return Err(ChangeError::unavailable(what, why, "name it as adjustable there"));
        }
        let before = self.at.values_on(self.token, &self.names())?;
        for ServerSetting { name, .. } in wanted {
            let found = before.get(name).map_or("", String::as_str);
            if !self.is_ours(name, found) {
                let (what, found) = (self.thing(name), found.to_owned());
                let ours = self.held.get(name).cloned().unwrap_or_default();
                return Err(ChangeError::SetByOther { what, found, ours });
            }
        }
        let steps = variables::steps(&before, wanted);
        Ok((before, steps))
    }

    /// Sets what is wanted and reads back: what of the group is ours then, and why not everything
    /// was set. Fails where nothing could be read back.
    pub(crate) fn set(
        &self,
        before: &ServerValues,
        steps: &[ServerSetting],
    ) -> Result<(ServerValues, Result<(), ChangeError>), ChangeError> {
        let set = self.at.set_all(steps, refused);
        match self.at.values_on(self.token, &self.names()) {
            Ok(after) => {
                let mut held = self.held.clone();
                for name in &self.unknown {
                    held.extend(before.get_key_value(*name).map(|(n, v)| (n.clone(), v.clone())));
                }
                Ok((merged(&held, before, &after, &touched(steps)), set))
            }
            Err(unread) => Err(set.err().unwrap_or(unread)),
        }
    }

    fn undo(&self) -> Result<Undone, ChangeError> {
        let now = match self.at.values_on(self.token, &self.names()) {
            Err(ChangeError::Restarted { .. }) => return self.after_restart(),
            Err(ChangeError::OtherServer { .. }) if self.changed().is_empty() => {
                return Ok(Undone::as_before());
            }
            now => now?,
        };
        let theirs = self.theirs(&now);
        let (back, left) = self.sorted(&now, &theirs);
        if !back.is_empty() {
            self.at.set_all(&variables::steps(&now, &back), not_restored)?;
            match self.at.values_on(self.token, &self.names()) {
                Err(ChangeError::Restarted { .. }) => return self.after_restart(),
                after => self.compare(&after?, &theirs)?,
            }
        }
        let how = match (back.is_empty(), left.is_empty()) {
            (false, _) => How::PutBack,
            (true, true) => How::AsBefore,
            (true, false) => How::LeftAlone,
        };
        Ok(Undone { how, left })
    }

    /// What was set until the server ends went with it; an event is still there.
    fn after_restart(&self) -> Result<Undone, ChangeError> {
        let events = self.changed().into_iter().filter(|name| name.starts_with(EVENT));
        let back = |name| Some(ServerSetting::new(name, self.prior.get(name)?));
        let back: Vec<ServerSetting> = events.filter_map(back).collect();
        self.at.set_all(&back, not_restored)?;
        Ok(if back.is_empty() { Undone::as_before() } else { Undone::put_back() })
    }

    /// Settings that others have changed by now, and those that cannot go back because of them.
    fn theirs(&self, now: &ServerValues) -> BTreeSet<&'a str> {
        let mut theirs: BTreeSet<&str> = BTreeSet::new();
        for (name, was) in self.prior {
            let found = now.get(name).map_or("", String::as_str);
            // What a broken-off undoing set is as before.
            let is_settled = self.is_ours(name, found) || variables::is_same(found, was);
            if !is_settled {
                theirs.insert(name);
            }
        }
        // Setting one of a pair back must not move the other where others have changed that.
        for (low, high) in variables::BOUNDED {
            let (value, was) = (|name: &str| now.get(name), |name: &str| self.prior.get(name));
            let crosses = |low: Option<&String>, high: Option<&String>| {
                low.zip(high).is_some_and(|(low, high)| variables::is_below(high, low))
            };
            if theirs.contains(low) && crosses(value(low), was(high)) {
                theirs.insert(high);
            } else if theirs.contains(high) && crosses(was(low), value(high)) {
                theirs.insert(low);
            }
        }
        theirs
    }

    /// What goes back, and what is left.
    fn sorted(
        &self,
        now: &ServerValues,
        theirs: &BTreeSet<&str>,
    ) -> (Vec<ServerSetting>, Vec<Left>) {
        let (mut back, mut left) = (Vec::new(), Vec::new());
        for (name, was) in self.prior {
            let found = now.get(name).cloned().unwrap_or_default();
            if variables::is_same(&found, was) {
                continue;
            }
            if theirs.contains(name.as_str()) {
                left.push(Left { thing: self.thing(name), found, prior: was.clone() });
            } else {
                back.push(ServerSetting::new(name, was));
            }
        }
        (back, left)
    }

    /// Everything but what was left is as before.
    fn compare(&self, after: &ServerValues, theirs: &BTreeSet<&str>) -> Result<(), ChangeError> {
        for (name, was) in self.prior {
            let found = after.get(name).map_or("", String::as_str);
            if variables::is_same(found, was) || theirs.contains(name.as_str()) {
                continue;
            }
            let said = io::Error::other(format!("the server made {found} of {was}"));
            return Err(system_on("set back", self.thing(name), said));
        }
        Ok(())
    }

    /// The statements by which a person puts back what may have been changed. In this order they
    /// do so whatever the values are.
    pub(crate) fn by_hand(&self) -> Vec<String> {
        self.statements(&self.changed())
    }

    /// What may have been changed and not be back, with what bounds it.
    fn changed(&self) -> BTreeSet<&'a str> {
        let differs = |name: &str| self.held.get(name) != self.prior.get(name);
        let may_differ = |name: &&str| self.unknown.contains(*name) || differs(name);
        variables::with_partners(self.names().into_iter().filter(may_differ))
    }

    /// The same for the whole group, whatever is changed until then.
    pub(crate) fn by_hand_all(&self) -> Vec<String> {
        self.statements(&self.names())
    }

    fn statements(&self, changed: &BTreeSet<&str>) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        for (low, high) in variables::BOUNDED {
            if changed.contains(low) || changed.contains(high) {
                names.extend([high, low, high]);
            }
        }
        let is_alone = |name: &&&str| !names.contains(*name);
        let alone: Vec<&str> = changed.iter().filter(is_alone).copied().collect();
        names.extend(alone);
        let statement = |name: &str| {
            if let Some(event) = name.strip_prefix(EVENT) {
                return Some(format!("DROP EVENT IF EXISTS {event};"));
            }
            let value = variable_literal(self.prior.get(name)?);
            Some(format!("SET GLOBAL {name} = {value};"))
        };
        names.into_iter().filter_map(statement).collect()
    }
}

/// A value as SET takes it: numbers as they are, words in quotes.
pub fn variable_literal(value: &str) -> String {
    if value.parse::<i128>().is_ok() || value.parse::<f64>().is_ok_and(f64::is_finite) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_is_seen() {
        for (address, holds) in [
            ("mysql://b@127.0.0.1:3391/db", false),
            ("mysql://127.0.0.1:3391", false),
            ("mysql://[::1]:3391/db?socket=/a:b", false),
            ("mysql://b:p@h/db", true),
            ("mysql://b:p@ss@h", true),
            ("mysql://b@h/db?ssl=required&password=p", true),
        ] {
            assert_eq!(holds_secret(address), holds, "{address}");
        }
    }

    #[test]
    fn words_are_quoted() {
        for (value, text) in [
            ("2000", "2000"),
            ("0.001000", "0.001000"),
            ("18446744073709551615", "18446744073709551615"),
            ("ON", "'ON'"),
            ("inf", "'inf'"),
            ("a'b\\", "'a''b\\\\'"),
        ] {
            assert_eq!(variable_literal(value), text);
        }
    }
}
