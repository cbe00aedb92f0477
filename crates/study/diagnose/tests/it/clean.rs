//! A sound disk: no loss, no needless advice, and sentences about what it can do.

use iostrata_diagnose::suspect;
use iostrata_run::FindingKind;

use crate::support::{Disk, document, found, host, loss_ids, probe};

#[test]
fn nothing_is_lost_and_nothing_needs_to_change() {
    let document = document(&Disk::default(), &host(), 1);
    assert!(document.losses.is_empty(), "{:?}", document.losses);
    assert!(document.findings.iter().all(|one| one.kind == FindingKind::Sizing));
    let settings: Vec<&str> = document.advice.iter().map(|one| one.setting.as_str()).collect();
    assert!(settings.is_empty(), "what the load needs is not known: {settings:?}");
    assert!(document.headline.len() >= 2 && document.headline.len() <= 5);
    let text = document.headline.join(" ");
    assert!(text.contains("No layer costs more than 1") && !text.contains("caution"), "{text}");
}

#[test]
fn noise_alone_raises_no_loss() {
    for seed in 0..20 {
        let disk = Disk { noise: 0.08, ..Disk::default() };
        let document = document(&disk, &host(), seed);
        assert!(document.losses.is_empty(), "seed {seed}: {:?}", document.losses);
        assert!(loss_ids(&document).is_empty(), "seed {seed}: {:?}", loss_ids(&document));
    }
}

#[test]
fn a_share_of_little_is_little() {
    let disk = Disk { read_us: 15.0, write_us: 10.0, above_us: 60.0, ..Disk::default() };
    let document = document(&disk, &host(), 8);
    assert!(document.losses.is_empty(), "{:?}", document.losses);
    assert!(loss_ids(&document).is_empty());
}

#[test]
fn the_price_of_inherent_work_is_no_loss() {
    let disk = Disk::default()
        .with("unwritten_16k_files_1", 0.25)
        .with("unwritten_16k_files_8", 0.3)
        .with("append_16k", 0.4)
        .with("flushed_16k_buffered", 0.3)
        .with("buffered_16k_files_1", 0.3)
        .with("append_fdatasync", 0.3)
        .with("append_fsync", 0.2)
        .with("commit_fsync", 0.5);
    let document = document(&disk, &host(), 2);
    assert!(document.losses.is_empty(), "{:?}", document.losses);
    assert!(loss_ids(&document).is_empty());
}

#[test]
fn sizes_come_from_the_highest_level_that_keeps_the_objective() {
    let document = document(&Disk::default(), &host(), 3);
    let capacity = found(&document, "flush_capacity").unwrap();
    assert_eq!(capacity.evidence["pages_per_s"], 10_000.0);
    assert_eq!(capacity.evidence["pages_per_s_missed"], 20_000.0);
    assert!(capacity.text.contains("upper bound"), "{}", capacity.text);
    let rows = &document.redo_table;
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0].redo_capacity_bytes, 1_800 << 20);
    assert!((rows[0].drain_s - 46.08).abs() < 0.01, "{}", rows[0].drain_s);
    assert_eq!(rows[3].redo_capacity_bytes, (100 * 1_800) << 20);
}

#[test]
fn rungs_climb_and_curves_find_the_knee() {
    let document = document(&Disk::default(), &host(), 5);
    let layers: Vec<_> = document.rungs.iter().map(|rung| rung.layer).collect();
    assert!(layers.windows(2).all(|pair| pair[0] <= pair[1]));
    let first = document.rungs.iter().find(|rung| rung.name == "read_4k_depth_1").unwrap();
    assert!((first.latency_us.unwrap() - 85.0).abs() < 5.0);
    assert!((first.device_latency_us.unwrap() - 80.0).abs() < 1.0);
    assert_eq!(first.value_n, 3);
    let curve = document.curves.iter().find(|curve| curve.name == "read_4k").unwrap();
    assert_eq!(curve.points.len(), 8);
    assert!([Some(16.0), Some(32.0)].contains(&curve.knee_x), "{:?}", curve.knee_x);
    let commit = document.rungs.iter().find(|rung| rung.name == "commit_fdatasync").unwrap();
    assert!((commit.latency_us.unwrap() - 60.0).abs() < 5.0, "a commit is a write and its flush");
    assert!((commit.device_latency_us.unwrap() - 55.0).abs() < 1.0);
    for name in ["read_16k", "write_files", "commit", "database", "database_reads"] {
        assert!(document.curves.iter().any(|curve| curve.name == name), "{name}");
    }
}

#[test]
fn suspicions_that_were_confirmed_or_cleared_are_not_raised_again() {
    let disk = Disk::default().with("write_16k_files_1", 0.5);
    let events = probe(&disk, &host(), 6);
    assert!(suspect(&events, &host()).is_empty());
}

#[test]
fn storage_that_carries_no_flushing_gets_no_size() {
    let disk = Disk { pages_per_s_max: 1_000.0, ..Disk::default() };
    let document = document(&disk, &host(), 7);
    let capacity = found(&document, "flush_capacity").unwrap();
    assert!(capacity.text.contains("already misses the objective"), "{}", capacity.text);
    assert!(document.advice.is_empty() && document.redo_table.is_empty());
}
