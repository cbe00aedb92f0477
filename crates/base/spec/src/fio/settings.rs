//! The options that hold for one job: its own over those of the global sections before it.
//!
//! Invariant: whoever reads an option marks it as used; what no job used is warned of, so that
//! nothing is accepted and forgotten.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::error::{FioError, Origin, Why};
use super::lines::{Assignment, Section};
use super::value::Base;

/// Options by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    held: BTreeMap<&'static str, (usize, Assignment)>,
    count: usize,
    used: RefCell<BTreeSet<&'static str>>,
}

impl Settings {
    /// Puts a section's options over those before it.
    pub(super) fn add(&mut self, section: &Section) {
        for assignment in &section.assignments {
            self.count += 1;
            self.held.insert(assignment.entry.name, (self.count, assignment.clone()));
        }
    }

    /// The option, which counts as used from now on.
    pub(super) fn get(&self, name: &'static str) -> Option<&Assignment> {
        debug_assert!(
            super::catalogue::find(name).is_some_and(|entry| entry.name == name),
            "{name}"
        );
        self.used.borrow_mut().insert(name);
        self.held.get(name).map(|(_, assignment)| assignment)
    }

    /// The option without using it.
    pub(super) fn peek(&self, name: &str) -> Option<&Assignment> {
        self.held.get(name).map(|(_, assignment)| assignment)
    }

    /// The later one of two options that say the same in different words.
    pub(super) fn later(&self, one: &'static str, other: &'static str) -> Option<&Assignment> {
        let (first, second) = (self.get(one), self.get(other));
        let order = |name| self.held.get(name).map(|(order, _)| *order);
        if order(one) > order(other) { first } else { second }
    }

    /// The value of an option, read by `read`.
    pub(super) fn value<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Why>,
    ) -> Result<Option<T>, FioError> {
        let Some(assignment) = self.get(name) else { return Ok(None) };
        read(&assignment.value).map(Some).map_err(|why| refusal(assignment, why))
    }

    /// What `k` stands for in this job.
    pub(super) fn base(&self) -> Result<Base, FioError> {
        Ok(self.value("kb_base", Base::of)?.unwrap_or(Base::FIO))
    }

    /// Options that were set and that nobody used.
    pub(super) fn unused(&self) -> impl Iterator<Item = &Assignment> {
        let used = self.used.borrow().clone();
        self.held
            .iter()
            .filter(move |(name, _)| !used.contains(*name))
            .map(|(_, (_, assignment))| assignment)
    }

    /// Every option that holds.
    pub(super) fn all(&self) -> impl Iterator<Item = &Assignment> {
        self.held.values().map(|(_, assignment)| assignment)
    }
}

/// A refusal of an option.
pub(super) fn refusal(assignment: &Assignment, why: Why) -> FioError {
    FioError { origin: assignment.origin.clone(), what: assignment.shown(), why: why.0 }
}

/// A refusal of a job as a whole.
pub(super) fn job_refusal(name: &str, origin: &Origin, why: impl Into<String>) -> FioError {
    FioError { origin: origin.clone(), what: format!("[{name}]"), why: why.into() }
}
