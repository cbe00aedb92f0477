//! Waiting for a page that somebody else loads or evicts.
//!
//! Invariant: who ends a busy state and finds it waited for tells everyone who waited until then
//! the outcome, exactly once. A page that nobody waits for costs nothing here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use iostrata_innodb::PageNo;

use crate::error::EngineError;
use crate::pool::latch::Pause;
use crate::pool::word::{WAITED, Word};
use crate::sync::locked;

const ROOMS: usize = 64;

/// How a busy state ended: the page may be looked at again, or cannot be had.
pub type Outcome = Result<(), EngineError>;

/// One busy state that somebody waits for.
#[derive(Default)]
struct Wait {
    outcome: Mutex<Option<Outcome>>,
    told: Condvar,
}

type Room = Mutex<Vec<(PageNo, Arc<Wait>)>>;

pub struct Waiting {
    rooms: Vec<Room>,
}

impl Waiting {
    pub fn new() -> Self {
        Self { rooms: (0..ROOMS).map(|_| Mutex::default()).collect() }
    }

    /// Waits while the entry is busy.
    pub fn wait(&self, page: PageNo, entry: &AtomicU64) -> Outcome {
        let mut pause = Pause::default();
        while pause.wait() {
            if !Word(entry.load(Ordering::Acquire)).is_busy() {
                return Ok(());
            }
        }
        match self.join(page, entry) {
            Some(wait) => wait.sleep(),
            None => Ok(()),
        }
    }

    /// The wait for this page, marked in the entry; none when it is not busy any more.
    fn join(&self, page: PageNo, entry: &AtomicU64) -> Option<Arc<Wait>> {
        let mut room = locked(self.room(page));
        let mark = |word| Word(word).is_busy().then_some(word | WAITED);
        entry.fetch_update(Ordering::Acquire, Ordering::Acquire, mark).ok()?;
        if let Some((_, wait)) = room.iter().find(|(of, _)| *of == page) {
            return Some(Arc::clone(wait));
        }
        let wait = Arc::new(Wait::default());
        room.push((page, Arc::clone(&wait)));
        Some(wait)
    }

    /// Ends a busy state: the entry becomes `next`, and who waited is told.
    pub fn end(&self, page: PageNo, entry: &AtomicU64, next: Word, outcome: Outcome) {
        let was = Word(entry.swap(next.0, Ordering::AcqRel));
        assert!(was.is_busy(), "page {} was {was:?} when its busy state ended", page.0);
        if was.is_waited_for() {
            self.tell(page, outcome);
        }
    }

    #[cold]
    fn tell(&self, page: PageNo, outcome: Outcome) {
        let wait = {
            let mut room = locked(self.room(page));
            let found = room.iter().position(|(of, _)| *of == page);
            found.map(|at| room.swap_remove(at).1)
        };
        // Absent when a busy state of the same page that ended just before told these, too.
        if let Some(wait) = wait {
            *locked(&wait.outcome) = Some(outcome);
            wait.told.notify_all();
        }
    }

    fn room(&self, page: PageNo) -> &Room {
        &self.rooms[(page.0 % ROOMS as u64) as usize]
    }
}

impl Wait {
    fn sleep(&self) -> Outcome {
        let told = self.told.wait_while(locked(&self.outcome), |outcome| outcome.is_none());
        told.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(Ok(()))
    }
}
