//! The commits of one session that nobody has been told of yet.
//!
//! Invariant: numbers rise; a ticket is let go once it is settled, in whatever order that is asked.

use std::collections::VecDeque;

use iostrata_database::target::Ticket;
use iostrata_engine::{EngineError, Ticket as Commit};

/// Commits by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    /// The number of the first one.
    first: u64,
    /// None where it is settled.
    open: VecDeque<Option<Commit>>,
}

impl Tickets {
    /// Adds a commit.
    pub fn add(&mut self, commit: Commit) -> Ticket {
        self.open.push_back(Some(commit));
        Ticket(self.first + self.open.len() as u64 - 1)
    }

    /// Whether a commit is settled; with `waits` returns only then. None for a ticket that this
    /// session has not given.
    ///
    /// # Errors
    /// What the engine said.
    pub fn settle(&mut self, ticket: Ticket, waits: bool) -> Option<Result<bool, EngineError>> {
        let Some(at) = ticket.0.checked_sub(self.first) else { return Some(Ok(true)) };
        let open = self.open.get_mut(usize::try_from(at).ok()?)?;
        let Some(commit) = open else { return Some(Ok(true)) };
        let settled = if waits { commit.wait().map(|()| true) } else { commit.try_wait() };
        if matches!(settled, Ok(true)) {
            *open = None;
            while let Some(None) = self.open.front() {
                self.open.pop_front();
                self.first += 1;
            }
        }
        Some(settled)
    }
}
