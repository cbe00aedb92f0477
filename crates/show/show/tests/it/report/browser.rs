//! The report of a run directory in a real browser. With `IOSTRATA_PICTURES=DIR` screenshots of the
//! pages are saved there; `IOSTRATA_REPORTS=FILE:DIR` adds reports or run directories of real runs,
//! `IOSTRATA_ONLY=NAME` takes those whose name begins so.

use std::path::{Path, PathBuf};

use iostrata_run::{RunReader, RunWriter};
use iostrata_show::report::render;
use serde_json::Value;

use crate::report::chromium::Browser;
use crate::report::sample::{self, Sample};

/// Writes a sample as a run directory with its report.
fn kept(sample: &Sample, dir: &Path) {
    let mut run = RunWriter::create(dir, &sample.manifest).unwrap();
    for event in &sample.events {
        run.append(event).unwrap();
    }
    if let Some(result) = &sample.result {
        run.write_result(result).unwrap();
    }
    let rendered = render(&RunReader::open(dir).unwrap());
    run.write_report(&rendered.html).unwrap();
}

/// The result as it stands in the file.
fn result(dir: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join("result.json")).unwrap()).unwrap()
}

#[test]
fn charts_are_there_and_hover_shows_the_numbers_of_the_run_directory() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    kept(&sample::probe(), dir.path());
    let result = result(dir.path());
    browser.screen(1280, 900, false, false);
    browser.open(&dir.path().join("report.html"));

    let names = "[...document.querySelectorAll('figure[id^=chart-]')].map(f => f.id.slice(6))";
    let charts: Vec<String> = serde_json::from_value(browser.value(names)).unwrap();
    assert!(charts.len() >= 12, "{charts:?}");
    assert_eq!(charts[0], "ladder-one", "the ladder is the first picture");
    let empty = "[...document.querySelectorAll('figure[id^=chart-]')].filter(f => \
                 !f.closest('[hidden]') && f.querySelectorAll('[data-at], polyline').length === 0)";
    assert_eq!(browser.value(&format!("{empty}.length")), 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    for (chart, line, point, path) in [
        ("ladder-one", 0, 0, "/rungs/2/value"),
        ("losses", 0, 0, "/losses/0/loss_pct"),
        ("read-4k", 0, 4, "/curves/0/points/4/value"),
        ("read-4k-latency", 0, 4, "/curves/0/points/4/latency_mean_us"),
        ("read-4k-latency", 1, 4, "/curves/0/points/4/latency_p99_us"),
        ("database-commits", 0, 2, "/curves/3/points/2/value"),
    ] {
        let exact = result.pointer(path).unwrap().to_string();
        let hover = browser.hover(chart, line, point);
        assert!(hover.contains(&format!("({exact})")), "{chart}: {exact} is not in {hover:?}");
    }
    let interval = browser.hover("ladder-one", 0, 0);
    assert!(interval.contains("95 %: 9.8 to 9.88 K/s (\u{b1} 0.4 %)"), "{interval:?}");
    assert!(interval.contains("n = 102"), "{interval:?}");
}

#[test]
fn every_point_can_be_chosen_over_time() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    kept(&sample::probe(), dir.path());
    let run = RunReader::open(dir.path()).unwrap();
    let counts: Vec<u32> = run
        .events()
        .iter()
        .find_map(|event| match event {
            iostrata_run::Event::Replicate(one) if one.point.id == "commit_fsync" => {
                Some(one.streams[0].series.of(iostrata_plan::OpKind::Sync).to_vec())
            }
            _ => None,
        })
        .unwrap();
    browser.screen(1280, 900, false, false);
    browser.open(&dir.path().join("report.html"));
    browser.value(
        "(() => { const s = document.querySelector('#time select'); \
         s.selectedIndex = [...s.options].findIndex(o => o.text === 'Append and fsync'); \
         s.dispatchEvent(new Event('change')); })()",
    );
    let line = "document.querySelector('#chart-time-commit-fsync polyline')";
    let drawn = browser.value(&format!("[...{line}.points].map(p => p.y)"));
    let counts_drawn: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
    let drawn: Vec<f64> = serde_json::from_value(drawn).unwrap();
    assert_eq!(drawn, counts_drawn);
    assert_eq!(browser.value(&format!("{line}.closest('[hidden]') === null")), true);
    let hover = browser.hover("time-commit-fsync", 0, 3);
    assert!(hover.contains(&format!("\n{} ", counts[3])), "{} is not in {hover:?}", counts[3]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn it_fits_a_phone_and_follows_the_dark() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (name, sample) in
        [("probe", sample::probe()), ("io", sample::io()), ("tpcc", sample::transactions())]
    {
        kept(&sample, &dir.path().join(name));
        browser.screen(390, 844, true, false);
        browser.open(&dir.path().join(name).join("report.html"));
        assert_eq!(browser.value("document.documentElement.scrollWidth"), 390, "{name}");
        let colour = "getComputedStyle(document.querySelector('figure svg text')).fill";
        let light = browser.value(colour);
        browser.screen(390, 844, true, true);
        browser.settle();
        let dark = browser.value(colour);
        assert_ne!(light, dark, "{name}");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn it_prints_light_and_within_the_paper() {
    let Some(mut browser) = Browser::start() else { return };
    let dir = tempfile::tempdir().unwrap();
    kept(&sample::probe(), dir.path());
    browser.screen(1280, 900, false, true);
    browser.open(&dir.path().join("report.html"));
    let paper = browser.paper();
    assert!(paper.starts_with(b"%PDF"));
    let widest = browser.value(
        "dispatchEvent(new Event('beforeprint')), \
         document.querySelectorAll('details[data-print]:not([open])').length",
    );
    assert_eq!(widest, 0, "paper shows what is folded");
    browser.screen(700, 900, false, true);
    browser.on_paper();
    let beyond = browser.value(
        "[...document.querySelectorAll('figure svg')].filter(s => \
         s.getBoundingClientRect().right > 701).length",
    );
    assert_eq!(beyond, 0, "charts keep to the width of the paper");
    assert_eq!(
        browser.value("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn pictures() {
    let Some(pictures) = std::env::var_os("IOSTRATA_PICTURES") else { return };
    let Some(mut browser) = Browser::start() else { return };
    let pictures = Path::new(&pictures);
    let mut pages = Vec::new();
    for (name, sample) in [
        ("probe", sample::probe()),
        ("clean", sample::clean_probe()),
        ("io", sample::io()),
        ("transactions", sample::transactions()),
        ("study", sample::study()),
    ] {
        kept(&sample, &pictures.join(name));
        pages.push((name.to_owned(), pictures.join(name).join("report.html")));
    }
    let more = std::env::var("IOSTRATA_REPORTS").unwrap_or_default();
    let more = more.split(':').filter(|file| !file.is_empty());
    for (n, file) in more.enumerate() {
        let (name, mut file) = (format!("real{n}"), PathBuf::from(file));
        if file.is_dir() {
            let rendered = render(&RunReader::open(&file).unwrap());
            file = pictures.join(format!("{name}.html"));
            std::fs::write(&file, rendered.html).unwrap();
            std::fs::write(file.with_extension("md"), rendered.markdown).unwrap();
        }
        pages.push((name, file));
    }
    let only = std::env::var("IOSTRATA_ONLY").unwrap_or_default();
    for (name, page) in pages.into_iter().filter(|(name, _)| name.starts_with(&only)) {
        for (kind, width, phone, dark) in [
            ("light", 1400, false, false),
            ("dark", 1400, false, true),
            ("phone", 390, true, false),
        ] {
            browser.screen(width, 900, phone, dark);
            browser.open(&page);
            browser.settle();
            browser.unfold_closely();
            photograph(&mut browser, &pictures.join(format!("{name}-{kind}")), width);
        }
        browser.screen(720, 1000, false, true);
        browser.open(&page);
        browser.on_paper();
        photograph(&mut browser, &pictures.join(format!("{name}-paper")), 720);
    }
}

/// The page in pieces of a readable height.
fn photograph(browser: &mut Browser, name: &Path, width: u32) {
    const PIECE: u32 = 1600;
    let full = browser.value("document.documentElement.scrollHeight").as_u64().unwrap() as u32;
    for (number, top) in (0..full).step_by(PIECE as usize).enumerate() {
        let picture = browser.picture(top, width, PIECE.min(full - top));
        std::fs::write(format!("{}-{number}.png", name.display()), picture).unwrap();
    }
}
