//! A study, and two of its points, as text.

use iostrata_run::host::ProfileDiff;
use iostrata_run::{StudyDocument, StudyPoint};
use iostrata_show::report::{
    PointDiff, markdown, point_diff_markdown, point_diff_terminal, terminal,
};

use crate::report::complete::changed;
use crate::report::sample;

#[test]
fn the_terminal_fits_its_width_and_is_ascii() {
    for sample in [sample::study(), sample::small_study()] {
        for width in [60, 80, 100, 140] {
            let text = terminal(&sample.view(), width, false);
            let most = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(most <= width, "{most} columns at {width}:\n{text}");
            assert!(text.is_ascii(), "{text}");
            assert!(text.lines().count() < 130, "{text}");
        }
    }
}

#[test]
fn the_terminal_reads_at_a_glance() {
    let text = terminal(&sample::study().view(), 100, false);
    for said in [
        "iostrata study fusion-io, /var/lib/mysql",
        "Then and now",
        "12 K to 14 K IOPS 15.3 K IOPS +- ",
        "\n  4K, 16 writers\n",
        "  File system: raw device to ext4 ",
        "0.412x [0.389, 0.437]",
        "no measurable difference",
        "may be chance, of ",
        "IOPS over workers",
        "collapses at 4",
        "Not measured here\n  mount option nobarrier: XFS has not taken it",
        "93 % of them are within +- 5.0 %",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let blank = text.lines().find(|line| line.contains("9.42 K IOPS")).unwrap();
    assert!(!blank.contains('x'), "nothing was printed then, so there is no ratio: {blank}");
}

#[test]
fn markdown_has_every_point_and_every_part() {
    let sample = sample::study();
    let text = markdown(&sample.view());
    for said in [
        "# iostrata study fusion-io",
        "## Then and now",
        "| raw device, random reads, 4K, at most | 100 K IOPS | ",
        "## What each factor does",
        "### Where one factor depends on another",
        "## Along the axes",
        "## Latencies",
        "## Where the processors were",
        "## What threads waited for",
        "## Where the time goes",
        "| nr_requests of loop0 | 100000 | 2048 |",
        "- mount option nobarrier: XFS has not taken it since Linux 4.19",
        "are in no interval",
        "- Loop ceiling 4k: 212 K/s \u{b1} 2.1 %, n = 4",
    ] {
        assert!(text.contains(said), "{said} is not in the Markdown");
    }
    let matrix = text.split("## Every point").nth(1).unwrap().split("## ").next().unwrap();
    assert_eq!(matrix.matches("(n = 96)").count(), sample.study_ref().points.len());
}

fn pair(document: &StudyDocument) -> (&StudyPoint, &StudyPoint) {
    let of = |id: &str| document.points.iter().find(|point| point.id == id).unwrap();
    (of("xfs_randwrite_4k_w4_direct_f1"), of("xfs_randwrite_4k_w64_direct_f1"))
}

#[test]
fn two_points_stand_beside_each_other() {
    let sample = sample::study();
    let (a, b) = pair(sample.study_ref());
    let profile = ProfileDiff::of(a.profile.as_ref().unwrap(), b.profile.as_ref().unwrap());
    let diff = PointDiff { a: ("run-1", a), b: ("run-2", b), profile: Some(&profile) };
    let text = point_diff_terminal(&diff, 100, false);
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 100), "{text}");
    let lock = profile.layers.iter().find(|row| row.layer.title() == "lock").unwrap().share;
    assert!(lock.is_significant && lock.points > 10.0, "the sample differs in its lock");
    for said in [
        "A run-1: random writes, 4k, xfs",
        "  value ",
        "  95 % interval ",
        &format!("{:+.1}  [{:+.1}, {:+.1}]", lock.points, lock.points_ci95[0], lock.points_ci95[1]),
        "  rwsem_down_write_slowpath  xfs_file_write_iter ",
        "  writes, file system ",
    ] {
        assert!(text.contains(said), "{said} is not in\n{text}");
    }
    let text = point_diff_markdown(&diff);
    assert!(text.contains(&format!("**{:+.1}**", lock.points)), "{text}");
    assert!(text.contains("### Latency by layer") && text.contains("### Off-CPU waits"));
}

#[test]
fn two_points_without_profiles_are_shown_as_far_as_they_go() {
    let sample = sample::study();
    let (a, b) = pair(sample.study_ref());
    let (mut a, mut b) = (a.clone(), b.clone());
    for point in [&mut a, &mut b] {
        point.profile = None;
        point.latency_by_layer = None;
        point.value_ci95 = None;
    }
    let diff = PointDiff { a: ("A", &a), b: ("B", &b), profile: None };
    let text = point_diff_terminal(&diff, 80, false);
    assert!(text.contains("not both points have a profile"), "{text}");
    assert!(!text.contains("95 % interval"), "{text}");
    assert!(point_diff_markdown(&diff).contains("not both points have a profile."));
}

#[test]
fn names_of_a_study_steer_no_terminal_and_make_no_markup() {
    let steering = changed(sample::small_study().study_ref(), |_, old| {
        format!("{old}\u{1b}]0;x\u{7}\u{1b}[2J\r\u{202e}")
    });
    let sample = sample::of_study(steering);
    let points = &sample.study_ref().points;
    let diff = PointDiff { a: ("A\u{7}", &points[0]), b: ("B", &points[1]), profile: None };
    for text in [terminal(&sample.view(), 100, false), point_diff_terminal(&diff, 100, false)] {
        assert!(!text.contains(['\u{7}', '\r', '\u{202e}', '\u{1b}']), "{text}");
    }
    let hostile: StudyDocument = changed(sample::small_study().study_ref(), |_, old| {
        format!("{old}<script>x</script> <img src=x>|")
    });
    let sample = sample::of_study(hostile);
    let points = &sample.study_ref().points;
    let diff = PointDiff { a: ("<img>", &points[0]), b: ("B", &points[1]), profile: None };
    for text in [markdown(&sample.view()), point_diff_markdown(&diff)] {
        for line in text.lines().filter(|line| !line.contains('`')) {
            assert!(!line.contains("<script>") && !line.contains(" <img"), "{line}");
        }
    }
}
