//! Everything that a document holds is in the report.

use iostrata_run::{ProbeDocument, RunResult, Unavailable};
use iostrata_show::report::{html, markdown};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::report::sample::{self, Sample};

/// Every text of the sample's probe, changed.
pub fn with_texts(sample: &mut Sample, change: impl Fn(&str, &str) -> String) {
    let changed: ProbeDocument = changed(sample.document_ref(), change);
    sample.result = Some(RunResult::Probe(Box::new(changed)));
}

/// Every text of a document that may be any text, changed by a function that gets its path.
pub fn changed<T: Serialize + DeserializeOwned>(
    document: &T,
    change: impl Fn(&str, &str) -> String,
) -> T {
    let document = serde_json::to_value(document).unwrap();
    let mut paths = Vec::new();
    text_paths(&document, &mut String::new(), &mut paths);
    let mut changed = document;
    for path in paths {
        let old = changed.pointer(&path).and_then(Value::as_str).unwrap().to_owned();
        let mut tried = changed.clone();
        *tried.pointer_mut(&path).unwrap() = change(&path, &old).into();
        // Words of a closed set do not parse when changed; they stay.
        if serde_json::from_value::<T>(tried.clone()).is_ok() {
            changed = tried;
        }
    }
    serde_json::from_value(changed).unwrap()
}

fn text_paths(value: &Value, path: &mut String, paths: &mut Vec<String>) {
    let length = path.len();
    match value {
        Value::String(_) => paths.push(path.clone()),
        Value::Array(all) => {
            for (n, one) in all.iter().enumerate() {
                path.push_str(&format!("/{n}"));
                text_paths(one, path, paths);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, one) in fields {
                path.push_str(&format!("/{name}"));
                text_paths(one, path, paths);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Names that tie things together, and details that only the run directory holds.
const NOT_SHOWN: [&str; 12] = [
    "/name",
    "/from",
    "/to",
    "/rung",
    "/unit",
    "/axis",
    "/below/",
    "/clock_sources_available",
    "/schedulers_available",
    "/device_number",
    "/report",
    "/curves/1/title",
];

#[test]
fn every_text_of_the_document_is_in_the_page() {
    let mut sample = sample::probe();
    let tokens = std::cell::RefCell::new(Vec::new());
    with_texts(&mut sample, |path, old| {
        if NOT_SHOWN.iter().any(|hidden| path.contains(hidden)) {
            return old.to_owned();
        }
        let token = format!("token{}end", tokens.borrow().len());
        tokens.borrow_mut().push((path.to_owned(), token.clone()));
        format!("{old} {token}")
    });
    let kept = serde_json::to_string(sample.document_ref()).unwrap();
    let page = html(&sample.view());
    let tokens: Vec<_> =
        tokens.into_inner().into_iter().filter(|(_, token)| kept.contains(token)).collect();
    let missing: Vec<_> = tokens.iter().filter(|(_, token)| !page.contains(token)).collect();
    assert!(tokens.len() > 70, "{}", tokens.len());
    assert!(missing.is_empty(), "not in the page: {missing:?}");
}

#[test]
fn every_figure_is_in_the_charts_with_every_digit() {
    let sample = sample::probe();
    let document = sample.document_ref();
    let numbers: Vec<f64> = document
        .curves
        .iter()
        .flat_map(|curve| &curve.points)
        .flat_map(|point| {
            [point.value, point.latency_mean_us.unwrap(), point.latency_p99_us.unwrap()]
        })
        .chain(document.losses.iter().map(|loss| loss.loss_pct))
        .collect();
    let page = html(&sample.view());
    for number in numbers {
        let exact = Value::from(number).to_string();
        assert!(page.contains(&format!("({exact})")), "{exact} is not on hover");
    }
}

#[test]
fn it_is_one_small_file_that_asks_nothing_of_a_network() {
    let page = html(&sample::probe().view());
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    assert!(!page.contains("<link") && !page.contains("@import") && !page.contains("<iframe"));
    assert!(!page.contains("://"), "an address is in the page");
    assert!(page.contains("Content-Security-Policy"));
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn a_clean_device_reads_as_one() {
    let sample = sample::clean_probe();
    let (page, text) = (html(&sample.view()), markdown(&sample.view()));
    for said in ["No layer costs more than 8 %", "Nothing need change"] {
        assert!(page.contains(said) && text.contains(said), "{said}");
    }
    let cleared = "Every suspicion that was raised was cleared";
    assert!(page.contains(cleared));
    let mut cut_short = sample::clean_probe();
    let left_out = Unavailable::left_out("sustained writes", "the time was over", "--max-time");
    cut_short.document().unavailable.push(left_out);
    assert!(!html(&cut_short.view()).contains(cleared), "not all points ran");
}

#[test]
fn a_run_that_was_stopped_is_shown_as_far_as_it_went() {
    let sample = sample::partial();
    let (page, text) = (html(&sample.view()), markdown(&sample.view()));
    assert!(page.contains("A partial run") && page.contains("chart-time-"));
    assert!(page.contains("stopped before its end"));
    assert!(text.contains("4 KiB random reads, one at a time"));
}

#[test]
fn markdown_has_the_same_figures() {
    let text = markdown(&sample::probe().view());
    for said in [
        "**A database here can commit 2,410 times",
        "| 4 KiB random reads, one at a time | device | 9.84 K reads/s \u{b1} 0.4 % (n = 102) |",
        "`innodb_flush_method = O_DIRECT`",
        "effect **74 %** (73 to 75 %, n = 3) \u{b7} `unwritten_extents`)",
        "| 1 MiB/s | 1.76 GiB | 21 s |",
        "confirmed",
        "- `steal`: the hypervisor took processor time away",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
}
