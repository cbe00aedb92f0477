//! Combinations that are left out.
//!
//! Invariant: a rule names factors and levels that exist somewhere in the study, so that a slip of
//! the pen is never a rule without effect.

use std::collections::{BTreeMap, BTreeSet};

use super::design::Design;
use super::error::StudyTextError;
use super::factor::{Factor, Level};
use super::fields::{Spot, spot};
use super::source::SourceText;
use super::tree::{TomlEntry, Value};
use crate::study::nearest::nearest;

/// A study may have so many rules.
const RULES_MAX: usize = 256;

/// A combination is left out if all the named factors are at one of the named levels.
#[derive(Clone, Debug)]
pub(in crate::study) struct Rule {
    /// Factors with their levels.
    fields: Vec<(String, Vec<String>)>,
}

impl Rule {
    /// Whether a combination is left out. A factor that it does not have matches nothing.
    pub fn matches(&self, factors: &[Factor], chosen: &[&Level]) -> bool {
        self.fields.iter().all(|(name, labels)| {
            let at = factors.iter().position(|factor| factor.name == *name);
            at.is_some_and(|at| labels.contains(&chosen[at].label))
        })
    }

    /// Whether anything of these factors is to be left out.
    pub fn applies_to(&self, factors: &[Factor]) -> bool {
        self.fields.iter().all(|(name, labels)| {
            let factor = factors.iter().find(|factor| factor.name == *name);
            factor.is_some_and(|of| of.levels.iter().any(|level| labels.contains(&level.label)))
        })
    }

    /// The rule in words.
    pub fn words(&self) -> String {
        let field = |(name, labels): &(String, Vec<String>)| format!("{name} {}", labels.join("/"));
        self.fields.iter().map(field).collect::<Vec<_>>().join(" with ")
    }
}

/// Every factor of a study with every level it has in any extent and part.
pub(in crate::study) struct Vocabulary<'a> {
    factors: BTreeMap<&'a str, (&'a Factor, BTreeSet<&'a str>)>,
}

impl<'a> Vocabulary<'a> {
    /// All that the designs name.
    pub fn of(designs: &[&'a Design]) -> Self {
        let mut factors: BTreeMap<&str, (&Factor, BTreeSet<&str>)> = BTreeMap::new();
        let parts = designs.iter().flat_map(|design| &design.parts);
        for factor in parts.flat_map(|part| &part.factors) {
            let entry = factors.entry(&factor.name).or_insert_with(|| (factor, BTreeSet::new()));
            entry.1.extend(factor.levels.iter().map(|level| &*level.label));
        }
        Self { factors }
    }

    /// The factor with this name.
    ///
    /// # Errors
    /// When the study has none.
    pub fn factor(
        &self,
        source: &SourceText,
        thing: &str,
        name: &str,
        at: usize,
    ) -> Result<&'a Factor, StudyTextError> {
        let setting = crate::study::setting::Setting::named(name);
        let canonical = setting.as_ref().map_or(name, |setting| &*setting.name);
        if let Some((factor, _)) = self.factors.get(canonical) {
            return Ok(factor);
        }
        let fix = match nearest(name, self.factors.keys().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the factors are {}", self.names().join(", ")),
        };
        Err(source.error(at, thing, name, "the study has no such factor", fix))
    }

    /// The level of a factor that a text means.
    ///
    /// # Errors
    /// When the factor has none such anywhere.
    pub fn level(
        &self,
        source: &SourceText,
        thing: &str,
        factor: &Factor,
        spot: &Spot,
    ) -> Result<String, StudyTextError> {
        let label = factor.canonical(&spot.text);
        let known = self.factors.get(&*factor.name).map(|(_, labels)| labels);
        let Some(labels) = known.filter(|labels| !labels.contains(&*label)) else {
            return Ok(label);
        };
        let fix = match nearest(&label, labels.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let labels: Vec<&str> = labels.iter().copied().collect();
                format!("its levels are {}", labels.join(", "))
            }
        };
        let thing = format!("{thing} {}", factor.name);
        Err(source.error(spot.at, thing, &spot.text, "the factor has no such level", fix))
    }

    fn names(&self) -> Vec<&'a str> {
        self.factors.keys().copied().collect()
    }
}

/// The rules of a study.
///
/// # Errors
/// An unknown factor or level, or a rule that names nothing.
pub(in crate::study) fn rules(
    source: &SourceText,
    tables: &[(usize, &[TomlEntry])],
    vocabulary: &Vocabulary<'_>,
) -> Result<Vec<Rule>, StudyTextError> {
    if let Some((at, _)) = tables.get(RULES_MAX) {
        let (found, fix) = (tables.len().to_string(), format!("use {RULES_MAX} at most"));
        return Err(source.error(*at, "[[exclude]]", &found, "too many rules", fix));
    }
    tables.iter().map(|(at, entries)| rule(source, *at, entries, vocabulary)).collect()
}

fn rule(
    source: &SourceText,
    at: usize,
    entries: &[TomlEntry],
    vocabulary: &Vocabulary<'_>,
) -> Result<Rule, StudyTextError> {
    const THING: &str = "[[exclude]]";
    if entries.is_empty() {
        let fix = "name at least one factor with its level";
        return Err(source.error(at, THING, "", "names nothing", fix));
    }
    let mut fields = Vec::new();
    for entry in entries {
        let factor = vocabulary.factor(source, THING, &entry.key, entry.at)?;
        let nodes = match &entry.node.value {
            Value::Array(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        if nodes.is_empty() {
            let fix = "name at least one level";
            return Err(source.error(entry.node.at, THING, &entry.key, "has no levels", fix));
        }
        let mut labels = Vec::new();
        for node in nodes {
            let spot = spot(source, &format!("{THING} {}", entry.key), node)?;
            labels.push(vocabulary.level(source, THING, factor, &spot)?);
        }
        fields.push((factor.name.clone(), labels));
    }
    Ok(Rule { fields })
}
