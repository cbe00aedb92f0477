//! Studies as texts: what they become, and what is wrong with them.

use std::time::Duration;

use super::*;
use crate::{Access, FlushScope, Mix, Pacing};

const SMALL: &str = r#"
name = "small"
title = "A small study"
[base]
size = "64M"
[factors]
filesystem = ["raw", "ext4"]
rw = ["randread", "randwrite"]
workers = [1, 4]
[factors.method]
direct = { direct = true }
fsync = { direct = false, fsync = 1 }
[[exclude]]
filesystem = "raw"
method = "fsync"
[[exclude]]
rw = ["randread"]
method = "fsync"
[[part]]
name = "files"
factors = { files = [1, 2], method = ["direct"], workers = 4 }
[measure]
precision = "5%"
budget = "20m"
[full.factors]
workers = [1, 4, 16]
"#;

fn spec(text: &str) -> StudySpec {
    StudySpec::parse(text, "small.toml").unwrap()
}

fn plan(text: &str, extent: Extent) -> StudyPlan {
    spec(text).plan(extent, None, &MeasuringOverrides::default()).unwrap()
}

fn ids(plan: &StudyPlan) -> Vec<&str> {
    plan.cells.iter().map(|cell| cell.id.as_str()).collect()
}

#[test]
fn only_rules_that_leave_something_out_are_told() {
    let text = SMALL.replace("[full.factors]", "[full.factors]\nfilesystem = [\"ext4\"]");
    let spec = spec(&text);
    let fsync = "rw randread with method fsync";
    assert_eq!(spec.exclusions(Extent::Quick), ["filesystem raw with method fsync", fsync]);
    assert_eq!(spec.exclusions(Extent::Full), [fsync]);
}

#[test]
fn a_text_becomes_the_cells_it_names() {
    let plan = plan(SMALL, Extent::Quick);
    let expected = [
        "raw_randread_w1_direct",
        "raw_randread_w4_direct",
        "raw_randwrite_w1_direct",
        "raw_randwrite_w4_direct",
        "ext4_randread_w1_direct_f1",
        "ext4_randread_w4_direct_f1",
        "ext4_randwrite_w1_direct_f1",
        "ext4_randwrite_w1_fsync_f1",
        "ext4_randwrite_w4_direct_f1",
        "ext4_randwrite_w4_fsync_f1",
        "ext4_randread_w4_direct_f2",
        "ext4_randwrite_w4_direct_f2",
    ];
    assert_eq!(ids(&plan), expected);
    let shared = &plan.cells[5];
    assert_eq!(shared.parts, ["main", "files"]);
    assert_eq!(shared.title, "ext4, random reads, 4 workers, direct, 1 file");
    assert_eq!(plan.cells[1].level("files"), None, "files mean nothing on a raw device");
    let last = plan.cells.last().unwrap();
    assert_eq!((last.workload.mix, last.workload.access), (Mix::Write, Access::Uniform));
    assert!(last.workload.direct && last.workload.files == 2 && last.workload.jobs == 4);
    let fsync = &plan.cells[7].workload;
    assert_eq!(fsync.flush.map(|flush| (flush.every, flush.scope)), Some((1, FlushScope::File)));
    assert!((plan.measuring.precision, plan.measuring.replicates) == (0.05, 3));
    let names: Vec<&str> = plan.factors.iter().map(|factor| factor.factor.as_str()).collect();
    assert_eq!(names, ["filesystem", "rw", "workers", "method", "files"]);
    assert!(plan.factors[2].is_axis && !plan.factors[3].is_axis);
}

#[test]
fn full_replaces_what_it_names_and_overrides_stand_over_the_text() {
    let full = plan(SMALL, Extent::Full);
    assert_eq!(full.factors[2].levels, ["1", "4", "16"]);
    assert_eq!(full.cells.len(), 17);
    let only = ["files".to_owned()];
    let overrides = MeasuringOverrides {
        budget: Some(Duration::from_secs(60)),
        seed: Some(9),
        ..Default::default()
    };
    let part = spec(SMALL).plan(Extent::Full, Some(&only), &overrides).unwrap();
    assert_eq!(part.cells.len(), 6);
    assert_eq!(part.measuring.budget, Some(Duration::from_secs(60)));
    assert!(part.cells.iter().all(|cell| cell.workload.seed == 9));
    let refused = spec(SMALL).plan(Extent::Full, Some(&["x".to_owned()]), &overrides).unwrap_err();
    assert!(refused.to_string().contains("its parts are main, files"), "{refused}");
    let zero = MeasuringOverrides { replicates: Some(0), ..Default::default() };
    assert!(spec(SMALL).plan(Extent::Full, None, &zero).is_err());
}

#[test]
fn a_rate_is_a_percentage_of_the_limit_shared_by_the_workers() {
    let text =
        "name='a'\ntitle='a'\n[base]\niops_limit=1500\nworkers=4\n[factors]\nrate_pct=[0,50]";
    let plan = plan(text, Extent::Quick);
    assert_eq!(plan.cells[0].workload.pacing, Pacing::Closed);
    let Pacing::Open { rate_iops, .. } = plan.cells[1].workload.pacing else { panic!() };
    assert_eq!(rate_iops, 187.5);
}

#[test]
fn disks_are_parts_of_volumes() {
    let text = "name='a'\ntitle='a'\n[base]\nfilesystem='raw'\n[factors]\n\
                disk=['none','hdd-15k','hdd-15k,queue=1']\nscheduler=['none','mq-deadline']";
    let plan = plan(text, Extent::Quick);
    let disks: Vec<Option<String>> = plan
        .cells
        .iter()
        .step_by(2)
        .map(|cell| cell.volume.disk.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(disks, [None, Some("hdd-15k".to_owned()), Some("hdd-15k,queue=1".to_owned())]);
    let is = cost(&plan);
    assert_eq!((is.volumes, is.prepared_bytes), (3, 1 << 30), "only the loop file is written");
    assert_eq!(ids(&plan)[..2], ["own_storage_no_scheduler", "own_storage_mq_deadline"]);
    assert_eq!(ids(&plan)[5], "hdd_15k_q1_mq_deadline");
    assert_eq!(plan.cells[5].title, "hdd-15k with queue=1, mq-deadline");
    assert!(!plan.factors[0].is_axis);
}

/// Run directories that were written before there were emulated disks.
#[test]
fn a_volume_without_a_word_of_disks_is_read() {
    let old = r#"{"kind":"ext4","bytes":null,"count":1,"mkfs_options":[],"mount_options":[]}"#;
    let volume: Volume = serde_json::from_str(old).unwrap();
    assert_eq!((volume.kind, volume.disk), (VolumeKind::Ext4, None));
}

#[test]
fn the_queue_is_set_scheduler_first() {
    let text = "name='a'\ntitle='a'\n[base]\nnr_requests=64\nscheduler='none'\ndirty_bytes='64M'\n\
                [factors]\nworkers=[1]";
    let conditions = &plan(text, Extent::Quick).cells[0].conditions;
    let names: Vec<&str> = conditions.queue.iter().map(|set| set.attribute.as_str()).collect();
    assert_eq!(names, ["scheduler", "nr_requests"]);
    assert_eq!(conditions.dirty, [("dirty_bytes".to_owned(), "67108864".to_owned())]);
}

/// Text after `name` and `title`, the line and column of the error, and words that it must have.
const WRONG: &[(&str, (usize, usize), &[&str])] = &[
    ("[factor]\nrw = ['read']", (3, 2), &["`factor`", "did you mean `factors`?"]),
    ("[factors]\nwrokers = [1]", (4, 1), &["wrokers", "did you mean `workers`?"]),
    ("[factors]\nworkers = []", (4, 1), &["workers", "has no levels"]),
    ("[factors]\nworkers = [1, 0]", (4, 15), &["`0`", "use 1 to 4096"]),
    ("[factors]\nbs = ['4k', 4096]", (4, 13), &["`4K`", "twice"]),
    ("[factors]\nbs = ['4q']", (4, 7), &["`4q`", "is not a unit"]),
    ("[factors]\nworkers = [[1]]", (4, 12), &["is a list, not a single value"]),
    ("[factors]\nworkers = 1979-05-27", (4, 11), &["is a date"]),
    ("[base]\nspeed = 3\n[factors]\nworkers = [1]", (4, 1), &["`speed`", "no such setting"]),
    ("[base]\nworkers = 3\n[factors]\nworkers = [1]", (4, 11), &["fixed here and varied"]),
    ("[base]\nnumjobs = 3\njobs = 1\n[factors]\nrw = ['read']", (5, 1), &["is set twice"]),
    ("[factors.method]\na = 1", (4, 5), &["is a single value, not a table of settings"]),
    ("[factors.rw]\na = { rw = 'read' }", (3, 10), &["is a setting", "name the factor otherwise"]),
    ("[factors]\nmethod = ['a']", (4, 1), &["method", "neither a factor above nor a setting"]),
    (
        "[factors]\nworkers = [1]\n[factors.m]\na = { workers = 2 }",
        (5, 10),
        &["factor m", "`workers`", "is set by factor workers too"],
    ),
    (
        "[factors.m]\na = { direct = true }\nb = { direct = true }",
        (5, 1),
        &["comes to the same as level a"],
    ),
    ("[factors]\nworkers = [1]\n[[exclude]]\nwrkers = 1", (6, 1), &["did you mean `workers`?"]),
    ("[factors]\nworkers = [1]\n[[exclude]]\nworkers = 7", (6, 11), &["`7`", "levels are 1"]),
    ("[factors]\nworkers = [1]\n[[exclude]]", (5, 1), &["names nothing"]),
    (
        "[factors]\nworkers = [1, 2]\n[[exclude]]\nworkers = 2",
        (4, 15),
        &["workers `2`", "every point of part main with it is left out"],
    ),
    (
        "[base]\nfilesystem = 'raw'\n[factors]\nfiles = [1, 2]",
        (6, 10),
        &["files `1`", "has no meaning"],
    ),
    ("[factors]\nworkers = [1]\n[[part]]\nfactors = {}", (5, 1), &["[[part]] name", "missing"]),
    (
        "[factors]\nworkers = [1]\n[[part]]\nname = 'p'\nfactors = { fiels = [1] }",
        (7, 13),
        &["part p fiels", "did you mean `files`?"],
    ),
    (
        "[factors]\nworkers = [1]\n[[part]]\nname = 'p'\nbase = { bs = '8k' }",
        (5, 1),
        &["part `p`", "only in what is no factor"],
    ),
    ("[factors]\nworkers = [1]\n[[part]]\nname = 'main'", (6, 8), &["`main`", "is taken"]),
    (
        "[factors]\nworkers = [1]\n[factors.a]\nx.direct = true\n[measure]\nprecision = '200%'",
        (8, 13),
        &["[measure] precision", "`200%`"],
    ),
    ("[factors]\nworkers=[1]\n[measure]\nbudget = 'long'", (6, 10), &["budget", "20m"]),
    ("[factors]\nworkers=[1]\n[measure]\npoint_time = '1ms'", (6, 14), &["50ms"]),
    ("[factors]\nworkers=[1]\n[measure]\nbuget = '1m'", (6, 1), &["did you mean `budget`?"]),
    ("[factors]\nworkers=[1]\n[full]\nbase = 1", (6, 8), &["[full] base", "not a table"]),
    (
        "[base]\nioengine = 'sync'\n[factors]\niodepth = [1, 4]",
        (6, 15),
        &["iodepth `4`", "one request in flight", "[[exclude]]"],
    ),
    (
        "[base]\nvolume_size = '64M'\n[factors]\nfilesystem = ['ext4']",
        (4, 15),
        &["volume_size `64M`", "do not fit", "point ext4"],
    ),
    (
        "[base]\nvolume_size = '64M'\nsize = '32M'\n[factors]\nfilesystem = ['xfs']",
        (4, 15),
        &["xfs cannot be made on 64M"],
    ),
    (
        "[base]\nfilesystem = 'ext4'\nvolumes = 4\n[factors]\nworkers = [1]",
        (5, 11),
        &["4 volumes and only 1 files"],
    ),
    ("[factors]\ndisk = ['hdd-15']", (4, 9), &["no such disk", "did you mean `hdd-15k`?"]),
    ("[factors]\ndisk = ['nvme', 'nvme,queue=0']", (4, 17), &["1 to 4096"]),
    ("[factors]\ndisk = ['nvme', 'NVMe']", (4, 17), &["`nvme`", "twice"]),
    (
        "[base]\ndisk = 'nvme'\n[factors]\nworkers = [1]",
        (4, 8),
        &["disk", "`nvme`", "the directory as it is"],
    ),
    (
        "[factors]\nfs = ['here', 'raw']\ndisk = ['none', 'nvme']",
        (5, 17),
        &["no disk can lie under it", "use filesystem raw"],
    ),
    ("[factors]\nrate_pct = [50]", (4, 13), &["there is no IOPS limit"]),
    (
        "[base]\nfsync = 1\nfdatasync = 1\nrw = 'write'\n[factors]\nworkers = [1]",
        (5, 13),
        &["both"],
    ),
    ("[base]\nsize = '4k'\nfiles = 2\n[factors]\nworkers = [1]", (4, 8), &["size", "smaller than"]),
    (
        "[factors]\nworkers=[1]\n[then]\nsource='a'\nmachine='b'\n[[then.figure]]\ntext='t'\n\
         value=1\nat={workers=2}",
        (11, 13),
        &["at workers `2`", "no such level"],
    ),
    (
        "[factors]\nworkers=[1,2]\n[then]\nsource='a'\nmachine='b'\n[[then.figure]]\ntext='t'\n\
         value=1\nat={}",
        (8, 1),
        &["2 points match it"],
    ),
    ("[factors]\nworkers=[1,2]\n[[answer]]\nof={workers=2}", (5, 1), &["asks", "is missing"]),
    (
        "[factors]\nworkers=[1,2]\n[[answer]]\nasks='a'\nover={workers=1}",
        (5, 1),
        &["[[answer]] of", "is missing"],
    ),
    (
        "[factors]\nworkers=[1,2]\n[[answer]]\nasks='a'\nof={workers=3}",
        (7, 13),
        &["of workers `3`", "no such level"],
    ),
    (
        "[factors]\nworkers=[1,2]\n[[answer]]\nasks='a'\nof={workers=2}\nover={workers=1}\n\
         more='{times} times'\nless='{percent} less'\nsame='none'",
        (10, 6),
        &["`percent`", "is no figure", "{share}"],
    ),
    (
        "[factors]\nworkers=[1,2]\n[[answer]]\nasks='a'\nof={workers=2}\nover={workers=1}\n\
         metric='stalled_pct'\nmore='{times} times'\nless='{of}'\nsame='none'",
        (10, 6),
        &["`times`", "is no figure of stalled_pct", "may be 0", "use {of}, {over}"],
    ),
    (
        "[factors]\nworkers=[1,2]\nbs=['4k','8k']\n[[answer]]\nasks='a'\nof={workers=2}\n\
         over={bs='4k'}\nat={workers=1}\nmore='a'\nless='b'\nsame='c'",
        (6, 1),
        &["no two points differ"],
    ),
    (
        "[factors]\nworkers=[1,2]\n[[answer]]\nasks='a'\nfindings='enough'\nmore='m'",
        (8, 1),
        &["`more`", "does not go with findings"],
    ),
    ("[factors]\nworkers = [1", (4, 13), &["TOML"]),
    ("", (1, 1), &["nothing is varied"]),
];

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let mut odd = Vec::new();
    for (text, place, words) in WRONG {
        let text = format!("name = 'a'\ntitle = 'b'\n{text}");
        let Err(error) = StudySpec::parse(&text, "a.toml") else {
            odd.push(format!("was taken:\n{text}"));
            continue;
        };
        let shown = error.to_string();
        let found = error.place.as_ref().map(|place| (place.line, place.column));
        let fits = found == Some(*place)
            && words.iter().all(|word| shown.contains(word))
            && !error.fix.is_empty()
            && shown.starts_with("a.toml:");
        if !fits {
            odd.push(format!("{text}\nshows: {shown}\nwanted: {place:?} {words:?}"));
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n\n"));
}

#[test]
fn the_points_of_an_answer_differ_in_its_levels_alone() {
    let text = format!(
        "{SMALL}\n[[answer]]\nasks = 'whether ext4 takes anything'\nof = {{ fs = 'ext4' }}\n\
         over = {{ fs = 'raw' }}\nat = {{ rw = 'randwrite', method = 'direct', files = 1 }}\n\
         more = 'more'\nless = 'leaves {{share}}'\nsame = 'none'"
    );
    let plan = plan(&text, Extent::Quick);
    let [Answer { from: AnswerFrom::Contrast(contrast), .. }] = plan.answers.as_slice() else {
        panic!("{:?}", plan.answers);
    };
    let id = |place: usize| plan.cells[place].id.as_str();
    let found: Vec<(&str, Vec<&str>)> = contrast
        .counterparts(&plan.cells)
        .into_iter()
        .map(|(a, below)| (id(a), below.into_iter().map(id).collect()))
        .collect();
    // The raw device has no files: that is no obstacle.
    let expected = [
        ("ext4_randwrite_w1_direct_f1", vec!["raw_randwrite_w1_direct"]),
        ("ext4_randwrite_w4_direct_f1", vec!["raw_randwrite_w4_direct"]),
    ];
    assert_eq!(found, expected);
    assert_eq!(filled(&contrast.less, |_| "93 %".to_owned()), "leaves 93 %");
}

#[test]
fn too_many_points_are_refused_before_they_are_made() {
    let levels: Vec<String> = (1..=500).map(|n| n.to_string()).collect();
    let list = levels.join(",");
    let text = format!(
        "name='a'\ntitle='b'\n[factors]\nworkers=[{list}]\nnr_requests=[{list}]\niodepth=[{list}]"
    );
    let error = StudySpec::parse(&text, "a.toml").unwrap_err();
    assert!(error.to_string().contains("4096 points at most"), "{error}");
}

#[test]
fn a_plan_says_what_it_costs() {
    let plan = plan(SMALL, Extent::Quick);
    let is = cost(&plan);
    assert_eq!((is.points, is.volumes), (12, 2));
    // The raw device whole, and the sets of one and of two files on ext4.
    assert_eq!(is.prepared_bytes, 3 * (64 << 20));
    assert_eq!((is.fixed_minute_s, is.window_s, is.replicates), (720.0, 2.0, 8.0));
    assert!(is.duration_s > 12.0 * 8.0 * 2.0 && is.duration_s < 220.0, "{is:?}");
    assert!(is.written_bytes_max > 0);

    let overrides =
        MeasuringOverrides { budget: Some(Duration::from_secs(22)), ..Default::default() };
    let short = cost(&spec(SMALL).plan(Extent::Quick, None, &overrides).unwrap());
    assert!(short.window_s <= 0.3 && short.replicates < 4.0, "windows first: {short:?}");
    let overrides =
        MeasuringOverrides { budget: Some(Duration::from_secs(12)), ..Default::default() };
    let shorter = cost(&spec(SMALL).plan(Extent::Quick, None, &overrides).unwrap());
    assert!(shorter.replicates < 3.0 && shorter.points == 12, "then replicates: {shorter:?}");
}
