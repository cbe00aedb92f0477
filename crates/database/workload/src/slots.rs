//! Sessions in the hands of one worker: how a transaction is tried again, committed and settled.
//!
//! Invariant: a transaction that must be begun again is begun with the same work; commits of a
//! session are settled in their order.

use std::collections::VecDeque;

use iostrata_database::target::{Session, TargetError, Ticket, Trouble};
use iostrata_load::{Ended, FailedTransaction, Reach, Settled, TransactionCost};

/// Times that a transaction is begun at most.
const TRIES_MAX: u32 = 100;

/// How the work of a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    Commit,
    /// As the workload wants it.
    RollBack,
}

/// One session.
struct SlotSession<T> {
    session: Box<dyn Session>,
    /// Commits that are not settled, with what the workload knows of them.
    pending: VecDeque<(Ticket, T)>,
}

impl<T> SlotSession<T> {
    fn new(session: Box<dyn Session>) -> Self {
        Self { session, pending: VecDeque::new() }
    }
}

/// Sessions, each with its pending commits, of which the workload knows a `T`.
pub(crate) struct Slots<T> {
    slots: Vec<SlotSession<T>>,
    /// What sessions cost that are closed.
    before: TransactionCost,
}

impl<T: Copy> Slots<T> {
    /// Opens so many.
    pub fn open(
        count: u32,
        open: impl Fn() -> Result<Box<dyn Session>, TargetError>,
    ) -> Result<Self, TargetError> {
        let slots: Result<Vec<SlotSession<T>>, TargetError> =
            (0..count).map(|_| open().map(SlotSession::new)).collect();
        Ok(Self { slots: slots?, before: TransactionCost::default() })
    }

    /// Runs a transaction up to its commit, again where the target wants it. Gives how it ended and
    /// how often it was begun again.
    pub fn run(
        &mut self,
        slot: u32,
        known: T,
        mut work: impl FnMut(&mut dyn Session) -> Result<Conclusion, TargetError>,
    ) -> (Ended, u32) {
        let slot = &mut self.slots[slot as usize];
        let mut retries = 0;
        loop {
            let session = &mut *slot.session;
            let done = work(session).and_then(|work| match work {
                Conclusion::Commit => session.commit().map(Some),
                Conclusion::RollBack => session.rollback().map(|()| None),
            });
            match done {
                Ok(Some(ticket)) => {
                    slot.pending.push_back((ticket, known));
                    return (Ended::Pending, retries);
                }
                Ok(None) => return (Ended::Done, retries),
                Err(error) => {
                    if error.trouble != Trouble::Gone {
                        // What is wrong with the session shows when it is used next.
                        let _also_failed = session.rollback();
                    }
                    if error.trouble != Trouble::Retry || retries + 1 == TRIES_MAX {
                        return (Ended::Failed(failed(error)), retries);
                    }
                    retries += 1;
                }
            }
        }
    }

    /// Asks for the oldest pending commit of a slot; gives what is known of it once it is durable.
    pub fn settle(&mut self, slot: u32, waits: bool) -> (Option<T>, Settled) {
        let slot = &mut self.slots[slot as usize];
        let Some((ticket, known)) = slot.pending.front().copied() else {
            return (None, Settled::Durable);
        };
        let settled = match slot.session.settle(ticket, waits) {
            Ok(false) => return (None, Settled::NotYet),
            Ok(true) => (Some(known), Settled::Durable),
            Err(error) => (None, Settled::Failed(failed(error))),
        };
        slot.pending.pop_front();
        settled
    }

    /// Puts another session in the place of one that is gone.
    ///
    /// # Errors
    /// The code under which the target refuses.
    pub fn reopen(
        &mut self,
        slot: u32,
        session: Result<Box<dyn Session>, TargetError>,
    ) -> Result<(), String> {
        let session = session.map_err(|error| error.code)?;
        let slot = &mut self.slots[slot as usize];
        add(&mut self.before, &*slot.session);
        *slot = SlotSession::new(session);
        Ok(())
    }

    /// What all sessions have cost so far.
    pub fn cost(&self) -> TransactionCost {
        let mut all = self.before;
        self.slots.iter().for_each(|slot| add(&mut all, &*slot.session));
        all
    }
}

/// What is over with a failure: what is missing, forbidden or closed now stays so.
fn failed(error: TargetError) -> FailedTransaction {
    let reach = match error.trouble {
        Trouble::Gone => Reach::Session,
        Trouble::NotReady | Trouble::Stopped => Reach::Run,
        Trouble::NoSpace => Reach::Window,
        Trouble::Retry | Trouble::Exists | Trouble::Failed => Reach::Transaction,
    };
    FailedTransaction { text: error.to_string(), code: error.code, reach }
}

fn add(all: &mut TransactionCost, session: &dyn Session) {
    let cost = session.cost();
    all.round_trips += cost.round_trips;
    all.statements += cost.statements;
}
