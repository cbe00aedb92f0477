//! Which answers and printed figures the cells of an extent are about.
//!
//! Purpose: they name levels, and an extent may leave a factor at one of its levels in all of its
//! cells. Invariant: where that level is not the named one, nothing is reported: the figures would
//! belong to something else.

use super::{CellLayout, Key, is_so};
use crate::study::setting::{Setting, SettingId};
use crate::study::text::design::Design;
use crate::study::text::error::StudyTextError;
use crate::study::{Answer, AnswerFrom, Cell, LevelAt, Then, VolumeKind};

/// The cells of an extent, with everything that is set in each.
pub(in crate::study) struct ExtentCells<'a> {
    pub cells: Vec<Cell>,
    /// What is set in each cell.
    keys: Vec<Key>,
    /// Where levels with names of their own are explained: those that this extent does not vary
    /// are in the other one.
    designs: [&'a Design; 2],
}

impl<'a> ExtentCells<'a> {
    /// # Errors
    /// Those of [`CellLayout::cells`].
    pub fn of(
        layout: &CellLayout<'_>,
        wanted: impl Fn(&str) -> bool,
        designs: [&'a Design; 2],
    ) -> Result<Self, StudyTextError> {
        let laid_out = layout.laid_out(wanted)?;
        let mut keys = vec![Key::new(); laid_out.all.len()];
        for (key, cell) in laid_out.known {
            keys[cell] = key;
        }
        Ok(Self { cells: laid_out.all, keys, designs })
    }

    /// The answers that are about these cells.
    pub fn answers(&self, all: &[Answer]) -> Vec<Answer> {
        let is_asked = |answer: &&Answer| match &answer.from {
            AnswerFrom::Findings(_) => true,
            AnswerFrom::Contrast(contrast) => {
                let effects = contrast.effects.iter().map(|effect| &effect.to);
                let mut sides = [&contrast.of, &contrast.over].into_iter().chain(effects);
                sides.all(|own| self.has(contrast.at.iter().chain(own)))
            }
        };
        all.iter().filter(is_asked).cloned().collect()
    }

    /// The printed figures that are compared with these cells.
    pub fn then(&self, then: &Then) -> Then {
        let figures = then.figures.iter().filter(|figure| {
            self.has(&figure.at) && figure.over.as_ref().is_none_or(|over| self.has(over))
        });
        Then { figures: figures.cloned().collect(), ..then.clone() }
    }

    /// Whether what no cell varies is as these levels name it, in every cell that has the others.
    fn has<'b>(&self, levels: impl IntoIterator<Item = &'b LevelAt>) -> bool {
        let is_varied =
            |at: &&LevelAt| self.cells.iter().any(|cell| cell.level(&at.factor).is_some());
        let (varied, fixed): (Vec<_>, Vec<_>) = levels.into_iter().partition(is_varied);
        let meant = self.cells.iter().zip(&self.keys).filter(|(cell, _)| {
            varied.iter().all(|at| cell.level(&at.factor).is_none_or(|level| level == at.level))
        });
        meant.into_iter().all(|(cell, key)| fixed.iter().all(|at| self.is_set(at, cell, key)))
    }

    /// Whether a cell is at a level that it does not name.
    fn is_set(&self, at: &LevelAt, cell: &Cell, key: &Key) -> bool {
        let label = |id: SettingId| {
            key.iter().find(|(other, _)| *other == id).map(|(_, label)| label.as_str())
        };
        if let Some(setting) = Setting::named(&at.factor) {
            // What a raw device has no meaning for keeps it nowhere out.
            return label(setting.id)
                .map_or(cell.volume.kind == VolumeKind::Raw, |found| found == at.level);
        }
        let parts = self.designs.iter().flat_map(|design| &design.parts);
        let factors = parts.flat_map(|part| &part.factors).filter(|one| one.name == at.factor);
        let mut levels = factors.flat_map(|factor| &factor.levels);
        levels.any(|level| level.label == at.level && is_so(level, label))
    }
}
