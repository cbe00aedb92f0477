//! A study's page in a real browser: charts are drawn, what is folded is drawn when unfolded, what
//! is chosen is shown, and nothing is loaded from the network.

use std::path::{Path, PathBuf};

use iostrata_run::StudyDocument;
use iostrata_run::host::KernelLayer;
use iostrata_show::report::html;
use serde_json::Value;

use crate::report::chromium::Browser;
use crate::report::complete::changed;
use crate::report::sample;
use crate::report::study::PAGE;

/// The page of the long form as a file.
fn written(dir: &Path) -> PathBuf {
    let path = dir.join("report.html");
    std::fs::write(&path, &*PAGE).unwrap();
    path
}

#[test]
fn charts_of_a_study_are_drawn_and_folded_ones_when_unfolded() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = written(dir.path());
    let sample = sample::study();
    browser.screen(1400, 900, false, false);
    browser.open(&page);
    let charts = "[...document.querySelectorAll('figure[id^=chart-]')]";
    let shown = format!("{charts}.filter(f => f.checkVisibility())");
    let count = browser.value(&format!("[{shown}.length, {charts}.length]"));
    let count: Vec<u64> = serde_json::from_value(count).unwrap();
    assert!(count[0] >= 8 && count[1] > count[0] + 15, "{count:?}");

    let split = "[...document.querySelectorAll('h1, p, td')]\
                 .filter(one => one.textContent.includes(' %')).length";
    assert_eq!(browser.value(split), 0, "a number and its percent stay in one line");
    assert!(PAGE.contains(" %"), "and the file is searched for them as they are typed");

    // Whole axes on hover: figure, interval, n.
    let point = &sample.study_ref().points[0];
    let hover = browser.hover("panel-0-0", 0, 0);
    assert!(hover.contains(&format!("({})", Value::from(point.value))), "{hover:?}");
    assert!(hover.contains("95 %: ") && hover.contains("n = 96"), "{hover:?}");
    let hover = browser.hover("effects", 0, 0);
    assert!(hover.contains("(0.412)") && hover.contains("[0.389, 0.437]"), "{hover:?}");

    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })");
    let empty = format!("{shown}.filter(f => f.querySelectorAll('[data-at]').length === 0).length");
    assert_eq!(browser.value(&empty), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    // The other scale, and back.
    let own = "document.getElementById('chart-panel-0-2').checkVisibility()";
    assert_eq!(browser.value(own), true);
    browser.value("document.querySelector('.switch input').click()");
    assert_eq!(browser.value(own), false);
    let other = "document.querySelector('#matrix .panels .log').checkVisibility()";
    assert_eq!(browser.value(other), true);
    browser.value("document.querySelector('.switch input').click()");
    assert_eq!((browser.value(own), browser.value(other)), (true.into(), false.into()));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_point_is_shown_when_it_is_chosen() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let sample = sample::study();
    let page = written(dir.path());
    browser.screen(1400, 900, false, false);
    browser.open(&page);
    let closed = browser.value("document.querySelectorAll('[data-closely] .chart').length");
    assert_eq!(closed, 0, "nothing is drawn before a reader comes near");
    browser.unfold_closely();
    assert_eq!(browser.complaints(), Vec::<String>::new());

    let choose = |browser: &mut Browser, factor: usize, level: &str| {
        browser.value(&format!(
            "(() => {{ const s = document.querySelectorAll('#closely-one .levels select')[{factor}]; \
             s.value = [...s.options].find(o => o.text === '{level}').value; \
             s.dispatchEvent(new Event('change')); }})()"
        ));
    };
    for (factor, level) in [
        (0, "ext4"),
        (1, "random writes"),
        (2, "16k"),
        (3, "64 workers"),
        (4, "fsync"),
        (5, "1 file"),
    ] {
        choose(&mut browser, factor, level);
    }
    browser.settle();
    let id = "ext4_randwrite_16k_w64_fsync_f1";
    let point = sample.study_ref().points.iter().find(|point| point.id == id).unwrap();
    let text = browser.value("document.getElementById('closely-one').innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains(&point.title), "{text}");
    let profile = point.profile.as_ref().unwrap();
    let top = &profile.symbols[0];
    for said in [
        format!("{}\t{:.1}%\t{}\t{}", top.samples, top.pct, top.symbol, top.module),
        format!("{} samples of 8 processors", profile.samples),
        "rwsem_down_write_slowpath\text4_file_write_iter\tlock, taken in file system".to_owned(),
        "seen by the application".to_owned(),
        "the hypervisor offers no hardware counters".to_owned(),
    ] {
        assert!(text.contains(&said), "{said:?} is not in\n{text}");
    }
    assert_eq!(text.matches("the hypervisor offers").count(), 1);

    // The flame graph holds what the stacks hold, less idle; off-CPU on demand.
    let busy: u64 = profile
        .stacks
        .iter()
        .filter(|stack| stack.layer != KernelLayer::Idle)
        .map(|stack| stack.samples)
        .sum();
    let flame = "[...document.querySelectorAll('#closely-one .flame div')]";
    let root = format!("Number({flame}[0].dataset.value)");
    assert_eq!(browser.value(&root), busy);
    let names = format!("{flame}.map(frame => frame.textContent)");
    assert!(!browser.value(&names).to_string().contains("blk_io_schedule"));
    browser.value(
        "[...document.querySelectorAll('#closely-one button')].find(b => b.textContent === 'off-CPU').click()",
    );
    let found = browser.value(&names);
    assert!(found.as_array().unwrap().iter().any(|name| name == "blk_io_schedule"), "{found}");
    // A click makes a frame as wide as all, the first leads back.
    let wide = format!("{flame}.find(f => f.textContent === 'blk_io_schedule').style.width");
    let click = format!("{flame}.find(f => f.textContent === 'blk_io_schedule').click()");
    assert_ne!(browser.value(&wide), "100%");
    browser.value(&click);
    assert_eq!(browser.value(&wide), "100%");
    browser.value(&format!("{flame}[0].click()"));
    assert_ne!(browser.value(&wide), "100%");

    // A combination that was not measured gives way to the nearest that was.
    choose(&mut browser, 1, "random reads");
    browser.settle();
    let text = browser.value("document.querySelector('#closely-one .chosen').innerText");
    assert!(text.as_str().unwrap().contains("random reads, 16k, ext4, direct"), "{text}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn two_points_stand_beside_each_other_and_tables_sort() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = written(dir.path());
    browser.screen(1400, 900, false, false);
    browser.open(&page);
    browser.unfold_closely();
    let part = "#closely-two .chart[aria-label=\"Processor time by layer\"] [data-at=";
    let bars = browser.value(&format!(
        "['Alock', 'Block'].map(at => \
         parseFloat(document.querySelector('{part}' + at + ']').style.width))"
    ));
    let bars: Vec<f64> = serde_json::from_value(bars).unwrap();
    assert!(bars.len() == 2 && bars[1] > bars[0] + 10.0, "more writers, more lock: {bars:?}");

    let first = "document.querySelector('table[data-sort] tbody tr').dataset.point";
    let head = "[...document.querySelectorAll('table[data-sort] thead tr:last-child th')]\
                .find(th => th.textContent === 'IOPS').click()";
    browser.value(head);
    let least = browser.value(first);
    browser.value(head);
    let most = browser.value(first);
    let sample = sample::study();
    let mut points: Vec<_> = sample.study_ref().points.iter().collect();
    points.sort_by(|a, b| a.value.total_cmp(&b.value));
    assert_eq!(least, points[0].id.as_str());
    assert_eq!(most, points[points.len() - 1].id.as_str());
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_study_fits_a_phone() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let page = written(dir.path());
    browser.screen(390, 844, true, false);
    browser.open(&page);
    browser.unfold_closely();
    browser.value("document.querySelectorAll('details').forEach(one => { one.open = true; })");
    browser.settle();
    assert_eq!(browser.value("document.documentElement.scrollWidth"), 390);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Ends elements, scripts and strings; opens others; fills templates.
const HOSTILE: &str =
    "</script><script>hacked=1</script><img src=x onerror=hacked=2>\"><b>%{y}</b>&lt;i&gt;";

#[test]
fn names_of_a_study_run_nothing() {
    let hostile: StudyDocument = changed(sample::small_study().study_ref(), |path, old| {
        if path.ends_with("/unit") { old.to_owned() } else { format!("{old}{HOSTILE}") }
    });
    let page = html(&sample::of_study(hostile).view());
    assert!(!page.contains("<script>hacked") && !page.contains("<img src=x"));
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("report.html");
    std::fs::write(&path, page).unwrap();
    browser.screen(1280, 900, false, false);
    browser.open(&path);
    browser.unfold_closely();
    assert!(browser.value("typeof hacked").as_str() == Some("undefined"));
    let shown = browser.value("document.getElementById('closely-one').innerText");
    assert!(shown.as_str().unwrap().contains("</script><script>hacked=1"), "{shown}");
    assert_eq!(browser.value("document.querySelectorAll('img, main script').length"), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
