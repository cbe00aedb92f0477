//! A study as its text describes it, ready to be laid out.

use std::time::Duration;

use super::layout::CellLayout;
use super::layout::asked::ExtentCells;
use super::setting::{SettingId, together, wrong_with};
use super::text::answer_table;
use super::text::design::{Design, Sections};
use super::text::error::StudyTextError;
use super::text::exclude::{Rule, Vocabulary, rules};
use super::text::fields::Fields;
use super::text::measure;
use super::text::source::SourceText;
use super::text::then_table::LevelReader;
use super::text::tree;
use super::{Answer, Extent, FactorLevels, Measuring, StudyPlan, Then};

const KEYS: &[&str] = &[
    "name", "title", "question", "base", "factors", "exclude", "part", "measure", "quick", "full",
    "answer", "then",
];
/// Longest name of a study, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Options of the command line that override the text's `[measure]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuringOverrides {
    /// Bound on the whole.
    pub budget: Option<Duration>,
    /// Bound on one measured window.
    pub point_time: Option<Duration>,
    /// Relative half-width of the 95 % interval at which a point is precise enough.
    pub precision: Option<f64>,
    /// Replicates of every point.
    pub replicates: Option<u32>,
    /// Seed of the order and of the requests.
    pub seed: Option<u64>,
}

/// A sub-design for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOutline {
    /// Its name; `main` for the part made of the top factors.
    pub name: String,
    /// Its factors with their levels.
    pub factors: Vec<FactorLevels>,
    /// Points that it has, with those that it shares with other parts.
    pub points: usize,
}

/// A checked study.
#[derive(Clone, Debug)]
pub struct StudySpec {
    /// Its name: `fusion-io`.
    pub name: String,
    /// One line for a reader.
    pub title: String,
    /// What it wants to know.
    pub question: String,
    source: SourceText,
    quick: DesignWithRules,
    full: DesignWithRules,
    answers: Vec<Answer>,
    then: Option<Then>,
}

/// A design with its rules.
#[derive(Clone, Debug)]
struct DesignWithRules {
    design: Design,
    rules: Vec<Rule>,
}

impl StudySpec {
    /// Reads and checks a text; both extents are laid out, so that a study which was read can be
    /// run. `file` is what errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(text: &str, file: &str) -> Result<StudySpec, StudyTextError> {
        let source = SourceText { file: file.to_owned(), text: text.to_owned() };
        let entries = tree::parse(&source)?;
        let top = Fields::open(&source, "", &entries, KEYS)?;
        let name = name(&source, &top)?;
        let title = top.needed("title", 0, "say in one line what it is: title = \"...\"")?.text;
        let question = top.text("question")?.map(|spot| spot.text).unwrap_or_default();
        let (quick, full) = extents(&source, &top)?;
        let (answers, then) = (Vec::new(), None);
        let mut spec =
            Self { source: source.clone(), name, title, question, quick, full, answers, then };
        let quick = spec.plan(Extent::Quick, None, &MeasuringOverrides::default())?;
        let full = spec.plan(Extent::Full, None, &MeasuringOverrides::default())?;
        (spec.answers, spec.then) = spec.said_of_points(&top, &full)?;
        spec.check_databases(&[&quick, &full])?;
        Ok(spec)
    }

    /// The text's statements about points: the answers to its question, and the figures of an
    /// original.
    fn said_of_points(
        &self,
        top: &Fields<'_>,
        full: &StudyPlan,
    ) -> Result<(Vec<Answer>, Option<Then>), StudyTextError> {
        let vocabulary = Vocabulary::of(&[&self.full.design, &self.quick.design]);
        let reader =
            LevelReader { source: &self.source, vocabulary: &vocabulary, cells: &full.cells };
        let then = match top.get("then") {
            Some(node) => Some(reader.then(node.at, top.table("then")?)?),
            None => None,
        };
        Ok((answer_table::read(&reader, &top.tables("answer")?)?, then))
    }

    fn extended(&self, extent: Extent) -> &DesignWithRules {
        match extent {
            Extent::Quick => &self.quick,
            Extent::Full => &self.full,
        }
    }

    /// The study laid out in an extent, all parts or only some.
    ///
    /// # Errors
    /// A part that it does not have, or an override that cannot be used.
    pub fn plan(
        &self,
        extent: Extent,
        parts: Option<&[String]>,
        overrides: &MeasuringOverrides,
    ) -> Result<StudyPlan, StudyTextError> {
        let DesignWithRules { design, rules } = self.extended(extent);
        let measuring = overrides.over(&design.measuring)?;
        for name in parts.unwrap_or_default() {
            self.check_part(design, name)?;
        }
        let layout = CellLayout::new(&self.source, design, rules, &measuring);
        let wanted = |name: &str| parts.is_none_or(|parts| parts.iter().any(|part| part == name));
        let asked = ExtentCells::of(&layout, wanted, [&self.quick.design, &self.full.design])?;
        let answers = asked.answers(&self.answers);
        let then = self.then.as_ref().map(|then| asked.then(then));
        let cells = asked.cells;
        Ok(StudyPlan {
            name: self.name.clone(),
            title: self.title.clone(),
            question: self.question.clone(),
            extent,
            factors: layout.factors(&cells),
            cells,
            measuring,
            answers,
            then,
        })
    }

    fn check_part(&self, design: &Design, name: &str) -> Result<(), StudyTextError> {
        if design.parts.iter().any(|part| part.name == name) {
            return Ok(());
        }
        let names: Vec<&str> = design.parts.iter().map(|part| part.name.as_str()).collect();
        let why = format!("study {} has no such part in this extent", self.name);
        let fix = format!("its parts are {}", names.join(", "));
        Err(StudyTextError::said("--part", name, why, fix))
    }

    /// The parts of an extent.
    pub fn parts(&self, extent: Extent) -> Vec<PartOutline> {
        let DesignWithRules { design, rules } = self.extended(extent);
        let layout = CellLayout::new(&self.source, design, rules, &design.measuring);
        let outline = |name: &String| {
            // The text was laid out when it was read.
            let cells = layout.cells(|other| other == name).unwrap_or_default();
            let factors = layout.factors(&cells);
            PartOutline { name: name.clone(), factors, points: cells.len() }
        };
        design.parts.iter().map(|part| outline(&part.name)).collect()
    }

    /// The settings of databases: each by itself, then those of each point together.
    fn check_databases(&self, plans: &[&StudyPlan]) -> Result<(), StudyTextError> {
        let designs = [&self.quick.design, &self.full.design].into_iter();
        for set in designs.flat_map(Design::assigned) {
            let (SettingId::Database(name), Some(at)) = (set.setting.id, set.at) else { continue };
            if let Some((why, fix)) = wrong_with(&name, &set.label) {
                return Err(self.source.error(at, &*name, &set.label, why, fix));
            }
        }
        for cell in plans.iter().flat_map(|plan| &plan.cells) {
            for (load, which) in [(&cell.transactions, ""), (&cell.second, ", second engine")] {
                let Some(Err(error)) = load.as_ref().map(together) else { continue };
                let point = format!("study {}, point {}{which}", self.name, cell.id);
                let said = error.to_string();
                let (why, fix) = said.rsplit_once("; ").unwrap_or((&said, "see docs/settings.md"));
                return Err(StudyTextError::said(point, "", why, fix));
            }
        }
        Ok(())
    }

    /// What an extent leaves out, one line for each rule that leaves anything out of it.
    pub fn exclusions(&self, extent: Extent) -> Vec<String> {
        let DesignWithRules { design, rules } = self.extended(extent);
        let applies = |rule: &&Rule| design.parts.iter().any(|of| rule.applies_to(&of.factors));
        rules.iter().filter(applies).map(Rule::words).collect()
    }
}

fn name(source: &SourceText, top: &Fields<'_>) -> Result<String, StudyTextError> {
    let fix = "name the study: name = \"my-study\"";
    let name = top.needed("name", 0, fix)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.text.len() <= NAME_CHARS_MAX && name.text.chars().all(fits) {
        return Ok(name.text);
    }
    let fix = format!("use up to {NAME_CHARS_MAX} letters, digits, - and _");
    Err(source.error(name.at, "name", &name.text, "is no name for files and directories", fix))
}

fn extents(
    source: &SourceText,
    top: &Fields<'_>,
) -> Result<(DesignWithRules, DesignWithRules), StudyTextError> {
    let quick = Sections::open(source, top, Extent::Quick)?;
    let full = Sections::open(source, top, Extent::Full)?;
    let (quick_design, full_design) = (quick.design()?, full.design()?);
    let vocabulary = Vocabulary::of(&[&quick_design, &full_design]);
    let quick_rules = rules(source, &quick.tables("exclude")?, &vocabulary)?;
    let full_rules = rules(source, &full.tables("exclude")?, &vocabulary)?;
    Ok((
        DesignWithRules { design: quick_design, rules: quick_rules },
        DesignWithRules { design: full_design, rules: full_rules },
    ))
}

impl MeasuringOverrides {
    fn over(&self, under: &Measuring) -> Result<Measuring, StudyTextError> {
        let mut measuring = under.clone();
        let refuse = |option: &str, found: String, fix: &str| {
            Err(StudyTextError::said(option, &found, "out of range", fix))
        };
        if let Some(budget) = self.budget {
            if !measure::budget_fits(budget) {
                return refuse("--budget", format!("{budget:?}"), "use 1s to 365d");
            }
            measuring.budget = Some(budget);
        }
        if let Some(point_time) = self.point_time {
            if !measure::point_time_fits(point_time) {
                return refuse("--point-time", format!("{point_time:?}"), "use 50ms to 1d");
            }
            measuring.point_time = point_time;
        }
        if let Some(precision) = self.precision {
            if !measure::precision_fits(precision) {
                return refuse("--precision", precision.to_string(), "use for example 5%");
            }
            measuring.precision = precision;
        }
        if let Some(replicates) = self.replicates {
            if !(1..=measure::REPLICATES_MAX).contains(&replicates) {
                return refuse("--replicates", replicates.to_string(), "use 1 to 1000");
            }
            measuring.replicates = replicates;
            measuring.replicates_max = measuring.replicates_max.max(replicates);
        }
        measuring.seed = self.seed.unwrap_or(measuring.seed);
        Ok(measuring)
    }
}
