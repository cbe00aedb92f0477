//! What a study's question comes down to: which points stand against which, and the sentence for
//! each outcome.
//!
//! Invariant: plain data from the study's text. Which sentence holds is decided where the
//! replicates are; this only defines which points belong to it.

use serde::{Deserialize, Serialize};

use super::{Cell, LevelAt, Take, ThenMetric, VolumeKind};

/// What the sentences may name: the two figures, their ratio, and the ratio as a share or a change
/// in percent.
pub const PLACEHOLDERS: [&str; 5] = ["of", "over", "times", "share", "change"];

/// What they may name where the metric is compared by its difference.
pub const PLACEHOLDERS_OF_DIFFERENCE: [&str; 2] = ["of", "over"];

/// One part of the answer to a study's question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// What it decides, to be read behind "it cannot be said": `whether two files write more`.
    pub asks: String,
    /// Where it comes from.
    #[serde(flatten)]
    pub from: AnswerFrom,
}

/// Where an answer comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerFrom {
    /// Points that are set against each other.
    Contrast(Contrast),
    /// The statements of the study that have one of these ids.
    Findings(Vec<String>),
}

/// Points against others that differ from them in the named levels alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contrast {
    /// What is taken from each replicate.
    pub metric: ThenMetric,
    /// Levels that the points of both sides have.
    pub at: Vec<LevelAt>,
    /// Levels of the points above the line.
    pub of: Vec<LevelAt>,
    /// Levels of the points below it.
    pub over: Vec<LevelAt>,
    /// `only`: every point above with the one below that is equal otherwise. `max`, `min`: the best
    /// or the worst point of either side, whatever its other levels.
    pub take: Take,
    /// The changes that lie between the two sides, where each was also measured alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<ContrastEffect>,
    /// The sentence where the ratio is above one.
    pub more: String,
    /// Where it is below.
    pub less: String,
    /// Where the two are known to be about equal.
    pub same: String,
}

/// One of the changes that are made together above the line of a contrast.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContrastEffect {
    /// What it is, in words: `leaving out the syncs`.
    pub name: String,
    /// The levels that differ from those below the line by this change alone.
    pub to: Vec<LevelAt>,
}

impl Contrast {
    /// Each change as a contrast of its own: it alone over what is below the line.
    pub fn of_effects(&self) -> Vec<(&str, Contrast)> {
        let alone = |effect: &ContrastEffect| Contrast {
            of: effect.to.clone(),
            effects: Vec::new(),
            ..self.clone()
        };
        self.effects.iter().map(|effect| (effect.name.as_str(), alone(effect))).collect()
    }

    /// The cells of each side, above and below the line, by their place.
    pub fn sides(&self, cells: &[Cell]) -> [Vec<usize>; 2] {
        // A factor that this extent does not vary keeps nothing out: the plan has no answer that
        // names another level of it.
        let is_varied = |at: &&LevelAt| cells.iter().any(|cell| cell.level(&at.factor).is_some());
        [&self.of, &self.over].map(|own| {
            let all: Vec<&LevelAt> = self.at.iter().chain(own).filter(is_varied).collect();
            let is_in = |cell: &Cell| all.iter().all(|at| has(cell, at));
            let places = cells.iter().enumerate().filter(|(_, cell)| is_in(cell));
            places.map(|(place, _)| place).collect()
        })
    }

    /// Every cell above the line with those below it that are equal otherwise: one, unless levels
    /// are missing from `at`.
    pub fn counterparts(&self, cells: &[Cell]) -> Vec<(usize, Vec<usize>)> {
        let [above, below] = self.sides(cells);
        let is_own =
            |at: &&LevelAt| self.of.iter().chain(&self.over).any(|own| own.factor == at.factor);
        let holds = |one: &Cell, other: &Cell| {
            one.levels.iter().filter(|at| !is_own(at)).all(|at| has(other, at))
        };
        let equal = |a: usize, b: usize| {
            a != b && holds(&cells[a], &cells[b]) && holds(&cells[b], &cells[a])
        };
        let found = above
            .iter()
            .map(|&a| (a, below.iter().copied().filter(|&b| equal(a, b)).collect::<Vec<usize>>()));
        found.filter(|(_, below)| !below.is_empty()).collect()
    }
}

/// Whether a cell is at a level. What a raw device has no meaning for (files) keeps it nowhere out.
fn has(cell: &Cell, at: &LevelAt) -> bool {
    match cell.level(&at.factor) {
        Some(level) => level == at.level,
        None => cell.volume.kind == VolumeKind::Raw,
    }
}

/// The names between braces in a sentence.
pub(super) fn named(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or(rest))
}

/// A sentence with its figures in place of their names.
pub fn filled(sentence: &str, figure: impl Fn(&str) -> String) -> String {
    named(sentence)
        .fold(sentence.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), &figure(name)))
}
