//! Whether this user may set a server's variables, with no other tuner at work; and a group of its
//! settings: journaled first, set as often as is wanted, put back.
//!
//! Invariant: however the program ends, the server has its own values again, or the journal records
//! that it has not. One connection is used for it, so that it can be set and put back also when it
//! has no other left.

use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use iostrata_change::{
    ChangeError, ChangeId, EVENT, Effect, Left, ServerError, ServerSetting, ServerSettings,
    ServerToken, ServerValues, Servers, Session, StateDir, System,
};
use iostrata_database::target::{TargetError, TargetFacts};
use iostrata_run::ManagedService;
use iostrata_server::{Claim, HeldServer, ServerAddress, ServerRole, ServerTarget};

use crate::exit_error::ExitError;
use crate::grants::Grants;
use crate::test_database::ending;

/// Sets a group of settings and puts it back; dropped, it is put back, too.
pub struct ServerGroup {
    session: Session<System>,
    held: Arc<HeldServer>,
    /// Its address, without secrets.
    server: String,
    group: Option<ChangeId>,
    /// The server and its settings when the group began.
    before: Option<(ServerToken, ServerValues)>,
    /// Settings that were changed, in this group or in one before.
    changed: BTreeSet<String>,
}

/// What came of setting.
pub enum GroupSet {
    /// What the server made of the group, with the settings that moved along.
    Took(ServerValues),
    /// Nothing was set: another user has changed one of them.
    Others,
    /// Nothing was set: it is not the same running server any more.
    Restarted,
    /// It does not answer, or another one does, as the text states; some may be set.
    NoAnswer(String),
}

impl ServerGroup {
    /// Holds nothing yet.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(address: &ServerAddress) -> Result<Self, ExitError> {
        let held = Arc::new(HeldServer::of(address.clone()));
        let platform = System::new().with_servers(Arc::clone(&held));
        let session = Session::begin(&StateDir::of_user(), platform);
        let session = session.map_err(|error| here(&error))?;
        // Its printed form holds no secret.
        let server = address.to_string();
        Ok(Self { session, held, server, group: None, before: None, changed: BTreeSet::new() })
    }

    /// Begins the group at the one server: what these settings, and those that they move, are now
    /// is written down. Gives them.
    ///
    /// # Errors
    /// When another server or a proxy answers, another process holds the settings, or they cannot
    /// be journaled.
    pub fn begin(
        &mut self,
        names: Vec<String>,
        one: &ServerToken,
    ) -> Result<ServerValues, ExitError> {
        self.held.check(&self.server, one).map_err(|error| match error {
            ServerError::NoAnswer(why) => ExitError::NotHere(why),
            ServerError::Refused(why) => ExitError::Usage(why),
        })?;
        let (server, settings) = (self.server.clone(), Vec::new());
        let change = ServerSettings { server, settings, adjustable: names };
        let applied = self.session.apply(change).map_err(|error| match error {
            ChangeError::Taken { .. } | ChangeError::SettingsTaken { .. } => {
                ExitError::Busy(error.to_string())
            }
            ChangeError::Refused { .. } => ExitError::Usage(error.to_string()),
            _ => here(&error),
        })?;
        self.group = Some(applied.id);
        let before = took(applied.effect)?;
        self.before = Some((one.clone(), before.clone()));
        Ok(before)
    }

    /// Sets what is wanted; nothing where nothing is held.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set(&mut self, wanted: &[ServerSetting]) -> Result<GroupSet, ExitError> {
        let Some(group) = self.group else { return Ok(GroupSet::Took(ServerValues::new())) };
        match self.session.adjust(group, wanted) {
            Ok(effect) => {
                let took = took(effect)?;
                self.note_changed(&took);
                Ok(GroupSet::Took(took))
            }
            Err(ChangeError::SetByOther { .. }) => Ok(GroupSet::Others),
            Err(ChangeError::Restarted { .. }) => Ok(GroupSet::Restarted),
            Err(error @ (ChangeError::NoAnswer { .. } | ChangeError::OtherServer { .. })) => {
                Ok(GroupSet::NoAnswer(error.to_string()))
            }
            Err(error) => {
                // Those before the refused one are set.
                self.changed.extend(names_of_settings(wanted.iter().map(|one| &one.name)));
                Err(here(&error))
            }
        }
    }

    fn note_changed(&mut self, took: &ServerValues) {
        let Some((_, before)) = &self.before else { return };
        let is_other = |name: &&String| took.get(*name) != before.get(*name);
        self.changed.extend(names_of_settings(took.keys().filter(is_other)));
    }

    /// Whether the settings that were changed are as before, in words; nothing where none was, the
    /// server does not answer or was restarted, which gave it its own settings.
    pub fn settled(&self) -> Option<String> {
        let (one, before) = self.before.as_ref().filter(|_| !self.changed.is_empty())?;
        let names: Vec<&str> = self.changed.iter().map(String::as_str).collect();
        let (found, now) = self.held.look(&self.server, &names).ok()?;
        found.is(one).then(|| settled(&self.changed, before, &now))
    }

    /// The statements by which a person puts back what was there when the group began.
    pub fn by_hand(&self) -> Vec<String> {
        self.group.map(|group| self.session.by_hand(group)).unwrap_or_default()
    }

    /// Puts off an event of the group for as long as it was made for; whether it is still there.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub fn put_off(&self, event: &str) -> Result<bool, ExitError> {
        self.held.put_off(&self.server, event).map_err(|error| match error {
            ServerError::NoAnswer(why) => ExitError::NoAnswer(why),
            ServerError::Refused(why) => ExitError::NotHere(why),
        })
    }

    /// Puts everything back; gives what another user has set meanwhile, which is left.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the journal.
    pub fn put_back(&mut self) -> Result<Vec<Left>, ExitError> {
        let Some(group) = self.group else { return Ok(Vec::new()) };
        let undone = match self.session.undo(group) {
            // The connection may have been lost on the way: once more, on a new one.
            Err(ChangeError::NoAnswer { .. }) => self.session.undo(group),
            undone => undone,
        };
        let undone = undone.map_err(|error| {
            let (server, by_hand) = (&self.server, lines(&self.by_hand()));
            let journal = match error {
                ChangeError::OtherServer { .. } => String::new(),
                _ => format!(
                    "; the values before are in the journal: once the server answers, run \
                     iostrata restore --target '{server}'"
                ),
            };
            let said =
                format!("{error}{journal}; or by hand, if it was not restarted since:{by_hand}");
            match error {
                ChangeError::NoAnswer { .. } => ExitError::NoAnswer(said),
                _ => ExitError::NotHere(said),
            }
        })?;
        self.group = None;
        Ok(undone.left)
    }
}

/// Those that are no event.
fn names_of_settings<'a>(names: impl Iterator<Item = &'a String>) -> impl Iterator<Item = String> {
    names.filter(|name| !name.starts_with(EVENT)).cloned()
}

/// What became of settings that were changed, as the server shows them now.
fn settled(changed: &BTreeSet<String>, before: &ServerValues, now: &ServerValues) -> String {
    let value = |of: &ServerValues, name: &String| {
        of.get(name).cloned().unwrap_or_else(|| "not shown".to_owned())
    };
    let other = |name: &String| {
        let (now, before) = (value(now, name), value(before, name));
        (now != before).then(|| format!("{name} is {now} and was {before}"))
    };
    let others: Vec<String> = changed.iter().filter_map(other).collect();
    match (changed.first(), changed.len(), others.len()) {
        (Some(only), 1, 0) => format!("{only} is back as it was before."),
        (_, all, 0) => format!("All {all} settings are back as they were before."),
        (_, all, not) => format!(
            "{} of {all} settings are back as they were before. Not back: {}.",
            all - not,
            others.join("; ")
        ),
    }
}

/// Statements as lines below a sentence.
pub fn lines(statements: &[String]) -> String {
    statements.iter().map(|statement| format!("\n  {statement}")).collect()
}

fn took(effect: Effect) -> Result<ServerValues, ExitError> {
    match effect {
        Effect::ServerSettings(effect) => Ok(effect.took),
        _ => Err(ExitError::Bug("a group of settings had another effect".to_owned())),
    }
}

fn here(error: &dyn std::fmt::Display) -> ExitError {
    ExitError::NotHere(error.to_string())
}

/// The lock that a tuner holds at its server.
pub const CLAIM: &str = "iostrata_tune";
/// The error where another tuner holds it.
const OTHER_TUNER: &str = "another iostrata tune is at work on this server; end that one first";

/// Refuses a server, with the reason.
pub fn refused(facts: &TargetFacts, why: &str) -> ExitError {
    ExitError::Usage(format!("{}: {why}", facts.name))
}

/// What has to hold before a server is set.
pub struct Preconditions {
    /// The group of which it is a member that is written to.
    pub member: Option<String>,
    /// What is in the way, with what would help.
    pub obstacles: Vec<String>,
    /// Whether a user can have the right to set it.
    pub is_settable: bool,
    /// What this user may do there.
    pub grants: Grants,
}

impl Preconditions {
    /// It is neither a replica, whose redo comes from another server, nor read-only; no managed
    /// service runs it; and its user has the right.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn of(target: &ServerTarget, facts: &TargetFacts) -> Result<Self, ExitError> {
        let ServerRole { replica, member, is_hidden } = target.role().map_err(ending)?;
        let mut obstacles: Vec<String> = replica.iter().map(|why| no_primary(why)).collect();
        let (grants, service) = (Grants::of(target)?, managed_service(facts));
        match service {
            Some(service) => obstacles.push(not_settable(service)),
            None => {
                obstacles.extend(grants.set_global().err());
                obstacles.extend(is_hidden.then(|| grants.hidden_replication()));
            }
        }
        let is_settable = replica.is_none() && service.is_none();
        Ok(Self { member, obstacles, is_settable, grants })
    }

    /// Makes sure that nothing is in the way.
    ///
    /// # Errors
    /// The first thing that is.
    pub fn refuse(&self, facts: &TargetFacts) -> Result<(), ExitError> {
        self.obstacles.first().map_or(Ok(()), |why| Err(refused(facts, why)))
    }
}

/// Why nothing is set on an instance of a service, and what helps.
fn not_settable(service: ManagedService) -> String {
    let (name, place) = (service.name(), service.place());
    match service {
        // Its storage applies the redo by itself.
        ManagedService::Aurora => format!(
            "this is {name}, whose servers write redo only: there is no page cleaner to tune"
        ),
        _ => format!(
            "this is {name}, which allows no SET GLOBAL: innodb_io_capacity is set in {place}; \
             tune --dry-run says to what"
        ),
    }
}

/// The service of which a server is an instance.
pub fn managed_service(facts: &TargetFacts) -> Option<ManagedService> {
    ManagedService::of(facts.settings.iter().map(|(name, value)| (&**name, &**value)))
}

/// Why nothing is set on a replica.
pub fn no_primary(why: &str) -> String {
    format!("{why}: nothing is set on a server that others write; name its primary")
}

/// The one server to which all connections of a target lead.
///
/// # Errors
/// A target that was not opened as one.
pub fn one(target: &ServerTarget) -> Result<&ServerToken, ExitError> {
    let bug = || ExitError::Bug("a server that is set was not opened as one".to_owned());
    target.one().ok_or_else(bug)
}

/// What a claim would be refused for now.
///
/// # Errors
/// When the server does not answer.
pub fn claimed(target: &ServerTarget) -> Result<Option<&'static str>, ExitError> {
    Ok(target.claimed_by(CLAIM).map_err(ending)?.map(|_| OTHER_TUNER))
}

/// Claims the server for as long as the claim lives.
///
/// # Errors
/// When another tuner is at work.
pub fn claim(target: &ServerTarget, facts: &TargetFacts) -> Result<Claim, ExitError> {
    let busy = || ExitError::Busy(format!("{}: {OTHER_TUNER}", facts.name));
    target.claim(CLAIM).map_err(ending)?.ok_or_else(busy)
}

/// How often a claim is checked.
const EVERY: Duration = Duration::from_secs(30);

/// Checks a claim; why it is of no use any more.
type Asks = Box<dyn FnMut() -> Result<Option<String>, TargetError> + Send>;

/// A claim that is checked until it is dropped.
pub struct KeptClaim {
    asked: Arc<Mutex<ClaimState>>,
    /// Ends the thread with the claim.
    _end: Sender<()>,
}

struct ClaimState {
    asks: Asks,
    lost: Option<String>,
}

impl KeptClaim {
    /// Keeps this one, and sees that its server stays one that is written to.
    pub fn keep(mut claim: Claim) -> Self {
        let asks = move || match claim.holds()? {
            true => Ok(claim.role()?.replica),
            false => Ok(Some("the server has dropped the claim that keeps tuners away".to_owned())),
        };
        Self::asked(Box::new(asks), EVERY)
    }

    fn asked(asks: Asks, every: Duration) -> Self {
        let asked = Arc::new(Mutex::new(ClaimState { asks, lost: None }));
        let (end, ended) = channel();
        let kept = Arc::clone(&asked);
        thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                look(&kept);
            }
        });
        Self { asked, _end: end }
    }

    /// Checks now; why it is lost.
    pub fn look(&self) -> Option<String> {
        look(&self.asked)
    }

    /// Why it is lost, as far as that is known.
    pub fn lost(&self) -> Option<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).lost.clone()
    }
}

fn look(asked: &Mutex<ClaimState>) -> Option<String> {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.lost.is_none() {
        asked.lost = (asked.asks)().unwrap_or_else(|error| Some(error.to_string()));
    }
    asked.lost.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_as_before_are_named_with_both_values() {
        let values = |all: &[(&str, &str)]| -> ServerValues {
            all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let changed = |all: &[&str]| all.iter().map(|name| name.to_string()).collect();
        let before = values(&[("a", "1"), ("b", "ON"), ("c", "3"), ("d", "4")]);
        let all = changed(&["a", "b", "c"]);
        let same = values(&[("a", "1"), ("b", "ON"), ("c", "3")]);
        let text = "All 3 settings are back as they were before.";
        assert_eq!(settled(&all, &before, &same), text);
        let text = "a is back as it was before.";
        assert_eq!(settled(&changed(&["a"]), &before, &same), text);
        let other = values(&[("a", "7"), ("b", "OFF"), ("c", "3")]);
        let text = "1 of 3 settings are back as they were before. Not back: a is 7 and was 1; b is \
                    OFF and was ON.";
        assert_eq!(settled(&all, &before, &other), text);
        // One that is not shown is not known to be as before.
        let text =
            "0 of 1 settings are back as they were before. Not back: d is not shown and was 4.";
        assert_eq!(settled(&changed(&["d"]), &before, &other), text);
    }

    #[test]
    fn who_runs_a_server_at_a_service_is_told_where_it_is_set() {
        let of = |name: &str, value: &str| {
            let settings = vec![(name.to_owned(), value.to_owned())];
            let facts = TargetFacts { settings, ..TargetFacts::default() };
            not_settable(managed_service(&facts).unwrap())
        };
        assert!(of("basedir", "/rdsdbbin/mysql/").contains("is set in the DB parameter group"));
        assert!(of("aurora_version", "3.05.2").contains("no page cleaner to tune"));
    }

    #[test]
    fn a_claim_is_asked_again_and_again_until_it_is_lost() {
        let (asked, askings) = channel();
        let mut left = 3;
        let asks = move || {
            left -= 1;
            asked.send(left).unwrap();
            Ok((left == 0).then(|| "dropped".to_owned()))
        };
        let kept = KeptClaim::asked(Box::new(asks), Duration::from_millis(1));
        // Only the thread looks.
        assert_eq!(askings.iter().take(3).collect::<Vec<i32>>(), [2, 1, 0]);
        assert_eq!(kept.look().as_deref(), Some("dropped"));
        assert_eq!(kept.lost().as_deref(), Some("dropped"));
        assert!(askings.try_recv().is_err(), "what is lost is not asked");
    }
}
