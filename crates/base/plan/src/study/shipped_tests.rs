//! The studies that come with the program: what they measure and that their question is answered.

use super::*;
use crate::{FlushScope, IoApi, Mix};

fn plan(text: &str, extent: Extent) -> StudyPlan {
    let spec = StudySpec::parse(text, "shipped.toml").unwrap();
    spec.plan(extent, None, &MeasuringOverrides::default()).unwrap()
}

fn ids(plan: &StudyPlan) -> Vec<&str> {
    plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

#[test]
fn shipped_studies_can_be_run_in_both_extents() {
    for (name, text) in shipped() {
        let spec = StudySpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, *name);
        for extent in [Extent::Quick, Extent::Full] {
            let plan = spec.plan(extent, None, &MeasuringOverrides::default()).unwrap();
            let budget = plan.measuring.budget.unwrap().as_secs_f64();
            let cost = cost(&plan);
            assert!(cost.duration_s < budget * 1.02, "{name} {extent:?}: {cost:?}");
            assert!(cost.replicates >= 3.0, "nothing is said with fewer: {name} {cost:?}");
            assert!(!plan.answers.is_empty(), "{name} says what answers its question");
        }
    }
}

#[test]
fn studies_of_databases_end_within_minutes() {
    let names = [
        "all-o-direct",
        "insert-queue",
        "stress-redo",
        "io-capacity",
        "page-size",
        "server-vs-engine",
    ];
    for name in names {
        let text = shipped_text(name).unwrap();
        for (extent, most_s) in [(Extent::Quick, 480.0), (Extent::Full, 2400.0)] {
            let budget = plan(text, extent).measuring.budget.unwrap().as_secs_f64();
            assert!(budget <= most_s, "{name} {extent:?}: {budget} s");
        }
    }
}

#[test]
fn fusion_io_has_the_points_of_the_post() {
    let text = shipped_text("fusion-io").unwrap();
    let (quick, full) = (plan(text, Extent::Quick), plan(text, Extent::Full));
    let main = |plan: &StudyPlan| {
        plan.cells.iter().filter(|cell| cell.parts.iter().any(|part| part == "main")).count()
    };
    assert_eq!((main(&quick), main(&full)), (130, 156));
    assert_eq!((quick.cells.len(), full.cells.len()), (166, 324));
    let limit = |cell: &Cell| cell.conditions.memory_limit_bytes.map(|bytes| bytes * 2);
    assert!(quick.cells.iter().all(|cell| limit(cell) == Some(cell.workload.size_bytes)));
    assert!(ids(&quick).contains(&"ext4_randwrite_4k_w16_direct_f1"));
    assert_eq!(quick.then.as_ref().map(|then| then.figures.len()), Some(26));
}

#[test]
fn ext4_vs_xfs_works_as_its_tool_did() {
    let plan = plan(shipped_text("ext4-vs-xfs").unwrap(), Extent::Quick);
    let cell = plan.cells.iter().find(|cell| cell.level("api") == Some("async")).unwrap();
    let spec = &cell.workload;
    assert_eq!((spec.api, spec.depth, spec.jobs, spec.files), (IoApi::Libaio, 128, 1, 128));
    assert_eq!(spec.mix, Mix::Both { read_pct: 60 });
    let flush = spec.flush.unwrap();
    assert_eq!((flush.every, flush.scope), (100, FlushScope::All));
    assert_eq!(plan.then.as_ref().map(|then| then.figures.len()), Some(42));
}

#[test]
fn names_of_points_are_snake_case_and_unique() {
    for (name, text) in shipped() {
        let plan = plan(text, Extent::Full);
        let mut names = ids(&plan);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), plan.cells.len(), "{name}");
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(names.iter().all(|name| name.chars().all(fits) && !name.contains("__")));
    }
}
