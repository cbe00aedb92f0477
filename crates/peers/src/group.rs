//! Many commits made durable by one sync, for engines that separate the two.
//!
//! Purpose: give a peer whose interface has "written" and "made durable" apart the group commit
//! that it does not bring itself; anything less would compare how well we use it.
//! Invariant: a commit returns well only after a sync that began when it was written has succeeded.
//! It does not write, does not sync, and does not merge transactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Turns that a leader gives to writers that are about to finish.
const TURNS_MAX: u32 = 1_000;

/// Where the commits of one store meet.
#[derive(Debug, Default)]
pub struct Group {
    /// Commits that have begun.
    begun: AtomicU64,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Commits whose write has ended, well or not; a commit's number is this after its own.
    written: u64,
    /// All commits up to this number are durable.
    durable: u64,
    /// A thread syncs.
    is_led: bool,
}

impl Group {
    /// Writes by `write` and returns when a `sync` by this or another thread covers it.
    ///
    /// # Errors
    /// The error of `write`, or of the `sync` that this thread made itself; after another thread's
    /// failed sync this one tries again.
    pub fn commit<E>(
        &self,
        write: impl FnOnce() -> Result<(), E>,
        sync: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let written = write();
        let mut state = self.lock();
        state.written += 1;
        let number = state.written;
        written?;
        while state.durable < number && state.is_led {
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.durable >= number {
            return Ok(());
        }
        state.is_led = true;
        drop(state);
        let covered = self.gather();
        let synced = sync();
        let mut state = self.lock();
        state.is_led = false;
        if synced.is_ok() {
            state.durable = state.durable.max(covered);
        }
        drop(state);
        self.done.notify_all();
        synced
    }

    /// Waits a little for the commits that have begun; the number up to which all are written.
    fn gather(&self) -> u64 {
        let begun = self.begun.load(Ordering::SeqCst);
        let mut turns = 0;
        loop {
            let written = self.lock().written;
            if written >= begun || turns == TURNS_MAX {
                return written;
            }
            turns += 1;
            std::thread::yield_now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[derive(Default)]
    struct Log {
        written: Mutex<Vec<u64>>,
        synced: Mutex<Vec<u64>>,
        syncs: AtomicU64,
    }

    impl Log {
        fn write(&self, one: u64) -> Result<(), String> {
            self.written.lock().unwrap().push(one);
            Ok(())
        }

        fn sync(&self) -> Result<(), String> {
            let now = self.written.lock().unwrap().clone();
            std::thread::sleep(std::time::Duration::from_micros(200));
            *self.synced.lock().unwrap() = now;
            self.syncs.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }

    #[test]
    fn what_returns_is_synced_and_syncs_are_shared() {
        let (group, log) = (Group::default(), Log::default());
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (group, log) = (&group, &log);
                scope.spawn(move || {
                    for at in 0..50 {
                        let one = thread * 1_000 + at;
                        group.commit(|| log.write(one), || log.sync()).unwrap();
                        assert!(log.synced.lock().unwrap().contains(&one));
                    }
                });
            }
        });
        let syncs = log.syncs.load(Ordering::SeqCst);
        assert!((50..400).contains(&syncs), "{syncs} syncs for 400 commits");
    }

    #[test]
    fn a_failed_write_or_sync_is_told_and_the_next_tries_again() {
        let (group, log) = (Group::default(), Log::default());
        let synced = AtomicBool::new(false);
        let refused = || Err("refused".to_owned());
        let sync = || {
            synced.store(true, Ordering::SeqCst);
            Ok(())
        };
        assert!(group.commit(refused, sync).is_err());
        assert!(!synced.load(Ordering::SeqCst));
        assert!(group.commit(|| log.write(1), refused).is_err());
        assert_eq!(group.lock().durable, 0);
        group.commit(|| log.write(2), sync).unwrap();
        assert_eq!(group.lock().durable, 3);
    }
}
