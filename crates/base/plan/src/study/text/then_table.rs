//! The table `[then]`: what the original of a replicated study printed.

use super::error::StudyTextError;
use super::exclude::Vocabulary;
use super::fields::{Fields, spot};
use super::source::SourceText;
use super::tree::TomlEntry;
use crate::study::{Cell, LevelAt, Take, Then, ThenFigure, ThenMetric};

const KEYS: &[&str] = &["source", "machine", "figure"];
const FIGURE_KEYS: &[&str] =
    &["text", "value", "value_high", "unit", "metric", "take", "at", "over"];
/// A study may have so many figures.
const FIGURES_MAX: usize = 1024;

/// A reader of levels that points of the study have.
pub(in crate::study) struct LevelReader<'a> {
    /// The text.
    pub source: &'a SourceText,
    /// The existing factors and levels.
    pub vocabulary: &'a Vocabulary<'a>,
    /// The cells in full extent: a statement about points must match some of them.
    pub cells: &'a [Cell],
}

type Refusal = (String, String);

impl LevelReader<'_> {
    /// What was printed.
    ///
    /// # Errors
    /// The first thing that is wrong; so is a figure that no cell matches.
    pub fn then(&self, at: usize, entries: &[TomlEntry]) -> Result<Then, StudyTextError> {
        let fields = Fields::open(self.source, "[then]", entries, KEYS)?;
        let from = fields.needed("source", at, "say who printed it, where and when")?;
        let machine = fields.needed("machine", at, "say on which machine it was made")?;
        let tables = fields.tables("figure")?;
        if let Some((at, _)) = tables.get(FIGURES_MAX) {
            let (found, fix) = (tables.len().to_string(), format!("use {FIGURES_MAX} at most"));
            return Err(self.source.error(*at, "[then]", &found, "too many figures", fix));
        }
        let figures = tables.iter().map(|(at, entries)| self.figure(*at, entries));
        Ok(Then {
            source: from.text,
            machine: machine.text,
            figures: figures.collect::<Result<_, _>>()?,
        })
    }

    fn figure(&self, at: usize, entries: &[TomlEntry]) -> Result<ThenFigure, StudyTextError> {
        const NAME: &str = "[[then.figure]]";
        let fields = Fields::open(self.source, NAME, entries, FIGURE_KEYS)?;
        let text = fields.needed("text", at, "say in one line what the figure is")?.text;
        let fix = "give the printed figure: value = 35000";
        let value = fields
            .parsed("value", number)?
            .ok_or_else(|| self.source.error(at, format!("{NAME} value"), "", "is missing", fix))?;
        let metric = fields.parsed("metric", metric)?.unwrap_or_default();
        let take = fields.parsed("take", take)?.unwrap_or_default();
        let unit = fields.text("unit")?.map(|it| it.text);
        let over = match fields.get("over") {
            Some(node) => Some(self.place(node.at, "over", fields.table("over")?, take, &text)?),
            None => None,
        };
        let own = if over.is_some() { "times" } else { metric.unit() };
        let unit = unit.unwrap_or_else(|| own.to_owned());
        Ok(ThenFigure {
            value,
            value_high: fields.parsed("value_high", number)?,
            unit,
            metric,
            at: self.place(at, "at", fields.table("at")?, take, &text)?,
            take,
            over,
            text,
        })
    }

    fn place(
        &self,
        at: usize,
        key: &str,
        entries: &[TomlEntry],
        take: Take,
        text: &str,
    ) -> Result<Vec<LevelAt>, StudyTextError> {
        let thing = format!("[[then.figure]] {key}");
        let levels = self.levels(&thing, entries)?;
        let matching = self
            .cells
            .iter()
            .filter(|cell| levels.iter().all(|at| cell.level(&at.factor) == Some(&*at.level)))
            .count();
        match (matching, take) {
            (0, _) => {
                let fix = "name levels that some point of the full extent has";
                Err(self.source.error(at, thing, text, "no point matches it", fix))
            }
            (2.., Take::Only) => {
                let why = format!("{matching} points match it");
                let fix = "name more levels, or say take = \"max\" or \"min\"";
                Err(self.source.error(at, thing, text, why, fix))
            }
            _ => Ok(levels),
        }
    }

    /// Factors with the level of each.
    ///
    /// # Errors
    /// A factor or a level that the study does not have.
    pub fn levels(
        &self,
        thing: &str,
        entries: &[TomlEntry],
    ) -> Result<Vec<LevelAt>, StudyTextError> {
        let mut levels = Vec::new();
        for entry in entries {
            let factor = self.vocabulary.factor(self.source, thing, &entry.key, entry.at)?;
            let spot = spot(self.source, &format!("{thing} {}", entry.key), &entry.node)?;
            // Levels that only cells have, such as a default, are known by their cells.
            let label = factor.canonical(&spot.text);
            let has = |cell: &Cell| cell.level(&factor.name) == Some(&*label);
            let level = if self.cells.iter().any(has) {
                label
            } else {
                self.vocabulary.level(self.source, thing, factor, &spot)?
            };
            levels.push(LevelAt { factor: factor.name.clone(), level });
        }
        Ok(levels)
    }
}

fn number(text: &str) -> Result<f64, Refusal> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(("is not a number".to_owned(), "write for example 35000 or 8310.0".to_owned())),
    }
}

/// What is taken from a point.
pub(in crate::study) fn metric(text: &str) -> Result<ThenMetric, Refusal> {
    let found = ThenMetric::NAMED.iter().find(|(name, _, _)| *name == text);
    found.map(|(_, metric, _)| *metric).ok_or_else(|| {
        let names: Vec<&str> = ThenMetric::NAMED.iter().map(|(name, _, _)| *name).collect();
        ("there is no such metric".to_owned(), format!("use one of {}", names.join(", ")))
    })
}

/// Which of several points.
pub(in crate::study) fn take(text: &str) -> Result<Take, Refusal> {
    match text {
        "only" => Ok(Take::Only),
        "max" => Ok(Take::Max),
        "min" => Ok(Take::Min),
        _ => Err(("there is no such choice".to_owned(), "use only, max or min".to_owned())),
    }
}
