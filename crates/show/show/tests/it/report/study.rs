//! A study's page: everything that the document holds, whatever it lacks, in a bounded size.

use std::sync::LazyLock;

use iostrata_plan::OpKind;
use iostrata_plan::study::{FactorLevels, LevelAt};
use iostrata_run::{RunResult, StudyBacklog, StudyDocument, StudyResponse};
use iostrata_show::report::{html, markdown, svg, terminal};
use iostrata_stats::Verdict;
use serde_json::Value;

use crate::report::complete::changed;
use crate::report::sample::{self, Sample};

/// The page of the long form, made once.
pub static PAGE: LazyLock<String> = LazyLock::new(|| html(&sample::study().view()));

/// Names that tie things together, words of closed sets, and details that charts show as numbers.
const NOT_SHOWN: [&str; 18] = [
    "/id",
    "/metric",
    "/point",
    "/factors/",
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
    let page = html(&sample::of_study(document).view());
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
        assert!(page.contains(&format!("({exact})\n95 %: ")), "{exact} has no hover");
        assert!(
            page.contains(&format!("title=\"{exact}\" data-label")),
            "{exact} is not in the table"
        );
    }
    for effect in &document.effects {
        assert!(page.contains(&format!("({})", Value::from(effect.ratio))), "{}", effect.text);
    }
}

#[test]
fn intervals_are_sorted_by_their_lower_ends() {
    let cells = PAGE.split("<td").filter(|cell| cell.contains("data-label=\"95 % interval\""));
    let numbers: Vec<&str> = cells.filter(|cell| cell.contains(" us")).collect();
    assert!(numbers.len() > 100, "{}", numbers.len());
    assert!(numbers.iter().all(|cell| cell.contains("data-v=")), "{}", numbers[0]);
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
    assert!(printed.contains("IOPS <span class=\"muted\">\u{b1}"), "{printed}");
    assert!(printed.contains("data-label=\"Times\">1."), "{printed}");
    let blank = row("XFS, random writes, one file, fsync");
    assert!(blank.contains("data-label=\"Then\"></td>"), "{blank}");
    assert!(blank.contains("data-label=\"Times\"></td>"), "{blank}");
    assert!(blank.contains("IOPS <span"), "{blank}");
    let unmeasured = row("raw device, random reads and writes, bandwidth at most");
    assert!(unmeasured.contains("data-label=\"Now\"></td>"), "{unmeasured}");
}

#[test]
fn a_device_that_merged_nothing_is_a_figure() {
    let sample = without(|study| {
        let row = study.then.iter_mut().find(|row| row.now.is_some()).unwrap();
        row.text = "merged requests".to_owned();
        (row.now, row.now_ci95, row.unit) = (Some(0.0), None, "/s".to_owned());
    });
    let page = html(&sample.view());
    let from = page.find("merged requests").unwrap();
    let row = &page[from..from + page[from..].find("</tr>").unwrap()];
    assert!(!row.contains("unknown"), "{row}");
}

#[test]
fn what_is_not_known_is_drawn_nowhere() {
    let unknown = |study: &mut StudyDocument| {
        for point in &mut study.points {
            (point.value, point.value_ci95) = (777.125, Some([100.0, 1_554.0]));
        }
    };
    let with_axis = without(unknown);
    let without_axis = without(|study| {
        study.axes.clear();
        study.factors.retain(|factor| factor.factor == "filesystem");
        study.points.truncate(2);
        for point in &mut study.points {
            point.levels.retain(|at| at.factor == "filesystem");
        }
        unknown(study);
    });
    for sample in [with_axis, without_axis] {
        let page = html(&sample.view());
        let charts = page.split("<figure id=\"chart-").skip(1);
        for chart in charts.map(|rest| rest.split("</figure>").next().unwrap()) {
            assert!(!chart.contains("777.125"), "{chart}");
        }
    }
}

#[test]
fn what_the_kernel_took_otherwise_is_marked() {
    let page = &*PAGE;
    assert!(page.contains("<td class=\"warn\" data-label=\"Took\">2048</td>"));
    assert!(page.contains("<td data-label=\"Took\">mq-deadline</td>"));
    assert!(page.contains("XFS has not taken it since Linux 4.19"));
    let taken_back = "taken back at the end";
    let killed = html(&without(|study| study.interrupted = true).view());
    assert!(page.contains(taken_back) && !killed.contains(taken_back));
}

#[test]
fn no_measurable_difference_is_grey_and_said() {
    let page = &*PAGE;
    assert!(page.contains("no measurable difference") && page.contains("--c:var(--grey)"));
}

#[test]
fn it_is_one_file_of_a_bounded_size() {
    let page = &*PAGE;
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
    assert!(!page.contains("://"), "an address is in the page");
}

/// One chart of a page.
fn chart<'a>(page: &'a str, name: &str) -> &'a str {
    let from = page.find(&format!("<figure id=\"chart-{name}\"")).unwrap();
    &page[from..from + page[from..].find("</figure>").unwrap()]
}

/// A document that lacks something, which must still be shown.
pub fn without(change: impl Fn(&mut StudyDocument)) -> Sample {
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
    let page = html(&empty.view());
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
    let page = html(&one.view());
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
    let page = html(&bare.view());
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
    let chart = chart(&page, "panel-0-0");
    assert_eq!((chart.matches("<rect").count(), chart.matches("<polyline").count()), (2, 0));
    let picture = svg(&sample.view()).unwrap();
    // One rectangle is the page.
    assert_eq!((picture.matches("<rect").count(), picture.matches("<polyline").count()), (3, 0));
}

#[test]
fn an_axis_has_two_levels_and_names_them_as_the_study_does() {
    let with = |levels: [&str; 2]| {
        let sample = without(|study| {
            study.axes.clear();
            study.points.truncate(2);
            let factor = || "memory_limit".to_owned();
            let all = ["64M", "128M", "256M"].map(str::to_owned).to_vec();
            study.factors = vec![FactorLevels { factor: factor(), levels: all, is_axis: true }];
            for (point, level) in study.points.iter_mut().zip(levels) {
                point.levels = vec![LevelAt { factor: factor(), level: level.to_owned() }];
            }
        });
        terminal(&sample.view(), 100, false)
    };
    let text = with(["64M", "128M"]);
    let heads = text.split("IOPS over memory limit\n").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(heads.split_whitespace().collect::<Vec<_>>(), ["64M", "128M"], "{text}");
    let text = with(["64M", "64M"]);
    assert!(!text.contains("IOPS over memory limit"), "points of one level lie on no axis: {text}");
}

#[test]
fn a_study_has_a_picture_of_its_panels() {
    let sample = sample::study();
    let picture = svg(&sample.view()).unwrap();
    assert!(picture.contains("<polyline"), "{picture}");
    let headline = sample.study_ref().headline.concat();
    let words = headline.split_whitespace().take(5).collect::<Vec<_>>().join(" ");
    assert!(picture.contains(&words), "{words}");
    let none = without(|study| study.points.clear());
    assert!(svg(&none.view()).is_err(), "nothing is there to be drawn");
}

#[test]
fn axes_of_further_levels_are_folded() {
    let page = &*PAGE;
    assert!(page.contains("6 panels of further levels"));
    let chart = chart(page, "panel-0-2");
    let lines: Vec<&str> = chart.split("<polyline").skip(1).collect();
    assert_eq!(lines.len(), 5, "raw, and two file systems in two ways");
    let style = |line: &str| line.split("style=\"stroke:").nth(1).unwrap()[..20].to_owned();
    assert!(!lines[1].contains("dasharray") && lines[2].contains("dasharray"));
    assert_eq!(style(lines[1])[..13], style(lines[2])[..13], "one file system, one colour");
    assert_eq!(chart.matches("data-at=\"0.").count(), 6);
    assert_eq!(chart.matches("class=\"whisker\"").count(), chart.matches("data-at=").count());
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
    let drawn = chart(&page, "response-0");
    assert_eq!(drawn.matches("<polyline").count(), 2, "99th percentile and mean");
    assert!(drawn.contains(">waiting begins</text>"), "{drawn}");
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
    assert!(page.contains(&format!("title=\"{}\" data-label", Value::from(value.value))));
}

#[test]
fn a_caution_of_most_points_is_said_once() {
    let foreign = Verdict::ForeignIo;
    let sample = without(|study| {
        study.points.iter_mut().for_each(|point| point.verdicts.add(foreign));
        study.verdicts = [foreign].into_iter().collect();
    });
    let page = html(&sample.view());
    assert!(page.contains(&format!("Of most points: {}", foreign.explain())));
    let no_other = without(|study| {
        study.verdicts = [foreign].into_iter().collect();
        study.points.iter_mut().for_each(|point| point.verdicts = study.verdicts.clone());
    });
    for form in [html(&no_other.view()), markdown(&no_other.view())] {
        assert!(!form.contains("with a caution of their own"), "all share it");
    }
    assert!(!page.contains(">foreign_io</span>"), "and not again at every point");
    let text = iostrata_show::report::terminal(&sample.view(), 100, false);
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains(foreign.explain()), "{text}");
}
