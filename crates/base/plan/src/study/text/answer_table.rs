//! The tables `[[answer]]`: what the question comes down to, with a sentence for each outcome.

use super::error::StudyTextError;
use super::fields::Fields;
use super::then_table::{LevelReader, metric, take};
use super::tree::TomlEntry;
use crate::study::answer::{
    Answer, AnswerFrom, Contrast, ContrastEffect, PLACEHOLDERS, PLACEHOLDERS_OF_DIFFERENCE, named,
};
use crate::study::{LevelAt, Take, ThenMetric};

const THING: &str = "[[answer]]";
/// Its keys.
pub(in crate::study) const KEYS: &[&str] =
    &["asks", "findings", "metric", "at", "of", "over", "take", "more", "less", "same", "effect"];
const EFFECT: &str = "[[answer.effect]]";
const EFFECT_KEYS: &[&str] = &["name", "to"];
/// More effects than these cannot be distinguished in one picture.
const EFFECTS_MAX: usize = 8;
/// Answers of a study at most: more would push the rest of the page out of sight.
const ANSWERS_MAX: usize = 12;

/// The answers of a study.
///
/// # Errors
/// The first thing that is wrong; a contrast that no points of the full extent make is.
pub(in crate::study) fn read(
    levels: &LevelReader<'_>,
    tables: &[(usize, &[TomlEntry])],
) -> Result<Vec<Answer>, StudyTextError> {
    if let Some((at, _)) = tables.get(ANSWERS_MAX) {
        let (found, fix) = (tables.len().to_string(), format!("use {ANSWERS_MAX} at most"));
        return Err(levels.source.error(*at, THING, &found, "too many answers", fix));
    }
    tables.iter().map(|(at, entries)| answer(levels, *at, entries)).collect()
}

fn answer(
    levels: &LevelReader<'_>,
    at: usize,
    entries: &[TomlEntry],
) -> Result<Answer, StudyTextError> {
    let fields = Fields::open(levels.source, THING, entries, KEYS)?;
    let fix =
        "say what it decides, to be read behind \"it cannot be said\": asks = \"whether ...\"";
    let asks = fields.needed("asks", at, fix)?.text;
    let findings: Vec<String> =
        fields.texts("findings")?.into_iter().map(|spot| spot.text).collect();
    let from = if findings.is_empty() {
        AnswerFrom::Contrast(contrast(levels, &fields, at, &asks)?)
    } else if let Some(other) =
        entries.iter().find(|one| !["asks", "findings"].contains(&&*one.key))
    {
        let why = "does not go with findings";
        let fix = "write two answers, or leave one of them away";
        return Err(levels.source.error(other.at, THING, &other.key, why, fix));
    } else {
        AnswerFrom::Findings(findings)
    };
    Ok(Answer { asks, from })
}

fn contrast(
    levels: &LevelReader<'_>,
    fields: &Fields<'_>,
    at: usize,
    asks: &str,
) -> Result<Contrast, StudyTextError> {
    let side = |key: &str| -> Result<Vec<LevelAt>, StudyTextError> {
        let found = levels.levels(&format!("{THING} {key}"), fields.table(key)?)?;
        if found.is_empty() && key != "at" {
            let fix = format!("name levels: {key} = {{ filesystem = \"ext4\" }}");
            return Err(levels.source.error(at, format!("{THING} {key}"), asks, "is missing", fix));
        }
        Ok(found)
    };
    let metric = fields.parsed("metric", metric)?.unwrap_or_default();
    let sentence = |key: &str| sentence(levels, fields, key, at, metric);
    let found = Contrast {
        metric,
        at: side("at")?,
        of: side("of")?,
        over: side("over")?,
        take: fields.parsed("take", take)?.unwrap_or_default(),
        more: sentence("more")?,
        less: sentence("less")?,
        same: sentence("same")?,
        effects: effects(levels, fields)?,
    };
    check_effects(levels, &found, at)?;
    match unpaired(&found, levels) {
        None => Ok(found),
        Some((why, fix)) => Err(levels.source.error(at, THING, asks, why, fix)),
    }
}

fn effects(
    levels: &LevelReader<'_>,
    fields: &Fields<'_>,
) -> Result<Vec<ContrastEffect>, StudyTextError> {
    let effect = |(at, entries): &(usize, &[TomlEntry])| {
        let own = Fields::open(levels.source, EFFECT, entries, EFFECT_KEYS)?;
        let name = own.needed("name", *at, "say what is changed: name = \"the syncs\"")?.text;
        let to = levels.levels(&format!("{EFFECT} to"), own.table("to")?)?;
        if to.is_empty() {
            let fix = "name the levels with this change alone: to = { method = \"direct\" }";
            return Err(levels.source.error(*at, format!("{EFFECT} to"), &name, "is missing", fix));
        }
        Ok(ContrastEffect { name, to })
    };
    fields.tables("effect")?.iter().map(effect).collect()
}

/// Every effect has points of its own, and the whole is more than one of them.
fn check_effects(
    levels: &LevelReader<'_>,
    contrast: &Contrast,
    at: usize,
) -> Result<(), StudyTextError> {
    let Some(first) = contrast.effects.first() else { return Ok(()) };
    let refuse =
        |found: &str, why: &str, fix: &str| Err(levels.source.error(at, EFFECT, found, why, fix));
    if contrast.metric.is_by_difference() {
        let why = format!("{} may be 0, so that nothing multiplies to it", contrast.metric.name());
        return refuse(&first.name, &why, "leave the effects away, or compare another metric");
    }
    let count = contrast.effects.len();
    if count > EFFECTS_MAX {
        let fix = format!("use {EFFECTS_MAX} at most");
        return refuse(&count.to_string(), "too many effects", &fix);
    }
    if count == 1 {
        let why = "a single effect does not make up a whole";
        return refuse(&first.name, why, "name each change that `of` makes, or none");
    }
    if contrast.take != Take::Only {
        let why = "effects go with take = \"only\": they need the same points below the line";
        return refuse(&first.name, why, "leave take away, and name levels in at");
    }
    for (name, effect) in contrast.of_effects() {
        if effect.of == contrast.of {
            let fix = "name levels with one change alone";
            return refuse(name, "comes to `of` itself", fix);
        }
        if let Some((why, fix)) = unpaired(&effect, levels) {
            return refuse(name, &why, fix);
        }
    }
    Ok(())
}

/// Why no points of the full extent can be set against each other.
fn unpaired(contrast: &Contrast, levels: &LevelReader<'_>) -> Option<(String, &'static str)> {
    let lacking = "name levels that points of the full extent have on both sides";
    if contrast.take != Take::Only {
        let is_empty = contrast.sides(levels.cells).iter().any(Vec::is_empty);
        return is_empty.then(|| ("one side has no points".to_owned(), lacking));
    }
    let found = contrast.counterparts(levels.cells);
    match found.iter().map(|(_, below)| below.len()).max() {
        None => Some(("no two points differ in these levels alone".to_owned(), lacking)),
        Some(1) => None,
        Some(many) => Some((
            format!("{many} points below the line stand against one above it"),
            "name more levels in at, or say take = \"max\"",
        )),
    }
}

fn sentence(
    levels: &LevelReader<'_>,
    fields: &Fields<'_>,
    key: &str,
    at: usize,
    metric: ThenMetric,
) -> Result<String, StudyTextError> {
    let spot = fields.needed(key, at, &format!("write a sentence: {key} = \"...\""))?;
    let (known, why): (&[&str], _) = match metric.is_by_difference() {
        true => {
            let why =
                format!("is no figure of {}, which may be 0: no ratio is taken", metric.name());
            (&PLACEHOLDERS_OF_DIFFERENCE, why)
        }
        false => (&PLACEHOLDERS, "is no figure of a contrast".to_owned()),
    };
    if let Some(odd) = named(&spot.text).find(|name| !known.contains(name)) {
        let names: Vec<String> = known.iter().map(|name| format!("{{{name}}}")).collect();
        let fix = format!("use {}", names.join(", "));
        let thing = format!("{THING} {key}");
        return Err(levels.source.error(spot.at, thing, odd, why, fix));
    }
    Ok(spot.text)
}
