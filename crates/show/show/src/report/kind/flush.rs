//! Simulated flushing: the verdict, each policy's throughput and checkpoint age over time at one
//! scale, the figures of all next to each other.

use iostrata_run::{FlushDocument, FlushEvenness, FlushPolicyRun, FlushTurn, RunResult};

use super::common::{cautions, facts, unavailable};
use crate::report::cell::{Cell, Span, Text, count, figure, optional, text, value};
use crate::report::chart::{Chart, Course, Line, Lines, Plot, Scale, Slices, Stroke, solid};
use crate::report::colour::Colour;
use crate::report::document::{
    Block, Blocks, Card, On, Panels, Report, Sheet, Style, Table, all_verdicts,
};
use crate::report::view::Head;
use crate::report::{RunView, words};

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::SimulateFlush(flush)) = view.result else { return None };
    let mut report = Report::new(&flush.headline, summary(flush));
    let asked = format!(" {}. {}.", flush.device, flush.load);
    report.question = Some(Text::default().strong(&flush.title).plain(asked));
    let most = |a: &&FlushPolicyRun, b: &&FlushPolicyRun| a.stalled_s.total_cmp(&b.stalled_s);
    let worst = flush.policies.iter().max_by(most).filter(|policy| policy.stalled_s > 0.0);
    let least = |a: &&FlushPolicyRun, b: &&FlushPolicyRun| {
        a.min_over_mean_1s.total_cmp(&b.min_over_mean_1s)
    };
    let judged = flush.policies.iter().filter(|policy| policy.worst_second().is_some());
    report.strip = vec![card("Stalls for longest", worst)];
    report.strip.extend(judged.max_by(least).map(|policy| card("Most even", Some(policy))));
    report.strip.push(simulated(flush));
    report.add("recording", "The recording and its model", recording(flush));
    report.add("policies", "Policy by policy", policies(flush));
    report.add("figures", "All policies", figures(flush));
    report.add("unavailable", "Not simulated", unavailable(view, &flush.unavailable));
    report.add("method", "The method and its limits", method(flush));
    report.kept = flush.report.as_ref().map(|path| Text::default().strong("Report: ").plain(path));
    Some((view.head(None, None), report))
}

fn summary(flush: &FlushDocument) -> Text {
    let stopped =
        if flush.interrupted { "Stopped before its end; policies are missing. " } else { "" };
    let policies = match flush.policies.len() {
        1 => "1 policy".to_owned(),
        more => format!("{more} policies"),
    };
    let said = format!(
        "{stopped}{policies} for {} of virtual time each, seed {}, in {}. ",
        words::value(flush.span_s, "s"),
        flush.seed,
        words::value(flush.duration_s, "s"),
    );
    Text::from(said).with(Span::Verdicts(flush.verdicts.clone()))
}

/// What was recorded, and how well the model does that.
fn recording(flush: &FlushDocument) -> Option<Blocks> {
    let from = flush.from.as_ref()?;
    let mut body = Blocks::new();
    for sentence in &from.text {
        body.add(On::ALL, Block::Text(Style::Say, sentence.as_str().into()));
    }
    Some(body)
}

fn percent(share: f64) -> String {
    words::value(share, "percent")
}

fn card(title: &'static str, policy: Option<&FlushPolicyRun>) -> Card {
    let Some(policy) = policy else {
        return Card { title, big: "None".into(), text: "No policy does.".into() };
    };
    let link = Span::Link("policies".to_owned(), "Its course".to_owned());
    let below = match policy.stalled_s {
        stalled if stalled > 0.0 => format!("below half of it for {}", words::value(stalled, "s")),
        _ => "never below half of it".to_owned(),
    };
    let worst = policy.worst_second().map_or_else(String::new, |worst| {
        format!(", worst second {} of it", percent(100.0 * worst))
    });
    let said = format!("{}{worst}, {below}. ", words::value(policy.tps_mean, "transactions/s"));
    Card { title, big: policy.name.as_str().into(), text: Text::from(said).with(link) }
}

/// What changed on the way.
fn turns(flush: &FlushDocument) -> Vec<String> {
    let said = |turn: &FlushTurn| format!("at {} {}", words::value(turn.t_s, "s"), turn.text);
    flush.turns.iter().map(said).collect()
}

fn simulated(flush: &FlushDocument) -> Card {
    let turns = turns(flush);
    let text = match turns.is_empty() {
        true => format!("{}; {}.", flush.device, flush.load),
        false => format!("{}; {}; {}.", flush.device, flush.load, turns.join(", ")),
    };
    let big = format!("{} each", words::value(flush.span_s, "s"));
    Card { title: "Simulated", big: big.into(), text: text.into() }
}

fn wall_stroke() -> Stroke {
    Stroke { colour: Colour::Line(2), dash: 2, faint: 1.0 }
}

/// Throughput and age of each policy, all at one scale, the wall as a line.
fn panels(flush: &FlushDocument) -> Panels {
    // The empty redo of the beginning would flatten everything after it.
    let after = |policy: &FlushPolicyRun| {
        let pairs = policy.series.t_s.iter().zip(&policy.series.tps);
        let counted = pairs.filter(|(t_s, _)| **t_s > flush.warm_up_s);
        counted.map(|(_, tps)| *tps).fold(1.0, f64::max)
    };
    let top = 1.1 * flush.policies.iter().map(after).fold(1.0, f64::max);
    let mut charts = Vec::new();
    for policy in &flush.policies {
        let name = &policy.name;
        let rate = course(policy, (format!("tps-{name}"), name.clone()), CourseChart::Rate(top));
        charts.push(rate.says(evenness(policy)));
        let title = format!("{name}, checkpoint age");
        charts.push(course(policy, (format!("age-{name}"), title), CourseChart::Age));
    }
    let legend = vec![
        (solid(Colour::Line(0)), "transactions per second".to_owned()),
        (solid(Colour::Line(1)), "checkpoint age, percent of the redo".to_owned()),
        (wall_stroke(), "max checkpoint age of the policy".to_owned()),
    ];
    Panels { legend, charts, has_switch: false }
}

fn policies(flush: &FlushDocument) -> Option<Blocks> {
    let mut body = Blocks::new();
    body.say(
        "Left: what users get. A hole is a stall. Right: how full the redo is; at the dashed line \
         everybody waits. All policies at one scale. An empty redo lets users go faster for a while; \
         the left scale leaves that out.",
    );
    body.add(On::PAGE, Block::Panels(panels(flush)));
    let said = |policy: &FlushPolicyRun| (policy.name.clone(), policy.text.clone());
    let sentences: Vec<(String, String)> = flush.policies.iter().map(said).collect();
    let number = sentences.len();
    body.add(On::FILES, Block::Named(sentences, number));
    (!flush.policies.is_empty()).then_some(body)
}

/// The same as a picture of its own; nothing where no policy was simulated.
pub(super) fn sheet(flush: &FlushDocument) -> Option<Sheet> {
    let redo = flush.settings.get("redo_log_capacity");
    let redo = redo.map_or(String::new(), |bytes| format!(", {bytes} of redo"));
    let turns: String = turns(flush).iter().map(|turn| format!("; {turn}")).collect();
    let says = format!("{}{redo}{turns}. {}.", flush.device, flush.load);
    let sheet = Sheet { title: flush.title.clone(), says, panels: panels(flush) };
    (!flush.policies.is_empty()).then_some(sheet)
}

/// What a chart of a course shows.
enum CourseChart {
    /// Transactions per second, up to here.
    Rate(f64),
    /// The checkpoint age with its wall.
    Age,
}

fn course(policy: &FlushPolicyRun, (name, title): (String, String), shown: CourseChart) -> Chart {
    let series = &policy.series;
    let width_s = series.t_s.first().copied().unwrap_or(1.0);
    let line = |n: usize, values: &[f64], unit: &'static str| {
        let (values, title) = (values.to_vec(), policy.name.clone());
        let course = Course::Slices(Slices { width_s, values, unit, title });
        Line { name: String::new(), stroke: solid(Colour::Line(n)), course, marked: None }
    };
    let (unit, lines, scale) = match shown {
        CourseChart::Rate(top) => {
            let unit = "transactions/s";
            (unit, vec![line(0, &series.tps, unit)], Scale::Shared(top))
        }
        CourseChart::Age => {
            let end_s = series.t_s.last().copied().unwrap_or(1.0);
            let course = Course::Fit(vec![[0.0, policy.wall_pct], [end_s, policy.wall_pct]]);
            let stroke = wall_stroke();
            let wall = Line { name: String::new(), stroke, course, marked: None };
            let age = line(1, &series.checkpoint_age_pct, "percent");
            ("percent", vec![age, wall], Scale::Shared(100.0))
        }
    };
    Chart::new(name, title, Plot::Lines(Lines::new("s", unit, lines).panel(scale)))
}

fn evenness(policy: &FlushPolicyRun) -> &'static str {
    match policy.evenness {
        FlushEvenness::Stalls => "stalls",
        FlushEvenness::AtTheWall => "at the wall",
        FlushEvenness::Even => "holds",
    }
}

/// A time, and nothing where it never happened.
fn time(s: f64) -> Cell {
    optional((s > 0.0).then_some(s), "s")
}

fn figures(flush: &FlushDocument) -> Option<Blocks> {
    let table = Table::of(&flush.policies)
        .words("policy", |policy| text(&policy.name))
        .words("verdict", |policy| text(evenness(policy)))
        .numbers("tps", |policy| {
            figure(policy.tps_mean, policy.tps_mean_ci95, policy.tps_mean_n, "")
        })
        .numbers("worst second", |policy| {
            optional(policy.worst_second().map(|worst| 100.0 * worst), "percent")
        })
        .numbers("stalled", |policy| time(policy.stalled_s))
        .numbers("longest", |policy| time(policy.longest_stall_s))
        .numbers("stopped", |policy| value(policy.stopped_pct, "percent"))
        .numbers("commit p99.9", |policy| value(policy.commit_wait_us.p99_9, "us"))
        .numbers_on(On::FILES, "furious", |policy| count(policy.furious_flushes))
        .numbers("pages/txn", |policy| value(policy.pages_written_per_txn, ""))
        .numbers_on(On::FILES, "wall", |policy| value(policy.wall_pct, "percent"))
        .numbers_on(On::FILES, "greatest age", |policy| {
            value(policy.checkpoint_age_pct_max, "percent")
        });
    let mut body = Blocks::new();
    body.say(format!(
        "From {} on. The interval of tps is that of the mean over longer times: chance and waves \
         of one span. Stalled: windows of one second below half the mean. Stopped: share of the users' \
         time. Wall and age: of the room in the redo.",
        words::value(flush.warm_up_s, "s"),
    ));
    body.table(On::ALL, table);
    (!flush.policies.is_empty()).then_some(body)
}

fn method(flush: &FlushDocument) -> Blocks {
    let mut all = vec![
        ("Seed".to_owned(), flush.seed.to_string()),
        ("Real time taken".to_owned(), words::value(flush.duration_s, "s")),
    ];
    all.extend(words::measured(&flush.method));
    let mut body = Blocks::new();
    body.add(On::FILES, facts(all));
    body.say(
        "Nothing was measured on a device. The policies, the sample that they see and the rule \
         that users obey are the engine's own; pool, redo, users and device are a model in virtual \
         time, and the same seed gives the same figures.",
    );
    let limits = flush.limits.iter().map(|limit| limit.as_str().into()).collect();
    body.add(On::FILES, Block::List(limits));
    let settings = flush.settings.iter().map(|(name, value)| (name.clone(), value.clone()));
    body.add(On::FILES, Block::Text(Style::Say, "Settings of the engine:".into()));
    body.add(On::FILES, facts(settings.collect()));
    let carried = all_verdicts(flush.policies.iter().map(|policy| &policy.verdicts));
    cautions(&mut body, carried);
    body
}
