//! The picture of a study: which chart an answer gets, and that its text has room.

use std::fs;

use iostrata_plan::study::{FactorLevels, LevelAt, ThenMetric};
use iostrata_run::{
    AnswerEffect, AnswerFigure, AnswerSplit, StudyAnswer, StudyDocument, StudyTransactions,
};
use iostrata_show::report::{html, svg};
use iostrata_stats::{Measured, Verdict};

use crate::report::chromium::Browser;
use crate::report::sample;

/// Of the first points of the made-up study as many as there are levels of a setting, each with a
/// figure of this metric.
fn document(metric: ThenMetric, method: &[&str], values: &[f64]) -> StudyDocument {
    let mut study = sample::study().study_ref().clone();
    study.points.truncate(method.len());
    let factor = |name: &str, levels: &[&str]| FactorLevels {
        factor: name.to_owned(),
        levels: levels.iter().map(|one| (*one).to_owned()).collect(),
        is_axis: false,
    };
    study.factors = vec![factor("target", &["engine", "mariadb-10.11"]), factor("method", method)];
    for (point, method) in study.points.iter_mut().zip(method) {
        point.id = (*method).to_owned();
        let level =
            |factor: &str, level: &str| LevelAt { factor: factor.into(), level: level.into() };
        point.levels = vec![level("target", "engine"), level("method", method)];
    }
    (study.axes, study.effects, study.interactions) = (vec![], vec![], vec![]);
    study.headline = vec!["All of it does `3.9` times as much.".to_owned(), "7 points.".to_owned()];
    let figure = |(point, value): (&&str, &f64)| AnswerFigure {
        point: (*point).to_owned(),
        value: *value,
        value_ci95: Some([value * 0.9, value * 1.1]),
        value_n: 5,
    };
    let figures = method.iter().zip(values).map(figure).collect();
    study.answers = vec![StudyAnswer {
        metric: metric.name().to_owned(),
        unit: metric.unit().to_owned(),
        factors: vec!["method".to_owned()],
        figures,
        is_known: true,
        ..compared(method[0], method[method.len() - 1], 3.9)
    }];
    study
}

fn compared(over: &str, of: &str, ratio: f64) -> StudyAnswer {
    StudyAnswer {
        asks: format!("what {of} does"),
        text: format!("{of} does {ratio} times"),
        ratio: Some(ratio),
        ratio_ci95: Some([ratio * 0.8, ratio * 1.2]),
        ratio_n: 5,
        of: vec![of.to_owned()],
        over: vec![over.to_owned()],
        ..StudyAnswer::default()
    }
}

fn drawn(study: StudyDocument) -> String {
    svg(&sample::of_study(study).view()).unwrap()
}

/// Steps of which the first is an answer of its own, and so is the whole.
fn stairs() -> StudyDocument {
    let methods = ["buffered", "direct", "redo_unsynced", "data_unsynced", "all"];
    let mut study = document(ThenMetric::Tps, &methods, &[600.0, 720.0, 1_800.0, 741.0, 2_340.0]);
    let whole = study.answers[0].clone();
    let answer = |over: &str, of: &str, ratio: f64| StudyAnswer {
        metric: whole.metric.clone(),
        unit: whole.unit.clone(),
        factors: whole.factors.clone(),
        figures: whole.figures.clone(),
        is_known: true,
        ..compared(over, of, ratio)
    };
    let effect = |name: &str, ratio: f64| AnswerEffect {
        name: name.to_owned(),
        ratio,
        ratio_ci95: Some([ratio * 0.8, ratio * 1.2]),
        ratio_n: 5,
        share_pct: 10.0,
    };
    let split = AnswerSplit {
        effects: vec![effect("redo direct and not synced", 2.5), effect("data not synced", 1.03)],
        rest: 1.262,
        rest_ci95: Some([0.9, 1.8]),
        rest_n: 5,
    };
    study.answers.push(answer("buffered", "direct", 1.2));
    study.answers.push(StudyAnswer { split: Some(split), ..answer("direct", "all", 3.25) });
    study
}

#[test]
fn changes_made_one_by_one_are_steps_to_the_whole() {
    let study = stairs();
    let picture = drawn(study.clone());
    let bars: Vec<&str> = picture.split("class=\"bar\"").skip(1).collect();
    assert_eq!(bars.len(), 5, "direct, two changes, what is left, the whole: {picture}");
    let place = |bar: &str| -> [f64; 2] {
        ["x=\"", "width=\""].map(|name| {
            let rect = bar.split("<rect").nth(1).unwrap();
            rect.split(name).nth(1).unwrap().split('%').next().unwrap().parse().unwrap()
        })
    };
    let places: Vec<[f64; 2]> = bars.iter().map(|bar| place(bar)).collect();
    for (n, two) in places[..4].windows(2).enumerate() {
        let end = two[0][0] + two[0][1];
        assert!((two[1][0] - end).abs() < 0.02, "step {} begins elsewhere: {places:?}", n + 1);
    }
    let end = places[3][0] + places[3][1];
    let whole = places[4];
    assert!((whole[0] - places[0][0]).abs() < 0.02, "{places:?}");
    assert!((whole[0] + whole[1] - end).abs() < 0.3, "the steps lead to the whole: {places:?}");
    for said in ["Redo direct and", "2.5x", "[2, 3]", "All of it does 3.9 times"] {
        assert!(picture.contains(said), "{said} is missing: {picture}");
    }
    assert!(!picture.contains('`') && !picture.contains("7 points"), "one sentence: {picture}");
    let page = html(&sample::of_study(study).view());
    assert!(page.contains("id=\"chart-answer-0\""), "the page has the same picture");
}

#[test]
fn levels_of_a_setting_are_bars_and_shares_of_the_time_may_be_none() {
    let study = document(ThenMetric::StalledPct, &["low", "high", "awake"], &[50.0, 21.0, 0.0]);
    let picture = drawn(study);
    assert_eq!(picture.matches("class=\"bar\"").count(), 3, "{picture}");
    assert!(!picture.contains("<polyline"), "time is no answer here: {picture}");
    assert!(picture.contains("Share of the time below half the mean rate"), "{picture}");
    for said in [">low<", ">awake<", "awake over low: 3.9x [3.12, 4.68]"] {
        assert!(picture.contains(said), "{said}: {picture}");
    }
    let mut unknown = document(ThenMetric::Iops, &["a", "b", "c"], &[50.0, 45.0, 40.0]);
    unknown.answers[0].figures[1].value_ci95 = Some([1.0, 200.0]);
    let picture = drawn(unknown);
    assert_eq!(picture.matches("class=\"bar\"").count(), 2, "one figure is not known");
    assert!(picture.contains("Not drawn: 1 of 3 points"), "{picture}");
}

/// Two policies with their rates over time.
fn courses() -> StudyDocument {
    let mut study = document(ThenMetric::MinOverMean1s, &["adaptive", "steady"], &[0.1, 0.9]);
    study.answers[0].ratio = None;
    study.answers[0].difference =
        Some(Measured { value: 0.8, ci95: Some([0.7, 0.9]), n: 3, verdicts: <_>::default() });
    for point in &mut study.points {
        let mut found = StudyTransactions::default();
        found.series.t_s = (1..=30).map(f64::from).collect();
        found.series.tps = (1..=30).map(|n| f64::from(n % 7) * 100.0).collect();
        point.transactions = Some(found);
    }
    study
}

#[test]
fn evenness_is_seen_over_time() {
    let picture = drawn(courses());
    assert_eq!(picture.matches("<polyline").count(), 2, "{picture}");
    assert!(picture.contains("over time") && picture.contains("0.8 apart [0.7, 0.9]"), "{picture}");
    assert!(!picture.contains("class=\"bar\""), "{picture}");
    assert_eq!(picture.matches("<circle").count(), 60, "30 seconds each: {picture}");
    let mut long = courses();
    for point in &mut long.points {
        let series = &mut point.transactions.as_mut().unwrap().series;
        series.t_s = (1..=180).map(f64::from).collect();
        series.tps = (1..=180).map(|n| f64::from(n % 7) * 100.0).collect();
    }
    assert!(!drawn(long).contains("<circle"), "points would cover the line");
}

#[test]
fn transactions_of_which_no_figure_is_known_still_have_a_course() {
    let mut study = courses();
    study.answers.clear();
    for point in &mut study.points {
        (point.value, point.value_ci95) = (100.0, Some([1.0, 900.0]));
    }
    assert_eq!(drawn(study).matches("<polyline").count(), 2);
}

/// What raw device and two file systems do over the workers, by two methods.
fn curves(methods: &[&str]) -> StudyDocument {
    let mut study = sample::study().study_ref().clone();
    let of = |id: &str| {
        let is_one = id.contains("_randwrite_4k_") && id.ends_with("_f1");
        is_one && methods.iter().any(|method| id.contains(&format!("_{method}_")))
    };
    let figure = |point: &iostrata_run::StudyPoint| AnswerFigure {
        point: point.id.clone(),
        value: point.value,
        value_ci95: point.value_ci95,
        value_n: point.value_n,
    };
    let points = study.points.iter().filter(|point| of(&point.id));
    study.answers.truncate(1);
    let answer = &mut study.answers[0];
    answer.figures = points.map(figure).collect();
    (answer.metric, answer.unit) = ("iops".to_owned(), "IOPS".to_owned());
    answer.factors = vec!["filesystem".to_owned()];
    study
}

#[test]
fn a_swept_number_makes_curves_and_too_many_are_parted() {
    let picture = drawn(curves(&["direct"]));
    assert_eq!(picture.matches("<polyline").count(), 3, "raw, ext4, XFS: {picture}");
    for said in ["Requests per second over workers", "random writes, 4k, direct", ">raw device<"] {
        assert!(picture.contains(said), "{said} is missing: {picture}");
    }
    let mut many = curves(&["direct", "fsync"]);
    for bs in ["4k", "16k"] {
        let figures: Vec<AnswerFigure> = many.answers[0].figures.clone();
        let other = figures.into_iter().map(|mut figure| {
            figure.point = figure.point.replace("_4k_", &format!("_{bs}_"));
            figure
        });
        if bs == "16k" {
            many.answers[0].figures.extend(other.collect::<Vec<_>>());
        }
    }
    let picture = drawn(many);
    assert_eq!(picture.matches("<polyline").count(), 10, "{picture}");
    assert!(picture.contains(">4k<") && picture.contains(">16k<"), "{picture}");
}

#[test]
fn what_speaks_against_most_points_is_said_once() {
    let mut study = stairs();
    study.verdicts = [Verdict::Cached].into_iter().collect();
    let picture = drawn(study);
    let said = picture.matches("page cache").count();
    assert_eq!(said, 1, "{picture}");
}

/// Of every two texts of the file those that touch, and those that leave it.
const TOUCHING: &str = "(() => { \
    const all = [...document.querySelectorAll('text')].filter(one => one.textContent.trim()); \
    const places = all.map(one => [one.textContent, one.getBoundingClientRect()]); \
    const found = []; \
    const page = document.documentElement.getBoundingClientRect(); \
    places.forEach(([text, one], n) => { \
      if (one.right > page.right - 8 || one.left < 2 || one.bottom > page.bottom) \
        found.push(`${text} leaves the page`); \
      for (const [other, two] of places.slice(n + 1)) { \
        const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left); \
        const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top); \
        if (wide > 1 && high > 4) found.push(`${text} | ${other}`); } }); \
    return found; })()";

#[test]
fn no_text_touches_another_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut long = stairs();
    long.answers[2].split.as_mut().unwrap().effects[0].name =
        "redo written directly and never synced, whatever the device says of it".to_owned();
    let all = [stairs(), long, courses(), curves(&["direct"]), curves(&["direct", "fsync"])];
    for (n, study) in all.into_iter().enumerate() {
        let file = dir.path().join(format!("{n}.svg"));
        fs::write(&file, drawn(study)).unwrap();
        let background = |browser: &mut Browser, dark| {
            browser.screen(480, 1_000, false, dark);
            let url = format!("file://{}", file.display());
            browser.call("Page.navigate", serde_json::json!({ "url": url }));
            while browser.value("document.querySelectorAll('text').length > 0") != true {
                browser.settle();
            }
            browser.value("getComputedStyle(document.querySelector('.page')).fill")
        };
        assert_eq!(background(&mut browser, false), "rgb(255, 255, 255)");
        let touching = browser.value(TOUCHING);
        assert_eq!(touching, serde_json::json!([]), "picture {n}");
        assert_eq!(background(&mut browser, true), "rgb(21, 25, 31)");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
