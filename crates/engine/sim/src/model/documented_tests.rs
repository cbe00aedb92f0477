//! docs/disks.md shows the catalogue and what the models answer. `UPDATE_DOCS=1` writes it again.

use std::fmt::Write;
use std::path::Path;

use iostrata_plan::disk::{DiskModel, DiskSpec};

use super::catalogue::{Model, Origin, catalogue};
use crate::bench::{BenchOutcome, BenchWindow, Load, run};

const CAPACITY_BYTES: u64 = 8 << 30;

/// What stands between `<!-- NAME -->` and `<!-- end of NAME -->`.
type Part = (&'static str, fn() -> String);

/// The page's generated parts.
const PARTS: [Part; 2] = [("figures", figures), ("models", models)];

fn bench(model: &DiskModel, load: &Load) -> BenchOutcome {
    let spec = DiskSpec::of(model.clone());
    let mut drive = super::drive(&spec, CAPACITY_BYTES, None, 1).unwrap();
    // Long enough for caches to fill, and for thousands of requests of the slowest.
    let window = match model {
        DiskModel::Raid10Hdd => BenchWindow::seconds(20.0, 5.0),
        DiskModel::CloudBurst => BenchWindow::seconds(1.0, 20.0),
        _ if drive.facts().is_rotational => BenchWindow::seconds(20.0, 40.0),
        _ => BenchWindow::seconds(2.0, 0.5),
    };
    run(drive.as_mut(), load, window, 1).unwrap()
}

/// Three digits, with thousands apart.
fn count(value: f64) -> String {
    let step = 10_f64.powi(value.abs().log10().floor() as i32 - 2).max(1.0);
    let whole = ((value / step).round() * step).round() as u64;
    let digits = whole.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn time(us: f64) -> String {
    match us {
        us if us >= 9_995.0 => format!("{:.1} ms", us / 1e3),
        us if us >= 999.5 => format!("{:.2} ms", us / 1e3),
        us if us >= 99.95 => format!("{us:.0} us"),
        us => format!("{us:.1} us"),
    }
}

fn figures() -> String {
    let mut text = String::from(
        "| model | reads at depth 1 | 8 | 32 | writes at depth 1 | 8 | 32 | read, mean | \
         read, p99 | \
         flush after a write |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for model in DiskModel::NAMED {
        let mut cells = vec![format!("`{}`", model.name())];
        for load in [Load::random_read, Load::random_write] {
            for depth in [1, 8, 32] {
                cells.push(count(bench(&model, &load(depth)).iops.value));
            }
        }
        let read = bench(&model, &Load::random_read(1)).read.unwrap().latency_us;
        let committed = Load { flush_every: Some(1), ..Load::random_write(1) };
        let flush = bench(&model, &committed).flush.unwrap().latency_us;
        cells.extend([time(read.mean), time(read.p99), time(flush.mean)]);
        let _never_fails = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn models() -> String {
    let mut text = String::new();
    for model in catalogue() {
        describe(&mut text, &model);
    }
    text
}

fn describe(text: &mut String, model: &Model) {
    let _never_fails = write!(
        text,
        "\n### {}\nStands for: {}. A power cut can take: {}.\n\n\
         | parameter | value | from |\n|---|---|---|\n",
        model.name,
        model.real_drive,
        lower_first(model.power_cut)
    );
    for row in &model.parameters {
        let from = match row.origin {
            Origin::Source => "source".to_owned(),
            Origin::Derived(how) => format!("derived: {how}"),
            Origin::Estimated(why) => format!("estimated: {why}"),
        };
        let value = format!("{} {}", row.value, row.unit);
        let _never_fails = writeln!(text, "| {} | {} | {from} |", row.name, value.trim_end());
    }
    if !model.sources.is_empty() {
        text.push_str("\nSources:\n");
    }
    for source in model.sources {
        let _never_fails = match source.url {
            Some(url) => writeln!(text, "- {} <{url}>", source.title),
            None => writeln!(text, "- {}", source.title),
        };
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().collect::<String>() + letters.as_str()
    })
}

#[test]
fn the_page_shows_every_model_and_what_it_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/disks.md");
    let mut page = std::fs::read_to_string(&path).unwrap();
    let is_update = std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1");
    for (name, part) in PARTS {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let (before, rest) = page.split_once(&begin).unwrap();
        let (shown, after) = rest.split_once(&end).unwrap();
        let now = part();
        assert!(
            is_update || shown == now,
            "run UPDATE_DOCS=1 cargo test -p iostrata-sim documented; {name} are now:\n{now}"
        );
        page = format!("{before}{begin}{now}{end}{after}");
    }
    if is_update {
        std::fs::write(&path, page).unwrap();
    }
}

#[test]
fn the_catalogue_describes_every_model_that_has_a_name() {
    let described: Vec<&str> = catalogue().iter().map(|model| model.name).collect();
    let mut named: Vec<&str> = DiskModel::NAMED.iter().map(DiskModel::name).collect();
    named.push("probe:FILE");
    assert_eq!(described, named);
    for model in catalogue() {
        assert!(!model.parameters.is_empty() && !model.real_drive.is_empty(), "{}", model.name);
        let cites = model.parameters.iter().any(|row| row.origin == Origin::Source);
        assert!(!cites || !model.sources.is_empty() || model.name.starts_with("probe"));
    }
}

#[test]
fn numbers_are_short() {
    assert_eq!([count(99.6), count(13_334.0), count(490_193.0)], ["100", "13,300", "490,000"]);
    assert_eq!([time(20.04), time(228.6), time(5_169.65)], ["20.0 us", "229 us", "5.17 ms"]);
}
