//! What `watch` and `tune` do with every sample: put it beside what the host did, and keep it.
//!
//! Invariant: what is kept is so at once, so that a kill loses nothing of it; memory and directory
//! stay bounded, however long it lasts.

use std::time::Instant;

use iostrata_database::target::{Sampler, SessionWaits};
use iostrata_database::watch::{TimedSample, Watch, WatchRecord, Watched};
use iostrata_run::{Event, TunedSetting, WatchDocument, WatchTarget};
use iostrata_study::{Listener, StudyError};

use super::target_host::TargetHost;

/// A target with its host.
#[derive(Default)]
pub struct ObservedTarget {
    watch: Watch,
    host: TargetHost,
    /// What it is, as far as it is known.
    pub target: WatchTarget,
}

impl ObservedTarget {
    /// A target of which nothing was asked yet.
    pub fn new(target: WatchTarget, host: TargetHost) -> Self {
        Self { watch: Watch::default(), host, target }
    }

    /// Takes in a sample, with what its host did since the one before.
    pub fn take(&mut self, asked: TimedSample) -> Watched {
        self.watch.take(TimedSample { on_host: self.host.since_last(), ..asked })
    }

    /// Asks what sessions wait for where the target begins to stall, and says so in the sample.
    pub fn explain(&mut self, watched: &mut Watched, sampler: &mut dyn Sampler) {
        if !self.watch.needs_session_waits() {
            return;
        }
        let waits = sampler.session_waits();
        let tasks = self.host.tasks_waiting();
        if waits.is_none() && tasks.is_none() {
            return;
        }
        let processor = tasks.unwrap_or_default();
        self.watch.explain(watched, SessionWaits { processor, ..waits.unwrap_or_default() });
    }

    /// Asks what goes on where the target begins to stall, and how statements went on once it no
    /// longer does.
    pub fn look_at_stall(&mut self, watched: &mut Watched, sampler: &mut dyn Sampler) {
        if self.watch.needs_snapshot(watched) {
            let began = Instant::now();
            if let Some(mut snapshot) = sampler.stall_snapshot() {
                snapshot.took_us = began.elapsed().as_secs_f64() * 1e6;
                self.watch.keep_snapshot(watched, snapshot);
            }
        } else if self.watch.needs_statements(watched)
            && let Some(statements) = sampler.statements_since()
        {
            self.watch.keep_statements(watched, statements);
        }
    }

    /// What its host does not tell, and why.
    pub fn missing_of_host(&self) -> Vec<String> {
        self.host.missing()
    }
}

/// Keeps what is watched of one target.
pub struct Recorder<'a> {
    keeper: Option<&'a mut (dyn Listener + Send)>,
    record: WatchRecord,
}

impl<'a> Recorder<'a> {
    /// Keeps in memory, and in a directory where there is one.
    pub fn new(keeper: Option<&'a mut (dyn Listener + Send)>) -> Self {
        Self { keeper, record: WatchRecord::default() }
    }

    /// Keeps what is watched.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn begin(&mut self, target: &WatchTarget) -> Result<(), StudyError> {
        let event = Event::Watching(Box::new(target.clone()));
        self.keeper.as_mut().map_or(Ok(()), |keeper| keeper.store(&event))
    }

    /// Keeps a sample.
    pub fn take(&mut self, watched: &Watched) {
        if self.record.add(watched) || watched.stall.is_some() {
            self.keep(&watched.event());
        }
    }

    /// Keeps a change of a setting.
    pub fn changed(&mut self, one: TunedSetting) {
        if self.record.changed(one.clone()) {
            self.keep(&Event::Tuned(one));
        }
    }

    /// How many settings were changed.
    pub fn changes(&self) -> u64 {
        self.record.changes()
    }

    /// Everything that was kept.
    pub fn document(&self, target: WatchTarget) -> WatchDocument {
        self.record.document(target)
    }

    fn keep(&mut self, event: &Event) {
        if let Some(keeper) = &mut self.keeper {
            // A directory that cannot be written any more is said at the end.
            let _is_lost = keeper.store(event);
        }
    }
}
