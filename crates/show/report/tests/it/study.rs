//! A study's page: everything that the document says, whatever it lacks, in a bounded size.

use std::sync::LazyLock;

use iostrata_report::html;
use iostrata_run::{RunResult, StudyBacklog, StudyDocument, StudyResponse};
use iostrata_spec::OpKind;
use iostrata_stats::Verdict;
use serde_json::Value;

use crate::complete::changed;
use crate::sample::{self, Sample};

/// The page of the long form, made once.
pub static PAGE: LazyLock<String> = LazyLock::new(|| html(&sample::study().view()));

/// The page without the chart library.
fn ours(page: &str) -> String {
    let before = page.find("plotly.js v").unwrap();
    let after = page.find("id=\"chart-data\"").unwrap();
    page[..before].to_owned() + &page[after..]
}

/// Names that tie things together, words of closed sets, and details that charts show as numbers.
const NOT_SHOWN: [&str; 15] = [
    "/id",
    "/factor",
    "/level",
    "/by",
    "/from",
    "/to",
    "/by_from",
    "/by_to",
    "/unit",
    "/points/0",
    "/axes/",
    "/layers/",
    "/report",
    "/title",
    "/stacks/",
];

#[test]
fn every_text_of_the_document_is_in_the_page() {
    let sample = sample::small_study();
    let tokens = std::cell::RefCell::new(Vec::new());
    let document: StudyDocument = changed(sample.study_ref(), |path, old| {
        let host = path.starts_with("/host");
        let names = NOT_SHOWN.iter().any(|hidden| {
            path.ends_with(hidden) || (hidden.ends_with('/') && path.contains(hidden))
        });
        if host || (names && path != "/title") || path.contains("/levels/") {
            return old.to_owned();
        }
        let token = format!("token{}end", tokens.borrow().len());
        tokens.borrow_mut().push((path.to_owned(), token.clone()));
        format!("{old} {token}")
    });
    let kept = serde_json::to_string(&document).unwrap();
    let page = ours(&html(&sample::of_study(document).view()));
    let tokens: Vec<_> =
        tokens.into_inner().into_iter().filter(|(_, token)| kept.contains(token)).collect();
    let missing: Vec<_> = tokens.iter().filter(|(_, token)| !page.contains(token)).collect();
    assert!(tokens.len() > 60, "{}", tokens.len());
    assert!(missing.is_empty(), "not in the page: {missing:?}");
}

#[test]
fn every_point_stands_with_its_interval() {
    let sample = sample::study();
    let document = sample.study_ref();
    let page = &*PAGE;
    assert!(document.points.len() > 130, "{}", document.points.len());
    for point in &document.points {
        let exact = Value::from(point.value).to_string();
        assert!(page.contains(&format!("data-point=\"{}\"", point.id)), "{}", point.id);
        // On hover in its panel, and in the table.
        assert!(page.contains(&format!("({exact})\\u003cbr\\u003e95 %: ")), "{exact} has no hover");
        assert!(page.contains(&format!("title=\"{exact}\"")), "{exact} is not in the table");
    }
    for effect in &document.effects {
        assert!(page.contains(&format!("({})", Value::from(effect.ratio))), "{}", effect.text);
    }
}

#[test]
fn printed_figures_stand_beside_todays_and_blank_stays_blank() {
    let page = &*PAGE;
    let row = |text: &str| {
        let from = page.find(text).unwrap();
        page[from..from + page[from..].find("</tr>").unwrap()].to_owned()
    };
    let printed = row("ext4, random writes, one file, O_DIRECT, 4K, 4 writers");
    assert!(printed.contains(">12 K to 14 K IOPS<"), "{printed}");
    assert!(printed.contains("IOPS</b>") && printed.contains("x</b>"), "{printed}");
    let blank = row("XFS, random writes, one file, fsync");
    assert!(blank.contains("data-label=\"Then\"></td>"), "{blank}");
    assert!(blank.contains("data-label=\"Now / then\"></td>"), "{blank}");
    assert!(blank.contains("IOPS</b>"), "{blank}");
    let unmeasured = row("raw device, random reads and writes, bandwidth at most");
    assert!(unmeasured.contains("data-label=\"Now\"></td>"), "{unmeasured}");
}

#[test]
fn what_the_kernel_took_otherwise_is_marked() {
    let page = &*PAGE;
    assert!(page.contains("<span class=\"warn\">2048</span>"));
    assert!(page.contains(">mq-deadline</span>"));
    assert!(!page.contains("\"warn\">mq-deadline"));
    assert!(page.contains("XFS has not taken it since Linux 4.19"));
}

#[test]
fn no_measurable_difference_is_grey_and_said() {
    let page = &*PAGE;
    assert!(page.contains("no measurable difference") && page.contains("#9aa1ab"));
}

#[test]
fn it_is_one_file_of_a_bounded_size() {
    let page = &*PAGE;
    let ours = ours(page);
    assert!(page.len() - ours.len() < 4_900_000, "the library: {}", page.len() - ours.len());
    assert!(ours.len() < 6_000_000, "{} bytes of our own", ours.len());
    assert_eq!(page.matches("plotly.js v3").count(), 1);
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    assert!(!ours.contains("://"), "an address is in the page");
}

/// A document that lacks something, which must still be shown.
fn without(change: impl Fn(&mut StudyDocument)) -> Sample {
    let mut sample = sample::small_study();
    change(sample.study());
    sample
}

#[test]
fn whatever_is_missing_the_page_stands() {
    let empty = without(|study| {
        study.points.clear();
        study.factors.clear();
        study.effects.clear();
        study.interactions.clear();
        study.axes.clear();
        study.findings.clear();
        study.then.clear();
        study.headline.clear();
        study.changes.clear();
        study.unavailable.clear();
        study.method.clear();
        study.then_source = None;
        study.interrupted = true;
    });
    let page = ours(&html(&empty.view()));
    assert!(page.contains("Stopped before its end") && page.contains("No effect was taken"));
    for absent in
        ["id=\"matrix\"", "id=\"point\"", "id=\"then\"", "id=\"point-data\"", "id=\"axes\""]
    {
        assert!(!page.contains(absent), "{absent}");
    }
    let one = without(|study| {
        study.points.truncate(1);
        study.axes.clear();
        study.points[0].value_ci95 = None;
    });
    let page = ours(&html(&one.view()));
    assert!(page.contains("id=\"matrix\"") && page.contains("no interval"));
    assert!(!page.contains("id=\"beside\""), "one point has none beside it");
    let bare = without(|study| {
        for point in &mut study.points {
            point.profile = None;
            point.latency_by_layer = None;
            point.device = None;
            point.cpu = None;
            point.ops.remove(OpKind::Read);
            point.ops.remove(OpKind::Write);
        }
    });
    let page = ours(&html(&bare.view()));
    assert!(!page.contains("id=\"point-data\"") && !page.contains("Device, as iostat"));
    assert!(page.contains("id=\"matrix\""));
}

#[test]
fn points_without_an_axis_are_bars() {
    let sample = without(|study| {
        study.axes.clear();
        study.factors.retain(|factor| factor.factor != "workers");
        study.points.truncate(2);
        for point in &mut study.points {
            point.levels.retain(|at| at.factor == "filesystem");
        }
        study.factors.retain(|factor| factor.factor == "filesystem");
    });
    let page = html(&sample.view());
    let (_, charts) = page.split_once("id=\"chart-data\">").unwrap();
    let charts: Value = serde_json::from_str(charts.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(charts["panel-0-0"]["data"][0]["type"], "bar");
    assert_eq!(charts["panel-0-0"]["data"][0]["x"].as_array().unwrap().len(), 2);
}

#[test]
fn axes_of_further_levels_are_folded() {
    let page = &*PAGE;
    assert!(page.contains("6 panels of further levels"));
    let (_, charts) = page.split_once("id=\"chart-data\">").unwrap();
    let charts: Value = serde_json::from_str(charts.split_once("</script>").unwrap().0).unwrap();
    let first = &charts["panel-0-2"]["data"];
    assert_eq!(first.as_array().unwrap().len(), 5, "raw, and two file systems in two ways");
    assert_eq!(first[1]["line"]["dash"], "solid");
    assert_eq!(first[2]["line"]["dash"], "dot");
    assert_eq!(first[1]["line"]["color"], first[2]["line"]["color"], "one file system, one colour");
    assert!(first[0]["error_y"]["array"].as_array().unwrap().len() == 6);
    assert!(matches!(sample::study().result, Some(RunResult::Study(_))));
}

#[test]
fn response_time_over_load_is_the_first_picture() {
    let sample = without(|study| {
        let axis = &mut study.axes[0];
        let values = |times: f64| axis.x.iter().map(|x| times * x).collect::<Vec<f64>>();
        axis.response = Some(StudyResponse {
            mean_us: values(900.0),
            p99_us: values(4_000.0),
            p99_us_ci95: Vec::new(),
            knee: axis.x.last().copied(),
            backlog: Some(StudyBacklog {
                at: axis.x[axis.x.len() - 1],
                per_s: 150.0,
                per_s_ci95: [148.0, 152.0],
                window_s: 4.0,
                wait_us_max: 410_000.0,
            }),
        });
    });
    let page = html(&sample.view());
    let place = |id: &str| page.find(&format!("<section id=\"{id}\"")).unwrap();
    assert!(place("response") < place("then") && place("response") < place("matrix"));
    let text = "the queue grows by 150 requests every second (148 to 152)";
    assert!(page.contains(text), "what a growing queue is must be said");
    let (_, charts) = page.split_once("id=\"chart-data\">").unwrap();
    let charts: Value = serde_json::from_str(charts.split_once("</script>").unwrap().0).unwrap();
    let drawn = &charts["response-0"];
    assert_eq!(drawn["data"].as_array().unwrap().len(), 2, "99th percentile and mean");
    assert_eq!(drawn["layout"]["annotations"][0]["text"], "waiting begins");
}

#[test]
fn one_figure_is_no_chart() {
    let sample = without(|study| {
        study.axes.clear();
        study.points.truncate(1);
    });
    let page = html(&sample.view());
    assert!(page.contains("id=\"matrix\"") && !page.contains("chart-panel-0-0"));
    let value = &sample.study_ref().points[0];
    assert!(page.contains(&format!("title=\"{}\"", Value::from(value.value))));
}

#[test]
fn a_caution_of_most_points_is_said_once() {
    let foreign = Verdict::ForeignIo;
    let sample = without(|study| {
        study.points.iter_mut().for_each(|point| point.verdicts.add(foreign));
        study.verdicts = [foreign].into_iter().collect();
    });
    let page = ours(&html(&sample.view()));
    assert!(page.contains(&format!("Of most points: {}", foreign.explain())));
    assert!(!page.contains(">foreign_io</span>"), "and not again at every point");
    let text = iostrata_report::terminal(&sample.view(), 100, false);
    assert!(text.contains(foreign.explain()), "{text}");
}
