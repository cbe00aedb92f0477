//! A design as cells.
//!
//! Purpose: every combination of levels that no rule leaves out becomes a cell. Invariant: cells
//! that need the same thing are one cell; every level is kept by some cell; every workload can be
//! run.

pub(super) mod asked;
mod conditions;
mod conflict;
mod naming;
mod settings;
mod transactions;
mod workload;

use std::collections::{BTreeSet, HashMap, HashSet};

use settings::{Settings, defaults};

use super::setting::{Setting, SettingId};
use super::text::design::{Design, PartDesign};
use super::text::error::StudyTextError;
use super::text::exclude::Rule;
use super::text::factor::{Factor, Level, SettingAssignment};
use super::text::source::SourceText;
use super::{Cell, FactorLevels, LevelAt, Measuring};

/// A study may have so many cells.
pub(super) const CELLS_MAX: usize = 4096;
/// And so many combinations before some are left out.
const COMBINATIONS_MAX: usize = 4 * CELLS_MAX;

/// What a design is laid out with.
pub(super) struct CellLayout<'a> {
    source: &'a SourceText,
    design: &'a Design,
    rules: &'a [Rule],
    measuring: &'a Measuring,
    defaults: Vec<SettingAssignment>,
    /// The factors of all parts, each with all its levels.
    columns: Vec<Factor>,
}

type Key = Vec<(SettingId, String)>;

/// Cells as they come about.
#[derive(Default)]
struct Cells {
    all: Vec<Cell>,
    known: HashMap<Key, usize>,
    names: BTreeSet<String>,
    levels: HashMap<Vec<LevelAt>, usize>,
}

impl<'a> CellLayout<'a> {
    /// Everything that the cells are made from.
    pub fn new(
        source: &'a SourceText,
        design: &'a Design,
        rules: &'a [Rule],
        measuring: &'a Measuring,
    ) -> Self {
        let mut columns: Vec<Factor> = Vec::new();
        for factor in design.parts.iter().flat_map(|part| &part.factors) {
            match columns.iter_mut().find(|column| column.name == factor.name) {
                None => columns.push(factor.clone()),
                Some(column) => {
                    for level in &factor.levels {
                        if !column.levels.iter().any(|other| other.label == level.label) {
                            column.levels.push(level.clone());
                        }
                    }
                }
            }
        }
        Self { source, design, rules, measuring, defaults: defaults(), columns }
    }

    /// The cells of the requested parts.
    ///
    /// # Errors
    /// Too many of them, a level that none keeps, levels that are the same, or a workload that
    /// cannot be run.
    pub fn cells(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Cell>, StudyTextError> {
        Ok(self.laid_out(wanted)?.all)
    }

    fn laid_out(&self, wanted: impl Fn(&str) -> bool) -> Result<Cells, StudyTextError> {
        let parts: Vec<&PartDesign> =
            self.design.parts.iter().filter(|part| wanted(&part.name)).collect();
        let mut combinations = 0_usize;
        for part in &parts {
            combinations = combinations.saturating_add(Combinations::count(&part.factors));
            if combinations > COMBINATIONS_MAX {
                let fix = format!("use fewer levels: {CELLS_MAX} points at most");
                let (thing, found) = (format!("part {}", part.name), combinations.to_string());
                let why = "too many combinations";
                return Err(self.source.error(part.at, thing, &found, why, fix));
            }
        }
        let mut cells = Cells::default();
        for part in parts {
            self.lay_out(part, &mut cells)?;
        }
        Ok(cells)
    }

    /// The factors over these cells, with the levels that they have.
    pub fn factors(&self, cells: &[Cell]) -> Vec<FactorLevels> {
        let levels = |column: &Factor| {
            let found: Vec<&str> =
                cells.iter().filter_map(|cell| cell.level(&column.name)).collect();
            let mut levels: Vec<String> = Vec::new();
            let known = column.levels.iter().map(|level| level.label.as_str());
            for label in known.filter(|label| found.contains(label)).chain(found.iter().copied()) {
                if !levels.iter().any(|other| other == label) {
                    levels.push(label.to_owned());
                }
            }
            let numbers: Option<Vec<f64>> = match column.setting {
                Some(setting) if setting.is_axis() => {
                    levels.iter().map(|label| setting.number(label)).collect()
                }
                Some(_) => None,
                None => levels.iter().map(|label| label.parse().ok()).collect(),
            };
            let is_axis = numbers.is_some();
            if let Some(numbers) = numbers {
                let mut both: Vec<(f64, String)> = numbers.into_iter().zip(levels).collect();
                both.sort_by(|a, b| a.0.total_cmp(&b.0));
                levels = both.into_iter().map(|(_, label)| label).collect();
            }
            FactorLevels { factor: column.name.clone(), levels, is_axis }
        };
        self.columns.iter().map(levels).filter(|factor| !factor.levels.is_empty()).collect()
    }

    fn lay_out(&self, part: &PartDesign, cells: &mut Cells) -> Result<(), StudyTextError> {
        let mut kept: HashSet<LevelAt> = HashSet::new();
        let mut offered: HashSet<(&str, &str)> = HashSet::new();
        let mut own: HashMap<usize, Vec<LevelAt>> = HashMap::new();
        for chosen in Combinations::of(&part.factors) {
            if self.rules.iter().any(|rule| rule.matches(&part.factors, &chosen)) {
                continue;
            }
            for (factor, level) in part.factors.iter().zip(&chosen) {
                offered.insert((&factor.name, &level.label));
            }
            let (settings, key) = self.settings(part, &chosen);
            let levels = self.levels(part, &chosen, &settings);
            for level in &levels {
                if !kept.contains(level) {
                    kept.insert(level.clone());
                }
            }
            let number = match cells.known.get(&key) {
                Some(number) => *number,
                None => {
                    if let Some(other) = cells.levels.insert(levels.clone(), cells.all.len()) {
                        return Err(self.same_levels(part, &cells.all[other]));
                    }
                    let cell = self.cell(part, &settings, levels.clone(), &mut cells.names)?;
                    cells.known.insert(key, cells.all.len());
                    cells.all.push(cell);
                    cells.all.len() - 1
                }
            };
            let first = own.entry(number).or_insert_with(|| levels.clone());
            self.check_same(part, &chosen, first, &levels)?;
            let parts = &mut cells.all[number].parts;
            if !parts.contains(&part.name) {
                parts.push(part.name.clone());
            }
            self.check_number(part, cells.all.len())?;
        }
        self.check_kept(part, &offered, &kept)
    }

    fn settings<'s>(&'s self, part: &'s PartDesign, chosen: &[&'s Level]) -> (Settings<'s>, Key) {
        let mut settings = Settings::default();
        settings.put(&self.defaults);
        settings.put(&self.design.base);
        settings.put(&part.base);
        settings.put(chosen.iter().flat_map(|level| &level.sets));
        settings.keep_meaningful();
        let key = settings.key().into_iter().map(|(id, label)| (id, label.to_owned())).collect();
        (settings, key)
    }

    /// Every factor of the study at the level that a combination has; a factor without meaning here
    /// is left out.
    fn levels(
        &self,
        part: &PartDesign,
        chosen: &[&Level],
        settings: &Settings<'_>,
    ) -> Vec<LevelAt> {
        let label = |id| settings.assigned(id).map(|set| set.label.as_str());
        let level = |column: &Factor| {
            let label = match column.setting {
                Some(setting) => settings.assigned(setting.id)?.label.clone(),
                None => {
                    let at = part.factors.iter().position(|factor| factor.name == column.name);
                    let level = match at {
                        Some(at) => chosen[at],
                        None => column.levels.iter().find(|level| is_so(level, label))?,
                    };
                    let has_meaning =
                        |set: &SettingAssignment| settings.assigned(set.setting.id).is_some();
                    let counts = level.sets.is_empty() || level.sets.iter().any(has_meaning);
                    counts.then(|| level.label.clone())?
                }
            };
            Some(LevelAt { factor: column.name.clone(), level: label })
        };
        self.columns.iter().filter_map(level).collect()
    }

    fn cell(
        &self,
        part: &PartDesign,
        settings: &Settings<'_>,
        levels: Vec<LevelAt>,
        names: &mut BTreeSet<String>,
    ) -> Result<Cell, StudyTextError> {
        let setting = |at: &LevelAt| {
            self.columns.iter().find(|column| column.name == at.factor).and_then(|c| c.setting)
        };
        let tokens: Vec<String> =
            levels.iter().map(|at| naming::token(setting(at), &at.level)).collect();
        let title: Vec<String> = levels.iter().map(|at| naming::words(setting(at), at)).collect();
        let (id, title) = (unique(tokens.join("_"), names), title.join(", "));
        let refused = |conflict: conflict::Conflict| {
            let set = settings.assigned(conflict.id);
            let found = set.map_or("", |set| &set.label);
            let at = set.and_then(|set| set.at).unwrap_or(part.at);
            let why = format!("{} (point {id})", conflict.why);
            self.source.error(at, &*Setting::of(conflict.id).name, found, why, conflict.fix)
        };
        let volume = conditions::volume(settings).map_err(refused)?;
        let conditions = conditions::conditions(settings).map_err(refused)?;
        let workload =
            workload::workload(settings, &conditions.io_limits, self.measuring).map_err(refused)?;
        workload.check().map_err(|error| {
            let set = Setting::named(error.option).and_then(|of| settings.assigned(of.id));
            let at = set.and_then(|set| set.at).unwrap_or(part.at);
            let thing = set.map_or(error.option, |set| &*set.setting.name);
            let fix = format!("{}, or leave the point out with [[exclude]]", plain(&error.fix));
            let why = format!("{} (point {id})", error.why);
            self.source.error(at, thing, &error.found, why, fix)
        })?;
        let transactions = transactions::transactions(settings, self.measuring).map_err(refused)?;
        let second = transactions::second(settings, transactions.as_ref()).map_err(refused)?;
        let readers = transactions.as_ref().and_then(|load| transactions::readers(settings, load));
        Ok(Cell {
            id,
            title,
            parts: Vec::new(),
            levels,
            volume,
            conditions,
            workload,
            transactions,
            second,
            readers,
        })
    }

    /// Cells that differ only in what is no factor could not be distinguished.
    fn same_levels(&self, part: &PartDesign, other: &Cell) -> StudyTextError {
        let why = format!(
            "differs from part {} only in what is no factor, at {}",
            other.parts.first().map_or("main", |part| part.as_str()),
            other.title
        );
        let fix = "vary it as a factor, if only at one level: factors = { rw = [\"write\"] }";
        self.source.error(part.at, "part", &part.name, why, fix)
    }

    /// Two equivalent levels would be measured as if they differed.
    fn check_same(
        &self,
        part: &PartDesign,
        chosen: &[&Level],
        first: &[LevelAt],
        levels: &[LevelAt],
    ) -> Result<(), StudyTextError> {
        let Some((was, is)) = first.iter().zip(levels).find(|(was, is)| was != is) else {
            return Ok(());
        };
        let at = part.factors.iter().position(|factor| factor.name == is.factor);
        let at = at.map_or(part.at, |at| chosen[at].at);
        let why = format!("comes to the same as level {} at {}", was.level, others(levels, is));
        let fix = "leave one of them out there with [[exclude]]";
        Err(self.source.error(at, format!("factor {}", is.factor), &is.level, why, fix))
    }

    fn check_number(&self, part: &PartDesign, cells: usize) -> Result<(), StudyTextError> {
        if cells <= CELLS_MAX {
            return Ok(());
        }
        let (thing, found) = (format!("part {}", part.name), format!("more than {CELLS_MAX}"));
        let fix = format!("use fewer levels: {CELLS_MAX} at most");
        Err(self.source.error(part.at, thing, &found, "too many points", fix))
    }

    fn check_kept(
        &self,
        part: &PartDesign,
        offered: &HashSet<(&str, &str)>,
        kept: &HashSet<LevelAt>,
    ) -> Result<(), StudyTextError> {
        for factor in &part.factors {
            for level in &factor.levels {
                let this = LevelAt { factor: factor.name.clone(), level: level.label.clone() };
                if kept.contains(&this) {
                    continue;
                }
                let why = if offered.contains(&(&*factor.name, &*level.label)) {
                    format!("has no meaning in any point of part {}", part.name)
                } else {
                    format!("every point of part {} with it is left out", part.name)
                };
                let fix = "take the level away, or leave out less with [[exclude]]";
                let thing = format!("factor {}", factor.name);
                return Err(self.source.error(level.at, thing, &level.label, why, fix));
            }
        }
        Ok(())
    }
}

/// Whether everything that a level sets is so where each setting has this label.
fn is_so<'l>(level: &Level, label: impl Fn(SettingId) -> Option<&'l str>) -> bool {
    let same = |set: &SettingAssignment| label(set.setting.id) == Some(&*set.label);
    !level.sets.is_empty() && level.sets.iter().all(same)
}

fn others(levels: &[LevelAt], but: &LevelAt) -> String {
    let others = levels.iter().filter(|at| at.factor != but.factor);
    let words: Vec<String> = others.map(|at| format!("{} {}", at.factor, at.level)).collect();
    if words.is_empty() { "this point".to_owned() } else { words.join(", ") }
}

fn unique(id: String, names: &mut BTreeSet<String>) -> String {
    let id = if id.is_empty() { "point".to_owned() } else { id };
    let mut name = id.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{id}_{number}");
        number += 1;
    }
    name
}

/// A fix in the words of a study instead of the command line's.
fn plain(fix: &str) -> String {
    fix.replace("--numjobs", "workers").replace("--", "")
}

/// Combinations in order: the last factor changes fastest.
pub(in crate::study) struct Combinations<'a> {
    factors: &'a [Factor],
    next: Option<Vec<usize>>,
}

impl<'a> Combinations<'a> {
    /// All of them.
    pub fn of(factors: &'a [Factor]) -> Self {
        let empty = factors.iter().any(|factor| factor.levels.is_empty());
        Self { factors, next: (!empty).then(|| vec![0; factors.len()]) }
    }

    /// The number of combinations.
    pub fn count(factors: &[Factor]) -> usize {
        factors.iter().map(|factor| factor.levels.len()).fold(1, usize::saturating_mul)
    }
}

impl<'a> Iterator for Combinations<'a> {
    type Item = Vec<&'a Level>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut at = self.next.take()?;
        let chosen = self.factors.iter().zip(&at).map(|(factor, at)| &factor.levels[*at]).collect();
        for (place, factor) in self.factors.iter().enumerate().rev() {
            at[place] += 1;
            if at[place] < factor.levels.len() {
                self.next = Some(at);
                break;
            }
            at[place] = 0;
        }
        Some(chosen)
    }
}
