//! The options that hold for one job: its own over those of the global sections before it.
//!
//! Invariant: reading an option marks it as used; what no job used is warned of, so that nothing
//! is accepted and forgotten. What is refused is collected, so that all of it is named.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::catalogue::OptionEffect;
use super::error::{FioError, FioWarning, Origin, Why};
use super::lines::{Assignment, Section};
use super::value::{self, Base};

/// Options by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    held: BTreeMap<&'static str, (usize, Assignment)>,
    count: usize,
    /// Lines that hold no option: they hold for all that follows.
    unread: Vec<FioError>,
    used: RefCell<BTreeSet<&'static str>>,
    refused: RefCell<Vec<FioError>>,
    noted: RefCell<Vec<FioWarning>>,
}

impl Settings {
    /// Puts a section's options over those before it.
    pub(super) fn add(&mut self, section: &Section) {
        for assignment in &section.assignments {
            self.count += 1;
            self.held.insert(assignment.entry.name, (self.count, assignment.clone()));
        }
        self.unread.extend_from_slice(&section.unread);
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

    /// The later one of two options that mean the same.
    pub(super) fn later(&self, one: &'static str, other: &'static str) -> Option<&Assignment> {
        let (first, second) = (self.get(one), self.get(other));
        let order = |name| self.held.get(name).map(|(order, _)| *order);
        if order(one) > order(other) { first } else { second }
    }

    /// The value of an option, read by `read`; what is no value is refused and not there.
    pub(super) fn value<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, Why>,
    ) -> Option<T> {
        let assignment = self.get(name)?;
        read(&assignment.value).map_err(|why| self.refuse(assignment, why)).ok()
    }

    /// The value of a switch.
    pub(super) fn switch(&self, name: &'static str) -> Option<bool> {
        self.value(name, value::switch)
    }

    /// The value of `k` in this job.
    pub(super) fn base(&self) -> Base {
        self.value("kb_base", Base::of).unwrap_or(Base::FIO)
    }

    /// Records that the job cannot be run as an option requires.
    pub(super) fn refuse(&self, assignment: &Assignment, why: Why) {
        self.refuse_as(refusal(assignment, why));
    }

    /// Records what is not done as an option requires.
    pub(super) fn note(&self, assignment: &Assignment, text: &str) {
        let note = FioWarning::at(&assignment.origin, assignment.shown(), text.to_owned());
        self.noted.borrow_mut().push(note);
    }

    /// What was noted so far.
    pub(super) fn notes(&self) -> Vec<FioWarning> {
        self.noted.borrow().clone()
    }

    /// Takes note that the job cannot be run.
    pub(super) fn refuse_as(&self, error: FioError) {
        let mut refused = self.refused.borrow_mut();
        if !refused.contains(&error) {
            refused.push(error);
        }
    }

    /// Everything for which the job cannot be run, by the catalogue and by its values.
    pub(super) fn refusals(&self) -> Vec<FioError> {
        let judged = self.all().filter_map(|one| {
            let neutral = one.entry.is_neutral(&one.value);
            match one.entry.effect {
                OptionEffect::Refused(why) if !neutral => Some(refusal(one, Why::new(why))),
                _ => None,
            }
        });
        let unread = self.unread.iter().cloned();
        let mut all: Vec<FioError> = unread.chain(judged).collect();
        all.extend(self.refused.borrow().iter().cloned());
        all.sort_by_key(|error| error.origin.order());
        all.dedup();
        all
    }

    /// Options that were set and never used.
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
    let what = match origin {
        Origin::File { .. } => format!("[{name}]"),
        Origin::Argument { .. } => format!("name={name}"),
    };
    FioError { origin: origin.clone(), what, why: why.into() }
}
