//! A study: the answer, then and now, the matrix, what each factor does, what happens along the
//! axes, and every point closely.
//!
//! Invariant: what is large (profiles, latencies of all points) is drawn or unfolded only when a
//! reader of the page requests it.

mod closely;
mod effects;
mod layers;
mod levels;
mod matrix;
mod picture;
mod points;
mod stability;
mod then;

use iostrata_plan::study::Extent;
use iostrata_run::{AxisKind, ChangeRecord, RunResult, StudyDocument, StudyEffect};
use iostrata_stats::{Verdict, Verdicts};

use super::common::{INTERVAL, cautions, facts, findings, host, replicate_verdicts, unavailable};
use crate::report::cell::{Span, Text, Tone, text};
use crate::report::document::{Block, Blocks, Card, On, Report, Style, Table, all_verdicts};
use crate::report::view::Head;
use crate::report::{RunView, words};

use levels::{factor_words, is_workload, level_words};
use matrix::all_panels;
pub(super) use picture::picture;

/// Changes that are listed openly.
const CHANGES_OPEN: usize = 12;

pub(super) fn report(view: &RunView<'_>, on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Study(study)) = view.result else { return None };
    let once = shared_once(study);
    // Markdown keeps every caution of every figure.
    let study = if on == On::MARKDOWN { study.as_ref() } else { &once };
    let mut report = Report::new(&study.headline, summary(&once));
    if study.headline.is_empty() {
        report.headline = vec![study.title.clone()];
        report.question = Some(study.question.as_str().into());
    } else {
        report.question =
            Some(Text::default().strong(format!("{}. ", study.title)).plain(&study.question));
    }
    report.strip = vec![largest(study), along(study), how_sure(study)];
    let sets = all_panels(study);
    report.add("answer", "The answer in pictures", picture::section(study));
    report.add("stability", "Stability and speed", stability::section(study));
    report.add("response", "Response time over load", then::response(study));
    report.add("then", "Then and now", then::section(study));
    report.add("answers", "What the answers rest on", effects::answers(study));
    report.add("effects", "What each factor does", effects::section(study));
    let last = sets.iter().rposition(|set| !matrix::is_given(study, set));
    for (n, set) in sets.iter().enumerate() {
        let id = if n == 0 { "matrix".to_owned() } else { format!("matrix-{}", n + 1) };
        report.add(&id, &matrix::name(study, set), matrix::section(study, n, set, last == Some(n)));
    }
    report.add("axes", "Along the axes", effects::axes_section(study));
    if !study.findings.is_empty() {
        report.add("findings", "Findings", findings(&study.findings, study.interrupted, None));
    }
    report.add("processors", "Where the processors were", layers::processors(study, &sets));
    report.add("waits", "What threads waited for", layers::waits(study));
    report.add("path", "Where the time goes", layers::path(study, &sets));
    report.points = closely::data(study);
    if report.points.is_some() {
        report.add("point", "Inside a point", one_point());
    }
    if study.points.iter().filter(|point| closely::has_evidence(point)).count() > 1 {
        report.add("beside", "Two points side by side", two_points());
    }
    report.add("points", "Every point", points::section(study));
    report.add("latencies", "Latencies", points::latencies(study));
    report.add("changes", "What was changed on this system", changes(study));
    report.add("unavailable", "Not measured here", unavailable(view, &study.unavailable));
    report.add("host", "The machine", host(view, Some(&study.host)));
    report.add("method", "How it was measured", method(view, study));
    report.kept = study.report.as_ref().map(|path| Text::default().strong("Report: ").plain(path));
    Some((view.head(Some(&study.host), Some(&study.study)), report))
}

/// A study whose figures carry only cautions that the whole run does not: a mark on every figure
/// marks none. What most points share is stated once, for the whole run.
fn shared_once(study: &StudyDocument) -> StudyDocument {
    let mut study = study.clone();
    let shared = study.verdicts.clone();
    let own = |verdicts: &mut Verdicts| {
        *verdicts = verdicts.iter().filter(|verdict| !shared.has(*verdict)).collect();
    };
    study.points.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.effects.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.answers.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.then.iter_mut().for_each(|one| own(&mut one.verdicts));
    study.queue_changes.iter_mut().for_each(|one| own(&mut one.verdicts));
    study
}

/// `130 points over file system, workers, 390 replicates, full, in 48 min; ...`
fn summary(study: &StudyDocument) -> Text {
    let names = study.factors.iter().filter(|factor| factor.levels.len() > 1);
    let names: Vec<String> = names.map(|one| factor_words(&one.factor).to_lowercase()).collect();
    let over = if names.is_empty() { "no factor".to_owned() } else { names.join(", ") };
    let replicates: u32 = study.points.iter().map(|point| point.replicates).sum();
    let doubtful = study.points.iter().filter(|point| !point.verdicts.is_sound()).count();
    let seconds = |s: f64| words::value(s, "s");
    let mut said = match study.interrupted {
        true => "Stopped before its end. ".to_owned(),
        false => String::new(),
    };
    let extent = match study.extent {
        Extent::Quick => "quick",
        Extent::Full => "full",
    };
    if study.points.is_empty() {
        said += &format!("No point was measured, {extent}, in {}.", seconds(study.duration_s));
        return said.into();
    }
    said += &format!(
        "{} over {over}, {}, {extent}, in {}. {} of them are within \u{b1} {}.",
        words::counted(study.points.len(), "point"),
        words::counted(replicates as usize, "replicate"),
        seconds(study.duration_s),
        words::value(study.precise_pct, "percent"),
        words::value(study.precision * 100.0, "percent"),
    );
    if doubtful > 0 {
        said += &format!(" {doubtful} with a caution of their own.");
    }
    if study.replicates_dropped > 0 {
        let dropped = words::counted(study.replicates_dropped as usize, "replicate");
        let were = if study.replicates_dropped == 1 { "was" } else { "were" };
        said += &format!(" {dropped} {were} dropped for the budget.");
    }
    let written = words::value(study.bytes_written as f64, "bytes");
    let measured_s: f64 = study.points.iter().map(|point| point.measured_s).sum();
    said += &format!(
        " {written} written. Intervals are 95 %. {}",
        words::intervals_hold_for(measured_s)
    );
    if !study.verdicts.is_sound() {
        let why: Vec<&str> = study.verdicts.iter().map(Verdict::explain).collect();
        said += &format!(" Of most points: {}.", why.join("; "));
    }
    said.into()
}

fn link(to: &str, text: &str) -> Span {
    Span::Link(to.to_owned(), text.to_owned())
}

fn largest(study: &StudyDocument) -> Card {
    let size = |effect: &StudyEffect| effect.ratio.ln().abs();
    let measured = study.effects.iter().filter(|effect| effects::is_told(effect));
    // The load on the system matters of course; what the system does with it is the question.
    let most = measured.max_by(|a, b| {
        let system = |effect: &StudyEffect| !is_workload(&effect.factor);
        system(a).cmp(&system(b)).then(size(a).total_cmp(&size(b)))
    });
    let (big, text) = match most {
        Some(effect) => {
            let level = |level: &str| level_words(&effect.factor, level);
            let (big, range) = match effects::is_range(effect) {
                true => {
                    let ends = [effect.ratio_min, effect.ratio_max].map(words::times);
                    (ends.join(" to "), Some(" at single points".to_owned()))
                }
                false => {
                    let range = |ci95| format!(", 95 % {}", words::times_range(ci95, effect.ratio));
                    (words::times(effect.ratio), effect.ratio_ci95.map(range))
                }
            };
            let said = format!(
                "{} \u{2192} {}{}, n = {}. ",
                level(&effect.from),
                level(&effect.to),
                range.unwrap_or_default(),
                effect.ratio_n
            );
            (big, Text::from(said).with(link("effects", "All effects")))
        }
        None if study.effects.is_empty() => (
            "No effect was taken".to_owned(),
            "No two points differ in one factor only, or too few were measured.".into(),
        ),
        None if !study.interactions.is_empty() => (
            "It depends".to_owned(),
            Text::from("No factor makes the same difference everywhere. What it depends on is stated with ")
                .with(link("effects", "each effect"))
                .plain("."),
        ),
        None if study.effects.iter().any(effects::is_undecided) => (
            "Undecided".to_owned(),
            Text::from(
                "The replicates differ too much to tell one factor from none. How large a \
                 difference could be is stated with ",
            )
            .with(link("effects", "each effect"))
            .plain("."),
        ),
        None => (
            "No measurable difference".to_owned(),
            Text::from(
                "No factor makes one, all else equal. How large one could still be is stated with ",
            )
            .with(link("effects", "each effect"))
            .plain("."),
        ),
    };
    Card { title: "What matters most", big: big.into(), text }
}

fn along(study: &StudyDocument) -> Card {
    const KINDS: [AxisKind; 6] = [
        AxisKind::Collapse,
        AxisKind::NoMeasurableDifference,
        AxisKind::Flat,
        AxisKind::Saturating,
        AxisKind::Scaling,
        AxisKind::NotClear,
    ];
    // What becomes of larger requests is no question of scaling.
    let all = study.axes.iter().filter(|axis| !is_workload(&axis.factor));
    let kinds_of: Vec<AxisKind> = all.map(|axis| axis.kind).collect();
    let count = |kind: AxisKind| kinds_of.iter().filter(|one| **one == kind).count();
    let mut kinds = KINDS.into_iter().map(|kind| (count(kind), kind)).filter(|(n, _)| *n > 0);
    let (big, text) = match kinds.next() {
        None => (
            "No axis".to_owned(),
            "No factor has three numbers or more as levels, all else equal.".into(),
        ),
        Some((n, kind)) => {
            let of = words::counted(kinds_of.len(), "curve");
            let rest: String =
                kinds.map(|(n, kind)| format!("{}: {n}. ", words::axis_kind(kind))).collect();
            let rest = Text::from(rest).with(link("axes", "All curves"));
            (format!("{n} of {of}: {}", words::axis_kind(kind)), rest)
        }
    };
    Card { title: "Along the axes", big: big.into(), text }
}

fn how_sure(study: &StudyDocument) -> Card {
    let precision = words::value(study.precision * 100.0, "percent");
    let share = words::value(study.precise_pct, "percent");
    let (points, time) = (study.points.len(), words::value(study.duration_s, "s"));
    let text = format!("{}, in {time}. Intervals are 95 %.", words::counted(points, "point"));
    let big = match study.interrupted {
        true => "Stopped before its end".to_owned(),
        false => format!("{share} within \u{b1} {precision}"),
    };
    Card { title: "How sure", big: big.into(), text: text.into() }
}

fn one_point() -> Blocks {
    let mut body = Blocks::new();
    let say = "On-CPU profile by layer, top symbols, flame graph, waits and latency by layer of the \
               point that is chosen.";
    body.add(On::PAGE, Block::Text(Style::Say, say.into()));
    body.add(On::PAGE, Block::Points(1));
    body
}

fn two_points() -> Blocks {
    let mut body = Blocks::new();
    let say = Text::from("Shares of both, side by side. ")
        .with(Span::Code("iostrata study diff".to_owned()))
        .plain(" gives the differences with their intervals.");
    body.add(On::PAGE, Block::Text(Style::Say, say));
    body.add(On::PAGE, Block::Points(2));
    body
}

/// System changes: the requested value and what the kernel took.
fn changes(study: &StudyDocument) -> Option<Blocks> {
    let optional = |found: &Option<String>| text(found.as_deref().unwrap_or_default());
    let tone = |one: &ChangeRecord| match (&one.asked, &one.took) {
        (Some(asked), Some(took)) if asked != took => Tone::Warn,
        _ => Tone::Plain,
    };
    let table = Table::of(&study.changes)
        .words("Change", |one| text(&one.text))
        .words("Asked", |one| optional(&one.asked))
        .words("Took", |one| optional(&one.took).toned(tone(one)));
    let mut body = Blocks::new();
    // A killed run took nothing back; what was changed by then may still be.
    let undone = if study.interrupted { "" } else { " and taken back at the end" };
    body.say(format!(
        "{}, each written down before it was made{undone}. What the kernel took otherwise than \
         asked is marked.",
        words::counted(study.changes.len(), "change")
    ));
    if study.changes.len() > CHANGES_OPEN {
        body.folded(On::FILES, "Every change", table);
    } else {
        body.table(On::FILES, table);
    }
    (!study.changes.is_empty()).then_some(body)
}

/// The rules, the costs, and every verdict that occurs.
fn method(view: &RunView<'_>, study: &StudyDocument) -> Blocks {
    let percent = |pct: f64| words::value(pct, "percent");
    let fact = |name: &str, what: String| (name.to_owned(), what);
    let mut all = vec![
        fact("Time taken", words::value(study.duration_s, "s")),
        fact("At a fixed 60 s per point", words::value(study.fixed_minute_s, "s")),
        fact("Points", study.points.len().to_string()),
        fact("Requested precision", format!("\u{b1} {}", percent(study.precision * 100.0))),
        fact("Points that reached it", percent(study.precise_pct)),
        fact("Replicates dropped for the budget", study.replicates_dropped.to_string()),
        fact("Written", words::value(study.bytes_written as f64, "bytes")),
    ];
    all.extend(words::measured(&study.method));
    let mut body = Blocks::new();
    body.add(On::FILES, facts(all));
    body.say(format!(
        "Points are measured in replicates, in a random order that mixes them, so that what \
         changes over time touches all alike. Each replicate is cut into batches. {INTERVAL} A \
         point stops when it is precise enough; where the budget is short, replicates are \
         dropped, not points."
    ));
    body.say(
        "An effect compares points that are equal in every other factor. No measurable difference \
         is a result, too. Profiles are taken while points are measured; latency by layer comes \
         from a pass of its own, because tracing costs.",
    );
    let mut carried = all_verdicts(study.points.iter().map(|point| &point.verdicts));
    carried.extend(study.verdicts.iter());
    if study.points.is_empty() {
        carried.extend(replicate_verdicts(view));
    }
    cautions(&mut body, carried);
    body
}
