//! Settings with their values, levels, and factors.
//!
//! Invariant: the levels of a factor differ in their names; no level sets a setting twice.

use std::collections::BTreeSet;

use super::error::StudyTextError;
use super::fields::{Spot, spot};
use super::source::SourceText;
use super::tree::{Node, TomlEntry, Value};
use crate::study::nearest::nearest;
use crate::study::setting::{Setting, SettingId, SettingValue};

/// A study may have so many factors.
const FACTORS_MAX: usize = 32;
/// A factor may have so many levels.
const LEVELS_MAX: usize = 512;
/// Longest name of a factor or level, in characters.
const NAME_CHARS_MAX: usize = 48;

/// A setting with its value.
#[derive(Clone, Debug)]
pub(in crate::study) struct SettingAssignment {
    /// Which setting.
    pub setting: Setting,
    /// Its value.
    pub value: SettingValue,
    /// The value's name as a level.
    pub label: String,
    /// Where the text sets it; absent for what is so by default.
    pub at: Option<usize>,
}

/// One level of a factor.
#[derive(Clone, Debug)]
pub(in crate::study) struct Level {
    /// Its name.
    pub label: String,
    /// Where it stands.
    pub at: usize,
    /// What it sets.
    pub sets: Vec<SettingAssignment>,
}

/// One factor.
#[derive(Clone, Debug)]
pub(in crate::study) struct Factor {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: usize,
    /// The setting that it varies; absent where its levels have names of their own.
    pub setting: Option<Setting>,
    /// Its levels.
    pub levels: Vec<Level>,
}

impl Factor {
    /// Every setting that some level sets.
    pub fn sets(&self) -> BTreeSet<SettingId> {
        let sets = self.levels.iter().flat_map(|level| &level.sets);
        sets.map(|set| set.setting.id).collect()
    }

    /// How the text of a level is written among the names: `4096` is `4K`.
    pub fn canonical(&self, text: &str) -> String {
        match self.setting.map(|setting| (setting, setting.parse(text))) {
            Some((setting, Ok(value))) => setting.label(&value),
            _ => text.to_owned(),
        }
    }
}

/// The settings of one table.
///
/// # Errors
/// An unknown setting, a value that it does not take, a setting twice.
pub(in crate::study) fn settings(
    source: &SourceText,
    place: &str,
    entries: &[TomlEntry],
) -> Result<Vec<SettingAssignment>, StudyTextError> {
    let mut all: Vec<SettingAssignment> = Vec::new();
    for entry in entries {
        let Some(setting) = Setting::named(&entry.key) else {
            let why = "there is no such setting";
            return Err(source.error(entry.at, place, &entry.key, why, setting_fix(&entry.key)));
        };
        if all.iter().any(|other| other.setting == setting) {
            let fix = "keep one of the two";
            return Err(source.error(entry.at, place, &entry.key, "is set twice", fix));
        }
        let thing = format!("{place} {}", entry.key);
        let spot = spot(source, &thing, &entry.node)?;
        all.push(assigned(source, &thing, setting, &spot)?);
    }
    Ok(all)
}

fn assigned(
    source: &SourceText,
    thing: &str,
    setting: Setting,
    spot: &Spot,
) -> Result<SettingAssignment, StudyTextError> {
    let value = setting
        .parse(&spot.text)
        .map_err(|error| source.error(spot.at, thing, &spot.text, error.why, error.fix))?;
    Ok(SettingAssignment { setting, label: setting.label(&value), value, at: Some(spot.at) })
}

fn setting_fix(name: &str) -> String {
    let example = match name {
        "engine" | "second" => Some("policy"),
        "server" => Some("innodb_io_capacity"),
        "database" => Some("io_capacity"),
        _ => None,
    };
    if let Some(example) = example {
        return format!("write the whole name in quotes: \"{name}.{example}\" = ...");
    }
    match Setting::nearest(name) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "docs/studies.md lists the settings".to_owned(),
    }
}

/// The factors of a table, put over those that are there already: one of the same name is narrowed
/// or replaced where it stands, others follow.
///
/// # Errors
/// What is wrong with the first wrong one.
pub(in crate::study) fn over(
    source: &SourceText,
    place: &str,
    entries: &[TomlEntry],
    under: &[Factor],
) -> Result<Vec<Factor>, StudyTextError> {
    let mut all = under.to_vec();
    let mut named: Vec<String> = Vec::new();
    for entry in entries {
        let factor = factor(source, place, entry, under)?;
        if named.contains(&factor.name) {
            let fix = "keep one of the two";
            return Err(source.error(entry.at, place, &entry.key, "is there twice", fix));
        }
        named.push(factor.name.clone());
        match all.iter_mut().find(|other| other.name == factor.name) {
            Some(there) => *there = factor,
            None => all.push(factor),
        }
    }
    if all.len() > FACTORS_MAX {
        let (found, fix) = (all.len().to_string(), format!("use {FACTORS_MAX} at most"));
        return Err(source.error(all[FACTORS_MAX].at, place, &found, "too many factors", fix));
    }
    Ok(all)
}

fn factor(
    source: &SourceText,
    place: &str,
    entry: &TomlEntry,
    under: &[Factor],
) -> Result<Factor, StudyTextError> {
    let setting = Setting::named(&entry.key);
    let name = setting.as_ref().map_or(entry.key.as_str(), |setting| &setting.name);
    let thing = format!("{place} {name}");
    check_name(source, entry.at, &thing, name)?;
    let levels = match &entry.node.value {
        Value::Table(entries) => {
            if setting.is_some() {
                let why = "is a setting, and levels of own naming need a factor of own naming";
                let fix = format!("list its values: {name} = [...], or name the factor otherwise");
                return Err(source.error(entry.at, place, name, why, fix));
            }
            own_levels(source, &thing, entries)?
        }
        Value::Array(nodes) => {
            let pick = Picker { source, thing: &thing, name, at: entry.at, setting, under };
            nodes.iter().map(|node| pick.level(node)).collect::<Result<_, _>>()?
        }
        _ => {
            let pick = Picker { source, thing: &thing, name, at: entry.at, setting, under };
            vec![pick.level(&entry.node)?]
        }
    };
    check_levels(source, &thing, entry.at, &levels)?;
    Ok(Factor { name: name.to_owned(), at: entry.at, setting, levels })
}

/// Makes levels from the elements of a list.
struct Picker<'a> {
    source: &'a SourceText,
    thing: &'a str,
    name: &'a str,
    /// Where the name stands.
    at: usize,
    setting: Option<Setting>,
    under: &'a [Factor],
}

impl Picker<'_> {
    fn level(&self, node: &Node) -> Result<Level, StudyTextError> {
        if let Some(setting) = self.setting {
            let spot = spot(self.source, self.thing, node)?;
            let set = assigned(self.source, self.thing, setting, &spot)?;
            return Ok(Level { label: set.label.clone(), at: node.at, sets: vec![set] });
        }
        let Some(there) = self.under.iter().find(|factor| factor.name == self.name) else {
            return Err(self.unknown_factor());
        };
        let spot = spot(self.source, self.thing, node)?;
        match there.levels.iter().find(|level| level.label == spot.text) {
            Some(level) => Ok(Level { at: node.at, ..level.clone() }),
            None => {
                let labels: Vec<&str> = there.levels.iter().map(|level| &*level.label).collect();
                let fix = format!("its levels are {}", labels.join(", "));
                let why = "there is no such level";
                Err(self.source.error(node.at, self.thing, &spot.text, why, fix))
            }
        }
    }

    fn unknown_factor(&self) -> StudyTextError {
        let factors = self.under.iter().map(|factor| &*factor.name);
        let fix = match nearest(self.name, factors).or_else(|| Setting::nearest(self.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list the values of a setting, or give a table of levels that set several"
                .to_owned(),
        };
        let why = "is neither a factor above nor a setting";
        self.source.error(self.at, self.thing, "", why, fix)
    }
}

fn own_levels(
    source: &SourceText,
    thing: &str,
    entries: &[TomlEntry],
) -> Result<Vec<Level>, StudyTextError> {
    let level = |entry: &TomlEntry| {
        let thing = format!("{thing} {}", entry.key);
        check_name(source, entry.at, &thing, &entry.key)?;
        let Value::Table(sets) = &entry.node.value else {
            let why = format!("is {}, not a table of settings", entry.node.value.words());
            let fix = format!("write {} = {{ direct = true }}", entry.key);
            return Err(source.error(entry.node.at, thing, "", why, fix));
        };
        let sets = settings(source, &thing, sets)?;
        Ok(Level { label: entry.key.clone(), at: entry.at, sets })
    };
    entries.iter().map(level).collect()
}

fn check_name(
    source: &SourceText,
    at: usize,
    thing: &str,
    name: &str,
) -> Result<(), StudyTextError> {
    let fits = !name.trim().is_empty()
        && name.chars().count() <= NAME_CHARS_MAX
        && !name.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    let fix = format!("use 1 to {NAME_CHARS_MAX} characters");
    Err(source.error(at, thing, name, "is no name", fix))
}

fn check_levels(
    source: &SourceText,
    thing: &str,
    at: usize,
    levels: &[Level],
) -> Result<(), StudyTextError> {
    if levels.is_empty() {
        let fix = "give it at least one level, or leave it out";
        return Err(source.error(at, thing, "", "has no levels", fix));
    }
    if let Some(level) = levels.get(LEVELS_MAX) {
        let (found, fix) = (levels.len().to_string(), format!("use {LEVELS_MAX} at most"));
        return Err(source.error(level.at, thing, &found, "too many levels", fix));
    }
    let mut seen = BTreeSet::new();
    for level in levels {
        if !seen.insert(&level.label) {
            let why = "the level is there twice";
            return Err(source.error(level.at, thing, &level.label, why, "keep one of the two"));
        }
    }
    Ok(())
}
