//! Long words in a real browser: tables keep to the page, titles of charts to their places.

use iostrata_plan::study::ThenMetric;
use iostrata_run::{
    Advice, Risk, RunKind, RunResult, StudyTransactions, Verification, WatchDocument, WatchSample,
};
use iostrata_show::report::{html, markdown, svg_of_recordings, terminal};
use iostrata_stats::{Interval, Measured, Verdict, Verdicts};
use serde_json::{Value, json};

use crate::report::chromium::Browser;
use crate::report::sample::{self, Sample, manifest};

/// Beyond a page: of the whole, of its text and of a section.
fn beyond(browser: &mut Browser, section: &str) -> Value {
    browser.value(&format!(
        "[document.documentElement, document.querySelector('main'), \
         document.querySelector('#{section}')].map(one => one.scrollWidth - one.clientWidth)"
    ))
}

fn verification(before: f64, after: f64, effect: [f64; 3]) -> Verification {
    let setting = "innodb_max_dirty_pages_pct_lwm";
    let around = |value: f64| Some([value * 0.74, value * 1.26]);
    Verification {
        setting: setting.to_owned(),
        text: format!("throughput of the slowest sample of each window: {setting} = 0.001"),
        before,
        before_ci95: around(before),
        before_n: 4,
        after,
        after_ci95: around(after),
        after_n: 4,
        unit: "transactions/s".to_owned(),
        effect_pct: Some(effect[1]),
        effect_pct_ci95: Some([effect[0], effect[2]]),
        effect_pct_n: 4,
        confirmed: false,
    }
}

fn advice() -> Advice {
    let set = "innodb_adaptive_flushing_lwm = 3489660928";
    Advice {
        versions: None,
        source: None,
        setting: "innodb_adaptive_flushing_lwm".to_owned(),
        value: "3489660928".to_owned(),
        default: None,
        where_: format!("SET GLOBAL {set}; to keep it, {set} in my.cnf [mariadb]"),
        why: vec!["redo_too_small".to_owned()],
        text: "The redo log holds 54.4 s of redo.".to_owned(),
        risk: Risk::None,
        undo: format!("SET GLOBAL {set}; and the line in my.cnf as before"),
        expected: None,
    }
}

fn watched() -> Sample {
    let sample =
        |t_s: u32| WatchSample { t_s: f64::from(t_s), tps: Some(500.0), ..WatchSample::default() };
    let document = WatchDocument {
        duration_s: 60.0,
        samples: (0..60).map(sample).collect(),
        tps: Some(500.0),
        verifications: vec![
            verification(261.3, 307.2, [26.8, 33.4, 40.2]),
            verification(12_345.6, 9_876.5, [-40.1, -33.4, -27.2]),
        ],
        advice: vec![advice()],
        ..WatchDocument::default()
    };
    let manifest = manifest(RunKind::Watch, &["watch", "mysql://b@db:3306"]);
    let result = Some(RunResult::Watch(Box::new(document)));
    Sample { manifest, result, events: vec![], notes: vec![] }
}

/// Of every figure with an interval: on how many lines each of the two stands, and by how much the
/// interval is lower.
const FIGURES: &str = "[...document.querySelectorAll('#verified td.n > span')].map(one => { \
    const lines = all => { \
        const range = document.createRange(); \
        range.selectNodeContents(all); \
        return [...range.getClientRects()].filter(rect => rect.width > 4); }; \
    const value = lines(one.firstChild), interval = lines(one.querySelector('.muted')); \
    return [value.length, interval.length, interval[0].top - value[0].top]; })";

#[test]
fn what_was_tried_keeps_to_the_page_and_its_figures_stay_whole() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    std::fs::write(&page, html(&watched().view())).unwrap();
    for (width, is_phone, is_below) in
        [(1280, false, true), (1100, false, true), (800, false, true), (390, true, false)]
    {
        browser.screen(width, 900, is_phone, false);
        browser.open(&page);
        assert_eq!(beyond(&mut browser, "verified"), json!([0, 0, 0]), "at {width} pixels");
        let figures: Vec<[f64; 3]> = serde_json::from_value(browser.value(FIGURES)).unwrap();
        assert_eq!(figures.len(), 6, "before, after and effect of two rows at {width} pixels");
        for [value, interval, lower] in figures {
            assert_eq!((value, interval), (1.0, 1.0), "lines at {width} pixels");
            assert_eq!(lower > 8.0, is_below, "{lower} at {width} pixels");
        }
    }
}

#[test]
fn a_fall_is_shown_with_its_sign_and_its_interval() {
    let sample = watched();
    let view = sample.view();
    let words = terminal(&view, 100, false);
    let (files, page) = (markdown(&view), html(&view));
    let told = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("-33 % [-40, -27]") && told.contains("+33 % [+27, +40]"), "{words}");
    assert!(files.contains("-33 % \\[-40, -27\\] (n = 4)"), "{files}");
    assert!(page.contains("-33 % <span class=\"muted\">[-40, -27]</span>"), "{page}");
    assert!(![&words, &files, &page].iter().any(|text| text.contains("below zero")), "{words}");
    assert!(words.contains("innodb_max_dirty_pages_pct_lwm\n"), "the name is whole: {words}");
}

#[test]
fn advice_keeps_to_a_phone_and_is_copied_as_it_is() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    std::fs::write(&page, html(&watched().view())).unwrap();
    let lines = "[mysqld]\ninnodb_adaptive_flushing_lwm = 3489660928\n";
    for (width, is_phone) in [(1280, false), (1100, false), (390, true), (320, true)] {
        browser.screen(width, 900, is_phone, false);
        browser.open(&page);
        assert_eq!(beyond(&mut browser, "advice"), json!([0, 0, 0]), "at {width} pixels");
        let snippet = "document.querySelector('#advice pre')";
        assert_eq!(browser.value(&format!("{snippet}.textContent")), lines);
        let hidden = browser.value(&format!("{snippet}.scrollWidth - {snippet}.clientWidth"));
        assert_eq!(hidden, 0, "of the lines to copy at {width} pixels");
    }
}

/// The study with transactions at each of its points: a worst second whose interval begins at
/// nothing.
fn study_of_transactions() -> Sample {
    let mut sample = sample::study();
    let Some(RunResult::Study(study)) = &mut sample.result else { unreachable!() };
    let measured = |value: f64, ci95: Interval| {
        let mut worst = Measured::without_interval(value, 2, Verdicts::none());
        worst.ci95 = Some(ci95);
        worst
    };
    let worst = measured(0.0616, [1.868e-7, 20_318.0]);
    for point in &mut study.points {
        let figures = [(ThenMetric::MinOverMean1s.name().to_owned(), worst.clone())];
        let transactions =
            StudyTransactions { figures: figures.into(), ..StudyTransactions::default() };
        point.transactions = Some(transactions);
        point.verdicts = Verdicts::from_iter([Verdict::TooFewSamples, Verdict::Throttled]);
    }
    sample
}

#[test]
fn a_table_of_many_factors_keeps_to_the_page() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("report.html");
    let sample = study_of_transactions();
    std::fs::write(&page, html(&sample.view())).unwrap();
    for (width, is_phone) in [(1280, false), (1100, false), (390, true)] {
        browser.screen(width, 900, is_phone, false);
        browser.open(&page);
        let wider = "document.documentElement.scrollWidth - innerWidth";
        assert_eq!(browser.value(wider), 0, "at {width} pixels");
        // Blocks next to each other are seen without scrolling sideways.
        let moved = "(() => { const box = document.querySelector('#stability .scroll'); \
                     return box.scrollWidth - box.clientWidth; })()";
        assert_eq!(browser.value(moved), 0, "at {width} pixels");
    }
    let found = browser.value(
        "[...document.querySelectorAll('#stability table.broad td[data-label=\"95 %\"]')]\
         .map(one => one.textContent).filter(one => one.includes('20.3 K'))[0]",
    );
    assert_eq!(found, "0 to 20.3 K");
}

/// Pairs of texts that overlap each other, and texts that leave the picture.
const OVERLAPS: &str = "(() => { \
    const all = [...document.querySelectorAll('text.title')].map(one => \
        [one.textContent, one.getBoundingClientRect()]); \
    const end = document.querySelector('svg').getBoundingClientRect().right; \
    const meet = (a, b) => a.left < b.right && b.left < a.right && \
        a.top + 3 < b.bottom && b.top + 3 < a.bottom; \
    const met = all.flatMap(([a, at], n) => \
        all.slice(n + 1).filter(([, other]) => meet(at, other)).map(([b]) => `${a} | ${b}`)); \
    return met.concat(all.filter(([, at]) => at.right > end).map(([a]) => a)); })()";

#[test]
fn titles_of_charts_beside_each_other_never_overlap() {
    let Some(mut browser) = Browser::start() else { return };
    let sample = watched();
    let names = [
        "Policy adaptive, 16 workers, short, buffer pool size 128M",
        "Policy adaptive, 1 worker, short, buffer pool size 128M, redo log capacity 128M",
        "Policy lsn-age, 256 workers, short, buffer pool size 128M, redo log capacity 128M, \
         neighbours none, doublewrite pages 128, adaptive flushing lwm 10, io capacity 2000, \
         io capacity max 4000, purge threads 4",
        "Policy lsn-age",
        &"n".repeat(200),
        "MARIADB 10.11.6, INNODB 4 KIB PAGES, 128 MIB POOL",
    ];
    let runs: Vec<_> = names.iter().map(|name| (*name, sample.view())).collect();
    let picture = svg_of_recordings(&runs).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("picture.html");
    let around = format!("<html data-charts=ready><body>{picture}</body></html>");
    std::fs::write(&page, around).unwrap();
    browser.screen(1280, 900, false, false);
    browser.open(&page);
    assert_eq!(browser.value(OVERLAPS), Value::Array(Vec::new()));
    let whole =
        browser.value("[...document.querySelectorAll('title')].map(one => one.textContent)");
    assert_eq!(whole, json!([names[2], names[4]]), "what is shortened is whole there");
}
