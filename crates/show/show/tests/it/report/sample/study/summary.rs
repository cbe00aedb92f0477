//! The summary of a study: headline, then and now, effects, curves, findings.

use std::collections::BTreeMap;

use iostrata_plan::Layer;
use iostrata_plan::study::{Extent, LevelAt};
use iostrata_run::{
    AxisKind, ChangeRecord, Finding, FindingKind, StudyAnswer, StudyAxis, StudyDocument,
    StudyEffect, StudyInteraction, StudyPoint, ThenRow, Unavailable,
};
use iostrata_stats::{Conclusion, Measured, Verdict, Verdicts};
use serde_json::json;

use super::around;
use crate::report::sample::host::host;

fn then_row(text: &str, then: [Option<f64>; 2], point: Option<&StudyPoint>) -> ThenRow {
    let now = point.map(|point| point.value);
    ThenRow {
        text: text.into(),
        then: then[0],
        then_high: then[1],
        now,
        now_ci95: point.and_then(|point| point.value_ci95),
        now_n: point.map_or(0, |point| point.value_n),
        unit: "IOPS".into(),
        times: then[0].zip(now).map(|(then, now)| now / then),
        points: point.iter().map(|point| point.id.clone()).collect(),
        verdicts: point.map(|point| point.verdicts.clone()).unwrap_or_default(),
    }
}

fn then(points: &[StudyPoint]) -> Vec<ThenRow> {
    let of = |id: &str| Some(points.iter().find(|point| point.id == id).unwrap());
    let k = |thousands: f64| Some(thousands * 1e3);
    vec![
        then_row(
            "raw device, random reads, 4K, at most",
            [k(100.0), None],
            of("raw_randread_4k_w16_direct_f1"),
        ),
        then_row(
            "raw device, random reads, 16K, at most",
            [k(35.0), None],
            of("raw_randread_16k_w64_direct_f1"),
        ),
        then_row(
            "raw device, random writes, 4K, at most",
            [k(100.0), None],
            of("raw_randwrite_4k_w64_direct_f1"),
        ),
        then_row(
            "raw device, random reads and writes, 4K",
            [k(78.0), None],
            of("raw_randrw_4k_w256_direct_f1"),
        ),
        then_row(
            "ext4, random writes, one file, O_DIRECT, 4K, 4 writers",
            [k(12.0), k(14.0)],
            of("ext4_randwrite_4k_w4_direct_f1"),
        ),
        then_row(
            "XFS, random writes, one file, O_DIRECT, 4K, 4 writers",
            [k(40.0), None],
            of("xfs_randwrite_4k_w4_direct_f1"),
        ),
        then_row(
            "XFS, random writes, one file, O_DIRECT, 4K, 16 writers",
            [k(12.0), None],
            of("xfs_randwrite_4k_w16_direct_f1"),
        ),
        then_row(
            "XFS, random writes, one file, fsync, 4K, 16 writers",
            [None, None],
            of("xfs_randwrite_4k_w16_fsync_f1"),
        ),
        then_row(
            "raw device, random reads and writes, bandwidth at most",
            [Some(1.0e9), None],
            None,
        ),
    ]
}

fn effect(factor: &str, from: &str, to: &str, ratio: f64, wide: f64, n: u64) -> StudyEffect {
    let ends = [ratio / (1.0 + wide), ratio * (1.0 + wide)];
    let conclusion = match ends {
        [low, _] if low > 1.0 => Conclusion::Higher,
        [_, high] if high < 1.0 => Conclusion::Lower,
        _ => Conclusion::NoMeasurableDifference,
    };
    StudyEffect {
        factor: factor.into(),
        from: from.into(),
        to: to.into(),
        ratio,
        ratio_ci95: Some(ends),
        ratio_n: n,
        ratio_min: ratio * 0.24,
        ratio_max: ratio * 2.9,
        is_everywhere: false,
        conclusion,
        text: format!("{factor}: from {from} to {to} the figure changes {ratio} times."),
        verdicts: Verdicts::none(),
    }
}

fn effects() -> Vec<StudyEffect> {
    vec![
        effect("filesystem", "raw", "ext4", 0.412, 0.06, 54),
        effect("filesystem", "raw", "xfs", 0.553, 0.07, 54),
        effect("filesystem", "ext4", "xfs", 1.374, 0.05, 120),
        effect("rw", "randread", "randwrite", 0.351, 0.08, 54),
        effect("rw", "randwrite", "randrw", 1.009, 0.02, 90),
        // Its own interval shows a difference, and all comparisons together do not.
        StudyEffect {
            conclusion: Conclusion::NoMeasurableDifference,
            ..effect("rw", "randread", "randrw", 0.93, 0.04, 54)
        },
        effect("bs", "4k", "16k", 0.521, 0.03, 210),
        effect("method", "direct", "fsync", 0.874, 0.05, 144),
    ]
}

fn interactions() -> Vec<StudyInteraction> {
    let one = |factor: [&str; 3], by: [&str; 3], ratio: f64, conclusion| StudyInteraction {
        factor: factor[0].into(),
        from: factor[1].into(),
        to: factor[2].into(),
        by: by[0].into(),
        by_from: by[1].into(),
        by_to: by[2].into(),
        ratio,
        ratio_ci95: around(ratio, 0.09),
        ratio_n: 36,
        conclusion,
        text: format!(
            "The effect of {} is {ratio} times as large with {} {}.",
            factor[0], by[0], by[2]
        ),
    };
    vec![
        one(["method", "direct", "fsync"], ["filesystem", "ext4", "xfs"], 0.412, Conclusion::Lower),
        one(
            ["filesystem", "ext4", "xfs"],
            ["files", "1", "8"],
            1.03,
            Conclusion::NoMeasurableDifference,
        ),
    ]
}

/// The curves along workers and files.
pub fn axes(document: &StudyDocument) -> Vec<StudyAxis> {
    let mut all = Vec::new();
    for axis in ["workers", "files"] {
        let mut groups: BTreeMap<Vec<LevelAt>, Vec<(f64, &StudyPoint)>> = BTreeMap::new();
        for point in &document.points {
            let Some(at) = point.levels.iter().find(|at| at.factor == axis) else { continue };
            let mut rest = point.levels.clone();
            rest.retain(|other| other.factor != axis);
            groups.entry(rest).or_default().push((at.level.parse().unwrap(), point));
        }
        for (levels, mut points) in groups {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if points.len() > 2 {
                all.push(curve(axis, levels, &points));
            }
        }
    }
    all
}

fn curve(axis: &str, levels: Vec<LevelAt>, points: &[(f64, &StudyPoint)]) -> StudyAxis {
    let (best_x, best) = points.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value)).unwrap();
    let last = points[points.len() - 1];
    let change = 100.0 * (last.1.value / best.value - 1.0);
    let (kind, at) = if change < -15.0 {
        (AxisKind::Collapse, Some(*best_x))
    } else if points[0].1.value > best.value * 0.9 {
        (AxisKind::Flat, None)
    } else if *best_x == last.0 {
        (AxisKind::Scaling, None)
    } else {
        (AxisKind::Saturating, Some(*best_x))
    };
    StudyAxis {
        factor: axis.into(),
        text: format!("{} levels of {axis}: {kind:?}.", points.len()),
        points: points.iter().map(|point| point.1.id.clone()).collect(),
        x: points.iter().map(|point| point.0).collect(),
        kind,
        at,
        change_pct: at.map(|_| change),
        change_pct_ci95: at.map(|_| [change - 3.0, change + 3.0]),
        enough: (axis == "files").then_some(*best_x),
        beyond_pct_max: (axis == "files").then_some(6.0),
        response: None,
        levels,
    }
}

fn findings() -> Vec<Finding> {
    let one = |id: &str, text: &str, kind, effect: Option<f64>| Finding {
        id: id.into(),
        kind,
        text: text.into(),
        layer: Layer::Filesystem,
        effect_pct: effect,
        effect_pct_ci95: effect.map(|effect| [effect - 2.0, effect + 2.0]),
        effect_pct_n: 18,
        evidence: BTreeMap::from([("lock_share_pct".to_owned(), json!(56.8))]),
    };
    vec![
        one(
            "collapse_along_axis",
            "XFS with O_DIRECT on one file falls after 4 writers: at 256 it does 83 % less than at its best.",
            FindingKind::Loss,
            Some(83.0),
        ),
        one(
            "collapse_along_axis",
            "ext4 with fsync falls after 128 writers.",
            FindingKind::Loss,
            Some(21.0),
        ),
        one("enough", "4 files are enough for ext4 at 64 writers.", FindingKind::Sizing, None),
        one(
            "no_difference",
            "No measurable difference between random writes and random reads and writes.",
            FindingKind::Sizing,
            None,
        ),
    ]
}

fn changes() -> Vec<ChangeRecord> {
    let change = |text: &str, asked: Option<&str>, took: Option<&str>| ChangeRecord {
        text: text.into(),
        asked: asked.map(str::to_owned),
        took: took.map(str::to_owned),
    };
    vec![
        change("loop device over /var/lib/iostrata/volume-1", None, Some("/dev/loop0")),
        change("ext4 made on /dev/loop0", None, None),
        change("scheduler of loop0", Some("mq-deadline"), Some("mq-deadline")),
        change("nr_requests of loop0", Some("100000"), Some("2048")),
    ]
}

/// One answer that was given and one that could not be.
fn answers(points: &[StudyPoint]) -> Vec<StudyAnswer> {
    let id = |at: usize| vec![points[at].id.clone()];
    vec![
        StudyAnswer {
            asks: "whether ext4 leaves the device what it can do".into(),
            text: "One hot file still caps ext4".into(),
            is_known: true,
            ratio: Some(0.139),
            ratio_ci95: Some([0.131, 0.147]),
            ratio_n: 3,
            difference: None,
            of: id(1),
            over: id(0),
            ..StudyAnswer::default()
        },
        StudyAnswer {
            asks: "whether one hot file stalls".into(),
            text: "One hot file stalls for 32 % of the time".into(),
            is_known: true,
            difference: Some(Measured {
                value: 32.0,
                ci95: Some([27.0, 37.0]),
                n: 3,
                verdicts: <_>::default(),
            }),
            of: id(1),
            over: id(0),
            ..StudyAnswer::default()
        },
        StudyAnswer {
            asks: "whether eight files bring more".into(),
            text: "it cannot be said whether eight files bring more".into(),
            ratio: Some(1.1),
            ratio_ci95: Some([0.6, 2.0]),
            ratio_n: 3,
            ..StudyAnswer::default()
        },
    ]
}

/// A document around points; factors and axes are still to come.
pub fn around_points(points: Vec<StudyPoint>) -> StudyDocument {
    StudyDocument {
        study: "fusion-io".into(),
        title: "Raw device against ext4 and XFS, direct against fsync, one file against several".into(),
        question: "How much of a device is left once a file system lies on it, when one data file is hot? Does it help to have more files?".into(),
        extent: Extent::Full,
        host: host(),
        headline: vec![
            "One hot file still caps ext4: 15.3 K writes/s with O_DIRECT at any number of writers, where the raw device does 110 K.".into(),
            "XFS still falls after 4 writers on one file, by 83 % up to 256; in 2012 it fell from 40 K to 12 K between 4 and 16.".into(),
            "Then fsync beat O_DIRECT on ext4; here it does, too (1.04 times). Four files are enough for ext4, two for XFS.".into(),
        ],
        answers: answers(&points),
        factors: vec![],
        then: then(&points),
        points,
        unknown: vec![],
        effects: effects(),
        interactions: interactions(),
        axes: vec![],
        queue_changes: vec![],
        findings: findings(),
        then_source: Some("Dimitri, MySQL Performance: Linux I/O and Fusion-IO, 23 October 2012".into()),
        then_machine: Some("24 cores Xeon E7530 at 1.87 GHz, 64 GB, Fusion-io card, Oracle Linux 6.2".into()),
        changes: changes(),
        unavailable: vec![Unavailable::impossible(
            "mount option nobarrier",
            "XFS has not taken it since Linux 4.19",
            None,
        )],
        precise_pct: 93.2,
        precision: 0.05,
        replicates_dropped: 14,
        duration_s: 1_043.0,
        fixed_minute_s: 11_520.0,
        bytes_written: 812_000_000_000,
        interrupted: false,
        verdicts: [Verdict::Steal].into_iter().collect(),
        method: BTreeMap::from([
            ("profile_cost_pct".to_owned(), json!(0.7)),
            ("profile_cost_pct_ci95".to_owned(), json!([-0.4, 1.8])),
            ("profile_cost_pct_n".to_owned(), json!(9)),
            ("trace_over_measured".to_owned(), json!(0.93)),
            ("loop_ceiling_4k_iops".to_owned(), json!(212_400.0)),
            ("loop_ceiling_4k_iops_ci95".to_owned(), json!([208_000.0, 216_800.0])),
            ("loop_ceiling_4k_iops_n".to_owned(), json!(4)),
        ]),
        layers: vec![Layer::Device, Layer::Block, Layer::Limit, Layer::Filesystem, Layer::FileApi],
        report: None,
    }
}
