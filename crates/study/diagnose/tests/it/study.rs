//! Studies on made-up disks: what is there is found, what is not is not claimed.

use iostrata_diagnose::{ProbeEnd, summarise_study};
use iostrata_plan::IoSpec;
use iostrata_plan::study::{
    Cell, Conditions, Extent, FactorLevels, LevelAt, Measuring, StudyPlan, Take, Then, ThenFigure,
    ThenMetric, Volume, VolumeKind,
};
use iostrata_run::{AxisKind, Event, FindingKind, StudyDocument, StudyEffect};
use iostrata_stats::Verdict;

use crate::support::study::{replicate, stream};
use crate::support::{Random, host};

const WORKERS: [u32; 5] = [1, 4, 16, 64, 128];
const FILES: [u32; 4] = [1, 2, 4, 8];

/// What a made-up storage does: IOPS by file system, workers and files.
pub type Storage = fn(&str, u32, u32) -> f64;

pub fn level(factor: &str, level: impl ToString) -> LevelAt {
    LevelAt { factor: factor.to_owned(), level: level.to_string() }
}

fn cell(kind: VolumeKind, workers: u32, files: u32) -> Cell {
    let mut workload = IoSpec::new("");
    (workload.jobs, workload.files) = (workers, files);
    let mut levels = vec![level("filesystem", kind.name()), level("workers", workers)];
    if kind != VolumeKind::Raw {
        levels.push(level("files", files));
    }
    let id = format!("{}_w{workers}_f{files}", kind.name());
    Cell {
        title: id.clone(),
        id,
        parts: vec!["main".to_owned()],
        levels,
        volume: Volume {
            kind,
            disk: None,
            bytes: None,
            count: 1,
            mkfs_options: Vec::new(),
            mount_options: Vec::new(),
        },
        conditions: Conditions::default(),
        workload,
        transactions: None,
        second: None,
        readers: None,
    }
}

pub fn plan() -> StudyPlan {
    let mut cells = Vec::new();
    for workers in WORKERS {
        cells.push(cell(VolumeKind::Raw, workers, 1));
        for kind in [VolumeKind::Ext4, VolumeKind::Xfs] {
            cells.extend(FILES.map(|files| cell(kind, workers, files)));
        }
    }
    let factor = |name: &str, levels: &[&str], is_axis| FactorLevels {
        factor: name.to_owned(),
        levels: levels.iter().map(|&one| one.to_owned()).collect(),
        is_axis,
    };
    StudyPlan {
        name: "made-up".to_owned(),
        title: "made-up".to_owned(),
        question: "what is found".to_owned(),
        extent: Extent::Quick,
        factors: vec![
            factor("filesystem", &["raw", "ext4", "xfs"], false),
            factor("workers", &["1", "4", "16", "64", "128"], true),
            factor("files", &["1", "2", "4", "8"], true),
        ],
        cells,
        measuring: Measuring { replicates: 4, ..Measuring::default() },
        answers: Vec::new(),
        then: Some(Then {
            source: "made up".to_owned(),
            machine: "none".to_owned(),
            figures: vec![
                figure("most of raw", 10_000.0, "raw", Take::Max, None),
                figure("ext4 over raw", 0.5, "ext4", Take::Max, Some("raw")),
                figure("not measured", 1.0, "btrfs", Take::Max, None),
                figure("many match", 1.0, "ext4", Take::Only, None),
                ThenFigure {
                    at: vec![level("filesystem", "raw"), level("scheduler", "none")],
                    ..figure("of a factor that is not varied", 10_000.0, "raw", Take::Max, None)
                },
            ],
        }),
    }
}

fn figure(text: &str, value: f64, at: &str, take: Take, over: Option<&str>) -> ThenFigure {
    ThenFigure {
        text: text.to_owned(),
        value,
        value_high: None,
        unit: "IOPS".to_owned(),
        metric: ThenMetric::Iops,
        at: vec![level("filesystem", at)],
        take,
        over: over.map(|over| vec![level("filesystem", over)]),
    }
}

/// The events of a study of this storage, with 1 % of noise.
pub fn events(plan: &StudyPlan, storage: Storage) -> Vec<Event> {
    let mut random = Random::new(11);
    let mut events = Vec::new();
    for number in 0..plan.measuring.replicates {
        for cell in &plan.cells {
            let iops = storage(cell.volume.kind.name(), cell.workload.jobs, cell.workload.files);
            events.push(replicate(cell, number, stream(iops * (1.0 + 0.01 * random.normal()))));
        }
    }
    events
}

fn document(storage: Storage) -> StudyDocument {
    let plan = plan();
    let end = ProbeEnd { bytes_written: 1, duration_s: 60.0, ..ProbeEnd::default() };
    summarise_study(host(), &plan, &events(&plan, storage), end)
}

fn ids(document: &StudyDocument, kind: FindingKind) -> Vec<&str> {
    let of = document.findings.iter().filter(|finding| finding.kind == kind);
    of.map(|finding| finding.id.as_str()).collect()
}

/// Scales alike everywhere.
pub fn clean(_: &str, workers: u32, _: u32) -> f64 {
    100_000.0 * f64::from(workers) / (f64::from(workers) + 8.0)
}

/// The storage of 2012: ext4 writes one file at a time; XFS falls apart beyond four workers on one
/// file.
pub fn of_2012(kind: &str, workers: u32, files: u32) -> f64 {
    match kind {
        "raw" => clean(kind, workers, files),
        "ext4" => clean(kind, workers, files).min(12_000.0 * f64::from(files)),
        _ if workers > 4 && files < 4 => 12_000.0,
        _ => clean(kind, workers, files),
    }
}

#[test]
fn a_clean_storage_is_told_that_it_is_clean() {
    let document = document(clean);
    assert!(ids(&document, FindingKind::Loss).is_empty(), "{:#?}", document.findings);
    assert!(document.effects.iter().all(|one| (one.ratio - 1.0).abs() < 0.03));
    let workers = document.axes.iter().filter(|axis| axis.factor == "workers");
    for axis in workers {
        assert!(matches!(axis.kind, AxisKind::Scaling | AxisKind::Saturating), "{axis:?}");
    }
    let same = ids(&document, FindingKind::Sizing);
    assert!(same.contains(&"no_measurable_difference") && same.contains(&"enough"), "{same:?}");
    for kind in ["ext4", "xfs"] {
        let clean = format!("No measurable difference between filesystem raw and {kind}");
        let said = document.headline.iter().any(|one| one.starts_with(&clean));
        assert!(said, "{:?}", document.headline);
    }
    assert_eq!(document.precise_pct, 100.0);
    assert_eq!((document.replicates_dropped, document.points.len()), (0, 45));
}

#[test]
fn what_was_true_in_2012_is_found() {
    let document = document(of_2012);
    let losses = ids(&document, FindingKind::Loss);
    assert!(losses.contains(&"filesystem_loss"), "{losses:?}");
    assert!(losses.contains(&"collapse_along_axis"), "{losses:?}");
    let at = |kind: &str, files: u32| {
        let levels = [level("filesystem", kind), level("files", files)];
        document
            .axes
            .iter()
            .find(|axis| {
                axis.factor == "workers" && levels.iter().all(|at| axis.levels.contains(at))
            })
            .unwrap()
    };
    assert_eq!(at("xfs", 1).kind, AxisKind::Collapse);
    assert_eq!(at("xfs", 1).at, Some(4.0));
    assert!(at("xfs", 1).change_pct_ci95.unwrap()[1] < -50.0);
    assert!(matches!(at("ext4", 1).kind, AxisKind::Saturating | AxisKind::Flat));
    assert_ne!(at("xfs", 8).kind, AxisKind::Collapse);
    let files = document.axes.iter().find(|axis| {
        axis.factor == "files"
            && axis.levels.contains(&level("filesystem", "xfs"))
            && axis.levels.contains(&level("workers", 64))
    });
    assert_eq!(files.unwrap().enough, Some(4.0), "{files:?}");
    assert!(!document.interactions.is_empty(), "the effect of ext4 depends on the workers");
    assert!(document.headline[0].contains('%'), "{:?}", document.headline);
}

#[test]
fn two_numbers_are_an_effect_and_more_are_a_curve() {
    let (four, mut plan) = (document(of_2012), plan());
    plan.factors[2].levels.truncate(2);
    plan.cells.retain(|cell| cell.workload.files <= 2);
    let end = ProbeEnd { bytes_written: 1, duration_s: 60.0, ..ProbeEnd::default() };
    let storage: Storage = |kind, workers, files| f64::from(files) * clean(kind, workers, files);
    let two = summarise_study(host(), &plan, &events(&plan, storage), end);
    let seen = |document: &StudyDocument| {
        let ratios = document.effects.iter().filter(|one| one.factor == "files");
        let ratios: Vec<f64> = ratios.map(|one| one.ratio.round()).collect();
        (ratios, document.axes.iter().any(|axis| axis.factor == "files"))
    };
    assert_eq!([seen(&two), seen(&four)], [(vec![2.0], false), (vec![], true)]);
}

#[test]
fn a_point_without_a_level_takes_no_effect_away() {
    let (whole, mut plan) = (document(of_2012), plan());
    let mut twin = plan.cells.iter().find(|cell| cell.id == "ext4_w64_f1").unwrap().clone();
    twin.id = "ext4_w64".to_owned();
    twin.levels.retain(|at| at.factor != "files");
    plan.cells.push(twin);
    let end = ProbeEnd { bytes_written: 1, duration_s: 60.0, ..ProbeEnd::default() };
    let with = summarise_study(host(), &plan, &events(&plan, of_2012), end);
    let listed = |document: &StudyDocument| -> Vec<(String, String, String, u64)> {
        let effects = document.effects.iter();
        let one =
            |one: &StudyEffect| (one.factor.clone(), one.from.clone(), one.to.clone(), one.ratio_n);
        effects.map(one).collect()
    };
    assert!(!whole.effects.is_empty());
    assert_eq!(listed(&with), listed(&whole));
}

#[test]
fn then_and_now_stand_side_by_side_and_blanks_stay_blank() {
    let document = document(of_2012);
    let row = |text: &str| document.then.iter().find(|row| row.text == text).unwrap();
    let raw = row("most of raw");
    assert_eq!(raw.then, Some(10_000.0));
    assert!((raw.times.unwrap() - 9.4).abs() < 0.3, "{raw:?}");
    assert!(raw.now_ci95.is_some() && raw.now_n == 4);
    let ratio = row("ext4 over raw");
    assert!((ratio.now.unwrap() - 1.0).abs() < 0.05, "eight files reach the device: {ratio:?}");
    let unvaried = row("of a factor that is not varied");
    assert_eq!((unvaried.now, unvaried.now_n), (raw.now, 4));
    for blank in ["not measured", "many match"] {
        let row = row(blank);
        assert_eq!((row.now, row.times, row.then), (None, None, Some(1.0)));
    }
}

#[test]
fn a_part_of_a_log_is_summarised_as_far_as_it_goes() {
    let plan = plan();
    let all = events(&plan, of_2012);
    for length in [0, 1, 45, 46, 90, all.len()] {
        let end = ProbeEnd { interrupted: true, ..ProbeEnd::default() };
        let document = summarise_study(host(), &plan, &all[..length], end);
        assert_eq!(document.points.len(), length.min(45));
        assert!(document.interrupted && !document.headline.is_empty());
        if length <= 2 * 45 {
            assert!(document.findings.is_empty(), "three replicates are needed: {length}");
        }
    }
}

#[test]
fn verdicts_reach_the_points_and_the_ceiling_is_told() {
    let plan = plan();
    let mut all = events(&plan, clean);
    for event in &mut all {
        if let Event::Replicate(one) = event
            && one.point.id.ends_with("w128_f1")
        {
            one.verdicts.add(Verdict::LoopLimited);
        }
    }
    let document = summarise_study(host(), &plan, &all, ProbeEnd::default());
    assert_eq!(ids(&document, FindingKind::Caution), ["loop_ceiling"]);
    let limited = document.points.iter().filter(|one| one.verdicts.has(Verdict::LoopLimited));
    assert_eq!(limited.count(), 3);
}
