//! What is known of every target, as Prometheus reads it.

use iostrata_database::watch::Watched;
use iostrata_run::WatchTarget;

use crate::metrics::catalogue::{Known, TuneState};
use crate::metrics::exposition;

/// What is known of every target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Board {
    targets: Vec<Known>,
}

impl Board {
    /// Nothing is told yet.
    pub fn new(targets: &[WatchTarget]) -> Self {
        let known = |target: &WatchTarget| Known { target: target.clone(), ..Known::default() };
        Self { targets: targets.iter().map(known).collect() }
    }

    /// Takes a sample of the target with this index; there is nothing to tell of others.
    pub fn take(&mut self, index: usize, watched: &Watched) {
        if let Some(known) = self.targets.get_mut(index) {
            known.last = Some(watched.clone());
        }
    }

    /// What is done with the target with this index.
    pub fn tuned(&mut self, index: usize, state: TuneState) {
        if let Some(known) = self.targets.get_mut(index) {
            known.tune = Some(state);
        }
    }

    /// All of it in Prometheus's text format.
    pub fn text(&self) -> String {
        exposition::exposition(&self.targets)
    }
}
