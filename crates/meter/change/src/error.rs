//! Why something could not be changed or put back.
//!
//! Invariant: each message names the thing, what was found and the fix. What a kernel does not
//! offer is [`ChangeError::Unavailable`], so that a study can report it as a result.

use std::io;
use std::path::{Path, PathBuf};

use iostrata_io::FileSetError;
use thiserror::Error;

use crate::seen::ChangeId;

/// Why a change could not be made or undone.
#[derive(Debug, Error)]
pub enum ChangeError {
    /// This kernel, machine or user cannot have it.
    #[error("{what} is not available here: {why}; {fix}")]
    Unavailable {
        /// What was requested.
        what: String,
        /// What was found.
        why: String,
        /// What would help.
        fix: String,
    },
    /// A database server does not answer, or refuses the login.
    #[error(
        "{what} is not available here: {why}; see that it runs, and that its address and \
         credentials are right"
    )]
    NoAnswer {
        /// What was requested.
        what: String,
        /// What was found.
        why: String,
    },
    /// A device that is in use, or whose contents were not given up.
    #[error("{device} is refused: {found}; {fix}")]
    Refused {
        /// Which.
        device: String,
        /// What was found.
        found: String,
        /// What would help.
        fix: String,
    },
    /// A place is taken.
    #[error("{path} {found}; {fix}")]
    Taken {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What would help.
        fix: &'static str,
    },
    /// Another change stands on this one.
    #[error("cannot undo this yet: {what}; first undo: {by}")]
    DependedOn {
        /// What was to be undone.
        what: String,
        /// What has to be undone before.
        by: String,
    },
    /// No such change is in place.
    #[error("change {id} is not in place in this session")]
    NotInPlace {
        /// Its number.
        id: ChangeId,
    },
    /// Another process has changed settings of the server.
    #[error("the settings of {server} are taken: {found}; {fix}")]
    SettingsTaken {
        /// Which server.
        server: String,
        /// By whom.
        found: String,
        /// What would help.
        fix: String,
    },
    /// The server was restarted since a group of settings was applied.
    #[error("{server} was restarted: its settings are its own; undo the group and apply it again")]
    Restarted {
        /// Its address.
        server: String,
    },
    /// Another server than that on which a group of settings was applied.
    #[error(
        "another server answers at {server}: {found}; settings of {noted} are changed and stay in \
         the journal. Name that one: iostrata restore --target mysql://user@host:port"
    )]
    OtherServer {
        /// The address.
        server: String,
        /// Which answers.
        found: String,
        /// Which was changed.
        noted: String,
    },
    /// A setting was changed by another client since it was set here.
    #[error(
        "{what} is {found} and was set to {ours} here: another client changed it; leave it as it is, or undo the group and apply it again"
    )]
    SetByOther {
        /// Which setting of which server.
        what: String,
        /// Its value.
        found: String,
        /// The value that it had when it was last set here.
        ours: String,
    },
    /// The program is ending; nothing is changed any more.
    #[error("the program is ending; nothing is changed any more")]
    Ending,
    /// A file could not be made.
    #[error(transparent)]
    Files(#[from] FileSetError),
    /// The journal could not be kept, so nothing was changed, or what was is undone.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another error of the system.
    #[error("cannot {doing} {thing}: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// On what.
        thing: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The record of a change does not fit the change: it was not written by this program.
    #[error("the journal's record of this change is damaged: {what}; undo it by hand")]
    Damaged {
        /// The change.
        what: String,
    },
}

impl ChangeError {
    /// This kernel, machine or user cannot have `what`.
    pub(crate) fn unavailable(
        what: impl Into<String>,
        why: impl ToString,
        fix: impl Into<String>,
    ) -> Self {
        Self::Unavailable { what: what.into(), why: why.to_string(), fix: fix.into() }
    }
}

/// Why a journal could not be kept or read.
#[derive(Debug, Error)]
#[error(
    "cannot {doing} the journal of changes {path}: {source}; nothing is changed without one (choose another place with IOSTRATA_STATE)"
)]
pub struct JournalError {
    /// What was tried.
    pub doing: &'static str,
    /// Which file or directory.
    pub path: PathBuf,
    /// The kernel's answer.
    pub source: io::Error,
}

/// An error of the system on a path; without permission it is not available.
pub(crate) fn system(doing: &'static str, path: &Path, source: io::Error) -> ChangeError {
    system_on(doing, path.display().to_string(), source)
}

/// The same on a thing that has no path.
pub(crate) fn system_on(doing: &'static str, thing: String, source: io::Error) -> ChangeError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => ChangeError::Unavailable {
            what: format!("to {doing} {thing}"),
            why: source.to_string(),
            fix: "run it as root".to_owned(),
        },
        _ => ChangeError::System { doing, thing, source },
    }
}
