//! The tables of a study put together for one extent.
//!
//! Invariant: `[quick]` and `[full]` replace entry by entry what they name; every part takes the
//! factors above it, narrowed or replaced; no two factors of a part set the same setting.

use super::error::StudyTextError;
use super::factor::{Factor, SettingAssignment, over, settings};
use super::fields::Fields;
use super::measure;
use super::source::SourceText;
use super::tree::TomlEntry;
use crate::study::setting::Setting;
use crate::study::{Extent, Measuring};

/// The name of the part that the top factors make.
pub(in crate::study) const MAIN: &str = "main";
/// A study may have so many parts.
const PARTS_MAX: usize = 64;

/// Keys of `[quick]` and `[full]`.
const OVERLAY_KEYS: &[&str] = &["base", "factors", "exclude", "part", "measure"];
const PART_KEYS: &[&str] = &["name", "base", "factors"];

/// One sub-design.
#[derive(Clone, Debug)]
pub(in crate::study) struct PartDesign {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: usize,
    /// Settings that do not vary in it, over those of the study.
    pub base: Vec<SettingAssignment>,
    /// All its factors.
    pub factors: Vec<Factor>,
}

/// A study for one extent, before it is laid out.
#[derive(Clone, Debug)]
pub(in crate::study) struct Design {
    /// Settings that do not vary.
    pub base: Vec<SettingAssignment>,
    /// The parts, the main one first.
    pub parts: Vec<PartDesign>,
    /// How points are measured.
    pub measuring: Measuring,
}

impl Design {
    /// Everything that it sets, wherever.
    pub fn assigned(&self) -> impl Iterator<Item = &SettingAssignment> {
        let factors = self.parts.iter().flat_map(|part| &part.factors);
        let levels = factors.flat_map(|factor| &factor.levels);
        let bases = self.parts.iter().flat_map(|part| &part.base);
        self.base.iter().chain(bases).chain(levels.flat_map(|level| &level.sets))
    }
}

/// The tables of one extent: those of the top and those that stand over them.
pub(in crate::study) struct Sections<'a> {
    source: &'a SourceText,
    top: &'a Fields<'a>,
    over: Option<Fields<'a>>,
    over_name: &'static str,
}

impl<'a> Sections<'a> {
    /// The tables for an extent.
    ///
    /// # Errors
    /// An unknown key in `[quick]` or `[full]`.
    pub fn open(
        source: &'a SourceText,
        top: &'a Fields<'a>,
        extent: Extent,
    ) -> Result<Self, StudyTextError> {
        let (key, name) = match extent {
            Extent::Quick => ("quick", "[quick]"),
            Extent::Full => ("full", "[full]"),
        };
        let over = match top.get(key) {
            Some(_) => Some(Fields::open(source, name, top.table(key)?, OVERLAY_KEYS)?),
            None => None,
        };
        Ok(Self { source, top, over, over_name: key })
    }

    fn table(
        &self,
        key: &str,
    ) -> Result<(&'a [TomlEntry], &'a [TomlEntry], String), StudyTextError> {
        let over = match &self.over {
            Some(over) => over.table(key)?,
            None => &[],
        };
        Ok((self.top.table(key)?, over, format!("[{}.{key}]", self.over_name)))
    }

    /// Lists of tables are joined: first those of the top.
    pub fn tables(&self, key: &str) -> Result<Vec<(usize, &'a [TomlEntry])>, StudyTextError> {
        let mut all = self.top.tables(key)?;
        if let Some(over) = &self.over {
            all.extend(over.tables(key)?);
        }
        Ok(all)
    }

    /// The design of this extent.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn design(&self) -> Result<Design, StudyTextError> {
        let source = self.source;
        let (top, over_it, name) = self.table("base")?;
        let base = merged(settings(source, "[base]", top)?, settings(source, &name, over_it)?);
        let (top, over_it, name) = self.table("factors")?;
        let factors = over(source, "[factors]", top, &[])?;
        let factors = over(source, &name, over_it, &factors)?;
        check_not_both(source, &base, &factors, "[base]")?;
        let parts = self.parts(&factors)?;
        let mut measuring = Measuring::default();
        let (top, over_it, name) = self.table("measure")?;
        measure::read(source, "[measure]", top, &mut measuring)?;
        measure::read(source, &name, over_it, &mut measuring)?;
        Ok(Design { base, parts, measuring })
    }

    fn parts(&self, factors: &[Factor]) -> Result<Vec<PartDesign>, StudyTextError> {
        let source = self.source;
        let at = factors.first().map_or(0, |factor| factor.at);
        let main =
            PartDesign { name: MAIN.to_owned(), at, base: Vec::new(), factors: factors.to_vec() };
        let mut parts = if factors.is_empty() { Vec::new() } else { vec![main] };
        let top = self.top.tables("part")?.len();
        for (number, (at, entries)) in self.tables("part")?.into_iter().enumerate() {
            let is_over = number >= top;
            let fields = Fields::open(source, "[[part]]", entries, PART_KEYS)?;
            let name = fields.needed("name", at, "give the part a name: name = \"file_axis\"")?;
            let place = format!("part {}", name.text);
            let there = parts.iter().position(|part| part.name == name.text);
            if name.text == MAIN || (there.is_some() && !is_over) {
                let fix = "give it another name";
                return Err(source.error(name.at, "[[part]]", &name.text, "is taken", fix));
            }
            let under = there.map_or(factors, |there| &parts[there].factors).to_vec();
            let under_base = there.map_or_else(Vec::new, |there| parts[there].base.clone());
            let base = merged(under_base, settings(source, &place, fields.table("base")?)?);
            let factors = over(source, &place, fields.table("factors")?, &under)?;
            check_not_both(source, &base, &factors, &place)?;
            let part = PartDesign { name: name.text, at, base, factors };
            match there {
                Some(there) => parts[there] = part,
                None => parts.push(part),
            }
        }
        self.check_parts(&parts)?;
        Ok(parts)
    }

    fn check_parts(&self, parts: &[PartDesign]) -> Result<(), StudyTextError> {
        let source = self.source;
        if parts.iter().all(|part| part.factors.is_empty()) {
            let fix = "write [factors] with at least one, such as workers = [1, 4, 16]";
            return Err(source.error(0, "[factors]", "", "nothing is varied", fix));
        }
        if parts.len() > PARTS_MAX {
            let (found, fix) = (parts.len().to_string(), format!("use {PARTS_MAX} at most"));
            return Err(source.error(parts[PARTS_MAX].at, "part", &found, "too many parts", fix));
        }
        parts.iter().try_for_each(|part| check_apart(source, part))
    }
}

fn merged(
    mut under: Vec<SettingAssignment>,
    over: Vec<SettingAssignment>,
) -> Vec<SettingAssignment> {
    for set in over {
        match under.iter_mut().find(|other| other.setting == set.setting) {
            Some(there) => *there = set,
            None => under.push(set),
        }
    }
    under
}

/// A setting that a factor varies has no place among those that do not vary.
fn check_not_both(
    source: &SourceText,
    base: &[SettingAssignment],
    factors: &[Factor],
    place: &str,
) -> Result<(), StudyTextError> {
    let varied =
        |set: &&SettingAssignment| factors.iter().any(|factor| factor.setting == Some(set.setting));
    match base.iter().find(varied) {
        None => Ok(()),
        Some(set) => Err(source.error(
            set.at.unwrap_or(0),
            place,
            &set.setting.name,
            "is fixed here and varied by a factor",
            "keep one of the two",
        )),
    }
}

fn check_apart(source: &SourceText, part: &PartDesign) -> Result<(), StudyTextError> {
    for (number, factor) in part.factors.iter().enumerate() {
        for other in &part.factors[..number] {
            if let Some(id) = factor.sets().intersection(&other.sets()).next() {
                return Err(source.error(
                    factor.at,
                    format!("factor {}", factor.name),
                    &Setting::of(*id).name,
                    format!("is set by factor {} too", other.name),
                    "let one of them set it",
                ));
            }
        }
    }
    Ok(())
}
