//! Whether another process has changed the same settings of a server.
//!
//! Invariant: of two processes that begin at once with one setting at most one goes on. Each writes
//! down what it is about to do before it looks for others the last time, so at least one of them
//! sees the other. Processes of users that keep their journals elsewhere are not seen.

use std::fs;
use std::path::Path;

use crate::change::Change;
use crate::effect::Prior;
use crate::error::ChangeError;
use crate::journal::{Content, JournalEntry, parse};
use crate::platform::Platform;
use crate::state::StateDir;
use crate::variables::{ServerToken, ServerValues};

/// Refuses settings of a server when the journal of another process has one of them, or one that
/// moves with them. `own` is the journal of the caller.
pub(crate) fn refuse_taken(
    platform: &dyn Platform,
    state: &StateDir,
    own: Option<&Path>,
    (change, prior): (&Change, &Prior),
) -> Result<(), ChangeError> {
    let (Change::ServerSettings { server, .. }, Prior::ServerSettings { server: token, values }) =
        (change, prior)
    else {
        return Ok(());
    };
    for path in state.journals().iter().filter(|path| Some(path.as_path()) != own) {
        let content = fs::read(path).map(|bytes| parse(&bytes)).unwrap_or_default();
        let Some(entry) = content.entries.iter().find(|entry| has_one(entry, token, values)) else {
            continue;
        };
        let server = server.clone();
        let (found, fix) = holder(platform, &content, entry);
        return Err(ChangeError::SettingsTaken { server, found, fix });
    }
    Ok(())
}

/// Whether an entry has one of these settings of this server.
fn has_one(entry: &JournalEntry, token: &ServerToken, wanted: &ServerValues) -> bool {
    let Prior::ServerSettings { server, values } = &entry.prior else { return false };
    server.is(token) && values.keys().any(|name| wanted.contains_key(name))
}

/// Who has them, and what would help.
fn holder(platform: &dyn Platform, content: &Content, entry: &JournalEntry) -> (String, String) {
    let names = entry.change.named_settings().join(", ");
    let who = content.owner.as_ref();
    let who_text = who.map_or_else(|| "a process".to_owned(), |who| format!("process {}", who.pid));
    match who.filter(|who| platform.is_alive(who)) {
        Some(_) => (format!("{who_text} adjusts {names}"), "end it first".to_owned()),
        None => (
            format!("{who_text} was killed and has left {names} changed"),
            "run iostrata restore first".to_owned(),
        ),
    }
}
